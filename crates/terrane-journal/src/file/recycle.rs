//! Files of trimmed segments: kept for reuse, because written space syncs faster than new space, or removed.

use std::sync::{Arc, Weak};

use terrane_base::{Kind, Result, SegmentId, verify};
use terrane_device::{OpenMode, SegmentMemory};

use super::Shared;
use super::live::{Live, PAGE_BYTES};
use crate::{SegmentInfo, SegmentState};

/// A trimmed segment. Its file is reused once `memory` is the last pointer to it: the mapping is shared with
/// the file, so a write to the file would change what a reader reads.
pub(super) struct Retired {
    file: u32,
    bytes: u64,
    /// Bytes of `memory` that were touched.
    memory_bytes: u64,
    memory: Arc<SegmentMemory>,
}

impl Retired {
    /// Number of its file.
    pub(super) fn file(&self) -> u32 {
        self.file
    }

    /// Bytes that readers keep alive.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }
}

/// Memory of a trimmed segment whose file is not used again: readers keep it, and nothing here does.
pub(super) struct Held {
    memory: Weak<SegmentMemory>,
    bytes: u64,
}

impl Shared {
    /// Memory that only readers of trimmed segments keep and that does not come back as a file.
    pub(super) fn held_bytes(&self) -> u64 {
        let mut state = self.state.lock();
        state.held.retain(|held| held.memory.strong_count() > 0);
        state.held.iter().map(|held| held.bytes).sum()
    }

    /// Removes a file of the directory that no segment uses. It is not spare: a handle of the opening that
    /// left it may still read its mapping.
    pub(super) fn remove_unlisted(&self, file: u32) -> Result<()> {
        assert!(file < self.first_file, "file {file} is one of this opening");
        self.remove(file)
    }

    /// Keeps files for reuse; removes those that the next segment cannot use.
    fn keep_spares(&self, files: &[(u32, u64)]) -> Result<()> {
        for &(file, bytes) in files {
            let mut state = self.state.lock();
            let is_full = state.spares.len() >= self.settings.spare_files_max;
            if state.has_use_for(bytes, &self.settings) && !is_full {
                debug_assert!(state.spares.iter().all(|spare| spare.0 != file), "file {file} is spare twice");
                state.spares.push((file, bytes));
            } else {
                drop(state);
                self.remove(file)?;
            }
        }
        Ok(())
    }

    /// Takes back what was kept after a trim. Removes files that were there before this journal was opened:
    /// handles of an earlier opening may still read them.
    pub(super) fn take_back(&self, files: &[(u32, u64)]) -> Result<()> {
        debug_assert!(
            self.state.lock().spares.iter().all(|spare| !files.contains(spare)),
            "a file that was kept is not spare as well"
        );
        let (before, own): (Vec<_>, Vec<_>) = files.iter().partition(|(file, _)| *file < self.first_file);
        before.into_iter().try_for_each(|(file, _)| self.remove(file))?;
        self.keep_spares(&own)
    }

    /// Removes segments up to `upto` from the journal. The files of those in `kept` stay as they are and no
    /// longer belong to the journal.
    pub(super) fn trim(&self, upto: SegmentId, kept: &[SegmentId]) -> Result<Vec<SegmentId>> {
        let (mut gone, mut useless) = (Vec::new(), Vec::new());
        // Closed and unmapped after the lock: rotations wait for it.
        let mut left = Vec::new();
        let mut state = self.state.lock();
        // Files of another length than is needed now would take the places of those that are.
        let (spares, stale) = std::mem::take(&mut state.spares)
            .into_iter()
            .partition(|spare| state.has_use_for(spare.1, &self.settings));
        state.spares = spares;
        useless.extend(stale.into_iter().map(|(file, _): (u32, u64)| file));
        while let Some(first) = state.live.front()
            && first.info.id <= upto
            && first.info.state != SegmentState::Active
            && let Some(first) = state.live.pop_front()
        {
            let memory_bytes = first.memory_bytes();
            let Live { info, file, memory } = first;
            gone.push(info.id);
            let held = Held { memory: Arc::downgrade(&memory), bytes: memory_bytes };
            if kept.contains(&info.id) && !terrane_base::planted!(ReuseHistory) {
                state.held.push(held);
                left.push((file, Some(memory)));
                continue;
            }
            let spare = state.spares.len() + state.retired.len();
            // None that was replayed: handles of the opening that wrote it, in any process, may still read
            // its mapping.
            let is_own = file.is_some() || terrane_base::planted!(ReuseReplayedSegment);
            if is_own
                && state.has_use_for(info.bytes, &self.settings)
                && spare < self.settings.spare_files_max
            {
                // Exclusive access is how `recycle` knows that no reader is left.
                drop(held);
                state.retired.push(Retired { file: info.file, bytes: info.bytes, memory_bytes, memory });
                left.push((file, None));
            } else {
                // The file may be removed at once: its mapping stays valid without a name.
                useless.push(info.file);
                state.held.push(held);
                left.push((file, Some(memory)));
            }
        }
        debug_assert!(gone.is_sorted(), "the oldest segments go first");
        verify!(state.check());
        drop(state);
        drop(left);
        // Tries every file and reports the first error.
        let removed = useless.into_iter().map(|file| self.remove(file)).collect::<Vec<_>>();
        removed.into_iter().collect::<Result<()>>().map(|()| gone)
    }

    /// The segments that nothing was written to, once nothing will be.
    pub(super) fn unused_segments(&self) -> Vec<SegmentInfo> {
        let state = self.state.lock();
        let infos = state.live.iter().map(|live| &live.info).filter(|_| state.is_stopping);
        infos.filter(|info| info.state == SegmentState::Unused).cloned().collect()
    }

    /// Removes segments that nothing was written to, wherever they lie, with their files.
    pub(super) fn remove_unused(&self, ids: &[SegmentId]) -> Result<()> {
        // Closed and unmapped after the lock, as in `trim`.
        let mut removed = Vec::new();
        let mut state = self.state.lock();
        assert!(ids.is_empty() || state.is_stopping, "a prepared segment may still be used");
        let live = std::mem::take(&mut state.live);
        for segment in live {
            if !ids.contains(&segment.info.id) {
                state.live.push_back(segment);
                continue;
            }
            let info = &segment.info;
            assert!(info.state == SegmentState::Unused && info.used == 0, "{info:?} may hold records");
            removed.push(segment);
        }
        verify!(state.check());
        drop(state);
        // As in `trim`.
        let results: Vec<Result<()>> = removed.iter().map(|segment| self.remove(segment.info.file)).collect();
        results.into_iter().collect()
    }

    /// Moves retired files without readers to the spare ones.
    pub(super) fn recycle(&self) {
        // Unmapped after the lock: rotations wait for it. A file may be rewritten before that, because
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
        verify!(state.check());
        drop(state);
        drop(unmapped);
    }

    pub(super) fn remove_spares(&self) -> Result<u64> {
        self.recycle();
        let mut state = self.state.lock();
        state.next_bytes = self.settings.first_segment_bytes.min(self.settings.segment_bytes);
        // Removed from the list first: a file that was half removed must not be reused.
        let mut spares = std::mem::take(&mut state.spares);
        let is_stopped = state.is_stopping;
        // None is reused any more: what readers see stays mapped without a name.
        let retired = if is_stopped { std::mem::take(&mut state.retired) } else { Vec::new() };
        drop(state);
        spares.extend(retired.iter().map(|retired| (retired.file, retired.bytes)));
        drop(retired);
        let removed = spares.into_iter().map(|(file, bytes)| self.remove(file).map(|()| bytes));
        let removed = removed.collect::<Vec<_>>().into_iter().sum::<Result<u64>>()?;
        Ok(removed + if is_stopped { self.punch_ends()? } else { 0 })
    }

    /// Gives the unused ends of segments back to the device; returns the number of bytes. No record lies
    /// there, and none will: the journal has stopped, and the next one goes on in new segments.
    fn punch_ends(&self) -> Result<u64> {
        let live = self.state.lock().live.iter().map(|live| live.info.clone()).collect::<Vec<_>>();
        let mut punched = 0;
        // The end of an active segment is known once the journal was closed without an error.
        let is_known = |segment: &SegmentInfo| segment.state != SegmentState::Active || segment.used > 0;
        for segment in live.iter().filter(|segment| is_known(segment)) {
            let is_unused = segment.state == SegmentState::Unused;
            assert!(is_unused || segment.used > 0, "the records of {segment:?} would be lost");
            let used = segment.used.next_multiple_of(PAGE_BYTES);
            if used < segment.bytes {
                let file = self.disk.open(&self.path(segment.file), OpenMode::Write, false)?;
                file.punch(used, segment.bytes - used)?;
                punched += segment.bytes - used;
            }
        }
        Ok(punched)
    }

    fn remove(&self, file: u32) -> Result<()> {
        match self.disk.remove(&self.path(file)) {
            Err(error) if error.kind() == Kind::NotFound => Ok(()),
            result => result,
        }
    }
}
