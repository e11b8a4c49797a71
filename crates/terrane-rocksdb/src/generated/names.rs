//! Written by `cargo xtask abi --write` from `abi.toml`; do not edit.

use std::ffi::c_int;

use crate::ffi::types::Pointer;

name! { rocksdb_get_pinned_cf_v2 of rocksdb_get_pinned_cf(a0: Pointer, a1: Pointer, a2: Pointer, a3: Pointer, a4: usize, a5: Pointer) -> Pointer }
name! { rocksdb_get_pinned_v2 of rocksdb_get_pinned(a0: Pointer, a1: Pointer, a2: Pointer, a3: usize, a4: Pointer) -> Pointer }
name! { rocksdb_pinnable_handle_destroy of rocksdb_pinnableslice_destroy(a0: Pointer) }
name! { rocksdb_pinnable_handle_get_value of rocksdb_pinnableslice_value(a0: Pointer, a1: Pointer) -> Pointer }
name! { rocksdb_sstfilewriter_add of rocksdb_sstfilewriter_put(a0: Pointer, a1: Pointer, a2: usize, a3: Pointer, a4: usize, a5: Pointer) }
name! { rocksdb_optimistictransactiondb_checkpoint_object_create of rocksdb_transactiondb_checkpoint_object_create(a0: Pointer, a1: Pointer) -> Pointer }
name! { rocksdb_optimistictransactiondb_close of rocksdb_close(a0: Pointer) }
name! { rocksdb_optimistictransactiondb_close_base_db of rocksdb_transactiondb_close_base_db(a0: Pointer) }
name! { rocksdb_optimistictransactiondb_get_base_db of rocksdb_transactiondb_get_base_db(a0: Pointer) -> Pointer }
name! { rocksdb_optimistictransactiondb_property_int of rocksdb_property_int(a0: Pointer, a1: Pointer, a2: Pointer) -> c_int }
name! { rocksdb_optimistictransactiondb_property_value of rocksdb_property_value(a0: Pointer, a1: Pointer) -> Pointer }
name! { rocksdb_optimistictransactiondb_write of rocksdb_write(a0: Pointer, a1: Pointer, a2: Pointer, a3: Pointer) }
name! { rocksdb_transactiondb_close of rocksdb_close(a0: Pointer) }
name! { rocksdb_transactiondb_create_iterator of rocksdb_create_iterator(a0: Pointer, a1: Pointer) -> Pointer }
name! { rocksdb_transactiondb_create_iterator_cf of rocksdb_create_iterator_cf(a0: Pointer, a1: Pointer, a2: Pointer) -> Pointer }
name! { rocksdb_transactiondb_flush of rocksdb_flush(a0: Pointer, a1: Pointer, a2: Pointer) }
name! { rocksdb_transactiondb_flush_cf of rocksdb_flush_cf(a0: Pointer, a1: Pointer, a2: Pointer, a3: Pointer) }
name! { rocksdb_transactiondb_flush_cfs of rocksdb_flush_cfs(a0: Pointer, a1: Pointer, a2: Pointer, a3: c_int, a4: Pointer) }
name! { rocksdb_transactiondb_flush_wal of rocksdb_flush_wal(a0: Pointer, a1: u8, a2: Pointer) }
name! { rocksdb_transactiondb_flush_wal_with_options of rocksdb_flush_wal_with_options(a0: Pointer, a1: Pointer, a2: Pointer) }
name! { rocksdb_transactiondb_multi_get of rocksdb_multi_get(a0: Pointer, a1: Pointer, a2: usize, a3: Pointer, a4: Pointer, a5: Pointer, a6: Pointer, a7: Pointer) }
name! { rocksdb_transactiondb_multi_get_cf of rocksdb_multi_get_cf(a0: Pointer, a1: Pointer, a2: Pointer, a3: usize, a4: Pointer, a5: Pointer, a6: Pointer, a7: Pointer, a8: Pointer) }
name! { rocksdb_transactiondb_property_int of rocksdb_property_int(a0: Pointer, a1: Pointer, a2: Pointer) -> c_int }
name! { rocksdb_transactiondb_property_value of rocksdb_property_value(a0: Pointer, a1: Pointer) -> Pointer }
name! { rocksdb_transactiondb_release_snapshot of rocksdb_release_snapshot(a0: Pointer, a1: Pointer) }
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
