//! Files of trimmed segments: kept for reuse, because written space syncs faster than new space, or removed.

use std::sync::Arc;

use terrane_base::{Kind, Result, SegmentId, verify};
use terrane_device::SegmentMemory;

use super::Shared;
use crate::SegmentState;

/// A trimmed segment. Its file is reused once `memory` is the last pointer to it: the mapping is shared with
/// the file, so a write to the file would change what a reader reads.
pub(super) struct Retired {
    file: u32,
    bytes: u64,
    memory: Arc<SegmentMemory>,
}

impl Retired {
    /// Number of its file.
    pub(super) fn file(&self) -> u32 {
        self.file
    }

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
        let mut state = self.state.lock();
        while let Some(first) = state.live.front()
            && first.info.id <= upto
            && first.info.state != SegmentState::Active
            && let Some(first) = state.live.pop_front()
        {
            gone.push(first.info.id);
            if kept.contains(&first.info.id) && !terrane_base::planted!(ReuseHistory) {
                continue;
            }
            let spare = state.spares.len() + state.retired.len();
            if first.info.bytes == self.settings.segment_bytes && spare < self.settings.spare_files_max {
                let retired =
                    Retired { file: first.info.file, bytes: first.info.bytes, memory: first.memory };
                state.retired.push(retired);
            } else {
                // The file may be removed at once: its mapping stays valid without a name.
                useless.push(first.info.file);
            }
        }
        debug_assert!(gone.is_sorted(), "the oldest segments go first");
        verify!(state.check());
        drop(state);
        // Tries every file and reports the first error.
        let removed = useless.into_iter().map(|file| self.remove(file)).collect::<Vec<_>>();
        removed.into_iter().collect::<Result<()>>().map(|()| gone)
    }

    /// Moves retired files without readers to the spare ones.
    pub(super) fn recycle(&self) {
        let mut state = self.state.lock();
        let mut index = 0;
        while index < state.retired.len() {
            // Exclusive access proves that no reader is left, and that its last read has happened.
            if Arc::get_mut(&mut state.retired[index].memory).is_some()
                || terrane_base::planted!(ReuseReadSegment)
            {
                let retired = state.retired.swap_remove(index);
                state.spares.push((retired.file, retired.bytes));
            } else {
                index += 1;
            }
        }
        verify!(state.check());
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
