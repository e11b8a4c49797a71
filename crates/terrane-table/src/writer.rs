//! Builds one extent after the other.
//!
//! 1. [`ExtentWriter::add`] collects entries into a block; a full block is compressed and appended to one
//!    buffer, and its index row and the hashes of its keys are kept.
//! 2. [`ExtentWriter::add_block`] copies a stored block of another extent without decoding it. Only its keys
//!    are read, for the filter; `docs/design/0003-filter.md` compares this with storing hashes.
//! 3. [`ExtentWriter::add_range_delete`] collects range deletes, independently of the entries and before
//!    those that they cover.
//! 4. [`ExtentWriter::finish`] adds index, filter, range deletes and footer, and writes the whole at once.
//!
//! The writer reuses its memory from extent to extent: a slot for the extent, a block, the index and eight
//! bytes per key. The caller ends an extent in time: while [`ExtentWriter::fits`] or
//! [`ExtentWriter::fits_block`] returns true, the extent stays within one slot. All versions of a key belong
//! in one extent, or levels would overlap: the caller ends extents between keys, even if that makes one
//! larger than a slot.

mod copied;
mod prefixes;
mod ranges;
mod seal;
mod settings;
mod size;

use prefixes::Prefixes;
pub use settings::WriterSettings;

use terrane_base::{Collation, Entry, Error, Moment, Result, SeqNo, key, varint};
use terrane_device::Buffer;
use terrane_format::block::{self, BlockBuilder, BlockCursor};
use terrane_format::codec::Encoder;
use terrane_format::extent::references::REFERENCE_BYTES_MAX;
use terrane_format::extent::{self, Expiry, ExtentMeta, Origin, References};
use terrane_format::filter;
use terrane_format::index::{IndexBuilder, IndexRow};
use terrane_format::range_deletes::Fragment;
use terrane_storage::{SLOT_BYTES, Store};

/// Most bytes of an entry besides key and value: three lengths and the sequence number.
const ENTRY_HEADER_MAX: usize = 3 * varint::BYTES_MAX + 8;
/// Most bytes of an index row besides its keys.
const ROW_FIXED_MAX: usize = 64;
/// Most bytes that an entry adds to an extent besides key and value, if it begins a block: its header, the
/// block's trailer and restart, its index row, a line of the filter.
const ENTRY_OVERHEAD_MAX: usize = ENTRY_HEADER_MAX + 16 + ROW_FIXED_MAX + 64;

/// Sums over the blocks of an extent.
#[derive(Debug)]
struct Totals {
    raw_bytes: u64,
    entries: u64,
    deletes: u64,
    seq_min: SeqNo,
    seq_max: SeqNo,
}

impl Totals {
    const ZERO: Totals =
        Totals { raw_bytes: 0, entries: 0, deletes: 0, seq_min: SeqNo::MAX, seq_max: SeqNo(0) };

    fn add(&mut self, row: &IndexRow<'_>) {
        self.raw_bytes += u64::from(row.raw_len);
        self.entries += u64::from(row.entries);
        self.deletes += u64::from(row.deletes);
        self.seq_min = self.seq_min.min(row.seq_min);
        self.seq_max = self.seq_max.max(row.seq_max);
        debug_assert!(self.deletes <= self.entries, "each delete is an entry");
        debug_assert!(self.seq_min <= self.seq_max, "an extent with entries has numbers");
    }
}

/// Builds an extent in memory and writes it in one piece; reused from extent to extent.
#[derive(Debug)]
pub struct ExtentWriter {
    settings: WriterSettings,
    /// Key order of the table.
    collation: Collation,
    encoder: Encoder,
    block: BlockBuilder,
    /// The blocks so far, as stored.
    bytes: Buffer,
    index: IndexBuilder,
    /// Hash of every key, once each; of the prefixes of keys; and the extractor of these prefixes.
    hashes: Vec<u64>,
    prefixes: Prefixes,
    totals: Totals,
    smallest: Vec<u8>,
    /// Last key so far, and the number of its last version; `None` after a copied block.
    last_key: Vec<u8>,
    last_seq: Option<SeqNo>,
    cursor: BlockCursor,
    /// Sorted and disjoint.
    range_deletes: Vec<Fragment>,
    /// Bytes of the part with the range deletes.
    range_bytes: usize,
    /// Expiry times of the entries so far that expire.
    moments: Vec<Moment>,
    /// The value tables that the entries so far point into.
    references: References,
    /// Where the extents come from, if they say so, and the bytes that its part takes at most.
    origin: Option<(Box<Origin>, usize)>,
}

impl ExtentWriter {
    /// A writer for extents that are built as `settings` say.
    ///
    /// # Errors
    /// `Invalid` if this build cannot write the compression, or a setting is out of range.
    pub fn new(settings: WriterSettings) -> Result<Self> {
        settings.check()?;
        Ok(ExtentWriter {
            settings,
            collation: Collation::BYTES,
            encoder: Encoder::at_level(settings.compression, settings.zstd_level)?,
            block: BlockBuilder::new(settings.block_encoding),
            bytes: Buffer::with_capacity(SLOT_BYTES),
            index: IndexBuilder::new(),
            hashes: Vec::new(),
            prefixes: Prefixes::default(),
            totals: Totals::ZERO,
            smallest: Vec::new(),
            last_key: Vec::new(),
            last_seq: None,
            cursor: BlockCursor::new(),
            range_deletes: Vec::new(),
            range_bytes: 0,
            moments: Vec::new(),
            references: References::default(),
            origin: None,
        })
    }

    /// Sets the key order of the table. Requires: nothing was added.
    #[must_use]
    pub fn ordered(self, collation: &Collation) -> Self {
        ExtentWriter { block: self.block.ordered(collation), collation: collation.clone(), ..self }
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// `Invalid` if it does not come strictly after the last one in internal order, is beyond the limits of
    /// `terrane_base::key`, or the extent would exceed the largest number of slots.
    pub fn add(&mut self, entry: Entry<'_>) -> Result<()> {
        key::check_key(entry.key)?;
        key::check_value(entry.value)?;
        let entry_len = entry.key.len() + entry.value.len() + ENTRY_HEADER_MAX;
        if !self.block.is_empty()
            && (self.block.estimated_bytes() + entry_len > self.settings.block_bytes
                || self.block.is_full_of_pointers())
        {
            self.cut_block()?;
        }
        if self.block.is_empty() {
            self.check_follows(entry.key, Some(entry.seq_kind.seq()))?;
        }
        self.block.add(entry)?;
        Expiry::note(&mut self.moments, entry.seq_kind, entry.value);
        self.references.note(&entry);
        if self.settings.filter_bits_per_key > 0 {
            self.push_hash(entry.key);
        }
        debug_assert!(self.last_key() == entry.key, "the entry that was added is the last one");
        Ok(())
    }

    /// Adds a block of another extent as it is stored there. `row.offset` is ignored. `is_wrapped`: the other
    /// extent has entries that expire, or pointers to values.
    ///
    /// # Errors
    /// `Corrupt` if `stored` is not the block of `row`; `Invalid` if its first key is not greater than the
    /// last one here (versions of one key cannot be joined without decoding), or as [`ExtentWriter::add`].
    pub fn add_block(&mut self, row: &IndexRow<'_>, stored: &[u8], is_wrapped: bool) -> Result<()> {
        self.cut_block()?;
        debug_assert!(self.block.is_empty(), "a copied block follows whole blocks");
        self.check_follows(row.first_key, None)?;
        row.check_stored(stored)?;
        if self.settings.filter_bits_per_key > 0 || is_wrapped {
            self.note_entries_of(row, stored)?;
        }
        let row = IndexRow { offset: self.block_offset()?, ..*row };
        self.bytes.extend_from_slice(stored);
        self.add_row(&row, None);
        Ok(())
    }

    /// Returns true if nothing was added yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.has_entries() && self.range_deletes.is_empty()
    }

    /// Returns true if an entry was added.
    #[must_use]
    pub fn has_entries(&self) -> bool {
        !self.block.is_empty() || !self.index.is_empty()
    }

    /// The last key added. Requires: there are entries.
    #[must_use]
    pub fn last_key(&self) -> &[u8] {
        if self.block.is_empty() { &self.last_key } else { self.block.last_key() }
    }

    /// Bytes of the extent if it were finished now; slightly less if the current block compresses.
    #[must_use]
    pub fn estimated_bytes(&self) -> usize {
        extent::extent_bytes_with(self.content_bytes(), self.form_max())
    }

    /// Returns true if the extent stays within one slot if an entry of this size is added. An empty extent
    /// takes any.
    #[inline]
    #[must_use]
    pub fn fits(&self, key_len: usize, value_len: usize) -> bool {
        // The key may be stored in an index row as first and as last key, too.
        let added = 3 * key_len + value_len + ENTRY_OVERHEAD_MAX;
        self.is_empty() || self.extent_bytes_with(added) <= SLOT_BYTES
    }

    /// Returns true if the extent stays within one slot if this block is added; `is_wrapped`: its entries may
    /// be pointers. An empty extent takes any.
    #[must_use]
    pub fn fits_block(&self, row: &IndexRow<'_>, is_wrapped: bool) -> bool {
        // Each entry may add a key and a prefix.
        let each = if self.prefixes.are_kept() { 2 } else { 1 };
        let filter = self.filter_bytes_with(row.entries as usize * each) - self.filter_bytes();
        // Each of its pointers may lead into a value table that is not in the list yet.
        let may_point = is_wrapped && self.settings.may_point;
        let pointers = if may_point { row.entries as usize * REFERENCE_BYTES_MAX } else { 0 };
        let added = row.stored_len as usize + row.encoded_len() + filter + pointers.min(SLOT_BYTES / 64);
        self.is_empty() || self.extent_bytes_with(added) <= SLOT_BYTES
    }

    /// Finishes the extent, writes it to newly allocated slots of `store` and starts over. It is durable
    /// after the next [`Store::sync`]. Requires: not empty.
    ///
    /// # Errors
    /// As [`Store::allocate`] and [`Store::write`]; then the writer is empty and the slots are freed.
    pub fn finish(&mut self, store: &dyn Store) -> Result<ExtentMeta> {
        self.finish_showing(store, |_, _| {})
    }

    /// [`ExtentWriter::finish`] that shows the extent's description and bytes once they are written.
    ///
    /// # Errors
    /// As [`ExtentWriter::finish`].
    pub fn finish_showing(
        &mut self,
        store: &dyn Store,
        show: impl FnOnce(&ExtentMeta, &[u8]),
    ) -> Result<ExtentMeta> {
        let written = self.seal().and_then(|mut meta| {
            meta.id = store.allocate_for(meta.slots, self.bytes.len() as u64)?;
            if let Err(error) = store.write(meta.id, &self.bytes) {
                // The error of the write matters more. Slots that cannot be freed now are free after the next
                // open.
                let _ = store.free(meta.id, meta.slots);
                return Err(error);
            }
            debug_assert!(
                meta.bytes as usize == self.bytes.len(),
                "the manifest would say another length than was written"
            );
            show(&meta, &self.bytes);
            Ok(meta)
        });
        self.reset();
        written
    }

    /// Finishes the extent and returns its bytes, with a meta whose id is 0:0. Requires: not empty.
    ///
    /// # Errors
    /// `Invalid` if the extent exceeds the largest number of slots.
    pub fn finish_bytes(&mut self) -> Result<(Vec<u8>, ExtentMeta)> {
        let sealed = self.seal();
        let bytes = std::mem::take(&mut *self.bytes);
        debug_assert!(
            sealed.as_ref().map_or(true, |meta| meta.bytes as usize == bytes.len()),
            "the list of extents would say another length"
        );
        self.reset();
        Ok((bytes, sealed?))
    }

    /// Takes back the bytes of [`ExtentWriter::finish_bytes`], for the next extent. Requires: empty.
    pub fn recycle(&mut self, mut bytes: Vec<u8>) {
        assert!(self.is_empty());
        bytes.clear();
        self.bytes = bytes.into();
    }

    /// Discards the current extent.
    pub fn reset(&mut self) {
        self.block.reset();
        self.index.reset();
        self.bytes.clear();
        self.hashes.clear();
        self.prefixes.reset();
        self.totals = Totals::ZERO;
        self.smallest.clear();
        self.last_key.clear();
        self.last_seq = None;
        self.range_deletes.clear();
        self.range_bytes = 0;
        self.moments.clear();
        self.references.clear();
        self.set_replaced(Vec::new());
        assert!(self.is_empty() && self.bytes.is_empty(), "the next extent begins empty");
        // A very large value must not make the writer's memory large for ever.
        self.bytes.shrink_to(SLOT_BYTES);
        self.block.shrink(self.settings.block_bytes * 2);
        self.encoder.shrink(self.settings.block_bytes * 2);
    }

    #[inline]
    fn push_hash(&mut self, key: &[u8]) {
        debug_assert!(
            self.settings.filter_bits_per_key > 0,
            "hashes of an extent without filter are memory for nothing"
        );
        let hash = filter::hash(key);
        // Versions of one key follow each other. A different key with the same hash needs no bits of its own.
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
            self.prefixes.push(key);
        }
    }

    /// Checks that a block beginning with `key` may follow the last one.
    fn check_follows(&self, key: &[u8], seq: Option<SeqNo>) -> Result<()> {
        debug_assert!(self.block.is_empty(), "the last key is that of the last whole block");
        let follows = match self.collation.cmp(&self.last_key, key) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => seq.zip(self.last_seq).is_some_and(|(seq, last)| last > seq),
            std::cmp::Ordering::Greater => false,
        };
        if follows || self.index.is_empty() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "key {} does not come after {}: entries and blocks are added in internal order",
            terrane_format::dump::text(key),
            terrane_format::dump::text(&self.last_key)
        ))
        .of_order())
    }

    /// Stores the current block, if there is one.
    fn cut_block(&mut self) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let offset = self.block_offset()?;
        let start = self.bytes.len();
        let mut block = std::mem::take(&mut self.block);
        let raw = block.finish();
        let raw_len = raw.len() as u32;
        let compression = self.encoder.encode(raw, &mut self.bytes)?;
        let stored = &self.bytes[start..];
        let (seq_min, seq_max) = block.seq_range();
        assert!(seq_min <= seq_max, "a block with entries has numbers from {seq_min} to {seq_max}");
        let row = IndexRow {
            offset,
            stored_len: stored.len() as u32,
            raw_len,
            compression,
            checksum: block::checksum(stored),
            entries: block.entry_count(),
            deletes: block.deletes(),
            seq_min: SeqNo(seq_min),
            seq_max: SeqNo(seq_max),
            first_key: block.first_key(),
            last_key: block.last_key(),
        };
        self.add_row(&row, Some(block.last_seq()));
        block.reset();
        self.block = block;
        Ok(())
    }

    fn add_row(&mut self, row: &IndexRow<'_>, last_seq: Option<SeqNo>) {
        if self.index.is_empty() {
            self.smallest.extend_from_slice(row.first_key);
        }
        let end = row.offset as usize + row.stored_len as usize;
        assert!(
            end == self.bytes.len(),
            "a row says that its block ends at {end}, not at {}",
            self.bytes.len()
        );
        self.index.add(row);
        self.totals.add(row);
        self.last_key.clear();
        self.last_key.extend_from_slice(row.last_key);
        self.last_seq = last_seq;
    }
}
