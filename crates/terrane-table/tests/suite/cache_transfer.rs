//! Incremental replacement: what of the cache new extents take over from those they replace, and what not.
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]
#![cfg(not(feature = "shuttle"))]

use crate::support;

use std::sync::Arc;

use support::Row;
use support::store::{TestStore, write_extent, write_extents};
use terrane_base::SeqNo;
use terrane_table::{Cache, CacheTransfer, Extent, WriterSettings};

const ROWS: u64 = 20_000;

/// Rows of which every fifth has a new value at `version` 1.
fn rows(version: u64) -> Vec<Row> {
    (0..ROWS)
        .map(|i| {
            let version = if i % 5 == 0 { version } else { 0 };
            Row::put(format!("key{i:08}").as_bytes(), i + 1 + version * ROWS, &i.to_le_bytes().repeat(12))
        })
        .collect()
}

fn read(extents: &[Arc<Extent>], cache: &Arc<Cache>, row: &Row) {
    let at = extents.partition_point(|extent| extent.meta.largest < row.key);
    let mut value = Vec::new();
    let found = extents[at].get(cache, &row.key, SeqNo::MAX, &mut value).unwrap();
    assert_eq!((found, value.as_slice()), (Some(row.seq_kind), row.value.as_slice()));
}

fn cached(extents: &[Arc<Extent>]) -> usize {
    extents.iter().map(|extent| extent.cached_blocks()).sum()
}

fn pass_on(inputs: &[Arc<Extent>], outputs: &[Arc<Extent>], cache: &Arc<Cache>) -> u64 {
    let mut transfer = CacheTransfer::of(inputs.iter(), cache);
    outputs.iter().map(|extent| transfer.pass_on(extent, cache).unwrap()).sum()
}

#[test]
fn only_ranges_that_were_cached_are_cached_again() {
    let store = TestStore::new();
    let (old, new) = (rows(0), rows(1));
    let inputs = write_extents(&old, WriterSettings::default(), 400 << 10, &store);
    let outputs = write_extents(&new, WriterSettings::default(), 500 << 10, &store);
    assert!(inputs.len() > 3 && outputs.len() > 3);
    let cache = Cache::new(64 << 20);
    let hot = 6_000..9_000usize;
    old[hot.clone()].iter().for_each(|row| read(&inputs, &cache, row));
    let before = cached(&inputs);
    let taken = pass_on(&inputs, &outputs, &cache);
    assert_eq!(taken as usize, cached(&outputs));
    assert!(taken as usize <= before, "at most the blocks cached before: {taken} of {before}");
    drop(inputs);
    let reads = store.reads();
    new[hot].iter().for_each(|row| read(&outputs, &cache, row));
    // The new blocks reach over both ends of what was cached and weigh a little more: the bytes run out
    // before the last.
    let misses = store.reads() - reads;
    assert!(misses <= 2 && taken > 10, "{misses} misses in {taken} hot blocks");
    let reads = store.reads();
    read(&outputs, &cache, &new[100]);
    assert!(store.reads() > reads, "cold rows were left alone");
}

#[test]
fn without_a_cached_input_nothing_is_read() {
    let store = TestStore::new();
    let inputs = [write_extent(&rows(0), WriterSettings::default(), &store)];
    let outputs = [write_extent(&rows(1), WriterSettings::default(), &store)];
    let cache = Cache::new(64 << 20);
    let reads = store.reads();
    assert_eq!(pass_on(&inputs, &outputs, &cache), 0);
    assert_eq!(store.reads(), reads);
    // An index block alone is not a sign of readers: it was there before any.
    inputs[0].warm(&cache).unwrap();
    let reads = store.reads();
    assert_eq!(pass_on(&inputs, &outputs, &cache), 0);
    assert_eq!(store.reads(), reads);
}

/// As below a hot extent: most inputs have only what their job put into the cache.
#[test]
fn inputs_without_a_cached_block_do_not_count() {
    let store = TestStore::new();
    let (old, new) = (rows(0), rows(1));
    let inputs = write_extents(&old, WriterSettings::default(), 400 << 10, &store);
    let outputs = write_extents(&new, WriterSettings::default(), 400 << 10, &store);
    let cache = Cache::new(64 << 20);
    let [hot, cold @ ..] = inputs.as_slice() else { panic!("no extent was written") };
    let is_hot = |row: &&Row| row.key <= hot.meta.largest;
    old.iter().filter(is_hot).for_each(|row| read(&inputs, &cache, row));
    assert_eq!(hot.cached_blocks(), hot.meta.blocks as usize);
    cold.iter().for_each(|extent| extent.warm(&cache).unwrap());
    let blocks: u32 = inputs.iter().map(|extent| extent.meta.blocks).sum();
    assert!(hot.meta.blocks * 4 < blocks, "less than a quarter is cached");
    let taken = pass_on(&inputs, &outputs, &cache);
    assert!(taken * 2 > u64::from(hot.meta.blocks), "{taken} blocks of {}", hot.meta.blocks);
}

/// The standing goes over: one read each of more blocks than fit washes out neither the old blocks nor the
/// new ones.
#[test]
fn established_blocks_are_replaced_by_established_ones() {
    let store = TestStore::new();
    let (old, new) = (rows(0), rows(1));
    // The reads cover most of the first extent; only the index block of that extent is cached.
    let inputs = write_extents(&old, WriterSettings::default(), 400 << 10, &store);
    let outputs = write_extents(&new, WriterSettings::default(), 400 << 10, &store);
    let flood = [write_extent(&rows(0), WriterSettings::default(), &store)];
    let cache = Cache::new(1 << 20);
    for _ in 0..3 {
        old[..2000].iter().for_each(|row| read(&inputs, &cache, row));
    }
    let taken = pass_on(&inputs, &outputs, &cache);
    assert!(taken > 10);
    drop(inputs);
    // At most one read of a block: one that is read twice is established too, and worth as much.
    let blocks = flood[0].meta.blocks as usize;
    let step = 5 * old.len() / (4 * blocks);
    assert!(blocks > 100, "more than the cache holds");
    old.iter().step_by(step).for_each(|row| read(&flood, &cache, row));
    let reads = store.reads();
    new[..2000].iter().for_each(|row| read(&outputs, &cache, row));
    let misses = store.reads() - reads;
    assert!(misses <= 3, "{misses} misses of {taken} established blocks");
}

/// Where hardly anything was cached nothing is read, where some of it was only what was read more than once.
#[test]
fn a_cache_that_holds_little_of_the_inputs_is_left_alone() {
    let store = TestStore::new();
    let (old, new) = (rows(0), rows(1));
    let taken_after = |cached: usize, times: usize| {
        let inputs = [write_extent(&old, WriterSettings::default(), &store)];
        let outputs = [write_extent(&new, WriterSettings::default(), &store)];
        let cache = Cache::new(64 << 20);
        // One row in ten is several of each block. One block's worth of rows is never two of one, where it is
        // a little more.
        let block = old.len() / inputs[0].meta.blocks as usize;
        let step = if times == 1 { block * 5 / 4 } else { 10 };
        old[..cached].iter().step_by(step).for_each(|row| read(&inputs, &cache, row));
        pass_on(&inputs, &outputs, &cache)
    };
    assert_eq!(taken_after(ROWS as usize / 8, 2), 0);
    assert!(taken_after(ROWS as usize / 3, 2) > 10);
    assert_eq!(taken_after(ROWS as usize * 2 / 5, 1), 0, "read once");
    assert!(taken_after(ROWS as usize * 4 / 5, 1) > 10);
}

#[test]
fn a_damaged_output_is_an_error_and_the_reads_find_it_too() {
    let store = TestStore::new();
    let inputs = [write_extent(&rows(0), WriterSettings::default(), &store)];
    let output = write_extent(&rows(1), WriterSettings::default(), &store);
    let cache = Cache::new(64 << 20);
    rows(0).iter().for_each(|row| read(&inputs, &cache, row));
    let mut bytes = store.bytes(output.meta.id);
    // In every block: which of them are taken over is not the point.
    (100..output.meta.index.offset as usize).step_by(1000).for_each(|at| bytes[at] ^= 1);
    store.set_bytes(output.meta.id, bytes);
    let mut transfer = CacheTransfer::of(inputs.iter(), &cache);
    assert!(transfer.pass_on(&output, &cache).is_err());
    let error = output.get(&cache, b"key00000000", SeqNo::MAX, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), terrane_base::Kind::Corrupt);
}
