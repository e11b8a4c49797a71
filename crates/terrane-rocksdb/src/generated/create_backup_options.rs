//! Written by `cargo xtask abi --write` from `abi.toml`; do not edit.

use std::ffi::c_int;

use crate::options::CreateBackupOptions;

option_fields! { own CreateBackupOptions CreateBackupOptionsFields {
    atomic_flush: u8 = 0, set rocksdb_create_backup_options_set_atomic_flush u8, get rocksdb_create_backup_options_get_atomic_flush u8;
    background_thread_cpu_priority: c_int = 2, set rocksdb_create_backup_options_set_background_thread_cpu_priority c_int, get rocksdb_create_backup_options_get_background_thread_cpu_priority c_int;
    decrease_background_thread_cpu_priority: u8 = 0, set rocksdb_create_backup_options_set_decrease_background_thread_cpu_priority u8, get rocksdb_create_backup_options_get_decrease_background_thread_cpu_priority u8;
    flush_before_backup: u8 = 0, set rocksdb_create_backup_options_set_flush_before_backup u8, get rocksdb_create_backup_options_get_flush_before_backup u8;
} }
