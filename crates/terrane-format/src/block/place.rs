//! What the encodings of a block have in common for a walk: runs of entries, of which the first stands by itself.

use terrane_base::{SeqKind, SeqNo};

use super::key_buffer::KeyBuffer;

/// Lines of a block's first entries that are asked for before a walk comes to them; the walk itself asks for the next.
pub(super) const FIRST_LINES: usize = 4;

/// An entry of a block, with its key.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    pub(super) key: KeyBuffer,
    pub(super) seq_kind: u64,
    /// Where the entry, its value and what follows it start in the block's bytes.
    pub(super) at: usize,
    pub(super) value_at: usize,
    pub(super) end: usize,
    pub(super) is_placed: bool,
    /// The interval that the entry is in, and where it ends.
    pub(super) interval: usize,
    pub(super) interval_end: usize,
    /// Bytes of the key that all keys of the interval begin with, where the encoding keeps them apart.
    pub(super) prefix_len: usize,
    /// Whether the key begins with what all keys of the block do.
    pub(super) has_prefix: bool,
}

/// A checked block as a row of intervals: the first entry of each can be read without those before it, the others
/// only one after the other. Offsets are from the start of the block's bytes.
pub(super) trait Intervals<'a>: Copy {
    /// How many intervals there are.
    fn count(self) -> usize;
    /// Where interval `interval` starts; for any other number, where the entries end.
    fn start(self, interval: usize) -> usize;
    /// Goes to the first entry of interval `interval`; gives the place up if there is none.
    fn place_first(self, place: &mut Place, interval: usize);
    /// Goes from an entry to the one after it; gives the place up behind the last one.
    fn place_next(self, place: &mut Place);
    /// Goes to the entry at `at`, in the interval that `place` is in. The key is there already.
    fn place_known(self, place: &mut Place, at: usize);
    /// Goes to the first entry at or after (`key`, `seq`) in internal order; gives the place up if there is none.
    fn seek(self, place: &mut Place, key: &[u8], seq: SeqNo);
    /// The newest version of `key` with a number up to `seq`.
    fn find(self, key: &[u8], seq: SeqNo) -> Option<(SeqKind, &'a [u8])>;
}

/// The entries of one interval up to a position, with their keys, so that going back one entry does not walk the
/// interval again.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    keys: Vec<u8>,
    /// Offset of the entry, and the end of its key in `keys` (the key starts where the one before ends).
    entries: Vec<(usize, usize)>,
}

impl Run {
    /// Most entries that a run keeps: keys may be long, and intervals too.
    const ENTRIES_MAX: usize = 16;

    #[inline]
    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Goes from an entry to the one before it; gives the place up before the first one.
    pub(super) fn place_previous<'a>(&mut self, block: impl Intervals<'a>, place: &mut Place) {
        if let Some((at, key_end)) = self.entries.pop() {
            let key_start = self.entries.last().map_or(0, |(_, end)| *end);
            place.key.set(&self.keys[key_start..key_end]);
            block.place_known(place, at);
            return;
        }
        let target = place.at;
        let interval = match block.start(place.interval) < target {
            true => Some(place.interval),
            false => place.interval.checked_sub(1),
        };
        match interval {
            Some(interval) => self.place_before(block, place, interval, target),
            None => place.is_placed = false,
        }
    }

    /// Goes to the last entry before `target` in interval `interval`, and keeps those in front of it.
    pub(super) fn place_before<'a>(
        &mut self,
        block: impl Intervals<'a>,
        place: &mut Place,
        interval: usize,
        target: usize,
    ) {
        self.clear();
        self.keys.clear();
        block.place_first(place, interval);
        while place.is_placed && place.end < target {
            if self.entries.len() == Run::ENTRIES_MAX {
                self.entries.clear();
                self.keys.clear();
            }
            self.keys.extend_from_slice(place.key.key());
            self.entries.push((place.at, self.keys.len()));
            block.place_next(place);
        }
    }
}
