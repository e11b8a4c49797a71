//! The debt of a table to its levels: every memtable that the table ever wrote to, until a durable manifest
//! edit says that its records are in the levels. The right to change the table's read view ([`TableEdit`]) is
//! the lock of the ledger, and no read view is installed before the ledger agrees ([`Ledger::turn`]).
//!
//! The rule: a memtable leaves the read view only in the step that puts its records into what replaces it.
//! 1. A memtable stays in the read view, active or frozen, until a generation of the same read view says that
//!    it has taken in the whole memtable, and until every number that the memtable may hold is visible: no
//!    writer still indexes a record in it. A memtable without records may leave without a generation.
//! 2. The records that a generation has taken in stay in a generation of the read view, until the manifest
//!    edit is appended that says that they are in the levels.
//! 3. A table that was dropped has no debt.
//!
//! The ledger does not rest on the read views: it learns of a memtable when the memtable becomes active, and
//! knows its oldest segment. So a trim asks the ledger once more before it removes segments. No read and no
//! write uses the ledger.
//!
//! The manifest edit of rule 2 is true of a generation only if the flush took each of its entries:
//! it counts them ([`Completeness`]).

use std::sync::Arc;

use terrane_base::sync::MutexGuard;
use terrane_base::{Cursor, Entry, Error, Kind, Result, SegmentId, SeqNo};
use terrane_memtable::{GlobalIndex, Memtable, MemtableCursor};

use crate::table::Table;
use crate::table::read_view::ReadView;
use crate::table::stopped::Left;

impl Table {
    /// Takes the right to change the read view. Never hold it across I/O.
    pub fn edit(&self) -> TableEdit<'_> {
        TableEdit { table: self, ledger: self.edit.lock() }
    }
}

/// The exclusive right to change a table's read view.
pub struct TableEdit<'t> {
    table: &'t Table,
    ledger: MutexGuard<'t, Ledger>,
}

impl TableEdit<'_> {
    /// The current read view; it cannot change while the edit lives.
    pub fn view(&self) -> ReadView {
        self.table.pinned()
    }

    /// The debt of the table to its levels.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The same, to break it.
    #[cfg(test)]
    pub(crate) fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// Makes `next` the current read view; the old one goes when its last reader has left. `leaves` says what
    /// goes from memory.
    ///
    /// # Errors
    /// `Poisoned` if records would be lost: the current read view stays, and background work on the table has
    /// stopped.
    pub(crate) fn replace(&mut self, next: ReadView, leaves: &Leaves<'_>) -> Result<()> {
        self.replace_behind_edit(next, leaves)
            .map_err(|error| self.table.stop(error.message(), Left::Nothing))
    }

    /// The same after an edit that says what `next` has.
    ///
    /// # Errors
    /// `Poisoned` as [`TableEdit::replace`], but the caller has to stop the table.
    pub(crate) fn replace_behind_edit(&mut self, next: ReadView, leaves: &Leaves<'_>) -> Result<()> {
        next.check();
        self.ledger.turn(&next, leaves)?;
        debug_assert!(
            self.ledger.entries.last().is_none_or(|last| last.first_seq == next.active.first_seq()),
            "the records of the active memtable are in no ledger"
        );
        // Both are kept: what leaves the sums has left the view.
        let (before, after) = (self.table.pinned(), next.clone());
        self.table.view.replace(next);
        self.table.follow_view(&before, &after);
        self.table.note_due(|due, id| due.note_unflushed(id, || self.ledger.has_records()));
        if !Arc::ptr_eq(&before.tree, &after.tree) {
            self.table.note_changed();
        }
        Ok(())
    }
}

/// The memtables that may leave memory in a step, and the reason why.
pub(crate) enum Leaves<'g> {
    /// Nothing.
    Nothing,
    /// Frozen memtables that a generation has taken in and that hold no number above the visible one.
    Settled {
        /// The visible number.
        visible: SeqNo,
    },
    /// The memtables of this generation: the manifest edit that says that its records are in the levels is
    /// appended.
    Flushed(&'g GlobalIndex),
    /// Everything: the manifest edit that drops the table is appended.
    Dropped,
}

/// The memtables of a table whose records are not in its levels, oldest first. The last one is active.
pub(crate) struct Ledger {
    entries: Vec<LedgerEntry>,
}

struct LedgerEntry {
    /// The first number of the memtable; its last number is the one before the first number of the next
    /// memtable.
    first_seq: SeqNo,
    held: Held,
}

enum Held {
    /// The read view has the memtable itself, active or frozen.
    Memtable(Arc<Memtable>),
    /// A generation of the read view has taken it in; the oldest segment that the memtable pointed into.
    Generation(Option<SegmentId>),
}

/// A memtable, by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    first: SeqNo,
    /// `None` for the active one.
    last: Option<SeqNo>,
}

impl std::fmt::Display for Numbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.last {
            Some(last) => write!(f, "commits {} to {last}", self.first),
            None => write!(f, "commits from {} on", self.first),
        }
    }
}

impl Ledger {
    /// The ledger of a table that has this memtable and nothing else in memory.
    pub(crate) fn new(active: &Arc<Memtable>) -> Ledger {
        Ledger { entries: vec![LedgerEntry::new(active)] }
    }

    /// Accepts `next` as the read view of the table and notes what left memory; or refuses it, names the
    /// commits that would be lost, and notes nothing.
    ///
    /// # Errors
    /// `Poisoned`.
    pub(crate) fn turn(&mut self, next: &ReadView, leaves: &Leaves<'_>) -> Result<()> {
        for at in 0..self.entries.len() {
            let numbers = self.numbers(at);
            if let Err(why) = self.entries[at].fate(numbers, next, leaves)
                && !terrane_base::planted!(MergeIntoFlushedGeneration)
            {
                return Err(violated(format!("{numbers} would leave memory {why}")));
            }
        }
        let mut at = 0;
        while at < self.entries.len() {
            match self.entries[at].fate(self.numbers(at), next, leaves) {
                Ok(Fate::Stays) => at += 1,
                Ok(Fate::TakenIn(oldest)) => {
                    self.entries[at].held = Held::Generation(oldest);
                    at += 1;
                }
                // The first numbers of the later memtables stay as they are.
                Ok(Fate::Gone) | Err(_) => drop(self.entries.remove(at)),
            }
        }
        if self.entries.last().is_none_or(|last| last.first_seq < next.active.first_seq()) {
            self.entries.push(LedgerEntry::new(&next.active));
        }
        assert!(
            self.entries.is_sorted_by(|a, b| a.first_seq < b.first_seq),
            "the numbers of two memtables overlap"
        );
        Ok(())
    }

    /// Checks that a flush of `generation` brings all commits up to `flushed` into the levels: no other
    /// memtable begins at or below `flushed`.
    ///
    /// # Errors
    /// `Poisoned`.
    pub(crate) fn check_flushed(&self, generation: &GlobalIndex, flushed: SeqNo) -> Result<()> {
        let stays = |at: &usize| !generation.has_taken_in(self.entries[*at].first_seq);
        match (0..self.entries.len()).filter(stays).find(|at| self.entries[*at].first_seq <= flushed) {
            None => Ok(()),
            Some(at) => {
                let numbers = self.numbers(at);
                let why = format!(
                    "{numbers} are in memory, and a manifest edit would say that commits up to {flushed} are in the levels"
                );
                Err(violated(why))
            }
        }
    }

    /// Returns true if there are records that are not in the levels.
    pub(crate) fn has_records(&self) -> bool {
        self.entries.iter().any(|entry| entry.oldest_segment().is_some())
    }

    /// Checks that no memtable of the ledger has records in a segment up to `upto`.
    ///
    /// # Errors
    /// `Poisoned`.
    pub(crate) fn check_trim(&self, upto: SegmentId) -> Result<()> {
        let needs = |at: &usize| self.entries[*at].oldest_segment().is_some_and(|oldest| oldest <= upto);
        debug_assert!(
            self.entries.is_sorted_by(|a, b| a.first_seq < b.first_seq),
            "the numbers of two memtables overlap"
        );
        match (0..self.entries.len()).find(needs) {
            None => Ok(()),
            Some(at) => {
                let numbers = self.numbers(at);
                Err(violated(format!("{numbers} need a segment up to {upto}, which would be trimmed")))
            }
        }
    }

    /// Breaks the ledger: it has a memtable that no read view has.
    #[cfg(test)]
    pub(crate) fn add(&mut self, memtable: &Arc<Memtable>) {
        self.entries.push(LedgerEntry::new(memtable));
    }

    fn numbers(&self, at: usize) -> Numbers {
        let next = self.entries.get(at + 1).map(|next| next.first_seq);
        Numbers { first: self.entries[at].first_seq, last: next.map(|next| SeqNo(next.0 - 1)) }
    }
}

/// The fate of a memtable in a step.
enum Fate {
    Stays,
    TakenIn(Option<SegmentId>),
    Gone,
}

impl LedgerEntry {
    fn new(memtable: &Arc<Memtable>) -> LedgerEntry {
        LedgerEntry { first_seq: memtable.first_seq(), held: Held::Memtable(memtable.clone()) }
    }

    fn oldest_segment(&self) -> Option<SegmentId> {
        match &self.held {
            Held::Memtable(memtable) => memtable.oldest_segment(),
            Held::Generation(oldest) => *oldest,
        }
    }

    /// The fate of the memtable when `next` is installed.
    ///
    /// # Errors
    /// Says why `next` would lose it.
    fn fate(
        &self,
        numbers: Numbers,
        next: &ReadView,
        leaves: &Leaves<'_>,
    ) -> std::result::Result<Fate, &'static str> {
        debug_assert!(
            numbers.first == self.first_seq,
            "the fate of one memtable is decided by the numbers of another"
        );
        if matches!(leaves, Leaves::Dropped) {
            return Ok(Fate::Gone);
        }
        let is_taken_in = || next.generations.iter().any(|one| one.has_taken_in(self.first_seq));
        let memtable = match &self.held {
            Held::Generation(_) if is_taken_in() => return Ok(Fate::Stays),
            Held::Generation(_) => {
                return match leaves {
                    Leaves::Flushed(generation) if generation.has_taken_in(self.first_seq) => Ok(Fate::Gone),
                    _ => Err("although no manifest edit says that they are in the levels"),
                };
            }
            Held::Memtable(memtable) => memtable,
        };
        if std::iter::once(&next.active).chain(&next.frozen).any(|one| Arc::ptr_eq(one, memtable)) {
            return Ok(Fate::Stays);
        }
        let Leaves::Settled { visible } = leaves else {
            return Err("in a step that may not remove a memtable");
        };
        if numbers.last.is_none_or(|last| last > *visible) {
            return Err("although a writer may still index records with these numbers");
        }
        match is_taken_in() {
            true => Ok(Fate::TakenIn(memtable.oldest_segment())),
            false if memtable.is_empty() => Ok(Fate::Gone),
            false => Err("although no generation of the new view has taken them in"),
        }
    }
}

/// A cursor over a generation that counts the entries that a flush takes: the flush calls `next` after each.
/// The flush closed the generation to merges, so it has as many entries when the flush ends as when it began.
/// The steps of the flush together, or the dump that replaced them, must have taken each of them.
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

/// The error of a step that would lose records; the ledger stays as it is. The caller stops the table
/// (`stopped.rs`), whose error names the unfinished step and the remedy.
fn violated(what: String) -> Error {
    Error::new(Kind::Poisoned, what)
}

#[cfg(test)]
mod tests;
