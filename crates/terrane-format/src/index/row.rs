//! One row of an index block.

use std::ops::Range;

use terrane_base::options::Compression;
use terrane_base::{Error, Result, SeqNo, key, varint};

use crate::block::{self, Block};
use crate::codec;
use crate::extent::UNNUMBERED_SEQ;
use crate::wire::Fields;

/// Bytes of a row before the lengths of its keys.
pub(super) const FIXED_BYTES: usize = 6 * 4 + 2 * 8 + 1;
/// Offset in a row of its smallest and its largest sequence number.
pub(super) const SEQS_AT: usize = 6 * 4;
/// Bytes of the shortest row: the fixed fields and two empty keys.
pub(super) const ROW_BYTES_MIN: usize = FIXED_BYTES + 2;

/// Offsets in `bytes` of the two keys of a row, whose lengths are stored at `at`.
#[inline]
pub(super) fn keys_at(bytes: &[u8], at: usize) -> Option<(Range<usize>, Range<usize>)> {
    let rest = bytes.get(at..)?;
    let (first_len, first_len_len) = varint::get(rest)?;
    let (last_len, last_len_len) = varint::get(&rest[first_len_len..])?;
    let first_at = at + first_len_len + last_len_len;
    let last_at = first_at + first_len as usize;
    Some((first_at..last_at, last_at..last_at + last_len as usize))
}

/// One data block, as the index describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexRow<'a> {
    /// Where the block starts, in bytes from the start of the extent.
    pub offset: u32,
    /// Bytes of the block as stored.
    pub stored_len: u32,
    /// Bytes of the block after decompression.
    pub raw_len: u32,
    /// How the block is stored.
    pub compression: Compression,
    /// [`block::checksum`] of the stored bytes: the block's identity.
    pub checksum: u32,
    /// Entries in the block; at least 1.
    pub entries: u32,
    /// Number of entries that are deletes.
    pub deletes: u32,
    /// Smallest sequence number in the block.
    pub seq_min: SeqNo,
    /// Largest sequence number in the block.
    pub seq_max: SeqNo,
    /// User key of the first entry.
    pub first_key: &'a [u8],
    /// User key of the last entry.
    pub last_key: &'a [u8],
}

impl IndexRow<'_> {
    /// Bytes of the row in an index block.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        let len = |key: &[u8]| varint::len(key.len() as u32) + key.len();
        ROW_BYTES_MIN - 2 + len(self.first_key) + len(self.last_key)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for number in [self.offset, self.stored_len, self.raw_len, self.checksum, self.entries, self.deletes]
        {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.seq_min.0.to_le_bytes());
        out.extend_from_slice(&self.seq_max.0.to_le_bytes());
        out.push(self.compression as u8);
        varint::put(out, self.first_key.len() as u32);
        varint::put(out, self.last_key.len() as u32);
        out.extend_from_slice(self.first_key);
        out.extend_from_slice(self.last_key);
    }

    /// Checks that `stored` is the block that this row describes, without decoding it.
    ///
    /// # Errors
    /// `Corrupt` if length or checksum differ.
    pub fn check_stored(&self, stored: &[u8]) -> Result<()> {
        if stored.len() != self.stored_len as usize {
            return Err(Error::corrupt(format!(
                "block of {} stored bytes: expected {}",
                stored.len(),
                self.stored_len
            )));
        }
        let found = block::checksum(stored);
        if found != self.checksum && !terrane_base::planted!(IgnoreBlockChecksum) {
            return Err(Error::corrupt(format!(
                "block fails its checksum: expected {:08x}, found {found:08x}",
                self.checksum
            )));
        }
        Ok(())
    }

    /// Checks, decompresses and decodes the block that this row describes.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not that block; `Invalid` if this build cannot read its compression.
    pub fn open_block(&self, stored: Vec<u8>) -> Result<Block> {
        self.open_block_reusing(stored, &mut Vec::new())
    }

    /// As [`IndexRow::open_block`]; a compressed block is decompressed into `spare`, which is `stored` then.
    ///
    /// # Errors
    /// As [`IndexRow::open_block`].
    pub fn open_block_reusing(&self, stored: Vec<u8>, spare: &mut Vec<u8>) -> Result<Block> {
        self.check_stored(&stored)?;
        let raw = codec::decode_reusing(self.compression, stored, self.raw_len as usize, spare)?;
        let (block, found) = Block::decode_with_summary(raw)?;
        self.check_summary(&found)?;
        Ok(block)
    }

    /// [`IndexRow::open_block_reusing`] for an extent that is numbered as a whole: gives every entry of the
    /// block the row's number.
    ///
    /// # Errors
    /// As [`IndexRow::open_block`], and `Corrupt` if an entry has another number than [`UNNUMBERED_SEQ`].
    pub fn open_numbered_block(&self, stored: Vec<u8>, spare: &mut Vec<u8>) -> Result<Block> {
        let written = IndexRow { seq_min: UNNUMBERED_SEQ, seq_max: UNNUMBERED_SEQ, ..*self };
        let mut block = written.open_block_reusing(stored, spare)?;
        if !terrane_base::planted!(ForgetNumber) {
            block.raise_numbers(self.seq_min.0.saturating_sub(UNNUMBERED_SEQ.0));
        }
        Ok(block)
    }

    fn check_summary(&self, found: &block::Summary) -> Result<()> {
        let expected = block::Summary {
            entries: self.entries,
            deletes: self.deletes,
            seq_min: self.seq_min.0,
            seq_max: self.seq_max.0,
        };
        if *found != expected {
            return Err(Error::corrupt(format!(
                "block differs from its index row: {expected:?}, found {found:?}"
            )));
        }
        Ok(())
    }
}

/// A row, with its keys as ranges of the index block's bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) offset: u32,
    pub(super) stored_len: u32,
    raw_len: u32,
    checksum: u32,
    entries: u32,
    deletes: u32,
    seq_min: u64,
    seq_max: u64,
    compression: Compression,
    keys_at: u32,
    first_len: u32,
    last_len: u32,
}

impl Row {
    pub(super) fn decode(fields: &mut Fields<'_>) -> Result<Row> {
        let [offset, stored_len, raw_len] = [fields.u32()?, fields.u32()?, fields.u32()?];
        let [checksum, entries, deletes] = [fields.u32()?, fields.u32()?, fields.u32()?];
        let [seq_min, seq_max] = [fields.u64()?, fields.u64()?];
        let compression = fields.u8()?;
        let compression = Compression::from_u8(compression)
            .ok_or_else(|| Error::corrupt(format!("compression {compression} is unknown")))?;
        let [first_len, last_len] = [fields.varint()?, fields.varint()?];
        let keys_at = fields.at() as u32;
        fields.take(first_len as usize)?;
        fields.take(last_len as usize)?;
        let row = Row {
            offset,
            stored_len,
            raw_len,
            checksum,
            entries,
            deletes,
            seq_min,
            seq_max,
            compression,
            keys_at,
            first_len,
            last_len,
        };
        row.check()?;
        Ok(row)
    }

    fn check(&self) -> Result<()> {
        let refuse = |is_wrong: bool, why: &str| if is_wrong { Err(Error::corrupt(why)) } else { Ok(()) };
        let key_len_max = self.first_len.max(self.last_len) as usize;
        refuse(self.entries == 0, "block without entries")?;
        refuse(self.deletes > self.entries, "more deletes than entries")?;
        refuse(self.seq_min > self.seq_max || self.seq_max > SeqNo::MAX.0, "sequence numbers out of range")?;
        refuse(key_len_max > key::KEY_BYTES_MAX, "key longer than the limit")?;
        refuse(self.offset.checked_add(self.stored_len).is_none(), "block ends beyond 4 GiB")?;
        let raw_len = self.raw_len as usize;
        refuse(self.entries > 1 && raw_len > codec::RAW_BYTES_MAX, "block longer than the limit")?;
        codec::check_lens(self.compression, self.stored_len as usize, raw_len)
    }

    #[inline]
    fn first_key<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let start = self.keys_at as usize;
        &bytes[start..start + self.first_len as usize]
    }

    #[inline]
    fn last_key<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let start = self.keys_at as usize + self.first_len as usize;
        &bytes[start..start + self.last_len as usize]
    }

    #[inline]
    pub(super) fn show<'a>(&self, bytes: &'a [u8]) -> IndexRow<'a> {
        IndexRow {
            offset: self.offset,
            stored_len: self.stored_len,
            raw_len: self.raw_len,
            compression: self.compression,
            checksum: self.checksum,
            entries: self.entries,
            deletes: self.deletes,
            seq_min: SeqNo(self.seq_min),
            seq_max: SeqNo(self.seq_max),
            first_key: self.first_key(bytes),
            last_key: self.last_key(bytes),
        }
    }
}
