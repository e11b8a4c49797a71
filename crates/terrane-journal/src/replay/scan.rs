//! Scans one segment.
#![expect(unsafe_code, reason = "reads segment memory that no thread writes")]

use std::path::Path;
use std::sync::Arc;

use terrane_base::{Error, Kind, Result, SeqNo, verify};
use terrane_device::{Disk, File, OpenMode, Region, SegmentMemory};
use terrane_format::segment::{self, GroupHeader, Groups, SegmentHeader, Walk};

use super::ListedSegment;
use crate::{ChainLink, SealedSegment};

/// Bytes read at once while a segment is checked for I/O errors.
const READ_BYTES: usize = 256 << 10;
/// Bytes after which a new piece starts.
const PIECE_BYTES: usize = 1 << 20;

/// The content of one segment.
pub(super) struct Scan {
    pub(super) listed: ListedSegment,
    pub(super) path: String,
    pub(super) file: Arc<dyn File>,
    pub(super) memory: Arc<SegmentMemory>,
    /// The header, or the reason why this segment has none.
    pub(super) header: std::result::Result<SegmentHeader, String>,
    /// The state after the last valid group.
    pub(super) end: Walk,
    pub(super) pieces: Vec<Piece>,
    /// The reason why the valid groups end.
    pub(super) stop_reason: String,
    /// True if bytes of this segment follow its valid groups.
    pub(super) has_more: bool,
    /// The greatest durable-end mark in it.
    pub(super) durable: Option<SeqNo>,
    /// The last manifest edit that its header or one of its valid marks names.
    pub(super) edit: u64,
}

/// Whole groups of a segment: a range of offsets.
pub(super) struct Piece {
    pub(super) from: usize,
    pub(super) to: usize,
}

impl Scan {
    pub(super) fn link(&self) -> ChainLink {
        ChainLink { id: self.listed.spec.id, last_seq: self.end.last_seq, checksum: self.end.checksum }
    }

    pub(super) fn sealed(&self) -> SealedSegment {
        assert!(self.end.offset <= self.memory.region.len(), "the valid part lies in the segment");
        SealedSegment {
            spec: self.listed.spec,
            end: self.end.offset as u64,
            last_seq: self.end.last_seq,
            checksum: self.end.checksum,
            memory: Arc::clone(&self.memory),
        }
    }

    /// The valid part of the segment.
    pub(super) fn bytes(&self) -> &[u8] {
        counted(&self.memory, &self.listed)
    }
}

fn counted<'a>(memory: &'a SegmentMemory, listed: &ListedSegment) -> &'a [u8] {
    let len = listed.seal.map_or(memory.region.len(), |seal| seal.end as usize);
    // SAFETY: `len` is within the region: `open` has checked the seal. During replay only
    // `Scan::make_durable` writes segments; it writes the bytes that are there, and the part up to a sealed
    // end is never written again.
    unsafe { memory.region.slice(0, len) }
}

/// Step 1 of replay.
pub(super) fn scan(
    disk: &dyn Disk,
    dir: &Path,
    listed: &ListedSegment,
    mode: OpenMode,
    salt: u32,
) -> Result<Scan> {
    let spec = &listed.spec;
    let path = dir.join(spec.file_name());
    let shown = path.display().to_string();
    let file = open(disk, &path, &shown, listed, mode)?;
    read_through(&*file, listed)?;
    let region = file.map(spec.bytes as usize, false)?;
    let memory = Arc::new(SegmentMemory { id: spec.id, region });
    let bytes = counted(&memory, listed);
    let mut scan = Scan {
        listed: *listed,
        path: shown,
        file,
        header: own_header(bytes, listed, salt),
        end: Walk { offset: 0, last_seq: SeqNo(0), checksum: 0 },
        pieces: Vec::new(),
        stop_reason: String::new(),
        has_more: false,
        durable: None,
        edit: 0,
        memory: Arc::clone(&memory),
    };
    match &scan.header {
        Ok(_) => scan.walk(bytes)?,
        Err(reason) => scan.stop_reason.clone_from(reason),
    }
    // Also if the header is lost: marks after it tell a torn tail from corruption.
    if listed.seal.is_none() {
        let salt =
            scan.header.as_ref().map_or_else(|_| segment::lost_salt(bytes, salt), |header| header.salt);
        let behind = segment::durable_marks(bytes, spec.id, salt, scan.end.offset);
        scan.has_more = behind.is_some();
        scan.durable = scan.durable.max(behind);
    }
    scan.check_seal()?;
    Ok(scan)
}

impl Scan {
    fn walk(&mut self, bytes: &[u8]) -> Result<()> {
        let (header, mut groups) = Groups::new(bytes).map_err(|error| error.at(&*self.path, 0))?;
        let mut from = groups.walk().offset;
        self.edit = header.edit;
        while let Some(group) = groups.next() {
            self.edit = self.edit.max(header.edit.saturating_add(group.header.edits.into()));
            self.durable = self.durable.max(Some(group.header.durable));
            let to = groups.walk().offset;
            if to - from >= PIECE_BYTES {
                self.pieces.push(Piece { from, to });
                from = to;
            }
        }
        self.end = groups.walk();
        assert!(from <= self.end.offset && self.end.offset <= bytes.len(), "the walk left the segment");
        if self.end.offset > from {
            self.pieces.push(Piece { from, to: self.end.offset });
        }
        self.stop_reason = groups.stop_reason();
        verify!(self.pieces.windows(2).all(|pair| pair[0].to == pair[1].from), "pieces leave groups out");
        Ok(())
    }

    /// Makes the valid part durable. The part that was not known to be durable is written again first: a sync
    /// of it may have failed; then the system treats the pages as clean, and a sync alone would make nothing
    /// durable.
    pub(super) fn make_durable(&self, durable: SeqNo) -> Result<()> {
        assert!(self.listed.seal.is_none(), "readers may read a sealed part while it is written");
        let mut at = self.unsure_from(durable);
        while at < self.end.offset {
            let end = self.end.offset.min(at + READ_BYTES);
            // A copy, because the bytes lie in a mapping of the file that is written.
            let piece = self.bytes()[at..end].to_vec();
            self.file.write_at(at as u64, &piece)?;
            at = end;
        }
        self.file.sync()
    }

    /// Start of the first group that is not known to be durable; the header is durable with the first group
    /// that is.
    fn unsure_from(&self, durable: SeqNo) -> usize {
        let bytes = self.bytes();
        let (mut from, mut at) = (0, self.pieces.first().map_or(self.end.offset, |piece| piece.from));
        while at < self.end.offset
            && let Some(header) = GroupHeader::decode_known(bytes, at)
            && header.last_seq() <= durable
        {
            at += header.len as usize;
            // A mark has no record: if everything up to its number is durable, the mark need not be.
            if header.record_count > 0 {
                from = at;
            }
        }
        debug_assert!(from <= self.end.offset, "only valid groups are written again");
        from
    }

    /// Checks that everything an earlier replay recorded still exists.
    fn check_seal(&self) -> Result<()> {
        let Some(seal) = self.listed.seal else { return Ok(()) };
        let is_whole =
            self.header.is_ok() && (self.end.offset as u64, self.end.last_seq) == (seal.end, seal.last_seq);
        if is_whole || terrane_base::planted!(IgnoreRecordedEnd) {
            return Ok(());
        }
        let message = format!(
            "the segment was recovered up to {} at offset {}, but is valid only up to {}: {}",
            seal.last_seq, seal.end, self.end.last_seq, self.stop_reason
        );
        Err(Error::corrupt(message).at(&*self.path, self.end.offset as u64))
    }
}

fn open(
    disk: &dyn Disk,
    path: &Path,
    shown: &str,
    listed: &ListedSegment,
    mode: OpenMode,
) -> Result<Arc<dyn File>> {
    let spec = &listed.spec;
    let file = disk.open(path, mode, false).map_err(|error| match error.kind() {
        // It existed before the manifest named it, so its loss is not a torn tail.
        Kind::NotFound => Error::corrupt(format!(
            "segment {} is missing; if the journal is in persistent memory, name its pool (pmem_path)",
            spec.id
        ))
        .at(shown, 0),
        _ => error,
    })?;
    let found = file.len()?;
    if found < spec.bytes {
        let message = format!("segment {}: expected {} bytes, found {found}", spec.id, spec.bytes);
        return Err(Error::corrupt(message).at(shown, found));
    }
    let is_possible = |bytes: u64| (1..=segment::SEGMENT_BYTES_MAX).contains(&bytes);
    if !is_possible(spec.bytes) || listed.seal.is_some_and(|seal| seal.end > spec.bytes) {
        let message =
            format!("segment {} of {} bytes is listed with a size out of range", spec.id, spec.bytes);
        return Err(Error::corrupt(message).at(shown, 0));
    }
    Ok(file)
}

/// The header of the segment in the file at `path`, current or old, if it is valid.
///
/// # Errors
/// `NotFound`, `Io`.
pub fn segment_in_file(disk: &dyn Disk, path: &Path) -> Result<Option<SegmentHeader>> {
    let file = disk.open(path, OpenMode::Read, false)?;
    let mut bytes = [0; segment::SEGMENT_HEADER_BYTES];
    if file.len()? < bytes.len() as u64 {
        return Ok(None);
    }
    file.read_at(0, &mut bytes)?;
    Ok(SegmentHeader::decode(&bytes).ok().map(|(header, _)| header))
}

/// A mapped segment file that no process writes, for repair.
#[derive(Debug)]
pub struct SegmentBytes(Region);

impl SegmentBytes {
    /// Reads the file at `path` once, and maps up to `bytes_max` bytes of it.
    ///
    /// Requires: no process writes to the file or truncates it while this value lives.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    pub fn open(disk: &dyn Disk, path: &Path, bytes_max: u64) -> Result<SegmentBytes> {
        let file = disk.open(path, OpenMode::Read, false)?;
        let len = file.len()?.min(bytes_max).min(segment::SEGMENT_BYTES_MAX);
        read_bytes(&*file, len)?;
        // An empty file cannot be mapped.
        Ok(SegmentBytes(if len == 0 { Region::heap(0) } else { file.map(len as usize, false)? }))
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the whole region; by the requirement of `open` no thread writes to it.
        unsafe { self.0.slice(0, self.0.len()) }
    }
}

/// Reads the valid part, so that a device error occurs here and not as a signal in the mapping.
fn read_through(file: &dyn File, listed: &ListedSegment) -> Result<()> {
    read_bytes(file, listed.seal.map_or(listed.spec.bytes, |seal| seal.end))
}

fn read_bytes(file: &dyn File, len: u64) -> Result<()> {
    file.prefetch(0, len);
    let mut buf = vec![0; READ_BYTES.min(len as usize)];
    let mut offset = 0;
    while offset < len {
        let piece = ((len - offset) as usize).min(buf.len());
        file.read_at(offset, &mut buf[..piece])?;
        offset += piece as u64;
    }
    Ok(())
}

/// The header, if it is this segment's and not an old one in a recycled file.
fn own_header(bytes: &[u8], listed: &ListedSegment, salt: u32) -> std::result::Result<SegmentHeader, String> {
    let spec = &listed.spec;
    let (header, _) = SegmentHeader::decode(bytes).map_err(|error| error.message().to_owned())?;
    if (header.id, header.file, header.bytes) == (spec.id, spec.file, spec.bytes) {
        return match header.salt {
            Some(other) if other != salt => {
                Err(format!("segment of another database: expected salt {salt:08x}, found {other:08x}"))
            }
            _ => Ok(header),
        };
    }
    Err(format!(
        "expected the header of segment {} of {} bytes in file {}, found that of {} of {} bytes in file {}",
        spec.id, spec.bytes, spec.file, header.id, header.bytes, header.file
    ))
}
