//! Changes of a transaction: checked and, where it locks, locked; then into its batch.

use std::time::Duration;

use terrane_base::{Moment, Result};

use crate::Table;
use crate::table::moment_at;
use crate::transaction::Transaction;

impl Transaction {
    /// Sets `key` to `value` in `table`.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.put(table, "k", "v")?;
    /// transaction.commit(terrane::Durability::Buffered)?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Full` beyond the limits of the transaction, `Invalid` beyond those of keys and values or for a table
    /// of another database, `NotFound` if the table was dropped. Where it locks: `Conflict`, `Deadlock`,
    /// `TooOld`, `TimedOut`. Nothing was changed then.
    pub fn put(&mut self, table: &Table, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_bytes(table, key.as_ref(), value.as_ref())
    }

    fn put_bytes(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<()> {
        // Before the key is locked: a put that is refused leaves no lock.
        table.check_value(value)?;
        self.before_write(table, key, value.len())?;
        self.batch.put(table, key, value)
    }

    /// Removes `key` from `table`; fine if it is not there.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("k", "v")?;
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.delete(table, "k")?;
    /// transaction.commit(terrane::Durability::Buffered)?;
    /// assert!(!table.contains("k")?);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn delete(&mut self, table: &Table, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_bytes(table, key.as_ref())
    }

    fn delete_bytes(&mut self, table: &Table, key: &[u8]) -> Result<()> {
        self.before_write(table, key, 0)?;
        self.batch.delete(table, key)
    }

    /// Sets `key` to `value` in `table` for so long, from now on; see [`Table::put_with_ttl`].
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.put_with_ttl(table, "session", "ada", std::time::Duration::from_secs(3600))?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::put`], and `Invalid` for less than a millisecond.
    pub fn put_with_ttl(
        &mut self,
        table: &Table,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        // Before the key is locked: a put that is refused leaves no lock.
        let until = table.moment_in(ttl)?;
        self.put_until_moment(table, key.as_ref(), value.as_ref(), until)
    }

    /// Sets `key` to `value` in `table` until a moment, counted from the beginning of 1970; see
    /// [`Table::put_until`].
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.put_until(table, "licence", "ada", std::time::Duration::from_secs(4_102_444_800))?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn put_until(
        &mut self,
        table: &Table,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        until: Duration,
    ) -> Result<()> {
        self.put_until_moment(table, key.as_ref(), value.as_ref(), moment_at(until))
    }

    fn put_until_moment(&mut self, table: &Table, key: &[u8], value: &[u8], until: Moment) -> Result<()> {
        table.check_value(value)?;
        self.before_write(table, key, value.len())?;
        self.batch.put_until_moment(table, key, value, until)
    }

    /// Has the merge operator of `table` fold `operand` with what `key` has; see [`Table::merge`]. Nothing is
    /// read, but it is a write like others: of two transactions that merge to one key beside each other one
    /// fails or waits, unless the level is read committed.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// use terrane::{TableOptions, counter};
    /// let visits = db.create_table("visits", &TableOptions::new().merge_operator("counter"))?;
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.merge(&visits, "page", counter::encode(1))?;
    /// transaction.commit(terrane::Durability::Buffered)?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::put`], and `Invalid` if the table has no merge operator.
    pub fn merge(&mut self, table: &Table, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_bytes(table, key.as_ref(), operand.as_ref())
    }

    fn merge_bytes(&mut self, table: &Table, key: &[u8], operand: &[u8]) -> Result<()> {
        table.require_operator()?;
        self.before_write(table, key, operand.len())?;
        self.batch.merge(table, key, operand)
    }

    /// Removes `key`, which was put at most once since it was last removed, from `table`; see
    /// [`Table::single_delete`].
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("job 1", "resize a picture")?;
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.single_delete(table, "job 1")?;
    /// transaction.commit(terrane::Durability::Buffered)?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn single_delete(&mut self, table: &Table, key: impl AsRef<[u8]>) -> Result<()> {
        self.single_delete_bytes(table, key.as_ref())
    }

    fn single_delete_bytes(&mut self, table: &Table, key: &[u8]) -> Result<()> {
        self.before_write(table, key, 0)?;
        self.batch.single_delete(table, key)
    }

    /// Removes every key from `start` to before `end` from `table`, but not what this transaction puts there
    /// later. It is a write of every key that there could be: a pessimistic transaction keeps others from
    /// locking or writing any key of the range until it ends; an optimistic one fails at its commit if any
    /// was changed.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("2024-01-30", "..")?;
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.delete_range(table, "2024-01", "2024-02")?;
    /// transaction.commit(terrane::Durability::Buffered)?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::put`], and `Invalid` if `start` is not less than `end`.
    pub fn delete_range(
        &mut self,
        table: &Table,
        start: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.delete_range_bytes(table, start.as_ref(), end.as_ref())
    }

    fn delete_range_bytes(&mut self, table: &Table, start: &[u8], end: &[u8]) -> Result<()> {
        self.before_delete_range(table, start, end)?;
        self.batch.delete_range(table, start, end)
    }

    /// Adds data for readers of changes; see [`Batch::log_data`](crate::Batch::log_data). It counts to the
    /// limits of the transaction, and meets no other transaction's.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.put(table, "k", "v")?;
    /// transaction.log_data("by ada")?;
    /// transaction.commit(terrane::Durability::Buffered)?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Full` beyond the limits of the transaction, `Invalid` beyond those of values.
    pub fn log_data(&mut self, data: impl AsRef<[u8]>) -> Result<()> {
        self.log_data_bytes(data.as_ref())
    }

    fn log_data_bytes(&mut self, data: &[u8]) -> Result<()> {
        self.check_limits(&self.core(), data.len() + 1)?;
        self.batch.log_data(data)
    }

    fn before_delete_range(&self, table: &Table, start: &[u8], end: &[u8]) -> Result<()> {
        let mut core = self.checked(table)?;
        self.check_limits(&core, start.len() + end.len() + 1)?;
        table.encoding(start, |start| {
            table.encoding(end, |end| {
                terrane_base::key::check_range_ordered(start, end, table.inner.semantics.collation())?;
                core.before_delete_range(table.id(), start, end)
            })
        })
    }

    fn before_write(&self, table: &Table, key: &[u8], value_len: usize) -> Result<()> {
        terrane_base::key::check_key(key)?;
        let mut core = self.checked(table)?;
        self.check_limits(&core, key.len() + value_len + 1)?;
        table.encoding(key, |key| core.before_write(table.id(), key))
    }
}
