//! Leases of file numbers: a worker writes beside the writer, which adopts what it reports and nothing else.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use terrane_base::env::{Clock, Env, SleepClock};
use terrane_base::{ExtentId, Kind, Result};
use terrane_remote::bucket::{Bucket, MemoryBucket};
use terrane_remote::store::{CheckEnd, LEASE_RESERVE, Written, WrittenObject};
use terrane_remote::{BucketStore, BucketStoreSettings, Collected, Roots};
use terrane_storage::{Store, conformance};

use crate::support::{check, env, memory, names, open, pattern, put, refused, reopened, small};

/// The extents of most of these tests are bytes without a footer.
const ANY: CheckEnd<'static> = &|_, _| Ok(());

/// A writer of epoch 3 with two extents, and a worker that reads them under a lease of four numbers.
struct World {
    clock: Arc<SleepClock>,
    bucket: Arc<MemoryBucket>,
    store: BucketStore,
    inputs: [(ExtentId, u32); 2],
    lease: Range<u32>,
}

fn worker(bucket: Arc<dyn Bucket>, lease: Range<u32>, inputs: &[(ExtentId, u32)]) -> Result<BucketStore> {
    let store = BucketStore::open_leased(bucket, "db", (3, lease), small(), env().0)?;
    store.restore(&mut inputs.iter().copied())?;
    Ok(store)
}

fn world() -> World {
    let (_, clock) = env();
    let bucket = memory(&clock);
    let store = open(bucket.clone(), 3).expect("opens");
    let inputs = [(put(&store, 1000, 1).expect("put"), 1), (put(&store, 2000, 2).expect("put"), 1)];
    store.sync().expect("synced");
    let lease = store.lease(4).expect("leases");
    World { clock, bucket, store, inputs, lease }
}

impl World {
    fn worker(&self) -> BucketStore {
        worker(self.bucket.clone(), self.lease.clone(), &self.inputs).expect("opens")
    }

    /// The output of a worker: two extents in one object, one in another.
    fn outputs(&self) -> (Vec<(ExtentId, u32)>, Written) {
        let worker = self.worker();
        let first = [put(&worker, 500, 10).expect("put"), put(&worker, 600, 11).expect("put")];
        worker.sync().expect("synced");
        let last = put(&worker, 700, 12).expect("put");
        worker.sync().expect("synced");
        let ids = first.into_iter().chain([last]).map(|id| (id, 1)).collect();
        (ids, worker.written().expect("it is synced"))
    }

    fn check(&self, store: &BucketStore, outputs: &[(ExtentId, u32)]) {
        for ((id, _), (len, salt)) in outputs.iter().zip([(500, 10), (600, 11), (700, 12)]) {
            check(store, *id, len, salt);
        }
    }

    /// Two passes of the collection of garbage, of a manifest that names these extents. Returns how many
    /// objects went.
    fn collect(&self, store: &BucketStore, live: &[(ExtentId, u32)]) -> usize {
        #[derive(Debug)]
        struct Named(BTreeSet<u32>);
        impl Roots for Named {
            fn confirm(&self) -> Result<()> {
                Ok(())
            }
            fn files(&self) -> Result<BTreeSet<u32>> {
                Ok(self.0.clone())
            }
        }
        let roots = Named(live.iter().map(|(id, _)| id.file).collect());
        match store.collect_garbage(&roots).expect("marks") {
            Collected::Nothing => return 0,
            Collected::Marked(_) => {}
            other => panic!("the first pass marks: {other:?}"),
        }
        self.clock.sleep(small().garbage_age);
        match store.collect_garbage(&roots).expect("deletes") {
            Collected::Deleted { objects, .. } => objects,
            other => panic!("the second pass deletes: {other:?}"),
        }
    }
}

#[test]
fn outputs_of_a_worker_are_adopted() {
    let world = world();
    assert_eq!(world.lease, 2..6);
    let worker = world.worker();
    check(&worker, world.inputs[0].0, 1000, 1);
    check(&worker, world.inputs[1].0, 2000, 2);
    let (outputs, written) = world.outputs();
    assert_eq!(outputs.iter().map(|(id, _)| id.file).collect::<Vec<_>>(), [2, 2, 3]);
    assert_eq!(written.objects.len(), 2);
    let before = world.store.usage().live_bytes;
    world.store.adopt_leased(&world.lease, &written, &outputs, ANY).expect("adopts");
    world.store.end_lease(&world.lease);
    world.check(&world.store, &outputs);
    assert_eq!(world.store.usage().live_bytes, before + 3 * (2 << 20));
    // The writer goes on behind the lease, and the next one finds all of it.
    let own = put(&world.store, 300, 13).expect("put");
    assert_eq!(own.file, 6);
    world.store.sync().expect("synced");
    let live: Vec<(ExtentId, u32)> = outputs.iter().copied().chain(world.inputs).chain([(own, 1)]).collect();
    let again = reopened(world.bucket.clone(), 4, &live);
    world.check(&again, &outputs);
    check(&again, own, 300, 13);
    // They are extents like others.
    world.store.free(outputs[2].0, 1).expect("freed");
    assert_eq!(world.collect(&world.store, &live[..2]), 1, "the object of the one that was freed");
    refused(world.store.free(outputs[2].0, 1), Kind::Invalid);
}

#[test]
fn leased_numbers_are_given_once() {
    let world = world();
    assert_eq!(world.store.lease(3).expect("leases"), 6..9);
    assert_eq!(put(&world.store, 10, 1).expect("put").file, 9);
    world.store.end_lease(&world.lease);
    assert_eq!(world.store.lease(1).expect("leases"), 10..11);
    refused(world.store.lease(0), Kind::Invalid);
    let message = refused(world.store.lease(u32::MAX - 5), Kind::Full);
    assert!(message.contains("numbers"), "{message}");
    // Nor those that are the writer's alone: it goes on where no worker does.
    let rest = u32::MAX - LEASE_RESERVE - 11;
    let message = refused(world.store.lease(rest + 1), Kind::Full);
    assert!(message.contains("the writer's own"), "{message}");
    assert_eq!(world.store.lease(rest).expect("leases").end, u32::MAX - LEASE_RESERVE);
    refused(world.store.lease(1), Kind::Full);
    world.store.sync().expect("synced");
    assert_eq!(put(&world.store, 10, 1).expect("put").file, u32::MAX - LEASE_RESERVE);
    // Not before it is known which numbers are taken.
    refused(open(world.bucket.clone(), 4).expect("opens").lease(1), Kind::Invalid);
}

#[test]
fn a_worker_writes_under_its_lease_only() {
    let world = world();
    let worker = world.worker();
    let message = refused(worker.write(world.inputs[0].0, b"other bytes"), Kind::Invalid);
    assert!(message.contains("fewer slots"), "{message}");
    for file in world.lease.clone() {
        assert_eq!(put(&worker, 10, 1).expect("put").file, file);
        refused(worker.written(), Kind::Invalid);
        worker.sync().expect("synced");
    }
    let message = refused(put(&worker, 10, 1), Kind::Full);
    assert!(message.contains("4 leased file numbers from 2 on"), "{message}");
    refused(worker.lease(1), Kind::Invalid);
    refused(world.store.written(), Kind::Invalid);
    #[derive(Debug)]
    struct Nothing;
    impl Roots for Nothing {
        fn confirm(&self) -> Result<()> {
            Ok(())
        }
        fn files(&self) -> Result<BTreeSet<u32>> {
            Ok(BTreeSet::new())
        }
    }
    refused(worker.collect_garbage(&Nothing), Kind::Invalid);
    assert_eq!(names(&*world.bucket, "db/data").len(), 5);
}

#[test]
fn a_lease_is_used_once_and_under_the_newest_writer() {
    let world = world();
    let open = |lease: Range<u32>| worker(world.bucket.clone(), lease, &world.inputs);
    world.outputs();
    let message = refused(open(world.lease.clone()), Kind::Invalid);
    assert!(message.contains("used before"), "{message}");
    refused(open(0..3), Kind::Invalid);
    refused(open(5..5), Kind::Invalid);
    // Inputs under the own lease are not inputs.
    let other = world.store.lease(2).expect("leases");
    let wrong = [(ExtentId { file: other.start, slot: 0 }, 1)];
    refused(worker(world.bucket.clone(), other.clone(), &wrong), Kind::Corrupt);
    let newer = reopened(world.bucket.clone(), 4, &world.inputs);
    put(&newer, 10, 1).expect("put");
    newer.sync().expect("synced");
    let message = refused(open(other), Kind::Poisoned);
    assert!(message.contains("epoch 4") && message.contains("epoch 3"), "{message}");
}

/// The fault, and the report: objects and extents.
type Wrong = (&'static str, Written, Vec<(ExtentId, u32)>);

/// A worker is another program: what it reports is checked before anything is adopted.
#[test]
fn a_false_report_is_refused() {
    let world = world();
    let (outputs, written) = world.outputs();
    let own = WrittenObject { number: 1, part: 0, bytes: object_bytes(&world, 1) };
    let with = |change: &dyn Fn(&mut Vec<WrittenObject>)| {
        let mut objects = written.objects.clone();
        change(&mut objects);
        Written { objects, ..written.clone() }
    };
    let extent = |file, slot, slots| (ExtentId { file, slot }, slots);
    let wrong: Vec<Wrong> = vec![
        ("an object of the writer", with(&|all| all.push(own)), vec![world.inputs[0]]),
        ("a number behind the lease", with(&|all| all[0].number = 6), outputs.clone()),
        ("another size", with(&|all| all[0].bytes += 1), outputs.clone()),
        ("no bytes", with(&|all| all[0].bytes = 0), outputs.clone()),
        ("an object that is not there", with(&|all| all[0].part = 1), outputs.clone()),
        ("a part that does not exist", with(&|all| all[0].part = 100_000), outputs.clone()),
        ("an object twice", with(&|all| all.push(all[0])), outputs.clone()),
        ("an object is left out", with(&|all| all.truncate(1)), outputs.clone()),
        ("another worker", Written { nonce: written.nonce ^ 1, ..written.clone() }, outputs.clone()),
        ("more slots", written.clone(), vec![extent(2, 0, 2)]),
        ("no slots", written.clone(), vec![extent(2, 0, 0)]),
        ("an extent that is not in the object", written.clone(), vec![extent(2, 7, 1)]),
        ("an extent out of range", written.clone(), vec![extent(2, u32::MAX, 1)]),
        ("an extent twice", written.clone(), vec![outputs[0], outputs[0]]),
        ("extents that overlap", written.clone(), vec![extent(2, 0, 2), extent(2, 1, 1)]),
        ("an extent of no object", written.clone(), vec![extent(4, 0, 1)]),
    ];
    let before = world.store.usage();
    for (what, written, extents) in wrong {
        let outcome = world.store.adopt_leased(&world.lease, &written, &extents, ANY);
        let error = outcome.expect_err(what);
        assert_eq!(error.kind(), Kind::Corrupt, "{what}: {error}");
        assert_eq!(world.store.usage(), before, "{what}");
    }
    // An end that is not as reported: each extent is asked for, with its own bytes.
    let check: CheckEnd<'_> = &|id, end| match (id, end == &pattern(700, 12)[700 - end.len()..]) {
        (id, true) if id == outputs[2].0 => Err(terrane_base::Error::corrupt("another footer")),
        _ => Ok(()),
    };
    let message = refused(world.store.adopt_leased(&world.lease, &written, &outputs, check), Kind::Corrupt);
    assert!(message.contains("another footer"), "{message}");
    // An object that was not reported, under a file that was: a later opening would take it for the newest.
    let first = names(&*world.bucket, "db/data").into_iter().find(|name| name.contains("0000000002-"));
    let shadow =
        first.expect("the first object of the lease").replace("0000000002-00000", "0000000002-00001");
    world.bucket.create(&shadow, b"shadow").expect("creates");
    let message = refused(world.store.adopt_leased(&world.lease, &written, &outputs, ANY), Kind::Corrupt);
    assert!(message.contains("does not report it"), "{message}");
    world.bucket.delete(&[shadow]).expect("deletes");
    // Damage of a table.
    let name = names(&*world.bucket, "db/data").into_iter().find(|name| name.contains("0000000002"));
    let name = name.expect("the first object of the lease");
    let whole = world.bucket.get(&name, 1 << 20).expect("reads");
    for at in 1100..whole.len() {
        let mut damaged = whole.to_vec();
        damaged[at] ^= 1;
        world.bucket.damage(&name, damaged.into()).expect("is there");
        refused(world.store.adopt_leased(&world.lease, &written, &outputs, ANY), Kind::Corrupt);
    }
    world.bucket.damage(&name, whole).expect("is there");
    // The true report is adopted after all, and once.
    world.store.adopt_leased(&world.lease, &written, &outputs, ANY).expect("adopts");
    let message = refused(world.store.adopt_leased(&world.lease, &written, &outputs, ANY), Kind::Corrupt);
    assert!(message.contains("adopted before"), "{message}");
    world.check(&world.store, &outputs);
}

fn object_bytes(world: &World, number: u32) -> u64 {
    let name = format!("{number:010}-00000");
    let listed = world.bucket.list("db/data", None).expect("lists");
    listed.into_iter().find(|object| object.name.ends_with(&name)).expect("is there").bytes
}

#[test]
fn a_lease_that_ended_adopts_nothing() {
    let world = world();
    let (outputs, written) = world.outputs();
    let other = world.store.lease(4).expect("leases");
    refused(world.store.adopt_leased(&other, &written, &outputs, ANY), Kind::Corrupt);
    refused(world.store.adopt_leased(&(2..5), &written, &outputs, ANY), Kind::Invalid);
    // Nor does a lease take what lies behind it, under another one that lives.
    let worker = worker(world.bucket.clone(), other.clone(), &world.inputs).expect("opens");
    let id = put(&worker, 100, 50).expect("put");
    worker.sync().expect("synced");
    let behind = worker.written().expect("synced");
    let message = refused(world.store.adopt_leased(&world.lease, &behind, &[(id, 1)], ANY), Kind::Corrupt);
    assert!(message.contains("has a lease of the numbers 2..6"), "{message}");
    world.store.end_lease(&(2..5));
    world.store.end_lease(&world.lease);
    let message = refused(world.store.adopt_leased(&world.lease, &written, &outputs, ANY), Kind::Invalid);
    assert!(message.contains("2..6"), "{message}");
    // A newer writer is noticed by its objects.
    let newer = reopened(world.bucket.clone(), 4, &world.inputs);
    put(&newer, 10, 1).expect("put");
    newer.sync().expect("synced");
    refused(
        world.store.adopt_leased(&other, &Written { nonce: 0, objects: Vec::new() }, &[], ANY),
        Kind::Poisoned,
    );
}

#[test]
fn garbage_is_what_an_ended_lease_left() {
    let world = world();
    let (outputs, written) = world.outputs();
    let all = |world: &World| names(&*world.bucket, "db/data").len();
    assert_eq!(world.collect(&world.store, &world.inputs), 0, "the worker still runs");
    assert_eq!(all(&world), 3);
    // One of two objects is adopted, and no manifest names it yet.
    world.store.adopt_leased(&world.lease, &written, &outputs[..2], ANY).expect("adopts");
    world.store.end_lease(&world.lease);
    assert_eq!(world.collect(&world.store, &world.inputs), 1, "the other one");
    world.check(&world.store, &outputs[..2]);
    // A worker that was given up goes on: an orphan, of the next pass.
    let late =
        BucketStore::open_leased(world.bucket.clone(), "db", (3, 3..6), small(), env().0).expect("opens");
    late.restore(&mut world.inputs.into_iter()).expect("restores");
    put(&late, 100, 20).expect("put");
    late.sync().expect("the bucket cannot know");
    assert_eq!(world.collect(&world.store, &world.inputs), 1);
    world.check(&world.store, &outputs[..2]);
    for (id, salt) in world.inputs.iter().zip([1, 2]).map(|((id, _), salt)| (*id, salt)) {
        check(&world.store, id, 1000 * salt as usize, salt);
    }
}

#[test]
fn orphans_of_an_older_writer_go_and_shadow_nothing() {
    let world = world();
    let zombie = world.worker();
    let newer = reopened(world.bucket.clone(), 4, &world.inputs);
    // The newer writer takes the number that the worker of the older one has, and both write.
    let own = put(&newer, 400, 30).expect("put");
    assert_eq!(own.file, world.lease.start);
    put(&zombie, 500, 31).expect("put");
    zombie.sync().expect("the bucket cannot know");
    newer.sync().expect("synced");
    check(&newer, own, 400, 30);
    let live: Vec<(ExtentId, u32)> = world.inputs.into_iter().chain([(own, 1)]).collect();
    assert_eq!(world.collect(&newer, &live), 1);
    check(&reopened(world.bucket.clone(), 5, &live), own, 400, 30);
}

/// The store of a worker is a store: the suite opens one lease after another, beside one writer.
#[test]
fn the_store_of_a_worker_keeps_the_contract() {
    conformance::keeps_the_contract(|| {
        let bucket = memory(&env().1);
        let settings =
            BucketStoreSettings { stage_bytes: 4 << 30, probe: false, ..BucketStoreSettings::default() };
        let epochs = std::sync::atomic::AtomicU64::new(1);
        move || -> Arc<dyn Store> {
            // Each opening is behind all that was written before it, as that of a writer.
            let epoch = epochs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let lease = epoch as u32 * 10_000..(epoch as u32 + 1) * 10_000;
            let open = BucketStore::open_leased(bucket.clone(), "db", (epoch, lease), settings, Env::real());
            Arc::new(open.expect("opens"))
        }
    });
}

#[test]
fn bytes_of_a_worker_come_back_whole() {
    let world = world();
    let worker = world.worker();
    let len = 3_000_000;
    let id = put(&worker, len, 40).expect("put");
    worker.sync().expect("synced");
    let written = worker.written().expect("synced");
    world.store.adopt_leased(&world.lease, &written, &[(id, 2)], ANY).expect("adopts");
    let mut bytes = vec![0; len];
    world.store.read(id, 0, &mut bytes).expect("reads");
    assert!(bytes == pattern(len, 40));
}
