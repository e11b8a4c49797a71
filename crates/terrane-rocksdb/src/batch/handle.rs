//! Handles of write batches: `rocksdb_writebatch_t`.
//!
//! Puts and deletes that are added with a handle of a column family are kept as the records that the engine
//! commits. RocksDB's bytes are made of them ([`BatchHandle::laid`]) when a caller asks for the bytes, or for
//! anything else that has no record: a change without a handle, a merge, a save point, another database. From
//! there on, until it is cleared, the batch consists of the bytes. A batch whose records were laid out once
//! keeps to the bytes for good: its caller uses them.
//!
//! Invariant: a batch that keeps records has no changes in its bytes, no save points and no limit.

use crate::batch::layout::Change;
use crate::batch::write_batch::WriteBatch;
use crate::db::plain::write::Mode;
use crate::db::{Database, Family};
use crate::ffi::failure::Result;
use crate::options::read_write::WriteOptions;

/// See the [module](self).
pub(crate) struct BatchHandle {
    batch: WriteBatch,
    /// True if changes are records of the engine, as far as there are any.
    keeps_records: bool,
    /// True if it may keep records once it is cleared.
    may_keep_records: bool,
}

impl BatchHandle {
    /// A handle of an empty batch.
    pub(crate) fn of_empty(batch: WriteBatch) -> BatchHandle {
        assert_eq!(batch.count(), 0, "a batch that keeps records begins without bytes of changes");
        let may_keep_records = batch.may_keep_records();
        BatchHandle { batch, keeps_records: may_keep_records, may_keep_records }
    }

    /// A handle of a batch that has its bytes.
    pub(crate) fn of_bytes(batch: WriteBatch) -> BatchHandle {
        let may_keep_records = batch.may_keep_records();
        BatchHandle { batch, keeps_records: false, may_keep_records }
    }

    /// The batch with all its changes as RocksDB's bytes.
    #[inline]
    pub(crate) fn laid(&mut self) -> &mut WriteBatch {
        if self.keeps_records {
            self.lay_out();
        }
        &mut self.batch
    }

    #[inline(never)]
    fn lay_out(&mut self) {
        self.keeps_records = false;
        self.may_keep_records &= self.batch.records.is_empty();
        self.batch.lay_out_records();
    }

    /// Adds a change as a record of the engine; whether it is one that has a record, and within the limits.
    #[inline(always)]
    pub(crate) fn try_add_record(&mut self, family: &Family, change: Change<'_>) -> bool {
        if !self.keeps_records || !family.takes_records {
            return false;
        }
        let (records, table) = (&mut self.batch.records, &family.table);
        let added = match change {
            Change::Put(key, value) => records.put(table, key, value),
            Change::Delete(key) => records.delete(table, key),
            Change::SingleDelete(key) => records.single_delete(table, key),
            Change::Merge(..) | Change::RangeDelete(..) | Change::LogData(_) => return false,
        };
        // The write of the bytes refuses the same changes, with RocksDB's text.
        added.is_ok()
    }

    /// How many changes it has.
    pub(crate) fn count(&self) -> u32 {
        match self.keeps_records {
            true => self.batch.records.len() as u32,
            false => self.batch.count(),
        }
    }

    pub(crate) fn clear(&mut self) {
        if self.keeps_records {
            return self.batch.records.clear();
        }
        self.batch.clear();
        self.keeps_records = self.may_keep_records;
    }

    /// Writes its changes.
    pub(crate) fn write(&mut self, database: &Database, options: Option<&WriteOptions>) -> Result<()> {
        if self.keeps_records && !self.batch.records.is_empty() {
            let mode = Mode::of(options)?;
            let is_here = self.batch.records.is_of(&database.default_family().table);
            // A batch of another database, or one with skipped column families, is resolved by the numbers of
            // column families.
            if is_here && !mode.skips_missing {
                database.refuse_if_read_only()?;
                return database.commit(&self.batch.records, mode);
            }
        }
        self.laid().write(database, options)
    }
}
