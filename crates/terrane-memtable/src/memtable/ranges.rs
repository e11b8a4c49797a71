//! The range deletes of a memtable and their records.
#![expect(unsafe_code, reason = "callers promise that pointers lead to valid records")]

use std::sync::Arc;

use terrane_base::sync::Mutex;
use terrane_base::{Collation, RecordKind, SeqNo};
use terrane_device::SegmentMemory;

use super::Memtable;
use crate::arena::LaneGuard;
use crate::range_deletes::RangeDeletes;
use crate::record::RecordPtr;
use crate::segments::Pinned;

/// The range deletes of a memtable and their records.
pub(super) struct Ranges {
    deletes: RangeDeletes,
    records: Mutex<Vec<(RecordPtr, SeqNo)>>,
}

impl Ranges {
    fn of(collation: &Collation) -> Self {
        Ranges { deletes: RangeDeletes::ordered(collation), records: Mutex::default() }
    }
}

impl Memtable {
    /// Indexes the range deletes at these offsets of `segment`, each under its number, as
    /// [`Memtable::insert`] does one by one, and in one step for readers. For many of one batch: each step
    /// keeps the state before it until no guard is left that could see it.
    ///
    /// # Safety
    /// As [`Memtable::insert`], for each; each is a range delete.
    pub unsafe fn insert_ranges(&self, segment: &Arc<SegmentMemory>, records: &[(usize, SeqNo)]) {
        let placed = records.iter().map(|(offset, seq)| {
            assert!(*offset < segment.region.len(), "a record lies in its segment");
            // SAFETY: the offset is within the region.
            let start = unsafe { segment.region.start().add(*offset) };
            (segment, start.as_ptr().cast_const(), *seq)
        });
        // SAFETY: by the caller's promise.
        unsafe { self.insert_ranges_at(placed) }
    }

    /// As [`Memtable::insert_ranges`], for records of any segments.
    ///
    /// # Safety
    /// As [`Memtable::insert_ranges`]; each record lies in the segment beside it.
    pub(crate) unsafe fn insert_ranges_at<'s>(
        &self,
        records: impl Iterator<Item = (&'s Arc<SegmentMemory>, *const u8, SeqNo)>,
    ) {
        let mut lane = self.tree.arena().enter();
        let pin = |(segment, start, seq)| {
            let (index, pinned) = self.segments.pin(segment, lane.index(), lane.account());
            (RecordPtr::new(start, index), pinned, seq)
        };
        let records: Vec<_> = records.map(pin).collect();
        // SAFETY: by the caller's promise.
        unsafe { self.add_ranges(&mut lane, &records) };
    }

    /// Adds range deletes; returns how many of them were not there before.
    ///
    /// # Safety
    /// As [`Memtable::insert_ranges`], for the records.
    #[cold]
    pub(super) unsafe fn add_ranges(
        &self,
        lane: &mut LaneGuard<'_>,
        records: &[(RecordPtr, &Pinned, SeqNo)],
    ) -> usize {
        if records.is_empty() {
            return 0;
        }
        // SAFETY: by the caller's promise; the memory is pinned.
        let views: Vec<_> = records.iter().map(|(record, ..)| unsafe { record.view() }).collect();
        // SAFETY: as above.
        debug_assert!(records.iter().all(|(record, ..)| unsafe { record.kind() } == RecordKind::RangeDelete));
        let ranges = self.ranges.get_or_init(|| Box::new(Ranges::of(self.collation())));
        let deletes = views.iter().zip(records).map(|(view, (.., seq))| (view.key, view.value, *seq));
        let added = ranges.deletes.insert_all(deletes);
        assert_eq!(added.len(), records.len(), "an answer for each range delete");
        let mut kept = ranges.records.lock();
        let new = views.iter().zip(records).zip(&added).filter(|(_, is_new)| **is_new);
        for ((view, (record, pinned, seq)), _) in new {
            lane.account().take(RangeDeletes::bytes_of(view.key, view.value));
            kept.push((*record, *seq));
            lane.count(view.len, *seq);
            pinned.count(lane, view.len);
        }
        added.iter().filter(|is_new| **is_new).count()
    }

    /// The range deletes, if there are any.
    #[inline]
    #[must_use]
    pub fn range_deletes(&self) -> Option<&RangeDeletes> {
        self.ranges.get().map(|ranges| &ranges.deletes)
    }

    /// The number of the newest range delete that covers `key` and that a read at `seq` sees.
    #[inline]
    #[must_use]
    pub fn hidden(&self, key: &[u8], seq: SeqNo) -> Option<SeqNo> {
        self.range_deletes()?.covering(key, seq)
    }

    /// The records of the range deletes, by number.
    pub(crate) fn range_records(&self) -> Vec<(RecordPtr, SeqNo)> {
        let mut records = self.ranges.get().map_or_else(Vec::new, |ranges| ranges.records.lock().clone());
        records.sort_unstable_by_key(|(_, seq)| *seq);
        debug_assert!(records.windows(2).all(|pair| pair[0].1 != pair[1].1), "a number names one record");
        records
    }
}
