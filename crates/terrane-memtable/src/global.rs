//! The global index: frozen memtables merged into one sorted index, by pointer.
//!
//! Invariants: a generation that is closed to merges accepts no further entries; and it reports a memtable as
//! merged only when it holds every version of it that readers may need.
#![expect(unsafe_code, reason = "passes on pointers to records of other memtables")]

use std::sync::Arc;

use terrane_base::sync::Mutex;
use terrane_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use terrane_base::{RecordKind, SegmentId, SeqKind, SeqNo};

use crate::cursor::MemtableCursor;
use crate::memtable::{Memtable, Version};
use crate::segments::SegmentUse;
use crate::version::VersionEntry;

/// Bytes of records between two calls of a merge's `progress`.
const PROGRESS_BYTES: u64 = 64 << 10;

/// One generation of a table's global index. Reads continue while memtables are merged into it.
#[derive(Debug)]
pub struct GlobalIndex {
    index: Arc<Memtable>,
    first_seq: AtomicU64,
    /// Stored with Release by [`GlobalIndex::close_to_merges`], loaded with Acquire by
    /// [`GlobalIndex::is_closed`]; never unset.
    is_closed: AtomicBool,
    /// The first numbers of the memtables that were merged completely.
    taken_in: Mutex<Vec<SeqNo>>,
}

impl GlobalIndex {
    /// Makes a frozen memtable the first of a generation, without a copy. After that only
    /// [`GlobalIndex::merge`] may insert into the memtable.
    #[must_use]
    pub fn from_frozen(frozen: Arc<Memtable>) -> Self {
        let first_seq = frozen.first_seq();
        GlobalIndex {
            index: frozen,
            first_seq: AtomicU64::new(first_seq.0),
            is_closed: AtomicBool::new(false),
            taken_in: Mutex::new(vec![first_seq]),
        }
    }

    /// Refuses merges into this generation from now on: a flush reads it from front to back, and its cursor
    /// would miss an entry that a merge inserted before its position. Requires: no merge into this generation
    /// is running.
    pub fn close_to_merges(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// Returns true if it refuses merges.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Returns true if the memtable that begins with this number was merged completely, or was the first of
    /// the generation. The memtables of a table begin with different numbers.
    #[must_use]
    pub fn has_taken_in(&self, first_seq: SeqNo) -> bool {
        self.taken_in.lock().contains(&first_seq)
    }

    /// Merges a frozen memtable: inserts pointers and copies no record. Returns true if it completed; a
    /// closed generation returns false at once, unchanged.
    ///
    /// Of each key it takes the newest version, every version that one of `snapshots` sees (ascending), and
    /// the next older version of each operand and single delete that it takes, because these depend on it. It
    /// drops the other versions and counts their bytes as dead. `snapshots` must contain the number of every
    /// reader that may read this generation without reading `frozen` first: readers with a snapshot, and
    /// reads that began before `frozen` was full. Versions that the generation held before stay, shadowed,
    /// until it is flushed, because readers may be positioned on them.
    ///
    /// `progress` is called about every 64 KiB with the bytes of records processed so far; it may wait, to
    /// pace the merge, and cancels it by returning false. Until the merge has completed, readers read
    /// `frozen` before the generation. A cancelled merge is completed by calling it again.
    pub fn merge(
        &self,
        frozen: &Memtable,
        snapshots: &[SeqNo],
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> bool {
        debug_assert!(snapshots.is_sorted());
        if self.is_closed() && !terrane_base::planted!(MergeIntoFlushedGeneration) {
            return false;
        }
        let mut dropped = Dropped::default();
        // First: if the merge were cancelled and the generation flushed with keys alone, its operands would
        // be folded with values that the range deletes hide.
        self.merge_ranges(frozen);
        let (mut passed, mut reported) = (0, 0);
        let mut walk = frozen.walk();
        walk.seek_first();
        while let Some(at) = walk.at() {
            passed += self.merge_key(frozen, at.head, snapshots, &mut dropped);
            if passed - reported >= PROGRESS_BYTES {
                reported = passed;
                if !progress(passed) {
                    return false;
                }
            }
            walk.next_key();
        }
        debug_assert!(self.last_seq() >= frozen.last_seq(), "the newest version of each key is taken over");
        // Only at the end, so that a merge that is started twice counts its drops once.
        dropped.count(frozen, &self.index);
        self.first_seq.fetch_min(frozen.first_seq().0, Ordering::Relaxed);
        self.taken_in.lock().push(frozen.first_seq());
        true
    }

    /// Takes all range deletes: they are few compared to the keys that they hide.
    fn merge_ranges(&self, frozen: &Memtable) {
        let records = frozen.range_records();
        debug_assert!(records.is_sorted_by_key(|(_, seq)| *seq), "each would change all later states");
        let placed = records
            .iter()
            .map(|(record, seq)| (&frozen.pinned(record.segment()).memory, record.start(), *seq));
        // SAFETY: each record is valid, as it was for `frozen`, and lies in this segment.
        unsafe { self.index.insert_ranges_at(placed) };
    }

    /// Takes the versions of one key; returns their bytes.
    fn merge_key(
        &self,
        frozen: &Memtable,
        head: &VersionEntry,
        snapshots: &[SeqNo],
        dropped: &mut Dropped,
    ) -> u64 {
        let mut bytes = 0;
        let mut newer: Option<&VersionEntry> = None;
        let mut needs_older = false;
        for entry in std::iter::successors(Some(head), |entry| entry.older()) {
            let record_bytes = entry.view().len as u64;
            debug_assert!(
                newer.is_none_or(|newer| newer.seq() > entry.seq()),
                "numbers descend along a chain"
            );
            bytes += record_bytes;
            // A single delete below a newer put stays, because a newer single delete may remove the put.
            let is_single = entry.seq_kind.kind() == Some(RecordKind::SingleDelete);
            if is_single
                || needs_older
                || newer.is_none_or(|newer| is_seen(entry.seq(), newer.seq(), snapshots))
            {
                needs_older = needs_older_version(entry.seq_kind);
                let segment = &frozen.pinned(entry.record().segment()).memory;
                // SAFETY: the record is valid, as it was for `frozen`, and lies in this segment.
                unsafe { self.index.insert_at(segment, entry.record().start(), entry.seq()) };
            } else {
                dropped.add(entry.record().segment(), record_bytes);
            }
            newer = Some(entry);
        }
        bytes
    }

    /// As [`Memtable::get`].
    #[inline]
    #[must_use]
    pub fn get(&self, key: &[u8], seq: SeqNo) -> Option<Version<'_>> {
        self.index.get(key, seq)
    }

    /// As [`Memtable::get_hashed`].
    #[inline]
    #[must_use]
    pub fn get_hashed(&self, key: &[u8], hash: u64, seq: SeqNo) -> Option<Version<'_>> {
        self.index.get_hashed(key, hash, seq)
    }

    /// The index itself, for lookups.
    #[inline]
    #[must_use]
    pub fn index(&self) -> &Arc<Memtable> {
        &self.index
    }

    /// As [`Memtable::get_many`].
    pub fn get_many<'m>(&'m self, keys: &[&[u8]], seq: SeqNo, versions: &mut Vec<Option<Version<'m>>>) {
        self.index.get_many(keys, seq, versions);
    }

    /// As [`Memtable::cursor`].
    #[must_use]
    pub fn cursor(&self) -> MemtableCursor {
        self.index.cursor()
    }

    /// The smallest first number of what was merged.
    #[must_use]
    pub fn first_seq(&self) -> SeqNo {
        SeqNo(self.first_seq.load(Ordering::Relaxed))
    }

    /// As [`Memtable::last_seq`].
    #[must_use]
    pub fn last_seq(&self) -> SeqNo {
        self.index.last_seq()
    }

    /// As [`Memtable::entry_count`]; dropped versions are not counted.
    #[must_use]
    pub fn entry_count(&self) -> u64 {
        self.index.entry_count()
    }

    /// Returns true if nothing is indexed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// As [`Memtable::record_bytes`]; dropped versions are not counted.
    #[must_use]
    pub fn record_bytes(&self) -> u64 {
        self.index.record_bytes()
    }

    /// As [`Memtable::index_bytes`].
    #[must_use]
    pub fn index_bytes(&self) -> u64 {
        self.index.index_bytes()
    }

    /// As [`Memtable::segments`]; dropped versions count as bytes and as dead bytes.
    #[must_use]
    pub fn segments(&self) -> Vec<SegmentUse> {
        self.index.segments()
    }

    /// As [`Memtable::oldest_segment`].
    #[must_use]
    pub fn oldest_segment(&self) -> Option<SegmentId> {
        self.index.oldest_segment()
    }
}

/// Returns true if a version depends on the next older one.
fn needs_older_version(seq_kind: SeqKind) -> bool {
    let is_single = seq_kind.kind() == Some(RecordKind::SingleDelete);
    (seq_kind.is_merge() || is_single) && !terrane_base::planted!(DropOperands)
}

/// Returns true if some snapshot's newest version is `seq`, when the next newer one is `newer`.
fn is_seen(seq: SeqNo, newer: SeqNo, snapshots: &[SeqNo]) -> bool {
    let first = snapshots.partition_point(|snapshot| *snapshot < seq);
    snapshots.get(first).is_some_and(|snapshot| *snapshot < newer)
}

/// Bytes dropped by a merge, by the segment's index in the frozen memtable.
#[derive(Default)]
struct Dropped(Vec<u64>);

impl Dropped {
    fn add(&mut self, segment: u16, bytes: u64) {
        let index = usize::from(segment);
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        debug_assert!(bytes > 0, "a record has at least one byte");
        self.0[index] += bytes;
    }

    fn count(&self, frozen: &Memtable, index: &Memtable) {
        for (segment, bytes) in (0..).zip(&self.0).filter(|(_, bytes)| **bytes > 0) {
            index.pin(&frozen.pinned(segment).memory).count_dropped(*bytes);
        }
    }
}
