//! A consistent view of the journal at one moment, and its copy for another database.
//!
//! 1. Between two groups: list the live segments, their used bytes, and the number of the last record.
//! 2. While commits continue: check the used bytes and write them as segments of the other database, sealed.
//!
//! An excerpt keeps its segments' memory alive, and therefore their files are not reused.
#![expect(unsafe_code, reason = "reads segment memory that no thread writes")]

use std::path::Path;
use std::sync::Arc;

use terrane_base::{Error, Result, SegmentId, SeqNo};
use terrane_device::{Disk, File, OpenMode, SegmentMemory};
use terrane_format::segment::{ChainLink, Groups, SEGMENT_HEADER_BYTES, SegmentHeader, transcribe};

use crate::{SegmentSeal, SegmentSpec};

/// The content of the journal at a moment between two groups.
#[derive(Clone, Debug)]
pub struct Excerpt {
    /// Number of the last record of the journal.
    last_seq: SeqNo,
    /// The segments in use, oldest first, each with its number of used bytes.
    segments: Vec<(Arc<SegmentMemory>, u64)>,
}

/// A segment that [`Excerpt::write`] made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenSegment {
    /// Its id and its file.
    pub spec: SegmentSpec,
    /// Its end.
    pub seal: SegmentSeal,
    /// Running checksum up to its end.
    pub checksum: u32,
}

impl Excerpt {
    /// Requires: every group in the first `used` bytes of each segment is complete, and no other group holds
    /// records up to `last_seq`.
    pub(crate) fn new(last_seq: SeqNo, mut segments: Vec<(Arc<SegmentMemory>, u64)>) -> Excerpt {
        assert!(
            segments.is_sorted_by(|(a, _), (b, _)| a.id < b.id),
            "a copy holds the segments in their order"
        );
        let is_inside = |(memory, used): &(Arc<SegmentMemory>, u64)| *used <= memory.region.len() as u64;
        assert!(segments.iter().all(is_inside), "a segment uses at most all of its bytes");
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

    /// Writes the journal of a database with this `salt` into the directory `dir`, which exists and is empty.
    /// The segments accept no further records. Durable on return, except for the entry of `dir` itself.
    ///
    /// # Errors
    /// `Corrupt` if the memory does not hold what the journal wrote; `Full`, `Io`.
    pub fn write(&self, disk: &dyn Disk, dir: &Path, salt: u32) -> Result<Vec<WrittenSegment>> {
        let mut writer = SegmentWriter::new(disk, dir, salt);
        let written = self.segments().map(|(id, source)| writer.put(id, source)).collect::<Result<_>>()?;
        writer.finish(self.last_seq)?;
        Ok(written)
    }

    /// The segments in use, oldest first, each with its used bytes.
    pub fn segments(&self) -> impl Iterator<Item = (SegmentId, &[u8])> {
        self.segments.iter().map(|(memory, used)| {
            // SAFETY: by the requirement of `new` the groups up to there are whole, and placed bytes are
            // never written again; the memory lives as long as `memory`.
            (memory.id, unsafe { memory.region.slice(0, *used as usize) })
        })
    }
}

/// Writes segments as the journal of another database.
#[derive(Debug)]
pub struct SegmentWriter<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    salt: u32,
    /// Number of the next file.
    file: u32,
    /// The previous segment.
    link: Option<ChainLink>,
}

impl<'a> SegmentWriter<'a> {
    /// Writes into the directory `dir`, which exists and is empty, for a database with this `salt`.
    #[must_use]
    pub fn new(disk: &'a dyn Disk, dir: &'a Path, salt: u32) -> Self {
        SegmentWriter { disk, dir, salt, file: 1, link: None }
    }

    /// Writes the segment `id`; `source` is its valid part. Segments come oldest first.
    ///
    /// # Errors
    /// `Corrupt` if `source` is not valid to its end or is another segment; `Full`, `Io`.
    pub fn put(&mut self, id: SegmentId, source: &[u8]) -> Result<WrittenSegment> {
        let spec = SegmentSpec { id, file: self.file, bytes: source.len() as u64 };
        let damaged = |error: Error| error.context(format!("segment {id}"));
        let (header, _) = Groups::new(source).map_err(damaged)?;
        if header.id != id {
            return Err(damaged(Error::corrupt(format!("its header has {}", header.id))));
        }
        let (file, bytes) = (spec.file, spec.bytes);
        let previous = self.link.unwrap_or(header.previous);
        let header = SegmentHeader { id, file, bytes, previous, edit: 0, salt: Some(self.salt) };
        let made = self.disk.open(&self.dir.join(spec.file_name()), OpenMode::Create, false)?;
        let mut at = 0;
        let end =
            transcribe(source, &header, &mut |piece| append(&*made, &mut at, piece)).map_err(damaged)?;
        made.sync()?;
        assert!(at <= bytes, "the copy of {id} is longer than its header says: {at} bytes");
        self.file += 1;
        self.link = Some(ChainLink { id, last_seq: end.last_seq, checksum: end.checksum });
        let seal = SegmentSeal { end: at, last_seq: end.last_seq };
        Ok(WrittenSegment { spec, seal, checksum: end.checksum })
    }

    /// Checks that the last segment ends with `last_seq`, and makes the directory's entries durable.
    ///
    /// # Errors
    /// `Corrupt` if it does not; `Io`.
    pub fn finish(self, last_seq: SeqNo) -> Result<()> {
        if let Some(link) = self.link.filter(|link| link.last_seq != last_seq) {
            return Err(Error::corrupt(format!(
                "the copied journal ends with {}, expected {last_seq}",
                link.last_seq
            )));
        }
        self.disk.sync_dir(self.dir)
    }
}

fn append(file: &dyn File, at: &mut u64, piece: &[u8]) -> Result<()> {
    file.write_at(*at, piece)?;
    *at += piece.len() as u64;
    Ok(())
}

/// A segment of a medium: id, used bytes as far as the medium knows, memory.
pub type LiveMemory = (SegmentId, u64, Arc<SegmentMemory>);
