//! Sound groups behind the end of the journal, and a file for them.
//!
//! A loss of power keeps some pages of what was not synced and not others, and a damaged byte ends the journal
//! as well. Nothing tells the two apart where no durable-end mark follows. What lies behind the break is no
//! part of the journal, since a prefix of the commits counts. But it was acknowledged, and the opening is about
//! to give its bytes away: it copies them first.
//!
//! The file `ID-LAST.cut` in the directory of segments has the header of the segment and, at the same offsets,
//! its bytes from the first sound group behind the break to the last one. Only repair reads it, and nothing
//! removes it.

use std::path::Path;

use terrane_base::{Error, Kind, Result, SeqNo};
use terrane_device::{Disk, File, OpenMode};
use terrane_format::segment::{self, Groups, Walk};

use super::scan::Scan;
use super::{ReplaySettings, Run};
use crate::names::{aside_name, aside_numbers};
use crate::{SegmentSpec, file_name};

/// Bytes that are copied at once.
const COPY_BYTES: usize = 256 << 10;

/// Sound groups of one segment behind the end of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behind {
    /// The segment.
    pub spec: SegmentSpec,
    /// Path of its file.
    pub file: String,
    /// Where the first of the groups begins.
    pub offset: u64,
    /// Where the last one ends.
    pub end: u64,
    /// Number of the first record.
    pub first_seq: SeqNo,
    /// Number of the last record.
    pub last_seq: SeqNo,
    /// Records; fewer than the numbers say where damage lies between them.
    pub records: u64,
}

/// Looks behind the end of `run`, in its last segment and in those that are no part of it. Groups that the
/// extents have are left out.
pub(super) fn look(scans: &[Scan], run: &Run, settings: &ReplaySettings) -> Vec<Behind> {
    if terrane_base::planted!(ForgetBehindBreak) {
        return Vec::new();
    }
    let last = run.used.last().copied();
    let scans = scans.iter().enumerate().filter(|(at, _)| Some(*at) == last || !run.used.contains(at));
    let found = scans.filter_map(|(at, scan)| {
        let walk = if Some(at) == last { scan.end } else { start_of(run.last_seq) };
        // Neither a group nor a header of one was found there.
        let is_empty = !scan.has_more && (Some(at) == last || scan.pieces.is_empty());
        if is_empty { None } else { groups_behind(scan, walk, settings) }
    });
    let found: Vec<Behind> = found.collect();
    debug_assert!(found.is_sorted_by_key(|behind| behind.spec.id), "segments are looked at in their order");
    found
}

/// Directly in front of the first group of a segment.
fn start_of(last_seq: SeqNo) -> Walk {
    Walk { offset: segment::SEGMENT_HEADER_BYTES - segment::GROUP_ALIGN, last_seq, checksum: 0 }
}

fn groups_behind(scan: &Scan, walk: Walk, settings: &ReplaySettings) -> Option<Behind> {
    let (bytes, spec) = (scan.bytes(), scan.listed.spec);
    let salt = match &scan.header {
        Ok(header) => header.salt,
        Err(_) => segment::lost_salt(bytes, settings.salt),
    };
    let mut groups = Groups::behind(bytes, spec.id, salt, walk);
    let mut found: Option<Behind> = None;
    while groups.skip_damage().is_some() {
        for group in groups.by_ref().filter(|group| group.header.record_count > 0) {
            let (first, last) = (group.header.first_seq, group.header.last_seq());
            if last <= settings.flushed {
                continue;
            }
            let (offset, end) = (group.offset as u64, group.offset as u64 + u64::from(group.header.len));
            let found = found.get_or_insert_with(|| Behind {
                spec,
                file: scan.path.clone(),
                offset,
                end,
                first_seq: first,
                last_seq: last,
                records: 0,
            });
            debug_assert!(found.end <= end && found.last_seq <= last, "groups come in their order");
            (found.end, found.last_seq) = (end, last);
            found.records += u64::from(group.header.record_count);
        }
    }
    found
}

impl Behind {
    /// Most files with what was set aside in a directory; beyond, an opening leaves what it finds.
    pub const FILES_MAX: usize = 64;

    /// Says what was found and where: `last_seq` is the last commit that counts.
    #[must_use]
    pub fn error(&self, last_seq: SeqNo, remedy: &str) -> Error {
        let Behind { first_seq, last_seq: last, records, .. } = self;
        let message = format!(
            "the journal breaks behind commit {last_seq}, and {records} sound records, {first_seq} to {last}, lie behind the \
             break: {remedy}"
        );
        Error::corrupt(message).at(&*self.file, self.offset)
    }

    /// Copies what lies behind the end of the journal in `dir` to files that stay, and makes them durable.
    /// `last_seq` is the last commit that counts. Returns false if there are [`Behind::FILES_MAX`] such files: then
    /// nothing is copied.
    ///
    /// A crash in it is harmless: the next replay finds the same, and makes the same files again.
    ///
    /// # Errors
    /// `Io`, `Full`.
    pub fn set_aside(disk: &dyn Disk, dir: &Path, behind: &[Behind], last_seq: SeqNo) -> Result<bool> {
        if behind.is_empty() {
            return Ok(true);
        }
        let names: Vec<String> = behind.iter().map(|behind| aside_name(behind.spec.id, last_seq)).collect();
        let is_other = |name: &&String| aside_numbers(name).is_some() && !names.contains(name);
        if disk.list(dir)?.iter().filter(is_other).count() + names.len() > Self::FILES_MAX {
            return Ok(false);
        }
        for (behind, name) in behind.iter().zip(&names) {
            copy(disk, dir, behind, name).map_err(|error| {
                error.context(format!(
                    "setting records of segment {} aside that lie behind a break",
                    behind.spec.id
                ))
            })?;
        }
        disk.sync_dir(dir)?;
        Ok(true)
    }
}

fn copy(disk: &dyn Disk, dir: &Path, behind: &Behind, name: &str) -> Result<()> {
    let (from, to) = (dir.join(file_name(behind.spec.file)), dir.join(name));
    let from = disk.open(&from, OpenMode::Read, false)?;
    // What an opening made that died before it was done.
    match disk.remove(&to) {
        Err(error) if error.kind() != Kind::NotFound => return Err(error),
        _ => {}
    }
    let to = disk.open(&to, OpenMode::Create, false)?;
    copy_range(&*from, &*to, 0, segment::SEGMENT_HEADER_BYTES as u64)?;
    copy_range(&*from, &*to, behind.offset, behind.end)?;
    to.sync()
}

fn copy_range(from: &dyn File, to: &dyn File, mut at: u64, end: u64) -> Result<()> {
    debug_assert!(at < end, "a group has bytes");
    let mut buf = vec![0; COPY_BYTES.min((end - at) as usize)];
    while at < end {
        let piece = buf.len().min((end - at) as usize);
        from.read_at(at, &mut buf[..piece])?;
        to.write_at(at, &buf[..piece])?;
        at += piece as u64;
    }
    Ok(())
}
