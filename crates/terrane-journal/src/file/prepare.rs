//! The preparer: makes the next segment ready while the active one fills, so that writers wait for no
//! allocation.
//!
//! Steps: 1. take a spare file, or create one; 2. allocate its space; 3. map it and allocate its pages; 4.
//! for a new file: make length and directory entry durable; 5. register it. If step 5 fails, the segment is
//! kept and the next attempt registers it again, because the first registration may have reached the
//! manifest.
//!
//! A batch that fits no ordinary segment gets a longer one. Where such batches follow each other, all
//! segments are that long, up to `long_segment_bytes`: otherwise each of these batches would leave the
//! prepared segment unused, wait for another one to be made, and leave a file of a length that nothing uses
//! again.

use std::sync::Arc;

use terrane_base::env::Step;
use terrane_base::sync::Mutex;
use terrane_base::sync::atomic::Ordering;
use terrane_base::{Error, Kind, Result, SegmentId, SeqNo, verify};
use terrane_device::{File, OpenMode, Region, SegmentMemory};

use super::live::PAGE_BYTES;
use super::{Live, Shared, State};
use crate::{JournalSettings, SegmentInfo, SegmentSpec, SegmentState};

/// The next segment is prepared when one part in this many of a short segment is used.
const PART_BEFORE_NEXT: u64 = 4;
/// A file that is used again has at most so many times the bytes that are wanted.
const REUSE_MAX: u64 = 2;
/// Lengths of long segments differ by one part in this many at least, so that batches of nearly the same
/// length use each other's files.
const LONG_STEPS: u64 = 16;

/// The preparer's thread.
pub(super) fn run(shared: &Shared) {
    // Also if a registrar panics: a thread that waits for a segment must not wait for ever.
    struct Gone<'a>(&'a Shared);
    impl Drop for Gone<'_> {
        fn drop(&mut self) {
            self.0.state.lock().is_preparer_gone = true;
            self.0.changed.notify_all();
        }
    }
    let _gone = Gone(shared);
    while let Some(bytes) = shared.await_wanted() {
        shared.prepare_wanted(bytes);
    }
}

impl Shared {
    /// One step of the preparer if it has no thread.
    pub(super) fn prepare_step(&self) -> Step {
        debug_assert!(!self.has_threads, "a thread prepares segments: two could prepare the same one");
        let (is_stopping, wanted) = take(&self.state, |state| (state.is_stopping, state.due()));
        match wanted {
            _ if is_stopping => Step::Ended,
            Some(bytes) => {
                self.prepare_wanted(bytes);
                Step::Worked
            }
            None => Step::Idle,
        }
    }

    pub(super) fn prepare_wanted(&self, bytes: u64) {
        let wanted = take(&self.state, |state| {
            state.preparing = state.next_bytes_for(bytes, &self.settings);
            state.preparing
        });
        let prepared = self.prepare_fitting(bytes, wanted);
        let mut state = self.state.lock();
        state.preparing = 0;
        match prepared {
            Ok(live) => {
                assert!(state.ready.is_none(), "one preparer, and one segment is ready at most");
                assert!(live.info.bytes >= bytes, "{} bytes are prepared, {bytes} wanted", live.info.bytes);
                state.ready = Some(live);
                verify!(state.check());
            }
            Err(error) => state.refused = Some(error),
        }
        state.wanted = None;
        drop(state);
        self.changed.notify_all();
    }

    /// How many bytes of a segment are used when the next one is prepared: at once where it is as long as a
    /// segment gets, because there is a load. A short one may be the last for long.
    #[inline]
    pub(super) fn part_before_next(&self, bytes: u64) -> u64 {
        if bytes >= self.settings.segment_bytes { 0 } else { bytes / PART_BEFORE_NEXT }
    }

    /// Has the next segment prepared.
    #[cold]
    pub(super) fn want_next(&self) {
        take(&self.state, |state| {
            if !state.is_ending {
                state.wanted = state.wanted.or(Some(0));
            }
        });
        self.changed.notify_all();
    }

    /// A prepared segment is no longer used. It stays listed after the active one until
    /// [`Shared::remove_unused`] or the next opening removes it. Requires: the journal has stopped.
    pub(super) fn give_up_prepared(&self) {
        let mut state = self.state.lock();
        debug_assert!(state.is_stopping, "a rotation may still take the prepared segment");
        let prepared = [state.ready.take(), state.pending.take()];
        prepared.into_iter().flatten().for_each(|unused| state.push_unused(unused));
    }

    /// Bytes of the next segment, once it is wanted; `None` when the journal stops.
    fn await_wanted(&self) -> Option<u64> {
        debug_assert!(self.has_threads, "no thread waits where steps prepare segments");
        let mut state = self.state.lock();
        while !state.is_stopping {
            match state.due() {
                Some(bytes) => return Some(bytes),
                None => self.changed.wait(&mut state),
            }
        }
        None
    }

    pub(super) fn prepare(&self, bytes: u64) -> Result<Live> {
        let pending = take(&self.state, |state| {
            let pending = state.pending.take();
            let pending_bytes = pending.as_ref().map_or(0, |live| live.info.bytes);
            state.preparing = state.preparing.max(pending_bytes);
            pending
        });
        let live = match pending {
            Some(live) if live.info.bytes >= bytes => live,
            Some(small) => {
                take(&self.state, |state| state.push_unused(small));
                self.make(bytes)?
            }
            None => self.make(bytes)?,
        };
        debug_assert!(live.info.used == 0, "{:?} has bytes, and no replay would find them", live.info);
        match self.registrar.register(&live.spec()) {
            _ if terrane_base::planted!(UseUnregisteredSegment) => Ok(live),
            Ok(()) => Ok(live),
            Err(error) => {
                self.state.lock().pending = Some(live);
                Err(error)
            }
        }
    }

    fn make(&self, bytes: u64) -> Result<Live> {
        let spare = self.open_spare(bytes);
        let is_reused = spare.is_some();
        let new = if is_reused { 0 } else { bytes };
        let room = self.leave_room(spare.as_ref().map_or(bytes, |(_, bytes, _)| *bytes), new);
        let room = room.inspect_err(|_| {
            let kept = spare.as_ref().map(|(number, bytes, _)| (*number, *bytes));
            self.state.lock().spares.extend(kept);
        })?;
        let made = spare.map_or_else(|| self.create(bytes), Ok);
        let (number, bytes, file) = made.inspect_err(|_| self.give_room_back(room))?;
        let id = take(&self.state, |state| {
            let id = SegmentId(state.next_segment);
            assert!(state.live.back().is_none_or(|last| last.info.id < id), "ids grow, and none comes twice");
            state.next_segment += 1;
            id
        });
        let region = self.map(&*file, bytes as usize, is_reused).inspect_err(|_| {
            self.give_room_back(room);
            if is_reused {
                // Its old blocks may be what cannot be read; the next attempt makes a new file.
                return drop(self.disk.remove(&self.path(number)));
            }
            self.state.lock().spares.push((number, bytes));
        })?;
        assert!(region.len() as u64 == bytes, "the mapping of file {number} has {} bytes", region.len());
        let info =
            SegmentInfo { id, file: number, state: SegmentState::Unused, bytes, used: 0, last_seq: SeqNo(0) };
        Ok(Live { info, file: Some(file), memory: Arc::new(SegmentMemory { id, region }) })
    }

    /// Maps a file and allocates its pages. If the pages are allocated for writing, each commit takes a
    /// quarter less time; but they are dirty then, and the next sync would write the whole segment. So if
    /// syncs are used, they are allocated for reading: a long write then needs one call, and otherwise the
    /// first store to a page takes a fault that needs no device. Where most bytes come by bulk writes, whose
    /// calls allocate what they need, none is allocated for writing. The pages of a file that is used again
    /// are read all the same: one that the device cannot read is an error here, and would be a signal at the
    /// first store to it.
    fn map(&self, file: &dyn File, bytes: usize, is_reused: bool) -> Result<Region> {
        let region = file.map(bytes, true)?;
        debug_assert!(region.len() >= bytes, "the end of the segment would not be in memory");
        // Relaxed: a hint.
        let was_persisted = self.was_persisted.swap(false, Ordering::Relaxed);
        match (take(&self.state, |state| state.has_bulk_writes()), is_reused, was_persisted) {
            (true, true, _) | (false, _, true) => region.prefault_for_reads()?,
            (true, false, _) => {}
            (false, _, false) => region.prefault()?,
        }
        Ok(region)
    }

    fn create(&self, bytes: u64) -> Result<(u32, u64, Arc<dyn File>)> {
        let number = take(&self.state, |state| {
            state.next_file += 1;
            state.next_file - 1
        });
        assert!(number >= self.first_file, "an earlier opening may have made file {number}");
        let path = self.path(number);
        let file = self.disk.open(&path, OpenMode::Create, false)?;
        let made = file.allocate(0, bytes).and_then(|()| file.sync()).and_then(|()| self.sync_entries());
        match made {
            Ok(()) => Ok((number, bytes, file)),
            Err(error) => {
                // A partly reserved file must not keep the device full. The first error is the one to report.
                let _ = self.disk.remove(&path);
                Err(self.explain(error, bytes))
            }
        }
    }

    fn sync_entries(&self) -> Result<()> {
        if terrane_base::planted!(SkipSegmentDirectorySync) { Ok(()) } else { self.disk.sync_dir(&self.dir) }
    }

    /// A spare file that is long enough, its bytes, all of them allocated, and the file. One that cannot be
    /// used is removed.
    fn open_spare(&self, bytes: u64) -> Option<(u32, u64, Arc<dyn File>)> {
        self.recycle();
        while let Some((number, spare_bytes)) = take(&self.state, |state| {
            let spare = state.take_spare(bytes, &self.settings);
            // It may be longer than asked for.
            state.preparing = state.preparing.max(spare.map_or(0, |(_, bytes)| bytes));
            spare
        }) {
            assert!(spare_bytes >= bytes, "file {number} has {spare_bytes} bytes, {bytes} are wanted");
            let path = self.path(number);
            let opened = self.disk.open(&path, OpenMode::Write, false);
            let usable = opened.and_then(|file| {
                let has_length = file.len()? == spare_bytes;
                file.allocate(0, spare_bytes)?;
                Ok(has_length.then_some(file))
            });
            if let Ok(Some(file)) = usable {
                return Some((number, spare_bytes, file));
            }
            // Missing, truncated or without space: the caller creates a new file, which reports any error.
            let _ = self.disk.remove(&path);
        }
        None
    }

    fn explain(&self, error: Error, bytes: u64) -> Error {
        match error.kind() {
            Kind::Full => error.context(format!(
                "no space for a journal segment of {bytes} bytes in {}; free some, then commits succeed again",
                self.dir.display()
            )),
            _ => error,
        }
    }
}

impl Live {
    fn spec(&self) -> SegmentSpec {
        SegmentSpec { id: self.info.id, file: self.info.file, bytes: self.info.bytes }
    }
}

impl State {
    /// Lists a prepared segment that will not be used. Ids must grow along the chain: it can never be used
    /// after one that was prepared later and has records.
    pub(super) fn push_unused(&mut self, mut unused: Live) {
        assert!(unused.info.used == 0, "{:?} has records, and is listed as unused", unused.info);
        unused.info.state = SegmentState::Unused;
        self.list(unused);
    }

    /// Adds a segment to the live ones, in the order of their ids: one that was set aside while another one
    /// was prepared, in vain, is older than that one.
    pub(super) fn list(&mut self, segment: Live) {
        let at = self.live.iter().rposition(|live| live.info.id < segment.info.id).map_or(0, |last| last + 1);
        debug_assert!(
            self.live.get(at).is_none_or(|next| next.info.id > segment.info.id),
            "an id comes twice"
        );
        self.live.insert(at, segment);
    }

    /// Returns true if most bytes of the segment that was filled last came by bulk writes.
    fn has_bulk_writes(&self) -> bool {
        let filled = self.live.iter().rev().find(|live| live.file.is_some() && live.info.used > 0);
        filled.is_some_and(|live| live.memory.region.bulk_bytes() > live.info.used / 2)
    }

    /// Returns the error if no further segment is prepared.
    pub(super) fn refusal(&self) -> Option<Error> {
        let is_gone = self.is_preparer_gone || self.is_stopping;
        is_gone.then(|| Error::new(Kind::Cancelled, "the journal is closed and creates no more segments"))
    }

    /// Bytes of the next segment, which has room for `bytes`. A group that is too long for short segments has
    /// the next ones longer at once.
    fn next_bytes_for(&mut self, bytes: u64, settings: &JournalSettings) -> u64 {
        self.next_bytes = self.grown_for(bytes, settings);
        debug_assert!(self.next_bytes <= longest(settings), "{} bytes", self.next_bytes);
        bytes.max(self.next_bytes)
    }

    /// Bytes of segments once one has to have room for `bytes`.
    fn grown_for(&self, bytes: u64, settings: &JournalSettings) -> u64 {
        if bytes <= self.next_bytes {
            return self.next_bytes;
        }
        // One that is even longer than a long one is for its batch alone.
        let grown = long_bytes(bytes, settings).unwrap_or_else(|| {
            let doubled = bytes.saturating_mul(2).next_power_of_two().min(settings.segment_bytes);
            doubled.max(self.next_bytes)
        });
        debug_assert!(grown >= self.next_bytes, "{} bytes become {grown}", self.next_bytes);
        grown
    }

    /// The active segment is one that was asked for with room for `bytes`: the next one is longer, as long,
    /// or ordinary again.
    pub(super) fn note_rotation(&mut self, bytes: u64, settings: &JournalSettings) {
        let is_long = long_bytes(bytes, settings).is_some();
        if !is_long && !self.was_long {
            self.next_bytes = (self.next_bytes * 2).min(settings.segment_bytes);
        }
        self.was_long = is_long;
        assert!(self.next_bytes <= longest(settings), "the next segment has {} bytes", self.next_bytes);
    }

    /// Returns true if a file of `bytes` is long enough for the next segment, and not much longer.
    pub(super) fn has_use_for(&self, bytes: u64, settings: &JournalSettings) -> bool {
        let most = longest_reused(self.next_bytes, settings);
        (self.next_bytes..=most).contains(&bytes) && !self.is_stopping
    }

    /// Takes the shortest spare file that has `bytes`, unless it is much longer.
    fn take_spare(&mut self, bytes: u64, settings: &JournalSettings) -> Option<(u32, u64)> {
        let most = longest_reused(bytes, settings);
        let fits = |spare: &(usize, &(u32, u64))| (bytes..=most).contains(&spare.1.1);
        let shortest = self.spares.iter().enumerate().filter(fits).min_by_key(|(_, spare)| spare.1);
        let index = shortest.map(|(index, _)| index)?;
        let (file, spare_bytes) = self.spares.swap_remove(index);
        assert!(self.live.iter().all(|live| live.info.file != file), "file {file} has two uses");
        Some((file, spare_bytes))
    }

    /// Bytes of prepared segments. One that is only due counts as well: its pages are allocated before it is
    /// ready, and nothing takes back that it comes.
    pub(super) fn prepared_bytes(&self, settings: &JournalSettings) -> u64 {
        let of = |live: &Option<Live>| live.as_ref().map_or(0, Live::memory_bytes);
        let due = self.due().filter(|_| !self.is_stopping && !self.is_preparer_gone);
        // The segment in preparation keeps its length, also if the next ones begin short again meanwhile.
        let due = due.map_or(0, |bytes| bytes.max(self.grown_for(bytes, settings))).max(self.preparing);
        let pending = of(&self.pending);
        // A segment that waits for its registration becomes the ready one, if it is long enough.
        of(&self.ready) + of(&self.aside) + if pending >= due { pending } else { pending + due }
    }

    /// Bytes of the segment to prepare now.
    fn due(&self) -> Option<u64> {
        self.wanted.filter(|_| self.ready.is_none())
    }
}

/// Bytes of segments for batches that need about `bytes`, if they fit no ordinary one and are not too long to
/// have such segments.
fn long_bytes(bytes: u64, settings: &JournalSettings) -> Option<u64> {
    let long = bytes.next_multiple_of((bytes.next_power_of_two() / LONG_STEPS).max(PAGE_BYTES));
    (bytes > settings.segment_bytes && long <= settings.long_segment_bytes).then_some(long)
}

/// Most bytes of a segment that is not for one batch alone.
fn longest(settings: &JournalSettings) -> u64 {
    settings.segment_bytes.max(settings.long_segment_bytes)
}

/// Most bytes of a file that is used again for a segment of `bytes`. Where long segments are allowed, the
/// files of a load of long batches are not for the load after it.
fn longest_reused(bytes: u64, settings: &JournalSettings) -> u64 {
    let limit = match settings.long_segment_bytes {
        0 => u64::MAX,
        _ if bytes <= settings.segment_bytes => settings.segment_bytes,
        _ => longest(settings).max(bytes),
    };
    (REUSE_MAX * bytes).min(limit)
}

/// Runs `f` under the lock, for one expression.
fn take<S, T>(state: &Mutex<S>, f: impl FnOnce(&mut S) -> T) -> T {
    f(&mut state.lock())
}

#[cfg(all(test, not(feature = "shuttle"), not(miri)))]
mod tests;
