//! The cost of calls through C: the same operations on the same database, through the library and through its
//! C interface, in turns, on one thread, all in memory. `cargo run --release -p terrane-rocksdb --example
//! route [KEYS]` prints rates and their ratios.
#![allow(unsafe_code, reason = "calls of the C interface, as a C program makes them")]
#![allow(clippy::disallowed_methods, reason = "it measures time")]

use std::ffi::{CString, c_char};
use std::hint::black_box;
use std::time::Instant;

use rocksdb as _;

#[repr(C)]
struct Object([u8; 0]);
type Handle = *mut Object;

unsafe extern "C" {
    fn rocksdb_options_create() -> Handle;
    fn rocksdb_options_set_create_if_missing(options: Handle, value: u8);
    fn rocksdb_options_set_db_write_buffer_size(options: Handle, bytes: usize);
    fn rocksdb_options_set_block_based_table_factory(options: Handle, table: Handle);
    fn rocksdb_block_based_options_create() -> Handle;
    fn rocksdb_block_based_options_set_block_cache(table: Handle, cache: Handle);
    fn rocksdb_cache_create_lru(bytes: usize) -> Handle;
    fn rocksdb_open(options: Handle, path: *const c_char, error: *mut *mut c_char) -> Handle;
    fn rocksdb_close(db: Handle);
    fn rocksdb_writeoptions_create() -> Handle;
    fn rocksdb_readoptions_create() -> Handle;
    fn rocksdb_put(
        db: Handle,
        options: Handle,
        key: *const u8,
        len: usize,
        value: *const u8,
        value_len: usize,
        error: *mut *mut c_char,
    );
    fn rocksdb_get(
        db: Handle,
        options: Handle,
        key: *const u8,
        len: usize,
        value_len: *mut usize,
        error: *mut *mut c_char,
    ) -> *mut c_char;
    fn rocksdb_get_pinned(
        db: Handle,
        options: Handle,
        key: *const u8,
        len: usize,
        error: *mut *mut c_char,
    ) -> Handle;
    fn rocksdb_pinnableslice_value(slice: Handle, len: *mut usize) -> *const c_char;
    fn rocksdb_pinnableslice_destroy(slice: Handle);
    fn rocksdb_free(memory: *mut c_char);
    fn rocksdb_writebatch_create() -> Handle;
    fn rocksdb_writebatch_clear(batch: Handle);
    fn rocksdb_writebatch_put(batch: Handle, key: *const u8, len: usize, value: *const u8, value_len: usize);
    fn rocksdb_write(db: Handle, options: Handle, batch: Handle, error: *mut *mut c_char);
    fn rocksdb_create_iterator(db: Handle, options: Handle) -> Handle;
    fn rocksdb_iter_seek_to_first(iter: Handle);
    fn rocksdb_iter_seek(iter: Handle, key: *const u8, len: usize);
    fn rocksdb_iter_valid(iter: Handle) -> u8;
    fn rocksdb_iter_next(iter: Handle);
    fn rocksdb_iter_key(iter: Handle, len: *mut usize) -> *const c_char;
    fn rocksdb_iter_value(iter: Handle, len: *mut usize) -> *const c_char;
    fn rocksdb_iter_destroy(iter: Handle);
}

const VALUE: [u8; 100] = [7; 100];
const BATCH: u64 = 32;

/// Keys of 16 bytes in an order without a pattern.
fn key(number: u64) -> [u8; 16] {
    let mut key = [b'0'; 16];
    key[8..].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    key
}

/// Operations a second.
fn rate(count: u64, mut operation: impl FnMut(u64)) -> f64 {
    let start = Instant::now();
    (0..count).for_each(&mut operation);
    count as f64 / start.elapsed().as_secs_f64()
}

struct C {
    db: Handle,
    reading: Handle,
    writing: Handle,
    batch: Handle,
}

fn main() -> terrane::Result<()> {
    let keys: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100_000);
    let directory = tempfile::tempdir().expect("temporary directory");
    let options = terrane::Options { memory_bytes: 1 << 30, ..Default::default() };
    let db = terrane::Db::open_with(directory.path().join("library"), &options)?;
    let path = CString::new(directory.path().join("c").to_str().expect("a path in UTF-8")).expect("no zero");
    let mut error = std::ptr::null_mut();
    // SAFETY: the calls are those of the header, here and below.
    let c = unsafe {
        let options = rocksdb_options_create();
        rocksdb_options_set_create_if_missing(options, 1);
        // The same memory as the library has: half of it for writers.
        rocksdb_options_set_db_write_buffer_size(options, 512 << 20);
        let table = rocksdb_block_based_options_create();
        rocksdb_block_based_options_set_block_cache(table, rocksdb_cache_create_lru(512 << 20));
        rocksdb_options_set_block_based_table_factory(options, table);
        let db = rocksdb_open(options, path.as_ptr(), &raw mut error);
        assert!(error.is_null() && !db.is_null());
        C {
            db,
            reading: rocksdb_readoptions_create(),
            writing: rocksdb_writeoptions_create(),
            batch: rocksdb_writebatch_create(),
        }
    };
    println!("{:>14} {:>12} {:>12} {:>6}", "operation", "library", "C", "ratio");
    for round in 0..3 {
        println!("round {round}");
        show("put", put_library(&db, keys), put_c(&c, keys));
        show("batch of 32", batch_library(&db, keys), batch_c(&c, keys));
        show("get", get_library(&db, keys), get_c(&c, keys));
        show("get pinned", get_library(&db, keys), pinned_c(&c, keys));
        show("scan", scan_library(&db), scan_c(&c));
        show("seek and next", seek_library(&db, keys), seek_c(&c, keys));
    }
    // SAFETY: nothing of the database is in use any more.
    unsafe { rocksdb_close(c.db) };
    db.close()
}

fn show(name: &str, library: f64, c: f64) {
    println!("{name:>14} {library:>12.0} {c:>12.0} {:>6.3}", c / library);
}

fn put_library(db: &terrane::Db, keys: u64) -> f64 {
    rate(keys, |number| db.put(key(number), VALUE).expect("is written"))
}

fn put_c(c: &C, keys: u64) -> f64 {
    let mut error = std::ptr::null_mut();
    rate(keys, |number| {
        let key = key(number);
        // SAFETY: key and value are there during the call.
        unsafe { rocksdb_put(c.db, c.writing, key.as_ptr(), 16, VALUE.as_ptr(), 100, &raw mut error) };
        assert!(error.is_null());
    })
}

fn batch_library(db: &terrane::Db, keys: u64) -> f64 {
    let mut batch = terrane::Batch::new();
    rate(keys / BATCH, |at| {
        batch.clear();
        for number in at * BATCH..(at + 1) * BATCH {
            batch.put(db.default_table(), key(number), VALUE).expect("is added");
        }
        db.write(&batch, terrane::Durability::Buffered).expect("is written");
    })
}

fn batch_c(c: &C, keys: u64) -> f64 {
    let mut error = std::ptr::null_mut();
    rate(keys / BATCH, |at| {
        // SAFETY: as above.
        unsafe {
            rocksdb_writebatch_clear(c.batch);
            for number in at * BATCH..(at + 1) * BATCH {
                let key = key(number);
                rocksdb_writebatch_put(c.batch, key.as_ptr(), 16, VALUE.as_ptr(), 100);
            }
            rocksdb_write(c.db, c.writing, c.batch, &raw mut error);
        }
        assert!(error.is_null());
    })
}

fn get_library(db: &terrane::Db, keys: u64) -> f64 {
    rate(keys, |number| {
        let value = db.get(key(number)).expect("is read");
        black_box(value.expect("is there").len());
    })
}

fn get_c(c: &C, keys: u64) -> f64 {
    let (mut error, mut len) = (std::ptr::null_mut(), 0);
    rate(keys, |number| {
        let key = key(number);
        // SAFETY: as above.
        unsafe { rocksdb_free(rocksdb_get(c.db, c.reading, key.as_ptr(), 16, &raw mut len, &raw mut error)) };
        assert_eq!(len, 100);
    })
}

fn pinned_c(c: &C, keys: u64) -> f64 {
    let (mut error, mut len) = (std::ptr::null_mut(), 0);
    rate(keys, |number| {
        let key = key(number);
        // SAFETY: as above.
        unsafe {
            let slice = rocksdb_get_pinned(c.db, c.reading, key.as_ptr(), 16, &raw mut error);
            black_box(rocksdb_pinnableslice_value(slice, &raw mut len));
            rocksdb_pinnableslice_destroy(slice);
        }
        assert_eq!(len, 100);
    })
}

fn scan_library(db: &terrane::Db) -> f64 {
    let (mut cursor, mut rows) = (db.default_table().cursor(), 0_u64);
    let passes = rate(1, |_| {
        cursor.seek_first().expect("is read");
        while let Some((key, value)) = cursor.row() {
            black_box((key.len(), value.len()));
            rows += 1;
            cursor.next().expect("is read");
        }
    });
    passes * rows as f64
}

fn scan_c(c: &C) -> f64 {
    let (mut rows, mut len) = (0_u64, 0);
    // SAFETY: as above.
    let passes = rate(1, |_| unsafe {
        let iter = rocksdb_create_iterator(c.db, c.reading);
        rocksdb_iter_seek_to_first(iter);
        while rocksdb_iter_valid(iter) != 0 {
            black_box(rocksdb_iter_key(iter, &raw mut len));
            black_box(rocksdb_iter_value(iter, &raw mut len));
            rows += 1;
            rocksdb_iter_next(iter);
        }
        rocksdb_iter_destroy(iter);
    });
    passes * rows as f64
}

fn seek_library(db: &terrane::Db, keys: u64) -> f64 {
    let mut cursor = db.default_table().cursor();
    rate(keys / 4, |number| {
        cursor.seek(key(number)).expect("is read");
        cursor.next().expect("is read");
        black_box(cursor.row().is_some());
    })
}

fn seek_c(c: &C, keys: u64) -> f64 {
    // SAFETY: as above.
    let iter = unsafe { rocksdb_create_iterator(c.db, c.reading) };
    let rate = rate(keys / 4, |number| {
        let key = key(number);
        // SAFETY: as above.
        unsafe {
            rocksdb_iter_seek(iter, key.as_ptr(), 16);
            rocksdb_iter_next(iter);
            black_box(rocksdb_iter_valid(iter));
        }
    });
    // SAFETY: as above.
    unsafe { rocksdb_iter_destroy(iter) };
    rate
}
