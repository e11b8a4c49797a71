//! Rows of the default table, and writes and reads of all tables at once.

use terrane_base::{Result, SeqNo};
use terrane_engine::{Origin, ReaderKind};

use crate::snapshot::pin;
use crate::{Batch, Db, Durability, Iter, KeyBounds, Snapshot, Value};

impl Db {
    /// Sets `key` to `value` in the default table. See [`Table::put`](crate::Table::put).
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("oslo", "717710")?;
    /// assert_eq!(db.get("oslo")?.expect("it was put"), "717710");
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Table::put`](crate::Table::put).
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.default_table().put_bytes(key.as_ref(), value.as_ref(), Durability::Buffered)
    }

    /// The value of `key` in the default table.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("oslo", "717710")?;
    /// let count = db.get("oslo")?.map(|value| String::from_utf8_lossy(&value).into_owned());
    /// assert_eq!(count.as_deref(), Some("717710"));
    /// assert!(db.get("rome")?.is_none());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Table::get`](crate::Table::get).
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.default_table().get_at(key.as_ref(), None)
    }

    /// Removes `key` from the default table.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("oslo", "717710")?;
    /// db.delete("oslo")?;
    /// assert!(db.get("oslo")?.is_none());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Table::put`](crate::Table::put).
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.default_table().delete_bytes(key.as_ref())
    }

    /// The rows of a range of the default table. See [`Table::range`](crate::Table::range).
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// for row in db.range("a".."b") {
    ///     let (key, value) = row?;
    ///     println!("{key:?} = {value:?}");
    /// }
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn range(&self, range: impl KeyBounds) -> Iter {
        self.default_table().range(range)
    }

    /// The rows of the default table whose keys begin with `prefix`. See
    /// [`Table::prefix`](crate::Table::prefix).
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("user/ada", "1815")?;
    /// assert_eq!(db.prefix("user/").count(), 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        self.default_table().prefix(prefix)
    }

    /// All rows of the default table.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("a", "1")?;
    /// assert_eq!(db.iter().count(), 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn iter(&self) -> Iter {
        self.default_table().iter()
    }

    /// Returns true if `key` has a value in the default table.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("oslo", "717710")?;
    /// assert!(db.contains("oslo")?);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Table::get`](crate::Table::get).
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.default_table().contains(key)
    }

    /// The values of several keys of the default table.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("oslo", "717710")?;
    /// let values = db.multi_get(&["oslo", "rome"])?;
    /// assert!(values[0].is_some() && values[1].is_none());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Table::get`](crate::Table::get).
    pub fn multi_get(&self, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Option<Value>>> {
        self.default_table().multi_get(keys)
    }

    /// Applies a batch, all or nothing, over any number of tables. Returns its position in the order of
    /// commits.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// use terrane::{Batch, Durability};
    /// let users = db.table_or_create("users")?;
    /// let mut batch = Batch::new();
    /// batch.put(&users, "ada", "1815")?;
    /// batch.put(db.default_table(), "users", "1")?;
    /// db.write(&batch, Durability::Synced)?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if a table of the batch was dropped, `Invalid` beyond the limits or for a batch of another
    /// database, `Full`, `Poisoned`, `Io`.
    pub fn write(&self, batch: &Batch, durability: Durability) -> Result<SeqNo> {
        batch.check(self.engine())?;
        self.engine().write(&batch.records, durability.is_synced())
    }

    /// A view of the present state of the database.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// db.put("k", "old")?;
    /// let before = db.snapshot();
    /// db.put("k", "new")?;
    /// assert_eq!(before.get(db.default_table(), "k")?.expect("it was put"), "old");
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { pin: pin(self.handle(), Origin::here(ReaderKind::Snapshot)) }
    }

    /// Makes every write so far durable.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// for number in 0..100u32 {
    ///     db.put(number.to_be_bytes(), "v")?;
    /// }
    /// db.sync()?; // all of them survive a loss of power
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Poisoned`, `Io`.
    pub fn sync(&self) -> Result<()> {
        self.engine().sync()
    }
}
