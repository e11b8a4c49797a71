//! Files of the manifest: their names, the file header, and `CURRENT`, which names the manifest file in use.
//!
//! The first 64 bytes of a manifest file have the same layout in every format version, so that an old program
//! can name the version that reads a newer file.

use std::fmt;

use terrane_base::{Error, Result};

use super::edit::EditOp;
use crate::checksum::crc32c;

/// The newest format version, which this code reads and writes where a file needs it.
///
/// 1: first version. 2: operation `flushed-all`.
pub const FORMAT_VERSION: u32 = 2;
/// The oldest format version, which is written as long as nothing of a later one is used: programs that know
/// no later one go on reading the database.
pub const FORMAT_VERSION_FIRST: u32 = 1;
impl EditOp {
    /// The format version that a manifest with this operation has at least.
    #[must_use]
    pub fn version(&self) -> u32 {
        match self {
            EditOp::FlushedAll { .. } => 2,
            _ => FORMAT_VERSION_FIRST,
        }
    }
}

/// The oldest release of Terrane that reads [`FORMAT_VERSION`]: major, minor, patch.
pub const READER_VERSION: [u16; 3] = [0, 1, 0];
/// First bytes of a manifest file.
pub const MAGIC: [u8; 8] = *b"terrmani";
/// Bytes of the file header.
pub const FILE_HEADER_BYTES: usize = 64;
/// Longest content of `CURRENT`.
pub const CURRENT_BYTES_MAX: usize = 256;

/// Start value of the checksums of file headers and of `CURRENT`.
const SEED: u32 = 0x7e44_a11e;
/// Start value of the salt of segments, a checksum of the database's id.
const SALT_SEED: u32 = u32::from_le_bytes(*b"SALT");
/// Greatest edit number. No database makes so many edits, and sums below it cannot overflow.
const BASE_MAX: u64 = 1 << 62;
const NAME_PREFIX: &str = "MANIFEST-";

/// The permanent identity of a database, drawn at random when it is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatabaseId(pub u128);

impl DatabaseId {
    /// Ties the groups in segments to this database: see [`crate::segment::segment_seed`].
    #[must_use]
    pub fn segment_salt(self) -> u32 {
        crc32c(SALT_SEED, &self.0.to_le_bytes())
    }
}

impl fmt::Display for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Name of the manifest file with this number.
#[must_use]
pub fn file_name(number: u32) -> String {
    format!("{NAME_PREFIX}{number:06}")
}

/// Number of the manifest file with this name; `None` if [`file_name`] never makes such a name.
#[must_use]
pub fn parse_file_name(name: &str) -> Option<u32> {
    let number = name.strip_prefix(NAME_PREFIX)?.parse().ok()?;
    (file_name(number) == name).then_some(number)
}

/// The first 64 bytes of a manifest file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// Format version of everything in the database.
    pub format_version: u32,
    /// Oldest release that reads this version: major, minor, patch.
    pub reader: [u16; 3],
    /// The file's own number, as in its name.
    pub file: u32,
    /// The database it belongs to.
    pub database: DatabaseId,
    /// Number of the last edit that the snapshot at the front of the file contains.
    pub base: u64,
}

impl FileHeader {
    /// The header of a new file that uses nothing of a later version than the first.
    #[must_use]
    pub fn new(file: u32, database: DatabaseId, base: u64) -> Self {
        FileHeader { format_version: FORMAT_VERSION_FIRST, reader: READER_VERSION, file, database, base }
    }

    /// The same for a file of this format version.
    #[must_use]
    pub fn of_version(self, format_version: u32) -> Self {
        debug_assert!(
            (FORMAT_VERSION_FIRST..=FORMAT_VERSION).contains(&format_version),
            "no reader knows the manifest of version {format_version}"
        );
        FileHeader { format_version, ..self }
    }

    /// The header's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; FILE_HEADER_BYTES] {
        let mut bytes = [0; FILE_HEADER_BYTES];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.format_version.to_le_bytes());
        for (at, part) in (12..).step_by(2).zip(self.reader) {
            bytes[at..at + 2].copy_from_slice(&part.to_le_bytes());
        }
        bytes[20..24].copy_from_slice(&self.file.to_le_bytes());
        bytes[24..40].copy_from_slice(&self.database.0.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.base.to_le_bytes());
        let checksum = crc32c(SEED, &bytes[..60]);
        bytes[60..64].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The checksum of the header: seed of every record in the file, and predecessor of the first record.
    #[must_use]
    pub fn checksum(&self) -> u32 {
        let bytes = self.encode();
        u32::from_le_bytes([bytes[60], bytes[61], bytes[62], bytes[63]])
    }

    /// Decodes the front of a manifest file.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not a file header; `Invalid`, naming the release that reads it, if the
    /// format version is newer; `Invalid` if the database is encrypted.
    pub fn decode(bytes: &[u8]) -> Result<FileHeader> {
        let bytes: &[u8; FILE_HEADER_BYTES] = bytes.first_chunk().ok_or_else(|| {
            Error::corrupt(format!("manifest file of {} bytes: its header is cut", bytes.len()))
        })?;
        if bytes[..8] != MAGIC {
            return Err(Error::corrupt("not a manifest file: its first bytes are not \"terrmani\""));
        }
        let (found, expected) = (u32_at(bytes, 60), crc32c(SEED, &bytes[..60]));
        if found != expected {
            let message = format!("manifest header checksum: expected {expected:08x}, found {found:08x}");
            return Err(Error::corrupt(message));
        }
        let header = FileHeader {
            format_version: u32_at(bytes, 8),
            reader: [u16_at(bytes, 12), u16_at(bytes, 14), u16_at(bytes, 16)],
            file: u32_at(bytes, 20),
            database: DatabaseId(u128::from(u64_at(bytes, 24)) | u128::from(u64_at(bytes, 32)) << 64),
            base: u64_at(bytes, 40),
        };
        header.check_version()?;
        let encryption = u32_at(bytes, 48);
        if encryption != 0 {
            return Err(Error::invalid(format!(
                "the database is encrypted (scheme {encryption}): this program reads no encrypted database"
            )));
        }
        if header.base > BASE_MAX {
            return Err(Error::corrupt(format!(
                "manifest header: edit number {} is out of range",
                header.base
            )));
        }
        // Reserved bytes are zero in every version that this code knows; a later version may use them.
        if header.encode() != *bytes {
            return Err(Error::corrupt("manifest header: reserved bytes are not zero"));
        }
        Ok(header)
    }

    fn check_version(&self) -> Result<()> {
        let [major, minor, patch] = self.reader;
        match self.format_version {
            1..=FORMAT_VERSION => Ok(()),
            0 => Err(Error::corrupt("manifest header: format version 0")),
            newer => Err(Error::invalid(format!(
                "the database has format version {newer} and this program reads up to {FORMAT_VERSION}: \
                 open it with Terrane {major}.{minor}.{patch} or later"
            ))),
        }
    }
}

fn u16_at(bytes: &[u8; FILE_HEADER_BYTES], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8; FILE_HEADER_BYTES], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

fn u64_at(bytes: &[u8; FILE_HEADER_BYTES], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// The content of `CURRENT`: one line of text with a checksum.
///
/// ```text
/// terrane MANIFEST-000007 database 0123456789abcdef0123456789abcdef check 89abcdef
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Current {
    /// Number of the manifest file in use.
    pub file: u32,
    /// The database it belongs to.
    pub database: DatabaseId,
}

impl Current {
    /// Encodes the content of `CURRENT`.
    #[must_use]
    pub fn encode(&self) -> String {
        let front = format!("terrane {} database {}", file_name(self.file), self.database);
        let checksum = crc32c(SEED, front.as_bytes());
        format!("{front} check {checksum:08x}\n")
    }

    /// Reads the content of `CURRENT`.
    ///
    /// # Errors
    /// `Invalid` if it is the `CURRENT` of LevelDB or RocksDB, else `Corrupt` if [`Current::encode`] cannot
    /// have made it.
    pub fn decode(bytes: &[u8]) -> Result<Current> {
        let current = Self::parse(bytes).filter(|current| current.encode().as_bytes() == bytes);
        current.ok_or_else(|| match bytes.strip_suffix(b"\n").map(str::from_utf8) {
            Some(Ok(line)) if line.starts_with(NAME_PREFIX) => Error::invalid(
                "the directory holds a database of LevelDB or RocksDB: choose another directory, or copy one of RocksDB into a new \
                 directory with `terrane import NEW OLD --from rocksdb`",
            ),
            _ => Error::corrupt(format!(
                "CURRENT is damaged: expected one checksummed line, found \"{}\"",
                bytes[..bytes.len().min(CURRENT_BYTES_MAX)].escape_ascii()
            )),
        })
    }

    fn parse(bytes: &[u8]) -> Option<Current> {
        let mut words = str::from_utf8(bytes).ok()?.split([' ', '\n']);
        let file = words.nth(1).and_then(parse_file_name)?;
        let database = u128::from_str_radix(words.nth(1)?, 16).ok()?;
        Some(Current { file, database: DatabaseId(database) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_current_is_shown_as_text() {
        let line = Current { file: 3, database: DatabaseId(7) }.encode();
        let mut bytes = line.clone().into_bytes();
        bytes[line.len() - 3] ^= 0x80;
        let damaged = Current::decode(&bytes).expect_err("a byte is another one").to_string();
        assert!(damaged.contains("found \"terrane MANIFEST-"), "{damaged}");
        assert!(damaged.contains("\\x") && damaged.ends_with("\\n\""), "{damaged}");
    }
}
