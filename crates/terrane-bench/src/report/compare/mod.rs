//! Two runs side by side, with a verdict that respects noise.
//!
//! For each scenario, step and engine that both runs have, cells of the same repetition make a pair; its
//! ratio is the rate in `b` by that in `a` (for steps without operations the time in `a` by that in `b`), so
//! above 1 is always better. The median of the ratios is the result, and an interval of order statistics says
//! how far to trust it ([`Interval::of_median`]; no distribution is assumed). With fewer than [`PAIRS_MIN`]
//! pairs noise cannot be judged: the interval is the range of the ratios then, the verdict is `unsure`, and
//! the text says so.
//!
//! The verdict, for a bound of `d` (0.05: a change of 5 % matters):
//!
//! | verdict | the interval |
//! |---|---|
//! | worse | lies wholly below `1 - d` |
//! | better | lies wholly above `1 / (1 - d)` |
//! | same | lies wholly between the two, both included |
//! | unsure | crosses one of them, or has too few pairs: more repetitions, or a quieter machine |
//!
//! A regression is a `worse`, or something that `a` measured and `b` did not: a step that `b` lacks or has in
//! none of the same repetitions, or a repetition in which it failed there. Two runs with nothing in common
//! cannot be compared.

use std::collections::BTreeMap;

use crate::report::metric::{self, Metric};
use crate::report::model::{Cell, RunReport};
use crate::report::statistic::{Interval, PAIRS_MIN, Spread, geometric_mean};

mod print;

/// The comparison of two runs.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Share by which a rate may fall.
    pub bound: f64,
    /// Why the runs may not be comparable.
    pub warnings: Vec<String>,
    /// Steps of both, in the order of the first.
    pub rows: Vec<Row>,
    /// Steps of the first only.
    pub only_a: Vec<StepKey>,
    /// Steps of the second only.
    pub only_b: Vec<StepKey>,
    /// Steps that the first measured and the second did not, with the reason.
    pub missing: Vec<(StepKey, String)>,
}

/// A step of an engine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepKey {
    /// Name of the scenario.
    pub scenario: String,
    /// Position of the step in the scenario.
    pub index: u32,
    /// Name of the step.
    pub step: String,
    /// Label of the engine.
    pub engine: String,
}

/// One step of one engine in both runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Which.
    pub place: StepKey,
    /// True if the figures are seconds instead of operations per second.
    pub timed: bool,
    /// Median figure in the first run, over the pairs.
    pub a: f64,
    /// Median figure in the second.
    pub b: f64,
    /// Ratios of the pairs, above 1 for better.
    pub ratio: Spread,
    /// Where the true median of the ratios lies.
    pub interval: Interval,
    /// The verdict.
    pub verdict: Verdict,
    /// Median of the pair ratios of the 99th percentile of latency, `b` by `a`: above 1 is worse. Printed,
    /// not judged.
    pub p99: Option<f64>,
    /// The same for CPU per operation.
    pub cpu: Option<f64>,
}

/// The verdict on a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Faster beyond the bound.
    Better,
    /// Slower beyond the bound.
    Worse,
    /// Within the bound.
    Same,
    /// The noise is larger than the change, or there are too few pairs to tell.
    Unsure,
}

impl Verdict {
    /// The verdict for an interval of ratios; see the head of this module.
    #[must_use]
    pub fn of(interval: Interval, bound: f64) -> Verdict {
        let (least, most) = (1.0 - bound, 1.0 / (1.0 - bound));
        match interval {
            Interval { coverage: None, .. } => Verdict::Unsure,
            Interval { high, .. } if high < least => Verdict::Worse,
            Interval { low, .. } if low > most => Verdict::Better,
            Interval { low, high, .. } if low >= least && high <= most => Verdict::Same,
            _ => Verdict::Unsure,
        }
    }
}

impl Comparison {
    /// Returns true if the two have nothing in common that could be compared.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns true if the second run is worse: some row is [`Verdict::Worse`], or it lacks something that
    /// the first measured.
    #[must_use]
    pub fn regressed(&self) -> bool {
        !self.missing.is_empty() || self.rows.iter().any(|row| row.verdict == Verdict::Worse)
    }

    /// Geometric mean of the ratios of an engine, above 1 for better; steps without operations are left out.
    #[must_use]
    pub fn mean(&self, engine: &str) -> Option<f64> {
        let rows = self.rows.iter().filter(|row| row.place.engine == engine && !row.timed);
        geometric_mean(rows.map(|row| row.ratio.median))
    }
}

/// Compares the run `b` with the run `a`. `bound` is clamped to 0 up to 0.99.
#[must_use]
pub fn compare(a: &RunReport, b: &RunReport, bound: f64) -> Comparison {
    let bound = if bound.is_finite() { bound.clamp(0.0, 0.99) } else { 0.0 };
    let (cells_a, cells_b) = (places(a), places(b));
    let mut rows: Vec<Row> =
        cells_a.iter().filter_map(|(place, cells)| row(place, cells, cells_b.get(place)?, bound)).collect();
    let only = |of: &Places<'_>, from: &Places<'_>| {
        of.keys().filter(|place| !from.contains_key(place)).cloned().collect::<Vec<_>>()
    };
    let (only_a, only_b) = (only(&cells_a, &cells_b), only(&cells_b, &cells_a));
    let mut warnings = warnings(a, b);
    let mut missing = Vec::new();
    for (place, cells) in &cells_a {
        if let Some(why) = why_missing(place, cells, cells_b.get(place), b) {
            missing.push((place.clone(), why));
        } else if !rows.iter().any(|row| row.place == *place) {
            warnings.push(format!("{place}: no repetition has a figure above zero"));
        }
    }
    let order = |name: &str| a.cells.iter().position(|cell| cell.scenario == name);
    rows.sort_by_key(|row| order(&row.place.scenario));
    Comparison { bound, warnings, rows, only_a, only_b, missing }
}

/// Cells of each place by their repetition.
type Places<'r> = BTreeMap<StepKey, BTreeMap<u32, &'r Cell>>;

fn places(report: &RunReport) -> Places<'_> {
    let mut places = Places::new();
    for cell in &report.cells {
        let place = StepKey {
            scenario: cell.scenario.clone(),
            index: cell.index,
            step: cell.step.clone(),
            engine: cell.engine.clone(),
        };
        places.entry(place).or_default().insert(cell.repetition, cell);
    }
    places
}

/// `None` if no repetition is in both with a figure above zero.
fn row(place: &StepKey, a: &BTreeMap<u32, &Cell>, b: &BTreeMap<u32, &Cell>, bound: f64) -> Option<Row> {
    let pairs: Vec<(&Cell, &Cell)> =
        a.iter().filter_map(|(repetition, cell)| Some((*cell, *b.get(repetition)?))).collect();
    let timed = pairs.iter().all(|(a, b)| a.operations == 0 && b.operations == 0);
    let figure = |cell: &Cell| if timed { cell.seconds_until_quiescent } else { cell.rate() };
    // A rate of zero in the second is the worst there is; in the first there is nothing to compare with.
    let usable =
        pairs.iter().map(|(a, b)| (figure(a), figure(b))).filter(|(a, b)| *a > 0.0 && (!timed || *b > 0.0));
    let figures: Vec<(f64, f64)> = usable.collect();
    let ratios: Vec<f64> = figures.iter().map(|(a, b)| if timed { a / b } else { b / a }).collect();
    let interval = Interval::of_median(ratios.iter().copied())?;
    Some(Row {
        place: place.clone(),
        timed,
        a: Spread::of(figures.iter().map(|pair| pair.0))?.median,
        b: Spread::of(figures.iter().map(|pair| pair.1))?.median,
        ratio: Spread::of(ratios)?,
        interval,
        verdict: Verdict::of(interval, bound),
        p99: median_ratio(&pairs, &metric::P99),
        cpu: median_ratio(&pairs, &metric::CPU),
    })
}

fn median_ratio(pairs: &[(&Cell, &Cell)], metric: &Metric) -> Option<f64> {
    let ratios = pairs.iter().filter_map(|(a, b)| Some((metric.of)(b)? / (metric.of)(a)?));
    Spread::of(ratios).map(|spread| spread.median)
}

/// The reason why the second run, of which these are the `cells`, lacks a place that the first measured:
/// `None` if it has it.
fn why_missing(
    place: &StepKey,
    first: &BTreeMap<u32, &Cell>,
    cells: Option<&BTreeMap<u32, &Cell>>,
    second: &RunReport,
) -> Option<String> {
    let has = |repetition: &u32| cells.is_some_and(|cells| cells.contains_key(repetition));
    let failed = second.failed.iter().find(|failed| {
        failed.scenario == place.scenario
            && failed.engine == place.engine
            && (failed.step.is_empty() || failed.step == place.step)
            && !has(&failed.repetition)
    });
    match failed {
        // Fewer repetitions are fine, one that broke is not.
        Some(failed) if !failed.unsupported || cells.is_none() => Some(failed.why.clone()),
        _ if cells.is_none() => Some("it was not run".to_owned()),
        _ if !first.keys().any(has) => Some("it has none of the same repetitions".to_owned()),
        _ => None,
    }
}

fn warnings(a: &RunReport, b: &RunReport) -> Vec<String> {
    let mut warnings = Vec::new();
    for (name, report) in [("first", a), ("second", b)] {
        if report.is_partial() {
            warnings.push(format!("the {name} run is PARTIAL"));
        }
    }
    machine_warnings(a, b, &mut warnings);
    plan_warnings(a, b, &mut warnings);
    warnings
}

fn machine_warnings(a: &RunReport, b: &RunReport, warnings: &mut Vec<String>) {
    let (a, b) = (&a.header.machine, &b.header.machine);
    let mut differs = |what: &str, a: &str, b: &str| {
        if a != b {
            warnings.push(format!("machines differ in {what}: {a:?}, then {b:?}"));
        }
    };
    differs("processor", &a.cpu, &b.cpu);
    differs("processors", &a.processors.to_string(), &b.processors.to_string());
    // A reboot moves the figure by some pages.
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
    differs("memory", &gib(a.memory_bytes), &gib(b.memory_bytes));
    differs("kernel", &a.kernel, &b.kernel);
    differs("file system", &a.file_system, &b.file_system);
    differs("device", &a.device, &b.device);
    differs("governor", &a.governor, &b.governor);
    differs("huge pages", &a.huge_pages, &b.huge_pages);
}

fn plan_warnings(a: &RunReport, b: &RunReport, warnings: &mut Vec<String>) {
    let (a, b) = (&a.header.plan, &b.header.plan);
    if a.seed != b.seed {
        warnings.push(format!("plans differ in seed: {}, then {}", a.seed, b.seed));
    }
    for scenario in &a.scenarios {
        let other = b.scenarios.iter().find(|other| other.name == scenario.name);
        if other.is_some_and(|other| other != scenario) {
            warnings.push(format!("plans differ in scenario {}", scenario.name));
        }
    }
    for engine in &a.engines {
        let other = b.engines.iter().find(|other| other.label == engine.label);
        if other.is_some_and(|other| (&other.engine, &other.options) != (&engine.engine, &engine.options)) {
            warnings.push(format!("plans differ in engine {}", engine.label));
        }
    }
}
