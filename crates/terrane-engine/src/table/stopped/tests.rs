//! Steps that the ledger of a table refuses, on either side of their edit: no second attempt is made, every
//! caller that waits or asks gets the error, and the next opening has every row.

use std::path::Path;

use terrane_base::env::Env;
use terrane_base::options::{JournalMode, Options};
use terrane_base::{SeqNo, TableId};
use terrane_device::MemDisk;
use terrane_memtable::Memtable;

use super::*;
use crate::background::flush::merge_frozen;
use crate::background::flush::merge_frozen::tests::{freeze, open_on, put};
use crate::bulk::ingest::{IngestFile, IngestOptions};
use crate::engine::Engine;
use crate::read::get::ReadMode;
use crate::read::scan::Bounds;

/// How often a caller asks again. Each time the scheduler tries failed work at once, without its pause.
const ASKED: usize = 5;
/// Values of this size, this many, are far more than the write memory.
const LARGE: usize = 96 << 10;
const LARGE_MAX: usize = 1000;
/// A number that no commit of a test has.
const FAR: SeqNo = SeqNo(1 << 40);
const ROWS: [(&str, usize); 4] = [("a", 10), ("b", 20), ("c", 20), ("d", 20)];

/// A database whose background is paused; its default table has a row in level 1 and three in a frozen
/// memtable.
fn filled(disk: &MemDisk) -> (Arc<Engine>, Arc<Table>) {
    let (engine, table) = open_on(Arc::new(disk.clone()));
    engine.create_table("other", &[]).expect("is made");
    engine.set_background_paused(false);
    put(&engine, "a", 10);
    engine.flush().expect("flushes");
    engine.wait_until_quiescent().expect("nothing fails");
    engine.set_background_paused(true);
    ROWS[1..].iter().for_each(|(key, bytes)| put(&engine, key, *bytes));
    freeze(&engine, &table);
    (engine, table)
}

fn settle(engine: &Engine, table: &Table) {
    merge_frozen::tests::settle(engine, table).expect("nothing is lost");
}

/// The ledger learns of a memtable that no read view has: it agrees to none from now on.
fn break_ledger(table: &Table, first_seq: SeqNo) {
    table.edit().ledger_mut().add(&Memtable::new(first_seq));
}

fn assert_stopped<T: std::fmt::Debug>(asked: Result<T>, why: &str) {
    let error = asked.expect_err("the table has stopped");
    assert_eq!(error.kind(), Kind::Poisoned, "{error}");
    let text = error.to_string();
    for part in ["table \"default\"", why, "background work on the table has stopped", "reopen it"] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

fn assert_all_stopped(engine: &Arc<Engine>, table: &Arc<Table>, why: &str) {
    assert_stopped(engine.flush(), why);
    assert_stopped(engine.wait_until_quiescent(), why);
    assert_stopped(engine.flush_to_run(table), why);
    assert_stopped(engine.compact_range(table, &Bounds::all()), why);
    assert_stopped(engine.compact_level(table, 1), why);
    assert_stopped(engine.drop_extents(table, &Bounds::all()), why);
    assert_stopped(engine.begin_load(table).map(drop), why);
    let file = IngestFile { table: table.clone(), path: "/is/not/opened".into() };
    assert_stopped(engine.ingest(&[file], IngestOptions::default()), why);
    let errors = engine.background_errors();
    assert!(errors.iter().any(|finding| finding.table.as_deref() == Some("default")), "{errors:?}");
}

fn length(engine: &Engine, table: &str, key: &str) -> Option<usize> {
    let table = engine.catalog().require(table).expect("is there");
    let mut value = Vec::new();
    let is_there = engine.get(&table, key.as_bytes(), ReadMode::default(), &mut value).expect("reads");
    is_there.then_some(value.len())
}

fn open_at(disk: &MemDisk, path: &str, journal: JournalMode) -> Arc<Engine> {
    let options = Options { memory_bytes: 16 << 20, journal, ..Options::default() };
    Engine::open_on(Arc::new(disk.clone()), Path::new(path), &options, Env::real()).expect("opens")
}

/// The default table in the manifest. An edit that names the table makes a new one, even if it says the same.
fn listed(engine: &Engine) -> Arc<terrane_levels::Table> {
    engine.manifest.state().tables[&TableId::DEFAULT].clone()
}

fn assert_has_rows(engine: &Engine) {
    for (key, bytes) in ROWS {
        assert_eq!(length(engine, "default", key), Some(bytes), "{key}");
    }
}

/// Closes and opens again: the rows are there, and can be flushed.
fn assert_reopens(disk: &MemDisk, engine: &Engine) {
    engine.close().expect("closes");
    let (engine, table) = open_on(Arc::new(disk.clone()));
    assert_has_rows(&engine);
    engine.set_background_paused(false);
    engine.flush().expect("flushes");
    engine.wait_until_quiescent().expect("nothing fails");
    assert!(table.pinned().memory_is_empty());
    assert_has_rows(&engine);
    engine.close().expect("closes");
}

/// As a run, and by ranges.
#[test]
fn an_edit_that_the_view_refused_is_appended_once() {
    for is_run in [true, false] {
        let disk = MemDisk::new();
        let (engine, table) = filled(&disk);
        settle(&engine, &table);
        let mut load = engine.begin_load(&table).expect("nothing has stopped");
        load.put(b"z", b"1").expect("is the first");
        break_ledger(&table, FAR);
        // Not before: workers write runs while the background is paused, too.
        if is_run {
            table.want_run(engine.visible());
        }
        engine.set_background_paused(false);
        let why = "the manifest has the result, and reads go on without it";
        assert_stopped(engine.flush(), why);
        let listed = listed(&engine);
        (0..ASKED).for_each(|_| assert_stopped(engine.flush(), why));
        // Each edit of a dump adds a run.
        assert_eq!(listed.extents.runs.len(), usize::from(is_run));
        assert_eq!(engine.manifest.state().flushed(&listed), table.pinned().generations[0].last_seq());
        assert!(table.pinned().tree.runs.is_empty(), "reads go on without it");
        // A load that began before.
        assert_stopped(load.finish(), why);
        put(&engine, "e", 40);
        assert_all_stopped(&engine, &table, why);
        assert!(Arc::ptr_eq(&listed, &self::listed(&engine)), "no further edit names the table");
        assert_eq!(engine.stats().background_errors, 1, "no second attempt was made");
        assert_has_rows(&engine);
        // A copy has what the next opening has.
        engine.checkpoint(Path::new("/copy")).expect("names no table");
        assert!(Arc::ptr_eq(&listed, &self::listed(&engine)), "no further edit names the table");
        let copy = open_at(&disk, "/copy", JournalMode::File);
        assert_has_rows(&copy);
        copy.close().expect("closes");
        assert_reopens(&disk, &engine);
    }
}

/// Extents that come in.
#[test]
fn a_load_that_the_view_refused_is_there_after_the_next_opening() {
    let disk = MemDisk::new();
    let (engine, table) = filled(&disk);
    let mut load = engine.begin_load(&table).expect("nothing has stopped");
    load.put(b"z", b"1").expect("is the first");
    break_ledger(&table, FAR);
    let why = "the manifest has the result, and reads go on without it";
    assert_stopped(load.finish(), why);
    let listed = listed(&engine);
    engine.set_background_paused(false);
    assert_all_stopped(&engine, &table, why);
    assert!(Arc::ptr_eq(&listed, &self::listed(&engine)), "no further edit names the table");
    assert_eq!(length(&engine, "default", "z"), None);
    engine.close().expect("closes");
    let (engine, _) = open_on(Arc::new(disk));
    assert_eq!(length(&engine, "default", "z"), Some(1));
    assert_has_rows(&engine);
    engine.close().expect("closes");
}

/// Only a flush keeps rows then: a table that has stopped must not keep others from theirs.
#[test]
fn without_a_journal_closing_ends_and_flushes_the_other_tables() {
    let disk = MemDisk::new();
    let engine = open_at(&disk, "/db", JournalMode::Off);
    let table = engine.catalog().require("default").expect("is there");
    let other = engine.create_table("other", &[]).expect("is made");
    put(&engine, "a", 10);
    engine.put(other.id, b"k", b"1", false).expect("commits");
    break_ledger(&table, FAR);
    assert_stopped(engine.close(), "nothing was changed");
    let engine = open_at(&disk, "/db", JournalMode::Off);
    assert_eq!(length(&engine, "other", "k"), Some(1));
    engine.close().expect("closes");
}

/// On the way into a generation, and at the end of a flush.
#[test]
fn a_step_that_was_refused_before_its_edit_is_not_tried_again() {
    for is_flush in [false, true] {
        let disk = MemDisk::new();
        let (engine, table) = filled(&disk);
        if is_flush {
            settle(&engine, &table);
        }
        // The ledger gets a memtable that the flush would record but does not have, or one that no read view
        // has.
        break_ledger(&table, if is_flush { SeqNo(1) } else { FAR });
        let (before, live) = (listed(&engine), engine.stats().store_live_bytes);
        engine.set_background_paused(false);
        (0..ASKED).for_each(|_| assert_stopped(engine.flush(), "nothing was changed"));
        assert_all_stopped(&engine, &table, "nothing was changed");
        assert!(Arc::ptr_eq(&before, &listed(&engine)), "no edit names the table");
        assert_eq!(engine.stats().store_live_bytes, live, "what was written was given back");
        assert_eq!(engine.stats().background_errors, 1, "no second attempt was made");
        assert_has_rows(&engine);
        assert_reopens(&disk, &engine);
    }
}

#[test]
fn other_tables_go_on_and_no_segment_is_trimmed() {
    let disk = MemDisk::new();
    let (engine, table) = filled(&disk);
    settle(&engine, &table);
    break_ledger(&table, FAR);
    let other = engine.catalog().require("other").expect("is there");
    engine.set_background_paused(false);
    assert_stopped(engine.flush(), "the manifest has the result");
    // More than one segment.
    for key in [b"k", b"l"] {
        engine.put(other.id, key, &[7; LARGE], false).expect("commits");
    }
    let segments = engine.journal.complete_segments();
    assert!(!segments.is_empty());
    assert_stopped(engine.flush(), "the manifest has the result");
    assert!(
        other.pinned().memory_is_empty(),
        "the caller that waits for both gets the error once the other one is flushed"
    );
    let trimmed = || engine.stats().segments_trimmed;
    let before = trimmed();
    engine.trim_segments().expect("there is nothing to trim");
    assert_eq!(trimmed(), before);
    engine.compact_range(&other, &Bounds::all()).expect("merges");
    assert_eq!(length(&engine, "other", "k"), Some(LARGE));
    assert_reopens(&disk, &engine);
}

#[test]
fn writers_fail_with_the_reason_once_memory_is_full() {
    let disk = MemDisk::new();
    let (engine, table) = filled(&disk);
    settle(&engine, &table);
    break_ledger(&table, FAR);
    engine.set_background_paused(false);
    assert_stopped(engine.flush(), "the manifest has the result");
    let write = |number: usize| {
        let key = format!("large{number:04}");
        engine.put(TableId::DEFAULT, key.as_bytes(), &[7; LARGE], false)
    };
    let (count, refused) = (0..LARGE_MAX)
        .find_map(|number| Some((number, write(number).err()?)))
        .expect("memory is full before");
    assert!(count > 0);
    assert_stopped(Err::<(), _>(refused), "write memory is full");
    assert_has_rows(&engine);
    engine.close().expect("closes");
    let (engine, _) = open_on(Arc::new(disk));
    assert_has_rows(&engine);
    for number in 0..count {
        assert_eq!(length(&engine, "default", &format!("large{number:04}")), Some(LARGE));
    }
    engine.close().expect("closes");
}

#[test]
fn a_table_that_has_stopped_can_be_dropped() {
    let disk = MemDisk::new();
    let (engine, table) = filled(&disk);
    let other = engine.catalog().require("other").expect("is there");
    engine.set_background_paused(false);
    for value in [b"1", b"2"] {
        engine.put(other.id, b"k", value, false).expect("commits");
        if value == b"2" {
            freeze(&engine, &other);
            break_ledger(&other, FAR);
        }
        assert_eq!(engine.flush().is_err(), value == b"2");
    }
    engine.drop_table("other").expect("is dropped");
    engine.flush().expect("nothing has stopped");
    engine.wait_until_quiescent().expect("nothing fails");
    assert!(engine.background_errors().is_empty() && table.pinned().memory_is_empty());
    assert_reopens(&disk, &engine);
}
