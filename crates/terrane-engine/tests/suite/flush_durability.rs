//! When a flush makes the journal durable before it is installed: if a loss of power could keep its records
//! and lose older ones that memory alone has.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use terrane_base::Rng;
use terrane_base::options::Options;
use terrane_device::{Call, Failure, Fault, FaultyDisk, MemDisk};
use terrane_engine::{Engine, Table};

use crate::support::{get, open, rows};

/// The first segment, which has all records of these tests until it is full.
const SEGMENT: &str = "000001.seg";

fn options() -> Options {
    Options {
        memory_bytes: 16 << 20,
        value_separation_bytes: 1 << 10,
        close_flush: false,
        ..Options::default()
    }
}

/// A database with rows of long values in memory, as one flush merges into an empty level 1, and a device on
/// which the segment cannot be synced.
fn unsynced(before: &dyn Fn(&Arc<Engine>)) -> (MemDisk, Arc<Engine>, Arc<Table>) {
    let disk = MemDisk::new();
    let faulty = FaultyDisk::new(Arc::new(disk.clone()));
    let engine = open(faulty.clone(), &options()).unwrap();
    let table = engine.catalog().require("default").unwrap();
    before(&engine);
    put(&engine, &table, 0..8);
    faulty.fail(Fault::new(Call::Sync, Failure::Broken).on(SEGMENT).lasting());
    (disk, engine, table)
}

fn put(engine: &Engine, table: &Table, numbers: std::ops::Range<u64>) {
    for number in numbers {
        engine.put(table.id, &number.to_be_bytes(), &value(number), false).unwrap();
    }
}

fn value(number: u64) -> Vec<u8> {
    vec![number as u8; 2000]
}

#[test]
fn a_flush_by_one_edit_needs_no_durable_journal_and_keeps_a_prefix() {
    let (disk, engine, table) = unsynced(&|_| {});
    engine.flush().unwrap();
    let stats = engine.stats();
    assert_eq!((stats.flush_steps, stats.overflow_runs_written), (1, 0), "one step of a merge");
    put(&engine, &table, 8..14);
    for seed in 0..40 {
        let left = open(disk.crash(seed), &options()).unwrap();
        let table = left.catalog().require("default").unwrap();
        let kept = rows(&left, &table).unwrap();
        assert!((8..=14).contains(&kept.len()), "seed {seed}: {} rows", kept.len());
        for (number, row) in (0..).zip(&kept) {
            assert_eq!(*row, (u64::to_be_bytes(number).to_vec(), value(number)), "seed {seed}");
        }
        left.close().unwrap();
    }
}

#[test]
fn older_records_of_another_table_make_a_flush_wait_for_the_journal() {
    let make = |engine: &Arc<Engine>| {
        let other = engine.create_table("other", &[]).unwrap();
        engine.put(other.id, b"older", b"row", false).unwrap();
    };
    let (disk, engine, table) = unsynced(&make);
    engine.flush_tables(&[table]).expect_err("the segment cannot be made durable");
    for seed in 0..40 {
        let left = open(disk.crash(seed), &options()).unwrap();
        let table = left.catalog().require("default").unwrap();
        let other = left.catalog().require("other").unwrap();
        let is_older_there = get(&left, &other, b"older").unwrap().is_some();
        let newer = rows(&left, &table).unwrap().len();
        assert!(is_older_there || newer == 0, "seed {seed}: {newer} rows are newer than one that is lost");
        left.close().unwrap();
    }
}

#[test]
fn a_merge_in_several_steps_waits_for_the_journal() {
    let disk = MemDisk::new();
    let faulty = FaultyDisk::new(Arc::new(disk));
    let options =
        Options { memory_bytes: 256 << 20, memtable_bytes: 60 << 20, value_separation_bytes: 0, ..options() };
    let engine = open(faulty.clone(), &options).unwrap();
    let table = engine.catalog().require("default").unwrap();
    // Level 1 has rows, so that what follows does not count as a load.
    put(&engine, &table, 0..8);
    engine.flush().unwrap();
    faulty.fail(Fault::new(Call::Sync, Failure::Broken).on(SEGMENT).lasting());
    let mut numbers = Rng::new(7);
    for number in 8..30_000 {
        let value: Vec<u8> = (0..125).flat_map(|_| numbers.next_u64().to_le_bytes()).collect();
        engine.put(table.id, &u64::to_be_bytes(number), &value, false).unwrap();
    }
    let flushed = engine.flush();
    let stats = engine.stats();
    assert_eq!(stats.overflow_runs_written, 0, "a merge");
    assert!(
        flushed.is_err(),
        "the first segment cannot be made durable, and {} steps were",
        stats.flush_steps
    );
}
