//! Costs of a put of 100 bytes for its writer, by tables that exist and by threads that write: processor time
//! of the writers alone, of whatever else runs, in rounds that take turns. Every writer has a table of its
//! own as far as there are enough.
//!
//! `cargo bench -p terrane-engine --bench put`; with `--test` once, on little data. Prints nanoseconds for
//! each put, the least of the rounds, and the ratio to one table and one thread.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark may panic and prints its figures")]

use std::path::Path;
use std::sync::{Arc, Barrier};

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Batch, TableId};
use terrane_device::MemDisk;
use terrane_engine::Engine;

const TABLES: [u32; 3] = [1, 1_000, 10_000];
const THREADS: [u32; 3] = [1, 8, 64];

/// Rounds, and puts in each of them over all threads.
fn sizes() -> (u32, u32) {
    if std::env::args().any(|arg| arg == "--test") { (1, 640) } else { (5, 64_000) }
}

/// Nanoseconds that this thread has run on a processor.
fn own_nanos() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

/// A database with so many tables whose background rests.
fn open(tables: u32) -> Arc<Engine> {
    let options = Options { memory_bytes: 4 << 30, ..Options::default() };
    let engine = Engine::open_on(Arc::new(MemDisk::new()), Path::new("/db"), &options, Env::real()).unwrap();
    engine.set_background_paused(true);
    (1..tables).for_each(|name| drop(engine.create_table(&name.to_string(), &[]).unwrap()));
    engine
}

/// Puts by one thread; returns the processor time that they took.
fn put(engine: &Engine, table: TableId, (first, count): (u32, u32), ready: &Barrier) -> u64 {
    let value = [7; 100];
    let mut batch = Batch::new();
    ready.wait();
    let start = own_nanos();
    for number in first..first + count {
        batch.clear();
        batch.put(table, &u64::from(number.wrapping_mul(2_654_435_769)).to_be_bytes(), &value).unwrap();
        engine.write(&batch, false).unwrap();
    }
    own_nanos() - start
}

/// Nanoseconds of writers for each put.
fn round(engine: &Engine, round: u32, threads: u32, puts: u32) -> f64 {
    let ids: Vec<_> = engine.catalog().all().iter().map(|table| table.id).collect();
    let (ready, each) = (Barrier::new(threads as usize), puts / threads);
    let spent: u64 = std::thread::scope(|scope| {
        let writer = |thread: u32| {
            let (table, ready) = (ids[thread as usize % ids.len()], &ready);
            let first = round * puts + thread * each;
            scope.spawn(move || put(engine, table, (first, each), ready))
        };
        let writers: Vec<_> = (0..threads).map(writer).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    spent as f64 / f64::from(each * threads)
}

fn main() {
    let (rounds, puts) = sizes();
    let engines = TABLES.map(open);
    let mut least = [[f64::MAX; THREADS.len()]; TABLES.len()];
    for number in 0..rounds {
        for (engine, least) in engines.iter().zip(&mut least) {
            for (threads, least) in THREADS.iter().zip(least) {
                *least = least.min(round(engine, number, *threads, puts));
            }
        }
    }
    println!("| tables | threads | ns of writers for each put | ratio |\n|---|---|---|---|");
    let base = least[0][0];
    for (tables, least) in TABLES.iter().zip(least) {
        for (threads, nanos) in THREADS.iter().zip(least) {
            println!("| {tables} | {threads} | {nanos:.0} | {:.2} |", nanos / base);
        }
    }
    engines.iter().for_each(|engine| engine.close().unwrap());
}
