//! Work that failed and has not succeeded since: how often in a row, with what, and until when it is not
//! tried again.

use std::collections::BTreeMap;
use std::time::Duration;

use terrane_base::{Error, Kind, Result, TableId};

use crate::observe::job_kind::{JobKind, JobKinds};

/// First pause after a failure.
const RETRY_MIN: Duration = Duration::from_millis(50);
/// Longest pause after failures.
const RETRY_MAX: Duration = Duration::from_secs(5);
/// Failures in a row after which callers that wait get the error.
const FAILURES_TO_REPORT: u32 = 3;

/// A kind of work on a table, or on none.
pub(crate) type Subject = (JobKind, Option<TableId>);

#[derive(Clone)]
struct Failed {
    count: u32,
    error: Error,
    until: Duration,
    /// The piece of work that failed last; a later piece has a higher number.
    piece: u64,
    /// The newest piece there was when a caller asked for such work by name.
    asked: u64,
}

/// Work that failed several times in a row.
pub(crate) struct Lasting<'f> {
    pub(crate) subject: Subject,
    /// The piece that failed last, and how.
    pub(crate) piece: u64,
    pub(crate) error: &'f Error,
}

/// Failures by kind of work and table.
#[derive(Clone, Default)]
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

    /// Notes how the piece of work with this number ended: a failure holds such work back for a pause that
    /// doubles, a success clears it.
    pub(crate) fn note(&mut self, subject: Subject, piece: u64, result: Result<()>) {
        match result {
            Ok(()) => drop(self.failed.remove(&subject)),
            Err(error) if error.kind() == Kind::Cancelled => {}
            Err(error) => {
                let (before, asked) =
                    self.failed.get(&subject).map_or((0, 0), |failed| (failed.count, failed.asked));
                let count = before.saturating_add(1);
                let pause = (RETRY_MIN * 2u32.pow(count.min(16) - 1)).min(RETRY_MAX);
                // A caller that asked meanwhile wants an attempt that begins after that.
                let until = if piece <= asked { self.now } else { self.now + pause };
                debug_assert!(until >= self.now, "the next attempt is not in the past");
                self.failed.insert(subject, Failed { count, error, until, piece, asked });
            }
        }
    }

    /// Returns true if this work waits to be tried again.
    pub(crate) fn holds(&self, subject: Subject) -> bool {
        self.failed.get(&subject).is_some_and(|failed| failed.until > self.now)
    }

    /// Returns true if work of any of these kinds on this table waits to be tried again.
    pub(crate) fn holds_any(&self, kinds: JobKinds, table: TableId) -> bool {
        let is_meant = |(kind, on): &Subject| kinds.has(*kind) && *on == Some(table);
        self.failed.iter().any(|(subject, failed)| is_meant(subject) && failed.until > self.now)
    }

    /// Returns true if any of these kinds of work failed and has not succeeded since.
    pub(crate) fn has(&self, kinds: JobKinds) -> bool {
        self.failed.keys().any(|(kind, _)| kinds.has(*kind))
    }

    /// Returns true if this work failed and has not succeeded since.
    pub(crate) fn is_failing(&self, subject: Subject) -> bool {
        self.failed.contains_key(&subject)
    }

    /// A caller asks by name for work that `is_meant`: work that waits to be tried again is tried at once,
    /// and so is work that began before and fails. `newest` is the number of the newest piece of work.
    pub(crate) fn ask(&mut self, newest: u64, is_meant: impl Fn(Subject) -> bool) {
        for (subject, failed) in &mut self.failed {
            if is_meant(*subject) {
                failed.asked = newest;
                failed.until = Duration::ZERO;
            }
        }
    }

    /// Work that failed several times in a row.
    pub(crate) fn lasting(&self) -> impl Iterator<Item = Lasting<'_>> {
        let lasting = self.failed.iter().filter(|(_, failed)| failed.count >= FAILURES_TO_REPORT);
        lasting.map(|(subject, failed)| Lasting {
            subject: *subject,
            piece: failed.piece,
            error: &failed.error,
        })
    }

    /// Forgets failed work of these kinds that could be tried again. For when no job of these kinds runs or
    /// is due: the work is not needed any more. The last failure may be of a step after the one that
    /// mattered.
    pub(crate) fn forget_obsolete(&mut self, kinds: JobKinds) {
        debug_assert!(
            self.failed.values().all(|failed| failed.count > 0),
            "work is listed that never failed"
        );
        let now = self.now;
        self.failed.retain(|(kind, _), failed| failed.until > now || !kinds.has(*kind));
    }

    /// Forgets a table that was dropped.
    pub(crate) fn forget_table(&mut self, table: TableId) {
        self.failed.retain(|(_, of), _| *of != Some(table));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLUSH: Subject = (JobKind::Flush, Some(TableId(1)));

    fn fail(failures: &mut Failures, piece: u64) {
        failures.note(FLUSH, piece, Err(Error::new(Kind::Io, "broken")));
    }

    #[test]
    fn a_request_ends_the_hold_and_sees_failures_of_later_pieces_only() {
        let mut failures = Failures::default();
        failures.look(Duration::from_secs(1));
        (1..=3).for_each(|piece| fail(&mut failures, piece));
        assert!(failures.holds(FLUSH));
        failures.ask(4, |subject| subject.1 == Some(TableId(2)));
        assert!(failures.holds(FLUSH), "another table was asked for");
        failures.ask(4, |subject| subject == FLUSH);
        assert!(!failures.holds(FLUSH));
        // The fourth ran when the caller asked.
        fail(&mut failures, 4);
        assert!(!failures.holds(FLUSH));
        fail(&mut failures, 5);
        assert!(failures.holds(FLUSH), "it is held back again");
        assert_eq!(failures.lasting().map(|lasting| lasting.piece).collect::<Vec<_>>(), [5]);
    }
}
