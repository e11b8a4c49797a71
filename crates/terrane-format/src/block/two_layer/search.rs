//! Point search in a two-layer block.
//!
//! 1. The 8 bytes of the target after the block's prefix are read as a number. Root and leaf tell how many
//!    heads are at most that number; the last of these belongs to the interval to search.
//! 2. If that head is less than the number, the first key of the interval is less than the target. If they
//!    are equal, the rest of the key is compared.
//! 3. In an interval of one entry the search ends there. In a longer one the next entries are compared as in
//!    a plain block: `matched` is the number of leading bytes that the previous entry, which is less, has in
//!    common with the target; an entry that shares more bytes with it is less as well.
//!
//! If heads are equal, or leaves have parts, step 1 gives a range of intervals; a binary search compares
//! their whole first keys.
//!
//! In this module `rest` is a key after the block's prefix.

use std::cmp::Ordering;
use std::ops::Range;

use terrane_base::prefetch::{LINE_BYTES, prefetch_lines};
use terrane_base::{SeqKind, SeqNo, key};

use super::entry::Parts;
use super::{HEAD_BYTES, LEAF, LEAF_BYTES, LEAF_HEAD_BYTES, TwoLayerBlock};
use crate::block::entry_pos::{FIRST_LINES, Intervals};
use crate::{rank, wire};

/// Cache lines of a leaf, at any alignment.
const LEAF_LINES: usize = LEAF_BYTES.div_ceil(LINE_BYTES);
/// Cache lines of an entry that are prefetched: enough for a short value.
const ENTRY_LINES: usize = 2;
/// Cache lines that are prefetched at the entry where a walk begins: enough for some short rows.
const WALK_LINES: usize = 8;

/// Bytes from the start of an entry in which number and key lie where they are compared in words.
const FRONT_BYTES: usize = 32;

/// The result of a check in words: a number and where its value lies, another key, or nothing.
enum Checked {
    Value(SeqKind, Range<usize>),
    Other,
    Unknown,
}

/// An entry, and how its key compares to the target.
pub(super) struct Found {
    pub(super) interval: usize,
    pub(super) at: usize,
    pub(super) parts: Parts,
    pub(super) is_equal: bool,
}

impl TwoLayerBlock<'_> {
    /// Prefetches the leaf that a search for `key` reads next. Reads the root only.
    #[inline]
    pub(crate) fn prefetch_leaf(self, key: &[u8]) {
        if key.len() >= self.layout.prefix_len {
            let target = key::head_behind(key, self.layout.prefix_len);
            let leaf = rank::root(&self.layout.root, target).min(self.layout.leaf_count).saturating_sub(1);
            prefetch_lines(self.bytes.as_ptr().wrapping_add(leaf * LEAF_BYTES), LEAF_LINES);
        }
    }

    /// Prefetches the first leaf, the prefix and the first entries.
    #[inline]
    pub(crate) fn prefetch_first(self) {
        let start = self.bytes.as_ptr();
        prefetch_lines(start, LEAF_LINES);
        prefetch_lines(start.wrapping_add(self.prefix_at()), 1);
        prefetch_lines(start.wrapping_add(self.layout.entries_at), FIRST_LINES);
    }

    /// Prefetches the first entry of the interval that a search for `key` ends in. Reads root and leaf.
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
    #[inline(always)]
    pub(super) fn find_parts(self, key: &[u8], seq: SeqNo) -> Option<Parts> {
        let rest = key.get(self.layout.prefix_len..)?;
        if self.layout.parts.is_none() {
            let target = key::head_behind(key, self.layout.prefix_len);
            let last = self.heads_at_most(target).checked_sub(1)?;
            let has_head = self.head(last) == target;
            // If intervals have several entries, a newer version may be at the end of the interval before.
            let is_alone = self.layout.is_distinct
                || self.layout.is_single && (last == 0 || self.head(last - 1) != target);
            if has_head && is_alone {
                let at = self.start(last);
                // The value begins in the entry's first cache line and mostly ends in the next one.
                prefetch_lines(self.bytes.as_ptr().wrapping_add(at), ENTRY_LINES);
                let parts = Parts::first(self.bytes, at, self.layout.number)?;
                if is_rest(&parts, parts.suffix(self.bytes), rest) && self.number(&parts).seq() <= seq {
                    return Some(parts);
                }
            }
            if self.layout.is_single && (is_alone || !has_head) {
                // Every entry has its head in the tree, and no other head is the target's.
                return None;
            }
        }
        self.locate(key, seq, ENTRY_LINES).filter(|found| found.is_equal).map(|found| found.parts)
    }

    /// The version `seq` of `key`, if it is the first entry of interval `interval`: its number, and where its
    /// value lies. As a rule an interval is one entry where values are long. Not in a block with parts.
    #[inline]
    pub(in crate::block) fn locate_at(
        self,
        interval: usize,
        key: &[u8],
        seq: SeqNo,
    ) -> Option<(SeqKind, Range<usize>)> {
        if interval >= self.layout.interval_count || self.layout.parts.is_some() {
            return None;
        }
        let (leaf, lane) = (interval / LEAF, interval % LEAF);
        let leaf = self.bytes.get(leaf * LEAF_BYTES..)?.first_chunk::<LEAF_BYTES>()?;
        let (heads, offsets) = leaf.split_at(LEAF_HEAD_BYTES);
        let offset = u16::from_le_bytes(*offsets.as_chunks().0.get(lane)?);
        let at = self.layout.entries_at + usize::from(offset);
        prefetch_lines(self.bytes.as_ptr().wrapping_add(at), ENTRY_LINES);
        let head = u64::from_le_bytes(*heads.as_chunks().0.get(lane)?);
        let is_trusted = terrane_base::planted!(TrustPosition);
        match self.bytes.get(at..).and_then(|rest| rest.first_chunk()).filter(|_| !is_trusted) {
            Some(entry) => match self.first_in_words(entry, head, key) {
                Checked::Value(found, value) if found.seq() == seq => {
                    self.within(found, at + value.start..at + value.end)
                }
                Checked::Unknown => self.locate_with_key(at, head, key, seq),
                _ => None,
            },
            None => self.locate_with_key(at, head, key, seq),
        }
    }

    /// The number of an entry that is the first of its interval and begins with these bytes, and where its
    /// value lies in it, if it has the key. Key and number are compared in words: that takes a value of 128
    /// bytes to 16 KiB, and a prefix and a suffix of at most a word each.
    #[inline(always)]
    fn first_in_words(self, entry: &[u8; FRONT_BYTES], head: u64, key: &[u8]) -> Checked {
        let [len, low, high] = [entry[0], entry[1], entry[2]].map(usize::from);
        let (prefix_len, suffix_len) = (self.layout.prefix_len, len.wrapping_sub(HEAD_BYTES));
        if low < 0x80 || high >= 0x80 || suffix_len > HEAD_BYTES || prefix_len > HEAD_BYTES {
            return Checked::Unknown;
        }
        let (Some(prefix), Some(suffix), Some(number)) = (
            wire::u64_at(self.bytes, self.prefix_at()),
            wire::u64_at(entry, 3),
            wire::u64_at(entry, 3 + suffix_len),
        ) else {
            return Checked::Unknown;
        };
        let behind = key.get(prefix_len..).unwrap_or_default();
        let (Some(first), Some(middle), Some(last)) =
            (key.first_chunk(), behind.first_chunk(), key.last_chunk())
        else {
            return Checked::Other;
        };
        let first = (u64::from_le_bytes(*first) ^ prefix) & low_bytes(prefix_len);
        let last = high_bytes(u64::from_le_bytes(*last), suffix_len) ^ (suffix & low_bytes(suffix_len));
        if behind.len() != len || (first | last | (u64::from_be_bytes(*middle) ^ head)) != 0 {
            return Checked::Other;
        }
        let value_at = 3 + suffix_len + self.layout.number.bytes;
        let value_len = (low & 0x7f) | high << 7;
        Checked::Value(self.layout.number.of_word(number), value_at..value_at + value_len)
    }

    /// [`Self::locate_at`] of the entry at `at`, of any lengths.
    #[inline(never)]
    fn locate_with_key(
        self,
        at: usize,
        head: u64,
        key: &[u8],
        seq: SeqNo,
    ) -> Option<(SeqKind, Range<usize>)> {
        let parts = Parts::first(self.bytes, at, self.layout.number)?;
        let found = self.number(&parts);
        let has_key = || {
            let rest = key.strip_prefix(self.prefix());
            rest.is_some_and(|rest| {
                head == key::head(rest) && is_rest(&parts, parts.suffix(self.bytes), rest)
            })
        };
        let is_it = found.seq() == seq && (terrane_base::planted!(TrustPosition) || has_key());
        is_it.then(|| parts.value_at..parts.end()).and_then(|value| self.within(found, value))
    }

    /// The located entry, if the value lies within the entries: its length is read from the bytes.
    #[inline(always)]
    fn within(self, found: SeqKind, value: Range<usize>) -> Option<(SeqKind, Range<usize>)> {
        (value.end <= self.layout.entries_end).then_some((found, value))
    }

    /// As [`Self::locate`], for a walk that continues from the entry.
    pub(super) fn locate_to_walk(self, key: &[u8], seq: SeqNo) -> Option<Found> {
        self.locate(key, seq, WALK_LINES)
    }

    /// The first entry at or after (`rest`, `seq`), where `rest` is `key` without the prefix. Prefetches
    /// `lines` cache lines from its probable offset.
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
        // Only this interval is undecided.
        let parts = self.first(last)?;
        match self.compare_first(last, &parts, rest) {
            Ordering::Equal if self.number(&parts).seq() <= seq => {
                Some(Found { interval: last, at: self.start(last), parts, is_equal: true })
            }
            Ordering::Equal | Ordering::Less => self.locate_from(rank, rest, seq),
            Ordering::Greater => self.locate_from(last, rest, seq),
        }
    }

    /// As [`Self::locate`], given that the first entries of `before` intervals come before the target.
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

    /// The number of intervals whose first entry comes before (`rest`, `seq`).
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

    /// As [`Self::intervals_before`], for leaves with parts: finds the leaf by its first key, then the
    /// interval in it by the bytes after the part.
    fn intervals_before_in_parts(self, rest: &[u8], seq: SeqNo) -> usize {
        let target = key::head(rest);
        let high = rank::root(&self.layout.root, target).min(self.layout.leaf_count);
        let low = partition(0, high, |leaf| self.layout.root[leaf] < target);
        let leaves = partition(low, high, |leaf| self.is_before(leaf * LEAF, rest, seq));
        let Some(leaf) = leaves.checked_sub(1) else { return 0 };
        let start = leaf * LEAF;
        let end = (start + LEAF).min(self.count());
        let Some(rest_in_leaf) = rest.strip_prefix(self.part(leaf)) else {
            // The leaf's first key is less than the target, and the target does not begin with the leaf's
            // part: it comes after all keys of the leaf.
            return end;
        };
        let target = key::head(rest_in_leaf);
        let heads = self.bytes.get(leaf * LEAF_BYTES..).and_then(|leaf| leaf.first_chunk());
        let high = (start + heads.map_or(0, |heads| rank::leaf(heads, target))).min(end);
        let low = partition(start, high, |interval| self.head(interval) < target);
        partition(low, high, |interval| self.is_before(interval, rest, seq))
    }

    /// The number of intervals whose head is at most `target`.
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

    /// Compares the first key of an interval to the target.
    fn compare_first(self, interval: usize, parts: &Parts, rest: &[u8]) -> Ordering {
        let part = self.part(interval / LEAF);
        let Some(rest) = rest.strip_prefix(part) else { return part.cmp(rest) };
        let by_head = self.head(interval).cmp(&key::head(rest));
        by_head.then_with(|| match rest.get(HEAD_BYTES..) {
            Some(tail) if parts.shared == HEAD_BYTES => parts.suffix(self.bytes).cmp(tail),
            // One of the two keys ends within the head; the other has zeros there, or ends as well.
            _ => parts.key_len().cmp(&rest.len()),
        })
    }

    /// The first entry at or after the target in `interval`, whose first entry comes before the target;
    /// `None` if the interval ends before that.
    fn walk(self, interval: usize, rest: &[u8], seq: SeqNo) -> Option<Found> {
        let end = self.start(interval + 1);
        let first = self.first(interval)?;
        let mut at = first.end();
        if at >= end {
            return None;
        }
        // A target that does not begin with the leaf's part comes after all keys of the leaf.
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

    /// Leading bytes that the first key of an interval has in common with the target, after the leaf's part.
    fn matched_by_first(self, interval: usize, parts: &Parts, rest: &[u8]) -> usize {
        let head = self.head(interval).to_be_bytes();
        let in_head = key::common_len(&head[..parts.shared.min(head.len())], rest);
        match rest.get(HEAD_BYTES..) {
            Some(tail) if in_head == HEAD_BYTES => in_head + key::common_len(parts.suffix(self.bytes), tail),
            _ => in_head,
        }
    }
}

/// A word whose lowest `len` bytes are ones. Requires: `len <= 8`.
#[inline(always)]
fn low_bytes(len: usize) -> u64 {
    u64::MAX.checked_shr(64 - 8 * len as u32).unwrap_or(0)
}

/// The highest `len` bytes of a word, as its lowest. Requires: `len <= 8`.
#[inline(always)]
fn high_bytes(word: u64, len: usize) -> u64 {
    word.checked_shr(64 - 8 * len as u32).unwrap_or(0)
}

/// Returns true if a key with the same head as `rest` equals `rest`.
#[inline]
fn is_rest(parts: &Parts, suffix: &[u8], rest: &[u8]) -> bool {
    // Heads and lengths are equal: a key shorter than a head is equal, zeros included.
    parts.key_len() == rest.len() && rest.get(HEAD_BYTES..).is_none_or(|tail| tail == suffix)
}

/// The first number in `low..high` for which `is_before` is false.
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
