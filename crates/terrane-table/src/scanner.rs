//! [`ExtentScanner`]: reads an extent's blocks in few large reads without the cache, for compaction.
//!
//! Blocks come stored (checked, not decoded, ready to be written elsewhere) or decoded. One chunk of the
//! extent is in memory at a time. A scanner [that reads ahead](ExtentScanner::ahead) has two, each of half
//! the bytes: while the blocks of one are used, the device fills the other. Its first chunk is read
//! together with the index block.
//!
//! Invariants:
//! 1. Beside one whole block that is longer, chunks hold at most the bytes that the caller gave; a direct
//!    read has up to `ALIGNMENT_BYTES` more.
//! 2. A read-ahead that cannot begin is not an error: the chunk is read when its first block is asked for,
//!    and that read reports the error.

use std::ops::Range;
use std::sync::Arc;

use terrane_base::{Error, Result};
use terrane_device::{Buffer, PendingRead, ReadBytes, keep_buffer, take_buffer};
use terrane_format::block::Block;
use terrane_format::extent::Origin;
use terrane_format::index::IndexBlock;

use crate::extent::Extent;
use crate::loader;

/// Bytes of the chunks of a scanner, suitable for every device: large enough to hide seeks, small enough for
/// a job's memory.
pub const CHUNK_BYTES: u32 = 512 << 10;
/// Bytes that a direct read may need beside its own: whole sectors at both ends, and an aligned beginning.
const ALIGNMENT_BYTES: usize = 8 << 10;

/// See the [module](self). Blocks should be requested in order; going back reads again.
#[derive(Debug)]
pub struct ExtentScanner {
    extent: Arc<Extent>,
    rows: IndexBlock,
    /// Bytes that are read at once.
    chunk_bytes: u32,
    chunk: Chunk,
    reads_ahead: bool,
    ahead: Option<Ahead>,
    /// Buffer for the next read ahead.
    memory: Buffer,
}

/// Bytes of the extent in memory.
#[derive(Debug, Default)]
struct Chunk {
    start: u32,
    bytes: ReadBytes,
}

impl Chunk {
    fn holds(&self, range: &Range<u32>) -> bool {
        range.start >= self.start && u64::from(range.end) <= u64::from(self.start) + self.bytes.len() as u64
    }
}

/// Bytes of the extent that are being read.
#[derive(Debug)]
struct Ahead {
    range: Range<u32>,
    read: Box<dyn PendingRead>,
}

impl Ahead {
    /// Begins to read a range of the extent into `memory`, unless the range cannot exist.
    fn begin(extent: &Extent, range: Range<u32>, memory: Vec<u8>) -> Option<Ahead> {
        let (meta, store, len) = (&extent.meta, &*extent.store, range.end - range.start);
        if len == 0 || loader::check_range(meta, store, range.start, len).is_err() {
            return None;
        }
        let read = store.begin_read(meta.id, range.start, len as usize, memory).ok()?;
        Some(Ahead { range, read })
    }
}

impl ExtentScanner {
    /// Opens `extent`: reads its index block. `chunk_bytes` (at least 1; see [`CHUNK_BYTES`]) is read at
    /// once; a longer block is read whole.
    ///
    /// # Errors
    /// `Corrupt`, naming file and offset; `Io`.
    pub fn new(extent: Arc<Extent>, chunk_bytes: u32) -> Result<ExtentScanner> {
        let rows = loader::read_index(&extent.meta, &*extent.store)?;
        let (chunk, memory) = (Chunk::default(), Buffer::default());
        Ok(ExtentScanner { extent, rows, chunk_bytes, chunk, reads_ahead: false, ahead: None, memory })
    }

    /// Opens `extent` for a caller that wants all of its blocks: reads half of `chunk_bytes` at once, and the
    /// next half while the caller uses one.
    ///
    /// # Errors
    /// As [`ExtentScanner::new`].
    pub fn ahead(extent: Arc<Extent>, chunk_bytes: u32) -> Result<ExtentScanner> {
        Self::ahead_by(extent, chunk_bytes, |extent| loader::read_index(&extent.meta, &*extent.store))
    }

    /// The same, and what the extent says of where it comes from: it is read with the index block.
    ///
    /// # Errors
    /// As [`ExtentScanner::new`]; none for what the extent says, which may be missing.
    pub fn ahead_with_origin(
        extent: Arc<Extent>,
        chunk_bytes: u32,
    ) -> Result<(ExtentScanner, Option<Origin>)> {
        let mut found = None;
        let scanner = Self::ahead_by(extent, chunk_bytes, |extent| {
            let (rows, origin) = loader::read_index_and_origin(&extent.meta, &*extent.store)?;
            found = origin;
            Ok(rows)
        })?;
        Ok((scanner, found))
    }

    fn ahead_by(
        extent: Arc<Extent>,
        chunk_bytes: u32,
        read_index: impl FnOnce(&Extent) -> Result<IndexBlock>,
    ) -> Result<ExtentScanner> {
        let chunk_bytes = (chunk_bytes / 2).max(1);
        // Blocks lie from the first byte up to the index block, which is read meanwhile. The end of this
        // chunk may cut a block, which the next one then has whole.
        let first = 0..extent.meta.index.offset.min(chunk_bytes);
        let memory = take_buffer(first.len() + ALIGNMENT_BYTES);
        let ahead = Ahead::begin(&extent, first, memory);
        let rows = read_index(&extent)?;
        let (chunk, memory) = (Chunk::default(), Buffer::default());
        Ok(ExtentScanner { extent, rows, chunk_bytes, chunk, reads_ahead: true, ahead, memory })
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
        debug_assert!(at < self.rows.len(), "the caller asks for block {at} of {}", self.rows.len());
        self.load(at)?;
        let row = self.rows.row(at);
        let stored = self.in_chunk(at);
        row.check_stored(stored).map_err(|error| self.placed(row.offset, error))?;
        Ok(stored)
    }

    /// Block `at`, decoded; [`ExtentScanner::keep`] takes it back. Requires: `at < rows().len()`.
    ///
    /// # Errors
    /// As [`ExtentScanner::stored`]; `Invalid` if this build cannot read the block's compression.
    pub fn block(&mut self, at: usize) -> Result<Block> {
        debug_assert!(at < self.rows.len(), "the caller asks for block {at} of {}", self.rows.len());
        self.load(at)?;
        let (row, stored) = (self.rows.row(at), loader::copy_of(self.in_chunk(at)));
        loader::open_block(&self.extent.meta, &*self.extent.store, &row, stored)
    }

    /// Keeps the memory of a block that is not used any more, for the next one.
    pub fn keep(block: Block) {
        keep_buffer(block.into_bytes());
    }

    /// Bytes of memory that the scanner holds, without those that the device still fills.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.chunk.bytes.memory_bytes() + self.memory.capacity() + self.rows.memory_bytes()
    }

    /// Where block `at` lies in the extent.
    fn range_of(&self, at: usize) -> Range<u32> {
        let row = self.rows.row(at);
        // `read_index` has checked that all blocks lie in the extent, whose length is 32 bits.
        row.offset..row.offset + row.stored_len
    }

    /// The stored bytes of block `at`, which is loaded.
    fn in_chunk(&self, at: usize) -> &[u8] {
        let range = self.range_of(at);
        debug_assert!(self.chunk.holds(&range), "block {at} is not loaded");
        let from = (range.start - self.chunk.start) as usize;
        &self.chunk.bytes[from..from + range.len()]
    }

    /// Makes the chunk that holds block `at` the current one.
    #[inline]
    fn load(&mut self, at: usize) -> Result<()> {
        if self.chunk.holds(&self.range_of(at)) { Ok(()) } else { self.advance(at) }
    }

    #[cold]
    fn advance(&mut self, at: usize) -> Result<()> {
        let block = self.range_of(at);
        let used = std::mem::take(&mut self.chunk);
        if self.reads_ahead {
            self.memory = used.bytes.into_memory().into();
        }
        let ahead = self
            .ahead
            .take()
            .filter(|ahead| ahead.range.start <= block.start && block.end <= ahead.range.end);
        self.chunk = match ahead {
            Some(Ahead { range, read }) => Chunk { start: range.start, bytes: read.finish()? },
            None => self.read(self.chunk_from(at))?,
        };
        assert!(self.chunk.holds(&block), "block {at} was read as a whole");
        if self.reads_ahead {
            let next = (at + 1..self.rows.len()).find(|next| !self.chunk.holds(&self.range_of(*next)));
            let memory = std::mem::take(&mut *self.memory);
            self.ahead = next.and_then(|next| self.begin_ahead(next, memory));
        }
        Ok(())
    }

    /// Begins to read block `next` and those behind it, unless it is longer than a chunk: then it is read
    /// when it is asked for, and the memory of the chunk before is free.
    fn begin_ahead(&self, next: usize, memory: Vec<u8>) -> Option<Ahead> {
        debug_assert!(next < self.rows.len(), "behind the last block nothing is read ahead");
        let range = self.chunk_from(next);
        if range.len() > self.chunk_bytes as usize {
            return None;
        }
        Ahead::begin(&self.extent, range, memory)
    }

    /// Block `at` and as many blocks after it as are read at once.
    fn chunk_from(&self, at: usize) -> Range<u32> {
        let Range { start, mut end } = self.range_of(at);
        for next in at + 1..self.rows.len() {
            let next_end = self.range_of(next).end;
            if u64::from(next_end) > u64::from(start) + u64::from(self.chunk_bytes) {
                break;
            }
            end = next_end;
        }
        debug_assert!(end >= self.range_of(at).end, "the block that is asked for is read as a whole");
        start..end
    }

    fn read(&self, range: Range<u32>) -> Result<Chunk> {
        let len = range.end - range.start;
        loader::check_range(&self.extent.meta, &*self.extent.store, range.start, len)?;
        let mut bytes = Buffer::from(take_buffer(len as usize));
        self.extent.store.read(self.extent.meta.id, range.start, &mut bytes)?;
        let bytes = std::mem::take(&mut *bytes);
        debug_assert!(bytes.len() == range.len(), "the whole chunk was read");
        Ok(Chunk { start: range.start, bytes: ReadBytes::new(bytes, 0, range.len()) })
    }

    #[cold]
    fn placed(&self, offset: u32, error: Error) -> Error {
        loader::placed(&self.extent.meta, &*self.extent.store, offset, error)
    }
}
