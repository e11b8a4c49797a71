//! From memory to the levels. A flush closes the oldest generation of the global index (`merge_frozen.rs`) to
//! merges, so that it takes in nothing more, and merges it with the overlapping extents of level 1 range by
//! range, one manifest edit per step; the last step also notes the generation as flushed and takes it out of
//! the read view, after which its segments can go (`flush_job.rs`). If a flush fails the generation stays
//! closed, and is tried again.
//!
//! A crash between steps is harmless: the generation is replayed from its segments, and what earlier steps
//! put into level 1 is seen twice under the same sequence numbers.

mod early;
mod flush_job;
pub(crate) mod merge_frozen;
pub(crate) mod scan_trigger;
pub(crate) mod switch;

use std::sync::Arc;
use terrane_base::sync::atomic::Ordering;

use terrane_base::{Error, Kind, Result, SeqNo};
use terrane_compaction::{ClaimId, FlushPlan, JobControl, JobResult, JobSpec, Targets, plan_flush};
use terrane_format::manifest::EditOp;
use terrane_levels::Metasnapshot;
use terrane_memtable::GlobalIndex;
use terrane_table::Extent;

use crate::background::job::Job;
use crate::background::maintenance::Maintenance;
use crate::background::scheduler::Schedule;
use crate::observe::job_kind::JobKind;
use crate::observe::stats::add;
use crate::table::Table;
use crate::table::ledger::{Completeness, Leaves};
use crate::table::read_view::ReadView;
use crate::table::stopped::Left;
use crate::table::tree_shape::shape_of;
pub(crate) use flush_job::FlushJob;

/// How many times larger than the generation level 1 is when it counts as much larger.
const OVERFLOW_RATIO: u64 = 2;
/// Level 1 may be this many times its target before a generation is written as an overflow run instead.
const OVERFLOW_FACTOR: u64 = 3;

impl Maintenance {
    /// The table whose oldest generation should be flushed now.
    pub(crate) fn table_to_flush(&self, tables: &[Arc<Table>], schedule: &Schedule) -> Option<Arc<Table>> {
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
    fn wants_flush(&self, table: &Table) -> bool {
        let guard = terrane_base::epoch::pin();
        let view = table.view(&guard);
        let Some(oldest) = view.generations.last() else { return false };
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
    pub(crate) fn next_run_wanted(&self, tables: &[Arc<Table>], schedule: &Schedule) -> Option<Job> {
        tables.iter().find_map(|table| {
            let view = table.pinned();
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

    /// The oldest generation, which takes in nothing more from now on.
    fn take_generation(&self, table: &Table) -> Option<Arc<GlobalIndex>> {
        let _no_merge = table.merging.lock();
        let oldest = table.pinned().generations.last().cloned();
        oldest.inspect(|generation| generation.close_to_merges())
    }

    /// Returns true if the generation is written as an overflow run instead of being merged with level 1.
    /// While there are overflow runs, which hold older versions, a newer generation must not go below them.
    /// Otherwise it is a run in two cases. Level 1 is much larger than the generation, and writers had to
    /// wait since the last flush, or will have filled the next generation soon: a merge would bring memory
    /// back slowly, a run does quickly, and several runs are then merged with the level at once. Or a load
    /// begins ([`Self::is_load`]): before a merge the journal is synced, and each later merge of the load
    /// would write all of level 1 again.
    fn must_overflow(&self, table: &Table, generation: &GlobalIndex) -> bool {
        let tree = table.pinned().tree;
        let sizes: Vec<u64> = tree.levels.iter().map(|level| level.totals().bytes).collect();
        let level_1 = sizes.first().copied().unwrap_or(0);
        let is_large = level_1 > OVERFLOW_RATIO * level_bytes_of(table, &tree, generation);
        let begins_load = sizes.iter().all(|bytes| *bytes == 0) && self.is_load(table, generation);
        let paused = self.throttle.paused_micros_of(table);
        let had_to_wait = paused > table.paused_before.swap(paused, Ordering::Relaxed);
        // What a range delete meets in level 1 is for a merge of runs to find out: it may be all of it.
        let is_ranged = generation.index().range_deletes().is_some();
        // One that is not compacted by itself has runs only.
        let is_manual = !table.settings().limits.automatic;
        let is_chosen = self.options.experiments.always_overflow;
        (is_chosen || is_ranged || is_manual || !tree.runs.is_empty() || self.is_hurt(table.id))
            || level_1 > OVERFLOW_FACTOR.saturating_mul(Targets::new(&sizes, &table.settings().limits).of(1))
            || begins_load
            || (is_large && (had_to_wait || self.write_control().puts_off()))
    }

    /// Returns true if a generation in an empty tree is the first one of a load: at least half as large as
    /// a memtable, with few values that are separated. Runs hide such values from their collection.
    fn is_load(&self, table: &Table, generation: &GlobalIndex) -> bool {
        let bytes = generation.record_bytes() + generation.index_bytes();
        let mean_bytes = generation.record_bytes() / generation.entry_count().max(1);
        bytes >= self.memory.memtable_limit() / 2 && mean_bytes < table.settings().limits.separate_from
    }

    /// Returns true if another table has records up to `seq` in memory only. If none has, a run that holds
    /// everything up to `seq` may be installed before the journal is durable that far: whatever a loss of
    /// power leaves, the records that are kept are those up to a number.
    fn others_are_behind(&self, table: &Table, seq: SeqNo) -> bool {
        self.catalog.sums().due().others_are_behind(table.id, seq)
    }

    /// Makes the journal durable up to `seq`, for an edit to say so. Extents are durable when they are
    /// installed: were the journal behind them, a loss of power could keep newer records and lose older ones.
    fn durable_edit(&self, seq: SeqNo) -> Result<EditOp> {
        self.sync_journal_through(seq)?;
        Ok(EditOp::Durable { seq })
    }

    /// Plans and claims the step that begins at `start`, waiting for jobs that hold level 1 there; `None` if
    /// overflow runs are in the way, or such a job while much is written.
    fn claim_step(
        &self,
        table: &Table,
        start: &[u8],
        left: u64,
        control: &JobControl,
    ) -> Result<Option<(JobSpec, ClaimId)>> {
        let snapshots = self.pins.list(|| self.journal.visible());
        let mut claimed = None;
        self.background.scheduler.wait_until(|schedule| {
            let tree = table.pinned().tree;
            let shape = shape_of(table, &tree, &snapshots);
            match plan_flush(&shape, &table.settings().limits, &schedule.claims, start, left) {
                FlushPlan::Step(spec) => {
                    let claim = schedule.claims.take(spec.claim()).expect("the plan respects all claims");
                    claimed = Some((*spec, claim));
                    Ok(true)
                }
                FlushPlan::Runs => Ok(true),
                // A claim that is kept because of damage is never given up.
                FlushPlan::Busy if schedule.quarantine.of(table.id).is_some() => Ok(true),
                // Writers would wait as long as the job that holds level 1.
                FlushPlan::Busy if self.write_control().is_filling() => Ok(true),
                // Not `check`, which waits for the end of a pause: the thread that ends it needs the lock
                // that is held here.
                FlushPlan::Busy if terrane_base::planted!(WaitUnderSchedule) => {
                    control.check().map(|()| table.is_dropped())
                }
                FlushPlan::Busy => control.refuse_if_cancelled().map(|()| table.is_dropped()),
            }
        })?;
        Ok(claimed)
    }

    /// Makes the result of a step part of the table; `kept` are its extents. Returns where the next step
    /// begins and what this one took.
    fn install_step(
        &self,
        table: &Table,
        from: (&Arc<GlobalIndex>, &Completeness),
        step: JobResult,
        kept: Vec<Arc<Extent>>,
        durable: Option<EditOp>,
    ) -> Result<Option<(Vec<u8>, u64)>> {
        add(&self.counters.flush_steps, 1);
        self.count_flushed(table, step.work.bytes_written);
        self.count_work(&step.work);
        add(&self.counters.bytes_reused, step.work.bytes_relinked + step.work.bytes_copied);
        match &step.next {
            Some(next) => {
                self.install(table, &step, kept, Vec::from_iter(durable))?;
                Ok(Some((next.clone(), step.work.bytes_written)))
            }
            None => self.finish_flush(table, from, &step, kept, durable).map(|()| None),
        }
    }

    /// The last step: the generation's records are all in the levels.
    fn finish_flush(
        &self,
        table: &Table,
        (generation, cursor): (&Arc<GlobalIndex>, &Completeness),
        result: &JobResult,
        kept: Vec<Arc<Extent>>,
        durable: Option<EditOp>,
    ) -> Result<()> {
        // A comparator that failed has the cursor end anywhere, and says so itself.
        let checked =
            table.semantics.collation().check().and_then(|()| cursor.check_whole(table, generation));
        let flushed = checked.and_then(|()| self.end_of(table, generation));
        let flushed = flushed.inspect_err(|_| self.give_back(result))?;
        debug_assert!(flushed <= generation.last_seq(), "records newer than {flushed} are in memory");
        let mut ops = vec![EditOp::Flushed { table: table.id, seq: flushed }];
        ops.extend(durable);
        self.install_and_leave(table, result, kept, ops, &Leaves::Flushed(generation))?;
        table.set_flushed_seq(flushed);
        Ok(())
    }

    /// The number up to which the table's records are in the levels once `generation` is, checked against all
    /// that stays.
    ///
    /// # Errors
    /// `Poisoned` if something else in memory begins there, or reads do not look at the generation.
    /// `Cancelled` if the table was dropped.
    fn end_of(&self, table: &Table, generation: &Arc<GlobalIndex>) -> Result<SeqNo> {
        debug_assert!(generation.is_closed(), "a generation that leaves memory takes nothing in any more");
        let mut edit = table.edit();
        let mut view = edit.view();
        if table.is_dropped() {
            return Err(Error::new(Kind::Cancelled, format!("table {:?} was dropped", table.name)));
        }
        if !view.generations.last().is_some_and(|oldest| Arc::ptr_eq(oldest, generation)) {
            let what = format!("commits from {} on left memory before their flush", generation.first_seq());
            return Err(table.stop(what, Left::Nothing));
        }
        let flushed = flushed_through(&view, generation);
        let checked = edit.ledger().check_flushed(generation, flushed);
        checked.map_err(|error| table.stop(error.message(), Left::Nothing))?;
        if terrane_base::planted!(ForgetGenerationBeforeEdit) {
            view.generations.pop();
            edit.replace(view, &Leaves::Nothing)?;
        }
        Ok(flushed)
    }
}

/// About the bytes that a generation brings into the levels: of values that are separated only pointers come
/// there. So few bytes would be merged with all keys of level 1.
fn level_bytes_of(table: &Table, tree: &Metasnapshot, generation: &GlobalIndex) -> u64 {
    let bytes = generation.record_bytes();
    let totals = tree.levels.first().map(|level| level.totals()).unwrap_or_default();
    let separates = table.settings().limits.separate_from != u64::MAX && !tree.values.is_empty();
    let mean = totals.bytes.checked_div(totals.entries).filter(|_| separates);
    mean.map_or(bytes, |mean| mean.saturating_mul(generation.entry_count()).min(bytes))
}

/// The number up to which the table's records are in the levels once `generation`, the oldest, is. A merge
/// that was cancelled leaves some records of a memtable in it, newer than others that only the memtable has.
fn flushed_through(view: &ReadView, generation: &GlobalIndex) -> SeqNo {
    let newer = view.generations.iter().rev().nth(1).map(|newer| newer.first_seq());
    let frozen = view.frozen.last().map(|memtable| memtable.first_seq());
    let next = [newer, frozen].into_iter().flatten().min().unwrap_or(view.active.first_seq());
    generation.last_seq().min(SeqNo(next.0.saturating_sub(1)))
}

#[cfg(test)]
mod tests;
