//! How much a memtable holds, what its index takes of memory, and what its owner has noted of it.
//!
//! The account of the index's arena says what the index takes without a walk; in debug builds a memtable that
//! goes checks it against its parts.

use terrane_base::SegmentId;

use super::Memtable;
use crate::filter::KeyFilter;
use crate::range_deletes::RangeDeletes;

impl Memtable {
    /// How many versions are indexed.
    ///
    /// This, [`Memtable::record_bytes`] and [`Memtable::last_seq`] sum a counter per lane: call them per
    /// group, not per record.
    #[must_use]
    pub fn entry_count(&self) -> u64 {
        self.tree.arena().entry_count()
    }

    /// Returns true if nothing is indexed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entry_count() == 0
    }

    /// Bytes of the indexed records, shadowed ones included.
    #[must_use]
    pub fn record_bytes(&self) -> u64 {
        self.tree.arena().record_bytes()
    }

    /// Bytes of memory that the index itself takes: its nodes and entries, with the free ends of their
    /// chunks, its filter, its range deletes, and what it keeps of each segment that it points into.
    #[must_use]
    #[inline]
    pub fn index_bytes(&self) -> u64 {
        self.tree.arena().account().bytes()
    }

    /// [`Memtable::index_bytes`] as a sum over the parts. Equal while nothing is inserted.
    fn recounted_bytes(&self) -> u64 {
        let filter = self.filter.as_ref().map_or(0, KeyFilter::bytes);
        let ranges = self.range_deletes().map_or(0, RangeDeletes::memory_bytes);
        let list = self.list.as_ref().map_or(0, |list| list.bytes());
        let parts = self.tree.arena().bytes() + self.segments.bytes() + filter + ranges + list;
        parts + size_of::<Self>() as u64
    }

    /// Returns true if the owner has noted that the memtable has records in a segment that is this one or
    /// older. Once true it stays so.
    #[must_use]
    #[inline]
    pub fn is_noted(&self, segment: SegmentId) -> bool {
        self.segments.is_noted(segment)
    }

    /// Says that the owner has noted that the memtable has records, of which `oldest` is the oldest segment.
    pub fn set_noted(&self, oldest: SegmentId) {
        self.segments.note(oldest);
    }

    /// Takes the index out of the sum that it was made in: it is not a part of its table any more.
    pub fn leave_sum(&self) {
        self.tree.arena().account().leave();
    }
}

impl Drop for Memtable {
    fn drop(&mut self) {
        debug_assert_eq!(self.index_bytes(), self.recounted_bytes(), "bytes noted, and bytes of the parts");
        self.leave_sum();
    }
}
