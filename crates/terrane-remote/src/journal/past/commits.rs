//! Reads the commits that a journal has for an earlier state of the manifest.

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use terrane_base::record::Record;
use terrane_base::{Result, SeqNo, TableId};
use terrane_device::Disk;
use terrane_engine::is_ingest_mark;
use terrane_format::manifest;
use terrane_format::segment::SEGMENT_HEADER_BYTES;
use terrane_journal::{ReadBatch, SegmentReader, SegmentSpec};
use terrane_levels::State;

use super::PastJournal;

/// Which commits are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Until {
    /// Up to this one.
    pub(crate) commit: SeqNo,
    /// In objects up to this number.
    pub(crate) object: u64,
}

impl Until {
    /// All that is there.
    pub(crate) const END: Until = Until { commit: SeqNo::MAX, object: u64::MAX };
}

/// Why no commit follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It is the last one that is there, or that is asked for.
    Last,
    /// The next commit announces extents, and the state does not have their outcome. Commits behind it may
    /// lie over these extents.
    OpenMark(SeqNo),
    /// The next one has a record of a table that the state does not have yet: by the clock of another bucket
    /// the table came later.
    UnknownTable,
}

/// Why this commit cannot be shown with `state`; `None` if it can.
fn end_before(state: &State, batch: &ReadBatch) -> Result<Option<End>> {
    let (seq, mut records) = (batch.first_seq(), batch.records());
    let is_decided = seq <= state.last_seq() || state.void_marks.contains(&seq);
    if !is_decided && is_ingest_mark(records) {
        return Ok(Some(End::OpenMark(seq)));
    }
    while !records.is_empty() {
        let (record, bytes) = Record::decode(records)?;
        if record.table != TableId::NONE && record.table >= state.next.table {
            return Ok(Some(End::UnknownTable));
        }
        debug_assert!(bytes > 0, "a record has a header");
        records = &records[bytes..];
    }
    Ok(None)
}

impl PastJournal {
    /// Number of the last commit in the segments of `state`, which lie in the directory `dir`: the last one
    /// of those that are asked for. `SeqNo(0)` if no commit is.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn last_commit(
        &self,
        state: &State,
        segments: (&dyn Disk, &Path),
        until: Until,
    ) -> Result<SeqNo> {
        let mut last = SeqNo(0);
        self.batches(state, segments, until.object, &mut |batch| {
            let is_asked = *batch.end() <= until.commit;
            last = if is_asked { *batch.end() } else { last };
            is_asked
        })?;
        Ok(last)
    }

    /// The numbers of the commit that has this record; `None` if the segments of `state` do not have it.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn commit_of(
        &self,
        state: &State,
        segments: (&dyn Disk, &Path),
        seq: SeqNo,
    ) -> Result<Option<RangeInclusive<SeqNo>>> {
        let mut found = None;
        self.batches(state, segments, u64::MAX, &mut |batch| {
            let is_before = *batch.end() < seq;
            found = if batch.contains(&seq) { Some(batch) } else { None };
            is_before
        })?;
        Ok(found)
    }

    /// The first commit that announces extents of which `state` does not have the outcome; `None` if `state`
    /// has all outcomes.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn open_mark(&self, state: &State, segments: (&dyn Disk, &Path)) -> Result<Option<SeqNo>> {
        let end = self.batches(state, segments, u64::MAX, &mut |_| true)?;
        Ok(match end {
            End::OpenMark(mark) => Some(mark),
            End::Last | End::UnknownTable => None,
        })
    }

    /// Shows the numbers of each commit that objects up to `object` have and that can be shown with `state`,
    /// until `see` returns false.
    fn batches(
        &self,
        state: &State,
        (disk, dir): (&dyn Disk, &Path),
        object: u64,
        see: &mut dyn FnMut(RangeInclusive<SeqNo>) -> bool,
    ) -> Result<End> {
        let mut last = SeqNo(0);
        for segment in state.segments.values() {
            let held = self.segments.get(&segment.spec.id).map_or(0, |held| held.held_by(object));
            let end = segment.seal.map_or(held, |seal| held.min(seal.end_offset));
            if end < SEGMENT_HEADER_BYTES as u64 {
                continue;
            }
            let manifest::SegmentSpec { id, file, bytes } = segment.spec;
            let (spec, salt) = (SegmentSpec { id, file, bytes }, state.database.segment_salt());
            let opened = SegmentReader::open(disk, dir, &spec, salt, Some(end), true)?;
            let Some(mut reader) = opened else { continue };
            if last > SeqNo(0) && reader.first_seq().0 != last.0 + 1 {
                break;
            }
            while let Some(batches) = reader.next_group()? {
                for batch in batches {
                    debug_assert!(batch.first_seq() > last, "numbers ascend over the commits");
                    if let Some(end) = end_before(state, &batch)? {
                        return Ok(end);
                    }
                    last = batch.last_seq();
                    if !see(batch.first_seq()..=last) {
                        return Ok(End::Last);
                    }
                }
            }
        }
        Ok(End::Last)
    }

    /// When the first commit behind `commit` was whole in objects; `None` if the segments of `state` have
    /// none.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn object_behind(
        &self,
        state: &State,
        segments: (&dyn Disk, &Path),
        commit: SeqNo,
    ) -> Result<Option<Duration>> {
        let has = |object: u64| {
            let until = Until { object, ..Until::END };
            self.last_commit(state, segments, until).map(|last| last > commit)
        };
        let (mut from, mut to) = (0, self.times.len());
        while from < to {
            let middle = from.midpoint(to);
            if has(self.times[middle].0)? {
                to = middle;
            } else {
                from = middle + 1;
            }
        }
        debug_assert!(from <= self.times.len(), "the search ends behind the last object");
        Ok(self.times.get(from).map(|(_, time)| *time))
    }
}
