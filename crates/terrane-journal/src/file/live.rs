//! A live segment of the journal in files.

use std::sync::Arc;

use terrane_device::{File, SegmentMemory};

use crate::SegmentInfo;

/// Bytes of a page of memory, and of a block of a file.
pub(super) const PAGE_BYTES: u64 = 4096;

/// A segment that has a file.
pub(super) struct Live {
    pub(super) info: SegmentInfo,
    /// `None` for a replayed segment, which is durable.
    pub(super) file: Option<Arc<dyn File>>,
    pub(super) memory: Arc<SegmentMemory>,
}

impl Live {
    /// Bytes of memory. What lies behind the end of a replayed segment is never touched.
    pub(super) fn memory_bytes(&self) -> u64 {
        match self.file {
            Some(_) => self.info.bytes,
            None => self.info.used.next_multiple_of(PAGE_BYTES).min(self.info.bytes),
        }
    }
}

impl AsMut<SegmentInfo> for Live {
    fn as_mut(&mut self) -> &mut SegmentInfo {
        &mut self.info
    }
}
