//! Reads a manifest file.
//!
//! The snapshot at the front was durable before `CURRENT` named the file, so any error in it is damage. After
//! it an append is one write of one record, started only when the record before it was durable. Meaning of a
//! record that cannot be read:
//!
//! | the bytes | what follows them | meaning |
//! |---|---|---|
//! | valid, but not the successor of the record before | anything | a record was lost or misplaced: corrupt |
//! | checksum wrong, or the file ends inside | a valid header of this file | it was durable: corrupt |
//! | checksum wrong, or the file ends inside | nothing valid | its append never returned: torn, cut off |
//!
//! Each append leaves a durable-end mark after its record, so damage to the last record is detected, too,
//! unless power was lost before the mark reached the device.

use std::path::Path;
use std::sync::Arc;

use terrane_base::{Error, Kind, Result};
use terrane_device::{Disk, File, OpenMode};
use terrane_format::manifest::edit::decode_edits;
use terrane_format::manifest::file::{FILE_HEADER_BYTES, FileHeader, file_name};
use terrane_format::manifest::record::{Link, RECORD_HEADER_BYTES, RecordHeader, RecordTag};

use super::window::Window;
use crate::state::State;

/// A manifest file that was read to its end.
pub(crate) struct Loaded {
    pub(crate) file: Arc<dyn File>,
    pub(crate) header: FileHeader,
    pub(crate) state: State,
    /// The chain position of the next record.
    pub(crate) link: Link,
    /// End of the snapshot.
    pub(crate) snapshot_end: u64,
    /// Start of the last record.
    pub(crate) last: u64,
    /// End of the last record, where the next one begins.
    pub(crate) end: u64,
    /// True if a durable-end mark follows the last record.
    pub(crate) marked: bool,
    /// Bytes of a torn record after that.
    pub(crate) torn: u64,
}

/// The content at an offset of the file.
enum Found {
    Record(RecordHeader),
    /// The file ends here.
    End,
    /// Not a complete valid record; the error says why.
    Broken(Error),
}

/// Reads the manifest file `number` in `dir`. If its end looks torn it is read a second time, because a
/// writer cuts a torn end off and bytes that were only misread must not be lost.
///
/// # Errors
/// `NotFound`, `Corrupt` with file and offset, `Invalid` for a newer format version, `Io`.
pub(crate) fn load(disk: &dyn Disk, dir: &Path, number: u32, mode: OpenMode) -> Result<Loaded> {
    let file = disk.open(&dir.join(file_name(number)), mode, false)?;
    let loaded = read_whole(file.clone(), number)?;
    if loaded.torn == 0 || terrane_base::planted!(BelieveTornEnd) {
        return Ok(loaded);
    }
    let again = read_whole(file, number)?;
    // Records are chained and checksummed, so the reading with more records is the right one.
    Ok(if again.end > loaded.end { again } else { loaded })
}

fn read_whole(file: Arc<dyn File>, number: u32) -> Result<Loaded> {
    let mut reader = Reader::new(file.clone(), number)?;
    let mut state = State::empty(reader.header.database, reader.header.format_version);
    reader.read_snapshot(&mut state)?;
    let snapshot_end = reader.at;
    let (marked, torn) = reader.read_edits(&mut state)?;
    state.check().map_err(|error| reader.corrupt(error, reader.at))?;
    let (header, link, last, end) = (reader.header, reader.link, reader.last, reader.at);
    Ok(Loaded { file, header, state, link, snapshot_end, last, end, marked, torn })
}

/// Reads the valid front of a manifest file that [`load`] refuses: the state there, the number of its last
/// edit, and the error after it.
///
/// # Errors
/// As [`load`], if not even the snapshot is valid.
pub(crate) fn load_sound(disk: &dyn Disk, path: &Path, number: u32) -> Result<(State, u64, Error)> {
    let mut reader = Reader::new(disk.open(path, OpenMode::Read, false)?, number)?;
    let mut state = State::empty(reader.header.database, reader.header.format_version);
    reader.read_snapshot(&mut state)?;
    loop {
        let (before, number) = (state.clone(), reader.link.number);
        if let Err(error) = reader.read_edit(&mut state) {
            return Ok((before, number, error));
        }
    }
}

/// Returns true if the manifest file `number` exists and has records after its snapshot: then `CURRENT` named
/// it once.
pub(crate) fn was_current(disk: &dyn Disk, dir: &Path, number: u32) -> Result<bool> {
    let file = match disk.open(&dir.join(file_name(number)), OpenMode::Read, false) {
        Ok(file) => file,
        Err(error) if error.kind() == Kind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    // A file that cannot be read is an unfinished roll.
    let Ok(mut reader) = Reader::new(file, number) else { return Ok(false) };
    loop {
        match reader.next()? {
            Found::Record(header) if header.tag == RecordTag::Edit => return Ok(true),
            Found::Record(header) if header.tag != RecordTag::Mark => reader.step(&header),
            _ => return Ok(false),
        }
    }
}

struct Reader {
    window: Window,
    path: String,
    header: FileHeader,
    link: Link,
    /// Start of the last record.
    last: u64,
    /// Offset of the next record.
    at: u64,
}

impl Reader {
    fn new(file: Arc<dyn File>, number: u32) -> Result<Self> {
        let mut window = Window::new(file)?;
        let path = window.path();
        let header = FileHeader::decode(window.get(0, FILE_HEADER_BYTES as u64)?);
        let header = header.map_err(|error| error.at(&path, 0))?;
        if header.file != number {
            let (expected, found) = (file_name(number), file_name(header.file));
            let message =
                format!("manifest file under a wrong name: expected {expected}, its header says {found}");
            return Err(Error::corrupt(message).at(path, 20));
        }
        let seed = header.checksum();
        let link = Link { seed, previous: seed, number: header.base };
        let at = FILE_HEADER_BYTES as u64;
        Ok(Reader { window, path, header, link, last: at, at })
    }

    /// Reads up to the end of the snapshot, which must be complete.
    fn read_snapshot(&mut self, state: &mut State) -> Result<()> {
        let mut op_count = 0u64;
        loop {
            let header = match self.next()? {
                Found::Record(header) => header,
                Found::End => {
                    return Err(self.corrupt(Error::corrupt("manifest ends within its snapshot"), self.at));
                }
                Found::Broken(error) => return Err(self.corrupt(error, self.at)),
            };
            match header.tag {
                RecordTag::Snapshot => op_count += self.apply(&header, state)?,
                RecordTag::SnapshotEnd => {
                    let found = self.payload(&header)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
                    if found != Some(op_count) || header.len != 8 {
                        let message =
                            format!("manifest snapshot of {op_count} operations: its end says {found:?}");
                        return Err(self.corrupt(Error::corrupt(message), self.at));
                    }
                    self.step(&header);
                    return Ok(());
                }
                tag => return Err(self.misplaced(tag)),
            }
            self.step(&header);
        }
    }

    /// Reads up to the end of the edits; returns whether a mark follows and the number of torn bytes.
    fn read_edits(&mut self, state: &mut State) -> Result<(bool, u64)> {
        loop {
            let header = match self.next()? {
                Found::Record(header) => header,
                Found::End => return Ok((false, 0)),
                // The broken record's own header may be valid: only what follows it counts.
                Found::Broken(error) => {
                    self.check_torn(self.at + 1, &error)?;
                    return Ok((false, self.window.len() - self.at));
                }
            };
            match header.tag {
                RecordTag::Edit => {
                    self.apply(&header, state)?;
                    self.step(&header);
                }
                RecordTag::Mark => {
                    // The next edit would start here, so anything here is the rest of a torn one.
                    let after = self.at + header.record_len();
                    let lost = Error::corrupt("a manifest record is missing here");
                    self.check_torn(after, &lost)?;
                    return Ok((true, self.window.len() - after));
                }
                tag => return Err(self.misplaced(tag)),
            }
        }
    }

    /// Reads one edit; anything else is an error.
    fn read_edit(&mut self, state: &mut State) -> Result<()> {
        let header = match self.next()? {
            Found::Record(header) => header,
            Found::End => return Err(self.corrupt(Error::corrupt("the manifest ends here"), self.at)),
            Found::Broken(error) => return Err(self.corrupt(error, self.at)),
        };
        if header.tag != RecordTag::Edit {
            return Err(self.misplaced(header.tag));
        }
        self.apply(&header, state)?;
        self.step(&header);
        Ok(())
    }

    /// Decodes the record at `self.at` without advancing.
    fn next(&mut self) -> Result<Found> {
        debug_assert!(
            self.is_sound(),
            "records end within the file: the last one begins at {}, the next one at {} of {}",
            self.last,
            self.at,
            self.window.len()
        );
        let rest = self.window.len() - self.at;
        if rest == 0 {
            return Ok(Found::End);
        }
        let header =
            match RecordHeader::decode(self.link.seed, self.window.get(self.at, RECORD_HEADER_BYTES as u64)?)
            {
                Ok(header) => header,
                Err(error) => return Ok(Found::Broken(error)),
            };
        header
            .check_chain(self.link.previous, self.link.number)
            .map_err(|error| self.corrupt(error, self.at))?;
        if header.record_len() > rest {
            let message =
                format!("manifest record of {} bytes: the file ends after {rest}", header.record_len());
            return Ok(Found::Broken(Error::corrupt(message)));
        }
        let seed = self.link.seed;
        match header.check_payload(seed, self.payload(&header)?) {
            Ok(()) => Ok(Found::Record(header)),
            Err(error) => Ok(Found::Broken(error)),
        }
    }

    fn payload(&mut self, header: &RecordHeader) -> Result<&[u8]> {
        self.window.get(self.at + RECORD_HEADER_BYTES as u64, header.len.into())
    }

    /// Applies the edits of the record at `self.at`; returns the number of their operations.
    fn apply(&mut self, header: &RecordHeader, state: &mut State) -> Result<u64> {
        let edits = decode_edits(self.payload(header)?).map_err(|error| self.corrupt(error, self.at))?;
        for edit in &edits {
            state.apply_in_place(edit).map_err(|error| self.corrupt(error, self.at))?;
        }
        Ok(edits.iter().map(|edit| edit.ops.len() as u64).sum())
    }

    fn step(&mut self, header: &RecordHeader) {
        self.link.follow(header);
        self.last = self.at;
        self.at += header.record_len();
        debug_assert!(
            self.is_sound(),
            "a record that was read ends within the file: at {} of {}",
            self.at,
            self.window.len()
        );
    }

    /// True if the last record and the next one lie in the file, behind its header and in this order.
    fn is_sound(&self) -> bool {
        FILE_HEADER_BYTES as u64 <= self.last && self.last <= self.at && self.at <= self.window.len()
    }

    /// Accepts the bytes at `self.at`, which are not a record because of `error`, as torn, unless a valid
    /// record follows at or after `from`.
    fn check_torn(&mut self, from: u64, error: &Error) -> Result<()> {
        debug_assert!(from > self.at, "the header of a torn record does not say that the record was durable");
        let mut at = from;
        loop {
            let bytes = self.window.get(at, SCAN_BYTES)?;
            if let Some(found) = find_header(self.link.seed, bytes) {
                let after = at + found as u64;
                let error =
                    error.clone().context(format!("valid manifest record at {after} after a damaged one"));
                return Err(self.corrupt(error, self.at));
            }
            if bytes.len() < RECORD_HEADER_BYTES {
                return Ok(());
            }
            // The last bytes of a window may begin a header that ends in the next.
            at += (bytes.len() - (RECORD_HEADER_BYTES - 1)) as u64;
        }
    }

    fn misplaced(&self, tag: RecordTag) -> Error {
        self.corrupt(Error::corrupt(format!("manifest record {tag:?} where none may be")), self.at)
    }

    fn corrupt(&self, error: Error, offset: u64) -> Error {
        match error.kind() {
            Kind::Io => error,
            _ => error.with_kind(Kind::Corrupt).at(&self.path, offset),
        }
    }
}

/// Bytes searched at once.
pub(super) const SCAN_BYTES: u64 = 64 << 10;

/// Offset of the first valid record header in `bytes`.
pub(super) fn find_header(seed: u32, bytes: &[u8]) -> Option<usize> {
    bytes.windows(RECORD_HEADER_BYTES).position(|bytes| {
        // The tag and the reserved bytes exclude most offsets before a checksum is computed.
        let plausible = (1..=4).contains(&bytes[20]) && bytes[21..24] == [0; 3];
        plausible && RecordHeader::decode(seed, bytes).is_ok()
    })
}
