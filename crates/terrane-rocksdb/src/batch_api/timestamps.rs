//! Adds changes with timestamps to a write batch. A timestamp stands behind its key.

use std::ffi::c_void;

use crate::batch::handle::BatchHandle;
use crate::batch::layout::Change;
use crate::batch::write_batch::WriteBatch;
use crate::callbacks::comparator::TimestampBytes;
use crate::db::FamilyHandle;
use crate::ffi::failure::{Failure, Given, Result};

impl WriteBatch {
    /// Adds a change of a family whose keys have timestamps. There is no way to say that this one is of
    /// another size: the batch is refused when it is written.
    fn add_at(&mut self, handle: &FamilyHandle, (key, timestamp): (&[u8], &[u8]), change: Change<'_>) {
        match handle.family.history_for(timestamp) {
            Ok(_) => self.add(handle.family.id(), change.of_key(&[key, timestamp].concat())),
            Err(failure) => {
                self.refused.get_or_insert(failure);
            }
        }
    }

    /// Gives all keys this timestamp, but those of families that have none; `size_of` says how many bytes
    /// those of a family have.
    fn update_timestamps(&mut self, timestamp: &[u8], size_of: impl Fn(u32) -> usize) -> Result<()> {
        let mut ends = Vec::new();
        for (at, family, keys) in self.layout.placed_keys()? {
            let size = size_of(family);
            if size == 0 {
                continue;
            }
            if size != timestamp.len() {
                return Err(Failure::invalid("cf timestamp size mismatch"));
            }
            if keys < size {
                return Err(Failure::corrupt("a key of the batch is shorter than a timestamp"));
            }
            ends.push(at);
        }
        for end in ends {
            self.layout.overwrite(end - timestamp.len(), timestamp);
        }
        self.awaits_timestamps = false;
        Ok(())
    }
}

export! {
    fn rocksdb_writebatch_put_cf_with_ts(
        batch: Option<&mut BatchHandle>,
        handle: Option<&FamilyHandle>,
        key: Bytes<'_>,
        key_len: usize,
        timestamp: Bytes<'_>,
        timestamp_len: usize,
        value: Bytes<'_>,
        value_len: usize,
    ) {
        if let (Some(batch), Some(handle)) = (batch, handle) {
            batch.laid().add_at(handle, (key, timestamp), Change::Put(key, value));
        }
    }

    fn rocksdb_writebatch_delete_cf_with_ts(
        batch: Option<&mut BatchHandle>,
        handle: Option<&FamilyHandle>,
        key: Bytes<'_>,
        key_len: usize,
        timestamp: Bytes<'_>,
        timestamp_len: usize,
    ) {
        if let (Some(batch), Some(handle)) = (batch, handle) {
            batch.laid().add_at(handle, (key, timestamp), Change::Delete(key));
        }
    }

    fn rocksdb_writebatch_singledelete_cf_with_ts(
        batch: Option<&mut BatchHandle>,
        handle: Option<&FamilyHandle>,
        key: Bytes<'_>,
        key_len: usize,
        timestamp: Bytes<'_>,
        timestamp_len: usize,
    ) {
        if let (Some(batch), Some(handle)) = (batch, handle) {
            batch.laid().add_at(handle, (key, timestamp), Change::SingleDelete(key));
        }
    }

    fn rocksdb_writebatch_update_timestamps(
        batch: Option<&mut BatchHandle>,
        timestamp: Bytes<'_>,
        timestamp_len: usize,
        state: *mut c_void,
        size_of: TimestampBytes,
        error: ErrPtr<'_>,
    ) {
        let batch = batch.given()?.laid();
        batch.update_timestamps(timestamp, |family| size_of.of(state, family))
    }
}
