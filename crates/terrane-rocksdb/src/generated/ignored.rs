//! Written by `cargo xtask abi --write` from `abi.toml`; do not edit.

use crate::db::Database;
use crate::ffi::failure::Given;
use crate::ffi::types::Pointer;
use crate::generated::objects::IngestOptions;
use crate::generated::objects::TransactionDbOptions;
use crate::generated::objects::WaitForCompactOptions;
use crate::options::BackupEngineOptions;
use crate::options::CompactFilesOptions;
use crate::options::CompactRangeOptions;
use crate::options::CreateBackupOptions;
use crate::options::Options;
use crate::options::ReadOptions;
use crate::options::ignored::note;

ignored_options! {
    rocksdb_options_add_compact_on_deletion_collector_factory "extents with many deletes are compacted by the engine's own rules" if |options| options.is_noted("rocksdb_options_add_compact_on_deletion_collector_factory");
    rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio "extents with many deletes are compacted by the engine's own rules" if |options| options.is_noted("rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio");
    rocksdb_options_add_compact_on_deletion_collector_factory_min_file_size "extents with many deletes are compacted by the engine's own rules" if |options| options.is_noted("rocksdb_options_add_compact_on_deletion_collector_factory_min_file_size");
    rocksdb_options_add_table_properties_collector_factory "no collector is called" if |options| options.is_noted("rocksdb_options_add_table_properties_collector_factory");
    rocksdb_options_set_allow_ingest_behind "an ingestion with `ingest_behind` fails" if |options| options.fields.allow_ingest_behind != 0;
    rocksdb_options_set_best_efforts_recovery "an opening fails after damage in the manifest or the journal; `rocksdb_repair_db` recovers the undamaged data" if |options| options.fields.best_efforts_recovery != 0;
    rocksdb_options_set_blob_file_starting_level "every flush separates values, and overflow runs have pointers, too" if |options| options.fields.blob_file_starting_level > 0;
    rocksdb_options_set_blob_gc_age_cutoff "value tables are collected by their share of dead values, not by their age" if |options| options.fields.blob_gc_age_cutoff != 0.25 && options.fields.enable_blob_gc != 0;
    rocksdb_options_set_cf_allow_ingest_behind "an ingestion with `ingest_behind` fails" if |options| options.fields.cf_allow_ingest_behind != 0;
    rocksdb_options_set_cf_paths "all files are in the directory of the database" if |options| options.is_noted("rocksdb_options_set_cf_paths");
    rocksdb_options_set_compaction_style "there is one style of compaction: FIFO deletes no data" if |options| options.fields.compaction_style == 2;
    rocksdb_options_set_db_paths "all files are in the directory of the database" if |options| options.is_noted("rocksdb_options_set_db_paths");
    rocksdb_options_set_disallow_memtable_writes "the column family accepts writes" if |options| options.fields.disallow_memtable_writes != 0;
    rocksdb_options_set_file_checksum_gen_factory "each block has a checksum, and files have no checksum as a whole" if |options| options.is_noted("rocksdb_options_set_file_checksum_gen_factory");
    rocksdb_options_set_paranoid_checks "damage is always an error" if |options| options.fields.paranoid_checks == 0;
    rocksdb_options_set_periodic_compaction_seconds "files are not compacted because of their age" if |options| options.fields.periodic_compaction_seconds != 0 && options.fields.periodic_compaction_seconds != u64::MAX - 1;
    rocksdb_options_set_persist_stats_to_disk "no history of statistics is stored" if |options| options.fields.persist_stats_to_disk != 0;
    rocksdb_options_set_persist_user_defined_timestamps "timestamps are stored" if |options| options.fields.persist_user_defined_timestamps != 1;
    rocksdb_options_set_preclude_last_level_data_seconds "times of writes are not stored" if |options| options.fields.preclude_last_level_data_seconds != 0;
    rocksdb_options_set_preserve_internal_time_seconds "times of writes are not stored" if |options| options.fields.preserve_internal_time_seconds != 0;
    rocksdb_options_set_sst_partitioner_factory "extents end when they are full; the partitioner is not called" if |options| options.is_noted("rocksdb_options_set_sst_partitioner_factory");
    rocksdb_options_set_ttl "files are not compacted because of their age" if |options| options.fields.ttl != 0 && options.fields.ttl != u64::MAX - 1;
    rocksdb_options_set_wal_dir "the journal is in the directory of the database" if |options| options.is_noted("rocksdb_options_set_wal_dir");
    rocksdb_options_set_wal_recovery_mode "an opening fails after damage before the durable end of the journal, and cuts damage behind this end" if |options| options.fields.wal_recovery_mode != 2;
}
ignored_in_calls! {
    rocksdb_disable_file_deletions "extents are places in files of the database, and free places are written again; copy the database with a checkpoint or a backup";
    rocksdb_readoptions_set_deadline "reads have no time limit";
    rocksdb_readoptions_set_ignore_range_deletions "range deletes are never ignored";
    rocksdb_readoptions_set_io_timeout "reads of the device have no time limit";
    rocksdb_readoptions_set_max_skippable_internal_keys "an iterator skips any number of entries";
    rocksdb_readoptions_set_read_tier "reads search all places, including the device";
    rocksdb_readoptions_set_value_size_soft_limit "a multi-get returns all values, whatever their size";
    rocksdb_compaction_options_set_canceled "the flag has no effect; `rocksdb_disable_manual_compaction` stops the compaction";
    rocksdb_compaction_options_set_compression "blocks are compressed as the options of the column family say";
    rocksdb_compaction_options_set_output_file_size_limit "extents have their usual size";
    rocksdb_compactoptions_set_blob_garbage_collection_age_cutoff "value tables are collected by their share of dead values, not by their age";
    rocksdb_compactoptions_set_blob_garbage_collection_policy "value tables are collected as the options of the column family say";
    rocksdb_compactoptions_set_bottommost_level_compaction "extents of the deepest level that overlap no other extents may stay unchanged";
    rocksdb_compactoptions_set_change_level "the range is merged into the deepest level that has data";
    rocksdb_compactoptions_set_exclusive_manual_compaction "other compactions run at the same time";
    rocksdb_compactoptions_set_target_level "the range is merged into the deepest level that has data";
    rocksdb_compactoptions_set_target_path_id "all files are in the directory of the database";
    rocksdb_wait_for_compact_options_set_close_db "the database stays open until `rocksdb_close`";
    rocksdb_wait_for_compact_options_set_timeout "the wait has no time limit";
    rocksdb_ingestexternalfileoptions_set_allow_blocking_flush "records in memory within the range of a file are flushed first";
    rocksdb_ingestexternalfileoptions_set_allow_db_generated_files "only files of a file writer are ingested";
    rocksdb_ingestexternalfileoptions_set_allow_global_seqno "rows of a file get the sequence number of the ingestion";
    rocksdb_ingestexternalfileoptions_set_failed_move_fall_back_to_copy "a file that cannot be linked is copied";
    rocksdb_transactiondb_options_set_write_policy "changes are written to the database at the commit";
    rocksdb_backup_engine_options_set_share_table_files "backups of one directory share equal files";
    rocksdb_create_backup_options_set_exclude_files_callback "the function is never called: a backup has all files that it needs";
}
ignored_in! { BackupEngineOptions
    24 if |options| options.fields.share_table_files != 1;
}
ignored_in! { CompactFilesOptions
    7 if |options| options.is_noted("rocksdb_compaction_options_set_canceled");
    8 if |options| options.fields.compression != 255;
    9 if |options| options.fields.output_file_size_limit != 18446744073709551615;
}
ignored_in! { CompactRangeOptions
    10 if |options| options.fields.blob_garbage_collection_age_cutoff >= 0.0;
    11 if |options| options.fields.blob_garbage_collection_policy != 2;
    12 if |options| options.fields.bottommost_level_compaction > 1;
    13 if |options| options.fields.change_level != 0;
    14 if |options| options.fields.exclusive_manual_compaction != 0;
    15 if |options| options.fields.target_level != -1;
    16 if |options| options.fields.target_path_id != 0;
}
ignored_in! { CreateBackupOptions
    25 if |options| options.is_noted("rocksdb_create_backup_options_set_exclude_files_callback");
}
ignored_in! { IngestOptions
    19 if |options| options.fields.allow_blocking_flush != 1;
    20 if |options| options.fields.allow_db_generated_files != 0;
    21 if |options| options.fields.allow_global_seqno != 1;
    22 if |options| options.fields.failed_move_fall_back_to_copy == 0 && (options.fields.move_files != 0 || options.fields.link_files != 0);
}
ignored_in! { ReadOptions
    1 if |options| options.fields.deadline != 0;
    2 if |options| options.fields.ignore_range_deletions != 0;
    3 if |options| options.fields.io_timeout != 0;
    4 if |options| options.fields.max_skippable_internal_keys != 0;
    5 if |options| options.fields.read_tier != 0;
    6 if |options| options.fields.value_size_soft_limit != 18446744073709551615;
}
ignored_in! { TransactionDbOptions
    23 if |options| options.fields.write_policy != 0;
}
ignored_in! { WaitForCompactOptions
    17 if |options| options.fields.close_db != 0;
    18 if |options| options.fields.timeout != 0;
}
export! {
    fn rocksdb_options_add_table_properties_collector_factory(options: Option<&mut Options>, a1: Pointer) {
        note(options, "rocksdb_options_add_table_properties_collector_factory", !a1.is_null());
    }
}
export! {
    fn rocksdb_options_set_cf_paths(options: Option<&mut Options>, a1: Pointer, _a2: usize) {
        note(options, "rocksdb_options_set_cf_paths", !a1.is_null());
    }
}
export! {
    fn rocksdb_options_set_db_paths(options: Option<&mut Options>, a1: Pointer, _a2: usize) {
        note(options, "rocksdb_options_set_db_paths", !a1.is_null());
    }
}
export! {
    fn rocksdb_disable_file_deletions(database: Option<&Database>, error: ErrPtr<'_>) {
        database.given()?.note_ignored(1 << 0)
    }
}
