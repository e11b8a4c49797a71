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
    let row = |i: u64| Row::put(format!("key{number:04}{i:06}").as_bytes(), i + 1, &i.to_le_bytes());
    (0..2_000).map(row).collect()
}

fn settings() -> WriterSettings {
    WriterSettings { block_bytes: 1 << 10, ..WriterSettings::default() }
}

/// Writes an extent, and keeps it.
fn keep(fresh: &FreshExtents, store: &TestStore, rows: &[Row], is_last: bool) {
    let mut writer = ExtentWriter::new(settings()).unwrap();
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
    for number in 0..60 {
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
    assert_eq!(last.kinds[ObjectKind::Filter as usize].evictions, 0, "what stays out displaces nothing");
}

#[test]
fn parts_that_no_read_has_asked_for_leave_room_for_blocks() {
    let (store, cache) = (TestStore::new(), Cache::new(64 << 10));
    let others: Vec<_> = [9_998, 9_999].map(rows).into();
    let extents: Vec<_> = others.iter().map(|rows| write_extent(rows, settings(), &store)).collect();
    let read_all = || {
        for (extent, rows) in extents.iter().zip(&others) {
            rows.iter().for_each(|row| read(extent, &cache, row));
        }
    };
    read_all();
    assert!(cache.usage().kinds[ObjectKind::Data as usize].evictions > 0, "the cache is full");
    flooded(&cache, true);
    let blocks = bytes_of(&cache.usage(), ObjectKind::Data);
    assert!(blocks >= cache.limit_bytes() / 4, "{blocks} bytes of data blocks stay");
}
