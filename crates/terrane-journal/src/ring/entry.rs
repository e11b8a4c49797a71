//! The entry in a slot of the ring. The head of [`super`] says which thread may use it in which phase.
#![expect(unsafe_code, reason = "reads records that a waiting thread owns")]

use std::sync::Arc;

use terrane_base::{Error, SeqNo};
use terrane_device::SegmentMemory;

/// The request of an owner, and its result.
pub(crate) struct Entry {
    pub(super) records: *const u8,
    pub(super) len: u32,
    /// Bit 31: sync.
    pub(super) record_count: u32,
    /// Offset of the records in `segment`.
    pub(crate) offset: u32,
    /// Checksum of the group's header, for an owner that copies.
    pub(crate) group_checksum: u32,
    /// Number of the last record; 0 if the ticket failed or took none.
    pub(crate) last_seq: SeqNo,
    /// Kept alive by the log until the ticket is published.
    pub(crate) segment: *const Arc<SegmentMemory>,
    pub(crate) error: Option<Error>,
}

pub(super) const SYNC_BIT: u32 = 1 << 31;

impl Entry {
    pub(super) fn empty() -> Self {
        Entry {
            records: std::ptr::null(),
            len: 0,
            record_count: 0,
            offset: 0,
            group_checksum: 0,
            last_seq: SeqNo(0),
            segment: std::ptr::null(),
            error: None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    pub(crate) fn record_count(&self) -> u32 {
        self.record_count & !SYNC_BIT
    }

    pub(crate) fn sync(&self) -> bool {
        self.record_count & SYNC_BIT != 0
    }

    /// The records that the owner wants to commit.
    ///
    /// # Safety
    /// The entry is in FILLED or COPY, so its owner waits in `commit` and keeps the batch alive.
    pub(crate) unsafe fn records(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        debug_assert!(!self.records.is_null(), "{} bytes of no batch", self.len);
        // SAFETY: pointer and length come from the owner's batch, borrowed for as long as the owner waits.
        unsafe { std::slice::from_raw_parts(self.records, self.len as usize) }
    }
}
