//! A plan from a file or a ready one, with the flags over it.

use std::path::Path;

use terrane_bench::plan::file::{
    self, DataText, DatabaseText, EngineText, OneOrMany, OneOrText, PlanFile, RunText, ScenarioText, StepText,
};
use terrane_bench::plan::{Plan, Step};
use terrane_bench::{Error, Result, files};

use crate::arguments::Engine;
use crate::arguments::bench::RunFlags;

/// Plans that are part of the program: name, one sentence, text.
pub(super) const READY: [(&str, &str, &str); 12] = [
    (
        "quick",
        "Terrane and its peers on half a million keys, under two minutes",
        include_str!("../../../../../bench/quick.toml"),
    ),
    (
        "standard",
        "the matrix of YCSB and db_bench's set on Terrane and RocksDB, half an hour",
        include_str!("../../../../../bench/standard.toml"),
    ),
    (
        "large",
        "the matrix on every engine, ten million keys, longer steps; hours",
        include_str!("../../../../../bench/large.toml"),
    ),
    (
        "peers",
        "every engine in cache on the loads that tell them apart, ten minutes",
        include_str!("../../../../../bench/peers.toml"),
    ),
    (
        "shapes",
        "six shapes of the tree, three queries on each (Callaghan's method)",
        include_str!("../../../../../bench/shapes.toml"),
    ),
    (
        "replacement",
        "reads before, during and after compactions, with and without incremental replacement",
        include_str!("../../../../../bench/replacement.toml"),
    ),
    (
        "phases",
        "writes and reads in turns: a shape that follows the load, and RocksDB's",
        include_str!("../../../../../bench/phases.toml"),
    ),
    (
        "hot",
        "skewed reads beyond memory, with hot extents kept above and without",
        include_str!("../../../../../bench/hot.toml"),
    ),
    (
        "beyond",
        "data ten times as large as memory: what each mechanism for it adds",
        include_str!("../../../../../bench/beyond.toml"),
    ),
    (
        "cores",
        "per-core ownership against threads that share the database",
        include_str!("../../../../../bench/cores.toml"),
    ),
    (
        "ablation",
        "what each mechanism of the read path adds, one after the other",
        include_str!("../../../../../bench/ablation.toml"),
    ),
    (
        "soak",
        "an hour of everything at once in a tiny cache, every value compared",
        include_str!("../../../../../bench/soak.toml"),
    ),
];

const DEFAULT_STEPS: [&str; 6] = ["load", "readrandom", "readmissing", "seekrandom", "ycsb_a", "overwrite"];

/// The plan that was asked for.
pub(super) fn plan(engine: &Engine, flags: &RunFlags) -> Result<Plan> {
    let mut file = match &flags.config {
        Some(config) => file::parse(&text(config)?)?,
        None => from_flags(flags),
    };
    over(&mut file, engine, flags);
    let mut plan = file.resolve()?;
    if let Some(library) = &flags.rocksdb {
        plan.engines
            .iter_mut()
            .filter(|choice| choice.engine == "rocksdb" && choice.library.is_none())
            .for_each(|choice| choice.library = Some(library.clone()));
    }
    engine_options(&mut plan, engine)?;
    traces(&mut plan, flags)?;
    Ok(plan)
}

/// The text of a plan file, or of a ready plan if there is no such file.
fn text(config: &Path) -> Result<String> {
    let ready = READY.iter().find(|(name, _, _)| config.as_os_str() == *name);
    match ready {
        Some((_, _, text)) if !config.exists() => Ok((*text).to_owned()),
        _ => files::read_text(config).map_err(|error| {
            let names = READY.map(|(name, _, _)| name).join(", ");
            Error::Plan(format!("{error}; ready plans are {names}"))
        }),
    }
}

fn from_flags(flags: &RunFlags) -> PlanFile {
    let mut steps: Vec<StepText> = flags.workloads.iter().cloned().map(StepText::Name).collect();
    if steps.is_empty() {
        steps = DEFAULT_STEPS.map(|name| StepText::Name(name.to_owned())).to_vec();
    }
    PlanFile {
        name: Some("command line".to_owned()),
        engines: vec![EngineText::Name("terrane".to_owned())],
        scenario: vec![ScenarioText { name: Some("bench".to_owned()), steps, ..ScenarioText::default() }],
        ..PlanFile::default()
    }
}

/// Lays the flags over the file's defaults and over every scenario.
fn over(file: &mut PlanFile, engine: &Engine, flags: &RunFlags) {
    let (data, database, run) = (data(flags), database(engine, flags), run(flags));
    file.data = data.over(&file.data);
    file.database = database.over(&file.database);
    file.run = run.over(&file.run);
    for scenario in &mut file.scenario {
        scenario.data = data.over(&scenario.data);
        scenario.database = database.over(&scenario.database);
        scenario.run = run.over(&scenario.run);
        if flags.config.is_some() && !flags.workloads.is_empty() {
            scenario.steps = flags.workloads.iter().cloned().map(StepText::Name).collect();
        }
    }
    if !flags.engines.is_empty() {
        let known = std::mem::take(&mut file.engines);
        file.engines = flags.engines.iter().map(|name| choose(name, &known)).collect();
        file.baseline = file.baseline.take().filter(|baseline| flags.engines.contains(baseline));
    }
    file.baseline = flags.baseline.clone().or_else(|| file.baseline.take());
    file.repetitions = flags.repetitions.or(file.repetitions);
    file.seed = flags.seed.or(file.seed);
}

/// An engine by the label that the file gives it, with the options that it has there; or by its name.
fn choose(name: &str, known: &[EngineText]) -> EngineText {
    known
        .iter()
        .find(|engine| engine.label() == name)
        .cloned()
        .unwrap_or_else(|| EngineText::Name(name.to_owned()))
}

fn data(flags: &RunFlags) -> DataText {
    DataText {
        keys: flags.keys,
        key_bytes: flags.key_bytes,
        value: flags.value.clone().map(OneOrText::Text),
        entropy: flags.entropy,
        tables: flags.tables,
        hashed_keys: None,
    }
}

fn database(engine: &Engine, flags: &RunFlags) -> DatabaseText {
    DatabaseText {
        memory: engine.memory.clone(),
        memory_limit: flags.memory_limit.clone(),
        direct_io: flags.direct_io.then_some(true),
        background_threads: flags.background_threads,
        level_fanout: flags.level_fanout,
        filter_bits_per_key: flags.filter_bits_per_key,
    }
}

fn run(flags: &RunFlags) -> RunText {
    RunText {
        distribution: flags.distribution.clone().map(OneOrMany::One),
        threads: match flags.threads.as_slice() {
            [] => None,
            [one] => Some(OneOrMany::One(*one)),
            many => Some(OneOrMany::Many(many.to_vec())),
        },
        operations: flags.operations,
        seconds: flags.seconds.clone().map(OneOrText::Text),
        rate: flags.rate.map(|rate| rate as f64),
        background_rate: flags.background_rate.map(|rate| rate as f64),
        batch: flags.batch,
        multi_get: flags.multi_get,
        window: flags.window,
        in_flight: flags.in_flight,
        transaction_keys: flags.transaction_keys,
        scan_rows: flags.scan_rows,
        sync: flags.sync.then_some(OneOrMany::One(true)),
        verify: flags.verify.then_some(true),
        ..RunText::default()
    }
}

/// Gives `-o` to Terrane, and refuses an option of it that does not exist before anything runs.
fn engine_options(plan: &mut Plan, engine: &Engine) -> Result<()> {
    for choice in plan.engines.iter_mut().filter(|choice| choice.engine == "terrane") {
        for setting in &engine.options {
            let (name, value) = setting
                .split_once('=')
                .ok_or_else(|| Error::plan(format!("option {setting}: expected NAME=VALUE")))?;
            choice.options.insert(name.trim().to_owned(), value.trim().to_owned());
        }
        terrane_bench::engine::terrane::check_options(&choice.options)?;
    }
    Ok(())
}

/// Records the last run of each scenario, or adds a replay after it.
fn traces(plan: &mut Plan, flags: &RunFlags) -> Result<()> {
    for scenario in &mut plan.scenarios {
        let last = scenario.steps.iter_mut().rev().find_map(|step| match step {
            Step::Run(run) => Some(run),
            _ => None,
        });
        let Some(last) = last else { continue };
        last.record = flags.record.clone().or_else(|| last.record.take());
        if let Some(trace) = &flags.replay {
            let mut replay = last.clone();
            replay.name = "replay".to_owned();
            replay.workload = "replay".to_owned();
            replay.replay = Some(trace.clone());
            replay.as_recorded = flags.as_recorded;
            replay.record = None;
            scenario.steps.push(Step::Run(replay));
        }
    }
    terrane_bench::plan::check::check(plan)
}
