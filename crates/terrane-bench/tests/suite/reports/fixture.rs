//! Runs made by hand.

use std::collections::BTreeMap;

use terrane_base::Rng;
use terrane_bench::engine::{Control, Direction, EngineCounters, Opened, Shape, ShapeRow};
use terrane_bench::generate::operation::OperationKind;
use terrane_bench::plan::{Data, Distribution, EngineChoice, Plan, Run, Scenario, Step, Until, ValueSize};
use terrane_bench::report::model::{
    Cell, End, FORMAT, Failed, Header, Latency, Machine, ProcessUse, RunReport, SpaceTimeline, Timeline,
};

/// A cell with a rate and nothing else.
pub(crate) fn cell(scenario: &str, step: &str, engine: &str, repetition: u32, rate: f64) -> Cell {
    Cell {
        scenario: scenario.to_owned(),
        step: step.to_owned(),
        engine: engine.to_owned(),
        repetition,
        operations: 1_000_000,
        seconds: 1e6 / rate,
        seconds_until_quiescent: 1e6 / rate,
        ..Cell::default()
    }
}

/// A whole run of these cells; labels of engines are names of adapters.
pub(crate) fn run(baseline: &str, engines: &[&str], cells: Vec<Cell>) -> RunReport {
    let choice = |label: &&str| EngineChoice {
        engine: (*label).to_owned(),
        label: (*label).to_owned(),
        options: BTreeMap::new(),
        library: None,
    };
    let plan = Plan {
        name: "by hand".to_owned(),
        seed: 7,
        repetitions: 3,
        baseline: baseline.to_owned(),
        engines: engines.iter().map(choice).collect(),
        scenarios: Vec::new(),
    };
    let header = Header {
        format: FORMAT,
        bench_version: "0.1.0".to_owned(),
        started: 1_767_225_600,
        command: "terrane bench --config bench/quick.toml".to_owned(),
        plan,
        machine: machine(),
    };
    RunReport { header, cells, failed: Vec::new(), end: Some(End { complete: true, seconds: 61.5 }) }
}

fn machine() -> Machine {
    Machine {
        cpu: "Some Processor 3000".to_owned(),
        processors: 4,
        memory_bytes: 16 << 30,
        kernel: "Linux 6.12.0 x86_64".to_owned(),
        file_system: "ext4 (rw,relatime)".to_owned(),
        device: "/dev/nvme0n1, 512 GiB, says it does not rotate".to_owned(),
        governor: "performance".to_owned(),
        huge_pages: "madvise".to_owned(),
        load: 0.25,
        counters: "instructions, cycles, cache misses, branch misses".to_owned(),
    }
}

/// Numbers between 0 and 1 that are the same in every run.
pub(crate) struct Numbers(Rng);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Numbers {
        Numbers(Rng::new(seed))
    }

    pub(crate) fn next(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// `value`, up to `share` off to either side.
    pub(crate) fn near(&mut self, value: f64, share: f64) -> f64 {
        value * (1.0 + share * (2.0 * self.next() - 1.0))
    }
}

/// Engines of the large run with the factor of their rates.
const ENGINES: [(&str, f64); 6] =
    [("rocksdb", 1.0), ("terrane", 2.4), ("lmdb", 1.9), ("fjall", 0.8), ("redb", 0.45), ("null", 40.0)];

/// Steps of the large run: name, rate of the baseline, whether it writes and reads.
const STEPS: [(&str, f64, bool, bool); 7] = [
    ("fillrandom", 310e3, true, false),
    ("compact_all", 0.0, false, false),
    ("readrandom", 420e3, false, true),
    ("seekrandom", 160e3, false, true),
    ("ycsb-a", 380e3, true, true),
    ("ycsb-e", 61e3, true, true),
    ("readseq", 11.2e6, false, true),
];

/// A run that has something for every part of a report: `scenarios` x 7 steps x 6 engines x `repetitions`.
pub(crate) fn large(scenarios: u32, repetitions: u32) -> RunReport {
    let mut numbers = Numbers::new(42);
    let mut cells = Vec::new();
    let names: Vec<String> =
        (0..scenarios).map(|at| format!("{}-{at}", ["cached", "tenth"][at as usize % 2])).collect();
    for name in &names {
        for repetition in 0..repetitions {
            for (engine, factor) in ENGINES {
                for (index, step) in (0..).zip(STEPS) {
                    cells.push(full_cell(&mut numbers, name, engine, factor, repetition, index, step));
                }
            }
        }
    }
    let labels = ENGINES.map(|(label, _)| label);
    let mut report = run("rocksdb", &labels, cells);
    report.header.plan.repetitions = repetitions;
    report.header.plan.scenarios = names.iter().map(|name| scenario(name)).collect();
    report.failed = vec![
        failed(&names[0], "multireadrandom", "redb", true, "redb has no multi-get"),
        failed(&names[0], "", "fjall", false, "open: device is full"),
    ];
    report
}

fn failed(scenario: &str, step: &str, engine: &str, unsupported: bool, why: &str) -> Failed {
    let own = str::to_owned;
    Failed {
        scenario: own(scenario),
        step: own(step),
        engine: own(engine),
        repetition: 0,
        unsupported,
        why: own(why),
    }
}

fn scenario(name: &str) -> Scenario {
    let run = |name: &str| {
        Step::Run(Box::new(Run {
            name: name.to_owned(),
            workload: name.to_owned(),
            distribution: Distribution::Zipfian(0.99),
            threads: 2,
            until: Until::Seconds(10.0),
            rate: None,
            batch: 1,
            multi_get: 1,
            window: 1,
            in_flight: 1,
            transaction_keys: 4,
            scan_rows: 8,
            direction: Direction::Forward,
            sync: false,
            background_rate: 0.0,
            record: None,
            replay: None,
            as_recorded: false,
            until_quiescent: true,
            verify: false,
            setup: false,
        }))
    };
    let step = |(name, rate, ..): (&str, f64, bool, bool)| {
        if rate > 0.0 { run(name) } else { Step::Control(Control::CompactAll) }
    };
    Scenario {
        name: name.to_owned(),
        data: Data {
            keys: 10_000_000,
            key_bytes: 16,
            value: ValueSize::Fixed(100),
            entropy: 0.5,
            tables: 1,
            hashed_keys: true,
        },
        memory_bytes: 512 << 20,
        memory_limit_bytes: None,
        direct_io: false,
        background_threads: 0,
        level_fanout: 10,
        filter_bits_per_key: 10,
        steps: STEPS.map(step).to_vec(),
    }
}

fn full_cell(
    numbers: &mut Numbers,
    scenario: &str,
    engine: &str,
    factor: f64,
    repetition: u32,
    index: u32,
    (step, base, writes, reads): (&str, f64, bool, bool),
) -> Cell {
    if base == 0.0 {
        let seconds = numbers.near(2.0 / factor, 0.1);
        return Cell {
            index,
            operations: 0,
            seconds,
            seconds_until_quiescent: seconds,
            shape_before: shape(engine, 6),
            shape_after: shape(engine, 1),
            ..cell(scenario, step, engine, repetition, 1.0)
        };
    }
    let rate = numbers.near(base * numbers_factor(factor, index), 0.08);
    let seconds = 10.0;
    let operations = (rate * seconds) as u64;
    let bytes = |share: f64| (operations as f64 * 116.0 * share) as u64;
    let tree = ["rocksdb", "terrane", "fjall"].contains(&engine);
    Cell {
        index,
        operations,
        seconds,
        seconds_until_quiescent: seconds,
        opened: Opened {
            version: "1.2.3".to_owned(),
            settings: vec![
                ("cache".to_owned(), "384 MiB".to_owned()),
                ("compression".to_owned(), "lz4".to_owned()),
            ],
        },
        user_bytes_written: if writes { bytes(0.5) } else { 0 },
        user_bytes_read: if reads { bytes(0.5) } else { 0 },
        latency: latency(numbers, 1e9 / rate),
        latency_by_kind: match writes && reads {
            true => [OperationKind::Read, OperationKind::Update]
                .map(|kind| (kind, latency(numbers, 1e9 / rate)))
                .into(),
            false => BTreeMap::new(),
        },
        timeline: timeline(numbers, rate, seconds, writes && tree),
        process: process(numbers, operations as f64, 2e6 / rate, bytes(2.5), writes),
        counters: counters(operations, bytes(0.5), tree, reads),
        space: SpaceTimeline {
            interval: 1.0,
            disk_bytes: (0..10).map(|second| 1_300_000_000 + second * 40_000_000).collect(),
            values_permille: if tree && writes { vec![1100, 1240, 1180] } else { Vec::new() },
        },
        disk_bytes: 1_500_000_000,
        live_bytes: Some(1_160_000_000),
        shape_before: shape(engine, 1),
        shape_after: shape(engine, if writes { 4 } else { 1 }),
        ..cell(scenario, step, engine, repetition, rate)
    }
}

/// No engine is ahead everywhere.
fn numbers_factor(factor: f64, index: u32) -> f64 {
    if index == 5 { factor.sqrt() / 1.3 } else { factor }
}

fn latency(numbers: &mut Numbers, mean: f64) -> Latency {
    let mut at = |factor: f64| numbers.near(mean * factor, 0.1) as u64;
    Latency {
        count: 1_000_000,
        mean,
        p50: at(0.8),
        p90: at(1.8),
        p99: at(6.0),
        p999: at(40.0),
        p9999: at(900.0),
        max: at(20_000.0),
    }
}

fn timeline(numbers: &mut Numbers, rate: f64, seconds: f64, stalls: bool) -> Timeline {
    let count = (seconds / 0.05) as u64;
    let operations = (0..count).map(|at| {
        let stalled = stalls && at % 83 == 60;
        numbers.near(rate * 0.05 * if stalled { 0.02 } else { 1.0 }, 0.12) as u64
    });
    Timeline { interval: 0.05, operations: operations.collect() }
}

fn process(numbers: &mut Numbers, operations: f64, micros: f64, written: u64, writes: bool) -> ProcessUse {
    ProcessUse {
        user_seconds: numbers.near(operations * micros / 1e6 * 0.8, 0.05),
        system_seconds: numbers.near(operations * micros / 1e6 * 0.2, 0.05),
        device_bytes_read: Some((operations * numbers.near(90.0, 0.3)) as u64),
        device_bytes_written: Some(if writes { written } else { 0 }),
        call_bytes_read: Some((operations * 400.0) as u64),
        peak_memory_bytes: numbers.near(500e6, 0.1) as u64,
        voluntary_switches: (operations / 300.0) as u64,
        involuntary_switches: 90,
        major_faults: 0,
        minor_faults: 5000,
        instructions: Some((operations * 5200.0) as u64),
        cycles: Some((operations * 4100.0) as u64),
        cache_misses: Some((operations * 11.0) as u64),
        branch_misses: Some((operations * 7.5) as u64),
    }
}

fn counters(operations: u64, bytes: u64, tree: bool, reads: bool) -> EngineCounters {
    if !tree {
        return EngineCounters::default();
    }
    EngineCounters {
        log_bytes_written: Some(bytes),
        log_syncs: None,
        flush_bytes_written: Some(bytes),
        compaction_bytes_written: Some(bytes * 4),
        compaction_bytes_read: Some(bytes * 4),
        stall_micros: Some(120_000),
        cache_hits: Some(operations * 9 / 10),
        cache_misses: Some(operations / 10),
        read_bytes: Some(operations * 400),
        filter_probes: reads.then_some(operations * 3),
        filter_false_positives: reads.then_some(operations / 40),
        runs_searched: reads.then_some(operations * 12 / 10),
        transactions_aborted: None,
        bucket_creates: None,
        bucket_reads: None,
        bucket_bytes_sent: None,
        bucket_bytes_received: None,
        blocks_decoded: reads.then_some(operations * 11 / 10),
    }
}

fn shape(engine: &str, runs: u64) -> Shape {
    let row = |part: &str, runs: u64, bytes: u64| ShapeRow {
        part: part.to_owned(),
        runs,
        entries: Some(bytes / 116),
        bytes,
    };
    match engine {
        "lmdb" | "redb" | "null" => Shape::default(),
        _ => Shape {
            rows: vec![
                row("memtable", 1, 10 << 20),
                row("L0", runs, runs * (8 << 20)),
                row("L1", 1, 87 << 20),
                row("L2", 1, 829 << 20),
            ],
        },
    }
}
