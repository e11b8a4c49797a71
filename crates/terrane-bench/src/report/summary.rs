//! Cells grouped over repetitions: what table and HTML draw.
//!
//! For each scenario and step, in the order in which they were run, and each engine, in the order of the
//! plan: the spread of the rate, and the ratio to the baseline. Repetitions are interleaved in time, so the
//! ratio is the median of the ratios of cells of the same repetition: what drifts on the machine hits both.
//!
//! The engines judged are those whose adapter is `terrane`. A judged result has a [`Mark`] if its ratio to
//! the baseline is below [`TARGET`] or a peer is ahead of it. The engine `null` is the ceiling of the harness
//! and no peer.

use std::collections::BTreeMap;

use crate::plan::Plan;
use crate::report::metric::times;
use crate::report::model::{Cell, RunReport};
use crate::report::statistic::{Spread, geometric_mean, median};

/// How many times the baseline's rate a judged engine should reach.
pub const TARGET: f64 = 2.0;

/// How many times the fastest engine's rate the null engine must reach for a step's figures to be the
/// engines' own.
pub const CEILING_MIN: f64 = 5.0;

/// Adapter whose cells are marked.
const JUDGED: &str = "terrane";
/// Adapter that does nothing.
const NULL: &str = "null";

/// A run, grouped.
#[derive(Debug)]
pub struct Summary<'r> {
    /// The run.
    pub report: &'r RunReport,
    /// Labels of the engines that have cells, in the order of the plan.
    pub engines: Vec<&'r str>,
    /// Its scenarios, in the order in which they were run.
    pub scenarios: Vec<ScenarioSummary<'r>>,
}

/// One scenario.
#[derive(Debug)]
pub struct ScenarioSummary<'r> {
    /// Its name.
    pub name: &'r str,
    /// Its steps in order.
    pub steps: Vec<StepSummary<'r>>,
}

/// One step.
#[derive(Debug)]
pub struct StepSummary<'r> {
    /// Its name.
    pub name: &'r str,
    /// Its position in the scenario.
    pub index: u32,
    /// True if it has no operations (a change of the tree's shape): its figure is its time, and it has no
    /// ratios.
    pub timed: bool,
    /// True if it only prepares others: it counts in no mean and is marked nowhere.
    pub setup: bool,
    /// Results of the engines that have one, in the order of the plan.
    pub groups: Vec<Group<'r>>,
    /// How many times the fastest engine the null engine was; `None` if either was not run.
    pub ceiling: Option<f64>,
}

/// All repetitions of one step of one engine.
#[derive(Debug)]
pub struct Group<'r> {
    /// Label of the engine.
    pub engine: &'r str,
    /// Its cells, by repetition.
    pub cells: Vec<&'r Cell>,
    /// Rate in operations per second; seconds if the step is `timed`.
    pub value: Spread,
    /// Ratio of its rate to the baseline's, pair by pair.
    pub ratio: Option<Spread>,
    /// The fault of the figure, if it has one.
    pub mark: Option<Mark>,
}

/// Why a judged result needs work.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Its ratio to the baseline, if that is below [`TARGET`].
    pub below_target: Option<f64>,
    /// Engines that are ahead, each with the ratio of its rate to this one.
    pub behind: Vec<(String, f64)>,
}

/// The geometric mean of an engine's ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub ratio: f64,
    /// Over how many steps.
    pub steps: usize,
}

impl<'r> Summary<'r> {
    /// Groups the cells of a run.
    #[must_use]
    pub fn new(report: &'r RunReport) -> Summary<'r> {
        let plan = &report.header.plan;
        let mut engines: Vec<&str> = Vec::new();
        for label in plan.engines.iter().map(|choice| choice.label.as_str()) {
            if report.cells.iter().any(|cell| cell.engine == label) && !engines.contains(&label) {
                engines.push(label);
            }
        }
        for cell in &report.cells {
            if !engines.contains(&cell.engine.as_str()) {
                engines.push(&cell.engine);
            }
        }
        let mut scenarios: Vec<ScenarioSummary<'r>> = Vec::new();
        for cell in &report.cells {
            if !scenarios.iter().any(|scenario| scenario.name == cell.scenario) {
                scenarios.push(scenario(report, &cell.scenario, &engines));
            }
        }
        // Engines take turns, so the file need not have the order of the plan.
        let position = |name: &str| plan.scenarios.iter().position(|s| s.name == name).unwrap_or(usize::MAX);
        scenarios.sort_by_key(|scenario| position(scenario.name));
        Summary { report, engines, scenarios }
    }

    /// Label of the engine that ratios are against.
    #[must_use]
    pub fn baseline(&self) -> &'r str {
        &self.report.header.plan.baseline
    }

    /// Returns true if an engine is the harness's ceiling, which would flatten the scale of a chart of the
    /// others.
    #[must_use]
    pub fn is_ceiling(&self, engine: &str) -> bool {
        adapter(&self.report.header.plan, engine) == NULL
    }

    /// Geometric mean of the ratios of an engine over all steps that it and the baseline have.
    #[must_use]
    pub fn mean(&self, engine: &str) -> Option<Mean> {
        let ratios: Vec<f64> = self
            .steps()
            .filter(|(_, step)| !step.setup)
            .filter_map(|(_, step)| step.group(engine)?.ratio)
            .map(|ratio| ratio.median)
            .filter(|ratio| *ratio > 0.0)
            .collect();
        Some(Mean { ratio: geometric_mean(ratios.iter().copied())?, steps: ratios.len() })
    }

    /// Steps that have ratios: so many a mean is over if nothing is missing.
    #[must_use]
    pub fn steps_compared(&self) -> usize {
        let compared = |step: &StepSummary<'_>| step.groups.iter().any(|group| group.ratio.is_some());
        self.steps().filter(|(_, step)| !step.setup && compared(step)).count()
    }

    /// Every step with its scenario, in order.
    pub fn steps(&self) -> impl Iterator<Item = (&ScenarioSummary<'r>, &StepSummary<'r>)> {
        self.scenarios.iter().flat_map(|scenario| scenario.steps.iter().map(move |step| (scenario, step)))
    }

    /// The marked results: the work order.
    pub fn marked(
        &self,
    ) -> impl Iterator<Item = (&ScenarioSummary<'r>, &StepSummary<'r>, &Group<'r>, &Mark)> {
        self.steps().flat_map(|(scenario, step)| {
            step.groups.iter().filter_map(move |group| Some((scenario, step, group, group.mark.as_ref()?)))
        })
    }
}

impl<'r> StepSummary<'r> {
    /// The result of an engine.
    #[must_use]
    pub fn group(&self, engine: &str) -> Option<&Group<'r>> {
        self.groups.iter().find(|group| group.engine == engine)
    }
}

impl Mark {
    /// The mark in words: `1.20x of rocksdb, lmdb is 1.83x as fast`.
    #[must_use]
    pub fn words(&self, baseline: &str) -> String {
        let below = self.below_target.map(|ratio| format!("{} of {baseline}", times(ratio)));
        let behind = self.behind.iter().map(|(peer, ahead)| format!("{peer} is {} as fast", times(*ahead)));
        below.into_iter().chain(behind).collect::<Vec<_>>().join(", ")
    }
}

impl Group<'_> {
    /// Median of a figure over the repetitions that have it.
    #[must_use]
    pub fn median(&self, of: impl Fn(&Cell) -> Option<f64>) -> Option<f64> {
        median(self.cells.iter().filter_map(|cell| of(cell)))
    }
}

fn scenario<'r>(report: &'r RunReport, name: &'r str, engines: &[&'r str]) -> ScenarioSummary<'r> {
    let mut steps: BTreeMap<(u32, &str), Vec<&Cell>> = BTreeMap::new();
    for cell in report.cells.iter().filter(|cell| cell.scenario == name) {
        steps.entry((cell.index, &cell.step)).or_default().push(cell);
    }
    let plan = &report.header.plan;
    let steps =
        steps.into_iter().map(|((index, name), cells)| step(plan, name, index, &cells, engines)).collect();
    ScenarioSummary { name, steps }
}

fn step<'r>(
    plan: &Plan,
    name: &'r str,
    index: u32,
    cells: &[&'r Cell],
    engines: &[&'r str],
) -> StepSummary<'r> {
    let timed = cells.iter().all(|cell| cell.operations == 0);
    let mut groups: Vec<Group<'r>> =
        engines.iter().filter_map(|engine| group(engine, cells, &plan.baseline, timed)).collect();
    let fastest =
        groups.iter().filter(|group| adapter(plan, group.engine) != NULL).map(|group| group.value.median);
    let fastest = fastest.reduce(f64::max).filter(|rate| *rate > 0.0 && !timed);
    let null =
        groups.iter().find(|group| adapter(plan, group.engine) == NULL).map(|group| group.value.median);
    let ceiling = null.zip(fastest).map(|(null, fastest)| null / fastest);
    if !timed && !is_setup(plan, cells) {
        let judged = |group: &Group<'_>| adapter(plan, group.engine) == JUDGED;
        let marks: Vec<Option<Mark>> = groups
            .iter()
            .map(|group| if judged(group) { mark(group, &groups, plan) } else { None })
            .collect();
        for (group, mark) in groups.iter_mut().zip(marks) {
            group.mark = mark;
        }
    }
    StepSummary { name, index, timed, setup: is_setup(plan, cells), groups, ceiling }
}

fn group<'r>(engine: &'r str, cells: &[&'r Cell], baseline: &str, timed: bool) -> Option<Group<'r>> {
    let mut own: Vec<&Cell> = cells.iter().copied().filter(|cell| cell.engine == engine).collect();
    own.sort_by_key(|cell| cell.repetition);
    let figure = |cell: &Cell| if timed { cell.seconds_until_quiescent } else { cell.rate() };
    let value = Spread::of(own.iter().map(|cell| figure(cell)))?;
    let against = cells.iter().copied().filter(|cell| cell.engine == baseline);
    let ratio = if timed { None } else { Spread::of(pair_ratios(&own, against)) };
    Some(Group { engine, cells: own, value, ratio, mark: None })
}

/// Ratios of the rates of cells of the same repetition; pairs in which one did nothing are left out.
fn pair_ratios<'c>(own: &[&Cell], against: impl Iterator<Item = &'c Cell>) -> Vec<f64> {
    let against: BTreeMap<u32, f64> = against.map(|cell| (cell.repetition, cell.rate())).collect();
    own.iter()
        .filter_map(|cell| against.get(&cell.repetition).map(|rate| cell.rate() / rate))
        .filter(|ratio| ratio.is_finite())
        .collect()
}

/// Returns true if the plan says that a step only prepares others.
fn is_setup(plan: &Plan, cells: &[&Cell]) -> bool {
    let Some(cell) = cells.first() else { return false };
    let scenario = plan.scenarios.iter().find(|scenario| scenario.name == cell.scenario);
    scenario
        .and_then(|scenario| scenario.steps.get(cell.index as usize))
        .is_some_and(|step| matches!(step, crate::plan::Step::Run(run) if run.setup))
}

/// The fault of a judged result; `None` if it has none.
fn mark(group: &Group<'_>, all: &[Group<'_>], plan: &Plan) -> Option<Mark> {
    let below_target = group.ratio.filter(|_| group.engine != plan.baseline).map(|ratio| ratio.median);
    let below_target = below_target.filter(|ratio| *ratio < TARGET);
    let own = adapter(plan, group.engine);
    let behind: Vec<(String, f64)> = all
        .iter()
        .filter(|peer| ![own, NULL].contains(&adapter(plan, peer.engine)))
        .filter_map(|peer| {
            let ahead = median(pair_ratios(&peer.cells, group.cells.iter().copied()))?;
            (ahead > 1.0).then(|| (peer.engine.to_owned(), ahead))
        })
        .collect();
    (below_target.is_some() || !behind.is_empty()).then_some(Mark { below_target, behind })
}

/// Name of the adapter behind a label; the label itself if the plan does not know it.
fn adapter<'p>(plan: &'p Plan, label: &'p str) -> &'p str {
    plan.engines.iter().find(|choice| choice.label == label).map_or(label, |choice| choice.engine.as_str())
}
