//! Ranges of a table: an iterator of owned rows, and a cursor that lends them.

use terrane_base::Result;
use terrane_engine::{Hold, PinnedRange, RenewableScan, TableScan};

use crate::Table;
use crate::snapshot::{self, Pin};

/// A key and its value.
pub type Row = (Vec<u8>, Vec<u8>);

/// The rows of a range in key order, from both ends; owns what it needs, so it may outlive every handle.
///
/// It sees the table as it was when the iterator was made. After an error it ends; one is `TooOld`, if it is older than the
/// option `reader_age_max_ms` allows.
pub struct Iter {
    pub(crate) inner: PinnedRange,
}

impl Iterator for Iter {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        self.inner.next()
    }
}

impl DoubleEndedIterator for Iter {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.inner.next_back()
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
    /// Tells what the scan holds.
    pub(crate) hold: Hold,
    /// Keeps the versions that the cursor sees.
    pub(crate) pin: Pin,
}

impl Cursor {
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
    #[track_caller]
    pub fn refresh(&mut self) {
        // First the number, then the picture: what the number sees cannot go meanwhile.
        let is_other = snapshot::renew(&mut self.pin);
        let table = self.table.engine_table();
        if self.inner.renew(self.pin.engine(), table, self.pin.seq()) || is_other {
            self.hold = self.pin.hold_scan(table, &self.inner);
        }
    }

    /// Moves the position, unless the cursor is too old: then it lets go of what it holds.
    #[inline]
    fn step(&mut self, step: impl FnOnce(&mut TableScan) -> Result<()>) -> Result<()> {
        self.pin.check().inspect_err(|_| self.inner.release())?;
        let engine = self.pin.engine();
        if engine.watches_scans() {
            return engine.watched_scan(self.table.engine_table(), || step(&mut self.inner.scan));
        }
        step(&mut self.inner.scan)
    }

    /// The key and value at the position; `None` before it is placed and past either end.
    #[inline]
    #[must_use]
    pub fn row(&self) -> Option<(&[u8], &[u8])> {
        self.inner.scan.entry()
    }

    /// Goes to the first key.
    ///
    /// # Errors
    /// `Io` or `Corrupt` from the store; `TooOld` if the cursor is older than the option `reader_age_max_ms` allows, until it
    /// is refreshed.
    pub fn seek_first(&mut self) -> Result<()> {
        self.step(|scan| scan.seek_first())
    }

    /// Goes to the last key.
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    pub fn seek_last(&mut self) -> Result<()> {
        self.step(|scan| scan.seek_last())
    }

    /// Goes to the first key at or after `key`.
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.step(|scan| scan.seek(key))
    }

    /// Goes to the last key at or before `key`.
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    pub fn seek_back(&mut self, key: &[u8]) -> Result<()> {
        self.step(|scan| scan.seek_back(key))
    }

    /// Goes to the next key; stays without a position if there is none.
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    #[expect(clippy::should_implement_trait, reason = "a lending cursor is not an Iterator")]
    #[inline]
    pub fn next(&mut self) -> Result<()> {
        self.step(|scan| scan.next())
    }

    /// Goes to the previous key; stays without a position if there is none.
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    #[inline]
    pub fn prev(&mut self) -> Result<()> {
        self.step(|scan| scan.prev())
    }
}
