//! The headers of frames, and the head of the file that has them in a row (`docs/format/tier.md`).
//!
//! Bytes of the directory are hostile: bytes that are not exactly as they were written are not a header.

use terrane_base::{Error, Result};

/// Bytes of a frame with its header.
pub(super) const FRAME_BYTES: u64 = 64 << 10;
/// Bytes of a header.
pub(super) const HEADER_BYTES: usize = 64;
/// Bytes of an object that a frame holds.
pub const FRAME_PAYLOAD_BYTES: u64 = FRAME_BYTES - HEADER_BYTES as u64;
/// Bytes of the head of the file of headers.
pub(super) const HEAD_BYTES: usize = 4096;
/// Bytes on the device for each frame.
pub(super) const BYTES_PER_FRAME: u64 = FRAME_BYTES + HEADER_BYTES as u64;

const MAGIC: [u8; 8] = *b"TRNTIER1";
const VERSION: u32 = 1;
const HEADER_MAGIC: [u8; 4] = *b"TRFR";
/// Orders from here on are damage: none is reached by counting, and behind each there is a next one.
const ORDER_END: u64 = 1 << 62;

/// An object that is never changed: its name, and the number that its writer drew for itself. A name alone is
/// not enough, because a bucket that was restored from a backup gives names again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey {
    /// The number that the writer drew.
    pub nonce: u128,
    /// The epoch of the writer.
    pub epoch: u64,
    /// The number of the object.
    pub number: u32,
    /// Its part.
    pub part: u32,
}

/// One frame's worth of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FrameKey {
    pub(super) object: ObjectKey,
    /// Counts the frames of an object from 0.
    pub(super) frame: u32,
}

/// The content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) key: FrameKey,
    /// Bytes behind the header.
    pub(super) len: u32,
    /// Frames that came in before.
    pub(super) order: u64,
}

impl Header {
    /// The header in front of `payload`.
    pub(super) fn encode(&self, payload: &[u8]) -> [u8; HEADER_BYTES] {
        assert_eq!(payload.len(), self.len as usize, "the header says how long the payload is");
        let Header { key: FrameKey { object, frame }, len, order } = self;
        let mut bytes = [0; HEADER_BYTES];
        bytes[..16].copy_from_slice(&object.nonce.to_le_bytes());
        bytes[16..24].copy_from_slice(&object.epoch.to_le_bytes());
        bytes[24..28].copy_from_slice(&object.number.to_le_bytes());
        bytes[28..32].copy_from_slice(&object.part.to_le_bytes());
        bytes[32..36].copy_from_slice(&frame.to_le_bytes());
        bytes[36..40].copy_from_slice(&len.to_le_bytes());
        bytes[40..48].copy_from_slice(&order.to_le_bytes());
        bytes[48..52].copy_from_slice(&HEADER_MAGIC);
        bytes[52..56].copy_from_slice(&crc32c::crc32c(payload).to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The header and the checksum of its payload; `None` if these bytes are not a header.
    pub(super) fn decode(bytes: &[u8]) -> Option<(Header, u32)> {
        debug_assert_eq!(bytes.len(), HEADER_BYTES, "the caller cuts headers");
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        if bytes[48..52] != HEADER_MAGIC || number(60) != crc32c::crc32c(&bytes[..60]) {
            return None;
        }
        let object = ObjectKey {
            nonce: u128::from_le_bytes(bytes[..16].try_into().expect("sixteen bytes")),
            epoch: long(16),
            number: number(24),
            part: number(28),
        };
        let key = FrameKey { object, frame: number(32) };
        let header = Header { key, len: number(36), order: long(40) };
        let is_possible = (1..=FRAME_PAYLOAD_BYTES).contains(&header.len.into())
            && header.order < ORDER_END
            && number(56) == 0;
        is_possible.then_some((header, number(52)))
    }

    /// The payload of a frame that was read, if it is the one of this header.
    pub(super) fn payload_of<'a>(&self, frame: &'a [u8]) -> Option<&'a [u8]> {
        let (header, payload) = frame.split_at_checked(HEADER_BYTES)?;
        let (found, crc) = Header::decode(header)?;
        let is_wanted = found == *self || terrane_base::planted!(TrustAnyFrame);
        let payload = payload.get(..self.len as usize)?;
        (is_wanted && crc32c::crc32c(payload) == crc).then_some(payload)
    }
}

/// The head of the file of headers.
pub(super) fn head() -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&(FRAME_BYTES as u32).to_le_bytes());
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    bytes.resize(HEAD_BYTES, 0);
    bytes
}

/// Returns true if headers follow this head; false if the file is empty, damaged or of another version, so
/// that it is begun again.
///
/// # Errors
/// `Invalid` if it is the file of something else.
pub(super) fn check_head(bytes: &[u8]) -> Result<bool> {
    let magic = &bytes[..bytes.len().min(MAGIC.len())];
    if magic.iter().any(|byte| *byte != 0) && magic != &MAGIC[..magic.len()] {
        return Err(Error::invalid("the file begins with other bytes than a cache file"));
    }
    Ok(bytes == head())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let object = ObjectKey { nonce: 7 << 90, epoch: 3, number: 5, part: 1 };
        Header { key: FrameKey { object, frame: 9 }, len: 100, order: 17 }
    }

    #[test]
    fn each_flipped_bit_of_a_frame_is_found() {
        let payload = [3; 100];
        let mut frame = header().encode(&payload).to_vec();
        frame.extend_from_slice(&payload);
        assert_eq!(header().payload_of(&frame), Some(&payload[..]));
        for bit in 0..frame.len() * 8 {
            frame[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(header().payload_of(&frame), None, "bit {bit}");
            frame[bit / 8] ^= 1 << (bit % 8);
        }
        for len in 0..frame.len() {
            assert_eq!(header().payload_of(&frame[..len]), None, "{len} bytes");
        }
    }

    #[test]
    fn a_sound_frame_of_another_identity_is_refused() {
        let payload = [3; 100];
        let of = |header: Header| [&header.encode(&payload)[..], &payload].concat();
        let own = header();
        let object = own.key.object;
        let others = [
            ObjectKey { nonce: 8, ..object },
            ObjectKey { epoch: 4, ..object },
            ObjectKey { number: 6, ..object },
            ObjectKey { part: 0, ..object },
        ];
        for other in others {
            let other = Header { key: FrameKey { object: other, frame: 9 }, ..own };
            assert_eq!(own.payload_of(&of(other)), None, "{other:?}");
        }
        let other = Header { key: FrameKey { object, frame: 8 }, ..own };
        assert_eq!(own.payload_of(&of(other)), None);
        assert_eq!(own.payload_of(&of(Header { order: 18, ..own })), None);
    }

    #[test]
    fn impossible_numbers_are_not_a_header() {
        let payload = vec![1; FRAME_PAYLOAD_BYTES as usize + 1];
        for header in [
            Header { len: 0, ..header() },
            Header { len: payload.len() as u32, ..header() },
            Header { order: ORDER_END, ..header() },
        ] {
            assert_eq!(Header::decode(&header.encode(&payload[..header.len as usize])), None, "{header:?}");
        }
    }

    #[test]
    fn the_head_tells_a_foreign_file_from_a_damaged_one() {
        assert!(check_head(&head()).expect("own"));
        for damaged in [&[][..], &[0; HEAD_BYTES], &head()[..20], &MAGIC[..3]] {
            assert!(!check_head(damaged).expect("begun again"), "{damaged:?}");
        }
        let mut other_version = head();
        other_version[8] = 2;
        assert!(!check_head(&other_version).expect("begun again"));
        assert!(check_head(b"#!/bin/sh\n").is_err());
        assert!(check_head(b"x").is_err());
    }
}
