//! A write batch that can be read: an index over its own records.

// In the order of the documentation page.
mod write;

mod read;

mod savepoints;

use std::collections::BTreeMap;

use terrane_base::record::Record;
use terrane_base::{BatchIndex, RecordKind, Result, SeqNo, TableId};

use crate::batch::Mark;
use crate::{Batch, Db, Durability, Table};

/// A batch of changes that can be read as if it had been written: each read searches the batch first, and
/// then a snapshot or the latest state. Nothing is written before [`IndexedBatch::write`].
///
/// A batch belongs to one database, that of the first table that it changes. A later change of a key replaces
/// an earlier one, but a merge is folded with the batch's own change of the key, or else with the database's
/// value.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// # let db = terrane::Db::open(dir.path().join("data"))?;
/// let table = db.default_table();
/// db.put("a", "1")?;
/// let mut batch = terrane::IndexedBatch::new();
/// batch.put(table, "b", "2")?;
/// batch.set_savepoint();
/// batch.delete(table, "a")?;
/// assert!(batch.get(table, "a")?.is_none()); // its own delete
/// batch.rollback_to_savepoint()?;
/// assert!(batch.get(table, "a")?.is_some()); // what the database has
/// let keys: Vec<_> = batch.range(table, ..).map(|row| row.map(|(key, _)| key)).collect::<Result<_, _>>()?;
/// assert_eq!(keys, [b"a", b"b"]);
/// batch.write(&db, terrane::Durability::Buffered)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct IndexedBatch {
    pub(crate) batch: Batch,
    index: BTreeMap<TableId, BatchIndex>,
    savepoints: Vec<Mark>,
}

impl IndexedBatch {
    /// An empty batch.
    ///
    /// ```
    /// assert!(terrane::IndexedBatch::new().is_empty());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a record, and indexes it.
    fn add(&mut self, table: &Table, add: impl FnOnce(&mut Batch) -> Result<()>) -> Result<()> {
        let at = self.batch.bytes();
        add(&mut self.batch)?;
        let record = record_at(&self.batch, at);
        let index = self.index.entry(table.id());
        let index = index.or_insert_with(|| BatchIndex::new(table.inner.semantics.collation()));
        match record.kind {
            RecordKind::RangeDelete => index.note_range_delete(record.key, record.value),
            _ => index.note(record.key, at),
        }
        Ok(())
    }

    /// Number of changes, including those that a later one hides.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.put(table, "k", "1")?;
    /// batch.put(table, "k", "2")?;
    /// assert_eq!(batch.len(), 2);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.batch.len()
    }

    /// Number of keys that it changes individually; keys in a range that it deletes later do not count.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.put(table, "k", "1")?;
    /// batch.put(table, "k", "2")?;
    /// assert_eq!(batch.key_count(), 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn key_count(&self) -> u64 {
        self.index.values().map(|index| index.live_keys() as u64).sum()
    }

    /// Returns true if it holds no change.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.delete(table, "k")?;
    /// assert!(!batch.is_empty());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Bytes of the changes as they are journaled.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.put(table, "k", [0; 1000])?;
    /// assert!(batch.bytes() > 1000);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.batch.bytes()
    }

    /// Removes every change and every savepoint.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.put(table, "k", "v")?;
    /// batch.clear();
    /// assert!(batch.get(table, "k")?.is_none());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn clear(&mut self) {
        self.batch.clear();
        self.index.clear();
        self.savepoints.clear();
    }

    /// Writes the changes to the database, all or nothing, and keeps them here. Returns their position in the
    /// order of commits.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.put(table, "k", "v")?;
    /// batch.write(&db, terrane::Durability::Synced)?;
    /// assert!(table.contains("k")?);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn write(&self, db: &Db, durability: Durability) -> Result<SeqNo> {
        db.write(&self.batch, durability)
    }
}

/// The record at a place of a batch.
fn record_at(batch: &Batch, at: usize) -> Record<'_> {
    let (record, _) = Record::decode(&batch.records.bytes()[at..]).expect("a batch holds whole records");
    record
}
