//! Written by `cargo xtask abi --write` from `abi.toml`; do not edit.

use std::ffi::c_int;

use crate::options::WriteOptions;

option_fields! { own WriteOptions WriteOptionsFields {
    disable_wal: u8 = 0, get rocksdb_writeoptions_get_disable_WAL u8;
    ignore_missing_column_families: u8 = 0, set rocksdb_writeoptions_set_ignore_missing_column_families u8, get rocksdb_writeoptions_get_ignore_missing_column_families u8;
    io_activity: c_int = 255, set rocksdb_writeoptions_set_io_activity c_int, get rocksdb_writeoptions_get_io_activity c_int;
    low_pri: u8 = 0, set rocksdb_writeoptions_set_low_pri u8, get rocksdb_writeoptions_get_low_pri u8;
    memtable_insert_hint_per_batch: u8 = 0, set rocksdb_writeoptions_set_memtable_insert_hint_per_batch u8, get rocksdb_writeoptions_get_memtable_insert_hint_per_batch u8;
    no_slowdown: u8 = 0, set rocksdb_writeoptions_set_no_slowdown u8, get rocksdb_writeoptions_get_no_slowdown u8;
    protection_bytes_per_key: usize = 0, set rocksdb_writeoptions_set_protection_bytes_per_key usize, get rocksdb_writeoptions_get_protection_bytes_per_key usize;
    rate_limiter_priority: c_int = 4, set rocksdb_writeoptions_set_rate_limiter_priority c_int, get rocksdb_writeoptions_get_rate_limiter_priority c_int;
    sync: u8 = 0, set rocksdb_writeoptions_set_sync u8, get rocksdb_writeoptions_get_sync u8;
} }
