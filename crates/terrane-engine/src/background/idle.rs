//! Work for when there were no writes for a while.
//!
//! * Memory: when the cache is full, the background flushes memtables and generations, so that reads no
//!   longer look there first and their memory serves the cache.
//! * Space: spare segment files and free slots are there for the next writes. At rest the device has them
//!   back, once, and again after work that was put off until then. What comes free later, by readers that
//!   leave, comes back with the next writes.
//!
//! Only asked for where nothing else is due, and never waited for: a database that is quiescent stays so
//! until readers read more than fits. For a caller that waits until it is quiescent, space is given back at
//! once.

use std::sync::Arc;

use terrane_base::Result;

use crate::background::job::{Job, Look};
use crate::background::maintenance::Maintenance;
use crate::observe::job_kind::JobKind;
use crate::table::Table;

/// Less than one part in this many of the write memory is not worth a flush.
const REMAINS_SHARE: u64 = 32;
/// The cache is full when less than one part in this many of it is free.
const FULL_SHARE: u64 = 8;
/// Steps of the epoch after which objects that no reader sees are free.
const COLLECT_TURNS: u32 = 4;

impl Look<'_> {
    /// The next job of those that run while there are no writes.
    pub(crate) fn idle_work(self) -> Option<Job> {
        let schedule = self.schedule;
        if !schedule.is_idle() || schedule.has_failures() {
            return None;
        }
        debug_assert!(schedule.decides, "a reclaim is found once, by the worker that begins it");
        let bytes_written = self.written.bytes();
        if !self.background.idle_watch.is_idle(bytes_written, self.env.clock.now()) {
            return None;
        }
        let reclaims =
            || self.options.experiments.idle_reclaim && self.background.idle_watch.begins_reclaim();
        self.idle_flush().or_else(|| reclaims().then_some(Job::Reclaim))
    }

    /// The next step of flushing what idle writers left, if reads would gain by it.
    fn idle_flush(self) -> Option<Job> {
        let schedule = self.schedule;
        debug_assert!(schedule.is_idle(), "what idle writers left is flushed when nothing runs");
        if !self.options.experiments.idle_flush || !self.is_cache_full() {
            return None;
        }
        let remains = |table: &Arc<Table>| {
            let view = table.pinned();
            let in_generations: u64 =
                view.generations.iter().map(|one| one.record_bytes() + one.index_bytes()).sum();
            view.active.record_bytes() + view.active.index_bytes() + in_generations
        };
        let least = self.memory.budget().write_bytes() / REMAINS_SHARE;
        if self.background.idle_watch.has_less_than(least) {
            return None;
        }
        let tables = self.catalog.filled();
        let largest = tables.iter().map(|table| (remains(table), table)).max_by_key(|(bytes, _)| *bytes);
        let (_, table) = largest.filter(|(bytes, _)| *bytes >= least).or_else(|| {
            self.background.idle_watch.note_remains(least);
            None
        })?;
        if schedule.is_held(JobKind::Flush, table.id) {
            return None;
        }
        table.want_flush(self.journal.visible());
        Some(Job::Freeze(table.clone()))
    }

    fn is_cache_full(self) -> bool {
        let usage = self.cache.usage();
        usage.used_bytes + usage.limit_bytes / FULL_SHARE >= usage.limit_bytes
    }
}

impl Maintenance {
    /// Gives back to the device what only waits to be used again.
    ///
    /// # Errors
    /// `Io`, `Poisoned`; nothing is lost by it but space.
    pub(crate) fn reclaim_idle(&self) -> Result<()> {
        debug_assert!(!self.options.read_only, "the process that writes owns the space");
        self.collect_epochs();
        self.store.reclaim_all()?;
        self.journal.remove_spares()?;
        Ok(())
    }

    /// Extents that the last work replaced, or readers have let go of, are free then, if no epoch is left
    /// that began before.
    pub(crate) fn collect_epochs(&self) {
        (0..COLLECT_TURNS).for_each(|_| terrane_base::epoch::pin().flush());
    }
}
