//! The bytes of a log's files: a header, then records (`docs/format/object-log.md`).
//!
//! Bytes of the directory are hostile: bytes that are not exactly as they were written are not a record.

use std::ops::Range;

use bytes::Bytes;
use terrane_base::{Error, Result};
use terrane_format::object::object_hash;

use crate::bucket::names;

/// Bytes of the header of a file.
pub(super) const FILE_HEADER_BYTES: usize = 64;
/// Bytes of the header of a record, in front of its name.
pub(super) const HEADER_BYTES: usize = 64;
/// Records begin at multiples of this.
pub(super) const ALIGN: u64 = 8;
/// Most bytes of an object.
pub(super) const OBJECT_BYTES_MAX: u64 = 1 << 30;

const MAGIC: [u8; 8] = *b"TRNOBLOG";
const VERSION: u32 = 1;
/// Numbers from here on are damage: none is reached by counting, and behind each there is a next one.
const NUMBER_END: u64 = 1 << 62;

/// The header of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileHeader {
    /// Drawn when the log was made; each file and record has it.
    pub(super) log: u64,
    /// As in the name of the file.
    pub(super) number: u64,
    /// The number of the first record.
    pub(super) first: u64,
    /// The parent of the first record.
    pub(super) parent: u64,
}

impl FileHeader {
    pub(super) fn encode(&self) -> [u8; FILE_HEADER_BYTES] {
        let mut bytes = [0; FILE_HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        for (at, number) in [(16, self.log), (24, self.number), (32, self.first), (40, self.parent)] {
            bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        let checksum = crc32c::crc32c(&bytes[..60]);
        bytes[60..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// # Errors
    /// `Corrupt` if the bytes are not a header; `Invalid` for that of a later version.
    pub(super) fn decode(bytes: &[u8; FILE_HEADER_BYTES]) -> Result<FileHeader> {
        let (expected, found) = (u32_at(bytes, 60), crc32c::crc32c(&bytes[..60]));
        if bytes[..8] != MAGIC || expected != found {
            let text = format!("no header of a log: checksum {found:08x}, expected {expected:08x}");
            return Err(Error::corrupt(text));
        }
        let version = u32_at(bytes, 8);
        if version != VERSION {
            let text = format!("a log of version {version}: this program reads {VERSION}; use a newer one");
            return Err(Error::invalid(text));
        }
        let header = FileHeader {
            log: u64_at(bytes, 16),
            number: u64_at(bytes, 24),
            first: u64_at(bytes, 32),
            parent: u64_at(bytes, 40),
        };
        if bytes[12..16].iter().chain(&bytes[48..60]).any(|byte| *byte != 0) {
            return Err(Error::corrupt("a header of a log with bytes that its version does not have"));
        }
        if ![header.number, header.first].iter().all(|number| (1..NUMBER_END).contains(number)) {
            return Err(Error::corrupt("log number out of range"));
        }
        Ok(header)
    }
}

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// An object was created.
    Create = 1,
    /// Objects were deleted; none if only the mark of the record matters.
    Delete = 2,
    /// An object was copied from a file that is going.
    Copy = 3,
    /// As `Copy`, but its bytes were damaged already: they are kept as they were, and no read takes them.
    CopyDamaged = 4,
}

impl Tag {
    const ALL: [Tag; 4] = [Tag::Create, Tag::Delete, Tag::Copy, Tag::CopyDamaged];
}

/// The header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) tag: Tag,
    pub(super) log: u64,
    /// Counts the records of the log from 1.
    pub(super) number: u64,
    /// All records up to this one were durable when this one was written.
    pub(super) durable: u64,
    /// The hash of the record before.
    pub(super) parent: u64,
    /// Bytes of the payload.
    pub(super) len: u64,
    /// When the object was created, in microseconds since the Unix epoch.
    pub(super) modified: u64,
    /// Of the payload.
    pub(super) checksum: u32,
}

/// A record as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) header: Header,
    /// The object; empty for a deletion.
    pub(super) name: String,
    /// The parent of the next record.
    pub(super) hash: u64,
}

impl Header {
    /// The header and the name behind it.
    pub(super) fn encode(&self, name: &str) -> Vec<u8> {
        assert!(name.len() <= names::NAME_BYTES_MAX, "names were checked");
        let mut bytes = vec![0; HEADER_BYTES + name.len()];
        bytes[4..8].copy_from_slice(&self.checksum.to_le_bytes());
        let numbers = [self.log, self.number, self.durable, self.parent, self.len, self.modified];
        for (at, number) in (8..).step_by(8).zip(numbers) {
            bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        bytes[56..58].copy_from_slice(&(name.len() as u16).to_le_bytes());
        bytes[58] = self.tag as u8;
        bytes[HEADER_BYTES..].copy_from_slice(name.as_bytes());
        let checksum = crc32c::crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Bytes from the front of the record to its payload.
    pub(super) fn front_bytes(name: &str) -> u64 {
        (HEADER_BYTES + name.len()) as u64
    }
}

/// The parent of the next record, behind one with this header and name.
pub(super) fn hash(front: &[u8]) -> u64 {
    object_hash(front) as u64
}

/// Bytes of a record with its padding.
pub(super) fn padded(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGN)
}

/// Bytes of the name of the record that begins with `bytes`, as it says.
pub(super) fn name_bytes(bytes: &[u8; HEADER_BYTES]) -> usize {
    usize::from(u16::from_le_bytes([bytes[56], bytes[57]]))
}

/// The record whose header and name are `front`; `None` if these bytes are not a record.
pub(super) fn decode(front: &[u8]) -> Option<Found> {
    let (header, name) = front.split_at_checked(HEADER_BYTES)?;
    let is_whole = crc32c::crc32c(&front[4..]) == u32_at(front, 0) && header[59..].iter().all(|b| *b == 0);
    if !is_whole || name.len() != usize::from(u16::from_le_bytes([header[56], header[57]])) {
        return None;
    }
    let tag = Tag::ALL.into_iter().find(|tag| *tag as u8 == header[58])?;
    let name = std::str::from_utf8(name).ok()?;
    let header = Header {
        tag,
        checksum: u32_at(header, 4),
        log: u64_at(header, 8),
        number: u64_at(header, 16),
        durable: u64_at(header, 24),
        parent: u64_at(header, 32),
        len: u64_at(header, 40),
        modified: u64_at(header, 48),
    };
    let is_named = if tag == Tag::Delete { name.is_empty() } else { names::check(name).is_ok() };
    let is_counted = (1..NUMBER_END).contains(&header.number) && header.durable < header.number;
    let is_possible = header.len <= OBJECT_BYTES_MAX && (header.len > 0 || tag == Tag::Delete);
    if !is_named || !is_counted || !is_possible {
        return None;
    }
    Some(Found { header, name: name.to_owned(), hash: hash(front) })
}

/// The payload of a deletion.
pub(super) fn encode_names(names: &[String]) -> Bytes {
    let mut bytes = Vec::new();
    for name in names {
        bytes.extend_from_slice(&(name.len() as u16).to_le_bytes());
        bytes.extend_from_slice(name.as_bytes());
    }
    bytes.into()
}

/// The names in the payload of a deletion.
///
/// # Errors
/// `Corrupt` if the bytes are not a list of names.
pub(super) fn decode_names(mut bytes: &[u8]) -> Result<Vec<&str>> {
    let mut names = Vec::new();
    while !bytes.is_empty() {
        let name = bytes.split_first_chunk::<2>().and_then(|(len, rest)| {
            let (name, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*len)))?;
            Some((std::str::from_utf8(name).ok()?, rest))
        });
        let Some((name, rest)) = name.filter(|(name, _)| names::check(name).is_ok()) else {
            return Err(Error::corrupt("the record of a deletion holds an invalid name of an object"));
        };
        names.push(name);
        bytes = rest;
    }
    Ok(names)
}

/// The name of a file.
pub(super) fn file_name(number: u64) -> String {
    format!("{number:020}.log")
}

/// The number of the file of this name, if it is the name of one.
pub(super) fn file_number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".log")?;
    let is_plain = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|number| is_plain && (1..NUMBER_END).contains(number))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

/// The number at a place, which has eight bytes.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

/// Where the number of the log lies in a record.
pub(super) const LOG_AT: Range<usize> = 8..16;

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            tag: Tag::Create,
            log: 0x0102_0304_0506_0708,
            number: 7,
            durable: 6,
            parent: 9,
            len: 5,
            modified: 11,
            checksum: crc32c::crc32c(b"bytes"),
        }
    }

    #[test]
    fn each_flipped_bit_of_a_record_is_found() {
        let front = header().encode("db/journal/1");
        let found = decode(&front).expect("it is one");
        assert_eq!((found.header, found.name.as_str()), (header(), "db/journal/1"));
        for bit in 0..front.len() * 8 {
            let mut damaged = front.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&damaged), None, "bit {bit}");
        }
        for len in 0..front.len() {
            assert_eq!(decode(&front[..len]), None, "{len} bytes");
        }
    }

    #[test]
    fn records_that_no_writer_makes_are_refused() {
        let mark = Header { tag: Tag::Delete, len: 0, checksum: 0, ..header() };
        assert_eq!(decode(&mark.encode("")).expect("a mark deletes nothing").header, mark);
        for (wrong, name) in [
            (Header { number: 0, ..header() }, "a"),
            (Header { number: NUMBER_END, ..header() }, "a"),
            (Header { durable: 7, ..header() }, "a"),
            (Header { len: 0, ..header() }, "a"),
            (Header { len: OBJECT_BYTES_MAX + 1, ..header() }, "a"),
            (Header { tag: Tag::Delete, ..header() }, "a"),
            (header(), ""),
            (header(), "a//b"),
        ] {
            assert_eq!(decode(&wrong.encode(name)), None, "{wrong:?}, {name:?}");
        }
    }

    #[test]
    fn a_header_of_a_file_comes_back_and_each_flipped_bit_is_found() {
        let header = FileHeader { log: 1, number: 2, first: 3, parent: 4 };
        let bytes = header.encode();
        assert_eq!(FileHeader::decode(&bytes).expect("it is one"), header);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            FileHeader::decode(&damaged).expect_err("it is damaged");
        }
        for at in [12, 15, 48, 59] {
            let mut unknown = bytes;
            unknown[at] = 1;
            let checksum = crc32c::crc32c(&unknown[..60]);
            unknown[60..].copy_from_slice(&checksum.to_le_bytes());
            FileHeader::decode(&unknown).expect_err("byte is 0 in this version");
        }
        for wrong in [FileHeader { number: 0, ..header }, FileHeader { first: NUMBER_END, ..header }] {
            FileHeader::decode(&wrong.encode()).expect_err("no log comes to it");
        }
    }

    #[test]
    fn names_of_deletions_and_files_come_back() {
        let names = ["a".to_owned(), "db/journal/1".to_owned()];
        let bytes = encode_names(&names);
        assert_eq!(decode_names(&bytes).expect("names"), names);
        for len in (1..bytes.len()).filter(|len| *len != 3) {
            decode_names(&bytes[..len]).expect_err("it is cut");
        }
        decode_names(&encode_names(&["../a".to_owned()])).expect_err("no name");
        assert_eq!(file_number(&file_name(12)), Some(12));
        for name in ["1.log", "00000000000000000000.log", "00000000000000000001", "00000000000000000001.new"]
        {
            assert_eq!(file_number(name), None, "{name}");
        }
    }
}
