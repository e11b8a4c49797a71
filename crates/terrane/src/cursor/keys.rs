//! A cursor that shows keys, and reads a value when it is asked for.

use terrane_base::Result;

use crate::Cursor;

/// A position in a table that lends keys, and reads a separated value only when it is asked for: from
/// [`Cursor::keys`].
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let db = terrane::Db::open_in_memory()?;
/// for number in 0..10u8 {
///     db.put([number], [number; 3])?;
/// }
/// let mut keys = db.default_table().cursor().keys();
/// keys.seek([4])?;
/// while let Some(key) = keys.key() {
///     if key[0] % 3 == 0 {
///         println!("{:?}", keys.value()?);
///     }
///     keys.next()?;
/// }
/// # Ok(())
/// # }
/// ```
pub struct KeyCursor {
    cursor: Cursor,
}

impl Cursor {
    /// The same cursor, without a position, as one that shows keys and reads a value only when it is asked
    /// for.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("a", "1")?;
    /// let mut keys = db.snapshot().cursor(db.default_table()).keys();
    /// keys.seek_first()?;
    /// assert_eq!(keys.key(), Some(&b"a"[..]));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn keys(mut self) -> KeyCursor {
        self.inner.scan.leave_position();
        self.inner.scan.leave_values(true);
        KeyCursor { cursor: self }
    }
}

impl KeyCursor {
    /// The key at the position; `None` before it is placed and past either end.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("a", "1")?;
    /// let mut keys = db.default_table().cursor().keys();
    /// assert_eq!(keys.key(), None); // not placed
    /// keys.seek("a")?;
    /// assert_eq!(keys.key(), Some(&b"a"[..]));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        self.cursor.key()
    }

    /// The value at the position.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("a", "1")?;
    /// let mut keys = db.default_table().cursor().keys();
    /// assert_eq!(keys.value()?, None); // not placed
    /// keys.seek_last()?;
    /// assert_eq!(keys.value()?, Some(&b"1"[..]));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cursor::seek_first`]; the cursor has no position then.
    pub fn value(&mut self) -> Result<Option<&[u8]>> {
        self.cursor.fetch()?;
        Ok(self.cursor.row().map(|(_, value)| value))
    }

    /// Goes to the first key.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("a", "1")?;
    /// db.put("c", "3")?;
    /// let mut keys = db.default_table().cursor().keys();
    /// keys.seek_first()?;
    /// assert_eq!(keys.key(), Some(&b"a"[..]));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    pub fn seek_first(&mut self) -> Result<()> {
        self.cursor.seek_first()
    }

    /// Goes to the last key.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("a", "1")?;
    /// db.put("c", "3")?;
    /// let mut keys = db.default_table().cursor().keys();
    /// keys.seek_last()?;
    /// assert_eq!(keys.key(), Some(&b"c"[..]));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    pub fn seek_last(&mut self) -> Result<()> {
        self.cursor.seek_last()
    }

    /// Goes to the first key at or after `key`.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("a", "1")?;
    /// db.put("c", "3")?;
    /// let mut keys = db.default_table().cursor().keys();
    /// keys.seek("b")?;
    /// assert_eq!(keys.key(), Some(&b"c"[..]));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.cursor.seek(key)
    }

    /// Goes to the last key at or before `key`.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("a", "1")?;
    /// db.put("c", "3")?;
    /// let mut keys = db.default_table().cursor().keys();
    /// keys.seek_back("b")?;
    /// assert_eq!(keys.key(), Some(&b"a"[..]));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    pub fn seek_back(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.cursor.seek_back(key)
    }

    /// Goes to the next key; without one the cursor has no position.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("a", "1")?;
    /// db.put("c", "3")?;
    /// let mut keys = db.default_table().cursor().keys();
    /// keys.seek_first()?;
    /// keys.next()?;
    /// assert_eq!(keys.key(), Some(&b"c"[..]));
    /// keys.next()?;
    /// assert_eq!(keys.key(), None); // past the end
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    #[expect(clippy::should_implement_trait, reason = "a lending cursor is not an Iterator")]
    #[inline]
    pub fn next(&mut self) -> Result<()> {
        self.cursor.next()
    }

    /// Goes to the previous key; without one the cursor has no position.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("a", "1")?;
    /// db.put("c", "3")?;
    /// let mut keys = db.default_table().cursor().keys();
    /// keys.seek_last()?;
    /// keys.prev()?;
    /// assert_eq!(keys.key(), Some(&b"a"[..]));
    /// keys.prev()?;
    /// assert_eq!(keys.key(), None); // before the first key
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    #[inline]
    pub fn prev(&mut self) -> Result<()> {
        self.cursor.prev()
    }

    /// Makes the cursor see the present state of the table, without a position: [`Cursor::refresh`].
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// let mut keys = db.default_table().cursor().keys();
    /// db.put("a", "1")?;
    /// keys.seek_first()?;
    /// assert_eq!(keys.key(), None); // the cursor is older than the row
    /// keys.refresh();
    /// keys.seek_first()?;
    /// assert_eq!(keys.key(), Some(&b"a"[..]));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[track_caller]
    pub fn refresh(&mut self) {
        self.cursor.refresh();
    }
}
