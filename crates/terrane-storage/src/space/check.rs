//! The walk that checks the space manager.

use super::{FileSlots, SlotCounts, Space};
use crate::slots::FILE_SLOTS;

impl Space {
    /// Walks all files and asserts that each slot has one state of the diagram in the head of the space
    /// manager, that the counts are those of the files, and that a search for a run passes over none.
    pub(crate) fn check(&self) -> bool {
        let mut found = SlotCounts { sealed: self.counts.sealed, ..SlotCounts::default() };
        for (number, file) in &self.files {
            let all = 0..file.len;
            assert!(file.len <= FILE_SLOTS, "file {number} of {} slots", file.len);
            let space = file.held.union(&file.holes).count(all.clone());
            let apart = file.held.count(all.clone()) + file.holes.count(all.clone());
            assert!(space == apart, "file {number}: a hole has space on the device");
            let taken = file.taken.count(all.clone());
            let longest = file.taken.gaps(file.len).map(|gap| gap.len() as u32).max().unwrap_or(0);
            assert!(longest <= file.run_max, "file {number}: a search would pass over {longest} free slots");
            let is_passed = *number < self.first_free && !file.is_sealed;
            assert!(
                !is_passed || longest == 0,
                "a search would pass over file {number}, which has free slots"
            );
            // A hole that running work has taken counts as taken.
            let holes = file.taken.union(&file.holes).count(all) - taken;
            let behind = file.taken.union(&file.holes).count(file.len..FILE_SLOTS);
            assert!(behind == 0, "file {number}: {behind} slots behind its end are in use");
            found.total += u64::from(file.len);
            found.taken += u64::from(taken);
            found.holes += u64::from(holes);
            found.files += 1;
        }
        for &(number, slot) in self.loose_ends.keys() {
            let file = self.files.get(&number);
            let is_held = |slots: &FileSlots| {
                let space = slots.held.union(&slots.unsure);
                slots.taken.contains_all(slot..slot + 1) && space.contains_all(slot..slot + 1)
            };
            assert!(file.is_some_and(is_held), "slot {slot} of file {number} has a loose end and no extent");
        }
        assert!(found == self.counts, "the files have {found:?}, counted are {:?}", self.counts);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_free_file() -> Space {
        let mut space = Space::new();
        space.add_file(1, 8);
        assert!(space.check());
        space
    }

    #[test]
    #[should_panic(expected = "a search would pass over file 1")]
    fn a_file_with_free_slots_that_no_search_reaches_is_found() {
        let mut space = one_free_file();
        space.first_free = 2;
        space.check();
    }

    #[test]
    #[should_panic(expected = "a search would pass over 8 free slots")]
    fn a_run_that_is_longer_than_its_bound_is_found() {
        let mut space = one_free_file();
        space.files.get_mut(&1).expect("added above").run_max = 7;
        space.check();
    }
}
