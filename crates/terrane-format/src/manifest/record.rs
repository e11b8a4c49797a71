//! Records of a manifest file: a header with its own checksum, then the payload.
//!
//! ```text
//! length u32 | payload checksum u32 | number u64 | previous u32 | tag u8 | 0 0 0 | header checksum u32
//! payload
//! ```
//!
//! A record is valid if and only if
//! 1. its header checksum is right, seeded with the checksum of the file header;
//! 2. `previous` is the header checksum of the record before it (of the file header, for the first);
//! 3. its number is that of the record before it, or one more if it is an edit;
//! 4. its payload checksum is right.
//!
//! The header checksum covers the payload's checksum, so the chain covers every byte from the start of the
//! file. The header has its own checksum so that a reader never trusts a damaged length.

use terrane_base::{Error, Result};

use crate::checksum::crc32c;

/// Bytes before a payload.
pub const RECORD_HEADER_BYTES: usize = 28;
/// Longest payload.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;

/// The type of a record. The discriminants are part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordTag {
    /// A piece of the snapshot at the front of the file: edits that make up the state.
    Snapshot = 1,
    /// The snapshot is complete. Payload: the number of its operations, u64.
    SnapshotEnd = 2,
    /// Edits that take effect together.
    Edit = 3,
    /// Durable-end mark: every record before it is durable. No payload. The next edit overwrites it.
    Mark = 4,
}

impl RecordTag {
    /// The tag with this number, if this version knows it.
    #[must_use]
    pub fn from_u8(number: u8) -> Option<Self> {
        match number {
            1 => Some(RecordTag::Snapshot),
            2 => Some(RecordTag::SnapshotEnd),
            3 => Some(RecordTag::Edit),
            4 => Some(RecordTag::Mark),
            _ => None,
        }
    }
}

/// The decoded header before a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// Bytes of the payload.
    pub len: u32,
    /// CRC-32C of the payload.
    pub payload_checksum: u32,
    /// For an edit its own number, else the number of the last edit before it.
    pub number: u64,
    /// Header checksum of the record before.
    pub previous: u32,
    /// Type of the record.
    pub tag: RecordTag,
    /// CRC-32C of the fields above.
    pub checksum: u32,
}

impl RecordHeader {
    /// Decodes the header at the front of `bytes`. `seed` is the checksum of the file header.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not a record header of this file.
    pub fn decode(seed: u32, bytes: &[u8]) -> Result<RecordHeader> {
        let bytes: &[u8; RECORD_HEADER_BYTES] =
            bytes.first_chunk().ok_or_else(|| Error::corrupt("manifest record header is cut"))?;
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (found, expected) = (u32_at(24), crc32c(seed, &bytes[..24]));
        if found != expected {
            let message =
                format!("manifest record header checksum: expected {expected:08x}, found {found:08x}");
            return Err(Error::corrupt(message));
        }
        let tag = RecordTag::from_u8(bytes[20])
            .ok_or_else(|| Error::corrupt(format!("manifest record of unknown tag {}", bytes[20])))?;
        let header = RecordHeader {
            len: u32_at(0),
            payload_checksum: u32_at(4),
            number: u64::from(u32_at(8)) | u64::from(u32_at(12)) << 32,
            previous: u32_at(16),
            tag,
            checksum: found,
        };
        if header.len as usize > PAYLOAD_BYTES_MAX {
            let message =
                format!("manifest record of {} bytes: the limit is {PAYLOAD_BYTES_MAX}", header.len);
            return Err(Error::corrupt(message));
        }
        if bytes[21..24] != [0; 3] {
            return Err(Error::corrupt("manifest record header: reserved bytes are not zero"));
        }
        Ok(header)
    }

    /// Bytes of the whole record.
    #[must_use]
    pub fn record_len(&self) -> u64 {
        RECORD_HEADER_BYTES as u64 + u64::from(self.len)
    }

    /// Checks that the record follows one with header checksum `previous` and number `number`.
    ///
    /// # Errors
    /// `Corrupt` if a record is missing, repeated, or out of place.
    pub fn check_chain(&self, previous: u32, number: u64) -> Result<()> {
        let expected = number.saturating_add(u64::from(self.tag == RecordTag::Edit));
        if terrane_base::planted!(IgnoreEditChain) {
            return Ok(());
        }
        if self.number != expected {
            let message =
                format!("manifest record is out of place: expected number {expected}, found {}", self.number);
            return Err(Error::corrupt(message));
        }
        if self.previous != previous {
            let message = format!(
                "manifest record does not follow the one before it: expected its checksum {previous:08x}, \
                 found {:08x}",
                self.previous
            );
            return Err(Error::corrupt(message));
        }
        Ok(())
    }

    /// Checks the payload.
    ///
    /// # Errors
    /// `Corrupt` if length or checksum is wrong.
    pub fn check_payload(&self, seed: u32, payload: &[u8]) -> Result<()> {
        let found = crc32c(seed, payload);
        if payload.len() != self.len as usize
            || found != self.payload_checksum && !terrane_base::planted!(IgnoreEditChecksum)
        {
            let expected = self.payload_checksum;
            let message = format!("manifest payload checksum: expected {expected:08x}, found {found:08x}");
            return Err(Error::corrupt(message));
        }
        Ok(())
    }
}

/// The position of a new record in the chain: the seed of its file and the record before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Checksum of the file header.
    pub seed: u32,
    /// Header checksum of the record before; of the file header, for the first record.
    pub previous: u32,
    /// Number of the last edit so far.
    pub number: u64,
}

impl Link {
    /// Appends a record to `out` and advances to the link for the next record.
    ///
    /// Requires: the payload is at most [`PAYLOAD_BYTES_MAX`] long. A mark does not advance the link, because
    /// the next edit overwrites it.
    pub fn append(&mut self, tag: RecordTag, payload: &[u8], out: &mut Vec<u8>) {
        assert!(payload.len() <= PAYLOAD_BYTES_MAX, "callers keep payloads within the limit");
        let number = self.number + u64::from(tag == RecordTag::Edit);
        let start = out.len();
        out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        out.extend_from_slice(&crc32c(self.seed, payload).to_le_bytes());
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&self.previous.to_le_bytes());
        out.extend_from_slice(&[tag as u8, 0, 0, 0]);
        let checksum = crc32c(self.seed, &out[start..]);
        out.extend_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(payload);
        if tag != RecordTag::Mark {
            (self.previous, self.number) = (checksum, number);
        }
    }

    /// Advances over a valid record that was read.
    pub fn follow(&mut self, header: &RecordHeader) {
        if header.tag != RecordTag::Mark {
            (self.previous, self.number) = (header.checksum, header.number);
        }
    }
}
