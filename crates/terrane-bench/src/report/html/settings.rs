//! Measures that are missing; engines with versions and settings; the machine; the command and the plan.

use super::class;
use super::markup::Html;
use crate::report::metric;
use crate::report::model::{Machine, RunReport};
use crate::report::summary::Summary;

/// Cells that were not measured, and why.
pub(super) fn failures(html: &mut Html, report: &RunReport) {
    if report.failed.is_empty() {
        return;
    }
    html.nest("section", &[], |html| {
        html.element("h2", &[], "Not measured");
        html.nest("table", &[("class", "numbers words")], |html| {
            heads(html, &["Scenario", "Step", "Engine", "Repetition", "", "Why"]);
            for failed in &report.failed {
                html.nest("tr", &[], |html| {
                    html.element("td", &[], &failed.scenario);
                    html.element("td", &[], if failed.step.is_empty() { "open" } else { &failed.step });
                    html.element("td", &[], &failed.engine);
                    html.element("td", &[], &failed.repetition.to_string());
                    html.element("td", &[], if failed.unsupported { "unsupported" } else { "failed" });
                    html.element("td", &[], &failed.why);
                });
            }
        });
    });
}

/// Everything that is needed to read the figures and to repeat them.
pub(super) fn section(html: &mut Html, summary: &Summary<'_>) {
    let header = &summary.report.header;
    html.nest("section", &[("id", "settings")], |html| {
        html.element("h2", &[], "Settings and command");
        html.element("p", &[("class", "note")], "The command that made this report:");
        html.element("pre", &[], &header.command);
        engines(html, summary);
        html.element("h3", &[], "Machine");
        machine(html, &header.machine);
        html.nest("details", &[], |html| {
            html.element("summary", &[], "The plan, whole");
            let plan = serde_json::to_string_pretty(&header.plan).unwrap_or_else(|error| error.to_string());
            html.element("pre", &[], &plan);
        });
    });
}

fn heads(html: &mut Html, heads: &[&str]) {
    html.nest("tr", &[], |html| heads.iter().for_each(|head| html.element("th", &[("scope", "col")], head)));
}

/// An engine may open with other settings in each scenario: every different set is shown once.
fn engines(html: &mut Html, summary: &Summary<'_>) {
    html.element("h3", &[], "Engines");
    html.nest("table", &[("class", "numbers words")], |html| {
        heads(html, &["Engine", "Version", "Scenarios", "Settings"]);
        for engine in &summary.engines {
            let mut seen: Vec<(&crate::engine::Opened, Vec<&str>)> = Vec::new();
            for cell in summary.report.cells.iter().filter(|cell| cell.engine == *engine) {
                match seen.iter_mut().find(|(opened, _)| **opened == cell.opened) {
                    Some((_, scenarios)) if scenarios.contains(&cell.scenario.as_str()) => {}
                    Some((_, scenarios)) => scenarios.push(&cell.scenario),
                    None => seen.push((&cell.opened, vec![&cell.scenario])),
                }
            }
            for (opened, scenarios) in seen {
                html.nest("tr", &[], |html| {
                    html.nest("th", &[("scope", "row")], |html| {
                        html.element("i", &[("class", &format!("swatch {}", class(summary, engine)))], "");
                        html.text(engine);
                    });
                    html.element("td", &[], &opened.version);
                    html.element("td", &[], &scenarios.join(", "));
                    html.nest("td", &[("class", "pairs")], |html| {
                        for (name, value) in &opened.settings {
                            html.nest("span", &[], |html| {
                                html.element("b", &[], name);
                                html.text(&format!(" {value}"));
                            });
                            html.text(" ");
                        }
                    });
                });
            }
        }
    });
}

fn machine(html: &mut Html, machine: &Machine) {
    let rows = [
        ("Processor", machine.cpu.clone()),
        ("Processors of the run", machine.processors.to_string()),
        ("Memory", metric::bytes(machine.memory_bytes as f64)),
        ("Kernel", machine.kernel.clone()),
        ("File system", machine.file_system.clone()),
        ("Device", machine.device.clone()),
        ("Frequency governor", machine.governor.clone()),
        ("Transparent huge pages", machine.huge_pages.clone()),
        ("Load at the start", format!("{:.2}", machine.load)),
        ("Hardware counters", machine.counters.clone()),
    ];
    html.nest("table", &[("class", "numbers words")], |html| {
        for (name, value) in rows {
            html.nest("tr", &[], |html| {
                html.element("th", &[("scope", "row")], name);
                html.element("td", &[], if value.is_empty() { "unknown" } else { &value });
            });
        }
    });
}
