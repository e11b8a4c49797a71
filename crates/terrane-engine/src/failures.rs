//! Work that failed and has not succeeded since: how often in a row, with what, and until when it is not tried again.

use std::collections::BTreeMap;
use std::time::Duration;

use terrane_base::{Error, Kind, Result, TableId};

/// First pause after a failure.
const RETRY_MIN: Duration = Duration::from_millis(50);
/// Longest pause after failures.
const RETRY_MAX: Duration = Duration::from_secs(5);
/// Failures in a row after which waiters are told.
const FAILURES_TO_REPORT: u32 = 3;

/// A kind of work on a table, or on none.
pub(crate) type Subject = (&'static str, Option<TableId>);

struct Failed {
    count: u32,
    error: Error,
    until: Duration,
}

/// What failed, by kind of work and table.
#[derive(Default)]
pub(crate) struct Failures {
    failed: BTreeMap<Subject, Failed>,
    /// Time of the last look at the clock.
    now: Duration,
}

impl Failures {
    /// Takes the time.
    pub(crate) fn look(&mut self, now: Duration) {
        self.now = now;
    }

    /// Time of the last look at the clock.
    pub(crate) fn now(&self) -> Duration {
        self.now
    }

    /// Notes how a piece of work ended: a failure holds it back for a pause that doubles, a success clears it.
    pub(crate) fn note(&mut self, subject: Subject, result: Result<()>) {
        match result {
            Ok(()) => drop(self.failed.remove(&subject)),
            Err(error) if error.kind() == Kind::Cancelled => {}
            Err(error) => {
                let count = self.failed.get(&subject).map_or(0, |failed| failed.count) + 1;
                let pause = (RETRY_MIN * 2u32.pow(count.min(16) - 1)).min(RETRY_MAX);
                self.failed.insert(subject, Failed { count, error, until: self.now + pause });
            }
        }
    }

    /// Whether this work waits to be tried again.
    pub(crate) fn holds(&self, subject: Subject) -> bool {
        self.failed.get(&subject).is_some_and(|failed| failed.until > self.now)
    }

    /// Whether any of these kinds of work failed and has not succeeded since.
    pub(crate) fn has(&self, names: &[&str]) -> bool {
        self.failed.keys().any(|(name, _)| names.contains(name))
    }

    /// Work that failed several times in a row.
    pub(crate) fn lasting(&self) -> impl Iterator<Item = (&Subject, &Error)> {
        let lasting = self.failed.iter().filter(|(_, failed)| failed.count >= FAILURES_TO_REPORT);
        lasting.map(|(subject, failed)| (subject, &failed.error))
    }

    /// Forgets what of these kinds of work could be tried again. For when none of them runs and none was found to do:
    /// nobody wants that work any more. What failed last may have been a step behind the one that mattered.
    pub(crate) fn forget_settled(&mut self, names: &[&str]) {
        let now = self.now;
        self.failed.retain(|(name, _), failed| failed.until > now || !names.contains(name));
    }

    /// Forgets a table that was dropped.
    pub(crate) fn forget_table(&mut self, table: TableId) {
        self.failed.retain(|(_, of), _| *of != Some(table));
    }
}
