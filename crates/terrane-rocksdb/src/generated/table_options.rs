//! Written by `cargo xtask abi --write` from `abi.toml`; do not edit.

use std::ffi::{c_char, c_int, c_uint};

use crate::options::TableOptions;

option_fields! { own TableOptions TableOptionsFields {
    block_align: u8 = 0, set rocksdb_block_based_options_set_block_align u8, get rocksdb_block_based_options_get_block_align u8;
    block_restart_interval: c_int = 16, set rocksdb_block_based_options_set_block_restart_interval c_int, get rocksdb_block_based_options_get_block_restart_interval c_int;
    block_size: usize = 4096, set rocksdb_block_based_options_set_block_size usize, get_as rocksdb_block_based_options_get_block_size u64;
    block_size_deviation: c_int = 10, set rocksdb_block_based_options_set_block_size_deviation c_int, get rocksdb_block_based_options_get_block_size_deviation c_int;
    cache_index_and_filter_blocks: u8 = 0, set rocksdb_block_based_options_set_cache_index_and_filter_blocks u8, get rocksdb_block_based_options_get_cache_index_and_filter_blocks u8;
    cache_index_and_filter_blocks_with_high_priority: u8 = 1, set rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority u8, get rocksdb_block_based_options_get_cache_index_and_filter_blocks_with_high_priority u8;
    checksum: c_char = 4, set rocksdb_block_based_options_set_checksum c_char, get_as rocksdb_block_based_options_get_checksum c_int;
    data_block_hash_table_util_ratio: f64 = 0.75, set rocksdb_block_based_options_set_data_block_hash_table_util_ratio f64, get rocksdb_block_based_options_get_data_block_hash_table_util_ratio f64;
    data_block_index_type: c_int = 0, set rocksdb_block_based_options_set_data_block_index_type c_int, get rocksdb_block_based_options_get_data_block_index_type c_int;
    decouple_partitioned_filters: u8 = 1, set rocksdb_block_based_options_set_decouple_partitioned_filters u8, get rocksdb_block_based_options_get_decouple_partitioned_filters u8;
    detect_filter_construct_corruption: u8 = 0, set rocksdb_block_based_options_set_detect_filter_construct_corruption u8, get rocksdb_block_based_options_get_detect_filter_construct_corruption u8;
    enable_index_compression: u8 = 1, set rocksdb_block_based_options_set_enable_index_compression u8, get rocksdb_block_based_options_get_enable_index_compression u8;
    fail_if_no_udi_on_open: u8 = 0, set rocksdb_block_based_options_set_fail_if_no_udi_on_open u8, get rocksdb_block_based_options_get_fail_if_no_udi_on_open u8;
    format_version: c_int = 7, set rocksdb_block_based_options_set_format_version c_int, get_as rocksdb_block_based_options_get_format_version c_uint;
    index_block_restart_interval: c_int = 1, set rocksdb_block_based_options_set_index_block_restart_interval c_int, get rocksdb_block_based_options_get_index_block_restart_interval c_int;
    index_block_search_type: c_int = 0, set rocksdb_block_based_options_set_index_block_search_type c_int, get rocksdb_block_based_options_get_index_block_search_type c_int;
    index_shortening: c_int = 1, set rocksdb_block_based_options_set_index_shortening c_int, get rocksdb_block_based_options_get_index_shortening c_int;
    index_type: c_int = 0, set rocksdb_block_based_options_set_index_type c_int, get rocksdb_block_based_options_get_index_type c_int;
    initial_auto_readahead_size: usize = 8192, set rocksdb_block_based_options_set_initial_auto_readahead_size usize, get rocksdb_block_based_options_get_initial_auto_readahead_size usize;
    max_auto_readahead_size: usize = 262144, set rocksdb_block_based_options_set_max_auto_readahead_size usize, get rocksdb_block_based_options_get_max_auto_readahead_size usize;
    metadata_block_size: u64 = 4096, set rocksdb_block_based_options_set_metadata_block_size u64, get rocksdb_block_based_options_get_metadata_block_size u64;
    no_block_cache: u8 = 0, set rocksdb_block_based_options_set_no_block_cache u8, get rocksdb_block_based_options_get_no_block_cache u8;
    num_file_reads_for_auto_readahead: u64 = 2, set rocksdb_block_based_options_set_num_file_reads_for_auto_readahead u64, get rocksdb_block_based_options_get_num_file_reads_for_auto_readahead u64;
    optimize_filters_for_memory: u8 = 1, set rocksdb_block_based_options_set_optimize_filters_for_memory u8, get rocksdb_block_based_options_get_optimize_filters_for_memory u8;
    partition_filters: u8 = 0, set rocksdb_block_based_options_set_partition_filters u8, get rocksdb_block_based_options_get_partition_filters u8;
    pin_l0_filter_and_index_blocks_in_cache: u8 = 0, set rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache u8, get rocksdb_block_based_options_get_pin_l0_filter_and_index_blocks_in_cache u8;
    pin_top_level_index_and_filter: u8 = 1, set rocksdb_block_based_options_set_pin_top_level_index_and_filter u8, get rocksdb_block_based_options_get_pin_top_level_index_and_filter u8;
    prepopulate_block_cache: c_int = 0, set rocksdb_block_based_options_set_prepopulate_block_cache c_int, get rocksdb_block_based_options_get_prepopulate_block_cache c_int;
    read_amp_bytes_per_bit: c_uint = 0, set rocksdb_block_based_options_set_read_amp_bytes_per_bit c_uint, get rocksdb_block_based_options_get_read_amp_bytes_per_bit c_uint;
    separate_key_value_in_data_block: u8 = 0, set rocksdb_block_based_options_set_separate_key_value_in_data_block u8, get rocksdb_block_based_options_get_separate_key_value_in_data_block u8;
    super_block_alignment_size: usize = 0, set rocksdb_block_based_options_set_super_block_alignment_size usize, get rocksdb_block_based_options_get_super_block_alignment_size usize;
    super_block_alignment_space_overhead_ratio: usize = 128, set rocksdb_block_based_options_set_super_block_alignment_space_overhead_ratio usize, get rocksdb_block_based_options_get_super_block_alignment_space_overhead_ratio usize;
    uniform_cv_threshold: f64 = -1.0, set rocksdb_block_based_options_set_uniform_cv_threshold f64, get rocksdb_block_based_options_get_uniform_cv_threshold f64;
    use_delta_encoding: u8 = 1, set rocksdb_block_based_options_set_use_delta_encoding u8, get rocksdb_block_based_options_get_use_delta_encoding u8;
    use_udi_as_primary_index: u8 = 0, set rocksdb_block_based_options_set_use_udi_as_primary_index u8, get rocksdb_block_based_options_get_use_udi_as_primary_index u8;
    verify_compression: u8 = 0, set rocksdb_block_based_options_set_verify_compression u8, get rocksdb_block_based_options_get_verify_compression u8;
    whole_key_filtering: u8 = 1, set rocksdb_block_based_options_set_whole_key_filtering u8, get rocksdb_block_based_options_get_whole_key_filtering u8;
} }
