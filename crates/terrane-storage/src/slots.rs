//! The taken slots of one data file: a bitmap with a search for runs.

use std::ops::Range;

use crate::store::EXTENT_SLOTS_MAX;

/// Most slots of a data file: 1 GiB. An extent lies in one file, so this limits an extent, too.
pub(crate) const FILE_SLOTS: u32 = EXTENT_SLOTS_MAX;
const WORDS: usize = FILE_SLOTS as usize / 64;

/// A set of slot numbers below [`FILE_SLOTS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotSet([u64; WORDS]);

impl SlotSet {
    pub(crate) fn insert(&mut self, slots: Range<u32>) {
        self.each_word(slots, |word, mask| *word |= mask);
    }

    pub(crate) fn remove(&mut self, slots: Range<u32>) {
        self.each_word(slots.clone(), |word, mask| *word &= !mask);
        debug_assert!(self.contains_none(slots), "what was removed is not in the set");
    }

    /// Number of slots of a range that are in the set.
    pub(crate) fn count(&self, slots: Range<u32>) -> u32 {
        let len = slots.len() as u32;
        let count = masks(slots).map(|(index, mask)| (self.0[index] & mask).count_ones()).sum();
        debug_assert!(count <= len, "{count} of {len} slots are in the set");
        count
    }

    pub(crate) fn contains_all(&self, slots: Range<u32>) -> bool {
        masks(slots).all(|(index, mask)| self.0[index] & mask == mask)
    }

    pub(crate) fn contains_none(&self, slots: Range<u32>) -> bool {
        masks(slots).all(|(index, mask)| self.0[index] & mask == 0)
    }

    /// The first slot at or after `from` that is in the set; [`FILE_SLOTS`] without one.
    pub(crate) fn next_in(&self, from: u32) -> u32 {
        debug_assert!(from <= FILE_SLOTS, "slot {from} is in no file");
        masks(from..FILE_SLOTS)
            .find_map(|(index, mask)| first_bit(index, self.0[index] & mask))
            .unwrap_or(FILE_SLOTS)
    }

    /// The first slot at or after `from` that is not in the set; [`FILE_SLOTS`] without one.
    fn next_out(&self, from: u32) -> u32 {
        debug_assert!(from <= FILE_SLOTS, "slot {from} is in no file");
        masks(from..FILE_SLOTS)
            .find_map(|(index, mask)| first_bit(index, !self.0[index] & mask))
            .unwrap_or(FILE_SLOTS)
    }

    /// The runs of slots below `end` that are not in the set, lowest first.
    pub(crate) fn gaps(self, end: u32) -> impl Iterator<Item = Range<u32>> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let start = self.next_out(from);
            if start >= end {
                return None;
            }
            from = self.next_in(start);
            debug_assert!(start < from, "a gap has a slot, so the next one lies behind it");
            Some(start..from.min(end))
        })
    }

    pub(crate) fn union(&self, other: &SlotSet) -> SlotSet {
        let both = SlotSet(std::array::from_fn(|index| self.0[index] | other.0[index]));
        debug_assert!(self.0.iter().zip(both.0).all(|(own, both)| own & !both == 0), "no slot leaves a set");
        both
    }

    /// The slots that are not in this set.
    pub(crate) fn complement(&self) -> SlotSet {
        let rest = SlotSet(self.0.map(|word| !word));
        debug_assert_eq!(self.count(0..FILE_SLOTS) + rest.count(0..FILE_SLOTS), FILE_SLOTS);
        rest
    }

    /// The end of the last slot below `end` that is in the set; 0 without one.
    pub(crate) fn last_end(&self, end: u32) -> u32 {
        for (index, mask) in masks(0..end).rev() {
            let word = self.0[index] & mask;
            if word != 0 {
                let found = index as u32 * 64 + 64 - word.leading_zeros();
                debug_assert!(found <= end, "a slot at or behind {end} was found");
                return found;
            }
        }
        0
    }

    fn each_word(&mut self, slots: Range<u32>, mut change: impl FnMut(&mut u64, u64)) {
        debug_assert!(slots.end <= FILE_SLOTS, "slots {slots:?} of {FILE_SLOTS}");
        for (index, mask) in masks(slots) {
            change(&mut self.0[index], mask);
        }
    }
}

/// The words that a range touches, with the bits of the range in each.
fn masks(slots: Range<u32>) -> impl DoubleEndedIterator<Item = (usize, u64)> {
    debug_assert!(slots.end <= FILE_SLOTS, "slots {slots:?}");
    let words = if slots.is_empty() { 0..0 } else { slots.start / 64..(slots.end - 1) / 64 + 1 };
    words.map(move |index| {
        let low = slots.start.saturating_sub(index * 64);
        let high = (slots.end - index * 64).min(64);
        (index as usize, (u64::MAX << low) & (u64::MAX >> (64 - high)))
    })
}

fn first_bit(index: usize, word: u64) -> Option<u32> {
    (word != 0).then(|| index as u32 * 64 + word.trailing_zeros())
}
