//! Writes data blocks.
//!
//! In the plain encoding the builder writes each entry at once. For the two-layer encoding it collects the
//! entries, and [`BlockBuilder::finish`] writes them, because only then the common prefix of all keys is
//! known. A block that does not fit the two-layer encoding is *spilled*: written in the plain encoding.

use terrane_base::options::BlockEncoding;
use terrane_base::{Collation, Entry, Error, Result, SeqKind, SeqNo, key, varint};

use super::ENCODING_PLAIN;
use super::plain::{RESTART_BYTES, RESTART_INTERVAL, TRAILER_BYTES};
use super::two_layer::{self, INTERVALS_MAX, PendingEntries};

/// Collects entries in internal order and encodes them as a block. The builder is reused from block to block.
///
/// ```
/// use terrane_base::options::BlockEncoding;
/// use terrane_base::{Entry, RecordKind, SeqKind, SeqNo};
/// use terrane_format::block::{Block, BlockBuilder};
/// let mut builder = BlockBuilder::new(BlockEncoding::TwoLayer);
/// let seq_kind = SeqKind::new(SeqNo(7), RecordKind::Put);
/// builder.add(Entry { key: b"k", seq_kind, value: b"v" })?;
/// let block = Block::decode(builder.finish().to_vec())?;
/// assert_eq!(block.find(b"k", SeqNo::MAX).unwrap().value, b"v");
/// # Ok::<(), terrane_base::Error>(())
/// ```
#[derive(Debug)]
pub struct BlockBuilder {
    encoding: BlockEncoding,
    /// Key order of the table.
    collation: Collation,
    /// Entries collected for the two-layer encoding.
    pending: PendingEntries,
    /// True while entries are collected in `pending` and not written yet; `bytes` and `restarts` are empty
    /// then.
    is_pending: bool,
    /// Bytes that the entries in `pending` would take in the plain encoding.
    pending_plain_bytes: usize,
    /// The block in the two-layer encoding.
    two_layer: Vec<u8>,
    /// The entries in the plain encoding.
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    /// Offset of the first key in `bytes`: the first entry is stored with its whole key.
    first_key_at: usize,
    first_key_len: usize,
    /// The last key, in the plain encoding.
    last_key: Vec<u8>,
    last_seq_kind: SeqKind,
    entry_count: u32,
    deletes: u32,
    /// Entries that are pointers to values.
    pointers: u32,
    seq_min: u64,
    seq_max: u64,
}

impl Default for BlockBuilder {
    fn default() -> Self {
        BlockBuilder::new(BlockEncoding::default())
    }
}

impl BlockBuilder {
    /// An empty builder. It uses the plain encoding for a block that gains nothing from `encoding`.
    #[must_use]
    pub fn new(encoding: BlockEncoding) -> Self {
        BlockBuilder {
            encoding,
            collation: Collation::BYTES,
            pending: PendingEntries::default(),
            is_pending: encoding == BlockEncoding::TwoLayer,
            pending_plain_bytes: 0,
            two_layer: Vec::new(),
            bytes: Vec::new(),
            restarts: Vec::new(),
            first_key_at: 0,
            first_key_len: 0,
            last_key: Vec::new(),
            last_seq_kind: SeqKind(0),
            entry_count: 0,
            deletes: 0,
            pointers: 0,
            seq_min: u64::MAX,
            seq_max: 0,
        }
    }

    /// Sets the key order of the table. With a comparator all blocks are plain, because the two-layer tree
    /// compares bytes.
    #[must_use]
    pub fn ordered(self, collation: &Collation) -> Self {
        if collation.is_bytes() {
            return self;
        }
        BlockBuilder { collation: collation.clone(), ..BlockBuilder::new(BlockEncoding::Plain) }
    }

    /// Adds an entry. Requires: key and value within the limits of `terrane_base::key`.
    ///
    /// # Errors
    /// `Invalid` if the entry does not come strictly after the last one in internal order; the block is
    /// unchanged then.
    #[inline]
    pub fn add(&mut self, entry: Entry<'_>) -> Result<()> {
        let common = key::common_len(self.last_key(), entry.key);
        if self.entry_count > 0 && !self.comes_next(&entry, common) {
            return Err(out_of_order(&entry));
        }
        if self.is_pending {
            let plain_bytes = self.pending_plain_bytes + plain_len(&entry, self.shared(common));
            if self.pending.takes(plain_bytes, entry.key.len()) {
                self.pending_plain_bytes = plain_bytes;
                self.pending.push(&entry, common);
            } else {
                self.spill();
            }
        }
        if !self.is_pending {
            self.append(&entry, common);
        }
        self.last_seq_kind = entry.seq_kind;
        self.entry_count += 1;
        self.deletes += u32::from(entry.seq_kind.is_delete());
        self.pointers += u32::from(entry.seq_kind.is_pointer());
        self.seq_min = self.seq_min.min(entry.seq_kind.seq().0);
        self.seq_max = self.seq_max.max(entry.seq_kind.seq().0);
        Ok(())
    }

    /// The number of shared key bytes that the plain encoding stores for the next entry, whose key has
    /// `common` bytes in common with the last one.
    #[inline]
    fn shared(&self, common: usize) -> usize {
        if self.entry_count.is_multiple_of(RESTART_INTERVAL as u32) { 0 } else { common }
    }

    /// Returns true if `entry`, whose key has `common` bytes in common with the last one, comes strictly
    /// after it.
    #[inline]
    fn comes_next(&self, entry: &Entry<'_>, common: usize) -> bool {
        match (self.last_key().get(common), entry.key.get(common)) {
            (None, None) => self.last_seq_kind.seq() > entry.seq_kind.seq(),
            (None, Some(_)) if self.collation.is_bytes() => true,
            (Some(_), None) if self.collation.is_bytes() => false,
            (Some(last), Some(next)) if self.collation.is_bytes() => last < next,
            _ => self.collation.lt(self.last_key(), entry.key),
        }
    }

    /// Lays an entry out in the plain encoding.
    #[inline]
    fn append(&mut self, entry: &Entry<'_>, common: usize) {
        let shared = self.shared(common);
        if self.entry_count.is_multiple_of(RESTART_INTERVAL as u32) {
            self.restarts.push(self.bytes.len() as u32);
        }
        let suffix = &entry.key[shared..];
        varint::put(&mut self.bytes, shared as u32);
        varint::put(&mut self.bytes, suffix.len() as u32);
        varint::put(&mut self.bytes, entry.value.len() as u32);
        if self.entry_count == 0 {
            (self.first_key_at, self.first_key_len) = (self.bytes.len(), suffix.len());
        }
        self.bytes.extend_from_slice(suffix);
        self.bytes.extend_from_slice(&entry.seq_kind.0.to_le_bytes());
        self.bytes.extend_from_slice(entry.value);
        self.last_key.truncate(common);
        self.last_key.extend_from_slice(&entry.key[common..]);
    }

    /// Lays the collected entries out in the plain encoding.
    #[cold]
    fn spill(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        let entry_count = std::mem::take(&mut self.entry_count);
        self.is_pending = false;
        for (entry, common) in pending.entries() {
            self.append(&entry, common);
            self.entry_count += 1;
        }
        debug_assert_eq!(self.entry_count, entry_count);
        self.pending = pending;
        self.pending.clear();
    }

    /// Bytes that [`BlockBuilder::finish`] would return: exact in the plain encoding, an estimate in the
    /// two-layer one.
    #[inline]
    #[must_use]
    pub fn estimated_bytes(&self) -> usize {
        match self.is_pending {
            // Shorter sequence numbers are nearly all of the difference; heads and offsets take about as many
            // bytes as restarts and shared prefixes.
            true => self.plain_len() - self.pending.number_savings((self.seq_min, self.seq_max)),
            false => self.plain_len(),
        }
    }

    #[inline]
    fn plain_len(&self) -> usize {
        let restarts = (self.entry_count as usize).div_ceil(RESTART_INTERVAL);
        // One of the two lengths is 0.
        self.bytes.len()
            + self.pending_plain_bytes * usize::from(self.is_pending)
            + restarts * RESTART_BYTES
            + TRAILER_BYTES
    }

    /// Bytes that [`BlockBuilder::finish`] would return at most.
    #[inline]
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        match self.is_pending {
            true => two_layer::bytes_max(self.plain_len(), self.pointers as usize),
            false => self.plain_len(),
        }
    }

    /// Returns true if the block should end although it is short: with more entries an interval would hold
    /// several, and most are pointers, each of which a search would decode before it.
    #[inline]
    #[must_use]
    pub fn is_full_of_pointers(&self) -> bool {
        self.is_pending && self.entry_count as usize >= INTERVALS_MAX && 2 * self.pointers >= self.entry_count
    }

    /// Returns true if the block holds no entry.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entry_count == 0
    }

    /// Entries so far.
    #[must_use]
    pub fn entry_count(&self) -> u32 {
        self.entry_count
    }

    /// Deletes so far.
    #[must_use]
    pub fn deletes(&self) -> u32 {
        self.deletes
    }

    /// Smallest and largest sequence number so far. Requires: not empty.
    #[must_use]
    pub fn seq_range(&self) -> (u64, u64) {
        (self.seq_min, self.seq_max)
    }

    /// The first key. Requires: not empty, and [`BlockBuilder::reset`] not called since.
    #[must_use]
    pub fn first_key(&self) -> &[u8] {
        match self.is_pending {
            true => self.pending.first_key(),
            false => &self.bytes[self.first_key_at..self.first_key_at + self.first_key_len],
        }
    }

    /// The last key. Requires: not empty.
    #[inline]
    #[must_use]
    pub fn last_key(&self) -> &[u8] {
        if self.is_pending { self.pending.last_key() } else { &self.last_key }
    }

    /// Sequence number of the last entry. Requires: not empty.
    #[must_use]
    pub fn last_seq(&self) -> SeqNo {
        self.last_seq_kind.seq()
    }

    /// Completes the block and shows its bytes. Nothing may be added until [`BlockBuilder::reset`].
    pub fn finish(&mut self) -> &[u8] {
        if self.is_pending {
            let range = (self.seq_min, self.seq_max);
            let limit = self.bytes_max();
            if let Some(len) = self.pending.encode(limit, range, &mut self.two_layer) {
                return &self.two_layer[..len];
            }
            self.spill();
        }
        for restart in &self.restarts {
            self.bytes.extend_from_slice(&restart.to_le_bytes());
        }
        self.bytes.extend_from_slice(&self.entry_count.to_le_bytes());
        self.bytes.push(ENCODING_PLAIN);
        &self.bytes
    }

    /// Removes all entries and keeps the memory.
    pub fn reset(&mut self) {
        self.pending.clear();
        self.is_pending = self.encoding == BlockEncoding::TwoLayer;
        self.pending_plain_bytes = 0;
        self.bytes.clear();
        self.restarts.clear();
        self.last_key.clear();
        self.entry_count = 0;
        self.deletes = 0;
        self.pointers = 0;
        self.seq_min = u64::MAX;
        self.seq_max = 0;
    }

    /// Bytes of memory that the builder holds.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.restarts.capacity() * RESTART_BYTES
            + self.last_key.capacity()
            + self.pending.memory_bytes()
            + self.two_layer.capacity()
    }

    /// Frees memory beyond `bytes`, after an entry of unusual size. Requires: empty.
    pub fn shrink(&mut self, bytes: usize) {
        debug_assert!(self.is_empty());
        self.bytes.shrink_to(bytes);
    }
}

/// Bytes of an entry in the plain encoding.
#[inline]
fn plain_len(entry: &Entry<'_>, shared: usize) -> usize {
    let (unshared, value_len) = (entry.key.len() - shared, entry.value.len());
    let lens = [shared, unshared, value_len].into_iter().map(|len| varint::len(len as u32)).sum::<usize>();
    lens + unshared + size_of::<SeqKind>() + value_len
}

#[cold]
fn out_of_order(entry: &Entry<'_>) -> Error {
    Error::invalid(format!(
        "entry {} {:?} is out of order: entries are added by key, newest version first",
        crate::dump::text(entry.key),
        entry.seq_kind
    ))
    .of_order()
}
