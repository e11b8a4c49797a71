//! Space over time: for each engine the bytes on disk per byte of live data, looked at each second, of the
//! repetition that took most.
//!
//! For drawing, neighbouring looks are joined to the greatest of them until at most [`POINTS_MAX`] are left.

use super::axis::{Frame, time_labels};
use super::markup::Html;
use super::{class, numbers, title};
use crate::report::metric;
use crate::report::model::Cell;
use crate::report::summary::{Group, ScenarioSummary, StepSummary, Summary};

/// Most points of a line.
const POINTS_MAX: usize = 120;

/// One engine's line.
struct Line<'g> {
    group: &'g Group<'g>,
    /// Length of a drawn interval, in seconds.
    interval: f64,
    /// Bytes on disk per byte of live data.
    points: Vec<f64>,
}

/// A chart per step that ran for some seconds.
pub(super) fn charts(html: &mut Html, summary: &Summary<'_>, scenario: &ScenarioSummary<'_>) {
    let steps: Vec<_> = scenario.steps.iter().map(|step| (step, lines(step))).collect();
    if steps.iter().all(|(_, lines)| lines.is_empty()) {
        return;
    }
    html.element("h3", &[], "Space over time");
    html.element(
        "p",
        &[("class", "note")],
        "Bytes allocated on disk per byte of live keys and values, looked at each second while the operations run; of several repetitions the one that took most.",
    );
    html.nest("div", &[("class", "grid-of-charts")], |html| {
        for (step, lines) in steps.iter().filter(|(_, lines)| !lines.is_empty()) {
            chart(html, summary, scenario, step, lines);
        }
    });
}

fn chart(
    html: &mut Html,
    summary: &Summary<'_>,
    scenario: &ScenarioSummary<'_>,
    step: &StepSummary<'_>,
    lines: &[Line<'_>],
) {
    let x_max = lines.iter().map(|line| line.points.len() as f64 * line.interval).fold(0.0, f64::max);
    let y_max = lines.iter().flat_map(|line| &line.points).copied().fold(0.0, f64::max);
    let frame = Frame::linear(x_max, y_max);
    html.nest("figure", &[], |html| {
        title(html, summary, scenario, step.name, step.index);
        let about =
            format!("Space amplification over time for {}; the numbers are in the table below", step.name);
        frame.draw(html, &about, (&time_labels(x_max), metric::short), |html| {
            for line in lines {
                let at = |index: usize| (index as f64 + 0.5) * line.interval;
                let points =
                    line.points.iter().enumerate().map(|(index, point)| frame.point(at(index), *point));
                let points = points.collect::<Vec<_>>().join(" ");
                let own = format!("line {}", class(summary, line.group.engine));
                html.empty(
                    "polyline",
                    &[("class", &own), ("points", &points), ("data-name", line.group.engine)],
                );
            }
        });
        let rows: Vec<_> = lines.iter().map(|line| (class(summary, line.group.engine), row(line))).collect();
        numbers(html, &["Engine", "At most", "At the end", "Separated values, at most"], &rows);
    });
}

fn row(line: &Line<'_>) -> Vec<String> {
    let shown = |figure: metric::Metric| {
        let most = line.group.cells.iter().filter_map(|cell| (figure.of)(cell)).reduce(f64::max);
        most.map_or(metric::NONE.to_owned(), figure.write)
    };
    vec![
        line.group.engine.to_owned(),
        shown(metric::SPACE_PEAK),
        shown(metric::SPACE),
        shown(metric::VALUES_PEAK),
    ]
}

/// Lines of the engines that were looked at at least twice.
fn lines<'g>(step: &'g StepSummary<'g>) -> Vec<Line<'g>> {
    step.groups.iter().filter_map(line).collect()
}

fn line<'g>(group: &'g Group<'g>) -> Option<Line<'g>> {
    let peak = |cell: &&&Cell| (metric::SPACE_PEAK.of)(cell).unwrap_or(0.0);
    let looked = group.cells.iter().filter(|cell| cell.space.disk_bytes.len() > 1);
    let cell = looked.max_by(|a, b| peak(a).total_cmp(&peak(b)))?;
    let live = cell.live_bytes.filter(|bytes| *bytes > 0)? as f64;
    let stride = cell.space.disk_bytes.len().div_ceil(POINTS_MAX);
    let looks = cell.space.disk_bytes.chunks(stride);
    let points = looks.map(|part| part.iter().max().copied().unwrap_or(0) as f64 / live).collect();
    Some(Line { group, interval: cell.space.interval * stride as f64, points })
}
