//! The changes that a batch takes.

use std::time::Duration;

use terrane_base::{Error, Moment, Result};
use terrane_engine::{Change, ChangeKind};

use crate::table::moment_at;
use crate::{Batch, Table};

impl Batch {
    /// Sets `key` to `value` in `table`. Where the table has a time to live, it begins now, not when the
    /// batch is written.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::Batch::new();
    /// batch.put(table, "k", "v")?;
    /// db.write(&batch, terrane::Durability::Buffered)?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` if key, value or batch is beyond its limit, or if the batch holds changes of another
    /// database; the batch is unchanged then.
    pub fn put(&mut self, table: &Table, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_bytes(table, key.as_ref(), value.as_ref())
    }

    /// Part of each caller, as far as one record goes: a load adds many.
    #[inline]
    fn put_bytes(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<()> {
        if table.order.is_none() {
            return self.put_encoded(table, key, value);
        }
        table.encoding(key, |key| self.put_encoded(table, key, value))
    }

    /// [`Batch::put`] of a key as the table keeps it.
    #[inline]
    pub(crate) fn put_encoded(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.change(table, |records, _| table.add_put(records, key, value))
    }

    /// Sets keys to values in `table`, in order: the same as [`Batch::put`] of each, but the table is checked
    /// once.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// let rows = [("a", "1"), ("b", "2")];
    /// let mut batch = terrane::Batch::new();
    /// batch.put_all(db.default_table(), rows.map(|(key, value)| (key.as_bytes(), value.as_bytes())))?;
    /// assert_eq!(batch.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Batch::put`]; after an error the batch holds the puts before the failed one.
    pub fn put_all<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        table: &Table,
        rows: impl IntoIterator<Item = (K, V)>,
    ) -> Result<()> {
        let mut rows = rows.into_iter();
        if table.order.is_some() {
            return rows.try_for_each(|(key, value)| self.put_bytes(table, key.as_ref(), value.as_ref()));
        }
        let Some((key, value)) = rows.next() else { return Ok(()) };
        self.put_bytes(table, key.as_ref(), value.as_ref())?;
        let (id, until) = (table.id(), table.inner.semantics.expiry_of_put());
        rows.try_for_each(|(key, value)| {
            table.check_value(value.as_ref())?;
            match until {
                Moment::NEVER => self.records.put(id, key.as_ref(), value.as_ref()),
                until => self.records.put_until(id, key.as_ref(), value.as_ref(), until),
            }
        })
    }

    /// Removes `key` from `table`; fine if it is not there.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::Batch::new();
    /// batch.delete(table, "k")?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::put`].
    pub fn delete(&mut self, table: &Table, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_bytes(table, key.as_ref())
    }

    fn delete_bytes(&mut self, table: &Table, key: &[u8]) -> Result<()> {
        table.encoding(key, |key| self.delete_encoded(table, key))
    }

    /// [`Batch::delete`] of a key as the table keeps it.
    pub(crate) fn delete_encoded(&mut self, table: &Table, key: &[u8]) -> Result<()> {
        self.change(table, |records, id| records.delete(id, key))
    }

    /// Removes every key from `start` to before `end` from `table`, but not what this batch puts there later.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::Batch::new();
    /// batch.delete_range(table, "2024-01", "2024-02")?;
    /// batch.put(table, "2024-01-15", "corrected")?; // stays
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::put`], and `Invalid` if `start` is not less than `end`.
    pub fn delete_range(
        &mut self,
        table: &Table,
        start: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.delete_range_bytes(table, start.as_ref(), end.as_ref())
    }

    fn delete_range_bytes(&mut self, table: &Table, start: &[u8], end: &[u8]) -> Result<()> {
        table.encoding(start, |start| {
            let collation = table.inner.semantics.collation();
            table.encoding(end, |end| {
                self.change(table, |records, id| records.delete_range_ordered(id, start, end, collation))
            })
        })
    }

    /// Has the merge operator of `table` fold `operand` with what `key` has; see [`Table::merge`].
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// use terrane::{Batch, TableOptions, counter};
    /// let visits = db.create_table("visits", &TableOptions::new().merge_operator("counter"))?;
    /// let mut batch = Batch::new();
    /// batch.merge(&visits, "page", counter::encode(1))?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::put`], and `Invalid` if the table has no merge operator.
    pub fn merge(&mut self, table: &Table, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_bytes(table, key.as_ref(), operand.as_ref())
    }

    fn merge_bytes(&mut self, table: &Table, key: &[u8], operand: &[u8]) -> Result<()> {
        table.encoding(key, |key| self.change(table, |records, _| table.add_merge(records, key, operand)))
    }

    /// Removes `key`, which was put at most once since it was last removed, from `table`; see
    /// [`Table::single_delete`].
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::Batch::new();
    /// batch.single_delete(table, "job 1")?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::put`].
    pub fn single_delete(&mut self, table: &Table, key: impl AsRef<[u8]>) -> Result<()> {
        self.single_delete_bytes(table, key.as_ref())
    }

    fn single_delete_bytes(&mut self, table: &Table, key: &[u8]) -> Result<()> {
        table.encoding(key, |key| self.change(table, |records, id| records.single_delete(id, key)))
    }

    /// Sets `key` to `value` in `table` for so long, from now on; see [`Table::put_with_ttl`].
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::Batch::new();
    /// batch.put_with_ttl(table, "session", "ada", std::time::Duration::from_secs(3600))?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::put`], and `Invalid` for less than a millisecond.
    pub fn put_with_ttl(
        &mut self,
        table: &Table,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        self.put_until_moment(table, key.as_ref(), value.as_ref(), table.moment_in(ttl)?)
    }

    /// Sets `key` to `value` in `table` until a moment, counted from the beginning of 1970; see
    /// [`Table::put_until`].
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let until = std::time::Duration::from_secs(4_102_444_800); // the year 2100
    /// let mut batch = terrane::Batch::new();
    /// batch.put_until(table, "licence", "ada", until)?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::put`].
    pub fn put_until(
        &mut self,
        table: &Table,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        until: Duration,
    ) -> Result<()> {
        self.put_until_moment(table, key.as_ref(), value.as_ref(), moment_at(until))
    }

    /// The common part of [`Batch::put_with_ttl`] and [`Batch::put_until`].
    pub(crate) fn put_until_moment(
        &mut self,
        table: &Table,
        key: &[u8],
        value: &[u8],
        until: Moment,
    ) -> Result<()> {
        table.check_value(value)?;
        table.encoding(key, |key| self.change(table, |records, id| records.put_until(id, key, value, until)))
    }

    /// Adds data for readers of changes ([`Db::changes`](crate::Db::changes)), in order with the changes: the
    /// journal holds it as long as changes are kept, and it changes nothing. It takes a number in the order
    /// of commits as a change does, and belongs to no table and no database.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// let mut batch = terrane::Batch::new();
    /// batch.put(db.default_table(), "k", "v")?;
    /// batch.log_data("written by a test")?;
    /// let seq = db.write(&batch, terrane::Durability::Buffered)?;
    /// let made = db.changes(seq)?.next().expect("it is visible")?;
    /// let kinds: Vec<_> = made.changes().map(|change| change.kind).collect();
    /// assert_eq!(kinds[1], terrane::ChangeKind::LogData { data: b"written by a test" });
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` if data or batch is beyond its limit, those of values and batches; the batch is unchanged
    /// then.
    pub fn log_data(&mut self, data: impl AsRef<[u8]>) -> Result<()> {
        self.records.log_data(data.as_ref())
    }

    /// Adds a change of another database ([`Db::changes`](crate::Db::changes)), as it was made: with its own
    /// expiry, not that of `table`. Log data is added as such, for any table.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// let copy = terrane::Db::open_in_memory()?;
    /// db.put("k", "v")?;
    /// for batch in db.changes(terrane::SeqNo(1))? {
    ///     let mut changes = terrane::Batch::new();
    ///     for change in batch?.changes() {
    ///         changes.add_change(copy.default_table(), &change)?;
    ///     }
    ///     copy.write(&changes, terrane::Durability::Buffered)?;
    /// }
    /// assert!(copy.contains("k")?);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::put`], and `Invalid` for a merge if `table` has no merge operator, or a kind of change
    /// that this version does not know.
    pub fn add_change(&mut self, table: &Table, change: &Change<'_>) -> Result<()> {
        if let ChangeKind::LogData { data } = change.kind {
            return self.log_data(data);
        }
        let until = change.expires_at.map_or(Moment::NEVER, Moment);
        let (ChangeKind::Put { key, .. }
        | ChangeKind::Delete { key }
        | ChangeKind::SingleDelete { key }
        | ChangeKind::Merge { key, .. }
        | ChangeKind::DeleteRange { start: key, .. }) = change.kind
        else {
            return Err(Error::invalid(format!(
                "a change of kind {} cannot be added to a batch: ingest its files, or start the replica from a checkpoint",
                change.kind.as_str()
            )));
        };
        if let ChangeKind::DeleteRange { start, end } = change.kind {
            return self.delete_range(table, start, end);
        }
        if let ChangeKind::Merge { .. } = change.kind {
            table.require_operator()?;
        }
        table.encoding(key, |key| {
            self.change(table, |records, id| match change.kind {
                ChangeKind::Put { value, .. } if until == Moment::NEVER => records.put(id, key, value),
                ChangeKind::Put { value, .. } => records.put_until(id, key, value, until),
                ChangeKind::SingleDelete { .. } => records.single_delete(id, key),
                ChangeKind::Merge { operand, .. } => records.merge(id, key, operand, until),
                _ => records.delete(id, key),
            })
        })
    }
}
