//! Bytes that a flush of everything takes on the device beside those of the records: each table that has some
//! gets extents of its own, which take whole blocks, and edits of the manifest.

use std::ops::Range;

use terrane_storage::SLOT_BYTES;

use crate::table::sums::TableSums;

/// The rest of the last block of keys and of the last one of separated values, with index, filter and footer,
/// and the edits.
const TABLE_BYTES: u64 = 12 << 10;
/// Fewest bytes of a record, so that at most as many tables get records as a segment has bytes for.
const RECORD_BYTES_MIN: u64 = 5;

/// The room of a part of a merge, at least and at most.
const MERGE_BYTES: Range<u64> = 80 << 10..SLOT_BYTES as u64 * 9 / 8;

impl TableSums {
    /// These bytes once a segment of `segment_bytes` more is full. They count for every table that can have
    /// records by then: a segment is made before a writer has chosen its tables. The cost is the same
    /// with any number of tables.
    pub(crate) fn flush_overhead(&self, segment_bytes: u64) -> u64 {
        if terrane_base::planted!(ForgetTables) {
            return 0;
        }
        let (listed, filled) = self.due().counts();
        debug_assert!(filled <= listed, "{filled} of {listed} tables have records in memory");
        listed.min(filled + segment_bytes / RECORD_BYTES_MIN) * TABLE_BYTES
    }

    /// Bytes that a merge takes on a device that is nearly full before it gives some back: those of a part,
    /// which is an extent and a little more. Extents that were written while the device became full are
    /// shorter than a sixteenth of it.
    pub(crate) fn merge_room(&self) -> u64 {
        let stored = self.level_bytes();
        let room = (stored / 16).clamp(MERGE_BYTES.start, MERGE_BYTES.end).min(stored);
        debug_assert!(room <= stored, "a merge of {stored} bytes takes {room}");
        room
    }
}
