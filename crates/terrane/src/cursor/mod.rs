//! A position in a table that lends keys and values.

pub(crate) mod keys;
mod range;

use terrane_base::Result;
use terrane_engine::{Hold, RenewableScan, TableScan};

use crate::Table;
use crate::snapshot::Pin;

/// A position in a table that lends keys and values instead of copying them. It keeps the database open, and
/// reads on after a [`Db::close`](crate::Db::close): see [`Db`](crate::Db#handles).
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// # let db = terrane::Db::open(dir.path().join("data"))?;
/// for number in 0..10u8 {
///     db.put(&[number], "v")?;
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
        match self.inner.scan.key() {
            Some(encoded) => order.decode_into(encoded, &mut key)?,
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
    /// db.put("k", "v")?;
    /// cursor.seek("k")?;
    /// assert!(cursor.row().is_none());
    /// cursor.refresh();
    /// cursor.seek("k")?;
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
    /// db.put("k", "v")?;
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
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// for key in ["a", "b", "c"] {
    ///     table.put(key, "v")?;
    /// }
    /// let mut cursor = table.cursor();
    /// assert!(cursor.row().is_none()); // not placed
    /// cursor.seek_first()?;
    /// assert_eq!(cursor.row(), Some((&b"a"[..], &b"v"[..])));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn row(&self) -> Option<(&[u8], &[u8])> {
        let (key, value) = self.inner.scan.entry()?;
        Some((if self.table.order.is_some() { self.key.as_deref()? } else { key }, value))
    }

    /// The key at the position.
    #[inline]
    pub(crate) fn key(&self) -> Option<&[u8]> {
        let key = self.inner.scan.key()?;
        if self.table.order.is_some() { self.key.as_deref() } else { Some(key) }
    }

    /// Goes to the value at the position, if the cursor left it where it is.
    pub(crate) fn fetch(&mut self) -> Result<()> {
        self.step(TableScan::fetch)
    }

    fn refuse(&self) -> Result<()> {
        if self.is_refused { self.table.refuse_pin(self.hold.snapshot()) } else { Ok(()) }
    }

    /// Goes to the first key.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// for key in ["a", "b", "c"] {
    ///     table.put(key, "v")?;
    /// }
    /// let mut cursor = table.cursor();
    /// cursor.seek_first()?;
    /// assert_eq!(cursor.row().map(|(key, _)| key), Some(&b"a"[..]));
    /// # Ok::<(), terrane::Error>(())
    /// ```
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
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// for key in ["a", "b", "c"] {
    ///     table.put(key, "v")?;
    /// }
    /// let mut cursor = table.cursor();
    /// cursor.seek_last()?;
    /// assert_eq!(cursor.row().map(|(key, _)| key), Some(&b"c"[..]));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    pub fn seek_last(&mut self) -> Result<()> {
        self.refuse()?;
        self.go(TableScan::seek_last)
    }

    /// Goes to the first key at or after `key`.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// for key in ["a", "b", "c"] {
    ///     table.put(key, "v")?;
    /// }
    /// let mut cursor = table.cursor();
    /// cursor.seek("aa")?;
    /// assert_eq!(cursor.row().map(|(key, _)| key), Some(&b"b"[..]));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    #[inline]
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.seek_bytes(key.as_ref())
    }

    /// Goes to the last key at or before `key`.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// for key in ["a", "b", "c"] {
    ///     table.put(key, "v")?;
    /// }
    /// let mut cursor = table.cursor();
    /// cursor.seek_back("bb")?;
    /// assert_eq!(cursor.row().map(|(key, _)| key), Some(&b"b"[..]));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    #[inline]
    pub fn seek_back(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.seek_back_bytes(key.as_ref())
    }

    fn seek_bytes(&mut self, key: &[u8]) -> Result<()> {
        self.refuse()?;
        self.go_to(key, TableScan::seek)
    }

    fn seek_back_bytes(&mut self, key: &[u8]) -> Result<()> {
        self.refuse()?;
        self.go_to(key, TableScan::seek_back)
    }

    /// Goes to the next key; without one the cursor has no position.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// for key in ["a", "b", "c"] {
    ///     table.put(key, "v")?;
    /// }
    /// let mut cursor = table.cursor();
    /// cursor.seek("b")?;
    /// cursor.next()?;
    /// assert_eq!(cursor.row().map(|(key, _)| key), Some(&b"c"[..]));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    #[expect(clippy::should_implement_trait, reason = "a lending cursor is not an Iterator")]
    #[inline]
    pub fn next(&mut self) -> Result<()> {
        self.go(TableScan::next)
    }

    /// [`Cursor::next`], and calls `see` with the [row](Cursor::row) that it leads to; returns what `see`
    /// does. This way the row is found once for the step and the look at it.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// for key in ["a", "b", "c"] {
    ///     table.put(key, "v")?;
    /// }
    /// let mut cursor = table.cursor();
    /// cursor.seek("b")?;
    /// let len = cursor.next_seen(|row| row.map(|(key, value)| key.len() + value.len()))?;
    /// assert_eq!(len, Some(2));
    /// assert!(cursor.next_seen(|row| row.is_none())?);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    #[inline]
    pub fn next_seen<R>(&mut self, see: impl FnOnce(Option<(&[u8], &[u8])>) -> R) -> Result<R> {
        if self.table.order.is_none() && self.hold.is_plain() {
            debug_assert!(self.key.is_none(), "only where the table has an order are keys decoded");
            return self.inner.scan.next_seen(see);
        }
        self.next()?;
        Ok(see(self.row()))
    }

    /// [`Cursor::seek`], and calls `see` with the [row](Cursor::row) that it leads to; returns what `see`
    /// does.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("b", "v")?;
    /// let mut cursor = table.cursor();
    /// assert!(cursor.seek_seen("a", |row| row == Some((b"b", b"v")))?);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    #[inline]
    pub fn seek_seen<R>(
        &mut self,
        key: impl AsRef<[u8]>,
        see: impl FnOnce(Option<(&[u8], &[u8])>) -> R,
    ) -> Result<R> {
        if self.table.order.is_none() && self.hold.is_plain() {
            self.refuse()?;
            return self.inner.scan.seek_seen(key.as_ref(), see);
        }
        self.seek_bytes(key.as_ref())?;
        Ok(see(self.row()))
    }

    /// Goes to the previous key; without one the cursor has no position.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// for key in ["a", "b", "c"] {
    ///     table.put(key, "v")?;
    /// }
    /// let mut cursor = table.cursor();
    /// cursor.seek("b")?;
    /// cursor.prev()?;
    /// assert_eq!(cursor.row().map(|(key, _)| key), Some(&b"a"[..]));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    #[inline]
    pub fn prev(&mut self) -> Result<()> {
        self.go(TableScan::prev)
    }
}
