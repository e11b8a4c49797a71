//! A whole scenario over time: each engine's lines of all steps, one behind the other, so that a change of
//! the load, and what follows it, are in one chart.
//!
//! A step begins where the longest line of the step before ends, for every engine alike.

use super::axis::{Frame, time_labels};
use super::markup::Html;
use super::timeline::Line;
use super::{class, numbers};
use crate::report::metric;
use crate::report::statistic::median;
use crate::report::summary::{ScenarioSummary, StepSummary, Summary};

/// A step that is drawn.
struct Part<'s> {
    name: &'s str,
    /// In seconds from the left.
    start: f64,
    lines: Vec<&'s Line<'s>>,
}

/// One chart, if several steps have lines.
pub(super) fn chart(
    html: &mut Html,
    summary: &Summary<'_>,
    scenario: &ScenarioSummary<'_>,
    steps: &[(&StepSummary<'_>, Vec<Line<'_>>)],
) {
    let (parts, x_max) = parts(summary, steps);
    if parts.len() < 2 {
        return;
    }
    let points = parts.iter().flat_map(|part| &part.lines).flat_map(|line| &line.points);
    let frame = Frame::linear(x_max, points.map(|point| point.median).fold(0.0, f64::max));
    let engines: Vec<&str> =
        summary.engines.iter().copied().filter(|name| !summary.is_ceiling(name)).collect();
    html.nest("figure", &[("class", "whole")], |html| {
        html.nest("figcaption", &[], |html| {
            html.element("b", &[], "All steps");
            let names: Vec<&str> = parts.iter().map(|part| part.name).collect();
            html.element("span", &[], &format!(" one behind the other: {}", names.join("; ")));
        });
        let about = format!(
            "Operations per second over time for all steps of {}; the numbers are in the table below",
            scenario.name
        );
        frame.draw(html, &about, (&time_labels(x_max), metric::scaled), |html| {
            parts.iter().for_each(|part| border(html, &frame, part));
            for engine in &engines {
                draw(html, &frame, &parts, engine, &class(summary, engine));
            }
        });
        let heads: Vec<&str> =
            std::iter::once("Median of").chain(parts.iter().map(|part| part.name)).collect();
        let rows: Vec<_> =
            engines.iter().map(|engine| (class(summary, engine), row(&parts, engine))).collect();
        numbers(html, &heads, &rows);
    });
}

/// The steps that have lines but for the ceiling, which would press the others to the ground; and where they
/// end.
fn parts<'s>(summary: &Summary<'_>, steps: &'s [(&StepSummary<'_>, Vec<Line<'_>>)]) -> (Vec<Part<'s>>, f64) {
    let (mut parts, mut end) = (Vec::new(), 0.0);
    for (step, lines) in steps {
        let lines: Vec<_> = lines.iter().filter(|line| !summary.is_ceiling(line.group.engine)).collect();
        let length = lines.iter().map(|line| line.points.len() as f64 * line.interval).fold(0.0, f64::max);
        if length > 0.0 {
            parts.push(Part { name: step.name, start: end, lines });
            end += length;
        }
    }
    (parts, end)
}

fn border(html: &mut Html, frame: &Frame, part: &Part<'_>) {
    let x = format!("{:.1}", frame.x(part.start));
    let (top, bottom) = (format!("{:.1}", frame.y(frame.y.1)), format!("{:.1}", frame.y(0.0)));
    let places = [("class", "grid"), ("x1", x.as_str()), ("x2", &x), ("y1", &top), ("y2", &bottom)];
    html.nest("line", &places, |html| html.element("title", &[], part.name));
}

fn draw(html: &mut Html, frame: &Frame, parts: &[Part<'_>], engine: &str, class: &str) {
    let mut points = Vec::new();
    for part in parts {
        for line in part.lines.iter().filter(|line| line.group.engine == engine) {
            let at = |index: usize| part.start + (index as f64 + 0.5) * line.interval;
            let own = line.points.iter().enumerate();
            points.extend(own.map(|(index, point)| frame.point(at(index), point.median)));
        }
    }
    if !points.is_empty() {
        let own = format!("line {class}");
        let points = points.join(" ");
        html.empty("polyline", &[("class", &own), ("points", &points), ("data-name", engine)]);
    }
}

fn row(parts: &[Part<'_>], engine: &str) -> Vec<String> {
    let of = |part: &Part<'_>| {
        let line = part.lines.iter().find(|line| line.group.engine == engine)?;
        median(line.points.iter().map(|point| point.median))
    };
    let shown = |part| of(part).map_or(metric::NONE.to_owned(), metric::rate);
    std::iter::once(engine.to_owned()).chain(parts.iter().map(shown)).collect()
}
