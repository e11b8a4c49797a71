//! The journal in persistent memory: segments are zones, and every commit group is durable by one fence.
//!
//! * [`ZoneDisk`]: segment files as zones of a region, for all that reads and writes segments as files.
//! * [`PmJournal`]: the ring over such a disk where a fence is cheap. There is no log beside the segments,
//!   and a commit without `sync` is as durable as one with it. Where a fence writes to a device (a plain file
//!   as a region), [`FileJournal`](crate::FileJournal) does: it syncs where a member of a group asks for it.
//! * [`Pool`]: the file with the region, opened for one database.
//! * [`SalvagedPool`]: what a repair can read of it.
//!
//! # A group
//! The members copy, with plain stores, as into a mapped file. The leader flushes the lines of the group
//! once all copies are done, and makes one fence; then the members index. `clwb` of the leader covers the
//! stores of the others, as they happened before.
//!
//! # A segment
//! The preparer grants the zone of the next segment, and then registers it, while the active one fills; a
//! rotation takes the ready segment. A trim removes a segment after the edit that drops it; its zone goes
//! back once no reader is left. Both orders are those of the journal in files, whose code does it.
//!
//! A full region fails a group before it has a number: nothing of it is in a segment, and later groups may
//! succeed. With a fallback, the next segment is an ordinary file; while that one is active, only groups with
//! a member that asks are durable, and the first group after it makes it durable first.

mod disk;
mod pool;
mod salvage;
mod zone_file;

use std::path::Path;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::sync::Mutex;
use terrane_base::sync::atomic::{AtomicBool, Ordering};
use terrane_base::{Batch, Result, SegmentId, SeqNo};
use terrane_device::{Disk, File, SegmentMemory};

use crate::delegate::{delegate_files, delegate_journal};
use crate::file::{FileMedium, open_ring};
use crate::medium::{Medium, NewSegment, SealedEnd};
use crate::{
    Appended, Journal, JournalSettings, JournalStart, LiveMemory, Placed, RingJournal, SegmentInfo,
    SegmentRegistrar,
};

pub use disk::ZoneDisk;
pub use pool::{CHUNK_BYTES, Pool, PoolSettings, begin_epoch};
pub use salvage::SalvagedPool;

/// The journal in persistent memory. See [`Journal`] for the calls.
#[derive(Debug)]
pub struct PmJournal(RingJournal<PmMedium>);

delegate_journal!(PmJournal);

impl PmJournal {
    /// As [`FileJournal::open`](crate::FileJournal::open), on a disk whose segment files have
    /// [`File::lines`], such as a [`ZoneDisk`].
    ///
    /// # Errors
    /// As [`FileJournal::open`](crate::FileJournal::open).
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        settings: &JournalSettings,
        env: &Env,
        registrar: Arc<dyn SegmentRegistrar>,
        start: &JournalStart,
    ) -> Result<PmJournal> {
        open_ring(disk, dir, (settings, start), env, registrar, PmMedium::new).map(PmJournal)
    }
}

/// Segment files in persistent memory, or beside it where that is full.
struct PmMedium {
    files: FileMedium,
    /// The file of the active segment. Only the leader takes the lock.
    active: Mutex<Option<Arc<dyn File>>>,
    /// The active segment is in persistent memory. Written by the leader.
    has_lines: AtomicBool,
    /// A segment before the active one is an ordinary file, and was not synced yet. Written by the leader.
    sync_is_due: AtomicBool,
}

impl AsRef<FileMedium> for PmMedium {
    fn as_ref(&self) -> &FileMedium {
        &self.files
    }
}

impl PmMedium {
    fn new(files: FileMedium) -> Self {
        let (has_lines, sync_is_due) = (AtomicBool::new(false), AtomicBool::new(false));
        PmMedium { files, active: Mutex::new(None), has_lines, sync_is_due }
    }
}

impl Medium for PmMedium {
    delegate_files!();

    fn rotate(&self, bytes: usize, sealed: Option<&SealedEnd>) -> Result<NewSegment> {
        let new = self.files.rotate(bytes, sealed)?;
        debug_assert!(new.memory.region.len() >= bytes, "a zone has whole chunks, and never fewer bytes");
        let file = self.files.active_file();
        assert!(file.is_some(), "the active segment was made by this opening, so it has a file");
        let has_lines = file.as_ref().is_some_and(|file| file.lines().is_some());
        // Relaxed, here and below: only the leader reads and writes them, and the lead passes on with all
        // writes.
        let leaves_file = sealed.is_some() && !self.has_lines.load(Ordering::Relaxed);
        self.sync_is_due.fetch_or(leaves_file, Ordering::Relaxed);
        self.has_lines.store(has_lines, Ordering::Relaxed);
        *self.active.lock() = file;
        Ok(new)
    }

    fn seal(&self, sealed: &SealedEnd) -> bool {
        // As a rotation does. A fence is the same by any file, so the last one stays for it.
        let leaves_file = !self.has_lines.load(Ordering::Relaxed);
        let is_sealed = self.files.seal(sealed);
        self.sync_is_due.fetch_or(is_sealed && leaves_file, Ordering::Relaxed);
        is_sealed
    }

    fn write(&self, segment: &SegmentMemory, offset: usize, len: usize) -> Result<()> {
        assert!(offset + len <= segment.region.len(), "lines behind the segment may be another one's");
        self.files.write(segment, offset, len)?;
        if terrane_base::planted!(SkipGroupFlush) {
            return Ok(());
        }
        match &*self.active.lock() {
            Some(file) if let Some(lines) = file.lines() => lines.flush(offset as u64, len as u64),
            _ => Ok(()),
        }
    }

    fn persists_groups(&self) -> bool {
        self.has_lines.load(Ordering::Relaxed)
    }

    fn persist(&self) -> Result<()> {
        if !self.has_lines.load(Ordering::Relaxed) {
            return self.files.persist();
        }
        if self.sync_is_due.swap(false, Ordering::Relaxed) && !terrane_base::planted!(ForgetFallbackSync) {
            self.files.persist()?;
        }
        if terrane_base::planted!(SkipGroupFence) {
            return Ok(());
        }
        let active = self.active.lock();
        let lines = active.as_ref().and_then(|file| file.lines());
        assert!(lines.is_some(), "without a fence the group would be acknowledged and not durable");
        lines.map_or(Ok(()), |lines| lines.fence())
    }

    fn persist_through(&self, seq: SeqNo) -> Result<()> {
        // The fence of one thread covers no stores of the leader. Visible groups were made durable by their
        // leader, except for groups in ordinary files.
        self.files.persist_through(seq)
    }

    fn trim(&self, upto: SegmentId) -> Result<Vec<SegmentId>> {
        self.files.trim(upto)
    }

    fn trim_keeping(&self, upto: SegmentId, kept: &[SegmentId]) -> Result<Vec<SegmentId>> {
        self.files.trim_keeping(upto, kept)
    }

    fn stop(&self) {
        self.files.stop();
    }
}
