//! Savepoints of an indexed batch.

use terrane_base::record::Record;
use terrane_base::{RecordKind, Result};

use super::IndexedBatch;

impl IndexedBatch {
    /// Number of savepoints.
    ///
    /// ```
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.set_savepoint();
    /// assert_eq!(batch.savepoint_count(), 1);
    /// ```
    #[must_use]
    pub fn savepoint_count(&self) -> usize {
        self.savepoints.len()
    }

    /// Marks this moment, to go back to it.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.put(table, "a", "1")?;
    /// batch.set_savepoint();
    /// batch.put(table, "b", "2")?;
    /// batch.rollback_to_savepoint()?;
    /// assert_eq!(batch.len(), 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn set_savepoint(&mut self) {
        self.savepoints.push(self.batch.mark());
    }

    /// Takes back every change since the last savepoint, which goes.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.set_savepoint();
    /// batch.put(table, "b", "2")?;
    /// batch.rollback_to_savepoint()?;
    /// assert!(batch.is_empty());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` if none is set.
    pub fn rollback_to_savepoint(&mut self) -> Result<()> {
        let savepoint = self.savepoints.pop().ok_or_else(no_savepoint)?;
        let since: Vec<Record<'_>> = self.batch.records_since(&savepoint).collect();
        for record in since.into_iter().rev() {
            // Data for the journal is of no table.
            let Some(index) = self.index.get_mut(&record.table) else { continue };
            match record.kind {
                RecordKind::RangeDelete => index.take_back_range_delete(record.key, record.value),
                _ => index.take_back(record.key),
            }
        }
        self.batch.truncate(&savepoint);
        // An empty batch may be filled from another database, whose tables have other orders.
        self.index.retain(|_, index| !index.is_empty());
        Ok(())
    }

    /// Forgets the last savepoint; the changes since stay.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.set_savepoint();
    /// batch.put(table, "b", "2")?;
    /// batch.pop_savepoint()?;
    /// assert_eq!((batch.len(), batch.savepoint_count()), (1, 0));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` if none is set.
    pub fn pop_savepoint(&mut self) -> Result<()> {
        self.savepoints.pop().map(drop).ok_or_else(no_savepoint)
    }
}

#[cold]
fn no_savepoint() -> terrane_base::Error {
    terrane_base::Error::invalid("no savepoint is set: set one first")
}
