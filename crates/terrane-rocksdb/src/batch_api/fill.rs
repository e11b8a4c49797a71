//! The functions that add changes to write batches, with or without an index.

use crate::batch::handle::BatchHandle;
use crate::batch::layout::Change;
use crate::batch_api::indexed::IndexedHandle;
use crate::db::Family;
use crate::db::cf_variants::Target;

/// Adds a change of a column family; does nothing without a batch or a handle.
#[inline(always)]
fn add(batch: Option<&mut BatchHandle>, target: Target<'_>, change: Change<'_>) {
    let Some(batch) = batch else { return };
    match target {
        Target::Handle(Some(handle)) if batch.try_add_record(&handle.family, change) => {}
        Target::Handle(None) => {}
        Target::Default => batch.laid().add_default(change),
        Target::Handle(Some(handle)) => add_laid(batch, &handle.family, change),
    }
}

/// Adds a change of a column family to the bytes of a batch.
#[inline(never)]
fn add_laid(batch: &mut BatchHandle, family: &Family, change: Change<'_>) {
    let batch = batch.laid();
    match &family.history {
        None => batch.add(family.id(), change),
        Some(history) => batch.add_awaiting(family.id(), history.size(), change),
    }
}

/// Adds a change to a batch with an index; does nothing without a batch or a handle of the column family.
fn add_indexed(batch: Option<&IndexedHandle<'_>>, target: Target<'_>, change: Change<'_>) {
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

/// Exports four functions with one body, which is the change that they add: `fn PLAIN | PLAIN_cf | INDEXED |
/// INDEXED_cf(ARGUMENTS) { CHANGE }`. The first argument of each is the batch, the second of those for a
/// column family its handle.
macro_rules! fill_variants {
    ($(
        fn $plain:ident | $plain_cf:ident | $indexed:ident | $indexed_cf:ident ( $($arguments:tt)* ) {
            $change:expr
        }
    )*) => { $(
        cf_variants! {
            fn $plain | $plain_cf(batch: Option<&mut BatchHandle>; $($arguments)*) as target {
                add(batch, target, $change);
            }

            fn $indexed | $indexed_cf(batch: Option<&IndexedHandle<'_>>; $($arguments)*) as target {
                add_indexed(batch, target, $change);
            }
        }
    )* };
}

fill_variants! {
    fn rocksdb_writebatch_put | rocksdb_writebatch_put_cf |
        rocksdb_writebatch_wi_put | rocksdb_writebatch_wi_put_cf(
        key: Bytes<'_>,
        key_len: usize,
        value: Bytes<'_>,
        value_len: usize,
    ) {
        Change::Put(key, value)
    }

    fn rocksdb_writebatch_merge | rocksdb_writebatch_merge_cf |
        rocksdb_writebatch_wi_merge | rocksdb_writebatch_wi_merge_cf(
        key: Bytes<'_>,
        key_len: usize,
        operand: Bytes<'_>,
        operand_len: usize,
    ) {
        Change::Merge(key, operand)
    }

    fn rocksdb_writebatch_delete | rocksdb_writebatch_delete_cf |
        rocksdb_writebatch_wi_delete | rocksdb_writebatch_wi_delete_cf(
        key: Bytes<'_>,
        key_len: usize,
    ) {
        Change::Delete(key)
    }

    fn rocksdb_writebatch_singledelete | rocksdb_writebatch_singledelete_cf |
        rocksdb_writebatch_wi_singledelete | rocksdb_writebatch_wi_singledelete_cf(
        key: Bytes<'_>,
        key_len: usize,
    ) {
        Change::SingleDelete(key)
    }

    fn rocksdb_writebatch_delete_range | rocksdb_writebatch_delete_range_cf |
        rocksdb_writebatch_wi_delete_range | rocksdb_writebatch_wi_delete_range_cf(
        start: Bytes<'_>,
        start_len: usize,
        end: Bytes<'_>,
        end_len: usize,
    ) {
        Change::RangeDelete(start, end)
    }

    fn rocksdb_writebatch_putv | rocksdb_writebatch_putv_cf |
        rocksdb_writebatch_wi_putv | rocksdb_writebatch_wi_putv_cf(
        key_count: i32,
        keys: List<'_, Bytes<'_>>[key_count],
        key_lens: List<'_, usize>,
        value_count: i32,
        values: List<'_, Bytes<'_>>[value_count],
        value_lens: List<'_, usize>,
    ) {
        Change::Put(&keys.concat(), &values.concat())
    }

    fn rocksdb_writebatch_mergev | rocksdb_writebatch_mergev_cf |
        rocksdb_writebatch_wi_mergev | rocksdb_writebatch_wi_mergev_cf(
        key_count: i32,
        keys: List<'_, Bytes<'_>>[key_count],
        key_lens: List<'_, usize>,
        operand_count: i32,
        operands: List<'_, Bytes<'_>>[operand_count],
        operand_lens: List<'_, usize>,
    ) {
        Change::Merge(&keys.concat(), &operands.concat())
    }

    fn rocksdb_writebatch_deletev | rocksdb_writebatch_deletev_cf |
        rocksdb_writebatch_wi_deletev | rocksdb_writebatch_wi_deletev_cf(
        count: i32,
        keys: List<'_, Bytes<'_>>[count],
        key_lens: List<'_, usize>,
    ) {
        Change::Delete(&keys.concat())
    }

    fn rocksdb_writebatch_delete_rangev | rocksdb_writebatch_delete_rangev_cf |
        rocksdb_writebatch_wi_delete_rangev | rocksdb_writebatch_wi_delete_rangev_cf(
        count: i32,
        starts: List<'_, Bytes<'_>>[count],
        start_lens: List<'_, usize>,
        ends: List<'_, Bytes<'_>>[count],
        end_lens: List<'_, usize>,
    ) {
        Change::RangeDelete(&starts.concat(), &ends.concat())
    }
}

export! {
    fn rocksdb_writebatch_put_log_data(batch: Option<&mut BatchHandle>, data: Bytes<'_>, len: usize) {
        add(batch, Target::Default, Change::LogData(data));
    }

    fn rocksdb_writebatch_wi_put_log_data(batch: Option<&IndexedHandle<'_>>, data: Bytes<'_>, len: usize) {
        add_indexed(batch, Target::Default, Change::LogData(data));
    }
}
