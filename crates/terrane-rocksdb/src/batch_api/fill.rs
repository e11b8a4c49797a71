//! The functions that add changes to a write batch.

use crate::batch::layout::Change;
use crate::batch::write_batch::WriteBatch;
use crate::batch_api::parts::joined;
use crate::db::cf_variants::Target;
use crate::ffi::types::{Bytes, List};

/// Adds a change of a column family; does nothing without a batch or a handle.
#[inline]
fn add(batch: Option<&mut WriteBatch>, target: Target<'_>, change: Change<'_>) {
    let Some(batch) = batch else { return };
    match target {
        Target::Default => batch.add_default(change),
        Target::Handle(None) => {}
        Target::Handle(Some(handle)) => match &handle.family.history {
            None => batch.add(handle.family.id(), change),
            Some(history) => batch.add_awaiting(handle.family.id(), history.size(), change),
        },
    }
}

cf_variants! {
    fn rocksdb_writebatch_put | rocksdb_writebatch_put_cf(
        batch: Option<&mut WriteBatch>;
        key: Bytes<'_>,
        key_len: usize,
        value: Bytes<'_>,
        value_len: usize,
    ) as target {
        add(batch, target, Change::Put(key.of(key_len), value.of(value_len)));
    }

    fn rocksdb_writebatch_merge | rocksdb_writebatch_merge_cf(
        batch: Option<&mut WriteBatch>;
        key: Bytes<'_>,
        key_len: usize,
        operand: Bytes<'_>,
        operand_len: usize,
    ) as target {
        add(batch, target, Change::Merge(key.of(key_len), operand.of(operand_len)));
    }

    fn rocksdb_writebatch_delete | rocksdb_writebatch_delete_cf(
        batch: Option<&mut WriteBatch>;
        key: Bytes<'_>,
        key_len: usize,
    ) as target {
        add(batch, target, Change::Delete(key.of(key_len)));
    }

    fn rocksdb_writebatch_singledelete | rocksdb_writebatch_singledelete_cf(
        batch: Option<&mut WriteBatch>;
        key: Bytes<'_>,
        key_len: usize,
    ) as target {
        add(batch, target, Change::SingleDelete(key.of(key_len)));
    }

    fn rocksdb_writebatch_delete_range | rocksdb_writebatch_delete_range_cf(
        batch: Option<&mut WriteBatch>;
        start: Bytes<'_>,
        start_len: usize,
        end: Bytes<'_>,
        end_len: usize,
    ) as target {
        add(batch, target, Change::RangeDelete(start.of(start_len), end.of(end_len)));
    }

    fn rocksdb_writebatch_putv | rocksdb_writebatch_putv_cf(
        batch: Option<&mut WriteBatch>;
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

    fn rocksdb_writebatch_mergev | rocksdb_writebatch_mergev_cf(
        batch: Option<&mut WriteBatch>;
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

    fn rocksdb_writebatch_deletev | rocksdb_writebatch_deletev_cf(
        batch: Option<&mut WriteBatch>;
        count: i32,
        keys: List<'_, Bytes<'_>>,
        key_lens: List<'_, usize>,
    ) as target {
        add(batch, target, Change::Delete(&joined(keys, key_lens, count)));
    }

    fn rocksdb_writebatch_delete_rangev | rocksdb_writebatch_delete_rangev_cf(
        batch: Option<&mut WriteBatch>;
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

export! {
    fn rocksdb_writebatch_put_log_data(batch: Option<&mut WriteBatch>, data: Bytes<'_>, len: usize) {
        add(batch, Target::Default, Change::LogData(data.of(len)));
    }
}
