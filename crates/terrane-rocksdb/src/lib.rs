//! RocksDB's C interface on Terrane. The result is `librocksdb`, which programs built for RocksDB load
//! instead of RocksDB's own.
//!
//! `abi.toml` has one row per exported function. The mechanical functions are generated from it
//! ([`generated`]); the others are written by hand. A module imports only from modules above it in this list
//! ([`generated`] belongs to all of them):
//!
//! 1. [`ffi`]: argument and result types, errors as text, and the macros that export functions.
//! 2. [`files`]: files of a closed database, the file LOG and the files OPTIONS. [`extents`]: extents as
//!    RocksDB's table files.
//! 3. [`callbacks`]: functions of the user, and the order of keys.
//! 4. [`batch`]: write batches in RocksDB's layout, with or without an index.
//! 5. [`options`]: options, caches, filter policies, environments.
//! 6. [`db`]: open, read, write, maintain, copy, observe.
//! 7. [`iterator`].
//! 8. [`batch_api`]: functions of write batches. [`transactions`]: optimistic and pessimistic ones.
//!
//! # Invariants
//! 1. No panic leaves an exported function: it becomes an error, or the function's result for a failure.
//! 2. Memory that callers free with `rocksdb_free` comes from the C library's allocator.
//! 3. A handle is a box and owns what it needs of others: callers may free handles in any order, except while
//!    they are in use. Handles of a transaction's parts (its batch, its snapshot) are plain memory; callers
//!    use them no longer than the transaction.
//! 4. Unsafe code is in `ffi`, `callbacks` and `batch::wal_filter` only. The types of `ffi` state what C
//!    callers promise.
#![expect(unsafe_code, reason = "functions are exported under their C names")]

#[macro_use]
pub(crate) mod ffi;
#[macro_use]
pub(crate) mod options;
#[macro_use]
pub(crate) mod db;
pub(crate) mod batch;
pub(crate) mod batch_api;
pub(crate) mod callbacks;
pub(crate) mod extents;
pub(crate) mod files;
pub(crate) mod generated;
pub(crate) mod iterator;
pub(crate) mod transactions;
