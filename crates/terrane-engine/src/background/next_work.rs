//! The most urgent piece of work of all kinds, and whether any is left.
//!
//! Order of urgency: steps that give space back, switch full memtables (short), merge or flush memory,
//! compact levels by score, trim the journal.

use terrane_base::TableId;

use crate::background::job::{Job, Look};
use crate::observe::job_kind::{JobKind, JobKinds};
use crate::table::due::Depth;

impl Look<'_> {
    /// The most urgent piece of work that nothing running excludes. While memory `is_filling` up, no
    /// compaction that would take the last worker from memory; with `puts_off`, none that is not due. Pure
    /// but for loading read views.
    pub(crate) fn next_work(self, depth: Depth, is_filling: bool, puts_off: bool) -> Option<Job> {
        let schedule = self.schedule;
        let is_asked = !schedule.decides || !schedule.is_paused();
        debug_assert!(is_asked, "a paused background begins only jobs that callers asked for");
        let is_free = !is_filling || schedule.leaves_a_worker(self.options.background_threads);
        let compacts = is_free && !schedule.flushes_only;
        let compaction = || compacts.then(|| self.pick_compaction(depth, puts_off)).flatten();
        // A batch that waits until all memory is free waits for the trim, too, and for no compaction.
        let first_trim = || self.throttle.is_making_room().then(|| self.next_trim()).flatten();
        self.next_space_step()
            .or_else(|| self.next_memory_work())
            .or_else(first_trim)
            .or_else(|| compaction().map(|(table, spec)| Job::Compact(table, spec)))
            .or_else(|| self.next_trim())
    }

    /// Returns true if nothing runs, nothing wants to, and nothing waits to be tried again, and the schedule
    /// is still as it was when it was copied.
    pub(crate) fn has_nothing_to_do(self) -> bool {
        self.schedule.is_idle()
            && !self.schedule.has_failures()
            && self.next_work(Depth::All, false, false).is_none()
            && self.background.scheduler.is_unchanged(self.schedule)
    }

    /// Returns true if no job can be expected to free memory: as [`Look::has_nothing_to_do`], but for
    /// compactions that keep failing.
    pub(crate) fn frees_no_memory(self) -> bool {
        let schedule = self.schedule;
        debug_assert!(!schedule.decides, "a writer that waits looks at a copy, and begins no job");
        let is_failing = |kind: JobKind, table: Option<TableId>| {
            !JobKinds::MEMORY.has(kind) && schedule.failures.is_failing((kind, table))
        };
        schedule.runs_only(|running| is_failing(running.kind, running.table))
            && !schedule.failures.has(JobKinds::MEMORY)
            && self.next_work(Depth::All, false, false).is_none_or(|job| is_failing(job.kind(), job.table()))
            && self.background.scheduler.is_unchanged(schedule)
    }

    /// Returns true if a job that brings memory back runs, is due, or is tried again.
    pub(crate) fn frees_memory_next(self) -> bool {
        let schedule = self.schedule;
        debug_assert!(!schedule.decides, "a writer that waits looks at a copy, and begins no job");
        schedule.runs_any(JobKinds::MEMORY)
            || schedule.failures.has(JobKinds::MEMORY)
            || self.next_memory_work().is_some()
            || self.next_trim().is_some()
    }
}
