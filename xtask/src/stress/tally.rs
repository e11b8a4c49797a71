//! Counts of the finished runs, for the line now and then and for the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use super::plan::RunName;
use crate::outcome::Outcome;

/// Runs of one program, or of one part of it.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    passed: u64,
    failed: u64,
    ended: u64,
    time: Duration,
    longest: Duration,
}

/// Runs of all programs.
#[derive(Debug)]
pub struct Tally {
    rows: BTreeMap<RunName, Row>,
}

impl Tally {
    /// Of programs and parts that have not run.
    #[must_use]
    pub fn of(names: impl IntoIterator<Item = RunName>) -> Tally {
        Tally { rows: names.into_iter().map(|name| (name, Row::default())).collect() }
    }

    /// Counts a run.
    pub fn count(&mut self, name: RunName, outcome: &Outcome, took: Duration) {
        let row = self.rows.entry(name).or_default();
        match outcome {
            Outcome::Passed => row.passed += 1,
            Outcome::Failed(_) | Outcome::Hung => row.failed += 1,
            Outcome::Ended => row.ended += 1,
        }
        row.time += took;
        row.longest = row.longest.max(took);
    }

    /// Runs that passed.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.rows.values().map(|row| row.passed).sum()
    }

    /// Runs that failed.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.rows.values().map(|row| row.failed).sum()
    }
}

impl Tally {
    fn programs(&self) -> BTreeSet<&str> {
        self.rows.keys().map(|name| name.program.as_str()).collect()
    }

    /// Programs of which no run came to its end.
    #[must_use]
    pub fn unfinished(&self) -> Vec<&str> {
        let finished = self.rows.iter().filter(|(_, row)| row.passed + row.failed > 0);
        let finished: BTreeSet<&str> = finished.map(|(name, _)| name.program.as_str()).collect();
        self.programs().difference(&finished).copied().collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.rows.keys().map(|name| name.to_string().len()).max().unwrap_or_default();
        writeln!(f, "{:width$} {:>7} {:>7} {:>8} {:>8}", "program", "passed", "failed", "mean s", "most s")?;
        for (name, row) in &self.rows {
            let runs = row.passed + row.failed + row.ended;
            let mean = row.time.as_secs_f64() / runs.max(1) as f64;
            let longest = row.longest.as_secs_f64();
            writeln!(f, "{name:width$} {:>7} {:>7} {mean:>8.1} {longest:>8.1}", row.passed, row.failed)?;
        }
        let ended: u64 = self.rows.values().map(|row| row.ended).sum();
        let (passed, failed) = (self.passed(), self.failed());
        let runs = passed + failed + ended;
        let programs = self.programs().len();
        let is_left = |name: &RunName, row: &Row| name.part.is_some() && row.passed + row.failed == 0;
        let parts_left = self.rows.iter().filter(|(name, row)| is_left(name, row)).count();
        if parts_left > 0 {
            writeln!(f, "{parts_left} parts of programs in parts had no run")?;
        }
        write!(
            f,
            "{programs} programs, {runs} runs: {passed} passed, {failed} failed, {ended} ended unfinished"
        )
    }
}
