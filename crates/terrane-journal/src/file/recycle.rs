//! Files of trimmed segments: kept for reuse, because written space syncs faster than new space, or removed.

use std::sync::Arc;

use terrane_base::{Kind, Result, SegmentId};
use terrane_device::SegmentMemory;

use super::Shared;
use super::live::Live;
use crate::SegmentState;

/// A trimmed segment. Its file is reused once `memory` is the last pointer to it: the mapping is shared with
/// the file, so a write to the file would change what a reader reads.
pub(super) struct Retired {
    file: u32,
    bytes: u64,
    memory: Arc<SegmentMemory>,
}

impl Retired {
    /// Bytes that readers keep alive.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.bytes
    }
}

impl Shared {
    /// Takes over the files that no live segment uses; removes those that do not fit.
    pub(super) fn adopt_spares(&self, files: &[(u32, u64)]) -> Result<()> {
        for &(file, bytes) in files {
            let mut state = self.state.lock();
            if bytes == self.settings.segment_bytes && state.spares.len() < self.settings.spare_files_max {
                state.spares.push((file, bytes));
            } else {
                drop(state);
                self.remove(file)?;
            }
        }
        Ok(())
    }

    /// Removes segments up to `upto` from the journal. The files of those in `kept` stay as they are and no
    /// longer belong to the journal.
    pub(super) fn trim(&self, upto: SegmentId, kept: &[SegmentId]) -> Result<Vec<SegmentId>> {
        let (mut gone, mut useless) = (Vec::new(), Vec::new());
        // Closed and unmapped behind the lock: rotations wait for it.
        let mut left = Vec::new();
        let mut state = self.state.lock();
        while let Some(first) = state.live.front()
            && first.info.id <= upto
            && first.info.state != SegmentState::Active
            && let Some(Live { info, file, memory }) = state.live.pop_front()
        {
            gone.push(info.id);
            if kept.contains(&info.id) && !terrane_base::planted!(ReuseHistory) {
                left.push((file, Some(memory)));
                continue;
            }
            let spare = state.spares.len() + state.retired.len();
            if info.bytes == self.settings.segment_bytes && spare < self.settings.spare_files_max {
                state.retired.push(Retired { file: info.file, bytes: info.bytes, memory });
                left.push((file, None));
            } else {
                // The file may be removed at once: its mapping stays valid without a name.
                useless.push(info.file);
                left.push((file, Some(memory)));
            }
        }
        drop(state);
        drop(left);
        // Tries every file and reports the first error.
        let removed = useless.into_iter().map(|file| self.remove(file)).collect::<Vec<_>>();
        removed.into_iter().collect::<Result<()>>().map(|()| gone)
    }

    /// Moves retired files without readers to the spare ones.
    pub(super) fn recycle(&self) {
        // Unmapped behind the lock: rotations wait for it. A file may be written anew before that, because
        // the old mapping has no reader.
        let mut unmapped = Vec::new();
        let mut state = self.state.lock();
        let mut index = 0;
        while index < state.retired.len() {
            // Exclusive access proves that no reader is left, and that its last read has happened.
            if Arc::get_mut(&mut state.retired[index].memory).is_some()
                || terrane_base::planted!(ReuseReadSegment)
            {
                let retired = state.retired.swap_remove(index);
                state.spares.push((retired.file, retired.bytes));
                unmapped.push(retired.memory);
            } else {
                index += 1;
            }
        }
        drop(state);
        drop(unmapped);
    }

    pub(super) fn remove_spares(&self) -> Result<u64> {
        self.recycle();
        // Removed from the list first: a file that was half removed must not be reused.
        let spares = std::mem::take(&mut self.state.lock().spares);
        let removed = spares.into_iter().map(|(file, bytes)| self.remove(file).map(|()| bytes));
        removed.collect::<Vec<_>>().into_iter().sum()
    }

    fn remove(&self, file: u32) -> Result<()> {
        match self.disk.remove(&self.path(file)) {
            Err(error) if error.kind() == Kind::NotFound => Ok(()),
            result => result,
        }
    }
}
