//! The state of the scheduler under its lock: running jobs, their claims, failed work. A decision is
//! made from a copy ([`Schedule::copy_for`]), without the lock; it holds as long as the schedule has the same
//! number.

use std::sync::Arc;

use terrane_base::{Error, Result, TableId};
use terrane_compaction::{Advance, ClaimId, Claims, Cursors, JobControl};

use super::range_pause::RangeHolds;
use crate::background::quarantine::Quarantine;
use crate::background::retry::Failures;
use crate::observe::job_kind::{JobKind, JobKinds};

/// A piece of work that runs now.
#[derive(Clone)]
pub(crate) struct Running {
    pub(in crate::background) id: u64,
    /// Its kind.
    pub(crate) kind: JobKind,
    /// The table it works on.
    pub(crate) table: Option<TableId>,
    /// Its claim on the table's levels, if it is a compaction.
    pub(in crate::background) claim: Option<ClaimId>,
    /// True if a caller asked for this compaction.
    pub(crate) is_manual: bool,
    /// How far it has moved a cursor.
    pub(in crate::background) advance: Option<Advance>,
    /// Progress, pause and cancel.
    pub(crate) control: Arc<JobControl>,
}

/// State under the scheduler's lock.
#[derive(Default)]
pub(crate) struct Schedule {
    /// The number of the last change: what was decided from a copy with the same number holds now.
    pub(in crate::background) version: u64,
    /// True if this is the copy of the worker that decides: a job that is found begins, if nothing has
    /// changed. No other job begins meanwhile, so that it has the claims of all jobs that run. With any other
    /// copy a caller only asks.
    pub(crate) decides: bool,
    /// The running jobs.
    pub(crate) running: Vec<Running>,
    /// The claims of running jobs on the levels.
    pub(crate) claims: Claims,
    /// Where in each level the next job looks first.
    pub(crate) cursors: Cursors,
    /// The number of the newest piece of work.
    pub(in crate::background) next_id: u64,
    pub(in crate::background) paused: bool,
    /// The last flush before the close is under way: nothing pauses it.
    pub(in crate::background) draining: bool,
    /// Only memory is brought into the levels any more: the database closes after it.
    pub(in crate::background) flushes_only: bool,
    /// The holds on compactions of ranges that callers ask for.
    pub(super) ranges: RangeHolds,
    pub(in crate::background) closing: bool,
    /// Work that failed and has not succeeded since.
    pub(crate) failures: Failures,
    /// Damage that the background leaves alone.
    pub(crate) quarantine: Quarantine,
}

impl Schedule {
    /// Walks the running jobs and asserts that each has a number of its own, given out before, and that no
    /// two of them flush one table.
    pub(in crate::background) fn check(&self) -> bool {
        let mut ids: Vec<u64> = self.running.iter().map(|running| running.id).collect();
        ids.sort_unstable();
        assert!(ids.is_sorted_by(|a, b| a < b), "two jobs have one number: {ids:?}");
        assert!(ids.last().is_none_or(|last| *last <= self.next_id), "{ids:?} of {}", self.next_id);
        let flushed = self.running.iter().filter(|running| running.kind == JobKind::Flush);
        let mut tables: Vec<_> = flushed.map(|running| running.table).collect();
        tables.sort_unstable();
        assert!(tables.is_sorted_by(|a, b| a < b), "a table is flushed twice at once: {tables:?}");
        let mut claims: Vec<ClaimId> = self.running.iter().filter_map(|running| running.claim).collect();
        claims.sort_unstable();
        assert!(claims.is_sorted_by(|a, b| a < b), "two jobs have one claim: {claims:?}");
        true
    }

    /// A copy to decide from, with the cursors of these tables only. It costs as much as there are jobs that
    /// run, failures, damage, and such tables.
    pub(in crate::background) fn copy_for(&self, tables: impl IntoIterator<Item = TableId>) -> Schedule {
        Schedule {
            version: self.version,
            decides: false,
            running: self.running.clone(),
            claims: self.claims.clone(),
            cursors: self.cursors.of(tables),
            next_id: self.next_id,
            paused: self.paused,
            draining: self.draining,
            flushes_only: self.flushes_only,
            ranges: self.ranges.clone(),
            closing: self.closing,
            failures: self.failures.clone(),
            quarantine: self.quarantine.clone(),
        }
    }

    /// Returns true if a job of this kind runs on this table.
    pub(crate) fn is_running(&self, kind: JobKind, table: TableId) -> bool {
        self.running.iter().any(|running| running.kind == kind && running.table == Some(table))
    }

    /// Returns true if a job of this kind runs on this table, or failed on it and waits to be tried again.
    pub(crate) fn is_held(&self, kind: JobKind, table: TableId) -> bool {
        self.is_running(kind, table) || self.failures.holds((kind, Some(table)))
    }

    /// Returns true if [`Schedule::is_held`] of any of these kinds.
    pub(crate) fn holds_any(&self, kinds: JobKinds, table: TableId) -> bool {
        self.running.iter().any(|running| kinds.has(running.kind) && running.table == Some(table))
            || self.failures.holds_any(kinds, table)
    }

    /// Returns true if some work failed and has not succeeded since. Scrubbing does not count: no caller
    /// waits for it.
    pub(crate) fn has_failures(&self) -> bool {
        self.failures.has(JobKinds::AWAITED)
    }

    /// Returns true if scrubbing runs, or failed and waits to be tried again.
    pub(crate) fn is_scrub_held(&self) -> bool {
        self.is_running_anywhere(JobKind::Scrub) || self.failures.holds((JobKind::Scrub, None))
    }

    /// Returns true if nothing runs but scrubbing, which never ends.
    pub(crate) fn is_idle(&self) -> bool {
        self.runs_only(|_| false)
    }

    /// Returns true if nothing runs but scrubbing and what `is_meant`.
    pub(in crate::background) fn runs_only(&self, is_meant: impl Fn(&Running) -> bool) -> bool {
        self.running.iter().all(|running| running.kind == JobKind::Scrub || is_meant(running))
    }

    /// Returns true if work is not given out.
    pub(crate) fn is_paused(&self) -> bool {
        self.paused
    }

    /// Refuses to have a caller wait while work is not given out.
    ///
    /// # Errors
    /// `Invalid` while the background is paused.
    pub(crate) fn refuse_if_paused(&self) -> Result<()> {
        if self.is_paused() {
            return Err(Error::invalid(
                "the background is paused: call `resume_background` before waiting for it",
            ));
        }
        Ok(())
    }

    /// Returns true if some work stands still because it was paused on the way. What has no block left to
    /// stop at goes on to its end.
    pub(crate) fn holds_paused_work(&self) -> bool {
        self.running.iter().any(|running| running.control.is_held())
    }

    /// The number of the newest piece of work.
    pub(crate) fn newest_piece(&self) -> u64 {
        self.next_id
    }

    /// Returns true if a further compaction leaves one of so many workers free. The only worker has to do
    /// everything.
    pub(in crate::background) fn leaves_a_worker(&self, workers: u64) -> bool {
        debug_assert!(workers > 0, "without a worker nothing is given out");
        let is_merging = |running: &&Running| JobKinds::MERGES.has(running.kind);
        let compacting = self.running.iter().filter(is_merging).count() as u64;
        compacting == 0 || compacting + 1 < workers
    }

    /// Returns true if a job of this kind runs on any table.
    pub(crate) fn is_running_anywhere(&self, kind: JobKind) -> bool {
        self.runs_any(JobKinds::of(&[kind]))
    }

    /// Returns true if a job of any of these kinds runs.
    pub(crate) fn runs_any(&self, kinds: JobKinds) -> bool {
        self.running.iter().any(|running| kinds.has(running.kind))
    }
}
