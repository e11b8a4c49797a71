//! Rewrites the journal with changed records: a filter decides for each batch whether it is replayed.
//!
//! 1. Scan, link and check as in a replay.
//! 2. In commit order, ask the filter about each batch: it stays, or is replaced.
//! 3. From the first segment with a changed batch on, write all segments again: the same groups and numbers.
//!
//! The new files have names that are not names of segments ([`pending_name`]). The caller makes one edit that
//! removes the old segments from the manifest and lists the new ones, and then renames the files.

use std::path::Path;

use terrane_base::env::Spawn;
use terrane_base::{Error, Result, SegmentId, SeqNo};
use terrane_device::{Disk, OpenMode};
use terrane_format::segment::{
    BATCH_HEADER_BYTES, Batches, ChainLink, Group, GroupHeader, Groups, SEGMENT_BYTES_MAX,
    SEGMENT_HEADER_BYTES, SegmentHeader, batch_checksum, chain, encode_batch_header, group_len, segment_seed,
};

use super::scan::{self, Scan};
use super::{
    Behind, ListedSegment, ReplaySettings, SegmentSeal, behind, check_end, durable_through, link, run_tasks,
};
use crate::{SegmentSpec, WrittenSegment};

/// A batch of the journal, as it was committed.
#[derive(Clone, Copy, Debug)]
pub struct FoundBatch<'a> {
    /// The segment that it lies in.
    pub segment: SegmentId,
    /// The file of that segment.
    pub file: &'a str,
    /// Offset of its records there.
    pub offset: u64,
    /// Number of its first record.
    pub first_seq: SeqNo,
    /// Number of its records.
    pub record_count: u32,
    /// Its records, back to back.
    pub records: &'a [u8],
}

/// Decides about each batch.
pub trait BatchFilter {
    /// Called once, before any batch, with the segments that hold records, oldest first, and the number of
    /// the last record of each.
    ///
    /// # Errors
    /// Any error ends the rewriting; nothing has changed.
    fn begin(&mut self, segments: &[(SegmentId, SeqNo)]) -> Result<()>;

    /// The replacement of the batch's records, as many as there were; `None` keeps them.
    ///
    /// # Errors
    /// Any error ends the rewriting; nothing has changed.
    fn batch(&mut self, batch: &FoundBatch<'_>) -> Result<Option<Vec<u8>>>;
}

/// Numbers of the new segments.
#[derive(Clone, Copy, Debug)]
pub struct NewNames {
    /// Id of the first one; the next ones count on from it.
    pub segment: SegmentId,
    /// Its file.
    pub file: u32,
    /// Number of the last edit of the manifest.
    pub edit: u64,
}

/// The result of a rewriting.
#[derive(Clone, Debug, Default)]
pub struct Rewritten {
    /// Listed segments that are no longer valid.
    pub gone: Vec<SegmentId>,
    /// Their replacements, oldest first, durable under pending names; none if nothing was changed.
    pub written: Vec<WrittenSegment>,
    /// The last manifest edit that was durable according to the journal.
    pub edit: u64,
    /// Sound groups behind the end of the journal, if something was changed: in segments that are gone then.
    pub behind: Vec<Behind>,
    /// Number of the last record.
    pub last_seq: SeqNo,
}

/// The name of file `file` until the manifest lists it.
#[must_use]
pub fn pending_name(file: u32) -> String {
    format!("{}{PENDING}", crate::file_name(file))
}

/// The number of the file with this pending name.
#[must_use]
pub fn pending_number(name: &str) -> Option<u32> {
    crate::file_number(name.strip_suffix(PENDING)?)
}

const PENDING: &str = ".new";

/// Rewrites the listed segments of directory `dir`, oldest first, as `filter` decides; see the head of the
/// file.
///
/// # Errors
/// As [`super::replay()`], and any error that `filter` returns; `Full`.
pub fn rewrite(
    disk: &dyn Disk,
    dir: &Path,
    listed: &[ListedSegment],
    settings: &ReplaySettings,
    spawn: &dyn Spawn,
    names: NewNames,
    filter: &mut dyn BatchFilter,
) -> Result<Rewritten> {
    let scans = run_tasks(spawn, settings.threads, listed, &|listed| {
        scan::scan(disk, dir, listed, OpenMode::Write, settings.salt)
    })?;
    let run = link(&scans, settings)?;
    check_end(&scans, &run, settings)?;
    let used: Vec<&Scan> = run.used.iter().map(|&index| &scans[index]).collect();
    let ends: Vec<_> = used.iter().map(|scan| (scan.listed.spec.id, scan.end.last_seq)).collect();
    filter.begin(&ends)?;
    let edit = scans.iter().map(|scan| scan.edit).max().unwrap_or(0);
    let mut writer = Writer { disk, dir, salt: settings.salt, names, link: None, written: Vec::new() };
    let first = writer.put_changed(&used, filter).and_then(|first| {
        let Some(first) = first else { return Ok(None) };
        // The segments before the new ones must be as durable as they are: else a loss of power loses both.
        let durable = durable_through(&scans, settings);
        for scan in used.iter().filter(|scan| scan.listed.seal.is_none() && scan.listed.spec.id < first) {
            scan.make_durable(durable)?;
        }
        disk.sync_dir(dir)?;
        Ok(Some(first))
    });
    // The last file may be written in part.
    let first = first.inspect_err(|_| discard(disk, dir, names.file..=writer.names.file))?;
    let Some(first) = first else { return Ok(Rewritten { edit, ..Rewritten::default() }) };
    let gone: Vec<_> = listed.iter().map(|listed| listed.spec.id).filter(|id| *id >= first).collect();
    debug_assert!(writer.written.len() <= gone.len(), "a new segment replaces a listed one");
    let behind = behind::look(&scans, &run, settings);
    Ok(Rewritten { gone, written: writer.written, edit, behind, last_seq: run.last_seq })
}

/// Removes files that were written and are not needed; the next opening removes what a failing device keeps.
pub fn discard(disk: &dyn Disk, dir: &Path, files: impl IntoIterator<Item = u32>) {
    for path in files.into_iter().map(|file| dir.join(pending_name(file))) {
        if disk.exists(&path).unwrap_or(true) {
            // The original error matters more than this one.
            let _ = disk.remove(&path);
        }
    }
}

struct Writer<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    salt: u32,
    /// Numbers of the next segment.
    names: NewNames,
    /// Link of the segment before the next one; none before the first.
    link: Option<ChainLink>,
    written: Vec<WrittenSegment>,
}

/// The groups of a segment with their replaced batches.
struct Changed {
    is_changed: bool,
    groups: Vec<NewGroup>,
    /// Bytes of the segment.
    len: u64,
}

/// A group, with the bytes and number of records of each of its batches.
struct NewGroup {
    header: GroupHeader,
    batches: Vec<(Records, u32)>,
}

/// Records of a batch: their range in the old segment, or their replacement.
enum Records {
    Kept(std::ops::Range<usize>),
    Changed(Vec<u8>),
}

impl Records {
    fn bytes<'r>(&'r self, source: &'r [u8]) -> &'r [u8] {
        match self {
            Records::Kept(range) => &source[range.clone()],
            Records::Changed(bytes) => bytes,
        }
    }
}

impl Writer<'_> {
    /// Asks about every batch, and writes the segments from the first one with a changed batch on; returns
    /// the index of that one.
    fn put_changed(&mut self, used: &[&Scan], filter: &mut dyn BatchFilter) -> Result<Option<SegmentId>> {
        let mut first_changed = None;
        for scan in used {
            let changed = self.make(scan, filter)?;
            if changed.is_changed || first_changed.is_some() {
                first_changed.get_or_insert(scan.listed.spec.id);
                self.put(scan, changed)?;
            } else {
                self.link = Some(scan.link());
            }
        }
        debug_assert!(
            first_changed.is_some() != self.written.is_empty(),
            "from the first change on all are new"
        );
        Ok(first_changed)
    }

    /// Asks about every batch of a segment.
    fn make(&self, scan: &Scan, filter: &mut dyn BatchFilter) -> Result<Changed> {
        let bytes = &scan.bytes()[..scan.end.offset];
        let (_, mut found) = Groups::new(bytes).map_err(|error| error.at(&*scan.path, 0))?;
        let mut changed = Changed { is_changed: false, groups: Vec::new(), len: SEGMENT_HEADER_BYTES as u64 };
        for group in found.by_ref() {
            let made = group_of(scan, bytes, &group, filter, &mut changed)?;
            changed.len += u64::from(made.header.len);
            changed.groups.push(made);
        }
        debug_assert!(
            changed.groups.iter().map(|group| u64::from(group.header.len)).sum::<u64>()
                + SEGMENT_HEADER_BYTES as u64
                == changed.len,
            "a segment of {} bytes is not as long as its groups",
            changed.len
        );
        check_len(scan, changed.len)?;
        Ok(changed)
    }

    /// Writes a segment with the next numbers.
    fn put(&mut self, scan: &Scan, changed: Changed) -> Result<()> {
        let NewNames { segment: id, file, edit } = self.names;
        let header = scan.header.as_ref().expect("a used segment has a header");
        let previous = self.link.unwrap_or(header.previous);
        let header = SegmentHeader { id, file, bytes: changed.len, previous, edit, salt: Some(self.salt) };
        let (encoded, source) = (header.encode(), scan.bytes());
        let mut running = SegmentHeader::decode(&encoded)?.1;
        let seed = segment_seed(id, header.salt);
        let name = pending_name(file);
        let made = self.disk.open(&self.dir.join(&name), OpenMode::Create, false)?;
        let mut out = encoded.to_vec();
        let mut at = 0;
        for group in &changed.groups {
            group.encode(source, seed, at, &mut out, &mut running);
            if out.len() >= WRITE_BYTES {
                made.write_at(at, &out)?;
                at += out.len() as u64;
                out.clear();
            }
        }
        made.write_at(at, &out)?;
        let len = at + out.len() as u64;
        assert!(
            len == changed.len,
            "{id} has {len} bytes, its header says {}: replay would refuse it",
            changed.len
        );
        made.sync()?;
        let last_seq = scan.end.last_seq;
        self.link = Some(ChainLink { id, last_seq, checksum: running });
        let spec = SegmentSpec { id, file, bytes: changed.len };
        let seal = SegmentSeal { end: changed.len, last_seq };
        self.written.push(WrittenSegment { spec, seal, checksum: running });
        let next_file = file.checked_add(1).filter(|next| *next <= i32::MAX as u32);
        let next_file = next_file.ok_or_else(|| {
            Error::corrupt("segment file number out of range: no Terrane segment has a number this high")
        })?;
        self.names = NewNames { segment: SegmentId(id.0 + 1), file: next_file, edit };
        Ok(())
    }
}

/// Bytes that are written at once; only the last piece may be shorter.
const WRITE_BYTES: usize = 1 << 20;

/// Refuses a segment longer than the limit.
fn check_len(scan: &Scan, len: u64) -> Result<()> {
    if len <= SEGMENT_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "segment {} would have {len} bytes or more after the replay filter: the limit is {SEGMENT_BYTES_MAX}",
        scan.listed.spec.id
    );
    Err(Error::invalid(message).at(&*scan.path, 0))
}

/// `changed` is the part of the segment before the group.
fn group_of(
    scan: &Scan,
    bytes: &[u8],
    group: &Group,
    filter: &mut dyn BatchFilter,
    changed: &mut Changed,
) -> Result<NewGroup> {
    let mut batches = Vec::with_capacity(group.header.batch_count as usize);
    let mut record_bytes = 0;
    for batch in Batches::new(bytes, group) {
        let range = batch.offset..batch.offset + batch.len;
        let found = FoundBatch {
            segment: scan.listed.spec.id,
            file: &scan.path,
            offset: batch.offset as u64,
            first_seq: batch.first_seq,
            record_count: batch.record_count,
            records: &bytes[range.clone()],
        };
        let records = match filter.batch(&found)? {
            None => Records::Kept(range),
            Some(records) => {
                changed.is_changed = true;
                Records::Changed(records)
            }
        };
        record_bytes += records.bytes(bytes).len();
        batches.push((records, batch.record_count));
        // Checked before the next batch, because all of them are in memory until the segment is written.
        check_len(scan, changed.len + group_len(batches.len(), record_bytes) as u64)?;
    }
    let len =
        if batches.is_empty() { group.header.len as usize } else { group_len(batches.len(), record_bytes) };
    let len = u32::try_from(len).expect("checked to be shorter than a segment");
    Ok(NewGroup { header: GroupHeader { len, edits: 0, ..group.header }, batches })
}

impl NewGroup {
    /// Appends the group to `out`, whose first byte lies at `front` of the segment.
    fn encode(&self, source: &[u8], seed: u32, front: u64, out: &mut Vec<u8>, running: &mut u32) {
        let start = out.len();
        let (head, group_checksum) = self.header.encode(seed, front + start as u64);
        out.extend_from_slice(&head);
        *running = chain(*running, group_checksum);
        for (records, record_count) in &self.batches {
            let records = records.bytes(source);
            let offset = front + out.len() as u64;
            let checksum = batch_checksum(group_checksum, offset, *record_count, records);
            out.extend_from_slice(&encode_batch_header(records.len() as u32, *record_count, checksum));
            debug_assert_eq!(BATCH_HEADER_BYTES as u64, front + out.len() as u64 - offset);
            out.extend_from_slice(records);
            *running = chain(*running, checksum);
        }
        assert!(out.len() <= start + self.header.len as usize, "the batches are longer than their group");
        out.resize(start + self.header.len as usize, 0);
    }
}
