//! The table at the end of a suite: what ran, what did not, and why.

use std::fmt::Write as _;
use std::time::Duration;

use crate::outcome::Counts;

/// Tests that `cargo xtask test` leaves to other commands, and why.
const ELSEWHERE: [(&str, &str); 11] = [
    ("cargo xtask peers", "the peers of the bench: their crates take a tenth of the build"),
    ("cargo xtask ci-parts", "format, lints, house rules, documentation: `.ci/run` does both"),
    ("cargo xtask soak", "simulation, random loads and explorations at full sizes; a part ran"),
    ("cargo xtask planted", "all planted bugs: half an hour; a sample ran"),
    ("cargo xtask schedules, stress, cases", "more schedules, seeds and cases: as long as one likes"),
    ("cargo xtask busy-tests", "these programs ten times on a busy machine: hours"),
    ("cargo xtask fuzz", "libFuzzer needs a nightly toolchain; a smoke test of each target ran"),
    ("cargo xtask miri, sanitize", "need a nightly toolchain"),
    ("cargo xtask deny", "needs cargo-deny"),
    ("cargo xtask bench-smoke", "each benchmark of the crates once; the lints compile them"),
    ("terrane bench", "measures"),
];

/// A step as it ended.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Its purpose.
    pub title: String,
    /// Programs that it ran.
    pub programs: usize,
    /// Tests in them.
    pub counts: Counts,
    /// Programs that failed.
    pub failed: usize,
    /// Time of its build.
    pub build: Duration,
    /// Times of its programs together; they ran beside others.
    pub run: Duration,
    /// Its tests that did not run, and why.
    pub not_run: Vec<String>,
}

/// The lines of the table of [`crate::test::run`] below the tests: tests of other commands.
#[must_use]
pub fn elsewhere() -> String {
    ELSEWHERE.iter().map(|(command, why)| format!("not part of it: {command}: {why}\n")).collect()
}

/// The table, and below it what did not run.
#[must_use]
pub fn table(rows: &[Row], whole: Duration) -> String {
    let width = rows.iter().map(|row| row.title.len()).max().unwrap_or_default().max("step".len());
    let mut text = format!(
        "{:width$} {:>8} {:>7} {:>7} {:>7} {:>7} {:>8} {:>8}\n",
        "step", "programs", "passed", "failed", "ignored", "not run", "build s", "run s"
    );
    let mut sum = Row { title: "all".to_owned(), ..Row::default() };
    for row in rows {
        sum.programs += row.programs;
        sum.counts += row.counts;
        sum.failed += row.failed;
        sum.build += row.build;
        sum.run += row.run;
        sum.not_run.extend(row.not_run.iter().cloned());
        line(&mut text, row, width);
    }
    line(&mut text, &sum, width);
    let _ = writeln!(text, "{:.1} s; programs ran beside each other", whole.as_secs_f64());
    for why in &sum.not_run {
        let _ = writeln!(text, "not run: {why}");
    }
    text
}

fn line(text: &mut String, row: &Row, width: usize) {
    let _ = writeln!(
        text,
        "{:width$} {:>8} {:>7} {:>7} {:>7} {:>7} {:>8.1} {:>8.1}",
        row.title,
        row.programs,
        row.counts.passed,
        row.counts.failed.max(row.failed as u64),
        row.counts.ignored,
        row.not_run.len(),
        row.build.as_secs_f64(),
        row.run.as_secs_f64(),
    );
}
