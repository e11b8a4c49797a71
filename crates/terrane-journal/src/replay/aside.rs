//! Files with the sound groups behind the end of the journal.
//!
//! The file `ID-LAST.cut` in the directory of segments has the header of the segment and, at the same
//! offsets, its bytes from the first sound group behind the break to the last one. Repair
//! alone reads its records. It stays until the user removes it, unless the opening that made it died. Its
//! name says the last commit that counts, so there is one of a segment at most:
//!
//! 1. the bytes are copied to a name that is not such a file's yet, and synced
//! 2. the file gets its name; one that an opening left which died before its edit goes, unless it has more
//! 3. the directory is synced; then the caller makes the edit that ends the journal.
//!
//! A crash in it is harmless: the next replay finds the same, and the next opening makes the same files
//! again.

use std::path::{Path, PathBuf};

use terrane_base::{Kind, Result, SegmentId, SeqNo};
use terrane_device::{Disk, File, OpenMode};
use terrane_format::segment::{self, Groups};

use super::behind::{Behind, start_of};
use super::scan::SegmentBytes;
use crate::file_name;
use crate::names::{aside_name, aside_numbers, pending_aside_name};

/// Bytes that are copied at once.
const COPY_BYTES: usize = 256 << 10;

/// Most files of records that were set aside in a directory.
pub const ASIDE_FILES_MAX: usize = 64;

/// How much may be set aside.
#[derive(Clone, Copy, Debug)]
pub struct AsideLimits {
    /// Bytes of all these files, by their lengths.
    pub bytes_max: u64,
    /// Bytes that stay free on the device: what the opening itself needs.
    pub free_bytes_min: u64,
}

/// The fate of the sound groups of a segment behind the end of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// They are in a file that stays.
    SetAside,
    /// They are lost, because of this.
    Lost(&'static str),
}

/// Copies the groups behind the end of the journal in `dir` to files that stay, and makes them durable;
/// returns the fate of each. `last_seq` is the last commit that counts. Those nearest to it come first, where
/// the limits or the device have no room for all.
///
/// # Errors
/// `Io`.
pub fn set_aside(
    disk: &dyn Disk,
    dir: &Path,
    behind: &[Behind],
    last_seq: SeqNo,
    limits: AsideLimits,
) -> Result<Vec<Outcome>> {
    if behind.is_empty() {
        return Ok(Vec::new());
    }
    let mut room = Room::new(disk, dir, behind, limits)?;
    let outcomes: Result<Vec<Outcome>> = behind
        .iter()
        .map(|behind| {
            room.set_aside(behind, last_seq).map_err(|error| {
                let id = behind.spec.id;
                error.context(format!("setting records of segment {id} aside that lie behind a break"))
            })
        })
        .collect();
    let outcomes = outcomes?;
    disk.sync_dir(dir)?;
    Ok(outcomes)
}

/// The directory, and what may still be set aside in it.
struct Room<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    /// Names of what was set aside of the same segments by openings that died before their edits.
    before: Vec<String>,
    files: usize,
    bytes: u64,
    free_bytes_min: u64,
}

impl<'a> Room<'a> {
    fn new(disk: &'a dyn Disk, dir: &'a Path, behind: &[Behind], limits: AsideLimits) -> Result<Room<'a>> {
        let names = disk.list(dir)?.into_iter().filter(|name| aside_numbers(name).is_some());
        let is_before = |name: &String| {
            aside_numbers(name).is_some_and(|(id, _)| behind.iter().any(|behind| behind.spec.id == id))
        };
        let (before, others): (Vec<_>, Vec<_>) = names.partition(is_before);
        let mut bytes = limits.bytes_max;
        for name in &others {
            bytes = bytes.saturating_sub(disk.open(&dir.join(name), OpenMode::Read, false)?.len()?);
        }
        let files = ASIDE_FILES_MAX.saturating_sub(others.len());
        Ok(Room { disk, dir, before, files, bytes, free_bytes_min: limits.free_bytes_min })
    }

    fn set_aside(&mut self, behind: &Behind, last_seq: SeqNo) -> Result<Outcome> {
        debug_assert!(behind.offset < behind.end && behind.records > 0, "a group has bytes and records");
        let to = self.dir.join(aside_name(behind.spec.id, last_seq));
        let mut before = self.before(behind);
        // The damage may have grown since.
        let best = before.iter().max_by_key(|(records, _)| *records).cloned();
        let mut outcome = Outcome::SetAside;
        match best {
            Some((records, path)) if records >= behind.records => self.rename(&path, &to)?,
            best => {
                outcome = self.copy(behind, &to)?;
                if let (Outcome::Lost(_), Some((_, path))) = (outcome, best) {
                    // Fewer than there are now, but not lost.
                    self.rename(&path, &to)?;
                }
            }
        }
        before.retain(|(_, path)| *path != to);
        for (_, path) in before {
            if self.disk.exists(&path)? {
                self.disk.remove(&path)?;
            }
        }
        if outcome == Outcome::SetAside {
            self.files = self.files.saturating_sub(1);
            self.bytes = self.bytes.saturating_sub(behind.end);
        }
        Ok(outcome)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        if from == to { Ok(()) } else { self.disk.rename(from, to) }
    }

    /// The files that openings which died made of the same segment, each with its number of records.
    fn before(&self, behind: &Behind) -> Vec<(u64, PathBuf)> {
        let of_segment = |name: &&String| aside_numbers(name).is_some_and(|(id, _)| id == behind.spec.id);
        let paths = self.before.iter().filter(of_segment).map(|name| self.dir.join(name));
        paths.map(|path| (records_in(self.disk, &path, behind), path)).collect()
    }

    fn copy(&self, behind: &Behind, to: &Path) -> Result<Outcome> {
        if self.files == 0 {
            return Ok(Outcome::Lost(
                "there are as many files of records that were set aside as there may be",
            ));
        }
        if self.bytes < behind.end {
            return Ok(Outcome::Lost("the files of records that were set aside are as long as they may be"));
        }
        debug_assert!(
            behind.offset <= behind.end,
            "records that are set aside lie before the end of what was read"
        );
        let needed = segment::SEGMENT_HEADER_BYTES as u64 + (behind.end - behind.offset);
        // Where the device does not say it, the copy shows it.
        let free = self.disk.free_bytes(self.dir).unwrap_or(u64::MAX);
        if free < needed.saturating_add(self.free_bytes_min) {
            return Ok(Outcome::Lost(NO_SPACE));
        }
        let pending = self.dir.join(pending_aside_name(behind.spec.id));
        match copy(self.disk, &self.dir.join(file_name(behind.spec.file)), &pending, behind) {
            Err(error) if error.kind() == Kind::Full => self.give_up(&pending),
            Err(error) => Err(error),
            Ok(()) => match self.disk.rename(&pending, to) {
                Err(error) if error.kind() == Kind::Full => self.give_up(&pending),
                renamed => renamed.map(|()| Outcome::SetAside),
            },
        }
    }

    /// Removes what there is of a file for which the device has no space.
    fn give_up(&self, pending: &Path) -> Result<Outcome> {
        debug_assert!(aside_numbers(&pending.to_string_lossy()).is_none(), "a whole file stays");
        if self.disk.exists(pending)? {
            self.disk.remove(pending)?;
        }
        Ok(Outcome::Lost(NO_SPACE))
    }
}

const NO_SPACE: &str = "the device has no space for them";

/// The number of records in the file at `path`; 0 if it cannot be read.
fn records_in(disk: &dyn Disk, path: &Path, behind: &Behind) -> u64 {
    let Ok(mapped) = SegmentBytes::open(disk, path, u64::MAX) else { return 0 };
    let mut groups = Groups::behind(mapped.bytes(), behind.spec.id, behind.salt, start_of(SeqNo(0)));
    let mut records = 0;
    while groups.skip_damage().is_some() {
        records += groups.by_ref().map(|group| u64::from(group.header.record_count)).sum::<u64>();
    }
    records
}

fn copy(disk: &dyn Disk, from: &Path, to: &Path, behind: &Behind) -> Result<()> {
    let from = disk.open(from, OpenMode::Read, false)?;
    let to = disk.open(to, OpenMode::Create, false)?;
    copy_range(&*from, &*to, 0, segment::SEGMENT_HEADER_BYTES as u64)?;
    copy_range(&*from, &*to, behind.offset, behind.end)?;
    if terrane_base::planted!(AsideNotSynced) { Ok(()) } else { to.sync() }
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

/// Removes the parts that an opening left that died while it set something aside. `names` are those in `dir`;
/// returns true if there was something.
///
/// # Errors
/// `Io`.
pub fn discard_unfinished_aside(disk: &dyn Disk, dir: &Path, names: &[String]) -> Result<bool> {
    let mut unfinished = names.iter().filter(|name| is_pending_aside(name)).peekable();
    let is_any = unfinished.peek().is_some();
    unfinished.try_for_each(|name| disk.remove(&dir.join(name)))?;
    Ok(is_any)
}

fn is_pending_aside(name: &str) -> bool {
    let id = name.split_once('.').and_then(|(id, _)| id.parse().ok());
    id.is_some_and(|id| pending_aside_name(SegmentId(id)) == name)
}
