//! Written by `cargo xtask abi --write` from `abi.toml`; do not edit.

use std::ffi::c_int;

use crate::options::CompactRangeOptions;

option_fields! { own CompactRangeOptions CompactRangeOptionsFields {
    allow_write_stall: u8 = 0, set rocksdb_compactoptions_set_allow_write_stall u8, get rocksdb_compactoptions_get_allow_write_stall u8;
    blob_garbage_collection_age_cutoff: f64 = -1.0, set rocksdb_compactoptions_set_blob_garbage_collection_age_cutoff f64, get rocksdb_compactoptions_get_blob_garbage_collection_age_cutoff f64;
    blob_garbage_collection_policy: c_int = 2, set rocksdb_compactoptions_set_blob_garbage_collection_policy c_int, get rocksdb_compactoptions_get_blob_garbage_collection_policy c_int;
    bottommost_level_compaction: u8 = 1, set rocksdb_compactoptions_set_bottommost_level_compaction u8, get rocksdb_compactoptions_get_bottommost_level_compaction u8;
    change_level: u8 = 0, set rocksdb_compactoptions_set_change_level u8, get rocksdb_compactoptions_get_change_level u8;
    exclusive_manual_compaction: u8 = 0, set rocksdb_compactoptions_set_exclusive_manual_compaction u8, get rocksdb_compactoptions_get_exclusive_manual_compaction u8;
    max_subcompactions: c_int = 0, set rocksdb_compactoptions_set_max_subcompactions c_int, get rocksdb_compactoptions_get_max_subcompactions c_int;
    target_level: c_int = -1, set rocksdb_compactoptions_set_target_level c_int, get rocksdb_compactoptions_get_target_level c_int;
    target_path_id: c_int = 0, set rocksdb_compactoptions_set_target_path_id c_int, get rocksdb_compactoptions_get_target_path_id c_int;
} }
