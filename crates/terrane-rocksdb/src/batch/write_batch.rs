//! Write batches: changes in RocksDB's layout, and the functions that create, copy, clear and save one.

use std::ffi::c_char;

use terrane_base::RecordKind;

use crate::batch::handle::BatchHandle;
use crate::batch::layout::{Change, Layout};
use crate::ffi::failure::{Failure, Given, Result};
use crate::ffi::types::{Out, put};

/// A write batch.
pub(crate) struct WriteBatch {
    pub(crate) layout: Layout,
    /// Records of the engine: the changes that a handle keeps in place of bytes, or the bytes as records
    /// during a write.
    pub(crate) records: terrane::Batch,
    /// States to go back to.
    save_points: Vec<SavePoint>,
    /// Most bytes; 0 for any number. A change that does not fit is left out.
    bytes_max: usize,
    /// True if memory was reserved for bytes.
    has_reserve: bool,
    /// True if keys have places for timestamps that are not there yet.
    pub(crate) awaits_timestamps: bool,
    /// True if a change was added without a handle and without a timestamp.
    pub(crate) has_plain: bool,
    /// The error of a write of this batch, if it has a change that cannot be written.
    pub(crate) refused: Option<Failure>,
    /// Bytes of timestamps in keys of the default column family.
    default_timestamp_bytes: usize,
}

/// A state of a batch that it can go back to.
#[derive(Clone)]
struct SavePoint {
    bytes: usize,
    count: u32,
    awaits_timestamps: bool,
    has_plain: bool,
    refused: Option<Failure>,
}

impl WriteBatch {
    fn new(layout: Layout) -> WriteBatch {
        WriteBatch {
            layout,
            records: terrane::Batch::new(),
            save_points: Vec::new(),
            bytes_max: 0,
            has_reserve: false,
            awaits_timestamps: false,
            has_plain: false,
            refused: None,
            default_timestamp_bytes: 0,
        }
    }

    pub(crate) fn empty() -> WriteBatch {
        WriteBatch::new(Layout::new())
    }

    /// Another batch of the same bytes.
    pub(crate) fn copied(&self) -> WriteBatch {
        let (awaits_timestamps, has_plain) = (self.awaits_timestamps, self.has_plain);
        let refused = self.refused.clone();
        WriteBatch { awaits_timestamps, has_plain, refused, ..WriteBatch::new(self.layout.clone()) }
    }

    /// Sets the number of its first record.
    pub(crate) fn set_seq(&mut self, seq: u64) {
        self.layout.set_seq(seq);
    }

    /// An empty batch with room for so many bytes, and at most so many; 0 for any number.
    pub(crate) fn limited(reserved_bytes: usize, bytes_max: usize) -> WriteBatch {
        let mut batch = WriteBatch::empty();
        batch.layout.reserve(reserved_bytes);
        (batch.bytes_max, batch.has_reserve) = (bytes_max, reserved_bytes > 0);
        batch
    }

    /// Returns true if its changes may be kept as records of the engine: memory and limits are those of the
    /// bytes.
    pub(crate) fn may_keep_records(&self) -> bool {
        self.bytes_max == 0 && !self.has_reserve
    }

    /// Turns the records into changes in the layout, behind those that are there.
    pub(crate) fn lay_out_records(&mut self) {
        let mut records = std::mem::take(&mut self.records);
        for record in records.records() {
            let change = match record.kind {
                RecordKind::Put => Change::Put(record.key, record.value),
                RecordKind::Delete => Change::Delete(record.key),
                RecordKind::SingleDelete => Change::SingleDelete(record.key),
                kind => unreachable!("no handle keeps a record of kind {kind:?}"),
            };
            self.layout.push(record.table.0, change);
        }
        records.clear();
        self.records = records;
    }

    /// Adds a change of a column family, unless there is no room for it.
    #[inline(always)]
    pub(crate) fn add(&mut self, family: u32, change: Change<'_>) {
        self.try_add(family, change);
    }

    /// Adds a change of a column family; whether there was room for it.
    #[inline(always)]
    pub(crate) fn try_add(&mut self, family: u32, change: Change<'_>) -> bool {
        if self.bytes_max > 0 {
            return self.try_add_within(family, change);
        }
        self.layout.push(family, change);
        true
    }

    /// [`WriteBatch::try_add`] where the batch has a limit.
    #[inline(never)]
    fn try_add_within(&mut self, family: u32, change: Change<'_>) -> bool {
        let before = (self.layout.bytes().len(), self.layout.count());
        self.layout.push(family, change);
        let is_beyond = self.layout.bytes().len() > self.bytes_max;
        if is_beyond {
            self.layout.cut(before.0, before.1);
        }
        !is_beyond
    }

    /// Adds a change whose key is without a timestamp; it gets a place for one of so many bytes, and must get
    /// one before the batch is written.
    #[inline(never)]
    pub(crate) fn add_awaiting(&mut self, family: u32, size: usize, change: Change<'_>) {
        let later = |key: &[u8]| [key, &vec![0; size]].concat();
        match change {
            Change::Put(key, _) | Change::Merge(key, _) | Change::Delete(key) | Change::SingleDelete(key) => {
                self.add(family, change.of_key(&later(key)));
            }
            Change::RangeDelete(start, end) => {
                self.add(family, Change::RangeDelete(&later(start), &later(end)));
            }
            Change::LogData(_) => return self.add(family, change),
        }
        self.awaits_timestamps = true;
    }

    /// Adds a change of the default column family.
    #[inline]
    pub(crate) fn add_default(&mut self, change: Change<'_>) {
        match self.default_timestamp_bytes {
            0 => {
                self.has_plain |= !matches!(change, Change::LogData(_));
                self.add(0, change);
            }
            size => self.add_awaiting(0, size, change),
        }
    }

    /// Its bytes, as RocksDB lays them out.
    pub(crate) fn data(&self) -> &[u8] {
        self.layout.bytes()
    }

    /// Another batch of the changes from this place on.
    pub(crate) fn since(&self, at: usize) -> Result<WriteBatch> {
        let mut batch = WriteBatch::empty();
        for record in self.changes_since(at) {
            let (family, change) = record?;
            batch.add(family, change);
        }
        Ok(batch)
    }

    /// How many bytes it has.
    pub(crate) fn bytes(&self) -> usize {
        self.layout.bytes().len()
    }

    /// How many changes it has.
    pub(crate) fn count(&self) -> u32 {
        self.layout.count()
    }

    pub(crate) fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// The change at this place.
    pub(crate) fn change_at(&self, at: usize) -> Option<Change<'_>> {
        self.layout.records_from(at).next()?.ok().map(|(_, change)| change)
    }

    /// The changes, each with its column family; ends after a failure.
    pub(crate) fn changes(&self) -> impl Iterator<Item = Result<(u32, Change<'_>)>> {
        self.layout.records()
    }

    /// The changes, each with its place and its column family; ends before the first damaged one.
    pub(crate) fn placed_changes(&self) -> impl Iterator<Item = (usize, u32, Change<'_>)> {
        self.layout.placed_records()
    }

    /// The changes from this place on.
    pub(crate) fn changes_since(&self, at: usize) -> impl Iterator<Item = Result<(u32, Change<'_>)>> {
        self.layout.records_from(at)
    }

    pub(crate) fn clear(&mut self) {
        self.layout.clear();
        self.save_points.clear();
        (self.awaits_timestamps, self.has_plain, self.refused) = (false, false, None);
    }

    pub(crate) fn set_save_point(&mut self) {
        self.save_points.push(SavePoint {
            bytes: self.bytes(),
            count: self.count(),
            awaits_timestamps: self.awaits_timestamps,
            has_plain: self.has_plain,
            refused: self.refused.clone(),
        });
    }

    /// Bytes and count at the last save point.
    pub(crate) fn save_point(&self) -> Result<(usize, u32)> {
        let point = self.save_points.last().map(|point| (point.bytes, point.count));
        point.ok_or_else(|| Failure::new("NotFound", ""))
    }

    /// Forgets the last save point.
    fn pop_save_point(&mut self) -> Result<SavePoint> {
        self.save_points.pop().ok_or_else(|| Failure::new("NotFound", ""))
    }

    pub(crate) fn roll_back_to_save_point(&mut self) -> Result<()> {
        let SavePoint { bytes, count, awaits_timestamps, has_plain, refused } = self.pop_save_point()?;
        self.layout.cut(bytes, count);
        (self.awaits_timestamps, self.has_plain, self.refused) = (awaits_timestamps, has_plain, refused);
        Ok(())
    }
}

export! {
    fn rocksdb_writebatch_create() -> Option<Box<BatchHandle>> {
        Some(Box::new(BatchHandle::of_empty(WriteBatch::empty())))
    }

    fn rocksdb_writebatch_create_from(bytes: Bytes<'_>, len: usize) -> Option<Box<BatchHandle>> {
        Some(Box::new(BatchHandle::of_bytes(WriteBatch::new(Layout::of(bytes)))))
    }

    fn rocksdb_writebatch_create_with_params(
        reserved_bytes: usize,
        max_bytes: usize,
        _protection_bytes: usize,
        timestamp_bytes: usize,
    ) -> Option<Box<BatchHandle>> {
        let batch = WriteBatch::limited(reserved_bytes, max_bytes);
        let batch = WriteBatch { default_timestamp_bytes: timestamp_bytes, ..batch };
        Some(Box::new(BatchHandle::of_empty(batch)))
    }

    fn rocksdb_writebatch_destroy(batch: Option<Box<BatchHandle>>) {
        drop(batch);
    }

    fn rocksdb_writebatch_clear(batch: Option<&mut BatchHandle>) {
        if let Some(batch) = batch {
            batch.clear();
        }
    }

    fn rocksdb_writebatch_count(batch: Option<&mut BatchHandle>) -> i32 {
        batch.map_or(0, |batch| batch.count() as i32)
    }

    fn rocksdb_writebatch_data(batch: Option<&mut BatchHandle>, len: Out<'_, usize>) -> *const c_char {
        let Some(batch) = batch else { return std::ptr::null() };
        let data = batch.laid().data();
        put(len, data.len());
        data.as_ptr().cast()
    }

    fn rocksdb_writebatch_set_save_point(batch: Option<&mut BatchHandle>) {
        if let Some(batch) = batch {
            batch.laid().set_save_point();
        }
    }

    fn rocksdb_writebatch_rollback_to_save_point(batch: Option<&mut BatchHandle>, error: ErrPtr<'_>) {
        batch.given()?.laid().roll_back_to_save_point()
    }

    fn rocksdb_writebatch_pop_save_point(batch: Option<&mut BatchHandle>, error: ErrPtr<'_>) {
        batch.given()?.laid().pop_save_point().map(drop)
    }

    fn rocksdb_writebatch_verify_checksum(batch: Option<&mut BatchHandle>, error: ErrPtr<'_>) {
        // There are no checksums in a batch, as in RocksDB where none were asked for.
        batch.given()?;
        Ok(())
    }
}
