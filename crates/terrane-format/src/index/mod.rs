//! The index block of an extent: one row per data block, in key order.
//!
//! ```text
//! index = row* blocks:u32 version:u8 checksum:u32
//! row   = offset:u32 stored_len:u32 raw_len:u32 checksum:u32 entries:u32 deletes:u32
//!         seq_min:u64 seq_max:u64 compression:u8 first_len:varint last_len:varint first_key last_key
//! ```
//!
//! A row says everything that must be known to read its block, to check it and to copy it undecoded into
//! another extent. Keys stand whole: a decoded index never takes more memory than a small multiple of its bytes.
//!
//! [`IndexBlock`] is decoded once and then searched in place, over the heads of the last keys.

mod builder;
mod describe;
mod row;

pub use builder::IndexBuilder;
pub use describe::describe;
pub use row::IndexRow;

use std::ops::Range;

use terrane_base::{Collation, Error, Result, SeqNo};

use crate::extent::UNNUMBERED_SEQ;
use crate::heads::{self, Heads};
use crate::wire::{self, Fields};
use row::Row;

/// Version of the index block that this module writes.
pub const VERSION: u8 = 1;
/// Bytes that say where a row starts.
const PLACE_BYTES: usize = 4;
/// Bytes behind the rows: blocks, version, checksum.
pub(crate) const TRAILER_BYTES: usize = 4 + 1 + 4;
pub(crate) const SEED: u32 = u32::from_le_bytes(*b"INDX");

/// A checked index block, ready to be searched. Its parts lie wherever their owner put them.
#[derive(Debug)]
pub struct IndexBlock<B = Vec<u8>> {
    bytes: B,
    /// Where each row starts in `bytes`: little-endian numbers of 4 bytes.
    places: B,
    /// Of the last keys.
    heads: Heads<B>,
    /// How the keys are ordered; nobody's bytes say it.
    collation: Collation,
}

/// Bytes of the parts of an index block, in the order in which [`IndexBlock::place`] gives them: `encoded` bytes for
/// `blocks` data blocks.
#[must_use]
pub fn part_lens(encoded: usize, blocks: usize) -> [usize; 3] {
    [encoded, blocks * PLACE_BYTES, heads::leaves_bytes(blocks)]
}

impl IndexBlock {
    /// Checks an index block and makes it searchable.
    ///
    /// # Errors
    /// `Corrupt` if the checksum or version is wrong, a row is cut or contradicts itself, blocks do not follow
    /// each other from byte 0 without a gap, or keys are out of order.
    pub fn decode(bytes: Vec<u8>) -> Result<IndexBlock> {
        IndexBlock::decode_ordered(bytes, &Collation::BYTES)
    }

    /// [`IndexBlock::decode`] of an extent of a table whose keys are ordered so.
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
        let places = check_rows(rows_bytes, u32::from_le_bytes(count) as usize)?;
        let mut index = IndexBlock { bytes, places, heads: Heads::default(), collation: collation.clone() };
        index.check_order()?;
        let first_at = index.keys_at(0).map_or(0, |(_, last)| last.start);
        index.heads = Heads::collect(index.len(), first_at, |block| index.last_key(block));
        Ok(index)
    }

    /// Gives every row the number `seq` in the place of [`UNNUMBERED_SEQ`]: for an extent that is numbered as a whole.
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
            let at = self.place_of(block) + row::SEQS_AT;
            for at in [at, at + 8] {
                self.bytes[at..at + 8].copy_from_slice(&seq.0.to_le_bytes());
            }
        }
        Ok(())
    }

    /// Bytes of memory that the index holds.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<IndexBlock>() + self.bytes.capacity() + self.places.capacity() + self.heads.memory_bytes()
    }
}

impl<B: AsRef<[u8]>> IndexBlock<B> {
    /// The same index in other memory. Requires: what `place` returns are the bytes that it was given, each time.
    #[must_use]
    pub fn place<C: AsRef<[u8]>>(&self, mut place: impl FnMut(&[u8]) -> C) -> IndexBlock<C> {
        let (bytes, places) = (place(self.bytes.as_ref()), place(self.places.as_ref()));
        IndexBlock { bytes, places, heads: self.heads.place(place), collation: self.collation.clone() }
    }

    /// Bytes of the block as encoded.
    #[must_use]
    pub fn bytes_len(&self) -> usize {
        self.bytes.as_ref().len()
    }

    /// How many data blocks the extent has.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.as_ref().len() / PLACE_BYTES
    }

    /// Whether the extent has no data block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row of block `block`. Requires: `block < len()`.
    #[inline]
    #[must_use]
    pub fn row(&self, block: usize) -> IndexRow<'_> {
        assert!(block < self.len(), "row {block} of {}", self.len());
        let rest = self.bytes.as_ref().get(self.place_of(block)..).unwrap_or_default();
        let row = Row::decode(&mut Fields::new("index block", rest));
        row.expect("every row was decoded once before").show(rest)
    }

    /// All rows in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = IndexRow<'_>> + DoubleEndedIterator {
        (0..self.len()).map(|block| self.row(block))
    }

    /// The first block whose last key is at or after `key`; `len()` if there is none.
    ///
    /// All entries of `key` lie in this block, or go on in the blocks after it for as long as
    /// [`IndexBlock::goes_on`] holds.
    #[inline]
    #[must_use]
    pub fn find(&self, key: &[u8]) -> usize {
        if !self.collation.is_bytes() {
            return self.partition(0..self.len(), |last| self.collation.lt(last, key));
        }
        self.partition(self.heads.undecided(key, self.bytes.as_ref()), |last| last < key)
    }

    /// The first block in a range whose last key is not before something.
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

    /// Asks for the memory in which [`IndexBlock::find`] begins.
    #[inline]
    pub fn prefetch(&self) {
        self.heads.prefetch(self.bytes.as_ref());
    }

    /// The few blocks, side by side, among which [`IndexBlock::find`] will find `key`, or the block behind them, as far
    /// as one look tells; to ask for what belongs to them early.
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

    /// Whether versions of the last key of block `block` go on in the next block.
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

    /// Where the first and the last key of a block lie.
    #[inline]
    fn keys_at(&self, block: usize) -> Option<(Range<usize>, Range<usize>)> {
        let at = self.place_of(block) + row::FIXED_BYTES;
        row::keys_at(self.bytes.as_ref(), at)
    }

    #[inline]
    fn place_of(&self, block: usize) -> usize {
        wire::u32_at(self.places.as_ref(), block * PLACE_BYTES).map_or(usize::MAX / 2, |at| at as usize)
    }

    /// Bytes of the data blocks: they lie back to back from the extent's first byte.
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

/// Checks all rows; returns where they start, as [`IndexBlock`] keeps it.
fn check_rows(bytes: &[u8], count: usize) -> Result<Vec<u8>> {
    if count > bytes.len() / row::ROW_BYTES_MIN {
        return Err(Error::corrupt(format!("index block of {} bytes cannot hold {count} rows", bytes.len())));
    }
    let mut places = Vec::with_capacity(count * PLACE_BYTES);
    let mut fields = Fields::new("index block", bytes);
    let mut offset = 0u64;
    for block in 0..count {
        places.extend_from_slice(&(fields.at() as u32).to_le_bytes());
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
            "index block has {} bytes behind its rows",
            bytes.len() - fields.at()
        )));
    }
    Ok(places)
}
