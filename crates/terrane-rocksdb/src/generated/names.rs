//! Written by `cargo xtask abi --write` from `abi.toml`; do not edit.

use std::ffi::c_int;

use crate::ffi::types::Pointer;

name! { rocksdb_backupable_db_options_create of rocksdb_backup_engine_options_create(a0: Pointer) -> Pointer }
name! { rocksdb_backupable_db_options_destroy of rocksdb_backup_engine_options_destroy(a0: Pointer) }
name! { rocksdb_backupable_db_options_get_backup_log_files of rocksdb_backup_engine_options_get_backup_log_files(a0: Pointer) -> u8 }
name! { rocksdb_backupable_db_options_get_backup_rate_limit of rocksdb_backup_engine_options_get_backup_rate_limit(a0: Pointer) -> u64 }
name! { rocksdb_backupable_db_options_get_callback_trigger_interval_size of rocksdb_backup_engine_options_get_callback_trigger_interval_size(a0: Pointer) -> u64 }
name! { rocksdb_backupable_db_options_get_destroy_old_data of rocksdb_backup_engine_options_get_destroy_old_data(a0: Pointer) -> u8 }
name! { rocksdb_backupable_db_options_get_max_background_operations of rocksdb_backup_engine_options_get_max_background_operations(a0: Pointer) -> c_int }
name! { rocksdb_backupable_db_options_get_max_valid_backups_to_open of rocksdb_backup_engine_options_get_max_valid_backups_to_open(a0: Pointer) -> c_int }
name! { rocksdb_backupable_db_options_get_restore_rate_limit of rocksdb_backup_engine_options_get_restore_rate_limit(a0: Pointer) -> u64 }
name! { rocksdb_backupable_db_options_get_share_files_with_checksum_naming of rocksdb_backup_engine_options_get_share_files_with_checksum_naming(a0: Pointer) -> c_int }
name! { rocksdb_backupable_db_options_get_share_table_files of rocksdb_backup_engine_options_get_share_table_files(a0: Pointer) -> u8 }
name! { rocksdb_backupable_db_options_get_sync of rocksdb_backup_engine_options_get_sync(a0: Pointer) -> u8 }
name! { rocksdb_backupable_db_options_set_backup_dir of rocksdb_backup_engine_options_set_backup_dir(a0: Pointer, a1: Pointer) }
name! { rocksdb_backupable_db_options_set_backup_log_files of rocksdb_backup_engine_options_set_backup_log_files(a0: Pointer, a1: u8) }
name! { rocksdb_backupable_db_options_set_backup_rate_limit of rocksdb_backup_engine_options_set_backup_rate_limit(a0: Pointer, a1: u64) }
name! { rocksdb_backupable_db_options_set_callback_trigger_interval_size of rocksdb_backup_engine_options_set_callback_trigger_interval_size(a0: Pointer, a1: u64) }
name! { rocksdb_backupable_db_options_set_destroy_old_data of rocksdb_backup_engine_options_set_destroy_old_data(a0: Pointer, a1: u8) }
name! { rocksdb_backupable_db_options_set_env of rocksdb_backup_engine_options_set_env(a0: Pointer, a1: Pointer) }
name! { rocksdb_backupable_db_options_set_max_background_operations of rocksdb_backup_engine_options_set_max_background_operations(a0: Pointer, a1: c_int) }
name! { rocksdb_backupable_db_options_set_max_valid_backups_to_open of rocksdb_backup_engine_options_set_max_valid_backups_to_open(a0: Pointer, a1: c_int) }
name! { rocksdb_backupable_db_options_set_restore_rate_limit of rocksdb_backup_engine_options_set_restore_rate_limit(a0: Pointer, a1: u64) }
name! { rocksdb_backupable_db_options_set_share_files_with_checksum_naming of rocksdb_backup_engine_options_set_share_files_with_checksum_naming(a0: Pointer, a1: c_int) }
name! { rocksdb_backupable_db_options_set_share_table_files of rocksdb_backup_engine_options_set_share_table_files(a0: Pointer, a1: u8) }
name! { rocksdb_backupable_db_options_set_sync of rocksdb_backup_engine_options_set_sync(a0: Pointer, a1: u8) }
name! { rocksdb_filterpolicy_create_ribbon_format of rocksdb_filterpolicy_create_ribbon_hybrid(a0: f64, a1: c_int) -> Pointer }
