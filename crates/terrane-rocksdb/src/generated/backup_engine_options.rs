//! Written by `cargo xtask abi --write` from `abi.toml`; do not edit.

use std::ffi::c_int;

use crate::options::BackupEngineOptions;

option_fields! { own BackupEngineOptions BackupEngineOptionsFields {
    backup_log_files: u8 = 1, set rocksdb_backup_engine_options_set_backup_log_files u8, get rocksdb_backup_engine_options_get_backup_log_files u8;
    backup_rate_limit: u64 = 0, set rocksdb_backup_engine_options_set_backup_rate_limit u64, get rocksdb_backup_engine_options_get_backup_rate_limit u64;
    callback_trigger_interval_size: u64 = 4194304, set rocksdb_backup_engine_options_set_callback_trigger_interval_size u64, get rocksdb_backup_engine_options_get_callback_trigger_interval_size u64;
    current_temperatures_override_manifest: u8 = 0, set rocksdb_backup_engine_options_set_current_temperatures_override_manifest u8, get rocksdb_backup_engine_options_get_current_temperatures_override_manifest u8;
    destroy_old_data: u8 = 0, set rocksdb_backup_engine_options_set_destroy_old_data u8, get rocksdb_backup_engine_options_get_destroy_old_data u8;
    io_buffer_size: u64 = 0, set rocksdb_backup_engine_options_set_io_buffer_size u64, get rocksdb_backup_engine_options_get_io_buffer_size u64;
    max_background_operations: c_int = 1, set rocksdb_backup_engine_options_set_max_background_operations c_int, get rocksdb_backup_engine_options_get_max_background_operations c_int;
    max_valid_backups_to_open: c_int = 2147483647, set rocksdb_backup_engine_options_set_max_valid_backups_to_open c_int, get rocksdb_backup_engine_options_get_max_valid_backups_to_open c_int;
    restore_rate_limit: u64 = 0, set rocksdb_backup_engine_options_set_restore_rate_limit u64, get rocksdb_backup_engine_options_get_restore_rate_limit u64;
    schema_version: c_int = 1, set rocksdb_backup_engine_options_set_schema_version c_int, get rocksdb_backup_engine_options_get_schema_version c_int;
    share_files_with_checksum: u8 = 1, set rocksdb_backup_engine_options_set_share_files_with_checksum u8, get rocksdb_backup_engine_options_get_share_files_with_checksum u8;
    share_files_with_checksum_naming: c_int = -2147483646, set rocksdb_backup_engine_options_set_share_files_with_checksum_naming c_int, get rocksdb_backup_engine_options_get_share_files_with_checksum_naming c_int;
    share_table_files: u8 = 1, set rocksdb_backup_engine_options_set_share_table_files u8, get rocksdb_backup_engine_options_get_share_table_files u8;
    sync: u8 = 1, set rocksdb_backup_engine_options_set_sync u8, get rocksdb_backup_engine_options_get_sync u8;
} }
