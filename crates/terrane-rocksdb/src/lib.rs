//! RocksDB's C interface on Terrane: what is built is `librocksdb`, which programs made for RocksDB load in its place.
//!
//! `abi.toml` has one row for each exported function. What is mechanical is made of it ([`generated`]); the rest is written
//! here, by subject:
//!
//! * [`border`]: what passes between C and Rust, and the macros that export functions. [`failure`]: errors as text.
//! * [`objects`]: options, caches, filter policies, environments. [`callbacks`]: functions of the user.
//! * [`metadata`]: what a database consists of. [`backup`]: backups. [`values`]: objects that are only read.
//! * [`database`]: open, read, write, maintain. [`batch`]: write batches in RocksDB's layout, with an index, too. [`iterator`].
//! * [`order`]: how keys compare. [`timestamps`]: of the user, and versions by them. [`transactions`]: optimistic and pessimistic ones. [`twins`]: functions with and without a handle of a column family.
//!
//! # Invariants
//! 1. No panic leaves an exported function: it becomes an error, or what the function returns when it fails.
//! 2. Memory that callers free with `rocksdb_free` is the C library's.
//! 3. A handle is a box, and holds what it needs of others: handles may be freed in any order, except while they are in use. Handles of
//!    what a transaction has (its batch, its snapshot) are plain memory, and are used no longer than the transaction.
//! 4. Unsafe code is in `border` and `callbacks` only: what C callers must keep to is in the types of `border`.
#![expect(unsafe_code, reason = "functions are exported under their C names")]

#[macro_use]
mod border;
#[macro_use]
mod knobs;
#[macro_use]
mod twins;
#[macro_use]
mod values;

mod backup;
mod batch;
mod callbacks;
mod database;
mod failure;
mod files;
mod generated;
mod iterator;
mod metadata;
mod objects;
mod order;
mod timestamps;
mod transactions;
