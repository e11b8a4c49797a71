//! Data blocks: sorted entries with shared prefixes and restart points (encoding 1, "plain").
//!
//! ```text
//! block   = entry* restart* entries:u32 encoding:u8
//! entry   = shared:varint unshared:varint value_len:varint suffix seq_kind:u64 value
//! restart = offset:u32            one for every 16th entry, which shares nothing with the one before it
//! ```
//!
//! Entries are in internal order. [`Block::decode`] walks the bytes once; after that every offset and length in
//! them is known to be good, and search and cursors neither fail nor allocate beyond one key. What is *not*
//! checked there is the order of keys ([`Block::check_order`] does): in a block whose keys lie out of order a
//! search ends, and gives some entry or none.

mod builder;
mod cursor;
mod describe;
mod entry;
mod search;

pub use builder::BlockBuilder;
pub use cursor::BlockCursor;
pub use describe::describe;

use terrane_base::{Error, RecordKind, Result, SeqKind, key};

use crate::heads::Heads;
use crate::wire;
use entry::Header;

/// Number of the encoding that this module writes: the last byte of a block.
pub const ENCODING_PLAIN: u8 = 1;
/// Entries from one restart point to the next.
pub const RESTART_INTERVAL: usize = 16;
/// Bytes behind the restart offsets: entries and encoding.
const TRAILER_BYTES: usize = 4 + 1;
/// Bytes of one restart offset.
const RESTART_BYTES: usize = 4;

/// Checksum of a block as stored, that is, after compression. It stands in the block's index row.
#[inline]
#[must_use]
pub fn checksum(stored: &[u8]) -> u32 {
    crate::checksum::crc32c(u32::from_le_bytes(*b"BLCK"), stored)
}

/// A decompressed data block whose structure has been checked.
#[derive(Debug)]
pub struct Block {
    bytes: Vec<u8>,
    /// Bytes of the entries; the restart offsets follow.
    entries_len: usize,
    entry_count: usize,
    /// Of the keys at restarts.
    heads: Heads,
}

/// What a walk over a block found: the facts that its index row repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) entries: u32,
    pub(crate) deletes: u32,
    pub(crate) seq_min: u64,
    pub(crate) seq_max: u64,
}

impl Block {
    /// Checks the structure of a block and takes it over.
    ///
    /// # Errors
    /// `Corrupt`, naming the byte, if the encoding is unknown, or any length, offset, kind or restart is wrong.
    pub fn decode(bytes: Vec<u8>) -> Result<Block> {
        Ok(Block::decode_with_summary(bytes)?.0)
    }

    pub(crate) fn decode_with_summary(mut bytes: Vec<u8>) -> Result<(Block, Summary)> {
        let (entries_len, entry_count) = parse_trailer(&bytes)?;
        bytes.shrink_to_fit();
        let mut block = Block { bytes, entries_len, entry_count, heads: Heads::default() };
        let summary = block.walk()?;
        block.heads = Heads::collect(block.restart_count(), |index| block.restart_key(index));
        Ok((block, summary))
    }

    /// How many entries the block holds.
    #[inline]
    #[must_use]
    pub fn entry_count(&self) -> usize {
        self.entry_count
    }

    /// Asks for the memory in which [`Block::find`] begins.
    #[inline]
    pub fn prefetch(&self) {
        self.heads.prefetch();
        terrane_base::prefetch::prefetch_lines(self.bytes.as_ptr().wrapping_add(self.entries_len), 1);
    }

    /// The block's bytes as decoded.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of memory that the block holds.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Block>() + self.bytes.capacity() + self.heads.memory_bytes()
    }

    /// Checks that the entries are in internal order, strictly.
    ///
    /// # Errors
    /// `Corrupt`, naming the entry.
    pub fn check_order(&self) -> Result<()> {
        let mut cursor = BlockCursor::new();
        let mut last_key = Vec::new();
        let mut last_seq_kind = None;
        let mut index = 0;
        cursor.seek_first(self);
        while let Some(entry) = cursor.entry(self) {
            if last_seq_kind.is_some_and(|last| !in_order(&last_key, last, entry.key, entry.seq_kind)) {
                return Err(Error::corrupt(format!("block entry {index} is out of order")));
            }
            last_key.clear();
            last_key.extend_from_slice(entry.key);
            last_seq_kind = Some(entry.seq_kind);
            index += 1;
            cursor.next(self);
        }
        Ok(())
    }

    /// The entries' bytes: everything that a [`Header`] may point into.
    #[inline]
    fn entries(&self) -> &[u8] {
        &self.bytes[..self.entries_len]
    }

    #[inline]
    fn restart_count(&self) -> usize {
        self.entry_count.div_ceil(RESTART_INTERVAL)
    }

    /// Offset of the entry at restart `index`, which is less than [`Block::restart_count`].
    #[inline]
    fn restart(&self, index: usize) -> usize {
        wire::u32_at(&self.bytes, self.entries_len + index * RESTART_BYTES)
            .map_or(self.entries_len, |at| at as usize)
    }

    /// The key at restart `index`, which stands whole.
    #[inline]
    fn restart_key(&self, index: usize) -> &[u8] {
        Header::decode(self.entries(), self.restart(index))
            .map_or(&[], |header| header.suffix(self.entries()))
    }

    /// Walks all entries and checks everything that later access relies on.
    fn walk(&self) -> Result<Summary> {
        let mut summary =
            Summary { entries: self.entry_count as u32, deletes: 0, seq_min: u64::MAX, seq_max: 0 };
        let mut at = 0;
        let mut last_key_len = 0;
        for index in 0..self.entry_count {
            let header =
                Header::decode(self.entries(), at).ok_or_else(|| broken_entry(index, at, "is cut"))?;
            let is_restart = index % RESTART_INTERVAL == 0;
            if is_restart && self.restart(index / RESTART_INTERVAL) != at {
                return Err(broken_entry(index, at, "is not where its restart offset points"));
            }
            self.check_entry(&header, if is_restart { 0 } else { last_key_len })
                .map_err(|why| broken_entry(index, at, why))?;
            let seq_kind = header.seq_kind(self.entries());
            summary.deletes += u32::from(seq_kind.is_delete());
            summary.seq_min = summary.seq_min.min(seq_kind.seq().0);
            summary.seq_max = summary.seq_max.max(seq_kind.seq().0);
            last_key_len = header.shared + header.unshared;
            at = header.end();
        }
        if at != self.entries_len {
            return Err(Error::corrupt(format!(
                "block has {} bytes behind its last entry at byte {at}",
                self.entries_len - at
            )));
        }
        Ok(summary)
    }

    fn check_entry(&self, header: &Header, shared_max: usize) -> std::result::Result<(), &'static str> {
        if header.end() > self.entries_len {
            return Err("is cut");
        }
        if header.shared > shared_max {
            return Err("shares more than the key before it has");
        }
        if header.shared + header.unshared > key::KEY_BYTES_MAX || header.value_len > key::VALUE_BYTES_MAX {
            return Err("is longer than the limits");
        }
        match header.seq_kind(self.entries()).kind() {
            None => Err("is of a kind that this version does not know"),
            Some(RecordKind::Delete) if header.value_len != 0 => Err("is a delete with a value"),
            Some(_) => Ok(()),
        }
    }
}

/// Splits a block into its parts: bytes of the entries, and their number.
fn parse_trailer(bytes: &[u8]) -> Result<(usize, usize)> {
    let trailer = bytes.len().checked_sub(TRAILER_BYTES);
    let trailer = trailer.ok_or_else(|| Error::corrupt(format!("block of {} bytes is cut", bytes.len())))?;
    let encoding = bytes[bytes.len() - 1];
    if encoding != ENCODING_PLAIN {
        return Err(Error::corrupt(format!("block encoding: expected {ENCODING_PLAIN}, found {encoding}")));
    }
    let entry_count = wire::u32_at(bytes, trailer).unwrap_or(0) as usize;
    let restarts_len = entry_count.div_ceil(RESTART_INTERVAL) * RESTART_BYTES;
    let entries_len = trailer.checked_sub(restarts_len);
    let entries_len = entries_len.filter(|len| entry_count <= len / entry::ENTRY_BYTES_MIN);
    entries_len.map(|len| (len, entry_count)).ok_or_else(|| {
        Error::corrupt(format!("block of {} bytes cannot hold {entry_count} entries", bytes.len()))
    })
}

/// Whether the second entry comes strictly after the first in internal order.
fn in_order(key: &[u8], seq_kind: SeqKind, next_key: &[u8], next_seq_kind: SeqKind) -> bool {
    key < next_key || (key == next_key && seq_kind.seq() > next_seq_kind.seq())
}

#[cold]
fn broken_entry(index: usize, at: usize, why: &str) -> Error {
    Error::corrupt(format!("block entry {index} at byte {at} {why}"))
}
