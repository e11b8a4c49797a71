//! Written by `cargo xtask abi --write` from `abi.toml`; do not edit.

use std::ffi::{c_int, c_uint};

option_fields! { plain BlockCacheTraceOptions BlockCacheTraceOptionsFields {
    sampling_frequency: u64 = 1, set rocksdb_block_cache_trace_options_set_sampling_frequency u64, get rocksdb_block_cache_trace_options_get_sampling_frequency u64;
} }
create! { rocksdb_block_cache_trace_options_create BlockCacheTraceOptions }
destroy! { rocksdb_block_cache_trace_options_destroy BlockCacheTraceOptions }
option_fields! { plain BlockCacheTraceWriterOptions BlockCacheTraceWriterOptionsFields {
    max_trace_file_size: u64 = 68719476736, set rocksdb_block_cache_trace_writer_options_set_max_trace_file_size u64, get rocksdb_block_cache_trace_writer_options_get_max_trace_file_size u64;
} }
create! { rocksdb_block_cache_trace_writer_options_create BlockCacheTraceWriterOptions }
destroy! { rocksdb_block_cache_trace_writer_options_destroy BlockCacheTraceWriterOptions }
option_fields! { plain CuckooOptions CuckooOptionsFields {
    cuckoo_block_size: c_uint = 5, set rocksdb_cuckoo_options_set_cuckoo_block_size c_uint, get rocksdb_cuckoo_options_get_cuckoo_block_size c_uint;
    hash_table_ratio: f64 = 0.9, set rocksdb_cuckoo_options_set_hash_table_ratio f64, get rocksdb_cuckoo_options_get_hash_table_ratio f64;
    identity_as_first_hash: u8 = 0, set rocksdb_cuckoo_options_set_identity_as_first_hash u8, get rocksdb_cuckoo_options_get_identity_as_first_hash u8;
    max_search_depth: c_uint = 100, set rocksdb_cuckoo_options_set_max_search_depth c_uint, get rocksdb_cuckoo_options_get_max_search_depth c_uint;
    use_module_hash: u8 = 1, set rocksdb_cuckoo_options_set_use_module_hash u8, get rocksdb_cuckoo_options_get_use_module_hash u8;
} }
create! { rocksdb_cuckoo_options_create CuckooOptions }
destroy! { rocksdb_cuckoo_options_destroy CuckooOptions }
option_fields! { plain EnvOptions EnvOptionsFields {
    allow_fallocate: u8 = 1, set rocksdb_envoptions_set_allow_fallocate u8, get rocksdb_envoptions_get_allow_fallocate u8;
    bytes_per_sync: u64 = 0, set rocksdb_envoptions_set_bytes_per_sync u64, get rocksdb_envoptions_get_bytes_per_sync u64;
    compaction_readahead_size: usize = 2097152, set rocksdb_envoptions_set_compaction_readahead_size usize, get rocksdb_envoptions_get_compaction_readahead_size usize;
    fallocate_with_keep_size: u8 = 1, set rocksdb_envoptions_set_fallocate_with_keep_size u8, get rocksdb_envoptions_get_fallocate_with_keep_size u8;
    fd_cloexec: u8 = 1, set rocksdb_envoptions_set_fd_cloexec u8, get rocksdb_envoptions_get_fd_cloexec u8;
    strict_bytes_per_sync: u8 = 0, set rocksdb_envoptions_set_strict_bytes_per_sync u8, get rocksdb_envoptions_get_strict_bytes_per_sync u8;
    use_direct_reads: u8 = 0, set rocksdb_envoptions_set_use_direct_reads u8, get rocksdb_envoptions_get_use_direct_reads u8;
    use_direct_writes: u8 = 0, set rocksdb_envoptions_set_use_direct_writes u8, get rocksdb_envoptions_get_use_direct_writes u8;
    use_mmap_reads: u8 = 0, set rocksdb_envoptions_set_use_mmap_reads u8, get rocksdb_envoptions_get_use_mmap_reads u8;
    use_mmap_writes: u8 = 0, set rocksdb_envoptions_set_use_mmap_writes u8, get rocksdb_envoptions_get_use_mmap_writes u8;
    writable_file_max_buffer_size: usize = 1048576, set rocksdb_envoptions_set_writable_file_max_buffer_size usize, get rocksdb_envoptions_get_writable_file_max_buffer_size usize;
} }
create! { rocksdb_envoptions_create EnvOptions }
destroy! { rocksdb_envoptions_destroy EnvOptions }
option_fields! { plain FifoCompactionOptions FifoCompactionOptionsFields {
    age_for_warm: u64 = 0, set rocksdb_fifo_compaction_options_set_age_for_warm u64, get rocksdb_fifo_compaction_options_get_age_for_warm u64;
    allow_compaction: u8 = 0, set rocksdb_fifo_compaction_options_set_allow_compaction u8, get rocksdb_fifo_compaction_options_get_allow_compaction u8;
    allow_trivial_copy_when_change_temperature: u8 = 0, set rocksdb_fifo_compaction_options_set_allow_trivial_copy_when_change_temperature u8, get rocksdb_fifo_compaction_options_get_allow_trivial_copy_when_change_temperature u8;
    max_data_files_size: u64 = 0, set rocksdb_fifo_compaction_options_set_max_data_files_size u64, get rocksdb_fifo_compaction_options_get_max_data_files_size u64;
    max_table_files_size: u64 = 1073741824, set rocksdb_fifo_compaction_options_set_max_table_files_size u64, get rocksdb_fifo_compaction_options_get_max_table_files_size u64;
    trivial_copy_buffer_size: u64 = 4096, set rocksdb_fifo_compaction_options_set_trivial_copy_buffer_size u64, get rocksdb_fifo_compaction_options_get_trivial_copy_buffer_size u64;
    use_kv_ratio_compaction: u8 = 0, set rocksdb_fifo_compaction_options_set_use_kv_ratio_compaction u8, get rocksdb_fifo_compaction_options_get_use_kv_ratio_compaction u8;
} }
create! { rocksdb_fifo_compaction_options_create FifoCompactionOptions }
destroy! { rocksdb_fifo_compaction_options_destroy FifoCompactionOptions }
option_fields! { plain FlushOptions FlushOptionsFields {
    allow_write_stall: u8 = 0, set rocksdb_flushoptions_set_allow_write_stall u8, get rocksdb_flushoptions_get_allow_write_stall u8;
    force_atomic_flush: u8 = 0, set rocksdb_flushoptions_set_force_atomic_flush u8, get rocksdb_flushoptions_get_force_atomic_flush u8;
    listener_wait: u8 = 0, set rocksdb_flushoptions_set_listener_wait u8, get rocksdb_flushoptions_get_listener_wait u8;
    wait: u8 = 1, set rocksdb_flushoptions_set_wait u8, get rocksdb_flushoptions_get_wait u8;
} }
create! { rocksdb_flushoptions_create FlushOptions }
destroy! { rocksdb_flushoptions_destroy FlushOptions }
option_fields! { plain FlushWalOptions FlushWalOptionsFields {
    rate_limiter_priority: c_int = 4, set rocksdb_flushwaloptions_set_rate_limiter_priority c_int, get rocksdb_flushwaloptions_get_rate_limiter_priority c_int;
    sync: u8 = 0, set rocksdb_flushwaloptions_set_sync u8, get rocksdb_flushwaloptions_get_sync u8;
} }
create! { rocksdb_flushwaloptions_create FlushWalOptions }
destroy! { rocksdb_flushwaloptions_destroy FlushWalOptions }
option_fields! { plain HyperClockCacheOptions HyperClockCacheOptionsFields {
    capacity: usize = 0, set rocksdb_hyper_clock_cache_options_set_capacity usize;
} }
destroy! { rocksdb_hyper_clock_cache_options_destroy HyperClockCacheOptions }
option_fields! { plain ImportColumnFamilyOptions ImportColumnFamilyOptionsFields {
    move_files: u8 = 0, set rocksdb_import_column_family_options_set_move_files u8, get rocksdb_import_column_family_options_get_move_files u8;
} }
create! { rocksdb_import_column_family_options_create ImportColumnFamilyOptions }
destroy! { rocksdb_import_column_family_options_destroy ImportColumnFamilyOptions }
option_fields! { plain IngestOptions IngestOptionsFields {
    allow_blocking_flush: u8 = 1, set rocksdb_ingestexternalfileoptions_set_allow_blocking_flush u8, get rocksdb_ingestexternalfileoptions_get_allow_blocking_flush u8;
    allow_db_generated_files: u8 = 0, set rocksdb_ingestexternalfileoptions_set_allow_db_generated_files u8, get rocksdb_ingestexternalfileoptions_get_allow_db_generated_files u8;
    allow_global_seqno: u8 = 1, set rocksdb_ingestexternalfileoptions_set_allow_global_seqno u8, get rocksdb_ingestexternalfileoptions_get_allow_global_seqno u8;
    fail_if_not_bottommost_level: u8 = 0, set rocksdb_ingestexternalfileoptions_set_fail_if_not_bottommost_level u8, get rocksdb_ingestexternalfileoptions_get_fail_if_not_bottommost_level u8;
    failed_move_fall_back_to_copy: u8 = 1, set rocksdb_ingestexternalfileoptions_set_failed_move_fall_back_to_copy u8, get rocksdb_ingestexternalfileoptions_get_failed_move_fall_back_to_copy u8;
    file_opening_threads: c_int = 1, set rocksdb_ingestexternalfileoptions_set_file_opening_threads c_int, get rocksdb_ingestexternalfileoptions_get_file_opening_threads c_int;
    fill_cache: u8 = 1, set rocksdb_ingestexternalfileoptions_set_fill_cache u8, get rocksdb_ingestexternalfileoptions_get_fill_cache u8;
    ingest_behind: u8 = 0, set rocksdb_ingestexternalfileoptions_set_ingest_behind u8, get rocksdb_ingestexternalfileoptions_get_ingest_behind u8;
    link_files: u8 = 0, set rocksdb_ingestexternalfileoptions_set_link_files u8, get rocksdb_ingestexternalfileoptions_get_link_files u8;
    move_files: u8 = 0, set rocksdb_ingestexternalfileoptions_set_move_files u8, get rocksdb_ingestexternalfileoptions_get_move_files u8;
    prefetch_lmax_index_and_filter_blocks: u8 = 1, set rocksdb_ingestexternalfileoptions_set_prefetch_lmax_index_and_filter_blocks u8, get rocksdb_ingestexternalfileoptions_get_prefetch_lmax_index_and_filter_blocks u8;
    snapshot_consistency: u8 = 1, set rocksdb_ingestexternalfileoptions_set_snapshot_consistency u8, get rocksdb_ingestexternalfileoptions_get_snapshot_consistency u8;
    verify_checksums_before_ingest: u8 = 0, set rocksdb_ingestexternalfileoptions_set_verify_checksums_before_ingest u8, get rocksdb_ingestexternalfileoptions_get_verify_checksums_before_ingest u8;
    verify_checksums_readahead_size: usize = 0, set rocksdb_ingestexternalfileoptions_set_verify_checksums_readahead_size usize, get rocksdb_ingestexternalfileoptions_get_verify_checksums_readahead_size usize;
    verify_file_checksum: u8 = 1, set rocksdb_ingestexternalfileoptions_set_verify_file_checksum u8, get rocksdb_ingestexternalfileoptions_get_verify_file_checksum u8;
    write_global_seqno: u8 = 0, set rocksdb_ingestexternalfileoptions_set_write_global_seqno u8, get rocksdb_ingestexternalfileoptions_get_write_global_seqno u8;
} }
create! { rocksdb_ingestexternalfileoptions_create IngestOptions }
destroy! { rocksdb_ingestexternalfileoptions_destroy IngestOptions }
option_fields! { plain LivefilesStorageInfoOptions LivefilesStorageInfoOptionsFields {
    atomic_flush: u8 = 0, set rocksdb_livefiles_storage_info_options_set_atomic_flush u8, get rocksdb_livefiles_storage_info_options_get_atomic_flush u8;
    include_checksum_info: u8 = 0, set rocksdb_livefiles_storage_info_options_set_include_checksum_info u8, get rocksdb_livefiles_storage_info_options_get_include_checksum_info u8;
    wal_size_for_flush: u64 = 0, set rocksdb_livefiles_storage_info_options_set_wal_size_for_flush u64, get rocksdb_livefiles_storage_info_options_get_wal_size_for_flush u64;
} }
create! { rocksdb_livefiles_storage_info_options_create LivefilesStorageInfoOptions }
destroy! { rocksdb_livefiles_storage_info_options_destroy LivefilesStorageInfoOptions }
option_fields! { plain LruCacheOptions LruCacheOptionsFields {
    capacity: usize = 0, set rocksdb_lru_cache_options_set_capacity usize;
} }
create! { rocksdb_lru_cache_options_create LruCacheOptions }
destroy! { rocksdb_lru_cache_options_destroy LruCacheOptions }
option_fields! { plain OpenAndCompactOptions OpenAndCompactOptionsFields {
    allow_resumption: u8 = 0, set rocksdb_open_and_compact_options_set_allow_resumption u8, get rocksdb_open_and_compact_options_get_allow_resumption u8;
} }
create! { rocksdb_open_and_compact_options_create OpenAndCompactOptions }
destroy! { rocksdb_open_and_compact_options_destroy OpenAndCompactOptions }
option_fields! { plain OptimisticTransactionOptions OptimisticTransactionOptionsFields {
    set_snapshot: u8 = 0, set rocksdb_optimistictransaction_options_set_set_snapshot u8, get rocksdb_optimistictransaction_options_get_set_snapshot u8;
} }
create! { rocksdb_optimistictransaction_options_create OptimisticTransactionOptions }
destroy! { rocksdb_optimistictransaction_options_destroy OptimisticTransactionOptions }
option_fields! { plain OptimisticTransactionDbOptions OptimisticTransactionDbOptionsFields {
    occ_lock_buckets: c_uint = 1048576, set rocksdb_optimistictransactiondb_options_set_occ_lock_buckets c_uint, get rocksdb_optimistictransactiondb_options_get_occ_lock_buckets c_uint;
    validate_policy: c_int = 1, set rocksdb_optimistictransactiondb_options_set_validate_policy c_int, get rocksdb_optimistictransactiondb_options_get_validate_policy c_int;
} }
create! { rocksdb_optimistictransactiondb_options_create OptimisticTransactionDbOptions }
destroy! { rocksdb_optimistictransactiondb_options_destroy OptimisticTransactionDbOptions }
option_fields! { plain ReplayOptions ReplayOptionsFields {
    fast_forward: f64 = 1.0, set rocksdb_replay_options_set_fast_forward f64, get rocksdb_replay_options_get_fast_forward f64;
    num_threads: c_uint = 1, set rocksdb_replay_options_set_num_threads c_uint, get rocksdb_replay_options_get_num_threads c_uint;
} }
create! { rocksdb_replay_options_create ReplayOptions }
destroy! { rocksdb_replay_options_destroy ReplayOptions }
option_fields! { plain RestoreOptions RestoreOptionsFields {
    keep_log_files: c_int = 0, set rocksdb_restore_options_set_keep_log_files c_int, get_as rocksdb_restore_options_get_keep_log_files u8;
    mode: c_int = 65535, set rocksdb_restore_options_set_mode c_int, get rocksdb_restore_options_get_mode c_int;
} }
create! { rocksdb_restore_options_create RestoreOptions }
destroy! { rocksdb_restore_options_destroy RestoreOptions }
option_fields! { plain SizeApproximationOptions SizeApproximationOptionsFields {
    files_size_error_margin: f64 = -1.0, set rocksdb_size_approximation_options_set_files_size_error_margin f64, get rocksdb_size_approximation_options_get_files_size_error_margin f64;
    include_blob_files: u8 = 0, set rocksdb_size_approximation_options_set_include_blob_files u8, get rocksdb_size_approximation_options_get_include_blob_files u8;
    include_files: u8 = 1, set rocksdb_size_approximation_options_set_include_files u8, get rocksdb_size_approximation_options_get_include_files u8;
    include_memtables: u8 = 0, set rocksdb_size_approximation_options_set_include_memtables u8, get rocksdb_size_approximation_options_get_include_memtables u8;
} }
create! { rocksdb_size_approximation_options_create SizeApproximationOptions }
destroy! { rocksdb_size_approximation_options_destroy SizeApproximationOptions }
option_fields! { plain TraceOptions TraceOptionsFields {
    filter: u64 = 0, set rocksdb_trace_options_set_filter u64, get rocksdb_trace_options_get_filter u64;
    max_trace_file_size: u64 = 68719476736, set rocksdb_trace_options_set_max_trace_file_size u64, get rocksdb_trace_options_get_max_trace_file_size u64;
    preserve_write_order: u8 = 0, set rocksdb_trace_options_set_preserve_write_order u8, get rocksdb_trace_options_get_preserve_write_order u8;
    sampling_frequency: u64 = 1, set rocksdb_trace_options_set_sampling_frequency u64, get rocksdb_trace_options_get_sampling_frequency u64;
} }
create! { rocksdb_trace_options_create TraceOptions }
destroy! { rocksdb_trace_options_destroy TraceOptions }
option_fields! { plain TransactionOptions TransactionOptionsFields {
    commit_bypass_memtable: u8 = 0, set rocksdb_transaction_options_set_commit_bypass_memtable u8, get rocksdb_transaction_options_get_commit_bypass_memtable u8;
    deadlock_detect: u8 = 0, set rocksdb_transaction_options_set_deadlock_detect u8, get rocksdb_transaction_options_get_deadlock_detect u8;
    deadlock_detect_depth: i64 = 50, set rocksdb_transaction_options_set_deadlock_detect_depth i64, get rocksdb_transaction_options_get_deadlock_detect_depth i64;
    deadlock_timeout_us: i64 = 500, set rocksdb_transaction_options_set_deadlock_timeout_us i64, get rocksdb_transaction_options_get_deadlock_timeout_us i64;
    expiration: i64 = -1, set rocksdb_transaction_options_set_expiration i64, get rocksdb_transaction_options_get_expiration i64;
    large_txn_commit_optimize_byte_threshold: u64 = 0, set rocksdb_transaction_options_set_large_txn_commit_optimize_byte_threshold u64, get rocksdb_transaction_options_get_large_txn_commit_optimize_byte_threshold u64;
    large_txn_commit_optimize_threshold: c_uint = 0, set rocksdb_transaction_options_set_large_txn_commit_optimize_threshold c_uint, get rocksdb_transaction_options_get_large_txn_commit_optimize_threshold c_uint;
    lock_timeout: i64 = -1, set rocksdb_transaction_options_set_lock_timeout i64, get rocksdb_transaction_options_get_lock_timeout i64;
    max_write_batch_size: usize = 0, set rocksdb_transaction_options_set_max_write_batch_size usize, get rocksdb_transaction_options_get_max_write_batch_size usize;
    set_snapshot: u8 = 0, set rocksdb_transaction_options_set_set_snapshot u8, get rocksdb_transaction_options_get_set_snapshot u8;
    skip_concurrency_control: u8 = 0, set rocksdb_transaction_options_set_skip_concurrency_control u8, get rocksdb_transaction_options_get_skip_concurrency_control u8;
    skip_prepare: u8 = 1, set rocksdb_transaction_options_set_skip_prepare u8, get rocksdb_transaction_options_get_skip_prepare u8;
    use_only_the_last_commit_time_batch_for_recovery: u8 = 0, set rocksdb_transaction_options_set_use_only_the_last_commit_time_batch_for_recovery u8, get rocksdb_transaction_options_get_use_only_the_last_commit_time_batch_for_recovery u8;
    write_batch_flush_threshold: i64 = -1, set rocksdb_transaction_options_set_write_batch_flush_threshold i64, get rocksdb_transaction_options_get_write_batch_flush_threshold i64;
    write_batch_track_timestamp_size: u8 = 0, set rocksdb_transaction_options_set_write_batch_track_timestamp_size u8, get rocksdb_transaction_options_get_write_batch_track_timestamp_size u8;
} }
create! { rocksdb_transaction_options_create TransactionOptions }
destroy! { rocksdb_transaction_options_destroy TransactionOptions }
option_fields! { plain TransactionDbOptions TransactionDbOptionsFields {
    default_lock_timeout: i64 = 1000, set rocksdb_transactiondb_options_set_default_lock_timeout i64, get rocksdb_transactiondb_options_get_default_lock_timeout i64;
    default_write_batch_flush_threshold: i64 = 0, set rocksdb_transactiondb_options_set_default_write_batch_flush_threshold i64, get rocksdb_transactiondb_options_get_default_write_batch_flush_threshold i64;
    enable_udt_validation: u8 = 1, set rocksdb_transactiondb_options_set_enable_udt_validation u8, get rocksdb_transactiondb_options_get_enable_udt_validation u8;
    max_num_deadlocks: c_uint = 5, set rocksdb_transactiondb_options_set_max_num_deadlocks c_uint, get rocksdb_transactiondb_options_get_max_num_deadlocks c_uint;
    max_num_locks: i64 = -1, set rocksdb_transactiondb_options_set_max_num_locks i64, get rocksdb_transactiondb_options_get_max_num_locks i64;
    num_stripes: usize = 16, set rocksdb_transactiondb_options_set_num_stripes usize, get rocksdb_transactiondb_options_get_num_stripes usize;
    rollback_merge_operands: u8 = 0, set rocksdb_transactiondb_options_set_rollback_merge_operands u8, get rocksdb_transactiondb_options_get_rollback_merge_operands u8;
    skip_concurrency_control: u8 = 0, set rocksdb_transactiondb_options_set_skip_concurrency_control u8, get rocksdb_transactiondb_options_get_skip_concurrency_control u8;
    transaction_lock_timeout: i64 = 1000, set rocksdb_transactiondb_options_set_transaction_lock_timeout i64, get rocksdb_transactiondb_options_get_transaction_lock_timeout i64;
    txn_commit_bypass_memtable_threshold: c_uint = 4294967295, set rocksdb_transactiondb_options_set_txn_commit_bypass_memtable_threshold c_uint, get rocksdb_transactiondb_options_get_txn_commit_bypass_memtable_threshold c_uint;
    use_per_key_point_lock_mgr: u8 = 0, set rocksdb_transactiondb_options_set_use_per_key_point_lock_mgr u8, get rocksdb_transactiondb_options_get_use_per_key_point_lock_mgr u8;
    write_policy: c_int = 0, set rocksdb_transactiondb_options_set_write_policy c_int, get rocksdb_transactiondb_options_get_write_policy c_int;
} }
create! { rocksdb_transactiondb_options_create TransactionDbOptions }
destroy! { rocksdb_transactiondb_options_destroy TransactionDbOptions }
option_fields! { plain UniversalCompactionOptions UniversalCompactionOptionsFields {
    allow_trivial_move: u8 = 0, set rocksdb_universal_compaction_options_set_allow_trivial_move u8, get rocksdb_universal_compaction_options_get_allow_trivial_move u8;
    compression_size_percent: c_int = -1, set rocksdb_universal_compaction_options_set_compression_size_percent c_int, get rocksdb_universal_compaction_options_get_compression_size_percent c_int;
    incremental: u8 = 0, set rocksdb_universal_compaction_options_set_incremental u8, get rocksdb_universal_compaction_options_get_incremental u8;
    max_merge_width: c_int = -1, set rocksdb_universal_compaction_options_set_max_merge_width c_int, get rocksdb_universal_compaction_options_get_max_merge_width c_int;
    max_read_amp: c_int = -1, set rocksdb_universal_compaction_options_set_max_read_amp c_int, get rocksdb_universal_compaction_options_get_max_read_amp c_int;
    max_size_amplification_percent: c_int = 200, set rocksdb_universal_compaction_options_set_max_size_amplification_percent c_int, get rocksdb_universal_compaction_options_get_max_size_amplification_percent c_int;
    min_merge_width: c_int = 2, set rocksdb_universal_compaction_options_set_min_merge_width c_int, get rocksdb_universal_compaction_options_get_min_merge_width c_int;
    reduce_file_locking: u8 = 1, set rocksdb_universal_compaction_options_set_reduce_file_locking u8, get rocksdb_universal_compaction_options_get_reduce_file_locking u8;
    size_ratio: c_int = 1, set rocksdb_universal_compaction_options_set_size_ratio c_int, get rocksdb_universal_compaction_options_get_size_ratio c_int;
    stop_style: c_int = 1, set rocksdb_universal_compaction_options_set_stop_style c_int, get rocksdb_universal_compaction_options_get_stop_style c_int;
} }
create! { rocksdb_universal_compaction_options_create UniversalCompactionOptions }
destroy! { rocksdb_universal_compaction_options_destroy UniversalCompactionOptions }
option_fields! { plain WaitForCompactOptions WaitForCompactOptionsFields {
    abort_on_pause: u8 = 0, set rocksdb_wait_for_compact_options_set_abort_on_pause u8, get rocksdb_wait_for_compact_options_get_abort_on_pause u8;
    close_db: u8 = 0, set rocksdb_wait_for_compact_options_set_close_db u8, get rocksdb_wait_for_compact_options_get_close_db u8;
    flush: u8 = 0, set rocksdb_wait_for_compact_options_set_flush u8, get rocksdb_wait_for_compact_options_get_flush u8;
    timeout: u64 = 0, set rocksdb_wait_for_compact_options_set_timeout u64, get rocksdb_wait_for_compact_options_get_timeout u64;
    wait_for_purge: u8 = 0, set rocksdb_wait_for_compact_options_set_wait_for_purge u8, get rocksdb_wait_for_compact_options_get_wait_for_purge u8;
} }
create! { rocksdb_wait_for_compact_options_create WaitForCompactOptions }
destroy! { rocksdb_wait_for_compact_options_destroy WaitForCompactOptions }
option_fields! { plain WalReadOptions WalReadOptionsFields {
    verify_checksums: u8 = 1, set rocksdb_wal_readoptions_set_verify_checksums u8, get rocksdb_wal_readoptions_get_verify_checksums u8;
} }
create! { rocksdb_wal_readoptions_create WalReadOptions }
destroy! { rocksdb_wal_readoptions_destroy WalReadOptions }
