//! The sources of a merge: the extents of one input in order, or a cursor over entries in memory. Each source
//! is before an extent, before a block or at an entry, and opens the extent or block only when the merge
//! calls for it.

use std::ops::Bound;

use terrane_base::{Collation, Cursor, Entry, Result, SeqNo};
use terrane_format::block::{Block, BlockCursor};
use terrane_format::extent::{ExtentMeta, Replaced};
use terrane_format::index::{IndexBlock, IndexRow};
use terrane_table::ExtentScanner;

use crate::compactor::ExtentSource;
use crate::job::{Input, Work};
use crate::range::KeyRange;

/// The state of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceState {
    /// Before an extent that is not open.
    Extent,
    /// Before a block that is not decoded.
    Block,
    /// At an entry.
    Entry,
    /// After the last entry.
    End,
}

/// The extents of one input, one after the other.
pub(super) struct RunSource<'a> {
    input: &'a Input,
    /// Bytes that are read at once.
    chunk_bytes: u32,
    at: usize,
    scanner: Option<ExtentScanner>,
    block_index: usize,
    block: Option<Block>,
    cursor: BlockCursor,
    /// Keys of the block that is copied: its row cannot be borrowed while its bytes are.
    first_key: Vec<u8>,
    last_key: Vec<u8>,
}

impl<'a> RunSource<'a> {
    pub(super) fn new(input: &'a Input, chunk_bytes: u32) -> Self {
        RunSource {
            input,
            chunk_bytes,
            at: 0,
            scanner: None,
            block_index: 0,
            block: None,
            cursor: BlockCursor::new(),
            first_key: Vec::new(),
            last_key: Vec::new(),
        }
    }

    pub(super) fn input(&self) -> &'a Input {
        self.input
    }

    /// Number of extents that were used up.
    pub(super) fn consumed(&self) -> usize {
        self.at
    }

    pub(super) fn state(&self) -> SourceState {
        debug_assert!(self.block.is_none() || self.scanner.is_some(), "a block is of an extent that is open");
        match (&self.block, &self.scanner) {
            (Some(_), _) => SourceState::Entry,
            (None, Some(_)) => SourceState::Block,
            (None, None) if self.at < self.input.extents.len() => SourceState::Extent,
            (None, None) => SourceState::End,
        }
    }

    /// The extent before or in which the source is. Requires: not at the end.
    pub(super) fn meta(&self) -> &'a ExtentMeta {
        &self.input.extents[self.at]
    }

    /// [`RunSource::meta`], unless it is at the end.
    pub(super) fn present(&self) -> Option<&'a ExtentMeta> {
        self.input.extents.get(self.at)
    }

    /// The row of the next block. Requires: the source is before a block.
    pub(super) fn row(&self) -> IndexRow<'_> {
        self.rows().row(self.block_index)
    }

    /// Returns true if the block after it holds more versions of its last key. Requires: as
    /// [`RunSource::row`].
    pub(super) fn goes_on(&self) -> bool {
        self.rows().goes_on(self.block_index)
    }

    fn rows(&self) -> &IndexBlock {
        self.scanner.as_ref().expect("only asked where a scanner is open").rows()
    }

    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        self.block.as_ref().and_then(|block| self.cursor.entry(block))
    }

    /// Skips an extent that is re-linked, or that range deletes hide.
    pub(super) fn skip_extent(&mut self) {
        debug_assert_eq!(self.state(), SourceState::Extent);
        self.at += 1;
    }

    /// Opens the next extent. Returns what it had replaced, if that `is_wanted`.
    pub(super) fn open_extent(
        &mut self,
        extents: &dyn ExtentSource,
        is_wanted: bool,
        work: &mut Work,
    ) -> Result<Option<Vec<Replaced>>> {
        debug_assert_eq!(self.state(), SourceState::Extent);
        let (extent, chunk_bytes) = (extents.extent(self.meta())?, self.chunk_bytes);
        let (scanner, origin) = match is_wanted {
            true => ExtentScanner::ahead_with_origin(extent, chunk_bytes)?,
            false => (ExtentScanner::ahead(extent, chunk_bytes)?, None),
        };
        let replaced = is_wanted.then(|| origin.map(|origin| origin.replaced).unwrap_or_default());
        // With the end the filter is read, too.
        let meta = self.meta();
        let reads_end = is_wanted && meta.has_origin();
        work.bytes_read +=
            u64::from(if reads_end { meta.bytes.saturating_sub(meta.index.offset) } else { meta.index.len });
        self.block_index = 0;
        self.scanner = Some(scanner);
        if self.rows().is_empty() {
            self.end_extent();
        }
        Ok(replaced)
    }

    /// Decodes the next block.
    pub(super) fn open_block(&mut self, work: &mut Work) -> Result<()> {
        debug_assert_eq!(self.state(), SourceState::Block);
        let row = self.row();
        work.bytes_read += u64::from(row.stored_len);
        work.entries_in += u64::from(row.entries);
        work.blocks_decoded += 1;
        let block_index = self.block_index;
        let scanner = self.scanner.as_mut().expect("the source stands before a block");
        let block = scanner.block(block_index)?;
        self.cursor.seek_first(&block);
        self.block = Some(block);
        if self.entry().is_none() {
            self.end_block();
        }
        Ok(())
    }

    /// The next block, as it is stored.
    pub(super) fn stored(&mut self) -> Result<(IndexRow<'_>, &[u8])> {
        debug_assert_eq!(self.state(), SourceState::Block);
        let RunSource { scanner, block_index, first_key, last_key, .. } = self;
        let scanner = scanner.as_mut().expect("the source stands before a block");
        let row = scanner.rows().row(*block_index);
        first_key.clear();
        first_key.extend_from_slice(row.first_key);
        last_key.clear();
        last_key.extend_from_slice(row.last_key);
        // Field by field, so that the borrow of the scanner ends here.
        let row = IndexRow {
            offset: row.offset,
            stored_len: row.stored_len,
            raw_len: row.raw_len,
            compression: row.compression,
            checksum: row.checksum,
            entries: row.entries,
            deletes: row.deletes,
            seq_min: row.seq_min,
            seq_max: row.seq_max,
            first_key,
            last_key,
        };
        Ok((row, scanner.stored(*block_index)?))
    }

    /// Skips a block that was copied.
    pub(super) fn skip_block(&mut self) {
        debug_assert_eq!(self.state(), SourceState::Block);
        self.end_block();
    }

    #[inline]
    fn next(&mut self) {
        debug_assert!(self.block.is_some(), "an entry that is passed lies in a block that is decoded");
        let Some(block) = &self.block else { return };
        self.cursor.next(block);
        if !self.cursor.is_placed() {
            self.end_block();
        }
    }

    fn end_block(&mut self) {
        debug_assert!(self.block_index < self.rows().len(), "block {} ends", self.block_index);
        if let Some(block) = self.block.take() {
            ExtentScanner::keep(block);
        }
        self.block_index += 1;
        if self.block_index == self.rows().len() {
            self.end_extent();
        }
    }

    fn end_extent(&mut self) {
        assert!(
            self.at < self.input.extents.len(),
            "extent {} of {:?} ends twice",
            self.at,
            self.input.place
        );
        self.scanner = None;
        self.at += 1;
    }
}

/// Entries in memory within a range.
pub(super) struct MemorySource<'c, C> {
    cursor: &'c mut C,
    /// Last key of the range, as found when the merge began.
    last: Option<Vec<u8>>,
    is_within: bool,
    /// Key order of the table.
    collation: Collation,
}

impl<'c, C: Cursor> MemorySource<'c, C> {
    /// The entries of `cursor` from key `from` on that are in `range`.
    pub(super) fn new(cursor: &'c mut C, from: &[u8], range: &KeyRange) -> Result<Self> {
        match &range.end {
            Bound::Unbounded => cursor.seek_last()?,
            Bound::Excluded(end) => cursor.seek_before(end)?,
            Bound::Included(end) => cursor.seek_before(&range.collation.successor(end))?,
        }
        let last = cursor.entry().map(|entry| entry.key.to_vec());
        cursor.seek(from, SeqNo::MAX)?;
        let mut source = MemorySource { cursor, last, is_within: false, collation: range.collation.clone() };
        source.look();
        Ok(source)
    }

    /// The first and the last key. Requires: no entry was passed yet.
    pub(super) fn bounds(&self) -> Option<(&[u8], &[u8])> {
        self.entry().map(|entry| entry.key).zip(self.last.as_deref())
    }

    #[inline]
    fn look(&mut self) {
        let entry = self.cursor.entry();
        let is_within = |(entry, last): (Entry<'_>, &Vec<u8>)| self.collation.le(entry.key, last);
        self.is_within = entry.zip(self.last.as_ref()).is_some_and(is_within);
    }

    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        if self.is_within { self.cursor.entry() } else { None }
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        debug_assert!(self.is_within, "a merge passes entries of its range only");
        self.cursor.next()?;
        self.look();
        Ok(())
    }

    /// Returns true if there are entries left in the range.
    pub(super) fn is_within(&self) -> bool {
        self.is_within
    }

    /// The key at the cursor, within the range or after it.
    pub(super) fn next_key(&self) -> Option<&[u8]> {
        self.cursor.entry().map(|entry| entry.key)
    }
}

/// Any source. A job has a handful of them in one array, so their size does not matter, but another
/// indirection would.
#[expect(clippy::large_enum_variant, reason = "see above")]
pub(super) enum Source<'a, 'c, C> {
    Memory(MemorySource<'c, C>),
    Run(RunSource<'a>),
}

impl<'a, C: Cursor> Source<'a, '_, C> {
    #[inline]
    pub(super) fn state(&self) -> SourceState {
        match self {
            Source::Memory(memory) if memory.is_within => SourceState::Entry,
            Source::Memory(_) => SourceState::End,
            Source::Run(run) => run.state(),
        }
    }

    /// The first key that the source has not yielded yet.
    #[inline]
    pub(super) fn key(&self) -> Option<&[u8]> {
        match self {
            Source::Memory(memory) => memory.entry().map(|entry| entry.key),
            Source::Run(run) => match run.state() {
                SourceState::Entry => run.entry().map(|entry| entry.key),
                SourceState::Block => Some(run.row().first_key),
                SourceState::Extent => Some(&run.meta().smallest),
                SourceState::End => None,
            },
        }
    }

    /// The current entry, if the source is at one.
    #[inline]
    pub(super) fn entry(&self) -> Option<Entry<'_>> {
        match self {
            Source::Memory(memory) => memory.entry(),
            Source::Run(run) => run.entry(),
        }
    }

    /// Goes to what follows the current entry. Requires: the source is at one.
    #[inline]
    pub(super) fn next(&mut self) -> Result<()> {
        debug_assert!(self.entry().is_some(), "the caller took the entry that is passed");
        match self {
            Source::Memory(memory) => memory.next(),
            Source::Run(run) => {
                run.next();
                Ok(())
            }
        }
    }

    pub(super) fn as_run(&self) -> Option<&RunSource<'a>> {
        match self {
            Source::Memory(_) => None,
            Source::Run(run) => Some(run),
        }
    }

    /// The least and the greatest key that the source will yield. Requires: nothing was yielded yet.
    pub(super) fn bounds(&self) -> Option<(&[u8], &[u8])> {
        match self {
            Source::Memory(memory) => memory.bounds(),
            Source::Run(run) => {
                debug_assert!(
                    run.at == 0 && run.scanner.is_none(),
                    "bounds are asked for before an extent is passed"
                );
                let extents = &run.input.extents;
                Some((&extents.first()?.smallest, &extents.last()?.largest))
            }
        }
    }

    /// Returns true if a part of an extent was yielded, so that the rest must be, too.
    pub(super) fn is_inside_extent(&self) -> bool {
        matches!(self, Source::Run(run) if matches!(run.state(), SourceState::Block | SourceState::Entry))
    }
}
