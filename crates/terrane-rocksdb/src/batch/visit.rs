//! Gives a caller the changes of a batch. As in RocksDB a walk ends, without a word, at what it
//! cannot tell: a change of another column family than the default one where it has no numbers, a range
//! delete, and bytes that are not a batch.

use std::ffi::c_void;

use crate::batch::handle::BatchHandle;
use crate::batch::layout::Change;
use crate::batch::write_batch::WriteBatch;
use crate::callbacks::batch_visitor::{Listener, OnBytes, OnFamilyKey, OnFamilyPut, OnPut};

pub(crate) fn walk(batch: &WriteBatch, state: *mut c_void, put: OnPut, deleted: OnBytes, log_data: OnBytes) {
    let listener = Listener(state);
    for record in batch.layout.records() {
        match record {
            Ok((_, Change::LogData(data))) => listener.bytes(log_data, data),
            Ok((0, Change::Put(key, value))) => listener.put(put, key, value),
            Ok((0, Change::Delete(key))) => listener.bytes(deleted, key),
            Ok((0, Change::SingleDelete(_) | Change::Merge(..))) => {}
            Ok(_) | Err(_) => return,
        }
    }
}

/// The user's functions that get changes with column family numbers.
struct FieldValue {
    put: OnFamilyPut,
    deleted: OnFamilyKey,
    merged: OnFamilyPut,
    log_data: OnBytes,
}

fn walk_families(batch: &WriteBatch, state: *mut c_void, callbacks: &FieldValue) {
    let listener = Listener(state);
    for record in batch.layout.records() {
        match record {
            Ok((_, Change::LogData(data))) => listener.bytes(callbacks.log_data, data),
            Ok((family, Change::Put(key, value))) => listener.family_put(callbacks.put, family, key, value),
            Ok((family, Change::Delete(key))) => listener.family_key(callbacks.deleted, family, key),
            Ok((family, Change::Merge(key, operand))) => {
                listener.family_put(callbacks.merged, family, key, operand)
            }
            Ok((0, Change::SingleDelete(_))) => {}
            Ok(_) | Err(_) => return,
        }
    }
}

export! {
    fn rocksdb_writebatch_iterate(
        batch: Option<&mut BatchHandle>,
        state: *mut c_void,
        put: OnPut,
        deleted: OnBytes,
    ) {
        if let Some(batch) = batch {
            walk(batch.laid(), state, put, deleted, None);
        }
    }

    fn rocksdb_writebatch_iterate_ld(
        batch: Option<&mut BatchHandle>,
        state: *mut c_void,
        put: OnPut,
        deleted: OnBytes,
        log_data: OnBytes,
    ) {
        if let Some(batch) = batch {
            walk(batch.laid(), state, put, deleted, log_data);
        }
    }

    fn rocksdb_writebatch_iterate_cf(
        batch: Option<&mut BatchHandle>,
        state: *mut c_void,
        put: OnFamilyPut,
        deleted: OnFamilyKey,
        merged: OnFamilyPut,
    ) {
        if let Some(batch) = batch {
            walk_families(batch.laid(), state, &FieldValue { put, deleted, merged, log_data: None });
        }
    }

    fn rocksdb_writebatch_iterate_cf_ld(
        batch: Option<&mut BatchHandle>,
        state: *mut c_void,
        put: OnFamilyPut,
        deleted: OnFamilyKey,
        merged: OnFamilyPut,
        log_data: OnBytes,
    ) {
        if let Some(batch) = batch {
            walk_families(batch.laid(), state, &FieldValue { put, deleted, merged, log_data });
        }
    }
}
