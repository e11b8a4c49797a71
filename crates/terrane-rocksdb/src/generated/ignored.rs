//! Written by `cargo xtask abi --write` from `abi.toml`; do not edit.

use crate::ffi::types::Pointer;
use crate::options::Options;
use crate::options::ignored::note;

ignored_options! {
    rocksdb_options_add_compact_on_deletion_collector_factory "extents with many deletes are compacted by the engine's own rules" if |options| options.is_noted("rocksdb_options_add_compact_on_deletion_collector_factory");
    rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio "extents with many deletes are compacted by the engine's own rules" if |options| options.is_noted("rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio");
    rocksdb_options_add_compact_on_deletion_collector_factory_min_file_size "extents with many deletes are compacted by the engine's own rules" if |options| options.is_noted("rocksdb_options_add_compact_on_deletion_collector_factory_min_file_size");
    rocksdb_options_add_table_properties_collector_factory "no collector is called" if |options| options.is_noted("rocksdb_options_add_table_properties_collector_factory");
    rocksdb_options_set_best_efforts_recovery "damage in the manifest or the journal fails the opening; `rocksdb_repair_db` recovers what it can" if |options| options.fields.best_efforts_recovery != 0;
    rocksdb_options_set_blob_file_starting_level "every flush separates values, and overflow runs have pointers, too" if |options| options.fields.blob_file_starting_level > 0;
    rocksdb_options_set_blob_gc_age_cutoff "value tables are collected by how much of them is dead, whatever their age" if |options| options.fields.blob_gc_age_cutoff != 0.25 && options.fields.enable_blob_gc != 0;
    rocksdb_options_set_cf_paths "all files are in the directory of the database" if |options| options.is_noted("rocksdb_options_set_cf_paths");
    rocksdb_options_set_compaction_style "there is one style of compaction: FIFO deletes no data" if |options| options.fields.compaction_style == 2;
    rocksdb_options_set_db_paths "all files are in the directory of the database" if |options| options.is_noted("rocksdb_options_set_db_paths");
    rocksdb_options_set_disallow_memtable_writes "the column family takes writes" if |options| options.fields.disallow_memtable_writes != 0;
    rocksdb_options_set_file_checksum_gen_factory "each block has a checksum, and files as wholes have none" if |options| options.is_noted("rocksdb_options_set_file_checksum_gen_factory");
    rocksdb_options_set_periodic_compaction_seconds "files are not compacted because of their age" if |options| options.fields.periodic_compaction_seconds != 0 && options.fields.periodic_compaction_seconds != u64::MAX - 1;
    rocksdb_options_set_persist_stats_to_disk "no history of statistics is stored" if |options| options.fields.persist_stats_to_disk != 0;
    rocksdb_options_set_persist_user_defined_timestamps "timestamps are stored" if |options| options.fields.persist_user_defined_timestamps != 1;
    rocksdb_options_set_sst_partitioner_factory "extents end where they are full, not where the partitioner asks" if |options| options.is_noted("rocksdb_options_set_sst_partitioner_factory");
    rocksdb_options_set_ttl "files are not compacted because of their age" if |options| options.fields.ttl != 0 && options.fields.ttl != u64::MAX - 1;
    rocksdb_options_set_wal_dir "the journal is in the directory of the database" if |options| options.is_noted("rocksdb_options_set_wal_dir");
    rocksdb_options_set_wal_recovery_mode "damage before the durable end of the journal fails the opening, damage behind it is cut" if |options| options.fields.wal_recovery_mode != 2;
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
