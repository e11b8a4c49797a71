//! Amplification, CPU, memory and the rest as tables whose cells hold a bar: the chart is its own text.

use super::class;
use super::markup::Html;
use crate::report::metric::{self, Metric, NONE};
use crate::report::summary::{Group, ScenarioSummary, StepSummary, Summary};

/// The bars, in groups of one heading each.
const GROUPS: [(&str, &[Metric]); 4] = [
    (
        "Amplification",
        &[
            metric::WRITE_AMPLIFICATION,
            metric::ENGINE_WRITES,
            metric::READ_AMPLIFICATION,
            metric::READ_CALLS,
            metric::SPACE,
        ],
    ),
    (
        "Work per read",
        &[
            metric::FOUND,
            metric::RUNS,
            metric::FILTERS,
            metric::FALSE_POSITIVES,
            metric::BLOCKS,
            metric::CACHE_HITS,
        ],
    ),
    (
        "Processor and waiting",
        &[
            metric::CPU,
            metric::SWITCHES,
            metric::FAULTS,
            metric::STALLED,
            metric::LOW_WINDOWS,
            metric::BACKGROUND_RATE,
            metric::ABORTS,
            metric::BUCKET_CREATES,
            metric::BUCKET_READS,
            metric::BUCKET_BYTES,
            metric::LOWEST_WINDOW,
            metric::INSTRUCTIONS,
            metric::CYCLES,
            metric::CACHE_MISSES,
            metric::BRANCH_MISSES,
        ],
    ),
    ("Memory and disk", &[metric::MEMORY, metric::DISK]),
];

/// A table per figure that some engine has.
pub(super) fn tables(html: &mut Html, summary: &Summary<'_>, scenario: &ScenarioSummary<'_>) {
    for (heading, metrics) in GROUPS {
        let steps = |metric: &Metric| -> Vec<&StepSummary<'_>> {
            let has = |step: &&StepSummary<'_>| step.groups.iter().any(|group| positive(group, metric));
            scenario.steps.iter().filter(has).collect()
        };
        let shown: Vec<_> = metrics
            .iter()
            .map(|metric| (metric, steps(metric)))
            .filter(|(_, steps)| !steps.is_empty())
            .collect();
        if shown.is_empty() {
            continue;
        }
        html.element("h3", &[], heading);
        html.nest("div", &[("class", "grid-of-bars")], |html| {
            for (metric, steps) in &shown {
                table(html, summary, metric, steps);
            }
        });
    }
}

/// A table of zeros says nothing.
fn positive(group: &Group<'_>, metric: &Metric) -> bool {
    group.median(metric.of).is_some_and(|figure| figure > 0.0)
}

fn table(html: &mut Html, summary: &Summary<'_>, metric: &Metric, steps: &[&StepSummary<'_>]) {
    html.nest("figure", &[], |html| {
        html.nest("figcaption", &[], |html| {
            html.element("b", &[], metric.title);
            html.text(" ");
            html.element("span", &[], &format!("{} Bars are to scale within a row.", metric.what));
        });
        html.nest("div", &[("class", "scroll")], |html| {
            html.nest("table", &[("class", "bars")], |html| {
                html.nest("tr", &[], |html| {
                    html.element("th", &[("scope", "col")], "");
                    for engine in &summary.engines {
                        html.element("th", &[("scope", "col"), ("class", &class(summary, engine))], engine);
                    }
                });
                steps.iter().for_each(|step| row(html, summary, metric, step));
            });
        });
    });
}

fn row(html: &mut Html, summary: &Summary<'_>, metric: &Metric, step: &StepSummary<'_>) {
    let figures: Vec<Option<f64>> =
        summary.engines.iter().map(|engine| step.group(engine)?.median(metric.of)).collect();
    let most = figures.iter().flatten().copied().fold(0.0, f64::max);
    html.nest("tr", &[], |html| {
        html.element("th", &[("scope", "row")], step.name);
        for (engine, figure) in summary.engines.iter().zip(figures) {
            let own = class(summary, engine);
            html.nest("td", &[("class", &own)], |html| {
                let Some(figure) = figure else { return html.text(NONE) };
                html.element("span", &[], &(metric.write)(figure));
                let share =
                    |part: f64| format!("width:{:.1}%", if most > 0.0 { part / most * 100.0 } else { 0.0 });
                let system = system_part(metric, step.group(engine));
                html.nest("div", &[("class", "stack")], |html| {
                    html.element("i", &[("class", "fill"), ("style", &share(figure - system))], "");
                    if system > 0.0 {
                        html.element(
                            "i",
                            &[("class", "fill pale"), ("title", "system"), ("style", &share(system))],
                            "",
                        );
                    }
                });
            });
        }
    });
}

/// The share of the kernel in CPU time, drawn paler; 0 for other figures.
fn system_part(metric: &Metric, group: Option<&Group<'_>>) -> f64 {
    if metric.name != metric::CPU.name {
        return 0.0;
    }
    let total = group.and_then(|group| group.median(metric.of)).unwrap_or(0.0);
    group.and_then(|group| group.median(metric::CPU_SYSTEM.of)).unwrap_or(0.0).min(total)
}
