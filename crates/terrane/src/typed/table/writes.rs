//! Writes of a typed table.

use super::TypedTable;
use crate::typed::{KeyOf, ValueOf, WriteTarget};
use crate::{Durability, Result};

impl<K, V> TypedTable<K, V> {
    /// Sets `key` to `value`: [`Table::put`](crate::Table::put).
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # use terrane::typed::TypedTable;
    /// # let db = terrane::Db::open_in_memory()?;
    /// let names: TypedTable<u64, String> = TypedTable::new(db.table_or_create("names")?)?;
    /// names.put(7, "ada")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Table::put`](crate::Table::put), and those of the encoding of the value.
    pub fn put(&self, key: impl KeyOf<K>, value: impl ValueOf<V>) -> Result<()> {
        self.table.put(self.key(key), Self::value(&value)?)
    }

    /// Sets `key` to `value`; with [`Durability::Synced`] it is on disk when this returns.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # use terrane::typed::TypedTable;
    /// # let db = terrane::Db::open_in_memory()?;
    /// let names: TypedTable<u64, String> = TypedTable::new(db.table_or_create("names")?)?;
    /// names.put_with(7, "ada", terrane::Durability::Synced)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`TypedTable::put`].
    pub fn put_with(&self, key: impl KeyOf<K>, value: impl ValueOf<V>, durability: Durability) -> Result<()> {
        self.table.put_with(self.key(key), Self::value(&value)?, durability)
    }

    /// Removes `key`; fine if it is not there.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # use terrane::typed::TypedTable;
    /// # let db = terrane::Db::open_in_memory()?;
    /// let names: TypedTable<u64, String> = TypedTable::new(db.table_or_create("names")?)?;
    /// names.put(7, "ada")?;
    /// names.delete(7)?;
    /// assert_eq!(names.get(7)?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Table::delete`](crate::Table::delete).
    pub fn delete(&self, key: impl KeyOf<K>) -> Result<()> {
        self.table.delete(self.key(key))
    }

    /// Removes every key from `start` to before `end`: [`Table::delete_range`](crate::Table::delete_range).
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # use terrane::typed::TypedTable;
    /// # let db = terrane::Db::open_in_memory()?;
    /// let names: TypedTable<u64, String> = TypedTable::new(db.table_or_create("names")?)?;
    /// names.put(7, "ada")?;
    /// names.put(8, "grace")?;
    /// names.delete_range(0, 8)?;
    /// assert_eq!(names.iter().count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Table::delete_range`](crate::Table::delete_range).
    pub fn delete_range(&self, start: impl KeyOf<K>, end: impl KeyOf<K>) -> Result<()> {
        self.table.delete_range(self.key(start), self.key(end))
    }

    /// Adds a put to a batch or a transaction.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # use terrane::typed::TypedTable;
    /// # use terrane::{Batch, Durability};
    /// # let db = terrane::Db::open_in_memory()?;
    /// let names: TypedTable<u64, String> = TypedTable::new(db.table_or_create("names")?)?;
    /// let ids: TypedTable<String, u64> = TypedTable::new(db.table_or_create("ids")?)?;
    /// let mut batch = Batch::new();
    /// names.put_in(&mut batch, 7, "ada")?;
    /// ids.put_in(&mut batch, "ada", 7)?;
    /// db.write(&batch, Durability::Synced)?; // both or none
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As the put of the target, and those of the encoding of the value.
    pub fn put_in(
        &self,
        target: &mut impl WriteTarget,
        key: impl KeyOf<K>,
        value: impl ValueOf<V>,
    ) -> Result<()> {
        target.put_row(&self.table, &self.key(key), &Self::value(&value)?)
    }

    /// Adds a delete to a batch or a transaction.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # use terrane::typed::TypedTable;
    /// # let db = terrane::Db::open_in_memory()?;
    /// let names: TypedTable<u64, String> = TypedTable::new(db.table_or_create("names")?)?;
    /// let mut batch = terrane::Batch::new();
    /// names.delete_in(&mut batch, 7)?;
    /// assert_eq!(batch.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As the delete of the target.
    pub fn delete_in(&self, target: &mut impl WriteTarget, key: impl KeyOf<K>) -> Result<()> {
        target.delete_row(&self.table, &self.key(key))
    }
}
