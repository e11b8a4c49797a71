//! The next job on memory and on the journal, and whether a caller may go on waiting for one.

use std::sync::Arc;

use terrane_base::{Error, Result, SeqNo, TableId};

use crate::background::job::{Job, Look};
use crate::background::retry::Subject;
use crate::observe::job_kind::{JobKind, JobKinds};
use crate::table::Table;
use crate::table::due::Depth;

impl Look<'_> {
    /// Returns the next job on memory, in this order: switch full memtables, settle frozen ones, flush
    /// generations, flush what a caller wants flushed, flush versions that scans step over.
    pub(crate) fn next_memory_work(self) -> Option<Job> {
        let (tables, schedule) = (self.catalog.moving(), self.schedule);
        for table in &tables {
            if table.is_full() && !schedule.is_held(JobKind::Freeze, table.id) {
                return Some(Job::Freeze(table.clone()));
            }
        }
        for table in &tables {
            if wants_settle(table) && !schedule.is_held(JobKind::Settle, table.id) {
                return Some(Job::Settle(table.clone()));
            }
        }
        let flush = self.table_to_flush(&tables).map(Job::Flush);
        flush.or_else(|| self.relief()).or_else(|| self.flush_for_scans())
    }

    /// The job that gives segments back, if there are such, no worker does it, and it does not wait to be
    /// tried again. While a check reads them no worker begins it, in vain; nor while a flush trims: it would
    /// wait there.
    pub(crate) fn next_trim(self) -> Option<Job> {
        let schedule = self.schedule;
        let is_held = schedule.is_running_anywhere(JobKind::Trim)
            || schedule.failures.holds((JobKind::Trim, None))
            || schedule.decides && (self.trims.is_checked() || self.trims.is_trimming());
        (!is_held && (self.is_trim_due() || self.is_history_due())).then_some(Job::Trim)
    }

    /// Returns the oldest error of jobs of these kinds that keep failing on `tables` (all tables if `None`;
    /// jobs of no table count in any case), or the error of a table whose background work has stopped.
    /// Returns `None` while such a job runs or is due: it may succeed, or an older failure says nothing about
    /// it. But if a job numbered above `seen` has failed, its error is returned at once: with many tables one
    /// job or another always runs. Where the schedule has changed since it was copied, the caller looks
    /// again.
    pub(crate) fn lasting_failure(
        self,
        kinds: JobKinds,
        tables: Option<&[Arc<Table>]>,
        seen: u64,
    ) -> Option<Error> {
        let schedule = self.schedule;
        debug_assert!(seen <= schedule.newest_piece(), "piece {seen} was not given out when a caller asked");
        let is_asked = |on: Option<TableId>| match (on, tables) {
            (Some(on), Some(tables)) => tables.iter().any(|table| table.id == on),
            _ => true,
        };
        let is_meant = |(kind, on): Subject| kinds.has(kind) && is_asked(on);
        let lasting = || schedule.failures.lasting().filter(|lasting| is_meant(lasting.subject));
        let oldest = lasting().next().map(|lasting| lasting.error.clone());
        let oldest = oldest.or_else(|| self.catalog.stop_of(tables))?;
        if let Some(later) = lasting().find(|lasting| lasting.piece > seen) {
            return Some(later.error.clone());
        }
        let is_running = schedule.runs_any(kinds);
        // An attempt that began after the copy was taken may have succeeded, so that nothing is due any more.
        let goes_on = is_running || self.is_due(kinds) || !self.background.scheduler.is_unchanged(schedule);
        (!goes_on).then_some(oldest)
    }

    /// Returns true if a job of one of these kinds, of which those on memory are some, is to be begun.
    fn is_due(self, kinds: JobKinds) -> bool {
        let merges = kinds.has(JobKind::Compact);
        if self.schedule.is_paused() {
            return merges && self.next_asked().is_some();
        }
        self.next_memory_work().is_some()
            || self.next_trim().is_some()
            || merges && self.pick_compaction(Depth::All, false).is_some()
    }

    /// The table whose oldest generation should be flushed now.
    pub(crate) fn table_to_flush(self, tables: &[Arc<Table>]) -> Option<Arc<Table>> {
        let schedule = self.schedule;
        let candidates = tables.iter().filter(|table| {
            !schedule.is_held(JobKind::Flush, table.id)
                && !schedule.is_running(JobKind::Settle, table.id)
                && self.wants_flush(table)
        });
        // The one that holds back the oldest segment first: it is what keeps memory from coming back.
        candidates
            .min_by_key(|table| table.pinned().generations.last().and_then(|g| g.oldest_segment()))
            .cloned()
    }

    /// Returns true if the oldest generation is full, superseded, asked for, or begun.
    fn wants_flush(self, table: &Table) -> bool {
        let guard = terrane_base::epoch::pin();
        let view = table.view(&guard);
        let Some(oldest) = view.generations.last() else { return false };
        let newest = view.generations.first().map(|newest| newest.first_seq());
        debug_assert!(
            newest.is_none_or(|newest| newest >= oldest.first_seq()),
            "a newer generation goes to the levels first"
        );
        let bytes = oldest.record_bytes() + oldest.index_bytes();
        let wanted = table.flush_wanted();
        // A trim may record all up to `wanted` as flushed though the generation begins below and has records
        // above only: the caller of a flush waits for it.
        let begins_below = wanted > SeqNo(0) && wanted >= oldest.first_seq();
        let is_asked =
            wanted > table.flushed_seq() || begins_below && !terrane_base::planted!(FlushWaitsForNothing);
        view.generations.len() > 1
            || bytes + self.memory.memtable_limit() > self.memory.generation_limit()
            || is_asked
            || oldest.is_closed()
    }

    /// The next job that writes overflow runs which a caller asked for, if one can begin now.
    pub(crate) fn next_run_wanted(self, tables: &[Arc<Table>]) -> Option<Job> {
        let schedule = self.schedule;
        tables.iter().find_map(|table| {
            let view = table.pinned();
            debug_assert!(table.is_of(&self.catalog), "a job of another database");
            let is_wanted = |first_seq: Option<SeqNo>| first_seq.is_some_and(|first| table.wants_run(first));
            let settles = is_wanted(view.frozen.last().map(|memtable| memtable.first_seq()));
            if settles && !schedule.is_held(JobKind::Settle, table.id) {
                return Some(Job::Settle(table.clone()));
            }
            let flushes = is_wanted(view.generations.last().map(|generation| generation.first_seq()));
            let is_free = !schedule.is_held(JobKind::Flush, table.id)
                && !schedule.is_running(JobKind::Settle, table.id);
            (flushes && is_free).then(|| Job::Flush(table.clone()))
        })
    }

    /// The next piece of what was asked for by name: runs out of memory, a level into the next. It is done
    /// while the background is paused, too.
    pub(crate) fn next_asked(self) -> Option<Job> {
        if let Some(work) = self.next_run_wanted(&self.catalog.moving()) {
            return Some(work);
        }
        let (table, spec) = self.pick_compaction(Depth::Asked, false)?;
        debug_assert!(spec.table == table.id, "the job of one table would be installed in another");
        Some(Job::Compact(table, spec))
    }

    /// Returns true if everything up to `upto` is flushed in `tables`, of which that was asked for when
    /// `seen` was the newest piece of work.
    ///
    /// # Errors
    /// As [`Maintenance::flush`].
    pub(crate) fn is_flush_done(self, tables: &[Arc<Table>], upto: SeqNo, seen: u64) -> Result<bool> {
        let waits = |table: &&Arc<Table>| !table.is_dropped() && !table.is_flushed(upto);
        let mut waiting = tables.iter().filter(waits).peekable();
        if waiting.peek().is_none() {
            return Ok(true);
        }
        // The others are flushed first: with the journal off, nothing else keeps their rows.
        let going_on: Vec<_> = waiting.filter(|table| !table.is_stopped()).cloned().collect();
        if going_on.is_empty() {
            return self.catalog.stop_of(Some(tables)).map_or(Ok(true), Err);
        }
        self.lasting_failure(JobKinds::MEMORY, Some(&going_on), seen).map_or(Ok(false), Err)
    }
}

/// Returns true if frozen memtables wait to become, or to be merged into, a generation.
fn wants_settle(table: &Table) -> bool {
    let guard = terrane_base::epoch::pin();
    !table.view(&guard).frozen.is_empty()
}
