//! A position in a block.
//!
//! A walk asks for the lines of the entries in front of it. The processor does so by itself only after some lines in a
//! row, and begins anew at each page: most scans end before that pays.

use terrane_base::prefetch::{LINE_BYTES, prefetch_lines};
use terrane_base::{Entry, SeqKind, SeqNo};

use super::place::{Intervals, Place, Run};
use super::{Block, Layout, ordered};

/// Bytes behind an entry that are asked for when a walk comes to it: as many as are walked over while memory answers.
const AHEAD_BYTES: usize = 768;
/// Most bytes that are asked for at once: of long values only the ends, where the next entries begin.
const ASKED_BYTES_MAX: usize = AHEAD_BYTES + 4 * LINE_BYTES;

/// A position in a block, in both directions; holds the current key, rebuilt in one reused buffer.
///
/// The block is passed to each call, so that the holder decides what keeps it alive (a cache pin, an `Arc`).
/// Requires: between two placements every call gets the same block. With another block the cursor still
/// neither panics nor leaves the block's bytes, but what it shows means nothing.
///
/// A new cursor has no position: [`BlockCursor::entry`] is `None` until it is placed.
#[derive(Clone, Debug, Default)]
pub struct BlockCursor {
    place: Place,
    /// Entries in front of the position, known while going backwards.
    run: Run,
    /// Where the bytes end that a walk forward has asked for.
    asked: usize,
}

/// Runs an expression on the block in its own encoding.
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
        if !self.place.is_placed {
            return None;
        }
        let value = block.bytes().get(self.place.value_at..self.place.end)?;
        Some(Entry { key: self.place.key.key(), seq_kind: SeqKind(self.place.seq_kind), value })
    }

    /// Whether the cursor has a position.
    #[inline]
    #[must_use]
    pub fn is_placed(&self) -> bool {
        self.place.is_placed
    }

    /// Where the current entry starts and ends.
    pub(super) fn extent(&self) -> (usize, usize) {
        (self.place.at, self.place.end)
    }

    /// Gives the position up; keeps the memory.
    pub fn clear(&mut self) {
        self.place.is_placed = false;
        self.place.has_prefix = false;
        self.run.clear();
    }

    /// Where the current entry ends in the block's bytes, or the last one did.
    #[inline]
    #[must_use]
    pub fn end(&self) -> usize {
        self.place.end
    }

    /// Asks for what lies in front of a walk forward.
    #[inline]
    fn ask_ahead(&mut self, bytes: &[u8]) {
        let until = (self.place.end + AHEAD_BYTES).min(bytes.len());
        if self.asked + LINE_BYTES <= until {
            let from = self.asked.max(until.saturating_sub(ASKED_BYTES_MAX));
            prefetch_lines(bytes.as_ptr().wrapping_add(from), (until - from) / LINE_BYTES);
            self.asked = from + (until - from) / LINE_BYTES * LINE_BYTES;
        }
    }

    /// Begins to ask at the position.
    #[inline]
    fn ask_anew(&mut self, bytes: &[u8]) {
        self.asked = self.place.at;
        if self.place.is_placed {
            self.ask_ahead(bytes);
        }
    }

    /// Goes to the first entry at or after (`key`, `seq`) in internal order.
    pub fn seek<B: AsRef<[u8]>>(&mut self, block: &Block<B>, key: &[u8], seq: SeqNo) {
        self.clear();
        match block.collation.is_bytes() {
            true => with!(block, intervals => intervals.seek(&mut self.place, key, seq)),
            false => {
                with!(block, intervals => ordered::seek(intervals, &mut self.place, &block.collation, key, seq))
            }
        }
        self.ask_anew(block.bytes());
    }

    /// Goes to the last entry whose key is strictly less than `key`.
    pub fn seek_before<B: AsRef<[u8]>>(&mut self, block: &Block<B>, key: &[u8]) {
        self.seek(block, key, SeqNo::MAX);
        if self.place.is_placed {
            self.prev(block);
        } else {
            self.seek_last(block);
        }
    }

    /// Goes to the first entry.
    pub fn seek_first<B: AsRef<[u8]>>(&mut self, block: &Block<B>) {
        self.clear();
        with!(block, intervals => intervals.place_first(&mut self.place, 0));
        self.ask_anew(block.bytes());
    }

    /// Goes to the last entry.
    pub fn seek_last<B: AsRef<[u8]>>(&mut self, block: &Block<B>) {
        self.clear();
        with!(block, intervals => {
            let Some(last) = intervals.count().checked_sub(1) else { return };
            self.run.place_before(intervals, &mut self.place, last, intervals.start(last + 1));
        });
    }

    /// Goes to the next entry; past the last one the position is given up. Requires: placed.
    #[inline]
    pub fn next<B: AsRef<[u8]>>(&mut self, block: &Block<B>) {
        debug_assert!(self.place.is_placed);
        self.run.clear();
        with!(block, intervals => intervals.place_next(&mut self.place));
        self.ask_ahead(block.bytes());
    }

    /// Goes to the previous entry; before the first one the position is given up. Requires: placed.
    pub fn prev<B: AsRef<[u8]>>(&mut self, block: &Block<B>) {
        debug_assert!(self.place.is_placed);
        with!(block, intervals => self.run.place_previous(intervals, &mut self.place));
    }
}
