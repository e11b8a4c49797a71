//! The run as one HTML file that opens without network: styles, script and charts are inside, nothing is
//! loaded.
//!
//! Order: headline and machine; geometric means; ratio matrix and its marks; per scenario throughput and
//! space over time, latency, bars and shapes; steps that were not measured; engines, settings, command and
//! plan. Each chart has its numbers in a table under it. The page works without its script, which only hides
//! engines and shows values under the pointer.

use crate::report::model::RunReport;
use crate::report::summary::{ScenarioSummary, Summary};
use crate::report::text;

mod axis;
mod bars;
mod head;
mod latency;
mod markup;
mod matrix;
mod settings;
mod shapes;
mod space;
mod timeline;
mod whole;

use markup::Html;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Forbids every load, should anything ever slip in.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// Colours of engines; more engines share them.
const COLOURS: usize = 10;

/// The whole page.
#[must_use]
pub fn render(report: &RunReport) -> String {
    let summary = Summary::new(report);
    let mut html = Html::default();
    html.fixed("<!DOCTYPE html>\n");
    html.nest("html", &[("lang", "en")], |html| {
        head_element(html, report);
        html.nest("body", &[], |html| body(html, &summary));
    });
    html.into_string()
}

fn head_element(html: &mut Html, report: &RunReport) {
    html.nest("head", &[], |html| {
        html.empty("meta", &[("charset", "utf-8")]);
        html.empty("meta", &[("http-equiv", "Content-Security-Policy"), ("content", POLICY)]);
        html.empty("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
        html.empty("meta", &[("name", "color-scheme"), ("content", "light dark")]);
        html.element("title", &[], &format!("Benchmark {}", report.header.plan.name));
        html.nest("style", &[], |html| html.fixed(STYLE));
    });
}

fn body(html: &mut Html, summary: &Summary<'_>) {
    head::headline(html, summary);
    html.nest("main", &[], |html| {
        head::chooser(html, summary);
        head::means(html, summary);
        matrix::section(html, summary);
        for (at, scenario) in summary.scenarios.iter().enumerate() {
            scenario_section(html, summary, scenario, at);
        }
        settings::failures(html, summary.report);
        settings::section(html, summary);
    });
    html.element("div", &[("id", "tip"), ("role", "status"), ("hidden", "hidden")], "");
    html.nest("script", &[], |html| html.fixed(SCRIPT));
}

fn scenario_section(html: &mut Html, summary: &Summary<'_>, scenario: &ScenarioSummary<'_>, at: usize) {
    let planned = summary.report.header.plan.scenarios.iter().find(|planned| planned.name == scenario.name);
    html.nest("section", &[("id", &format!("scenario-{at}")), ("class", "scenario")], |html| {
        html.element("h2", &[], scenario.name);
        if let Some(planned) = planned {
            html.element("p", &[("class", "note")], &text::scenario(planned));
        }
        timeline::charts(html, summary, scenario);
        space::charts(html, summary, scenario);
        latency::charts(html, summary, scenario);
        bars::tables(html, summary, scenario);
        shapes::table(html, scenario);
    });
}

/// Class of an engine: its colour, and what the script hides.
fn class(summary: &Summary<'_>, engine: &str) -> String {
    format!("e{}", summary.engines.iter().position(|label| *label == engine).unwrap_or(0) % COLOURS)
}

/// Step and what it does, as the title of a chart.
fn title(html: &mut Html, summary: &Summary<'_>, scenario: &ScenarioSummary<'_>, step: &str, index: u32) {
    html.nest("figcaption", &[], |html| {
        html.element("b", &[], step);
        html.text(" ");
        html.element("span", &[], &text::step(&summary.report.header.plan, scenario.name, step, index));
    });
}

/// The numbers of a chart, folded. The first of `heads` and of each row is words.
fn numbers(html: &mut Html, heads: &[&str], rows: &[(String, Vec<String>)]) {
    html.nest("details", &[], |html| {
        html.element("summary", &[], "Numbers");
        html.nest("table", &[("class", "numbers")], |html| {
            html.nest("tr", &[], |html| {
                heads.iter().for_each(|head| html.element("th", &[("scope", "col")], head))
            });
            for (class, row) in rows {
                html.nest("tr", &[("class", class)], |html| {
                    for (at, cell) in row.iter().enumerate() {
                        match at {
                            0 => html.element("th", &[("scope", "row")], cell),
                            _ => html.element("td", &[], cell),
                        }
                    }
                });
            }
        });
    });
}
