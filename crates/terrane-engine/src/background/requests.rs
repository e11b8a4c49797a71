//! Requests of a user to the background: flush, compact a range or a level, wait until it is quiescent,
//! pause, cancel, look.

use std::ops::Bound;
use std::sync::Arc;

use terrane_base::{Error, Result, SeqNo};
use terrane_compaction::{CancelCause, KeyRange, RangeRequest};
use terrane_format::manifest::LEVEL_MAX;
use terrane_storage::SLOT_BYTES;

use crate::background::job::Look;
use crate::background::maintenance::Maintenance;
use crate::background::scheduler::Schedule;
use crate::observe::job_kind::{JobKind, JobKinds};
use crate::read::scan::Bounds;
use crate::table::Table;

/// Most bytes of records that a close flushes.
const CLOSE_RECORD_BYTES_MAX: u64 = 16 << 20;
/// A flush at a close may write so many bytes, ..
const CLOSE_BYTES: u64 = 1 << 20;
/// .. so many more for each byte of records, ..
const CLOSE_FACTOR: u64 = 4;
/// .. and so many for each segment that the next opening need not replay.
const CLOSE_SEGMENT_BYTES: u64 = 256 << 10;
/// The time of the syncs of one table's flush, as bytes that could be written in that time.
const CLOSE_TABLE_BYTES: u64 = 64 << 10;

/// One piece of background work that runs now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The kind of the job.
    pub work: JobKind,
    /// Name of the table it works on, if it works on one.
    pub table: Option<String>,
    /// Bytes read and reused so far.
    pub bytes_in: u64,
    /// Bytes written so far.
    pub bytes_out: u64,
}

impl Maintenance {
    /// Moves every record committed so far into the levels and waits for it.
    ///
    /// # Errors
    /// The error of a background job that keeps failing, but not while one runs or is due that may succeed:
    /// failed jobs that wait for their next attempt are tried at once; `Poisoned` if background work on a
    /// table has stopped, once all others are flushed; `Cancelled` when the database closes.
    pub fn flush(&self) -> Result<()> {
        self.flush_tables(&self.catalog.all())
    }

    /// As [`Maintenance::flush`], of these tables only.
    ///
    /// # Errors
    /// As [`Maintenance::flush`].
    pub fn flush_tables(&self, tables: &[Arc<Table>]) -> Result<()> {
        self.refuse_if_read_only()?;
        self.flush_and_wait(tables)
    }

    /// As [`Maintenance::flush_tables`], on any thread that no job waits for.
    ///
    /// # Errors
    /// As [`Maintenance::flush`].
    pub(crate) fn flush_and_wait(&self, tables: &[Arc<Table>]) -> Result<()> {
        let upto = self.request_flush(tables);
        self.wait_for_flush(tables, upto)
    }

    /// Has the background flush everything committed so far in these tables, and does not wait for it.
    ///
    /// # Errors
    /// `Invalid` for a database that was opened read-only.
    pub fn begin_flush(&self, tables: &[Arc<Table>]) -> Result<()> {
        self.refuse_if_read_only()?;
        self.request_flush(tables);
        Ok(())
    }

    pub(crate) fn wait_for_flush(&self, tables: &[Arc<Table>], upto: SeqNo) -> Result<()> {
        debug_assert!(!self.options.read_only, "no worker is there that would end the wait");
        let seen = self.background.scheduler.ask(JobKinds::MEMORY, tables);
        self.background.scheduler.wait_for(|schedule| {
            schedule.refuse_if_paused()?;
            Look { engine: self, schedule }.is_flush_done(tables, upto, seen)
        })
    }

    /// Flushes before a close where that costs less than the replays of later openings. A flush saves only
    /// these replays: records that are not flushed stay in the journal, and a failure is left to the next
    /// opening.
    pub(crate) fn flush_before_close(&self) {
        if self.options.read_only || !self.options.close_flush || !self.is_flush_cheap() {
            return;
        }
        // A journal that failed takes no flush, and one that is failing holds a close up for nothing.
        let is_hopeless = |schedule: &Schedule| schedule.is_paused() || schedule.has_failures();
        if self.journal.check().is_err() || self.background.scheduler.inspect(is_hopeless) {
            return;
        }
        let tables = self.catalog.all();
        self.background.scheduler.flush_only();
        let upto = self.request_flush(&tables);
        let is_left = |table: &Arc<Table>| !table.is_dropped() && !table.is_flushed(upto);
        // An error says that another caller closes the database.
        let _ = self.background.scheduler.wait_for(|schedule| {
            Ok(is_hopeless(schedule) || tables.iter().all(|table| table.is_stopped() || !is_left(table)))
        });
    }

    /// Returns true if a flush of all tables writes little: few bytes as such, and a bounded multiple of the
    /// records with what it rewrites of level 1. The more segments a replay would open, the more it may
    /// write.
    fn is_flush_cheap(&self) -> bool {
        let (mut records, mut written) = (0, 0);
        for table in self.catalog.all() {
            let view = table.pinned();
            if view.memory_is_empty() {
                continue;
            }
            let entries: u64 = view.indexes().map(|index| index.entry_count()).sum();
            let level_1 = view.tree.levels.first().map_or(0, |level| level.totals().bytes);
            let bytes = view.record_bytes();
            records += bytes;
            written += CLOSE_TABLE_BYTES + bytes + level_1.min(entries.saturating_mul(SLOT_BYTES as u64));
        }
        debug_assert!(written >= records, "a flush writes all records once at least");
        let segments = self.journal.complete_segments().len() as u64 + 1;
        let allowed = CLOSE_BYTES + records * CLOSE_FACTOR + segments * CLOSE_SEGMENT_BYTES;
        records <= CLOSE_RECORD_BYTES_MAX && written <= allowed
    }

    /// Merges a key range down to the deepest level that has data, and waits for it. Where the range is the
    /// whole table, spare space is given back to the device then (option `idle_reclaim`).
    ///
    /// # Errors
    /// As [`Maintenance::flush`]; `Cancelled` where such compactions are held back, or were meanwhile.
    pub fn compact_range(&self, table: &Arc<Table>, bounds: &Bounds) -> Result<()> {
        self.refuse_if_read_only()?;
        table.refuse_if_stopped()?;
        let begun = self.background.scheduler.begin_range();
        let tables = [table.clone()];
        self.flush_and_wait(&tables)?;
        let request = table.request_compaction(RangeRequest::new(to_range(bounds), 0..=LEVEL_MAX, true));
        debug_assert!(table.is_of(&self.catalog), "no worker of this database looks at the request");
        let seen = self.background.scheduler.ask(JobKinds::AWAITED, &tables);
        let done = self.background.scheduler.wait_for(|schedule| {
            if schedule.was_held_since(begun) {
                // Before what runs for it has ended: no other job is to begin for it.
                table.withdraw_request(request);
            }
            schedule.refuse_if_held_since(begun, table.id)?;
            table.refuse_if_stopped()?;
            Look { engine: self, schedule }.report_failure_or_pause(Some(&tables), seen)?;
            if let Some(error) = schedule.quarantine.of(table.id) {
                return Err(error.clone());
            }
            Ok(table.is_dropped() || table.is_compacted(request) && !schedule.was_held_since(begun))
        });
        table.withdraw_request(request);
        let is_whole = (&bounds.lower, &bounds.upper) == (&Bound::Unbounded, &Bound::Unbounded);
        if done.is_ok() && is_whole && self.options.experiments.idle_reclaim {
            // It endangers nothing: what cannot be given back now is tried again when the database rests.
            let _ = self.reclaim_idle();
        }
        done
    }

    /// Moves every extent of one level of `table` into the next and waits for it; 0 stands for the overflow
    /// runs. Does not flush. Also done while the background is paused.
    ///
    /// # Errors
    /// `Invalid` for the deepest level that there can be, or where a pause holds work on the way; otherwise
    /// as [`Maintenance::flush`].
    pub fn compact_level(&self, table: &Arc<Table>, level: u8) -> Result<()> {
        self.refuse_if_read_only()?;
        if level >= LEVEL_MAX {
            return Err(Error::invalid(format!(
                "there is no level below level {level}: 0 to {} can be merged down",
                LEVEL_MAX - 1
            )));
        }
        let request = table.request_compaction(RangeRequest::one_level(level));
        debug_assert!(table.is_of(&self.catalog), "no worker of this database looks at the request");
        let done = self.wait_for_asked(table, |schedule| match schedule.quarantine.of(table.id) {
            Some(error) => Err(error.clone()),
            None => Ok(table.is_dropped() || table.is_compacted(request)),
        });
        table.withdraw_request(request);
        done
    }

    /// Writes every record of `table` committed so far that is only in memory as overflow runs, one for each
    /// generation of the global index, and waits for it. Also done while the background is paused.
    ///
    /// # Errors
    /// `Invalid` where a pause holds work on the way; otherwise as [`Maintenance::flush`].
    pub fn flush_to_run(&self, table: &Arc<Table>) -> Result<()> {
        self.refuse_if_read_only()?;
        table.refuse_if_stopped()?;
        let mut upto = SeqNo(0);
        self.journal.between_groups(&mut |next_seq| upto = SeqNo(next_seq.0 - 1));
        // Before anything is frozen: what a worker finds then is already meant for a run.
        table.want_run(upto);
        debug_assert!(table.wants_run(upto), "what a flush finds up to {upto} is meant for a run");
        self.freeze(table)?;
        table.want_flush(upto);
        self.wait_for_asked(table, |_| Ok(table.is_dropped() || table.is_flushed(upto)))
    }

    /// Waits for jobs that run even while the background is paused.
    fn wait_for_asked(&self, table: &Arc<Table>, done: impl Fn(&Schedule) -> Result<bool>) -> Result<()> {
        debug_assert!(!self.options.read_only, "no worker is there that would end the wait");
        let tables = std::slice::from_ref(table);
        let seen = self.background.scheduler.ask(JobKinds::AWAITED, tables);
        self.background.scheduler.wait_for(|schedule| {
            table.refuse_if_stopped()?;
            let look = Look { engine: self, schedule };
            if let Some(error) = look.lasting_failure(JobKinds::AWAITED, Some(tables), seen) {
                return Err(error);
            }
            let is_done = done(schedule)?;
            if !is_done && schedule.holds_paused_work() {
                return Err(Error::invalid(
                    "background work was paused while it ran: let it go on, wait until it is quiescent, then pause",
                ));
            }
            Ok(is_done)
        })
    }

    /// Waits until nothing runs and nothing wants to: no full memtable, no generation to flush, no level over
    /// its size, no segment to trim. With `experiments.idle_reclaim` spare space is given back to the device
    /// then.
    ///
    /// # Errors
    /// As [`Maintenance::flush`]; `Invalid` while the background is paused, because it could wait for ever,
    /// and on a thread of the background.
    pub fn wait_until_quiescent(&self) -> Result<()> {
        crate::reentrancy::refuse(self.instance())?;
        if self.options.read_only {
            return Ok(());
        }
        // It asks what the workers ask, of a schedule that has not changed after the answer: if there is
        // nothing and nothing runs, no worker can find a job until a caller writes or requests one.
        let seen = self.background.scheduler.ask(JobKinds::AWAITED, &self.catalog.all());
        let done = |schedule: &Schedule| {
            let look = Look { engine: self, schedule };
            look.report_failure_or_pause(None, seen)?;
            match schedule.quarantine.first() {
                Some(error) if look.has_nothing_to_do() => Err(error.clone()),
                _ => Ok(look.has_nothing_to_do()),
            }
        };
        self.throttle.without_delay(|| {
            self.background.scheduler.wake();
            self.background.scheduler.wait_for(done)
        })?;
        if self.options.experiments.idle_reclaim {
            // A failure does no harm: the engine tries again after the next writes.
            let _ = self.reclaim_idle();
        }
        Ok(())
    }

    /// Pauses the background, or lets it go on. A merge that only reads gain by is given up instead of
    /// paused.
    pub fn set_background_paused(&self, paused: bool) {
        self.background.scheduler.set_paused(paused);
        self.events.look_again();
        if paused {
            self.give_up_adapting();
        }
    }

    /// Holds compactions of ranges back: cancels those that run, and callers that wait for one get
    /// `Cancelled`. Holds count: each is ended by one [`Maintenance::allow_range_compactions`]. Compactions
    /// that the shape of a table needs go on.
    pub fn hold_range_compactions(&self) {
        self.background.scheduler.hold_ranges();
    }

    /// Ends one pause of manual compactions; does nothing if none is in force.
    pub fn allow_range_compactions(&self) {
        self.background.scheduler.allow_ranges();
    }

    /// Returns true if compactions of ranges are held back.
    #[must_use]
    pub fn holds_range_compactions(&self) -> bool {
        self.background.scheduler.inspect(Schedule::holds_ranges)
    }

    /// Cancels every compaction that runs now.
    pub fn cancel_compactions(&self) {
        self.background.scheduler.cancel(JobKinds::MERGES, CancelCause::Asked);
    }

    /// The running jobs.
    #[must_use]
    pub fn progress(&self) -> Vec<Progress> {
        let name = |id| crate::table::catalog::name_of(&self.catalog, id);
        self.background.scheduler.inspect(|schedule: &Schedule| {
            let running = schedule.running.iter().map(|running| {
                let done = running.control.work();
                Progress {
                    work: running.kind,
                    table: running.table.and_then(name),
                    bytes_in: done.bytes_read + done.bytes_relinked + done.bytes_copied,
                    bytes_out: done.bytes_written,
                }
            });
            running.collect()
        })
    }
}

impl Look<'_> {
    /// An error while nothing can make progress: a job that keeps failing, on these tables or any, or a
    /// pause.
    fn report_failure_or_pause(self, tables: Option<&[Arc<Table>]>, seen: u64) -> Result<()> {
        self.schedule.refuse_if_paused()?;
        self.lasting_failure(JobKinds::AWAITED, tables, seen).map_or(Ok(()), Err)
    }
}

/// Bounds as a range of the picker: its start is inclusive.
fn to_range(bounds: &Bounds) -> KeyRange {
    let start = match &bounds.lower {
        Bound::Included(key) => key.clone(),
        Bound::Excluded(key) => bounds.collation.successor(key),
        Bound::Unbounded => Vec::new(),
    };
    KeyRange { start, end: bounds.upper.clone(), collation: bounds.collation.clone() }
}
