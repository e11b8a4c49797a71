//! Settings that are not for ordinary use: switches of mechanisms that the benchmarks compare the engine with
//! and without.
//!
//! Each default is what won, or did not lose, in the comparisons of `docs/design`. A row may change or go in
//! any version. They are not stored with a database; a backup notes those that were not at their default.

use super::{BlockMemory, OptionInfo, SearchKernel};

options! {
    /// Switches for comparisons and tests: [`Options::experiments`](super::Options::experiments).
    ///
    /// ```
    /// use terrane_base::options::Options;
    /// let mut options = Options::default();
    /// options.set("experiments.hot_cold", "true")?;
    /// assert!(options.experiments.hot_cold);
    /// # Ok::<(), terrane_base::Error>(())
    /// ```
    struct Experiments "experiments.";
    adaptive_memory: bool = true, "true, false", |_| true,
        "Lend unused write memory, and half of the job memory while no job runs, to the block cache; it is returned when writers or jobs need it.";
    write_memory_yields: bool = true, "true, false", |_| true,
        "Shrink the write memory by up to half while reads miss the block cache.";
    idle_flush: bool = true, "true, false", |_| true,
        "Flush the memtables when there were no writes for a while and the block cache is full, so that readers can use their memory.";
    scan_flush: bool = true, "true, false", |_| true,
        "Flush a table when scans have skipped more deleted versions in its memtables than these have records.";
    return_freed_memory: bool = true, "true, false", |_| true,
        "Make the allocator return freed memory to the system after the block cache has shrunk.";
    pmem_buffered: bool = false, "true, false", |_| true,
        "Fence a pool of persistent memory that is a plain file by instructions only: commits survive the death of the process, synced or not, and no loss of power.";
    idle_reclaim: bool = true, "true, false", |_| true,
        "Free spare journal segments and unused slots of data files on the device when there were no writes for a while and no job is due.";
    incremental_replacement: bool = true, "true, false", |_| true,
        "After flush and compaction, replace cached blocks of the inputs by the new blocks at once.";
    warm_outputs: bool = true, "true, false", |_| true,
        "Keep index blocks and filters that flush and compaction write in the block cache, before a read needs them.";
    early_range_deletes: bool = true, "true, false", |_| true,
        "Merge range deletes early, before other levels, if they hide much more than the merge writes.";
    expiry_compaction: bool = true, "true, false", |_| true,
        "When no job is due, compact extents most of whose values have expired, to free their space even without writes.";
    search_kernel: SearchKernel = SearchKernel::Auto, "auto, scalar, sse2, avx2, avx512, neon", |_| true,
        "Instructions that search blocks in this process, for every database that it opens; refused if the processor lacks them.";
    memtable_filter: bool = true, "true, false", |_| true,
        "Keep a filter over the keys of each memtable, about 2 bytes for each, so that reads of absent keys skip it.";
    adaptive_filters: bool = true, "true, false", |_| true,
        "Skip the filters of levels in which they rarely exclude a key, by recent counts.";
    interleaved_multi_get: bool = true, "true, false", |_| true,
        "Interleave the lookups of a multi_get, so that their cache misses overlap.";
    hot_cold: bool = false, "true, false", |_| true,
        "Keep extents that are read often in the upper levels and move the others down.";
    defer_merges: bool = true, "true, false", |_| true,
        "Under heavy writes, collect overflow runs until they are due instead of merging each into level 1.";
    always_overflow: bool = false, "true, false", |_| true,
        "Write every flush as an overflow run (level 0), as an engine with an unordered first level does, instead of merging it with level 1.";
    merge_through: bool = true, "true, false", |_| true,
        "Under heavy writes, let level 1 grow to twice its size, then merge it with overflow runs and level 2 at once.";
    lazy_value_merge: bool = true, "true, false", |_| true,
        "Move separated values only when their keys come to one of the last two levels, from level 2 on.";
    value_groups_max: u64 = 10, "1 to 100000", |v| (1..=100_000).contains(v),
        "Value tables over one range of keys above which scan_triggered_value_merge and scan_optimised_value_merge rewrite its values.";
    scan_triggered_value_merge: bool = true, "true, false", |_| true,
        "Rewrite the separated values of a range of keys in the order of the keys, after scans have met more than value_groups_max value tables there.";
    scan_optimised_value_merge: bool = false, "true, false", |_| true,
        "Rewrite separated values wherever a compaction meets more than value_groups_max value tables over one key, scanned or not.";
    value_garbage_permille: u64 = 800, "1 to 1000", |v| (1..=1000).contains(v),
        "Dead entries per thousand of a value table above which compactions that meet it rewrite its live values, even if value tables take little space.";
    value_collect_riding: bool = true, "true, false", |_| true,
        "Let flush and compaction move the values of value tables that they meet to keep value_space_max_percent.";
    value_collect_jobs: bool = true, "true, false", |_| true,
        "Collect dead values by jobs of their own where value_space_max_percent would be passed.";
    block_memory: BlockMemory = BlockMemory::Arena, "arena, heap", |_| true,
        "Memory of cached blocks: chunks (of 2 MiB on huge pages if the cache has 40 MiB or more of its own, smaller ones below), or one heap allocation each.";
    replay_threads: u64 = 0, "0 (derived: the processors, up to 64) to 64", |v| *v <= 64,
        "Threads that check and index the segments of the journal when the database is opened.";
    background_nice: u64 = 10, "0 to 19", |v| *v <= 19,
        "Nice value of the threads for flush and compaction: higher gives other threads more processor time.";
    operand_folding: bool = true, "true, false", |_| true,
        "Let flush and compaction fold operands of merges; off, only reads do.";
}

impl Experiments {
    /// The prefix of the names of experiments in `name=value`.
    pub(super) const PREFIX: &'static str = "experiments.";

    /// Descriptions of all experiments.
    ///
    /// ```
    /// # use terrane_base::options::Experiments;
    /// for option in Experiments::describe() {
    ///     println!("{}={}: {}", option.name, option.default, option.about);
    /// }
    /// # assert!(Experiments::describe().iter().all(|option| option.name.starts_with("experiments.")));
    /// ```
    #[must_use]
    pub fn describe() -> Vec<OptionInfo> {
        Experiments::describe_listed()
    }
}
