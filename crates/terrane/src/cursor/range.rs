//! Cursors over a range of a table, as it is now or as a snapshot sees it.

use std::sync::Arc;

use terrane_base::Result;
use terrane_engine::ExtentFilter;

use crate::{Cursor, KeyBounds, Snapshot, Table};

impl Table {
    /// A cursor over the rows of a range, as the table is now: wherever it seeks, it goes no further.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// for key in [b"a", b"b", b"c"] {
    ///     db.put(key, "v")?;
    /// }
    /// let mut cursor = db.default_table().range_cursor("b".."c")?;
    /// cursor.seek("a")?;
    /// assert_eq!(cursor.row().map(|(key, _)| key), Some(&b"b"[..]));
    /// cursor.next()?;
    /// assert!(cursor.row().is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` if a bound is not a key of the table.
    pub fn range_cursor(&self, range: impl KeyBounds) -> Result<Cursor> {
        Ok(self.cursor_at(self.bounds(range.lower(), range.upper())?, self.pin()))
    }

    /// [`Table::range_cursor`] that reads only extents for which `shows` returns true: the others are treated
    /// as absent, so that older versions of the same keys in other extents may become visible, and keys that
    /// their range deletes hide. Data in memory is always visible. `shows` is called once for each extent
    /// that may have a key in the range, when the cursor is made and again when a refresh finds other
    /// extents.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// let before = db.put("a", "1").map(|()| db.snapshot().seq())?;
    /// db.flush()?;
    /// let table = db.default_table();
    /// // Only what has changed since.
    /// let newer = std::sync::Arc::new(move |extent: &terrane::ExtentSummary| extent.seq_max > before);
    /// let mut cursor = table.filtered_cursor(.., newer)?;
    /// cursor.seek_first()?;
    /// assert!(cursor.row().is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Table::range_cursor`].
    pub fn filtered_cursor(&self, range: impl KeyBounds, shows: Arc<ExtentFilter>) -> Result<Cursor> {
        Ok(self.filtered_cursor_at(self.bounds(range.lower(), range.upper())?, self.pin(), Some(shows)))
    }
}

impl Snapshot {
    /// [`Table::range_cursor`] over the table as the snapshot sees it.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("a", "1")?;
    /// let mut cursor = db.snapshot().range_cursor(table, "a".."b")?;
    /// cursor.seek_first()?;
    /// assert!(cursor.row().is_some());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As there.
    pub fn range_cursor(&self, table: &Table, range: impl KeyBounds) -> Result<Cursor> {
        Ok(table.cursor_at(table.bounds(range.lower(), range.upper())?, self.pin.clone()))
    }

    /// [`Table::filtered_cursor`] over the table as the snapshot sees it.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("a", "1")?;
    /// let mut cursor = db.snapshot().filtered_cursor(table, .., std::sync::Arc::new(|_: &_| false))?;
    /// cursor.seek_first()?;
    /// assert!(cursor.row().is_some()); // rows in memory are always visible
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As there.
    pub fn filtered_cursor(
        &self,
        table: &Table,
        range: impl KeyBounds,
        shows: Arc<ExtentFilter>,
    ) -> Result<Cursor> {
        Ok(table.filtered_cursor_at(
            table.bounds(range.lower(), range.upper())?,
            self.pin.clone(),
            Some(shows),
        ))
    }
}
