//! A position in a block.

use terrane_base::{Entry, SeqKind, SeqNo};

use super::entry::Header;
use super::{Block, RESTART_INTERVAL};

/// A position in a block, in both directions; holds the current key, rebuilt in one reused buffer.
///
/// The block is passed to each call, so that the holder decides what keeps it alive (a cache pin, an `Arc`).
/// Requires: between two placements every call gets the same block. With another block the cursor still
/// neither panics nor leaves the block's bytes, but what it shows means nothing.
///
/// A new cursor has no position: [`BlockCursor::entry`] is `None` until it is placed.
#[derive(Clone, Debug, Default)]
pub struct BlockCursor {
    key: Vec<u8>,
    seq_kind: u64,
    /// The entry's offset, its value, and the offset of what follows.
    at: usize,
    value_at: usize,
    end: usize,
    is_placed: bool,
    /// Entries from the restart at or before the position up to it, known while going backwards.
    run: Run,
}

/// The entries of one restart interval up to a position, with their keys, so that going back one entry does
/// not walk the interval again.
#[derive(Clone, Debug, Default)]
struct Run {
    keys: Vec<u8>,
    /// Offset of the entry, and the end of its key in `keys` (the key starts where the one before ends).
    entries: Vec<(usize, usize)>,
}

impl BlockCursor {
    /// A cursor without a position.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The entry at the position, or `None` before the first or after the last one.
    #[inline]
    #[must_use]
    pub fn entry<'a>(&'a self, block: &'a Block) -> Option<Entry<'a>> {
        if !self.is_placed {
            return None;
        }
        let value = block.entries().get(self.value_at..self.end)?;
        Some(Entry { key: &self.key, seq_kind: SeqKind(self.seq_kind), value })
    }

    /// Whether the cursor has a position.
    #[inline]
    #[must_use]
    pub fn is_placed(&self) -> bool {
        self.is_placed
    }

    /// Where the current entry starts and ends.
    pub(super) fn extent(&self) -> (usize, usize) {
        (self.at, self.end)
    }

    /// Gives the position up; keeps the memory.
    pub fn clear(&mut self) {
        self.is_placed = false;
        self.run.entries.clear();
    }

    /// Goes to the first entry at or after (`key`, `seq`) in internal order.
    pub fn seek(&mut self, block: &Block, key: &[u8], seq: SeqNo) {
        self.clear();
        let from = block.restart_before(key, seq);
        let Some(found) = block.walk_to(from, key, seq) else { return };
        // The walk ends at an entry whose shared bytes are the target's own, so no key before it is needed.
        self.key.clear();
        self.key.extend_from_slice(key.get(..found.header.shared).unwrap_or_default());
        self.key.extend_from_slice(found.header.suffix(block.entries()));
        self.place(block, found.at, &found.header);
    }

    /// Goes to the last entry whose key is strictly less than `key`.
    pub fn seek_before(&mut self, block: &Block, key: &[u8]) {
        self.seek(block, key, SeqNo::MAX);
        if self.is_placed {
            self.prev(block);
        } else {
            self.seek_last(block);
        }
    }

    /// Goes to the first entry.
    pub fn seek_first(&mut self, block: &Block) {
        self.clear();
        self.key.clear();
        self.load(block, 0);
    }

    /// Goes to the last entry.
    pub fn seek_last(&mut self, block: &Block) {
        self.clear();
        let Some(last) = block.restart_count().checked_sub(1) else { return };
        self.start_at(block, last);
        while self.is_placed && self.end < block.entries_len {
            self.step(block);
        }
    }

    /// Goes to the next entry; past the last one the position is given up. Requires: placed.
    #[inline]
    pub fn next(&mut self, block: &Block) {
        debug_assert!(self.is_placed);
        self.run.entries.clear();
        self.step(block);
    }

    /// Goes to the previous entry; before the first one the position is given up. Requires: placed.
    pub fn prev(&mut self, block: &Block) {
        debug_assert!(self.is_placed);
        if self.run.entries.is_empty() {
            self.fill_run(block);
        }
        let Some((at, key_end)) = self.run.entries.pop() else {
            self.is_placed = false;
            return;
        };
        let key_start = self.run.entries.last().map_or(0, |(_, end)| *end);
        self.key.clear();
        self.key.extend_from_slice(&self.run.keys[key_start..key_end]);
        let Some(header) = Header::decode(block.entries(), at) else {
            self.clear();
            return;
        };
        self.place(block, at, &header);
    }

    /// Collects the entries before the position, from the restart before it on.
    fn fill_run(&mut self, block: &Block) {
        let target = self.at;
        self.run.keys.clear();
        let Some(restart) = restart_before_offset(block, target) else { return };
        let mut walker = BlockCursor { key: std::mem::take(&mut self.key), ..BlockCursor::default() };
        walker.start_at(block, restart);
        while walker.is_placed && walker.at < target && self.run.entries.len() < RESTART_INTERVAL {
            self.run.keys.extend_from_slice(&walker.key);
            self.run.entries.push((walker.at, self.run.keys.len()));
            walker.step(block);
        }
        self.key = walker.key;
    }

    fn start_at(&mut self, block: &Block, restart: usize) {
        self.key.clear();
        self.load(block, block.restart(restart));
    }

    #[inline]
    fn step(&mut self, block: &Block) {
        self.load(block, self.end);
    }

    /// Makes the entry at `at` the current one; `key` holds the key before it.
    #[inline]
    fn load(&mut self, block: &Block, at: usize) {
        let entries = block.entries();
        let Some(header) = Header::decode(entries, at) else {
            self.is_placed = false;
            return;
        };
        self.key.truncate(header.shared);
        self.key.extend_from_slice(header.suffix(entries));
        self.place(block, at, &header);
    }

    #[inline]
    fn place(&mut self, block: &Block, at: usize, header: &Header) {
        self.at = at;
        self.seq_kind = header.seq_kind(block.entries()).0;
        self.value_at = header.value_at();
        self.end = header.end();
        self.is_placed = true;
    }
}

/// The last restart that lies before `offset`.
fn restart_before_offset(block: &Block, offset: usize) -> Option<usize> {
    let (mut low, mut high) = (0, block.restart_count());
    while low < high {
        let middle = low + (high - low) / 2;
        if block.restart(middle) < offset {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low.checked_sub(1)
}
