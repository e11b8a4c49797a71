//! Point writes: a batch of one record, encoded in memory that the calling thread keeps.

use std::cell::RefCell;

use terrane_base::{Batch, Result, TableId};

use crate::write::WritePath;

/// Memory that a thread keeps between point writes.
const KEPT_BYTES: usize = 64 * 1024;

thread_local! {
    /// Encodes point writes without an allocation per write.
    static POINT: RefCell<Batch> = RefCell::new(Batch::new());
}

impl WritePath {
    /// Sets one key.
    ///
    /// # Errors
    /// As [`WritePath::write`].
    pub fn put(&self, table: TableId, key: &[u8], value: &[u8], sync: bool) -> Result<()> {
        self.write_point(sync, |batch| batch.put(table, key, value))
    }

    /// Removes one key.
    ///
    /// # Errors
    /// As [`WritePath::write`].
    pub fn delete(&self, table: TableId, key: &[u8], sync: bool) -> Result<()> {
        self.write_point(sync, |batch| batch.delete(table, key))
    }

    /// Removes every key from `start` to before `end`.
    ///
    /// # Errors
    /// As [`WritePath::write`], and `Invalid` if `start` is not less than `end`.
    pub fn delete_range(&self, table: TableId, start: &[u8], end: &[u8], sync: bool) -> Result<()> {
        let collation = self.collation_of(table);
        self.write_point(sync, |batch| batch.delete_range_ordered(table, start, end, &collation))
    }

    /// Commits the one change that `add` puts into a batch.
    ///
    /// # Errors
    /// As [`WritePath::write`].
    #[inline]
    pub fn write_point(&self, sync: bool, add: impl FnOnce(&mut Batch) -> Result<()>) -> Result<()> {
        POINT.with_borrow_mut(|batch| {
            batch.clear();
            add(batch)?;
            debug_assert!(batch.record_count() <= 1, "a point write is one change");
            let written = self.write(batch, sync);
            if batch.bytes().len() > KEPT_BYTES {
                *batch = Batch::new();
            }
            written.map(drop)
        })
    }
}
