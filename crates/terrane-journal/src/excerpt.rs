//! What the journal holds at a moment, and its copy for another database.
//!
//! 1. between two groups: the live segments, how far each is used, and the number of the last record
//! 2. while commits go on: the used parts are checked and written again as segments of the other database, sealed.
//!
//! Whoever has an excerpt keeps its memory, and with that the files below it are not reused.
#![expect(unsafe_code, reason = "reads segment memory that nobody writes")]

use std::path::Path;
use std::sync::Arc;

use terrane_base::{Error, Result, SegmentId, SeqNo};
use terrane_device::{Disk, File, OpenMode, SegmentMemory};
use terrane_format::segment::{ChainLink, Groups, SEGMENT_HEADER_BYTES, SegmentHeader, transcribe};

use crate::{SegmentSeal, SegmentSpec};

/// What the journal held at a moment between two groups.
#[derive(Clone, Debug)]
pub struct Excerpt {
    /// Number of the last record of the journal.
    last_seq: SeqNo,
    /// The segments in use, oldest first, each with the bytes of it that are.
    segments: Vec<(Arc<SegmentMemory>, u64)>,
}

/// A segment that [`Excerpt::write`] made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenSegment {
    /// Which segment it is, and its file.
    pub spec: SegmentSpec,
    /// How it ends.
    pub seal: SegmentSeal,
    /// Running checksum up to there.
    pub checksum: u32,
}

impl Excerpt {
    /// Requires: every group in the first `used` bytes of each segment is whole, and there is no other up to `last_seq`.
    pub(crate) fn new(last_seq: SeqNo, mut segments: Vec<(Arc<SegmentMemory>, u64)>) -> Excerpt {
        segments.retain(|(_, used)| *used > SEGMENT_HEADER_BYTES as u64);
        Excerpt { last_seq, segments }
    }

    /// Number of the last record of the journal.
    #[must_use]
    pub fn last_seq(&self) -> SeqNo {
        self.last_seq
    }

    /// Bytes in all.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|(_, used)| used).sum()
    }

    /// Writes it into the directory `dir`, which exists and is empty, as the journal of a database of this `salt`:
    /// segments that need no further record. Durable on return, but for the entry of `dir` itself.
    ///
    /// # Errors
    /// `Corrupt` if the memory is not what the journal wrote; `Full`, `Io`.
    pub fn write(&self, disk: &dyn Disk, dir: &Path, salt: u32) -> Result<Vec<WrittenSegment>> {
        let mut written = Vec::new();
        let mut link: Option<ChainLink> = None;
        for ((memory, used), file) in self.segments.iter().zip(1..) {
            let segment = write_segment(disk, dir, (memory, *used), file, salt, link)?;
            let id = segment.spec.id;
            link = Some(ChainLink { id, last_seq: segment.seal.last_seq, checksum: segment.checksum });
            written.push(segment);
        }
        if let Some(link) = link.filter(|link| link.last_seq != self.last_seq) {
            return Err(Error::corrupt(format!(
                "the journal in memory ends with {}, expected {}: close the database and open it again",
                link.last_seq, self.last_seq
            )));
        }
        disk.sync_dir(dir)?;
        Ok(written)
    }
}

fn write_segment(
    disk: &dyn Disk,
    dir: &Path,
    (memory, used): (&SegmentMemory, u64),
    file: u32,
    salt: u32,
    link: Option<ChainLink>,
) -> Result<WrittenSegment> {
    let spec = SegmentSpec { id: memory.id, file, bytes: used };
    // SAFETY: by the requirement of `new` the groups up to there are whole, and what is placed is never written again;
    // the memory lives as long as `memory`.
    let source = unsafe { memory.region.slice(0, used as usize) };
    let damaged = |error: Error| error.context(format!("segment {} in memory", spec.id));
    let (header, _) = Groups::new(source).map_err(damaged)?;
    let (id, bytes) = (spec.id, spec.bytes);
    let header = SegmentHeader {
        id,
        file,
        bytes,
        previous: link.unwrap_or(header.previous),
        edit: 0,
        salt: Some(salt),
    };
    let made = disk.open(&dir.join(spec.file_name()), OpenMode::Create, false)?;
    let mut at = 0;
    let end = transcribe(source, &header, &mut |piece| append(&*made, &mut at, piece)).map_err(damaged)?;
    made.sync()?;
    let seal = SegmentSeal { end: at, last_seq: end.last_seq };
    Ok(WrittenSegment { spec, seal, checksum: end.checksum })
}

fn append(file: &dyn File, at: &mut u64, piece: &[u8]) -> Result<()> {
    file.write_at(*at, piece)?;
    *at += piece.len() as u64;
    Ok(())
}

/// A segment of a medium: id, bytes in use as far as the medium knows, memory.
pub type LiveMemory = (SegmentId, u64, Arc<SegmentMemory>);
