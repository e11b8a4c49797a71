//! Functions that set several options at once, to what RocksDB sets them.

use std::ffi::c_int;

use crate::options::database::Options;
use crate::options::objects::cache::Cache;

const LEVEL_STYLE: c_int = 0;
const UNIVERSAL_STYLE: c_int = 1;

impl Options {
    /// What both styles of compaction set for a budget of memory.
    fn set_budget(&mut self, budget_bytes: u64) {
        let knobs = &mut self.knobs;
        knobs.write_buffer_size = usize::try_from(budget_bytes / 4).unwrap_or(usize::MAX);
        knobs.min_write_buffer_number_to_merge = 2;
        knobs.max_write_buffer_number = 6;
    }
}

export! {
    fn rocksdb_options_increase_parallelism(options: Option<&mut Options>, threads: c_int) {
        if let Some(options) = options {
            options.knobs.max_background_jobs = threads;
        }
    }

    fn rocksdb_options_optimize_for_point_lookup(options: Option<&mut Options>, cache_mib: u64) {
        if let Some(options) = options {
            let bytes = usize::try_from(cache_mib.saturating_mul(1 << 20)).unwrap_or(usize::MAX);
            options.table.cache = Some(Cache::new(bytes));
            options.table.filter_bits = Some(10.0);
            options.knobs.memtable_prefix_bloom_size_ratio = 0.02;
            options.knobs.memtable_whole_key_filtering = 1;
        }
    }

    fn rocksdb_options_optimize_level_style_compaction(options: Option<&mut Options>, budget: u64) {
        if let Some(options) = options {
            options.set_budget(budget);
            let knobs = &mut options.knobs;
            knobs.level0_file_num_compaction_trigger = 2;
            knobs.target_file_size_base = budget / 8;
            knobs.max_bytes_for_level_base = budget;
            knobs.compaction_style = LEVEL_STYLE;
        }
    }

    fn rocksdb_options_optimize_universal_style_compaction(options: Option<&mut Options>, budget: u64) {
        if let Some(options) = options {
            options.set_budget(budget);
            options.knobs.compaction_style = UNIVERSAL_STYLE;
        }
    }

    fn rocksdb_options_prepare_for_bulk_load(options: Option<&mut Options>) {
        if let Some(options) = options {
            let knobs = &mut options.knobs;
            knobs.level0_file_num_compaction_trigger = 1 << 30;
            knobs.level0_slowdown_writes_trigger = 1 << 30;
            knobs.level0_stop_writes_trigger = 1 << 30;
            knobs.soft_pending_compaction_bytes_limit = 0;
            knobs.hard_pending_compaction_bytes_limit = 0;
            knobs.disable_auto_compactions = 1;
            knobs.max_compaction_bytes = 1 << 60;
            knobs.num_levels = 2;
            knobs.max_write_buffer_number = 6;
            knobs.min_write_buffer_number_to_merge = 1;
            knobs.max_background_flushes = 4;
            knobs.max_background_compactions = 2;
            knobs.target_file_size_base = 256 << 20;
        }
    }

    fn rocksdb_options_compaction_readahead_size(options: Option<&mut Options>, bytes: usize) {
        if let Some(options) = options {
            options.knobs.compaction_readahead_size = bytes;
        }
    }
}
