//! Reads the manifest: lists the folder, reads the objects from the last snapshot on, and checks that each
//! follows the one before.

use std::collections::BTreeMap;

use bytes::Bytes;
use terrane_base::{Error, Kind, Result};
use terrane_format::manifest::object::{OBJECT_HEADER_BYTES, OBJECT_PAYLOAD_BYTES_MAX};
use terrane_format::manifest::{Edit, EditOp, ManifestObject, ObjectTag};
use terrane_format::object::object_hash;
use terrane_levels::{ManifestSize, State};

use super::ManifestFolder;
use crate::bucket::Listed;

/// Most bytes that an opening reads into memory. A snapshot and the objects behind it are far less: a writer
/// rolls long before, and a snapshot that is longer than one object is refused.
const READ_BYTES_MAX: u64 = OBJECT_PAYLOAD_BYTES_MAX + (256 << 20);
/// Readings until a missing object counts as lost: a writer may delete objects that a later snapshot
/// replaced.
const READINGS: u32 = 4;

/// A manifest that was read to its end.
#[derive(Clone, Debug)]
pub struct Found {
    /// The header of the last object.
    pub last: ManifestObject,
    /// The state after it; `None` if its writer died before the first snapshot.
    pub state: Option<State>,
    pub(super) hash: u128,
    pub(super) size: ManifestSize,
}

impl Found {
    /// The size of what was read.
    pub(crate) fn size(&self) -> ManifestSize {
        self.size
    }
}

impl ManifestFolder {
    /// Reads the manifest; `None` if the folder has no manifest.
    ///
    /// # Errors
    /// `Corrupt`, naming the object, if one is damaged, missing or follows another; `Invalid` if a later
    /// version wrote one; `Io`, `Busy`.
    pub fn read(&self) -> Result<Option<Found>> {
        let mut reading = 0;
        loop {
            reading += 1;
            match self.read_once() {
                // It was deleted between the list and its reading: a later one has what it had.
                Err(error) if error.kind() == Kind::NotFound && reading < READINGS => {}
                Err(error) if error.kind() == Kind::NotFound => {
                    let message =
                        "the bucket lists an object of the manifest that is missing: restore the bucket";
                    return Err(error.context(message).with_kind(Kind::Corrupt));
                }
                read => return read,
            }
        }
    }

    fn read_once(&self) -> Result<Option<Found>> {
        let listed = self.objects.list()?;
        let Some((&newest, object)) = listed.last_key_value() else { return Ok(None) };
        let last = self.fetch(&[(newest, object.bytes)])?.remove(0);
        let (header, _) =
            ManifestObject::decode(newest, &last).map_err(|error| self.objects.at(newest, error))?;
        let first = header.base.max(1);
        let numbers = first..newest;
        let wanted: Vec<_> = numbers.map(|number| self.size(&listed, number)).collect::<Result<_>>()?;
        self.check_bytes(wanted.iter().map(|(_, bytes)| *bytes))?;
        let mut objects = self.fetch(&wanted)?;
        objects.push(last);
        self.follow(first, &objects).map(Some)
    }

    /// The number of an object that must be there, and its size.
    fn size(&self, listed: &BTreeMap<u64, Listed>, number: u64) -> Result<(u64, u64)> {
        let object = listed.get(&number).ok_or_else(|| {
            Error::new(
                Kind::NotFound,
                format!("manifest object {number} is missing in {}", self.objects.place()),
            )
        })?;
        Ok((number, object.bytes))
    }

    /// Refuses a manifest that no writer leaves, before memory is taken for it.
    pub(super) fn check_bytes(&self, sizes: impl Iterator<Item = u64>) -> Result<()> {
        let bytes = sizes.fold(0, u64::saturating_add);
        if bytes <= READ_BYTES_MAX {
            return Ok(());
        }
        let message =
            format!("the manifest has {bytes} bytes after its last snapshot, more than any writer leaves");
        Err(Error::corrupt(message).at(self.objects.place(), 0))
    }

    /// Reads whole objects, all at once.
    pub(super) fn fetch(&self, wanted: &[(u64, u64)]) -> Result<Vec<Bytes>> {
        self.objects.fetch(wanted, OBJECT_PAYLOAD_BYTES_MAX + OBJECT_HEADER_BYTES as u64)
    }

    /// Applies the objects from the number `first` on, the last one included.
    fn follow(&self, first: u64, objects: &[Bytes]) -> Result<Found> {
        let mut found: Option<Found> = None;
        for (number, bytes) in (first..).zip(objects) {
            let read = ManifestObject::decode(number, bytes);
            let next = read.and_then(|(header, payload)| step(found.take(), header, payload, bytes));
            found = Some(next.map_err(|error| self.objects.at(number, error))?);
        }
        found.ok_or_else(|| Error::corrupt("a manifest without an object"))
    }
}

/// The found state with the object `header` behind it.
pub(super) fn step(
    before: Option<Found>,
    header: ManifestObject,
    payload: &[u8],
    bytes: &[u8],
) -> Result<Found> {
    match &before {
        Some(before) => header.check_follows(&before.last, before.hash)?,
        None if header.base == header.number && header.tag == ObjectTag::Snapshot => {}
        None if header.base == 0 && header.number == 1 && header.tag == ObjectTag::TakeOver => {}
        None => return Err(Error::corrupt("a manifest begins with an object that is not a snapshot")),
    }
    let (mut state, mut size) = match before {
        Some(before) => (before.state, before.size),
        None => (None, ManifestSize { file: 0, snapshot_bytes: 0, edit_bytes: 0, edits: 0 }),
    };
    match header.tag {
        ObjectTag::Snapshot => {
            let image = State::from_image(payload)?;
            if image.database != header.database {
                return Err(Error::corrupt("a snapshot of another database"));
            }
            if state.is_some() {
                return Err(Error::corrupt("a snapshot follows the one that the last object names"));
            }
            state = Some(image);
            size = ManifestSize {
                file: header.number,
                snapshot_bytes: bytes.len() as u64,
                edit_bytes: 0,
                edits: 0,
            };
        }
        ObjectTag::Edits => {
            let state = state.as_mut().ok_or_else(|| Error::corrupt("edits before the first snapshot"))?;
            state.apply_record(payload)?;
            size.edit_bytes += bytes.len() as u64;
            size.edits += 1;
        }
        ObjectTag::TakeOver => size.edits += 1,
        ObjectTag::TakeOverWithoutJournal => {
            let before =
                state.ok_or_else(|| Error::corrupt("a journal given up before the first snapshot"))?;
            state = Some(before.apply(&without_journal(&before))?);
            size.edits += 1;
        }
    }
    Ok(Found { last: header, state, hash: object_hash(bytes), size })
}

/// The state of a follower with the object `header` behind it, which may be a later snapshot.
pub(super) fn step_on(before: Found, header: ManifestObject, payload: &[u8], bytes: &[u8]) -> Result<Found> {
    if header.tag != ObjectTag::Snapshot {
        return step(Some(before), header, payload, bytes);
    }
    header.check_follows(&before.last, before.hash)?;
    step(None, header, payload, bytes)
}

/// The edit that forgets the history. A database that was closed in good order stays one: its journal has all
/// up to its last commit.
pub(crate) fn without_history(state: &State) -> Edit {
    let kept = state.history.keys().map(|id| EditOp::ForgetSegment { id: *id });
    let closed = state.clean_close.map(|last_seq| EditOp::CleanClose { last_seq });
    Edit { ops: kept.chain(closed).collect() }
}

/// The edit that forgets all segments, the history's too: what only they hold is given up.
pub(crate) fn without_journal(state: &State) -> Edit {
    let kept = state.history.keys().map(|id| EditOp::ForgetSegment { id: *id });
    let live = state.segments.keys().map(|id| EditOp::RemoveSegment { id: *id });
    Edit { ops: kept.chain(live).collect() }
}
