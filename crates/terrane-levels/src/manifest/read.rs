//! Reading a manifest file back.
//!
//! The snapshot at the front was durable before `CURRENT` named the file, so anything wrong in it is damage.
//! After it an append is one write of one record, begun only when the record before it was durable. What a
//! record that cannot be read means:
//!
//! | the bytes | what follows them | meaning |
//! |---|---|---|
//! | valid, but not the successor of the record before | anything | a record was lost or misplaced: corrupt |
//! | checksum wrong, or the file ends inside | a valid header of this file | it was durable: corrupt |
//! | checksum wrong, or the file ends inside | nothing valid | its append never returned: torn, cut off |
//!
//! Each append leaves a durable-end mark behind its record, so damage to the last record is seen, too, unless
//! power was lost before the mark reached the device.

use std::path::Path;
use std::sync::Arc;

use terrane_base::{Error, Kind, Result};
use terrane_device::{Disk, File, OpenMode};
use terrane_format::manifest::edit::decode_edits;
use terrane_format::manifest::file::{FILE_HEADER_BYTES, FileHeader, file_name};
use terrane_format::manifest::record::{Link, RECORD_HEADER_BYTES, RecordHeader, RecordTag};

use super::window::Window;
use crate::state::State;

/// A manifest file, read to its end.
pub(crate) struct Loaded {
    pub(crate) file: Arc<dyn File>,
    pub(crate) header: FileHeader,
    pub(crate) state: State,
    /// Where the next record is chained to.
    pub(crate) link: Link,
    /// Where the snapshot ends.
    pub(crate) snapshot_end: u64,
    /// Where the last record begins.
    pub(crate) last: u64,
    /// Where the last record ends and the next will begin.
    pub(crate) end: u64,
    /// Whether a durable-end mark follows the last record.
    pub(crate) marked: bool,
    /// Bytes of a torn record after that.
    pub(crate) torn: u64,
}

/// What is at a place in the file.
enum Found {
    Record(RecordHeader),
    /// The file ends here.
    End,
    /// Not a whole valid record; the error says why.
    Broken(Error),
}

/// Reads the manifest file `number` in `dir`; one whose end looks torn twice, since a writer cuts that off: what was only read
/// wrong must not be lost.
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
    // Records are chained and have checksums: the more there are, the more is true.
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

/// Reads a manifest file that [`load`] refuses as far as it is sound: the state there, and what is wrong behind it.
///
/// # Errors
/// As [`load`], if not even the snapshot is whole.
pub(crate) fn load_sound(disk: &dyn Disk, path: &Path, number: u32) -> Result<(State, Error)> {
    let mut reader = Reader::new(disk.open(path, OpenMode::Read, false)?, number)?;
    let mut state = State::empty(reader.header.database, reader.header.format_version);
    reader.read_snapshot(&mut state)?;
    loop {
        let before = state.clone();
        if let Err(error) = reader.read_edit(&mut state) {
            return Ok((before, error));
        }
    }
}

/// Whether the manifest file `number` exists and goes beyond its snapshot: then `CURRENT` named it once.
pub(crate) fn was_current(disk: &dyn Disk, dir: &Path, number: u32) -> Result<bool> {
    let file = match disk.open(&dir.join(file_name(number)), OpenMode::Read, false) {
        Ok(file) => file,
        Err(error) if error.kind() == Kind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    // Anything that does not read well is a roll that was cut short.
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
    /// Where the last record began.
    last: u64,
    /// Where the next record is expected.
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

    /// Reads up to the end of the snapshot, which must be whole.
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

    /// Reads up to the end of the edits; returns whether a mark is there and how many torn bytes follow.
    fn read_edits(&mut self, state: &mut State) -> Result<(bool, u64)> {
        loop {
            let header = match self.next()? {
                Found::Record(header) => header,
                Found::End => return Ok((false, 0)),
                // The broken record's own header may be valid: only what comes after it counts.
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
                    // The next edit would be here: what follows can only be the rest of one that was torn.
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

    /// Looks at `self.at`; moves nothing.
    fn next(&mut self) -> Result<Found> {
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

    /// Applies the edits of the record at `self.at`; returns how many operations they had.
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
    }

    /// Accepts the bytes at `self.at`, which make no record because of `error`, as torn: unless something valid
    /// comes at or after `from`.
    fn check_torn(&mut self, from: u64, error: &Error) -> Result<()> {
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
const SCAN_BYTES: u64 = 64 << 10;

/// Offset of the first valid record header in `bytes`.
fn find_header(seed: u32, bytes: &[u8]) -> Option<usize> {
    bytes.windows(RECORD_HEADER_BYTES).position(|bytes| {
        // The tag and the reserved bytes rule out most places before a checksum is computed.
        let plausible = (1..=4).contains(&bytes[20]) && bytes[21..24] == [0; 3];
        plausible && RecordHeader::decode(seed, bytes).is_ok()
    })
}
