//! Changes of an indexed batch.

use std::time::Duration;

use terrane_base::{Moment, Result};

use super::IndexedBatch;
use crate::Table;
use crate::table::moment_at;

impl IndexedBatch {
    /// Sets `key` to `value` in `table`.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.put(table, "k", "v")?;
    /// assert_eq!(batch.get(table, "k")?.expect("its own"), "v");
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::put`](crate::Batch::put).
    pub fn put(&mut self, table: &Table, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_bytes(table, key.as_ref(), value.as_ref())
    }

    fn put_bytes(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.add(table, |batch| batch.put(table, key, value))
    }

    /// As [`Batch::put_with_ttl`](crate::Batch::put_with_ttl).
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.put_with_ttl(table, "session", "ada", std::time::Duration::from_secs(3600))?;
    /// assert!(batch.get(table, "session")?.is_some());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::put_with_ttl`](crate::Batch::put_with_ttl).
    pub fn put_with_ttl(
        &mut self,
        table: &Table,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        self.put_until_moment(table, key.as_ref(), value.as_ref(), table.moment_in(ttl)?)
    }

    /// As [`Batch::put_until`](crate::Batch::put_until).
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.put_until(table, "session", "ada", std::time::Duration::from_secs(1))?; // a second into 1970
    /// assert!(batch.get(table, "session")?.is_none());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::put`](crate::Batch::put).
    pub fn put_until(
        &mut self,
        table: &Table,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        until: Duration,
    ) -> Result<()> {
        self.put_until_moment(table, key.as_ref(), value.as_ref(), moment_at(until))
    }

    pub(crate) fn put_until_moment(
        &mut self,
        table: &Table,
        key: &[u8],
        value: &[u8],
        until: Moment,
    ) -> Result<()> {
        self.add(table, |batch| batch.put_until_moment(table, key, value, until))
    }

    /// Has the merge operator of `table` fold `operand` with what `key` has; see [`Table::merge`].
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// use terrane::{TableOptions, counter};
    /// let visits = db.create_table("visits", &TableOptions::new().merge_operator("counter"))?;
    /// visits.merge("page", counter::encode(2))?;
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.merge(&visits, "page", counter::encode(1))?;
    /// assert_eq!(counter::decode(&batch.get(&visits, "page")?.expect("it was visited"))?, 3);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::merge`](crate::Batch::merge).
    pub fn merge(&mut self, table: &Table, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_bytes(table, key.as_ref(), operand.as_ref())
    }

    fn merge_bytes(&mut self, table: &Table, key: &[u8], operand: &[u8]) -> Result<()> {
        self.add(table, |batch| batch.merge(table, key, operand))
    }

    /// Removes `key` from `table`; fine if it is not there.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("k", "v")?;
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.delete(table, "k")?;
    /// assert!(batch.get(table, "k")?.is_none());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::put`](crate::Batch::put).
    pub fn delete(&mut self, table: &Table, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_bytes(table, key.as_ref())
    }

    fn delete_bytes(&mut self, table: &Table, key: &[u8]) -> Result<()> {
        self.add(table, |batch| batch.delete(table, key))
    }

    /// Removes `key`, which was put at most once since it was last removed, from `table`; see
    /// [`Table::single_delete`].
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.single_delete(table, "job 1")?;
    /// assert!(batch.changes_key(table, "job 1"));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::put`](crate::Batch::put).
    pub fn single_delete(&mut self, table: &Table, key: impl AsRef<[u8]>) -> Result<()> {
        self.single_delete_bytes(table, key.as_ref())
    }

    fn single_delete_bytes(&mut self, table: &Table, key: &[u8]) -> Result<()> {
        self.add(table, |batch| batch.single_delete(table, key))
    }

    /// Removes every key from `start` to before `end` from `table`, but not what this batch puts there later.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("2024-01-30", "..")?;
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.delete_range(table, "2024-01", "2024-02")?;
    /// assert_eq!(batch.range(table, ..).count(), 0);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::delete_range`](crate::Batch::delete_range).
    pub fn delete_range(
        &mut self,
        table: &Table,
        start: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.delete_range_bytes(table, start.as_ref(), end.as_ref())
    }

    fn delete_range_bytes(&mut self, table: &Table, start: &[u8], end: &[u8]) -> Result<()> {
        self.add(table, |batch| batch.delete_range(table, start, end))
    }

    /// Adds data for readers of changes, which no read of the batch sees; see
    /// [`Batch::log_data`](crate::Batch::log_data).
    ///
    /// ```
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.log_data("by ada")?;
    /// assert_eq!((batch.len(), batch.key_count()), (1, 0));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::log_data`](crate::Batch::log_data).
    pub fn log_data(&mut self, data: impl AsRef<[u8]>) -> Result<()> {
        self.batch.log_data(data)
    }
}
