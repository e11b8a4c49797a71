//! Data blocks: sorted entries in one of two encodings; the last byte of a block names the encoding.
//!
//! * 1, "plain" (`plain`): shared prefixes, and a restart point every 16 entries.
//! * 2, "two-layer" (`two_layer`): a search tree over up to 128 short runs of entries; for blocks of up to 64
//!   KiB.
//!
//! Entries are in internal order. [`Block::decode`] checks every offset and length once; after that, search
//! and cursors neither fail nor allocate more than one key. It does *not* check the order of keys
//! ([`Block::check_order`] does): in a block with keys out of order a search ends and returns some entry or
//! none.
//!
//! Both encodings implement the trait `Intervals` of `entry_pos`, so search and cursors are written once for
//! both.

mod builder;
mod cursor;
mod describe;
mod entry_pos;
mod key_buffer;
mod ordered;
mod plain;
mod two_layer;

pub use builder::BlockBuilder;
pub use cursor::BlockCursor;
pub use describe::describe;
pub use plain::RESTART_INTERVAL;
pub use two_layer::INTERVALS_MAX;

use std::ops::Range;

use terrane_base::{Collation, Entry, Error, RecordKind, Result, SeqKind, SeqNo, key};

use cursor::with;
use entry_pos::Intervals;

/// Number of the plain encoding: the last byte of a block.
pub const ENCODING_PLAIN: u8 = 1;
/// Number of the two-layer encoding.
pub const ENCODING_TWO_LAYER: u8 = 2;

/// Checksum of a block as stored, after compression. The block's index row repeats it.
#[inline]
#[must_use]
pub fn checksum(stored: &[u8]) -> u32 {
    crate::checksum::crc32c(u32::from_le_bytes(*b"BLCK"), stored)
}

/// A decompressed data block whose structure has been checked. The owner decides in which memory the bytes
/// lie.
#[derive(Debug)]
pub struct Block<B = Vec<u8>> {
    layout: Layout,
    bytes: B,
    entry_count: usize,
    /// Key order of the table; not stored in the block.
    collation: Collation,
}

/// Facts about a block's bytes that decoding found, per encoding.
#[derive(Clone, Debug)]
enum Layout {
    Plain(plain::Plain),
    TwoLayer(two_layer::TwoLayer),
}

/// Counts of a decoded block; the block's index row repeats these facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) entries: u32,
    pub(crate) deletes: u32,
    pub(crate) seq_min: u64,
    pub(crate) seq_max: u64,
}

impl Summary {
    fn new(entries: usize) -> Summary {
        Summary { entries: entries as u32, deletes: 0, seq_min: u64::MAX, seq_max: 0 }
    }

    #[inline]
    fn add(&mut self, seq_kind: SeqKind) {
        self.deletes += u32::from(seq_kind.is_delete());
        self.seq_min = self.seq_min.min(seq_kind.seq().0);
        self.seq_max = self.seq_max.max(seq_kind.seq().0);
    }
}

impl Block {
    /// Checks the structure of a block and takes it over.
    ///
    /// # Errors
    /// `Corrupt`, naming the byte, if the encoding is unknown, or any length, offset, kind or restart is
    /// wrong.
    pub fn decode(bytes: Vec<u8>) -> Result<Block> {
        Ok(Block::decode_with_summary(bytes)?.0)
    }

    pub(crate) fn decode_with_summary(bytes: Vec<u8>) -> Result<(Block, Summary)> {
        let (layout, entry_count, summary) = match bytes.last() {
            Some(&ENCODING_PLAIN) => {
                let (plain, entry_count, summary) = plain::Plain::decode(&bytes)?;
                (Layout::Plain(plain), entry_count, summary)
            }
            Some(&ENCODING_TWO_LAYER) => {
                let (two_layer, entry_count, summary) = two_layer::TwoLayer::decode(&bytes)?;
                (Layout::TwoLayer(two_layer), entry_count, summary)
            }
            last => return Err(unknown_encoding(last)),
        };
        Ok((Block { layout, bytes, entry_count, collation: Collation::BYTES }, summary))
    }

    /// The buffer of the block's bytes, for another block.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The same block, with the key order of its table.
    #[must_use]
    pub fn ordered(mut self, collation: &Collation) -> Self {
        if !collation.is_bytes() {
            self.collation = collation.clone();
        }
        self
    }

    /// Adds `by` to every sequence number. Requires: no number then exceeds the greatest one.
    pub(crate) fn raise_numbers(&mut self, by: u64) {
        match &mut self.layout {
            Layout::Plain(plain) => plain.raise_numbers(&mut self.bytes, by),
            Layout::TwoLayer(two_layer) => two_layer.raise_numbers(&mut self.bytes, by),
        }
    }

    /// Bytes of memory that the block holds.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let layout = match &self.layout {
            Layout::Plain(plain) => plain.memory_bytes(),
            Layout::TwoLayer(two_layer) => two_layer.memory_bytes(),
        };
        size_of::<Block>() + self.bytes.capacity() + layout
    }
}

impl<B: AsRef<[u8]>> Block<B> {
    /// The same block in other memory. Requires: `place` returns the bytes that it is given.
    #[must_use]
    pub fn place<C: AsRef<[u8]>>(&self, place: impl FnOnce(&[u8]) -> C) -> Block<C> {
        let bytes = place(self.bytes());
        debug_assert!(bytes.as_ref() == self.bytes(), "a block's bytes do not change with their place");
        let (layout, collation) = (self.layout.clone(), self.collation.clone());
        Block { layout, bytes, entry_count: self.entry_count, collation }
    }

    /// The newest version of `key` with a number up to `seq`, if this block holds it.
    #[inline(always)]
    #[must_use]
    pub fn find<'a>(&'a self, key: &'a [u8], seq: SeqNo) -> Option<Entry<'a>> {
        let (seq_kind, value) = match self.collation.is_bytes() {
            true => with!(self, intervals => intervals.find(key, seq))?,
            false => self.find_ordered(key, seq)?,
        };
        Some(Entry { key, seq_kind, value })
    }

    /// The version `seq` of `key`, if it is entry number `entry` of the block and can be read alone there.
    /// `None` says nothing about the block.
    #[inline]
    #[must_use]
    pub fn find_at<'a>(&'a self, entry: u32, key: &'a [u8], seq: SeqNo) -> Option<Entry<'a>> {
        let (seq_kind, value) = self.locate_at(entry, key, seq)?;
        Some(Entry { key, seq_kind, value: self.bytes().get(value)? })
    }

    /// As [`Block::find_at`]: the kind of the version, and where its value lies in the bytes of the block,
    /// whatever they are.
    #[inline]
    #[must_use]
    pub fn locate_at(&self, entry: u32, key: &[u8], seq: SeqNo) -> Option<(SeqKind, Range<usize>)> {
        let located = match &self.layout {
            Layout::Plain(plain) => plain.of(self.bytes()).locate_at(entry as usize, key, seq),
            Layout::TwoLayer(layout) => layout.of(self.bytes()).locate_at(entry as usize, key, seq),
        };
        debug_assert!(
            located.as_ref().is_none_or(|(_, value)| value.end <= self.bytes().len()),
            "a value that is located lies in the block"
        );
        located
    }

    #[cold]
    fn find_ordered(&self, key: &[u8], seq: SeqNo) -> Option<(SeqKind, &[u8])> {
        let (seq_kind, value) =
            with!(self, intervals => ordered::find(intervals, &self.collation, key, seq))?;
        Some((seq_kind, self.bytes().get(value)?))
    }

    /// How many entries the block holds.
    #[inline]
    #[must_use]
    pub fn entry_count(&self) -> usize {
        self.entry_count
    }

    /// Prefetches the memory in which [`Block::find`] of `key` begins. Reads the block's struct, not its
    /// bytes.
    #[inline]
    pub fn prefetch(&self, key: &[u8]) {
        match &self.layout {
            Layout::Plain(plain) => plain.of(self.bytes()).prefetch(),
            Layout::TwoLayer(two_layer) => two_layer.of(self.bytes()).prefetch_leaf(key),
        }
    }

    /// Prefetches the entry that [`Block::find`] of `key` will compare, if one step can find it. Call it when
    /// the memory of [`Block::prefetch`] has arrived.
    #[inline]
    pub fn prefetch_entry(&self, key: &[u8]) {
        if let Layout::TwoLayer(two_layer) = &self.layout {
            two_layer.of(self.bytes()).prefetch_entry(key);
        }
    }

    /// Prefetches the memory in which a walk from the first entry begins. Reads the block's struct, not its
    /// bytes.
    #[inline]
    pub fn prefetch_first(&self) {
        match &self.layout {
            Layout::Plain(plain) => plain.of(self.bytes()).prefetch_first(),
            Layout::TwoLayer(two_layer) => two_layer.of(self.bytes()).prefetch_first(),
        }
    }

    /// The block's bytes as decoded.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Checks that the entries are strictly in internal order.
    ///
    /// # Errors
    /// `Corrupt`, naming the entry.
    pub fn check_order(&self) -> Result<()> {
        if self.collation.is_missing() {
            return Ok(());
        }
        let mut cursor = BlockCursor::new();
        let mut last_key = Vec::new();
        let mut last_seq_kind = None;
        let mut index = 0;
        cursor.seek_first(self);
        while let Some(entry) = cursor.entry(self) {
            if last_seq_kind.is_some_and(|last| !in_order(&self.collation, &last_key, last, entry)) {
                return Err(Error::corrupt(format!("block entry {index} is out of order")).of_order());
            }
            last_key.clear();
            last_key.extend_from_slice(entry.key);
            last_seq_kind = Some(entry.seq_kind);
            index += 1;
            cursor.next(self);
        }
        Ok(())
    }
}

/// Returns true if `next` comes strictly after (`key`, `seq_kind`) in internal order.
fn in_order(collation: &Collation, key: &[u8], seq_kind: SeqKind, next: Entry<'_>) -> bool {
    collation.lt(key, next.key) || (key == next.key && seq_kind.seq() > next.seq_kind.seq())
}

/// The reason why an entry is refused.
type Why = &'static str;

fn check_lens(key_len: usize, value_len: usize) -> std::result::Result<(), Why> {
    if key_len > key::KEY_BYTES_MAX || value_len > key::VALUE_BYTES_MAX {
        return Err("has a key or value longer than the limit");
    }
    Ok(())
}

fn check_kind(seq_kind: SeqKind, value_len: usize) -> std::result::Result<(), Why> {
    match seq_kind.kind() {
        None => Err("is of a kind that this version does not know"),
        Some(RecordKind::RangeDelete) => Err("is a range delete, which no block may have"),
        Some(kind) if kind.is_delete() && value_len != 0 => Err("is a delete with a value"),
        Some(_) => Ok(()),
    }
}

/// Checks that the last entry, which ends at `at`, ends where the entries' bytes do.
fn check_end(at: usize, entries_end: usize) -> Result<()> {
    if at != entries_end {
        return Err(Error::corrupt(format!(
            "block has {} bytes after its last entry at byte {at}",
            entries_end.saturating_sub(at)
        )));
    }
    Ok(())
}

#[cold]
fn broken_entry(index: usize, at: usize, why: &str) -> Error {
    Error::corrupt(format!("block entry {index} at byte {at} {why}"))
}

#[cold]
fn unknown_encoding(last: Option<&u8>) -> Error {
    let found = last.map_or_else(|| "no byte".to_owned(), u8::to_string);
    Error::corrupt(format!(
        "block encoding: expected {ENCODING_PLAIN} or {ENCODING_TWO_LAYER}, found {found}"
    ))
}
