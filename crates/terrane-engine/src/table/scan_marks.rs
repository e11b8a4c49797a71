//! Ranges of keys in which scans of a table met too many value tables, until a job has rewritten the values
//! there (`terrane_compaction`'s `pick/values/mend.rs`).
//!
//! Scans come here once for many rows. Invariant: the marks do not overlap, and are few.

use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use terrane_base::sync::Mutex;
use terrane_base::{Collation, TableId};
use terrane_compaction::KeyRange;

use crate::table::sums::TableSums;

/// Most marks; scans mark a range that was left out again.
const MARKS_MAX: usize = 16;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct ScanMarks {
    ranges: Mutex<Vec<KeyRange>>,
    /// Where the table is listed when there is a new mark.
    listed_in: OnceLock<(Arc<TableSums>, TableId)>,
}

impl ScanMarks {
    /// Says where the table is listed when there is a new mark.
    pub(crate) fn join(&self, sums: &Arc<TableSums>, table: TableId) {
        self.listed_in.get_or_init(|| (sums.clone(), table));
    }

    /// Marks the keys from `first` to `last`. Another scan that marks at the same time goes first.
    pub(crate) fn mark(&self, first: &[u8], last: &[u8], collation: &Collation) {
        debug_assert!(collation.le(first, last), "a mark goes forward");
        let Some(mut ranges) = self.ranges.try_lock() else { return };
        let mut added = KeyRange::closed(first, last).ordered(collation);
        let covers = |range: &KeyRange| range.contains(first) && range.contains(last);
        if ranges.iter().any(covers) {
            return;
        }
        ranges.retain(|range| {
            let overlaps = range.overlaps(&added);
            if overlaps {
                unite(&mut added, range);
            }
            !overlaps
        });
        if ranges.len() == MARKS_MAX {
            ranges.remove(0);
        }
        ranges.push(added);
        drop(ranges);
        if let Some((sums, table)) = self.listed_in.get() {
            sums.due().note_levels(*table);
        }
    }

    /// The marks, the oldest first.
    pub(crate) fn ranges(&self) -> Vec<KeyRange> {
        self.ranges.lock().clone()
    }

    /// A job rewrote values of this range: scans mark the ranges that remain.
    pub(crate) fn remove(&self, mended: &KeyRange) {
        self.ranges.lock().retain(|range| !range.overlaps(mended));
    }
}

/// Makes `range` so long that it covers `other`, too. Requires: both are closed.
fn unite(range: &mut KeyRange, other: &KeyRange) {
    let is_closed = |range: &KeyRange| matches!(range.end, Bound::Included(_));
    debug_assert!(is_closed(range) && is_closed(other), "marks begin and end with a key that a scan met");
    if range.collation.lt(&other.start, &range.start) {
        range.start.clone_from(&other.start);
    }
    if let Bound::Included(end) = &other.end
        && range.ends_before(end)
    {
        range.end.clone_from(&other.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(marks: &[(&str, &str)]) -> Vec<(Vec<u8>, Bound<Vec<u8>>)> {
        let all = ScanMarks::default();
        for (first, last) in marks {
            all.mark(first.as_bytes(), last.as_bytes(), &Collation::BYTES);
        }
        all.ranges().into_iter().map(|range| (range.start, range.end)).collect()
    }

    fn closed(first: &str, last: &str) -> (Vec<u8>, Bound<Vec<u8>>) {
        (first.into(), Bound::Included(last.into()))
    }

    #[test]
    fn marks_that_overlap_become_one() {
        assert_eq!(marked(&[("b", "d"), ("f", "h")]), [closed("b", "d"), closed("f", "h")]);
        assert_eq!(marked(&[("b", "d"), ("f", "h"), ("c", "f")]), [closed("b", "h")]);
        assert_eq!(marked(&[("b", "h"), ("c", "d")]), [closed("b", "h")], "it is covered");
        assert_eq!(marked(&[("c", "d"), ("a", "z")]), [closed("a", "z")]);
    }

    #[test]
    fn marks_are_few_and_go_with_what_was_mended() {
        let all = ScanMarks::default();
        for number in 0..100 {
            let key = format!("{number:03}");
            all.mark(key.as_bytes(), key.as_bytes(), &Collation::BYTES);
        }
        assert_eq!(all.ranges().len(), MARKS_MAX);
        all.remove(&KeyRange::closed(b"000", b"090"));
        assert_eq!(all.ranges().len(), 9, "091 to 099 are left");
    }
}
