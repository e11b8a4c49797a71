//! Throughput over time: for each engine the median of its repetitions, the band between the slowest and the
//! fastest, and marks where it stalled.
//!
//! A stall is an interval of one repetition with less than a tenth of the median of that repetition's
//! intervals. Only whole intervals before the end of the operations count: what comes after is waiting for
//! the background. For drawing, neighbouring intervals are averaged until at most [`POINTS_MAX`] are left;
//! stalls are found before that.

use super::axis::{Frame, time_labels};
use super::markup::Html;
use super::{class, numbers, title, whole};
use crate::report::metric;
use crate::report::model::Cell;
use crate::report::statistic::{Spread, median, stalls};
use crate::report::summary::{Group, ScenarioSummary, StepSummary, Summary};

/// Most points of a line.
const POINTS_MAX: usize = 120;

/// Most marks of one engine that are drawn; the table has the count of all.
const MARKS_MAX: usize = 40;

/// One engine's line.
pub(super) struct Line<'g> {
    pub(super) group: &'g Group<'g>,
    /// Length of a drawn interval, in seconds.
    pub(super) interval: f64,
    /// Rates in operations per second, over the repetitions that were still running.
    pub(super) points: Vec<Spread>,
    /// Start of each stall, in seconds.
    stalls: Vec<f64>,
    /// Longest run of stalled intervals, in seconds.
    longest: f64,
}

/// A chart per step with operations.
pub(super) fn charts(html: &mut Html, summary: &Summary<'_>, scenario: &ScenarioSummary<'_>) {
    let steps: Vec<_> =
        scenario.steps.iter().filter(|step| !step.timed).map(|step| (step, lines(step))).collect();
    if steps.iter().all(|(_, lines)| lines.is_empty()) {
        return;
    }
    html.element("h3", &[], "Throughput over time");
    html.element(
        "p",
        &[("class", "note")],
        "Operations per second: median over repetitions, the band from the slowest to the fastest. A dot on the axis is a stall: an interval below a tenth of the median.",
    );
    whole::chart(html, summary, scenario, &steps);
    html.nest("div", &[("class", "grid-of-charts")], |html| {
        for (step, lines) in steps.iter().filter(|(_, lines)| !lines.is_empty()) {
            chart(html, summary, scenario, step, lines);
        }
    });
    let short: Vec<&str> =
        steps.iter().filter(|(_, lines)| lines.is_empty()).map(|(step, _)| step.name).collect();
    if !short.is_empty() {
        html.element("p", &[("class", "note")], &format!("Too short for a line: {}.", short.join(", ")));
    }
}

fn chart(
    html: &mut Html,
    summary: &Summary<'_>,
    scenario: &ScenarioSummary<'_>,
    step: &StepSummary<'_>,
    lines: &[Line<'_>],
) {
    // The ceiling would press every other line to the ground; it stays in the numbers, unless it is alone.
    let drawn: Vec<&Line<'_>> = lines.iter().filter(|line| !summary.is_ceiling(line.group.engine)).collect();
    let drawn = if drawn.is_empty() { lines.iter().collect() } else { drawn };
    let x_max = drawn.iter().map(|line| line.points.len() as f64 * line.interval).fold(0.0, f64::max);
    let y_max = drawn.iter().flat_map(|line| &line.points).map(|point| point.max).fold(0.0, f64::max);
    let frame = Frame::linear(x_max, y_max);
    html.nest("figure", &[], |html| {
        title(html, summary, scenario, step.name, step.index);
        let about =
            format!("Operations per second over time for {}; the numbers are in the table below", step.name);
        frame.draw(html, &about, (&time_labels(x_max), metric::scaled), |html| {
            for line in &drawn {
                draw(html, &frame, line, &class(summary, line.group.engine));
            }
        });
        let rows: Vec<_> = lines.iter().map(|line| (class(summary, line.group.engine), row(line))).collect();
        numbers(
            html,
            &["Engine", "Median", "Slowest", "Fastest", "Stalls", "Longest", "Ran", "Until quiescent"],
            &rows,
        );
    });
}

fn draw(html: &mut Html, frame: &Frame, line: &Line<'_>, class: &str) {
    let at = |index: usize| (index as f64 + 0.5) * line.interval;
    if line.group.cells.len() > 1 {
        let upper = line.points.iter().enumerate().map(|(index, point)| frame.point(at(index), point.max));
        let lower =
            line.points.iter().enumerate().rev().map(|(index, point)| frame.point(at(index), point.min));
        let points = upper.chain(lower).collect::<Vec<_>>().join(" ");
        html.empty("polygon", &[("class", &format!("band {class}")), ("points", &points)]);
    }
    let points = line.points.iter().enumerate().map(|(index, point)| frame.point(at(index), point.median));
    let points = points.collect::<Vec<_>>().join(" ");
    let own = format!("line {class}");
    html.empty("polyline", &[("class", &own), ("points", &points), ("data-name", line.group.engine)]);
    for stall in line.stalls.iter().take(MARKS_MAX) {
        let (x, y) = (format!("{:.1}", frame.x(*stall)), format!("{:.1}", frame.y(0.0)));
        html.nest(
            "circle",
            &[("class", &format!("stall {class}")), ("cx", &x), ("cy", &y), ("r", "3")],
            |html| {
                html.element("title", &[], &format!("{}: stall at {stall:.1} s", line.group.engine));
            },
        );
    }
}

fn row(line: &Line<'_>) -> Vec<String> {
    let points = || line.points.iter();
    let shown = |value: Option<f64>, write: fn(f64) -> String| value.map_or(metric::NONE.to_owned(), write);
    vec![
        line.group.engine.to_owned(),
        shown(median(points().map(|point| point.median)), metric::rate),
        shown(points().map(|point| point.min).reduce(f64::min), metric::rate),
        shown(points().map(|point| point.max).reduce(f64::max), metric::rate),
        line.stalls.len().to_string(),
        metric::seconds(line.longest),
        shown(line.group.median(|cell| Some(cell.seconds)), metric::seconds),
        shown(line.group.median(|cell| Some(cell.seconds_until_quiescent)), metric::seconds),
    ]
}

/// Lines of the engines that have at least two whole intervals.
fn lines<'g>(step: &'g StepSummary<'g>) -> Vec<Line<'g>> {
    step.groups.iter().filter_map(line).collect()
}

fn line<'g>(group: &'g Group<'g>) -> Option<Line<'g>> {
    let interval = group.cells.iter().map(|cell| cell.timeline.interval).find(|interval| *interval > 0.0)?;
    let mut all: Vec<&[u64]> = group.cells.iter().map(|cell| whole_intervals(cell, interval)).collect();
    all.retain(|operations| operations.len() > 1);
    let longest_run = all.iter().map(|operations| operations.len()).max()?;
    let stride = longest_run.div_ceil(POINTS_MAX);
    let points = (0..longest_run.div_ceil(stride)).filter_map(|bin| {
        let rates = all
            .iter()
            .filter_map(|operations| operations.get(bin * stride..))
            .filter(|rest| !rest.is_empty());
        Spread::of(rates.map(|rest| {
            let part = &rest[..rest.len().min(stride)];
            part.iter().sum::<u64>() as f64 / (part.len() as f64 * interval)
        }))
    });
    let points = points.collect();
    let (stalls, longest) = stalls(&all, interval);
    Some(Line { group, interval: interval * stride as f64, points, stalls, longest })
}

/// The intervals that ended before the operations did.
fn whole_intervals(cell: &Cell, interval: f64) -> &[u64] {
    let operations = &cell.timeline.operations;
    // Whole, but for rounding; a float out of range becomes the nearest integer.
    let whole = (cell.seconds / interval + 1e-6).floor() as usize;
    if (cell.timeline.interval - interval).abs() > 1e-9 {
        &[]
    } else {
        &operations[..operations.len().min(whole)]
    }
}
