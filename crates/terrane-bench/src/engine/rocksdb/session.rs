//! One thread's operations on RocksDB.
//!
//! Unsafe code: calls of the C interface on the way of each operation. Keys and values are lent to the
//! library for a call only; what it lends back (a pinned value, an iterator's row) is seen by the visitor
//! before the owner is destroyed or moved. The batch, the buffers of `multi_get` and, where the library can
//! refresh them, the iterators of short scans are reused.
#![expect(unsafe_code, reason = "calls of a C interface")]

use std::ffi::c_char;
use std::ptr::null_mut;

use crate::engine::rocksdb::api::{
    Api, Batch, ColumnFamily, Iter, Owned, PerfContext, Pinned, checked, text,
};
use crate::engine::rocksdb::counters;
use crate::engine::rocksdb::database::Database;
use crate::engine::rocksdb::transactions;
use crate::engine::rocksdb::tuning::Counting;
use crate::engine::{Change, Direction, EngineCounters, Session, ShowRow, Visit, Write};
use crate::error::{Error, Result};

/// `rocksdb_disable` and `rocksdb_enable_count` of the perf levels.
const PERF_OFF: i32 = 1;
const PERF_COUNTS: i32 = 2;

/// A thread's way in.
pub(super) struct RocksSession<'d> {
    pub(super) database: &'d Database,
    api: &'d Api,
    batch: Owned<Batch>,
    perf: Option<Owned<PerfContext>>,
    /// Iterators of earlier short scans, by table.
    iters: Vec<Option<Owned<Iter>>>,
    keys: Vec<*const c_char>,
    sizes: Vec<usize>,
    values: Vec<*mut Pinned>,
    errors: Vec<*mut c_char>,
}

impl<'d> RocksSession<'d> {
    /// Begins; with [`Counting::Perf`], the calling thread counts from here on.
    pub(super) fn new(database: &'d Database, counting: Counting) -> Self {
        let api = &database.api;
        // SAFETY: constructors and their destructors; the perf level and context are the calling thread's,
        // and a session stays on its thread because it is not `Send`.
        let (batch, perf) = unsafe {
            let batch = Owned::new(api, (api.writebatch_create)(), api.writebatch_destroy);
            let perf = (counting == Counting::Perf).then(|| {
                (api.set_perf_level)(PERF_COUNTS);
                let context = Owned::new(api, (api.perfcontext_create)(), api.perfcontext_destroy);
                (api.perfcontext_reset)(context.as_ptr());
                context
            });
            (batch, perf)
        };
        let (keys, sizes, values, errors) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        RocksSession { database, api, batch, perf, iters: Vec::new(), keys, sizes, values, errors }
    }

    /// Lends a pinned value to the visitor and gives it back.
    fn visit_pinned(&self, key: &[u8], pinned: *mut Pinned, visit: &mut Visit<'_>) {
        let mut size = 0;
        // SAFETY: `pinned` is a value that the library just handed out; the bytes live until it is destroyed,
        // once, below.
        unsafe {
            let data = (self.api.pinnableslice_value)(pinned, &raw mut size);
            visit(key, lent(data, size));
            (self.api.pinnableslice_destroy)(pinned);
        }
    }

    fn new_iter(&self, all: bool, table: u32) -> Owned<Iter> {
        let options = if all { &self.database.read_all } else { &self.database.read };
        // SAFETY: database, options and family outlive the iterator, which ends with this session at the
        // latest.
        unsafe {
            let raw = (self.api.create_iterator_cf)(
                self.database.raw(),
                options.as_ptr(),
                self.database.family(table),
            );
            Owned::new(&self.database.api, raw, self.api.iter_destroy)
        }
    }

    /// The iterator of the last short scan, refreshed to the present state, or a new one.
    fn short_iter(&mut self, table: u32) -> Owned<Iter> {
        let kept = self.iters.get_mut(table as usize).and_then(Option::take);
        let refreshed = kept.zip(self.api.iter_refresh).and_then(|(iter, refresh)| {
            // SAFETY: the iterator is alive.
            let done = checked(self.api, "refresh", |error| unsafe { refresh(iter.as_ptr(), error) });
            done.ok().map(|()| iter)
        });
        refreshed.unwrap_or_else(|| self.new_iter(false, table))
    }

    /// Keeps an iterator for the next short scan.
    fn keep_iter(&mut self, table: u32, iter: Owned<Iter>) {
        if self.api.iter_refresh.is_some() {
            let table = table as usize;
            self.iters.resize_with(self.iters.len().max(table + 1), || None);
            self.iters[table] = Some(iter);
        }
    }

    fn position(&self, iter: &Owned<Iter>, start: Option<&[u8]>, direction: Direction) {
        let raw = iter.as_ptr();
        // SAFETY: the iterator is alive, and the key for the call.
        unsafe {
            match (start, direction) {
                (Some(key), Direction::Forward) => (self.api.iter_seek)(raw, key.as_ptr().cast(), key.len()),
                (Some(key), Direction::Backward) => {
                    (self.api.iter_seek_for_prev)(raw, key.as_ptr().cast(), key.len())
                }
                (None, Direction::Forward) => (self.api.iter_seek_to_first)(raw),
                (None, Direction::Backward) => (self.api.iter_seek_to_last)(raw),
            }
        }
    }

    /// Shows up to `rows_max` rows until `row` says stop or the rows end; returns their number.
    fn walk(&self, iter: &Owned<Iter>, rows_max: u64, direction: Direction, row: &mut ShowRow<'_>) -> u64 {
        let (api, raw) = (self.api, iter.as_ptr());
        let step = if direction == Direction::Forward { api.iter_next } else { api.iter_prev };
        let mut rows = 0;
        // SAFETY: the iterator is alive; key and value are read only while it is valid and before it moves.
        unsafe {
            while (api.iter_valid)(raw) != 0 {
                rows += 1;
                let more = match (api.iter_key_slice, api.iter_value_slice) {
                    (Some(key), Some(value)) => {
                        let (key, value) = (key(raw), value(raw));
                        row(lent(key.data, key.size), lent(value.data, value.size))
                    }
                    _ => {
                        let (mut key_size, mut value_size) = (0, 0);
                        let key = (api.iter_key)(raw, &raw mut key_size);
                        let value = (api.iter_value)(raw, &raw mut value_size);
                        row(lent(key, key_size), lent(value, value_size))
                    }
                };
                if !more || rows == rows_max {
                    break;
                }
                step(raw);
            }
        }
        rows
    }

    fn add(&self, family: *mut ColumnFamily, write: &Write<'_>) {
        let batch = self.batch.as_ptr();
        // SAFETY: batch and family are alive; RocksDB copies key and value.
        unsafe {
            match write {
                Write::Put(key, value) => (self.api.writebatch_put_cf)(
                    batch,
                    family,
                    key.as_ptr().cast(),
                    key.len(),
                    value.as_ptr().cast(),
                    value.len(),
                ),
                Write::Delete(key) => {
                    (self.api.writebatch_delete_cf)(batch, family, key.as_ptr().cast(), key.len());
                }
            }
        }
    }

    /// Takes the answers of a batched read: lends what was found, frees everything, and returns the first
    /// error.
    fn take_answers(&mut self, keys: &[&[u8]], visit: &mut Visit<'_>) -> Result<u64> {
        let (mut found, mut failed) = (0, None);
        for (index, key) in keys.iter().enumerate() {
            // SAFETY: null or an error text for us to free.
            if let Some(message) = unsafe { text(self.api, self.errors[index]) } {
                failed = failed.or(Some(Error::engine("rocksdb", "multi get", message)));
            }
            if !self.values[index].is_null() {
                self.visit_pinned(key, self.values[index], visit);
                found += 1;
            }
        }
        failed.map_or(Ok(found), Err)
    }
}

impl Drop for RocksSession<'_> {
    fn drop(&mut self) {
        if self.perf.is_some() {
            // SAFETY: sets the calling thread's level.
            unsafe { (self.api.set_perf_level)(PERF_OFF) }
        }
    }
}

impl Session for RocksSession<'_> {
    fn get(&mut self, table: u32, key: &[u8], visit: &mut Visit<'_>) -> Result<bool> {
        let pinned = checked(self.api, "get", |error| {
            // SAFETY: all handles are alive, and the key for the call.
            unsafe {
                (self.api.get_pinned_cf)(
                    self.database.raw(),
                    self.database.read.as_ptr(),
                    self.database.family(table),
                    key.as_ptr().cast(),
                    key.len(),
                    error,
                )
            }
        })?;
        if pinned.is_null() {
            return Ok(false);
        }
        self.visit_pinned(key, pinned, visit);
        Ok(true)
    }

    fn multi_get(&mut self, table: u32, keys: &[&[u8]], visit: &mut Visit<'_>) -> Result<u64> {
        self.keys.clear();
        self.keys.extend(keys.iter().map(|key| key.as_ptr().cast::<c_char>()));
        self.sizes.clear();
        self.sizes.extend(keys.iter().map(|key| key.len()));
        self.values.clear();
        self.values.resize(keys.len(), null_mut());
        self.errors.clear();
        self.errors.resize(keys.len(), null_mut());
        // SAFETY: four arrays of `keys.len()`, alive for the call, as are handles and keys.
        unsafe {
            (self.api.batched_multi_get_cf)(
                self.database.raw(),
                self.database.read.as_ptr(),
                self.database.family(table),
                keys.len(),
                self.keys.as_ptr(),
                self.sizes.as_ptr(),
                self.values.as_mut_ptr(),
                self.errors.as_mut_ptr(),
                false,
            );
        }
        self.take_answers(keys, visit)
    }

    fn write(&mut self, table: u32, writes: &[Write<'_>], sync: bool) -> Result<()> {
        let family = self.database.family(table);
        // SAFETY: the batch is alive.
        unsafe { (self.api.writebatch_clear)(self.batch.as_ptr()) };
        writes.iter().for_each(|write| self.add(family, write));
        let options = if sync { &self.database.write_sync } else { &self.database.write };
        checked(self.api, "write", |error| {
            // SAFETY: all handles are alive.
            unsafe { (self.api.write)(self.database.raw(), options.as_ptr(), self.batch.as_ptr(), error) }
        })
    }

    fn delete_range(&mut self, table: u32, start: &[u8], end: &[u8], sync: bool) -> Result<()> {
        let Some(delete_range) = self.api.delete_range_cf else {
            return Err(Error::unsupported(
                "rocksdb",
                "range deletes in the C interface of this library (rocksdb_delete_range_cf)",
            ));
        };
        let options = if sync { &self.database.write_sync } else { &self.database.write };
        checked(self.api, "delete a range", |error| {
            // SAFETY: all handles are alive, and both keys for the call.
            unsafe {
                delete_range(
                    self.database.raw(),
                    options.as_ptr(),
                    self.database.family(table),
                    start.as_ptr().cast(),
                    start.len(),
                    end.as_ptr().cast(),
                    end.len(),
                    error,
                );
            }
        })
    }

    fn transact(&mut self, changes: &[Change<'_>], sync: bool, visit: &mut Visit<'_>) -> Result<bool> {
        let mut show = |key: &[u8], pinned| self.visit_pinned(key, pinned, visit);
        transactions::transact(self.database, changes, sync, &mut show)
    }

    fn iterate(
        &mut self,
        table: u32,
        start: Option<&[u8]>,
        rows: u64,
        direction: Direction,
        row: &mut ShowRow<'_>,
    ) -> Result<u64> {
        let iter = if start.is_some() { self.short_iter(table) } else { self.new_iter(true, table) };
        self.position(&iter, start, direction);
        let seen = self.walk(&iter, rows, direction, row);
        // SAFETY: the iterator is alive.
        checked(self.api, "scan", |error| unsafe { (self.api.iter_get_error)(iter.as_ptr(), error) })?;
        if start.is_some() {
            self.keep_iter(table, iter);
        }
        Ok(seen)
    }

    fn counters(&self) -> EngineCounters {
        let Some(perf) = &self.perf else { return EngineCounters::default() };
        // SAFETY: the context is alive and this thread's; the answer is ours to free.
        let report = unsafe { text(self.api, (self.api.perfcontext_report)(perf.as_ptr(), 1)) };
        counters::of_perf_context(&report.unwrap_or_default())
    }
}

/// Bytes that the library lends.
///
/// # Safety
/// `data` is null or `size` bytes that live, unchanged, as long as the slice is used.
pub(super) unsafe fn lent<'l>(data: *const c_char, size: usize) -> &'l [u8] {
    if data.is_null() {
        return &[];
    }
    // SAFETY: by the caller's promise.
    unsafe { std::slice::from_raw_parts(data.cast(), size) }
}
