//! Garbage goes in two passes, and nothing else does.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::{Clock, SleepClock};
use terrane_base::sync::Mutex;
use terrane_base::{Error, ExtentId, Kind, Result};
use terrane_remote::bucket::MemoryBucket;
use terrane_remote::bucket::faulty::{Fault, FaultyBucket};
use terrane_remote::{BucketStore, Collected, Roots};
use terrane_storage::Store;

use crate::support::{check, env, memory, names, open, put, refused, reopened};

/// The content of a manifest.
#[derive(Debug, Default)]
struct Manifest {
    files: Mutex<BTreeSet<u32>>,
    is_replaced: Mutex<bool>,
}

impl Manifest {
    fn of(ids: &[ExtentId]) -> Self {
        let manifest = Manifest::default();
        manifest.files.lock().extend(ids.iter().map(|id| id.file));
        manifest
    }
}

impl Roots for Manifest {
    fn confirm(&self) -> Result<()> {
        if *self.is_replaced.lock() { Err(Error::new(Kind::Poisoned, "replaced")) } else { Ok(()) }
    }

    fn files(&self) -> Result<BTreeSet<u32>> {
        Ok(self.files.lock().clone())
    }
}

/// Objects of one extent each, of an older writer and of this one, and some that are dead.
struct World {
    clock: Arc<SleepClock>,
    inner: Arc<MemoryBucket>,
    bucket: FaultyBucket,
    store: BucketStore,
    live: Vec<(ExtentId, u64)>,
    dead_objects: usize,
}

fn synced(store: &BucketStore, salt: u64) -> ExtentId {
    let id = put(store, 1000, salt).expect("put");
    store.sync().expect("synced");
    id
}

fn world() -> World {
    let (_, clock) = env();
    let inner = memory(&clock);
    let old = open(inner.clone(), 1).expect("opens");
    // Three that live on, one that the newer writer frees, two that no manifest knows.
    let olds: Vec<ExtentId> = (0..6).map(|salt| synced(&old, salt)).collect();
    let bucket = FaultyBucket::new(inner.clone());
    let live: Vec<(ExtentId, u32)> = olds[..4].iter().map(|id| (*id, 1)).collect();
    let store = reopened(Arc::new(bucket.clone()), 2, &live);
    // The older one goes on for a while, under numbers that the newer one takes, too.
    for salt in 90..92 {
        synced(&old, salt);
    }
    let news: Vec<ExtentId> = (10..14).map(|salt| synced(&store, salt)).collect();
    store.free(olds[3], 1).expect("freed");
    store.free(news[3], 1).expect("freed");
    let kept = olds[..3].iter().zip(0..).chain(news[..3].iter().zip(10..));
    World { clock, inner, bucket, store, live: kept.map(|(id, salt)| (*id, salt)).collect(), dead_objects: 6 }
}

impl World {
    fn manifest(&self) -> Manifest {
        Manifest::of(&self.live.iter().map(|(id, _)| *id).collect::<Vec<_>>())
    }

    fn check_live(&self) {
        let live: Vec<(ExtentId, u32)> = self.live.iter().map(|(id, _)| (*id, 1)).collect();
        let again = reopened(self.inner.clone(), 9, &live);
        for (id, salt) in &self.live {
            check(&self.store, *id, 1000, *salt);
            check(&again, *id, 1000, *salt);
        }
    }

    fn data_objects(&self) -> usize {
        names(&*self.inner, "db/data").len()
    }
}

#[test]
fn garbage_goes_in_two_passes_when_it_is_old() {
    let world = world();
    let manifest = world.manifest();
    let all = world.data_objects();
    let Collected::Marked(marked) = world.store.collect_garbage(&manifest).expect("marks") else {
        panic!("the first pass writes a list")
    };
    assert_eq!((marked.objects(), world.data_objects()), (world.dead_objects, all));
    world.clock.sleep(Duration::from_secs(59));
    assert_eq!(world.store.collect_garbage(&manifest).expect("waits"), Collected::TooYoung(marked.clone()));
    assert_eq!(world.data_objects(), all);
    // What dies after the first pass waits for the next one.
    let late = world.live[5].0;
    world.store.free(late, 1).expect("freed");
    world.clock.sleep(Duration::from_secs(1));
    let deleted = world.store.collect_garbage(&manifest).expect("deletes");
    assert_eq!(deleted, Collected::Deleted { objects: marked.objects(), bytes: marked.bytes() });
    assert_eq!(world.data_objects(), all - world.dead_objects);
    assert_eq!(names(&*world.inner, "db/gc"), Vec::<String>::new(), "nor is a list left");
    manifest.files.lock().remove(&late.file);
    assert!(
        matches!(world.store.collect_garbage(&manifest), Ok(Collected::Marked(marked)) if marked.objects() == 1)
    );
    world.clock.sleep(Duration::from_secs(60));
    assert!(matches!(world.store.collect_garbage(&manifest), Ok(Collected::Deleted { objects: 1, .. })));
    assert_eq!(world.store.collect_garbage(&manifest).expect("nothing to do"), Collected::Nothing);
    let usage = world.store.usage();
    assert_eq!((usage.files, usage.sealed_bytes), (5, 0));
    let world = World { live: world.live[..5].to_vec(), ..world };
    world.check_live();
}

#[test]
fn an_object_that_a_manifest_names_or_a_job_writes_stays() {
    let world = world();
    let manifest = world.manifest();
    // A reader pins a manifest with what was freed since.
    let pinned = ExtentId { file: 4, slot: 0 };
    manifest.files.lock().insert(pinned.file);
    // A job has uploaded an extent that no manifest names yet, another one is in the stage.
    let (uploaded, staged) = (synced(&world.store, 50), put(&world.store, 1000, 51).expect("put"));
    let Ok(Collected::Marked(marked)) = world.store.collect_garbage(&manifest) else { panic!("marks") };
    assert_eq!(marked.objects(), world.dead_objects - 1);
    world.clock.sleep(Duration::from_secs(60));
    assert!(matches!(world.store.collect_garbage(&manifest), Ok(Collected::Deleted { .. })));
    world.store.sync().expect("synced");
    let live = [(pinned, 1), (uploaded, 1), (staged, 1)];
    let again = reopened(world.inner.clone(), 9, &live);
    check(&again, pinned, 1000, 3);
    check(&again, uploaded, 1000, 50);
    check(&again, staged, 1000, 51);
    world.check_live();
}

#[test]
fn held_extents_stay() {
    let world = world();
    let manifest = Manifest::of(&world.live[1..].iter().map(|(id, _)| *id).collect::<Vec<_>>());
    world.store.hold();
    world.store.free(world.live[0].0, 1).expect("freed");
    world.store.collect_garbage(&manifest).expect("marks");
    world.clock.sleep(Duration::from_secs(60));
    assert!(matches!(world.store.collect_garbage(&manifest), Ok(Collected::Deleted { objects: 6, .. })));
    world.check_live();
    world.store.release();
    assert!(
        matches!(world.store.collect_garbage(&manifest), Ok(Collected::Marked(marked)) if marked.objects() == 1)
    );
}

#[test]
fn a_replaced_writer_deletes_nothing() {
    let world = world();
    let manifest = world.manifest();
    let all = world.data_objects();
    world.store.collect_garbage(&manifest).expect("marks");
    world.clock.sleep(Duration::from_secs(600));
    *manifest.is_replaced.lock() = true;
    refused(world.store.collect_garbage(&manifest), Kind::Poisoned);
    assert_eq!(world.data_objects(), all);
    // A newer writer whose objects are there is noticed without the manifest, and its list stays.
    *manifest.is_replaced.lock() = false;
    let live: Vec<(ExtentId, u32)> = world.live.iter().map(|(id, _)| (*id, 1)).collect();
    let newer = reopened(world.inner.clone(), 3, &live);
    synced(&newer, 70);
    refused(world.store.collect_garbage(&manifest), Kind::Poisoned);
    assert_eq!(world.data_objects(), all + 1);
    // The newer one removes the list of the older one, and writes its own.
    assert!(matches!(newer.collect_garbage(&manifest), Ok(Collected::Marked(_))));
    assert_eq!(names(&*world.inner, "db/gc").len(), 1);
    world.check_live();
}

#[test]
fn every_call_of_a_pass_may_fail() {
    let count = |world: &World| {
        let before = world.bucket.calls();
        world.store.collect_garbage(&world.manifest()).expect("marks");
        world.clock.sleep(Duration::from_secs(60));
        world.store.collect_garbage(&world.manifest()).expect("deletes");
        world.bucket.calls() - before
    };
    let calls = count(&world());
    assert!(calls > 8, "{calls} calls");
    for call in 0..calls {
        for fault in [Fault::Before, Fault::After] {
            let world = world();
            let manifest = world.manifest();
            world.bucket.fail(world.bucket.calls() + call, fault);
            let mut failures = 0;
            for _ in 0..6 {
                failures += u32::from(world.store.collect_garbage(&manifest).is_err());
                world.clock.sleep(Duration::from_secs(60));
            }
            assert_eq!(failures, 1, "call {call}, {fault:?}");
            assert_eq!(world.data_objects(), world.live.len(), "call {call}, {fault:?}: all garbage is gone");
            world.check_live();
        }
    }
}

#[test]
fn a_store_that_is_not_restored_collects_nothing() {
    let world = world();
    let fresh = open(world.inner.clone(), 5).expect("opens");
    refused(fresh.collect_garbage(&Manifest::default()), Kind::Invalid);
    assert_eq!(names(&*world.inner, "db/gc"), Vec::<String>::new());
}
