//! The cache's promises: its limit, by its own count and on the heap; what stays and what goes; what leaves
//! with an extent.
#![expect(unsafe_code, reason = "counts what the allocator gives out")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::alone;
use crate::support::Row;
use crate::support::store::{TestStore, write_extent, write_extents};
use terrane_base::{Cursor, Rng, SeqNo};
use terrane_table::cache::ObjectKind;
use terrane_table::extent::free_failures;
use terrane_table::{Cache, CursorOptions, Extent, ExtentCursor, WriterSettings};

struct Counting;

static HEAP_BYTES: AtomicUsize = AtomicUsize::new(0);
static HEAP_PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: passes everything on to the system's allocator and only counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = HEAP_BYTES.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        HEAP_PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HEAP_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn rows(count: u64) -> Vec<Row> {
    (0..count)
        .map(|i| Row::put(format!("key{i:08}").as_bytes(), i + 1, &i.to_le_bytes().repeat(12)))
        .collect()
}

fn read(extent: &Extent, cache: &Arc<Cache>, row: &Row) {
    let mut value = Vec::new();
    let found = extent.get(cache, &row.key, SeqNo::MAX, &mut value).unwrap();
    assert_eq!(found, Some(row.seq_kind));
    assert_eq!(value, row.value);
}

/// Bytes of what readers hold in hand for a moment, and of what they need besides: the threads of the test,
/// and garbage of epochs, of which there is more where the machine suspends readers. All extents have 4 MB.
const HAND_BYTES: usize = 512 << 10;

/// Data many times the cache, read by threads at random: every read is right, and neither its own count nor
/// the heap passes the limit at any time.
#[test]
fn the_limit_holds_under_threads() {
    let _alone = alone();
    let store = TestStore::new();
    let rows = rows(60_000);
    let extents = write_extents(&rows, WriterSettings::default(), 200 << 10, &store);
    assert!(extents.len() > 20);
    for limit in [0, 20 << 10, 300 << 10, 2 << 20] {
        let extents: Vec<_> = extents.iter().map(|e| Extent::new(e.meta.clone(), store.clone())).collect();
        let cache = Cache::new(limit);
        let heap_before = HEAP_BYTES.load(Ordering::Relaxed);
        HEAP_PEAK.store(heap_before, Ordering::Relaxed);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..4)
                .map(|thread| {
                    let (rows, extents, cache) = (&rows, &extents, &cache);
                    scope.spawn(move || random_reads(&mut Rng::new(thread), rows, extents, cache))
                })
                .collect();
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let usage = cache.usage();
                    assert!(usage.used_bytes <= limit, "{usage:?}");
                    std::thread::yield_now();
                }
            });
            let ended: Vec<_> = readers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
            done.store(true, Ordering::Relaxed);
            assert!(ended.iter().all(Result::is_ok), "a reader panicked");
        });
        let peak = HEAP_PEAK.load(Ordering::Relaxed) - heap_before;
        assert!(peak <= limit as usize + HAND_BYTES, "the heap grew by {peak} bytes with a limit of {limit}");
        let usage = cache.usage();
        let misses: u64 = usage.kinds.iter().map(|kind| kind.misses).sum();
        let bypasses: u64 = usage.kinds.iter().map(|kind| kind.bypasses).sum();
        assert!(misses > 0);
        println!("limit {limit}: {misses} misses, {bypasses} bypasses, heap grew by {peak} bytes at most");
        // How many found no room depends on how often a reader is suspended inside its epoch; the next test
        // counts them without other threads.
        assert!(if limit == 0 { bypasses == misses } else { bypasses < misses });
        drop(extents);
        settle(&cache);
        assert_eq!(cache.usage().used_bytes, 0, "everything left with its extent: {:?}", cache.usage());
    }
}

fn random_reads(rng: &mut Rng, rows: &[Row], extents: &[Arc<Extent>], cache: &Arc<Cache>) {
    for _ in 0..4000 {
        let row = &rows[rng.index(rows.len())];
        let at = extents.partition_point(|extent| extent.meta.largest < row.key);
        read(&extents[at], cache, row);
        if rng.index(100) == 0 {
            scan(&extents[at], cache, rng.index(500));
        }
    }
}

/// Without windows read ahead: what those hold is up to the cursor's maker, not to the cache.
fn scan(extent: &Arc<Extent>, cache: &Arc<Cache>, count: usize) {
    let options = CursorOptions { read_ahead_bytes: 0, ..CursorOptions::default() };
    let mut cursor = ExtentCursor::new(extent.clone(), cache.clone(), options);
    cursor.seek_first().unwrap();
    for _ in 0..count {
        let Some(entry) = cursor.entry() else { break };
        assert_eq!(entry.value.len(), 96);
        cursor.next().unwrap();
    }
}

/// Waits until what was retired is free: other tests' threads have left their epochs by then.
fn settle(cache: &Cache) {
    for _ in 0..1000 {
        if cache.usage().retired_bytes == 0 {
            break;
        }
        cache.clear();
        std::thread::yield_now();
    }
}

#[test]
fn one_extent_larger_than_the_cache_is_read_whole() {
    let _alone = alone();
    let store = TestStore::new();
    let rows = rows(15_000);
    let extent = write_extent(&rows, WriterSettings::default(), &store);
    assert!(extent.meta.bytes > 1 << 20);
    let cache = Cache::new(128 << 10);
    for row in rows.iter().chain(rows.iter().rev()) {
        read(&extent, &cache, row);
    }
    let cached = extent.cached_blocks();
    assert!(cached > 0 && cached <= 8, "{cached} blocks in 128 KiB");
    let data = cache.usage().kinds[ObjectKind::Data as usize];
    assert!(data.misses >= u64::from(extent.meta.blocks));
    assert_eq!(data.bypasses, 0, "a lone reader always finds room: {data:?}");
}

/// Cursors hold what they stand in: the cache cannot take it from them, and does not count it as free either.
#[test]
fn held_blocks_count_and_reads_go_on_past_a_full_cache() {
    let _alone = alone();
    let store = TestStore::new();
    let rows = rows(15_000);
    let extent = write_extent(&rows, WriterSettings::default(), &store);
    let cache = Cache::new(200 << 10);
    let mut cursors = Vec::new();
    for row in rows.iter().step_by(300) {
        let mut cursor = ExtentCursor::new(extent.clone(), cache.clone(), CursorOptions::default());
        cursor.seek(&row.key, SeqNo::MAX).unwrap();
        cursors.push(cursor);
        assert!(cache.usage().used_bytes <= 200 << 10);
    }
    assert!(cursors.len() as u64 * (16 << 10) > 2 * (200 << 10), "they hold far more than the limit");
    let usage = cache.usage();
    assert!(usage.kinds[ObjectKind::Data as usize].bypasses > 0);
    for (cursor, row) in cursors.iter().zip(rows.iter().step_by(300)) {
        assert_eq!(cursor.entry().unwrap(), row.entry());
    }
    drop(cursors);
    settle(&cache);
    for row in &rows {
        read(&extent, &cache, row);
    }
    assert!(extent.cached_blocks() > 5, "the cache fills again");
}

#[test]
fn resize_evicts_at_once() {
    let _alone = alone();
    let store = TestStore::new();
    let rows = rows(15_000);
    let extent = write_extent(&rows, WriterSettings::default(), &store);
    let cache = Cache::new(64 << 20);
    rows.iter().for_each(|row| read(&extent, &cache, row));
    assert_eq!(extent.cached_blocks(), extent.meta.blocks as usize);
    cache.resize(256 << 10);
    settle_to(&cache, 256 << 10);
    assert!(extent.cached_blocks() > 0, "what fits stays");
    cache.resize(0);
    settle_to(&cache, 0);
    assert_eq!(extent.cached_blocks(), 0);
    cache.resize(64 << 20);
    rows.iter().for_each(|row| read(&extent, &cache, row));
    assert_eq!(extent.cached_blocks(), extent.meta.blocks as usize);
}

/// As [`settle`], without evicting more.
fn settle_to(cache: &Cache, limit: u64) {
    for _ in 0..1000 {
        terrane_table::swip::enter().collect();
        if cache.usage().used_bytes <= limit {
            return;
        }
        std::thread::yield_now();
    }
    panic!("still more than {limit} bytes: {:?}", cache.usage());
}

/// A scan over much data must not wash out blocks that are read again and again.
#[test]
fn the_hot_set_survives_a_scan() {
    let _alone = alone();
    let store = TestStore::new();
    let rows = rows(60_000);
    let extents = write_extents(&rows, WriterSettings::default(), 1 << 20, &store);
    let cache = Cache::new(1 << 20);
    let hot = write_extent(&rows[..2000], WriterSettings::default(), &store);
    for _ in 0..3 {
        rows[..2000].iter().for_each(|row| read(&hot, &cache, row));
    }
    assert_eq!(hot.cached_blocks(), hot.meta.blocks as usize);
    for (round, extent) in extents.iter().enumerate() {
        scan(extent, &cache, usize::MAX);
        // The hot set stays in use while the scan goes on.
        let reads = store.reads();
        rows[..2000].iter().step_by(10).for_each(|row| read(&hot, &cache, row));
        let misses = store.reads() - reads;
        assert!(misses <= 2, "round {round}: {misses} misses of {} hot blocks", hot.meta.blocks);
    }
}

/// When other blocks are used than before, they stay from their first use on, once the cache has seen that
/// evicted blocks come back.
#[test]
fn a_new_hot_set_replaces_the_old_one() {
    let _alone = alone();
    let store = TestStore::new();
    let rows = rows(3400);
    let cache = Cache::new(1 << 20);
    // Of the second use, set by set.
    let mut misses = Vec::new();
    let extents: Vec<_> = (0..8).map(|_| write_extent(&rows, WriterSettings::default(), &store)).collect();
    for extent in &extents {
        // One row of a block.
        let read_all = || rows.iter().step_by(150).for_each(|row| read(extent, &cache, row));
        read_all();
        let reads = store.reads();
        read_all();
        misses.push(store.reads() - reads);
        (0..2).for_each(|_| read_all());
        let reads = store.reads();
        read_all();
        assert_eq!(store.reads(), reads, "a block that is used again and again stays");
    }
    assert!(
        misses.iter().max() > Some(&5),
        "at first what was used once has a tenth of the cache: {misses:?}"
    );
    assert!(misses[7] <= 5, "at last the second use finds what the first one read: {misses:?}");
}

#[test]
fn an_obsolete_extent_gives_back_its_memory_and_its_slots() {
    let _alone = alone();
    let store = TestStore::new();
    let rows = rows(5000);
    let cache = Cache::new(64 << 20);
    let kept = write_extent(&rows, WriterSettings::default(), &store);
    let extent = write_extent(&rows, WriterSettings::default(), &store);
    rows.iter().for_each(|row| read(&extent, &cache, row));
    rows.iter().take(10).for_each(|row| read(&kept, &cache, row));
    let mut cursor = ExtentCursor::new(extent.clone(), cache.clone(), CursorOptions::default());
    cursor.seek(b"key00002500", SeqNo::MAX).unwrap();

    extent.mark_obsolete();
    drop(extent);
    assert_eq!(store.frees.load(Ordering::Relaxed), 0, "the cursor still reads it");
    while cursor.entry().is_some() {
        cursor.next().unwrap();
    }
    let before = cache.usage().used_bytes;
    drop(cursor);
    assert_eq!(store.frees.load(Ordering::Relaxed), 1);
    for _ in 0..1000 {
        terrane_table::swip::enter().collect();
        std::thread::yield_now();
        if cache.usage().retired_bytes == 0 {
            break;
        }
    }
    let after = cache.usage().used_bytes;
    assert!(after < before / 4, "from {before} to {after} bytes");
    assert_eq!(kept.cached_blocks(), 1, "others stay");

    let id = kept.meta.id;
    drop(kept);
    assert_eq!(store.frees.load(Ordering::Relaxed), 1, "an extent that is not obsolete keeps its slots");
    assert!(!store.bytes(id).is_empty());

    let failures = free_failures();
    let twice = write_extent(&rows, WriterSettings::default(), &store);
    let again = Extent::new(twice.meta.clone(), store.clone());
    twice.mark_obsolete();
    again.mark_obsolete();
    drop((twice, again));
    assert_eq!(free_failures(), failures + 1, "a refusal of the store is counted");
}
