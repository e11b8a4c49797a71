//! The store over the tier: which requests it makes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane_base::ExtentId;
use terrane_base::env::Env;
use terrane_device::{Call, Failure, Fault, FaultyDisk, MemDisk};
use terrane_remote::bucket::Bucket;
use terrane_remote::bucket::faulty::FaultyBucket;
use terrane_remote::{BucketStore, BucketStoreSettings, Tier};
use terrane_storage::{ReadRequest, Store, conformance};

use super::{BYTES, open};
use crate::support::{check, env, memory, pattern, put, reopened};

const LEN: usize = 300_000;

/// Extents in a bucket that counts calls, and the store of the next opening with a tier.
struct World {
    bucket: FaultyBucket,
    ids: Vec<ExtentId>,
    disk: MemDisk,
}

impl World {
    fn new() -> World {
        let inner = memory(&env().1);
        let store = crate::support::open(inner.clone(), 1).expect("opens");
        let ids = (0..3).map(|i| put(&store, LEN, i).expect("put")).collect();
        store.sync().expect("synced");
        World { bucket: FaultyBucket::new(inner), ids, disk: MemDisk::new() }
    }

    fn tier(&self) -> Arc<Tier> {
        Arc::new(open(&self.disk, BYTES))
    }

    fn store(&self, epoch: u64, tier: &Arc<Tier>) -> BucketStore {
        let live: Vec<(ExtentId, u32)> = self.ids.iter().map(|id| (*id, 1)).collect();
        reopened(Arc::new(self.bucket.clone()), epoch, &live).with_tier(tier.clone())
    }

    /// Reads a block of an extent, and returns the calls of the bucket that it took.
    #[track_caller]
    fn read(&self, store: &dyn Store, extent: usize, offset: u32) -> u64 {
        let before = self.bucket.calls();
        let mut block = [0; 8000];
        store.read(self.ids[extent], offset, &mut block).expect("read");
        let whole = pattern(LEN, extent as u64);
        assert!(block == whole[offset as usize..offset as usize + 8000], "the bytes of extent {extent}");
        self.bucket.calls() - before
    }
}

#[test]
fn a_hit_makes_no_request_also_after_a_restart() {
    let world = World::new();
    let tier = world.tier();
    let store = world.store(2, &tier);
    assert_eq!(world.read(&store, 0, 1000), 2, "the table, and the frame");
    tier.settle();
    assert_eq!(world.read(&store, 0, 1000), 0);
    assert_eq!(world.read(&store, 0, 40_000), 0, "a neighbour in the frame");
    assert_eq!(world.read(&store, 0, 65_000), 1, "half of it is in the next frame");
    assert_eq!(world.read(&store, 0, 70_000), 0, "also while the frame waits to be written");
    let counts = store.tier_counts().expect("a tier");
    assert_eq!((counts.hits, counts.misses), (3, 2));
    drop((store, tier));
    let tier = world.tier();
    let store = world.store(3, &tier);
    assert_eq!(world.read(&store, 0, 1000), 1, "the table, which says whose the object is");
    assert_eq!(world.read(&store, 0, 65_000), 0);
    assert_eq!(world.read(&store, 2, 65_000), 1, "that was never read");
}

#[test]
fn two_readers_of_one_range_make_one_request() {
    let world = World::new();
    for tier in [None, Some(world.tier())] {
        let live: Vec<(ExtentId, u32)> = world.ids.iter().map(|id| (*id, 1)).collect();
        let store = reopened(Arc::new(world.bucket.clone()), 2, &live);
        let store = match &tier {
            Some(tier) => store.with_tier(tier.clone()),
            None => store,
        };
        let _table = world.read(&store, 0, 250_000);
        let before = world.bucket.calls();
        let begin =
            |offset: u32, len: usize| store.begin_read(world.ids[0], offset, len, Vec::new()).expect("begun");
        let reads = [(100, 9000), (100, 9000), (2000, 500)];
        let begun = reads.map(|(offset, len)| begin(offset, len));
        assert_eq!(world.bucket.calls() - before, 1, "three readers, one call");
        let whole = pattern(LEN, 0);
        // The last one first: the order does not matter.
        for (read, (offset, len)) in begun.into_iter().zip(reads).rev() {
            let bytes = read.finish().expect("read");
            assert!(bytes[..] == whole[offset as usize..offset as usize + len]);
        }
        assert_eq!(world.bucket.calls() - before, 1);
        // A reader that was dropped leaves nothing behind.
        drop(begin(150_000, 10));
        assert_eq!(world.read(&store, 0, 150_000), 1);
    }
}

#[test]
fn threads_that_read_one_block_make_one_request() {
    let world = World::new();
    let tier = world.tier();
    let store = world.store(2, &tier);
    let _table = world.read(&store, 0, 0);
    let before = world.bucket.calls();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut block = [0; 8000];
                store.read(world.ids[1], 90_000, &mut block).expect("read");
                assert!(block == pattern(LEN, 1)[90_000..98_000]);
            });
        }
    });
    // A thread either joins the call, or finds what it brought.
    assert_eq!(world.bucket.calls() - before, 1);
}

#[test]
fn a_failed_call_fails_its_readers_and_no_later_one() {
    let world = World::new();
    let tier = world.tier();
    let store = world.store(2, &tier);
    let _table = world.read(&store, 0, 0);
    let begin = || store.begin_read(world.ids[1], 100, 50, Vec::new()).expect("begun");
    world.bucket.fail(world.bucket.calls(), terrane_remote::bucket::faulty::Fault::Before);
    let (first, second) = (begin(), begin());
    assert!(first.finish().is_err() && second.finish().is_err(), "one call, one fault");
    assert_eq!(world.read(&store, 1, 100), 1);
}

#[test]
fn blocks_of_a_batch_share_frames() {
    let world = World::new();
    let tier = world.tier();
    let store = world.store(2, &tier);
    let _table = world.read(&store, 0, 0);
    tier.settle();
    let mut buffers = vec![[0; 4000]; 12];
    let before = world.bucket.calls();
    let places = (0..12).map(|i| (world.ids[i % 2], i as u32 * 10_000));
    let mut reads: Vec<ReadRequest<'_>> =
        places.zip(&mut buffers).map(|((id, offset), buffer)| ReadRequest::new(id, offset, buffer)).collect();
    store.read_batch(&mut reads);
    assert!(reads.iter().all(|read| read.result.is_ok()));
    drop(reads);
    for (i, buffer) in buffers.iter().enumerate() {
        assert!(buffer[..] == pattern(LEN, i as u64 % 2)[i * 10_000..i * 10_000 + 4000], "read {i}");
    }
    assert_eq!(world.bucket.calls() - before, 1, "one object");
    tier.settle();
    let frames = tier.counts().frames;
    assert_eq!((frames, tier.counts().bytes_written), (5, 5 * 65_472), "each came in once");
}

#[test]
fn bulk_reads_fill_no_frames() {
    let world = World::new();
    let tier = world.tier();
    let store = world.store(2, &tier);
    check(&store, world.ids[0], LEN, 0);
    store.prefetch(world.ids[1], 0, 100_000);
    assert_eq!(world.read(&store, 1, 10), 0, "it was read ahead");
    tier.settle();
    assert_eq!(tier.counts().frames, 0);
}

#[test]
fn uploaded_extents_are_cached_until_they_are_dead() {
    let world = World::new();
    let tier = world.tier();
    let store = world.store(2, &tier);
    let id = put(&store, LEN, 9).expect("put");
    store.sync().expect("synced");
    tier.settle();
    let calls = world.bucket.calls();
    check(&store, id, LEN, 9);
    assert_eq!(world.bucket.calls(), calls, "all of it is in the tier");
    assert_eq!(tier.counts().frames, (LEN as u64 + 64).div_ceil(65_472));
    store.free(id, 1).expect("freed");
    assert_eq!(tier.counts().frames, 0, "no reader wants it any more");
}

#[test]
fn a_restored_bucket_is_not_answered_for_by_the_tier() {
    let world = World::new();
    let tier = world.tier();
    let write = |salt: u64| {
        let bucket = memory(&env().1);
        let store = crate::support::open(bucket.clone(), 1).expect("opens").with_tier(tier.clone());
        let id = put(&store, 1000, salt).expect("put");
        store.sync().expect("synced");
        tier.settle();
        (bucket, id)
    };
    let ((first, id), (second, same)) = (write(1), write(2));
    assert_eq!(id, same, "both have an object of one name");
    for (bucket, salt) in [(first, 1), (second, 2)] {
        check(&reopened(bucket, 2, &[(id, 1)]).with_tier(tier.clone()), id, 1000, salt);
    }
}

#[test]
fn a_tier_that_fails_costs_requests_and_no_answer() {
    let world = World::new();
    let disk = FaultyDisk::new(Arc::new(world.disk.clone()));
    let tier = Arc::new(open(&disk, BYTES));
    let store = world.store(2, &tier);
    let _table = world.read(&store, 0, 0);
    tier.settle();
    disk.fail(Fault::new(Call::Read, Failure::Broken).lasting());
    assert_eq!(world.read(&store, 0, 0), 1, "from the bucket");
    assert!(tier.off().is_some());
    assert_eq!(world.read(&store, 0, 0), 1);
}

#[test]
fn a_store_with_a_tier_keeps_the_contract() {
    conformance::keeps_the_contract(|| {
        let bucket: Arc<dyn Bucket> = memory(&env().1);
        let epoch = AtomicU64::new(1);
        move || {
            let settings = BucketStoreSettings { stage_bytes: 4 << 30, ..BucketStoreSettings::default() };
            let epoch = epoch.fetch_add(1, Ordering::Relaxed);
            let store = BucketStore::open(bucket.clone(), "db", epoch, settings, Env::real()).expect("opens");
            // The store before may be open still, so each has a directory of its own.
            Arc::new(store.with_tier(Arc::new(open(&MemDisk::new(), BYTES)))) as Arc<dyn Store>
        }
    });
}
