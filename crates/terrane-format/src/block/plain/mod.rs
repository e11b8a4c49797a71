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

use super::place::{FIRST_LINES, Intervals, Place};
use super::{Summary, check_kind, check_lens};
use crate::heads::Heads;
use crate::wire;
pub(super) use entry::Header;
use entry::SEQ_KIND_BYTES;

/// Entries from one restart point to the next.
pub const RESTART_INTERVAL: usize = 16;
/// Bits of a number and kind below the number.
const KIND_BITS: u32 = 8;
/// Bytes behind the restart offsets: entries and encoding.
pub(super) const TRAILER_BYTES: usize = 4 + 1;
/// Bytes of one restart offset.
pub(super) const RESTART_BYTES: usize = 4;

/// What is known of the bytes of a plain block.
#[derive(Clone, Debug)]
pub(super) struct Plain {
    /// Bytes of the entries; the restart offsets follow.
    pub(super) entries_len: usize,
    entry_count: usize,
    /// Of the keys at restarts.
    heads: Heads,
}

/// A plain block as it is searched.
#[derive(Clone, Copy)]
pub(super) struct PlainBlock<'a> {
    bytes: &'a [u8],
    plain: &'a Plain,
}

impl Plain {
    /// Checks the structure of a block; returns also how many entries it has.
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
    /// Asks for the heads and the first restart offsets.
    #[inline]
    pub(crate) fn prefetch(self) {
        self.plain.heads.prefetch(self.bytes);
        prefetch(self.bytes.as_ptr().wrapping_add(self.plain.entries_len));
    }

    /// Asks for the first entries and the first restart offsets.
    #[inline]
    pub(crate) fn prefetch_first(self) {
        prefetch_lines(self.bytes.as_ptr(), FIRST_LINES);
        prefetch(self.bytes.as_ptr().wrapping_add(self.plain.entries_len));
    }

    /// The entries' bytes: everything that a [`Header`] may point into.
    #[inline]
    fn entries(self) -> &'a [u8] {
        &self.bytes[..self.plain.entries_len]
    }

    /// The key at restart `index`, which stands whole.
    #[inline]
    fn restart_key(self, index: usize) -> &'a [u8] {
        Header::decode(self.entries(), self.start(index)).map_or(&[], |header| header.suffix(self.entries()))
    }

    /// Walks all entries and checks everything that later access relies on.
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

    /// Makes the entry at `at` the current one; `place` holds the key before it.
    #[inline]
    fn load(self, place: &mut Place, at: usize) {
        let entries = self.entries();
        let Some(header) = Header::decode(entries, at) else {
            place.is_placed = false;
            return;
        };
        place.key.replace(header.shared, self.bytes, header.suffix_at, header.unshared);
        self.show(place, at, &header);
    }

    #[inline]
    fn show(self, place: &mut Place, at: usize, header: &Header) {
        place.at = at;
        place.seq_kind = header.seq_kind(self.entries()).0;
        place.value_at = header.value_at();
        place.end = header.end();
        place.is_placed = true;
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
    fn place_first(self, place: &mut Place, interval: usize) {
        place.interval = interval;
        place.interval_end = self.start(interval + 1);
        self.load(place, self.start(interval));
    }

    #[inline]
    fn place_next(self, place: &mut Place) {
        if place.end >= place.interval_end {
            place.interval += 1;
            place.interval_end = self.start(place.interval + 1);
        }
        self.load(place, place.end);
    }

    fn place_known(self, place: &mut Place, at: usize) {
        match Header::decode(self.entries(), at) {
            Some(header) => self.show(place, at, &header),
            None => place.is_placed = false,
        }
    }

    fn seek(self, place: &mut Place, key: &[u8], seq: SeqNo) {
        place.is_placed = false;
        let from = self.restart_before(key, seq);
        let Some(found) = self.walk_to(from, key, seq) else { return };
        // The walk ends at an entry whose shared bytes are the target's own, so no key before it is needed.
        let header = &found.header;
        place.key.set(key.get(..header.shared).unwrap_or_default());
        place.key.replace(header.shared, self.bytes, header.suffix_at, header.unshared);
        place.interval = from;
        place.interval_end = self.start(from + 1);
        while found.at >= place.interval_end && place.interval + 1 < self.count() {
            place.interval += 1;
            place.interval_end = self.start(place.interval + 1);
        }
        self.show(place, found.at, header);
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
