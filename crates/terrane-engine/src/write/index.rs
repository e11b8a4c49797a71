//! The one place where records in segment memory are handed to a memtable, or read where they were placed.
#![expect(unsafe_code, reason = "segment memory is raw memory; its rules are in terrane_device::Region")]

use std::sync::Arc;

use terrane_base::SeqNo;
use terrane_device::SegmentMemory;
use terrane_journal::Placed;
use terrane_memtable::Memtable;

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
