//! Encoding 2, "two-layer": a search tree over short runs of entries. The search runs on the encoded bytes.
//!
//! ```text
//! block   = leaf* prefix (len:u16)* part* first-and-rest* trailer
//! leaf    = head:u64*8 offset:u16*8
//! first   = unshared:varint value_len:varint suffix number value                 of each interval
//! rest    = shared:varint unshared:varint value_len:varint suffix number value   others of the interval
//! trailer = seq_base:u64 prefix_len:u16 intervals:u8 number_bytes:u8 parts:u8 entries:u32 encoding:u8
//! ```
//!
//! * All keys begin with `prefix`. If all keys of a leaf agree in the 8 bytes after the prefix, the leaf has
//!   a longer prefix of its own, its `part`; then `parts` is 1 and there is a `len` for each leaf.
//! * The entries form up to 128 *intervals*. The head of an interval is the 8 bytes after prefix and part of
//!   its first key; the entry does not repeat them. The offset is that of its first entry, counted from the
//!   first entry of the block. A leaf that is not full is padded with its last head and offset.
//! * `shared` and `unshared` count bytes after prefix and part.
//! * A number is (sequence number - `seq_base`) * 16 + kind in `number_bytes` bytes.
//!
//! The root of the tree, the first head of each leaf, is not stored. Decoding keeps it with the other facts
//! about the block, which every search loads anyway. So a search waits for three memory accesses: these
//! facts, one leaf, and the entry.

mod check;
mod describe;
mod encode;
mod entry;
mod search;

pub(super) use encode::{PendingEntries, bytes_max};
pub(super) use entry::Parts;

use terrane_base::{SeqKind, SeqNo};

use super::entry_pos::{EntryPos, Intervals};
use crate::rank::{LEAF, LEAF_HEAD_BYTES, ROOT};
use crate::wire;
use entry::NumberCode;

/// Most intervals of a block.
pub const INTERVALS_MAX: usize = ROOT * LEAF;
/// Bytes of a leaf.
pub(super) const LEAF_BYTES: usize = LEAF_HEAD_BYTES + LEAF * 2;
/// Bytes behind the entries.
pub(super) const TRAILER_BYTES: usize = 8 + 2 + 1 + 1 + 1 + 4 + 1;
/// Bytes of a head.
const HEAD_BYTES: usize = 8;

/// Facts about a two-layer block that decoding found.
#[derive(Clone, Debug)]
pub(super) struct TwoLayer {
    /// First head of each leaf, after the block's prefix, padded with the last one.
    root: [u64; ROOT],
    leaf_count: usize,
    interval_count: usize,
    prefix_len: usize,
    entries_at: usize,
    entries_end: usize,
    number: NumberCode,
    /// True if the head of each interval is greater than that of the entry before it, and no leaf has a part.
    /// Then an equal head decides alone, and all versions of a key lie in one interval.
    is_distinct: bool,
    /// True if each interval is one entry.
    is_single: bool,
    /// Start of the part of each leaf, and the end of the last part, if there are parts.
    parts: Option<Box<[usize; ROOT + 1]>>,
}

/// A two-layer block together with its bytes.
#[derive(Clone, Copy)]
pub(super) struct TwoLayerBlock<'a> {
    bytes: &'a [u8],
    layout: &'a TwoLayer,
}

impl TwoLayer {
    /// The block that `self` was decoded from, whose bytes are `bytes`.
    #[inline]
    pub(super) fn of<'a>(&'a self, bytes: &'a [u8]) -> TwoLayerBlock<'a> {
        TwoLayerBlock { bytes, layout: self }
    }

    /// Adds `by` to every sequence number of the block that `self` was decoded from: only the base changes.
    pub(super) fn raise_numbers(&mut self, bytes: &mut [u8], by: u64) {
        let base = self.number.base() + by;
        self.number = NumberCode::new(base, self.number.bytes);
        let at = bytes.len() - TRAILER_BYTES;
        bytes[at..at + 8].copy_from_slice(&base.to_le_bytes());
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.parts.as_ref().map_or(0, |parts| size_of_val(&**parts))
    }
}

impl<'a> TwoLayerBlock<'a> {
    #[inline]
    fn prefix_at(self) -> usize {
        self.layout.leaf_count * LEAF_BYTES
    }

    #[inline]
    fn prefix(self) -> &'a [u8] {
        let at = self.prefix_at();
        self.bytes.get(at..at + self.layout.prefix_len).unwrap_or_default()
    }

    /// The prefix that the keys of leaf `leaf` share after the block's prefix.
    #[inline]
    fn part(self, leaf: usize) -> &'a [u8] {
        match &self.layout.parts {
            None => &[],
            Some(starts) => match (starts.get(leaf), starts.get(leaf + 1)) {
                (Some(&start), Some(&end)) => self.bytes.get(start..end).unwrap_or_default(),
                _ => &[],
            },
        }
    }

    /// The head of interval `interval`.
    #[inline]
    fn head(self, interval: usize) -> u64 {
        let at = interval / LEAF * LEAF_BYTES + interval % LEAF * HEAD_BYTES;
        wire::u64_at(self.bytes, at).unwrap_or(0)
    }

    /// Parts of the first entry of interval `interval`.
    #[inline]
    fn first(self, interval: usize) -> Option<Parts> {
        Parts::first(self.bytes, self.start(interval), self.layout.number)
    }

    #[inline]
    fn number(self, parts: &Parts) -> SeqKind {
        self.layout.number.decode(self.bytes, parts.number_at())
    }

    /// Goes to the first entry of `interval`, which starts at `at`.
    #[inline]
    fn show_first(self, pos: &mut EntryPos, interval: usize, at: usize) {
        let Some(parts) = Parts::first(self.bytes, at, self.layout.number) else {
            pos.is_placed = false;
            return;
        };
        if !pos.has_prefix || self.layout.parts.is_some() {
            let (prefix_len, part) = (self.layout.prefix_len, self.part(interval / LEAF));
            pos.key.replace(0, self.bytes, self.prefix_at(), prefix_len);
            pos.key.replace(prefix_len, part, 0, part.len());
            pos.prefix_len = prefix_len + part.len();
            pos.has_prefix = true;
        }
        pos.interval = interval;
        pos.interval_end = self.start(interval + 1);
        pos.key.replace_behind_head(pos.prefix_len, self.head(interval), &parts, self.bytes);
        self.show(pos, at, &parts);
    }

    #[inline]
    fn show(self, pos: &mut EntryPos, at: usize, parts: &Parts) {
        pos.at = at;
        pos.seq_kind = self.number(parts).0;
        pos.value_at = parts.value_at;
        pos.end = parts.end();
        pos.is_placed = true;
    }
}

impl<'a> Intervals<'a> for TwoLayerBlock<'a> {
    #[inline]
    fn count(self) -> usize {
        self.layout.interval_count
    }

    #[inline]
    fn start(self, interval: usize) -> usize {
        if interval >= self.layout.interval_count {
            return self.layout.entries_end;
        }
        let (leaf, lane) = (interval / LEAF, interval % LEAF);
        let offsets = self.bytes.get(leaf * LEAF_BYTES + LEAF_HEAD_BYTES..);
        let offsets = offsets.and_then(|rest| rest.first_chunk::<{ LEAF * 2 }>());
        let offset = offsets.and_then(|offsets| offsets.as_chunks().0.get(lane));
        offset.map_or(self.layout.entries_end, |offset| {
            self.layout.entries_at + usize::from(u16::from_le_bytes(*offset))
        })
    }

    #[inline]
    fn move_first(self, pos: &mut EntryPos, interval: usize) {
        if interval >= self.layout.interval_count {
            pos.is_placed = false;
            return;
        }
        self.show_first(pos, interval, self.start(interval));
    }

    #[inline]
    fn move_next(self, pos: &mut EntryPos) {
        if pos.end >= pos.interval_end {
            let next = pos.interval + 1;
            if next >= self.layout.interval_count {
                pos.is_placed = false;
                return;
            }
            return self.show_first(pos, next, pos.end);
        }
        let at = pos.end;
        match Parts::rest(self.bytes, at, self.layout.number) {
            Some(parts) => {
                let start = pos.prefix_len + parts.shared;
                pos.key.replace(start, self.bytes, parts.suffix_at, parts.unshared);
                self.show(pos, at, &parts);
            }
            None => pos.is_placed = false,
        }
    }

    fn move_known(self, pos: &mut EntryPos, at: usize) {
        let parts = match at == self.start(pos.interval) {
            true => Parts::first(self.bytes, at, self.layout.number),
            false => Parts::rest(self.bytes, at, self.layout.number),
        };
        match parts {
            Some(parts) => self.show(pos, at, &parts),
            None => pos.is_placed = false,
        }
    }

    fn seek(self, pos: &mut EntryPos, key: &[u8], seq: SeqNo) {
        pos.is_placed = false;
        if !key.starts_with(self.prefix()) {
            if *key < *self.prefix() {
                self.move_first(pos, 0);
            }
            return;
        }
        let Some(found) = self.locate_to_walk(key, seq) else { return };
        if found.at == self.start(found.interval) {
            return self.show_first(pos, found.interval, found.at);
        }
        // The walk ends at an entry whose shared bytes are equal to the target's, so the key before it is not
        // needed.
        let prefix_len = self.layout.prefix_len + self.part(found.interval / LEAF).len();
        let start = prefix_len + found.parts.shared;
        pos.key.set(key.get(..start).unwrap_or_default());
        pos.key.replace(start, self.bytes, found.parts.suffix_at, found.parts.unshared);
        pos.prefix_len = prefix_len;
        pos.has_prefix = true;
        pos.interval = found.interval;
        pos.interval_end = self.start(found.interval + 1);
        self.show(pos, found.at, &found.parts);
    }

    #[inline(always)]
    fn find(self, key: &[u8], seq: SeqNo) -> Option<(SeqKind, &'a [u8])> {
        if !key.starts_with(self.prefix()) {
            return None;
        }
        let parts = self.find_parts(key, seq)?;
        Some((self.number(&parts), self.bytes.get(parts.value_at..parts.end()).unwrap_or_default()))
    }
}
