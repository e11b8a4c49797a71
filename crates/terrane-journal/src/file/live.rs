//! A live segment of the journal in files.

use std::sync::Arc;

use terrane_device::{File, SegmentMemory};

use crate::SegmentInfo;

/// A segment that has a file.
pub(super) struct Live {
    pub(super) info: SegmentInfo,
    /// `None` for a replayed segment, which is durable.
    pub(super) file: Option<Arc<dyn File>>,
    pub(super) memory: Arc<SegmentMemory>,
}

impl AsMut<SegmentInfo> for Live {
    fn as_mut(&mut self) -> &mut SegmentInfo {
        &mut self.info
    }
}
