//! Written by `cargo xtask abi --write` from `abi.toml`; do not edit.

use std::ffi::c_int;

use crate::options::ReadOptions;

option_fields! { own ReadOptions ReadOptionsFields {
    adaptive_readahead: u8 = 0, set rocksdb_readoptions_set_adaptive_readahead u8, get rocksdb_readoptions_get_adaptive_readahead u8;
    allow_unprepared_value: u8 = 0, set rocksdb_readoptions_set_allow_unprepared_value u8, get rocksdb_readoptions_get_allow_unprepared_value u8;
    async_io: u8 = 0, set rocksdb_readoptions_set_async_io u8, get rocksdb_readoptions_get_async_io u8;
    auto_prefix_mode: u8 = 0, set rocksdb_readoptions_set_auto_prefix_mode u8, get rocksdb_readoptions_get_auto_prefix_mode u8;
    auto_readahead_size: u8 = 1, set rocksdb_readoptions_set_auto_readahead_size u8, get rocksdb_readoptions_get_auto_readahead_size u8;
    auto_refresh_iterator_with_snapshot: u8 = 0, set rocksdb_readoptions_set_auto_refresh_iterator_with_snapshot u8, get rocksdb_readoptions_get_auto_refresh_iterator_with_snapshot u8;
    background_purge_on_iterator_cleanup: u8 = 0, set rocksdb_readoptions_set_background_purge_on_iterator_cleanup u8, get rocksdb_readoptions_get_background_purge_on_iterator_cleanup u8;
    deadline: u64 = 0, set rocksdb_readoptions_set_deadline u64, get rocksdb_readoptions_get_deadline u64;
    fill_cache: u8 = 1, set rocksdb_readoptions_set_fill_cache u8, get rocksdb_readoptions_get_fill_cache u8;
    ignore_range_deletions: u8 = 0, set rocksdb_readoptions_set_ignore_range_deletions u8, get rocksdb_readoptions_get_ignore_range_deletions u8;
    io_activity: c_int = 255, set rocksdb_readoptions_set_io_activity c_int, get rocksdb_readoptions_get_io_activity c_int;
    io_timeout: u64 = 0, set rocksdb_readoptions_set_io_timeout u64, get rocksdb_readoptions_get_io_timeout u64;
    max_skippable_internal_keys: u64 = 0, set rocksdb_readoptions_set_max_skippable_internal_keys u64, get rocksdb_readoptions_get_max_skippable_internal_keys u64;
    optimize_multiget_for_io: u8 = 1, set rocksdb_readoptions_set_optimize_multiget_for_io u8, get rocksdb_readoptions_get_optimize_multiget_for_io u8;
    pin_data: u8 = 0, set rocksdb_readoptions_set_pin_data u8, get rocksdb_readoptions_get_pin_data u8;
    prefix_same_as_start: u8 = 0, set rocksdb_readoptions_set_prefix_same_as_start u8, get rocksdb_readoptions_get_prefix_same_as_start u8;
    rate_limiter_priority: c_int = 4, set rocksdb_readoptions_set_rate_limiter_priority c_int, get rocksdb_readoptions_get_rate_limiter_priority c_int;
    read_tier: c_int = 0, set rocksdb_readoptions_set_read_tier c_int, get rocksdb_readoptions_get_read_tier c_int;
    readahead_size: usize = 0, set rocksdb_readoptions_set_readahead_size usize, get rocksdb_readoptions_get_readahead_size usize;
    tailing: u8 = 0, set rocksdb_readoptions_set_tailing u8, get rocksdb_readoptions_get_tailing u8;
    total_order_seek: u8 = 0, set rocksdb_readoptions_set_total_order_seek u8, get rocksdb_readoptions_get_total_order_seek u8;
    value_size_soft_limit: u64 = 18446744073709551615, set rocksdb_readoptions_set_value_size_soft_limit u64, get rocksdb_readoptions_get_value_size_soft_limit u64;
    verify_checksums: u8 = 1, set rocksdb_readoptions_set_verify_checksums u8, get rocksdb_readoptions_get_verify_checksums u8;
} }
