//! Conditions that a plan must meet before anything runs.

use std::collections::BTreeSet;

use crate::engine;
use crate::error::{Error, Result};
use crate::generate::catalogue::{self, Kind, Mix};
use crate::generate::operation::OperationKind;
use crate::plan::{Data, Distribution, Plan, Run, Scenario, Step, Until, ValueSize};

/// Checks a whole plan.
///
/// # Errors
/// `Plan`, naming the value and the accepted ones.
pub fn check(plan: &Plan) -> Result<()> {
    demand(plan.repetitions >= 1, "repetitions: accepted is 1 or more")?;
    demand(!plan.scenarios.is_empty(), "the plan has no [[scenario]]")?;
    check_engines(plan)?;
    check_verify(plan)?;
    let mut names = BTreeSet::new();
    for scenario in &plan.scenarios {
        demand(names.insert(&scenario.name), &format!("two scenarios are called {:?}", scenario.name))?;
        check_scenario(scenario)
            .map_err(|error| Error::plan(format!("scenario {:?}: {error}", scenario.name)))?;
    }
    Ok(())
}

fn check_engines(plan: &Plan) -> Result<()> {
    let mut labels = BTreeSet::new();
    for choice in &plan.engines {
        if !engine::NAMES.contains(&choice.engine.as_str()) {
            return Err(Error::plan(format!(
                "unknown engine {:?}: known are {}",
                choice.engine,
                engine::NAMES.join(", ")
            )));
        }
        demand(
            labels.insert(&choice.label),
            &format!("two engines are called {:?}: set label", choice.label),
        )?;
    }
    demand(
        labels.contains(&plan.baseline),
        &format!("the baseline {:?} is not among the engines of the plan", plan.baseline),
    )
}

fn check_verify(plan: &Plan) -> Result<()> {
    let verifies = |step: &Step| matches!(step, Step::Run(run) if run.verify);
    demand(
        !plan.scenarios.iter().any(|scenario| scenario.steps.iter().any(verifies))
            || plan.engines.iter().all(|choice| choice.engine != "null"),
        "verify: the engine null keeps nothing that could be compared; leave one of them out",
    )
}

fn check_scenario(scenario: &Scenario) -> Result<()> {
    check_data(&scenario.data)?;
    demand(!scenario.steps.is_empty(), "it has no steps")?;
    demand(
        scenario.level_fanout == 0 || (2..=100).contains(&scenario.level_fanout),
        "level_fanout: accepted is 2 to 100",
    )?;
    demand(scenario.filter_bits_per_key <= 30, "filter_bits_per_key: accepted is 0 to 30")?;
    let mut filled = false;
    for step in &scenario.steps {
        let Step::Run(run) = step else { continue };
        let definition = catalogue::find(&run.workload)?;
        check_run(run, &definition.kind)
            .map_err(|error| Error::plan(format!("step {:?}: {error}", run.name)))?;
        demand(
            filled || !definition.needs_data,
            &format!("step {:?} needs keys: begin with load, fillseq or fillrandom", run.name),
        )?;
        filled |= definition.is_load() || matches!(definition.kind, Kind::Replay);
    }
    Ok(())
}

fn check_data(data: &Data) -> Result<()> {
    demand((1..=1 << 40).contains(&data.keys), "keys: accepted is 1 or more")?;
    demand((8..=1024).contains(&data.key_bytes), "key_bytes: accepted is 8 to 1024")?;
    let digits = data.keys.saturating_mul(2).to_string().len();
    demand(
        data.key_bytes >= 20 || data.key_bytes >= digits,
        &format!("key_bytes: {} keys need at least {digits}", data.keys),
    )?;
    demand((0.0..=1.0).contains(&data.entropy), "entropy: accepted is 0 to 1")?;
    demand((1..=1024).contains(&data.tables), "tables: accepted is 1 to 1024")?;
    let longest = data.value_bytes_max();
    demand(longest <= 64 << 20, "value: the longest is 64 MiB")?;
    match data.value {
        ValueSize::Pareto { shape, scale, max } => demand(
            (0.0..1.0).contains(&shape) && scale > 0.0 && max > 0,
            "value: pareto(SHAPE,SCALE,MAX) takes a shape of 0 to 1, a scale above 0 and a maximum above 0",
        ),
        _ => Ok(()),
    }
}

fn check_run(run: &Run, kind: &Kind) -> Result<()> {
    demand((1..=1024).contains(&run.threads), "threads: accepted is 1 to 1024")?;
    demand((1..=1_000_000).contains(&run.batch), "batch: accepted is 1 to 1,000,000 records")?;
    demand((1..=100_000).contains(&run.multi_get), "multi_get: accepted is 1 to 100,000 keys")?;
    demand((1..=100_000).contains(&run.window), "window: accepted is 1 to 100,000 requests")?;
    demand((1..=10_000).contains(&run.transaction_keys), "transaction_keys: accepted is 1 to 10,000 keys")?;
    let transacts = |mix: &Mix| mix.share(OperationKind::Transaction) > 0.0;
    demand(
        run.record.is_none() || !matches!(kind, Kind::Stream(mix) if transacts(mix)),
        "record: a trace has no transactions",
    )?;
    let removes_ranges = |mix: &Mix| mix.share(OperationKind::DeleteRange) > 0.0;
    demand(
        run.record.is_none() || !matches!(kind, Kind::Stream(mix) if removes_ranges(mix)),
        "record: a trace has no range deletes",
    )?;
    demand(run.window == 1 || run.batch == 1, "window and batch: one of them must be 1")?;
    check_in_flight(run, kind)?;
    demand(run.scan_rows >= 1, "scan_rows: accepted is 1 or more")?;
    demand(run.rate.is_none_or(|rate| rate > 0.0 && rate.is_finite()), "rate: accepted is above 0")?;
    demand(run.background_rate >= 0.0, "background_rate: accepted is 0 or more")?;
    demand(
        run.rate.is_none() || !matches!(kind, Kind::WholeScan(_)),
        "rate: a whole scan has no arrivals; leave it out",
    )?;
    demand(
        run.record.is_none() || !matches!(kind, Kind::WholeScan(_)),
        "record: a whole scan has no operations to record",
    )?;
    demand(
        matches!(kind, Kind::Replay) == run.replay.is_some(),
        "replay = \"FILE\" belongs to the workload replay, and only to it",
    )?;
    match run.distribution {
        Distribution::Zipfian(constant) => {
            demand(
                constant > 0.0 && constant < 10.0,
                "zipfian: accepted is a constant above 0 and below 10",
            )?;
        }
        Distribution::HotRange(keys, operations) => demand(
            keys > 0.0 && keys < 1.0 && (0.0..=1.0).contains(&operations),
            "hot(KEYS,OPERATIONS): accepted are shares between 0 and 1",
        )?,
        _ => {}
    }
    match run.until {
        Until::Operations(operations) => demand(operations >= 1, "operations: accepted is 1 or more"),
        Until::Seconds(seconds) => {
            demand(seconds > 0.0 && seconds.is_finite(), "seconds: accepted is above 0")
        }
    }
}

/// Reads and steps that sync no write have nothing in flight, whatever `[run]` says.
fn check_in_flight(run: &Run, kind: &Kind) -> Result<()> {
    demand((1..=65_536).contains(&run.in_flight), "in_flight: accepted is 1 to 65,536 writes")?;
    let is_mixed = |mix: &Mix| {
        mix.share(OperationKind::ReadModifyWrite) > 0.0 || mix.share(OperationKind::Transaction) > 0.0
    };
    demand(
        run.in_flight == 1 || !run.sync || !matches!(kind, Kind::Stream(mix) if is_mixed(mix)),
        "in_flight: transactions and read-modify-writes are not begun beside others; set it to 1",
    )?;
    demand(
        run.in_flight == 1 || !run.sync || (run.rate.is_none() && !run.as_recorded),
        "in_flight: a write is found done when the next one begins, so with a rate or recorded times its latency \
         would be theirs; set in_flight to 1",
    )?;
    demand(
        run.in_flight == 1 || (run.window == 1 && run.batch == 1),
        "in_flight: writes of one record are; window and batch must be 1",
    )
}

fn demand(holds: bool, message: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::plan(message)) }
}
