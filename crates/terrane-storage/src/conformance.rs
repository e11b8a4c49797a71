//! The checks that every [`Store`] must pass.
//!
//! ```no_run
//! # use std::{path::Path, sync::Arc};
//! # use terrane_device::{Disk, MemDisk};
//! # use terrane_storage::{LocalStore, Store, StoreSettings, conformance};
//! conformance::run(|| {
//!     let disk = Arc::new(MemDisk::new());
//!     move || -> Arc<dyn Store> {
//!         Arc::new(LocalStore::open(disk.clone(), Path::new(""), StoreSettings::default()).expect("opens"))
//!     }
//! });
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use terrane_base::{ExtentId, Kind, Result};

use crate::store::{EXTENT_SLOTS_MAX, ReadRequest, SLOT_BYTES, Store, StoreUsage};

/// Runs every check, for a store that writes in place. `make` creates an empty location and returns a
/// function that opens the store there: once, and again after the store was dropped.
///
/// # Panics
/// If the store breaks a promise.
pub fn run<O: Fn() -> Arc<dyn Store>>(make: impl Fn() -> O) {
    keeps_the_contract(&make);
    reuses_space(&make);
}

/// Runs the checks that every store passes, also one whose objects are never overwritten.
///
/// # Panics
/// If the store breaks a promise.
pub fn keeps_the_contract<O: Fn() -> Arc<dyn Store>>(make: impl Fn() -> O) {
    bytes_come_back(&*make()());
    batches_read_what_single_reads_read(&*make()());
    wrong_requests_are_refused(&*make()());
    usage_adds_up(&*make()());
    threads_do_not_meet(&*make()());
    synced_extents_survive(&make());
    wrong_extents_are_refused(&make());
}

/// Runs the checks of a store that writes in place: freed space is used again, or given back to the device.
///
/// # Panics
/// If the store breaks a promise.
pub fn reuses_space<O: Fn() -> Arc<dyn Store>>(make: impl Fn() -> O) {
    freed_space_is_used_again(&*make()());
    free_space_goes_back(&*make()());
    unrestored_space_is_free(&make());
}

fn pattern(len: usize, salt: u64) -> Vec<u8> {
    let step = salt.wrapping_mul(2).wrapping_add(0x9e37_79b9_7f4a_7c15);
    (0..len as u64).map(|i| ((i + 1).wrapping_mul(step) >> 56) as u8).collect()
}

#[track_caller]
fn ok<T>(result: Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn refused<T>(result: Result<T>, kind: Kind) {
    match result {
        Ok(_) => panic!("an error of kind {} was due", kind.as_str()),
        Err(error) => assert_eq!(error.kind(), kind, "{error}"),
    }
}

#[track_caller]
fn check(store: &dyn Store, id: ExtentId, expected: &[u8]) {
    let mut buf = vec![0; expected.len()];
    ok(store.read(id, 0, &mut buf));
    assert!(buf == expected, "the bytes of extent {id}");
}

fn bytes_come_back(store: &dyn Store) {
    let lens = [1, 100, 4096, 70_000, SLOT_BYTES - 1, SLOT_BYTES, SLOT_BYTES + 1, 3 * SLOT_BYTES + 77];
    let mut extents = Vec::new();
    for (salt, len) in lens.into_iter().enumerate() {
        let slots = len.div_ceil(SLOT_BYTES) as u32;
        let bytes = pattern(len, salt as u64);
        let id = ok(store.allocate(slots));
        ok(store.write(id, &bytes));
        check(store, id, &bytes);
        extents.push((id, bytes));
    }
    ok(store.sync());
    for (id, bytes) in &extents {
        check(store, *id, bytes);
        for (offset, len) in [(0, 1), (bytes.len() / 2, bytes.len() - bytes.len() / 2), (bytes.len() - 1, 1)]
        {
            let mut buf = vec![0; len];
            store.prefetch(*id, offset as u32, len as u32);
            ok(store.read(*id, offset as u32, &mut buf));
            assert!(buf == bytes[offset..offset + len], "{len} bytes from {offset} of extent {id}");
        }
    }
    // Writing again before other threads read it is allowed: a job may start over.
    let (id, bytes) = &extents[3];
    let again = pattern(bytes.len(), 99);
    ok(store.write(*id, &again));
    check(store, *id, &again);
    let ((path, start), (_, further)) = (store.place(*id, 0), store.place(*id, 77));
    assert!(!path.is_empty() && further == start + 77);
}

fn batches_read_what_single_reads_read(store: &dyn Store) {
    let extents: Vec<(ExtentId, Vec<u8>)> = (0..5)
        .map(|salt| {
            let (id, bytes) = (ok(store.allocate(2)), pattern(SLOT_BYTES + 70_000, salt));
            ok(store.write(id, &bytes));
            (id, bytes)
        })
        .collect();
    let nowhere = ExtentId { file: 900, slot: 3 };
    let begin = |id, at: usize, len| store.begin_read(id, at as u32, len, vec![0xee; 50_000]);
    let pending: Vec<_> = extents.iter().map(|(id, _)| ok(begin(*id, 12_345, 1 << 20))).collect();
    for (pending, (_, bytes)) in pending.into_iter().zip(&extents) {
        assert!(ok(pending.finish())[..] == bytes[12_345..12_345 + (1 << 20)]);
    }
    refused(begin(nowhere, 0, 10).and_then(|pending| pending.finish()), Kind::Corrupt);
    for count in [0, 1, 2, 64, 150] {
        let place = |i: usize| (i % extents.len(), (i * 104_729) % SLOT_BYTES, 1 + (i * 7919) % 40_000);
        let mut bufs: Vec<Vec<u8>> = (0..count).map(|i| vec![0; place(i).2]).collect();
        let mut reads: Vec<ReadRequest<'_>> = bufs
            .iter_mut()
            .enumerate()
            .map(|(i, buf)| {
                // Every ninth read names an extent that does not exist: the others still succeed.
                let id = if i % 9 == 8 { nowhere } else { extents[place(i).0].0 };
                ReadRequest::new(id, place(i).1 as u32, buf)
            })
            .collect();
        store.read_batch(&mut reads);
        for (i, read) in reads.into_iter().enumerate() {
            if i % 9 == 8 {
                refused(read.result, Kind::Corrupt);
                continue;
            }
            ok(read.result);
            let (extent, at, len) = place(i);
            assert!(*read.buf == extents[extent].1[at..at + len], "read {i} of {count}");
        }
    }
}

fn wrong_requests_are_refused(store: &dyn Store) {
    refused(store.allocate(0), Kind::Invalid);
    refused(store.allocate(EXTENT_SLOTS_MAX + 1), Kind::Invalid);
    let nowhere = ExtentId { file: 900, slot: 3 };
    refused(store.read(nowhere, 0, &mut [0; 10]), Kind::Corrupt);
    refused(store.read(ExtentId { file: u32::MAX, slot: u32::MAX }, u32::MAX, &mut [0; 10]), Kind::Corrupt);
    refused(store.write(nowhere, &[1]), Kind::Invalid);
    refused(store.free(nowhere, 1), Kind::Invalid);
    store.prefetch(nowhere, 0, 100);
    let id = ok(store.allocate(2));
    let usage = store.usage();
    for (slot, slots) in
        [(id.slot, 0), (id.slot, 3), (id.slot, u32::MAX), (u32::MAX, 1), (u32::MAX, u32::MAX)]
    {
        refused(store.free(ExtentId { slot, ..id }, slots), Kind::Invalid);
    }
    refused(store.write(id, &vec![0; 2 * SLOT_BYTES + 1]), Kind::Invalid);
    refused(store.read(ExtentId { slot: EXTENT_SLOTS_MAX, ..id }, 0, &mut [0; 10]), Kind::Corrupt);
    assert_eq!(store.usage(), usage, "a refused call changes nothing");
    ok(store.free(id, 2));
    refused(store.free(id, 2), Kind::Invalid);
    refused(store.restore(&mut std::iter::empty()), Kind::Invalid);
}

fn freed_space_is_used_again(store: &dyn Store) {
    let mut extents: Vec<ExtentId> = (0..40).map(|_| ok(store.allocate(1))).collect();
    let size = store.usage().file_bytes;
    for round in 0..20 {
        for _ in 0..20 {
            let id = extents.remove((round * 7) % extents.len());
            ok(store.free(id, 1));
        }
        extents.extend((0..20).map(|_| ok(store.allocate(1))));
    }
    assert_eq!(store.usage().file_bytes, size, "freed slots are used before files grow");
    let mut places: Vec<ExtentId> = extents.clone();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), extents.len());
}

fn free_space_goes_back(store: &dyn Store) {
    let extents: Vec<ExtentId> = (0..200).map(|_| ok(store.allocate(1))).collect();
    for &id in &extents {
        ok(store.write(id, &[7; 100]));
    }
    ok(store.sync());
    let kept = extents[extents.len() / 2];
    extents.iter().filter(|&&id| id != kept).for_each(|&id| ok(store.free(id, 1)));
    assert_eq!(store.usage().live_bytes, SLOT_BYTES as u64);
    let freed = ok(store.reclaim());
    let usage = store.usage();
    assert!(freed > 0 && usage.free_bytes <= 64 * SLOT_BYTES as u64, "{usage:?}");
    assert_eq!(ok(store.reclaim()), 0, "nothing is left to give back");
    ok(store.reclaim_all());
    let usage = store.usage();
    assert_eq!((usage.live_bytes, usage.free_bytes), (SLOT_BYTES as u64, 0), "all of it is given back");
    check(store, kept, &[7; 100]);
    let again: Vec<ExtentId> = (0..200).map(|_| ok(store.allocate(1))).collect();
    for (salt, &id) in again.iter().enumerate() {
        ok(store.write(id, &pattern(3000, salt as u64)));
    }
    ok(store.sync());
    check(store, kept, &[7; 100]);
    again.iter().enumerate().for_each(|(salt, &id)| check(store, id, &pattern(3000, salt as u64)));
}

fn usage_adds_up(store: &dyn Store) {
    assert_eq!(store.usage(), StoreUsage::default());
    let mut live = 0;
    let mut extents = Vec::new();
    for slots in [1, 5, 1, EXTENT_SLOTS_MAX, 2, 33] {
        extents.push((ok(store.allocate(slots)), slots));
        live += u64::from(slots) * SLOT_BYTES as u64;
        check_sum(store, live);
    }
    for (id, slots) in extents {
        ok(store.free(id, slots));
        live -= u64::from(slots) * SLOT_BYTES as u64;
        check_sum(store, live);
        ok(store.reclaim());
        check_sum(store, live);
    }
}

#[track_caller]
fn check_sum(store: &dyn Store, live: u64) {
    let usage = store.usage();
    assert_eq!(usage.live_bytes, live);
    let free = usage.free_bytes + usage.punched_bytes + usage.sealed_bytes;
    assert_eq!(usage.file_bytes, usage.live_bytes + free, "{usage:?}");
    assert!(live == 0 || usage.files > 0);
}

fn threads_do_not_meet(store: &dyn Store) {
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            scope.spawn(move || churn(store, thread));
        }
    });
    assert_eq!(store.usage().live_bytes, 0);
}

/// Allocates, writes, checks, syncs and frees, concurrently with other threads.
fn churn(store: &dyn Store, thread: u64) {
    let mut mine: BTreeMap<ExtentId, (u32, Vec<u8>)> = BTreeMap::new();
    for round in 0..120u64 {
        let slots = 1 + (round % 7 == 3) as u32 * 2;
        let bytes = pattern(2000, thread << 32 | round);
        let id = ok(store.allocate(slots));
        ok(store.write(id, &bytes));
        assert!(mine.insert(id, (slots, bytes)).is_none());
        if round % 16 == thread {
            ok(store.sync());
        }
        if round % 3 != 0
            && let Some(&id) = mine.keys().nth((round as usize * 5) % mine.len())
            && let Some((slots, bytes)) = mine.remove(&id)
        {
            check(store, id, &bytes);
            ok(store.free(id, slots));
        }
    }
    for (id, (slots, bytes)) in mine {
        check(store, id, &bytes);
        ok(store.free(id, slots));
    }
}

/// Stores five extents and opens the store again; returns two of them, which are to be restored.
fn five_extents(open: &dyn Fn() -> Arc<dyn Store>) -> (Arc<dyn Store>, [(ExtentId, u32); 2]) {
    let store = open();
    let extents: Vec<(ExtentId, u32)> = [1, 3, 1, 2, 1].iter().map(|&n| (ok(store.allocate(n)), n)).collect();
    for &(id, slots) in &extents {
        ok(store.write(id, &pattern(slots as usize * SLOT_BYTES, id.slot.into())));
    }
    ok(store.sync());
    drop(store);
    (open(), [extents[1], extents[4]])
}

fn synced_extents_survive(open: &dyn Fn() -> Arc<dyn Store>) {
    let (store, live) = five_extents(open);
    refused(store.allocate(1), Kind::Invalid);
    ok(store.restore(&mut live.into_iter()));
    refused(store.restore(&mut live.into_iter()), Kind::Invalid);
    assert_eq!(store.usage().live_bytes, 4 * SLOT_BYTES as u64);
    for (id, slots) in live {
        check(&*store, id, &pattern(slots as usize * SLOT_BYTES, id.slot.into()));
    }
    let again: Vec<ExtentId> = (0..4).map(|_| ok(store.allocate(1))).collect();
    let taken = |&id: &ExtentId| {
        live.iter().any(|&(l, n)| l.file == id.file && (l.slot..l.slot + n).contains(&id.slot))
    };
    assert!(!again.iter().any(taken));
}

fn unrestored_space_is_free(open: &dyn Fn() -> Arc<dyn Store>) {
    let (store, live) = five_extents(open);
    ok(store.restore(&mut live.into_iter()));
    let size = store.usage().file_bytes;
    for _ in 0..4 {
        ok(store.allocate(1));
    }
    assert_eq!(store.usage().file_bytes, size, "what was not restored is free");
}

fn wrong_extents_are_refused(open: &dyn Fn() -> Arc<dyn Store>) {
    let store = open();
    let id = ok(store.allocate(4));
    ok(store.write(id, &[1; 10]));
    ok(store.sync());
    drop(store);
    let store = open();
    let at = |slot| ExtentId { slot, ..id };
    let wrong: [&[(ExtentId, u32)]; 6] = [
        &[(at(0), 2), (at(1), 1)],
        &[(at(0), 1), (at(0), 1)],
        &[(at(0), 0)],
        &[(at(0), EXTENT_SLOTS_MAX + 1)],
        &[(at(u32::MAX), u32::MAX)],
        &[(ExtentId { file: id.file + 7, slot: 0 }, 1)],
    ];
    for live in wrong {
        let error = store.restore(&mut live.iter().copied()).expect_err("refused");
        assert!(error.kind() == Kind::Corrupt && error.place().is_some(), "{live:?}: {error}");
    }
    ok(store.restore(&mut [(id, 4)].into_iter()));
    check(&*store, id, &[1; 10]);
}
