//! Functions that set several options at once, to what RocksDB sets them.

use std::ffi::c_int;

use crate::options::database::Options;
use crate::options::objects::cache::Cache;

const LEVEL_STYLE: c_int = 0;
const UNIVERSAL_STYLE: c_int = 1;

impl Options {
    /// Sets the options that both styles of compaction derive from a budget of memory.
    fn set_budget(&mut self, budget_bytes: u64) {
        let fields = &mut self.fields;
        fields.write_buffer_size = usize::try_from(budget_bytes / 4).unwrap_or(usize::MAX);
        fields.min_write_buffer_number_to_merge = 2;
        fields.max_write_buffer_number = 6;
    }
}

export! {
    fn rocksdb_options_increase_parallelism(options: Option<&mut Options>, threads: c_int) {
        if let Some(options) = options {
            options.fields.max_background_jobs = threads;
        }
    }

    fn rocksdb_options_optimize_for_point_lookup(options: Option<&mut Options>, cache_mib: u64) {
        if let Some(options) = options {
            let bytes = usize::try_from(cache_mib.saturating_mul(1 << 20)).unwrap_or(usize::MAX);
            options.table.cache = Some(Cache::new(bytes));
            options.table.filter_bits = Some(10.0);
            options.fields.memtable_prefix_bloom_size_ratio = 0.02;
            options.fields.memtable_whole_key_filtering = 1;
        }
    }

    fn rocksdb_options_optimize_level_style_compaction(options: Option<&mut Options>, budget: u64) {
        if let Some(options) = options {
            options.set_budget(budget);
            let fields = &mut options.fields;
            fields.level0_file_num_compaction_trigger = 2;
            fields.target_file_size_base = budget / 8;
            fields.max_bytes_for_level_base = budget;
            fields.compaction_style = LEVEL_STYLE;
        }
    }

    fn rocksdb_options_optimize_universal_style_compaction(options: Option<&mut Options>, budget: u64) {
        if let Some(options) = options {
            options.set_budget(budget);
            options.fields.compaction_style = UNIVERSAL_STYLE;
        }
    }

    fn rocksdb_options_prepare_for_bulk_load(options: Option<&mut Options>) {
        if let Some(options) = options {
            let fields = &mut options.fields;
            fields.level0_file_num_compaction_trigger = 1 << 30;
            fields.level0_slowdown_writes_trigger = 1 << 30;
            fields.level0_stop_writes_trigger = 1 << 30;
            fields.soft_pending_compaction_bytes_limit = 0;
            fields.hard_pending_compaction_bytes_limit = 0;
            fields.disable_auto_compactions = 1;
            fields.max_compaction_bytes = 1 << 60;
            fields.num_levels = 2;
            fields.max_write_buffer_number = 6;
            fields.min_write_buffer_number_to_merge = 1;
            fields.max_background_flushes = 4;
            fields.max_background_compactions = 2;
            fields.target_file_size_base = 256 << 20;
        }
    }

    fn rocksdb_options_compaction_readahead_size(options: Option<&mut Options>, bytes: usize) {
        if let Some(options) = options {
            options.fields.compaction_readahead_size = bytes;
        }
    }
}
