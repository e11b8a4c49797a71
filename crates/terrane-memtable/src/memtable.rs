//! The memtable: a radix tree over the records of one table, and the use of their segments.
#![expect(unsafe_code, reason = "callers promise that pointers lead to valid records")]

use std::fmt;
use std::sync::{Arc, OnceLock};

use terrane_base::{Collation, RecordKind, SegmentId, SeqKind, SeqNo};
use terrane_device::SegmentMemory;
use terrane_format::filter;

use crate::account::{Account, IndexMemory};
use crate::arena::LaneGuard;
use crate::cursor::MemtableCursor;
use crate::filter::KeyFilter;
use crate::list::List;
use crate::memtable::ranges::Ranges;
use crate::probe;
use crate::record::RecordPtr;
use crate::segments::{Pinned, SegmentTable, SegmentUse};
use crate::tree::Tree;
use crate::version::{Pushed, VersionEntry};
use crate::walk::Walk;

/// One version of a key, as [`Memtable::get`] finds it. The value lies in segment memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version<'a> {
    /// Sequence number and kind.
    pub seq_kind: SeqKind,
    /// User value; empty for a delete.
    pub value: &'a [u8],
}

/// A sorted index over records that lie in segments. Any number of threads insert and read at once.
///
/// It owns its nodes and keeps the memory of every segment that it points to alive; both are freed with the
/// memtable. Nothing is ever removed from it. It can point to at most 65532 segments.
pub struct Memtable {
    first_seq: SeqNo,
    /// Index of keys that are ordered as bytes, and the memory of all versions.
    tree: Tree,
    /// Index of keys that a comparator orders.
    list: Option<Box<List>>,
    segments: SegmentTable,
    filter: Option<KeyFilter>,
    /// Created by the first range delete, so that a read of a memtable without any pays for one load.
    ranges: OnceLock<Box<Ranges>>,
}

impl Memtable {
    /// Bytes of an empty one, whose keys are ordered as bytes.
    pub const EMPTY_BYTES: u64 = size_of::<Memtable>() as u64;

    /// An empty memtable for records from `first_seq` on, without a filter.
    #[must_use]
    pub fn new(first_seq: SeqNo) -> Arc<Self> {
        Memtable::with_filter(first_seq, false)
    }

    /// An empty memtable for records from `first_seq` on. A filter over its keys, about 2 bytes for each,
    /// saves [`Memtable::get_hashed`] most searches for absent keys.
    #[must_use]
    pub fn with_filter(first_seq: SeqNo, has_filter: bool) -> Arc<Self> {
        Memtable::ordered(first_seq, has_filter, Collation::bytes())
    }

    /// As [`Memtable::with_filter`], for a table with this key order.
    #[must_use]
    pub fn ordered(first_seq: SeqNo, has_filter: bool, collation: &Collation) -> Arc<Self> {
        Memtable::with_account(first_seq, has_filter, collation, Account::new(None))
    }

    /// As [`Memtable::ordered`]; what the index takes is in `sum` from now on, until the memtable goes or
    /// leaves it.
    #[must_use]
    pub fn counted(
        first_seq: SeqNo,
        has_filter: bool,
        collation: &Collation,
        sum: &Arc<IndexMemory>,
    ) -> Arc<Self> {
        Memtable::with_account(first_seq, has_filter, collation, Account::new(Some(sum.clone())))
    }

    fn with_account(
        first_seq: SeqNo,
        has_filter: bool,
        collation: &Collation,
        account: Account,
    ) -> Arc<Self> {
        let filter = has_filter.then(KeyFilter::new);
        let list = (!collation.is_bytes()).then(|| Box::new(List::new(collation)));
        account.take(size_of::<Memtable>() as u64 + list.as_ref().map_or(0, |list| list.bytes()));
        let (tree, segments) = (Tree::new(account), SegmentTable::new());
        Arc::new(Memtable { first_seq, tree, list, segments, filter, ranges: OnceLock::new() })
    }

    /// Key order of the table.
    #[inline]
    #[must_use]
    pub fn collation(&self) -> &Collation {
        self.list.as_ref().map_or(Collation::bytes(), |list| list.collation())
    }

    /// The newest version of `key`.
    #[inline]
    fn find(&self, key: &[u8]) -> Option<&VersionEntry> {
        match &self.list {
            None => self.tree.find(key),
            Some(list) => list.find(key),
        }
    }

    /// Indexes the record at `offset` of `segment` as version `seq` of its key.
    ///
    /// Once this returns, every later read sees the record. Inserting the same version again changes nothing;
    /// versions of a key may come in any order.
    ///
    /// # Safety
    /// A whole, valid record ([`terrane_base::record`]) lies at `offset` of the segment's region, and its
    /// bytes are not written any more. All segments given to one memtable with the same id are the same
    /// memory.
    ///
    /// # Panics
    /// If the segment's memory lies above 2^48, or it is the 65533rd segment.
    #[inline]
    pub unsafe fn insert(&self, segment: &Arc<SegmentMemory>, offset: usize, seq: SeqNo) {
        assert!(offset < segment.region.len());
        // SAFETY: the offset is within the region; it holds a record by the caller's promise, in memory that
        // is pinned.
        unsafe {
            let start = segment.region.start().add(offset).as_ptr();
            self.insert_at(segment, start, seq);
        }
    }

    /// Indexes the record at `start`; returns true if it was not indexed before.
    ///
    /// # Safety
    /// As [`Memtable::insert`]; `start` lies in the segment's region.
    #[inline]
    pub(crate) unsafe fn insert_at(
        &self,
        segment: &Arc<SegmentMemory>,
        start: *const u8,
        seq: SeqNo,
    ) -> bool {
        let at = start.addr().wrapping_sub(segment.region.start().addr().get());
        debug_assert!(at < segment.region.len(), "the record does not lie in segment {}", segment.id);
        let mut lane = self.tree.arena().enter();
        let (index, pinned) = self.segments.pin(segment, lane.index(), lane.account());
        let record = RecordPtr::new(start, index);
        // SAFETY: by the caller's promise.
        if unsafe { record.kind() } == RecordKind::RangeDelete {
            // SAFETY: as above.
            return unsafe { self.add_ranges(&mut lane, &[(record, pinned, seq)]) } > 0;
        }
        // SAFETY: by the caller's promise; the memory is pinned.
        let entry = unsafe { VersionEntry::new(&mut lane, seq, record) };
        let view = entry.view();
        if let Some(filter) = &self.filter {
            filter.insert(filter::hash(view.key), &lane);
        }
        let pushed = match &self.list {
            None => self.tree.insert(&mut lane, view.key, entry),
            Some(list) => list.insert(&mut lane, view.key, entry),
        };
        self.count(&mut lane, pinned, entry, view.len, &pushed)
    }

    #[inline]
    fn count(
        &self,
        lane: &mut LaneGuard<'_>,
        pinned: &Pinned,
        entry: &VersionEntry,
        bytes: usize,
        pushed: &Pushed<'_>,
    ) -> bool {
        if matches!(pushed, Pushed::Duplicate) {
            return false;
        }
        lane.count(bytes, entry.seq());
        pinned.count(lane, bytes);
        match pushed {
            Pushed::First | Pushed::Duplicate => {}
            Pushed::Shadows(old) => {
                debug_assert!(old.seq() < entry.seq(), "a version hides older ones only");
                self.segments.at(old.record().segment()).count_shadowed(lane, old.view().len);
            }
            Pushed::Shadowed => pinned.count_shadowed(lane, bytes),
        }
        true
    }

    /// The newest version of `key` with a number up to `seq`. Never waits.
    #[inline]
    #[must_use]
    pub fn get(&self, key: &[u8], seq: SeqNo) -> Option<Version<'_>> {
        self.find(key).and_then(|head| version_at(head, seq))
    }

    /// As [`Memtable::get`]; `hash` is [`terrane_format::filter::hash`] of `key`, for the filter if there is
    /// one.
    #[inline]
    #[must_use]
    pub fn get_hashed(&self, key: &[u8], hash: u64, seq: SeqNo) -> Option<Version<'_>> {
        if self.may_contain(hash) { self.get(key, seq) } else { None }
    }

    /// The versions of `key` with a number up to `seq`, newest first; `hash` as in [`Memtable::get_hashed`].
    /// Never waits.
    pub fn versions(&self, key: &[u8], hash: u64, seq: SeqNo) -> impl Iterator<Item = Version<'_>> {
        let head = if self.may_contain(hash) { self.find(key) } else { None };
        let newest = head.and_then(|head| head.visible_at(seq));
        debug_assert!(
            newest.is_none_or(|newest| newest.seq() <= seq),
            "a reader at {seq} sees a newer version"
        );
        std::iter::successors(newest, |entry| entry.older())
            .map(|entry| Version { seq_kind: entry.seq_kind, value: entry.view().value })
    }

    /// Returns true if a key with this hash may be in the memtable; `false` is certain.
    #[inline]
    #[must_use]
    pub fn may_contain(&self, hash: u64) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.may_contain(hash))
    }

    /// Prefetches the memory that [`Memtable::may_contain`] will read.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        if let Some(filter) = &self.filter {
            filter.prefetch(hash);
        }
    }

    /// As [`Memtable::get`] for many keys at once; `versions` is cleared and gets one answer per key.
    ///
    /// The lookups run interleaved, so that their cache misses overlap: with many keys and a large memtable
    /// this costs a fraction of single lookups.
    pub fn get_many<'m>(&'m self, keys: &[&[u8]], seq: SeqNo, versions: &mut Vec<Option<Version<'m>>>) {
        versions.clear();
        versions.resize(keys.len(), None);
        self.get_each(keys, seq, versions);
        debug_assert!(versions.len() == keys.len(), "an answer would be taken for that of another key");
    }

    /// As [`Memtable::get_many`], into one element per key. Requires: as many elements as keys.
    pub fn get_each<'m>(&'m self, keys: &[&[u8]], seq: SeqNo, versions: &mut [Option<Version<'m>>]) {
        assert_eq!(keys.len(), versions.len(), "a place for each key");
        if self.list.is_some() {
            versions.iter_mut().zip(keys).for_each(|(version, key)| *version = self.get(key, seq));
            return;
        }
        let Some(root) = self.tree.root() else { return versions.fill(None) };
        for (group, versions) in keys.chunks(probe::GROUP).zip(versions.chunks_mut(probe::GROUP)) {
            let heads = probe::find_group(root, group);
            for (version, head) in versions.iter_mut().zip(heads) {
                *version = head.and_then(|head| version_at(head, seq));
            }
        }
    }

    /// Returns true if there is any version of `key`, whose [`terrane_format::filter::hash`] is `hash`.
    #[must_use]
    pub fn holds(&self, key: &[u8], hash: u64) -> bool {
        self.may_contain(hash) && self.find(key).is_some()
    }

    /// Visits every key once, in order.
    pub fn each_key(&self, mut visit: impl FnMut(&[u8])) {
        let mut walk = self.walk();
        walk.seek_first();
        let mut before = None;
        while let Some(at) = walk.at() {
            debug_assert!(walk.is_ordered(before, Some(at.head)), "each key is visited once, in order");
            before = Some(at.head);
            visit(at.head.key());
            walk.next_key();
        }
    }

    /// A cursor over all versions, without a position. It keeps the memtable alive.
    #[must_use]
    pub fn cursor(self: &Arc<Self>) -> MemtableCursor {
        MemtableCursor::new(self.clone())
    }

    pub(crate) fn walk(&self) -> Walk<'_> {
        Walk::new(self.tree.root_slot(), self.list.as_deref())
    }

    pub(crate) fn pinned(&self, index: u16) -> &Pinned {
        self.segments.at(index)
    }

    pub(crate) fn pin(&self, segment: &Arc<SegmentMemory>) -> &Pinned {
        // Its holder alone counts in the lane: nothing is counted here in any.
        self.segments.pin(segment, 0, self.tree.arena().account()).1
    }

    /// The first number of the memtable, as given to [`Memtable::new`].
    #[must_use]
    pub fn first_seq(&self) -> SeqNo {
        self.first_seq
    }

    /// The greatest number indexed so far; 0 for an empty memtable.
    #[must_use]
    pub fn last_seq(&self) -> SeqNo {
        self.tree.arena().last_seq()
    }

    /// The use of each segment, by segment id.
    #[must_use]
    pub fn segments(&self) -> Vec<SegmentUse> {
        self.segments.uses()
    }

    /// The segment with the smallest id to which the memtable points.
    #[must_use]
    pub fn oldest_segment(&self) -> Option<SegmentId> {
        self.segments.oldest()
    }
}

mod ranges;
mod size;

#[inline]
fn version_at(head: &VersionEntry, seq: SeqNo) -> Option<Version<'_>> {
    let entry = head.visible_at(seq)?;
    Some(Version { seq_kind: entry.seq_kind, value: entry.view().value })
}

impl fmt::Debug for Memtable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memtable")
            .field("first_seq", &self.first_seq)
            .field("entry_count", &self.entry_count())
            .field("record_bytes", &self.record_bytes())
            .field("index_bytes", &self.index_bytes())
            .finish_non_exhaustive()
    }
}
