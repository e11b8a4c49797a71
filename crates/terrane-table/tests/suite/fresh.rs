//! Filters and index blocks of new extents: in the cache from the bytes of the writer, within their share.
#![cfg(not(feature = "shuttle"))]

use crate::support;

use std::sync::Arc;

use support::Row;
use support::store::{TestStore, write_extent};
use terrane_base::SeqNo;
use terrane_table::{Cache, CacheUsage, Extent, ExtentWriter, FreshExtents, ObjectKind, WriterSettings};

/// Rows of one extent; `number` makes their keys others.
fn rows(number: u64) -> Vec<Row> {
    so_many_rows(2_000, number)
}

fn so_many_rows(count: u64, number: u64) -> Vec<Row> {
    let row = |i: u64| Row::put(format!("key{number:04}{i:06}").as_bytes(), i + 1, &i.to_le_bytes());
    (0..count).map(row).collect()
}

/// Chunks that take the parts of these extents, and chunks for which they are too large.
const CHUNK_BYTES: usize = 256 << 10;
const SMALL_CHUNK_BYTES: usize = 16 << 10;

/// A cache of that many chunks, in an arena.
fn in_chunks(chunks: usize, chunk_bytes: usize) -> Arc<Cache> {
    let bytes = (chunks * chunk_bytes) as u64;
    Cache::with_memory(bytes, bytes, Some(chunk_bytes))
}

fn settings() -> WriterSettings {
    WriterSettings { block_bytes: 1 << 10, ..WriterSettings::default() }
}

/// Writes an extent, and keeps it.
fn keep(fresh: &FreshExtents, store: &TestStore, rows: &[Row], is_last: bool) {
    keep_with(settings(), fresh, store, rows, is_last);
}

fn keep_with(settings: WriterSettings, fresh: &FreshExtents, store: &TestStore, rows: &[Row], is_last: bool) {
    let mut writer = ExtentWriter::new(settings).unwrap();
    rows.iter().for_each(|row| writer.add(row.entry()).unwrap());
    writer.finish_showing(store, |meta, bytes| fresh.keep(meta, bytes, is_last)).unwrap();
}

fn read(extent: &Extent, cache: &Arc<Cache>, row: &Row) {
    let mut value = Vec::new();
    let found = extent.get(cache, &row.key, SeqNo::MAX, &mut value).unwrap();
    assert_eq!((found, value.as_slice()), (Some(row.seq_kind), row.value.as_slice()));
}

fn bytes_of(usage: &CacheUsage, kind: ObjectKind) -> u64 {
    usage.kinds[kind as usize].bytes
}

#[test]
fn the_first_reads_load_data_blocks_only() {
    let (store, cache) = (TestStore::new(), Cache::new(8 << 20));
    let fresh = FreshExtents::new(store.clone(), cache.clone());
    let rows = rows(0);
    keep(&fresh, &store, &rows, true);
    assert_eq!(store.reads(), 0, "what the writer has is not read back");
    let kept = fresh.take();
    let [extent] = kept.as_slice() else { panic!("one extent was kept: {kept:?}") };
    assert!(fresh.take().is_empty(), "a handle is given out once");
    for row in &rows {
        read(extent, &cache, row);
    }
    assert_eq!(store.reads(), u64::from(extent.meta.blocks));
    let absent = extent.get(&cache, b"key00000000x0", SeqNo::MAX, &mut Vec::new()).unwrap();
    assert_eq!((absent, store.reads()), (None, u64::from(extent.meta.blocks)));
    let usage = cache.usage();
    let misses = |kind: ObjectKind| usage.kinds[kind as usize].misses;
    assert_eq!((misses(ObjectKind::Filter), misses(ObjectKind::Index)), (0, 0));
}

#[test]
fn extents_that_are_dropped_unread_give_their_memory_back() {
    let (store, cache) = (TestStore::new(), Cache::new(8 << 20));
    let fresh = FreshExtents::new(store.clone(), cache.clone());
    keep(&fresh, &store, &rows(0), true);
    keep(&fresh, &store, &rows(1), false);
    assert!(cache.used_bytes() > 0 && cache.holds(ObjectKind::Filter) > 0);
    drop(fresh);
    // Other tests of this program may hold an epoch for a while.
    while cache.used_bytes() > 0 {
        cache.shrink();
    }
    assert_eq!(store.frees.load(std::sync::atomic::Ordering::Relaxed), 0, "slots are those of the job");
}

/// The cache behind extents that would take many times the cache, all of the last level or none.
fn flooded(cache: &Arc<Cache>, is_last: bool) -> CacheUsage {
    let store = TestStore::new();
    let fresh = FreshExtents::new(store.clone(), cache.clone());
    let extents = (cache.limit_bytes() >> 11).max(60);
    for number in 0..extents {
        keep(&fresh, &store, &rows(number), is_last);
        assert!(cache.used_bytes() <= cache.limit_bytes(), "{} bytes", cache.used_bytes());
    }
    let usage = cache.usage();
    let [filters, indexes] = [ObjectKind::Filter, ObjectKind::Index].map(|kind| bytes_of(&usage, kind));
    let limit = usage.limit_bytes;
    assert!(filters + indexes <= limit / 8 * 6, "data blocks have a quarter: {filters}, {indexes}");
    assert!(indexes <= limit / 8 * if is_last { 4 } else { 5 }, "{indexes} bytes of index blocks");
    usage
}

fn evictions(usage: &CacheUsage, kind: ObjectKind) -> u64 {
    usage.kinds[kind as usize].evictions
}

#[test]
fn filters_and_index_blocks_have_a_share_and_filters_go_first() {
    let [last, other] = [true, false].map(|is_last| flooded(&Cache::new(64 << 10), is_last));
    let of = |usage, kind| bytes_of(usage, kind);
    assert!(
        of(&last, ObjectKind::Index) < of(&other, ObjectKind::Index),
        "index blocks of the last level stay out before others: {last:?} {other:?}"
    );
    assert!(
        of(&last, ObjectKind::Filter) > of(&other, ObjectKind::Filter),
        "filters have their place: {last:?} {other:?}"
    );
    assert_eq!(evictions(&last, ObjectKind::Filter), 0, "what stays out displaces nothing");
}

#[test]
fn parts_in_an_arena_do_not_displace_each_other() {
    for (chunks, chunk_bytes) in [(5, CHUNK_BYTES), (20, SMALL_CHUNK_BYTES)] {
        for is_last in [true, false] {
            let usage = flooded(&in_chunks(chunks, chunk_bytes), is_last);
            for kind in [ObjectKind::Filter, ObjectKind::Index] {
                let (bytes, evicted) = (bytes_of(&usage, kind), evictions(&usage, kind));
                assert!(bytes > 0 && evicted == 0, "chunks of {chunk_bytes} bytes, {kind:?}: {usage:?}");
            }
        }
    }
}

/// Only index blocks go into the gaps that index blocks leave, so the gaps are part of what they have.
#[test]
fn gaps_between_index_blocks_count_in_their_share() {
    let chunk_bytes = 32 << 10;
    let (store, cache) = (TestStore::new(), in_chunks(10, chunk_bytes));
    let fresh = FreshExtents::new(store.clone(), cache.clone());
    let settings = WriterSettings { filter_bits_per_key: 0, ..settings() };
    let keep_rows = |count| {
        for number in 0..100 {
            keep_with(settings, &fresh, &store, &so_many_rows(count, number), false);
        }
    };
    keep_rows(2_000);
    let all = cache.holds(ObjectKind::Index);
    let mut odd = false;
    let mut kept = fresh.take();
    kept.retain(|_| {
        odd = !odd;
        odd
    });
    while cache.usage().retired_bytes > 0 {
        cache.shrink();
    }
    let half = cache.holds(ObjectKind::Index);
    assert!(half > 0 && half <= all / 2 + all / 8, "{half} bytes of {all} are left");
    // Too long for the gap of one of the others.
    keep_rows(2_600);
    let most = cache.limit_bytes() / 8 * 5 + chunk_bytes as u64;
    assert!(cache.used_bytes() <= most, "more than {most} bytes: {:?}", cache.usage());
}

/// Writers lend the cache memory for a while: parts that came in then would be evicted by their threads.
#[test]
fn the_share_is_one_of_the_limit_that_lasts() {
    let (lasting, lent) = (64 << 10, 256 << 10);
    let cache = Cache::with_memory(lent, lasting, None);
    cache.set_limit(lent);
    let parts = |usage: &CacheUsage| bytes_of(usage, ObjectKind::Filter) + bytes_of(usage, ObjectKind::Index);
    let usage = flooded(&cache, true);
    assert!(parts(&usage) > 0 && parts(&usage) <= lasting / 8 * 6, "{usage:?}");
    cache.set_lasting_limit(lent);
    let usage = flooded(&cache, true);
    assert!(parts(&usage) > lasting, "{usage:?}");
}

/// Fills a cache with blocks that were read, and then writes more parts than it holds; returns its contents
/// before and after.
fn flooded_behind_reads(cache: &Arc<Cache>) -> [CacheUsage; 2] {
    let store = TestStore::new();
    let others: Vec<_> = (0..cache.limit_bytes() >> 15).map(|number| rows(9_000 + number)).collect();
    let extents: Vec<_> = others.iter().map(|rows| write_extent(rows, settings(), &store)).collect();
    for (extent, rows) in extents.iter().zip(&others) {
        rows.iter().for_each(|row| read(extent, cache, row));
    }
    let before = cache.usage();
    assert!(evictions(&before, ObjectKind::Data) > 0, "the cache is full: {before:?}");
    flooded(cache, true);
    let after = cache.usage();
    let blocks = bytes_of(&after, ObjectKind::Data);
    assert!(blocks >= cache.limit_bytes() / 4, "{blocks} bytes of data blocks stay");
    [before, after]
}

#[test]
fn parts_that_no_read_has_asked_for_leave_room_for_blocks() {
    flooded_behind_reads(&Cache::new(64 << 10));
    flooded_behind_reads(&in_chunks(5, CHUNK_BYTES));
}

/// They would need whole chunks of it.
#[test]
fn parts_too_large_for_an_arena_evict_nothing() {
    let usages = flooded_behind_reads(&in_chunks(20, SMALL_CHUNK_BYTES));
    let [before, after] = usages.map(|usage| evictions(&usage, ObjectKind::Data));
    assert_eq!(before, after, "data blocks that were evicted");
}
