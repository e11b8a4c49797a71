//! The index block of an extent: one row per data block, in key order.
//!
//! ```text
//! index = row* blocks:u32 version:u8 checksum:u32
//! row   = offset:u32 stored_len:u32 raw_len:u32 checksum:u32 entries:u32 deletes:u32
//!         seq_min:u64 seq_max:u64 compression:u8 first_len:varint last_len:varint first_key last_key
//! ```
//!
//! A row holds all that is needed to read its block, to check it, and to copy it into another extent without
//! decoding it. Keys are stored whole, so a decoded index takes at most a small multiple of its encoded
//! bytes.
//!
//! [`IndexBlock`] is decoded once. A search runs on the encoded bytes, over the heads of the last keys.

mod builder;
mod describe;
mod remains;
mod row;

pub use builder::IndexBuilder;
pub use describe::describe;
pub use remains::{Remains, remains_of};
pub use row::IndexRow;

use std::ops::Range;

use terrane_base::{Collation, Error, Result, SeqNo};

use crate::extent::UNNUMBERED_SEQ;
use crate::heads::{self, Heads};
use crate::wire::{self, Fields};
use row::Row;

/// Version of the index block that this module writes.
pub const VERSION: u8 = 1;
/// Bytes of a row's offset.
const ROW_OFFSET_BYTES: usize = 4;
/// Bytes after the rows: number of blocks, version, checksum.
pub(crate) const TRAILER_BYTES: usize = 4 + 1 + 4;
pub(crate) const SEED: u32 = u32::from_le_bytes(*b"INDX");

/// A checked index block. The owner decides in which memory its parts lie.
#[derive(Debug)]
pub struct IndexBlock<B = Vec<u8>> {
    bytes: B,
    /// The offset of each row in `bytes`: little-endian numbers of 4 bytes.
    row_offsets: B,
    /// Heads of the blocks' last keys.
    heads: Heads<B>,
    /// Key order of the table; not stored in the index.
    collation: Collation,
}

/// Lengths of the parts of an index block of `encoded` bytes for `blocks` data blocks, in the order in which
/// [`IndexBlock::place`] passes them on.
#[must_use]
pub fn part_lens(encoded: usize, blocks: usize) -> [usize; 3] {
    [encoded, blocks * ROW_OFFSET_BYTES, heads::leaves_bytes(blocks)]
}

impl IndexBlock {
    /// Checks an index block and makes it searchable.
    ///
    /// # Errors
    /// `Corrupt` if the checksum or version is wrong, a row is cut or contradicts itself, blocks do not
    /// follow each other from byte 0 without a gap, or keys are out of order.
    pub fn decode(bytes: Vec<u8>) -> Result<IndexBlock> {
        IndexBlock::decode_ordered(bytes, &Collation::BYTES)
    }

    /// [`IndexBlock::decode`] for a table with this key order.
    ///
    /// # Errors
    /// As [`IndexBlock::decode`].
    pub fn decode_ordered(bytes: Vec<u8>, collation: &Collation) -> Result<IndexBlock> {
        let body = wire::checked_body("index block", SEED, &bytes)?;
        let Some((rows_bytes, trailer)) = body.split_last_chunk::<{ TRAILER_BYTES - 4 }>() else {
            return Err(Error::corrupt(format!("index block of {} bytes is cut", bytes.len())));
        };
        let [count @ .., version] = *trailer;
        if version != VERSION {
            return Err(Error::corrupt(format!("index block version: expected {VERSION}, found {version}")));
        }
        let row_offsets = check_rows(rows_bytes, u32::from_le_bytes(count) as usize)?;
        let mut index =
            IndexBlock { bytes, row_offsets, heads: Heads::default(), collation: collation.clone() };
        index.check_order()?;
        let first_at = index.keys_at(0).map_or(0, |(_, last)| last.start);
        index.heads = Heads::collect(index.len(), first_at, |block| index.last_key(block));
        Ok(index)
    }

    /// Replaces [`UNNUMBERED_SEQ`] by `seq` in every row, for an extent that is numbered as a whole.
    ///
    /// # Errors
    /// `Corrupt` if a row has another number.
    pub fn number(&mut self, seq: SeqNo) -> Result<()> {
        for block in 0..self.len() {
            let row = self.row(block);
            if (row.seq_min, row.seq_max) != (UNNUMBERED_SEQ, UNNUMBERED_SEQ) {
                return Err(Error::corrupt(format!(
                    "index row {block} of an extent that is numbered as a whole has numbers {} to {}",
                    row.seq_min, row.seq_max
                )));
            }
            let at = self.row_offset(block) + row::SEQS_AT;
            for at in [at, at + 8] {
                self.bytes[at..at + 8].copy_from_slice(&seq.0.to_le_bytes());
            }
        }
        Ok(())
    }

    /// The block as encoded, for its buffer to be used again.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Bytes of memory that the index holds.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<IndexBlock>()
            + self.bytes.capacity()
            + self.row_offsets.capacity()
            + self.heads.memory_bytes()
    }
}

impl<B: AsRef<[u8]>> IndexBlock<B> {
    /// The same index in other memory. Requires: `place` returns the bytes that it is given, in each call.
    #[must_use]
    pub fn place<C: AsRef<[u8]>>(&self, mut place: impl FnMut(&[u8]) -> C) -> IndexBlock<C> {
        let (bytes, row_offsets) = (place(self.bytes.as_ref()), place(self.row_offsets.as_ref()));
        IndexBlock { bytes, row_offsets, heads: self.heads.place(place), collation: self.collation.clone() }
    }

    /// Bytes of the block as encoded.
    #[must_use]
    pub fn bytes_len(&self) -> usize {
        self.bytes.as_ref().len()
    }

    /// The number of data blocks.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.row_offsets.as_ref().len() / ROW_OFFSET_BYTES
    }

    /// Returns true if the extent has no data block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row of block `block`. Requires: `block < len()`.
    #[inline]
    #[must_use]
    pub fn row(&self, block: usize) -> IndexRow<'_> {
        assert!(block < self.len(), "row {block} of {}", self.len());
        let rest = self.bytes.as_ref().get(self.row_offset(block)..).unwrap_or_default();
        let row = Row::decode(&mut Fields::new("index block", rest));
        row.expect("every row was decoded once before").show(rest)
    }

    /// All rows in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = IndexRow<'_>> + DoubleEndedIterator {
        (0..self.len()).map(|block| self.row(block))
    }

    /// The first block whose last key is at or after `key`; `len()` if all end before it.
    ///
    /// All entries of `key` lie in this block and in the blocks after it, as long as [`IndexBlock::goes_on`]
    /// holds.
    #[inline(always)]
    #[must_use]
    pub fn find(&self, key: &[u8]) -> usize {
        if !self.collation.is_bytes() {
            return self.partition(0..self.len(), |last| self.collation.lt(last, key));
        }
        self.partition(self.heads.undecided(key, self.bytes.as_ref()), |last| last < key)
    }

    /// The first block in `range` for whose last key `is_before` is false.
    #[inline]
    fn partition(&self, range: Range<usize>, is_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let middle = low.midpoint(high);
            if is_before(self.last_key(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Prefetches the memory in which [`IndexBlock::find`] begins.
    #[inline]
    pub fn prefetch(&self) {
        self.heads.prefetch(self.bytes.as_ref());
    }

    /// A few neighbouring blocks, estimated by one step: [`IndexBlock::find`] returns one of them, or the
    /// block after them. For prefetching what belongs to these blocks.
    #[inline]
    #[must_use]
    pub fn neighbours(&self, key: &[u8]) -> Range<usize> {
        self.heads.neighbours(key)
    }

    /// The last block that holds an entry with a key less than `key`.
    #[must_use]
    pub fn find_before(&self, key: &[u8]) -> Option<usize> {
        let at = self.find(key);
        let starts_before = at < self.len() && self.collation.lt(self.first_key(at), key);
        if starts_before { Some(at) } else { at.checked_sub(1) }
    }

    /// Returns true if the next block holds more versions of the last key of block `block`.
    #[inline]
    #[must_use]
    pub fn goes_on(&self, block: usize) -> bool {
        block + 1 < self.len() && self.last_key(block) == self.first_key(block + 1)
    }

    /// The user key of the first entry of block `block`. Requires: `block < len()`.
    #[inline]
    #[must_use]
    pub fn first_key(&self, block: usize) -> &[u8] {
        let range = self.keys_at(block).map_or(0..0, |(first, _)| first);
        self.bytes.as_ref().get(range).unwrap_or_default()
    }

    /// The user key of the last entry of block `block`. Requires: `block < len()`.
    #[inline]
    #[must_use]
    pub fn last_key(&self, block: usize) -> &[u8] {
        let range = self.keys_at(block).map_or(0..0, |(_, last)| last);
        self.bytes.as_ref().get(range).unwrap_or_default()
    }

    /// Offsets of the first and the last key of a block.
    #[inline]
    fn keys_at(&self, block: usize) -> Option<(Range<usize>, Range<usize>)> {
        let at = self.row_offset(block) + row::FIXED_BYTES;
        row::keys_at(self.bytes.as_ref(), at)
    }

    #[inline]
    fn row_offset(&self, block: usize) -> usize {
        wire::u32_at(self.row_offsets.as_ref(), block * ROW_OFFSET_BYTES)
            .map_or(usize::MAX / 2, |at| at as usize)
    }

    /// Bytes of the data blocks, which follow each other from the extent's first byte.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        let last = self.len().checked_sub(1).map(|last| self.row(last));
        last.map_or(0, |row| u64::from(row.offset) + u64::from(row.stored_len))
    }

    fn check_order(&self) -> Result<()> {
        if self.collation.is_missing() {
            return Ok(());
        }
        let mut last_key: Option<&[u8]> = None;
        for block in 0..self.len() {
            let (first, last) = (self.first_key(block), self.last_key(block));
            let is_behind = |left: &[u8], right: &[u8]| self.collation.lt(right, left);
            if last_key.is_some_and(|last| is_behind(last, first)) || is_behind(first, last) {
                return Err(Error::corrupt(format!("index row {block}: keys are out of order")).of_order());
            }
            last_key = Some(last);
        }
        Ok(())
    }
}

/// Checks all rows; returns their offsets, as [`IndexBlock`] keeps them.
fn check_rows(bytes: &[u8], count: usize) -> Result<Vec<u8>> {
    if count > bytes.len() / row::ROW_BYTES_MIN {
        return Err(Error::corrupt(format!("index block of {} bytes cannot hold {count} rows", bytes.len())));
    }
    let mut row_offsets = Vec::with_capacity(count * ROW_OFFSET_BYTES);
    let mut fields = Fields::new("index block", bytes);
    let mut offset = 0u64;
    for block in 0..count {
        row_offsets.extend_from_slice(&(fields.at() as u32).to_le_bytes());
        let row = Row::decode(&mut fields).map_err(|error| error.context(format!("index row {block}")))?;
        if u64::from(row.offset) != offset {
            return Err(Error::corrupt(format!(
                "index row {block}: block starts at byte {}, expected {offset}",
                row.offset
            )));
        }
        offset += u64::from(row.stored_len);
    }
    if fields.at() != bytes.len() {
        return Err(Error::corrupt(format!(
            "index block has {} bytes after its rows",
            bytes.len() - fields.at()
        )));
    }
    Ok(row_offsets)
}
