//! The job of a flush: merges the oldest generation of a table into its levels step by step, or writes it as
//! an overflow run: where there are runs, where a merge would take too long, where level 1 is damaged, and
//! where the device has no room for a merge.

use std::sync::Arc;
use terrane_base::sync::atomic::Ordering;

use terrane_base::{Kind, Result};
use terrane_compaction::{JobControl, plan_dump};
use terrane_memtable::GlobalIndex;

use super::flushed_through;
use crate::background::compaction::ranges_of;
use crate::background::job_log;
use crate::background::maintenance::Maintenance;
use crate::observe::stats::add;
use crate::table::Table;
use crate::table::ledger::Completeness;
use crate::table::tree_shape::shape_of;

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
        if let Some(generation) = engine.take_generation(table) {
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

    fn bring_down(&self, generation: &Arc<GlobalIndex>) -> Result<()> {
        let Self { engine, table, .. } = *self;
        if table.wants_run(generation.first_seq()) || engine.must_overflow(table, generation) {
            self.as_run(generation)
        } else {
            self.by_ranges(generation)
        }
    }

    /// Writes the generation as an overflow run.
    fn as_run(&self, generation: &Arc<GlobalIndex>) -> Result<()> {
        let Self { engine, table, control } = *self;
        let run = engine.background.next_run.fetch_add(1, Ordering::Relaxed);
        let snapshots = engine.pins.list(|| engine.journal.visible());
        let tree = table.pinned().tree;
        let spec = plan_dump(&shape_of(table, &tree, &snapshots), &table.settings().limits, run);
        let size = (generation.record_bytes(), generation.entry_count());
        let dump = engine.throttle.begin_dump(table.id, control, size);
        let ranges = ranges_of(generation, &snapshots);
        let mut cursor = Completeness::new(generation);
        let result = engine.background.flusher.dump_run(&spec, &mut cursor, ranges, control)?;
        let is_whole = flushed_through(&table.pinned(), generation) == generation.last_seq();
        let is_behind = !is_whole || engine.others_are_behind(table, generation.last_seq());
        let durable = is_behind.then(|| engine.durable_edit(generation.last_seq())).transpose()?;
        add(&engine.counters.overflow_runs_written, 1);
        engine.count_flushed(table, result.work.bytes_written);
        engine.count_work(&result.work);
        engine.finish_flush(table, (generation, &cursor), &result, control.take_fresh(), durable)?;
        dump.end(&result.added);
        Ok(())
    }

    /// Merges the generation with level 1, step by step.
    fn by_ranges(&self, generation: &Arc<GlobalIndex>) -> Result<()> {
        let Self { engine, table, control } = *self;
        let mut cursor = Completeness::new(generation);
        let mut start = Vec::new();
        let mut left = generation.record_bytes();
        let mut durable = Some(engine.durable_edit(generation.last_seq())?);
        loop {
            control.check()?;
            let Some((spec, claim)) = engine.claim_step(table, &start, left, control)? else {
                // Overflow runs came in between, or the way is barred; the whole generation becomes a run.
                // What earlier steps put into level 1 is there twice, under the same numbers.
                return self.as_run(generation);
            };
            let step = engine.background.flusher.flush_step(&spec, &mut cursor, &start, control);
            let installed = step.and_then(|step| {
                let from = (generation, &cursor);
                engine.install_step(table, from, step, control.take_fresh(), durable.take())
            });
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
                    return self.as_run(generation);
                }
                Err(error) if error.lacks_space() && !terrane_base::planted!(FlushByMergeOnly) => {
                    return self.as_small_run(generation);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes the generation as a run where a merge has no room: the part of level 1 that it overlaps would
    /// be there twice for a while. What earlier steps put into level 1 is there twice then, under the same
    /// numbers.
    ///
    /// # Errors
    /// `Full` if the records alone have no room either. They stay in memory and in the journal.
    fn as_small_run(&self, generation: &Arc<GlobalIndex>) -> Result<()> {
        // What the merge has written lies in free slots.
        let _ = self.engine.reclaim_idle();
        self.as_run(generation).map_err(|error| {
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
}
