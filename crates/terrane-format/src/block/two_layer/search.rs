//! Point search in a two-layer block.
//!
//! 1. Behind the block's prefix the next 8 bytes of the target are a number. Root and leaf say how many heads are at
//!    most that number, so the last of those is the interval to look at.
//! 2. If its head is less than the number, so is its first key. Only where they are equal the rest of the key decides.
//! 3. An interval of one entry ends the search there. In a longer one the entries behind the first are walked as in a
//!    plain block: `matched` is how many bytes the entry before, which is less, has in common with the target; an entry
//!    that shares more with it is less as well.
//!
//! In a block where heads are equal, or where leaves have parts, step 1 gives a range of intervals that are undecided;
//! a binary search compares their first keys whole.
//!
//! `rest` is a key behind the block's prefix, everywhere in this module.

use std::cmp::Ordering;

use terrane_base::prefetch::{LINE_BYTES, prefetch_lines};
use terrane_base::{SeqNo, key};

use super::entry::Parts;
use super::{LEAF, LEAF_BYTES, TwoLayerBlock};
use crate::block::place::{FIRST_LINES, Intervals};
use crate::rank;

/// Lines of a leaf, wherever it starts.
const LEAF_LINES: usize = LEAF_BYTES.div_ceil(LINE_BYTES);
/// Lines of an entry that are asked for in advance: those of a short value.
const ENTRY_LINES: usize = 2;
/// Lines that are asked for from the entry on at which a walk begins, before it has come: those of some short rows.
const WALK_LINES: usize = 8;

/// An entry, and how its key relates to the target.
pub(super) struct Found {
    pub(super) interval: usize,
    pub(super) at: usize,
    pub(super) parts: Parts,
    pub(super) is_equal: bool,
}

impl TwoLayerBlock<'_> {
    /// Asks for the leaf in which a search for `key` goes on. Reads the root only.
    #[inline]
    pub(crate) fn prefetch_leaf(self, key: &[u8]) {
        if key.len() >= self.layout.prefix_len {
            let target = key::head_behind(key, self.layout.prefix_len);
            let leaf = rank::root(&self.layout.root, target).min(self.layout.leaf_count).saturating_sub(1);
            prefetch_lines(self.bytes.as_ptr().wrapping_add(leaf * LEAF_BYTES), LEAF_LINES);
        }
    }

    /// Asks for the first leaf, the prefix and the first entries.
    #[inline]
    pub(crate) fn prefetch_first(self) {
        let start = self.bytes.as_ptr();
        prefetch_lines(start, LEAF_LINES);
        prefetch_lines(start.wrapping_add(self.prefix_at()), 1);
        prefetch_lines(start.wrapping_add(self.layout.entries_at), FIRST_LINES);
    }

    /// Asks for the first entry of the interval that a search for `key` ends in. Reads root and leaf.
    #[inline]
    pub(crate) fn prefetch_entry(self, key: &[u8]) {
        if key.len() >= self.layout.prefix_len && self.layout.parts.is_none() {
            let target = key::head_behind(key, self.layout.prefix_len);
            if let Some(interval) = self.heads_at_most(target).checked_sub(1) {
                prefetch_lines(self.bytes.as_ptr().wrapping_add(self.start(interval)), ENTRY_LINES);
            }
        }
    }

    /// The newest version of `key`, which begins with the block's prefix, with a number up to `seq`.
    #[inline]
    pub(super) fn find_parts(self, key: &[u8], seq: SeqNo) -> Option<Parts> {
        let rest = key.get(self.layout.prefix_len..)?;
        if self.layout.parts.is_none() {
            let target = key::head_behind(key, self.layout.prefix_len);
            let last = self.heads_at_most(target).checked_sub(1)?;
            let has_head = self.head(last) == target;
            // With intervals of several entries, a newer version may end the interval before.
            let is_alone = self.layout.is_distinct
                || self.layout.is_single && (last == 0 || self.head(last - 1) != target);
            if has_head && is_alone {
                let at = self.start(last);
                // The value begins in the entry's first line and mostly ends in the next one.
                prefetch_lines(self.bytes.as_ptr().wrapping_add(at), ENTRY_LINES);
                let parts = Parts::first(self.bytes, at, self.layout.number)?;
                if is_rest(&parts, parts.suffix(self.bytes), rest) && self.number(&parts).seq() <= seq {
                    return Some(parts);
                }
            }
            if self.layout.is_single && (is_alone || !has_head) {
                // Every entry has its head in the tree, and no other is the target's.
                return None;
            }
        }
        self.locate(key, seq, ENTRY_LINES).filter(|found| found.is_equal).map(|found| found.parts)
    }

    /// As [`Self::locate`], for a walk that goes on from there.
    pub(super) fn locate_to_walk(self, key: &[u8], seq: SeqNo) -> Option<Found> {
        self.locate(key, seq, WALK_LINES)
    }

    /// The first entry at or after (`rest`, `seq`), where `rest` is what `key` has behind the prefix. Asks for `lines`
    /// lines from where it probably is.
    #[inline(never)]
    fn locate(self, key: &[u8], seq: SeqNo, lines: usize) -> Option<Found> {
        let rest = key.get(self.layout.prefix_len..)?;
        if !self.layout.is_distinct {
            return self.locate_from(self.intervals_before(rest, seq), rest, seq);
        }
        let target = key::head_behind(key, self.layout.prefix_len);
        let rank = self.heads_at_most(target);
        prefetch_lines(self.bytes.as_ptr().wrapping_add(self.start(rank.saturating_sub(1))), lines);
        let Some(last) = rank.checked_sub(1).filter(|last| self.head(*last) == target) else {
            return self.locate_from(rank, rest, seq);
        };
        // Only this one is undecided.
        let parts = self.first(last)?;
        match self.compare_first(last, &parts, rest) {
            Ordering::Equal if self.number(&parts).seq() <= seq => {
                Some(Found { interval: last, at: self.start(last), parts, is_equal: true })
            }
            Ordering::Equal | Ordering::Less => self.locate_from(rank, rest, seq),
            Ordering::Greater => self.locate_from(last, rest, seq),
        }
    }

    /// As [`Self::locate`], where `before` intervals have a first entry before the target.
    fn locate_from(self, before: usize, rest: &[u8], seq: SeqNo) -> Option<Found> {
        if let Some(interval) = before.checked_sub(1)
            && !self.layout.is_single
            && let Some(found) = self.walk(interval, rest, seq)
        {
            return Some(found);
        }
        if before >= self.count() {
            return None;
        }
        let parts = self.first(before)?;
        let is_equal = self.compare_first(before, &parts, rest) == Ordering::Equal;
        Some(Found { interval: before, at: self.start(before), parts, is_equal })
    }

    /// How many intervals have a first entry before (`rest`, `seq`).
    fn intervals_before(self, rest: &[u8], seq: SeqNo) -> usize {
        if self.layout.parts.is_some() {
            return self.intervals_before_in_parts(rest, seq);
        }
        let target = key::head(rest);
        let high = self.heads_at_most(target);
        let low = match high.checked_sub(1) {
            Some(last) if self.head(last) == target => {
                partition(0, high, |interval| self.head(interval) < target)
            }
            _ => high,
        };
        partition(low, high, |interval| self.is_before(interval, rest, seq))
    }

    /// As [`Self::intervals_before`], where leaves have parts: first the leaf, by its first key, then the interval in
    /// it, by what follows the part.
    fn intervals_before_in_parts(self, rest: &[u8], seq: SeqNo) -> usize {
        let target = key::head(rest);
        let high = rank::root(&self.layout.root, target).min(self.layout.leaf_count);
        let low = partition(0, high, |leaf| self.layout.root[leaf] < target);
        let leaves = partition(low, high, |leaf| self.is_before(leaf * LEAF, rest, seq));
        let Some(leaf) = leaves.checked_sub(1) else { return 0 };
        let start = leaf * LEAF;
        let end = (start + LEAF).min(self.count());
        let Some(rest_in_leaf) = rest.strip_prefix(self.part(leaf)) else {
            // The leaf's first key is before the target, and the target is not among its keys: it is behind them.
            return end;
        };
        let target = key::head(rest_in_leaf);
        let heads = self.bytes.get(leaf * LEAF_BYTES..).and_then(|leaf| leaf.first_chunk());
        let high = (start + heads.map_or(0, |heads| rank::leaf(heads, target))).min(end);
        let low = partition(start, high, |interval| self.head(interval) < target);
        partition(low, high, |interval| self.is_before(interval, rest, seq))
    }

    /// How many intervals have a head that is at most `target`.
    #[inline]
    fn heads_at_most(self, target: u64) -> usize {
        let layout = self.layout;
        let rank = rank::tree::<LEAF_BYTES>(&layout.root, self.bytes, layout.leaf_count, target);
        rank.min(layout.interval_count)
    }

    fn is_before(self, interval: usize, rest: &[u8], seq: SeqNo) -> bool {
        let Some(parts) = self.first(interval) else { return false };
        match self.compare_first(interval, &parts, rest) {
            Ordering::Less => true,
            Ordering::Equal => self.number(&parts).seq() > seq,
            Ordering::Greater => false,
        }
    }

    /// How the first key of an interval relates to the target.
    fn compare_first(self, interval: usize, parts: &Parts, rest: &[u8]) -> Ordering {
        let part = self.part(interval / LEAF);
        let Some(rest) = rest.strip_prefix(part) else { return part.cmp(rest) };
        let by_head = self.head(interval).cmp(&key::head(rest));
        by_head.then_with(|| match rest.get(super::HEAD_BYTES..) {
            Some(tail) if parts.shared == super::HEAD_BYTES => parts.suffix(self.bytes).cmp(tail),
            // One of the two ends within the head, and the other has zeros there, or ends as well.
            _ => parts.key_len().cmp(&rest.len()),
        })
    }

    /// The first entry at or after the target behind the first one of `interval`, which is before it; `None` if the
    /// interval ends before that.
    fn walk(self, interval: usize, rest: &[u8], seq: SeqNo) -> Option<Found> {
        let end = self.start(interval + 1);
        let first = self.first(interval)?;
        let mut at = first.end();
        if at >= end {
            return None;
        }
        // A target that is not among the leaf's keys is behind them.
        let rest = rest.strip_prefix(self.part(interval / LEAF))?;
        let mut matched = self.matched_by_first(interval, &first, rest);
        while at < end {
            let parts = Parts::rest(self.bytes, at, self.layout.number)?;
            if parts.shared <= matched {
                let suffix = parts.suffix(self.bytes);
                let target = rest.get(parts.shared..).unwrap_or_default();
                let common = key::common_len(suffix, target);
                matched = parts.shared + common;
                let is_equal = common == suffix.len() && common == target.len();
                if is_equal {
                    if self.number(&parts).seq() <= seq {
                        return Some(Found { interval, at, parts, is_equal: true });
                    }
                } else if common == target.len() || (common < suffix.len() && suffix[common] > target[common])
                {
                    return Some(Found { interval, at, parts, is_equal: false });
                }
            }
            at = parts.end();
        }
        None
    }

    /// How many bytes the first key of an interval has in common with the target, behind the leaf's part.
    fn matched_by_first(self, interval: usize, parts: &Parts, rest: &[u8]) -> usize {
        let head = self.head(interval).to_be_bytes();
        let in_head = key::common_len(&head[..parts.shared.min(head.len())], rest);
        match rest.get(super::HEAD_BYTES..) {
            Some(tail) if in_head == super::HEAD_BYTES => {
                in_head + key::common_len(parts.suffix(self.bytes), tail)
            }
            _ => in_head,
        }
    }
}

/// Whether a key whose head is that of `rest` is `rest`.
#[inline]
fn is_rest(parts: &Parts, suffix: &[u8], rest: &[u8]) -> bool {
    // Equal heads and lengths: what is shorter than a head is equal, zeros behind it included.
    parts.key_len() == rest.len() && rest.get(super::HEAD_BYTES..).is_none_or(|tail| tail == suffix)
}

/// The first number from `low` on, below `high`, for which `is_before` no longer holds.
#[inline]
fn partition(mut low: usize, mut high: usize, is_before: impl Fn(usize) -> bool) -> usize {
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
