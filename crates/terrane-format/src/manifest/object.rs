//! The manifest as numbered objects of a bucket: a header with its own checksum, then the payload. Format
//! page: `docs/format/objects.md`.
//!
//! Objects are created if absent and never changed. Each has the hash of the object before it, so the chain
//! from the last one back covers every byte down to the snapshot that it begins with.

use terrane_base::{Error, Result};

use super::DatabaseId;
use crate::object::ObjectFormat;

/// Bytes before a payload.
pub const OBJECT_HEADER_BYTES: usize = 160;
/// Longest payload.
pub const OBJECT_PAYLOAD_BYTES_MAX: u64 = 1 << 30;

const FORMAT: ObjectFormat =
    ObjectFormat { of: "manifest", magic: b"trnmanif", version: 1, header_bytes: OBJECT_HEADER_BYTES };

/// The kind of payload of a manifest object. The discriminants are part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ObjectTag {
    /// The whole state, as the bytes of a manifest file with a snapshot and no edit.
    Snapshot = 1,
    /// Edits that take effect together.
    Edits = 2,
    /// The first object of a writer: no writer before it appends any more. It has no payload, all others have
    /// one, so a list that tells sizes tells it from them.
    TakeOver = 3,
    /// A take-over that forgets every segment, the history's too: the journal of the writer before is given
    /// up. One object says both, so no crash comes between them.
    TakeOverWithoutJournal = 4,
}

impl ObjectTag {
    fn from_u8(number: u8) -> Option<Self> {
        match number {
            1 => Some(ObjectTag::Snapshot),
            2 => Some(ObjectTag::Edits),
            3 => Some(ObjectTag::TakeOver),
            4 => Some(ObjectTag::TakeOverWithoutJournal),
            _ => None,
        }
    }

    /// Returns true if it is the first object of a writer.
    #[must_use]
    pub fn is_take_over(self) -> bool {
        matches!(self, ObjectTag::TakeOver | ObjectTag::TakeOverWithoutJournal)
    }
}

/// The decoded header of an object of the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManifestObject {
    /// The kind of the payload.
    pub tag: ObjectTag,
    /// Its number, that of the object before it plus one. From 1.
    pub number: u64,
    /// Hash of the object before it; 0 for the first.
    pub parent: u128,
    /// Number of the snapshot that the state is read from: its own for a snapshot; 0 before the first.
    pub base: u64,
    /// Counts the writers: each takes the next one.
    pub epoch: u64,
    /// Number of the first object of its writer.
    pub begun: u64,
    /// Drawn for each object, so that its writer knows it again.
    pub nonce: u128,
    /// The database.
    pub database: DatabaseId,
    /// The journal that the writer goes on with.
    pub journal: u128,
    /// Bytes of the payload.
    pub len: u64,
}

impl ManifestObject {
    /// The object: this header, with the length of `payload`, and `payload`.
    #[must_use]
    pub fn encode(&self, payload: &[u8]) -> Vec<u8> {
        let numbers = [self.number, self.base, self.epoch, self.begun, payload.len() as u64];
        let wide = [self.parent, self.nonce, self.database.0, self.journal];
        FORMAT.encode([self.tag as u8, 0], &numbers, &wide, payload)
    }

    /// Decodes an object: the header and the payload.
    ///
    /// # Errors
    /// `Corrupt`, without a place, if the bytes are not a whole object with the number `number`; `Invalid` if
    /// a later version wrote it.
    pub fn decode(number: u64, bytes: &[u8]) -> Result<(ManifestObject, &[u8])> {
        let header = Self::decode_front(bytes)?;
        let payload = FORMAT.payload(number, header.number, header.len, bytes)?;
        Ok((header, payload))
    }

    /// Decodes a header at the front of `bytes`, which may end behind it.
    ///
    /// # Errors
    /// As [`ManifestObject::decode`], except for errors that only the payload shows.
    pub fn decode_front(bytes: &[u8]) -> Result<ManifestObject> {
        let fields = FORMAT.fields(bytes)?;
        let [tag, _] = fields.tags();
        let header = ManifestObject {
            tag: ObjectTag::from_u8(tag).ok_or_else(|| FORMAT.unknown_type(tag))?,
            number: fields.u64_at(16),
            base: fields.u64_at(24),
            epoch: fields.u64_at(32),
            begun: fields.u64_at(40),
            len: fields.u64_at(48),
            parent: fields.u128_at(56),
            nonce: fields.u128_at(72),
            database: DatabaseId(fields.u128_at(88)),
            journal: fields.u128_at(104),
        };
        let is_sound = (1..u64::MAX / 2).contains(&header.number)
            && header.base <= header.number
            && header.tag.is_take_over() == (header.len == 0)
            && (1..=header.number).contains(&header.begun)
            && (1..u64::MAX / 2).contains(&header.epoch)
            && header.len <= OBJECT_PAYLOAD_BYTES_MAX;
        if !is_sound {
            return Err(Error::corrupt(format!("manifest object with impossible numbers: {header:?}")));
        }
        Ok(header)
    }

    /// Checks that this object follows `parent`, whose bytes have the hash `hash`.
    ///
    /// # Errors
    /// `Corrupt`, naming what differs.
    pub fn check_follows(&self, parent: &ManifestObject, hash: u128) -> Result<()> {
        let is_new = self.tag.is_take_over();
        let what = if self.number != parent.number + 1 {
            "its number is not the next one"
        } else if self.parent != hash {
            "it follows other bytes"
        } else if self.database != parent.database {
            "it is of another database"
        } else if self.epoch != parent.epoch + u64::from(is_new) {
            "its epoch is not the next one"
        } else if self.begun != if is_new { self.number } else { parent.begun } {
            "its header names another beginning of its writer"
        } else if self.base != if self.tag == ObjectTag::Snapshot { self.number } else { parent.base } {
            "it names another snapshot"
        } else if !is_new && self.journal != parent.journal {
            "it names another journal"
        } else {
            return Ok(());
        };
        let message = format!("manifest object {} does not follow {}: {what}", self.number, parent.number);
        Err(Error::corrupt(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> ManifestObject {
        ManifestObject {
            tag: ObjectTag::Edits,
            number: 7,
            parent: 1 << 100,
            base: 3,
            epoch: 2,
            begun: 6,
            nonce: 99 << 70,
            database: DatabaseId(5 << 90),
            journal: 4 << 80,
            len: 11,
        }
    }

    #[test]
    fn an_object_comes_back_and_no_flipped_bit_does() {
        let bytes = header().encode(b"the payload");
        assert_eq!(ManifestObject::decode(7, &bytes).expect("whole"), (header(), &b"the payload"[..]));
        for at in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[at / 8] ^= 1 << (at % 8);
            assert!(ManifestObject::decode(7, &damaged).is_err(), "bit {at}");
        }
        for len in 0..bytes.len() {
            assert!(ManifestObject::decode(7, &bytes[..len]).is_err(), "cut at {len}");
        }
        assert!(ManifestObject::decode(8, &bytes).is_err(), "under another name");
    }

    #[test]
    fn only_the_next_object_follows() {
        let first = header();
        let next = ManifestObject { number: 8, parent: 77, nonce: 1, ..first };
        next.check_follows(&first, 77).expect("it follows");
        let taken = ManifestObject { tag: ObjectTag::TakeOver, epoch: 3, begun: 8, journal: 1, ..next };
        taken.check_follows(&first, 77).expect("it takes over");
        let without = ManifestObject { tag: ObjectTag::TakeOverWithoutJournal, len: 0, ..taken };
        without.check_follows(&first, 77).expect("it takes over and gives the journal up");
        let (found, payload) = (without.encode(&[]), &b""[..]);
        assert_eq!(ManifestObject::decode(8, &found).expect("whole"), (without, payload));
        for wrong in [
            ManifestObject { number: 9, ..next },
            ManifestObject { parent: 78, ..next },
            ManifestObject { database: DatabaseId(1), ..next },
            ManifestObject { epoch: 3, ..next },
            ManifestObject { begun: 8, ..next },
            ManifestObject { base: 8, ..next },
            ManifestObject { journal: 1, ..next },
            ManifestObject { epoch: 2, ..taken },
            ManifestObject { tag: ObjectTag::Snapshot, ..next },
        ] {
            assert!(wrong.check_follows(&first, 77).is_err(), "{wrong:?}");
        }
    }
}
