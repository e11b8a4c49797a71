//! Writes data blocks.
//!
//! Entries are laid out in the plain encoding as they come. If the other one is asked for, their keys are kept whole
//! beside it, and [`BlockBuilder::finish`] lays them out anew: only then it is known what all keys have in common.

use terrane_base::options::BlockEncoding;
use terrane_base::{Entry, Error, Result, SeqKind, SeqNo, varint};

use super::ENCODING_PLAIN;
use super::plain::{RESTART_BYTES, RESTART_INTERVAL, TRAILER_BYTES};
use super::two_layer::{self, Draft};
use crate::wire;

/// Collects entries in internal order and lays them out as a block; reused from block to block.
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
    /// The block in the plain encoding.
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    entry_count: u32,
    deletes: u32,
    seq_min: u64,
    seq_max: u64,
    first_key_len: usize,
    /// Where the first key's bytes stand: the first entry shares nothing.
    first_key_at: usize,
    last_key: Vec<u8>,
    last_seq_kind: SeqKind,
    /// The entries for the two-layer encoding; empty if it is not asked for, or the block is too large for it.
    draft: Draft,
    /// The block in the two-layer encoding.
    two_layer: Vec<u8>,
}

impl Default for BlockBuilder {
    fn default() -> Self {
        BlockBuilder::new(BlockEncoding::default())
    }
}

impl BlockBuilder {
    /// An empty builder. A block that gains nothing by `encoding` is plain all the same.
    #[must_use]
    pub fn new(encoding: BlockEncoding) -> Self {
        BlockBuilder {
            encoding,
            bytes: Vec::new(),
            restarts: Vec::new(),
            entry_count: 0,
            deletes: 0,
            seq_min: u64::MAX,
            seq_max: 0,
            first_key_len: 0,
            first_key_at: 0,
            last_key: Vec::new(),
            last_seq_kind: SeqKind(0),
            draft: Draft::default(),
            two_layer: Vec::new(),
        }
    }

    /// Adds an entry. Requires: key and value within the limits of `terrane_base::key`.
    ///
    /// # Errors
    /// `Invalid` if the entry does not come strictly after the last one in internal order; the block is
    /// unchanged then.
    #[inline]
    pub fn add(&mut self, entry: Entry<'_>) -> Result<()> {
        let is_first = self.entry_count == 0;
        let common = wire::common_prefix(&self.last_key, entry.key);
        if !is_first && !self.comes_next(&entry, common) {
            return Err(out_of_order(&entry));
        }
        let is_restart = self.entry_count.is_multiple_of(RESTART_INTERVAL as u32);
        let shared = if is_restart { 0 } else { common };
        if is_restart {
            self.restarts.push(self.bytes.len() as u32);
        }
        self.append(shared, &entry);
        if is_first {
            self.first_key_len = entry.key.len();
            self.first_key_at = self.bytes.len() - entry.value.len() - 8 - entry.key.len();
        }
        if self.encoding == BlockEncoding::TwoLayer {
            self.draft_entry(&entry, common);
        }
        self.last_key.truncate(common);
        self.last_key.extend_from_slice(&entry.key[common..]);
        self.last_seq_kind = entry.seq_kind;
        self.entry_count += 1;
        self.deletes += u32::from(entry.seq_kind.is_delete());
        self.seq_min = self.seq_min.min(entry.seq_kind.seq().0);
        self.seq_max = self.seq_max.max(entry.seq_kind.seq().0);
        Ok(())
    }

    /// Whether `entry`, whose key has `common` bytes in common with the last one, comes strictly after it.
    #[inline]
    fn comes_next(&self, entry: &Entry<'_>, common: usize) -> bool {
        match (self.last_key.get(common), entry.key.get(common)) {
            (None, None) => self.last_seq_kind.seq() > entry.seq_kind.seq(),
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (Some(last), Some(next)) => last < next,
        }
    }

    #[inline]
    fn append(&mut self, shared: usize, entry: &Entry<'_>) {
        let suffix = &entry.key[shared..];
        varint::put(&mut self.bytes, shared as u32);
        varint::put(&mut self.bytes, suffix.len() as u32);
        varint::put(&mut self.bytes, entry.value.len() as u32);
        self.bytes.extend_from_slice(suffix);
        self.bytes.extend_from_slice(&entry.seq_kind.0.to_le_bytes());
        self.bytes.extend_from_slice(entry.value);
    }

    /// Keeps the entry just appended for the two-layer encoding, if the block may still have it.
    #[inline]
    fn draft_entry(&mut self, entry: &Entry<'_>, shared: usize) {
        let end = self.bytes.len();
        if Draft::takes(end) {
            self.draft.push(entry.key, shared, entry.seq_kind, end - entry.value.len()..end);
        } else {
            self.draft.clear();
        }
    }

    /// Bytes that [`BlockBuilder::finish`] would return: exactly in the plain encoding, about in the other one.
    #[inline]
    #[must_use]
    pub fn estimated_bytes(&self) -> usize {
        match self.draft.is_empty() {
            true => self.plain_len(),
            // Shorter numbers are nearly all the difference; heads and offsets are about what restarts and shared
            // bytes are.
            false => self.plain_len() - self.draft.number_savings((self.seq_min, self.seq_max)),
        }
    }

    #[inline]
    fn plain_len(&self) -> usize {
        self.bytes.len() + self.restarts.len() * RESTART_BYTES + TRAILER_BYTES
    }

    /// Bytes that [`BlockBuilder::finish`] would return at most.
    #[inline]
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        match self.encoding {
            BlockEncoding::Plain => self.plain_len(),
            BlockEncoding::TwoLayer => two_layer::bytes_max(self.plain_len()),
        }
    }

    /// Whether the block holds no entry.
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
        &self.bytes[self.first_key_at..self.first_key_at + self.first_key_len]
    }

    /// The last key. Requires: not empty.
    #[must_use]
    pub fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Sequence number of the last entry. Requires: not empty.
    #[must_use]
    pub fn last_seq(&self) -> SeqNo {
        self.last_seq_kind.seq()
    }

    /// Completes the block and shows its bytes. Nothing may be added until [`BlockBuilder::reset`].
    pub fn finish(&mut self) -> &[u8] {
        let plain_len = self.plain_len();
        if !self.draft.is_empty()
            && Draft::takes(self.bytes.len())
            && self.draft.encode(&self.bytes, plain_len, (self.seq_min, self.seq_max), &mut self.two_layer)
        {
            return &self.two_layer;
        }
        for restart in &self.restarts {
            self.bytes.extend_from_slice(&restart.to_le_bytes());
        }
        self.bytes.extend_from_slice(&self.entry_count.to_le_bytes());
        self.bytes.push(ENCODING_PLAIN);
        &self.bytes
    }

    /// Forgets everything but keeps the memory.
    pub fn reset(&mut self) {
        self.bytes.clear();
        self.restarts.clear();
        self.last_key.clear();
        self.draft.clear();
        self.two_layer.clear();
        self.entry_count = 0;
        self.deletes = 0;
        self.seq_min = u64::MAX;
        self.seq_max = 0;
    }

    /// Bytes of memory that the builder holds.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.restarts.capacity() * RESTART_BYTES
            + self.last_key.capacity()
            + self.draft.memory_bytes()
            + self.two_layer.capacity()
    }

    /// Gives memory beyond `bytes` back, after an entry of unusual size. Requires: empty.
    pub fn shrink(&mut self, bytes: usize) {
        debug_assert!(self.is_empty());
        self.bytes.shrink_to(bytes);
        self.draft.shrink(bytes);
    }
}

#[cold]
fn out_of_order(entry: &Entry<'_>) -> Error {
    Error::invalid(format!(
        "entry {} {:?} is out of order: entries are added by key, newest version first",
        crate::dump::text(entry.key),
        entry.seq_kind
    ))
}
