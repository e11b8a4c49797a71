//! Reads a journal as far back as its objects are there, for states of the database of before.
//!
//! Objects that are no longer needed are deleted from the front, and fences stay. So the objects that are
//! there without a gap are found from the last one backwards. `commits.rs` reads the commits in them.

mod commits;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use terrane_base::{Error, Kind, Result, SegmentId, SeqNo};
use terrane_device::Disk;
use terrane_format::journal_object::{FENCE_SPAN, JournalObject, JournalRange};
use terrane_format::segment::{ChainLink, SEGMENT_HEADER_BYTES, SegmentHeader};
use terrane_levels::State;

use super::JournalFolder;
use super::chain::is_fence;
use super::segments::write_segments;
pub(crate) use commits::Until;

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

/// The bytes of a segment in the objects.
#[derive(Debug, Default)]
struct PastSegment {
    /// From its front on; empty if the front was deleted.
    bytes: Vec<u8>,
    /// How many bytes were there with each object.
    held: Vec<(u64, u64)>,
}

impl JournalFolder {
    /// Reads all objects that are there; `None` if there is no object.
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

    /// The link to its predecessor; `None` if its front is missing or is not a front of a segment.
    fn previous(&self) -> Option<ChainLink> {
        let front = self.bytes.first_chunk::<SEGMENT_HEADER_BYTES>()?;
        let (header, _) = SegmentHeader::decode(front).ok()?;
        Some(header.previous)
    }
}

impl PastJournal {
    /// The last object before the first one that was created behind `time`; 0 if no object is before it.
    pub(crate) fn at_time(&self, time: Duration) -> u64 {
        debug_assert!(self.times.is_sorted_by_key(|(number, _)| *number), "in the order of numbers");
        let there = self.times.iter().take_while(|(_, written)| *written <= time);
        there.last().map_or(0, |(number, _)| *number)
    }

    /// Returns true if every record is there that a manifest of `state` needs, whose tables have all up to
    /// `flushed` in extents.
    pub(crate) fn has_all_of(&self, state: &State, flushed: SeqNo) -> bool {
        debug_assert!(flushed <= state.last_seq(), "a flushed record has a number of the state");
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
        let previous = listed.next().and_then(PastSegment::previous);
        // A replay refuses one that follows a listed segment which is not there.
        let follows_listed = |previous: ChainLink| previous.id >= *first;
        previous.is_some_and(|previous| previous.last_seq <= flushed && !follows_listed(previous))
    }

    /// Writes the files of the segments that `state` lists into the directory `dir`.
    ///
    /// # Errors
    /// `Corrupt` if a segment has more bytes than `state` says; any error of the disk.
    pub(crate) fn write_segments(&self, state: &State, disk: &dyn Disk, dir: &Path) -> Result<()> {
        let bytes_of = |id| self.segments.get(&id).map_or(&[][..], |segment| &segment.bytes);
        write_segments(state, bytes_of, (disk, dir))
    }
}

impl JournalFolder {
    /// [`JournalFolder::read`], where objects may be deleted meanwhile.
    fn read_whole(&self, chain: &super::JournalChain, take: super::chain::TakeRange<'_>) -> Result<()> {
        match self.read(chain, take) {
            Err(error) if matches!(error.kind(), Kind::Corrupt | Kind::Busy) && self.is_missed(chain)? => {
                Err(error.with_kind(Kind::NotFound))
            }
            read => read,
        }
    }

    /// Returns true if an object of the chain is no longer there.
    fn is_missed(&self, chain: &super::JournalChain) -> Result<bool> {
        let listed = self.objects.list()?;
        Ok(chain.objects.iter().any(|(number, _)| !listed.contains_key(number)))
    }
}
