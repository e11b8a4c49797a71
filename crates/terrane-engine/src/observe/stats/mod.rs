//! The metrics of a database: one table of names, kinds, units and sentences serves the struct, the typed
//! snapshot (`statistics.rs`), the text for Prometheus (`prometheus.rs`), the command and the page
//! `docs/metrics.md`. Those of each table are in `table.rs`. A row stands on one line: `cargo xtask tidy`
//! reads it.

mod prometheus;
mod statistics;
mod table;
pub(crate) mod written;

use terrane_base::sync::atomic::{AtomicU64, Ordering};

use terrane_base::metrics::{Histogram, HistogramSnapshot, Metric, MetricKind, MetricScope};
use terrane_storage::RemoteReads;

pub(crate) use statistics::numbers;
pub use statistics::{MetricValue, Sample, Statistics, TableStatistics, metrics};
pub(crate) use table::TableCounters;
pub use table::TableStats;

/// The kind that a row names.
macro_rules! kind {
    (counter) => {
        MetricKind::Counter
    };
    (gauge) => {
        MetricKind::Gauge
    };
}
pub(crate) use kind;

macro_rules! numbers {
    ($( $name:ident, $kind:ident, $unit:literal, $about:literal; )*) => {
        /// Numbers that the engine's parts add to.
        #[derive(Debug, Default)]
        pub(crate) struct Counters { $( pub(crate) $name: AtomicU64, )* }

        /// Counts of the engine since it was opened.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            $( #[doc = $about] #[doc = concat!("\n\nUnit: ", $unit, ".")] pub $name: u64, )*
        }

        /// The numbers of a database.
        pub(crate) const NUMBERS: &[Metric] = &[ $(
            Metric::new(stringify!($name), MetricScope::Database, kind!($kind), $unit, $about),
        )* ];

        impl Counters {
            pub(crate) fn snapshot(&self) -> Stats {
                Stats { $( $name: self.$name.load(Ordering::Relaxed), )* }
            }
        }

        impl Stats {
            /// Every number: name, unit, value and one sentence.
            #[must_use]
            pub fn rows(&self) -> Vec<(&'static str, &'static str, u64, &'static str)> {
                vec![ $( (stringify!($name), $unit, self.$name, $about), )* ]
            }
        }
    };
}

macro_rules! histograms {
    ($( $name:ident, histogram, $unit:literal, $about:literal; )*) => {
        /// Distributions that the engine's parts add to.
        #[derive(Debug, Default)]
        pub(crate) struct Histograms { $( pub(crate) $name: Histogram, )* }

        /// The distributions of a database.
        pub(crate) const HISTOGRAMS: &[Metric] = &[ $(
            Metric::new(stringify!($name), MetricScope::Database, MetricKind::Histogram, $unit, $about),
        )* ];

        impl Histograms {
            pub(crate) fn snapshots(&self) -> Vec<HistogramSnapshot> {
                vec![ $( self.$name.snapshot(), )* ]
            }
        }
    };
}

numbers! {
    batches_written, counter, "batches", "Batches committed.";
    records_written, counter, "records", "Records committed.";
    bytes_written, counter, "bytes", "Encoded bytes of the records committed.";
    writes_paused_micros, counter, "microseconds", "Time writers were held back because the background was behind.";
    memtables_frozen, counter, "memtables", "Memtables switched because they were full or on request.";
    index_merges, counter, "memtables", "Frozen memtables merged by pointer into a generation of the global index.";
    flushes, counter, "generations", "Generations of the global index merged into level 1.";
    flush_steps, counter, "steps", "Ranges of a generation merged, each with one manifest edit.";
    flush_bytes_written, counter, "bytes", "Bytes that flush steps wrote.";
    overflow_runs_written, counter, "runs", "Generations written as an overflow run instead of being merged with level 1.";
    compactions, counter, "jobs", "Compaction jobs committed.";
    compactions_elsewhere, counter, "jobs", "Compaction jobs that workers on other machines did; among the jobs committed.";
    compactions_fallen_back, counter, "jobs", "Compaction jobs that were offered to workers, and done here because none did them.";
    compaction_attempts_lost, counter, "attempts", "Attempts of workers at compaction jobs that ended without a result.";
    compaction_bytes_read, counter, "bytes", "Bytes that compaction jobs read.";
    compaction_bytes_written, counter, "bytes", "Bytes that compaction jobs wrote.";
    bytes_reused, counter, "bytes", "Bytes that flush and compaction took over undecoded: re-linked extents, copied blocks.";
    operands_folded, counter, "operands", "Operands of merges that flush and compaction folded, with others or with a value.";
    values_separated, counter, "values", "Values that flush and compaction moved from their entries into value tables.";
    values_moved, counter, "values", "Separated values that flush and compaction moved into new value tables.";
    value_bytes_written, counter, "bytes", "Stored bytes of value tables that flush and compaction wrote.";
    folds_failed, counter, "folds", "Times that a merge operator failed or panicked in flush or compaction: its operands stayed.";
    files_ingested, counter, "files", "External files taken in.";
    extents_ingested, counter, "extents", "Extents that came in without passing through memory: of external files and bulk loads.";
    extents_dropped, counter, "extents", "Extents dropped whole because they lay within a range that was given up.";
    entries_expired, counter, "entries", "Entries that flush and compaction dropped, or turned to deletes, because they had expired.";
    entries_filtered, counter, "rows", "Rows that compaction filters took out or changed.";
    adaptive_switches, counter, "switches", "Times that a table entered or left read-heavy mode.";
    adaptive_flushes, counter, "flushes", "Flushes asked for because a table is mostly read.";
    scan_flushes, counter, "flushes", "Flushes asked for because scans stepped over more versions in memory than are there.";
    adaptive_jobs, counter, "jobs", "Compaction jobs that only gave reads fewer sorted runs; among the jobs committed.";
    stalls, counter, "stalls", "Times that writers began to be held back after a second in which no writer was.";
    events_dropped, counter, "events", "Events that no listener heard because too many waited.";
    listener_panics, counter, "calls", "Calls of listeners that panicked.";
    ticket_panics, counter, "calls", "Callbacks of asynchronous writes that panicked.";
    slow_operations, counter, "operations", "Operations that took longer than diagnostics.slow_read_micros, slow_write_micros, slow_scan_micros and slow_job_micros say.";
    background_errors, counter, "errors", "Background jobs that failed and will be tried again.";
    metrics_page_errors, counter, "pages", "Pages of metrics for other processes that could not be written.";
    scrub_extents, counter, "extents", "Extents that scrubbing verified.";
    scrub_bytes, counter, "bytes", "Bytes that scrubbing read and verified.";
    scrub_passes, counter, "passes", "Times that scrubbing went through every table.";
    scrub_findings, counter, "findings", "Damaged parts of extents that scrubbing found.";
    segments_trimmed, counter, "segments", "Journal segments given back because all their records are in the levels.";
    segments_kept, counter, "segments", "Of these, segments that became history for readers of changes.";
    history_segments, gauge, "segments", "Segments that are history now.";
    history_bytes, gauge, "bytes", "Bytes of their files.";
    batches_read_as_changes, counter, "batches", "Batches delivered to readers of changes.";
    cache_bytes, gauge, "bytes", "Memory of cached blocks, index blocks, filters and range deletes now.";
    cache_accounting_bytes, gauge, "bytes", "Memory of the cache's own structures, such as shards and counters; not part of cache_bytes.";
    blocks_replaced, counter, "blocks", "Blocks written by flush and compaction that took the place of cached ones.";
    cache_misses, counter, "blocks", "Blocks, index blocks and filters read from the store.";
    memory_bytes, gauge, "bytes", "All memory under the ceiling that is in use now.";
    memory_journal_bytes, gauge, "bytes", "Of these, memory of journal segments: the records that are not in the levels yet.";
    memory_index_bytes, gauge, "bytes", "Of these, memory of the indexes over records in segments.";
    memory_held_bytes, gauge, "bytes", "Memory of indexes that left their table, and of trimmed segments that are not used again, which readers still hold. It does not count as part of memory_bytes; the cache shrinks by as much.";
    memory_limit_bytes, gauge, "bytes", "The ceiling of that memory now: the option memory_bytes, or what it was changed to.";
    memory_bytes_max, gauge, "bytes", "The most of that memory that was in use when it was measured: writers measure every 256 KiB, jobs at their end.";
    store_bytes, gauge, "bytes", "Bytes of the data files.";
    store_live_bytes, gauge, "bytes", "Bytes of extents in use, those that only readers of older read views still need included.";
    tier_hits, counter, "reads", "Reads of extents in a bucket that the cache on local disk, the tier, answered.";
    tier_misses, counter, "reads", "Reads of extents in a bucket that the tier did not answer; 0 without a tier.";
    tier_bytes_read, counter, "bytes", "Bytes with which the tier answered.";
    tier_bytes_written, counter, "bytes", "Bytes of frames that were written to the tier.";
    tier_bytes_dropped, counter, "bytes", "Bytes that were not written to the tier because too many waited.";
    tier_frames_damaged, counter, "frames", "Frames of the tier that were torn, damaged or exchanged: misses.";
    tier_frames_evicted, counter, "frames", "Frames that left the tier for others.";
    tier_frames, gauge, "frames", "Frames that the tier has now; 64 KiB each at most.";
    reads_hedged, counter, "reads", "Reads of objects that were asked for a second time because the answer took longer than 95 of 100 do.";
    read_hedges_won, counter, "reads", "Of these, reads that the second request answered.";
    pressure_permille, gauge, "thousandths", "How far the background is behind: at 1000 writers wait for memory, below they are slowed.";
    records_recovered, counter, "records", "Records replayed from segments at open.";
    segment_bytes_recovered, counter, "bytes", "Bytes of segments replayed at open.";
    records_behind_break, counter, "records", "Sound records behind a break of the journal that the opening did not bring back.";
    records_behind_break_lost, counter, "records", "Of these, records that an opening for writing did not set aside for repair either: they are lost.";
    device_journal_bytes_written, counter, "bytes", "Bytes appended to segments, group and segment headers included.";
    device_journal_writes, counter, "calls", "Appends to segments, each one commit group, header or mark; stores into mapped memory.";
    device_journal_syncs, counter, "calls", "Syncs of segments and of their directory.";
    device_manifest_bytes_written, counter, "bytes", "Bytes written to the manifest.";
    device_manifest_writes, counter, "calls", "Writes to the manifest.";
    device_manifest_syncs, counter, "calls", "Syncs of the manifest and of its directory.";
    device_flush_bytes_read, counter, "bytes", "Bytes that flushes read: extents of level 1 that they merge with.";
    device_flush_reads, counter, "calls", "Reads of flushes.";
    device_flush_bytes_written, counter, "bytes", "Bytes of extents that flushes wrote, those of cancelled steps included.";
    device_flush_writes, counter, "calls", "Extents that flushes wrote.";
    device_flush_syncs, counter, "calls", "Syncs of the store that flushes asked for.";
    device_compaction_bytes_read, counter, "bytes", "Bytes that compactions read, index blocks included.";
    device_compaction_reads, counter, "calls", "Reads of compactions.";
    device_compaction_bytes_written, counter, "bytes", "Bytes of extents that compactions wrote, those of cancelled jobs included.";
    device_compaction_writes, counter, "calls", "Extents that compactions wrote.";
    device_compaction_syncs, counter, "calls", "Syncs of the store that compactions asked for.";
    device_user_bytes_read, counter, "bytes", "Bytes that point reads and scans which missed the cache read, and checks.";
    device_user_reads, counter, "calls", "Reads of the store for point reads, scans and checks.";
    device_user_batches, counter, "calls", "Calls that made several of these reads at once.";
    device_ring_reads, counter, "calls", "Reads of such calls that went by io_uring; the others were made one after the other.";
    transactions_begun, counter, "transactions", "Transactions begun.";
    transactions_committed, counter, "transactions", "Transactions committed, prepared ones included.";
    transaction_conflicts, counter, "conflicts", "Checks of transactions that failed because of what others committed.";
    transaction_deadlocks, counter, "deadlocks", "Waits for a lock that were refused because they closed a cycle of waiters.";
    transaction_timeouts, counter, "waits", "Waits for a lock or for a prepared transaction that took too long, of plain writes included.";
    transactions_live, gauge, "transactions", "Transactions that are running or prepared now.";
    transactions_prepared, gauge, "transactions", "Transactions that are prepared now.";
    transaction_window_bytes, gauge, "bytes", "Memory of the keys of commits that are kept for the checks of transactions now.";
    readers_live, gauge, "readers", "Snapshots, transactions, and scans with a moment of their own.";
    readers_expired, counter, "readers", "Readers that got older than the option reader_age_max_ms allows.";
    reader_age_micros, gauge, "microseconds", "Age of the oldest reader.";
    open_micros, gauge, "microseconds", "Time the open took.";
}

histograms! {
    get_nanos, histogram, "nanoseconds", "Time that point reads took, of samples: about one in 64 of each thread, its first one included. Others read no clock.";
    commit_nanos, histogram, "nanoseconds", "Time from the call of a write or a commit of a transaction to its return, waits and syncs included, of samples as those of reads.";
    write_wait_micros, histogram, "microseconds", "Time that pacing and the wait for memory held back each write that they held back at all; locks and the device not counted.";
    flush_micros, histogram, "microseconds", "Time that each flush took, failed and cancelled ones included.";
    compaction_micros, histogram, "microseconds", "Time that each compaction job took, failed and cancelled ones included.";
}

impl Stats {
    /// Takes in the counts of reads of extents in a bucket.
    pub(crate) fn show_remote_reads(&mut self, reads: &RemoteReads) {
        debug_assert!(reads.hedges_won <= reads.hedged, "a hedge that won was made");
        self.tier_hits = reads.tier_hits;
        self.tier_misses = reads.tier_misses;
        self.tier_bytes_read = reads.tier_bytes_read;
        self.tier_bytes_written = reads.tier_bytes_written;
        self.tier_bytes_dropped = reads.tier_bytes_dropped;
        self.tier_frames_damaged = reads.tier_frames_damaged;
        self.tier_frames_evicted = reads.tier_frames_evicted;
        self.tier_frames = reads.tier_frames;
        self.reads_hedged = reads.hedged;
        self.read_hedges_won = reads.hedges_won;
    }

    /// Bytes written to the device: journal, manifest, flush and compaction. Divided by the bytes that a user
    /// wrote it is the write amplification.
    ///
    /// ```
    /// # use terrane_engine::Stats;
    /// fn write_amplification(stats: &Stats) -> f64 {
    ///     stats.device_bytes_written() as f64 / stats.bytes_written.max(1) as f64
    /// }
    /// assert_eq!(write_amplification(&Stats::default()), 0.0);
    /// ```
    #[must_use]
    pub fn device_bytes_written(&self) -> u64 {
        self.device_journal_bytes_written
            + self.device_manifest_bytes_written
            + self.device_flush_bytes_written
            + self.device_compaction_bytes_written
    }
}

/// Adds to a counter.
#[inline]
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}
