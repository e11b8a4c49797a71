//! Changes that become visible and durable together.

use std::time::Duration;

use terrane_base::{Error, Moment, Result, TableId};
use terrane_engine::{Change, ChangeKind};

use crate::Table;

/// Puts, merges, deletes and range deletes over any number of tables, applied all or not at all, in the order
/// they were added.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// # let db = terrane::Db::open(dir.path().join("data"))?;
/// let mut batch = terrane::Batch::new();
/// batch.put(db.default_table(), b"from", b"90")?;
/// batch.put(db.default_table(), b"to", b"110")?;
/// db.write(&batch, terrane::Sync::Yes)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub(crate) records: terrane_base::Batch,
    /// Tables of the changes, so that a batch is refused when one of them was dropped meanwhile.
    tables: Vec<TableId>,
    /// The opened database that they are of, if there are any.
    database: u64,
}

/// A position in a batch.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    bytes: usize,
    record_count: u32,
    tables: usize,
}

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets `key` to `value` in `table`. Where the table has a time to live, it begins now, not when the
    /// batch is written.
    ///
    /// # Errors
    /// `Invalid` if key, value or batch is beyond its limit, or if the batch holds changes of another
    /// database; the batch is unchanged then.
    pub fn put(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<()> {
        table.encoding(key, |key| self.put_encoded(table, key, value))
    }

    /// [`Batch::put`] of a key as the table keeps it.
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
    pub fn put_all<'r>(
        &mut self,
        table: &Table,
        rows: impl IntoIterator<Item = (&'r [u8], &'r [u8])>,
    ) -> Result<()> {
        let mut rows = rows.into_iter();
        if table.order.is_some() {
            return rows.try_for_each(|(key, value)| self.put(table, key, value));
        }
        let Some((key, value)) = rows.next() else { return Ok(()) };
        self.put(table, key, value)?;
        let (id, until) = (table.id(), table.inner.sense.expiry_of_put());
        rows.try_for_each(|(key, value)| match until {
            Moment::NEVER => self.records.put(id, key, value),
            until => self.records.put_until(id, key, value, until),
        })
    }

    /// Sets `key` to `value` in `table` for so long, from now on; see [`Table::put_with_ttl`].
    ///
    /// # Errors
    /// As [`Batch::put`], and `Invalid` for less than a millisecond.
    pub fn put_with_ttl(&mut self, table: &Table, key: &[u8], value: &[u8], ttl: Duration) -> Result<()> {
        let until = table.moment_in(ttl)?;
        table.encoding(key, |key| self.change(table, |records, id| records.put_until(id, key, value, until)))
    }

    /// Sets `key` to `value` in `table` until a moment, counted from the beginning of 1970; see
    /// [`Table::put_until`].
    ///
    /// # Errors
    /// As [`Batch::put`].
    pub fn put_until(&mut self, table: &Table, key: &[u8], value: &[u8], until: Duration) -> Result<()> {
        let until = crate::table::moment_at(until);
        table.encoding(key, |key| self.change(table, |records, id| records.put_until(id, key, value, until)))
    }

    /// Has the merge operator of `table` fold `operand` with what `key` has; see [`Table::merge`].
    ///
    /// # Errors
    /// As [`Batch::put`], and `Invalid` if the table has no merge operator.
    pub fn merge(&mut self, table: &Table, key: &[u8], operand: &[u8]) -> Result<()> {
        table.encoding(key, |key| self.change(table, |records, _| table.add_merge(records, key, operand)))
    }

    /// Removes `key`, which was put at most once since it was last removed, from `table`; see
    /// [`Table::single_delete`].
    ///
    /// # Errors
    /// As [`Batch::put`].
    pub fn single_delete(&mut self, table: &Table, key: &[u8]) -> Result<()> {
        table.encoding(key, |key| self.change(table, |records, id| records.single_delete(id, key)))
    }

    /// Removes `key` from `table`; fine if it is not there.
    ///
    /// # Errors
    /// As [`Batch::put`].
    pub fn delete(&mut self, table: &Table, key: &[u8]) -> Result<()> {
        table.encoding(key, |key| self.delete_encoded(table, key))
    }

    /// [`Batch::delete`] of a key as the table keeps it.
    pub(crate) fn delete_encoded(&mut self, table: &Table, key: &[u8]) -> Result<()> {
        self.change(table, |records, id| records.delete(id, key))
    }

    /// Removes every key from `start` to before `end` from `table`, but not what this batch puts there later.
    ///
    /// # Errors
    /// As [`Batch::put`], and `Invalid` if `start` is not less than `end`.
    pub fn delete_range(&mut self, table: &Table, start: &[u8], end: &[u8]) -> Result<()> {
        table.encoding(start, |start| {
            let collation = table.inner.sense.collation();
            table.encoding(end, |end| {
                self.change(table, |records, id| records.delete_range_ordered(id, start, end, collation))
            })
        })
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
    /// batch.put(db.default_table(), b"k", b"v")?;
    /// batch.log_data(b"written by a test")?;
    /// let seq = db.write(&batch, terrane::Sync::No)?;
    /// let told = db.changes(seq)?.next().expect("it is visible")?;
    /// let kinds: Vec<_> = told.changes().map(|change| change.kind).collect();
    /// assert_eq!(kinds[1], terrane::ChangeKind::LogData { data: b"written by a test" });
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` if data or batch is beyond its limit, those of values and batches; the batch is unchanged
    /// then.
    pub fn log_data(&mut self, data: &[u8]) -> Result<()> {
        self.records.log_data(data)
    }

    /// Adds a change of another database ([`Db::changes`](crate::Db::changes)), as it was made: with its own
    /// expiry, not that of `table`. Log data is added as such, for any table.
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
                "a change of kind {} is no record and cannot be added to a batch: take the files in, or begin with a copy",
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

    /// Number of changes in the batch, log data included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.record_count() as usize
    }

    /// Returns true if the batch holds no change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Bytes of the changes as they are journaled.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.records.bytes().len()
    }

    /// Removes every change; keeps the memory for the next use, in any database.
    pub fn clear(&mut self) {
        self.records.clear();
        self.tables.clear();
    }

    /// The present position, for a later [`Batch::truncate`].
    pub(crate) fn mark(&self) -> Mark {
        let (bytes, record_count) = (self.records.bytes().len(), self.records.record_count());
        Mark { bytes, record_count, tables: self.tables.len() }
    }

    /// Removes what was added after `mark`.
    pub(crate) fn truncate(&mut self, mark: &Mark) {
        self.records.truncate(mark.bytes, mark.record_count);
        self.tables.truncate(mark.tables);
    }

    /// Adds a change of `table`, and names it once that worked.
    #[inline]
    fn change(
        &mut self,
        table: &Table,
        add: impl FnOnce(&mut terrane_base::Batch, TableId) -> Result<()>,
    ) -> Result<()> {
        let (database, id) = (table.engine.instance(), table.id());
        if !self.is_of(table) {
            return Err(Self::mixed(table.name()));
        }
        add(&mut self.records, id)?;
        self.database = database;
        // Runs of one table are the common case; a repeated name later in the list does no harm.
        if self.tables.last() != Some(&id) {
            self.tables.push(id);
        }
        Ok(())
    }

    #[cold]
    fn mixed(name: &str) -> Error {
        let message = format!(
            "table {name:?} is of another database than the changes that the batch holds: one batch per database"
        );
        Error::invalid(message)
    }

    /// Returns true if the changes, if there are any, are of the same database as `table`.
    pub(crate) fn is_of(&self, table: &Table) -> bool {
        self.tables.is_empty() || self.database == table.engine.instance()
    }

    /// Checks that the tables are of the database `engine` and exist.
    pub(crate) fn check(&self, engine: &terrane_engine::Engine) -> Result<()> {
        if !self.tables.is_empty() && self.database != engine.instance() {
            return Err(Error::invalid(
                "the batch holds changes of tables of another opened database: write it there, or clear it",
            ));
        }
        engine.require_tables(&self.tables)
    }
}
