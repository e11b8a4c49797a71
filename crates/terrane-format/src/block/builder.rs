//! Writes data blocks.
//!
//! In the plain encoding entries are laid out as they come. For the other one they are collected first, and laid out by
//! [`BlockBuilder::finish`]: only then it is known what all keys have in common. A block that does not fit the two-layer
//! encoding is *spilled*: laid out in the plain one after all.

use terrane_base::options::BlockEncoding;
use terrane_base::{Collation, Entry, Error, Result, SeqKind, SeqNo, key, varint};

use super::ENCODING_PLAIN;
use super::plain::{RESTART_BYTES, RESTART_INTERVAL, TRAILER_BYTES};
use super::two_layer::{self, Draft};

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
    /// How its keys are ordered.
    collation: Collation,
    /// Entries collected for the two-layer encoding.
    draft: Draft,
    /// Whether entries are collected, and not laid out: `bytes` and `restarts` are empty then.
    is_draft: bool,
    /// Bytes that the collected entries would take in the plain encoding.
    draft_plain_bytes: usize,
    /// The block in the two-layer encoding.
    two_layer: Vec<u8>,
    /// The entries in the plain encoding.
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    /// Where the first key's bytes stand in `bytes`: the first entry shares nothing.
    first_key_at: usize,
    first_key_len: usize,
    /// The last key, while entries are laid out.
    last_key: Vec<u8>,
    last_seq_kind: SeqKind,
    entry_count: u32,
    deletes: u32,
    seq_min: u64,
    seq_max: u64,
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
            collation: Collation::BYTES,
            draft: Draft::default(),
            is_draft: encoding == BlockEncoding::TwoLayer,
            draft_plain_bytes: 0,
            two_layer: Vec::new(),
            bytes: Vec::new(),
            restarts: Vec::new(),
            first_key_at: 0,
            first_key_len: 0,
            last_key: Vec::new(),
            last_seq_kind: SeqKind(0),
            entry_count: 0,
            deletes: 0,
            seq_min: u64::MAX,
            seq_max: 0,
        }
    }

    /// The builder, for blocks of a table whose keys are ordered so. Under a comparator all blocks are plain: the tree of the
    /// other encoding is one over bytes.
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
        if self.is_draft {
            let plain_bytes = self.draft_plain_bytes + plain_len(&entry, self.shared(common));
            if self.draft.takes(plain_bytes, entry.key.len()) {
                self.draft_plain_bytes = plain_bytes;
                self.draft.push(&entry, common);
            } else {
                self.spill();
            }
        }
        if !self.is_draft {
            self.append(&entry, common);
        }
        self.last_seq_kind = entry.seq_kind;
        self.entry_count += 1;
        self.deletes += u32::from(entry.seq_kind.is_delete());
        self.seq_min = self.seq_min.min(entry.seq_kind.seq().0);
        self.seq_max = self.seq_max.max(entry.seq_kind.seq().0);
        Ok(())
    }

    /// What the next entry, whose key has `common` bytes in common with the last one, shares in the plain encoding.
    #[inline]
    fn shared(&self, common: usize) -> usize {
        if self.entry_count.is_multiple_of(RESTART_INTERVAL as u32) { 0 } else { common }
    }

    /// Whether `entry`, whose key has `common` bytes in common with the last one, comes strictly after it.
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
        let draft = std::mem::take(&mut self.draft);
        let entry_count = std::mem::take(&mut self.entry_count);
        self.is_draft = false;
        for (entry, common) in draft.entries() {
            self.append(&entry, common);
            self.entry_count += 1;
        }
        debug_assert_eq!(self.entry_count, entry_count);
        self.draft = draft;
        self.draft.clear();
    }

    /// Bytes that [`BlockBuilder::finish`] would return: exactly in the plain encoding, about in the other one.
    #[inline]
    #[must_use]
    pub fn estimated_bytes(&self) -> usize {
        match self.is_draft {
            // Shorter numbers are nearly all the difference; heads and offsets are about what restarts and shared
            // bytes are.
            true => self.plain_len() - self.draft.number_savings((self.seq_min, self.seq_max)),
            false => self.plain_len(),
        }
    }

    #[inline]
    fn plain_len(&self) -> usize {
        let restarts = (self.entry_count as usize).div_ceil(RESTART_INTERVAL);
        // One of the two is 0.
        self.bytes.len()
            + self.draft_plain_bytes * usize::from(self.is_draft)
            + restarts * RESTART_BYTES
            + TRAILER_BYTES
    }

    /// Bytes that [`BlockBuilder::finish`] would return at most.
    #[inline]
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        if self.is_draft { two_layer::bytes_max(self.plain_len()) } else { self.plain_len() }
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
        match self.is_draft {
            true => self.draft.first_key(),
            false => &self.bytes[self.first_key_at..self.first_key_at + self.first_key_len],
        }
    }

    /// The last key. Requires: not empty.
    #[inline]
    #[must_use]
    pub fn last_key(&self) -> &[u8] {
        if self.is_draft { self.draft.last_key() } else { &self.last_key }
    }

    /// Sequence number of the last entry. Requires: not empty.
    #[must_use]
    pub fn last_seq(&self) -> SeqNo {
        self.last_seq_kind.seq()
    }

    /// Completes the block and shows its bytes. Nothing may be added until [`BlockBuilder::reset`].
    pub fn finish(&mut self) -> &[u8] {
        if self.is_draft {
            let range = (self.seq_min, self.seq_max);
            if let Some(len) = self.draft.encode(self.plain_len(), range, &mut self.two_layer) {
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

    /// Forgets everything but keeps the memory.
    pub fn reset(&mut self) {
        self.draft.clear();
        self.is_draft = self.encoding == BlockEncoding::TwoLayer;
        self.draft_plain_bytes = 0;
        self.bytes.clear();
        self.restarts.clear();
        self.last_key.clear();
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
