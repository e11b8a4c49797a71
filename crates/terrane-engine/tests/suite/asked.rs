//! Requested flushes and compactions while the background is paused, stopped in the middle of a job,
//! cancelled, or failing. A gate at the device holds jobs where the test needs them.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

use support::gate::GateDisk;
use support::{get, open, small_options, until};
use terrane_base::{Batch, CompactionFilter, FilterDecision, Kind};
use terrane_device::{Call, Failure, Fault, FaultyDisk, MemDisk};
use terrane_engine::{Bounds, Engine, Table};

const KEYS: u64 = 500;

/// A database with two overflow runs over the same keys, the background paused.
fn with_two_runs(engine: &Arc<Engine>) -> Arc<Table> {
    let table = engine.catalog().require("default").unwrap();
    engine.set_background_paused(true);
    for round in 0..2u8 {
        for number in 0..KEYS {
            let mut batch = Batch::new();
            batch.put(table.id, &number.to_be_bytes(), &[round; 100]).unwrap();
            engine.write(&batch, false).unwrap();
        }
        engine.flush_to_run(&table).unwrap();
    }
    assert_eq!(runs(engine), 2);
    table
}

fn runs(engine: &Engine) -> usize {
    engine.shape().tables[0].runs.len()
}

fn is_compacting(engine: &Engine) -> bool {
    engine.progress().iter().any(|running| running.work == terrane_engine::JobKind::Compact)
}

fn assert_whole(engine: &Arc<Engine>, table: &Table) {
    assert_eq!(runs(engine), 0);
    for number in 0..KEYS {
        assert_eq!(get(engine, table, &number.to_be_bytes()).unwrap(), Some(vec![1; 100]));
    }
    assert!(engine.check(&mut |_, _| ()).unwrap().findings.is_empty());
}

/// Keeps a compaction at the first row until the test has met it twice: every block is still before it.
#[derive(Debug)]
struct AtFirstRow {
    meets: Barrier,
    was_shown: AtomicBool,
}

impl CompactionFilter for AtFirstRow {
    fn name(&self) -> &str {
        "at first row"
    }

    fn filter(&self, _key: &[u8], _value: &[u8]) -> FilterDecision {
        if !self.was_shown.swap(true, Ordering::Relaxed) {
            self.meets.wait();
            self.meets.wait();
        }
        FilterDecision::Keep
    }

    fn sees_all(&self) -> bool {
        true
    }
}

#[test]
fn a_job_that_a_pause_holds_is_reported_instead_of_waited_for() {
    let engine = open(MemDisk::new(), &small_options()).unwrap();
    let table = with_two_runs(&engine);
    let at_first_row = Arc::new(AtFirstRow { meets: Barrier::new(2), was_shown: AtomicBool::new(false) });
    table.set_compaction_filter(Some(at_first_row.clone()));
    engine.set_background_paused(false);
    at_first_row.meets.wait();
    engine.set_background_paused(true);
    at_first_row.meets.wait();
    let error = engine.compact_level(&table, 0).unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid, "{error}");
    assert!(error.to_string().contains("paused while it ran"), "{error}");
    engine.set_background_paused(false);
    engine.compact_level(&table, 0).unwrap();
    assert_whole(&engine, &table);
    engine.close().unwrap();
}

#[test]
fn a_requested_level_begins_again_after_its_jobs_were_cancelled() {
    let disk = GateDisk::new(MemDisk::new());
    let engine = open(disk.clone(), &small_options()).unwrap();
    let table = with_two_runs(&engine);
    std::thread::scope(|scope| {
        let asked = disk.still(|_| {
            let asked = scope.spawn(|| engine.compact_level(&table, 0));
            until("a compaction", || is_compacting(&engine));
            let shown = engine.progress();
            assert_eq!(shown[0].table.as_deref(), Some("default"));
            engine.cancel_compactions();
            asked
        });
        asked.join().unwrap().unwrap();
    });
    assert_whole(&engine, &table);
    engine.close().unwrap();
}

#[test]
fn disabling_manual_compactions_ends_running_and_later_requests() {
    let disk = GateDisk::new(MemDisk::new());
    let engine = open(disk.clone(), &small_options()).unwrap();
    let table = with_two_runs(&engine);
    engine.compact_level(&table, 0).unwrap();
    engine.set_background_paused(false);
    engine.wait_until_quiescent().unwrap();
    let all = Bounds::all();
    std::thread::scope(|scope| {
        let asked = disk.still(|_| {
            let asked = scope.spawn(|| engine.compact_range(&table, &all));
            until("a compaction", || is_compacting(&engine));
            engine.hold_range_compactions();
            // A refused caller gets the error, though such compactions are allowed again by then.
            engine.allow_range_compactions();
            asked
        });
        assert_eq!(asked.join().unwrap().unwrap_err().kind(), Kind::Cancelled);
    });
    assert!(!is_compacting(&engine), "nothing goes on for it");
    engine.hold_range_compactions();
    engine.hold_range_compactions();
    engine.allow_range_compactions();
    assert_eq!(engine.compact_range(&table, &all).unwrap_err().kind(), Kind::Cancelled);
    engine.allow_range_compactions();
    engine.allow_range_compactions();
    engine.compact_range(&table, &all).unwrap();
    assert_whole(&engine, &table);
    engine.close().unwrap();
}

#[test]
fn a_run_that_cannot_be_written_is_reported_and_written_later() {
    let disk = FaultyDisk::new(Arc::new(MemDisk::new()));
    let engine = open(disk.clone(), &small_options()).unwrap();
    let table = with_two_runs(&engine);
    let mut batch = Batch::new();
    batch.put(table.id, b"one more", b"v").unwrap();
    engine.write(&batch, false).unwrap();
    disk.fail(Fault::new(Call::Write, Failure::Broken).on("/data/").lasting());
    assert_eq!(engine.flush_to_run(&table).unwrap_err().kind(), Kind::Io);
    disk.heal();
    engine.set_background_paused(false);
    engine.flush_to_run(&table).expect("the attempt whose result it gets began after the device healed");
    assert_eq!(get(&engine, &table, b"one more").unwrap().as_deref(), Some(&b"v"[..]));
    engine.compact_level(&table, 0).unwrap();
    assert_whole(&engine, &table);
    engine.close().unwrap();
}

/// After so many failures jobs are retried only after five seconds; a request does not wait for that time.
#[test]
fn a_request_gets_the_result_of_an_attempt_that_began_after_it() {
    let disk = FaultyDisk::new(Arc::new(MemDisk::new()));
    let engine = open(disk.clone(), &small_options()).unwrap();
    let table = engine.catalog().require("default").unwrap();
    type Ask<'a> = &'a dyn Fn() -> terrane_base::Result<()>;
    let everything = terrane_engine::Bounds::all();
    let asks: [Ask<'_>; 4] = [
        &|| engine.flush(),
        &|| engine.compact_range(&table, &everything),
        &|| engine.flush_to_run(&table),
        &|| engine.wait_until_quiescent(),
    ];
    for (number, ask) in asks.iter().enumerate() {
        let mut batch = Batch::new();
        batch.put(table.id, b"key", &[number as u8]).unwrap();
        engine.write(&batch, false).unwrap();
        disk.fail(Fault::new(Call::Write, Failure::Broken).on("/data/").lasting());
        for _ in 0..8 {
            assert_eq!(engine.flush().unwrap_err().kind(), Kind::Io);
        }
        disk.heal();
        ask().unwrap_or_else(|error| panic!("ask {number}: {error}"));
    }
    engine.close().unwrap();
}
