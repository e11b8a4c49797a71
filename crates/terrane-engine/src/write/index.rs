//! The only module that passes records in segment memory to a memtable, or reads them there.
#![expect(unsafe_code, reason = "segment memory is raw memory with the rules of terrane_device::Region")]

use std::sync::Arc;

use terrane_base::SeqNo;
use terrane_device::SegmentMemory;
use terrane_journal::Placed;
use terrane_memtable::Memtable;

use crate::table::Table;

/// The records of a batch where the journal placed them.
pub(crate) fn placed_bytes<'p>(placed: &Placed<'p>) -> &'p [u8] {
    // SAFETY: the journal calls `index` after it wrote the range, and writes no byte of it again.
    unsafe { placed.segment.region.slice(placed.offset, placed.len) }
}

/// Indexes the record at `offset` under `seq`. Requires: a whole, valid record that the journal placed or
/// that replay has checked lies there.
pub(crate) fn insert(memtable: &Memtable, segment: &Arc<SegmentMemory>, offset: usize, seq: SeqNo) {
    // SAFETY: by the requirement, which the two callers (write way, replay) meet; the memtable keeps
    // `segment` alive.
    unsafe { memtable.insert(segment, offset, seq) }
}

/// The range deletes of a batch. Its writer indexes them together, after the other records of the batch:
/// each step leaves a state of the memtable's range deletes behind, which takes memory until the guard of the
/// writer ends.
#[derive(Default)]
pub(crate) struct BatchRanges<'g>(Vec<(&'g Table, &'g Memtable, usize, SeqNo)>);

impl<'g> BatchRanges<'g> {
    /// Adds the range delete at `offset` of the batch's segment, for `memtable` of `table`.
    #[cold]
    pub(crate) fn push(&mut self, table: &'g Table, memtable: &'g Memtable, offset: usize, seq: SeqNo) {
        debug_assert!(self.0.last().is_none_or(|(.., last)| *last < seq), "numbers ascend within a batch");
        self.0.push((table, memtable, offset, seq));
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Indexes all of them, and calls `done` for each memtable that got some. Requires: as [`insert`], for
    /// each.
    #[cold]
    pub(crate) fn insert(
        mut self,
        segment: &Arc<SegmentMemory>,
        mut done: impl FnMut(&'g Table, &'g Memtable),
    ) {
        // Stable: by number in each memtable, which is cheapest.
        self.0.sort_by_key(|(table, memtable, ..)| (table.id, memtable.first_seq()));
        for group in self.0.chunk_by(|(_, left, ..), (_, right, ..)| std::ptr::eq(*left, *right)) {
            let records: Vec<_> = group.iter().map(|(.., offset, seq)| (*offset, *seq)).collect();
            debug_assert!(
                records.is_sorted_by_key(|(_, seq)| *seq),
                "they are indexed in the order of numbers"
            );
            let (table, memtable, ..) = group[0];
            // SAFETY: by the requirement, as in [`insert`]; they were pushed for their kind.
            unsafe { memtable.insert_ranges(segment, &records) };
            done(table, memtable);
        }
    }
}
