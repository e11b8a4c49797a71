//! Defects that the simulator found, each as the shortest history that shows it.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test may panic, and leave a thread behind that waits for ever"
)]

use crate::support;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;

use support::{awaited, get, open, small_options, until};

use terrane_base::Kind;
use terrane_base::options::{JournalMode, Options};
use terrane_device::{Call, Failure, Fault, FaultyDisk, MemDisk};

#[test]
fn a_paused_database_without_a_journal_is_whole_after_its_close() {
    let disk = MemDisk::new();
    let options = Options { journal: JournalMode::Off, ..small_options() };
    let engine = open(disk.clone(), &options).unwrap();
    let table = engine.catalog().require("default").unwrap();
    engine.put(table.id, b"key", b"value", false).unwrap();
    engine.set_background_paused(true);
    engine.close().unwrap();
    let engine = open(disk, &options).unwrap();
    let table = engine.catalog().require("default").unwrap();
    assert_eq!(get(&engine, &table, b"key").unwrap().as_deref(), Some(&b"value"[..]));
    engine.close().unwrap();
}

/// A rotation that fails leaves a segment behind the active one that was too small for the batch.
#[test]
fn a_sync_after_a_failed_rotation_makes_the_active_segment_durable() {
    let inner = MemDisk::new();
    let disk = FaultyDisk::new(Arc::new(inner.clone()));
    let options = Options { segment_bytes: 256 << 10, ..small_options() };
    let engine = open(disk.clone(), &options).unwrap();
    let table = engine.catalog().require("default").unwrap();
    engine.put(table.id, b"key", b"value", false).unwrap();
    // Until the next segment is ready, too: it is prepared when a part of the first one is used, and twice as
    // long.
    engine.put(table.id, b"filler", &[1; 20_000], false).unwrap();
    until("a second segment", || engine.stats().memory_bytes >= 192 << 10);
    disk.fail(Fault::new(Call::Allocate, Failure::Full).on(".seg").lasting());
    let refused = engine.put(table.id, b"large", &[1; 300_000], false).unwrap_err();
    assert_eq!(refused.kind(), Kind::Full, "{refused}");
    engine.sync().unwrap();
    for seed in 0..50 {
        assert_value(&inner.crash(seed), &format!("seed {seed}"));
    }
    disk.heal();
    engine.close().unwrap();
}

fn assert_value(disk: &MemDisk, place: &str) {
    let engine = open(disk.clone(), &small_options()).unwrap_or_else(|error| panic!("{place}: {error}"));
    let table = engine.catalog().require("default").unwrap();
    let found = get(&engine, &table, b"key").unwrap();
    assert_eq!(found.as_deref(), Some(&b"value"[..]), "{place}");
    engine.close().unwrap();
}

/// A sync failed in an earlier life, the system took the pages for clean, and the process died.
#[test]
fn recovered_commits_are_durable_even_if_an_earlier_sync_failed() {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &small_options()).unwrap();
    let table = engine.catalog().require("default").unwrap();
    engine.put(table.id, b"key", b"value", false).unwrap();
    let killed = disk.kill();
    engine.close().unwrap();
    killed.fail_sync(Path::new("/db/journal/000001.seg"));
    let engine = open(killed.clone(), &small_options()).unwrap();
    for seed in 0..50 {
        assert_value(&killed.crash(seed), &format!("seed {seed}"));
    }
    engine.close().unwrap();
}

/// As above, but the sync that failed was that of the mark which a close writes behind the last record.
#[test]
fn a_mark_that_a_close_could_not_make_durable_is_written_again() {
    let inner = MemDisk::new();
    let disk = FaultyDisk::new(Arc::new(inner.clone()));
    let engine = open(disk.clone(), &small_options()).unwrap();
    let table = engine.catalog().require("default").unwrap();
    engine.put(table.id, b"key", b"value", false).unwrap();
    disk.fail(Fault::new(Call::Sync, Failure::Broken).on("000001.seg").after(1).lasting());
    assert!(engine.close().is_err(), "the mark was not made durable");
    inner.fail_sync(Path::new("/db/journal/000001.seg"));
    let engine = open(inner.clone(), &small_options()).unwrap();
    for seed in 0..50 {
        assert_value(&inner.crash(seed), &format!("seed {seed}"));
    }
    engine.close().unwrap();
}

/// The flush itself was done: what failed was the removal of a segment's file after it.
#[test]
fn a_failure_behind_the_last_step_of_a_flush_blocks_no_waiter() {
    let disk = FaultyDisk::new(Arc::new(MemDisk::new()));
    let engine = open(disk.clone(), &small_options()).unwrap();
    let table = engine.catalog().require("default").unwrap();
    // The first value alone is more than a memtable may be, and its flush must not be done before the fault
    // is there.
    engine.set_background_paused(true);
    // A segment of its own size is not kept for reuse: its file is removed.
    engine.put(table.id, b"large", &[1; 80_000], false).unwrap();
    engine.put(table.id, b"key", &[2; 60_000], false).unwrap();
    disk.fail(Fault::new(Call::Remove, Failure::Broken).on(".seg"));
    engine.set_background_paused(false);
    let ((done, is_done), waiting) = (channel(), engine.clone());
    std::thread::spawn(move || done.send(waiting.flush().and_then(|()| waiting.wait_until_quiescent())));
    awaited(&is_done).expect("it waits for a flush that is not due any more").unwrap();
    assert!(engine.stats().background_errors > 0, "the fault was met");
    assert!(get(&engine, &table, b"large").unwrap() == Some(vec![1; 80_000]));
    assert!(get(&engine, &table, b"key").unwrap() == Some(vec![2; 60_000]));
    engine.close().unwrap();
}
