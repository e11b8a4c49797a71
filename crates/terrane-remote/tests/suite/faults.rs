//! Every call to the bucket fails once, in every way: nothing that was synced is lost, and no object of
//! another writer is touched.

use std::collections::BTreeMap;
use std::sync::Arc;

use terrane_base::{ExtentId, Kind, Result, Rng};
use terrane_remote::bucket::MemoryBucket;
use terrane_remote::bucket::faulty::{Fault, FaultyBucket};
use terrane_remote::{Bucket, BucketStore};
use terrane_storage::Store;

use crate::support::{check, env, memory, open, pattern, put, refused, reopened, retrying};

/// Extents that were synced: their length and salt.
type Synced = BTreeMap<ExtentId, (usize, u64)>;

/// Objects of other writers in the same bucket.
const FOREIGN: [&str; 3] = [
    "db/data/00000000000000000001-0000000001-00000",
    "db/data/notes",
    "dc/data/00000000000000000001-0000000001-00000",
];

fn bucket_with_others() -> Arc<MemoryBucket> {
    let bucket = memory(&env().1);
    for name in FOREIGN {
        bucket.create(name, name.as_bytes()).expect("created");
    }
    bucket
}

/// Writes, syncs and frees by a seed; returns what was synced, and how it ended.
fn work(store: &BucketStore, seed: u64, synced: &mut Synced) -> Result<()> {
    let mut rng = Rng::new(seed);
    let mut written: Synced = BTreeMap::new();
    for salt in 0..40 {
        let len = 1 + rng.index(120_000);
        written.insert(put(store, len, salt)?, (len, salt));
        if rng.one_in(4)
            && let Some((id, _)) =
                synced.iter().nth(rng.index(synced.len().max(1))).map(|(id, what)| (*id, *what))
        {
            store.free(id, 1)?;
            synced.remove(&id);
        }
        if rng.one_in(6) {
            store.sync()?;
            synced.append(&mut written);
        }
    }
    store.sync()?;
    synced.append(&mut written);
    Ok(())
}

/// Opens the store again and checks what was synced, and that the objects of others are as they were.
fn check_synced(bucket: &Arc<MemoryBucket>, epoch: u64, synced: &Synced) {
    let live: Vec<(ExtentId, u32)> = synced.keys().map(|id| (*id, 1)).collect();
    let store = reopened(bucket.clone(), epoch, &live);
    for (id, (len, salt)) in synced {
        check(&store, *id, *len, *salt);
    }
    for name in FOREIGN {
        assert_eq!(bucket.get(name, 100).expect("is there"), name);
    }
}

/// The calls of a run without faults.
fn calls_of(seed: u64) -> u64 {
    let counted = FaultyBucket::new(bucket_with_others());
    let store = reopened(Arc::new(counted.clone()), 2, &[]);
    work(&store, seed, &mut Synced::new()).expect("no fault");
    counted.calls()
}

#[test]
fn a_failed_call_loses_nothing_that_was_synced() {
    let calls = calls_of(1);
    assert!(calls > 8, "{calls} calls");
    // The first two are the lists of the opening.
    for call in 2..calls {
        for fault in [Fault::Before, Fault::After, Fault::Refused] {
            let bucket = bucket_with_others();
            let faulty = FaultyBucket::new(bucket.clone());
            let store = reopened(Arc::new(faulty.clone()), 2, &[]);
            faulty.fail(call, fault);
            let mut synced = Synced::new();
            let error = work(&store, 1, &mut synced).expect_err("without retries a fault ends the work");
            // The first error says what failed, all later ones that the store must be opened again.
            assert!(matches!(error.kind(), Kind::Io | Kind::Invalid | Kind::Poisoned), "{error}");
            refused(store.sync(), Kind::Poisoned);
            refused(store.allocate(1), Kind::Poisoned);
            for (id, (len, salt)) in &synced {
                check(&store, *id, *len, *salt);
            }
            check_synced(&bucket, 3, &synced);
        }
    }
}

#[test]
fn with_retries_a_failed_call_is_not_noticed() {
    let calls = calls_of(2);
    for call in 0..calls {
        for fault in [Fault::Before, Fault::After] {
            let (bucket, (env, _)) = (bucket_with_others(), env());
            let faulty = FaultyBucket::new(bucket.clone());
            faulty.fail(call, fault);
            let store = reopened(retrying(Arc::new(faulty), &env), 2, &[]);
            let mut synced = Synced::new();
            work(&store, 2, &mut synced).expect("the fault is repaired");
            check_synced(&bucket, 3, &synced);
        }
    }
}

#[test]
fn random_faults_are_outlasted() {
    for seed in 0..8 {
        let (bucket, (env, _)) = (bucket_with_others(), env());
        let faulty = FaultyBucket::new(bucket.clone());
        let store = reopened(retrying(Arc::new(faulty.clone()), &env), 2, &[]);
        faulty.fail_at_random(3, seed);
        let mut synced = Synced::new();
        work(&store, seed, &mut synced).expect("the faults are repaired");
        for (id, (len, salt)) in &synced {
            check(&store, *id, *len, *salt);
        }
        check_synced(&bucket, 3, &synced);
    }
}

#[test]
fn a_bucket_that_is_down_stops_writes_and_staged_bytes_stay_readable() {
    let bucket = bucket_with_others();
    let faulty = FaultyBucket::new(bucket.clone());
    let store = reopened(retrying(Arc::new(faulty.clone()), &env().0), 2, &[]);
    let synced = put(&store, 1000, 1).expect("put");
    store.sync().expect("synced");
    let staged = put(&store, 2000, 2).expect("put");
    faulty.set_down(true);
    let message = refused(store.sync(), Kind::Io);
    assert!(message.contains("may be lost") && message.contains("attempts"), "{message}");
    let message = refused(store.sync(), Kind::Poisoned);
    assert!(message.contains("open the database again"), "{message}");
    refused(store.write(staged, &pattern(10, 1)), Kind::Poisoned);
    check(&store, staged, 2000, 2);
    refused(store.read(synced, 0, &mut [0; 10]), Kind::Io);
    faulty.set_down(false);
    check(&store, synced, 1000, 1);
    refused(store.sync(), Kind::Poisoned);
    check_synced(&bucket, 3, &BTreeMap::from([(synced, (1000, 1))]));
    drop(open(bucket, 4).expect("opens"));
}
