//! The extents of a table and the segments of the journal, one by one, as a caller sees them.

use std::path::PathBuf;

use terrane_base::{SegmentId, SeqNo};
use terrane_journal::SegmentState;
use terrane_levels::directory::JOURNAL;

use crate::observe::extent_summary::ExtentSummary;
use crate::shared::Shared;
use crate::table::Table;

/// One extent of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExtentInfo {
    /// Its counts and sizes.
    pub summary: ExtentSummary,
    /// The data file that it lies in.
    pub file: PathBuf,
    /// Where in the file it begins.
    pub offset: u64,
    /// Its first key, or where its range deletes begin.
    pub smallest: Vec<u8>,
    /// Its last key, or a key that its range deletes do not reach beyond.
    pub largest: Vec<u8>,
}

/// A segment of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentEntry {
    /// Its number; a later segment has a higher one.
    pub id: SegmentId,
    /// Its file; `None` where it is in memory only.
    pub file: Option<PathBuf>,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes in use, from the front.
    pub used_bytes: u64,
    /// It has no record with a smaller number.
    pub first_seq: SeqNo,
    /// Number of its last record, or of the record before it if it holds none.
    pub last_seq: SeqNo,
    /// True if it is history: kept for readers of changes, and needed for nothing else.
    pub is_history: bool,
    /// True if commits are appended to it now.
    pub is_active: bool,
}

impl Shared {
    /// The extents of a table: of its overflow runs, newest first, then of its levels from 1 down, each in
    /// the order of keys. Value tables are not among them: they have no keys of their own. Keys are as the
    /// table keeps them.
    #[must_use]
    pub fn extents(&self, table: &Table) -> Vec<ExtentInfo> {
        let view = table.pinned();
        let places = view.tree.places();
        let extents = places.flat_map(|(place, level)| level.iter().map(move |extent| (place, extent)));
        let info = extents.map(|(place, extent)| {
            let (file, offset) = self.store.place(extent.meta.id, 0);
            ExtentInfo {
                summary: ExtentSummary::of(&extent.meta, place),
                file: file.into(),
                offset,
                smallest: extent.meta.smallest.clone(),
                largest: extent.meta.largest.clone(),
            }
        });
        info.collect()
    }

    /// The segments of the journal, oldest first: history, then those that are live.
    #[must_use]
    pub fn segments(&self) -> Vec<SegmentEntry> {
        let state = self.manifest.state();
        let file = |file: u32| {
            let name = terrane_journal::file_name(file);
            (file > 0).then(|| self.dir().join(JOURNAL).join(name))
        };
        let kept = state.history.values().map(|kept| SegmentEntry {
            id: kept.spec.id,
            file: file(kept.spec.file),
            file_bytes: kept.spec.bytes,
            used_bytes: kept.spec.bytes,
            first_seq: kept.kept.first_seq,
            last_seq: kept.kept.last_seq,
            is_history: true,
            is_active: false,
        });
        let mut entries: Vec<SegmentEntry> = kept.collect();
        let mut before = entries.last().map(|entry| entry.last_seq);
        for segment in self.journal.segments() {
            let first_seq = before.map_or(SeqNo(0), |before| SeqNo(before.0 + 1));
            before = Some(segment.last_seq);
            entries.push(SegmentEntry {
                id: segment.id,
                file: file(segment.file),
                file_bytes: segment.bytes,
                used_bytes: segment.used,
                first_seq,
                last_seq: segment.last_seq,
                is_history: false,
                is_active: segment.state == SegmentState::Active,
            });
        }
        entries
    }

    /// The id that the database drew when it was made: 32 hexadecimal digits. A checkpoint and a restored
    /// backup have ids of their own.
    #[must_use]
    pub fn database_id(&self) -> String {
        self.manifest.state().database.to_string()
    }
}
