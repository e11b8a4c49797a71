//! Written by `cargo xtask abi --write` from `abi.toml`; do not edit.

use std::ffi::{c_int, c_uint};

use crate::border::Pointer;

stub! { silent rocksdb_compaction_service_options_override_set_compaction_filter(Pointer, Pointer) }
stub! { silent rocksdb_compaction_service_options_override_set_compaction_filter_factory(Pointer, Pointer) }
stub! { silent rocksdb_compaction_service_options_override_set_comparator(Pointer, Pointer) }
stub! { silent rocksdb_compaction_service_options_override_set_cuckoo_table_factory(Pointer, Pointer) }
stub! { silent rocksdb_compaction_service_options_override_set_env(Pointer, Pointer) }
stub! { silent rocksdb_compaction_service_options_override_set_file_checksum_gen_factory(Pointer, Pointer) }
stub! { silent rocksdb_compaction_service_options_override_set_info_log(Pointer, Pointer) }
stub! { silent rocksdb_compaction_service_options_override_set_merge_operator(Pointer, Pointer) }
stub! { silent rocksdb_compaction_service_options_override_set_option(Pointer, Pointer, Pointer) }
stub! { silent rocksdb_compaction_service_options_override_set_prefix_extractor(Pointer, Pointer) }
stub! { silent rocksdb_compaction_service_options_override_set_sst_partitioner_factory(Pointer, Pointer) }
stub! { silent rocksdb_compaction_service_options_override_set_statistics(Pointer, Pointer) }
stub! { silent rocksdb_compactionservice_create(Pointer, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_compactionservice_jobinfo_t_get_base_input_level(Pointer) -> c_int }
stub! { silent rocksdb_compactionservice_jobinfo_t_get_cf_id(Pointer) -> c_uint }
stub! { silent rocksdb_compactionservice_jobinfo_t_get_cf_name(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_compactionservice_jobinfo_t_get_compaction_reason(Pointer) -> c_int }
stub! { silent rocksdb_compactionservice_jobinfo_t_get_db_id(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_compactionservice_jobinfo_t_get_db_name(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_compactionservice_jobinfo_t_get_db_session_id(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_compactionservice_jobinfo_t_get_job_id(Pointer) -> u64 }
stub! { silent rocksdb_compactionservice_jobinfo_t_get_output_level(Pointer) -> c_int }
stub! { silent rocksdb_compactionservice_jobinfo_t_get_priority(Pointer) -> c_int }
stub! { silent rocksdb_compactionservice_jobinfo_t_is_bottommost_level(Pointer) -> u8 }
stub! { silent rocksdb_compactionservice_jobinfo_t_is_full_compaction(Pointer) -> u8 }
stub! { silent rocksdb_compactionservice_jobinfo_t_is_manual_compaction(Pointer) -> u8 }
stub! { failing rocksdb_compactionservice_scheduleresponse_create(Pointer, c_int) -> Pointer }
stub! { failing rocksdb_compactionservice_scheduleresponse_create_with_status(c_int) -> Pointer }
stub! { silent rocksdb_compactionservice_scheduleresponse_get_scheduled_job_id(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_compactionservice_scheduleresponse_getstatus(Pointer) -> c_int }
stub! { silent rocksdb_compactionservice_scheduleresponse_t_destroy(Pointer) }
stub! { failing rocksdb_open_and_compact(Pointer, Pointer, Pointer, usize, Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_open_and_compact_canceled_create() -> Pointer }
stub! { silent rocksdb_open_and_compact_canceled_destroy(Pointer) }
stub! { silent rocksdb_open_and_compact_canceled_set(Pointer, u8) }
stub! { silent rocksdb_open_and_compact_options_set_canceled(Pointer, Pointer) }
stub! { failing rocksdb_open_and_compact_with_options(Pointer, Pointer, Pointer, Pointer, usize, Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_column_family_metadata_destroy(Pointer) }
stub! { silent rocksdb_column_family_metadata_get_file_count(Pointer) -> usize }
stub! { silent rocksdb_column_family_metadata_get_level_count(Pointer) -> usize }
stub! { silent rocksdb_column_family_metadata_get_level_metadata(Pointer, usize) -> Pointer }
stub! { silent rocksdb_column_family_metadata_get_name(Pointer) -> Pointer }
stub! { silent rocksdb_column_family_metadata_get_size(Pointer) -> u64 }
stub! { silent rocksdb_get_column_family_metadata(Pointer) -> Pointer }
stub! { silent rocksdb_get_column_family_metadata_cf(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_get_column_family_metadata_cf_with_options(Pointer, Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_get_column_family_metadata_with_options(Pointer, Pointer) -> Pointer }
stub! { failing rocksdb_get_current_wal_file(Pointer) -> Pointer }
stub! { failing rocksdb_get_livefiles_storage_info(Pointer, Pointer) -> Pointer }
stub! { failing rocksdb_get_sorted_wal_files(Pointer) -> Pointer }
stub! { silent rocksdb_level_metadata_destroy(Pointer) }
stub! { silent rocksdb_level_metadata_get_file_count(Pointer) -> usize }
stub! { silent rocksdb_level_metadata_get_level(Pointer) -> c_int }
stub! { silent rocksdb_level_metadata_get_size(Pointer) -> u64 }
stub! { silent rocksdb_level_metadata_get_sst_file_metadata(Pointer, usize) -> Pointer }
stub! { silent rocksdb_livefile_create() -> Pointer }
stub! { silent rocksdb_livefile_destroy(Pointer) }
stub! { silent rocksdb_livefile_set_column_family_name(Pointer, Pointer) }
stub! { silent rocksdb_livefile_set_directory(Pointer, Pointer) }
stub! { silent rocksdb_livefile_set_largest_key(Pointer, Pointer, usize) }
stub! { silent rocksdb_livefile_set_largest_seqno(Pointer, u64) }
stub! { silent rocksdb_livefile_set_level(Pointer, c_int) }
stub! { silent rocksdb_livefile_set_name(Pointer, Pointer) }
stub! { silent rocksdb_livefile_set_num_deletions(Pointer, u64) }
stub! { silent rocksdb_livefile_set_num_entries(Pointer, u64) }
stub! { silent rocksdb_livefile_set_size(Pointer, usize) }
stub! { silent rocksdb_livefile_set_smallest_key(Pointer, Pointer, usize) }
stub! { silent rocksdb_livefile_set_smallest_seqno(Pointer, u64) }
stub! { silent rocksdb_livefiles_add(Pointer, Pointer) }
stub! { silent rocksdb_livefiles_column_family_name(Pointer, c_int) -> Pointer }
stub! { silent rocksdb_livefiles_create() -> Pointer }
stub! { silent rocksdb_livefiles_deletions(Pointer, c_int) -> u64 }
stub! { silent rocksdb_livefiles_directory(Pointer, c_int) -> Pointer }
stub! { silent rocksdb_livefiles_entries(Pointer, c_int) -> u64 }
stub! { silent rocksdb_livefiles_largest_seqno(Pointer, c_int) -> u64 }
stub! { silent rocksdb_livefiles_largestkey(Pointer, c_int, Pointer) -> Pointer }
stub! { silent rocksdb_livefiles_level(Pointer, c_int) -> c_int }
stub! { silent rocksdb_livefiles_name(Pointer, c_int) -> Pointer }
stub! { silent rocksdb_livefiles_size(Pointer, c_int) -> usize }
stub! { silent rocksdb_livefiles_smallest_seqno(Pointer, c_int) -> u64 }
stub! { silent rocksdb_livefiles_smallestkey(Pointer, c_int, Pointer) -> Pointer }
stub! { silent rocksdb_livefiles_storage_info_count(Pointer) -> usize }
stub! { silent rocksdb_livefiles_storage_info_destroy(Pointer) }
stub! { silent rocksdb_livefiles_storage_info_directory(Pointer, usize) -> Pointer }
stub! { silent rocksdb_livefiles_storage_info_file_checksum(Pointer, usize) -> Pointer }
stub! { silent rocksdb_livefiles_storage_info_file_checksum_func_name(Pointer, usize) -> Pointer }
stub! { silent rocksdb_livefiles_storage_info_file_number(Pointer, usize) -> u64 }
stub! { silent rocksdb_livefiles_storage_info_file_type(Pointer, usize) -> c_int }
stub! { silent rocksdb_livefiles_storage_info_relative_filename(Pointer, usize) -> Pointer }
stub! { silent rocksdb_livefiles_storage_info_replacement_contents(Pointer, usize, Pointer) -> Pointer }
stub! { silent rocksdb_livefiles_storage_info_size(Pointer, usize) -> u64 }
stub! { silent rocksdb_livefiles_storage_info_temperature(Pointer, usize) -> c_int }
stub! { silent rocksdb_livefiles_storage_info_trim_to_size(Pointer, usize) -> u8 }
stub! { silent rocksdb_sst_file_metadata_destroy(Pointer) }
stub! { silent rocksdb_sst_file_metadata_get_directory(Pointer) -> Pointer }
stub! { silent rocksdb_sst_file_metadata_get_largestkey(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_sst_file_metadata_get_relative_filename(Pointer) -> Pointer }
stub! { silent rocksdb_sst_file_metadata_get_size(Pointer) -> u64 }
stub! { silent rocksdb_sst_file_metadata_get_smallestkey(Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_wal_file_destroy(Pointer) }
stub! { silent rocksdb_wal_file_log_number(Pointer) -> u64 }
stub! { silent rocksdb_wal_file_path_name(Pointer) -> Pointer }
stub! { silent rocksdb_wal_file_size_file_bytes(Pointer) -> u64 }
stub! { silent rocksdb_wal_file_start_sequence(Pointer) -> u64 }
stub! { silent rocksdb_wal_file_type(Pointer) -> c_int }
stub! { silent rocksdb_wal_files_count(Pointer) -> usize }
stub! { silent rocksdb_wal_files_destroy(Pointer) }
stub! { silent rocksdb_wal_files_get_wal_file(Pointer, usize) -> Pointer }
stub! { failing rocksdb_end_block_cache_trace(Pointer) }
stub! { failing rocksdb_end_io_trace(Pointer) }
stub! { failing rocksdb_end_trace(Pointer) }
stub! { failing rocksdb_new_default_replayer(Pointer, Pointer, usize, Pointer, Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_replayer_destroy(Pointer) }
stub! { silent rocksdb_replayer_get_header_timestamp(Pointer) -> u64 }
stub! { failing rocksdb_replayer_prepare(Pointer) }
stub! { failing rocksdb_replayer_replay(Pointer, Pointer) }
stub! { failing rocksdb_start_block_cache_trace(Pointer, Pointer, Pointer, Pointer, Pointer) }
stub! { failing rocksdb_start_block_cache_trace_with_options(Pointer, Pointer, Pointer, Pointer, Pointer, Pointer) }
stub! { failing rocksdb_start_io_trace(Pointer, Pointer, Pointer, Pointer, Pointer) }
stub! { failing rocksdb_start_trace(Pointer, Pointer, Pointer, Pointer, Pointer) }
stub! { failing rocksdb_trace_reader_close(Pointer) }
stub! { failing rocksdb_trace_reader_create(Pointer, Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_trace_reader_destroy(Pointer) }
stub! { failing rocksdb_trace_reader_read(Pointer, Pointer) -> Pointer }
stub! { failing rocksdb_trace_reader_reset(Pointer) }
stub! { nothing rocksdb_cache_disown_data(Pointer) }
stub! { nothing rocksdb_cache_get_occupancy_count(Pointer) -> usize }
stub! { nothing rocksdb_cache_get_pinned_usage(Pointer) -> usize }
stub! { nothing rocksdb_cache_get_table_address_count(Pointer) -> usize }
stub! { nothing rocksdb_cache_get_usage(Pointer) -> usize }
stub! { nothing rocksdb_hyper_clock_cache_options_set_estimated_entry_charge(Pointer, usize) }
stub! { nothing rocksdb_hyper_clock_cache_options_set_memory_allocator(Pointer, Pointer) }
stub! { nothing rocksdb_hyper_clock_cache_options_set_num_shard_bits(Pointer, c_int) }
stub! { nothing rocksdb_lru_cache_options_set_memory_allocator(Pointer, Pointer) }
stub! { nothing rocksdb_lru_cache_options_set_num_shard_bits(Pointer, c_int) }
stub! { nothing rocksdb_sst_file_manager_get_total_size(Pointer) -> u64 }
stub! { nothing rocksdb_sst_file_manager_get_total_trash_size(Pointer) -> u64 }
stub! { nothing rocksdb_sst_file_manager_is_max_allowed_space_reached(Pointer) -> u8 }
stub! { nothing rocksdb_sst_file_manager_is_max_allowed_space_reached_including_compactions(Pointer) -> u8 }
stub! { nothing rocksdb_sst_file_manager_set_compaction_buffer_size(Pointer, u64) }
stub! { nothing rocksdb_write_buffer_manager_dummy_entries_in_cache_usage(Pointer) -> usize }
stub! { nothing rocksdb_write_buffer_manager_memory_usage(Pointer) -> usize }
stub! { nothing rocksdb_write_buffer_manager_mutable_memtable_memory_usage(Pointer) -> usize }
stub! { nothing rocksdb_write_buffer_manager_set_allow_stall(Pointer, u8) }
stub! { nothing rocksdb_env_join_all_threads(Pointer) }
stub! { nothing rocksdb_env_lower_high_priority_thread_pool_cpu_priority(Pointer) }
stub! { nothing rocksdb_env_lower_high_priority_thread_pool_io_priority(Pointer) }
stub! { nothing rocksdb_env_lower_thread_pool_cpu_priority(Pointer) }
stub! { nothing rocksdb_env_lower_thread_pool_io_priority(Pointer) }
stub! { nothing rocksdb_block_based_options_set_block_cache_compressed(Pointer, Pointer) }
stub! { nothing rocksdb_block_based_options_set_hash_index_allow_collision(Pointer, u8) }
stub! { silent rocksdb_delete_file(Pointer, Pointer) }
stub! { nothing rocksdb_options_set_max_mem_compaction_level(Pointer, c_int) }
stub! { nothing rocksdb_options_set_purge_redundant_kvs_while_flush(Pointer, u8) }
stub! { nothing rocksdb_options_set_table_cache_remove_scan_count_limit(Pointer, c_int) }
stub! { nothing rocksdb_readoptions_set_managed(Pointer, u8) }
stub! { silent rocksdb_writebatch_wi_create_from(Pointer, usize) -> Pointer }
