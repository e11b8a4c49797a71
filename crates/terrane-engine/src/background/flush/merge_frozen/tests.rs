//! Orders of settling and flushing, made by hand: the background is paused, and each step is a call.

use std::path::Path;
use std::sync::atomic::Ordering;

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{SeqNo, TableId};
use terrane_compaction::CancelCause;
use terrane_device::{Call, Failure, Fault, FaultyDisk, MemDisk};

use super::*;
use crate::background::flush::FlushJob;
use crate::background::job::Look;
use crate::engine::Engine;
use crate::read::get::ReadMode;

/// More than a merge passes by between two looks at whether it is cancelled.
const LARGE: usize = 96 << 10;

/// Settles the frozen memtables.
pub(crate) fn settle(engine: &Engine, table: &Table) -> Result<()> {
    SettleJob { engine, table, control: &engine.new_control() }.run()
}

/// A database whose background is paused, and its default table.
pub(crate) fn open() -> (Arc<Engine>, Arc<Table>) {
    open_on(Arc::new(MemDisk::new()))
}

pub(crate) fn open_on(disk: Arc<dyn terrane_device::Disk>) -> (Arc<Engine>, Arc<Table>) {
    let options = Options {
        memory_bytes: 16 << 20,
        segment_bytes: 64 << 10,
        memtable_bytes: 64 << 10,
        global_index_bytes: 2 << 20,
        ..Options::default()
    };
    let engine = Engine::open_on(disk, Path::new("/db"), &options, Env::real()).expect("opens");
    engine.set_background_paused(true);
    let table = engine.catalog().require("default").expect("is always there");
    (engine, table)
}

pub(crate) fn put(engine: &Engine, key: &str, bytes: usize) {
    engine.put(TableId::DEFAULT, key.as_bytes(), &vec![7; bytes], false).expect("commits");
}

pub(crate) fn length(engine: &Engine, table: &Table, key: &str) -> Option<usize> {
    let mut value = Vec::new();
    let is_there = engine.get(table, key.as_bytes(), ReadMode::default(), &mut value).expect("reads");
    is_there.then_some(value.len())
}

/// Has what was put so far become a frozen memtable.
pub(crate) fn freeze(engine: &Engine, table: &Table) {
    assert!(engine.freeze(table).expect("nothing is lost"));
}

fn control(engine: &Engine) -> Arc<JobControl> {
    Arc::new(engine.new_control())
}

fn flush(engine: &Engine, table: &Table) -> Result<()> {
    FlushJob { engine, table, control: &control(engine) }.run()
}

/// A flush of the generation that settle has chosen to merge into ends before the merge. Were the memtable
/// merged, its rows would be in no read view.
#[test]
fn a_memtable_is_not_merged_into_a_generation_that_was_flushed() {
    let (engine, table) = open();
    put(&engine, "a", 10);
    freeze(&engine, &table);
    settle(&engine, &table).expect("settles");
    put(&engine, "b", 20);
    freeze(&engine, &table);
    let view = table.pinned();
    flush(&engine, &table).expect("flushes");
    SettleJob { engine: &engine, table: &table, control: &control(&engine) }
        .settle_oldest(&view)
        .expect("settles");
    for _ in 0..2 {
        assert_eq!(length(&engine, &table, "a"), Some(10));
        assert_eq!(length(&engine, &table, "b"), Some(20));
        settle(&engine, &table).expect("settles");
        flush(&engine, &table).expect("flushes");
        assert!(table.pinned().memory_is_empty());
    }
    engine.close().expect("closes");
}

/// The same with a flush that is still under way, and a generation with all the room.
#[test]
fn a_closed_generation_takes_in_nothing() {
    let (engine, table) = open();
    put(&engine, "a", 10);
    freeze(&engine, &table);
    settle(&engine, &table).expect("settles");
    let generation = table.pinned().generations[0].clone();
    put(&engine, "b", 20);
    freeze(&engine, &table);
    settle(&engine, &table).expect("settles");
    assert_eq!(table.pinned().generations.len(), 1, "it has room, and no flush reads it");
    generation.close_to_merges();
    put(&engine, "c", 30);
    freeze(&engine, &table);
    settle(&engine, &table).expect("settles");
    assert_eq!(table.pinned().generations.len(), 2);
    assert_eq!(generation.entry_count(), 2);
    engine.close().expect("closes");
}

#[test]
fn a_cancelled_merge_leaves_the_memtable_where_it_is() {
    let (engine, table) = open();
    put(&engine, "a", 10);
    freeze(&engine, &table);
    settle(&engine, &table).expect("settles");
    (0..4).for_each(|number| put(&engine, &format!("b{number}"), LARGE));
    freeze(&engine, &table);
    let cancelled = control(&engine);
    cancelled.cancel(CancelCause::Asked);
    let error = SettleJob { engine: &engine, table: &table, control: &cancelled }
        .run()
        .expect_err("it was cancelled");
    assert_eq!(error.kind(), Kind::Cancelled, "{error}");
    assert_eq!(table.pinned().frozen.len(), 1);
    (0..4).for_each(|number| assert_eq!(length(&engine, &table, &format!("b{number}")), Some(LARGE)));
    // A flush has then a part of the memtable, and says so.
    flush(&engine, &table).expect("flushes");
    assert!(table.flushed_seq() < table.pinned().frozen[0].first_seq());
    settle(&engine, &table).expect("settles");
    flush(&engine, &table).expect("flushes");
    (0..4).for_each(|number| assert_eq!(length(&engine, &table, &format!("b{number}")), Some(LARGE)));
    assert!(table.pinned().memory_is_empty());
    engine.close().expect("closes");
}

/// By ranges and as a run, with range deletes and without.
#[test]
fn a_flush_hands_on_all_of_its_generation() {
    for (is_run, is_ranged) in [(false, false), (true, false), (true, true)] {
        let (engine, table) = open();
        for round in 0..3 {
            (0..50).for_each(|number| put(&engine, &format!("{number:02}"), 10 + round));
            if is_ranged {
                engine.delete_range(TableId::DEFAULT, b"10", b"20", false).expect("commits");
            }
            freeze(&engine, &table);
            settle(&engine, &table).expect("settles");
        }
        // Workers write runs that a caller asks for while the background is paused, too: this one is not
        // theirs.
        let held =
            engine.background.scheduler.hold_flushes(&[table.id], &control(&engine)).expect("no flush runs");
        if is_run {
            table.want_run(engine.visible());
        }
        flush(&engine, &table).expect("flushes");
        engine.background.scheduler.resume_flushes(&held);
        assert!(table.pinned().memory_is_empty());
        assert_eq!(table.pinned().tree.runs.is_empty(), !is_run);
        for number in 0..50 {
            let is_deleted = is_ranged && (10..20).contains(&number);
            let expected = if is_deleted { None } else { Some(12) };
            assert_eq!(length(&engine, &table, &format!("{number:02}")), expected, "{number}");
        }
        engine.close().expect("closes");
    }
}

/// A generation that a failed flush has begun stays as it is; later memtables go into another generation.
#[test]
fn a_generation_whose_flush_failed_stays_closed_and_is_flushed_first() {
    let disk = FaultyDisk::new(Arc::new(MemDisk::new()));
    let (engine, table) = open_on(Arc::new(disk.clone()));
    put(&engine, "a", 10);
    freeze(&engine, &table);
    settle(&engine, &table).expect("settles");
    disk.fail(Fault::new(Call::Write, Failure::Broken).on("/data/").lasting());
    flush(&engine, &table).expect_err("the device is broken");
    let failed = table.pinned().generations[0].clone();
    assert!(failed.is_closed());
    put(&engine, "b", 20);
    freeze(&engine, &table);
    settle(&engine, &table).expect("settles");
    let generations = table.pinned().generations;
    assert_eq!(generations.len(), 2);
    assert!(Arc::ptr_eq(&generations[1], &failed));
    disk.heal();
    flush(&engine, &table).expect("flushes");
    assert_eq!(table.pinned().generations.len(), 1);
    assert_eq!((length(&engine, &table, "a"), length(&engine, &table, "b")), (Some(10), Some(20)));
    assert!(table.flushed_seq() < table.pinned().generations[0].first_seq());
    engine.close().expect("closes");
}

/// A trim that believes that nothing is needed is refused by the ledgers, and nothing is trimmed.
#[test]
fn a_trim_of_segments_with_unflushed_records_is_refused() {
    let (engine, table) = open();
    // Into an active memtable, a frozen one, and a generation.
    for step in 0..3 {
        (0..6).for_each(|number| put(&engine, &format!("{step}{number}"), LARGE / 4));
        if step < 2 {
            freeze(&engine, &table);
        }
        if step == 0 {
            settle(&engine, &table).expect("settles");
        }
        let complete = engine.journal.complete_segments();
        assert!(!complete.is_empty());
        engine.trim_segments().expect("all is needed, and it knows that");
        assert_eq!(engine.counters.segments_trimmed.load(Ordering::Relaxed), 0);
        let upto = complete.last().expect("there are some").id;
        let refused = table.edit().ledger().check_trim(upto).expect_err("it is needed");
        assert_eq!(refused.kind(), Kind::Poisoned);
    }
    engine.set_background_paused(false);
    engine.flush().expect("flushes");
    // The worker finds the table's oldest record in memory again after the flush that the caller waits for.
    engine.wait_until_quiescent().expect("nothing is needed, and that is trimmed");
    assert!(engine.counters.segments_trimmed.load(Ordering::Relaxed) > 0);
    engine.close().expect("closes");
}

/// A trim records all numbers in its segments as flushed; a generation may begin among them and have later
/// records only.
#[test]
fn a_flush_that_a_caller_waits_for_runs_although_a_trim_asked_for_more() {
    let (engine, table) = open();
    put(&engine, "a", 10);
    freeze(&engine, &table);
    settle(&engine, &table).expect("settles");
    let tables = [table.clone()];
    let due = || {
        engine
            .background
            .scheduler
            .inspect(|schedule| Look { engine: &engine, schedule }.table_to_flush(&tables))
            .is_some()
    };
    assert!(!due(), "it has room, and no caller asked for a flush");
    table.want_flush(engine.visible());
    table.set_flushed_seq(engine.visible());
    assert!(due(), "the caller waits until nothing begins at or below that number");
    engine.close().expect("closes");
}

/// A caller that asks for a flush when nothing is committed waits for all up to number 0, with which the
/// first memtable of an opening begins. The first put may come before that memtable is frozen.
#[test]
fn a_flush_of_nothing_does_not_wait_for_the_first_write() {
    let (engine, table) = open();
    let tables = [table.clone()];
    let upto = engine.request_flush(&[]);
    assert_eq!(upto, SeqNo(0), "asks no table yet");
    put(&engine, "a", 10);
    freeze(&engine, &table);
    table.want_flush(upto);
    let due = || {
        engine
            .background
            .scheduler
            .inspect(|schedule| Look { engine: &engine, schedule }.table_to_flush(&tables))
            .is_some()
    };
    settle(&engine, &table).expect("settles");
    assert!(table.is_flushed(upto) || due(), "the caller waits for a flush that is not due");
    engine.set_background_paused(false);
    engine.wait_for_flush(&tables, upto).expect("there is nothing to wait for");
    assert_eq!(length(&engine, &table, "a"), Some(10));
    engine.close().expect("closes");
}

/// The first memtable after an opening begins with 0, and `run_wanted` is 0 when no caller asked for a run.
#[test]
fn no_run_is_made_that_no_caller_asked_for() {
    let (engine, table) = open();
    put(&engine, "a", 10);
    freeze(&engine, &table);
    let tables = [table.clone()];
    let asked = || {
        engine
            .background
            .scheduler
            .inspect(|schedule| Look { engine: &engine, schedule }.next_run_wanted(&tables))
            .is_some()
    };
    assert!(!asked(), "the background is paused");
    engine.flush_to_run(&table).expect("is done though it is paused");
    assert_eq!(table.pinned().tree.runs.len(), 1);
    engine.close().expect("closes");
    // The same of nothing: there is no commit, and the memtable goes.
    let (engine, table) = open();
    engine.flush_to_run(&table).expect("ends");
    assert!(table.pinned().tree.runs.is_empty());
    engine.close().expect("closes");
}
