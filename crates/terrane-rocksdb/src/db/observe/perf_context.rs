//! Counters of the reads of the calling thread, under RocksDB's names for them.

use std::ffi::c_char;
use std::fmt::Write as _;

use terrane::{ReadCounters, read_counters};

use crate::ffi::types::lasting_text;

/// The counters since the last reset, of whichever thread asks.
pub(crate) struct PerfContext {
    since: ReadCounters,
}

/// Numbers of the header, names and values: what has a counterpart.
fn metrics(read: &ReadCounters) -> [(i32, &'static str, u64); 9] {
    let searched = read.index_blocks_searched + read.data_blocks_searched;
    [
        (1, "block_cache_hit_count", searched.saturating_sub(read.blocks_missed)),
        (2, "block_read_count", read.blocks_missed),
        (3, "block_read_byte", read.device_bytes_read),
        (10, "internal_key_skipped_count", read.versions_skipped),
        (11, "internal_delete_skipped_count", read.deletes_skipped),
        (13, "internal_merge_count", read.operands_resolved),
        (44, "bloom_sst_hit_count", read.filter_probes.saturating_sub(read.filter_negatives)),
        (45, "bloom_sst_miss_count", read.filter_negatives),
        (70, "blob_read_count", read.values_followed),
    ]
}

impl PerfContext {
    fn metrics(&self) -> [(i32, &'static str, u64); 9] {
        metrics(&(read_counters() - self.since))
    }
}

export! {
    fn rocksdb_set_perf_level(_level: i32) {}

    fn rocksdb_perfcontext_create() -> Option<Box<PerfContext>> {
        Some(Box::new(PerfContext { since: read_counters() }))
    }

    fn rocksdb_perfcontext_reset(context: Option<&mut PerfContext>) {
        if let Some(context) = context {
            context.since = read_counters();
        }
    }

    fn rocksdb_perfcontext_report(context: Option<&PerfContext>, exclude_zeros: u8) -> *mut c_char {
        let Some(context) = context else { return std::ptr::null_mut() };
        let mut report = String::new();
        for (_, name, value) in context.metrics() {
            if value > 0 || exclude_zeros == 0 {
                let _ = write!(report, "{name} = {value}, ");
            }
        }
        lasting_text(&report)
    }

    fn rocksdb_perfcontext_metric(context: Option<&PerfContext>, metric: i32) -> u64 {
        let found = context.map(PerfContext::metrics);
        let found = found.iter().flatten().find(|(number, ..)| *number == metric);
        found.map_or(0, |(.., value)| *value)
    }

    fn rocksdb_perfcontext_destroy(context: Option<Box<PerfContext>>) {
        drop(context);
    }
}
