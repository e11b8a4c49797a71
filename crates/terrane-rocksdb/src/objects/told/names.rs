//! Names and words by which RocksDB's files tell options.

/// Options of databases; the others are of column families.
pub(super) const OF_DATABASES: [&str; 94] = [
    "wal_size_limit_mb",
    "wal_ttl_seconds",
    "advise_random_on_open",
    "allow_2pc",
    "allow_concurrent_memtable_write",
    "allow_data_in_errors",
    "allow_fallocate",
    "allow_ingest_behind",
    "allow_mmap_reads",
    "allow_mmap_writes",
    "async_wal_precreate",
    "atomic_flush",
    "avoid_flush_during_recovery",
    "avoid_flush_during_shutdown",
    "avoid_unnecessary_blocking_io",
    "background_close_inactive_wals",
    "best_efforts_recovery",
    "bgerror_resume_retry_interval",
    "bytes_per_sync",
    "compaction_readahead_size",
    "compaction_verify_record_count",
    "create_if_missing",
    "create_missing_column_families",
    "db_write_buffer_size",
    "delayed_write_rate",
    "delete_obsolete_files_period_micros",
    "dump_malloc_stats",
    "enable_pipelined_write",
    "enable_thread_tracking",
    "enable_write_thread_adaptive_yield",
    "enforce_single_del_contracts",
    "enforce_write_buffer_manager_during_recovery",
    "error_if_exists",
    "fast_sst_open",
    "flush_verify_memtable_count",
    "follower_catchup_retry_count",
    "follower_catchup_retry_wait_ms",
    "follower_refresh_catchup_period_ms",
    "info_log_level",
    "is_fd_close_on_exec",
    "keep_log_file_num",
    "log_file_time_to_roll",
    "log_readahead_size",
    "lowest_used_cache_tier",
    "manifest_preallocation_size",
    "manual_wal_flush",
    "max_background_compactions",
    "max_background_flushes",
    "max_background_jobs",
    "max_bgerror_resume_count",
    "max_compaction_trigger_wakeup_seconds",
    "max_file_opening_threads",
    "max_log_file_size",
    "max_manifest_file_size",
    "max_manifest_space_amp_pct",
    "max_open_files",
    "max_subcompactions",
    "max_total_wal_size",
    "max_write_batch_group_size_bytes",
    "metadata_write_temperature",
    "open_files_async",
    "optimize_manifest_for_recovery",
    "paranoid_checks",
    "persist_stats_to_disk",
    "prefix_seek_opt_in_only",
    "read_io_executor_threads",
    "recycle_log_file_num",
    "reuse_manifest_on_open",
    "skip_stats_update_on_db_open",
    "stats_dump_period_sec",
    "stats_history_buffer_size",
    "stats_persist_period_sec",
    "strict_bytes_per_sync",
    "table_cache_numshardbits",
    "track_and_verify_wals",
    "track_and_verify_wals_in_manifest",
    "two_write_queues",
    "unordered_write",
    "use_adaptive_mutex",
    "use_direct_io_for_compaction_reads",
    "use_direct_io_for_flush_and_compaction",
    "use_direct_reads",
    "use_fsync",
    "verify_manifest_content_on_close",
    "verify_sst_unique_id_in_manifest",
    "wal_bytes_per_sync",
    "wal_compression",
    "wal_recovery_mode",
    "wal_write_temperature",
    "writable_file_max_buffer_size",
    "write_dbid_to_manifest",
    "write_identity_file",
    "write_thread_max_yield_usec",
    "write_thread_slow_yield_usec",
];

/// What RocksDB's present files have no name for.
pub(super) const NOT_TOLD: [&str; 9] = [
    "access_hint_on_compaction_start",
    "base_background_compactions",
    "hard_rate_limit",
    "max_write_buffer_number_to_maintain",
    "rate_limit_delay_max_milliseconds",
    "skip_checking_sst_file_sizes_on_db_open",
    "skip_log_error_on_recovery",
    "soft_rate_limit",
    "statistics_level",
];

/// Where the name is not that of the setter.
pub(super) const OTHER_NAMES: [(&str, &str); 5] = [
    ("wal_size_limit_mb", "WAL_size_limit_MB"),
    ("wal_ttl_seconds", "WAL_ttl_seconds"),
    ("blob_gc_age_cutoff", "blob_garbage_collection_age_cutoff"),
    ("blob_gc_force_threshold", "blob_garbage_collection_force_threshold"),
    ("enable_blob_gc", "enable_blob_garbage_collection"),
];

/// Flags whose setters take an `int`.
pub(super) const FLAGS: [&str; 4] =
    ["disable_auto_compactions", "optimize_filters_for_hits", "report_bg_io_stats", "use_fsync"];

/// Words for values, in the order of their numbers, and the option that each stands for.
type Words = &'static [(i128, &'static str)];

const CODECS: Words = &[
    (0, "kNoCompression"),
    (1, "kSnappyCompression"),
    (2, "kZlibCompression"),
    (3, "kBZip2Compression"),
    (4, "kLZ4Compression"),
    (5, "kLZ4HCCompression"),
    (6, "kXpressCompression"),
    (7, "kZSTD"),
    (255, "kDisableCompressionOption"),
];
const STYLES: Words =
    &[(0, "kCompactionStyleLevel"), (1, "kCompactionStyleUniversal"), (2, "kCompactionStyleFIFO")];
const PRIORITIES: Words = &[
    (0, "kByCompensatedSize"),
    (1, "kOldestLargestSeqFirst"),
    (2, "kOldestSmallestSeqFirst"),
    (3, "kMinOverlappingRatio"),
    (4, "kRoundRobin"),
];
const TEMPERATURES: Words =
    &[(0, "kUnknown"), (4, "kHot"), (8, "kWarm"), (10, "kCool"), (12, "kCold"), (16, "kIce")];
const LEVELS: Words = &[
    (0, "DEBUG_LEVEL"),
    (1, "INFO_LEVEL"),
    (2, "WARN_LEVEL"),
    (3, "ERROR_LEVEL"),
    (4, "FATAL_LEVEL"),
    (5, "HEADER_LEVEL"),
];
const RECOVERY: Words = &[
    (0, "kTolerateCorruptedTailRecords"),
    (1, "kAbsoluteConsistency"),
    (2, "kPointInTimeRecovery"),
    (3, "kSkipAnyCorruptedRecords"),
];
const PREPOPULATION: Words = &[(0, "kDisable"), (1, "kFlushOnly")];
const TIERS: Words = &[(0, "kVolatileTier"), (1, "kVolatileCompressedTier"), (2, "kNonVolatileBlockTier")];
const CHECKSUMS: Words =
    &[(0, "kNoChecksum"), (1, "kCRC32c"), (2, "kxxHash"), (3, "kxxHash64"), (4, "kXXH3")];
const INDEXES: Words = &[
    (0, "kBinarySearch"),
    (1, "kHashSearch"),
    (2, "kTwoLevelIndexSearch"),
    (3, "kBinarySearchWithFirstKey"),
];
const BLOCK_INDEXES: Words = &[(0, "kDataBlockBinarySearch"), (1, "kDataBlockBinaryAndHash")];
const SHORTENINGS: Words =
    &[(0, "kNoShortening"), (1, "kShortenSeparators"), (2, "kShortenSeparatorsAndSuccessor")];
const SEARCHES: Words = &[(0, "kBinary"), (1, "kInterpolation")];

const WORDS: [Words; 13] = [
    CODECS,
    STYLES,
    PRIORITIES,
    TEMPERATURES,
    LEVELS,
    RECOVERY,
    PREPOPULATION,
    TIERS,
    CHECKSUMS,
    INDEXES,
    BLOCK_INDEXES,
    SHORTENINGS,
    SEARCHES,
];

fn words_of(option: &str) -> Words {
    match option {
        "compression" | "bottommost_compression" | "blob_compression_type" | "wal_compression" => CODECS,
        "compaction_style" => STYLES,
        "compaction_pri" => PRIORITIES,
        "info_log_level" => LEVELS,
        "wal_recovery_mode" => RECOVERY,
        "prepopulate_blob_cache" | "prepopulate_block_cache" => PREPOPULATION,
        "lowest_used_cache_tier" => TIERS,
        "checksum" => CHECKSUMS,
        "index_type" => INDEXES,
        "data_block_index_type" => BLOCK_INDEXES,
        "index_shortening" => SHORTENINGS,
        "index_block_search_type" => SEARCHES,
        option if option.ends_with("_temperature") => TEMPERATURES,
        _ => &[],
    }
}

/// The word for the value of an option, where it has one.
pub(super) fn word(option: &str, number: i128) -> Option<&'static str> {
    words_of(option).iter().find(|(value, _)| *value == number).map(|(_, word)| *word)
}

/// The number that a word stands for: no word stands for two.
pub(crate) fn number(word: &str) -> Option<i128> {
    match word {
        "false" => Some(0),
        "true" => Some(1),
        _ => WORDS.iter().copied().flatten().find(|(_, known)| *known == word).map(|(number, _)| *number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_stands_for_two_numbers() {
        for (value, word) in WORDS.iter().copied().flatten() {
            assert_eq!(number(word), Some(*value), "{word}");
        }
    }
}
