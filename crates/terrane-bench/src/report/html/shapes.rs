//! The trees before and after each step, part by part.

use super::markup::Html;
use crate::engine::{Shape, ShapeRow};
use crate::report::metric::{self, NONE};
use crate::report::summary::ScenarioSummary;

/// A table of all steps of the scenario in which some engine reported its shape, of each engine's first
/// repetition.
pub(super) fn table(html: &mut Html, scenario: &ScenarioSummary<'_>) {
    let cells = || {
        let groups =
            scenario.steps.iter().flat_map(|step| step.groups.iter().map(move |group| (step, group)));
        groups.filter_map(|(step, group)| Some((step.name, group.engine, *group.cells.first()?)))
    };
    if cells().all(|(_, _, cell)| cell.shape_before.rows.is_empty() && cell.shape_after.rows.is_empty()) {
        return;
    }
    html.element("h3", &[], "Shape of the trees");
    html.nest("details", &[], |html| {
        html.element("summary", &[], "Before and after each step (first repetition)");
        html.nest("div", &[("class", "scroll")], |html| {
            html.nest("table", &[("class", "numbers")], |html| {
                html.nest("tr", &[], |html| {
                    for head in [
                        "Step",
                        "Engine",
                        "Part",
                        "Runs before",
                        "after",
                        "Entries before",
                        "after",
                        "Bytes before",
                        "after",
                    ] {
                        html.element("th", &[("scope", "col")], head);
                    }
                });
                for (step, engine, cell) in cells() {
                    rows(html, step, engine, &cell.shape_before, &cell.shape_after);
                }
            });
        });
    });
}

fn rows(html: &mut Html, step: &str, engine: &str, before: &Shape, after: &Shape) {
    let mut parts: Vec<&str> = before.rows.iter().map(|row| row.part.as_str()).collect();
    for row in &after.rows {
        if !parts.contains(&row.part.as_str()) {
            parts.push(&row.part);
        }
    }
    for (at, part) in parts.iter().enumerate() {
        let find = |shape: &'_ Shape| shape.rows.iter().find(|row| row.part == *part).cloned();
        let (before, after) = (find(before), find(after));
        html.nest("tr", &[("class", if at == 0 { "first" } else { "" })], |html| {
            html.element("th", &[("scope", "row")], if at == 0 { step } else { "" });
            html.element("th", &[("scope", "row")], if at == 0 { engine } else { "" });
            html.element("th", &[("scope", "row")], part);
            let mut pair = |write: fn(&ShapeRow) -> Option<String>| {
                for row in [&before, &after] {
                    let text = row.as_ref().and_then(write).unwrap_or_else(|| NONE.to_owned());
                    html.element("td", &[], &text);
                }
            };
            pair(|row| Some(row.runs.to_string()));
            pair(|row| row.entries.map(|entries| metric::scaled(entries as f64)));
            pair(|row| Some(metric::bytes(row.bytes as f64)));
        });
    }
}
