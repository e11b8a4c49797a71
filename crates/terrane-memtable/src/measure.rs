//! Estimates entries and bytes of a key range: exact if a few steps are enough, else a lower and an upper
//! bound.
//!
//! A tree does not know how much is below a node. So a few keys are walked on both sides of each bound of the
//! range. If the range, or the rest around it, ends within these steps, the count is exact; else the keys met
//! inside give the lower bound, and those met outside are subtracted for the upper one.

use std::ops::Bound;

use crate::memtable::Memtable;
use crate::version::VersionEntry;
use crate::walk::Walk;

/// Records that lie within a range: at least and at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Versions, at least.
    pub entries_min: u64,
    /// Versions, at most.
    pub entries_max: u64,
    /// Bytes of their records, at least.
    pub bytes_min: u64,
    /// Bytes of their records, at most.
    pub bytes_max: u64,
}

/// The keys that a walk met.
#[derive(Clone, Copy, Default)]
struct Met {
    entries: u64,
    bytes: u64,
    /// True if the walk reached its end.
    is_all: bool,
}

impl Memtable {
    /// Entries and bytes between two keys. Walks `keys_max` keys in each of up to four directions.
    #[must_use]
    pub fn measure(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>, keys_max: usize) -> Measured {
        let is_above = |key: &[u8]| self.collation().is_above(key, lower);
        let is_below = |key: &[u8]| self.collation().is_below(key, upper);
        // Read before the walk: records that arrive meanwhile may be met, and are counted then.
        let (entries, bytes) = (self.entry_count(), self.record_bytes());
        let inside = self.meet(|walk| seek_above(walk, lower), keys_max, is_below);
        if inside.is_all {
            return Measured::exactly(inside.entries, inside.bytes);
        }
        let before = match lower {
            Bound::Unbounded => Met { is_all: true, ..Met::default() },
            _ => self.meet(|walk| walk.seek_first(), keys_max, |key| !is_above(key)),
        };
        let behind = match upper {
            Bound::Unbounded => Met { is_all: true, ..Met::default() },
            Bound::Included(_) | Bound::Excluded(_) => {
                self.meet(|walk| seek_behind(walk, upper), keys_max, |_| true)
            }
        };
        let rest =
            |all: u64, of: fn(&Met) -> u64| all.saturating_sub(of(&before)).saturating_sub(of(&behind));
        let (entries, bytes) = (rest(entries, |met| met.entries), rest(bytes, |met| met.bytes));
        // Records of range deletes are in the sums, but not in the tree.
        let is_exact = before.is_all && behind.is_all && self.range_deletes().is_none();
        let (entries, bytes) = (entries.max(inside.entries), bytes.max(inside.bytes));
        if is_exact {
            return Measured::exactly(entries, bytes);
        }
        debug_assert!(inside.entries <= entries && inside.bytes <= bytes, "a range holds what was met in it");
        Measured {
            entries_min: inside.entries,
            entries_max: entries,
            bytes_min: inside.bytes,
            bytes_max: bytes,
        }
    }

    /// Returns true if there is any version of a key, or any range delete, from `first` to `last`, both
    /// inclusive.
    #[must_use]
    pub fn touches(&self, first: &[u8], last: &[u8]) -> bool {
        let mut walk = self.walk();
        seek_above(&mut walk, Bound::Included(first));
        let has_key = walk.at().is_some_and(|at| self.collation().le(at.head.key(), last));
        has_key || self.range_deletes().is_some_and(|deletes| deletes.touches(first, last))
    }

    /// Counts the keys from the position of `seek` on, as long as they pass, and at most `keys_max`.
    fn meet(&self, seek: impl FnOnce(&mut Walk<'_>), keys_max: usize, passes: impl Fn(&[u8]) -> bool) -> Met {
        let mut walk = self.walk();
        seek(&mut walk);
        let mut met = Met::default();
        for _ in 0..keys_max {
            let Some(at) = walk.at().filter(|at| passes(at.head.key())) else {
                met.is_all = true;
                break;
            };
            for entry in std::iter::successors(Some(at.head), |entry: &&VersionEntry| entry.older()) {
                met.entries += 1;
                met.bytes += entry.view().len as u64;
            }
            walk.next_key();
        }
        debug_assert!(met.entries <= met.bytes, "a record has at least one byte");
        met
    }
}

impl Measured {
    fn exactly(entries: u64, bytes: u64) -> Measured {
        Measured { entries_min: entries, entries_max: entries, bytes_min: bytes, bytes_max: bytes }
    }
}

/// Goes to the first key within a lower bound.
fn seek_above(walk: &mut Walk<'_>, lower: Bound<&[u8]>) {
    match lower {
        Bound::Unbounded => walk.seek_first(),
        Bound::Included(key) => walk.seek(key, terrane_base::SeqNo::MAX),
        Bound::Excluded(key) => seek_behind(walk, Bound::Included(key)),
    }
}

/// Goes to the first key after an upper bound.
fn seek_behind(walk: &mut Walk<'_>, upper: Bound<&[u8]>) {
    match upper {
        Bound::Unbounded => {}
        Bound::Excluded(key) => walk.seek(key, terrane_base::SeqNo::MAX),
        Bound::Included(key) => {
            walk.seek(key, terrane_base::SeqNo::MAX);
            if walk.at().is_some_and(|at| at.head.key() == key) {
                walk.next_key();
            }
        }
    }
}
