//! Changes whose keys and values come in parts, which are joined.

use super::handle::{WriteBatch, add_default, add_to};
use super::layout::Change;
use crate::border::{Bytes, List};
use crate::database::FamilyHandle;

/// The parts of one byte string.
pub(super) fn joined(parts: List<'_, Bytes<'_>>, lens: List<'_, usize>, count: i32) -> Vec<u8> {
    parts.with(lens, usize::try_from(count).unwrap_or(0)).concat()
}

export! {
    fn rocksdb_writebatch_putv(
        batch: Option<&mut WriteBatch>,
        key_count: i32,
        keys: List<'_, Bytes<'_>>,
        key_lens: List<'_, usize>,
        value_count: i32,
        values: List<'_, Bytes<'_>>,
        value_lens: List<'_, usize>,
    ) {
        let (key, value) = (joined(keys, key_lens, key_count), joined(values, value_lens, value_count));
        add_default(batch, Change::Put(&key, &value));
    }

    fn rocksdb_writebatch_putv_cf(
        batch: Option<&mut WriteBatch>,
        handle: Option<&FamilyHandle>,
        key_count: i32,
        keys: List<'_, Bytes<'_>>,
        key_lens: List<'_, usize>,
        value_count: i32,
        values: List<'_, Bytes<'_>>,
        value_lens: List<'_, usize>,
    ) {
        let (key, value) = (joined(keys, key_lens, key_count), joined(values, value_lens, value_count));
        add_to(batch, handle, Change::Put(&key, &value));
    }

    fn rocksdb_writebatch_mergev(
        batch: Option<&mut WriteBatch>,
        key_count: i32,
        keys: List<'_, Bytes<'_>>,
        key_lens: List<'_, usize>,
        value_count: i32,
        values: List<'_, Bytes<'_>>,
        value_lens: List<'_, usize>,
    ) {
        let (key, value) = (joined(keys, key_lens, key_count), joined(values, value_lens, value_count));
        add_default(batch, Change::Merge(&key, &value));
    }

    fn rocksdb_writebatch_mergev_cf(
        batch: Option<&mut WriteBatch>,
        handle: Option<&FamilyHandle>,
        key_count: i32,
        keys: List<'_, Bytes<'_>>,
        key_lens: List<'_, usize>,
        value_count: i32,
        values: List<'_, Bytes<'_>>,
        value_lens: List<'_, usize>,
    ) {
        let (key, value) = (joined(keys, key_lens, key_count), joined(values, value_lens, value_count));
        add_to(batch, handle, Change::Merge(&key, &value));
    }

    fn rocksdb_writebatch_deletev(
        batch: Option<&mut WriteBatch>,
        count: i32,
        keys: List<'_, Bytes<'_>>,
        key_lens: List<'_, usize>,
    ) {
        add_default(batch, Change::Delete(&joined(keys, key_lens, count)));
    }

    fn rocksdb_writebatch_deletev_cf(
        batch: Option<&mut WriteBatch>,
        handle: Option<&FamilyHandle>,
        count: i32,
        keys: List<'_, Bytes<'_>>,
        key_lens: List<'_, usize>,
    ) {
        add_to(batch, handle, Change::Delete(&joined(keys, key_lens, count)));
    }

    fn rocksdb_writebatch_delete_rangev(
        batch: Option<&mut WriteBatch>,
        count: i32,
        starts: List<'_, Bytes<'_>>,
        start_lens: List<'_, usize>,
        ends: List<'_, Bytes<'_>>,
        end_lens: List<'_, usize>,
    ) {
        let (start, end) = (joined(starts, start_lens, count), joined(ends, end_lens, count));
        add_default(batch, Change::RangeDelete(&start, &end));
    }

    fn rocksdb_writebatch_delete_rangev_cf(
        batch: Option<&mut WriteBatch>,
        handle: Option<&FamilyHandle>,
        count: i32,
        starts: List<'_, Bytes<'_>>,
        start_lens: List<'_, usize>,
        ends: List<'_, Bytes<'_>>,
        end_lens: List<'_, usize>,
    ) {
        let (start, end) = (joined(starts, start_lens, count), joined(ends, end_lens, count));
        add_to(batch, handle, Change::RangeDelete(&start, &end));
    }
}
