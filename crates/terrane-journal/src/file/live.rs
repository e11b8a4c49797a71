//! A live segment of the journal in files.

use std::sync::Arc;

use terrane_base::SegmentId;
use terrane_device::{File, SegmentMemory};

use super::State;
use crate::{JournalSettings, SegmentInfo, SegmentState};

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
        debug_assert!(self.info.used <= self.info.bytes, "{:?} uses more than it has", self.info);
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

impl State {
    /// Memory of all segments that are used, prepared, or read.
    pub(super) fn memory_bytes(&self, settings: &JournalSettings) -> u64 {
        let live: u64 = self.live.iter().map(Live::memory_bytes).sum();
        let retired: u64 = self.retired.iter().map(super::Retired::memory_bytes).sum();
        live + retired + self.prepared_bytes(settings)
    }

    /// The active segment. Not always the last one: a failed rotation leaves segments after it that were too
    /// small.
    pub(super) fn active(&self) -> Option<&Live> {
        self.live.iter().rfind(|live| live.info.state == SegmentState::Active)
    }

    /// The state of the active segment once it accepts no further groups. In persistent memory each group of
    /// it was made durable; it counts as durable if all before it are.
    pub(super) fn state_when_sealed(&self) -> SegmentState {
        let has_lines = |live: &Live| live.file.as_ref().is_some_and(|file| file.lines().is_some());
        let is_durable = self.active().is_some_and(has_lines)
            && self.live.iter().all(|live| live.info.state != SegmentState::Sealed);
        if is_durable { SegmentState::Durable } else { SegmentState::Sealed }
    }

    /// Walks the lists and asserts what the diagram in the head of the journal in files says: ids ascend, one
    /// segment is active, segments become durable oldest first, and no file has two segments.
    pub(super) fn check(&self) -> bool {
        let ids: Vec<SegmentId> = self.live.iter().map(|live| live.info.id).collect();
        assert!(ids.is_sorted_by(|a, b| a < b), "ids of live segments do not ascend: {ids:?}");
        assert!(
            ids.last().is_none_or(|last| last.0 < self.next_segment),
            "{ids:?} and {}",
            self.next_segment
        );
        let states = || self.live.iter().map(|live| live.info.state);
        let active = states().filter(|state| *state == SegmentState::Active).count();
        assert!(active <= 1, "{active} segments are active");
        let unsure = states().skip_while(|state| *state != SegmentState::Sealed);
        assert!(
            !unsure.into_iter().any(|state| state == SegmentState::Durable),
            "durable before an older one"
        );
        let prepared = self
            .ready
            .iter()
            .chain(&self.aside)
            .chain(&self.pending)
            .chain(&self.live)
            .map(|live| live.info.file);
        let trimmed = self.retired.iter().map(super::Retired::file);
        let mut files: Vec<u32> =
            prepared.chain(trimmed).chain(self.spares.iter().map(|spare| spare.0)).collect();
        files.sort_unstable();
        assert!(files.is_sorted_by(|a, b| a < b), "a file has two uses: {files:?}");
        true
    }
}
