//! The rows of one shard: a circular log with an index over it, read without a lock.
//!
//! ```text
//! index  buckets of one cache line: 8 entries, each position << 16 | tag, or 0
//! log    row* in words of 8 bytes; the oldest are overwritten
//! row    value_len << 32 | key_len, table, seq_kind, key, value; key and value filled up to whole words
//! ```
//!
//! A *position* counts words since the log was made; the word lies at the position modulo the log's length. A
//! row never wraps around the log's end.
//!
//! # Which thread may touch what
//! 1. Words, index and `end` are written under the shard's lock only. All are atomics, so a reader that the
//!    writer overtakes reads garbage, but without undefined behaviour.
//! 2. `end` advances before the words of a new row are written. A reader copies a row and checks `end`
//!    afterwards: if the row was not reached by then, the copy is valid.
//! 3. An index entry is set after its row is complete, and removed by setting it to 0.
//!
//! # Memory ordering
//! The writer: `end` (relaxed), release fence, words (relaxed), entry (release). The reader: entry (acquire),
//! words (relaxed), acquire fence, `end` (relaxed). A reader that saw a word of a later row sees, through the
//! two fences, the `end` that was set for it. The entry's release and acquire make the row's own words
//! visible.

use terrane_base::sync::atomic::{AtomicU64, Ordering, fence};
use terrane_base::{SeqKind, SeqNo, TableId};

use crate::cache::Charge;

const WAYS: usize = 8;
const TAG_BITS: u32 = 16;
/// Buckets that are visited under one lock.
const BUCKETS_LOCKED: usize = 32;
/// Words before the key.
const HEADER_WORDS: usize = 3;
/// Average bytes of rows per index bucket: 8 rows of about 128 bytes.
const BUCKET_ROW_BYTES: usize = WAYS * 128;
/// Rows that take more than this share of a log are not cached.
const ROW_SHARE: usize = 64;

#[derive(Debug)]
#[repr(align(64))]
struct Bucket([AtomicU64; WAYS]);

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Log {
    words: Box<[AtomicU64]>,
    index: Box<[Bucket]>,
    end: AtomicU64,
    _charge: Charge,
}

/// Identifies a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowName<'k> {
    pub(super) table: TableId,
    pub(super) key: &'k [u8],
    pub(super) hash: u64,
}

/// A row that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// The index entry by which it was found.
    entry: u64,
    pub(super) seq_kind: SeqKind,
    /// True if it lies in the older half of the log: it should be written again to stay cached.
    pub(super) is_old: bool,
}

impl Log {
    /// Bytes of memory of a log for `bytes` of rows.
    pub(super) fn memory_bytes(bytes: usize) -> usize {
        bytes + index_len(bytes) * size_of::<Bucket>() + size_of::<Log>()
    }

    /// The most bytes of rows for which a log has room in `memory_bytes`.
    pub(super) fn bytes_within(memory_bytes: usize) -> usize {
        let mut bytes = memory_bytes / 8 * 8;
        while bytes > 0 && Log::memory_bytes(bytes) > memory_bytes {
            let excess = Log::memory_bytes(bytes) - memory_bytes;
            bytes = bytes.saturating_sub((excess / 2 + 1).next_multiple_of(8));
        }
        bytes
    }

    /// An empty log for `bytes` of rows, whole words.
    pub(super) fn new(bytes: usize, charge: Charge) -> Log {
        let buckets = (0..index_len(bytes)).map(|_| Bucket(std::array::from_fn(|_| AtomicU64::new(0))));
        Log {
            words: (0..bytes / 8).map(|_| AtomicU64::new(0)).collect(),
            index: buckets.collect(),
            // Not 0, because an entry for position 0 could be 0.
            end: AtomicU64::new(8),
            _charge: charge,
        }
    }

    /// Appends the value of a row with a number up to `seq` to `value`.
    #[inline]
    pub(super) fn read(&self, name: RowName<'_>, seq: SeqNo, value: &mut Vec<u8>) -> Option<Found> {
        let tag = tag_of(name.hash);
        for slot in &self.bucket(name.hash).0 {
            // Acquire: pairs with the Release in `put`.
            let entry = slot.load(Ordering::Acquire);
            if entry & TAG_MASK != tag || entry == 0 {
                continue;
            }
            let start = value.len();
            if let Some(seq_kind) = self.copy(entry >> TAG_BITS, name, seq, value) {
                debug_assert!(seq_kind.seq() <= seq, "a reader would see a later version");
                let age = self.end.load(Ordering::Relaxed).wrapping_sub(entry >> TAG_BITS);
                return Some(Found { entry, seq_kind, is_old: age > self.words.len() as u64 / 2 });
            }
            value.truncate(start);
        }
        None
    }

    /// Copies the row at a position if it is the requested one. After `None` the appended bytes are garbage.
    #[inline]
    fn copy(&self, position: u64, name: RowName<'_>, seq: SeqNo, value: &mut Vec<u8>) -> Option<SeqKind> {
        let row = self.row_at(position)?;
        let (key_len, value_len) = lens(row[0].load(Ordering::Relaxed));
        if key_len != name.key.len() || row[1].load(Ordering::Relaxed) != u64::from(name.table.0) {
            return None;
        }
        let seq_kind = SeqKind(row[2].load(Ordering::Relaxed));
        let (key_words, value_words) = (key_len.div_ceil(8), value_len.div_ceil(8));
        let rest = row.get(HEADER_WORDS..HEADER_WORDS + key_words + value_words)?;
        if seq_kind.seq() > seq || !is_equal(&rest[..key_words], name.key) {
            return None;
        }
        value.reserve(value_words * 8);
        let end = value.len() + value_len;
        for word in &rest[key_words..] {
            value.extend_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        value.truncate(end);
        debug_assert!(value.len() == end, "the words of a row hold its value");
        fence(Ordering::Acquire);
        self.is_whole(position).then_some(seq_kind)
    }

    /// Returns true if a row of this size can be cached.
    pub(super) fn takes(&self, key: &[u8], value: &[u8]) -> bool {
        row_words(key.len(), value.len()) * ROW_SHARE <= self.words.len()
    }

    /// Adds a row, unless the same or a newer version is present. Requires: the lock; [`Log::takes`] it.
    pub(super) fn put(&self, name: RowName<'_>, seq_kind: SeqKind, value: &[u8]) {
        debug_assert!(self.takes(name.key, value), "a row is a small share of the log");
        let known = self.find(name);
        if known.is_some_and(|(_, known)| known >= seq_kind.seq()) {
            return;
        }
        let bucket = &self.bucket(name.hash).0;
        // Else the oldest; an empty way counts as the oldest.
        let oldest = || (0..WAYS).min_by_key(|way| bucket[*way].load(Ordering::Relaxed) >> TAG_BITS);
        let way = known.map(|(way, _)| way).or_else(oldest).expect("a bucket has places");
        let position = self.append(name, seq_kind, value);
        // Release: pairs with the Acquire in `read`; the row is complete.
        bucket[way].store(position << TAG_BITS | tag_of(name.hash), Ordering::Release);
        debug_assert!(
            self.find(name).is_some_and(|(_, seq)| seq == seq_kind.seq()),
            "an older row is found first"
        );
    }

    /// Writes a row again at the end, so that it stays; unless it was removed, replaced or overwritten since
    /// it was found. Requires: the lock.
    pub(super) fn renew(&self, name: RowName<'_>, found: Found, value: &[u8]) {
        if self.row_at(found.entry >> TAG_BITS).is_none() {
            // No removal finds a row that was overwritten, and none takes its entry away: the key may have
            // been forgotten since.
            return;
        }
        let slot = self.bucket(name.hash).0.iter().find(|slot| slot.load(Ordering::Relaxed) == found.entry);
        let Some(slot) = slot else { return };
        let position = self.append(name, found.seq_kind, value);
        // Release: as in `put`.
        slot.store(position << TAG_BITS | tag_of(name.hash), Ordering::Release);
        debug_assert!(
            self.find(name).is_some_and(|(_, seq)| seq == found.seq_kind.seq()),
            "a search finds the version that was renewed"
        );
    }

    /// Removes a row. Requires: the lock.
    pub(super) fn remove(&self, name: RowName<'_>) {
        if let Some((way, _)) = self.find(name) {
            self.bucket(name.hash).0[way].store(0, Ordering::Release);
        }
        debug_assert!(self.find(name).is_none(), "a row has one place: readers would find an old value");
    }

    /// Removes, in a part of the index, the rows for whose table and key `is_old` returns true; returns the
    /// start of the next part, if there is one. Requires: the lock.
    pub(super) fn remove_where(
        &self,
        from: usize,
        key: &mut Vec<u8>,
        is_old: &mut dyn FnMut(TableId, &[u8]) -> bool,
    ) -> Option<usize> {
        debug_assert!(
            from.is_multiple_of(BUCKETS_LOCKED),
            "parts of the index follow each other, not at {from}"
        );
        let end = self.index.len().min(from + BUCKETS_LOCKED);
        for slot in self.index[from..end].iter().flat_map(|bucket| &bucket.0) {
            let entry = slot.load(Ordering::Relaxed);
            let Some(row) = self.row_at(entry >> TAG_BITS).filter(|_| entry != 0) else { continue };
            let (key_len, _) = lens(row[0].load(Ordering::Relaxed));
            key.clear();
            for word in &row[HEADER_WORDS..HEADER_WORDS + key_len.div_ceil(8)] {
                key.extend_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
            }
            key.truncate(key_len);
            if is_old(TableId(row[1].load(Ordering::Relaxed) as u32), key) {
                slot.store(0, Ordering::Release);
            }
        }
        (end < self.index.len()).then_some(end)
    }

    /// Upper bound of the number of rows.
    pub(super) fn places(&self) -> u64 {
        (self.index.len() * WAYS) as u64
    }

    /// The way of a row in its bucket, and the number of its version. Requires: the lock.
    fn find(&self, name: RowName<'_>) -> Option<(usize, SeqNo)> {
        let tag = tag_of(name.hash);
        self.bucket(name.hash).0.iter().enumerate().find_map(|(way, slot)| {
            let entry = slot.load(Ordering::Relaxed);
            if entry == 0 || entry & TAG_MASK != tag {
                return None;
            }
            let row = self.row_at(entry >> TAG_BITS)?;
            let (key_len, _) = lens(row[0].load(Ordering::Relaxed));
            let is_same = key_len == name.key.len()
                && row[1].load(Ordering::Relaxed) == u64::from(name.table.0)
                && is_equal(&row[HEADER_WORDS..HEADER_WORDS + key_len.div_ceil(8)], name.key);
            is_same.then(|| (way, SeqKind(row[2].load(Ordering::Relaxed)).seq()))
        })
    }

    /// Requires: the lock.
    fn append(&self, name: RowName<'_>, seq_kind: SeqKind, value: &[u8]) -> u64 {
        let len = self.words.len();
        let need = row_words(name.key.len(), value.len());
        let mut position = self.end.load(Ordering::Relaxed);
        let left = len - position as usize % len;
        if left < need {
            position += left as u64;
        }
        assert!(need <= len - position as usize % len, "a row never wraps around the end of the log");
        self.end.store(position + need as u64, Ordering::Relaxed);
        fence(Ordering::Release);
        let row = &self.words[position as usize % len..][..need];
        row[0].store((value.len() as u64) << 32 | name.key.len() as u64, Ordering::Relaxed);
        row[1].store(u64::from(name.table.0), Ordering::Relaxed);
        row[2].store(seq_kind.0, Ordering::Relaxed);
        let (key_words, value_words) = row[HEADER_WORDS..].split_at(name.key.len().div_ceil(8));
        store(key_words, name.key);
        store(value_words, value);
        position
    }

    /// The words from a position to the log's end, if newer rows have not reached that row.
    #[inline]
    fn row_at(&self, position: u64) -> Option<&[AtomicU64]> {
        let row = &self.words[position as usize % self.words.len()..];
        (row.len() > HEADER_WORDS && self.is_whole(position)).then_some(row)
    }

    #[inline]
    fn is_whole(&self, position: u64) -> bool {
        self.end.load(Ordering::Relaxed) <= position + self.words.len() as u64
    }

    #[inline]
    fn bucket(&self, hash: u64) -> &Bucket {
        debug_assert!(
            self.index.len().is_power_of_two(),
            "a mask selects one of {} buckets",
            self.index.len()
        );
        // The top bits select the shard.
        &self.index[(hash >> 8) as usize & (self.index.len() - 1)]
    }
}

const TAG_MASK: u64 = (1 << TAG_BITS) - 1;

#[inline]
fn tag_of(hash: u64) -> u64 {
    hash >> 40 & TAG_MASK
}

/// Number of buckets for `bytes` of rows: a power of two, so that a hash can select one.
fn index_len(bytes: usize) -> usize {
    (bytes / BUCKET_ROW_BYTES).max(1).next_power_of_two()
}

#[inline]
fn lens(word: u64) -> (usize, usize) {
    ((word & u64::from(u32::MAX)) as usize, (word >> 32) as usize)
}

fn row_words(key_len: usize, value_len: usize) -> usize {
    HEADER_WORDS + key_len.div_ceil(8) + value_len.div_ceil(8)
}

/// Returns true if words hold these bytes. Requires: exactly as many words as the bytes fill.
#[inline]
fn is_equal(words: &[AtomicU64], bytes: &[u8]) -> bool {
    words.iter().zip(bytes.chunks(8)).all(|(word, part)| word.load(Ordering::Relaxed) == padded(part))
}

#[inline]
fn store(words: &[AtomicU64], bytes: &[u8]) {
    for (word, part) in words.iter().zip(bytes.chunks(8)) {
        word.store(padded(part), Ordering::Relaxed);
    }
}

#[inline]
fn padded(part: &[u8]) -> u64 {
    match part.first_chunk() {
        Some(whole) => u64::from_le_bytes(*whole),
        None => {
            let mut bytes = [0; 8];
            bytes[..part.len()].copy_from_slice(part);
            u64::from_le_bytes(bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use terrane_base::RecordKind;

    use super::*;
    use crate::cache::{Cache, ObjectKind};

    const BYTES: usize = 16 << 10;

    fn name(key: &[u8]) -> RowName<'_> {
        RowName { table: TableId(1), key, hash: terrane_format::filter::hash(key) }
    }

    /// A reader that waits for the lock between finding an old row and renewing it: meanwhile newer rows
    /// overwrite the row, and its key is forgotten.
    #[test]
    fn a_row_that_was_overwritten_and_forgotten_is_not_renewed() {
        let charge =
            Cache::new(1 << 20).reserve(ObjectKind::Rows, Log::memory_bytes(BYTES)).expect("there is room");
        let log = Log::new(BYTES, charge);
        let put = SeqKind::new(SeqNo(7), RecordKind::Put);
        log.put(name(b"key"), put, b"old");
        let mut value = Vec::new();
        let found = log.read(name(b"key"), SeqNo::MAX, &mut value).expect("it was put");
        log.renew(name(b"key"), found, &value);
        let found = log.read(name(b"key"), SeqNo::MAX, &mut Vec::new()).expect("it is there still");

        let others = (0_u32..).map(u32::to_le_bytes);
        let is_another =
            |other: &[u8; 4]| !std::ptr::eq(log.bucket(name(other).hash), log.bucket(name(b"key").hash));
        let mut others = others.filter(is_another);
        while log.find(name(b"key")).is_some() {
            log.put(name(&others.next().expect("there are more keys")), put, &[1; 100]);
        }
        log.remove(name(b"key"));
        log.renew(name(b"key"), found, &value);
        assert!(log.read(name(b"key"), SeqNo::MAX, &mut Vec::new()).is_none(), "a read gets an old value");
    }
}
