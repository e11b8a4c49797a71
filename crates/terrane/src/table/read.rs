//! Reads of many keys, into buffers, and by cursors.

use std::mem::MaybeUninit;

use terrane_base::{Result, SeqNo};
use terrane_engine::{Bounds, ReadMode};

use crate::{Cursor, Table, Value, Values};

impl Table {
    /// The values of several keys of one moment, in their order.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("plum", "3")?;
    /// let values = table.multi_get(&["apple", "plum"])?;
    /// assert_eq!(values[0], None);
    /// assert_eq!(values[1].as_deref(), Some(&b"3"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn multi_get(&self, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Option<Value>>> {
        self.multi_get_at(&slices(keys), None)
    }

    /// [`Table::multi_get`] into a buffer that can be used again: no allocation for each value, nor for the
    /// keys, which are slices.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("b", "1")?;
    /// let mut values = terrane::Values::new();
    /// db.default_table().multi_get_into(&[b"a", b"b"], &mut values)?;
    /// assert_eq!((values.get(0), values.get(1)), (None, Some(&b"1"[..])));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Table::get`]. The content of `values` is undefined then.
    pub fn multi_get_into(&self, keys: &[&[u8]], values: &mut Values) -> Result<()> {
        self.multi_get_into_at(keys, None, values)
    }

    /// Appends the value of `key` to `value` and returns whether there is one: a read without an allocation.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("k", "v")?;
    /// let mut value = Vec::new();
    /// assert!(table.get_into("k", &mut value)?);
    /// assert_eq!(value, b"v");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn get_into(&self, key: impl AsRef<[u8]>, value: &mut Vec<u8>) -> Result<bool> {
        self.get_bytes_into(key.as_ref(), value)
    }

    fn get_bytes_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.refuse_if_dropped()?;
        self.encoding(key, |key| self.engine.get(&self.inner, key, self.mode(None), value))
    }

    /// Copies the value of `key` to the beginning of `places`, if it is not longer than they are, and returns
    /// how long it is, if there is one: a read into memory of a known size. Of a longer value the places mean
    /// nothing.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use std::mem::MaybeUninit;
    /// table.put("count", 7_u32.to_le_bytes())?;
    /// let mut places = [MaybeUninit::uninit(); 4];
    /// assert_eq!(table.get_to("count", &mut places)?, Some(4)); // all four have their bytes
    /// assert_eq!(table.get_to("absent", &mut places)?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Table::get`].
    #[inline(always)]
    pub fn get_to(&self, key: impl AsRef<[u8]>, places: &mut [MaybeUninit<u8>]) -> Result<Option<usize>> {
        let key = key.as_ref();
        if self.has_plain_keys() {
            return self.engine.get_to(&self.inner, key, self.mode(None), places);
        }
        self.get_encoded_to(key, places)
    }

    /// [`Table::get_to`] as a part of the function that calls it, as far as memory: for the functions of the
    /// C interface that are this read. A kilobyte of code for each call.
    ///
    /// # Errors
    /// As [`Table::get`].
    #[doc(hidden)]
    #[inline(always)]
    pub fn get_to_here(&self, key: &[u8], places: &mut [MaybeUninit<u8>]) -> Result<Option<usize>> {
        if self.has_plain_keys() {
            return self.engine.get_to_here(&self.inner, key, self.filters, places);
        }
        self.get_encoded_to(key, places)
    }

    /// Returns true if the table is there, and the engine has its keys as callers have them.
    #[inline(always)]
    fn has_plain_keys(&self) -> bool {
        !self.inner.is_dropped() && self.order.is_none()
    }

    /// Apart from the other keys, so that their read is not a function of its own.
    #[inline(never)]
    fn get_encoded_to(&self, key: &[u8], places: &mut [MaybeUninit<u8>]) -> Result<Option<usize>> {
        debug_assert!(!self.has_plain_keys(), "plain keys are read by the callers of this function");
        self.refuse_if_dropped()?;
        self.encoding(key, |key| self.engine.get_to(&self.inner, key, self.mode(None), places))
    }

    /// A cursor over the present state of the table.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("k", "v")?;
    /// let mut cursor = table.cursor();
    /// cursor.seek_first()?;
    /// assert_eq!(cursor.row(), Some((&b"k"[..], &b"v"[..])));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[track_caller]
    pub fn cursor(&self) -> Cursor {
        self.cursor_at(Bounds::all(), self.pin())
    }

    /// A cursor over the rows whose keys begin with `prefix`, as the table is now: it goes no further. It
    /// passes by extents as [`Table::prefix`] does, wherever it seeks.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("user/ada", "1815")?;
    /// table.put("visit/1", "ada")?;
    /// let mut cursor = table.prefix_cursor("user/")?;
    /// cursor.seek_last()?;
    /// assert_eq!(cursor.row().map(|(key, _)| key), Some(&b"user/ada"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` if the table has an order in which such keys do not lie together.
    #[track_caller]
    pub fn prefix_cursor(&self, prefix: impl AsRef<[u8]>) -> Result<Cursor> {
        Ok(self.cursor_at(self.prefix_bounds(prefix.as_ref())?, self.pin()))
    }

    pub(crate) fn mode(&self, at: Option<SeqNo>) -> ReadMode {
        ReadMode { at, filters: self.filters, values: true }
    }

    /// Returns true if there is a value, without reading it if it is separated.
    pub(crate) fn contains_at(&self, key: &[u8], at: Option<SeqNo>) -> Result<bool> {
        self.refuse_if_dropped()?;
        let mode = ReadMode { values: false, ..self.mode(at) };
        let mut value = Vec::new();
        self.encoding(key, |key| self.engine.get(&self.inner, key, mode, &mut value))
    }

    pub(crate) fn get_at(&self, key: &[u8], at: Option<SeqNo>) -> Result<Option<Value>> {
        self.refuse_if_dropped()?;
        let mut value = Vec::new();
        let found = self.encoding(key, |key| self.engine.get(&self.inner, key, self.mode(at), &mut value))?;
        Ok(found.then(|| Value::new(value)))
    }
}

/// Keys as the engine takes them.
pub(crate) fn slices(keys: &[impl AsRef<[u8]>]) -> Vec<&[u8]> {
    keys.iter().map(AsRef::as_ref).collect()
}
