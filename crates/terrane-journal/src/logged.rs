//! The journal in files with a [`CommitLog`] beneath its persist step.
//!
//! The files are the working copy: replay, readers and history read them. They are never synced: a commit is
//! durable once the log has it. An unsynced commit survives the death of the process in the files, as it does
//! without a log, and gets to the log in the background.
#![expect(unsafe_code, reason = "reads segment memory that the leader has written")]

use std::path::Path;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::{Batch, Result, SegmentId, SeqNo};
use terrane_device::{Disk, SegmentMemory};

use crate::delegate::{delegate_files, delegate_journal};
use crate::file::{FileMedium, open_ring};
use crate::medium::{Medium, NewSegment, SealedEnd};
use crate::{
    Appended, CommitLog, Journal, JournalSettings, JournalStart, LiveMemory, Placed, RingJournal,
    SealedSegment, SegmentInfo, SegmentRegistrar,
};

/// The journal in files with a log. See [`Journal`] for the calls.
#[derive(Debug)]
pub struct LoggedJournal(RingJournal<LoggedMedium>);

delegate_journal!(LoggedJournal);

impl LoggedJournal {
    /// As [`FileJournal::open`](crate::FileJournal::open), with a log that has all of what was replayed
    /// ([`complete_log`](crate::complete_log)).
    ///
    /// # Errors
    /// As [`FileJournal::open`](crate::FileJournal::open).
    pub fn open(
        (disk, log): (Arc<dyn Disk>, Arc<dyn CommitLog>),
        dir: &Path,
        settings: &JournalSettings,
        env: &Env,
        registrar: Arc<dyn SegmentRegistrar>,
        start: &JournalStart,
    ) -> Result<LoggedJournal> {
        let wrap = |files| LoggedMedium { files, log };
        open_ring(disk, dir, (settings, start), env, registrar, wrap).map(LoggedJournal)
    }
}

/// Segment files, and the log that has their bytes.
struct LoggedMedium {
    files: FileMedium,
    log: Arc<dyn CommitLog>,
}

impl AsRef<FileMedium> for LoggedMedium {
    fn as_ref(&self) -> &FileMedium {
        &self.files
    }
}

impl SealedSegment {
    /// Valid bytes of it.
    pub(crate) fn bytes(&self, range: std::ops::Range<usize>) -> &[u8] {
        assert!(range.start <= range.end && range.end as u64 <= self.end, "{range:?} of {} bytes", self.end);
        // SAFETY: the bytes up to `end`, which lies within the region, were replayed and are never written
        // again.
        unsafe { self.memory.region.slice(range.start, range.len()) }
    }
}

impl Medium for LoggedMedium {
    delegate_files!();

    fn rotate(&self, bytes: usize, sealed: Option<&SealedEnd>) -> Result<NewSegment> {
        self.files.rotate(bytes, sealed)
    }

    fn seal(&self, sealed: &SealedEnd) -> bool {
        self.files.seal(sealed)
    }

    fn write(&self, segment: &SegmentMemory, offset: usize, len: usize) -> Result<()> {
        self.files.write(segment, offset, len)?;
        assert!(offset + len <= segment.region.len(), "bytes behind the segment are not of it");
        // SAFETY: the leader calls, which alone writes to the active segment; the bytes lie within it, are
        // complete, and do not change any more.
        let bytes = unsafe { segment.region.slice(offset, len) };
        self.log.append(segment.id, offset as u64, bytes)
    }

    fn persist(&self) -> Result<()> {
        self.log.persist()
    }

    fn persist_through(&self, _seq: SeqNo) -> Result<()> {
        self.log.persist()
    }

    fn trim(&self, upto: SegmentId) -> Result<Vec<SegmentId>> {
        self.trim_keeping(upto, &[])
    }

    fn trim_keeping(&self, upto: SegmentId, kept: &[SegmentId]) -> Result<Vec<SegmentId>> {
        let trimmed = self.files.trim_keeping(upto, kept)?;
        debug_assert!(trimmed.iter().all(|id| *id <= upto), "only what was asked for: {trimmed:?}");
        if let Some(last) = trimmed.last() {
            self.log.trim(*last);
        }
        Ok(trimmed)
    }

    fn stop(&self) {
        self.files.stop();
        self.log.stop();
    }
}
