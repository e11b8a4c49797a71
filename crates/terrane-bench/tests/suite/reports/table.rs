//! The text for terminals.

use terrane_bench::report::compare::compare;
use terrane_bench::report::table::{Style, WIDTH, render};

use crate::reports::fixture::large;

/// Escapes, line breaks, wide characters, and longer than any column.
pub(crate) const HOSTILE: &str =
    "<script src=\"http://x/\">alert('&')</script>\u{1b}[31m\n\u{202e}\u{5bbd}\u{0}end of a long label";

#[test]
fn every_line_fits_whatever_the_labels_are() {
    let mut report = large(2, 3);
    for style in [false, true].map(|details| Style { colour: false, details }) {
        for line in render(&report, style).lines() {
            assert!(line.chars().count() <= WIDTH, "{} columns: {line}", line.chars().count());
        }
    }
    put_everywhere(HOSTILE, &mut report);
    let text = render(&report, Style { colour: false, details: true });
    for line in text.lines() {
        assert!(
            line.chars().count() <= WIDTH && line.chars().all(|c| c == ' ' || c.is_ascii_graphic()),
            "{line:?}"
        );
    }
    let text = compare(&report, &report, 0.05).to_string();
    for line in text.lines() {
        assert!(
            line.chars().count() <= WIDTH && line.chars().all(|c| c == ' ' || c.is_ascii_graphic()),
            "{line:?}"
        );
    }
}

/// Puts a text wherever a file can hold one.
pub(crate) fn put_everywhere(text: &str, report: &mut terrane_bench::report::model::RunReport) {
    let own = || text.to_owned();
    report.header.plan.name = own();
    report.header.command = own();
    report.header.bench_version = own();
    report.header.machine.cpu = own();
    report.header.plan.scenarios[0].name = own();
    report.header.plan.engines[0].label = own();
    report.header.plan.baseline = own();
    let first = report.cells[0].scenario.clone();
    for cell in &mut report.cells {
        if cell.scenario == first {
            cell.scenario = own();
        }
        if cell.engine == "rocksdb" {
            cell.engine = own();
        }
        if cell.step == "readrandom" {
            cell.step = own();
        }
        cell.opened.version = own();
        cell.opened.settings = vec![(own(), own())];
        cell.shape_after.rows.iter_mut().for_each(|row| row.part = own());
    }
    report.failed[0].why = own();
}

#[test]
fn everything_is_in_it() {
    let mut report = large(2, 3);
    let text = render(&report, Style::default());
    for cell in &report.cells {
        assert!(text.contains(&cell.scenario) && text.contains(&cell.step) && text.contains(&cell.engine));
    }
    for word in [
        "p99.9",
        "w-amp",
        "r-amp",
        "memory",
        "csw/k",
        "shape terrane:",
        "L0 4 runs",
        "device is full",
        "unsupported",
        "Geometric mean",
        "Marked (!)",
        "Some Processor 3000",
        "ext4",
    ] {
        assert!(text.contains(word), "{word} is missing in\n{text}");
    }
    assert!(!text.contains("PARTIAL") && !text.contains('\u{1b}'));
    assert!(!text.contains("llc-m"), "for --details");
    assert!(render(&report, Style { colour: false, details: true }).contains("llc-m"));
    let coloured = render(&report, Style { colour: true, details: false });
    assert!(coloured.contains("\u{1b}[32m"));
    report.end = None;
    let partial = render(&report, Style::default());
    let lines: Vec<&str> = partial.lines().collect();
    assert!(lines[0].starts_with("PARTIAL") && lines[lines.len() - 1].starts_with("PARTIAL"), "{partial}");
}

#[test]
fn a_run_without_a_cell_is_a_report_too() {
    let mut report = large(1, 1);
    report.cells.clear();
    assert!(render(&report, Style::default()).contains("Not measured"));
}
