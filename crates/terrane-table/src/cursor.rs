//! [`ExtentCursor`]: walks the entries of one extent in order, both ways.
//!
//! Between calls a cursor holds references to the index block and to its current data block, and no epoch:
//! its user may keep it for any time. What it holds counts against the cache's limit.
//!
//! A forward walk that comes near the end of a block prefetches the memory of the next one, if it is cached:
//! first its header, then the lines with which a walk of it begins.

mod near;

use std::sync::Arc;

use terrane_base::counters::{add, count};
use terrane_base::{Cursor, Entry, Result, SeqNo};
use terrane_format::block::BlockCursor;

use crate::cache::{Cache, Object, ObjectRef};
use crate::extent::Extent;
use crate::loader::Loader;
use crate::read_ahead::ReadAhead;
use crate::swip;
pub(crate) use near::Near;

/// Bytes before a block's end at which the header of the next block is prefetched, and those at which its
/// first entries are.
const HEADER_AHEAD_BYTES: usize = 1536;
const ENTRIES_AHEAD_BYTES: usize = 768;

/// How a cursor uses the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorOptions {
    /// True if data blocks that are read enter the cache. Switch it off for scans of much data that is not
    /// read again soon: compaction, backup, whole-table scans. Cached blocks are used in either case.
    pub fill_cache: bool,
    /// Most bytes of one read-ahead of a sequential scan; 0: each block is read when it is reached.
    pub read_ahead_bytes: u32,
}

impl Default for CursorOptions {
    fn default() -> Self {
        CursorOptions { fill_cache: true, read_ahead_bytes: 512 << 10 }
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct ExtentCursor {
    extent: Arc<Extent>,
    cache: Arc<Cache>,
    options: CursorOptions,
    index: Option<ObjectRef>,
    /// The block that `position` is in; `None` if the cursor has no position.
    block: Option<ObjectRef>,
    block_index: usize,
    position: BlockCursor,
    /// Offset in the block at which the memory of the next one is prefetched; `usize::MAX`: no further
    /// prefetch.
    warm_at: usize,
    /// Number of the block in which the prepared seek begins.
    prepared: Option<usize>,
    ahead: ReadAhead,
}

impl ExtentCursor {
    /// A cursor without a position. Reads nothing.
    #[must_use]
    pub fn new(extent: Arc<Extent>, cache: Arc<Cache>, options: CursorOptions) -> Self {
        ExtentCursor {
            extent,
            cache,
            options,
            index: None,
            block: None,
            block_index: 0,
            position: BlockCursor::new(),
            warm_at: usize::MAX,
            prepared: None,
            ahead: ReadAhead::new(options.read_ahead_bytes),
        }
    }

    /// The extent that the cursor reads.
    #[must_use]
    pub fn extent(&self) -> &Arc<Extent> {
        &self.extent
    }

    /// Continues in another extent, without a position; keeps buffers and the state of the scan.
    pub(crate) fn change_extent(&mut self, extent: Arc<Extent>) {
        debug_assert!(
            !Arc::ptr_eq(&self.extent, &extent),
            "a cursor that stays in its extent keeps the index block"
        );
        self.extent = extent;
        self.index = None;
        self.block = None;
        self.prepared = None;
    }

    /// Returns true if the cursor has a position.
    #[inline]
    #[must_use]
    pub fn is_placed(&self) -> bool {
        self.block.is_some() && self.position.is_placed()
    }

    /// Returns true if the scan wants to know the next extent.
    pub(crate) fn reads_ahead(&self) -> bool {
        self.ahead.is_on()
    }

    /// Tells the scan its next extent.
    pub(crate) fn follow(&mut self, extent: Option<Arc<Extent>>) {
        self.ahead.follow(extent);
    }

    /// Tells the read-ahead that the scan crossed into this extent.
    pub(crate) fn cross(&mut self, backward: bool) -> Result<()> {
        debug_assert!(!self.is_placed(), "a scan would skip the rest of the extent");
        self.ahead.step(backward);
        if backward { self.place_last() } else { self.place_first() }
    }

    /// Takes the index block out; the caller puts it back, which is cheaper than a second reference.
    fn take_index(&mut self) -> Result<ObjectRef> {
        match self.index.take() {
            Some(index) => Ok(index),
            None => loader(&self.extent, &self.cache, self.options).index(),
        }
    }

    /// Makes block `at` the current one. The caller sets the position in it.
    fn enter(&mut self, index: &ObjectRef, at: usize) -> Result<&Object> {
        debug_assert!(
            at < index.index().slots.len(),
            "a block of another index: the caller searched in this one"
        );
        let cached = loader(&self.extent, &self.cache, self.options).cached_block(index, at);
        self.enter_block(index, at, cached)
    }

    /// [`ExtentCursor::enter`] with the cached block, if it was looked up already.
    fn enter_block(&mut self, index: &ObjectRef, at: usize, cached: Option<ObjectRef>) -> Result<&Object> {
        debug_assert!(at < index.index().rows.len(), "block {at} of {}", self.extent.meta.id);
        let loader = loader(&self.extent, &self.cache, self.options);
        let block = match cached {
            Some(block) => block,
            None => match self.ahead.fetch(&self.extent, &self.cache, &index.index().rows, at) {
                Some(fetched) => loader.fetched_block(index, at, fetched.stored, fetched.is_scan)?,
                None => loader.block(index, at)?,
            },
        };
        count(|cells| add(&cells.data_blocks_searched, 1));
        self.block_index = at;
        self.warm_at = block.block().bytes().len().saturating_sub(HEADER_AHEAD_BYTES);
        Ok(self.block.insert(block))
    }

    /// The cursor has a position only if `place` succeeds in setting one.
    fn place(&mut self, place: impl FnOnce(&mut Self, &ObjectRef) -> Result<()>) -> Result<()> {
        self.block = None;
        self.prepared = None;
        self.position.clear();
        let index = self.take_index()?;
        let placed = place(self, &index);
        self.index = Some(index);
        if placed.is_err() || !self.position.is_placed() {
            self.block = None;
        }
        debug_assert!(self.block.is_none() || self.position.is_placed(), "a position lies in a block");
        placed
    }

    /// Seeks. Returns false if that would wait for a data block and `may_wait` is false: then the block is
    /// being read.
    #[inline]
    fn seek_to(&mut self, key: &[u8], seq: SeqNo, may_wait: bool) -> Result<bool> {
        self.ahead.restart();
        let prepared = self.prepared.take();
        let mut is_done = true;
        self.place(|cursor, index| {
            let rows = &index.index().rows;
            let mut at = prepared.unwrap_or_else(|| index.index().find(key));
            debug_assert_eq!(at, rows.find(key), "another key was prepared");
            while at < rows.len() {
                let cached = loader(&cursor.extent, &cursor.cache, cursor.options).cached_block(index, at);
                if cached.is_none() && !may_wait && cursor.ahead.begin_block(&cursor.extent, rows, at) {
                    is_done = false;
                    return Ok(());
                }
                cursor.enter_block(index, at, cached)?;
                let ExtentCursor { position, block: Some(block), .. } = cursor else { break };
                position.seek(block.block(), key, seq);
                // No position means that all versions of `key` in this block are newer: the next block may
                // hold more.
                if position.is_placed() {
                    break;
                }
                at += 1;
            }
            count(|cells| add(&cells.index_blocks_searched, 1));
            Ok(())
        })?;
        Ok(is_done)
    }

    fn place_first(&mut self) -> Result<()> {
        self.place(|cursor, index| cursor.first_of(index, 0))
    }

    fn place_last(&mut self) -> Result<()> {
        self.place(|cursor, index| cursor.last_of(index, index.index().rows.len().checked_sub(1)))
    }

    /// Goes to the first entry of block `at`, if that block exists. Every block has an entry.
    fn first_of(&mut self, index: &ObjectRef, at: usize) -> Result<()> {
        if at < index.index().rows.len() {
            self.enter(index, at)?;
            debug_assert!(self.block_index == at, "the next step would leave another block");
            let ExtentCursor { position, block: Some(block), .. } = self else { return Ok(()) };
            position.seek_first(block.block());
        }
        Ok(())
    }

    fn last_of(&mut self, index: &ObjectRef, at: Option<usize>) -> Result<()> {
        if let Some(at) = at {
            self.enter(index, at)?;
            debug_assert!(self.block_index == at, "the next step would leave another block");
            let ExtentCursor { position, block: Some(block), .. } = self else { return Ok(()) };
            position.seek_last(block.block());
        }
        Ok(())
    }

    /// Prefetches memory of the next block, one step of two.
    #[inline(never)]
    fn warm_next(&mut self) {
        let warm_at = std::mem::replace(&mut self.warm_at, usize::MAX);
        let (Some(index), Some(block)) = (&self.index, &self.block) else { return };
        debug_assert!(self.block_index < index.index().slots.len(), "the current block is one of its index");
        let Some(slot) = index.index().slots.get(self.block_index + 1) else { return };
        let epoch = swip::enter();
        let Some(next) = slot.swip.load(&epoch) else { return };
        let entries_at = block.block().bytes().len().saturating_sub(ENTRIES_AHEAD_BYTES);
        if warm_at < entries_at {
            next.prefetch_whole();
            self.warm_at = entries_at;
        } else {
            next.block().prefetch_first();
        }
    }

    /// Goes from the end of a block to the start of the next one.
    fn next_block(&mut self) -> Result<()> {
        debug_assert!(
            !self.position.is_placed(),
            "a cursor leaves a block at its end: block {}",
            self.block_index
        );
        self.ahead.step(false);
        let at = self.block_index + 1;
        self.place(|cursor, index| cursor.first_of(index, at))
    }

    fn previous_block(&mut self) -> Result<()> {
        debug_assert!(
            !self.position.is_placed(),
            "a cursor leaves a block at its end: block {}",
            self.block_index
        );
        self.ahead.step(true);
        let at = self.block_index.checked_sub(1);
        self.place(|cursor, index| cursor.last_of(index, at))
    }
}

fn loader<'a>(extent: &'a Extent, cache: &Arc<Cache>, options: CursorOptions) -> Loader<'a> {
    Loader { extent, cache: extent.bind(cache), fill_cache: options.fill_cache }
}

impl Cursor for ExtentCursor {
    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        self.position.entry(self.block.as_ref()?.block())
    }

    fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        self.seek_to(key, seq, true).map(drop)
    }

    fn prepare_seek(&mut self, key: &[u8]) {
        self.prepared = None;
        let epoch = swip::enter();
        let Some(index) = self.index.as_deref().or_else(|| self.extent.index.swip.load(&epoch)) else {
            return;
        };
        let index = index.index();
        let at = index.find(key);
        debug_assert!(at <= index.slots.len(), "a search ends in a block or behind the last one");
        self.prepared = Some(at);
        if let Some(block) = index.slots.get(at).and_then(|slot| slot.swip.load(&epoch)) {
            block.prefetch_whole();
        }
    }

    fn begin_seek(&mut self, key: &[u8], seq: SeqNo) -> Result<bool> {
        self.seek_to(key, seq, false)
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.ahead.restart();
        self.place(|cursor, index| {
            count(|cells| add(&cells.index_blocks_searched, 1));
            if let Some(at) = index.index().rows.find_before(key) {
                cursor.enter(index, at)?;
                debug_assert!(cursor.block_index == at, "the next step would leave another block");
                let ExtentCursor { position, block: Some(block), .. } = cursor else { return Ok(()) };
                position.seek_before(block.block(), key);
            }
            Ok(())
        })
    }

    fn seek_first(&mut self) -> Result<()> {
        self.ahead.restart();
        debug_assert!(
            !self.ahead.has_window(),
            "a new placement would go on with the window of the scan before"
        );
        self.place_first()
    }

    fn seek_last(&mut self) -> Result<()> {
        self.ahead.restart();
        debug_assert!(
            !self.ahead.has_window(),
            "a new placement would go on with the window of the scan before"
        );
        self.place_last()
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        debug_assert!(
            self.index.is_some() || self.block.is_none(),
            "a step over the end of a block needs the index that led to it"
        );
        let ExtentCursor { position, block: Some(block), .. } = self else { return Ok(()) };
        position.next(block.block());
        if !position.is_placed() {
            return self.next_block();
        }
        if position.end() >= self.warm_at {
            self.warm_next();
        }
        Ok(())
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        debug_assert!(
            self.index.is_some() || self.block.is_none(),
            "a step over the end of a block needs the index that led to it"
        );
        let ExtentCursor { position, block: Some(block), .. } = self else { return Ok(()) };
        position.prev(block.block());
        if position.is_placed() { Ok(()) } else { self.previous_block() }
    }
}
