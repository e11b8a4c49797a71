//! Brings the directory of a journal up to date with its objects: the segments that the manifest lists get
//! all bytes that the objects have. What a directory of the last writer has beyond that stays.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use terrane_base::{Error, Kind, Result, SegmentId};
use terrane_device::{Disk, File, OpenMode};
use terrane_format::journal_object::{JournalObject, JournalRange};
use terrane_format::manifest::SegmentSpec;
use terrane_journal::{aside_numbers, file_name, file_number, pending_number};
use terrane_levels::State;

use super::{JournalChain, JournalFolder};

/// The content of the objects of a journal.
#[derive(Debug, Default)]
pub struct Restored {
    /// The objects, each with its greatest segment.
    pub(super) objects: VecDeque<(u64, SegmentId)>,
    /// How many bytes of each live segment they have, from its front.
    pub(super) held: BTreeMap<SegmentId, u64>,
    /// Segments up to this one are no longer needed.
    pub(super) trimmed: SegmentId,
}

/// A live segment while it is brought up to date.
struct Target {
    spec: SegmentSpec,
    file: Arc<dyn File>,
    held: u64,
}

impl JournalFolder {
    /// Writes what the objects have into the files of the segments that `state` lists, in the directory
    /// `dir`.
    ///
    /// # Errors
    /// `Corrupt`, naming the object, if one is damaged, missing or follows another; `Full`, `Io`, `Busy`.
    pub fn restore(
        &self,
        chain: &JournalChain,
        state: &State,
        disk: &dyn Disk,
        dir: &Path,
    ) -> Result<Restored> {
        let listed = state.segments.values().map(|segment| segment.spec);
        let mut targets: BTreeMap<SegmentId, Target> =
            listed.map(|spec| Ok((spec.id, Target::open(spec, disk, dir)?))).collect::<Result<_>>()?;
        let mut objects: VecDeque<(u64, SegmentId)> = VecDeque::new();
        self.read(chain, &mut |header: &JournalObject, range: JournalRange, bytes: &[u8]| {
            match objects.back_mut().filter(|(number, _)| *number == header.number) {
                Some((_, greatest)) => *greatest = range.segment.max(*greatest),
                None => objects.push_back((header.number, range.segment)),
            }
            targets.get_mut(&range.segment).map_or(Ok(()), |target| target.take(range, bytes))
        })?;
        disk.sync_dir(dir)?;
        let first = state.segments.keys().next().copied();
        let trimmed = SegmentId(first.unwrap_or(state.next.segment).0.saturating_sub(1));
        debug_assert!(objects.iter().map(|(number, _)| number).is_sorted(), "read in the order of numbers");
        let held = targets.into_iter().map(|(id, target)| (id, target.held)).collect();
        Ok(Restored { objects, held, trimmed })
    }
}

impl Target {
    fn open(spec: SegmentSpec, disk: &dyn Disk, dir: &Path) -> Result<Target> {
        let path = dir.join(file_name(spec.file));
        let file = match disk.open(&path, OpenMode::Write, false) {
            Err(error) if error.kind() == Kind::NotFound => disk.open(&path, OpenMode::Create, false)?,
            opened => opened?,
        };
        if file.len()? < spec.bytes {
            file.set_len(spec.bytes)?;
        }
        Ok(Target { spec, file, held: 0 })
    }

    fn take(&mut self, range: JournalRange, bytes: &[u8]) -> Result<()> {
        let end = range.offset + range.len;
        if end > self.spec.bytes || range.offset > self.held {
            return Err(Error::corrupt(format!(
                "bytes {} to {end} of a segment of {} bytes of which {} are there: they do not follow",
                range.offset, self.spec.bytes, self.held
            )));
        }
        self.file.write_at(range.offset, bytes)?;
        self.held = self.held.max(end);
        debug_assert!(self.held <= self.spec.bytes, "checked above");
        Ok(())
    }
}

/// Returns true if a directory has files of segments.
///
/// # Errors
/// `Io`.
pub(crate) fn has_segments(disk: &dyn Disk, dir: &Path) -> Result<bool> {
    Ok(disk.list(dir)?.iter().any(|name| is_segment(name)))
}

/// Removes the files of segments from a directory, and what was set aside of them.
///
/// # Errors
/// `Io`.
pub(crate) fn remove_segments(disk: &dyn Disk, dir: &Path) -> Result<()> {
    let names = disk.list(dir)?;
    let is_of_segments = |name: &str| is_segment(name) || aside_numbers(name).is_some();
    names.iter().filter(|name| is_of_segments(name)).try_for_each(|name| disk.remove(&dir.join(name)))?;
    disk.sync_dir(dir)
}

fn is_segment(name: &str) -> bool {
    file_number(name).or_else(|| pending_number(name)).is_some()
}
