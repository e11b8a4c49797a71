//! Whether a flush was handed all of its generation. The flush closed the generation to merges, so that the generation has as
//! many entries when the flush ends as when it began; and each must have been taken from the cursor by some step, or by the run
//! that replaced the steps.

use terrane_base::{Cursor, Entry, Result, SeqNo};
use terrane_memtable::{GlobalIndex, MemtableCursor};

use crate::stopped::Left;
use crate::table::Table;

/// A cursor over a generation that counts the entries that were taken: a merge moves on behind each.
pub(crate) struct Counted {
    inner: MemtableCursor,
    taken: u64,
    /// The entries that there are; range deletes are handed over besides.
    all: u64,
}

impl Counted {
    /// A cursor over `generation`, which is closed to merges.
    pub(crate) fn new(generation: &GlobalIndex) -> Counted {
        let ranges = generation.index().range_deletes().map_or(0, |deletes| deletes.len());
        Counted { inner: generation.cursor(), taken: 0, all: generation.entry_count() - ranges }
    }

    /// Checks that every entry was taken, once.
    ///
    /// # Errors
    /// `Poisoned`: background work on the table has stopped.
    pub(crate) fn check_whole(&self, table: &Table, generation: &GlobalIndex) -> Result<()> {
        if self.taken == self.all {
            return Ok(());
        }
        let (first, last) = (generation.first_seq(), generation.last_seq());
        let what = format!(
            "the flush of commits {first} to {last} ended with {} entries of {}, of which the others would leave memory",
            self.taken, self.all
        );
        Err(table.stop(what, Left::Nothing))
    }
}

impl Cursor for Counted {
    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        let is_lost = terrane_base::planted!(LoseFlushTail) && self.taken + 1 >= self.all;
        if is_lost { None } else { self.inner.entry() }
    }

    fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        self.inner.seek(key, seq)
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.inner.seek_before(key)
    }

    fn seek_first(&mut self) -> Result<()> {
        self.inner.seek_first()
    }

    fn seek_last(&mut self) -> Result<()> {
        self.inner.seek_last()
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        self.taken += 1;
        self.inner.next()
    }

    fn prev(&mut self) -> Result<()> {
        self.inner.prev()
    }
}
