//! The ratio matrix, and the list of its marks.

use super::class;
use super::markup::Html;
use crate::report::metric;
use crate::report::summary::{Group, StepSummary, Summary, TARGET};

/// Steps of colour on each side of 1; one is a factor of the square root of 2.
const SHADES: f64 = 6.0;

/// The matrix: rows are steps, columns are engines.
pub(super) fn section(html: &mut Html, summary: &Summary<'_>) {
    html.nest("section", &[("id", "matrix")], |html| {
        html.element("h2", &[], "Ratios");
        html.nest("p", &[("class", "note")], |html| {
            html.text(&format!(
                "Rate by that of {}, median over pairs of repetitions, with the range of the pairs; below it the median rate and its range. Blue is faster, orange is slower. ",
                summary.baseline()
            ));
            html.element("b", &[("class", "mark")], "!");
            html.text(&format!(" marks figures below {TARGET} times the baseline or behind a peer."));
        });
        html.nest("div", &[("class", "scroll")], |html| {
            html.nest("table", &[("class", "matrix")], |html| {
                heads(html, summary);
                html.nest("tbody", &[], |html| {
                    for scenario in &summary.scenarios {
                        html.nest("tr", &[("class", "group")], |html| {
                            let span = (summary.engines.len() + 1).to_string();
                            html.element("th", &[("colspan", &span), ("scope", "colgroup")], scenario.name);
                        });
                        scenario.steps.iter().for_each(|step| row(html, summary, step));
                    }
                });
                means(html, summary);
            });
        });
        work(html, summary);
    });
}

fn heads(html: &mut Html, summary: &Summary<'_>) {
    html.nest("thead", &[], |html| {
        html.nest("tr", &[], |html| {
            html.element("th", &[("scope", "col")], "Step");
            for engine in &summary.engines {
                let own = class(summary, engine);
                html.nest("th", &[("scope", "col"), ("class", &own)], |html| {
                    html.element("i", &[("class", &format!("swatch {own}"))], "");
                    html.text(engine);
                });
            }
        });
    });
}

fn row(html: &mut Html, summary: &Summary<'_>, step: &StepSummary<'_>) {
    html.nest("tr", &[], |html| {
        html.element("th", &[("scope", "row")], step.name);
        for engine in &summary.engines {
            let own = class(summary, engine);
            match step.group(engine) {
                Some(group) => cell(html, summary, step, group, &own),
                None => html.element(
                    "td",
                    &[("class", &format!("{own} none")), ("title", "not measured")],
                    metric::NONE,
                ),
            }
        }
    });
}

fn cell(html: &mut Html, summary: &Summary<'_>, step: &StepSummary<'_>, group: &Group<'_>, own: &str) {
    let spread =
        group.value.relative().map(|spread| format!(" \u{b1}{:.0}%", spread * 50.0)).unwrap_or_default();
    if step.timed {
        let time = metric::seconds(group.value.median) + &spread;
        return html.element("td", &[("class", &format!("{own} timed"))], &time);
    }
    let judged = group.ratio.filter(|_| !summary.is_ceiling(group.engine));
    let shade = judged.map_or("none".to_owned(), |ratio| shade(ratio.median));
    let words = group.mark.as_ref().map(|mark| mark.words(summary.baseline())).unwrap_or_default();
    html.nest("td", &[("class", &format!("{own} {shade}")), ("title", &words)], |html| {
        if let Some(ratio) = group.ratio {
            html.element("b", &[], &metric::times(ratio.median));
            if group.mark.is_some() {
                html.element("b", &[("class", "mark")], "!");
            }
            if ratio.count > 1 && ratio.min < ratio.max {
                let range = format!(" {}\u{2013}{}", metric::short(ratio.min), metric::short(ratio.max));
                html.element("span", &[("class", "range")], &range);
            }
        }
        html.element("small", &[], &(metric::rate(group.value.median) + &spread));
    });
}

fn means(html: &mut Html, summary: &Summary<'_>) {
    html.nest("tfoot", &[], |html| {
        html.nest("tr", &[], |html| {
            html.element("th", &[("scope", "row")], "Geometric mean");
            for engine in &summary.engines {
                let own = class(summary, engine);
                match summary.mean(engine) {
                    None => html.element("td", &[("class", &format!("{own} none"))], metric::NONE),
                    Some(mean) => {
                        // The ceiling is not a competitor: its ratios say nothing by their colour.
                        let colour =
                            if summary.is_ceiling(engine) { "none".to_owned() } else { shade(mean.ratio) };
                        html.nest("td", &[("class", &format!("{own} {colour}"))], |html| {
                            html.element("b", &[], &metric::times(mean.ratio));
                            html.element("small", &[], &format!("{} steps", mean.steps));
                        })
                    }
                }
            }
        });
    });
}

/// Class of a colour around 1: `s-6` to `s6`.
pub(super) fn shade(ratio: f64) -> String {
    let step = if ratio > 0.0 { (ratio.log2() * 2.0).round().clamp(-SHADES, SHADES) } else { -SHADES };
    // Adding zero turns minus zero into zero.
    format!("s{:.0}", step + 0.0)
}

/// The work order: every marked result.
fn work(html: &mut Html, summary: &Summary<'_>) {
    let marked: Vec<_> = summary.marked().collect();
    if marked.is_empty() {
        return;
    }
    html.nest("details", &[], |html| {
        html.element("summary", &[], &format!("Marked results ({})", marked.len()));
        html.nest("table", &[("class", "numbers words")], |html| {
            html.nest("tr", &[], |html| {
                ["Scenario", "Step", "Engine", "Why"]
                    .iter()
                    .for_each(|head| html.element("th", &[("scope", "col")], head));
            });
            for (scenario, step, group, mark) in &marked {
                html.nest("tr", &[], |html| {
                    html.element("td", &[], scenario.name);
                    html.element("td", &[], step.name);
                    html.element("td", &[], group.engine);
                    html.element("td", &[], &mark.words(summary.baseline()));
                });
            }
        });
    });
}
