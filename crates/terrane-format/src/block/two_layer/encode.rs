//! Lays collected entries out as a two-layer block.
//!
//! As many intervals as there may be, down to one entry each, make a search short. But each takes a head and an offset,
//! so the most intervals are taken with which the block does not pass [`bytes_max`]; if there are none, it stays plain.

use std::ops::Range;

use terrane_base::{Entry, SeqKind, key, varint};

use super::entry::NumberCode;
use super::{HEAD_BYTES, INTERVALS_MAX, LEAF, LEAF_BYTES, ROOT, TRAILER_BYTES};

/// Offsets have 16 bits.
const BLOCK_BYTES_MAX: usize = 1 << 16;
/// With fewer intervals a plain block's restarts do as well.
const INTERVALS_MIN: usize = 4;

/// The most bytes that a block may take which takes `plain_len` bytes in the plain encoding.
#[inline]
pub(in crate::block) fn bytes_max(plain_len: usize) -> usize {
    /// What a small block may take more: about what its tree takes.
    const SLACK: usize = 64;
    plain_len + plain_len / 50 + SLACK
}

/// Entries of a block that is being collected.
#[derive(Debug, Default)]
pub(in crate::block) struct Draft {
    keys: Vec<u8>,
    values: Vec<u8>,
    entries: Vec<DraftEntry>,
}

#[derive(Clone, Copy, Debug)]
struct DraftEntry {
    seq_kind: SeqKind,
    /// Where key and value end in `keys` and `values`; they start where those before them end.
    key_end: u32,
    value_end: u32,
    /// Bytes that the key has in common with the one before it.
    shared: u32,
}

impl Draft {
    /// Adds an entry. Requires: [`Draft::takes`] the block with it.
    #[inline]
    pub(in crate::block) fn push(&mut self, entry: &Entry<'_>, shared: usize) {
        self.keys.extend_from_slice(entry.key);
        self.values.extend_from_slice(entry.value);
        self.entries.push(DraftEntry {
            seq_kind: entry.seq_kind,
            key_end: self.keys.len() as u32,
            value_end: self.values.len() as u32,
            shared: shared as u32,
        });
    }

    /// Whether the block may still become two-layered with one more key of `key_len` bytes, if its entries then take
    /// `plain_bytes` bytes in the plain encoding.
    #[inline]
    pub(in crate::block) fn takes(&self, plain_bytes: usize, key_len: usize) -> bool {
        /// Whole keys that share much take more than the block.
        const KEY_BYTES_MAX: usize = 8 * BLOCK_BYTES_MAX;
        plain_bytes <= BLOCK_BYTES_MAX && self.keys.len() + key_len <= KEY_BYTES_MAX
    }

    /// The entries, each with what its key has in common with the one before it.
    pub(in crate::block) fn entries(&self) -> impl Iterator<Item = (Entry<'_>, usize)> {
        (0..self.entries.len()).map(|at| {
            let entry = &self.entries[at];
            let value = &self.values[self.value_range(at)];
            (Entry { key: self.key(at), seq_kind: entry.seq_kind, value }, entry.shared as usize)
        })
    }

    /// Requires: not empty.
    pub(in crate::block) fn first_key(&self) -> &[u8] {
        self.key(0)
    }

    /// The last key; empty if there is none.
    #[inline]
    pub(in crate::block) fn last_key(&self) -> &[u8] {
        self.entries.len().checked_sub(1).map_or(&[], |last| self.key(last))
    }

    /// Bytes that sequence numbers take less than in the plain encoding.
    #[inline]
    pub(in crate::block) fn number_savings(&self, (min, max): (u64, u64)) -> usize {
        self.entries.len() * (HEAD_BYTES - NumberCode::fitting(min, max).bytes)
    }

    pub(in crate::block) fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
        self.entries.clear();
    }

    pub(in crate::block) fn memory_bytes(&self) -> usize {
        self.keys.capacity() + self.values.capacity() + self.entries.capacity() * size_of::<DraftEntry>()
    }

    /// Lays the entries out at the front of `out`, if that takes at most [`bytes_max`] of `plain_len`, which is how long
    /// the block would be in the plain encoding. Returns the length.
    ///
    /// Requires: all sequence numbers within `seq_range`.
    pub(in crate::block) fn encode(
        &self,
        plain_len: usize,
        seq_range: (u64, u64),
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let limit = bytes_max(plain_len).min(BLOCK_BYTES_MAX);
        let mut intervals = self.entries.len().min(INTERVALS_MAX);
        while intervals >= INTERVALS_MIN {
            let plan = Plan::new(self, intervals, NumberCode::fitting(seq_range.0, seq_range.1));
            let len = plan.len();
            if len <= limit {
                if out.len() < len + PEN_SLACK {
                    out.resize(len + PEN_SLACK, 0);
                }
                let written = plan.write(out);
                debug_assert_eq!(written, len);
                return Some(written);
            }
            intervals /= 2;
        }
        None
    }

    #[inline]
    fn key_start(&self, at: usize) -> usize {
        at.checked_sub(1).map_or(0, |before| self.entries[before].key_end as usize)
    }

    #[inline]
    fn value_range(&self, at: usize) -> Range<usize> {
        let start = at.checked_sub(1).map_or(0, |before| self.entries[before].value_end as usize);
        start..self.entries[at].value_end as usize
    }

    #[inline]
    fn key(&self, at: usize) -> &[u8] {
        &self.keys[self.key_start(at)..self.entries[at].key_end as usize]
    }
}

/// A block to be: how many intervals, and what of its keys stands where.
struct Plan<'a> {
    draft: &'a Draft,
    number: NumberCode,
    intervals: usize,
    prefix_len: usize,
    /// Bytes of the part of each leaf; all 0: no parts.
    parts: [usize; ROOT],
}

impl<'a> Plan<'a> {
    fn new(draft: &'a Draft, intervals: usize, number: NumberCode) -> Plan<'a> {
        let prefix_len = key::common_len(draft.key(0), draft.key(draft.entries.len() - 1));
        let mut plan = Plan { draft, number, intervals, prefix_len, parts: [0; ROOT] };
        for leaf in 0..plan.leaves() {
            if plan.has_ties(leaf) {
                let (first, end) = (plan.start(leaf * LEAF), plan.start((leaf + 1) * LEAF));
                let common = key::common_len(draft.key(first), draft.key(end - 1));
                plan.parts[leaf] = common - prefix_len;
            }
        }
        plan
    }

    fn leaves(&self) -> usize {
        self.intervals.div_ceil(LEAF)
    }

    fn has_parts(&self) -> bool {
        self.parts != [0; ROOT]
    }

    /// The first entry of interval `interval`; for the number of intervals or more, how many entries there are.
    #[inline]
    fn start(&self, interval: usize) -> usize {
        interval.min(self.intervals) * self.draft.entries.len() / self.intervals
    }

    /// Bytes that the keys of interval `interval` do not repeat.
    #[inline]
    fn skip(&self, interval: usize) -> usize {
        self.prefix_len + self.parts[interval / LEAF]
    }

    /// Whether heads of the leaf are equal if it has no part.
    fn has_ties(&self, leaf: usize) -> bool {
        let end = ((leaf + 1) * LEAF).min(self.intervals);
        let head = |interval: usize| key::head(&self.draft.key(self.start(interval))[self.prefix_len..]);
        (leaf * LEAF + 1..end).any(|interval| head(interval - 1) == head(interval))
    }

    /// Bytes of the whole block.
    fn len(&self) -> usize {
        let parts = if self.has_parts() { 2 * self.leaves() + self.parts.iter().sum::<usize>() } else { 0 };
        let mut len = self.leaves() * LEAF_BYTES + self.prefix_len + parts + TRAILER_BYTES;
        for interval in 0..self.intervals {
            let skip = self.skip(interval);
            let (first, end) = (self.start(interval), self.start(interval + 1));
            for at in first..end {
                let entry = &self.draft.entries[at];
                let key_len = entry.key_end as usize - self.draft.key_start(at) - skip;
                let value_len = self.draft.value_range(at).len();
                len += varint::len(value_len as u32) + value_len + self.number.bytes;
                len += match at == first {
                    true => varint::len(key_len as u32) + key_len.saturating_sub(HEAD_BYTES),
                    false => {
                        let shared = entry.shared as usize - skip;
                        let unshared = key_len - shared;
                        varint::len(shared as u32) + varint::len(unshared as u32) + unshared
                    }
                };
            }
        }
        len
    }

    /// Writes the block to the front of `out`, which has room for it and [`PEN_SLACK`]; returns its length.
    fn write(&self, out: &mut [u8]) -> usize {
        let (leaves, rest) = out.split_at_mut(self.leaves() * LEAF_BYTES);
        let mut pen = Pen { out: rest, at: 0 };
        self.write_prefixes(&mut pen);
        let entries_at = pen.at;
        for interval in 0..self.intervals {
            let offset = (pen.at - entries_at) as u16;
            let (first, end) = (self.start(interval), self.start(interval + 1));
            let head = key::head_behind(self.draft.key(first), self.skip(interval)).to_le_bytes();
            let leaf = &mut leaves[interval / LEAF * LEAF_BYTES..][..LEAF_BYTES];
            let (heads, offsets) = leaf.split_at_mut(LEAF * HEAD_BYTES);
            let (heads, offsets) = (heads.as_chunks_mut().0, offsets.as_chunks_mut().0);
            if interval + 1 < self.intervals {
                heads[interval % LEAF] = head;
                offsets[interval % LEAF] = offset.to_le_bytes();
            } else {
                // What is left of the last leaf is padding.
                heads[interval % LEAF..].fill(head);
                offsets[interval % LEAF..].fill(offset.to_le_bytes());
            }
            self.write_entries(interval, first..end, &mut pen);
        }
        self.write_trailer(&mut pen);
        let written = pen.at;
        leaves.len() + written
    }

    fn write_prefixes(&self, pen: &mut Pen<'_>) {
        pen.put(&self.draft.key(0)[..self.prefix_len]);
        if self.has_parts() {
            let parts = &self.parts[..self.leaves()];
            parts.iter().for_each(|len| pen.put(&(*len as u16).to_le_bytes()));
            for (leaf, len) in parts.iter().enumerate() {
                let key = self.draft.key(self.start(leaf * LEAF));
                pen.put(&key[self.prefix_len..self.prefix_len + len]);
            }
        }
    }

    #[inline]
    fn write_entries(&self, interval: usize, entries: Range<usize>, pen: &mut Pen<'_>) {
        let skip = self.skip(interval);
        let first = entries.start;
        for at in entries {
            let entry = &self.draft.entries[at];
            let (key_start, key_end) = (self.draft.key_start(at) + skip, entry.key_end as usize);
            let suffix_at = if at == first {
                pen.varint(key_end - key_start);
                (key_start + HEAD_BYTES).min(key_end)
            } else {
                let shared = entry.shared as usize - skip;
                pen.varint(shared);
                pen.varint(key_end - key_start - shared);
                key_start + shared
            };
            let value = self.draft.value_range(at);
            pen.varint(value.len());
            pen.put_short(&self.draft.keys, suffix_at..key_end);
            pen.number(self.number.encode(entry.seq_kind), self.number.bytes);
            pen.put(&self.draft.values[value]);
        }
    }

    fn write_trailer(&self, pen: &mut Pen<'_>) {
        pen.put(&self.number.base().to_le_bytes());
        pen.put(&(self.prefix_len as u16).to_le_bytes());
        pen.put(&[self.intervals as u8, self.number.bytes as u8, u8::from(self.has_parts())]);
        pen.put(&(self.draft.entries.len() as u32).to_le_bytes());
        pen.put(&[crate::block::ENCODING_TWO_LAYER]);
    }
}

/// Bytes that a short part is copied as, and so may be written to behind the end.
const PEN_SLACK: usize = 16;

/// Writes into bytes that are there already, without asking for room each time.
struct Pen<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl Pen<'_> {
    #[inline]
    fn put(&mut self, part: &[u8]) {
        self.out[self.at..self.at + part.len()].copy_from_slice(part);
        self.at += part.len();
    }

    /// Puts `source[range]`; as one chunk, where it is short.
    #[inline]
    fn put_short(&mut self, source: &[u8], range: Range<usize>) {
        if range.len() <= PEN_SLACK
            && let Some(chunk) = source[range.start..].first_chunk::<PEN_SLACK>()
            && let Some(room) = self.out[self.at..].first_chunk_mut::<PEN_SLACK>()
        {
            *room = *chunk;
            self.at += range.len();
        } else {
            self.put(&source[range]);
        }
    }

    #[inline]
    fn number(&mut self, number: u64, bytes: usize) {
        let number = number.to_le_bytes();
        match self.out[self.at..].first_chunk_mut() {
            Some(room) => *room = number,
            None => self.out[self.at..self.at + bytes].copy_from_slice(&number[..bytes]),
        }
        self.at += bytes;
    }

    #[inline]
    fn varint(&mut self, mut value: usize) {
        while value >= 0x80 {
            self.out[self.at] = value as u8 | 0x80;
            self.at += 1;
            value >>= 7;
        }
        self.out[self.at] = value as u8;
        self.at += 1;
    }
}
