//! One thread's operations on RocksDB, by functions that work like the adapter of Terrane's library.
//!
//! Differences from [`RocksSession`]:
//!
//! * a value is copied into a buffer of the session (`rocksdb_get_into_buffer_cf`), not pinned,
//! * the values of a multi-get stay together in one object (`rocksdb_batched_multi_get_pinned_cf`), not one
//!   handle each,
//! * a write of one put is that put (`rocksdb_put_cf`), not a batch.
//!
//! The plan `c-route` compares a library with its C interface in this way.
//!
//! Unsafe code: calls of the C interface, as in [`RocksSession`].
#![expect(unsafe_code, reason = "calls of a C interface")]

use std::ffi::{c_char, c_int, c_uchar};
use std::ptr::{null, null_mut};

use crate::engine::rocksdb::api::{
    Api, ColumnFamily, Db, ErrPtr, PinnedMultiGet, ReadOptions, Slice, WriteOptions, checked, text,
};
use crate::engine::rocksdb::session::{RocksSession, lent};
use crate::engine::{Change, Direction, EngineCounters, Session, ShowRow, Visit, Write};
use crate::error::{Error, Result};

/// Bytes of the buffer at the beginning; it grows with the values.
const BUFFER_BYTES: usize = 4096;

/// `rocksdb_pinnable_multi_get_found` and `rocksdb_pinnable_multi_get_not_found`.
const FOUND: c_int = 1;
const NOT_FOUND: c_int = 0;

type GetIntoBuffer = unsafe extern "C" fn(
    *mut Db,
    *const ReadOptions,
    *mut ColumnFamily,
    *const c_char,
    usize,
    *mut c_char,
    usize,
    *mut usize,
    *mut c_uchar,
    ErrPtr,
) -> c_uchar;
type MultiGet = unsafe extern "C" fn(
    *mut Db,
    *const ReadOptions,
    *mut ColumnFamily,
    usize,
    *const Slice,
    c_uchar,
) -> *mut PinnedMultiGet;
type ResultOf = unsafe extern "C" fn(
    *const PinnedMultiGet,
    usize,
    *mut *const c_char,
    *mut usize,
    *mut *const c_char,
    *mut usize,
) -> c_int;
type Put = unsafe extern "C" fn(
    *mut Db,
    *const WriteOptions,
    *mut ColumnFamily,
    *const c_char,
    usize,
    *const c_char,
    usize,
    ErrPtr,
);

/// The functions.
#[derive(Clone, Copy)]
pub(super) struct Functions {
    get: GetIntoBuffer,
    multi_get: MultiGet,
    result: ResultOf,
    end: unsafe extern "C" fn(*mut PinnedMultiGet),
    put: Put,
}

impl Functions {
    /// Those of a library.
    ///
    /// # Errors
    /// `Unsupported` if it lacks one of them.
    pub(super) fn of(api: &Api) -> Result<Functions> {
        let (Some(get), Some(multi_get), Some(result), Some(end), Some(put)) = (
            api.get_into_buffer_cf,
            api.batched_multi_get_pinned_cf,
            api.pinnable_multi_get_result,
            api.pinnable_multi_get_destroy,
            api.put_cf,
        ) else {
            return Err(Error::unsupported(
                "rocksdb",
                "calls = like_library in the C interface of this library (rocksdb_get_into_buffer_cf, \
                 rocksdb_batched_multi_get_pinned_cf: RocksDB 11.9)",
            ));
        };
        Ok(Functions { get, multi_get, result, end, put })
    }
}

/// A thread's way in.
pub(super) struct SessionLikeLibrary<'d> {
    usual: RocksSession<'d>,
    functions: Functions,
    /// The handles that reads pass, as a program in C has them in variables. The database of `usual` owns
    /// them.
    db: *mut Db,
    read: *const ReadOptions,
    families: Vec<*mut ColumnFamily>,
    buffer: Vec<u8>,
    keys: Vec<Slice>,
}

/// The answers of a multi-get, freed when dropped.
struct Answers {
    raw: *mut PinnedMultiGet,
    end: unsafe extern "C" fn(*mut PinnedMultiGet),
}

impl Drop for Answers {
    fn drop(&mut self) {
        // SAFETY: the library handed it out, and it is freed here alone.
        unsafe { (self.end)(self.raw) }
    }
}

impl<'d> SessionLikeLibrary<'d> {
    /// Begins.
    pub(super) fn new(usual: RocksSession<'d>, functions: Functions) -> Self {
        let database = usual.database;
        let (db, read) = (database.raw(), database.read.as_ptr().cast_const());
        let families = database.tables().map(|table| database.family(table)).collect();
        let (buffer, keys) = (vec![0; BUFFER_BYTES], Vec::new());
        SessionLikeLibrary { usual, functions, db, read, families, buffer, keys }
    }

    /// The error of a get.
    #[cold]
    #[inline(never)]
    fn get_failed(&self, message: *mut c_char) -> Error {
        // SAFETY: the library left an error text for us to free.
        let message = unsafe { text(&self.usual.database.api, message) };
        Error::engine("rocksdb", "get", message.unwrap_or_default())
    }

    /// Gets a value that did not fit.
    #[cold]
    #[inline(never)]
    fn get_longer(&mut self, table: u32, key: &[u8], size: usize, visit: &mut Visit<'_>) -> Result<bool> {
        if size <= self.buffer.len() {
            return Err(Error::engine("rocksdb", "get", "a value that fits was not copied"));
        }
        self.buffer.resize(size, 0);
        self.get(table, key, visit)
    }

    /// Shows the values of a multi-get; how many there are.
    fn show(&self, answers: &Answers, keys: &[&[u8]], visit: &mut Visit<'_>) -> Result<u64> {
        let (mut value, mut size, mut failure, mut failure_size) = (null(), 0, null(), 0);
        let (raw, result_of) = (answers.raw, self.functions.result);
        let mut found = 0;
        for (index, key) in keys.iter().enumerate() {
            // SAFETY: the answers are alive, and lend value and error until they are freed.
            unsafe {
                let (value_at, size_at) = (&raw mut value, &raw mut size);
                match result_of(raw, index, value_at, size_at, &raw mut failure, &raw mut failure_size) {
                    FOUND => {
                        visit(key, lent(value, size));
                        found += 1;
                    }
                    NOT_FOUND => {}
                    _ => {
                        let message = String::from_utf8_lossy(lent(failure, failure_size));
                        return Err(Error::engine("rocksdb", "multi get", message));
                    }
                }
            }
        }
        Ok(found)
    }
}

impl Session for SessionLikeLibrary<'_> {
    fn get(&mut self, table: u32, key: &[u8], visit: &mut Visit<'_>) -> Result<bool> {
        let (mut size, mut found, mut error) = (0, 0, null_mut());
        // SAFETY: all handles are alive; key and buffer are for the call.
        let fits = unsafe {
            (self.functions.get)(
                self.db,
                self.read,
                self.families[table as usize],
                key.as_ptr().cast(),
                key.len(),
                self.buffer.as_mut_ptr().cast(),
                self.buffer.len(),
                &raw mut size,
                &raw mut found,
                &raw mut error,
            )
        };
        if !error.is_null() {
            return Err(self.get_failed(error));
        }
        if fits != 0 {
            assert!(size <= self.buffer.len(), "a value of {size} bytes is said to fit");
            visit(key, &self.buffer[..size]);
            return Ok(true);
        }
        if found == 0 {
            return Ok(false);
        }
        self.get_longer(table, key, size, visit)
    }

    fn multi_get(&mut self, table: u32, keys: &[&[u8]], visit: &mut Visit<'_>) -> Result<u64> {
        self.keys.clear();
        self.keys.extend(keys.iter().map(|key| Slice { data: key.as_ptr().cast(), size: key.len() }));
        let family = self.families[table as usize];
        // SAFETY: all handles are alive, and so are the keys and their list.
        let raw = unsafe {
            (self.functions.multi_get)(self.db, self.read, family, self.keys.len(), self.keys.as_ptr(), 0)
        };
        let answers = Answers { raw, end: self.functions.end };
        self.show(&answers, keys, visit)
    }

    fn write(&mut self, table: u32, writes: &[Write<'_>], sync: bool) -> Result<()> {
        let [Write::Put(key, value)] = writes else { return self.usual.write(table, writes, sync) };
        let database = self.usual.database;
        let options = if sync { &database.write_sync } else { &database.write };
        checked(&database.api, "put", |error| {
            // SAFETY: all handles are alive, key and value for the call.
            unsafe {
                (self.functions.put)(
                    database.raw(),
                    options.as_ptr(),
                    database.family(table),
                    key.as_ptr().cast(),
                    key.len(),
                    value.as_ptr().cast(),
                    value.len(),
                    error,
                );
            }
        })
    }

    fn delete_range(&mut self, table: u32, start: &[u8], end: &[u8], sync: bool) -> Result<()> {
        self.usual.delete_range(table, start, end, sync)
    }

    fn transact(&mut self, changes: &[Change<'_>], sync: bool, visit: &mut Visit<'_>) -> Result<bool> {
        self.usual.transact(changes, sync, visit)
    }

    fn iterate(
        &mut self,
        table: u32,
        start: Option<&[u8]>,
        rows: u64,
        direction: Direction,
        row: &mut ShowRow<'_>,
    ) -> Result<u64> {
        self.usual.iterate(table, start, rows, direction, row)
    }

    fn counters(&self) -> EngineCounters {
        self.usual.counters()
    }
}
