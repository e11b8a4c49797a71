//! [`ExtentScanner`]: reads an extent's blocks in few large reads without the cache, for compaction.
//!
//! Blocks come stored (checked, not decoded, ready to be written elsewhere) or decoded. One chunk of the
//! extent is in memory at a time; while it is used, the store gets a hint about the next one.

use std::sync::Arc;

use terrane_base::{Error, Result};
use terrane_format::block::Block;
use terrane_format::index::IndexBlock;

use crate::extent::Extent;
use crate::loader;

/// Bytes of a chunk, suitable for every device: large enough to hide seeks, small enough for a job's memory.
pub const CHUNK_BYTES: u32 = 512 << 10;

/// See the [module](self). Blocks should be requested in order; going back reads again.
#[derive(Debug)]
pub struct ExtentScanner {
    extent: Arc<Extent>,
    rows: IndexBlock,
    chunk_bytes: u32,
    /// The bytes from `start` of the extent, on block boundaries.
    chunk: Vec<u8>,
    start: u32,
}

impl ExtentScanner {
    /// Opens `extent`: reads its index block. `chunk_bytes` (at least 1; see [`CHUNK_BYTES`]) is read at
    /// once; a longer block is read whole.
    ///
    /// # Errors
    /// `Corrupt`, naming file and offset; `Io`.
    pub fn new(extent: Arc<Extent>, chunk_bytes: u32) -> Result<ExtentScanner> {
        let rows = loader::read_index(&extent.meta, &*extent.store)?;
        Ok(ExtentScanner { extent, rows, chunk_bytes, chunk: Vec::new(), start: 0 })
    }

    /// The rows of the index block.
    #[must_use]
    pub fn rows(&self) -> &IndexBlock {
        &self.rows
    }

    /// The extent that is read.
    #[must_use]
    pub fn extent(&self) -> &Arc<Extent> {
        &self.extent
    }

    /// Block `at` as stored, its checksum verified. Requires: `at < rows().len()`.
    ///
    /// # Errors
    /// `Corrupt`, naming file and offset; `Io`.
    pub fn stored(&mut self, at: usize) -> Result<&[u8]> {
        self.load(at)?;
        let row = self.rows.row(at);
        let from = (row.offset - self.start) as usize;
        let stored = &self.chunk[from..from + row.stored_len as usize];
        row.check_stored(stored).map_err(|error| self.placed(row.offset, error))?;
        Ok(stored)
    }

    /// Block `at`, decoded. Requires: `at < rows().len()`.
    ///
    /// # Errors
    /// As [`ExtentScanner::stored`]; `Invalid` if this build cannot read the block's compression.
    pub fn block(&mut self, at: usize) -> Result<Block> {
        self.load(at)?;
        let row = self.rows.row(at);
        let from = (row.offset - self.start) as usize;
        let stored = self.chunk[from..from + row.stored_len as usize].to_vec();
        loader::open_block(&self.extent.meta, &*self.extent.store, &row, stored, &mut Vec::new())
    }

    /// Bytes of memory that the scanner holds.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.chunk.capacity() + self.rows.memory_bytes()
    }

    /// Reads block `at` and as many blocks after it as fit into the chunk.
    fn load(&mut self, at: usize) -> Result<()> {
        let first = self.rows.row(at);
        let first_end = u64::from(first.offset) + u64::from(first.stored_len);
        let chunk_end = u64::from(self.start) + self.chunk.len() as u64;
        if first.offset >= self.start && first_end <= chunk_end {
            return Ok(());
        }
        let mut end = first_end;
        for block in at + 1..self.rows.len() {
            let row = self.rows.row(block);
            let row_end = u64::from(row.offset) + u64::from(row.stored_len);
            if row_end > u64::from(first.offset) + u64::from(self.chunk_bytes) {
                break;
            }
            end = row_end;
        }
        let (start, len) = (first.offset, end - u64::from(first.offset));
        // `read_index` has checked that all blocks lie in the extent, whose length is 32 bits.
        let (end, len) = (end as u32, len as u32);
        self.chunk = Vec::new();
        self.chunk = loader::read(&self.extent.meta, &*self.extent.store, start, len)?;
        self.start = start;
        debug_assert!(self.chunk.len() == len as usize, "the whole chunk was read");
        let rest = self.rows.data_bytes().saturating_sub(u64::from(end)) as u32;
        if rest > 0 {
            self.extent.store.prefetch(self.extent.meta.id, end, rest.min(self.chunk_bytes));
        }
        Ok(())
    }

    #[cold]
    fn placed(&self, offset: u32, error: Error) -> Error {
        loader::placed(&self.extent.meta, &*self.extent.store, offset, error)
    }
}
