//! The driver on the engine that does nothing and on Terrane: counts, limits, open loop, verification.
#![allow(clippy::disallowed_methods, clippy::type_complexity, clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use terrane_bench::Error;
use terrane_bench::drive::{Driver, Observer};
use terrane_bench::engine::{self, Control, Engine, EngineOptions, Session, Visit, Write};
use terrane_bench::plan::file::parse;
use terrane_bench::plan::{Plan, Run, Step};

struct NeverInterrupts;

impl Observer for NeverInterrupts {
    fn progress(&self, _operations: u64, _elapsed: Duration, _total: Option<u64>) -> bool {
        true
    }
}

struct InterruptsAtOnce;

impl Observer for InterruptsAtOnce {
    fn progress(&self, _operations: u64, _elapsed: Duration, _total: Option<u64>) -> bool {
        false
    }
}

fn plan(keys: u64, steps: &str) -> Plan {
    let text = format!(
        "engines = [\"terrane\"]\n[data]\nkeys = {keys}\nvalue = \"uniform(20,200)\"\n[[scenario]]\nsteps = [{steps}]\n"
    );
    parse(&text).unwrap().resolve().unwrap()
}

fn runs(plan: &Plan) -> Vec<Run> {
    let run = |step: &Step| match step {
        Step::Run(run) => Some((**run).clone()),
        _ => None,
    };
    plan.scenarios[0].steps.iter().filter_map(run).collect()
}

fn options(directory: &std::path::Path) -> EngineOptions {
    EngineOptions {
        directory: directory.to_owned(),
        memory_bytes: 32 << 20,
        tables: 1,
        direct_io: false,
        background_threads: 0,
        records: 5000,
        data_bytes: 1 << 20,
        value_bytes_max: 200,
        level_fanout: 0,
        filter_bits_per_key: 10,
        options: BTreeMap::new(),
        library: None,
    }
}

fn open(name: &str) -> (tempfile::TempDir, Box<dyn Engine>) {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine::open(name, &options(directory.path())).unwrap();
    (directory, engine)
}

#[test]
fn every_workload_does_what_it_was_asked_and_reads_back_what_was_written() {
    let plan = plan(
        5000,
        r#"{ workload = "load", batch = 7, threads = 3 },
        { workload = "readrandom", operations = 3001, threads = 2, verify = true },
        { workload = "readmissing", operations = 500 },
        { workload = "multireadrandom", operations = 3200 },
        { workload = "ycsb_a", operations = 2000, verify = true },
        { workload = "ycsb_d", operations = 2000, threads = 2, verify = true },
        { workload = "ycsb_e", operations = 300 },
        { workload = "ycsb_f", operations = 500, verify = true },
        { workload = "readseq", operations = 12000 },
        { workload = "readwhilewriting", seconds = 0.3, verify = true },
        { workload = "readwhilescanning", operations = 1000 },
        { workload = "mixgraph", operations = 1000 },
        { workload = "transactions", operations = 900, threads = 3, transaction_keys = 5, verify = true },
        { workload = "deleterandom", operations = 100 }"#,
    );
    let (_directory, engine) = open("terrane");
    let mut driver = Driver::new(&plan.scenarios[0].data, 5);
    let mut measured = BTreeMap::new();
    for run in runs(&plan) {
        let mut result = driver.run(&*engine, &run, &NeverInterrupts).unwrap();
        // Where the machine stands still for that long, the thread beside comes too late for a short run.
        for _ in 0..20 {
            if run.workload == "readwhilewriting" && result.background_operations == 0 {
                result = driver.run(&*engine, &run, &NeverInterrupts).unwrap();
            }
        }
        measured.insert(run.name.clone(), result);
    }
    let done = |name: &str| measured[name].operations;
    assert_eq!(done("load t3"), 5000);
    assert_eq!(done("readrandom t2"), 3001);
    assert_eq!(measured["readrandom t2"].found, 3001, "each key was loaded");
    assert_eq!(measured["readmissing"].found, 0, "an absent key is absent");
    assert_eq!(measured["multireadrandom"].found, 3200, "32 keys a time");
    assert_eq!(measured["ycsb_d t2"].latency_by_kind.len(), 2);
    assert_eq!(measured["ycsb_f"].latency_by_kind.len(), 2);
    assert_eq!(done("readseq"), 12000, "whole scans go on until the rows are counted");
    assert!(measured["readwhilewriting"].background_operations > 0);
    let transactions = &measured["transactions t3"];
    assert_eq!(transactions.operations, 900);
    assert_eq!(transactions.found, 900);
    assert!(transactions.counters.transactions_aborted.is_some());
    assert_eq!(measured["load t3"].counters.transactions_aborted, None);
    let load = &measured["load t3"];
    assert_eq!(load.timeline.operations.iter().sum::<u64>(), 5000);
    assert!(load.bytes_written > 5000 * 36 && load.bytes_written < 5000 * 216);
    assert!(load.seconds_until_quiescent >= load.seconds);
    assert!(measured["deleterandom"].deleted && !load.deleted);
    engine.close().unwrap();
}

/// The numbers of the keys that were read, in the order in which they were first read.
fn keys_read(engine: &dyn Engine, driver: &mut Driver, run: &Run) -> u64 {
    driver.run(engine, run, &NeverInterrupts).unwrap().bytes_read
}

#[test]
fn two_equal_steps_make_different_choices() {
    let plan = plan(
        5000,
        r#""load", { workload = "readrandom", operations = 300 }, { workload = "readrandom", operations = 300 }"#,
    );
    let (_directory, engine) = open("terrane");
    let mut driver = Driver::new(&plan.scenarios[0].data, 5);
    let runs = runs(&plan);
    driver.run(&*engine, &runs[0], &NeverInterrupts).unwrap();
    // Values are of random length: other keys give another sum.
    let first = keys_read(&*engine, &mut driver, &runs[1]);
    assert_ne!(first, keys_read(&*engine, &mut driver, &runs[2]));
    engine.close().unwrap();
}

#[test]
fn random_deletes_leave_as_many_keys_as_expected() {
    let plan = plan(
        5000,
        r#""load", { workload = "deleterandom", operations = 5000 }, { workload = "readrandom", operations = 5000 }"#,
    );
    let (_directory, engine) = open("terrane");
    let mut driver = Driver::new(&plan.scenarios[0].data, 5);
    let runs = runs(&plan);
    driver.run(&*engine, &runs[0], &NeverInterrupts).unwrap();
    driver.run(&*engine, &runs[1], &NeverInterrupts).unwrap();
    let found = driver.run(&*engine, &runs[2], &NeverInterrupts).unwrap().found;
    // 1/e of the keys are never drawn: 1,839 of 5,000.
    assert!((1700..2000).contains(&found), "{found}");
    engine.close().unwrap();
}

#[test]
fn a_multi_get_over_several_tables_finds_its_keys() {
    let mut plan = plan(5000, r#""load", { workload = "multireadrandom", operations = 640, verify = true }"#);
    plan.scenarios[0].data.tables = 8;
    let directory = tempfile::tempdir().unwrap();
    let engine = engine::open("terrane", &EngineOptions { tables: 8, ..options(directory.path()) }).unwrap();
    let mut driver = Driver::new(&plan.scenarios[0].data, 5);
    let runs = runs(&plan);
    driver.run(&*engine, &runs[0], &NeverInterrupts).unwrap();
    let measured = driver.run(&*engine, &runs[1], &NeverInterrupts).unwrap();
    assert_eq!((measured.operations, measured.found), (640, 640), "a key is an operation");
    engine.close().unwrap();
}

#[test]
fn requests_of_a_window_are_counted_one_by_one() {
    let steps = r#""load", { workload = "readrandom", operations = 650, verify = true },
        { workload = "ycsb_a", operations = 650, verify = true }, { workload = "ycsb_f", operations = 70, verify = true }"#;
    let mut plan = plan(5000, steps);
    plan.scenarios[0].data.tables = 4;
    for mode in [None, Some(("requests", "together")), Some(("cores", "2"))] {
        let directory = tempfile::tempdir().unwrap();
        let mut options = EngineOptions { tables: 4, ..options(directory.path()) };
        options.options.extend(mode.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let engine = engine::open("terrane", &options).unwrap();
        let mut driver = Driver::new(&plan.scenarios[0].data, 5);
        for (number, mut run) in runs(&plan).into_iter().enumerate() {
            run.window = if number == 0 { 1 } else { 32 };
            let measured = driver.run(&*engine, &run, &NeverInterrupts).unwrap();
            assert_eq!(measured.operations, [5000, 650, 650, 70][number], "{mode:?}");
            assert_eq!(measured.latency.count, measured.operations, "each has a latency");
            assert!(number != 1 || measured.found == 650);
        }
        engine.close().unwrap();
    }
}

#[test]
fn writes_in_flight_are_counted_one_by_one() {
    let steps = r#""load", { workload = "fillsync", operations = 650 }, { workload = "ycsb_a", operations = 650,
        sync = true, verify = true }, { workload = "deleterandom", operations = 70, sync = true }"#;
    let plan = plan(5000, steps);
    let (_directory, engine) = open("terrane");
    let mut driver = Driver::new(&plan.scenarios[0].data, 5);
    for (number, mut run) in runs(&plan).into_iter().enumerate() {
        // A load is not synced: it has nothing in flight.
        run.in_flight = 64;
        let before = engine.counters();
        let measured = driver.run(&*engine, &run, &NeverInterrupts).unwrap();
        assert_eq!(measured.operations, [5000, 650, 650, 70][number]);
        assert_eq!(measured.latency.count, measured.operations, "each has a latency");
        let syncs = engine.counters().since(&before).log_syncs.unwrap();
        assert!(number == 0 || syncs > 0, "step {number} was acknowledged without a sync");
    }
    engine.close().unwrap();
    let (_directory, engine) = open("null");
    let mut run = runs(&plan).swap_remove(1);
    run.in_flight = 2;
    let refused = Driver::new(&plan.scenarios[0].data, 5).run(&*engine, &run, &NeverInterrupts).unwrap_err();
    assert!(matches!(refused, Error::Unsupported { .. }), "nothing stands in for them: {refused:?}");
}

#[test]
fn time_ends_a_run_and_an_observer_interrupts_it() {
    let plan = plan(1000, r#""load", { workload = "readrandom", seconds = 0.25 }"#);
    let (_directory, engine) = open("null");
    let mut driver = Driver::new(&plan.scenarios[0].data, 1);
    let runs = runs(&plan);
    driver.run(&*engine, &runs[0], &NeverInterrupts).unwrap();
    // Where the machine stands still for that long, the worker comes too late.
    let is_used = (0..20).any(|_| {
        let measured = driver.run(&*engine, &runs[1], &NeverInterrupts).unwrap();
        assert!(measured.seconds >= 0.25);
        measured.operations > 0
    });
    assert!(is_used);
    assert_eq!(driver.run(&*engine, &runs[1], &InterruptsAtOnce).unwrap_err(), Error::Interrupted);
}

#[test]
fn the_space_of_a_run_is_looked_at_each_second() {
    let plan = plan(1000, r#""load", { workload = "overwrite", seconds = 2.1 }"#);
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    options.options.insert("value_separation_bytes".to_owned(), "32".to_owned());
    let engine = engine::open("terrane", &options).unwrap();
    let mut driver = Driver::new(&plan.scenarios[0].data, 5).watching(directory.path());
    let runs = runs(&plan);
    driver.run(&*engine, &runs[0], &NeverInterrupts).unwrap();
    engine.control(Control::Flush).unwrap();
    let space = driver.run(&*engine, &runs[1], &NeverInterrupts).unwrap().space;
    assert!(space.disk_bytes.len() >= 2, "{space:?}");
    assert!(space.disk_bytes.iter().all(|bytes| *bytes > 1000 * 100), "less than the rows: {space:?}");
    assert!(space.values_permille.len() >= 2, "the values are separated: {space:?}");
    assert!(space.values_permille.iter().all(|permille| *permille >= 1000), "{space:?}");
    let unwatched = Driver::new(&plan.scenarios[0].data, 5).run(&*engine, &runs[0], &NeverInterrupts);
    assert!(unwatched.unwrap().space.disk_bytes.is_empty(), "no directory was named");
    engine.close().unwrap();
}

/// An engine whose reads take 20 ms each.
struct Slow {
    reads: AtomicU64,
}

struct SlowSession<'s>(&'s Slow);

impl Engine for Slow {
    fn opened(&self) -> engine::Opened {
        engine::Opened::default()
    }

    fn session(&self) -> terrane_bench::Result<Box<dyn Session + '_>> {
        Ok(Box::new(SlowSession(self)))
    }

    fn control(&self, _control: engine::Control) -> terrane_bench::Result<()> {
        Ok(())
    }

    fn close(self: Box<Self>) -> terrane_bench::Result<()> {
        Ok(())
    }
}

impl Session for SlowSession<'_> {
    fn get(&mut self, _table: u32, key: &[u8], visit: &mut Visit<'_>) -> terrane_bench::Result<bool> {
        self.0.reads.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(20));
        visit(key, b"not what was written");
        Ok(true)
    }

    fn write(&mut self, _table: u32, _writes: &[Write<'_>], _sync: bool) -> terrane_bench::Result<()> {
        Ok(())
    }

    fn iterate(
        &mut self,
        _table: u32,
        _start: Option<&[u8]>,
        _rows: u64,
        _direction: engine::Direction,
        _row: &mut engine::ShowRow<'_>,
    ) -> terrane_bench::Result<u64> {
        Ok(0)
    }
}

#[test]
fn open_loop_counts_waiting_as_latency() {
    let plan = plan(
        1000,
        r#""load", { name = "closed", workload = "readrandom", operations = 20 },
        { name = "open", workload = "readrandom", operations = 20, rate = 1000 }"#,
    );
    let slow = Slow { reads: AtomicU64::new(0) };
    let mut driver = Driver::new(&plan.scenarios[0].data, 1);
    let runs = runs(&plan);
    driver.run(&slow, &runs[0], &NeverInterrupts).unwrap();
    let closed = driver.run(&slow, &runs[1], &NeverInterrupts).unwrap();
    let open = driver.run(&slow, &runs[2], &NeverInterrupts).unwrap();
    assert_eq!(slow.reads.load(Ordering::Relaxed), 40);
    // The last of 20 arrivals, one per millisecond, waits for 19 reads of at least 20 ms each.
    assert!(open.latency.max >= 350_000_000, "{:?}", open.latency);
    // However long the machine lets a read take: one after the other they take at most as long as the run,
    // and waiting they take at least 20 ms more each than the one before, less the millisecond between
    // arrivals.
    let sum = |measured: &terrane_bench::drive::Measured| {
        measured.latency.mean * measured.latency.count as f64 / 1e9
    };
    assert!(sum(&closed) <= closed.seconds * 1.05, "{closed:?}");
    assert!(sum(&open) >= 3.8, "{open:?}");
}

#[test]
fn verification_finds_a_value_that_was_never_written() {
    let plan = plan(1000, r#""load", { workload = "readrandom", operations = 5, verify = true }"#);
    let slow = Slow { reads: AtomicU64::new(0) };
    let mut driver = Driver::new(&plan.scenarios[0].data, 1);
    let runs = runs(&plan);
    driver.run(&slow, &runs[0], &NeverInterrupts).unwrap();
    let error = driver.run(&slow, &runs[1], &NeverInterrupts).unwrap_err();
    assert!(error.to_string().contains("5 of 5 values read were not what was written"), "{error}");
}
