//! Encoding 2, "two-layer": a search tree over short runs of entries, searched where it lies.
//!
//! ```text
//! block   = leaf* prefix (len:u16)* part* first-and-rest* trailer
//! leaf    = head:u64*8 offset:u16*8
//! first   = unshared:varint value_len:varint suffix number value                 of each interval
//! rest    = shared:varint unshared:varint value_len:varint suffix number value   of the same interval, any number
//! trailer = seq_base:u64 prefix_len:u16 intervals:u8 number_bytes:u8 parts:u8 entries:u32 encoding:u8
//! ```
//!
//! * All keys begin with `prefix`. Where keys of a leaf agree in the 8 bytes behind it, the leaf has a `part` more of
//!   prefix of its own; then `parts` is 1 and there is a `len` for each leaf.
//! * The entries form up to 128 *intervals*. The head of an interval is the 8 bytes behind prefix and part of its first
//!   key, which are not stored again in the entry. The offset is that of its first entry, from the first entry of all.
//!   A leaf that is not full is padded with its last head and offset.
//! * `shared` and `unshared` count from behind prefix and part.
//! * A number is (sequence number - `seq_base`) * 16 + kind in `number_bytes` bytes.
//!
//! The root of the tree, the first head of each leaf, is not stored: decoding puts it beside the other facts about the
//! block, which a search must load anyway. So a search waits for these, for one leaf, and for the entry.

mod check;
mod describe;
mod encode;
mod entry;
mod search;

pub(super) use encode::{Draft, bytes_max};
pub(super) use entry::Parts;

use terrane_base::{SeqKind, SeqNo};

use super::place::{Intervals, Place};
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

/// What is known of the bytes of a two-layer block.
#[derive(Clone, Debug)]
pub(super) struct TwoLayer {
    /// First head behind the block's prefix of each leaf, padded with the last one.
    root: [u64; ROOT],
    leaf_count: usize,
    interval_count: usize,
    prefix_len: usize,
    entries_at: usize,
    entries_end: usize,
    number: NumberCode,
    /// Whether the head of each interval is greater than that of the entry before it, and no leaf has a part: then a head
    /// that is equal decides alone, and all versions of a key lie in one interval.
    is_distinct: bool,
    /// Whether each interval is one entry.
    is_single: bool,
    /// Where the part of each leaf starts, and where the last one ends, if there are parts.
    parts: Option<Box<[usize; ROOT + 1]>>,
}

/// A two-layer block as it is searched.
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

    /// Raises every sequence number in the block that `self` was decoded from: they are counted from one base.
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

    /// What the keys of leaf `leaf` have in common behind the prefix.
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

    /// Where the parts of the first entry of interval `interval` lie.
    #[inline]
    fn first(self, interval: usize) -> Option<Parts> {
        Parts::first(self.bytes, self.start(interval), self.layout.number)
    }

    #[inline]
    fn number(self, parts: &Parts) -> SeqKind {
        self.layout.number.decode(self.bytes, parts.number_at())
    }

    /// Makes the first entry of `interval`, which starts at `at`, the current one.
    #[inline]
    fn show_first(self, place: &mut Place, interval: usize, at: usize) {
        let Some(parts) = Parts::first(self.bytes, at, self.layout.number) else {
            place.is_placed = false;
            return;
        };
        if !place.has_prefix || self.layout.parts.is_some() {
            let (prefix_len, part) = (self.layout.prefix_len, self.part(interval / LEAF));
            place.key.replace(0, self.bytes, self.prefix_at(), prefix_len);
            place.key.replace(prefix_len, part, 0, part.len());
            place.prefix_len = prefix_len + part.len();
            place.has_prefix = true;
        }
        place.interval = interval;
        place.interval_end = self.start(interval + 1);
        place.key.replace_behind_head(place.prefix_len, self.head(interval), &parts, self.bytes);
        self.show(place, at, &parts);
    }

    #[inline]
    fn show(self, place: &mut Place, at: usize, parts: &Parts) {
        place.at = at;
        place.seq_kind = self.number(parts).0;
        place.value_at = parts.value_at;
        place.end = parts.end();
        place.is_placed = true;
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
    fn place_first(self, place: &mut Place, interval: usize) {
        if interval >= self.layout.interval_count {
            place.is_placed = false;
            return;
        }
        self.show_first(place, interval, self.start(interval));
    }

    #[inline]
    fn place_next(self, place: &mut Place) {
        if place.end >= place.interval_end {
            let next = place.interval + 1;
            if next >= self.layout.interval_count {
                place.is_placed = false;
                return;
            }
            return self.show_first(place, next, place.end);
        }
        let at = place.end;
        match Parts::rest(self.bytes, at, self.layout.number) {
            Some(parts) => {
                let start = place.prefix_len + parts.shared;
                place.key.replace(start, self.bytes, parts.suffix_at, parts.unshared);
                self.show(place, at, &parts);
            }
            None => place.is_placed = false,
        }
    }

    fn place_known(self, place: &mut Place, at: usize) {
        let parts = match at == self.start(place.interval) {
            true => Parts::first(self.bytes, at, self.layout.number),
            false => Parts::rest(self.bytes, at, self.layout.number),
        };
        match parts {
            Some(parts) => self.show(place, at, &parts),
            None => place.is_placed = false,
        }
    }

    fn seek(self, place: &mut Place, key: &[u8], seq: SeqNo) {
        place.is_placed = false;
        if !key.starts_with(self.prefix()) {
            if *key < *self.prefix() {
                self.place_first(place, 0);
            }
            return;
        }
        let Some(found) = self.locate_to_walk(key, seq) else { return };
        if found.at == self.start(found.interval) {
            return self.show_first(place, found.interval, found.at);
        }
        // The walk ends at an entry whose shared bytes are the target's own, so no key before it is needed.
        let prefix_len = self.layout.prefix_len + self.part(found.interval / LEAF).len();
        let start = prefix_len + found.parts.shared;
        place.key.set(key.get(..start).unwrap_or_default());
        place.key.replace(start, self.bytes, found.parts.suffix_at, found.parts.unshared);
        place.prefix_len = prefix_len;
        place.has_prefix = true;
        place.interval = found.interval;
        place.interval_end = self.start(found.interval + 1);
        self.show(place, found.at, &found.parts);
    }

    #[inline]
    fn find(self, key: &[u8], seq: SeqNo) -> Option<(SeqKind, &'a [u8])> {
        if !key.starts_with(self.prefix()) {
            return None;
        }
        let parts = self.find_parts(key, seq)?;
        Some((self.number(&parts), self.bytes.get(parts.value_at..parts.end()).unwrap_or_default()))
    }
}
