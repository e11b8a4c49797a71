//! The run as text for a terminal: one block per scenario, one table per step, one row per engine.
//!
//! The default columns fit into [`WIDTH`]; `details` adds two tables of the others. Columns that no
//! engine has a figure for are left out. Figures are medians over repetitions; `+-` is their range by the
//! median.

use std::fmt::Write as _;

use crate::report::metric::{self, Metric, NONE};
use crate::report::model::{Cell, RunReport};
use crate::report::summary::{CEILING_MIN, Group, ScenarioSummary, StepSummary, Summary, TARGET};
use crate::report::text::{self, Colour, Columns, Text, clean, cut};

/// Widest line.
pub const WIDTH: usize = 140;

/// Longest label of an engine that is not cut.
const LABEL_MAX: usize = 18;

/// How the text is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// True if ratios are coloured.
    pub colour: bool,
    /// True if the tables of the other columns are written.
    pub details: bool,
}

/// Returns true if output is coloured: only to a terminal, and not if `NO_COLOR` is set and not empty.
#[must_use]
pub fn colour_wanted(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

const FIRST: [Metric; 12] = [
    metric::P50,
    metric::P99,
    metric::P999,
    metric::CPU,
    metric::WRITE_AMPLIFICATION,
    metric::READ_AMPLIFICATION,
    metric::RUNS,
    metric::FILTERS,
    metric::BLOCKS,
    metric::SPACE,
    metric::MEMORY,
    metric::SWITCHES,
];

const SECOND: [Metric; 13] = [
    metric::FOUND,
    metric::P90,
    metric::P9999,
    metric::LONGEST,
    metric::CPU_USER,
    metric::CPU_SYSTEM,
    metric::ENGINE_WRITES,
    metric::FALSE_POSITIVES,
    metric::CACHE_HITS,
    metric::STALLED,
    metric::LOW_WINDOWS,
    metric::BACKGROUND_RATE,
    metric::ABORTS,
];

const THIRD: [Metric; 11] = [
    metric::SPACE_PEAK,
    metric::VALUES_PEAK,
    metric::DISK,
    metric::BUCKET_CREATES,
    metric::BUCKET_READS,
    metric::BUCKET_BYTES,
    metric::FAULTS,
    metric::INSTRUCTIONS,
    metric::CYCLES,
    metric::CACHE_MISSES,
    metric::BRANCH_MISSES,
];

/// The whole run as text.
#[must_use]
pub fn render(report: &RunReport, style: Style) -> String {
    let summary = Summary::new(report);
    let mut out = String::new();
    partial(&mut out, report);
    head(&mut out, report);
    for scenario in &summary.scenarios {
        block(&mut out, &summary, scenario, style);
    }
    means(&mut out, &summary, style);
    marks(&mut out, &summary);
    failures(&mut out, report);
    partial(&mut out, report);
    out
}

fn push(out: &mut String, indent: usize, text: &str) {
    let pad = " ".repeat(indent);
    for (at, line) in text::wrap(&clean(text), WIDTH - indent - 2).iter().enumerate() {
        let hang = if at == 0 { "" } else { "  " };
        writeln!(out, "{pad}{hang}{line}").expect("writing to a string does not fail");
    }
}

fn partial(out: &mut String, report: &RunReport) {
    if report.is_partial() {
        let planned = &report.header.plan;
        let text = format!(
            "PARTIAL: the run was stopped before its end; {} cells of {} scenarios x {} engines x {} repetitions were measured",
            report.cells.len(),
            planned.scenarios.len(),
            planned.engines.len(),
            planned.repetitions
        );
        push(out, 0, &text);
    }
}

fn head(out: &mut String, report: &RunReport) {
    let header = &report.header;
    let plan = &header.plan;
    let text = format!(
        "{}: {} engines, {} repetitions, seed {}, ratios against {}; bench {}, {}",
        plan.name,
        plan.engines.len(),
        plan.repetitions,
        plan.seed,
        plan.baseline,
        header.bench_version,
        text::date(header.started)
    );
    push(out, 0, &text);
    push(out, 0, &text::machine(&header.machine));
}

/// The facts that each engine reported at its opening: a figure without its settings says little.
fn engines(out: &mut String, report: &RunReport, scenario: &str) {
    for choice in &report.header.plan.engines {
        let own = |cell: &&Cell| cell.scenario == scenario && cell.engine == choice.label;
        let Some(cell) = report.cells.iter().find(own) else { continue };
        let settings = cell.opened.settings.iter().map(|(name, value)| format!("{name} {value}"));
        let settings: Vec<String> = settings.collect();
        push(out, 1, &format!("{} {}: {}", choice.label, cell.opened.version, settings.join("; ")));
    }
}

fn block(out: &mut String, summary: &Summary<'_>, scenario: &ScenarioSummary<'_>, style: Style) {
    let plan = &summary.report.header.plan;
    out.push('\n');
    let words = plan.scenarios.iter().find(|planned| planned.name == scenario.name).map(text::scenario);
    push(out, 0, &format!("== {}: {}", scenario.name, words.unwrap_or_default()));
    engines(out, summary.report, scenario.name);
    for step in &scenario.steps {
        out.push('\n');
        let words = text::step(plan, scenario.name, step.name, step.index);
        push(out, 1, &format!("{} ({words})", step.name).replace(" ()", ""));
        table(out, step, &FIRST, true, style);
        if style.details && !step.timed {
            table(out, step, &SECOND, false, style);
            table(out, step, &THIRD, false, style);
        }
        shapes(out, step);
        if let Some(ceiling) = step.ceiling.filter(|ceiling| *ceiling < CEILING_MIN) {
            let text = format!(
                "note: the null engine is only {ceiling:.1} times the fastest: the harness weighs on these figures"
            );
            push(out, 3, &text);
        }
    }
}

/// One table of a step. `rates`: with rate, spread and ratio.
fn table(out: &mut String, step: &StepSummary<'_>, metrics: &[Metric], rates: bool, style: Style) {
    let metrics = if step.timed { &[metric::CPU_TIME, metric::DISK, metric::MEMORY][..] } else { metrics };
    let value = if step.timed { "time" } else { "rate" };
    let mut heads = vec!["engine".to_owned()];
    if rates {
        heads.extend([value, "+-", "ratio"].map(str::to_owned));
    }
    heads.extend(metrics.iter().map(|metric| metric.name.to_owned()));
    let mut columns = Columns::new(1, heads);
    for group in &step.groups {
        let mut row = vec![cut(&clean(group.engine), LABEL_MAX).into()];
        if rates {
            row.extend(rate_cells(step, group));
        }
        row.extend(metrics.iter().map(|metric| figure(group, metric).into()));
        columns.row(row);
    }
    for line in columns.lines(style.colour) {
        writeln!(out, "   {line}").expect("writing to a string does not fail");
    }
}

fn rate_cells(step: &StepSummary<'_>, group: &Group<'_>) -> [Text; 3] {
    let value =
        if step.timed { metric::seconds(group.value.median) } else { metric::rate(group.value.median) };
    let spread = group
        .value
        .relative()
        .map_or(NONE.to_owned(), |spread| format!("{:.0}%", (spread * 100.0).min(9999.0)));
    let ratio = group.ratio.map_or(Text::from(NONE.to_owned()), |ratio| {
        let mark = if group.mark.is_some() { "!" } else { "" };
        Text { text: mark.to_owned() + &metric::times(ratio.median), colour: colour(ratio.median) }
    });
    [value.into(), spread.into(), ratio]
}

/// Beyond what repetitions usually differ by.
fn colour(ratio: f64) -> Colour {
    match ratio {
        r if r >= 1.05 => Colour::Good,
        r if r <= 0.95 => Colour::Bad,
        _ => Colour::Plain,
    }
}

fn figure(group: &Group<'_>, metric: &Metric) -> String {
    group.median(metric.of).map_or(NONE.to_owned(), metric.write)
}

/// The trees before and after, of the first repetition, for engines that tell.
fn shapes(out: &mut String, step: &StepSummary<'_>) {
    for group in &step.groups {
        let Some(cell) = group.cells.first() else { continue };
        if cell.shape_before.rows.is_empty() && cell.shape_after.rows.is_empty() {
            continue;
        }
        let (before, after) = (text::shape(&cell.shape_before), text::shape(&cell.shape_after));
        let change =
            if before == after { format!("{before} (unchanged)") } else { format!("{before} -> {after}") };
        push(out, 3, &format!("shape {}: {change}", cut(group.engine, LABEL_MAX)));
    }
}

fn means(out: &mut String, summary: &Summary<'_>, style: Style) {
    let compared = summary.steps_compared();
    if compared == 0 {
        return;
    }
    out.push('\n');
    push(out, 0, &format!("Geometric mean of the ratios to {} ({compared} steps)", summary.baseline()));
    let mut columns = Columns::new(1, ["engine", "mean", "steps"].map(str::to_owned));
    for engine in &summary.engines {
        let Some(mean) = summary.mean(engine) else { continue };
        let ratio = Text { text: metric::times(mean.ratio), colour: colour(mean.ratio) };
        columns.row(vec![cut(&clean(engine), LABEL_MAX).into(), ratio, mean.steps.to_string().into()]);
    }
    for line in columns.lines(style.colour) {
        writeln!(out, "   {line}").expect("writing to a string does not fail");
    }
}

fn marks(out: &mut String, summary: &Summary<'_>) {
    let mut first = true;
    for (scenario, step, group, mark) in summary.marked() {
        if std::mem::take(&mut first) {
            out.push('\n');
            push(
                out,
                0,
                &format!("Marked (!): below {TARGET} times {} or behind a peer", summary.baseline()),
            );
        }
        push(
            out,
            3,
            &format!(
                "{} / {} / {}: {}",
                scenario.name,
                step.name,
                group.engine,
                mark.words(summary.baseline())
            ),
        );
    }
}

fn failures(out: &mut String, report: &RunReport) {
    if report.failed.is_empty() {
        return;
    }
    out.push('\n');
    push(out, 0, "Not measured");
    for failed in &report.failed {
        push(out, 3, &text::failed(failed));
    }
}
