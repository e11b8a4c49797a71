//! Builds one extent after the other.
//!
//! 1. [`ExtentWriter::add`] collects entries into a block; a full block is compressed behind those before it in
//!    one buffer, and its index row and the hashes of its keys are kept.
//! 2. [`ExtentWriter::add_block`] copies a stored block of another extent undecoded. Only its keys are walked,
//!    for the filter; `docs/design/0003-filter.md` weighs this against storing hashes.
//! 3. [`ExtentWriter::add_range_delete`] collects range deletes, beside and before the entries that they lie among.
//! 4. [`ExtentWriter::finish`] adds index, filter, range deletes and footer, and writes the whole at once.
//!
//! The writer keeps its memory from extent to extent: a slot for the extent, a block, the index and eight bytes
//! per key. The caller closes an extent in time: while [`ExtentWriter::fits`] or [`ExtentWriter::fits_block`]
//! says yes, the extent stays within one slot. All versions of a key belong into one extent, or levels would
//! overlap: the caller closes extents between keys, even where that makes one larger than a slot.

mod settings;

pub use settings::WriterSettings;

use terrane_base::{Entry, Error, ExtentId, Result, SeqNo, key, varint};
use terrane_format::block::{self, BlockBuilder, BlockCursor};
use terrane_format::codec::Encoder;
use terrane_format::extent::{self, ExtentMeta, Footer, Handle, RangeSection};
use terrane_format::filter;
use terrane_format::index::{IndexBuilder, IndexRow};
use terrane_format::range_deletes::{Fragment, Fragments, TRAILER_BYTES, seq_range};
use terrane_storage::{EXTENT_SLOTS_MAX, SLOT_BYTES, Store};

/// Bytes of an entry besides key and value, at most: three lengths and the sequence number.
const ENTRY_HEADER_MAX: usize = 3 * varint::BYTES_MAX + 8;
/// Bytes of an index row besides its keys, at most.
const ROW_FIXED_MAX: usize = 64;
/// Bytes that an entry adds to an extent at most besides key and value, if it begins a block: its header, the
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
    }
}

/// Builds an extent in memory and writes it in one piece; reused from extent to extent.
#[derive(Debug)]
pub struct ExtentWriter {
    settings: WriterSettings,
    encoder: Encoder,
    block: BlockBuilder,
    /// The blocks so far, as stored.
    bytes: Vec<u8>,
    index: IndexBuilder,
    /// Hash of every key, each once.
    hashes: Vec<u64>,
    totals: Totals,
    smallest: Vec<u8>,
    /// Last key of the blocks so far, and the number of its last version; `None` behind a copied block.
    last_key: Vec<u8>,
    last_seq: Option<SeqNo>,
    cursor: BlockCursor,
    /// Sorted and disjoint.
    range_deletes: Vec<Fragment>,
    /// Bytes of their part.
    range_bytes: usize,
}

impl ExtentWriter {
    /// A writer for extents that are built as `settings` say.
    ///
    /// # Errors
    /// `Invalid` if this build cannot write the compression, or a setting is out of range.
    pub fn new(settings: WriterSettings) -> Result<Self> {
        if settings.block_bytes == 0 || settings.block_bytes > SLOT_BYTES / 2 {
            return Err(Error::invalid(format!(
                "block_bytes={}: accepted is 1 to {} bytes",
                settings.block_bytes,
                SLOT_BYTES / 2
            )));
        }
        Ok(ExtentWriter {
            settings,
            encoder: Encoder::new(settings.compression)?,
            block: BlockBuilder::new(settings.block_encoding),
            bytes: Vec::with_capacity(SLOT_BYTES),
            index: IndexBuilder::new(),
            hashes: Vec::new(),
            totals: Totals::ZERO,
            smallest: Vec::new(),
            last_key: Vec::new(),
            last_seq: None,
            cursor: BlockCursor::new(),
            range_deletes: Vec::new(),
            range_bytes: 0,
        })
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// `Invalid` if it does not come strictly after the last one in internal order, is beyond the limits of
    /// `terrane_base::key`, or the extent is full beyond all slots.
    pub fn add(&mut self, entry: Entry<'_>) -> Result<()> {
        key::check_key(entry.key)?;
        key::check_value(entry.value)?;
        let entry_len = entry.key.len() + entry.value.len() + ENTRY_HEADER_MAX;
        if !self.block.is_empty() && self.block.estimated_bytes() + entry_len > self.settings.block_bytes {
            self.cut_block()?;
        }
        if self.block.is_empty() {
            self.check_follows(entry.key, Some(entry.seq_kind.seq()))?;
        }
        self.block.add(entry)?;
        if self.settings.filter_bits_per_key > 0 {
            self.push_hash(entry.key);
        }
        Ok(())
    }

    /// Adds a block of another extent as it is stored there. `row.offset` means nothing here.
    ///
    /// # Errors
    /// `Corrupt` if `stored` is not the block of `row`; `Invalid` if its first key is not greater than the last
    /// one here (versions of one key cannot be joined without decoding), or as [`ExtentWriter::add`].
    pub fn add_block(&mut self, row: &IndexRow<'_>, stored: &[u8]) -> Result<()> {
        self.cut_block()?;
        self.check_follows(row.first_key, None)?;
        row.check_stored(stored)?;
        if self.settings.filter_bits_per_key > 0 {
            self.push_hashes_of(row, stored)?;
        }
        let row = IndexRow { offset: self.block_offset()?, ..*row };
        self.bytes.extend_from_slice(stored);
        self.add_row(&row, None);
        Ok(())
    }

    /// Adds a stretch of keys with the numbers of range deletes over it.
    ///
    /// # Errors
    /// `Invalid` if it begins before the end of the one before.
    pub fn add_range_delete(&mut self, fragment: Fragment) -> Result<()> {
        if self.range_deletes.last().is_some_and(|last| last.end > fragment.start) {
            return Err(Error::invalid("range deletes are added in order and do not overlap"));
        }
        if self.range_deletes.is_empty() {
            self.range_bytes = TRAILER_BYTES;
        }
        self.range_bytes += fragment.encoded_len();
        self.range_deletes.push(fragment);
        Ok(())
    }

    /// Bytes of the range deletes so far.
    #[must_use]
    pub fn range_delete_bytes(&self) -> usize {
        self.range_bytes
    }

    /// Cuts the last range delete before `end`, and returns what lies behind.
    pub fn cut_range_delete(&mut self, end: &[u8]) -> Option<Fragment> {
        let last = self.range_deletes.last_mut().filter(|last| last.end.as_slice() > end)?;
        let behind = Fragment { start: last.start.as_slice().max(end).to_vec(), ..last.clone() };
        if last.start.as_slice() >= end {
            self.range_deletes.pop();
        } else {
            last.end = end.to_vec();
        }
        Some(behind)
    }

    /// Whether the extent holds nothing yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.has_entries() && self.range_deletes.is_empty()
    }

    /// Whether the extent holds an entry yet.
    #[must_use]
    pub fn has_entries(&self) -> bool {
        !self.block.is_empty() || !self.index.is_empty()
    }

    /// The last key added. Requires: there are entries.
    #[must_use]
    pub fn last_key(&self) -> &[u8] {
        if self.block.is_empty() { &self.last_key } else { self.block.last_key() }
    }

    /// Bytes that the extent would take if it were finished now; a little less where the block that is being
    /// filled compresses.
    #[must_use]
    pub fn estimated_bytes(&self) -> usize {
        extent::extent_bytes_with(self.content_bytes(), self.is_ranged())
    }

    /// Whether the extent stays within one slot if an entry of this size is added. An empty extent takes any.
    #[inline]
    #[must_use]
    pub fn fits(&self, key_len: usize, value_len: usize) -> bool {
        // The key may come to stand in an index row as first and as last key, too.
        let added = 3 * key_len + value_len + ENTRY_OVERHEAD_MAX;
        self.is_empty() || self.extent_bytes_with(added) <= SLOT_BYTES
    }

    /// Whether the extent stays within one slot if this block is added. An empty extent takes any.
    #[must_use]
    pub fn fits_block(&self, row: &IndexRow<'_>) -> bool {
        let keys = self.hashes.len() + row.entries as usize;
        let filter = filter::encoded_len(keys, self.settings.filter_bits_per_key) - self.filter_bytes();
        let added = row.stored_len as usize + row.encoded_len() + filter;
        self.is_empty() || self.extent_bytes_with(added) <= SLOT_BYTES
    }

    /// Finishes the extent, writes it to newly allocated slots of `store` and starts over. It is durable after
    /// the next [`Store::sync`]. Requires: not empty.
    ///
    /// # Errors
    /// As [`Store::allocate`] and [`Store::write`]; the writer is empty and the slots are given back then.
    pub fn finish(&mut self, store: &dyn Store) -> Result<ExtentMeta> {
        let written = self.seal().and_then(|mut meta| {
            meta.id = store.allocate(meta.slots)?;
            if let Err(error) = store.write(meta.id, &self.bytes) {
                // The write's error is the one to act on. Slots that cannot be given back now are free
                // after the next open.
                let _ = store.free(meta.id, meta.slots);
                return Err(error);
            }
            Ok(meta)
        });
        self.reset();
        written
    }

    /// Finishes the extent and hands its bytes over, with a meta whose id is 0:0. Requires: not empty.
    ///
    /// # Errors
    /// `Invalid` if the extent is full beyond all slots.
    pub fn finish_bytes(&mut self) -> Result<(Vec<u8>, ExtentMeta)> {
        let sealed = self.seal();
        let bytes = std::mem::take(&mut self.bytes);
        self.reset();
        Ok((bytes, sealed?))
    }

    /// Takes bytes that [`ExtentWriter::finish_bytes`] handed over back, for the next extent. Requires: empty.
    pub fn recycle(&mut self, mut bytes: Vec<u8>) {
        assert!(self.is_empty());
        bytes.clear();
        self.bytes = bytes;
    }

    /// Forgets the extent begun.
    pub fn reset(&mut self) {
        self.block.reset();
        self.index.reset();
        self.bytes.clear();
        self.hashes.clear();
        self.totals = Totals::ZERO;
        self.smallest.clear();
        self.last_key.clear();
        self.last_seq = None;
        self.range_deletes.clear();
        self.range_bytes = 0;
        // A very large value must not make the writer large for ever.
        self.bytes.shrink_to(SLOT_BYTES);
        self.block.shrink(self.settings.block_bytes * 2);
        self.encoder.shrink(self.settings.block_bytes * 2);
    }

    /// Bytes of memory that the writer holds.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.block.memory_bytes()
            + self.index.memory_bytes()
            + self.encoder.memory_bytes()
            + self.hashes.capacity() * size_of::<u64>()
            + self.smallest.capacity()
            + self.last_key.capacity()
    }

    fn is_ranged(&self) -> bool {
        !self.range_deletes.is_empty()
    }

    #[inline]
    fn extent_bytes_with(&self, added: usize) -> usize {
        extent::extent_bytes_with(self.content_bytes() + added, self.is_ranged())
    }

    #[inline]
    fn content_bytes(&self) -> usize {
        let open_block = match self.block.is_empty() {
            true => 0,
            false => self.block.bytes_max() + ROW_FIXED_MAX + 2 * self.key_len_max(),
        };
        self.bytes.len() + open_block + self.index.estimated_bytes() + self.filter_bytes() + self.range_bytes
    }

    #[inline]
    fn key_len_max(&self) -> usize {
        self.block.first_key().len().max(self.block.last_key().len())
    }

    #[inline]
    fn filter_bytes(&self) -> usize {
        filter::encoded_len(self.hashes.len(), self.settings.filter_bits_per_key)
    }

    #[inline]
    fn push_hash(&mut self, key: &[u8]) {
        let hash = filter::hash(key);
        // Versions of one key follow each other. A different key with the same hash needs no bits of its own.
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
    }

    fn push_hashes_of(&mut self, row: &IndexRow<'_>, stored: &[u8]) -> Result<()> {
        let block = row.open_block(stored.to_vec())?;
        let mut cursor = std::mem::take(&mut self.cursor);
        cursor.seek_first(&block);
        while let Some(entry) = cursor.entry(&block) {
            self.push_hash(entry.key);
            cursor.next(&block);
        }
        self.cursor = cursor;
        Ok(())
    }

    /// Checks that a block beginning with `key` may follow the blocks so far.
    fn check_follows(&self, key: &[u8], seq: Option<SeqNo>) -> Result<()> {
        let follows = match self.last_key.as_slice().cmp(key) {
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
        )))
    }

    fn block_offset(&self) -> Result<u32> {
        let limit = EXTENT_SLOTS_MAX as usize * SLOT_BYTES;
        if self.bytes.len() >= limit {
            return Err(Error::invalid(format!("extent is longer than {limit} bytes: close it in time")));
        }
        Ok(self.bytes.len() as u32)
    }

    /// Stores the block that is being filled, if there is one.
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
        self.index.add(row);
        self.totals.add(row);
        self.last_key.clear();
        self.last_key.extend_from_slice(row.last_key);
        self.last_seq = last_seq;
    }

    /// Puts index, filter and footer behind the blocks. Requires: not empty.
    fn seal(&mut self) -> Result<ExtentMeta> {
        assert!(!self.is_empty(), "an extent without entries has no place in a level");
        self.cut_block()?;
        let blocks = self.index.len() as u32;
        let index = self.append_part(|writer| writer.index.finish(&mut writer.bytes));
        let bits_per_key = self.settings.filter_bits_per_key;
        let filter =
            self.append_part(|writer| filter::build(&writer.hashes, bits_per_key, &mut writer.bytes));
        let range_deletes = self.append_part(|writer| {
            if !writer.range_deletes.is_empty() {
                Fragments::encode(&writer.range_deletes, &mut writer.bytes);
            }
        });
        let bytes = extent::extent_bytes_with(self.bytes.len(), self.is_ranged());
        let slots = bytes.div_ceil(SLOT_BYTES) as u32;
        if slots > EXTENT_SLOTS_MAX {
            return Err(Error::invalid(format!("extent of {slots} slots: the limit is {EXTENT_SLOTS_MAX}")));
        }
        let footer = self.footer(bytes as u32, blocks, [index, filter, range_deletes]);
        self.bytes.resize(bytes - footer.len(), 0);
        footer.encode(&mut self.bytes);
        Ok(self.meta(&footer, slots))
    }

    fn append_part(&mut self, append: impl FnOnce(&mut Self)) -> Handle {
        let start = self.bytes.len();
        append(self);
        if self.bytes.len() == start {
            return Handle::default();
        }
        Handle::of(start as u32, &self.bytes[start..])
    }

    fn footer(&self, bytes: u32, blocks: u32, parts: [Handle; 3]) -> Footer {
        let [index, filter, range_deletes] = parts;
        let (least, greatest) = seq_range(&self.range_deletes).unzip();
        Footer {
            compression: self.settings.compression,
            table: self.settings.table,
            bytes,
            blocks,
            index,
            filter,
            range_deletes,
            fragments: self.range_deletes.len() as u32,
            raw_bytes: self.totals.raw_bytes,
            entries: self.totals.entries,
            deletes: self.totals.deletes,
            seq_min: least.unwrap_or(SeqNo::MAX).min(self.totals.seq_min),
            seq_max: greatest.unwrap_or_default().max(self.totals.seq_max),
        }
    }

    fn meta(&self, footer: &Footer, slots: u32) -> ExtentMeta {
        let (smallest, largest) = self.bounds(footer.blocks > 0);
        let ends = self.range_deletes.first().zip(self.range_deletes.last());
        let range_deletes = ends.map(|(first, last)| {
            let (part, fragments) = (footer.range_deletes, footer.fragments);
            Box::new(RangeSection { part, fragments, start: first.start.clone(), end: last.end.clone() })
        });
        ExtentMeta {
            id: ExtentId::default(),
            slots,
            bytes: footer.bytes,
            raw_bytes: footer.raw_bytes,
            smallest,
            largest,
            seq_min: footer.seq_min,
            seq_max: footer.seq_max,
            entries: footer.entries,
            deletes: footer.deletes,
            blocks: footer.blocks,
            index: footer.index,
            filter: footer.filter,
            range_deletes,
            format_version: if self.is_ranged() { extent::VERSION_RANGED } else { extent::VERSION },
            compression: footer.compression,
        }
    }

    /// The smallest key, and one that is not less than any, range deletes included.
    fn bounds(&self, has_entries: bool) -> (Vec<u8>, Vec<u8>) {
        let smallest = has_entries.then_some(self.smallest.as_slice()).into_iter();
        let largest = has_entries.then_some(self.last_key.as_slice()).into_iter();
        let first = self.range_deletes.first().map(|first| first.start.as_slice());
        let last = self.range_deletes.last().map(Fragment::last_key);
        let (smallest, largest) = (smallest.chain(first).min(), largest.chain(last).max());
        (smallest.unwrap_or_default().to_vec(), largest.unwrap_or_default().to_vec())
    }
}
