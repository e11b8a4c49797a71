//! Two writers on one bucket: names never meet, and the older one damages nothing.

use std::sync::Arc;

use terrane_base::{ExtentId, Kind};
use terrane_storage::Store;

use crate::support::{check, env, memory, names, open, put, refused, reopened};

#[test]
fn an_epoch_is_used_once_and_in_order() {
    let bucket = memory(&env().1);
    let store = open(bucket.clone(), 5).expect("opens");
    put(&store, 10, 1).expect("put");
    store.sync().expect("synced");
    let used = refused(open(bucket.clone(), 5), Kind::Invalid);
    assert!(used.contains("epoch 5") && used.contains("used before"), "{used}");
    let replaced = refused(open(bucket.clone(), 4), Kind::Poisoned);
    assert!(replaced.contains("epoch 5") && replaced.contains("epoch 4"), "{replaced}");
    open(bucket, 6).expect("opens");
}

#[test]
fn a_replaced_writer_shadows_nothing() {
    let bucket = memory(&env().1);
    let old = open(bucket.clone(), 1).expect("opens");
    let kept = put(&old, 1000, 1).expect("put");
    old.sync().expect("synced");
    // The newer writer begins where the older one was, and both go on.
    let new = reopened(bucket.clone(), 2, &[(kept, 1)]);
    let pairs: Vec<(ExtentId, ExtentId)> = (0..3)
        .map(|round| {
            let ids = (put(&old, 500, 10 + round).expect("put"), put(&new, 500, 20 + round).expect("put"));
            old.sync().expect("the bucket cannot know");
            new.sync().expect("synced");
            ids
        })
        .collect();
    assert!(pairs.iter().all(|(old, new)| old == new), "both take the same numbers: {pairs:?}");
    assert_eq!(names(&*bucket, "db/data").len(), 7, "under names of their own");
    let live: Vec<(ExtentId, u32)> = pairs.iter().map(|(_, new)| (*new, 1)).chain([(kept, 1)]).collect();
    let third = reopened(bucket.clone(), 3, &live);
    for (round, (_, id)) in pairs.iter().enumerate() {
        check(&third, *id, 500, 20 + round as u64);
        check(&new, *id, 500, 20 + round as u64);
    }
    check(&third, kept, 1000, 1);
    assert!(put(&third, 1, 1).expect("put").file > pairs[2].1.file, "behind what both wrote");
}

#[test]
fn two_writers_of_one_epoch_find_out() {
    let bucket = memory(&env().1);
    let (left, right) = (open(bucket.clone(), 1).expect("opens"), open(bucket.clone(), 1).expect("opens"));
    let (of_left, of_right) = (put(&left, 1000, 1).expect("put"), put(&right, 1000, 2).expect("put"));
    assert_eq!(of_left, of_right);
    left.sync().expect("synced");
    let message = refused(right.sync(), Kind::Poisoned);
    assert!(message.contains("another writer") && message.contains("00001-0000000001-00000"), "{message}");
    refused(put(&right, 1, 1), Kind::Poisoned);
    check(&right, of_right, 1000, 2);
    drop(right);
    check(&reopened(bucket as Arc<_>, 2, &[(of_left, 1)]), of_left, 1000, 1);
}
