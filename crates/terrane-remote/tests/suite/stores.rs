//! The store of extents: contract, packing, reads, the stage.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane_base::env::Env;
use terrane_base::{ExtentId, Kind};
use terrane_remote::bucket::faulty::FaultyBucket;
use terrane_remote::bucket::{Bucket, ClientBucket, DirectoryBucket};
use terrane_remote::{BucketStore, BucketStoreSettings};
use terrane_storage::{ReadRequest, SLOT_BYTES, Store, StoreUsage, conformance};

use crate::support::{check, env, memory, names, open, pattern, put, refused, reopened, small};

/// A function that opens the store for one writer after another. The suite reserves a gigabyte at once.
pub(crate) fn openings(bucket: Arc<dyn Bucket>) -> impl Fn() -> Arc<dyn Store> {
    let settings = BucketStoreSettings { stage_bytes: 4 << 30, ..BucketStoreSettings::default() };
    let epoch = AtomicU64::new(1);
    move || {
        let epoch = epoch.fetch_add(1, Ordering::Relaxed);
        Arc::new(BucketStore::open(bucket.clone(), "db", epoch, settings, Env::real()).expect("opens"))
    }
}

#[test]
fn a_bucket_in_memory_keeps_the_contract() {
    conformance::keeps_the_contract(|| openings(memory(&env().1)));
}

#[test]
fn a_bucket_in_a_directory_keeps_the_contract() {
    conformance::keeps_the_contract(|| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let open = openings(Arc::new(DirectoryBucket::open(directory.path(), Env::real()).expect("opens")));
        move || {
            assert!(directory.path().is_dir(), "it lives as long as the store");
            open()
        }
    });
}

#[test]
fn a_bucket_behind_a_client_keeps_the_contract() {
    conformance::keeps_the_contract(|| {
        let client = Arc::new(object_store::memory::InMemory::new());
        openings(Arc::new(ClientBucket::new(client, "client:").expect("opens")))
    });
}

#[test]
fn extents_share_objects_of_the_size_that_is_set() {
    let bucket = memory(&env().1);
    let store = open(bucket.clone(), 7).expect("opens");
    let lens: Vec<usize> = (0..25).map(|i| 100_000 + i).collect();
    let put_all = |salt: u64| -> Vec<ExtentId> {
        lens.iter().map(|len| put(&store, *len, salt + *len as u64).expect("put")).collect()
    };
    let first = put_all(0);
    store.sync().expect("synced");
    // Ten extents of 100,000 bytes fit a mebibyte.
    assert_eq!(first.iter().map(|id| id.file).collect::<Vec<_>>()[..11], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2]);
    let name = |number: u32, part: u32| format!("db/data/00000000000000000007-{number:010}-{part:05}");
    assert_eq!(names(&*bucket, "db"), [name(1, 0), name(2, 0), name(3, 0)]);
    // What comes after a sync begins an object: one that exists is never added to.
    let second = put_all(1000);
    assert_eq!(second[0], ExtentId { file: 4, slot: 0 });
    store.sync().expect("synced");
    store.sync().expect("nothing to do");
    assert_eq!(names(&*bucket, "db").len(), 6);
    let live: Vec<(ExtentId, u32)> = first.iter().chain(&second).map(|id| (*id, 1)).collect();
    let again = reopened(bucket, 8, &live);
    for (ids, salt) in [(&first, 0), (&second, 1000)] {
        for (id, len) in ids.iter().zip(&lens) {
            check(&again, *id, *len, salt + *len as u64);
            check(&store, *id, *len, salt + *len as u64);
        }
    }
    assert_eq!(again.usage().live_bytes, 50 * SLOT_BYTES as u64);
    assert_eq!(put(&again, 10, 0).expect("put").file, 7, "behind every number");
}

#[test]
fn a_full_object_is_uploaded_before_the_sync() {
    let bucket = memory(&env().1);
    let store = open(bucket.clone(), 1).expect("opens");
    for i in 0..10 {
        put(&store, 100_000, i).expect("put");
    }
    assert_eq!(names(&*bucket, "db"), Vec::<String>::new(), "the first one may still get an extent");
    put(&store, 100_000, 10).expect("put");
    assert_eq!(names(&*bucket, "db").len(), 1);
}

#[test]
fn an_extent_written_late_or_again_is_in_a_further_part() {
    let bucket = memory(&env().1);
    let store = open(bucket.clone(), 1).expect("opens");
    let (early, late) = (put(&store, 1000, 1).expect("put"), store.allocate_for(1, 5000).expect("allocated"));
    store.sync().expect("synced");
    // What was read ahead is void when the extent is written again.
    store.prefetch(early, 0, 1000);
    store.write(late, &pattern(2000, 2)).expect("written");
    store.write(early, &pattern(3000, 3)).expect("written again");
    check(&store, early, 3000, 3);
    store.sync().expect("synced");
    check(&store, early, 3000, 3);
    let mut first = [0; 1000];
    store.read(early, 0, &mut first).expect("read");
    assert_eq!(first, pattern(3000, 3)[..1000]);
    assert_eq!((early.file, late.file), (1, 1));
    assert_eq!(names(&*bucket, "db/data").len(), 2);
    assert!(store.place(late, 5).0.ends_with("-00001"), "{:?}", store.place(late, 5));
    let again = reopened(bucket, 2, &[(early, 1), (late, 1)]);
    check(&again, late, 2000, 2);
    check(&again, early, 3000, 3);
    refused(again.write(early, &[1]), Kind::Invalid);
}

#[test]
fn reads_ask_for_what_they_need() {
    let inner = memory(&env().1);
    let store = open(inner.clone(), 1).expect("opens");
    let ids: Vec<ExtentId> = (0..12).map(|i| put(&store, 100_000, i).expect("put")).collect();
    store.sync().expect("synced");
    let bucket = FaultyBucket::new(inner);
    let live: Vec<(ExtentId, u32)> = ids.iter().map(|id| (*id, 1)).collect();
    let store = reopened(Arc::new(bucket.clone()), 2, &live);
    let calls = |body: &mut dyn FnMut()| {
        let before = bucket.calls();
        body();
        bucket.calls() - before
    };
    let mut some = [0; 1000];
    assert_eq!(
        calls(&mut || store.read(ids[0], 500, &mut some).expect("read")),
        2,
        "the table, and the range"
    );
    assert_eq!(some, pattern(100_000, 0)[500..1500]);
    assert_eq!(calls(&mut || store.read(ids[1], 500, &mut some).expect("read")), 1, "the table is known");
    // The last two extents are in another object, whose table is read first.
    let mut buffers = vec![[0; 700]; 12];
    let batch = calls(&mut || {
        let requests = ids.iter().zip(&mut buffers).enumerate();
        let mut reads: Vec<ReadRequest<'_>> =
            requests.map(|(i, (id, buffer))| ReadRequest::new(*id, i as u32 * 10, buffer)).collect();
        store.read_batch(&mut reads);
        assert!(reads.iter().all(|read| read.result.is_ok()));
    });
    assert_eq!(batch, 3, "one table, and one call for each object");
    for (i, buffer) in buffers.iter().enumerate() {
        assert_eq!(buffer[..], pattern(100_000, i as u64)[i * 10..i * 10 + 700]);
    }
    let begun = calls(&mut || {
        let pending = store.begin_read(ids[3], 9, 2000, vec![0xee; 5000]).expect("begins");
        let read = pending.finish().expect("read");
        assert_eq!(read[..], pattern(100_000, 3)[9..2009]);
        assert_eq!(read.into_memory().len(), 5000, "the buffer comes back");
    });
    assert_eq!(begun, 1);
    // What was hinted is read once.
    assert_eq!(calls(&mut || store.prefetch(ids[4], 1000, 50_000)), 1);
    assert_eq!(calls(&mut || store.prefetch(ids[4], 2000, 500)), 0);
    let hinted = calls(&mut || {
        for offset in [1000, 20_000, 50_000] {
            store.read(ids[4], offset, &mut some).expect("read");
            assert_eq!(some, pattern(100_000, 4)[offset as usize..offset as usize + 1000]);
        }
    });
    assert_eq!(hinted, 0);
    assert_eq!(
        calls(&mut || store.read(ids[4], 51_000 - 999, &mut some).expect("read")),
        1,
        "one byte beyond"
    );
}

#[test]
fn hints_that_fail_harm_no_read() {
    let bucket = FaultyBucket::new(memory(&env().1));
    let store = open(Arc::new(bucket.clone()), 1).expect("opens");
    let id = put(&store, 100_000, 1).expect("put");
    store.sync().expect("synced");
    bucket.set_down(true);
    store.prefetch(id, 0, 100_000);
    refused(store.read(id, 0, &mut [0; 10]), Kind::Io);
    bucket.set_down(false);
    check(&store, id, 100_000, 1);
    // Twenty hints of a mebibyte each: the oldest are let go.
    let big: Vec<ExtentId> = (0..20).map(|i| put(&store, 1 << 20, i).expect("put")).collect();
    store.sync().expect("synced");
    big.iter().for_each(|id| store.prefetch(*id, 0, u32::MAX));
    for (i, id) in big.iter().enumerate() {
        check(&store, *id, 1 << 20, i as u64);
    }
}

#[test]
fn the_stage_is_bounded() {
    let bucket = memory(&env().1);
    let settings = BucketStoreSettings { stage_bytes: 2 << 20, ..small() };
    let store = BucketStore::open(bucket.clone(), "db", 1, settings, env().0).expect("opens");
    let ids: Vec<ExtentId> = (0..40).map(|i| put(&store, 500_000, i).expect("put")).collect();
    let uploaded: u64 = bucket.list("db/data", None).expect("lists").iter().map(|object| object.bytes).sum();
    assert!(40 * 500_000 - uploaded <= 2 << 20, "{uploaded} bytes were uploaded to make room");
    for (i, id) in ids.iter().enumerate() {
        check(&store, *id, 500_000, i as u64);
    }
    store.sync().expect("synced");
    // Reserved extents alone make room for nothing.
    let reserved: Vec<ExtentId> = (0..2).map(|_| store.allocate_for(1, 1 << 20).expect("reserved")).collect();
    let message = refused(store.allocate_for(1, 1), Kind::Full);
    assert!(message.contains("stage_bytes"), "{message}");
    store.free(reserved[0], 1).expect("freed");
    put(&store, 1 << 20, 5).expect("there is room again");
    // An extent that is longer than the stage goes alone.
    store.free(reserved[1], 1).expect("freed");
    store.sync().expect("synced");
    let long = put(&store, 5 << 20, 6).expect("put");
    store.sync().expect("synced");
    check(&store, long, 5 << 20, 6);
}

#[test]
fn freed_extents_are_dead_unless_they_are_held() {
    let bucket = memory(&env().1);
    let store = open(bucket, 1).expect("opens");
    let slot = SLOT_BYTES as u64;
    let ids: Vec<ExtentId> = (0..3).map(|i| put(&store, 1000, i).expect("put")).collect();
    store.free(ids[0], 1).expect("freed");
    assert_eq!(
        store.usage(),
        StoreUsage { file_bytes: 2 * slot, live_bytes: 2 * slot, files: 1, ..Default::default() }
    );
    store.sync().expect("synced");
    store.hold();
    store.free(ids[1], 1).expect("freed");
    refused(store.free(ids[1], 1), Kind::Invalid);
    check(&store, ids[1], 1000, 1);
    assert_eq!(store.usage().live_bytes, 2 * slot);
    store.hold();
    store.release();
    check(&store, ids[1], 1000, 1);
    store.release();
    refused(store.read(ids[1], 0, &mut [0; 10]), Kind::Corrupt);
    let dead = StoreUsage {
        file_bytes: 2 * slot,
        live_bytes: slot,
        sealed_bytes: slot,
        files: 1,
        ..Default::default()
    };
    assert_eq!(store.usage(), dead);
    assert_eq!(store.reclaim().expect("reclaims"), 0);
}

#[test]
fn impossible_settings_are_refused_by_name() {
    let open = |settings, prefix: &str| BucketStore::open(memory(&env().1), prefix, 1, settings, env().0);
    for object_bytes in [0, (1 << 20) - 1, (1 << 30) + 1] {
        let message = refused(open(BucketStoreSettings { object_bytes, ..small() }, "db"), Kind::Invalid);
        assert!(message.contains("object_bytes"), "{message}");
    }
    let stage_bytes = (2 << 20) - 1;
    let message = refused(open(BucketStoreSettings { stage_bytes, ..small() }, "db"), Kind::Invalid);
    assert!(message.contains("stage_bytes"), "{message}");
    refused(open(small(), "d b"), Kind::Invalid);
    refused(open(small(), ""), Kind::Invalid);
}

#[test]
fn no_read_goes_beyond_its_extent() {
    let store = open(memory(&env().1), 1).expect("opens");
    let (first, second) = (put(&store, 1000, 1).expect("put"), put(&store, 1000, 2).expect("put"));
    for _ in 0..2 {
        // In the stage, then in an object, where the next extent follows at once.
        for (offset, len) in [(0, 1001), (999, 2), (1000, 1), (u32::MAX, 1)] {
            let mut bytes = vec![0; len];
            let message = refused(store.read(first, offset, &mut bytes), Kind::Corrupt);
            assert!(message.contains("which has 1000"), "{message}");
            let begun = store.begin_read(first, offset, len, Vec::new()).and_then(|begun| begun.finish());
            refused(begun, Kind::Corrupt);
        }
        store.prefetch(first, 900, 500);
        check(&store, first, 1000, 1);
        check(&store, second, 1000, 2);
        store.sync().expect("synced");
    }
}
