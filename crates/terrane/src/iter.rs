//! Ranges of a table: an iterator of owned rows, and a cursor that lends them.

use std::ops::RangeBounds;
use std::sync::Arc;

use terrane_base::key_order::Order;
use terrane_base::{Error, Result};
use terrane_engine::{ExtentFilter, Hold, PinnedRange, RenewableScan, TableScan};

use crate::snapshot::Pin;
use crate::{Snapshot, Table};

/// A key and its value.
pub type Row = (Vec<u8>, Vec<u8>);

/// The rows of a range in key order, from both ends; owns its data, so it may outlive every handle.
///
/// It sees the table as it was when the iterator was made. After an error it ends; one is `TooOld`, if it is
/// older than the option `reader_age_max_ms` allows.
pub struct Iter {
    /// None once it has ended by an error of its own.
    rows: Option<PinnedRange>,
    /// The error that ends it.
    failed: Option<Error>,
    order: Option<Arc<Order>>,
}

impl Iter {
    /// The rows with their keys decoded, or the error alone.
    pub(crate) fn new(rows: Result<PinnedRange>, order: Option<Arc<Order>>) -> Self {
        match rows {
            Ok(rows) => Iter { rows: Some(rows), failed: None, order },
            Err(error) => Iter { rows: None, failed: Some(error), order },
        }
    }

    #[inline]
    fn step(&mut self, step: impl FnOnce(&mut PinnedRange) -> Option<Result<Row>>) -> Option<Result<Row>> {
        let Some(rows) = &mut self.rows else { return self.failed.take().map(Err) };
        let row = step(rows);
        let Some(order) = &self.order else { return row };
        let row = match row {
            Some(row) => Some(row.and_then(|row| decoded(order, row))),
            // Without the comparator it is unknown whether this is the end.
            None => order.collation().check().err().map(Err),
        };
        if matches!(row, Some(Err(_))) {
            self.rows = None;
        }
        row
    }
}

/// A row with its key as users know it.
pub(crate) fn decoded(order: &Order, (key, value): Row) -> Result<Row> {
    Ok((order.decode(&key)?, value))
}

impl Iterator for Iter {
    type Item = Result<Row>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.step(Iterator::next)
    }
}

impl DoubleEndedIterator for Iter {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(DoubleEndedIterator::next_back)
    }
}

/// A position in a table that lends keys and values instead of copying them.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// # let db = terrane::Db::open(dir.path().join("data"))?;
/// for number in 0..10u8 {
///     db.put(&[number], b"v")?;
/// }
/// let mut cursor = db.default_table().cursor();
/// cursor.seek(&[7])?;
/// while let Some((key, _value)) = cursor.row() {
///     assert!(key[0] >= 7);
///     cursor.next()?;
/// }
/// # Ok(())
/// # }
/// ```
pub struct Cursor {
    pub(crate) inner: RenewableScan,
    pub(crate) table: Table,
    /// Keeps the versions that the cursor sees, and reports what the scan holds.
    hold: Hold,
    /// The key at the position, decoded; only where the table has an order. None if it could not be decoded.
    key: Option<Vec<u8>>,
    /// True if the table must not be read at the moment of the pin.
    is_refused: bool,
}

impl Cursor {
    pub(crate) fn new(inner: RenewableScan, table: Table, pin: Pin) -> Self {
        let is_refused = table.refuse_pin(&pin).is_err();
        let hold = Hold::new(pin, table.engine_table(), &inner);
        Cursor { inner, table, hold, key: None, is_refused }
    }

    /// Moves the position, unless the cursor is too old: then it releases what it holds.
    #[inline]
    fn step(&mut self, step: impl FnOnce(&mut TableScan) -> Result<()>) -> Result<()> {
        if self.hold.is_plain() {
            return step(&mut self.inner.scan);
        }
        self.looked_at_step(step)
    }

    #[inline(never)]
    fn looked_at_step(&mut self, step: impl FnOnce(&mut TableScan) -> Result<()>) -> Result<()> {
        let pin = self.hold.snapshot();
        pin.check().inspect_err(|_| self.inner.release())?;
        pin.shared().watched_scan(&self.table.engine_table().name, || step(&mut self.inner.scan))
    }

    /// Takes a step, and decodes the key that it leads to.
    #[inline]
    fn go(&mut self, step: impl FnOnce(&mut TableScan) -> Result<()>) -> Result<()> {
        self.step(step)?;
        let Some(order) = &self.table.order else { return Ok(()) };
        let mut key = self.key.take().unwrap_or_default();
        match self.inner.scan.entry() {
            Some((encoded, _)) => order.decode_into(encoded, &mut key)?,
            None => order.collation().check()?,
        }
        self.key = Some(key);
        Ok(())
    }

    /// [`Cursor::go`] with a key as the table keeps it.
    #[inline]
    fn go_to(&mut self, key: &[u8], step: impl FnOnce(&mut TableScan, &[u8]) -> Result<()>) -> Result<()> {
        match self.table.order.clone() {
            None => self.step(|scan| step(scan, key)),
            Some(order) => {
                let key = order.encode(key)?;
                self.go(|scan| step(scan, &key))
            }
        }
    }

    /// Makes the cursor see the present state of the table, without a position. For many short scans this
    /// costs less than new cursors: buffers stay, and usually the sorted runs as well.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// let mut cursor = db.default_table().cursor();
    /// db.put(b"k", b"v")?;
    /// cursor.seek(b"k")?;
    /// assert!(cursor.row().is_none());
    /// cursor.refresh();
    /// cursor.seek(b"k")?;
    /// assert!(cursor.row().is_some());
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn refresh(&mut self) {
        // First the number, then the read view: what the number sees cannot be removed meanwhile.
        let is_other = self.hold.renew();
        let (table, pin) = (self.table.engine_table(), self.hold.snapshot());
        if self.inner.renew(pin.shared(), table, pin.seq()) || is_other {
            self.hold.note(table, &self.inner);
        }
        self.is_refused = self.table.refuse_pin(self.hold.snapshot()).is_err();
    }

    /// Returns true if nothing was written to the database, in whichever table, since the cursor was made or
    /// refreshed: then a [`Cursor::refresh`] would show nothing new. One of a snapshot is current while the
    /// snapshot is.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// let mut cursor = db.default_table().cursor();
    /// assert!(cursor.is_current());
    /// db.put(b"k", b"v")?;
    /// assert!(!cursor.is_current());
    /// cursor.refresh();
    /// assert!(cursor.is_current());
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    #[must_use]
    pub fn is_current(&self) -> bool {
        let pin = self.hold.snapshot();
        pin.seq() == pin.shared().visible()
    }

    /// The key and value at the position; `None` before it is placed and past either end.
    #[inline]
    #[must_use]
    pub fn row(&self) -> Option<(&[u8], &[u8])> {
        let (key, value) = self.inner.scan.entry()?;
        Some((if self.table.order.is_some() { self.key.as_deref()? } else { key }, value))
    }

    fn refuse(&self) -> Result<()> {
        if self.is_refused { self.table.refuse_pin(self.hold.snapshot()) } else { Ok(()) }
    }

    /// Goes to the first key.
    ///
    /// # Errors
    /// `Io` or `Corrupt` from the store; `TooOld` if the cursor is older than the option `reader_age_max_ms`
    /// allows, until it is refreshed. Of a cursor that was made, or refreshed, for a table that was dropped
    /// before: `NotFound`; with a snapshot of another database: `Invalid`.
    pub fn seek_first(&mut self) -> Result<()> {
        self.refuse()?;
        self.go(TableScan::seek_first)
    }

    /// Goes to the last key.
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    pub fn seek_last(&mut self) -> Result<()> {
        self.refuse()?;
        self.go(TableScan::seek_last)
    }

    /// Goes to the first key at or after `key`.
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.refuse()?;
        self.go_to(key, TableScan::seek)
    }

    /// Goes to the last key at or before `key`.
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    pub fn seek_back(&mut self, key: &[u8]) -> Result<()> {
        self.refuse()?;
        self.go_to(key, TableScan::seek_back)
    }

    /// Goes to the next key; without one the cursor has no position.
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    #[expect(clippy::should_implement_trait, reason = "a lending cursor is not an Iterator")]
    #[inline]
    pub fn next(&mut self) -> Result<()> {
        self.go(TableScan::next)
    }

    /// Goes to the previous key; without one the cursor has no position.
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    #[inline]
    pub fn prev(&mut self) -> Result<()> {
        self.go(TableScan::prev)
    }
}

impl Table {
    /// A cursor over the rows of a range, as the table is now: wherever it seeks, it goes no further.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// for key in [b"a", b"b", b"c"] {
    ///     db.put(key, b"v")?;
    /// }
    /// let mut cursor = db.default_table().range_cursor(b"b".as_slice()..b"c".as_slice())?;
    /// cursor.seek(b"a")?;
    /// assert_eq!(cursor.row().map(|(key, _)| key), Some(&b"b"[..]));
    /// cursor.next()?;
    /// assert!(cursor.row().is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` if a bound is no key of the table.
    pub fn range_cursor<'k>(&self, range: impl RangeBounds<&'k [u8]>) -> Result<Cursor> {
        Ok(self.cursor_at(self.bounds(&range)?, self.pin()))
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
    /// let before = db.put(b"a", b"1").map(|()| db.snapshot().seq())?;
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
    pub fn filtered_cursor<'k>(
        &self,
        range: impl RangeBounds<&'k [u8]>,
        shows: Arc<ExtentFilter>,
    ) -> Result<Cursor> {
        Ok(self.filtered_cursor_at(self.bounds(&range)?, self.pin(), Some(shows)))
    }
}

impl Snapshot {
    /// [`Table::range_cursor`] over the table as the snapshot sees it.
    ///
    /// # Errors
    /// As there.
    pub fn range_cursor<'k>(&self, table: &Table, range: impl RangeBounds<&'k [u8]>) -> Result<Cursor> {
        Ok(table.cursor_at(table.bounds(&range)?, self.pin.clone()))
    }

    /// [`Table::filtered_cursor`] over the table as the snapshot sees it.
    ///
    /// # Errors
    /// As there.
    pub fn filtered_cursor<'k>(
        &self,
        table: &Table,
        range: impl RangeBounds<&'k [u8]>,
        shows: Arc<ExtentFilter>,
    ) -> Result<Cursor> {
        Ok(table.filtered_cursor_at(table.bounds(&range)?, self.pin.clone(), Some(shows)))
    }
}
