//! Background work that failed: when it may be tried again, and what those who wait for it are told.

use std::collections::BTreeMap;
use std::time::Duration;

use terrane_base::{Error, Kind, Result, TableId};

/// First pause after a failed job.
const RETRY_MIN: Duration = Duration::from_millis(50);
/// Longest pause after failed jobs.
const RETRY_MAX: Duration = Duration::from_secs(5);
/// Failures in a row after which waiters are told.
const FAILURES_TO_REPORT: u32 = 3;

/// A kind of work on a table, or on none.
pub(crate) type Subject = (&'static str, Option<TableId>);

/// How often work failed in a row, with what, and until when it is not tried again.
struct Failed {
    count: u32,
    error: Error,
    until: Duration,
}

/// Work that failed and has not succeeded since.
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

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.failed.is_empty()
    }

    /// Whether work failed and waits to be tried again.
    pub(crate) fn is_held(&self, subject: Subject) -> bool {
        self.failed.get(&subject).is_some_and(|failed| failed.until > self.now)
    }

    /// Notes how a piece of work ended.
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

    /// Forgets what could be tried again. For when nothing runs and nothing was found to do: nobody wants that work any
    /// more. What failed last may have been a step behind the one that mattered.
    pub(crate) fn forget_settled(&mut self) {
        let now = self.now;
        self.failed.retain(|_, failed| failed.until > now);
    }

    /// Forgets those of a table that was dropped.
    pub(crate) fn forget_table(&mut self, table: TableId) {
        self.failed.retain(|(_, of), _| *of != Some(table));
    }

    /// The error of work that has failed several times in a row.
    pub(crate) fn lasting(&self) -> Option<Error> {
        let mut failed = self.failed.values();
        failed.find(|failed| failed.count >= FAILURES_TO_REPORT).map(|failed| failed.error.clone())
    }
}
