//! Sound groups behind the end of the journal.
//!
//! A loss of power keeps some pages of what was not synced and not others, and a damaged byte ends the
//! journal as well. Nothing tells the two apart where no durable-end mark follows. What lies behind the break
//! is not a part of the journal, since a prefix of the commits counts. But it was acknowledged, and the
//! opening is about to give its bytes away: it copies them first ([`super::aside`]).

use terrane_base::{Error, SeqNo};
use terrane_format::segment::{self, Groups, Walk};

use super::scan::Scan;
use super::{ReplaySettings, Run};
use crate::SegmentSpec;

/// Sound groups of one segment behind the end of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behind {
    /// The segment.
    pub spec: SegmentSpec,
    /// Path of its file.
    pub file: String,
    /// The salt of its groups.
    pub salt: Option<u32>,
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

/// Looks behind the end of `run`, in its last segment and in those that are not a part of it. Groups that the
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
pub(super) fn start_of(last_seq: SeqNo) -> Walk {
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
                salt,
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
    /// Says what was found and where: `last_seq` is the last commit that counts.
    #[must_use]
    pub fn error(&self, last_seq: SeqNo, remedy: &str) -> Error {
        let Behind { first_seq, last_seq: last, records, .. } = self;
        let message = format!(
            "the journal breaks after commit {last_seq}, and {records} sound records, {first_seq} to {last}, lie behind the \
             break: {remedy}"
        );
        Error::corrupt(message).at(&*self.file, self.offset)
    }
}
