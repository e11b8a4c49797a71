//! The throttle is per table: only writers of the table whose levels have debt are slowed.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use support::{DIR, open, small_options, until};
use terrane_base::env::{Env, SleepClock};
use terrane_base::options::Options;
use terrane_base::{Batch, Kind};
use terrane_device::MemDisk;
use terrane_engine::{Engine, Table};

fn batch(tables: &[&Table], number: u64, value: &[u8]) -> Batch {
    let mut batch = Batch::new();
    for table in tables {
        batch.put(table.id, &number.to_be_bytes(), value).unwrap();
    }
    batch
}

/// An engine with two tables: the levels of the first are far behind, the second is empty.
fn behind(options: &Options) -> (Arc<Engine>, Arc<Table>, Arc<Table>) {
    let engine = open(MemDisk::new(), options).unwrap();
    let slowed = engine.catalog().require("default").unwrap();
    let free = engine.create_table("free", &[]).unwrap();
    engine.set_background_paused(true);
    // So far that the rate is less than anybody writes at.
    for run in 0..60 {
        engine.write(&batch(&[&slowed], run, b"value"), false).unwrap();
        engine.flush_to_run(&slowed).unwrap();
    }
    // The table counts as flushed shortly before the flush ends; until the end the flush slows all writers.
    until("the last flush to end", || engine.stats().flushes >= 60);
    (engine, slowed, free)
}

#[test]
fn the_throttle_is_per_table() {
    // So much memory that no writer is slowed for it.
    let options = Options {
        memory_bytes: 128 << 20,
        write_memory_bytes: 64 << 20,
        overflow_runs_max: 2,
        ..small_options()
    };
    let (engine, slowed, free) = behind(&options);
    assert!(slowed.stats().table_write_rate > 0, "its writers are slowed");
    assert!(slowed.stats().table_backlog_permille >= 1000, "its levels are far behind");
    assert_eq!(free.stats().table_write_rate, 0, "those of the other table are not");

    // A write that does not wait is refused in the table with debt, and never in the other; a batch of both
    // is refused like the first.
    let value = [7; 1000];
    let is_refused = |tables: &[&Table], number| match engine.write_within(
        &batch(tables, number, &value),
        false,
        Duration::ZERO,
    ) {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error.kind(), Kind::Busy, "{error}");
            true
        }
    };
    let refused = (0..100_000).find(|number| is_refused(&[&slowed], *number));
    assert!(refused.is_some(), "no write was refused");
    assert!((0..500).all(|number| !is_refused(&[&free], number)));
    assert!((0..100_000).any(|number| is_refused(&[&free, &slowed], number)));
    assert!(
        (500..1000).all(|number| !is_refused(&[&free], number)),
        "what was refused cost the other table nothing"
    );

    // A write that may wait is slowed in the table with debt only.
    let before = engine.stats().writes_paused_micros;
    for number in 0..500 {
        engine.write(&batch(&[&free], number, &value), false).unwrap();
    }
    assert_eq!(engine.stats().writes_paused_micros, before);
    // Time that a slow machine takes for its own work pays, too: so these are large, and few where it is
    // fast.
    let is_paused = |number| {
        engine.write(&batch(&[&slowed], number, &[7; 60_000]), false).unwrap();
        slowed.stats().table_writes_paused_micros > 0
    };
    assert!((0..400).any(is_paused));
    assert!(engine.statistics().get("write_wait_micros").unwrap().number() > 0);
    assert_eq!(free.stats().table_writes_paused_micros, 0);
    let paused = engine.stats().writes_paused_micros;
    assert!(paused > 0);
    engine.set_background_paused(false);
    engine.close().unwrap();
}

#[test]
fn a_table_with_little_in_memory_is_not_charged_for_memory() {
    // The time that a slow machine takes for a write would pay for the next one, until memory is full.
    let env = Env { clock: Arc::new(SleepClock::default()), ..Env::real() };
    let disk = Arc::new(MemDisk::new());
    let engine = Engine::open_on(disk, Path::new(DIR), &small_options(), env).unwrap();
    let filling = engine.catalog().require("default").unwrap();
    let small = engine.create_table("small", &[]).unwrap();
    engine.set_background_paused(true);
    engine.write(&batch(&[&small], 0, b"little"), false).unwrap();
    let fill = |number| {
        engine.write_within(&batch(&[&filling], number, &[7; 4000]), false, Duration::ZERO).map(drop)
    };
    let refused = (0..10_000).find_map(|number| fill(number).err()).expect("memory gets short");
    assert_eq!(refused.kind(), Kind::Busy, "{refused}");
    assert!(engine.debt() < 1.0, "before it is full");
    for number in 1..50 {
        engine.write_within(&batch(&[&small], number, b"little"), false, Duration::ZERO).unwrap();
    }
    engine.set_background_paused(false);
    engine.close().unwrap();
}

#[test]
fn a_flush_that_has_ended_slows_no_writer() {
    let options = Options { memory_bytes: 128 << 20, write_memory_bytes: 64 << 20, ..small_options() };
    let engine = open(MemDisk::new(), &options).unwrap();
    let flushed = engine.catalog().require("default").unwrap();
    let other = engine.create_table("other", &[]).unwrap();
    engine.set_background_paused(true);
    engine.write(&batch(&[&other], 0, b"value"), false).unwrap();
    // So little each time that flushes are slow by their bytes.
    for run in 1..=30 {
        engine.write(&batch(&[&flushed], run, b"value"), false).unwrap();
        engine.flush_to_run(&flushed).unwrap();
        // It is known to be flushed a little before the flush ends.
        until("the flush to end", || engine.stats().flushes >= run);
    }
    for number in 0..200 {
        engine.write_within(&batch(&[&other], number, &[7; 1000]), false, Duration::ZERO).unwrap();
    }
    engine.set_background_paused(false);
    engine.close().unwrap();
}
