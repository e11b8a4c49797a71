//! Written by `cargo xtask abi --write` from `abi.toml`; do not edit.

use std::ffi::{c_int, c_uint};

values! { BlobFileAdditionInfo {
    blob_file_number: (number u64) rocksdb_blob_file_addition_info_blob_file_number;
    blob_file_path: (text) rocksdb_blob_file_addition_info_blob_file_path;
    total_blob_bytes: (number u64) rocksdb_blob_file_addition_info_total_blob_bytes;
    total_blob_count: (number u64) rocksdb_blob_file_addition_info_total_blob_count;
} }
values! { BlobFileGarbageInfo {
    blob_file_number: (number u64) rocksdb_blob_file_garbage_info_blob_file_number;
    blob_file_path: (text) rocksdb_blob_file_garbage_info_blob_file_path;
    garbage_blob_bytes: (number u64) rocksdb_blob_file_garbage_info_garbage_blob_bytes;
    garbage_blob_count: (number u64) rocksdb_blob_file_garbage_info_garbage_blob_count;
} }
values! { CompactionFileInfo {
    file_number: (number u64) rocksdb_compaction_file_info_file_number;
    level: (number c_int) rocksdb_compaction_file_info_level;
    oldest_blob_file_number: (number u64) rocksdb_compaction_file_info_oldest_blob_file_number;
} }
values! { CompactionJobStats {
    cpu_micros: (number u64) rocksdb_compaction_job_stats_cpu_micros;
    elapsed_micros: (number u64) rocksdb_compaction_job_stats_elapsed_micros;
    file_fsync_nanos: (number u64) rocksdb_compaction_job_stats_file_fsync_nanos;
    file_prepare_write_nanos: (number u64) rocksdb_compaction_job_stats_file_prepare_write_nanos;
    file_range_sync_nanos: (number u64) rocksdb_compaction_job_stats_file_range_sync_nanos;
    file_write_nanos: (number u64) rocksdb_compaction_job_stats_file_write_nanos;
    has_accurate_num_input_records: (number u8) rocksdb_compaction_job_stats_has_accurate_num_input_records;
    is_full_compaction: (number u8) rocksdb_compaction_job_stats_is_full_compaction;
    is_manual_compaction: (number u8) rocksdb_compaction_job_stats_is_manual_compaction;
    is_remote_compaction: (number u8) rocksdb_compaction_job_stats_is_remote_compaction;
    largest_output_key_prefix: (text) rocksdb_compaction_job_stats_largest_output_key_prefix;
    num_blobs_read: (number u64) rocksdb_compaction_job_stats_num_blobs_read;
    num_corrupt_keys: (number u64) rocksdb_compaction_job_stats_num_corrupt_keys;
    num_expired_deletion_records: (number u64) rocksdb_compaction_job_stats_num_expired_deletion_records;
    num_filtered_input_files: (number usize) rocksdb_compaction_job_stats_num_filtered_input_files;
    num_filtered_input_files_at_output_level: (number usize) rocksdb_compaction_job_stats_num_filtered_input_files_at_output_level;
    num_input_deletion_records: (number u64) rocksdb_compaction_job_stats_num_input_deletion_records;
    num_input_files: (number usize) rocksdb_compaction_job_stats_num_input_files;
    num_input_files_at_output_level: (number usize) rocksdb_compaction_job_stats_num_input_files_at_output_level;
    num_input_files_trivially_moved: (number usize) rocksdb_compaction_job_stats_num_input_files_trivially_moved;
    num_input_records: (number u64) rocksdb_compaction_job_stats_num_input_records;
    num_output_files: (number usize) rocksdb_compaction_job_stats_num_output_files;
    num_output_files_blob: (number usize) rocksdb_compaction_job_stats_num_output_files_blob;
    num_output_records: (number u64) rocksdb_compaction_job_stats_num_output_records;
    num_records_replaced: (number u64) rocksdb_compaction_job_stats_num_records_replaced;
    num_single_del_fallthru: (number u64) rocksdb_compaction_job_stats_num_single_del_fallthru;
    num_single_del_mismatch: (number u64) rocksdb_compaction_job_stats_num_single_del_mismatch;
    smallest_output_key_prefix: (text) rocksdb_compaction_job_stats_smallest_output_key_prefix;
    total_blob_bytes_read: (number u64) rocksdb_compaction_job_stats_total_blob_bytes_read;
    total_input_bytes: (number u64) rocksdb_compaction_job_stats_total_input_bytes;
    total_input_raw_key_bytes: (number u64) rocksdb_compaction_job_stats_total_input_raw_key_bytes;
    total_input_raw_value_bytes: (number u64) rocksdb_compaction_job_stats_total_input_raw_value_bytes;
    total_output_bytes: (number u64) rocksdb_compaction_job_stats_total_output_bytes;
    total_output_bytes_blob: (number u64) rocksdb_compaction_job_stats_total_output_bytes_blob;
    total_skipped_input_bytes: (number u64) rocksdb_compaction_job_stats_total_skipped_input_bytes;
} }
values! { CompactionJobInfo {
    aborted: (number u8) rocksdb_compactionjobinfo_aborted;
    base_input_level: (number c_int) rocksdb_compactionjobinfo_base_input_level;
    blob_compression_type: (number c_uint) rocksdb_compactionjobinfo_blob_compression_type;
    blob_file_addition_infos: (parts BlobFileAdditionInfo) rocksdb_compactionjobinfo_blob_file_addition_info_at;
    blob_file_garbage_infos: (parts BlobFileGarbageInfo) rocksdb_compactionjobinfo_blob_file_garbage_info_at;
    cf_id: (number c_uint) rocksdb_compactionjobinfo_cf_id;
    cf_name: (text) rocksdb_compactionjobinfo_cf_name;
    compaction_reason: (number c_uint) rocksdb_compactionjobinfo_compaction_reason;
    compression: (number c_uint) rocksdb_compactionjobinfo_compression;
    elapsed_micros: (number u64) rocksdb_compactionjobinfo_elapsed_micros;
    input_files: (texts) rocksdb_compactionjobinfo_input_file_at;
    input_file_infos: (parts CompactionFileInfo) rocksdb_compactionjobinfo_input_file_info_at;
    input_records: (number u64) rocksdb_compactionjobinfo_input_records;
    job_id: (number c_int) rocksdb_compactionjobinfo_job_id;
    num_corrupt_keys: (number u64) rocksdb_compactionjobinfo_num_corrupt_keys;
    num_input_files: (number usize) rocksdb_compactionjobinfo_num_input_files;
    num_input_files_at_output_level: (number usize) rocksdb_compactionjobinfo_num_input_files_at_output_level;
    num_l0_files: (number c_int) rocksdb_compactionjobinfo_num_l0_files;
    output_files: (texts) rocksdb_compactionjobinfo_output_file_at;
    output_file_infos: (parts CompactionFileInfo) rocksdb_compactionjobinfo_output_file_info_at;
    output_level: (number c_int) rocksdb_compactionjobinfo_output_level;
    output_records: (number u64) rocksdb_compactionjobinfo_output_records;
    stats: (part CompactionJobStats) rocksdb_compactionjobinfo_stats;
    status: (failure) rocksdb_compactionjobinfo_status;
    table_properties_keys: (texts) rocksdb_compactionjobinfo_table_properties_key_at;
    table_properties_values: (parts TableProperties) rocksdb_compactionjobinfo_table_properties_value_at;
    thread_id: (number u64) rocksdb_compactionjobinfo_thread_id;
    total_input_bytes: (number u64) rocksdb_compactionjobinfo_total_input_bytes;
    total_output_bytes: (number u64) rocksdb_compactionjobinfo_total_output_bytes;
} }
count! { rocksdb_compactionjobinfo_blob_file_addition_infos_count CompactionJobInfo blob_file_addition_infos }
count! { rocksdb_compactionjobinfo_blob_file_garbage_infos_count CompactionJobInfo blob_file_garbage_infos }
count! { rocksdb_compactionjobinfo_input_file_infos_count CompactionJobInfo input_file_infos }
count! { rocksdb_compactionjobinfo_input_files_count CompactionJobInfo input_files }
count! { rocksdb_compactionjobinfo_output_file_infos_count CompactionJobInfo output_file_infos }
count! { rocksdb_compactionjobinfo_output_files_count CompactionJobInfo output_files }
count! { rocksdb_compactionjobinfo_table_properties_count CompactionJobInfo table_properties_values }
create! { rocksdb_compactionjobinfo_create CompactionJobInfo }
destroy! { rocksdb_compactionjobinfo_destroy CompactionJobInfo }
values! { IngestionInfo {
    cf_name: (text) rocksdb_externalfileingestioninfo_cf_name;
    external_file_path: (text) rocksdb_externalfileingestioninfo_external_file_path;
    global_seqno: (number u64) rocksdb_externalfileingestioninfo_global_seqno;
    internal_file_path: (text) rocksdb_externalfileingestioninfo_internal_file_path;
    table_properties: (part TableProperties) rocksdb_externalfileingestioninfo_table_properties;
} }
values! { FlushJobInfo {
    blob_compression_type: (number c_uint) rocksdb_flushjobinfo_blob_compression_type;
    blob_file_addition_infos: (parts BlobFileAdditionInfo) rocksdb_flushjobinfo_blob_file_addition_info_at;
    cf_id: (number c_uint) rocksdb_flushjobinfo_cf_id;
    cf_name: (text) rocksdb_flushjobinfo_cf_name;
    file_number: (number u64) rocksdb_flushjobinfo_file_number;
    file_path: (text) rocksdb_flushjobinfo_file_path;
    flush_reason: (number c_uint) rocksdb_flushjobinfo_flush_reason;
    job_id: (number c_int) rocksdb_flushjobinfo_job_id;
    largest_seqno: (number u64) rocksdb_flushjobinfo_largest_seqno;
    oldest_blob_file_number: (number u64) rocksdb_flushjobinfo_oldest_blob_file_number;
    smallest_seqno: (number u64) rocksdb_flushjobinfo_smallest_seqno;
    table_properties: (part TableProperties) rocksdb_flushjobinfo_table_properties;
    thread_id: (number u64) rocksdb_flushjobinfo_thread_id;
    triggered_writes_slowdown: (number u8) rocksdb_flushjobinfo_triggered_writes_slowdown;
    triggered_writes_stop: (number u8) rocksdb_flushjobinfo_triggered_writes_stop;
} }
count! { rocksdb_flushjobinfo_blob_file_addition_infos_count FlushJobInfo blob_file_addition_infos }
values! { MemtableInfo {
    cf_name: (text) rocksdb_memtableinfo_cf_name;
    earliest_seqno: (number u64) rocksdb_memtableinfo_earliest_seqno;
    first_seqno: (number u64) rocksdb_memtableinfo_first_seqno;
    newest_udt: (text) rocksdb_memtableinfo_newest_udt;
    num_deletes: (number u64) rocksdb_memtableinfo_num_deletes;
    num_entries: (number u64) rocksdb_memtableinfo_num_entries;
} }
values! { SubcompactionJobInfo {
    base_input_level: (number c_int) rocksdb_subcompactionjobinfo_base_input_level;
    blob_compression_type: (number c_uint) rocksdb_subcompactionjobinfo_blob_compression_type;
    cf_id: (number c_uint) rocksdb_subcompactionjobinfo_cf_id;
    cf_name: (text) rocksdb_subcompactionjobinfo_cf_name;
    compaction_reason: (number c_uint) rocksdb_subcompactionjobinfo_compaction_reason;
    compression: (number c_uint) rocksdb_subcompactionjobinfo_compression;
    job_id: (number c_int) rocksdb_subcompactionjobinfo_job_id;
    output_level: (number c_int) rocksdb_subcompactionjobinfo_output_level;
    stats: (part CompactionJobStats) rocksdb_subcompactionjobinfo_stats;
    status: (failure) rocksdb_subcompactionjobinfo_status;
    subcompaction_job_id: (number c_int) rocksdb_subcompactionjobinfo_subcompaction_job_id;
    thread_id: (number u64) rocksdb_subcompactionjobinfo_thread_id;
} }
values! { TableProperties {
    column_family_id: (number u64) rocksdb_table_properties_column_family_id;
    column_family_name: (text) rocksdb_table_properties_column_family_name;
    comparator_name: (text) rocksdb_table_properties_comparator_name;
    compression_name: (text) rocksdb_table_properties_compression_name;
    compression_options: (text) rocksdb_table_properties_compression_options;
    creation_time: (number u64) rocksdb_table_properties_creation_time;
    data_block_restart_interval: (number u64) rocksdb_table_properties_data_block_restart_interval;
    data_size: (number u64) rocksdb_table_properties_data_size;
    db_host_id: (text) rocksdb_table_properties_db_host_id;
    db_id: (text) rocksdb_table_properties_db_id;
    db_session_id: (text) rocksdb_table_properties_db_session_id;
    external_sst_file_global_seqno_offset: (number u64) rocksdb_table_properties_external_sst_file_global_seqno_offset;
    fast_compression_estimated_data_size: (number u64) rocksdb_table_properties_fast_compression_estimated_data_size;
    file_creation_time: (number u64) rocksdb_table_properties_file_creation_time;
    filter_policy_name: (text) rocksdb_table_properties_filter_policy_name;
    filter_size: (number u64) rocksdb_table_properties_filter_size;
    fixed_key_len: (number u64) rocksdb_table_properties_fixed_key_len;
    format_version: (number u64) rocksdb_table_properties_format_version;
    has_key_largest_seqno: (number u8) rocksdb_table_properties_has_key_largest_seqno;
    has_key_smallest_seqno: (number u8) rocksdb_table_properties_has_key_smallest_seqno;
    index_block_restart_interval: (number u64) rocksdb_table_properties_index_block_restart_interval;
    index_key_is_user_key: (number u64) rocksdb_table_properties_index_key_is_user_key;
    index_partitions: (number u64) rocksdb_table_properties_index_partitions;
    index_size: (number u64) rocksdb_table_properties_index_size;
    index_value_is_delta_encoded: (number u64) rocksdb_table_properties_index_value_is_delta_encoded;
    key_largest_seqno: (number u64) rocksdb_table_properties_key_largest_seqno;
    key_smallest_seqno: (number u64) rocksdb_table_properties_key_smallest_seqno;
    merge_operator_name: (text) rocksdb_table_properties_merge_operator_name;
    newest_key_time: (number u64) rocksdb_table_properties_newest_key_time;
    num_data_blocks: (number u64) rocksdb_table_properties_num_data_blocks;
    num_data_blocks_compression_bypassed: (number u64) rocksdb_table_properties_num_data_blocks_compression_bypassed;
    num_data_blocks_compression_rejected: (number u64) rocksdb_table_properties_num_data_blocks_compression_rejected;
    num_deletions: (number u64) rocksdb_table_properties_num_deletions;
    num_entries: (number u64) rocksdb_table_properties_num_entries;
    num_filter_entries: (number u64) rocksdb_table_properties_num_filter_entries;
    num_merge_operands: (number u64) rocksdb_table_properties_num_merge_operands;
    num_range_deletions: (number u64) rocksdb_table_properties_num_range_deletions;
    num_uniform_blocks: (number u64) rocksdb_table_properties_num_uniform_blocks;
    oldest_key_time: (number u64) rocksdb_table_properties_oldest_key_time;
    orig_file_number: (number u64) rocksdb_table_properties_orig_file_number;
    prefix_extractor_name: (text) rocksdb_table_properties_prefix_extractor_name;
    property_collectors_names: (text) rocksdb_table_properties_property_collectors_names;
    raw_key_size: (number u64) rocksdb_table_properties_raw_key_size;
    raw_value_size: (number u64) rocksdb_table_properties_raw_value_size;
    readable_properties_keys: (texts) rocksdb_table_properties_readable_properties_key_at;
    readable_properties_values: (texts) rocksdb_table_properties_readable_properties_value_at;
    separate_key_value_in_data_block: (number u64) rocksdb_table_properties_separate_key_value_in_data_block;
    seqno_to_time_mapping: (text) rocksdb_table_properties_seqno_to_time_mapping;
    slow_compression_estimated_data_size: (number u64) rocksdb_table_properties_slow_compression_estimated_data_size;
    tail_start_offset: (number u64) rocksdb_table_properties_tail_start_offset;
    top_level_index_size: (number u64) rocksdb_table_properties_top_level_index_size;
    udi_is_primary_index: (number u64) rocksdb_table_properties_udi_is_primary_index;
    uncompressed_data_size: (number u64) rocksdb_table_properties_uncompressed_data_size;
    user_collected_properties_keys: (texts) rocksdb_table_properties_user_collected_properties_key_at;
    user_collected_properties_values: (texts) rocksdb_table_properties_user_collected_properties_value_at;
    user_defined_timestamps_persisted: (number u64) rocksdb_table_properties_user_defined_timestamps_persisted;
} }
count! { rocksdb_table_properties_readable_properties_count TableProperties readable_properties_keys }
count! { rocksdb_table_properties_user_collected_properties_count TableProperties user_collected_properties_keys }
values! { WriteStallInfo {
    cf_name: (text) rocksdb_writestallinfo_cf_name;
    cur: (part crate::callbacks::listener::StallCondition) rocksdb_writestallinfo_cur;
    prev: (part crate::callbacks::listener::StallCondition) rocksdb_writestallinfo_prev;
} }
