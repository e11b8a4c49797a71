//! Settle moves memtables into generations of the global index: the oldest frozen memtable becomes a
//! generation of its own, or settle merges it into the newest generation by pointer.
//!
//! 1. Settle waits until every number that the memtable may hold is visible: then no writer still indexes a
//!    record in it.
//! 2. Settle takes `Table::merging`, so that no flush closes a generation meanwhile, and chooses a generation
//!    that is open to merges: a flush that has begun would miss records that settle merges behind its cursor,
//!    and a flush that has ended has taken the generation out of the read view.
//! 3. At the end of the merge settle takes the memtable out of the read view, if the current read view has
//!    both the memtable and the generation.

use std::sync::Arc;
use std::time::Duration;

use terrane_base::{Error, Kind, Result};
use terrane_compaction::JobControl;
use terrane_memtable::{GlobalIndex, Memtable};

use crate::background::flush::switch::successor;
use crate::background::maintenance::Maintenance;
use crate::observe::stats::add;
use crate::read::row_cache::forget_rows;
use crate::table::Table;
use crate::table::ledger::Leaves;
use crate::table::read_view::ReadView;
use crate::table::stopped::Left;

/// Turns of spinning for a writer that needs a few more instructions, before settle sleeps between looks.
const SPINS_MAX: u32 = 10_000;
/// Pause between those looks.
const SETTLE_NAP: Duration = Duration::from_millis(1);

/// The job that settles the frozen memtables of a table.
#[derive(Clone, Copy)]
pub(crate) struct SettleJob<'e> {
    pub(crate) engine: &'e Maintenance,
    pub(crate) table: &'e Table,
    pub(crate) control: &'e JobControl,
}

impl SettleJob<'_> {
    /// Promotes or merges every frozen memtable, oldest first.
    pub(crate) fn run(self) -> Result<()> {
        let table = self.table;
        loop {
            let view = table.pinned();
            if view.frozen.is_empty() {
                return Ok(());
            }
            self.wait_until_indexed(&view)?;
            let _no_flush_begins = table.merging.lock();
            self.settle_oldest(&table.pinned())?;
        }
    }

    /// Promotes or merges the oldest frozen memtable of `view`, if all its records are indexed. Requires:
    /// `Table::merging` is held. `view` may be out of date: a flush may end and install another one
    /// meanwhile.
    fn settle_oldest(self, view: &ReadView) -> Result<()> {
        let Self { engine, table, .. } = self;
        let Some(oldest) = view.frozen.last() else { return Ok(()) };
        if engine.journal.visible().0 + 1 < successor(view).0 {
            return Ok(());
        }
        debug_assert!(oldest.first_seq() < view.active.first_seq(), "the active memtable is settled");
        forget_rows(engine, table, oldest);
        match self.generation_with_room(view, oldest) {
            Some(generation) => self.merge_oldest(oldest, generation),
            None => engine.promote(table).map(drop),
        }
    }

    /// Waits for writers that got their numbers before the freeze of the oldest frozen memtable; they need a
    /// few more instructions.
    ///
    /// # Errors
    /// `Poisoned` if one of them failed: its numbers will never be visible. `Cancelled`.
    fn wait_until_indexed(self, view: &ReadView) -> Result<()> {
        let Self { engine, control, .. } = self;
        debug_assert!(!view.frozen.is_empty(), "settle waits for writers of frozen memtables only");
        let mut turn = 0;
        while engine.journal.visible().0 + 1 < successor(view).0 {
            engine.journal.check()?;
            control.check()?;
            if turn < SPINS_MAX {
                terrane_base::sync::spin(turn);
            } else {
                engine.env.clock.sleep(SETTLE_NAP);
            }
            turn += 1;
        }
        Ok(())
    }

    /// The newest generation, if the oldest frozen memtable still fits and no flush has begun to read it.
    fn generation_with_room<'p>(self, view: &'p ReadView, oldest: &Memtable) -> Option<&'p Arc<GlobalIndex>> {
        let is_oldest = || view.frozen.last().is_some_and(|last| std::ptr::eq(&**last, oldest));
        debug_assert!(is_oldest(), "a generation takes memtables in the order of their numbers");
        let newest = view.generations.first()?;
        let bytes =
            newest.record_bytes() + newest.index_bytes() + oldest.record_bytes() + oldest.index_bytes();
        let is_open = !newest.is_closed()
            || terrane_base::planted!(MergeIntoFlushedGeneration)
                && !has_generation(&self.table.pinned(), newest);
        (is_open && bytes <= self.engine.memory.generation_limit()).then_some(newest)
    }

    fn merge_oldest(self, oldest: &Arc<Memtable>, generation: &Arc<GlobalIndex>) -> Result<()> {
        let Self { engine, table, control } = self;
        let is_behind = generation.first_seq() < oldest.first_seq();
        debug_assert!(
            is_behind,
            "a generation takes in newer memtables only: a read looks at memtables first"
        );
        let snapshots = engine.pins.list(|| engine.journal.visible());
        let is_whole = generation.merge(oldest, &snapshots, &mut |_entries| {
            // The generation grows under the view that has it.
            table.note_part();
            control.check().is_ok()
        });
        table.note_part();
        if !is_whole && !terrane_base::planted!(PopUnmergedMemtable) {
            return Err(Error::new(Kind::Cancelled, "merge into the global index cancelled"));
        }
        self.leave_merged(oldest, generation)?;
        add(&engine.counters.index_merges, 1);
        Ok(())
    }

    /// Takes a merged memtable out of the read view, if it is the oldest frozen one of the current read view
    /// and the current read view has the generation that took it in.
    fn leave_merged(self, merged: &Arc<Memtable>, generation: &Arc<GlobalIndex>) -> Result<()> {
        let table = self.table;
        // Read before the lock of the read view is taken: a number that is out of date is too low, never too
        // high.
        let visible = self.engine.journal.visible();
        let mut edit = table.edit();
        let mut next = edit.view();
        let is_oldest = next.frozen.last().is_some_and(|oldest| Arc::ptr_eq(oldest, merged));
        let is_there = is_oldest && has_generation(&next, generation);
        if !is_there && !terrane_base::planted!(MergeIntoFlushedGeneration) {
            if table.is_dropped() {
                return Ok(());
            }
            let what = format!(
                "commits from {} on were merged into a generation that is not in the view",
                merged.first_seq()
            );
            return Err(table.stop(what, Left::Nothing));
        }
        next.frozen.pop();
        debug_assert!(
            next.frozen.iter().all(|one| !Arc::ptr_eq(one, merged)),
            "a memtable is in a read view once"
        );
        edit.replace(next, &Leaves::Settled { visible })
    }
}

fn has_generation(view: &ReadView, generation: &Arc<GlobalIndex>) -> bool {
    view.generations.iter().any(|one| Arc::ptr_eq(one, generation))
}

#[cfg(test)]
pub(crate) mod tests;
