//! The chart of the README, made of a table of recorded figures: `cargo xtask tidy --write` draws it, and a
//! chart that does not follow from its table is a finding.
//!
//! Layout: a row for each load and number of threads, a logarithmic axis of the rate over Terrane's, a mark
//! for each engine. Marks differ by shape as well as by colour.

use std::fmt::Write as _;

use super::Finding;
use crate::tree::Tree;

const PAGE: &str = "docs/benchmarks/2026-11-22-second.md";
const CHART: &str = "docs/benchmarks/peers.svg";
/// The beginning of the table's head, once in the page.
const HEAD: &str = "| load | threads | Terrane, thousand/s | ";

const ROW: f64 = 17.0;
const TOP: f64 = 62.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 700.0;
/// Ends of the axis, as rates over Terrane's, and its lines.
const ENDS: (f64, f64) = (0.04, 2.6);
const TICKS: [f64; 6] = [0.05, 0.1, 0.2, 0.5, 1.0, 2.0];
const COLOURS: [&str; 3] = ["#b3402a", "#2a6f97", "#b8860b"];

/// A load with its threads, and the rate of each other engine over Terrane's.
struct Row {
    name: String,
    ratios: Vec<f64>,
}

/// Checks that the chart is the one of its table.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    if tree.get(PAGE).is_none() && tree.get(CHART).is_none() {
        return Vec::new();
    }
    match drawn(tree) {
        None => vec![Finding::new(PAGE, 0, format!("lacks the table of {CHART}, which begins `{HEAD}`"))],
        Some(chart) if tree.get(CHART) != Some(&chart) => {
            let why = format!("is not the chart of the table in {PAGE}: run `cargo xtask tidy --write`");
            vec![Finding::new(CHART, 0, why)]
        }
        Some(_) => Vec::new(),
    }
}

/// The chart as its table has it, if that changes it.
#[must_use]
pub fn renewed(tree: &Tree) -> Option<(&'static str, String)> {
    let chart = drawn(tree)?;
    (tree.get(CHART) != Some(&chart)).then_some((CHART, chart))
}

fn drawn(tree: &Tree) -> Option<String> {
    let mut lines = tree.get(PAGE)?.lines().skip_while(|line| !line.starts_with(HEAD));
    let engines: Vec<&str> = cells(lines.next()?.strip_prefix(HEAD)?).collect();
    let rows = lines.skip(1).take_while(|line| line.starts_with("| "));
    let rows: Vec<Row> = rows.map(|line| row(line, engines.len())).collect::<Option<_>>()?;
    (engines.len() == COLOURS.len() && !rows.is_empty()).then(|| svg(&engines, &rows))
}

fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.trim_matches(['|', ' ']).split(" | ")
}

fn row(line: &str, engines: usize) -> Option<Row> {
    let cells: Vec<&str> = cells(line).collect();
    let [load, threads, _, ratios @ ..] = cells.as_slice() else { return None };
    let ratios = ratios.iter().map(|cell| cell.trim_matches('*').parse().ok());
    let ratios: Vec<f64> = ratios.collect::<Option<_>>()?;
    let is_in = |ratio: &f64| (ENDS.0..=ENDS.1).contains(ratio);
    let load = load.trim_end_matches(" #2").replace("(0.99)", "");
    let plural = if *threads == "1" { "" } else { "s" };
    (ratios.len() == engines && ratios.iter().all(is_in))
        .then(|| Row { name: format!("{load}, {threads} thread{plural}"), ratios })
}

/// Where a rate lies on the axis.
fn across(ratio: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * (ratio / ENDS.0).ln() / (ENDS.1 / ENDS.0).ln()
}

#[expect(clippy::cast_precision_loss, reason = "a table has a few dozen rows")]
fn svg(engines: &[&str], rows: &[Row]) -> String {
    let bottom = TOP + ROW * rows.len() as f64;
    let (width, height) = (RIGHT + 20.0, bottom + 30.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"11\" fill=\"#222\">\n\
         <title>Rates of other engines over Terrane's, in cache</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    legend(&mut out, engines);
    for tick in TICKS {
        let (x, is_one) = (across(tick), (tick - 1.0).abs() < f64::EPSILON);
        let line = if is_one { "stroke=\"#222\" stroke-width=\"2\"" } else { "stroke=\"#ddd\"" };
        let _ = writeln!(out, "<path d=\"M{x:.1} {:.1}V{bottom:.1}\" {line}/>", TOP - 4.0);
        let _ = writeln!(
            out,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{tick}</text>",
            bottom + 14.0
        );
    }
    for (index, row) in rows.iter().enumerate() {
        let y = TOP + ROW * (index as f64 + 0.5);
        let (end, text) = (LEFT - 10.0, y + 4.0);
        let _ = writeln!(out, "<text x=\"{end}\" y=\"{text:.1}\" text-anchor=\"end\">{}</text>", row.name);
        for (engine, ratio) in row.ratios.iter().enumerate() {
            mark(&mut out, engine, across(*ratio), y);
        }
    }
    out.push_str("</svg>\n");
    out
}

fn legend(out: &mut String, engines: &[&str]) {
    out.push_str(
        "<text x=\"10\" y=\"18\" font-size=\"13\">Rate over Terrane's; left of the line at 1: slower than Terrane. \
         Data in cache, no sync.</text>\n",
    );
    for (engine, name) in engines.iter().enumerate() {
        let x = [LEFT, LEFT + 110.0, LEFT + 190.0][engine];
        mark(out, engine, x + 5.0, 38.0);
        let note = if *name == "Bf-Tree" { " (keeps no log)" } else { "" };
        let _ = writeln!(out, "<text x=\"{}\" y=\"42\">{name}{note}</text>", x + 16.0);
    }
}

/// A circle, a square, a diamond.
fn mark(out: &mut String, engine: usize, x: f64, y: f64) {
    let fill = COLOURS[engine];
    let _ = match engine {
        0 => writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\" fill=\"{fill}\"/>"),
        1 => {
            let (left, top) = (x - 4.0, y - 4.0);
            writeln!(out, "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"8\" height=\"8\" fill=\"{fill}\"/>")
        }
        _ => writeln!(out, "<path d=\"M{x:.1} {:.1}l5 5l-5 5l-5 -5z\" fill=\"{fill}\"/>", y - 5.0),
    };
}
