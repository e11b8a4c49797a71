//! Work for when there were no writes for a while.
//!
//! * Memory: when the cache is full, the background flushes memtables and generations, so that reads no
//!   longer look there first and their memory serves the cache.
//! * Space: spare segment files and free slots are there for the next writes. At rest the device has them
//!   back, once, and again behind work that was put off until then. What comes free later, by readers that
//!   leave, comes back with the next writes.
//!
//! Only asked for where nothing else is due, and never waited for: a database that is quiescent stays so
//! until readers read more than fits. For a caller that waits until it is quiescent, space is given back at
//! once.

use std::sync::Arc;
use std::time::Duration;

use terrane_base::Result;
use terrane_base::sync::Mutex;

use crate::background::job::{Job, Look};
use crate::background::maintenance::Maintenance;
use crate::observe::job_kind::JobKind;
use crate::table::Table;

/// How long there must have been no write.
const IDLE_MIN: Duration = Duration::from_millis(1000);
/// Less than one part in this many of the write memory is not worth a flush.
const REMAINS_SHARE: u64 = 32;
/// The cache is full when less than one part in this many of it is free.
const FULL_SHARE: u64 = 8;
/// Steps of the epoch after which objects that no reader sees are free.
const COLLECT_TURNS: u32 = 4;

/// The state at the last look.
#[derive(Debug, Default)]
pub(crate) struct IdleWatch(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    bytes_written: u64,
    since: Option<Duration>,
    /// True if space was given back since.
    has_reclaimed: bool,
    /// Less than this is left of any table, since when nothing was written.
    remains_below: Option<u64>,
}

impl IdleWatch {
    /// Returns true if nothing was written for [`IDLE_MIN`], as far as looks at `bytes_written` show.
    fn is_idle(&self, bytes_written: u64, now: Duration) -> bool {
        let mut seen = self.0.lock();
        debug_assert!(
            seen.since.is_some() || !seen.has_reclaimed,
            "space was given back before the first look"
        );
        match seen.since {
            Some(since) if seen.bytes_written == bytes_written => now.saturating_sub(since) >= IDLE_MIN,
            _ => {
                let has_reclaimed = terrane_base::planted!(ReclaimOnce) && seen.has_reclaimed;
                *seen = Seen { bytes_written, since: Some(now), has_reclaimed, remains_below: None };
                false
            }
        }
    }

    /// Space becomes free without writes.
    pub(crate) fn reclaim_again(&self) {
        if !terrane_base::planted!(ReclaimOnce) {
            self.0.lock().has_reclaimed = false;
        }
    }

    /// Returns true if less than `bytes` is left of any table, by the last [`Self::note_remains`].
    fn has_less_than(&self, bytes: u64) -> bool {
        self.0.lock().remains_below.is_some_and(|below| below <= bytes)
    }

    /// Notes that less than `bytes` is left of any table; without a write it stays so.
    fn note_remains(&self, bytes: u64) {
        self.0.lock().remains_below = Some(bytes);
    }

    /// Returns true if this is the first call since the last look that found something written, or since
    /// [`Self::reclaim_again`].
    fn begins_reclaim(&self) -> bool {
        !std::mem::replace(&mut self.0.lock().has_reclaimed, true)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_restarts_the_wait() {
        let watch = IdleWatch::default();
        let at = Duration::from_millis;
        assert!(!watch.is_idle(5, at(0)), "the first look knows nothing of before");
        assert!(!watch.is_idle(5, at(999)));
        assert!(watch.is_idle(5, at(1000)));
        assert!(!watch.is_idle(6, at(1500)));
        assert!(!watch.is_idle(6, at(2499)));
        assert!(watch.is_idle(6, at(2500)));
    }

    #[test]
    fn space_is_given_back_again_behind_each_write_and_each_request() {
        let watch = IdleWatch::default();
        let begins_at_rest = |bytes_written: u64, from: u64| {
            watch.is_idle(bytes_written, Duration::from_millis(from));
            assert!(watch.is_idle(bytes_written, Duration::from_millis(from + 1000)));
            watch.begins_reclaim()
        };
        assert!(begins_at_rest(5, 0));
        assert!(!begins_at_rest(5, 5000), "once without a write");
        assert!(begins_at_rest(6, 10_000), "again behind a write");
        assert!(!begins_at_rest(6, 15_000));
        watch.reclaim_again();
        assert!(begins_at_rest(6, 20_000), "again behind a request");
    }
}
