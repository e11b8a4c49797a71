//! The versions of one key, from all extents that have some: each of them once.
//!
//! An extent and the one that a job made of it may both be there still. So a number may come twice, and an
//! operand alone and folded with others into one: the span in front of an operand says which numbers it
//! stands for.

use std::cmp::Reverse;

use terrane_base::{SeqKind, SeqNo, Stored};

/// Which extent has a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Whose {
    /// True if the remains of the manifest have the extent.
    pub(super) is_listed: bool,
    /// Its place in the lineage.
    pub(super) place: usize,
}

/// A version of the least key.
pub(super) struct Version {
    pub(super) seq_kind: SeqKind,
    pub(super) value: Vec<u8>,
    pub(super) of: Whose,
    /// Other pointers of the same number: a job has moved the value, and the extent before it is there still.
    pub(super) others: Vec<Vec<u8>>,
}

impl Version {
    pub(super) fn is_operand(&self) -> bool {
        self.seq_kind.is_merge()
    }

    pub(super) fn seq(&self) -> SeqNo {
        self.seq_kind.seq()
    }

    /// The least number that it stands for.
    fn first(&self) -> SeqNo {
        let stored = Stored::of_entry(self.seq_kind, &self.value);
        // One that cannot be read is a loss when it is written.
        let first = stored.map_or(self.seq(), |stored| stored.first(self.seq()));
        debug_assert!(first <= self.seq(), "an operand stands for itself and numbers below its own");
        first
    }
}

/// Sorts the versions of a key, newest first, and keeps each number once. Returns whether two operands stand
/// for some of the same numbers and neither for all of the other's: both stay then, and those count twice.
pub(super) fn newest_once(versions: &mut Vec<Version>) -> bool {
    // Of one number a value before an operand, which was folded into it, and before a pointer to it; of
    // operands the one that stands for most.
    let rank = |version: &Version| {
        let is_operand = version.is_operand();
        let first = if is_operand { version.first() } else { version.seq() };
        (Reverse(version.seq()), is_operand, version.seq_kind.is_pointer(), first, !version.of.is_listed)
    };
    versions.sort_by_key(rank);
    versions.dedup_by(|next, kept| {
        let is_same = next.seq() == kept.seq();
        if is_same && kept.seq_kind.is_pointer() && next.seq_kind.is_pointer() {
            kept.others.push(std::mem::take(&mut next.value));
        }
        is_same
    });
    debug_assert!(versions.is_sorted_by(|a, b| a.seq() > b.seq()), "a number comes once, the newest first");
    let (mut folded_from, mut counts_twice) = (SeqNo::MAX, false);
    versions.retain(|version| {
        if !version.is_operand() {
            return true;
        }
        let first = version.first();
        let is_folded = folded_from <= first;
        counts_twice |= !is_folded && folded_from <= version.seq();
        folded_from = folded_from.min(first);
        !is_folded
    });
    counts_twice
}

#[cfg(test)]
mod tests {
    use super::*;
    use terrane_base::RecordKind;

    fn operand(seq: u64, span: u64) -> Version {
        let mut value = Vec::new();
        terrane_base::varint::put_long(&mut value, span);
        let seq_kind = SeqKind::new(SeqNo(seq), RecordKind::Merge);
        Version { seq_kind, value, of: Whose { is_listed: true, place: 0 }, others: Vec::new() }
    }

    fn put(seq: u64) -> Version {
        let seq_kind = SeqKind::new(SeqNo(seq), RecordKind::Put);
        Version { seq_kind, value: Vec::new(), of: Whose { is_listed: false, place: 0 }, others: Vec::new() }
    }

    fn kept(mut versions: Vec<Version>) -> (Vec<(u64, u64)>, bool) {
        let counts_twice = newest_once(&mut versions);
        (versions.iter().map(|version| (version.seq().0, version.first().0)).collect(), counts_twice)
    }

    #[test]
    fn an_operand_alone_and_folded_counts_once() {
        assert_eq!(kept(vec![operand(5, 0), operand(9, 4), operand(7, 0)]), (vec![(9, 5)], false));
        assert_eq!(kept(vec![operand(9, 0), operand(9, 4), put(3)]), (vec![(9, 5), (3, 3)], false));
        assert_eq!(kept(vec![operand(4, 0), operand(9, 4)]), (vec![(9, 5), (4, 4)], false));
        assert_eq!(kept(vec![operand(9, 0), put(9)]), (vec![(9, 9)], false), "it was folded onto a value");
    }

    #[test]
    fn operands_that_overlap_in_part_both_stay_and_that_is_said() {
        assert_eq!(kept(vec![operand(7, 4), operand(9, 4)]), (vec![(9, 5), (7, 3)], true));
        assert_eq!(kept(vec![operand(7, 4), operand(9, 1)]), (vec![(9, 8), (7, 3)], false));
    }
}
