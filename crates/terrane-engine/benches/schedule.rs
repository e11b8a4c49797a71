//! What one step of the scheduler costs its worker, by tables that exist: processor time of the step alone.
//! Each table has a record in memory, so that none is empty, and no work is due.
//!
//! * idle: the worker looks for work and finds none;
//! * flush: of all steps from the request to flush one table until that table is flushed, the mean.
//!
//! `cargo bench -p terrane-engine --bench schedule`; with `--test` once, with few tables. Prints nanoseconds
//! for each step, the least of the rounds.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark may panic and prints its figures")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::Result;
use terrane_base::env::{Env, Joiner, Spawn, Step, Stepper};
use terrane_base::options::Options;
use terrane_base::sync::Mutex;
use terrane_base::{Error, TableId};
use terrane_device::MemDisk;
use terrane_engine::Engine;

type Loop = (String, Box<dyn FnMut() -> Step + Send>);

/// Background loops as steps on the thread of the benchmark.
#[derive(Default)]
struct Steps(Mutex<Vec<Loop>>);

impl std::fmt::Debug for Steps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Steps")
    }
}

impl Spawn for Steps {
    fn spawn(&self, name: &str, _body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Joiner>> {
        Err(Error::invalid(format!("there are no threads: {name}")))
    }

    fn parallelism(&self) -> usize {
        1
    }

    fn stepper(&self) -> Option<&dyn Stepper> {
        Some(self)
    }
}

impl Stepper for Steps {
    fn add(&self, name: &str, step: Box<dyn FnMut() -> Step + Send>) {
        self.0.lock().push((name.to_owned(), step));
    }

    fn pass(&self, _patience: Duration) {
        self.run(|_| true);
    }
}

impl Steps {
    /// Runs one step of each loop with such a name; says whether any did something.
    fn run(&self, is_meant: impl Fn(&str) -> bool) -> bool {
        let mut loops = std::mem::take(&mut *self.0.lock());
        let meant = loops.iter_mut().filter(|(name, _)| is_meant(name));
        let steps: Vec<Step> = meant.map(|(_, step)| step()).collect();
        self.0.lock().append(&mut loops);
        steps.contains(&Step::Worked)
    }
}

/// A database with so many tables and one worker, which runs when the benchmark says so.
fn open(tables: u32) -> (Arc<Steps>, Arc<Engine>) {
    let steps = Arc::new(Steps::default());
    let options = Options { memory_bytes: 4 << 30, background_threads: 1, ..Options::default() };
    let env = Env { spawn: steps.clone(), ..Env::real() };
    let engine = Engine::open_on(Arc::new(MemDisk::new()), Path::new("/db"), &options, env).unwrap();
    (1..tables).for_each(|name| drop(engine.create_table(&name.to_string(), &[]).unwrap()));
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

fn idle(steps: &Steps, count: u32) -> f64 {
    measured(|| {
        (0..count).for_each(|_| {
            let _ = steps.run(|name| name == "terrane-0");
        });
        count
    })
}

fn flush(steps: &Steps, engine: &Engine) -> f64 {
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

fn main() {
    let is_test = std::env::args().any(|arg| arg == "--test");
    let (tables, rounds): (&[u32], _) = if is_test { (&[1, 20], 1) } else { (&[1, 1_000, 10_000], 5) };
    println!("| tables | ns of an idle step | ns of a step of a flush |\n|---|---|---|");
    for tables in tables {
        let (steps, engine) = open(*tables);
        // The system counts the time of a thread in ticks: a round takes many.
        let mut count = 10;
        while !is_test && idle(&steps, count) * f64::from(count) < 50e6 {
            count *= 2;
        }
        let idle = (0..rounds).map(|_| idle(&steps, count)).fold(f64::MAX, f64::min);
        let flush = (0..rounds).map(|_| flush(&steps, &engine)).fold(f64::MAX, f64::min);
        println!("| {tables} | {idle:.0} | {flush:.0} |");
        engine.close().unwrap();
    }
}
