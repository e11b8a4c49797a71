//! Savepoints of an indexed batch.

use terrane_base::Result;

use super::{IndexedBatch, Savepoint, Undo};

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
        self.savepoints.push(Savepoint { batch: self.batch.mark(), undo: self.undo.len() });
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
        for undo in self.undo.drain(savepoint.undo..).rev() {
            let (Undo::Key(table, ..) | Undo::Operand(table, _) | Undo::Deleted(table, _)) = &undo;
            let index = self.index.get_mut(table).expect("what was noted is in the index");
            let before = index.keys.len();
            index.take_back(undo);
            self.key_count = self.key_count + index.keys.len() as u64 - before as u64;
        }
        self.batch.truncate(&savepoint.batch);
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
        self.savepoints.pop().ok_or_else(no_savepoint)?;
        if self.savepoints.is_empty() {
            self.undo.clear();
        }
        Ok(())
    }
}

#[cold]
fn no_savepoint() -> terrane_base::Error {
    terrane_base::Error::invalid("no savepoint is set: set one first")
}
