//! Reads a journal as far back as its objects are there, for states of the database of before.
//!
//! Objects that are needed no more are deleted from the front, and fences stay. So the objects that are there
//! without a gap are found from the last one backwards.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use terrane_base::{Error, Kind, Result, SegmentId, SeqNo};
use terrane_device::{Disk, OpenMode};
use terrane_format::journal_object::{FENCE_SPAN, JournalObject, JournalRange};
use terrane_format::manifest;
use terrane_format::segment::{SEGMENT_HEADER_BYTES, SegmentHeader};
use terrane_journal::{SegmentReader, SegmentSpec, file_name};
use terrane_levels::State;

use super::JournalFolder;
use super::chain::is_fence;

/// A journal as far back as it is there.
#[derive(Debug)]
pub(crate) struct PastJournal {
    /// The last object.
    pub(crate) last: JournalObject,
    /// True if no object was deleted.
    is_from_start: bool,
    /// Number and time of each object.
    times: Vec<(u64, Duration)>,
    segments: BTreeMap<SegmentId, PastSegment>,
}

/// What the objects have of a segment.
#[derive(Debug, Default)]
struct PastSegment {
    /// From its front on; empty if the front was deleted.
    bytes: Vec<u8>,
    /// How many bytes were there with each object.
    held: Vec<(u64, u64)>,
}

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

impl JournalFolder {
    /// Reads all objects that are there; `None` if there is none.
    ///
    /// # Errors
    /// As [`JournalFolder::chain`]; `NotFound` if an object was deleted between the list and its reading.
    pub(crate) fn past(&self) -> Result<Option<PastJournal>> {
        let listed = self.objects.list()?;
        let mut chain = self.chain()?;
        let (Some((last, _)), Some(&(first, _))) = (chain.last, chain.objects.first()) else {
            return Ok(None);
        };
        let sizes: BTreeMap<u64, u64> =
            listed.iter().map(|(number, object)| (*number, object.bytes)).collect();
        let (mut before, mut number) = (Vec::new(), first);
        while let Some((object, bytes)) = object_before(&sizes, number) {
            before.push((object, bytes));
            number = object;
        }
        before.reverse();
        chain.objects.splice(0..0, before);
        let mut segments: BTreeMap<SegmentId, PastSegment> = BTreeMap::new();
        debug_assert!(chain.objects.is_sorted(), "objects are read in the order of their numbers");
        // Objects that came behind the list are later than every moment that is asked for by a time.
        let time = |number| listed.get(&number).map_or(Duration::MAX, |object| object.modified);
        let times = chain.objects.iter().map(|(number, _)| (*number, time(*number))).collect();
        self.read_whole(&chain, &mut |header, range, bytes| {
            segments.entry(range.segment).or_default().take(header.number, range, bytes)
        })?;
        Ok(Some(PastJournal { last, is_from_start: number == 1, times, segments }))
    }
}

/// The object before the one of this number, with its size, if it is there.
fn object_before(sizes: &BTreeMap<u64, u64>, number: u64) -> Option<(u64, u64)> {
    let fence = sizes.range(..number).rev().find(|(_, bytes)| is_fence(**bytes));
    if let Some((&fence, &bytes)) = fence
        && number <= fence.saturating_add(FENCE_SPAN)
    {
        return (number == fence.saturating_add(FENCE_SPAN)).then_some((fence, bytes));
    }
    let before = number.checked_sub(1)?;
    sizes.get(&before).map(|bytes| (before, *bytes))
}

impl PastSegment {
    fn take(&mut self, object: u64, range: JournalRange, bytes: &[u8]) -> Result<()> {
        let (start, end) = (range.offset as usize, range.offset as usize + bytes.len());
        if self.bytes.is_empty() && start > 0 {
            // Its front was in an object that was deleted.
            return Ok(());
        }
        if start > self.bytes.len() {
            return Err(Error::corrupt(format!(
                "bytes {start} to {end} of segment {} of which {} are there: they do not follow",
                range.segment,
                self.bytes.len()
            )));
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[start..end].copy_from_slice(bytes);
        debug_assert!(
            self.held.last().is_none_or(|(number, _)| *number <= object),
            "in the order of numbers"
        );
        self.held.push((object, self.bytes.len() as u64));
        Ok(())
    }

    /// How many bytes objects up to this number have.
    fn held_by(&self, object: u64) -> u64 {
        debug_assert!(self.held.is_sorted(), "bytes only become more");
        let at = self.held.partition_point(|(number, _)| *number <= object);
        at.checked_sub(1).map_or(0, |at| self.held[at].1)
    }

    /// The number of its first record; `None` if its front is not there or no front of a segment.
    fn first_seq(&self) -> Option<SeqNo> {
        let front = self.bytes.first_chunk::<SEGMENT_HEADER_BYTES>()?;
        let (header, _) = SegmentHeader::decode(front).ok()?;
        Some(SeqNo(header.previous.last_seq.0.saturating_add(1)))
    }
}

impl PastJournal {
    /// The last object before the first one that was created behind `time`; 0 if there is none.
    pub(crate) fn at_time(&self, time: Duration) -> u64 {
        debug_assert!(self.times.is_sorted_by_key(|(number, _)| *number), "in the order of numbers");
        let there = self.times.iter().take_while(|(_, written)| *written <= time);
        there.last().map_or(0, |(number, _)| *number)
    }

    /// Returns true if every record is there that a manifest of `state` needs, whose tables have all up to
    /// `flushed` in extents.
    pub(crate) fn has_all_of(&self, state: &State, flushed: SeqNo) -> bool {
        debug_assert!(flushed <= state.last_seq(), "what is flushed has a number of the state");
        let Some(first) = state.segments.keys().next() else { return true };
        let held = |id| self.segments.get(id).map_or(0, |segment| segment.bytes.len() as u64);
        let mut ends = state.segments.iter().filter_map(|(id, segment)| Some((id, segment.seal?.end_offset)));
        // A replay asks for them also where all of their records are flushed.
        if ends.any(|(id, end)| held(id) < end) {
            return false;
        }
        if self.is_from_start || self.segments.keys().next().is_some_and(|lowest| lowest < first) {
            return true;
        }
        let mut listed = state.segments.keys().filter_map(|id| self.segments.get(id));
        // Segments that were prepared and never used have no bytes.
        let begins = listed.next().and_then(PastSegment::first_seq);
        begins.is_some_and(|begins| begins.0 <= flushed.0.saturating_add(1))
    }

    /// Writes the files of the segments that `state` lists into the directory `dir`.
    ///
    /// # Errors
    /// `Corrupt` if a segment has more bytes than `state` says; any error of the disk.
    pub(crate) fn write_segments(&self, state: &State, disk: &dyn Disk, dir: &Path) -> Result<()> {
        for segment in state.segments.values() {
            let spec = segment.spec;
            let bytes = self.segments.get(&spec.id).map_or(&[][..], |segment| &segment.bytes);
            if bytes.len() as u64 > spec.bytes {
                let message =
                    format!("{} bytes of segment {} of {} in the manifest", bytes.len(), spec.id, spec.bytes);
                return Err(Error::corrupt(message));
            }
            let file = disk.open(&dir.join(file_name(spec.file)), OpenMode::Create, false)?;
            file.set_len(spec.bytes)?;
            if !bytes.is_empty() {
                file.write_at(0, bytes)?;
            }
        }
        disk.sync_dir(dir)
    }

    /// Number of the last commit in the segments of `state`, which lie in the directory `dir`: the last one
    /// of those that are asked for. `SeqNo(0)` if there is none.
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

    /// Shows the numbers of each commit that objects up to `object` have, until `see` returns false.
    fn batches(
        &self,
        state: &State,
        (disk, dir): (&dyn Disk, &Path),
        object: u64,
        see: &mut dyn FnMut(RangeInclusive<SeqNo>) -> bool,
    ) -> Result<()> {
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
                    last = batch.last_seq();
                    if !see(batch.first_seq()..=last) {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
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

impl JournalFolder {
    /// [`JournalFolder::read`], where objects may be deleted meanwhile.
    fn read_whole(&self, chain: &super::JournalChain, take: super::chain::TakeRange<'_>) -> Result<()> {
        match self.read(chain, take) {
            Err(error) if error.kind() == Kind::Corrupt && self.is_missed(chain)? => {
                Err(error.with_kind(Kind::NotFound))
            }
            read => read,
        }
    }

    /// Returns true if an object of the chain is there no more.
    fn is_missed(&self, chain: &super::JournalChain) -> Result<bool> {
        let listed = self.objects.list()?;
        Ok(chain.objects.iter().any(|(number, _)| !listed.contains_key(number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn before(objects: &[(u64, bool)], number: u64) -> Option<u64> {
        let sizes = objects.iter().map(|(number, is_fence)| (*number, if *is_fence { 128 } else { 500 }));
        object_before(&sizes.collect(), number).map(|(number, _)| number)
    }

    #[test]
    fn void_objects_are_before_none() {
        let objects = [(1, true), (2, false), (17, false), (18, false), (19, true), (20, false), (35, false)];
        assert_eq!(before(&objects, 35), Some(19), "20 is void");
        assert_eq!(before(&objects, 19), Some(18));
        assert_eq!(before(&objects, 18), Some(17));
        assert_eq!(before(&objects, 17), Some(1), "2 is void");
        assert_eq!(before(&objects, 1), None);
        assert_eq!(before(&[(1, true), (40, false)], 40), None, "39 was deleted");
        assert_eq!(before(&[(1, true), (18, true)], 18), None, "17 was deleted");
        assert_eq!(before(&[(1, true), (17, true)], 17), Some(1));
    }
}
