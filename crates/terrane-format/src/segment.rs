//! Segments: header, commit groups, durable-end marks. `docs/format/segment.md` holds the byte tables.
//!
//! ```text
//! segment = segment header, group*, stale bytes or zeros up to the end of the file
//! group   = group header, (batch header, records)*, zeros up to a multiple of 8
//! ```
//!
//! Invariants on which replay relies:
//! 1. Every checksum of a group depends on the segment's id, the group's offset and a salt of the database.
//!    Ids are never reused, so the bytes of an earlier segment in a recycled file are invalid. A program
//!    without the salt cannot write a value that contains a valid group.
//! 2. The records of one batch are contiguous and are the unchanged bytes of the batch.
//! 3. The segment header holds the [`ChainLink`] of the previous segment: if that segment lost its end or was
//!    replaced, the link does not match.
//! 4. A group header holds the sequence number up to which everything was durable when it was written.
//! 5. The segment header and each mark hold the number of manifest edits that were durable when they were
//!    written: a manifest with fewer edits has lost some.

use std::fmt;

use terrane_base::{Error, Result, SegmentId, SeqNo};

use crate::checksum::crc32c;

mod groups;
mod transcribe;

pub use groups::{Batch, Batches, Group, Groups, Walk, check_batches, describe, durable_marks};
pub use transcribe::{Transcribed, transcribe};

/// First bytes of every segment.
pub const MAGIC: [u8; 8] = *b"terrseg\n";
/// V1: groups of batches, chained segments, durable-end marks. V2: header and marks name the manifest's edit,
/// groups are salted.
pub const VERSION: u32 = 2;
/// The oldest version that is still read.
const VERSION_MIN: u32 = 1;
/// Bytes of a segment header.
pub const SEGMENT_HEADER_BYTES: usize = 64;
/// Bytes of a group header. A group without batches is only a header: a durable-end mark.
pub const GROUP_HEADER_BYTES: usize = 32;
/// Bytes of a batch header.
pub const BATCH_HEADER_BYTES: usize = 12;
/// Groups start at multiples of this.
pub const GROUP_ALIGN: usize = 8;
/// Longest segment: offsets within it fit 32 bits.
pub const SEGMENT_BYTES_MAX: u64 = 1 << 31;
/// Fewest bytes that a record takes: kind and three lengths of one byte.
const RECORD_BYTES_MIN: u64 = 4;

const _: () = assert!(
    SEGMENT_HEADER_BYTES.is_multiple_of(GROUP_ALIGN) && GROUP_HEADER_BYTES.is_multiple_of(GROUP_ALIGN)
);

/// The facts about the previous segment that the next one repeats. The default is the link of the first
/// segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainLink {
    /// The previous segment; 0 for the first.
    pub id: SegmentId,
    /// Its last sequence number, or that of the segments before it if it holds no record.
    pub last_seq: SeqNo,
    /// Running checksum over all of it; see [`chain`].
    pub checksum: u32,
}

impl fmt::Display for ChainLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ending with {} and chain {:08x}", self.id, self.last_seq, self.checksum)
    }
}

/// The first 64 bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Number of the segment; never 0.
    pub id: SegmentId,
    /// Number in the file's name; 0 if there is no file.
    pub file: u32,
    /// Bytes of the segment, this header included.
    pub bytes: u64,
    /// The segment before this one.
    pub previous: ChainLink,
    /// Number of a manifest edit that was durable before; 0 if none is known.
    pub edit: u64,
    /// Salt of the groups' checksums, beside the segment's id; `None` in version 1, which had none.
    pub salt: Option<u32>,
}

impl SegmentHeader {
    /// Encodes the header, in version 1 if it has no salt. Its last four bytes are the checksum with which
    /// the chain starts.
    #[must_use]
    pub fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut out = [0; SEGMENT_HEADER_BYTES];
        out[0..8].copy_from_slice(&MAGIC);
        let version = if self.salt.is_some() { VERSION } else { 1 };
        out[8..12].copy_from_slice(&version.to_le_bytes());
        out[12..16].copy_from_slice(&self.file.to_le_bytes());
        out[16..24].copy_from_slice(&self.id.0.to_le_bytes());
        out[24..32].copy_from_slice(&(self.bytes | u64::from(self.salt.unwrap_or(0)) << 32).to_le_bytes());
        out[32..40].copy_from_slice(&self.previous.id.0.to_le_bytes());
        out[40..48].copy_from_slice(&self.previous.last_seq.0.to_le_bytes());
        out[48..52].copy_from_slice(&self.previous.checksum.to_le_bytes());
        out[52..60].copy_from_slice(&self.edit.to_le_bytes());
        let checksum = crc32c(0, &out[..60]);
        out[60..64].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Decodes the header at the front of `bytes`; also returns its checksum, with which the chain starts.
    ///
    /// # Errors
    /// `Corrupt`, without a place, if the bytes are not a segment header of a version that is read.
    pub fn decode(bytes: &[u8]) -> Result<(SegmentHeader, u32)> {
        let header = bytes.get(..SEGMENT_HEADER_BYTES).ok_or_else(|| {
            Error::corrupt(format!("segment of {} bytes is shorter than its header", bytes.len()))
        })?;
        if header[..8] != MAGIC {
            return Err(Error::corrupt(format!(
                "expected a segment starting with {:02x?}, found {:02x?}",
                MAGIC,
                &header[..8]
            )));
        }
        let (expected, found) = (u32_at(header, 60), crc32c(0, &header[..60]));
        if expected != found {
            return Err(Error::corrupt(format!(
                "segment header: expected checksum {expected:08x}, found {found:08x}"
            )));
        }
        // From version 2 on the upper half is the number of a key: see `docs/format/encryption.md`.
        let (version, key) = match u32_at(header, 8) {
            1 => (1, 0),
            field => (field & 0xffff, field >> 16),
        };
        let oldest = VERSION_MIN + u32::from(terrane_base::planted!(RefuseOldFormat));
        if !(oldest..=VERSION).contains(&version) {
            return Err(Error::corrupt(format!(
                "segment of format version {version}: this program reads versions {oldest} to {VERSION}"
            )));
        }
        if key != 0 {
            return Err(Error::corrupt(format!(
                "segment encrypted with key {key}: this program reads no encrypted segment"
            )));
        }
        let decoded = SegmentHeader {
            id: SegmentId(u64_at(header, 16)),
            file: u32_at(header, 12),
            bytes: if version == 1 { u64_at(header, 24) } else { u32_at(header, 24).into() },
            previous: ChainLink {
                id: SegmentId(u64_at(header, 32)),
                last_seq: SeqNo(u64_at(header, 40)),
                checksum: u32_at(header, 48),
            },
            edit: if version == 1 { 0 } else { u64_at(header, 52) },
            salt: (version != 1).then(|| u32_at(header, 28)),
        };
        if decoded.bytes > SEGMENT_BYTES_MAX || decoded.previous.last_seq > SeqNo::MAX {
            return Err(Error::corrupt("segment header with a size or number beyond the limits"));
        }
        Ok((decoded, expected))
    }
}

/// The first 32 bytes of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupHeader {
    /// Bytes of the whole group, this header and the padding included.
    pub len: u32,
    /// Number of the first record; the number of the next record if the group has none.
    pub first_seq: SeqNo,
    /// Everything up to this number was durable when the header was written.
    pub durable: SeqNo,
    /// Records in all batches.
    pub record_count: u32,
    /// Batches.
    pub batch_count: u32,
    /// In a group without batches: manifest edits that became durable since the segment's header was written.
    /// Else 0.
    pub edits: u32,
}

impl GroupHeader {
    /// A group without batches: a durable-end mark. `first_seq` is the number of the next record.
    #[must_use]
    pub fn mark(first_seq: SeqNo, durable: SeqNo, edits: u32) -> GroupHeader {
        let len = GROUP_HEADER_BYTES as u32;
        GroupHeader { len, first_seq, durable, record_count: 0, batch_count: 0, edits }
    }

    /// The encoded header for the group at `offset` of the segment with this [`segment_seed`], and its
    /// checksum, which seeds those of the batches.
    #[inline]
    #[must_use]
    pub fn encode(&self, seed: u32, offset: u64) -> ([u8; GROUP_HEADER_BYTES], u32) {
        let mut out = [0; GROUP_HEADER_BYTES];
        out[4..8].copy_from_slice(&self.len.to_le_bytes());
        out[8..16].copy_from_slice(&self.first_seq.0.to_le_bytes());
        out[16..24].copy_from_slice(&self.durable.0.to_le_bytes());
        let count = if self.batch_count == 0 { self.edits } else { self.record_count };
        out[24..28].copy_from_slice(&count.to_le_bytes());
        out[28..32].copy_from_slice(&self.batch_count.to_le_bytes());
        let checksum = group_checksum(&out, seed, offset);
        out[0..4].copy_from_slice(&checksum.to_le_bytes());
        (out, checksum)
    }

    /// Decodes the header at `offset` of `segment` (the whole segment), if it is valid; also returns its
    /// checksum.
    #[inline]
    #[must_use]
    pub fn decode(segment: &[u8], seed: u32, offset: usize) -> Option<(GroupHeader, u32)> {
        let rest = segment.get(offset..)?;
        Self::decode_front(rest.first_chunk()?, rest.len(), seed, offset as u64)
    }

    /// As [`GroupHeader::decode`] for the header alone, at `offset` of a segment that has `left` bytes from
    /// there on.
    #[inline]
    #[must_use]
    pub fn decode_front(
        header: &[u8; GROUP_HEADER_BYTES],
        left: usize,
        seed: u32,
        offset: u64,
    ) -> Option<(GroupHeader, u32)> {
        let len = u32_at(header, 4);
        // Checked before the checksum: it refuses nearly everything that is not a header, which makes the
        // search for headers after damage fast.
        if (len as usize) < GROUP_HEADER_BYTES
            || !(len as usize).is_multiple_of(GROUP_ALIGN)
            || len as usize > left
        {
            return None;
        }
        let checksum = u32_at(header, 0);
        if checksum != group_checksum(header, seed, offset) && !terrane_base::planted!(IgnoreGroupChecksum) {
            return None;
        }
        let decoded = GroupHeader::fields(header);
        decoded.is_plausible().then_some((decoded, checksum))
    }

    /// As [`GroupHeader::decode`] for a header that was valid before: checks no checksum, but still that the
    /// group lies within the segment.
    #[inline]
    #[must_use]
    pub fn decode_known(segment: &[u8], offset: usize) -> Option<GroupHeader> {
        let rest = segment.get(offset..)?;
        let decoded = GroupHeader::fields(rest.first_chunk()?);
        (decoded.len as usize <= rest.len() && decoded.is_plausible()).then_some(decoded)
    }

    #[inline]
    fn fields(header: &[u8; GROUP_HEADER_BYTES]) -> GroupHeader {
        let (count, batch_count) = (u32_at(header, 24), u32_at(header, 28));
        let (record_count, edits) = if batch_count == 0 { (0, count) } else { (count, 0) };
        GroupHeader {
            len: u32_at(header, 4),
            first_seq: SeqNo(u64_at(header, 8)),
            durable: SeqNo(u64_at(header, 16)),
            record_count,
            batch_count,
            edits,
        }
    }

    /// Returns true if the fields are consistent. A checksum does not prove that this code wrote the header.
    fn is_plausible(&self) -> bool {
        let least = GROUP_HEADER_BYTES as u64
            + u64::from(self.batch_count) * BATCH_HEADER_BYTES as u64
            + u64::from(self.record_count) * RECORD_BYTES_MIN;
        let last = self.first_seq.0.checked_add(u64::from(self.record_count));
        u64::from(self.len) >= least
            && self.batch_count <= self.record_count
            && (self.batch_count == 0) == (self.record_count == 0)
            && self.first_seq.0 > 0
            && last.is_some_and(|last| last <= SeqNo::MAX.0 + 1)
            && self.durable < self.first_seq
    }

    /// Number of the group's last record; of the record before it if the group has none.
    #[inline]
    #[must_use]
    pub fn last_seq(&self) -> SeqNo {
        SeqNo(self.first_seq.0 + u64::from(self.record_count) - 1)
    }
}

/// The seed of the checksums of all groups of a segment.
#[must_use]
pub fn segment_seed(id: SegmentId, salt: Option<u32>) -> u32 {
    let seed = crc32c(crc32c(0, &MAGIC), &id.0.to_le_bytes());
    match salt.filter(|_| !terrane_base::planted!(PredictableGroups)) {
        Some(salt) => crc32c(seed, &salt.to_le_bytes()),
        None => seed,
    }
}

/// The salt of the groups of a segment whose header is lost, in a database with this `salt`: `None` if the
/// rest of the header says version 1.
#[must_use]
pub fn lost_salt(segment: &[u8], salt: u32) -> Option<u32> {
    let is_old = segment.get(8..12) == Some(&1u32.to_le_bytes());
    (!is_old).then_some(salt)
}

#[inline]
fn group_checksum(header: &[u8; GROUP_HEADER_BYTES], seed: u32, offset: u64) -> u32 {
    // The offset replaces the checksum field and the four bytes before it, so that one pass over one array is
    // enough.
    let mut bytes = [0; GROUP_HEADER_BYTES + 4];
    bytes[..8].copy_from_slice(&offset.to_le_bytes());
    bytes[8..].copy_from_slice(&header[4..]);
    crc32c(seed, &bytes)
}

/// Checksum of a batch whose header lies at `offset` of the segment: over offset, length, count and records,
/// seeded with the checksum of its group's header.
#[inline]
#[must_use]
pub fn batch_checksum(group: u32, offset: u64, record_count: u32, records: &[u8]) -> u32 {
    let mut place = [0; 16];
    place[..8].copy_from_slice(&offset.to_le_bytes());
    place[8..12].copy_from_slice(&(records.len() as u32).to_le_bytes());
    place[12..].copy_from_slice(&record_count.to_le_bytes());
    crc32c(crc32c(group, &place), records)
}

/// The encoded header of a batch of `len` record bytes.
#[inline]
#[must_use]
pub fn encode_batch_header(len: u32, record_count: u32, checksum: u32) -> [u8; BATCH_HEADER_BYTES] {
    let mut out = [0; BATCH_HEADER_BYTES];
    out[..4].copy_from_slice(&len.to_le_bytes());
    out[4..8].copy_from_slice(&record_count.to_le_bytes());
    out[8..].copy_from_slice(&checksum.to_le_bytes());
    out
}

/// The running checksum of a segment after one more checksum. It starts with that of the segment header and
/// adds, group by group, that of the group header and then those of its batches.
#[inline]
#[must_use]
pub fn chain(running: u32, checksum: u32) -> u32 {
    crc32c(running, &checksum.to_le_bytes())
}

/// Bytes of a group with these batches and records, padding included.
#[inline]
#[must_use]
pub fn group_len(batch_count: usize, record_bytes: usize) -> usize {
    (GROUP_HEADER_BYTES + batch_count * BATCH_HEADER_BYTES + record_bytes).next_multiple_of(GROUP_ALIGN)
}

/// Reads four bytes. Requires: `offset + 4 <= bytes.len()`.
#[inline]
fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[offset..offset + 4]);
    u32::from_le_bytes(word)
}

/// Reads eight bytes. Requires: `offset + 8 <= bytes.len()`.
#[inline]
fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_le_bytes(word)
}
