//! Written by `cargo xtask abi --write` from `abi.toml`; do not edit.

use std::ffi::{c_char, c_int, c_uint};

use crate::border::{Pointer, Slice};

stub! { silent rocksdb_get_db_identity(Pointer, Pointer) -> Pointer }
stub! { failing rocksdb_open_and_trim_history(Pointer, Pointer, c_int, Pointer, Pointer, Pointer, Pointer, usize) -> Pointer }
stub! { failing rocksdb_open_as_secondary(Pointer, Pointer, Pointer) -> Pointer }
stub! { failing rocksdb_open_as_secondary_column_families(Pointer, Pointer, Pointer, c_int, Pointer, Pointer, Pointer) -> Pointer }
stub! { failing rocksdb_try_catch_up_with_primary(Pointer) }
stub! { silent rocksdb_batched_multi_get_pinned_cf(Pointer, Pointer, Pointer, usize, Pointer, u8) -> Pointer }
stub! { failing rocksdb_delete_cf_with_ts(Pointer, Pointer, Pointer, Pointer, usize, Pointer, usize) }
stub! { failing rocksdb_delete_with_ts(Pointer, Pointer, Pointer, usize, Pointer, usize) }
stub! { failing rocksdb_get_cf_with_ts(Pointer, Pointer, Pointer, Pointer, usize, Pointer, Pointer, Pointer) -> Pointer }
stub! { failing rocksdb_get_with_ts(Pointer, Pointer, Pointer, usize, Pointer, Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_multi_get_cf_with_ts(Pointer, Pointer, Pointer, usize, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer) }
stub! { silent rocksdb_multi_get_with_ts(Pointer, Pointer, usize, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer) }
stub! { silent rocksdb_pinnable_multi_get_count(Pointer) -> usize }
stub! { silent rocksdb_pinnable_multi_get_destroy(Pointer) }
stub! { silent rocksdb_pinnable_multi_get_result(Pointer, usize, Pointer, Pointer, Pointer, Pointer) -> c_int }
stub! { failing rocksdb_put_cf_with_ts(Pointer, Pointer, Pointer, Pointer, usize, Pointer, usize, Pointer, usize) }
stub! { failing rocksdb_put_with_ts(Pointer, Pointer, Pointer, usize, Pointer, usize, Pointer, usize) }
stub! { failing rocksdb_singledelete_cf_with_ts(Pointer, Pointer, Pointer, Pointer, usize, Pointer, usize) }
stub! { failing rocksdb_singledelete_with_ts(Pointer, Pointer, Pointer, usize, Pointer, usize) }
stub! { failing rocksdb_status_ptr_get_error(Pointer) }
stub! { silent rocksdb_iter_timestamp(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_iter_timestamp_slice(Pointer) -> Slice }
stub! { silent rocksdb_writebatch_delete_cf_with_ts(Pointer, Pointer, Pointer, usize, Pointer, usize) }
stub! { silent rocksdb_writebatch_put_cf_with_ts(Pointer, Pointer, Pointer, usize, Pointer, usize, Pointer, usize) }
stub! { silent rocksdb_writebatch_singledelete_cf_with_ts(Pointer, Pointer, Pointer, usize, Pointer, usize) }
stub! { failing rocksdb_writebatch_update_timestamps(Pointer, Pointer, usize, Pointer, Pointer) }
stub! { failing rocksdb_writebatch_wi_update_timestamps(Pointer, Pointer, usize, Pointer, Pointer) }
stub! { failing rocksdb_approximate_sizes_cf_with_flags(Pointer, Pointer, c_int, Pointer, Pointer, Pointer, Pointer, u8, Pointer) }
stub! { failing rocksdb_approximate_sizes_cf_with_options(Pointer, Pointer, Pointer, c_int, Pointer, Pointer, Pointer, Pointer, Pointer) }
stub! { failing rocksdb_approximate_sizes_with_options(Pointer, Pointer, c_int, Pointer, Pointer, Pointer, Pointer, Pointer) }
stub! { failing rocksdb_compact_files(Pointer, Pointer, Pointer, usize, c_int, c_int, Pointer, Pointer, Pointer) }
stub! { failing rocksdb_compact_files_cf(Pointer, Pointer, Pointer, Pointer, usize, c_int, c_int, Pointer, Pointer, Pointer) }
stub! { silent rocksdb_compact_files_output_file_names_destroy(Pointer, usize) }
stub! { nothing rocksdb_disable_file_deletions(Pointer, Pointer) }
stub! { nothing rocksdb_disable_manual_compaction(Pointer) }
stub! { nothing rocksdb_enable_file_deletions(Pointer, Pointer) }
stub! { nothing rocksdb_enable_manual_compaction(Pointer) }
stub! { failing rocksdb_get_full_history_ts_low(Pointer, Pointer, Pointer) -> Pointer }
stub! { failing rocksdb_increase_full_history_ts_low(Pointer, Pointer, Pointer, usize) }
stub! { failing rocksdb_set_db_options(Pointer, c_int, Pointer, Pointer) }
stub! { nothing rocksdb_suggest_compact_range(Pointer, Pointer, usize, Pointer, usize, Pointer) }
stub! { nothing rocksdb_suggest_compact_range_cf(Pointer, Pointer, Pointer, usize, Pointer, usize, Pointer) }
stub! { failing rocksdb_verify_checksum_with_options(Pointer, Pointer) }
stub! { failing rocksdb_verify_file_checksums(Pointer) }
stub! { failing rocksdb_verify_file_checksums_with_options(Pointer, Pointer) }
stub! { failing rocksdb_load_latest_options(Pointer, Pointer, u8, Pointer, Pointer, Pointer, Pointer, Pointer) }
stub! { nothing rocksdb_load_latest_options_destroy(Pointer, Pointer, Pointer, usize) }
stub! { nothing rocksdb_options_add_compact_on_deletion_collector_factory(Pointer, usize, usize) }
stub! { nothing rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio(Pointer, usize, usize, f64) }
stub! { nothing rocksdb_options_add_compact_on_deletion_collector_factory_min_file_size(Pointer, usize, usize, f64, u64) }
stub! { silent rocksdb_options_add_eventlistener(Pointer, Pointer) }
stub! { silent rocksdb_options_add_table_properties_collector_factory(Pointer, Pointer) }
stub! { nothing rocksdb_options_set_blob_cache(Pointer, Pointer) }
stub! { nothing rocksdb_options_set_bottommost_compression_options(Pointer, c_int, c_int, c_int, c_int, u8) }
stub! { nothing rocksdb_options_set_bottommost_compression_options_max_dict_buffer_bytes(Pointer, u64, u8) }
stub! { nothing rocksdb_options_set_bottommost_compression_options_use_zstd_dict_trainer(Pointer, u8, u8) }
stub! { nothing rocksdb_options_set_bottommost_compression_options_zstd_max_train_bytes(Pointer, c_int, u8) }
stub! { nothing rocksdb_options_set_cf_paths(Pointer, Pointer, usize) }
stub! { silent rocksdb_options_set_compaction_service(Pointer, Pointer) }
stub! { nothing rocksdb_options_set_compression_options(Pointer, c_int, c_int, c_int, c_int) }
stub! { nothing rocksdb_options_set_compression_per_level(Pointer, Pointer, usize) }
stub! { nothing rocksdb_options_set_cuckoo_table_factory(Pointer, Pointer) }
stub! { nothing rocksdb_options_set_db_paths(Pointer, Pointer, usize) }
stub! { nothing rocksdb_options_set_fifo_compaction_options(Pointer, Pointer) }
stub! { nothing rocksdb_options_set_hash_link_list_rep(Pointer, usize) }
stub! { nothing rocksdb_options_set_hash_skip_list_rep(Pointer, usize, c_int, c_int) }
stub! { nothing rocksdb_options_set_max_bytes_for_level_multiplier_additional(Pointer, Pointer, usize) }
stub! { nothing rocksdb_options_set_memtable_vector_rep(Pointer) }
stub! { nothing rocksdb_options_set_min_level_to_compress(Pointer, c_int) }
stub! { nothing rocksdb_options_set_plain_table_factory(Pointer, c_uint, c_int, f64, usize, usize, c_char, u8, u8) }
stub! { nothing rocksdb_options_set_row_cache(Pointer, Pointer) }
stub! { nothing rocksdb_options_set_universal_compaction_options(Pointer, Pointer) }
stub! { nothing rocksdb_block_based_options_clear_user_defined_index_factory(Pointer) }
stub! { nothing rocksdb_block_based_options_get_user_defined_index_factory_name(Pointer, Pointer) -> Pointer }
stub! { nothing rocksdb_block_based_options_set_data_block_hash_ratio(Pointer, f64) }
stub! { nothing rocksdb_block_based_options_set_partition_pinning_tier(Pointer, c_int) }
stub! { nothing rocksdb_block_based_options_set_top_level_index_pinning_tier(Pointer, c_int) }
stub! { nothing rocksdb_block_based_options_set_unpartitioned_pinning_tier(Pointer, c_int) }
stub! { failing rocksdb_block_based_options_set_user_defined_index_factory_from_string(Pointer, Pointer, usize) }
stub! { nothing rocksdb_cuckoo_options_set_hash_ratio(Pointer, f64) }
stub! { nothing rocksdb_readoptions_clear_table_index_factory(Pointer) }
stub! { nothing rocksdb_readoptions_get_table_index_factory_name(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_readoptions_set_iter_start_ts(Pointer, Pointer, usize) }
stub! { failing rocksdb_readoptions_set_table_index_factory_from_string(Pointer, Pointer, usize) }
stub! { silent rocksdb_readoptions_set_timestamp(Pointer, Pointer, usize) }
stub! { silent rocksdb_compactoptions_set_full_history_ts_low(Pointer, Pointer, usize) }
stub! { nothing rocksdb_envoptions_set_rate_limiter(Pointer, Pointer) }
stub! { failing rocksdb_sstfilewriter_delete_range(Pointer, Pointer, usize, Pointer, usize) }
stub! { failing rocksdb_sstfilewriter_delete_with_ts(Pointer, Pointer, usize, Pointer, usize) }
stub! { failing rocksdb_sstfilewriter_merge(Pointer, Pointer, usize, Pointer, usize) }
stub! { failing rocksdb_sstfilewriter_put_with_ts(Pointer, Pointer, usize, Pointer, usize, Pointer, usize) }
stub! { nothing rocksdb_optimistictransactiondb_options_set_shared_lock_buckets(Pointer, Pointer) }
stub! { silent rocksdb_transaction_set_commit_timestamp(Pointer, u64) }
stub! { silent rocksdb_transaction_set_read_timestamp_for_validation(Pointer, u64) }
stub! { silent rocksdb_backup_engine_close(Pointer) }
stub! { failing rocksdb_backup_engine_create_new_backup(Pointer, Pointer) }
stub! { failing rocksdb_backup_engine_create_new_backup_flush(Pointer, Pointer, u8) }
stub! { failing rocksdb_backup_engine_create_new_backup_with_metadata(Pointer, Pointer, Pointer, Pointer, usize, Pointer) }
stub! { failing rocksdb_backup_engine_create_new_backup_with_options(Pointer, Pointer, Pointer, Pointer) }
stub! { silent rocksdb_backup_engine_get_backup_info(Pointer) -> Pointer }
stub! { silent rocksdb_backup_engine_info_app_metadata(Pointer, c_int, Pointer) -> Pointer }
stub! { silent rocksdb_backup_engine_info_backup_id(Pointer, c_int) -> c_uint }
stub! { silent rocksdb_backup_engine_info_count(Pointer) -> c_int }
stub! { silent rocksdb_backup_engine_info_destroy(Pointer) }
stub! { silent rocksdb_backup_engine_info_number_files(Pointer, c_int) -> c_uint }
stub! { silent rocksdb_backup_engine_info_size(Pointer, c_int) -> u64 }
stub! { silent rocksdb_backup_engine_info_timestamp(Pointer, c_int) -> i64 }
stub! { failing rocksdb_backup_engine_open(Pointer, Pointer) -> Pointer }
stub! { failing rocksdb_backup_engine_open_opts(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_backup_engine_options_create(Pointer) -> Pointer }
stub! { silent rocksdb_backup_engine_options_get_backup_dir(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_backup_engine_options_set_backup_dir(Pointer, Pointer) }
stub! { silent rocksdb_backup_engine_options_set_backup_rate_limiter(Pointer, Pointer) }
stub! { silent rocksdb_backup_engine_options_set_env(Pointer, Pointer) }
stub! { silent rocksdb_backup_engine_options_set_restore_rate_limiter(Pointer, Pointer) }
stub! { failing rocksdb_backup_engine_purge_old_backups(Pointer, c_uint) }
stub! { failing rocksdb_backup_engine_restore_db_from_backup(Pointer, Pointer, Pointer, Pointer, c_uint) }
stub! { failing rocksdb_backup_engine_restore_db_from_latest_backup(Pointer, Pointer, Pointer, Pointer) }
stub! { silent rocksdb_backup_engine_stop_backup(Pointer) }
stub! { failing rocksdb_backup_engine_verify_backup(Pointer, c_uint) }
stub! { silent rocksdb_create_backup_options_set_exclude_files_callback(Pointer, Pointer, Pointer) }
stub! { silent rocksdb_create_backup_options_set_progress_callback(Pointer, Pointer, Pointer) }
stub! { failing rocksdb_checkpoint_export_column_family(Pointer, Pointer, Pointer) -> Pointer }
stub! { failing rocksdb_create_column_family_with_import(Pointer, Pointer, Pointer, Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_export_import_files_metadata_create() -> Pointer }
stub! { silent rocksdb_export_import_files_metadata_destroy(Pointer) }
stub! { silent rocksdb_export_import_files_metadata_get_db_comparator_name(Pointer) -> Pointer }
stub! { silent rocksdb_export_import_files_metadata_get_files(Pointer) -> Pointer }
stub! { silent rocksdb_export_import_files_metadata_set_db_comparator_name(Pointer, Pointer) }
stub! { silent rocksdb_export_import_files_metadata_set_files(Pointer, Pointer) }
stub! { silent rocksdb_blob_file_addition_info_blob_file_number(Pointer) -> u64 }
stub! { silent rocksdb_blob_file_addition_info_blob_file_path(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_blob_file_addition_info_total_blob_bytes(Pointer) -> u64 }
stub! { silent rocksdb_blob_file_addition_info_total_blob_count(Pointer) -> u64 }
stub! { silent rocksdb_blob_file_garbage_info_blob_file_number(Pointer) -> u64 }
stub! { silent rocksdb_blob_file_garbage_info_blob_file_path(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_blob_file_garbage_info_garbage_blob_bytes(Pointer) -> u64 }
stub! { silent rocksdb_blob_file_garbage_info_garbage_blob_count(Pointer) -> u64 }
stub! { silent rocksdb_compaction_file_info_file_number(Pointer) -> u64 }
stub! { silent rocksdb_compaction_file_info_level(Pointer) -> c_int }
stub! { silent rocksdb_compaction_file_info_oldest_blob_file_number(Pointer) -> u64 }
stub! { silent rocksdb_compaction_job_stats_cpu_micros(Pointer) -> u64 }
stub! { silent rocksdb_compaction_job_stats_elapsed_micros(Pointer) -> u64 }
stub! { silent rocksdb_compaction_job_stats_file_fsync_nanos(Pointer) -> u64 }
stub! { silent rocksdb_compaction_job_stats_file_prepare_write_nanos(Pointer) -> u64 }
stub! { silent rocksdb_compaction_job_stats_file_range_sync_nanos(Pointer) -> u64 }
stub! { silent rocksdb_compaction_job_stats_file_write_nanos(Pointer) -> u64 }
stub! { silent rocksdb_compaction_job_stats_has_accurate_num_input_records(Pointer) -> u8 }
stub! { silent rocksdb_compaction_job_stats_is_full_compaction(Pointer) -> u8 }
stub! { silent rocksdb_compaction_job_stats_is_manual_compaction(Pointer) -> u8 }
stub! { silent rocksdb_compaction_job_stats_is_remote_compaction(Pointer) -> u8 }
stub! { silent rocksdb_compaction_job_stats_largest_output_key_prefix(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_compaction_job_stats_num_blobs_read(Pointer) -> u64 }
stub! { silent rocksdb_compaction_job_stats_num_corrupt_keys(Pointer) -> u64 }
stub! { silent rocksdb_compaction_job_stats_num_expired_deletion_records(Pointer) -> u64 }
stub! { silent rocksdb_compaction_job_stats_num_filtered_input_files(Pointer) -> usize }
stub! { silent rocksdb_compaction_job_stats_num_filtered_input_files_at_output_level(Pointer) -> usize }
stub! { silent rocksdb_compaction_job_stats_num_input_deletion_records(Pointer) -> u64 }
stub! { silent rocksdb_compaction_job_stats_num_input_files(Pointer) -> usize }
stub! { silent rocksdb_compaction_job_stats_num_input_files_at_output_level(Pointer) -> usize }
stub! { silent rocksdb_compaction_job_stats_num_input_files_trivially_moved(Pointer) -> usize }
stub! { silent rocksdb_compaction_job_stats_num_input_records(Pointer) -> u64 }
stub! { silent rocksdb_compaction_job_stats_num_output_files(Pointer) -> usize }
stub! { silent rocksdb_compaction_job_stats_num_output_files_blob(Pointer) -> usize }
stub! { silent rocksdb_compaction_job_stats_num_output_records(Pointer) -> u64 }
stub! { silent rocksdb_compaction_job_stats_num_records_replaced(Pointer) -> u64 }
stub! { silent rocksdb_compaction_job_stats_num_single_del_fallthru(Pointer) -> u64 }
stub! { silent rocksdb_compaction_job_stats_num_single_del_mismatch(Pointer) -> u64 }
stub! { silent rocksdb_compaction_job_stats_smallest_output_key_prefix(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_compaction_job_stats_total_blob_bytes_read(Pointer) -> u64 }
stub! { silent rocksdb_compaction_job_stats_total_input_bytes(Pointer) -> u64 }
stub! { silent rocksdb_compaction_job_stats_total_input_raw_key_bytes(Pointer) -> u64 }
stub! { silent rocksdb_compaction_job_stats_total_input_raw_value_bytes(Pointer) -> u64 }
stub! { silent rocksdb_compaction_job_stats_total_output_bytes(Pointer) -> u64 }
stub! { silent rocksdb_compaction_job_stats_total_output_bytes_blob(Pointer) -> u64 }
stub! { silent rocksdb_compaction_job_stats_total_skipped_input_bytes(Pointer) -> u64 }
stub! { silent rocksdb_compactionjobinfo_aborted(Pointer) -> u8 }
stub! { silent rocksdb_compactionjobinfo_base_input_level(Pointer) -> c_int }
stub! { silent rocksdb_compactionjobinfo_blob_compression_type(Pointer) -> c_uint }
stub! { silent rocksdb_compactionjobinfo_blob_file_addition_info_at(Pointer, usize) -> Pointer }
stub! { silent rocksdb_compactionjobinfo_blob_file_addition_infos_count(Pointer) -> usize }
stub! { silent rocksdb_compactionjobinfo_blob_file_garbage_info_at(Pointer, usize) -> Pointer }
stub! { silent rocksdb_compactionjobinfo_blob_file_garbage_infos_count(Pointer) -> usize }
stub! { silent rocksdb_compactionjobinfo_cf_id(Pointer) -> c_uint }
stub! { silent rocksdb_compactionjobinfo_cf_name(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_compactionjobinfo_compaction_reason(Pointer) -> c_uint }
stub! { silent rocksdb_compactionjobinfo_compression(Pointer) -> c_uint }
stub! { silent rocksdb_compactionjobinfo_create() -> Pointer }
stub! { silent rocksdb_compactionjobinfo_destroy(Pointer) }
stub! { silent rocksdb_compactionjobinfo_elapsed_micros(Pointer) -> u64 }
stub! { silent rocksdb_compactionjobinfo_input_file_at(Pointer, usize, Pointer) -> Pointer }
stub! { silent rocksdb_compactionjobinfo_input_file_info_at(Pointer, usize) -> Pointer }
stub! { silent rocksdb_compactionjobinfo_input_file_infos_count(Pointer) -> usize }
stub! { silent rocksdb_compactionjobinfo_input_files_count(Pointer) -> usize }
stub! { silent rocksdb_compactionjobinfo_input_records(Pointer) -> u64 }
stub! { silent rocksdb_compactionjobinfo_job_id(Pointer) -> c_int }
stub! { silent rocksdb_compactionjobinfo_num_corrupt_keys(Pointer) -> u64 }
stub! { silent rocksdb_compactionjobinfo_num_input_files(Pointer) -> usize }
stub! { silent rocksdb_compactionjobinfo_num_input_files_at_output_level(Pointer) -> usize }
stub! { silent rocksdb_compactionjobinfo_num_l0_files(Pointer) -> c_int }
stub! { silent rocksdb_compactionjobinfo_output_file_at(Pointer, usize, Pointer) -> Pointer }
stub! { silent rocksdb_compactionjobinfo_output_file_info_at(Pointer, usize) -> Pointer }
stub! { silent rocksdb_compactionjobinfo_output_file_infos_count(Pointer) -> usize }
stub! { silent rocksdb_compactionjobinfo_output_files_count(Pointer) -> usize }
stub! { silent rocksdb_compactionjobinfo_output_level(Pointer) -> c_int }
stub! { silent rocksdb_compactionjobinfo_output_records(Pointer) -> u64 }
stub! { silent rocksdb_compactionjobinfo_stats(Pointer) -> Pointer }
stub! { failing rocksdb_compactionjobinfo_status(Pointer) }
stub! { silent rocksdb_compactionjobinfo_table_properties_count(Pointer) -> usize }
stub! { silent rocksdb_compactionjobinfo_table_properties_for_file(Pointer, Pointer, usize) -> Pointer }
stub! { silent rocksdb_compactionjobinfo_table_properties_key_at(Pointer, usize, Pointer) -> Pointer }
stub! { silent rocksdb_compactionjobinfo_table_properties_value_at(Pointer, usize) -> Pointer }
stub! { silent rocksdb_compactionjobinfo_thread_id(Pointer) -> u64 }
stub! { silent rocksdb_compactionjobinfo_total_input_bytes(Pointer) -> u64 }
stub! { silent rocksdb_compactionjobinfo_total_output_bytes(Pointer) -> u64 }
stub! { silent rocksdb_eventlistener_create(Pointer, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_eventlistener_destroy(Pointer) }
stub! { silent rocksdb_externalfileingestioninfo_cf_name(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_externalfileingestioninfo_external_file_path(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_externalfileingestioninfo_global_seqno(Pointer) -> u64 }
stub! { silent rocksdb_externalfileingestioninfo_internal_file_path(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_externalfileingestioninfo_table_properties(Pointer) -> Pointer }
stub! { silent rocksdb_flushjobinfo_blob_compression_type(Pointer) -> c_uint }
stub! { silent rocksdb_flushjobinfo_blob_file_addition_info_at(Pointer, usize) -> Pointer }
stub! { silent rocksdb_flushjobinfo_blob_file_addition_infos_count(Pointer) -> usize }
stub! { silent rocksdb_flushjobinfo_cf_id(Pointer) -> c_uint }
stub! { silent rocksdb_flushjobinfo_cf_name(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_flushjobinfo_file_number(Pointer) -> u64 }
stub! { silent rocksdb_flushjobinfo_file_path(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_flushjobinfo_flush_reason(Pointer) -> c_uint }
stub! { silent rocksdb_flushjobinfo_job_id(Pointer) -> c_int }
stub! { silent rocksdb_flushjobinfo_largest_seqno(Pointer) -> u64 }
stub! { silent rocksdb_flushjobinfo_oldest_blob_file_number(Pointer) -> u64 }
stub! { silent rocksdb_flushjobinfo_smallest_seqno(Pointer) -> u64 }
stub! { silent rocksdb_flushjobinfo_table_properties(Pointer) -> Pointer }
stub! { silent rocksdb_flushjobinfo_thread_id(Pointer) -> u64 }
stub! { silent rocksdb_flushjobinfo_triggered_writes_slowdown(Pointer) -> u8 }
stub! { silent rocksdb_flushjobinfo_triggered_writes_stop(Pointer) -> u8 }
stub! { silent rocksdb_memtableinfo_cf_name(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_memtableinfo_earliest_seqno(Pointer) -> u64 }
stub! { silent rocksdb_memtableinfo_first_seqno(Pointer) -> u64 }
stub! { silent rocksdb_memtableinfo_newest_udt(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_memtableinfo_num_deletes(Pointer) -> u64 }
stub! { silent rocksdb_memtableinfo_num_entries(Pointer) -> u64 }
stub! { silent rocksdb_subcompactionjobinfo_base_input_level(Pointer) -> c_int }
stub! { silent rocksdb_subcompactionjobinfo_blob_compression_type(Pointer) -> c_uint }
stub! { silent rocksdb_subcompactionjobinfo_cf_id(Pointer) -> c_uint }
stub! { silent rocksdb_subcompactionjobinfo_cf_name(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_subcompactionjobinfo_compaction_reason(Pointer) -> c_uint }
stub! { silent rocksdb_subcompactionjobinfo_compression(Pointer) -> c_uint }
stub! { silent rocksdb_subcompactionjobinfo_job_id(Pointer) -> c_int }
stub! { silent rocksdb_subcompactionjobinfo_output_level(Pointer) -> c_int }
stub! { silent rocksdb_subcompactionjobinfo_stats(Pointer) -> Pointer }
stub! { failing rocksdb_subcompactionjobinfo_status(Pointer) }
stub! { silent rocksdb_subcompactionjobinfo_subcompaction_job_id(Pointer) -> c_int }
stub! { silent rocksdb_subcompactionjobinfo_thread_id(Pointer) -> u64 }
stub! { silent rocksdb_writestallinfo_cf_name(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_writestallinfo_cur(Pointer) -> Pointer }
stub! { silent rocksdb_writestallinfo_prev(Pointer) -> Pointer }
stub! { nothing rocksdb_options_enable_statistics(Pointer) }
stub! { silent rocksdb_options_statistics_get_histogram_data(Pointer, c_uint, Pointer) }
stub! { silent rocksdb_options_statistics_get_string(Pointer) -> Pointer }
stub! { silent rocksdb_options_statistics_get_ticker_count(Pointer, c_uint) -> u64 }
stub! { silent rocksdb_reset_status(Pointer) }
stub! { silent rocksdb_statistics_histogram_data_create() -> Pointer }
stub! { silent rocksdb_statistics_histogram_data_destroy(Pointer) }
stub! { silent rocksdb_statistics_histogram_data_get_average(Pointer) -> f64 }
stub! { silent rocksdb_statistics_histogram_data_get_count(Pointer) -> u64 }
stub! { silent rocksdb_statistics_histogram_data_get_max(Pointer) -> f64 }
stub! { silent rocksdb_statistics_histogram_data_get_median(Pointer) -> f64 }
stub! { silent rocksdb_statistics_histogram_data_get_min(Pointer) -> f64 }
stub! { silent rocksdb_statistics_histogram_data_get_p95(Pointer) -> f64 }
stub! { silent rocksdb_statistics_histogram_data_get_p99(Pointer) -> f64 }
stub! { silent rocksdb_statistics_histogram_data_get_std_dev(Pointer) -> f64 }
stub! { silent rocksdb_statistics_histogram_data_get_sum(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_collector_factory_destroy(Pointer) }
stub! { silent rocksdb_table_properties_column_family_id(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_column_family_name(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_table_properties_comparator_name(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_table_properties_compression_name(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_table_properties_compression_options(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_table_properties_creation_time(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_data_block_restart_interval(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_data_size(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_db_host_id(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_table_properties_db_id(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_table_properties_db_session_id(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_table_properties_external_sst_file_global_seqno_offset(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_fast_compression_estimated_data_size(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_file_creation_time(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_filter_policy_name(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_table_properties_filter_size(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_fixed_key_len(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_format_version(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_has_key_largest_seqno(Pointer) -> u8 }
stub! { silent rocksdb_table_properties_has_key_smallest_seqno(Pointer) -> u8 }
stub! { silent rocksdb_table_properties_index_block_restart_interval(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_index_key_is_user_key(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_index_partitions(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_index_size(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_index_value_is_delta_encoded(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_key_largest_seqno(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_key_smallest_seqno(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_merge_operator_name(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_table_properties_newest_key_time(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_num_data_blocks(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_num_data_blocks_compression_bypassed(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_num_data_blocks_compression_rejected(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_num_deletions(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_num_entries(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_num_filter_entries(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_num_merge_operands(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_num_range_deletions(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_num_uniform_blocks(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_oldest_key_time(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_orig_file_number(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_prefix_extractor_name(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_table_properties_property_collectors_names(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_table_properties_raw_key_size(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_raw_value_size(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_readable_properties_count(Pointer) -> usize }
stub! { silent rocksdb_table_properties_readable_properties_key_at(Pointer, usize, Pointer) -> Pointer }
stub! { silent rocksdb_table_properties_readable_properties_value_at(Pointer, usize, Pointer) -> Pointer }
stub! { silent rocksdb_table_properties_separate_key_value_in_data_block(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_seqno_to_time_mapping(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_table_properties_slow_compression_estimated_data_size(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_tail_start_offset(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_top_level_index_size(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_udi_is_primary_index(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_uncompressed_data_size(Pointer) -> u64 }
stub! { silent rocksdb_table_properties_user_collected_properties_count(Pointer) -> usize }
stub! { silent rocksdb_table_properties_user_collected_properties_key_at(Pointer, usize, Pointer) -> Pointer }
stub! { silent rocksdb_table_properties_user_collected_properties_value_at(Pointer, usize, Pointer) -> Pointer }
stub! { silent rocksdb_table_properties_user_defined_timestamps_persisted(Pointer) -> u64 }
stub! { silent rocksdb_compaction_service_options_override_add_event_listener(Pointer, Pointer) }
stub! { silent rocksdb_compaction_service_options_override_add_table_properties_collector_factory(Pointer, Pointer) }
stub! { silent rocksdb_compaction_service_options_override_create() -> Pointer }
stub! { silent rocksdb_compaction_service_options_override_create_from_options(Pointer) -> Pointer }
stub! { silent rocksdb_compaction_service_options_override_destroy(Pointer) }
stub! { silent rocksdb_compaction_service_options_override_set_block_based_table_factory(Pointer, Pointer) }
