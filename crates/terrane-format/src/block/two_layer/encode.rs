//! Encodes collected entries as a two-layer block.
//!
//! More intervals make a search shorter, down to one entry each. But each interval takes a head and an
//! offset, so the encoder takes the largest number of intervals with which the block is not longer than
//! [`bytes_max`]; if no number fits, the block stays plain.

use std::ops::Range;

use terrane_base::{Entry, SeqKind, key, varint};

use super::entry::NumberCode;
use super::{HEAD_BYTES, INTERVALS_MAX, LEAF, LEAF_BYTES, ROOT, TRAILER_BYTES};

/// Offsets are 16 bits long.
const BLOCK_BYTES_MAX: usize = 1 << 16;
/// With fewer intervals the restart points of a plain block are as fast.
const INTERVALS_MIN: usize = 4;

/// The most bytes that a block with so many pointers to values may take if it would take `plain_len` bytes in
/// the plain encoding.
#[inline]
pub(in crate::block) fn bytes_max(plain_len: usize, pointers: usize) -> usize {
    /// Extra bytes that a small block may take: about the size of its tree.
    const SLACK: usize = 64;
    /// Extra bytes for each pointer, so that it has an interval of its own: an entry of some 20 bytes leaves
    /// no room for its head and offset in a fiftieth, and a walk to it costs more than the value table.
    const POINTER_SLACK: usize = 8;
    plain_len + plain_len / 50 + SLACK + pointers * POINTER_SLACK
}

/// Entries of a block that is being collected.
#[derive(Debug, Default)]
pub(in crate::block) struct PendingEntries {
    keys: Vec<u8>,
    values: Vec<u8>,
    entries: Vec<PendingEntry>,
}

#[derive(Clone, Copy, Debug)]
struct PendingEntry {
    seq_kind: SeqKind,
    /// Ends of key and value in `keys` and `values`; each starts at the end of the one before.
    key_end: u32,
    value_end: u32,
    /// Bytes that the key has in common with the one before it.
    shared: u32,
}

impl PendingEntries {
    /// Adds an entry. Requires: [`PendingEntries::takes`] returned true for the block with it.
    #[inline]
    pub(in crate::block) fn push(&mut self, entry: &Entry<'_>, shared: usize) {
        self.keys.extend_from_slice(entry.key);
        self.values.extend_from_slice(entry.value);
        self.entries.push(PendingEntry {
            seq_kind: entry.seq_kind,
            key_end: self.keys.len() as u32,
            value_end: self.values.len() as u32,
            shared: shared as u32,
        });
    }

    /// Returns true if the block can still become two-layer after one more key of `key_len` bytes, with which
    /// its entries would take `plain_bytes` bytes in the plain encoding.
    #[inline]
    pub(in crate::block) fn takes(&self, plain_bytes: usize, key_len: usize) -> bool {
        /// Whole keys that share long prefixes take more bytes than the block.
        const KEY_BYTES_MAX: usize = 8 * BLOCK_BYTES_MAX;
        plain_bytes <= BLOCK_BYTES_MAX && self.keys.len() + key_len <= KEY_BYTES_MAX
    }

    /// The entries, each with the number of bytes that its key shares with the one before.
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

    /// The last key; empty in an empty block.
    #[inline]
    pub(in crate::block) fn last_key(&self) -> &[u8] {
        self.entries.len().checked_sub(1).map_or(&[], |last| self.key(last))
    }

    /// Bytes that sequence numbers save against the plain encoding.
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
        self.keys.capacity() + self.values.capacity() + self.entries.capacity() * size_of::<PendingEntry>()
    }

    /// Encodes the entries at the front of `out`, if they take at most `limit` bytes. Returns the length.
    ///
    /// Requires: all sequence numbers within `seq_range`.
    pub(in crate::block) fn encode(
        &self,
        limit: usize,
        seq_range: (u64, u64),
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let limit = limit.min(BLOCK_BYTES_MAX);
        let mut intervals = self.entries.len().min(INTERVALS_MAX);
        while intervals >= INTERVALS_MIN {
            let plan = Plan::new(self, intervals, NumberCode::fitting(seq_range.0, seq_range.1));
            let len = plan.len();
            if len <= limit {
                if out.len() < len + WRITE_SLACK {
                    out.resize(len + WRITE_SLACK, 0);
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

/// The layout of a block before it is written: number of intervals, and which bytes of the keys are stored
/// where.
struct Plan<'a> {
    pending: &'a PendingEntries,
    number: NumberCode,
    intervals: usize,
    prefix_len: usize,
    /// Bytes of the part of each leaf; all 0 if there are no parts.
    parts: [usize; ROOT],
}

impl<'a> Plan<'a> {
    fn new(pending: &'a PendingEntries, intervals: usize, number: NumberCode) -> Plan<'a> {
        let prefix_len = key::common_len(pending.key(0), pending.key(pending.entries.len() - 1));
        let mut plan = Plan { pending, number, intervals, prefix_len, parts: [0; ROOT] };
        for leaf in 0..plan.leaves() {
            if plan.has_ties(leaf) {
                let (first, end) = (plan.start(leaf * LEAF), plan.start((leaf + 1) * LEAF));
                let common = key::common_len(pending.key(first), pending.key(end - 1));
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

    /// The first entry of interval `interval`; the number of entries if `interval` is out of range.
    #[inline]
    fn start(&self, interval: usize) -> usize {
        interval.min(self.intervals) * self.pending.entries.len() / self.intervals
    }

    /// Leading key bytes that interval `interval` does not store again.
    #[inline]
    fn skip(&self, interval: usize) -> usize {
        self.prefix_len + self.parts[interval / LEAF]
    }

    /// Returns true if two heads of the leaf would be equal without a part.
    fn has_ties(&self, leaf: usize) -> bool {
        let end = ((leaf + 1) * LEAF).min(self.intervals);
        let head = |interval: usize| key::head(&self.pending.key(self.start(interval))[self.prefix_len..]);
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
                let entry = &self.pending.entries[at];
                let key_len = entry.key_end as usize - self.pending.key_start(at) - skip;
                let value_len = self.pending.value_range(at).len();
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

    /// Writes the block to the front of `out`, which has room for it and for [`WRITE_SLACK`]; returns its
    /// length.
    fn write(&self, out: &mut [u8]) -> usize {
        let (leaves, rest) = out.split_at_mut(self.leaves() * LEAF_BYTES);
        let mut writer = BlockWriter { out: rest, at: 0 };
        self.write_prefixes(&mut writer);
        let entries_at = writer.at;
        for interval in 0..self.intervals {
            let offset = (writer.at - entries_at) as u16;
            let (first, end) = (self.start(interval), self.start(interval + 1));
            let head = key::head_behind(self.pending.key(first), self.skip(interval)).to_le_bytes();
            let leaf = &mut leaves[interval / LEAF * LEAF_BYTES..][..LEAF_BYTES];
            let (heads, offsets) = leaf.split_at_mut(LEAF * HEAD_BYTES);
            let (heads, offsets) = (heads.as_chunks_mut().0, offsets.as_chunks_mut().0);
            if interval + 1 < self.intervals {
                heads[interval % LEAF] = head;
                offsets[interval % LEAF] = offset.to_le_bytes();
            } else {
                // The rest of the last leaf is padding.
                heads[interval % LEAF..].fill(head);
                offsets[interval % LEAF..].fill(offset.to_le_bytes());
            }
            self.write_entries(interval, first..end, &mut writer);
        }
        self.write_trailer(&mut writer);
        let written = writer.at;
        leaves.len() + written
    }

    fn write_prefixes(&self, writer: &mut BlockWriter<'_>) {
        writer.put(&self.pending.key(0)[..self.prefix_len]);
        if self.has_parts() {
            let parts = &self.parts[..self.leaves()];
            parts.iter().for_each(|len| writer.put(&(*len as u16).to_le_bytes()));
            for (leaf, len) in parts.iter().enumerate() {
                let key = self.pending.key(self.start(leaf * LEAF));
                writer.put(&key[self.prefix_len..self.prefix_len + len]);
            }
        }
    }

    #[inline]
    fn write_entries(&self, interval: usize, entries: Range<usize>, writer: &mut BlockWriter<'_>) {
        let skip = self.skip(interval);
        let first = entries.start;
        for at in entries {
            let entry = &self.pending.entries[at];
            let (key_start, key_end) = (self.pending.key_start(at) + skip, entry.key_end as usize);
            let suffix_at = if at == first {
                writer.varint(key_end - key_start);
                (key_start + HEAD_BYTES).min(key_end)
            } else {
                let shared = entry.shared as usize - skip;
                writer.varint(shared);
                writer.varint(key_end - key_start - shared);
                key_start + shared
            };
            let value = self.pending.value_range(at);
            writer.varint(value.len());
            writer.put_short(&self.pending.keys, suffix_at..key_end);
            writer.number(self.number.encode(entry.seq_kind), self.number.bytes);
            writer.put(&self.pending.values[value]);
        }
    }

    fn write_trailer(&self, writer: &mut BlockWriter<'_>) {
        writer.put(&self.number.base().to_le_bytes());
        writer.put(&(self.prefix_len as u16).to_le_bytes());
        writer.put(&[self.intervals as u8, self.number.bytes as u8, u8::from(self.has_parts())]);
        writer.put(&(self.pending.entries.len() as u32).to_le_bytes());
        writer.put(&[crate::block::ENCODING_TWO_LAYER]);
    }
}

/// A short part is copied as a chunk of this many bytes, so up to so many bytes after its end may be
/// overwritten.
const WRITE_SLACK: usize = 16;

/// Writes into bytes that already exist, without growing them.
struct BlockWriter<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl BlockWriter<'_> {
    #[inline]
    fn put(&mut self, part: &[u8]) {
        self.out[self.at..self.at + part.len()].copy_from_slice(part);
        self.at += part.len();
    }

    /// Appends `source[range]`; as one chunk, if it is short.
    #[inline]
    fn put_short(&mut self, source: &[u8], range: Range<usize>) {
        if range.len() <= WRITE_SLACK
            && let Some(chunk) = source[range.start..].first_chunk::<WRITE_SLACK>()
            && let Some(room) = self.out[self.at..].first_chunk_mut::<WRITE_SLACK>()
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
