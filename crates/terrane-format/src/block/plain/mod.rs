//! Encoding 1, "plain": shared prefixes and restart points.
//!
//! ```text
//! block   = entry* restart* entries:u32 encoding:u8
//! entry   = shared:varint unshared:varint value_len:varint suffix seq_kind:u64 value
//! restart = offset:u32            one for every 16th entry, which shares nothing with the one before it
//! ```

mod entry;
mod search;

use terrane_base::prefetch::{prefetch, prefetch_lines};
use terrane_base::{Error, Result, SeqKind, SeqNo};

use super::entry_pos::{EntryPos, FIRST_LINES, Intervals};
use super::{Summary, check_kind, check_lens};
use crate::heads::Heads;
use crate::wire;
pub(super) use entry::Header;
use entry::SEQ_KIND_BYTES;

/// Entries from one restart point to the next.
pub const RESTART_INTERVAL: usize = 16;
/// Bits of the kind, below the sequence number.
const KIND_BITS: u32 = 8;
/// Bytes after the restart offsets: number of entries, and encoding.
pub(super) const TRAILER_BYTES: usize = 4 + 1;
/// Bytes of one restart offset.
pub(super) const RESTART_BYTES: usize = 4;

/// Facts about a plain block that decoding found.
#[derive(Clone, Debug)]
pub(super) struct Plain {
    /// Bytes of the entries; the restart offsets follow.
    pub(super) entries_len: usize,
    entry_count: usize,
    /// Heads of the keys at the restart points.
    heads: Heads,
}

/// A plain block together with its bytes.
#[derive(Clone, Copy)]
pub(super) struct PlainBlock<'a> {
    bytes: &'a [u8],
    plain: &'a Plain,
}

impl Plain {
    /// Checks the structure of a block; also returns the number of entries.
    pub(super) fn decode(bytes: &[u8]) -> Result<(Plain, usize, Summary)> {
        let (entries_len, entry_count) = parse_trailer(bytes)?;
        let mut plain = Plain { entries_len, entry_count, heads: Heads::default() };
        let block = plain.of(bytes);
        let summary = block.walk()?;
        let first_at = Header::decode(block.entries(), 0).map_or(0, |header| header.suffix_at);
        let heads = Heads::collect(block.count(), first_at, |index| block.restart_key(index));
        plain.heads = heads;
        Ok((plain, entry_count, summary))
    }

    /// The block that `self` was decoded from, whose bytes are `bytes`.
    #[inline]
    pub(super) fn of<'a>(&'a self, bytes: &'a [u8]) -> PlainBlock<'a> {
        PlainBlock { bytes, plain: self }
    }

    /// Raises every sequence number in the block that `self` was decoded from.
    pub(super) fn raise_numbers(&self, bytes: &mut [u8], by: u64) {
        let mut at = 0;
        while let Some(header) = Header::decode(&bytes[..self.entries_len], at) {
            let number = SeqKind(header.seq_kind(bytes).0 + (by << KIND_BITS));
            let number_at = header.seq_kind_at();
            bytes[number_at..number_at + SEQ_KIND_BYTES].copy_from_slice(&number.0.to_le_bytes());
            at = header.end();
            if at >= self.entries_len {
                break;
            }
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.heads.memory_bytes()
    }
}

impl<'a> PlainBlock<'a> {
    /// Prefetches the heads and the first restart offsets.
    #[inline]
    pub(crate) fn prefetch(self) {
        self.plain.heads.prefetch(self.bytes);
        prefetch(self.bytes.as_ptr().wrapping_add(self.plain.entries_len));
    }

    /// Prefetches the first entries and the first restart offsets.
    #[inline]
    pub(crate) fn prefetch_first(self) {
        prefetch_lines(self.bytes.as_ptr(), FIRST_LINES);
        prefetch(self.bytes.as_ptr().wrapping_add(self.plain.entries_len));
    }

    /// The entries' bytes; every [`Header`] points into them.
    #[inline]
    fn entries(self) -> &'a [u8] {
        &self.bytes[..self.plain.entries_len]
    }

    /// The key at restart `index`, which is stored whole.
    #[inline]
    fn restart_key(self, index: usize) -> &'a [u8] {
        Header::decode(self.entries(), self.start(index)).map_or(&[], |header| header.suffix(self.entries()))
    }

    /// Walks all entries and checks everything that later accesses rely on.
    fn walk(self) -> Result<Summary> {
        let mut summary = Summary::new(self.plain.entry_count);
        let mut at = 0;
        let mut last_key_len = 0;
        for index in 0..self.plain.entry_count {
            let header =
                Header::decode(self.entries(), at).ok_or_else(|| super::broken_entry(index, at, "is cut"))?;
            let is_restart = index % RESTART_INTERVAL == 0;
            if is_restart && self.start(index / RESTART_INTERVAL) != at {
                return Err(super::broken_entry(index, at, "is not where its restart offset points"));
            }
            self.check_entry(&header, if is_restart { 0 } else { last_key_len })
                .map_err(|why| super::broken_entry(index, at, why))?;
            summary.add(header.seq_kind(self.entries()));
            last_key_len = header.shared + header.unshared;
            at = header.end();
        }
        super::check_end(at, self.plain.entries_len)?;
        Ok(summary)
    }

    fn check_entry(self, header: &Header, shared_max: usize) -> std::result::Result<(), &'static str> {
        if header.end() > self.plain.entries_len {
            return Err("is cut");
        }
        if header.shared > shared_max {
            return Err("shares more than the key before it has");
        }
        check_lens(header.shared + header.unshared, header.value_len)?;
        check_kind(header.seq_kind(self.entries()), header.value_len)
    }

    /// Goes to the entry at `at`; `pos` holds the key of the entry before.
    #[inline]
    fn load(self, pos: &mut EntryPos, at: usize) {
        let entries = self.entries();
        let Some(header) = Header::decode(entries, at) else {
            pos.is_placed = false;
            return;
        };
        pos.key.replace(header.shared, self.bytes, header.suffix_at, header.unshared);
        self.show(pos, at, &header);
    }

    #[inline]
    fn show(self, pos: &mut EntryPos, at: usize, header: &Header) {
        pos.at = at;
        pos.seq_kind = header.seq_kind(self.entries()).0;
        pos.value_at = header.value_at();
        pos.end = header.end();
        pos.is_placed = true;
    }
}

impl<'a> Intervals<'a> for PlainBlock<'a> {
    #[inline]
    fn count(self) -> usize {
        self.plain.entry_count.div_ceil(RESTART_INTERVAL)
    }

    #[inline]
    fn start(self, interval: usize) -> usize {
        if interval >= self.count() {
            return self.plain.entries_len;
        }
        wire::u32_at(self.bytes, self.plain.entries_len + interval * RESTART_BYTES)
            .map_or(self.plain.entries_len, |at| at as usize)
    }

    #[inline]
    fn move_first(self, pos: &mut EntryPos, interval: usize) {
        pos.interval = interval;
        pos.interval_end = self.start(interval + 1);
        self.load(pos, self.start(interval));
    }

    #[inline]
    fn move_next(self, pos: &mut EntryPos) {
        if pos.end >= pos.interval_end {
            pos.interval += 1;
            pos.interval_end = self.start(pos.interval + 1);
        }
        self.load(pos, pos.end);
    }

    fn move_known(self, pos: &mut EntryPos, at: usize) {
        match Header::decode(self.entries(), at) {
            Some(header) => self.show(pos, at, &header),
            None => pos.is_placed = false,
        }
    }

    fn seek(self, pos: &mut EntryPos, key: &[u8], seq: SeqNo) {
        pos.is_placed = false;
        let from = self.restart_before(key, seq);
        let Some(found) = self.walk_to(from, key, seq) else { return };
        // The walk ends at an entry whose shared bytes are equal to the target's, so the key before it is not
        // needed.
        let header = &found.header;
        pos.key.set(key.get(..header.shared).unwrap_or_default());
        pos.key.replace(header.shared, self.bytes, header.suffix_at, header.unshared);
        pos.interval = from;
        pos.interval_end = self.start(from + 1);
        while found.at >= pos.interval_end && pos.interval + 1 < self.count() {
            pos.interval += 1;
            pos.interval_end = self.start(pos.interval + 1);
        }
        self.show(pos, found.at, header);
    }

    #[inline]
    fn find(self, key: &[u8], seq: SeqNo) -> Option<(SeqKind, &'a [u8])> {
        let from = self.restart_before(key, seq);
        let found = self.walk_to(from, key, seq).filter(|found| found.is_equal)?;
        let entries = self.entries();
        Some((found.header.seq_kind(entries), found.header.value(entries)))
    }
}

/// Splits a block into its parts: bytes of the entries, and their number.
fn parse_trailer(bytes: &[u8]) -> Result<(usize, usize)> {
    let trailer = bytes.len().checked_sub(TRAILER_BYTES);
    let trailer = trailer.ok_or_else(|| Error::corrupt(format!("block of {} bytes is cut", bytes.len())))?;
    let entry_count = wire::u32_at(bytes, trailer).unwrap_or(0) as usize;
    let restarts_len = entry_count.div_ceil(RESTART_INTERVAL) * RESTART_BYTES;
    let entries_len = trailer.checked_sub(restarts_len);
    let entries_len = entries_len.filter(|len| entry_count <= len / entry::ENTRY_BYTES_MIN);
    entries_len.map(|len| (len, entry_count)).ok_or_else(|| {
        Error::corrupt(format!("block of {} bytes cannot hold {entry_count} entries", bytes.len()))
    })
}
