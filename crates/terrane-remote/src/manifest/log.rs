//! Appends objects to the manifest: the medium behind [`terrane_levels::Manifest`].

use std::sync::Arc;

use terrane_base::env::Random;
use terrane_base::{Error, Kind, Result};
use terrane_format::manifest::object::{OBJECT_HEADER_BYTES, OBJECT_PAYLOAD_BYTES_MAX};
use terrane_format::manifest::{ManifestObject, ObjectTag};
use terrane_format::object::object_hash;
use terrane_levels::{ManifestLog, ManifestSize, State};

use super::trim::Trimmer;
use super::{Found, ManifestFolder};
use crate::bucket::Create;

/// How often a creation is tried whose outcome is unknown. A bucket tries for its own time, too.
const ATTEMPTS: u32 = 3;

/// The objects of a manifest and their one writer.
#[derive(Debug)]
pub(super) struct ObjectLog {
    folder: ManifestFolder,
    random: Arc<dyn Random>,
    last: ManifestObject,
    hash: u128,
    size: ManifestSize,
    trimmer: Trimmer,
}

/// The outcome of a creation.
pub(super) enum Outcome {
    /// The object is this writer's.
    Ours,
    /// Another one has the name; its header, if that can be read.
    Others(Option<ManifestObject>),
}

impl ManifestFolder {
    /// Creates an object. Where the answer was lost or the name was taken, reads the object back: its random
    /// number says which writer created it.
    ///
    /// # Errors
    /// `Poisoned` if that is unknown; any other error: nothing was created.
    pub(super) fn create(&self, number: u64, bytes: &[u8]) -> Result<Outcome> {
        let name = self.objects.name(number);
        let mut unknown = None;
        for _ in 0..ATTEMPTS {
            let created = match self.objects.bucket.create(&name, bytes) {
                Ok(Create::Created) => return Ok(Outcome::Ours),
                Ok(Create::AlreadyExists) => self.whose(number, bytes),
                Err(error) => Err(error),
            };
            match created {
                Err(error) if matches!(error.kind(), Kind::Io | Kind::Busy) => unknown = Some(error),
                // An attempt before may still come to its effect.
                Err(error) if unknown.is_some() => unknown = Some(error),
                outcome => return outcome,
            }
        }
        let error = unknown.unwrap_or_else(|| Error::new(Kind::Io, "no answer"));
        let message =
            format!("whether manifest object {number} was written is unknown: open the database again");
        Err(error.context(message).with_kind(Kind::Poisoned))
    }

    /// Whose the object is that has this number already.
    fn whose(&self, number: u64, bytes: &[u8]) -> Result<Outcome> {
        let front = match self.front(number) {
            Err(error) if error.kind() == Kind::NotFound || error.kind() == Kind::Corrupt => {
                return Ok(Outcome::Others(None));
            }
            front => front?,
        };
        if front[..] == bytes[..OBJECT_HEADER_BYTES] && !terrane_base::planted!(ForgetLostAnswer) {
            return Ok(Outcome::Ours);
        }
        Ok(Outcome::Others(ManifestObject::decode_front(&front).ok()))
    }

    /// The bytes of an object's header.
    fn front(&self, number: u64) -> Result<bytes::Bytes> {
        self.objects.bucket.get_range(&self.objects.name(number), 0..OBJECT_HEADER_BYTES as u64)
    }

    /// The error of a writer that another one has replaced.
    #[cold]
    fn fenced(&self, own: &ManifestObject, other: Option<ManifestObject>) -> Error {
        let by = match other {
            Some(other) if other.epoch > own.epoch => format!("the writer of epoch {}", other.epoch),
            _ => "another writer".to_owned(),
        };
        Error::new(
            Kind::Poisoned,
            format!(
                "{by} has taken over the database in {}: this writer, of epoch {}, was replaced and writes no \
                 more; close it, and open the database again only where it is to be written",
                self.objects.place(),
                own.epoch
            ),
        )
    }
}

impl ObjectLog {
    /// The log behind `found`, whose last object is this writer's.
    pub(super) fn new(
        folder: ManifestFolder,
        random: Arc<dyn Random>,
        found: &Found,
        trimmer: Trimmer,
    ) -> ObjectLog {
        let Found { last, hash, size, .. } = found;
        ObjectLog { folder, random, last: *last, hash: *hash, size: *size, trimmer }
    }

    /// Creates the next object.
    fn put(&mut self, tag: ObjectTag, payload: &[u8]) -> Result<u64> {
        assert!(!tag.is_take_over() && !payload.is_empty(), "only a take-over has no payload");
        if payload.len() as u64 > OBJECT_PAYLOAD_BYTES_MAX {
            let bytes = payload.len();
            return Err(Error::invalid(format!("manifest object of {bytes} bytes: too long")));
        }
        let number = self.last.number + 1;
        let header = ManifestObject {
            tag,
            number,
            parent: self.hash,
            base: if tag == ObjectTag::Snapshot { number } else { self.last.base },
            nonce: drawn(&*self.random),
            len: payload.len() as u64,
            ..self.last
        };
        debug_assert!(header.check_follows(&self.last, self.hash).is_ok(), "readers check the same");
        let bytes = header.encode(payload);
        match self.folder.create(number, &bytes)? {
            Outcome::Ours => {}
            Outcome::Others(other) => return Err(self.folder.fenced(&self.last, other)),
        }
        (self.last, self.hash) = (header, object_hash(&bytes));
        Ok(bytes.len() as u64)
    }
}

impl ManifestLog for ObjectLog {
    fn number(&self) -> u64 {
        self.last.number
    }

    fn size(&self) -> ManifestSize {
        self.size
    }

    fn append(&mut self, payload: &[u8]) -> Result<()> {
        let bytes = self.put(ObjectTag::Edits, payload)?;
        self.size.edit_bytes += bytes;
        self.size.edits += 1;
        Ok(())
    }

    fn roll(&mut self, state: &State) -> Result<()> {
        debug_assert_eq!(state.database, self.last.database, "the state of another database");
        let snapshot_bytes = self.put(ObjectTag::Snapshot, &state.to_image()?)?;
        self.size = ManifestSize { file: self.last.number, snapshot_bytes, edit_bytes: 0, edits: 0 };
        self.trimmer.note_snapshot(self.last.number);
        // Only space is at stake: what cannot be deleted now is deleted behind a later snapshot.
        let _ = self.trimmer.trim(&self.folder);
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        match self.folder.front(self.last.number + 1) {
            Err(error) if error.kind() == Kind::NotFound => Ok(()),
            Err(error) if error.kind() == Kind::Corrupt => Err(self.folder.fenced(&self.last, None)),
            Err(error) => Err(error),
            Ok(front) => Err(self.folder.fenced(&self.last, ManifestObject::decode_front(&front).ok())),
        }
    }

    fn close(&mut self) -> Result<()> {
        self.check()
    }
}

/// A number that no other writer draws.
pub(super) fn drawn(random: &dyn Random) -> u128 {
    u128::from(random.next_u64()) << 64 | u128::from(random.next_u64())
}
