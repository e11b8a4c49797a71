//! Changes that become visible and durable together.

mod change;

use terrane_base::record::Record;
use terrane_base::{Error, Result, TableId};

use crate::Table;

/// Puts, merges, deletes and range deletes over any number of tables, applied all or not at all, in the order
/// they were added.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// # let db = terrane::Db::open(dir.path().join("data"))?;
/// let mut batch = terrane::Batch::new();
/// batch.put(db.default_table(), "from", "90")?;
/// batch.put(db.default_table(), "to", "110")?;
/// db.write(&batch, terrane::Durability::Synced)?;
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
    ///
    /// ```
    /// assert!(terrane::Batch::new().is_empty());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of changes in the batch, log data included.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::Batch::new();
    /// batch.put(table, "a", "1")?;
    /// batch.delete(table, "b")?;
    /// assert_eq!(batch.len(), 2);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.record_count() as usize
    }

    /// Returns true if the batch holds no change.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::Batch::new();
    /// batch.put(table, "a", "1")?;
    /// assert!(!batch.is_empty());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Bytes of the changes as they are journaled.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::Batch::new();
    /// batch.put(table, "a", [0; 1000])?;
    /// assert!(batch.bytes() > 1000);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.records.bytes().len()
    }

    /// Removes every change; keeps the memory for the next use, in any database.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::Batch::new();
    /// batch.put(table, "a", "1")?;
    /// db.write(&batch, terrane::Durability::Buffered)?;
    /// batch.clear();
    /// assert!(batch.is_empty());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn clear(&mut self) {
        self.records.clear();
        self.tables.clear();
    }

    /// The present position, for a later [`Batch::truncate`].
    pub(crate) fn mark(&self) -> Mark {
        let (bytes, record_count) = (self.records.bytes().len(), self.records.record_count());
        Mark { bytes, record_count, tables: self.tables.len() }
    }

    /// The records since a mark.
    pub(crate) fn records_since(&self, mark: &Mark) -> impl Iterator<Item = Record<'_>> {
        self.records.records_from(mark.bytes)
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

    /// The records, as they are committed.
    #[doc(hidden)]
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.records.records()
    }

    /// Returns true if the changes, if there are any, are of the same opened database as `table`.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let other = terrane::Db::open_in_memory()?;
    /// let mut batch = terrane::Batch::new();
    /// batch.put(db.default_table(), "a", "1")?;
    /// assert!(batch.is_of(db.default_table()) && !batch.is_of(other.default_table()));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn is_of(&self, table: &Table) -> bool {
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
