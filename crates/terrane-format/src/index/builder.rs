//! Writes index blocks.

use super::{IndexRow, SEED, TRAILER_BYTES, VERSION};

/// Collects rows in key order and encodes them as an index block. The builder is reused from extent to
/// extent.
#[derive(Debug, Default)]
pub struct IndexBuilder {
    bytes: Vec<u8>,
    blocks: u32,
}

impl IndexBuilder {
    /// An empty builder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the row of the next block. Requires: the block starts where the previous one ends, and its keys
    /// are not less than the previous ones.
    pub fn add(&mut self, row: &IndexRow<'_>) {
        row.encode(&mut self.bytes);
        self.blocks += 1;
    }

    /// Rows so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks as usize
    }

    /// Returns true if there is no row yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks == 0
    }

    /// Bytes that [`IndexBuilder::finish`] would append.
    #[inline]
    #[must_use]
    pub fn estimated_bytes(&self) -> usize {
        self.bytes.len() + TRAILER_BYTES
    }

    /// Appends the index block to `out` and removes the rows; keeps the memory.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.bytes.extend_from_slice(&self.blocks.to_le_bytes());
        self.bytes.push(VERSION);
        let checksum = crate::checksum::crc32c(SEED, &self.bytes);
        out.extend_from_slice(&self.bytes);
        out.extend_from_slice(&checksum.to_le_bytes());
        self.reset();
    }

    /// Removes the rows; keeps the memory.
    pub fn reset(&mut self) {
        self.bytes.clear();
        self.blocks = 0;
    }

    /// Bytes of memory that the builder holds.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}
