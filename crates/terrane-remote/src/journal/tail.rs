//! Goes on with a journal as its writers do, and keeps the bytes of the needed segments.
//!
//! One list, from the last known object on, shows the new ones. As with the manifest its own object is in it
//! unless objects were deleted that may not have been read; then all is read again.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use terrane_base::{Error, Kind, Result, SegmentId};
use terrane_device::Disk;
use terrane_format::journal_object::{JournalObject, JournalRange};
use terrane_levels::State;

use super::JournalFolder;
use super::chain::{at_once, front_number, walk};
use super::segments::write_segments;

/// A journal as far as it was read.
#[derive(Debug)]
pub(crate) struct JournalTail {
    folder: JournalFolder,
    /// The last object, and the hash of its bytes.
    last: (JournalObject, u128),
    written: Duration,
    segments: Segments,
}

/// The bytes of segments.
#[derive(Debug)]
struct Segments {
    /// Those before this one are no longer needed.
    first: SegmentId,
    /// From their front on.
    bytes: BTreeMap<SegmentId, Vec<u8>>,
}

/// The result of a look at the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looked {
    /// Nothing new.
    Nothing,
    /// New objects, which were read.
    More,
    /// Objects were deleted that may not have been read: begin again.
    Trimmed,
}

impl JournalTail {
    /// Reads the journal as far as a manifest of `state`, or a later one, needs it; `None` if there is no
    /// object.
    ///
    /// # Errors
    /// As [`JournalFolder::chain`]; `Corrupt`, naming the object, if one is damaged or follows another.
    pub(crate) fn begin(folder: JournalFolder, state: &State) -> Result<Option<JournalTail>> {
        let chain = folder.chain()?;
        let Some(last) = chain.last else { return Ok(None) };
        let mut segments = Segments { first: first_needed(state), bytes: BTreeMap::new() };
        folder.read(&chain, &mut |_, range, bytes| segments.take(range, bytes))?;
        Ok(Some(JournalTail { folder, last, written: Duration::ZERO, segments }))
    }

    /// The last object that was read.
    pub(crate) fn last(&self) -> &JournalObject {
        &self.last.0
    }

    /// When it was written, by the clock of the object store.
    pub(crate) fn written(&self) -> Duration {
        self.written
    }

    /// Reads the new objects. After an error the next call goes on where this one ended.
    ///
    /// # Errors
    /// `Corrupt`, naming the object, if one is missing, is damaged or follows another; `Invalid` if a later
    /// version wrote one; `Io`, `Busy`.
    pub(crate) fn go_on(&mut self) -> Result<Looked> {
        let last = self.last.0.number;
        let listed = self.folder.objects.list_from(last)?;
        let Some(own) = listed.get(&last) else { return Ok(Looked::Trimmed) };
        self.written = own.modified;
        let sizes: BTreeMap<u64, u64> =
            listed.iter().map(|(number, object)| (*number, object.bytes)).collect();
        let (objects, next) = walk(&sizes, self.last.0.next_number());
        let read_to = objects.last().map_or(last, |(number, _)| *number);
        if self.has_gap(&sizes, read_to, next)? {
            return Ok(Looked::Trimmed);
        }
        for wanted in at_once(&objects) {
            let read = match self.folder.fetch(wanted) {
                // Deleted between the list and its reading.
                Err(error) if error.kind() == Kind::NotFound => return Ok(Looked::Trimmed),
                read => read?,
            };
            for ((number, _), bytes) in wanted.iter().zip(&read) {
                let segments = &mut self.segments;
                let taken =
                    JournalFolder::take_object(*number, bytes, Some(&self.last), &mut |_, range, bytes| {
                        segments.take(range, bytes)
                    });
                self.last = taken.map_err(|error| self.folder.objects.at(*number, error))?;
                self.written = listed[number].modified;
            }
        }
        debug_assert_eq!(self.last.0.number, read_to, "all objects up to the first absent one were read");
        Ok(if objects.is_empty() { Looked::Nothing } else { Looked::More })
    }

    /// Returns true if objects behind the first absent one say that it was there: it is no longer needed, or
    /// was not listed, or is lost.
    ///
    /// # Errors
    /// `Corrupt` if the object that says so is damaged; `Io`.
    fn has_gap(&self, sizes: &BTreeMap<u64, u64>, read_to: u64, next: u64) -> Result<bool> {
        debug_assert!(next > read_to, "the first absent object lies behind those that were read");
        // If the list has no fence, none of it is void: it begins with an object that is not.
        let greatest = sizes.keys().next_back().copied().unwrap_or(read_to);
        let front_number = front_number(sizes).unwrap_or(greatest);
        if front_number <= read_to {
            return Ok(false);
        }
        let front = match self.folder.front(front_number) {
            Err(error) if error.kind() == Kind::NotFound => return Ok(true),
            front => front?,
        };
        // One that is missing where a later one says that it was there may be missing in this list only: it
        // is not of one moment. Reading from the beginning decides that, by several lists.
        Ok(front.first > next || front.confirmed >= next)
    }

    /// Forgets the bytes that a manifest of `state` no longer needs.
    pub(crate) fn forget(&mut self, state: &State) {
        let first = first_needed(state).max(self.segments.first);
        self.segments.bytes = self.segments.bytes.split_off(&first);
        self.segments.first = first;
    }

    /// Writes the files of the segments that `state` lists into the directory `dir`.
    ///
    /// # Errors
    /// `Corrupt` if a segment has more bytes than `state` says; any error of the disk.
    pub(crate) fn write_segments(&self, state: &State, disk: &dyn Disk, dir: &Path) -> Result<()> {
        let is_kept = |id: &SegmentId| *id >= self.segments.first;
        debug_assert!(
            self.segments.bytes.keys().all(is_kept),
            "segments that are no longer needed were forgotten"
        );
        if first_needed(state) < self.segments.first {
            let message = format!("the manifest needs segment {} again", first_needed(state));
            return Err(Error::corrupt(message).at(self.folder.place(), 0));
        }
        let bytes_of = |id| self.segments.bytes.get(&id).map_or(&[][..], Vec::as_slice);
        write_segments(state, bytes_of, (disk, dir)).map_err(|error| match error.kind() {
            Kind::Corrupt => error.at(self.folder.place(), 0),
            _ => error,
        })
    }
}

impl Segments {
    fn take(&mut self, range: JournalRange, bytes: &[u8]) -> Result<()> {
        if range.segment < self.first {
            return Ok(());
        }
        let held = self.bytes.entry(range.segment).or_default();
        let (start, end) = (range.offset as usize, range.offset as usize + bytes.len());
        if start > held.len() {
            return Err(Error::corrupt(format!(
                "bytes {start} to {end} of segment {} of which {} are there: they do not follow",
                range.segment,
                held.len()
            )));
        }
        if held.len() < end {
            held.resize(end, 0);
        }
        held[start..end].copy_from_slice(bytes);
        debug_assert!(!held.is_empty(), "a range has a byte");
        Ok(())
    }
}

/// The first segment that a manifest of this state, or a later one, needs.
fn first_needed(state: &State) -> SegmentId {
    state.segments.keys().next().copied().unwrap_or(state.next.segment)
}
