//! What has been run, for the line now and then and for the end.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::outcome::Outcome;

/// Runs of one program.
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
    rows: BTreeMap<String, Row>,
}

impl Tally {
    /// Of these programs, which have not run.
    #[must_use]
    pub fn of(programs: impl IntoIterator<Item = String>) -> Tally {
        Tally { rows: programs.into_iter().map(|name| (name, Row::default())).collect() }
    }

    /// Counts a run.
    pub fn count(&mut self, program: &str, outcome: &Outcome, took: Duration) {
        let row = self.rows.entry(program.to_owned()).or_default();
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

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.rows.keys().map(String::len).max().unwrap_or_default();
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
        let programs = self.rows.len();
        write!(
            f,
            "{programs} programs, {runs} runs: {passed} passed, {failed} failed, {ended} ended unfinished"
        )
    }
}
