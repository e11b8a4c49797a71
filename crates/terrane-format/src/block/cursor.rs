//! A position in a block.
//!
//! A walk prefetches the cache lines of the next entries. The hardware prefetcher starts only after some
//! lines in a row and stops at each page; most scans end before it helps.

use terrane_base::prefetch::{LINE_BYTES, prefetch_lines};
use terrane_base::{Entry, SeqKind, SeqNo};

use super::entry_pos::{EntryPos, Intervals, Run};
use super::{Block, Layout, ordered};

/// Bytes after the current entry that a walk prefetches: as many as it walks over during one memory access.
const AHEAD_BYTES: usize = 768;
/// Most bytes that are prefetched at once. Of long values only the end is prefetched, where the next entry
/// begins.
const ASKED_BYTES_MAX: usize = AHEAD_BYTES + 4 * LINE_BYTES;

/// A position in a block, in both directions; holds the current key, rebuilt in one reused buffer.
///
/// Each call gets the block as an argument, so the caller decides what keeps it alive (a cache pin, an
/// `Arc`). Requires: between two seeks every call gets the same block. With another block the cursor neither
/// panics nor reads outside the block, but its entries mean nothing.
///
/// A new cursor has no position: [`BlockCursor::entry`] is `None` until it is placed.
#[derive(Clone, Debug, Default)]
pub struct BlockCursor {
    pos: EntryPos,
    /// Entries before the position, collected while going backwards.
    run: Run,
    /// End of the bytes that were prefetched.
    asked: usize,
}

/// Evaluates an expression on the block in its own encoding.
macro_rules! with {
    ($block:expr, $intervals:ident => $body:expr) => {
        match &$block.layout {
            Layout::TwoLayer(layout) => {
                let $intervals = layout.of($block.bytes.as_ref());
                $body
            }
            Layout::Plain(layout) => {
                let $intervals = layout.of($block.bytes.as_ref());
                $body
            }
        }
    };
}
pub(super) use with;

impl BlockCursor {
    /// A cursor without a position.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The entry at the position, or `None` before the first or after the last one.
    #[inline]
    #[must_use]
    pub fn entry<'a, B: AsRef<[u8]>>(&'a self, block: &'a Block<B>) -> Option<Entry<'a>> {
        if !self.pos.is_placed {
            return None;
        }
        let value = block.bytes().get(self.pos.value_at..self.pos.end)?;
        Some(Entry { key: self.pos.key.key(), seq_kind: SeqKind(self.pos.seq_kind), value })
    }

    /// Returns true if the cursor has a position.
    #[inline]
    #[must_use]
    pub fn is_placed(&self) -> bool {
        self.pos.is_placed
    }

    /// Start and end of the current entry.
    pub(super) fn extent(&self) -> (usize, usize) {
        (self.pos.at, self.pos.end)
    }

    /// Removes the position; keeps the memory.
    pub fn clear(&mut self) {
        self.pos.is_placed = false;
        self.pos.has_prefix = false;
        self.run.clear();
    }

    /// Offset at which the current entry ends, or the last one did.
    #[inline]
    #[must_use]
    pub fn end(&self) -> usize {
        self.pos.end
    }

    /// Prefetches the bytes that a forward walk reads next.
    #[inline]
    fn ask_ahead(&mut self, bytes: &[u8]) {
        let until = (self.pos.end + AHEAD_BYTES).min(bytes.len());
        if self.asked + LINE_BYTES <= until {
            let from = self.asked.max(until.saturating_sub(ASKED_BYTES_MAX));
            prefetch_lines(bytes.as_ptr().wrapping_add(from), (until - from) / LINE_BYTES);
            self.asked = from + (until - from) / LINE_BYTES * LINE_BYTES;
        }
    }

    /// Starts prefetching at the position.
    #[inline]
    fn ask_again(&mut self, bytes: &[u8]) {
        self.asked = self.pos.at;
        if self.pos.is_placed {
            self.ask_ahead(bytes);
        }
    }

    /// Goes to the first entry at or after (`key`, `seq`) in internal order.
    pub fn seek<B: AsRef<[u8]>>(&mut self, block: &Block<B>, key: &[u8], seq: SeqNo) {
        self.clear();
        match block.collation.is_bytes() {
            true => with!(block, intervals => intervals.seek(&mut self.pos, key, seq)),
            false => {
                with!(block, intervals => ordered::seek(intervals, &mut self.pos, &block.collation, key, seq))
            }
        }
        self.ask_again(block.bytes());
    }

    /// Goes to the last entry whose key is strictly less than `key`.
    pub fn seek_before<B: AsRef<[u8]>>(&mut self, block: &Block<B>, key: &[u8]) {
        self.seek(block, key, SeqNo::MAX);
        if self.pos.is_placed {
            self.prev(block);
        } else {
            self.seek_last(block);
        }
    }

    /// Goes to the first entry.
    pub fn seek_first<B: AsRef<[u8]>>(&mut self, block: &Block<B>) {
        self.clear();
        with!(block, intervals => intervals.move_first(&mut self.pos, 0));
        self.ask_again(block.bytes());
    }

    /// Goes to the last entry.
    pub fn seek_last<B: AsRef<[u8]>>(&mut self, block: &Block<B>) {
        self.clear();
        with!(block, intervals => {
            let Some(last) = intervals.count().checked_sub(1) else { return };
            self.run.move_before(intervals, &mut self.pos, last, intervals.start(last + 1));
        });
    }

    /// Goes to the next entry; after the last one the cursor has no position. Requires: placed.
    #[inline]
    pub fn next<B: AsRef<[u8]>>(&mut self, block: &Block<B>) {
        debug_assert!(self.pos.is_placed);
        self.run.clear();
        with!(block, intervals => intervals.move_next(&mut self.pos));
        self.ask_ahead(block.bytes());
    }

    /// Goes to the previous entry; before the first one the cursor has no position. Requires: placed.
    pub fn prev<B: AsRef<[u8]>>(&mut self, block: &Block<B>) {
        debug_assert!(self.pos.is_placed);
        with!(block, intervals => self.run.move_previous(intervals, &mut self.pos));
    }
}
