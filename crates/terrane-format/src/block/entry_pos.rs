//! Positions in a block, and the trait [`Intervals`] that both encodings implement: runs of entries of which
//! the first can be decoded alone.

use terrane_base::{SeqKind, SeqNo};

use super::key_buffer::KeyBuffer;

/// Cache lines that are prefetched before a walk begins; the walk itself prefetches the next ones.
pub(super) const FIRST_LINES: usize = 4;

/// The position of an entry in a block, with its key.
#[derive(Clone, Debug, Default)]
pub(super) struct EntryPos {
    pub(super) key: KeyBuffer,
    pub(super) seq_kind: u64,
    /// Offsets of the entry and its value, and the offset at which it ends.
    pub(super) at: usize,
    pub(super) value_at: usize,
    pub(super) end: usize,
    pub(super) is_placed: bool,
    /// The interval that the entry is in, and its end.
    pub(super) interval: usize,
    pub(super) interval_end: usize,
    /// Length of the key prefix that all keys of the interval share, where the encoding stores it apart.
    pub(super) prefix_len: usize,
    /// True if `key` already begins with the block's common prefix.
    pub(super) has_prefix: bool,
}

/// A checked block as a list of intervals. The first entry of an interval can be read alone, the others only
/// one after the other. Offsets count from the start of the block.
pub(super) trait Intervals<'a>: Copy {
    /// Number of intervals.
    fn count(self) -> usize;
    /// Offset of interval `interval`; for a number out of range, the end of the entries.
    fn start(self, interval: usize) -> usize;
    /// Goes to the first entry of interval `interval`; removes the position behind the last interval.
    fn move_first(self, pos: &mut EntryPos, interval: usize);
    /// Goes to the next entry; removes the position after the last one.
    fn move_next(self, pos: &mut EntryPos);
    /// Goes to the entry at `at`, in the interval of `pos`, whose key is in `pos` already.
    fn move_known(self, pos: &mut EntryPos, at: usize);
    /// Goes to the first entry at or after (`key`, `seq`) in internal order; removes the position if there is
    /// none.
    fn seek(self, pos: &mut EntryPos, key: &[u8], seq: SeqNo);
    /// The newest version of `key` with a number up to `seq`.
    fn find(self, key: &[u8], seq: SeqNo) -> Option<(SeqKind, &'a [u8])>;
}

/// The entries of one interval up to a position, with their keys, so that a step back does not walk the
/// interval again.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    keys: Vec<u8>,
    /// Offset of the entry, and the end of its key in `keys` (each key starts at the end of the one before).
    entries: Vec<(usize, usize)>,
}

impl Run {
    /// Most entries that a run keeps, because keys and intervals may be long.
    const ENTRIES_MAX: usize = 16;

    #[inline]
    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Goes to the previous entry; removes the position before the first one.
    pub(super) fn move_previous<'a>(&mut self, block: impl Intervals<'a>, pos: &mut EntryPos) {
        if let Some((at, key_end)) = self.entries.pop() {
            let key_start = self.entries.last().map_or(0, |(_, end)| *end);
            pos.key.set(&self.keys[key_start..key_end]);
            block.move_known(pos, at);
            return;
        }
        let target = pos.at;
        let interval = match block.start(pos.interval) < target {
            true => Some(pos.interval),
            false => pos.interval.checked_sub(1),
        };
        match interval {
            Some(interval) => self.move_before(block, pos, interval, target),
            None => pos.is_placed = false,
        }
    }

    /// Goes to the last entry before `target` in interval `interval`, and keeps the entries before that one.
    pub(super) fn move_before<'a>(
        &mut self,
        block: impl Intervals<'a>,
        pos: &mut EntryPos,
        interval: usize,
        target: usize,
    ) {
        self.clear();
        self.keys.clear();
        block.move_first(pos, interval);
        while pos.is_placed && pos.end < target {
            if self.entries.len() == Run::ENTRIES_MAX {
                self.entries.clear();
                self.keys.clear();
            }
            self.keys.extend_from_slice(pos.key.key());
            self.entries.push((pos.at, self.keys.len()));
            block.move_next(pos);
        }
    }
}
