//! The journal written again, without or with other records than it had: for who says of each batch whether it is
//! replayed.
//!
//! 1. scan, link and judge as in a replay
//! 2. in the order of commits: whoever is asked says of each batch that it stays, or what takes its place
//! 3. from the first segment on of which a batch was changed, all are written anew: the same groups, the same numbers.
//!
//! What is written lies under names that are no segments' ([`pending_name`]): the caller makes one edit that takes the old
//! segments out of the manifest and lists the new ones, and then gives them their names.

use std::path::Path;

use terrane_base::env::Spawn;
use terrane_base::{Error, Result, SegmentId, SeqNo};
use terrane_device::{Disk, OpenMode};
use terrane_format::segment::{
    BATCH_HEADER_BYTES, Batches, ChainLink, Group, GroupHeader, Groups, SEGMENT_BYTES_MAX,
    SEGMENT_HEADER_BYTES, SegmentHeader, batch_checksum, chain, encode_batch_header, group_len, segment_seed,
};

use super::scan::{self, Scan};
use super::{ListedSegment, ReplaySettings, SegmentSeal, durable_through, judge, link, run_tasks};
use crate::{SegmentSpec, WrittenSegment};

/// A batch of the journal, as it was committed.
#[derive(Clone, Copy, Debug)]
pub struct FoundBatch<'a> {
    /// The segment that it lies in.
    pub segment: SegmentId,
    /// The file of that segment.
    pub file: &'a str,
    /// Where its records begin there.
    pub offset: u64,
    /// Number of its first record.
    pub first_seq: SeqNo,
    /// How many it has.
    pub record_count: u32,
    /// Its records, back to back.
    pub records: &'a [u8],
}

/// Who is asked for each batch.
pub trait BatchJudge {
    /// Told once, before any batch: the segments that hold records, oldest first, each with the number of its last one.
    ///
    /// # Errors
    /// Ends the rewriting; nothing has changed.
    fn begin(&mut self, segments: &[(SegmentId, SeqNo)]) -> Result<()>;

    /// What takes the place of the records of a batch, as many as there were; `None`: they stay.
    ///
    /// # Errors
    /// Ends the rewriting; nothing has changed.
    fn batch(&mut self, batch: &FoundBatch<'_>) -> Result<Option<Vec<u8>>>;
}

/// What new segments are called.
#[derive(Clone, Copy, Debug)]
pub struct NewNames {
    /// The first one; those behind it count on.
    pub segment: SegmentId,
    /// Its file.
    pub file: u32,
    /// Number of the last edit of the manifest.
    pub edit: u64,
}

/// What a rewriting did.
#[derive(Clone, Debug, Default)]
pub struct Rewritten {
    /// Listed segments that do not count any more.
    pub gone: Vec<SegmentId>,
    /// What takes their place, oldest first, durable under names that are pending; none if nothing was changed.
    pub written: Vec<WrittenSegment>,
    /// The last edit of the manifest that was durable as far as the journal knows.
    pub edit: u64,
}

/// The name of the file `file` until the manifest lists it.
#[must_use]
pub fn pending_name(file: u32) -> String {
    format!("{}{PENDING}", crate::file_name(file))
}

/// The file that a name says is pending.
#[must_use]
pub fn pending_number(name: &str) -> Option<u32> {
    crate::file_number(name.strip_suffix(PENDING)?)
}

const PENDING: &str = ".new";

/// Rewrites the listed segments of directory `dir`, which are oldest first, by what `asked` says; see the head of the file.
///
/// # Errors
/// As [`super::replay`], and whatever `asked` returns; `Full`.
pub fn rewrite(
    disk: &dyn Disk,
    dir: &Path,
    listed: &[ListedSegment],
    settings: &ReplaySettings,
    spawn: &dyn Spawn,
    names: NewNames,
    asked: &mut dyn BatchJudge,
) -> Result<Rewritten> {
    let scans = run_tasks(spawn, settings.threads, listed, &|listed| {
        scan::scan(disk, dir, listed, OpenMode::Write, settings.salt)
    })?;
    let run = link(&scans, settings)?;
    judge(&scans, &run, settings)?;
    let used: Vec<&Scan> = run.used.iter().map(|&index| &scans[index]).collect();
    let told: Vec<_> = used.iter().map(|scan| (scan.listed.spec.id, scan.end.last_seq)).collect();
    asked.begin(&told)?;
    let edit = scans.iter().map(|scan| scan.edit).max().unwrap_or(0);
    let mut writer = Writer { disk, dir, salt: settings.salt, names, link: None, written: Vec::new() };
    let first = writer.put_changed(&used, asked).and_then(|first| {
        let Some(first) = first else { return Ok(None) };
        // What stays in front of the new ones must be as durable as they are: else a loss of power takes both.
        let durable = durable_through(&scans, settings);
        for scan in used.iter().filter(|scan| scan.listed.seal.is_none() && scan.listed.spec.id < first) {
            scan.settle(durable)?;
        }
        disk.sync_dir(dir)?;
        Ok(Some(first))
    });
    // The last one may be there in part.
    let first = first.inspect_err(|_| discard(disk, dir, names.file..=writer.names.file))?;
    let Some(first) = first else { return Ok(Rewritten { edit, ..Rewritten::default() }) };
    let gone = listed.iter().map(|listed| listed.spec.id).filter(|id| *id >= first).collect();
    Ok(Rewritten { gone, written: writer.written, edit })
}

/// Removes what was written and is of no use; what a failing device keeps goes with the next opening.
pub fn discard(disk: &dyn Disk, dir: &Path, files: impl IntoIterator<Item = u32>) {
    for path in files.into_iter().map(|file| dir.join(pending_name(file))) {
        if disk.exists(&path).unwrap_or(true) {
            // Why it was given up matters more than this.
            let _ = disk.remove(&path);
        }
    }
}

struct Writer<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    salt: u32,
    /// Those of the next segment.
    names: NewNames,
    /// The segment in front of the next one; none before the first.
    link: Option<ChainLink>,
    written: Vec<WrittenSegment>,
}

/// The groups of a segment with what takes the place of their batches.
struct Changed {
    is_changed: bool,
    groups: Vec<NewGroup>,
    /// Bytes of the segment.
    len: u64,
}

/// A group, and the bytes and number of records of each of its batches.
struct NewGroup {
    header: GroupHeader,
    batches: Vec<(Records, u32)>,
}

/// Records of a batch: where they lie in the old segment, or what takes their place.
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
    /// Asks for every batch, and writes the segments from the first one on that has a changed one; returns that.
    fn put_changed(&mut self, used: &[&Scan], asked: &mut dyn BatchJudge) -> Result<Option<SegmentId>> {
        let mut first_changed = None;
        for scan in used {
            let changed = self.make(scan, asked)?;
            if changed.is_changed || first_changed.is_some() {
                first_changed.get_or_insert(scan.listed.spec.id);
                self.put(scan, changed)?;
            } else {
                self.link = Some(scan.link());
            }
        }
        Ok(first_changed)
    }

    /// Asks for every batch of a segment.
    fn make(&self, scan: &Scan, asked: &mut dyn BatchJudge) -> Result<Changed> {
        let bytes = &scan.bytes()[..scan.end.offset];
        let (_, mut found) = Groups::new(bytes).map_err(|error| error.at(&*scan.path, 0))?;
        let mut changed = Changed { is_changed: false, groups: Vec::new(), len: SEGMENT_HEADER_BYTES as u64 };
        for group in found.by_ref() {
            let made = group_of(scan, bytes, &group, asked, &mut changed)?;
            changed.len += u64::from(made.header.len);
            changed.groups.push(made);
        }
        check_len(scan, changed.len)?;
        Ok(changed)
    }

    /// Writes a segment under the next names.
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
        made.sync()?;
        let last_seq = scan.end.last_seq;
        self.link = Some(ChainLink { id, last_seq, checksum: running });
        let spec = SegmentSpec { id, file, bytes: changed.len };
        let seal = SegmentSeal { end: changed.len, last_seq };
        self.written.push(WrittenSegment { spec, seal, checksum: running });
        let next_file = file.checked_add(1).filter(|next| *next <= i32::MAX as u32);
        let next_file = next_file.ok_or_else(|| Error::corrupt("no segment file gets a number as high"))?;
        self.names = NewNames { segment: SegmentId(id.0 + 1), file: next_file, edit };
        Ok(())
    }
}

/// Bytes that are written at once, at least but for the last.
const WRITE_BYTES: usize = 1 << 20;

/// Refuses more bytes than a segment may have.
fn check_len(scan: &Scan, len: u64) -> Result<()> {
    if len <= SEGMENT_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "segment {} would have {len} bytes or more with what the replay filter puts into it: at most {SEGMENT_BYTES_MAX}",
        scan.listed.spec.id
    );
    Err(Error::invalid(message).at(&*scan.path, 0))
}

/// `changed` is the segment in front of the group.
fn group_of(
    scan: &Scan,
    bytes: &[u8],
    group: &Group,
    asked: &mut dyn BatchJudge,
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
        let records = match asked.batch(&found)? {
            None => Records::Kept(range),
            Some(records) => {
                changed.is_changed = true;
                Records::Changed(records)
            }
        };
        record_bytes += records.bytes(bytes).len();
        batches.push((records, batch.record_count));
        // Before the next one is asked for: all of them are in memory until the segment is written.
        check_len(scan, changed.len + group_len(batches.len(), record_bytes) as u64)?;
    }
    let len =
        if batches.is_empty() { group.header.len as usize } else { group_len(batches.len(), record_bytes) };
    let len = u32::try_from(len).expect("checked to be shorter than a segment");
    Ok(NewGroup { header: GroupHeader { len, edits: 0, ..group.header }, batches })
}

impl NewGroup {
    /// Appends the group to `out`, of which the first byte lies at `front` of the segment.
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
        out.resize(start + self.header.len as usize, 0);
    }
}
