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

/// A kind of work on a table.
pub(crate) type Subject = (&'static str, Option<TableId>);

struct Failed {
    count: u32,
    error: Error,
    until: Duration,
}

/// What failed, by kind of work and table.
#[derive(Default)]
pub(crate) struct Failures(BTreeMap<Subject, Failed>);

impl Failures {
    /// Notes how a piece of work ended: a failure holds it back for a pause that doubles, a success clears it.
    pub(crate) fn note(&mut self, subject: Subject, result: Result<()>, now: Duration) {
        match result {
            Ok(()) => drop(self.0.remove(&subject)),
            Err(error) if error.kind() == Kind::Cancelled => {}
            Err(error) => {
                let count = self.0.get(&subject).map_or(0, |failed| failed.count) + 1;
                let pause = (RETRY_MIN * 2u32.pow(count.min(16) - 1)).min(RETRY_MAX);
                self.0.insert(subject, Failed { count, error, until: now + pause });
            }
        }
    }

    /// Whether this work waits to be tried again.
    pub(crate) fn holds(&self, subject: Subject, now: Duration) -> bool {
        self.0.get(&subject).is_some_and(|failed| failed.until > now)
    }

    /// Whether any of these kinds of work failed and has not succeeded since.
    pub(crate) fn has(&self, names: &[&str]) -> bool {
        self.0.keys().any(|(name, _)| names.contains(name))
    }

    /// Work that failed several times in a row.
    pub(crate) fn lasting(&self) -> impl Iterator<Item = (&Subject, &Error)> {
        let lasting = self.0.iter().filter(|(_, failed)| failed.count >= FAILURES_TO_REPORT);
        lasting.map(|(subject, failed)| (subject, &failed.error))
    }

    /// Forgets a table that was dropped.
    pub(crate) fn forget(&mut self, table: TableId) {
        self.0.retain(|(_, of), _| *of != Some(table));
    }
}
