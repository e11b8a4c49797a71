//! Latency percentiles, on a logarithmic axis.

use super::axis::Frame;
use super::markup::Html;
use super::{class, numbers, title};
use crate::report::metric::{self, PERCENTILES};
use crate::report::model::Latency;
use crate::report::statistic::median;
use crate::report::summary::{Group, ScenarioSummary, StepSummary, Summary};

/// A chart per step with operations.
pub(super) fn charts(html: &mut Html, summary: &Summary<'_>, scenario: &ScenarioSummary<'_>) {
    let timed = |step: &StepSummary<'_>| step.groups.iter().any(|group| figures(group).is_some());
    let steps: Vec<_> = scenario.steps.iter().filter(|step| !step.timed && timed(step)).collect();
    if steps.is_empty() {
        return;
    }
    html.element("h3", &[], "Latency");
    html.element(
        "p",
        &[("class", "note")],
        "Microseconds by percentile, median over repetitions; the axis is logarithmic.",
    );
    html.nest("div", &[("class", "grid-of-charts")], |html| {
        steps.iter().for_each(|step| chart(html, summary, scenario, step));
    });
}

/// Percentiles of an engine in microseconds; `None` if it has none.
fn figures(group: &Group<'_>) -> Option<Vec<f64>> {
    PERCENTILES.iter().map(|percentile| group.median(percentile.of)).collect()
}

fn chart(html: &mut Html, summary: &Summary<'_>, scenario: &ScenarioSummary<'_>, step: &StepSummary<'_>) {
    let lines: Vec<_> = step.groups.iter().filter_map(|group| Some((group, figures(group)?))).collect();
    // A clock may read zero for an operation that is faster than its tick.
    let all = || lines.iter().flat_map(|(_, figures)| figures).map(|figure| figure.max(0.01));
    let ends = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    let last = (PERCENTILES.len() - 1) as f64;
    let frame = Frame::logarithmic(last + 0.6, ends);
    // Half a label of room on each side.
    let at = |index: usize| index as f64 + 0.3;
    let labels: Vec<_> = PERCENTILES
        .iter()
        .enumerate()
        .map(|(index, percentile)| (at(index), percentile.name.to_owned()))
        .collect();
    html.nest("figure", &[], |html| {
        title(html, summary, scenario, step.name, step.index);
        let about = format!("Latency percentiles for {}; the numbers are in the table below", step.name);
        frame.draw(html, &about, (&labels, micros), |html| {
            for (group, figures) in &lines {
                let class = class(summary, group.engine);
                let points =
                    figures.iter().enumerate().map(|(index, figure)| frame.point(at(index), *figure));
                let points = points.collect::<Vec<_>>().join(" ");
                html.empty("polyline", &[("class", &format!("line {class}")), ("points", &points)]);
                for (index, figure) in figures.iter().enumerate() {
                    let (x, y) = (format!("{:.1}", frame.x(at(index))), format!("{:.1}", frame.y(*figure)));
                    html.nest(
                        "circle",
                        &[("class", &format!("dot {class}")), ("cx", &x), ("cy", &y), ("r", "3")],
                        |html| {
                            let words = format!(
                                "{} {}: {} us",
                                group.engine,
                                PERCENTILES[index].name,
                                metric::short(*figure)
                            );
                            html.element("title", &[], &words);
                        },
                    );
                }
            }
        });
        table(html, summary, step, &lines);
    });
}

fn micros(value: f64) -> String {
    match value {
        v if v >= 999_999.0 => format!("{:.0} s", v / 1e6),
        v if v >= 999.9 => format!("{:.0} ms", v / 1e3),
        v if v >= 0.99 => format!("{v:.0} us"),
        v => format!("{:.0} ns", v * 1e3),
    }
}

/// All operations, then each kind where there are several.
fn table(html: &mut Html, summary: &Summary<'_>, step: &StepSummary<'_>, lines: &[(&Group<'_>, Vec<f64>)]) {
    let mut rows = Vec::new();
    for (group, figures) in lines {
        let class = class(summary, group.engine);
        let name = group.engine.to_owned();
        rows.push((
            class.clone(),
            [name].into_iter().chain(figures.iter().map(|us| metric::short(*us))).collect(),
        ));
        let kinds = group.cells.iter().flat_map(|cell| cell.latency_by_kind.keys());
        let kinds: std::collections::BTreeSet<_> = kinds.collect();
        for kind in kinds.iter().filter(|_| kinds.len() > 1) {
            let name = format!("{} {}", group.engine, format!("{kind:?}").to_lowercase());
            let own: Vec<&Latency> =
                group.cells.iter().filter_map(|cell| cell.latency_by_kind.get(kind)).collect();
            let figure = |of: fn(&Latency) -> u64| {
                median(own.iter().map(|latency| of(latency) as f64 / 1e3))
                    .map_or(metric::NONE.to_owned(), metric::short)
            };
            let figures: [fn(&Latency) -> u64; PERCENTILES.len()] =
                [|l| l.p50, |l| l.p90, |l| l.p99, |l| l.p999, |l| l.p9999, |l| l.max];
            rows.push((class.clone(), [name].into_iter().chain(figures.map(figure)).collect()));
        }
    }
    let heads: Vec<&str> = ["Engine, us"].into_iter().chain(PERCENTILES.iter().map(|p| p.name)).collect();
    debug_assert!(
        rows.iter().all(|(_, row): &(String, Vec<String>)| row.len() == heads.len()),
        "{}",
        step.name
    );
    numbers(html, &heads, &rows);
}
