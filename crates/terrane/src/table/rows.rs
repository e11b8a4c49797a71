//! The main use of a table: its rows, one by one and by ranges.

use terrane_base::Result;
use terrane_engine::{Bounds, Origin, ReaderKind};

use crate::{Durability, Iter, KeyBounds, Table, Value};

impl Table {
    /// The value of `key`.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// let cities = db.table_or_create("cities")?;
    /// cities.put("oslo", "717710")?;
    /// assert_eq!(cities.get("oslo")?.expect("it was put"), "717710");
    /// assert!(cities.get("rome")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a key beyond the limit, `NotFound` if the table was dropped, `Io` or `Corrupt`.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.get_at(key.as_ref(), None)
    }

    /// Sets `key` to `value`. Survives the death of the process, not a loss of power: [`Table::put_with`].
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// let users = db.table_or_create("users")?;
    /// users.put("ada", "1815")?;
    /// users.put(7u64.to_be_bytes(), vec![0; 100])?; // whatever borrows as bytes
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` beyond the limits, `NotFound` if the table was dropped, `Full`, `Poisoned`, `Io`.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_bytes(key.as_ref(), value.as_ref(), Durability::Buffered)
    }

    /// Removes `key`; fine if it is not there.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let users = db.table_or_create("users")?;
    /// users.put("ada", "1815")?;
    /// users.delete("ada")?;
    /// users.delete("ada")?;
    /// assert!(!users.contains("ada")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Table::put`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_bytes(key.as_ref())
    }

    /// The rows of a range, in order, from both ends. [`KeyBounds`] lists the types of ranges.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// for (key, value) in [("a", "1"), ("b", "2"), ("c", "3")] {
    ///     table.put(key, value)?;
    /// }
    /// for row in table.range("a".."c") {
    ///     let (key, value) = row?;
    ///     println!("{key:?} = {value:?}");
    /// }
    /// let (last, _) = table.range(..).next_back().expect("it has rows")?;
    /// assert_eq!(last, b"c");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The first item is the error where [`Table::get`] would fail.
    #[must_use]
    #[track_caller]
    pub fn range(&self, range: impl KeyBounds) -> Iter {
        self.iter_now(self.bounds(range.lower(), range.upper()), Origin::here(ReaderKind::Scan))
    }

    /// The rows whose keys begin with `prefix`. With a `prefix_extractor` for it, extents without such keys
    /// are skipped after a check of their filters, as for every range within one prefix.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("user/ada", "1815")?;
    /// table.put("visit/1", "ada")?;
    /// assert_eq!(table.prefix("user/").count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[track_caller]
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        self.iter_now(self.prefix_bounds(prefix.as_ref()), Origin::here(ReaderKind::Scan))
    }

    /// All rows; the same as a loop over `&table`.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("k", "v")?;
    /// assert_eq!(table.iter().count(), 1);
    /// for row in table {
    ///     let (key, value) = row?;
    ///     assert_eq!((key.as_slice(), value.as_slice()), (&b"k"[..], &b"v"[..]));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[track_caller]
    pub fn iter(&self) -> Iter {
        self.iter_now(Ok(Bounds::all()), Origin::here(ReaderKind::Scan))
    }

    /// Returns true if `key` has a value. A separated value is not read for it, unless operands are merged
    /// with it.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("k", "v")?;
    /// assert!(table.contains("k")? && !table.contains("l")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.contains_at(key.as_ref(), None)
    }
}

/// [`Table::iter`].
impl IntoIterator for &Table {
    type Item = <Iter as Iterator>::Item;
    type IntoIter = Iter;

    #[track_caller]
    fn into_iter(self) -> Iter {
        self.iter()
    }
}
