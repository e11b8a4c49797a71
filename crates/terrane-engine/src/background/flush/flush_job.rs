//! The job of a flush. It closes the oldest generation of a table's global index to merges, so that it takes
//! in nothing more, and merges it with the overlapping extents of level 1 range by range, one manifest edit
//! per step; the last step also notes the generation as flushed and takes it out of the read view, after
//! which its segments can go. If a flush fails the generation stays closed, and is tried again.
//!
//! The generation is written as an overflow run instead where there are runs, where a merge would take too
//! long, where level 1 is damaged, and where the device has no room for a merge.
//!
//! A crash between steps is harmless: the generation is replayed from its segments, which are durable before
//! the first of several steps is installed, and what earlier steps put into level 1 is seen twice under the
//! same sequence numbers. A generation that one edit installs, as a run or by one step, needs no durable
//! segments, if no record up to its end is elsewhere in memory.

use std::sync::Arc;
use terrane_base::sync::atomic::Ordering;

use terrane_base::{Error, Kind, Result, SeqNo};
use terrane_compaction::{
    ClaimId, FlushPlan, JobControl, JobResult, JobSpec, TableShape, Targets, plan_dump, plan_flush,
};
use terrane_format::manifest::EditOp;
use terrane_levels::Metasnapshot;
use terrane_memtable::GlobalIndex;
use terrane_table::Extent;

use crate::background::compaction::install::Install;
use crate::background::compaction::ranges_of;
use crate::background::flush::durability::Part;
use crate::background::job_log;
use crate::background::maintenance::Maintenance;
use crate::background::scheduler::Choice;
use crate::observe::stats::add;
use crate::table::Table;
use crate::table::ledger::{Completeness, Leaves};
use crate::table::read_view::ReadView;
use crate::table::stopped::Left;
use crate::table::tree_shape::shape_of;

/// How many times larger than the generation level 1 is when it counts as much larger.
const OVERFLOW_RATIO: u64 = 2;
/// Level 1 may be this many times its target before a generation is written as an overflow run instead.
const OVERFLOW_FACTOR: u64 = 3;

/// A flush: merges the oldest generation of a table into its levels.
#[derive(Clone, Copy)]
pub(crate) struct FlushJob<'e> {
    pub(crate) engine: &'e Maintenance,
    pub(crate) table: &'e Table,
    pub(crate) control: &'e Arc<JobControl>,
}

impl FlushJob<'_> {
    /// Runs it, and gives back what it made free.
    pub(crate) fn run(self) -> Result<()> {
        let Self { engine, table, control } = self;
        let started = engine.env.clock.now();
        engine.give_functions(table, control);
        control.number_values_with(engine.background.next_run.clone());
        if let Some(generation) = self.take_generation() {
            debug_assert!(generation.is_closed(), "no merge adds to what a flush writes");
            let under_way = engine.throttle.begin_flush(control, &generation, started);
            let flushed = self.bring_down(&generation);
            drop(under_way);
            // All that was looked at in it counted it as under way: writers would keep to its pace though
            // nothing waits any more. And a dump counted twice since it was installed.
            if !terrane_base::planted!(KeepPaceOfFlush) {
                engine.refresh_debt();
            }
            flushed?;
            job_log::flushed(&generation);
            add(&engine.counters.flushes, 1);
            add(&table.counters.table_flushes, 1);
            engine.throttle.note_flush(generation.record_bytes(), engine.env.clock.now() - started);
        }
        engine.store.reclaim()?;
        // Memory comes back by it. It syncs an edit, so not where nothing comes back.
        let is_due = engine.is_trim_due() || engine.is_history_due();
        if is_due { engine.trim_unless_held().map(drop) } else { Ok(()) }
    }

    /// The oldest generation, which takes in nothing more from now on.
    fn take_generation(self) -> Option<Arc<GlobalIndex>> {
        let _no_merge = self.table.merging.lock();
        let oldest = self.table.pinned().generations.last().cloned();
        oldest.inspect(|generation| generation.close_to_merges())
    }

    fn bring_down(self, generation: &Arc<GlobalIndex>) -> Result<()> {
        if self.table.wants_run(generation.first_seq()) || self.must_overflow(generation) {
            self.write_run(generation)
        } else {
            self.by_ranges(generation)
        }
    }

    /// Returns true if the generation is written as an overflow run instead of being merged with level 1.
    /// While there are overflow runs, which hold older versions, a newer generation must not go below them.
    /// Otherwise it is a run in two cases. Level 1 is much larger than the generation, and writers had to
    /// wait since the last flush, or will have filled the next generation soon: a merge would bring memory
    /// back slowly, a run does quickly, and several runs are then merged with the level at once. Or a load
    /// begins ([`Self::is_load`]): before a merge the journal is synced, and each later merge of the load
    /// would write all of level 1 again.
    fn must_overflow(self, generation: &GlobalIndex) -> bool {
        let Self { engine, table, .. } = self;
        let tree = table.pinned().tree;
        let sizes: Vec<u64> = tree.levels.iter().map(|level| level.totals().bytes).collect();
        let level_1 = sizes.first().copied().unwrap_or(0);
        let is_large = level_1 > OVERFLOW_RATIO * level_bytes_of(table, &tree, generation);
        let begins_load = sizes.iter().all(|bytes| *bytes == 0) && self.is_load(generation);
        let paused = engine.throttle.paused_micros_of(table);
        let had_to_wait = paused > table.paused_before.swap(paused, Ordering::Relaxed);
        // What a range delete meets in level 1 is for a merge of runs to find out: it may be all of it.
        let is_ranged = generation.index().range_deletes().is_some();
        // One that is not compacted by itself has runs only.
        let is_manual = !table.settings().limits.automatic;
        let is_chosen = engine.options.experiments.always_overflow;
        (is_chosen || is_ranged || is_manual || !tree.runs.is_empty() || engine.is_hurt(table.id))
            || level_1 > OVERFLOW_FACTOR.saturating_mul(Targets::new(&sizes, &table.settings().limits).of(1))
            || begins_load
            || (is_large && (had_to_wait || engine.write_control().puts_off()))
    }

    /// Returns true if a generation in an empty tree is the first one of a load: at least half as large as
    /// a memtable, with few values that are separated. Runs hide such values from their collection.
    fn is_load(self, generation: &GlobalIndex) -> bool {
        let bytes = generation.record_bytes() + generation.index_bytes();
        let mean_bytes = generation.record_bytes() / generation.entry_count().max(1);
        bytes >= self.engine.memory.memtable_limit() / 2
            && mean_bytes < self.table.settings().limits.separate_from
    }

    /// Writes the generation as an overflow run.
    fn write_run(self, generation: &Arc<GlobalIndex>) -> Result<()> {
        let Self { engine, table, control } = self;
        debug_assert!(generation.is_closed(), "a run would lack what a merge adds to its generation");
        let run = engine.background.next_run.fetch_add(1, Ordering::Relaxed);
        let snapshots = engine.pins.list(|| engine.journal.visible());
        let tree = table.pinned().tree;
        let shape = TableShape { room_bytes: room_of(engine), ..shape_of(table, &tree, &snapshots) };
        let spec = plan_dump(&shape, &table.settings().limits, run);
        let size = (generation.record_bytes(), generation.entry_count());
        let dump = engine.throttle.begin_dump(table.id, control, size);
        let ranges = ranges_of(generation, &snapshots);
        let mut cursor = Completeness::new(generation);
        let result = engine.background.flusher.dump_run(&spec, &mut cursor, ranges, control)?;
        let durable = self.durable_before(generation, &result, Part::Whole)?;
        add(&engine.counters.overflow_runs_written, 1);
        engine.count_flushed(table, result.work.bytes_written);
        engine.count_work(&result.work);
        self.finish((generation, &cursor), &result, control.take_fresh(), durable)?;
        dump.end(&result.added);
        Ok(())
    }

    /// Merges the generation with level 1, step by step.
    fn by_ranges(self, generation: &Arc<GlobalIndex>) -> Result<()> {
        let Self { engine, table, control } = self;
        let mut cursor = Completeness::new(generation);
        let mut start = Vec::new();
        let mut left = generation.record_bytes();
        let mut is_first = true;
        loop {
            control.check()?;
            let Some((spec, claim)) = self.claim_step(&start, left)? else {
                // Overflow runs came in between, or the way is barred; the whole generation becomes a run.
                // What earlier steps put into level 1 is there twice, under the same numbers.
                return self.write_run(generation);
            };
            let step = engine.background.flusher.flush_step(&spec, &mut cursor, &start, control);
            let installed = step.and_then(|step| {
                let from = (generation, &cursor);
                let part = Part::of(is_first, &step);
                let durable = self.durable_before(generation, &step, part)?;
                self.install_step(from, step, control.take_fresh(), durable)
            });
            is_first = false;
            let installed = installed.map_err(|error| engine.blamed(Some(table.id), error));
            engine.background.scheduler.release(claim);
            match installed {
                Ok(Some((next, written))) => {
                    let goes_on = next > start || !table.semantics.collation().is_bytes();
                    debug_assert!(goes_on, "a step begins behind the step before");
                    start = next;
                    left = left.saturating_sub(written);
                }
                Ok(None) => return Ok(()),
                Err(error) if error.kind() == Kind::Corrupt => {
                    // Level 1 is damaged. A run reads nothing, so the memory comes back all the same.
                    engine.background.scheduler.quarantine(table.id, error);
                    add(&engine.counters.background_errors, 1);
                    return self.write_run(generation);
                }
                Err(error) if error.lacks_space() && !terrane_base::planted!(FlushByMergeOnly) => {
                    return self.write_small_run(generation);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Plans and claims the step that begins at `start`, waiting for jobs that hold level 1 there; `None` if
    /// overflow runs are in the way, or such a job while much is written.
    fn claim_step(self, start: &[u8], left: u64) -> Result<Option<(JobSpec, ClaimId)>> {
        let Self { engine, table, control } = self;
        let snapshots = engine.pins.list(|| engine.journal.visible());
        let room_bytes = room_of(engine);
        let claimed = engine.background.scheduler.claim(|schedule| {
            let tree = table.pinned().tree;
            let shape = TableShape { room_bytes, ..shape_of(table, &tree, &snapshots) };
            match plan_flush(&shape, &table.settings().limits, &schedule.claims, start, left) {
                FlushPlan::Step(spec) => {
                    debug_assert!(
                        spec.table == table.id,
                        "the claim would be on the levels of another table"
                    );
                    let claim = spec.claim();
                    Ok(Choice::Take(*spec, vec![claim]))
                }
                FlushPlan::Runs => Ok(Choice::Nothing),
                // A claim that is kept because of damage is never given up.
                FlushPlan::Busy if schedule.quarantine.of(table.id).is_some() => Ok(Choice::Nothing),
                // Writers would wait as long as the job that holds level 1.
                FlushPlan::Busy if engine.write_control().is_filling() => Ok(Choice::Nothing),
                // The thread that ends a pause needs the lock of the schedule.
                FlushPlan::Busy if terrane_base::planted!(WaitUnderSchedule) => {
                    engine.background.scheduler.inspect(|_| control.check()).map(|()| Choice::Wait)
                }
                // Not `check`: a flush that waits for level 1 is not at work, so that a pause holds nothing
                // of it, and callers that wait for it go on waiting.
                FlushPlan::Busy => {
                    control.refuse_if_cancelled()?;
                    Ok(if table.is_dropped() { Choice::Nothing } else { Choice::Wait })
                }
            }
        })?;
        Ok(claimed.map(|(spec, claims)| (spec, claims[0])))
    }

    /// Makes the result of a step part of the table; `kept` are its extents. Returns where the next step
    /// begins and what this one took.
    fn install_step(
        self,
        from: (&Arc<GlobalIndex>, &Completeness),
        step: JobResult,
        kept: Vec<Arc<Extent>>,
        durable: Option<EditOp>,
    ) -> Result<Option<(Vec<u8>, u64)>> {
        let Self { engine, table, .. } = self;
        debug_assert!(from.0.is_closed(), "a merge could still add records that no step takes");
        add(&engine.counters.flush_steps, 1);
        engine.count_flushed(table, step.work.bytes_written);
        engine.count_work(&step.work);
        add(&engine.counters.bytes_reused, step.work.bytes_relinked + step.work.bytes_copied);
        match &step.next {
            Some(next) => {
                Install { engine, table, result: &step }.run(kept, Vec::from_iter(durable))?;
                Ok(Some((next.clone(), step.work.bytes_written)))
            }
            None => self.finish(from, &step, kept, durable).map(|()| None),
        }
    }

    /// Writes the generation as a run where a merge has no room: the part of level 1 that it overlaps would
    /// be there twice for a while. What earlier steps put into level 1 is there twice then, under the same
    /// numbers.
    ///
    /// # Errors
    /// `Full` if the records alone have no room either. They stay in memory and in the journal.
    fn write_small_run(self, generation: &Arc<GlobalIndex>) -> Result<()> {
        // What the merge has written lies in free slots.
        let _ = self.engine.reclaim_idle();
        self.write_run(generation).map_err(|error| {
            if !error.lacks_space() {
                return error;
            }
            let (name, bytes) = (&self.table.name, generation.record_bytes());
            debug_assert!(bytes > 0, "a generation without records is never flushed");
            error.context(format!(
                "the flush of table {name:?} lacks space for its {bytes} bytes of records, which stay in the \
                 journal; free some on the device, then it goes on"
            ))
        })
    }

    /// The last step: the generation's records are all in the levels.
    fn finish(
        self,
        (generation, cursor): (&Arc<GlobalIndex>, &Completeness),
        result: &JobResult,
        kept: Vec<Arc<Extent>>,
        durable: Option<EditOp>,
    ) -> Result<()> {
        let Self { engine, table, .. } = self;
        let install = Install { engine, table, result };
        // A comparator that failed has the cursor end anywhere, and says so itself.
        let checked =
            table.semantics.collation().check().and_then(|()| cursor.check_whole(table, generation));
        let flushed = checked.and_then(|()| self.end_of(generation));
        let flushed = flushed.inspect_err(|_| install.give_back())?;
        debug_assert!(flushed <= generation.last_seq(), "records newer than {flushed} are in memory");
        let mut ops = vec![EditOp::Flushed { table: table.id, seq: flushed }];
        ops.extend(durable);
        install.run_and_leave(kept, ops, &Leaves::Flushed(generation))?;
        table.set_flushed_seq(flushed);
        Ok(())
    }

    /// The number up to which the table's records are in the levels once `generation` is, checked against all
    /// that stays.
    ///
    /// # Errors
    /// `Poisoned` if something else in memory begins there, or reads do not look at the generation.
    /// `Cancelled` if the table was dropped.
    fn end_of(self, generation: &Arc<GlobalIndex>) -> Result<SeqNo> {
        let table = self.table;
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

/// The bytes that are free on the device now.
fn room_of(engine: &Maintenance) -> u64 {
    engine.background.space.look_at_room(engine)
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
pub(super) fn flushed_through(view: &ReadView, generation: &GlobalIndex) -> SeqNo {
    let newer = view.generations.iter().rev().nth(1).map(|newer| newer.first_seq());
    let frozen = view.frozen.last().map(|memtable| memtable.first_seq());
    let next = [newer, frozen].into_iter().flatten().min().unwrap_or(view.active.first_seq());
    generation.last_seq().min(SeqNo(next.0.saturating_sub(1)))
}

#[cfg(test)]
mod tests;
