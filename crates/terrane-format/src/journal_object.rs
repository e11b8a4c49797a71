//! Bytes of the journal as numbered objects of a bucket: a header with its own checksum, then the payload.
//! Format page: `docs/format/objects.md`.
//!
//! Objects are created if absent and never changed. Each has the hash of the object before it. A writer
//! begins with a fence, and goes on [`FENCE_SPAN`] numbers behind it: the numbers between may be taken by
//! objects that the writer before had under way, and are void.

use terrane_base::{Error, Result, SegmentId};

use crate::manifest::DatabaseId;
use crate::object::ObjectFormat;

/// Bytes before a payload.
pub const JOURNAL_HEADER_BYTES: usize = 128;
/// Longest payload.
pub const JOURNAL_PAYLOAD_BYTES_MAX: u64 = 128 << 20;
/// The distance from the number of a fence to that of the next object: more than the number of objects that a
/// writer uploads at once.
pub const FENCE_SPAN: u64 = 16;

const FORMAT: ObjectFormat =
    ObjectFormat { of: "journal", magic: b"trnjourn", version: 1, header_bytes: JOURNAL_HEADER_BYTES };
const RANGE_BYTES: usize = 24;

/// The kind of payload of a journal object. The discriminants are part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum JournalTag {
    /// Bytes of segments.
    Bytes = 1,
    /// The first object of a writer: no writer before it appends any more. It has no payload, all others have
    /// one, so a list that tells sizes tells it from them.
    Fence = 2,
}

/// The decoded header of an object of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalObject {
    /// The kind of the payload.
    pub tag: JournalTag,
    /// Its number, from 1.
    pub number: u64,
    /// Hash of the object before it; 0 for the first.
    pub parent: u128,
    /// Objects below this number are no longer needed; its own number if all are needed.
    pub first: u64,
    /// All objects up to this number were there when this one was made; 0 if no object is known to be.
    pub confirmed: u64,
    /// Counts the writers of the manifest: each takes the next one.
    pub epoch: u64,
    /// Drawn for each object, so that its writer knows it again.
    pub nonce: u128,
    /// The database.
    pub database: DatabaseId,
    /// The objects up to this one have all commits that were durable in a directory before. If not, the
    /// journal is being moved from there.
    pub is_whole: bool,
    /// Bytes of the payload.
    pub len: u64,
}

/// Bytes of one segment within a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalRange {
    /// The segment.
    pub segment: SegmentId,
    /// Where they lie in it.
    pub offset: u64,
    /// How many they are, 1 at least.
    pub len: u64,
}

/// The payload of the bytes of `ranges`, one behind the other.
#[must_use]
pub fn encode_payload(ranges: &[JournalRange], bytes: &[u8]) -> Vec<u8> {
    let total: u64 = ranges.iter().map(|range| range.len).sum();
    assert!(!ranges.is_empty() && total == bytes.len() as u64, "{total} bytes of ranges, {}", bytes.len());
    let mut out = Vec::with_capacity(8 + ranges.len() * RANGE_BYTES + bytes.len());
    out.extend_from_slice(&(ranges.len() as u64).to_le_bytes());
    for range in ranges {
        for number in [range.segment.0, range.offset, range.len] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
    out.extend_from_slice(bytes);
    out
}

/// The ranges of a payload, each with its bytes.
///
/// # Errors
/// `Corrupt`, without a place, if the payload cannot be decoded.
pub fn decode_payload(payload: &[u8]) -> Result<Vec<(JournalRange, &[u8])>> {
    let cut = || Error::corrupt("journal object is cut in the table of its ranges");
    let (count, rest) = payload.split_first_chunk::<8>().ok_or_else(cut)?;
    let count = u64::from_le_bytes(*count);
    if count == 0 || count > (rest.len() / RANGE_BYTES) as u64 {
        return Err(cut());
    }
    let (table, mut bytes) = rest.split_at(count as usize * RANGE_BYTES);
    let mut found = Vec::with_capacity(count as usize);
    for row in table.chunks_exact(RANGE_BYTES) {
        let field = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| row[at + i]));
        let range = JournalRange { segment: SegmentId(field(0)), offset: field(8), len: field(16) };
        let is_sound = range.len > 0
            && range.len <= bytes.len() as u64
            && range.offset.checked_add(range.len).is_some_and(|end| end <= u64::from(u32::MAX) * 2);
        if !is_sound {
            return Err(Error::corrupt(format!("journal object with an impossible range: {range:?}")));
        }
        let (own, behind) = bytes.split_at(range.len as usize);
        found.push((range, own));
        bytes = behind;
    }
    if !bytes.is_empty() {
        return Err(Error::corrupt(format!("journal object with {} bytes of no range", bytes.len())));
    }
    Ok(found)
}

impl JournalObject {
    /// The object: this header, with the length of `payload`, and `payload`.
    #[must_use]
    pub fn encode(&self, payload: &[u8]) -> Vec<u8> {
        assert!((self.tag == JournalTag::Fence) == payload.is_empty(), "only a fence has no payload");
        let numbers = [self.number, self.first, self.confirmed, self.epoch, payload.len() as u64];
        let wide = [self.parent, self.nonce, self.database.0];
        FORMAT.encode([self.tag as u8, u8::from(self.is_whole)], &numbers, &wide, payload)
    }

    /// Decodes an object: the header and the payload.
    ///
    /// # Errors
    /// `Corrupt`, without a place, if the bytes are not a whole object with the number `number`; `Invalid` if
    /// a later version wrote it.
    pub fn decode(number: u64, bytes: &[u8]) -> Result<(JournalObject, &[u8])> {
        let header = Self::decode_front(bytes)?;
        let payload = FORMAT.payload(number, header.number, header.len, bytes)?;
        Ok((header, payload))
    }

    /// Decodes a header at the front of `bytes`, which may end behind it.
    ///
    /// # Errors
    /// As [`JournalObject::decode`], except for errors that only the payload shows.
    pub fn decode_front(bytes: &[u8]) -> Result<JournalObject> {
        let fields = FORMAT.fields(bytes)?;
        let [tag, is_whole] = fields.tags();
        let header = JournalObject {
            tag: match tag {
                1 => JournalTag::Bytes,
                2 => JournalTag::Fence,
                other => return Err(FORMAT.unknown_type(other)),
            },
            number: fields.u64_at(16),
            first: fields.u64_at(24),
            confirmed: fields.u64_at(32),
            epoch: fields.u64_at(40),
            len: fields.u64_at(48),
            parent: fields.u128_at(56),
            nonce: fields.u128_at(72),
            database: DatabaseId(fields.u128_at(88)),
            is_whole: is_whole == 1,
        };
        let is_sound = (1..u64::MAX / 2).contains(&header.number)
            && (1..=header.number).contains(&header.first)
            && header.confirmed < header.number
            && (1..u64::MAX / 2).contains(&header.epoch)
            && is_whole <= 1
            && (header.tag == JournalTag::Fence) == (header.len == 0)
            && header.len <= JOURNAL_PAYLOAD_BYTES_MAX;
        if !is_sound {
            return Err(Error::corrupt(format!("journal object with impossible numbers: {header:?}")));
        }
        Ok(header)
    }

    /// The number of the object that follows this one.
    #[must_use]
    pub fn next_number(&self) -> u64 {
        self.number + if self.tag == JournalTag::Fence { FENCE_SPAN } else { 1 }
    }

    /// Checks that this object follows `parent`, whose bytes have the hash `hash`.
    ///
    /// # Errors
    /// `Corrupt`, naming what differs.
    pub fn check_follows(&self, parent: &JournalObject, hash: u128) -> Result<()> {
        let is_new = self.tag == JournalTag::Fence;
        let what = if self.number != parent.next_number() {
            "its number is not the next one"
        } else if self.parent != hash {
            "it follows other bytes"
        } else if self.database != parent.database {
            "it is of another database"
        } else if is_new && self.epoch <= parent.epoch || !is_new && self.epoch != parent.epoch {
            "its epoch does not follow"
        } else if self.first < parent.first || self.confirmed < parent.confirmed {
            "it covers fewer commits than the object before it"
        } else {
            return Ok(());
        };
        let message = format!("journal object {} does not follow {}: {what}", self.number, parent.number);
        Err(Error::corrupt(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> JournalObject {
        JournalObject {
            tag: JournalTag::Bytes,
            number: 20,
            parent: 1 << 100,
            first: 3,
            confirmed: 18,
            epoch: 2,
            nonce: 99 << 70,
            database: DatabaseId(5 << 90),
            is_whole: true,
            len: 0,
        }
    }

    fn ranges() -> Vec<JournalRange> {
        let range = |segment, offset, len| JournalRange { segment: SegmentId(segment), offset, len };
        vec![range(4, 100, 3), range(5, 0, 2)]
    }

    #[test]
    fn an_object_comes_back_and_no_flipped_bit_does() {
        let payload = encode_payload(&ranges(), b"abcde");
        let bytes = header().encode(&payload);
        let (found, back) = JournalObject::decode(20, &bytes).expect("whole");
        assert_eq!(found, JournalObject { len: payload.len() as u64, ..header() });
        let back = decode_payload(back).expect("whole");
        assert_eq!(back, vec![(ranges()[0], &b"abc"[..]), (ranges()[1], &b"de"[..])]);
        for at in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[at / 8] ^= 1 << (at % 8);
            assert!(JournalObject::decode(20, &damaged).is_err(), "bit {at}");
        }
        for len in 0..bytes.len() {
            assert!(JournalObject::decode(20, &bytes[..len]).is_err(), "cut at {len}");
        }
        assert!(JournalObject::decode(21, &bytes).is_err(), "under another name");
    }

    #[test]
    fn a_payload_is_one_by_its_table() {
        let payload = encode_payload(&ranges(), b"abcde");
        for len in 0..payload.len() {
            assert!(decode_payload(&payload[..len]).is_err(), "cut at {len}");
        }
        decode_payload(&[&payload[..], &[0]].concat()).expect_err("a byte of no range");
        for (at, value) in [(0, 0), (0, 3), (0, u64::MAX), (16, u64::MAX), (24, 0), (24, 9), (24, u64::MAX)] {
            let mut damaged = payload.clone();
            damaged[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
            assert!(decode_payload(&damaged).is_err(), "{value} at {at}");
        }
    }

    #[test]
    fn only_the_next_object_follows() {
        let first = header();
        let next = JournalObject { number: 21, parent: 77, confirmed: 20, nonce: 1, ..first };
        next.check_follows(&first, 77).expect("it follows");
        let fence = JournalObject { tag: JournalTag::Fence, epoch: 5, ..next };
        fence.check_follows(&first, 77).expect("it takes over");
        let behind = JournalObject { number: 21 + FENCE_SPAN, epoch: 5, ..next };
        behind.check_follows(&fence, 77).expect("it begins");
        for wrong in [
            JournalObject { number: 22, ..next },
            JournalObject { parent: 78, ..next },
            JournalObject { database: DatabaseId(1), ..next },
            JournalObject { epoch: 3, ..next },
            JournalObject { first: 2, ..next },
            JournalObject { confirmed: 17, ..next },
            JournalObject { epoch: 2, ..fence },
        ] {
            assert!(wrong.check_follows(&first, 77).is_err(), "{wrong:?}");
        }
        assert!(JournalObject { number: 22, ..behind }.check_follows(&fence, 77).is_err());
    }
}
