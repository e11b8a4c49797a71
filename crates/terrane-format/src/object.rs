//! Numbered objects of a bucket, of which the manifest and the journal consist: a header with its own
//! checksum, then the payload, and the names. Format page: `docs/format/objects.md`.
//!
//! ```text
//! header = magic:8 version:u16 tags:2 payload_checksum:u32
//!          numbers:u64.. wide:u128.. zeros checksum:u32
//! ```

use terrane_base::{Error, Result};
use xxhash_rust::xxh3::xxh3_128;

use crate::checksum::crc32c;

/// Digits of a number in the name of an object.
const DIGITS: usize = 20;

/// The hash of an object by which the next one names it.
#[must_use]
pub fn object_hash(bytes: &[u8]) -> u128 {
    xxh3_128(bytes)
}

/// The name of the object `number` in its folder.
#[must_use]
pub fn object_name(number: u64) -> String {
    format!("{number:0DIGITS$}")
}

/// The number of the object of this name, if it is the name of one.
#[must_use]
pub fn parse_object_name(name: &str) -> Option<u64> {
    let is_plain = name.len() == DIGITS && name.bytes().all(|byte| byte.is_ascii_digit());
    name.parse().ok().filter(|number| is_plain && *number > 0)
}

/// The common parts of the objects of one kind.
pub(crate) struct ObjectFormat {
    /// The structure that such an object belongs to: "manifest".
    pub(crate) of: &'static str,
    pub(crate) magic: &'static [u8; 8],
    pub(crate) version: u16,
    pub(crate) header_bytes: usize,
}

impl ObjectFormat {
    /// The object: the fields of its header, which end before its last four bytes, and `payload`.
    pub(crate) fn encode(&self, tags: [u8; 2], numbers: &[u64], wide: &[u128], payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.header_bytes + payload.len());
        out.extend_from_slice(self.magic);
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&tags);
        out.extend_from_slice(&crc32c(0, payload).to_le_bytes());
        numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        wide.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        assert!(out.len() <= self.header_bytes - 4, "the fields have room in the header");
        out.resize(self.header_bytes - 4, 0);
        let checksum = crc32c(0, &out);
        out.extend_from_slice(&checksum.to_le_bytes());
        debug_assert_eq!(out.len(), self.header_bytes, "the payload begins where readers look for it");
        out.extend_from_slice(payload);
        out
    }

    /// The fields of the header at the front of `bytes`.
    pub(crate) fn fields<'b>(&self, bytes: &'b [u8]) -> Result<Fields<'b>> {
        let of = self.of;
        let Some(header) = bytes.get(..self.header_bytes) else {
            return Err(Error::corrupt(format!("{of} object is cut in its header")));
        };
        let fields = Fields(header);
        if header[..8] != *self.magic {
            return Err(Error::corrupt(format!("not an object of a {of}")));
        }
        let at = self.header_bytes - 4;
        let (expected, found) = (fields.u32_at(at), crc32c(0, &header[..at]));
        if expected != found {
            let message = format!("{of} object header checksum: expected {expected:08x}, found {found:08x}");
            return Err(Error::corrupt(message));
        }
        let version = u16::from_le_bytes([header[8], header[9]]);
        if version != self.version {
            let known = self.version;
            let message =
                format!("{of} object of version {version}: this program reads {known}; use a newer one");
            return Err(Error::invalid(message));
        }
        Ok(fields)
    }

    /// The error of an unknown tag.
    pub(crate) fn unknown_type(&self, tag: u8) -> Error {
        Error::corrupt(format!("{} object of unknown type {tag}", self.of))
    }

    /// The payload of the object under the name of `number`, whose header says `said` and `len`. Requires:
    /// the header was decoded ([`ObjectFormat::fields`]).
    pub(crate) fn payload<'b>(&self, number: u64, said: u64, len: u64, bytes: &'b [u8]) -> Result<&'b [u8]> {
        assert!(bytes.len() >= self.header_bytes, "the header was decoded before");
        let of = self.of;
        if said != number {
            return Err(Error::corrupt(format!("{of} object {said} under the name of {number}")));
        }
        let (header, payload) = bytes.split_at(self.header_bytes);
        if payload.len() as u64 != len {
            let found = payload.len();
            let message = format!("{of} object of another length: expected {len} bytes, found {found}");
            return Err(Error::corrupt(message));
        }
        let (expected, found) = (Fields(header).u32_at(12), crc32c(0, payload));
        if found != expected {
            let message = format!("{of} object payload checksum: expected {expected:08x}, found {found:08x}");
            return Err(Error::corrupt(message));
        }
        Ok(payload)
    }
}

/// The bytes of a header, checked.
pub(crate) struct Fields<'b>(&'b [u8]);

impl Fields<'_> {
    pub(crate) fn tags(&self) -> [u8; 2] {
        [self.0[10], self.0[11]]
    }

    fn u32_at(&self, at: usize) -> u32 {
        u32::from_le_bytes(std::array::from_fn(|i| self.0[at + i]))
    }

    pub(crate) fn u64_at(&self, at: usize) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|i| self.0[at + i]))
    }

    pub(crate) fn u128_at(&self, at: usize) -> u128 {
        u128::from_le_bytes(std::array::from_fn(|i| self.0[at + i]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbers_of_twenty_digits() {
        for number in [1, 42, u64::MAX] {
            assert_eq!(parse_object_name(&object_name(number)), Some(number));
        }
        for name in ["", "1", "00000000000000000000", "0000000000000000000x", "+0000000000000000001"] {
            assert_eq!(parse_object_name(name), None, "{name}");
        }
    }
}
