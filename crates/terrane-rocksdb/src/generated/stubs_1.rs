//! Written by `cargo xtask abi --write` from `abi.toml`; do not edit.

use std::ffi::{c_char, c_int, c_uint};

use crate::ffi::types::Pointer;

stub! { failing rocksdb_writebatch_wi_update_timestamps(Pointer, Pointer, usize, Pointer, Pointer) }
stub! { nothing rocksdb_enable_file_deletions(Pointer, Pointer) }
stub! { nothing rocksdb_suggest_compact_range(Pointer, Pointer, usize, Pointer, usize, Pointer) }
stub! { nothing rocksdb_suggest_compact_range_cf(Pointer, Pointer, Pointer, usize, Pointer, usize, Pointer) }
stub! { nothing rocksdb_options_set_blob_cache(Pointer, Pointer) }
stub! { nothing rocksdb_options_set_bottommost_compression_options(Pointer, c_int, c_int, c_int, c_int, u8) }
stub! { nothing rocksdb_options_set_bottommost_compression_options_max_dict_buffer_bytes(Pointer, u64, u8) }
stub! { nothing rocksdb_options_set_bottommost_compression_options_use_zstd_dict_trainer(Pointer, u8, u8) }
stub! { nothing rocksdb_options_set_bottommost_compression_options_zstd_max_train_bytes(Pointer, c_int, u8) }
stub! { silent rocksdb_options_set_compaction_service(Pointer, Pointer) }
stub! { nothing rocksdb_options_set_compression_options(Pointer, c_int, c_int, c_int, c_int) }
stub! { nothing rocksdb_options_set_cuckoo_table_factory(Pointer, Pointer) }
stub! { nothing rocksdb_options_set_fifo_compaction_options(Pointer, Pointer) }
stub! { nothing rocksdb_options_set_hash_link_list_rep(Pointer, usize) }
stub! { nothing rocksdb_options_set_hash_skip_list_rep(Pointer, usize, c_int, c_int) }
stub! { nothing rocksdb_options_set_max_bytes_for_level_multiplier_additional(Pointer, Pointer, usize) }
stub! { nothing rocksdb_options_set_memtable_vector_rep(Pointer) }
stub! { nothing rocksdb_options_set_min_level_to_compress(Pointer, c_int) }
stub! { nothing rocksdb_options_set_plain_table_factory(Pointer, c_uint, c_int, f64, usize, usize, c_char, u8, u8) }
stub! { nothing rocksdb_options_set_row_cache(Pointer, Pointer) }
stub! { nothing rocksdb_options_set_universal_compaction_options(Pointer, Pointer) }
stub! { nothing rocksdb_block_based_options_set_partition_pinning_tier(Pointer, c_int) }
stub! { nothing rocksdb_block_based_options_set_top_level_index_pinning_tier(Pointer, c_int) }
stub! { nothing rocksdb_block_based_options_set_unpartitioned_pinning_tier(Pointer, c_int) }
stub! { nothing rocksdb_cuckoo_options_set_hash_ratio(Pointer, f64) }
stub! { nothing rocksdb_envoptions_set_rate_limiter(Pointer, Pointer) }
stub! { nothing rocksdb_optimistictransactiondb_options_set_shared_lock_buckets(Pointer, Pointer) }
stub! { silent rocksdb_transaction_set_commit_timestamp(Pointer, u64) }
stub! { silent rocksdb_transaction_set_read_timestamp_for_validation(Pointer, u64) }
stub! { nothing rocksdb_table_properties_collector_factory_destroy(Pointer) }
stub! { silent rocksdb_compaction_service_options_override_add_table_properties_collector_factory(Pointer, Pointer) }
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
stub! { failing rocksdb_open_and_compact(Pointer, Pointer, Pointer, usize, Pointer, Pointer) -> Pointer }
stub! { failing rocksdb_open_and_compact_with_options(Pointer, Pointer, Pointer, Pointer, usize, Pointer, Pointer) -> Pointer }
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
stub! { nothing rocksdb_cache_get_table_address_count(Pointer) -> usize }
stub! { nothing rocksdb_hyper_clock_cache_options_set_estimated_entry_charge(Pointer, usize) }
stub! { nothing rocksdb_hyper_clock_cache_options_set_memory_allocator(Pointer, Pointer) }
stub! { nothing rocksdb_hyper_clock_cache_options_set_num_shard_bits(Pointer, c_int) }
stub! { nothing rocksdb_lru_cache_options_set_memory_allocator(Pointer, Pointer) }
stub! { nothing rocksdb_lru_cache_options_set_num_shard_bits(Pointer, c_int) }
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
