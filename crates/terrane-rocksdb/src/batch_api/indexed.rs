//! Handles of indexed write batches, and the functions that fill them.

use std::ffi::{c_char, c_void};
use std::sync::Mutex;

use crate::batch::indexed::{Indexed, SharedBatch};
use crate::batch::layout::Change;
use crate::batch::visit::walk;
use crate::batch::write_batch::WriteBatch;
use crate::batch_api::parts::joined;
use crate::callbacks::batch_visitor::{OnBytes, OnPut};
use crate::callbacks::comparator::Comparator;
use crate::callbacks::order::Order;
use crate::db::Database;
use crate::db::cf_variants::Target;
use crate::ffi::failure::Given;
use crate::ffi::types::{Bytes, Lent, List, Out, put};
use crate::options::read_write::WriteOptions;

/// A handle: of a batch by itself, or of that of a transaction, which callers free as plain memory.
pub(crate) enum IndexedHandle {
    Own(SharedBatch),
    Lent(Lent<Mutex<Indexed>>),
}

impl IndexedHandle {
    /// A handle of the batch of a transaction.
    pub(crate) fn lent(batch: &SharedBatch) -> IndexedHandle {
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

fn new(reserved_bytes: usize, bytes_max: usize, order: Order) -> Option<Box<IndexedHandle>> {
    let batch = SharedBatch::of(WriteBatch::limited(reserved_bytes, bytes_max), order);
    Some(Box::new(IndexedHandle::Own(batch)))
}

/// Adds a change; does nothing without a batch or a handle of the column family.
fn add(batch: Option<&IndexedHandle>, target: Target<'_>, change: Change<'_>) {
    if let (Some(batch), Some(id)) = (batch, target.id()) {
        let shared = batch.shared();
        let mut batch = shared.get();
        match target {
            Target::Default => batch.batch.has_plain |= !matches!(change, Change::LogData(_)),
            // An index has no place for timestamps: such a batch is refused when it is written.
            Target::Handle(handle) => {
                batch.batch.awaits_timestamps |= handle.is_some_and(|handle| handle.family.history.is_some());
            }
        }
        if let Some(order) = target.order() {
            batch.order_by(id, order);
        }
        batch.add(id, change);
    }
}

export! {
    fn rocksdb_writebatch_wi_create(reserved_bytes: usize, _overwrite_keys: u8) -> Option<Box<IndexedHandle>> {
        new(reserved_bytes, 0, Order::default())
    }

    fn rocksdb_writebatch_wi_create_with_params(
        comparator: Option<&Comparator>,
        reserved_bytes: usize,
        _overwrite_keys: u8,
        max_bytes: usize,
        _protection_bytes: usize,
    ) -> Option<Box<IndexedHandle>> {
        new(reserved_bytes, max_bytes, comparator.map(Comparator::order).unwrap_or_default())
    }

    fn rocksdb_writebatch_wi_destroy(batch: Option<Box<IndexedHandle>>) {
        drop(batch);
    }

    fn rocksdb_writebatch_wi_clear(batch: Option<&IndexedHandle>) {
        if let Some(batch) = batch {
            batch.shared().get().clear();
        }
    }

    fn rocksdb_writebatch_wi_count(batch: Option<&IndexedHandle>) -> i32 {
        batch.map_or(0, |batch| batch.shared().get().batch.count() as i32)
    }

    fn rocksdb_writebatch_wi_data(batch: Option<&IndexedHandle>, len: Out<'_, usize>) -> *const c_char {
        let Some(batch) = batch else { return std::ptr::null() };
        // It stays where it is until the batch is changed.
        let shared = batch.shared();
        let batch = shared.get();
        put(len, batch.batch.data().len());
        batch.batch.data().as_ptr().cast()
    }

    fn rocksdb_writebatch_wi_iterate(
        batch: Option<&IndexedHandle>,
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

    fn rocksdb_writebatch_wi_set_save_point(batch: Option<&IndexedHandle>) {
        if let Some(batch) = batch {
            batch.shared().get().set_save_point();
        }
    }

    fn rocksdb_writebatch_wi_rollback_to_save_point(batch: Option<&IndexedHandle>, error: ErrPtr<'_>) {
        batch.given()?.shared().get().roll_back_to_save_point()
    }

    fn rocksdb_writebatch_wi_put_log_data(batch: Option<&IndexedHandle>, data: Bytes<'_>, len: usize) {
        add(batch, Target::Default, Change::LogData(data.of(len)));
    }

    fn rocksdb_write_writebatch_wi(
        database: Option<&Database>,
        options: Option<&WriteOptions>,
        batch: Option<&IndexedHandle>,
        error: ErrPtr<'_>,
    ) {
        batch.given()?.shared().get().batch.write(database.given()?, options)
    }
}

cf_variants! {
    fn rocksdb_writebatch_wi_put | rocksdb_writebatch_wi_put_cf(
        batch: Option<&IndexedHandle>;
        key: Bytes<'_>,
        key_len: usize,
        value: Bytes<'_>,
        value_len: usize,
    ) as target {
        add(batch, target, Change::Put(key.of(key_len), value.of(value_len)));
    }

    fn rocksdb_writebatch_wi_merge | rocksdb_writebatch_wi_merge_cf(
        batch: Option<&IndexedHandle>;
        key: Bytes<'_>,
        key_len: usize,
        operand: Bytes<'_>,
        operand_len: usize,
    ) as target {
        add(batch, target, Change::Merge(key.of(key_len), operand.of(operand_len)));
    }

    fn rocksdb_writebatch_wi_delete | rocksdb_writebatch_wi_delete_cf(
        batch: Option<&IndexedHandle>;
        key: Bytes<'_>,
        key_len: usize,
    ) as target {
        add(batch, target, Change::Delete(key.of(key_len)));
    }

    fn rocksdb_writebatch_wi_singledelete | rocksdb_writebatch_wi_singledelete_cf(
        batch: Option<&IndexedHandle>;
        key: Bytes<'_>,
        key_len: usize,
    ) as target {
        add(batch, target, Change::SingleDelete(key.of(key_len)));
    }

    fn rocksdb_writebatch_wi_delete_range | rocksdb_writebatch_wi_delete_range_cf(
        batch: Option<&IndexedHandle>;
        start: Bytes<'_>,
        start_len: usize,
        end: Bytes<'_>,
        end_len: usize,
    ) as target {
        add(batch, target, Change::RangeDelete(start.of(start_len), end.of(end_len)));
    }

    fn rocksdb_writebatch_wi_putv | rocksdb_writebatch_wi_putv_cf(
        batch: Option<&IndexedHandle>;
        key_count: i32,
        keys: List<'_, Bytes<'_>>,
        key_lens: List<'_, usize>,
        value_count: i32,
        values: List<'_, Bytes<'_>>,
        value_lens: List<'_, usize>,
    ) as target {
        let (key, value) = (joined(keys, key_lens, key_count), joined(values, value_lens, value_count));
        add(batch, target, Change::Put(&key, &value));
    }

    fn rocksdb_writebatch_wi_mergev | rocksdb_writebatch_wi_mergev_cf(
        batch: Option<&IndexedHandle>;
        key_count: i32,
        keys: List<'_, Bytes<'_>>,
        key_lens: List<'_, usize>,
        operand_count: i32,
        operands: List<'_, Bytes<'_>>,
        operand_lens: List<'_, usize>,
    ) as target {
        let operand = joined(operands, operand_lens, operand_count);
        add(batch, target, Change::Merge(&joined(keys, key_lens, key_count), &operand));
    }

    fn rocksdb_writebatch_wi_deletev | rocksdb_writebatch_wi_deletev_cf(
        batch: Option<&IndexedHandle>;
        count: i32,
        keys: List<'_, Bytes<'_>>,
        key_lens: List<'_, usize>,
    ) as target {
        add(batch, target, Change::Delete(&joined(keys, key_lens, count)));
    }

    fn rocksdb_writebatch_wi_delete_rangev | rocksdb_writebatch_wi_delete_rangev_cf(
        batch: Option<&IndexedHandle>;
        count: i32,
        starts: List<'_, Bytes<'_>>,
        start_lens: List<'_, usize>,
        ends: List<'_, Bytes<'_>>,
        end_lens: List<'_, usize>,
    ) as target {
        let (start, end) = (joined(starts, start_lens, count), joined(ends, end_lens, count));
        add(batch, target, Change::RangeDelete(&start, &end));
    }
}
