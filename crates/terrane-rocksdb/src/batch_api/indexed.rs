//! Handles of indexed write batches, and the functions that fill them.

use std::ffi::{c_char, c_void};
use std::sync::Mutex;

use crate::batch::indexed::{Indexed, SharedBatch};
use crate::batch::visit::walk;
use crate::batch::write_batch::WriteBatch;
use crate::callbacks::batch_visitor::{OnBytes, OnPut};
use crate::callbacks::comparator::Comparator;
use crate::callbacks::order::Order;
use crate::db::Database;
use crate::ffi::failure::Given;
use crate::ffi::types::{Lent, Out, put};
use crate::options::read_write::WriteOptions;

/// A handle: of a batch by itself, or of that of a transaction, which callers free as plain memory.
pub(crate) enum IndexedHandle<'a> {
    Own(SharedBatch),
    Lent(Lent<'a, Mutex<Indexed>>),
}

impl<'a> IndexedHandle<'a> {
    /// A handle of the batch of a transaction.
    pub(crate) fn lent(batch: &'a SharedBatch) -> IndexedHandle<'a> {
        IndexedHandle::Lent(Lent::of(&batch.0))
    }

    /// The batch.
    pub(crate) fn shared(&self) -> SharedBatch {
        match self {
            IndexedHandle::Own(batch) => batch.clone(),
            IndexedHandle::Lent(lent) => SharedBatch(lent.held()),
        }
    }
}

fn new(reserved_bytes: usize, bytes_max: usize, order: Order) -> Option<Box<IndexedHandle<'static>>> {
    let batch = SharedBatch::of(WriteBatch::limited(reserved_bytes, bytes_max), order);
    Some(Box::new(IndexedHandle::Own(batch)))
}

export! {
    fn rocksdb_writebatch_wi_create(reserved_bytes: usize, _overwrite_keys: u8) -> Option<Box<IndexedHandle<'static>>> {
        new(reserved_bytes, 0, Order::default())
    }

    fn rocksdb_writebatch_wi_create_with_params(
        comparator: Option<&Comparator>,
        reserved_bytes: usize,
        _overwrite_keys: u8,
        max_bytes: usize,
        _protection_bytes: usize,
    ) -> Option<Box<IndexedHandle<'static>>> {
        new(reserved_bytes, max_bytes, comparator.map(Comparator::order).unwrap_or_default())
    }

    fn rocksdb_writebatch_wi_destroy(batch: Option<Box<IndexedHandle<'_>>>) {
        drop(batch);
    }

    fn rocksdb_writebatch_wi_clear(batch: Option<&IndexedHandle<'_>>) {
        if let Some(batch) = batch {
            batch.shared().get().clear();
        }
    }

    fn rocksdb_writebatch_wi_count(batch: Option<&IndexedHandle<'_>>) -> i32 {
        batch.map_or(0, |batch| batch.shared().get().batch.count() as i32)
    }

    fn rocksdb_writebatch_wi_data(batch: Option<&IndexedHandle<'_>>, len: Out<'_, usize>) -> *const c_char {
        let Some(batch) = batch else { return std::ptr::null() };
        // It stays where it is until the batch is changed.
        let shared = batch.shared();
        let batch = shared.get();
        put(len, batch.batch.data().len());
        batch.batch.data().as_ptr().cast()
    }

    fn rocksdb_writebatch_wi_iterate(
        batch: Option<&IndexedHandle<'_>>,
        state: *mut c_void,
        put: OnPut,
        deleted: OnBytes,
    ) {
        if let Some(batch) = batch {
            // A copy: the functions of the user may use the batch.
            let copy = batch.shared().get().batch.copied();
            walk(&copy, state, put, deleted, None);
        }
    }

    fn rocksdb_writebatch_wi_set_save_point(batch: Option<&IndexedHandle<'_>>) {
        if let Some(batch) = batch {
            batch.shared().get().set_save_point();
        }
    }

    fn rocksdb_writebatch_wi_rollback_to_save_point(batch: Option<&IndexedHandle<'_>>, error: ErrPtr<'_>) {
        batch.given()?.shared().get().roll_back_to_save_point()
    }

    fn rocksdb_write_writebatch_wi(
        database: Option<&Database>,
        options: Option<&WriteOptions>,
        batch: Option<&IndexedHandle<'_>>,
        error: ErrPtr<'_>,
    ) {
        batch.given()?.shared().get().batch.write(database.given()?, options)
    }
}
