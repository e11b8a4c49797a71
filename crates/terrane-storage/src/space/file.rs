//! The slots of one data file.

use std::ops::Range;

use crate::slots::SlotSet;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FileSlots {
    /// Slots in the file.
    pub(super) len: u32,
    pub(super) taken: SlotSet,
    pub(super) held: SlotSet,
    pub(super) holes: SlotSet,
    /// Last slots of extents that were of unknown state when they were taken: more of them may have space
    /// than the extent needs.
    pub(super) unsure: SlotSet,
    /// No slot of it may be written.
    pub(super) is_sealed: bool,
    /// Upper bound of the longest free run: exact after a search failed, unknown after a run was freed.
    pub(super) run_max: u32,
}

impl FileSlots {
    pub(super) fn take(&mut self, slots: Range<u32>) {
        assert!(self.taken.contains_none(slots.clone()), "two extents would lie in one of {slots:?}");
        let last = slots.end - 1..slots.end;
        if self.held.union(&self.holes).contains_none(last.clone()) {
            self.unsure.insert(last);
        }
        self.taken.insert(slots.clone());
        self.held.insert(slots.clone());
        self.holes.remove(slots);
    }

    pub(super) fn free(&mut self, slots: Range<u32>) {
        debug_assert!(self.taken.contains_all(slots.clone()), "{slots:?} are freed, and no extent has them");
        self.taken.remove(slots.clone());
        self.unsure.remove(slots);
        self.run_max = self.len;
    }

    pub(super) fn find(&mut self, slots: u32) -> Option<Range<u32>> {
        if self.run_max < slots || self.is_sealed {
            return None;
        }
        let mut longest = 0;
        for gap in self.taken.gaps(self.len) {
            if gap.len() as u32 >= slots {
                return Some(gap.start..gap.start + slots);
            }
            longest = longest.max(gap.len() as u32);
        }
        debug_assert!(longest < slots, "a gap that is long enough was passed over");
        self.run_max = longest;
        None
    }

    /// Free slots at the end.
    pub(super) fn tail(&self) -> u32 {
        self.len - self.taken.last_end(self.len)
    }
}

impl FileSlots {
    /// Slots that are neither taken nor holes.
    pub(super) fn unused(&self) -> u32 {
        self.len - self.taken.union(&self.holes).count(0..self.len)
    }

    /// The parts of a run that may lack real space.
    pub(super) fn lacking(&self, run: Range<u32>) -> Vec<Range<u32>> {
        let within = |gap: Range<u32>| gap.start.max(run.start)..gap.end;
        debug_assert!(run.end <= self.len, "{run:?} of a file of {} slots", self.len);
        self.held.gaps(run.end).map(within).filter(|gap| !gap.is_empty()).collect()
    }

    /// The highest free gap that contains a slot which may take space.
    pub(super) fn last_punchable_gap(&self) -> Option<Range<u32>> {
        let end = self.taken.union(&self.holes).complement().last_end(self.len);
        let gap = (end > 0).then(|| self.taken.last_end(end)..self.taken.next_in(end).min(self.len));
        let is_free = |gap: &Range<u32>| gap.contains(&(end - 1)) && self.taken.contains_none(gap.clone());
        debug_assert!(gap.as_ref().is_none_or(is_free), "{gap:?} is not a gap around slot {}", end - 1);
        gap
    }

    /// The upper part of a free gap in which at most `excess` slots take space.
    pub(super) fn top(&self, gap: Range<u32>, excess: u32) -> Range<u32> {
        let mut start = gap.end;
        let mut spent = 0;
        while start > gap.start {
            spent += 1 - self.holes.count(start - 1..start);
            if spent > excess {
                break;
            }
            start -= 1;
        }
        debug_assert!(gap.start <= start, "only slots of the gap are given back");
        start..gap.end
    }
}
