//! Decoding of a two-layer block. Everything that search and walks rely on is checked here, once.

use terrane_base::{Error, Result, SeqKind, key};

use super::entry::{NumberCode, Parts};
use super::{HEAD_BYTES, INTERVALS_MAX, LEAF, LEAF_BYTES, ROOT, TRAILER_BYTES, TwoLayer, TwoLayerBlock};
use crate::block::entry_pos::Intervals;
use crate::block::{self, Summary, Why};
use crate::wire::Fields;

/// The fields of the trailer.
struct Trailer {
    seq_base: u64,
    prefix_len: usize,
    intervals: usize,
    number_bytes: usize,
    has_parts: bool,
    entries: usize,
}

impl Trailer {
    fn decode(bytes: &[u8]) -> Result<Trailer> {
        let at = bytes.len().checked_sub(TRAILER_BYTES);
        let at = at.ok_or_else(|| Error::corrupt(format!("block of {} bytes is cut", bytes.len())))?;
        let mut fields = Fields::new("block trailer", &bytes[at..]);
        let seq_base = fields.u64()?;
        let prefix_len = usize::from(fields.u16()?);
        let [intervals, number_bytes, parts] = [fields.u8()?, fields.u8()?, fields.u8()?];
        let entries = fields.u32()? as usize;
        let intervals = usize::from(intervals);
        let refuse = |what: &str, found: usize| Err(Error::corrupt(format!("block trailer: {found} {what}")));
        if intervals == 0 || intervals > INTERVALS_MAX || intervals > entries {
            return refuse(&format!("intervals for {entries} entries"), intervals);
        }
        if number_bytes == 0 || usize::from(number_bytes) > HEAD_BYTES {
            return refuse("bytes of a number", usize::from(number_bytes));
        }
        if parts > 1 {
            return refuse("as the flag for parts", usize::from(parts));
        }
        let number_bytes = usize::from(number_bytes);
        Ok(Trailer { seq_base, prefix_len, intervals, number_bytes, has_parts: parts == 1, entries })
    }
}

impl TwoLayer {
    /// Checks the structure of a block; also returns the number of entries.
    pub(in crate::block) fn decode(bytes: &[u8]) -> Result<(TwoLayer, usize, Summary)> {
        let trailer = Trailer::decode(bytes)?;
        let entries_end = bytes.len() - TRAILER_BYTES;
        let leaf_count = trailer.intervals.div_ceil(LEAF);
        let (parts, entries_at) = part_starts(bytes, &trailer, leaf_count, entries_end)?;
        let mut layout = TwoLayer {
            root: [0; ROOT],
            leaf_count,
            interval_count: trailer.intervals,
            prefix_len: trailer.prefix_len,
            entries_at,
            entries_end,
            number: NumberCode::new(trailer.seq_base, trailer.number_bytes),
            is_distinct: false,
            is_single: trailer.intervals == trailer.entries,
            parts,
        };
        let (summary, has_distinct_heads) = layout.of(bytes).check(trailer.entries)?;
        layout.of(bytes).check_padding()?;
        layout.root = layout.of(bytes).collect_root();
        layout.is_distinct = layout.parts.is_none() && has_distinct_heads;
        Ok((layout, trailer.entries, summary))
    }
}

type Starts = Option<Box<[usize; ROOT + 1]>>;

/// Offsets of the leaves' parts, and the offset of the first entry.
fn part_starts(
    bytes: &[u8],
    trailer: &Trailer,
    leaves: usize,
    entries_end: usize,
) -> Result<(Starts, usize)> {
    let cut = || Error::corrupt(format!("block of {} bytes cannot hold its tree", bytes.len()));
    let prefix_end = leaves * LEAF_BYTES + trailer.prefix_len;
    if !trailer.has_parts {
        return if prefix_end <= entries_end { Ok((None, prefix_end)) } else { Err(cut()) };
    }
    let mut at = prefix_end + 2 * leaves;
    let lens = bytes[..entries_end].get(prefix_end..at).ok_or_else(cut)?;
    let mut starts = Box::new([at; ROOT + 1]);
    for (leaf, len) in lens.as_chunks().0.iter().enumerate() {
        at += usize::from(u16::from_le_bytes(*len));
        starts[leaf + 1..].fill(at);
    }
    if at > entries_end { Err(cut()) } else { Ok((Some(starts), at)) }
}

impl TwoLayerBlock<'_> {
    /// Walks all entries and checks everything that later accesses rely on. Also returns true if each
    /// interval's head is greater than the head of the entry before, so that no key has versions in two
    /// intervals.
    fn check(self, entry_count: usize) -> Result<(Summary, bool)> {
        let mut summary = Summary::new(entry_count);
        let (mut at, mut index) = (self.layout.entries_at, 0);
        let (mut last_head, mut is_distinct) = (0, true);
        for interval in 0..self.count() {
            if self.start(interval) != at {
                return Err(block::broken_entry(index, at, "is not where its interval's offset points"));
            }
            // The next turn of the loop refuses an offset after the end of the entries.
            let end = self.start(interval + 1).min(self.layout.entries_end);
            let prefix_len = self.layout.prefix_len + self.part(interval / LEAF).len();
            is_distinct &= interval == 0 || last_head < self.head(interval);
            last_head = self.head(interval);
            let mut key_len = None;
            while at < end || key_len.is_none() {
                let parts = match key_len {
                    None => self.first(interval),
                    Some(_) => Parts::rest(self.bytes, at, self.layout.number),
                };
                let parts = parts.ok_or_else(|| block::broken_entry(index, at, "is cut"))?;
                let seq_kind = self.check_entry(&parts, prefix_len, key_len);
                let seq_kind = seq_kind.map_err(|why| block::broken_entry(index, at, why))?;
                if key_len.is_some() {
                    last_head = next_head(last_head, &parts, self.bytes);
                } else if !self.has_clean_head(interval, &parts) {
                    return Err(block::broken_entry(index, at, "has a head longer than its key"));
                }
                summary.add(seq_kind);
                key_len = Some(parts.key_len());
                (at, index) = (parts.end(), index + 1);
            }
        }
        block::check_end(at, self.layout.entries_end)?;
        if index != entry_count {
            return Err(Error::corrupt(format!("block of {index} entries: its trailer says {entry_count}")));
        }
        Ok((summary, is_distinct))
    }

    /// `last_key_len`: length of the previous key of the interval, without the prefix.
    fn check_entry(
        self,
        parts: &Parts,
        prefix_len: usize,
        last_key_len: Option<usize>,
    ) -> std::result::Result<SeqKind, Why> {
        if parts.end() > self.layout.entries_end {
            return Err("is cut");
        }
        if last_key_len.is_some_and(|last| parts.shared > last) {
            return Err("shares more than the key before it has");
        }
        block::check_lens(prefix_len + parts.key_len(), parts.value_len)?;
        let seq_kind = self.layout.number.decode_checked(self.bytes, parts.number_at());
        let seq_kind = seq_kind.ok_or("has a sequence number beyond the limit")?;
        block::check_kind(seq_kind, parts.value_len)?;
        Ok(seq_kind)
    }

    /// Returns true if the head of a key shorter than 8 bytes is filled with zeros.
    fn has_clean_head(self, interval: usize, parts: &Parts) -> bool {
        parts.shared >= HEAD_BYTES || self.head(interval) << (8 * parts.shared) == 0
    }

    /// Checks that the last leaf is padded with its last head and offset.
    fn check_padding(self) -> Result<()> {
        let leaf = &self.bytes[(self.layout.leaf_count - 1) * LEAF_BYTES..];
        let used = self.count() - (self.layout.leaf_count - 1) * LEAF;
        let (heads, offsets) = leaf[..LEAF_BYTES].split_at(LEAF * HEAD_BYTES);
        let (heads, offsets) = (heads.as_chunks::<HEAD_BYTES>().0, offsets.as_chunks::<2>().0);
        let is_padded = heads[used..].iter().all(|head| *head == heads[used - 1])
            && offsets[used..].iter().all(|offset| *offset == offsets[used - 1]);
        if is_padded { Ok(()) } else { Err(Error::corrupt("block: its last leaf is not padded")) }
    }

    /// The first head of each leaf, after the block's prefix.
    fn collect_root(self) -> [u64; ROOT] {
        let mut root = [0; ROOT];
        for (leaf, head) in root.iter_mut().enumerate() {
            let leaf = leaf.min(self.layout.leaf_count - 1);
            let first = self.head(leaf * LEAF).to_be_bytes();
            let mut bytes = [0; HEAD_BYTES];
            let part = self.part(leaf);
            for (byte, from) in bytes.iter_mut().zip(part.iter().chain(&first)) {
                *byte = *from;
            }
            *head = key::head(&bytes);
        }
        root
    }
}

/// The head of an entry's key, computed from the head of the key before it.
fn next_head(last: u64, parts: &Parts, bytes: &[u8]) -> u64 {
    if parts.shared >= HEAD_BYTES {
        return last;
    }
    let replaced = u64::MAX >> (8 * parts.shared);
    last & !replaced | key::head(parts.suffix(bytes)) >> (8 * parts.shared)
}
