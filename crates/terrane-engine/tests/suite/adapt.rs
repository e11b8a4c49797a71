//! The shape follows the load: a tree that is mostly read is merged into one sorted run, and writes stop
//! that. Extents that are read often count as hot, also after they were rewritten.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "a test may panic, and look at the clock")]

use crate::support;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use support::{DIR, get, open, small_options};
use terrane_base::Rng;
use terrane_base::env::{Env, SleepClock};
use terrane_base::options::{AdaptiveShape, Compression, Experiments, Options};
use terrane_device::MemDisk;
use terrane_engine::{Bounds, Engine, Table, TableShape};

/// Not figures: what has not happened by then, and after as many looks, never does. A machine may stand
/// still, or be slow.
const FOR_EVER: Duration = Duration::from_secs(300);
const LOOKS_MIN: u32 = 500;
const ROWS: u64 = 600;

fn key(number: u64) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

fn value(number: u64, round: u64) -> Vec<u8> {
    format!("{round} of {number} {:0100}", 7).into_bytes()
}

fn put(engine: &Engine, table: &Table, numbers: impl Iterator<Item = u64>, round: u64) {
    for number in numbers {
        engine.put(table.id, &key(number), &value(number, round), false).unwrap();
    }
}

fn options(policy: AdaptiveShape) -> Options {
    let experiments = Experiments { hot_cold: true, ..Experiments::default() };
    Options { adaptive_shape: policy, experiments, ..small_options() }
}

/// A tree with rows in memory, in level 1 and in level 2.
fn layered(options: &Options) -> (Arc<Engine>, Arc<Table>) {
    let engine = open(MemDisk::new(), options).unwrap();
    let table = engine.catalog().require("default").unwrap();
    put(&engine, &table, 0..ROWS, 1);
    engine.flush().unwrap();
    engine.compact_level(&table, 1).unwrap();
    put(&engine, &table, (0..ROWS).step_by(3), 2);
    engine.flush().unwrap();
    put(&engine, &table, (0..ROWS).step_by(7), 3);
    (engine, table)
}

fn expected(number: u64) -> Vec<u8> {
    let round = if number.is_multiple_of(7) {
        3
    } else if number.is_multiple_of(3) {
        2
    } else {
        1
    };
    value(number, round)
}

fn shape(engine: &Engine) -> TableShape {
    engine.shape().tables.remove(0)
}

/// Does `work` until `done` says so.
fn until(engine: &Engine, mut work: impl FnMut(), done: impl Fn(&TableShape) -> bool) -> TableShape {
    let (start, mut looks) = (Instant::now(), 0);
    loop {
        let shape = shape(engine);
        if done(&shape) {
            return shape;
        }
        assert!(looks < LOOKS_MIN || start.elapsed() < FOR_EVER, "it never comes to that:\n{shape}");
        looks += 1;
        work();
    }
}

#[test]
fn reads_bring_the_tree_to_one_run_and_writes_end_it() {
    let (engine, table) = layered(&options(AdaptiveShape::Eager));
    let read_all = || {
        for number in 0..ROWS {
            assert_eq!(get(&engine, &table, &key(number)).unwrap(), Some(expected(number)), "key {number}");
        }
    };
    let levels = |shape: &TableShape| shape.levels.iter().filter(|level| level.extents > 0).count();
    let is_one_run = |shape: &TableShape| shape.sorted_runs() == 2 && shape.memtable_entries == 0;
    let read = until(&engine, read_all, |shape| is_one_run(shape) && shape.is_read_heavy);
    assert_eq!((levels(&read), read.runs.len()), (1, 0), "{read}");
    assert!(engine.stats().adaptive_jobs + engine.stats().adaptive_flushes > 0);
    read_all();
    let mut round = 4;
    let write_all = || {
        put(&engine, &table, 0..ROWS, round);
        round += 1;
    };
    until(&engine, write_all, |shape| !shape.is_read_heavy);
    assert!(engine.stats().adaptive_switches >= 2);
    engine.wait_until_quiescent().unwrap();
    for number in 0..ROWS {
        let found = get(&engine, &table, &key(number)).unwrap().unwrap();
        assert_eq!(found, value(number, round - 1));
    }
    engine.close().unwrap();
}

#[test]
fn writers_stop_a_merge_that_they_do_not_need() {
    let disk = MemDisk::new();
    let big = Options {
        memory_bytes: 64 << 20,
        write_memory_bytes: 32 << 20,
        memtable_bytes: 16 << 20,
        level_base_bytes: 1 << 20,
        // Other than in the last level: the merge cannot take blocks over as they are, which would be done at
        // once.
        compression: Compression::None,
        ..Options::default()
    };
    let mut numbers = Rng::new(1);
    let mut noise = |bytes: usize| -> Vec<u8> { (0..bytes).map(|_| numbers.next_u64() as u8).collect() };
    let engine = open(disk.clone(), &big).unwrap();
    let table = engine.catalog().require("default").unwrap();
    // Level 2 and, within its base, level 1. Nothing sinks by itself meanwhile: rows of level 1 that level 2
    // does not have would leave a merge with nothing to do but to link extents.
    engine.set_background_paused(true);
    for step in [1, 20] {
        for number in (0..ROWS).step_by(step) {
            engine.put(table.id, &key(number), &noise(14 << 10), false).unwrap();
        }
        engine.flush_to_run(&table).unwrap();
        engine.compact_level(&table, 0).unwrap();
        if step == 1 {
            engine.compact_level(&table, 1).unwrap();
        }
    }
    let before = shape(&engine);
    assert_eq!(before.sorted_runs(), 3, "{before}");
    engine.close().unwrap();
    // So slow that every check finds the merge of 8 MiB running.
    let slow = Options { adaptive_shape: AdaptiveShape::Eager, io_bytes_per_second: 1 << 20, ..big };
    let engine = open(disk, &slow).unwrap();
    let table = engine.catalog().require("default").unwrap();
    let adapts =
        |engine: &Engine| engine.progress().iter().any(|work| work.work == terrane_engine::JobKind::Adapt);
    let read = || {
        for number in 0..ROWS {
            assert!(get(&engine, &table, &key(number)).unwrap().is_some());
        }
    };
    // It has begun to read: given out, but stopped before its thread had a turn, it would have done nothing
    // that counts.
    let has_read = || {
        engine.progress().iter().any(|work| work.work == terrane_engine::JobKind::Adapt && work.bytes_in > 0)
    };
    until(&engine, read, |_| has_read());
    let write = || {
        for _ in 0..64 {
            engine.put(table.id, b"another", &noise(1 << 10), false).unwrap();
        }
    };
    until(&engine, write, |_| !adapts(&engine));
    assert_eq!(engine.stats().adaptive_jobs, 0, "it did not end by being done");
    assert!(engine.stats().compaction_bytes_read > 0, "what it did counts all the same");
    assert_eq!(shape(&engine).levels, before.levels, "nothing changed by it");
    engine.close().unwrap();
}

#[test]
fn scans_alone_are_reads_too() {
    let (engine, table) = layered(&options(AdaptiveShape::Eager));
    let scan = || {
        let rows = engine.range(&table, Bounds::all(), engine.visible()).take(5);
        let rows: Vec<_> = rows.map(Result::unwrap).collect();
        assert_eq!(rows[4], (key(4), expected(4)));
    };
    until(&engine, scan, |shape| shape.sorted_runs() == 2 && shape.memtable_entries == 0);
    engine.close().unwrap();
}

#[test]
fn hot_extents_stay_hot_when_they_are_rewritten() {
    let options = Options {
        // So much that no writer waits for memory.
        memory_bytes: 64 << 20,
        write_memory_bytes: 32 << 20,
        level_base_bytes: 1 << 20,
        compression_last: Compression::None,
        // Large extents, with the values in them.
        value_separation_bytes: 0,
        ..options(AdaptiveShape::Off)
    };
    // Heat fades by half in seconds, in which a busy machine may do little.
    let env = Env { clock: Arc::new(SleepClock::default()), ..Env::real() };
    let engine = Engine::open_on(Arc::new(MemDisk::new()), Path::new(DIR), &options, env).unwrap();
    let table = engine.catalog().require("default").unwrap();
    // Values that do not fit into one extent together, brought into one level, where extents lie side by
    // side.
    let write_all = || {
        for number in 0..60 {
            engine.put(table.id, &key(number), &vec![number as u8; 100 << 10], false).unwrap();
        }
        engine.compact_range(&table, &Bounds::all()).unwrap();
    };
    write_all();
    // Whether an extent may hold the key that is read, and its heat.
    let heats = || -> Vec<(bool, u32)> {
        let tree = table.pinned().tree;
        let extents = tree.places().flat_map(|(_, level)| level.iter());
        // At moment 0 nothing has faded since whatever moment it was counted at.
        extents.map(|extent| (extent.meta.smallest <= key(0), extent.heat.at(0))).collect()
    };
    assert!(heats().iter().any(|(is_read, _)| !is_read) && heats().iter().all(|(_, heat)| *heat == 0));
    for _ in 0..10_000 {
        assert!(get(&engine, &table, &key(0)).unwrap().is_some());
    }
    let is_hot = |heats: &[(bool, u32)]| {
        let most = |of: bool| heats.iter().filter(|(is_read, _)| *is_read == of).map(|(_, heat)| *heat).max();
        most(true).is_some_and(|hot| hot > 50 && most(false).is_none_or(|other| other < hot / 4))
    };
    let before = heats();
    assert!(is_hot(&before), "one in 64 of 10,000 reads: {before:?}");
    write_all();
    let after = heats();
    assert!(is_hot(&after), "{before:?} became {after:?}");
    engine.close().unwrap();
}
