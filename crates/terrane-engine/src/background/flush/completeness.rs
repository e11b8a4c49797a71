//! Checks that a flush has read its whole generation. The flush closed the generation to merges, so the
//! generation has as many entries when the flush ends as when it began. The steps of the flush together, or
//! the dump that replaced the steps, must have taken each of them from the cursor.

use terrane_base::{Cursor, Entry, Result, SeqNo};
use terrane_memtable::{GlobalIndex, MemtableCursor};

use crate::table::Table;
use crate::table::stopped::Left;

/// A cursor over a generation that counts the entries that the flush took: the flush calls `next` behind
/// each.
pub(crate) struct Completeness {
    inner: MemtableCursor,
    taken: u64,
    /// The entries of the generation without its range deletes, which the flush gets apart from the cursor.
    all: u64,
}

impl Completeness {
    /// A cursor over `generation`, which is closed to merges.
    pub(crate) fn new(generation: &GlobalIndex) -> Completeness {
        let ranges = generation.index().range_deletes().map_or(0, |deletes| deletes.len());
        assert!(
            ranges <= generation.entry_count(),
            "{ranges} range deletes of {} entries",
            generation.entry_count()
        );
        Completeness { inner: generation.cursor(), taken: 0, all: generation.entry_count() - ranges }
    }

    /// Checks that the flush took every entry once.
    ///
    /// # Errors
    /// `Poisoned`: background work on the table has stopped.
    pub(crate) fn check_whole(&self, table: &Table, generation: &GlobalIndex) -> Result<()> {
        if self.taken == self.all {
            return Ok(());
        }
        let (first, last) = (generation.first_seq(), generation.last_seq());
        let what = format!(
            "the flush of commits {first} to {last} took {} entries of {}, and the others would leave memory",
            self.taken, self.all
        );
        Err(table.stop(what, Left::Nothing))
    }
}

impl Cursor for Completeness {
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
        debug_assert!(self.inner.entry().is_some(), "an entry is taken where one is");
        self.taken += 1;
        self.inner.next()
    }

    fn prev(&mut self) -> Result<()> {
        self.inner.prev()
    }
}
