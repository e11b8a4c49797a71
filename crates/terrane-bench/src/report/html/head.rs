//! Headline, choice of engines, geometric means.

use super::markup::Html;
use super::{COLOURS, class};
use crate::report::metric;
use crate::report::summary::{CEILING_MIN, Summary};
use crate::report::text;

/// Name of the run, whether it is whole, when and where, and the way to each section.
pub(super) fn headline(html: &mut Html, summary: &Summary<'_>) {
    let report = summary.report;
    let (header, plan) = (&report.header, &report.header.plan);
    html.nest("header", &[], |html| {
        html.element("p", &[("class", "kicker")], "Key-value benchmark");
        html.nest("h1", &[], |html| {
            html.text(&plan.name);
            if report.is_partial() {
                html.text(" ");
                html.element("span", &[("class", "badge")], "PARTIAL");
            }
        });
        if report.is_partial() {
            html.element(
                "p",
                &[("class", "warn")],
                "The run was stopped before its end: missing figures were not measured.",
            );
        }
        html.nest("dl", &[("class", "facts")], |html| {
            let length = report.end.map_or("unknown".to_owned(), |end| metric::seconds(end.seconds));
            fact(html, "Engines", &summary.engines.len().to_string());
            fact(html, "Cells", &report.cells.len().to_string());
            fact(html, "Repetitions", &plan.repetitions.to_string());
            fact(html, "Ratios against", &plan.baseline);
            fact(html, "Started", &text::date(header.started));
            fact(html, "Took", &length);
            fact(html, "Seed", &plan.seed.to_string());
            fact(html, "Bench", &header.bench_version);
        });
        html.element("p", &[("class", "note")], &text::machine(&header.machine));
        html.nest("nav", &[("aria-label", "Sections")], |html| {
            html.element("a", &[("href", "#matrix")], "Ratios");
            for (at, scenario) in summary.scenarios.iter().enumerate() {
                html.element("a", &[("href", &format!("#scenario-{at}"))], scenario.name);
            }
            html.element("a", &[("href", "#settings")], "Settings and command");
        });
    });
}

fn fact(html: &mut Html, name: &str, value: &str) {
    html.nest("div", &[], |html| {
        html.element("dt", &[], name);
        html.element("dd", &[], value);
    });
}

/// Which engines are shown; also the legend of every chart.
pub(super) fn chooser(html: &mut Html, summary: &Summary<'_>) {
    html.nest("fieldset", &[("class", "chooser")], |html| {
        html.element("legend", &[], "Engines");
        for (at, engine) in summary.engines.iter().enumerate() {
            let class = format!("e{}", at % COLOURS);
            html.nest("label", &[], |html| {
                html.empty("input", &[("type", "checkbox"), ("checked", "checked"), ("data-engine", &class)]);
                html.element("i", &[("class", &format!("swatch {class}"))], "");
                html.text(engine);
            });
        }
    });
}

/// The geometric mean of each engine's ratios as bars.
pub(super) fn means(html: &mut Html, summary: &Summary<'_>) {
    let means: Vec<_> =
        summary.engines.iter().filter_map(|engine| Some((*engine, summary.mean(engine)?))).collect();
    let peers = means.iter().filter(|(engine, _)| !summary.is_ceiling(engine));
    let most = peers.map(|(_, mean)| mean.ratio).fold(1.0, f64::max);
    let compared = summary.steps_compared();
    if means.is_empty() {
        return;
    }
    html.nest("section", &[], |html| {
        html.element("h2", &[], "Overall");
        let words = format!(
            "Geometric mean of the ratios to {} over {compared} steps; the line is at 1.",
            summary.baseline()
        );
        html.element("p", &[("class", "note")], &words);
        html.nest("table", &[("class", "means")], |html| {
            for (engine, mean) in &means {
                let own = class(summary, engine);
                html.nest("tr", &[("class", &own)], |html| {
                    html.element("th", &[("scope", "row")], engine);
                    html.element("td", &[("class", "figure")], &metric::times(mean.ratio));
                    html.nest("td", &[("class", "track")], |html| {
                        if summary.is_ceiling(engine) {
                            return html.element(
                                "span",
                                &[("class", "note")],
                                "the harness's ceiling, not to scale",
                            );
                        }
                        let width = format!("width:{:.1}%", mean.ratio / most * 100.0);
                        html.element("i", &[("class", "fill"), ("style", &width)], "");
                        let left = format!("left:{:.1}%", 100.0 / most);
                        html.element("i", &[("class", "one"), ("style", &left)], "");
                    });
                    let missing = if mean.steps < compared {
                        format!("over {} steps only", mean.steps)
                    } else {
                        String::new()
                    };
                    html.element("td", &[("class", "note")], &missing);
                });
            }
        });
        ceiling(html, summary);
    });
}

/// Where the harness itself weighs on the figures.
fn ceiling(html: &mut Html, summary: &Summary<'_>) {
    let ceilings: Vec<_> =
        summary.steps().filter_map(|(scenario, step)| Some((scenario, step, step.ceiling?))).collect();
    let Some((scenario, step, least)) = ceilings.iter().min_by(|a, b| a.2.total_cmp(&b.2)) else { return };
    let class = if *least < CEILING_MIN { "warn" } else { "note" };
    let words = format!(
        "Ceiling of the harness: the null engine is at least {} as fast as the fastest engine ({} / {}).",
        metric::times(*least),
        scenario.name,
        step.name
    );
    html.element("p", &[("class", class)], &words);
}
