//! Counts the value tables that a scan meets, and marks ranges of keys in which they are too many
//! ([`ScanMarks`]).
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

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct ValueGroups {
    marks: Arc<ScanMarks>,
    collation: Collation,
    /// More value tables than this are too many.
    limit: usize,
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
    /// What marks ranges of a table, for a scan of this tree; `None` if there is nothing to count.
    pub(crate) fn of(table: &Table, tree: &Metasnapshot) -> Option<Box<Self>> {
        if tree.values.is_empty() {
            return None;
        }
        let limits = &table.settings().limits;
        let limit =
            Some(limits.value_groups_max).filter(|_| limits.scan_triggered_values && limits.automatic);
        limit.map(|limit| Box::new(Self::new(&table.scan_marks, table.semantics.collation(), limit)))
    }

    fn new(marks: &Arc<ScanMarks>, collation: &Collation, limit: usize) -> Self {
        ValueGroups {
            marks: marks.clone(),
            collation: collation.clone(),
            limit,
            met: Vec::new(),
            rows: 0,
            first: Vec::new(),
            goes_on: false,
            crowded: None,
        }
    }

    /// Notes that the value of `key`, of the next row, lies in `table`.
    #[inline]
    pub(crate) fn note(&mut self, key: &[u8], table: ValueTableId) {
        if self.rows + 1 < ROWS && self.met.contains(&table) {
            debug_assert!(self.goes_on, "rows that met a value table have a first key");
            self.rows += 1;
        } else {
            self.note_anew(key, table);
        }
    }

    /// [`ValueGroups::note`] where the value table is another one, or the rows end.
    #[inline(never)]
    fn note_anew(&mut self, key: &[u8], table: ValueTableId) {
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
    }

    /// Ends the rows at `key`: a range with too many value tables is marked, and may go on.
    fn end_rows(&mut self, key: &[u8]) {
        debug_assert!(self.met.len() <= self.limit + 1, "no more are counted");
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

    /// The marks after scans of so many rows over so many value tables in turns.
    fn marks(rows: u64, tables: u64) -> Vec<(Vec<u8>, Bound<Vec<u8>>)> {
        let marks = Arc::new(ScanMarks::default());
        let mut groups = ValueGroups::new(&marks, &Collation::BYTES, 10);
        (0..rows).for_each(|row| groups.note(format!("{row:05}").as_bytes(), ValueTableId(row % tables)));
        drop(groups);
        marks.ranges().into_iter().map(|range| (range.start, range.end)).collect()
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
        let mut groups = ValueGroups::new(&marks, &Collation::BYTES, 2);
        for row in 0..100u64 {
            groups.note(&row.to_be_bytes(), ValueTableId(row));
            groups.leave();
        }
        drop(groups);
        assert!(marks.ranges().is_empty(), "each scan met one value table");
    }
}
