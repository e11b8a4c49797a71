//! Ranges of a table: an iterator of owned rows, and a cursor that lends them.

use std::ops::RangeBounds;
use std::sync::Arc;

use terrane_base::key_order::Order;
use terrane_base::{Error, Result};
use terrane_engine::{RangeIter, RenewableScan, TableScan};

use crate::snapshot::{self, Pin};
use crate::{Snapshot, Table};

/// A key and its value.
pub type Row = (Vec<u8>, Vec<u8>);

/// The rows of a range in key order, from both ends; owns what it needs, so it may outlive every handle.
///
/// It sees the table as it was when the iterator was made. After an error it ends.
pub struct Iter {
    /// None once it has ended by an error of its own.
    rows: Option<EncodedIter>,
    /// What keeps it from showing anything.
    failed: Option<Error>,
    order: Option<Arc<Order>>,
}

/// The rows of a range, with keys as the table keeps them.
pub(crate) struct EncodedIter {
    pub(crate) inner: RangeIter,
    /// Keeps the versions that the iterator sees.
    pub(crate) _pin: Pin,
}

impl Iterator for EncodedIter {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        self.inner.next()
    }
}

impl DoubleEndedIterator for EncodedIter {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.inner.next_back()
    }
}

impl Iter {
    /// The rows with their keys decoded, or the error alone.
    pub(crate) fn new(rows: Result<EncodedIter>, order: Option<Arc<Order>>) -> Self {
        match rows {
            Ok(rows) => Iter { rows: Some(rows), failed: None, order },
            Err(error) => Iter { rows: None, failed: Some(error), order },
        }
    }

    #[inline]
    fn step(&mut self, step: impl FnOnce(&mut EncodedIter) -> Option<Result<Row>>) -> Option<Result<Row>> {
        let Some(rows) = &mut self.rows else { return self.failed.take().map(Err) };
        let row = step(rows)?;
        let Some(order) = &self.order else { return Some(row) };
        let row = row.and_then(|row| decoded(order, row));
        if row.is_err() {
            self.rows = None;
        }
        Some(row)
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
    /// Keeps the versions that the cursor sees.
    pub(crate) pin: Pin,
    /// The key at the position, decoded; only where the table has an order. None if it could not be decoded.
    key: Option<Vec<u8>>,
}

impl Cursor {
    pub(crate) fn new(inner: RenewableScan, table: Table, pin: Pin) -> Self {
        Cursor { inner, table, pin, key: None }
    }

    /// Takes a step, and decodes the key that it leads to.
    #[inline]
    fn go(&mut self, step: impl FnOnce(&mut TableScan) -> Result<()>) -> Result<()> {
        step(&mut self.inner.scan)?;
        let Some(order) = &self.table.order else { return Ok(()) };
        let mut key = self.key.take().unwrap_or_default();
        if let Some((encoded, _)) = self.inner.scan.entry() {
            order.decode_into(encoded, &mut key)?;
        }
        self.key = Some(key);
        Ok(())
    }

    /// [`Cursor::go`] with a key as the table keeps it.
    #[inline]
    fn go_to(&mut self, key: &[u8], step: impl FnOnce(&mut TableScan, &[u8]) -> Result<()>) -> Result<()> {
        match self.table.order.clone() {
            None => step(&mut self.inner.scan, key),
            Some(order) => {
                let key = order.encode(key)?;
                self.go(|scan| step(scan, &key))
            }
        }
    }

    /// Makes the cursor see the table as it is now, without a position. For many short scans it costs less than a new
    /// cursor each: buffers stay, and as a rule the sorted runs that it looks into.
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
    pub fn refresh(&mut self) {
        // First the number, then the picture: what the number sees cannot go meanwhile.
        snapshot::renew(&mut self.pin);
        self.inner.renew(self.pin.engine(), self.table.engine_table(), self.pin.seq());
    }

    /// The key and value at the position; `None` before it is placed and past either end.
    #[inline]
    #[must_use]
    pub fn row(&self) -> Option<(&[u8], &[u8])> {
        let (key, value) = self.inner.scan.entry()?;
        Some((if self.table.order.is_some() { self.key.as_deref()? } else { key }, value))
    }

    /// Goes to the first key.
    ///
    /// # Errors
    /// `Io` or `Corrupt` from the store.
    pub fn seek_first(&mut self) -> Result<()> {
        self.go(TableScan::seek_first)
    }

    /// Goes to the last key.
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    pub fn seek_last(&mut self) -> Result<()> {
        self.go(TableScan::seek_last)
    }

    /// Goes to the first key at or after `key`.
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.go_to(key, TableScan::seek)
    }

    /// Goes to the last key at or before `key`.
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    pub fn seek_back(&mut self, key: &[u8]) -> Result<()> {
        self.go_to(key, TableScan::seek_back)
    }

    /// Goes to the next key; stays without a position if there is none.
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    #[expect(clippy::should_implement_trait, reason = "a lending cursor is not an Iterator")]
    #[inline]
    pub fn next(&mut self) -> Result<()> {
        self.go(TableScan::next)
    }

    /// Goes to the previous key; stays without a position if there is none.
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
}

impl Snapshot {
    /// [`Table::range_cursor`] over the table as the snapshot sees it.
    ///
    /// # Errors
    /// As there.
    pub fn range_cursor<'k>(&self, table: &Table, range: impl RangeBounds<&'k [u8]>) -> Result<Cursor> {
        Ok(table.cursor_at(table.bounds(&range)?, self.pin.clone()))
    }
}
