//! Everything that a read of one table looks at, as it is at one moment.
//!
//! A read view is immutable. Readers load it with one pointer under an epoch. A freeze, a merge, a flush step
//! or a compaction builds the next read view under [`crate::table::Table::edit`], a lock that is never held
//! across I/O, and swaps the pointer.
//!
//! Invariant: the sources of a read view, read in the order of its fields, hold the versions of any key
//! newest first. Memtables have disjoint ranges of sequence numbers because they are switched between commit
//! groups.
use std::sync::Arc;

use terrane_base::{SegmentId, SeqNo};
use terrane_levels::Metasnapshot;
use terrane_memtable::{GlobalIndex, Memtable, RangeDeletes};

/// Everything a read of one table may have to look at, newest first.
#[derive(Clone)]
pub struct ReadView {
    /// The memtable that takes new records.
    pub active: Arc<Memtable>,
    /// Memtables that wait to be merged into a generation, newest first.
    pub frozen: Vec<Arc<Memtable>>,
    /// Generations of the global index, newest first; the oldest is the one that is flushed.
    pub generations: Vec<Arc<GlobalIndex>>,
    /// Overflow runs and levels.
    pub tree: Arc<Metasnapshot>,
}

impl ReadView {
    /// A read view without sources.
    pub(crate) fn nothing() -> ReadView {
        let active = Memtable::new(SeqNo::MAX);
        ReadView { active, frozen: Vec::new(), generations: Vec::new(), tree: Arc::default() }
    }

    /// Asserts the invariant as far as numbers show it: memtables and generations newest first, each with
    /// numbers of its own, so that no read finds an older version before a newer one.
    pub(crate) fn check(&self) {
        let memtables = std::iter::once(&self.active).chain(&self.frozen);
        let memtables = memtables.map(|memtable| memtable.first_seq());
        assert!(
            memtables.clone().is_sorted_by(|a, b| a > b),
            "memtables begin at {:?}",
            memtables.collect::<Vec<_>>()
        );
        let generations = self.generations.iter().map(|generation| generation.first_seq());
        assert!(
            generations.clone().is_sorted_by(|a, b| a > b),
            "generations: {:?}",
            generations.collect::<Vec<_>>()
        );
        let newest = self.generations.first().map(|generation| generation.first_seq());
        debug_assert!(
            newest.is_none_or(|newest| newest < self.active.first_seq()),
            "a generation of new records"
        );
    }

    /// The memtable that takes a record with this number.
    pub fn memtable_for(&self, seq: SeqNo) -> Option<&Arc<Memtable>> {
        if seq >= self.active.first_seq() {
            return Some(&self.active);
        }
        let are_in_order = || self.frozen.is_sorted_by(|a, b| a.first_seq() > b.first_seq());
        debug_assert!(are_in_order(), "the first memtable that begins at or below a number takes it");
        self.frozen.iter().find(|memtable| seq >= memtable.first_seq())
    }

    /// Returns true if any source has range deletes.
    pub fn is_ranged(&self) -> bool {
        let mut memory = std::iter::once(&self.active).chain(&self.frozen);
        memory.any(|memtable| memtable.range_deletes().is_some())
            || self.generations.iter().any(|generation| generation.index().range_deletes().is_some())
            || self.tree.places().any(|(_, level)| level.totals().range_deletes > 0)
    }

    /// Range deletes in memory.
    pub fn range_deletes(&self) -> u64 {
        self.ranged_memory().map(RangeDeletes::len).sum()
    }

    /// The number of the newest range delete in memory.
    pub fn range_deletes_newest(&self) -> Option<SeqNo> {
        self.ranged_memory().filter_map(|deletes| deletes.seq_range().map(|(_, newest)| newest)).max()
    }

    fn ranged_memory(&self) -> impl Iterator<Item = &RangeDeletes> {
        let memory = std::iter::once(&self.active).chain(&self.frozen);
        let memory = memory.chain(self.generations.iter().map(|generation| generation.index()));
        memory.filter_map(|memtable| memtable.range_deletes())
    }

    /// The indexes over records, newest first.
    pub(crate) fn indexes(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        let memtables = std::iter::once(&self.active).chain(&self.frozen);
        memtables.chain(self.generations.iter().map(|generation| generation.index()))
    }

    /// Bytes of the indexes over records, all sources together.
    pub fn index_bytes(&self) -> u64 {
        self.indexes().map(|index| index.index_bytes()).sum()
    }

    /// Bytes of the records that are only in memory, and of the indexes over them.
    pub fn memory_bytes(&self) -> u64 {
        self.index_bytes() + self.record_bytes()
    }

    /// Bytes of the records that are only in memory. Never the difference of the other two: writers add to
    /// both between two calls.
    pub(crate) fn record_bytes(&self) -> u64 {
        let memtables = std::iter::once(&self.active).chain(&self.frozen);
        memtables.map(|memtable| memtable.record_bytes()).sum::<u64>()
            + self.generations.iter().map(|generation| generation.record_bytes()).sum::<u64>()
    }

    /// Bytes of memory behind the oldest generation, which is being flushed or has room for more.
    pub(crate) fn behind_bytes(&self) -> u64 {
        let frozen = self.frozen.iter().map(|memtable| memtable.record_bytes() + memtable.index_bytes());
        let newer = self.generations.iter().rev().skip(1);
        frozen.sum::<u64>() + newer.map(|newer| newer.record_bytes() + newer.index_bytes()).sum::<u64>()
    }

    /// The oldest segment that any source in memory points into.
    pub fn oldest_segment(&self) -> Option<SegmentId> {
        let memtables = std::iter::once(&self.active).chain(&self.frozen);
        let oldest = memtables.filter_map(|memtable| memtable.oldest_segment());
        oldest.chain(self.generations.iter().filter_map(|generation| generation.oldest_segment())).min()
    }

    /// The first number that the oldest source with records in memory takes.
    pub(crate) fn filled_from(&self) -> Option<SeqNo> {
        let memtables = std::iter::once(&self.active).chain(&self.frozen);
        let filled = memtables.filter(|memtable| memtable.entry_count() > 0);
        let memtables = filled.map(|memtable| memtable.first_seq());
        memtables.chain(self.generations.iter().map(|generation| generation.first_seq())).min()
    }

    /// Returns true if this and `other` have the very same parts.
    pub fn is_same(&self, other: &ReadView) -> bool {
        fn are_same<T>(left: &[Arc<T>], right: &[Arc<T>]) -> bool {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| Arc::ptr_eq(left, right))
        }
        Arc::ptr_eq(&self.active, &other.active)
            && Arc::ptr_eq(&self.tree, &other.tree)
            && are_same(&self.frozen, &other.frozen)
            && are_same(&self.generations, &other.generations)
    }

    /// Returns true if every record of the table is in the levels.
    pub fn memory_is_empty(&self) -> bool {
        self.active.entry_count() == 0 && self.frozen.is_empty() && self.generations.is_empty()
    }
}
