//! Written by `cargo xtask abi --write` from `abi.toml`; do not edit.

use std::ffi::{c_int, c_uint};

use crate::border::Pointer;

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
stub! { silent rocksdb_cache_get_occupancy_count(Pointer) -> usize }
stub! { nothing rocksdb_cache_get_pinned_usage(Pointer) -> usize }
stub! { silent rocksdb_cache_get_table_address_count(Pointer) -> usize }
stub! { nothing rocksdb_cache_get_usage(Pointer) -> usize }
stub! { nothing rocksdb_hyper_clock_cache_options_set_estimated_entry_charge(Pointer, usize) }
stub! { nothing rocksdb_hyper_clock_cache_options_set_memory_allocator(Pointer, Pointer) }
stub! { nothing rocksdb_hyper_clock_cache_options_set_num_shard_bits(Pointer, c_int) }
stub! { failing rocksdb_jemalloc_nodump_allocator_create() -> Pointer }
stub! { nothing rocksdb_lru_cache_options_set_memory_allocator(Pointer, Pointer) }
stub! { nothing rocksdb_lru_cache_options_set_num_shard_bits(Pointer, c_int) }
stub! { silent rocksdb_memory_allocator_destroy(Pointer) }
stub! { silent rocksdb_ratelimiter_create_with_mode(i64, i64, c_int, c_int, u8) -> Pointer }
stub! { silent rocksdb_sst_file_manager_create(Pointer) -> Pointer }
stub! { silent rocksdb_sst_file_manager_destroy(Pointer) }
stub! { silent rocksdb_sst_file_manager_get_delete_rate_bytes_per_second(Pointer) -> i64 }
stub! { silent rocksdb_sst_file_manager_get_max_trash_db_ratio(Pointer) -> f64 }
stub! { silent rocksdb_sst_file_manager_get_total_size(Pointer) -> u64 }
stub! { silent rocksdb_sst_file_manager_get_total_trash_size(Pointer) -> u64 }
stub! { silent rocksdb_sst_file_manager_is_max_allowed_space_reached(Pointer) -> u8 }
stub! { silent rocksdb_sst_file_manager_is_max_allowed_space_reached_including_compactions(Pointer) -> u8 }
stub! { silent rocksdb_sst_file_manager_set_compaction_buffer_size(Pointer, u64) }
stub! { silent rocksdb_sst_file_manager_set_delete_rate_bytes_per_second(Pointer, i64) }
stub! { silent rocksdb_sst_file_manager_set_max_allowed_space_usage(Pointer, u64) }
stub! { silent rocksdb_sst_file_manager_set_max_trash_db_ratio(Pointer, f64) }
stub! { nothing rocksdb_write_buffer_manager_dummy_entries_in_cache_usage(Pointer) -> usize }
stub! { nothing rocksdb_write_buffer_manager_memory_usage(Pointer) -> usize }
stub! { nothing rocksdb_write_buffer_manager_mutable_memtable_memory_usage(Pointer) -> usize }
stub! { nothing rocksdb_write_buffer_manager_set_allow_stall(Pointer, u8) }
stub! { silent rocksdb_compactionfiltercontext_is_full_compaction(Pointer) -> u8 }
stub! { silent rocksdb_compactionfiltercontext_is_manual_compaction(Pointer) -> u8 }
stub! { silent rocksdb_compactionfilterfactory_create(Pointer, Pointer, Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_compactionfilterfactory_destroy(Pointer) }
stub! { silent rocksdb_file_checksum_gen_crc32c_factory_create() -> Pointer }
stub! { silent rocksdb_file_checksum_gen_factory_destroy(Pointer) }
stub! { silent rocksdb_logger_create_callback_logger(c_int, Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_logger_create_stderr_logger(c_int, Pointer) -> Pointer }
stub! { silent rocksdb_logger_destroy(Pointer) }
stub! { silent rocksdb_sst_partitioner_factory_destroy(Pointer) }
stub! { silent rocksdb_sst_partitioner_fixed_prefix_factory_create(usize) -> Pointer }
stub! { silent rocksdb_walfilter_create(Pointer, Pointer, Pointer, Pointer, Pointer) -> Pointer }
stub! { silent rocksdb_walfilter_destroy(Pointer) }
stub! { failing rocksdb_create_dir_if_missing(Pointer, Pointer) }
stub! { nothing rocksdb_env_join_all_threads(Pointer) }
stub! { nothing rocksdb_env_lower_high_priority_thread_pool_cpu_priority(Pointer) }
stub! { nothing rocksdb_env_lower_high_priority_thread_pool_io_priority(Pointer) }
stub! { nothing rocksdb_env_lower_thread_pool_cpu_priority(Pointer) }
stub! { nothing rocksdb_env_lower_thread_pool_io_priority(Pointer) }
