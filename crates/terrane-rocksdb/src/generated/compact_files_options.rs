//! Written by `cargo xtask abi --write` from `abi.toml`; do not edit.

use std::ffi::{c_int, c_uint};

use crate::options::CompactFilesOptions;

option_fields! { own CompactFilesOptions CompactFilesOptionsFields {
    allow_trivial_move: u8 = 0, set rocksdb_compaction_options_set_allow_trivial_move u8, get rocksdb_compaction_options_get_allow_trivial_move u8;
    compression: c_int = 255, set rocksdb_compaction_options_set_compression c_int, get rocksdb_compaction_options_get_compression c_int;
    max_subcompactions: c_uint = 0, set rocksdb_compaction_options_set_max_subcompactions c_uint, get rocksdb_compaction_options_get_max_subcompactions c_uint;
    output_file_size_limit: u64 = 18446744073709551615, set rocksdb_compaction_options_set_output_file_size_limit u64, get rocksdb_compaction_options_get_output_file_size_limit u64;
    output_temperature_override: c_int = 0, set rocksdb_compaction_options_set_output_temperature_override c_int, get rocksdb_compaction_options_get_output_temperature_override c_int;
} }
