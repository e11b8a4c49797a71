//! The preparer: keeps one segment ready, so that the write way waits for no allocation.
//!
//! Steps: 1. a spare file, or else a new one; 2. its space; 3. its mapping, filled in; 4. for a new file: length and
//! directory entry durable; 5. the registration. A failure of step 5 keeps the segment: the next attempt
//! registers the same one again, because the first may have reached the manifest after all.

use std::sync::Arc;

use terrane_base::env::Step;
use terrane_base::sync::Mutex;
use terrane_base::sync::atomic::Ordering;
use terrane_base::{Error, Kind, Result, SegmentId, SeqNo};
use terrane_device::{File, OpenMode, Region, SegmentMemory};

use super::{Live, Shared, State};
use crate::{SegmentInfo, SegmentSpec, SegmentState};

/// Body of the preparer's thread.
pub(super) fn run(shared: &Shared) {
    // Also when a registrar panics: who waits for a segment must not wait for ever.
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
    /// One turn of the preparer where it has no thread.
    pub(super) fn prepare_step(&self) -> Step {
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

    fn prepare_wanted(&self, bytes: u64) {
        let prepared = self.prepare(bytes.max(self.settings.segment_bytes));
        let mut state = self.state.lock();
        match prepared {
            Ok(live) => state.ready = Some(live),
            Err(error) => state.refused = Some(error),
        }
        state.wanted = None;
        drop(state);
        self.changed.notify_all();
    }

    /// Bytes of the next segment, once one is wanted; `None` when the journal stops.
    fn await_wanted(&self) -> Option<u64> {
        let mut state = self.state.lock();
        loop {
            if state.is_stopping {
                return None;
            }
            match state.due() {
                Some(bytes) => return Some(bytes),
                None => self.changed.wait(&mut state),
            }
        }
    }

    fn prepare(&self, bytes: u64) -> Result<Live> {
        let pending = take(&self.state, |state| state.pending.take());
        let live = match pending {
            Some(live) if live.info.bytes >= bytes => live,
            Some(mut small) => {
                small.info.state = SegmentState::Unused;
                self.state.lock().live.push_back(small);
                self.make(bytes)?
            }
            None => self.make(bytes)?,
        };
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
        let (number, file) = match self.open_spare(bytes) {
            Some(spare) => spare,
            None => self.create(bytes)?,
        };
        let id = take(&self.state, |state| {
            state.next_segment += 1;
            SegmentId(state.next_segment - 1)
        });
        let mapped = self.map(&*file, bytes as usize);
        let region = mapped.inspect_err(|_| self.state.lock().spares.push((number, bytes)))?;
        let info =
            SegmentInfo { id, file: number, state: SegmentState::Unused, bytes, used: 0, last_seq: SeqNo(0) };
        Ok(Live { info, file: Some(file), memory: Arc::new(SegmentMemory { id, region }) })
    }

    /// Maps a file and fills it in. Pages filled in for writing spare each commit a quarter of its time, but are
    /// dirty: the next sync would write the whole segment. So where syncs are asked for, only the page cache is
    /// filled, and the first store to a page takes a fault that needs no device.
    fn map(&self, file: &dyn File, bytes: usize) -> Result<Region> {
        // Relaxed: a hint.
        if self.was_persisted.swap(false, Ordering::Relaxed) {
            file.map(bytes, false)?.prefault()?;
            return file.map(bytes, true);
        }
        let region = file.map(bytes, true)?;
        region.prefault()?;
        Ok(region)
    }

    fn create(&self, bytes: u64) -> Result<(u32, Arc<dyn File>)> {
        let number = take(&self.state, |state| {
            state.next_file += 1;
            state.next_file - 1
        });
        let path = self.path(number);
        let file = self.disk.open(&path, OpenMode::Create, false)?;
        let made = file.allocate(0, bytes).and_then(|()| file.sync()).and_then(|()| self.sync_entries());
        match made {
            Ok(()) => Ok((number, file)),
            Err(error) => {
                // What was reserved in part must not keep the device full. The error that matters is the first.
                let _ = self.disk.remove(&path);
                Err(self.explain(error, bytes))
            }
        }
    }

    fn sync_entries(&self) -> Result<()> {
        if terrane_base::planted!(SkipSegmentDirectorySync) { Ok(()) } else { self.disk.sync_dir(&self.dir) }
    }

    /// A spare file of the right size, its space checked. One that cannot be used is removed.
    fn open_spare(&self, bytes: u64) -> Option<(u32, Arc<dyn File>)> {
        self.recycle();
        while let Some(number) = take(&self.state, |state| {
            let index = state.spares.iter().position(|&(_, spare_bytes)| spare_bytes == bytes)?;
            Some(state.spares.swap_remove(index).0)
        }) {
            let path = self.path(number);
            let opened = self.disk.open(&path, OpenMode::Write, false);
            let usable = opened.and_then(|file| {
                let has_length = file.len()? == bytes;
                file.allocate(0, bytes)?;
                Ok(has_length.then_some(file))
            });
            if let Ok(Some(file)) = usable {
                return Some((number, file));
            }
            // Gone, cut or without space: a new file is tried next and reports what is wrong.
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
    /// Bytes of the segment to be prepared now.
    fn due(&self) -> Option<u64> {
        self.wanted.filter(|_| self.ready.is_none())
    }
}

/// Runs `f` under the lock, for one expression.
fn take<S, T>(state: &Mutex<S>, f: impl FnOnce(&mut S) -> T) -> T {
    f(&mut state.lock())
}
