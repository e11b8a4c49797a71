//! Limits of a table's shape and of a job's size.

use terrane_base::options::{BlockEncoding, Compression, Options, ValueCompression};
use terrane_format::manifest::edit::LEVEL_MAX;
use terrane_storage::SLOT_BYTES;

use crate::pick::STEP_BYTES;

/// Limits of a table's shape and of a job. All sizes in stored bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// True if jobs are picked automatically, and not only on request.
    pub automatic: bool,
    /// Size of L1 above which its extents move down. At least 1.
    pub level_base_bytes: u64,
    /// Largest factor between a level and the one above it. At least 2.
    pub level_fanout: u64,
    /// Number of overflow runs at which their compaction comes before that of levels. At least 1.
    pub overflow_runs_trigger: u64,
    /// True if merges of overflow runs also move level 1 into level 2 if level 1 would become too large.
    pub merge_through: bool,
    /// True if range deletes over much data move down early.
    pub early_range_deletes: bool,
    /// Stored bytes, in percent of the smallest live size, above which levels are merged before they are
    /// full; 0 means no limit.
    pub space_percent_max: u64,
    /// A part of a job in parts may end after this much output.
    pub part_bytes: u64,
    /// Above this much input no further extent joins a job; one extent and those that it overlaps always fit.
    pub job_bytes_max: u64,
    /// Most extents that a job may re-link.
    pub job_relinks_max: usize,
    /// An output extent ends once it overlaps more than this in the level below its own.
    pub grandparent_bytes_max: u64,
    /// An extent with at least this many deletes per thousand entries is compacted to drop them.
    pub deletes_permille: u64,
    /// The small neighbours of a level with fewer stored bytes per thousand bytes of slots are gathered.
    pub fill_permille: u64,
    /// Entries of an output block before compression, while the data fit in memory.
    pub block_bytes: u64,
    /// The same while the data are larger than memory.
    pub block_bytes_beyond_memory: u64,
    /// Layout of output blocks.
    pub block_encoding: BlockEncoding,
    /// Bits of an output filter per key.
    pub filter_bits_per_key: u64,
    /// Compression of outputs above the last level.
    pub compression: Compression,
    /// Compression of outputs in the last level.
    pub compression_last: Compression,
    /// Compression of value tables.
    pub value_compression: ValueCompression,
    /// Values of at least this many bytes go into value tables; `u64::MAX`: none does.
    pub separate_from: u64,
    /// A value table with more dead entries per thousand is rewritten by jobs that meet it, however little
    /// space the value tables take.
    pub value_garbage_permille: u64,
    /// Value tables over one key above which they are rewritten as one.
    pub value_groups_max: usize,
    /// True if jobs that meet more of them do so.
    pub scan_optimised_values: bool,
    /// True if a job does so where scans have met more of them.
    pub scan_triggered_values: bool,
    /// True if values move only when their keys come to one of the last two levels.
    pub lazy_values: bool,
    /// True if jobs collect dead values of value tables that they meet.
    pub value_collect_riding: bool,
    /// True if jobs of their own collect dead values.
    pub value_collect_jobs: bool,
    /// Most stored bytes of value tables per thousand live ones; 0 means no limit.
    pub value_space_permille: u64,
}

/// Deepest level that a picker makes.
pub(crate) const DEPTH_MAX: usize = LEVEL_MAX as usize;

impl Limits {
    /// Derives the limits from options. Requires: `options` were resolved.
    #[must_use]
    pub fn from_options(options: &Options) -> Self {
        let slot_bytes = SLOT_BYTES as u64;
        Limits {
            automatic: options.auto_compaction,
            level_base_bytes: options.level_base_bytes.max(1),
            level_fanout: options.level_fanout.max(2),
            // Half of the number at which writers are slowed: compaction starts before writers have to wait
            // for it.
            overflow_runs_trigger: (options.overflow_runs_max / 2).max(1),
            merge_through: options.experiments.merge_through,
            early_range_deletes: options.experiments.early_range_deletes,
            space_percent_max: options.space_amplification_max_percent,
            part_bytes: options.level_base_bytes.clamp(1, STEP_BYTES),
            job_bytes_max: 64 * slot_bytes,
            job_relinks_max: 1024,
            grandparent_bytes_max: 4 * options.level_fanout * slot_bytes,
            deletes_permille: 500,
            fill_permille: 600,
            block_bytes: options.block_bytes_in_memory(),
            block_bytes_beyond_memory: options.block_bytes_beyond_memory(),
            block_encoding: options.block_encoding,
            filter_bits_per_key: options.filter_bits_per_key,
            compression: options.compression,
            compression_last: options.compression_last,
            value_compression: options.value_compression,
            separate_from: match options.value_separation_bytes {
                0 => u64::MAX,
                bytes => bytes,
            },
            value_garbage_permille: options.experiments.value_garbage_permille,
            value_groups_max: options.experiments.value_groups_max as usize,
            scan_optimised_values: options.experiments.scan_optimised_value_merge,
            scan_triggered_values: options.experiments.scan_triggered_value_merge,
            lazy_values: options.experiments.lazy_value_merge,
            value_collect_riding: options.experiments.value_collect_riding,
            value_collect_jobs: options.experiments.value_collect_jobs,
            value_space_permille: value_space_permille(options),
        }
    }
}

/// The limit of value tables: the limit of all space holds for them, too, if it is lower.
fn value_space_permille(options: &Options) -> u64 {
    let limits = [options.value_space_max_percent, options.space_amplification_max_percent];
    let percent = limits.into_iter().filter(|percent| *percent > 0).min().unwrap_or(0);
    percent.saturating_mul(10)
}
