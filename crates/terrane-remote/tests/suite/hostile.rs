//! Objects that are not what they should be are damage, by name, never wrong bytes.

use std::sync::Arc;

use bytes::Bytes;
use terrane_base::{ExtentId, Kind};
use terrane_remote::Bucket;
use terrane_remote::bucket::MemoryBucket;
use terrane_storage::{ReadRequest, Store};

use crate::support::{env, memory, names, open, put, refused, reopened};

fn one_object() -> (Arc<MemoryBucket>, [(ExtentId, u32); 2], String) {
    let bucket = memory(&env().1);
    let store = open(bucket.clone(), 1).expect("opens");
    let live = [(put(&store, 1000, 1).expect("put"), 1), (put(&store, 2000, 2).expect("put"), 1)];
    store.sync().expect("synced");
    let name = names(&*bucket, "db/data").pop().expect("one object");
    (bucket, live, name)
}

#[test]
fn every_damaged_byte_is_found_by_whole_reads() {
    let (bucket, live, name) = one_object();
    let whole = bucket.get(&name, 1 << 20).expect("is there");
    for at in (0..whole.len()).step_by(7).chain(3000..whole.len()) {
        let mut damaged = whole.to_vec();
        damaged[at] ^= 0x10;
        bucket.damage(&name, damaged.into()).expect("is there");
        let store = reopened(bucket.clone(), 2, &live);
        let (mut first, mut second) = ([0; 1000], [0; 2000]);
        let outcomes = [store.read(live[0].0, 0, &mut first), store.read(live[1].0, 0, &mut second)];
        // Damage of the table concerns both; all of its bytes but those of the nonce are checked on their own
        // or by its checksum.
        let expected = [!(1000..3000).contains(&at), at >= 1000];
        assert_eq!(outcomes.each_ref().map(Result::is_err), expected, "byte {at}");
        for outcome in outcomes.into_iter().filter(Result::is_err) {
            let message = refused(outcome, Kind::Corrupt);
            assert!(message.contains(&name), "{message}");
        }
    }
}

#[test]
fn objects_that_are_cut_or_missing_are_damage() {
    let (bucket, live, name) = one_object();
    let whole = bucket.get(&name, 1 << 20).expect("is there");
    for len in [1, 47, 48, 500, whole.len() - 1] {
        for part in [whole.slice(..len), whole.slice(whole.len() - len..)] {
            bucket.damage(&name, part).expect("is there");
            let store = reopened(bucket.clone(), 2, &live);
            refused(store.read(live[0].0, 0, &mut [0; 1000]), Kind::Corrupt);
        }
    }
    bucket.damage(&name, whole.clone()).expect("is there");
    let store = reopened(bucket.clone(), 2, &live);
    store.read(live[0].0, 0, &mut [0; 1000]).expect("read");
    // Damage and loss while the store is open.
    bucket.damage(&name, Bytes::from_static(b"short")).expect("is there");
    refused(store.read(live[0].0, 0, &mut [0; 1000]), Kind::Corrupt);
    bucket.delete(std::slice::from_ref(&name)).expect("deleted");
    let message = refused(store.read(live[0].0, 10, &mut [0; 10]), Kind::Corrupt);
    assert!(message.contains(&name) && message.contains("missing"), "{message}");
    refused(store.begin_read(live[0].0, 0, 10, Vec::new()).and_then(|begun| begun.finish()), Kind::Corrupt);
    let mut buffers = [[0; 10]; 2];
    let mut reads: Vec<_> =
        buffers.iter_mut().zip(live).map(|(buffer, (id, _))| ReadRequest::new(id, 0, buffer)).collect();
    store.read_batch(&mut reads);
    for read in reads {
        refused(read.result, Kind::Corrupt);
    }
    // A new store without the object knows at once.
    let store = open(bucket, 3).expect("opens");
    let message = refused(store.restore(&mut live.into_iter()), Kind::Corrupt);
    assert!(message.contains("there is no object of it"), "{message}");
}

#[test]
fn extents_that_no_table_has_are_damage() {
    let (bucket, live, name) = one_object();
    let nowhere = ExtentId { slot: 2, ..live[0].0 };
    let wider = (live[1].0, 3);
    for wrong in [(nowhere, 1), wider] {
        let store = reopened(bucket.clone(), 2, &[live[0], wrong]);
        let message = refused(store.read(wrong.0, 0, &mut [0; 10]), Kind::Corrupt);
        assert!(message.contains(&name), "{message}");
        store.read(live[0].0, 0, &mut [0; 10]).expect("the other one is whole");
    }
    // The object of another name, copied.
    let other = name.strip_suffix('0').expect("the first part").to_owned() + "1";
    let whole = bucket.get(&name, 1 << 20).expect("is there");
    bucket.create(&other, &whole).expect("created");
    let store = reopened(bucket, 2, &live);
    let message = refused(store.read(live[0].0, 0, &mut [0; 10]), Kind::Corrupt);
    assert!(message.contains(&other), "{message}");
}

#[test]
fn names_that_are_not_of_data_objects_are_left_alone() {
    let (bucket, live, _) = one_object();
    for name in ["db/data/readme.txt", "db/data/2-3-4", "db/data/x/00000000000000000009-0000000009-00000"] {
        bucket.create(name, b"not ours").expect("created");
    }
    let store = reopened(bucket.clone(), 2, &live);
    assert_eq!(put(&store, 10, 1).expect("put").file, 2);
    store.sync().expect("synced");
    assert_eq!(bucket.get("db/data/2-3-4", 99).expect("is there"), "not ours");
}
