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

use terrane_base::{Error, Result};

use crate::heads::Heads;
use crate::wire::{self, Fields};
use row::Row;

/// Version of the index block that this module writes.
pub const VERSION: u8 = 1;
/// Bytes behind the rows: blocks, version, checksum.
pub(crate) const TRAILER_BYTES: usize = 4 + 1 + 4;
pub(crate) const SEED: u32 = u32::from_le_bytes(*b"INDX");

/// A checked index block, ready to be searched.
#[derive(Debug)]
pub struct IndexBlock {
    bytes: Vec<u8>,
    rows: Vec<Row>,
    /// Of the last keys.
    heads: Heads,
}

impl IndexBlock {
    /// Checks an index block and makes it searchable.
    ///
    /// # Errors
    /// `Corrupt` if the checksum or version is wrong, a row is cut or contradicts itself, blocks do not follow
    /// each other from byte 0 without a gap, or keys are out of order.
    pub fn decode(bytes: Vec<u8>) -> Result<IndexBlock> {
        let body = wire::checked_body("index block", SEED, &bytes)?;
        let Some((rows_bytes, trailer)) = body.split_last_chunk::<{ TRAILER_BYTES - 4 }>() else {
            return Err(Error::corrupt(format!("index block of {} bytes is cut", bytes.len())));
        };
        let [count @ .., version] = *trailer;
        if version != VERSION {
            return Err(Error::corrupt(format!("index block version: expected {VERSION}, found {version}")));
        }
        let rows = decode_rows(rows_bytes, u32::from_le_bytes(count) as usize)?;
        let heads = Heads::collect(rows.len(), |block| rows[block].last_key(&bytes));
        let index = IndexBlock { bytes, rows, heads };
        index.check_order()?;
        Ok(index)
    }

    /// How many data blocks the extent has.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the extent has no data block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The row of block `block`. Requires: `block < len()`.
    #[inline]
    #[must_use]
    pub fn row(&self, block: usize) -> IndexRow<'_> {
        self.rows[block].show(&self.bytes)
    }

    /// All rows in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = IndexRow<'_>> + DoubleEndedIterator {
        self.rows.iter().map(|row| row.show(&self.bytes))
    }

    /// The first block whose last key is at or after `key`; `len()` if there is none.
    ///
    /// All entries of `key` lie in this block, or go on in the blocks after it for as long as
    /// [`IndexBlock::goes_on`] holds.
    #[inline]
    #[must_use]
    pub fn find(&self, key: &[u8]) -> usize {
        let undecided = self.heads.undecided(key);
        let rows = &self.rows[undecided.clone()];
        undecided.start + rows.partition_point(|row| row.last_key(&self.bytes) < key)
    }

    /// Asks for the memory in which [`IndexBlock::find`] begins.
    #[inline]
    pub fn prefetch(&self) {
        self.heads.prefetch();
    }

    /// The last block that holds an entry with a key less than `key`.
    #[must_use]
    pub fn find_before(&self, key: &[u8]) -> Option<usize> {
        let at = self.find(key);
        let starts_before = self.rows.get(at).is_some_and(|row| row.first_key(&self.bytes) < key);
        if starts_before { Some(at) } else { at.checked_sub(1) }
    }

    /// Whether versions of the last key of block `block` go on in the next block.
    #[inline]
    #[must_use]
    pub fn goes_on(&self, block: usize) -> bool {
        match self.rows.get(block..block + 2) {
            Some([row, next]) => row.last_key(&self.bytes) == next.first_key(&self.bytes),
            _ => false,
        }
    }

    /// Bytes of the data blocks: they lie back to back from the extent's first byte.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        self.rows.last().map_or(0, |row| u64::from(row.offset) + u64::from(row.stored_len))
    }

    /// Bytes of memory that the index holds.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<IndexBlock>()
            + self.bytes.capacity()
            + self.rows.capacity() * size_of::<Row>()
            + self.heads.memory_bytes()
    }

    fn check_order(&self) -> Result<()> {
        let mut last_key: Option<&[u8]> = None;
        for (block, row) in self.rows().enumerate() {
            if last_key.is_some_and(|last| last > row.first_key) || row.first_key > row.last_key {
                return Err(Error::corrupt(format!("index row {block}: keys are out of order")));
            }
            last_key = Some(row.last_key);
        }
        Ok(())
    }
}

fn decode_rows(bytes: &[u8], count: usize) -> Result<Vec<Row>> {
    if count > bytes.len() / row::ROW_BYTES_MIN {
        return Err(Error::corrupt(format!("index block of {} bytes cannot hold {count} rows", bytes.len())));
    }
    let mut rows = Vec::with_capacity(count);
    let mut fields = Fields::new("index block", bytes);
    let mut offset = 0u64;
    for block in 0..count {
        let row = Row::decode(&mut fields).map_err(|error| error.context(format!("index row {block}")))?;
        if u64::from(row.offset) != offset {
            return Err(Error::corrupt(format!(
                "index row {block}: block starts at byte {}, expected {offset}",
                row.offset
            )));
        }
        offset += u64::from(row.stored_len);
        rows.push(row);
    }
    if fields.at() != bytes.len() {
        return Err(Error::corrupt(format!(
            "index block has {} bytes behind its rows",
            bytes.len() - fields.at()
        )));
    }
    Ok(rows)
}
