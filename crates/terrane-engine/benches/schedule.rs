//! Costs of steps of the scheduler for their worker, by tables that exist: processor time of the steps alone.
//!
//! Each table has a record in memory, and no work is due:
//! * idle: the worker looks for work and finds none;
//! * flush: of all steps from the request to flush one table until that table is flushed, the mean.
//!
//! One table has records in memory, the others are empty:
//! * trim: all steps of a flush of that table into an overflow run, behind which journal segments are
//!   trimmed.
//!
//! `cargo bench -p terrane-engine --bench schedule`; with `--test` once, with few tables. Prints nanoseconds:
//! of steps the least of the rounds, of trims the mean; and the bytes that the manifest takes for a trim.
//! With `--trims TABLES` it does 20 trims alone, for a count of instructions by callgrind with
//! `--toggle-collect='*trim_segments*'`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark may panic and prints its figures")]

use std::path::Path;
use std::sync::Arc;

use terrane_base::TableId;
use terrane_base::env::{Env, SteppedSpawn};
use terrane_base::options::Options;
use terrane_device::MemDisk;
use terrane_engine::Engine;

/// Bytes of the segments of a database with empty tables: one value fills most of one.
const SEGMENT_BYTES: u64 = 64 << 10;

/// A database with so many empty tables and one worker, which runs when the benchmark says so.
fn open_empty(tables: u32, options: &Options) -> (Arc<SteppedSpawn>, Arc<Engine>) {
    let steps = Arc::new(SteppedSpawn::default());
    let options = Options { memory_bytes: 4 << 30, background_threads: 1, ..options.clone() };
    let env = Env { spawn: steps.clone(), ..Env::real() };
    let engine = Engine::open_on(Arc::new(MemDisk::new()), Path::new("/db"), &options, env).unwrap();
    (1..tables).for_each(|name| drop(engine.create_table(&name.to_string(), &[]).unwrap()));
    (steps, engine)
}

/// The same with a record in each table.
fn open(tables: u32) -> (Arc<SteppedSpawn>, Arc<Engine>) {
    let (steps, engine) = open_empty(tables, &Options::default());
    for table in engine.catalog().all() {
        engine.put(table.id, b"key", b"value", false).unwrap();
    }
    (0..100).for_each(|_| {
        let _ = steps.run(|_| true);
    });
    (steps, engine)
}

/// Runs `work` and returns the nanoseconds for each of so many steps.
fn measured(work: impl FnOnce() -> u32) -> f64 {
    let start = own_nanos();
    let steps = work();
    (own_nanos() - start) as f64 / f64::from(steps)
}

/// Nanoseconds that this thread has run on a processor.
fn own_nanos() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

fn idle(steps: &SteppedSpawn, count: u32) -> f64 {
    measured(|| {
        (0..count).for_each(|_| {
            let _ = steps.run(|name| name == "terrane-0");
        });
        count
    })
}

fn flush(steps: &SteppedSpawn, engine: &Engine) -> f64 {
    engine.put(TableId::DEFAULT, b"key", b"value", false).unwrap();
    let table = engine.catalog().require("default").unwrap();
    engine.begin_flush(&[table]).unwrap();
    measured(|| {
        let mut count = 1;
        while steps.run(|name| name == "terrane-0") {
            count += 1;
        }
        count
    })
}

/// Flushes so often, and has segments trimmed each time. Nanoseconds and bytes of the manifest.
fn trim(engine: &Engine, count: u32) -> (f64, u64) {
    let table = engine.catalog().require("default").unwrap();
    let value = vec![7; SEGMENT_BYTES as usize * 3 / 4];
    let mut nanos = 0.0;
    let written = || engine.stats().device_manifest_bytes_written;
    let bytes_before = written();
    for _ in 0..count {
        let before = engine.stats().segments_trimmed;
        (0..3).for_each(|_| engine.put(TableId::DEFAULT, b"key", &value, false).unwrap());
        nanos += measured(|| {
            engine.flush_to_run(&table).unwrap();
            count
        });
        assert!(engine.stats().segments_trimmed > before, "segments are trimmed");
    }
    (nanos, (written() - bytes_before) / u64::from(count))
}

/// A database with empty tables and small segments, whose background waits.
fn open_to_trim(tables: u32) -> Arc<Engine> {
    let options = Options { segment_bytes: SEGMENT_BYTES, ..Options::default() };
    let (_steps, engine) = open_empty(tables, &options);
    engine.set_background_paused(true);
    engine
}

fn main() {
    let is_test = std::env::args().any(|arg| arg == "--test");
    if let Some(tables) = std::env::args().skip_while(|arg| arg != "--trims").nth(1) {
        let engine = open_to_trim(tables.parse().unwrap());
        let (_, bytes) = trim(&engine, 20);
        println!("{tables} tables, {bytes} bytes of the manifest for a flush with its trim");
        return;
    }
    let (tables, rounds): (&[u32], _) = if is_test { (&[1, 20], 1) } else { (&[1, 1_000, 10_000], 5) };
    println!("| tables | ns of an idle step | ns of a step of a flush | ns of a trim | bytes of a trim |");
    println!("|---|---|---|---|---|");
    for tables in tables {
        let (steps, engine) = open(*tables);
        // The system counts the time of a thread in ticks: a round takes many.
        let mut count = 10;
        while !is_test && idle(&steps, count) * f64::from(count) < 50e6 {
            count *= 2;
        }
        let idle = (0..rounds).map(|_| idle(&steps, count)).fold(f64::MAX, f64::min);
        let flush = (0..rounds).map(|_| flush(&steps, &engine)).fold(f64::MAX, f64::min);
        engine.close().unwrap();
        let engine = open_to_trim(*tables);
        let (trim, bytes) = trim(&engine, if is_test { 1 } else { 500 });
        println!("| {tables} | {idle:.0} | {flush:.0} | {trim:.0} | {bytes} |");
        engine.close().unwrap();
    }
}
