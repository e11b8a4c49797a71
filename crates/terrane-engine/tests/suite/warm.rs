//! Index blocks and filters that flush and compaction wrote are in the cache before the first read of them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use support::{open, small_options};
use terrane_base::TableId;
use terrane_base::counters::read_counters;
use terrane_base::options::{Experiments, Options};
use terrane_device::MemDisk;
use terrane_engine::{Bounds, Engine, ReadMode};

const KEYS: u64 = 3000;

fn key(number: u64) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

fn write_all(engine: &Engine, version: u64) {
    for number in 0..KEYS {
        engine.put(TableId::DEFAULT, &key(number), format!("{number}/{version}").as_bytes(), false).unwrap();
    }
    engine.flush().unwrap();
    engine.wait_until_quiescent().unwrap();
}

/// Parts of extents that a read of one key had to load.
fn loads_of_a_read(engine: &Engine, number: u64, version: u64) -> u64 {
    let table = engine.catalog().require("default").unwrap();
    let (before, mut found) = (read_counters(), Vec::new());
    assert!(engine.get(&table, &key(number), ReadMode::default(), &mut found).unwrap());
    assert_eq!(found, format!("{number}/{version}").as_bytes());
    (read_counters() - before).blocks_missed
}

/// The most that one read loads after everything was written again, with reads before (`is_read`) or without.
fn loads_after_rewriting(warm_outputs: bool, is_read: bool) -> u64 {
    let experiments = Experiments {
        warm_outputs,
        // The blocks, too, would be there.
        incremental_replacement: false,
        adaptive_filters: false,
        ..Experiments::default()
    };
    let options = Options { row_cache: 0, filter_bits_per_key: 20, experiments, ..small_options() };
    let engine = open(MemDisk::new(), &options).unwrap();
    write_all(&engine, 1);
    if is_read {
        (0..KEYS).for_each(|number| assert!(loads_of_a_read(&engine, number, 1) <= 3 * 8));
    }
    write_all(&engine, 2);
    let most = (0..KEYS).step_by(100).map(|number| loads_of_a_read(&engine, number, 2)).max().unwrap();
    engine.close().unwrap();
    most
}

#[test]
fn a_read_of_new_extents_loads_one_block_only() {
    assert_eq!(loads_after_rewriting(true, true), 1);
    assert_eq!(loads_after_rewriting(true, false), 1);
}

#[test]
fn without_it_index_block_and_filter_come_with_the_first_read() {
    assert!(loads_after_rewriting(false, true) >= 3);
    assert!(loads_after_rewriting(false, false) >= 3);
}

/// Reads of the store, and data blocks among them, for one get of each key.
fn loads_of_all(engine: &Engine) -> (u64, u64) {
    let table = engine.catalog().require("default").unwrap();
    let before = read_counters();
    for number in 0..KEYS {
        let mut found = Vec::new();
        assert!(engine.get(&table, &key(number), ReadMode::default(), &mut found).unwrap());
    }
    let done = read_counters() - before;
    (done.blocks_missed, done.blocks_decoded)
}

/// Index blocks and filters that gets behind a load read from the store.
fn parts_loaded_behind_a_load(warm_outputs: bool, is_compacted: bool) -> u64 {
    let experiments = Experiments { warm_outputs, ..Experiments::default() };
    let options = Options { row_cache: 0, experiments, ..small_options() };
    let engine = open(MemDisk::new(), &options).unwrap();
    write_all(&engine, 1);
    let table = engine.catalog().require("default").unwrap();
    if is_compacted {
        engine.compact_range(&table, &Bounds::all()).unwrap();
    }
    assert_eq!(engine.stats().cache_misses, 0, "flush and compaction read nothing back");
    let (missed, blocks) = loads_of_all(&engine);
    assert!(blocks > 10, "{blocks} blocks hold the rows");
    assert_eq!(loads_of_all(&engine), (0, 0));
    engine.close().unwrap();
    missed - blocks
}

#[test]
fn behind_a_load_gets_load_data_blocks_only() {
    for is_compacted in [false, true] {
        assert_eq!(parts_loaded_behind_a_load(true, is_compacted), 0);
        assert!(parts_loaded_behind_a_load(false, is_compacted) >= 2);
    }
}

/// Filters and index blocks of about the whole cache, written beside nothing else.
#[test]
fn a_load_whose_filters_fill_the_cache_stays_below_the_ceiling() {
    let options = Options { filter_bits_per_key: 30, ..small_options() };
    let engine = open(MemDisk::new(), &options).unwrap();
    let all = options.memory_bytes / 16 * 15;
    let value = [7; 8];
    for number in 0..600_000u64 {
        engine.put(TableId::DEFAULT, &number.wrapping_mul(0x9e37_79b9).to_be_bytes(), &value, false).unwrap();
    }
    engine.flush().unwrap();
    engine.wait_until_quiescent().unwrap();
    let stats = engine.stats();
    assert!(stats.memory_bytes_max <= all, "{} bytes of {all}", stats.memory_bytes_max);
    assert!(stats.cache_bytes > options.memory_bytes / 8, "{} bytes are cached", stats.cache_bytes);
    assert!(stats.cache_bytes < all / 4 * 3, "{} bytes are cached", stats.cache_bytes);
    engine.close().unwrap();
}
