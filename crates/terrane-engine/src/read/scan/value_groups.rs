//! Counts the value tables that a scan meets, and marks ranges of keys in which they are too many
//! ([`ScanMarks`]).
//!
//! Long values are left out: each takes most of a block, so a scan reads a block for each of them wherever
//! they lie, and to rewrite them beside each other would save it nothing.
//!
//! The count is the scan's own, over [`ROWS`] rows at a time: what one row costs is a look among the few
//! numbers that were met since. Nothing is shared until a range is marked.

use std::sync::Arc;

use terrane_base::{Collation, ValueTableId};
use terrane_levels::Metasnapshot;

use crate::table::Table;
use crate::table::scan_marks::ScanMarks;

/// Rows with separated values over which value tables are counted.
const ROWS: usize = 256;
/// Values of at least one part in this many of a block are long.
const LONG_SHARE: u64 = 2;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct ValueGroups {
    marks: Arc<ScanMarks>,
    collation: Collation,
    /// More value tables than this are too many.
    limit: usize,
    /// Values of at least so many bytes do not count.
    long_bytes: usize,
    /// The value tables that were met, at most one more than the limit.
    met: Vec<ValueTableId>,
    rows: usize,
    /// The first key of the rows, and of those before among which there were too many.
    first: Vec<u8>,
    /// True if `first` is set.
    goes_on: bool,
    /// The key at which they became too many.
    crowded: Option<Vec<u8>>,
}

impl ValueGroups {
    /// Marks ranges of a table, for a scan of this tree; `None` if there is nothing to count.
    pub(crate) fn of(table: &Table, tree: &Metasnapshot) -> Option<Box<Self>> {
        if tree.values.is_empty() {
            return None;
        }
        let limits = &table.settings().limits;
        let limit =
            Some(limits.value_groups_max).filter(|_| limits.scan_triggered_values && limits.automatic);
        let long_bytes = (limits.block_bytes / LONG_SHARE) as usize;
        let collation = table.semantics.collation();
        limit.map(|limit| Box::new(Self::new(&table.scan_marks, collation, (limit, long_bytes))))
    }

    fn new(marks: &Arc<ScanMarks>, collation: &Collation, (limit, long_bytes): (usize, usize)) -> Self {
        debug_assert!(long_bytes > 0, "a block has room for a byte, so some values count");
        ValueGroups {
            marks: marks.clone(),
            collation: collation.clone(),
            limit,
            long_bytes,
            met: Vec::new(),
            rows: 0,
            first: Vec::new(),
            goes_on: false,
            crowded: None,
        }
    }

    /// Notes that the value of `key`, of the next row, which has `len` bytes, lies in `table`.
    #[inline]
    pub(crate) fn note(&mut self, key: &[u8], table: ValueTableId, len: usize) {
        if len >= self.long_bytes {
            return;
        }
        if self.rows + 1 < ROWS && self.met.contains(&table) {
            debug_assert!(self.goes_on, "rows that met a value table have a first key");
            self.rows += 1;
        } else {
            self.note_other(key, table);
        }
    }

    /// [`ValueGroups::note`] where the value table is another one, or the rows end.
    #[inline(never)]
    fn note_other(&mut self, key: &[u8], table: ValueTableId) {
        if !self.goes_on {
            self.first.clear();
            self.first.extend_from_slice(key);
            self.goes_on = true;
        }
        if self.met.len() <= self.limit && !self.met.contains(&table) {
            self.met.push(table);
            if self.met.len() > self.limit && self.crowded.is_none() {
                self.crowded = Some(key.to_vec());
            }
        }
        self.rows += 1;
        if self.rows == ROWS {
            self.end_rows(key);
        }
        debug_assert!(self.rows < ROWS, "rows end once there are so many");
    }

    /// Ends the rows at `key`: a range with too many value tables is marked, and may go on.
    fn end_rows(&mut self, key: &[u8]) {
        debug_assert!(self.met.len() <= self.limit + 1, "the count ends behind the limit");
        self.goes_on = self.crowded.take().is_some();
        if self.goes_on && self.collation.le(&self.first, key) {
            self.marks.mark(&self.first, key, &self.collation);
        } else {
            self.goes_on = false;
        }
        self.met.clear();
        self.rows = 0;
    }

    /// Forgets where the scan was: it goes on somewhere else.
    pub(crate) fn leave(&mut self) {
        debug_assert!(
            self.crowded.is_none() || self.goes_on,
            "rows with too many value tables have a first key"
        );
        if let Some(key) = self.crowded.take()
            && self.collation.le(&self.first, &key)
        {
            self.marks.mark(&self.first, &key, &self.collation);
        }
        self.met.clear();
        self.rows = 0;
        self.goes_on = false;
    }
}

impl Drop for ValueGroups {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Bound;

    /// The marks after scans of so many rows, with values of `len` bytes, over so many value tables in turns.
    fn marks_of(rows: u64, tables: u64, len: usize) -> Vec<(Vec<u8>, Bound<Vec<u8>>)> {
        let marks = Arc::new(ScanMarks::default());
        let mut groups = ValueGroups::new(&marks, &Collation::BYTES, (10, 8 << 10));
        for row in 0..rows {
            groups.note(format!("{row:05}").as_bytes(), ValueTableId(row % tables), len);
        }
        drop(groups);
        marks.ranges().into_iter().map(|range| (range.start, range.end)).collect()
    }

    fn marks(rows: u64, tables: u64) -> Vec<(Vec<u8>, Bound<Vec<u8>>)> {
        marks_of(rows, tables, (8 << 10) - 1)
    }

    #[test]
    fn values_of_half_a_block_mark_nothing() {
        assert!(!marks_of(1000, 30, (8 << 10) - 1).is_empty());
        assert!(marks_of(1000, 30, 8 << 10).is_empty(), "each takes a block, beside its neighbours or not");
    }

    #[test]
    fn too_many_value_tables_mark_the_range() {
        assert!(marks(10_000, 10).is_empty(), "as many as may be");
        assert_eq!(marks(20, 11), [(b"00000".to_vec(), Bound::Included(b"00010".to_vec()))], "a short scan");
        let whole = marks(1024, 11);
        assert_eq!(whole, [(b"00000".to_vec(), Bound::Included(b"01023".to_vec()))], "one mark, not four");
    }

    #[test]
    fn rows_apart_are_not_counted_together() {
        let marks = Arc::new(ScanMarks::default());
        let mut groups = ValueGroups::new(&marks, &Collation::BYTES, (2, 8 << 10));
        for row in 0..100u64 {
            groups.note(&row.to_be_bytes(), ValueTableId(row), 100);
            groups.leave();
        }
        drop(groups);
        assert!(marks.ranges().is_empty(), "each scan met one value table");
    }
}
