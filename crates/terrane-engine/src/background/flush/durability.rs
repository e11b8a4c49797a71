//! When a flush needs a durable journal: before it is installed, if memory keeps older records than it brings
//! into the levels.

use terrane_base::{Result, SeqNo};
use terrane_compaction::JobResult;
use terrane_format::manifest::EditOp;
use terrane_memtable::GlobalIndex;

use crate::background::compaction::install::Install;
use crate::background::flush::flush_job::{FlushJob, flushed_through};

/// Which part of its generation an edit of a flush installs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it, by this one edit.
    Whole,
    First,
    Later,
}

impl Part {
    /// The part of a step of a merge.
    pub(super) fn of(is_first: bool, step: &JobResult) -> Part {
        match (is_first, &step.next) {
            (true, None) => Part::Whole,
            (true, Some(_)) => Part::First,
            (false, _) => Part::Later,
        }
    }
}

impl FlushJob<'_> {
    /// Makes the journal durable up to the end of the generation where that must be before `result`, which
    /// holds a part of it, is installed; then the edit says so.
    ///
    /// It must be if the levels would have the result and memory alone an older record: a loss of power could
    /// keep the newer one and lose the older one. If the whole generation is installed by one edit, and no
    /// record up to its end is anywhere else in memory, then whatever a loss of power leaves, the records
    /// that are kept are those up to a number.
    ///
    /// # Errors
    /// Those of the journal. What the result has written goes back to the store then.
    pub(super) fn durable_before(
        self,
        generation: &GlobalIndex,
        result: &JobResult,
        part: Part,
    ) -> Result<Option<EditOp>> {
        let Self { engine, table, .. } = self;
        assert!(result.table == table.id, "the result of another table waits for the journal");
        debug_assert!(generation.last_seq() <= engine.journal.visible(), "it has records that readers see");
        let is_needed = match part {
            Part::Whole => self.leaves_others_behind(generation),
            Part::First => true,
            // The first one has made it durable.
            Part::Later => false,
        };
        if !is_needed || terrane_base::planted!(InstallBeforeJournal) {
            return Ok(None);
        }
        let durable = self.durable_edit(generation.last_seq());
        durable.map(Some).inspect_err(|_| Install { engine, table, result }.give_back())
    }

    /// Returns true if a record up to the end of the generation is in memory elsewhere: of another table, or
    /// of this one, in a memtable that was merged into the generation in part.
    fn leaves_others_behind(self, generation: &GlobalIndex) -> bool {
        let (table, last) = (self.table, generation.last_seq());
        debug_assert!(generation.is_closed(), "a merge could still add records that are left behind");
        let is_whole = flushed_through(&table.pinned(), generation) == last;
        !is_whole || self.engine.catalog.sums().due().others_are_behind(table.id, last)
    }

    /// Makes the journal durable up to `seq`, for an edit to say so. Extents are durable when they are
    /// installed: if the journal were durable after them, a loss of power could keep newer records and lose
    /// older ones.
    fn durable_edit(self, seq: SeqNo) -> Result<EditOp> {
        debug_assert!(seq <= self.engine.journal.visible(), "an edit would speak of commits to come");
        self.engine.sync_journal_through(seq)?;
        Ok(EditOp::Durable { seq })
    }
}
