//! Lays collected entries out as a two-layer block.
//!
//! As many intervals as there may be, down to one entry each, make a search short. But each takes a head and an offset,
//! so the most intervals are taken with which the block does not pass [`bytes_max`]; if there are none, it stays plain.

use terrane_base::{SeqKind, varint};

use super::entry::NumberCode;
use super::{HEAD_BYTES, INTERVALS_MAX, LEAF, LEAF_BYTES, ROOT, TRAILER_BYTES};
use crate::wire;

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

/// Entries of a block that is being collected. The values stay where the plain encoding has put them.
#[derive(Debug, Default)]
pub(in crate::block) struct Draft {
    keys: Vec<u8>,
    entries: Vec<DraftEntry>,
}

#[derive(Clone, Copy, Debug)]
struct DraftEntry {
    seq_kind: SeqKind,
    /// Where the key ends in `keys`; it starts where the one before it ends.
    key_end: u32,
    /// Bytes that the key has in common with the one before it.
    shared: u32,
    /// Where the value starts in the plain bytes.
    value_at: u32,
    value_len: u32,
}

impl Draft {
    /// Adds an entry. Requires: `value_at` and all keys together below 4 GiB, which [`Draft::takes`] ensures.
    #[inline]
    pub(in crate::block) fn push(
        &mut self,
        key: &[u8],
        shared: usize,
        seq_kind: SeqKind,
        value: std::ops::Range<usize>,
    ) {
        self.keys.extend_from_slice(key);
        self.entries.push(DraftEntry {
            seq_kind,
            key_end: self.keys.len() as u32,
            shared: shared as u32,
            value_at: value.start as u32,
            value_len: value.len() as u32,
        });
    }

    /// Whether a block that takes `plain_len` bytes in the plain encoding may become two-layered.
    #[inline]
    pub(in crate::block) fn takes(plain_len: usize) -> bool {
        plain_len <= BLOCK_BYTES_MAX
    }

    /// Bytes that sequence numbers take less than in the plain encoding.
    #[inline]
    pub(in crate::block) fn number_savings(&self, (min, max): (u64, u64)) -> usize {
        self.entries.len() * (HEAD_BYTES - NumberCode::fitting(min, max).bytes)
    }

    #[inline]
    pub(in crate::block) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(in crate::block) fn clear(&mut self) {
        self.keys.clear();
        self.entries.clear();
    }

    pub(in crate::block) fn memory_bytes(&self) -> usize {
        self.keys.capacity() + self.entries.capacity() * size_of::<DraftEntry>()
    }

    /// Gives memory back that `bytes` bytes of plain entries do not need.
    pub(in crate::block) fn shrink(&mut self, bytes: usize) {
        self.keys.shrink_to(bytes);
        self.entries.shrink_to(bytes / size_of::<DraftEntry>());
    }

    /// Lays the entries out in `out`, which is empty, if that takes at most [`bytes_max`]. `plain` holds the values,
    /// `plain_len` is how long the block would be in the plain encoding.
    ///
    /// Requires: one entry at least; all sequence numbers within `seq_range`.
    pub(in crate::block) fn encode(
        &self,
        plain: &[u8],
        plain_len: usize,
        seq_range: (u64, u64),
        out: &mut Vec<u8>,
    ) -> bool {
        let number = NumberCode::fitting(seq_range.0, seq_range.1);
        let limit = bytes_max(plain_len).min(BLOCK_BYTES_MAX);
        let mut intervals = self.entries.len().min(INTERVALS_MAX);
        while intervals >= INTERVALS_MIN {
            let plan = Plan::new(self, intervals, number);
            let len = plan.len();
            if len <= limit {
                out.reserve(len);
                plan.write(plain, out);
                debug_assert_eq!(out.len(), len);
                return true;
            }
            intervals /= 2;
        }
        false
    }

    #[inline]
    fn key_start(&self, at: usize) -> usize {
        at.checked_sub(1).map_or(0, |before| self.entries[before].key_end as usize)
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
        let prefix_len = wire::common_prefix(draft.key(0), draft.key(draft.entries.len() - 1));
        let mut plan = Plan { draft, number, intervals, prefix_len, parts: [0; ROOT] };
        for leaf in 0..plan.leaves() {
            if plan.has_ties(leaf) {
                let (first, end) = (plan.start(leaf * LEAF), plan.start((leaf + 1) * LEAF));
                let common = wire::common_prefix(draft.key(first), draft.key(end - 1));
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
        let head = |interval: usize| wire::head(&self.draft.key(self.start(interval))[self.prefix_len..]);
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
                let value_len = entry.value_len as usize;
                len += varint::len(entry.value_len) + value_len + self.number.bytes;
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

    fn write(&self, plain: &[u8], out: &mut Vec<u8>) {
        out.resize(self.leaves() * LEAF_BYTES, 0);
        self.write_prefixes(out);
        let entries_at = out.len();
        for interval in 0..self.intervals {
            let offset = (out.len() - entries_at) as u16;
            let (first, end) = (self.start(interval), self.start(interval + 1));
            let head = wire::head_behind(self.draft.key(first), self.skip(interval));
            let leaf = &mut out[interval / LEAF * LEAF_BYTES..][..LEAF_BYTES];
            // What is left of the leaf is padding, until the next interval takes it.
            let (heads, offsets) = leaf.split_at_mut(LEAF * HEAD_BYTES);
            heads.as_chunks_mut().0[interval % LEAF..].fill(head.to_le_bytes());
            offsets.as_chunks_mut().0[interval % LEAF..].fill(offset.to_le_bytes());
            self.write_entries(interval, first..end, plain, out);
        }
        self.write_trailer(out);
    }

    fn write_prefixes(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.draft.key(0)[..self.prefix_len]);
        if self.has_parts() {
            let parts = &self.parts[..self.leaves()];
            parts.iter().for_each(|len| out.extend_from_slice(&(*len as u16).to_le_bytes()));
            for (leaf, len) in parts.iter().enumerate() {
                let key = self.draft.key(self.start(leaf * LEAF));
                out.extend_from_slice(&key[self.prefix_len..self.prefix_len + len]);
            }
        }
    }

    fn write_entries(
        &self,
        interval: usize,
        entries: std::ops::Range<usize>,
        plain: &[u8],
        out: &mut Vec<u8>,
    ) {
        let skip = self.skip(interval);
        for at in entries.clone() {
            let entry = &self.draft.entries[at];
            let key = &self.draft.key(at)[skip..];
            let suffix = if at == entries.start {
                varint::put(out, key.len() as u32);
                key.get(HEAD_BYTES..).unwrap_or_default()
            } else {
                let shared = entry.shared as usize - skip;
                varint::put(out, shared as u32);
                varint::put(out, (key.len() - shared) as u32);
                &key[shared..]
            };
            varint::put(out, entry.value_len);
            out.extend_from_slice(suffix);
            self.number.encode(entry.seq_kind, out);
            let value_at = entry.value_at as usize;
            out.extend_from_slice(&plain[value_at..value_at + entry.value_len as usize]);
        }
    }

    fn write_trailer(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.number.base().to_le_bytes());
        out.extend_from_slice(&(self.prefix_len as u16).to_le_bytes());
        out.extend_from_slice(&[self.intervals as u8, self.number.bytes as u8, u8::from(self.has_parts())]);
        out.extend_from_slice(&(self.draft.entries.len() as u32).to_le_bytes());
        out.push(crate::block::ENCODING_TWO_LAYER);
    }
}
