//! Reads the groups of one segment from its file, one after the other, also while commits append to it.
//!
//! The file is not mapped and not protected from reuse. Every group is checked, and its checksums depend on
//! segment and database, so bytes of another segment in a recycled file, or of a group that is being written,
//! are never accepted. If no valid group follows, it may come later, or be gone: the caller knows which.

use std::path::Path;
use std::sync::Arc;

use terrane_base::{Error, Kind, Result, SegmentId, SeqNo};
use terrane_device::{Disk, File, OpenMode};
use terrane_format::segment::{
    self, Batches, GROUP_HEADER_BYTES, Group, GroupHeader, SEGMENT_HEADER_BYTES, SegmentHeader,
};

use crate::SegmentSpec;

/// Bytes read at once of a segment that accepts no further groups.
const READ_BYTES: usize = 256 << 10;

/// A position between two groups of a segment.
#[derive(Debug)]
pub struct SegmentReader {
    file: Arc<dyn File>,
    header: SegmentHeader,
    seed: u32,
    /// End of the bytes that may hold groups.
    end: u64,
    /// True if no further groups come, so that the reader may read far ahead.
    is_whole: bool,
    at: u64,
    last_seq: SeqNo,
    buf: Vec<u8>,
    buf_at: u64,
}

/// A batch in a group that was read.
#[derive(Clone, Debug)]
pub struct ReadBatch {
    group: Arc<[u8]>,
    batch: segment::Batch,
}

impl ReadBatch {
    /// Number of its first record.
    #[must_use]
    pub fn first_seq(&self) -> SeqNo {
        self.batch.first_seq
    }

    /// Number of its last record.
    #[must_use]
    pub fn last_seq(&self) -> SeqNo {
        SeqNo(self.batch.first_seq.0 + u64::from(self.batch.record_count.max(1)) - 1)
    }

    /// Number of its records.
    #[must_use]
    pub fn record_count(&self) -> u32 {
        self.batch.record_count
    }

    /// Its encoded records, back to back.
    #[must_use]
    pub fn records(&self) -> &[u8] {
        &self.group[self.batch.offset..self.batch.offset + self.batch.len]
    }
}

impl SegmentReader {
    /// Opens the segment `spec` in directory `dir` of a database with this `salt`, before its first group.
    /// `None` if its file is missing or does not hold its header at the moment. Groups end at `end`, if that
    /// is known; a segment that `is_whole` accepts no further groups.
    ///
    /// # Errors
    /// `Corrupt` if the file is shorter than it should be; `Io`.
    pub fn open(
        disk: &dyn Disk,
        dir: &Path,
        spec: &SegmentSpec,
        salt: u32,
        end: Option<u64>,
        is_whole: bool,
    ) -> Result<Option<SegmentReader>> {
        let path = dir.join(spec.file_name());
        let file = match disk.open(&path, OpenMode::Read, false) {
            Err(error) if error.kind() == Kind::NotFound => return Ok(None),
            opened => opened?,
        };
        let (found, expected) = (file.len()?, end.unwrap_or(spec.bytes));
        if expected < SEGMENT_HEADER_BYTES as u64 {
            let message = format!("segment {}: its end {expected} lies within its header", spec.id);
            return Err(Error::corrupt(message).at(path.display().to_string(), 0));
        }
        if found < expected {
            let message = format!("segment {}: expected {expected} bytes, found {found}", spec.id);
            return Err(Error::corrupt(message).at(path.display().to_string(), found));
        }
        let mut front = [0; SEGMENT_HEADER_BYTES];
        file.read_at(0, &mut front)?;
        let Ok((header, _)) = SegmentHeader::decode(&front) else { return Ok(None) };
        let is_own = (header.id, header.file, header.bytes) == (spec.id, spec.file, spec.bytes);
        if !is_own || header.salt.is_some_and(|other| other != salt) {
            return Ok(None);
        }
        Ok(Some(SegmentReader {
            file,
            seed: segment::segment_seed(header.id, header.salt),
            end: expected,
            is_whole,
            at: SEGMENT_HEADER_BYTES as u64,
            last_seq: header.previous.last_seq,
            header,
            buf: Vec::new(),
            buf_at: 0,
        }))
    }

    /// The segment's id.
    #[must_use]
    pub fn id(&self) -> SegmentId {
        self.header.id
    }

    /// Number of its first record, if it has one.
    #[must_use]
    pub fn first_seq(&self) -> SeqNo {
        SeqNo(self.header.previous.last_seq.0 + 1)
    }

    /// Number of the last record before the position.
    #[must_use]
    pub fn last_seq(&self) -> SeqNo {
        self.last_seq
    }

    /// Reads the batches of the next group that has any, and moves after it. Returns `None`, and does not
    /// move, if no valid group follows at the moment.
    ///
    /// # Errors
    /// `Io`.
    pub fn next_group(&mut self) -> Result<Option<Vec<ReadBatch>>> {
        loop {
            let Some((header, group)) = self.read_group()? else {
                // Bytes read ahead may be outdated at the next call.
                self.buf.clear();
                return Ok(None);
            };
            self.at += u64::from(header.len);
            debug_assert!(self.at <= self.end, "a group was accepted behind the end of the segment");
            debug_assert!(header.last_seq() >= self.last_seq, "numbers ascend over the groups");
            self.last_seq = header.last_seq();
            if header.batch_count > 0 {
                let batches = Batches::new(&group, &Group { offset: 0, header });
                return Ok(Some(batches.map(|batch| ReadBatch { group: group.clone(), batch }).collect()));
            }
        }
    }

    /// `Corrupt`: a record that must exist is missing.
    #[must_use]
    pub fn damaged(&self) -> Error {
        let message = format!(
            "segment {}: expected a group starting with sequence number {}, found no valid one",
            self.header.id,
            self.last_seq.0 + 1
        );
        Error::corrupt(message).at(self.file.path().display().to_string(), self.at)
    }

    fn read_group(&mut self) -> Result<Option<(GroupHeader, Arc<[u8]>)>> {
        debug_assert!(self.at <= self.end, "the position {} is behind the end {}", self.at, self.end);
        let (at, left) = (self.at, (self.end - self.at) as usize);
        let (seed, expected) = (self.seed, self.last_seq.0 + 1);
        let Some(front) = self.bytes(GROUP_HEADER_BYTES)? else { return Ok(None) };
        let front = front.first_chunk().expect("so many bytes were asked for");
        let Some((header, checksum)) = GroupHeader::decode_front(front, left, seed, at) else {
            return Ok(None);
        };
        if header.first_seq.0 != expected {
            return Ok(None);
        }
        let Some(group) = self.group(header.len as usize)? else { return Ok(None) };
        let checked = segment::check_batches(&group, at as usize, (&header, checksum), 0);
        Ok(checked.is_ok().then_some((header, group)))
    }

    /// The bytes of a group. A long one is read to where it stays: it would be there twice otherwise, and the
    /// buffer would be as long from then on.
    fn group(&mut self, len: usize) -> Result<Option<Arc<[u8]>>> {
        debug_assert!(self.at <= self.end, "groups end at {}, and one begins at {}", self.end, self.at);
        if len <= READ_BYTES || len as u64 > self.end - self.at {
            return Ok(self.bytes(len)?.map(Arc::from));
        }
        let mut group: Arc<[u8]> = std::iter::repeat_n(0, len).collect();
        let bytes = Arc::get_mut(&mut group).expect("it was made just now");
        self.file.read_at(self.at, bytes)?;
        debug_assert!(self.buf.len() <= READ_BYTES, "the buffer has {} bytes", self.buf.len());
        Ok(Some(group))
    }

    /// The next `len` bytes; `None` if the segment ends before that.
    fn bytes(&mut self, len: usize) -> Result<Option<&[u8]>> {
        let left = self.end - self.at;
        if len as u64 > left {
            return Ok(None);
        }
        let is_there = self.buf_at <= self.at && self.at + len as u64 <= self.buf_at + self.buf.len() as u64;
        if !is_there {
            // While a segment is written, the reader does not read ahead into bytes that a writer may be
            // writing.
            let ahead = if self.is_whole { READ_BYTES } else { 0 };
            let wanted = (len.max(ahead) as u64).min(left) as usize;
            self.buf.clear();
            self.buf.resize(wanted, 0);
            self.buf_at = self.at;
            self.file.read_at(self.at, &mut self.buf).inspect_err(|_| self.buf.clear())?;
        }
        debug_assert!(self.buf_at <= self.at, "the bytes before the position were read");
        let from = (self.at - self.buf_at) as usize;
        debug_assert!(from + len <= self.buf.len(), "as many bytes as were asked for are there");
        Ok(Some(&self.buf[from..from + len]))
    }
}
