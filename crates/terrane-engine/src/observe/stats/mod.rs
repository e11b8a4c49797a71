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
use terrane_storage::{BucketPart, BucketRequests, PartRequests, RemoteReads};

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
    batches_written, counter, "batches", "Batches that were committed.";
    records_written, counter, "records", "Records that were committed.";
    bytes_written, counter, "bytes", "Encoded bytes of the committed records.";
    writes_paused_micros, counter, "microseconds", "Time that writers waited because flush and compaction were behind.";
    memtables_frozen, counter, "memtables", "Memtables that were frozen because they were full or a caller requested it.";
    index_merges, counter, "memtables", "Frozen memtables that were merged by pointer into a generation of the global index.";
    flushes, counter, "generations", "Generations of the global index that were merged into level 1.";
    flush_steps, counter, "steps", "Steps of flushes: each merges a range of a generation and makes one manifest edit.";
    flush_bytes_written, counter, "bytes", "Bytes that flush steps wrote.";
    overflow_runs_written, counter, "runs", "Generations that were written as an overflow run and not merged with level 1.";
    compactions, counter, "jobs", "Compaction jobs that were committed.";
    compactions_elsewhere, counter, "jobs", "Compaction jobs that workers on other machines ran; compactions includes them.";
    compactions_fallen_back, counter, "jobs", "Compaction jobs that the writer offered to workers and then ran itself, because no worker finished them.";
    compaction_attempts_lost, counter, "attempts", "Attempts of workers at compaction jobs that ended without a result.";
    compaction_bytes_read, counter, "bytes", "Bytes that compaction jobs read.";
    compaction_bytes_written, counter, "bytes", "Bytes that compaction jobs wrote.";
    bytes_reused, counter, "bytes", "Bytes that flush and compaction reused undecoded: re-linked extents and copied blocks.";
    operands_folded, counter, "operands", "Merge operands that flush and compaction folded with other operands or with a value.";
    values_separated, counter, "values", "Values that flush and compaction moved from their entries into value tables.";
    values_moved, counter, "values", "Separated values that flush and compaction moved into new value tables.";
    value_bytes_written, counter, "bytes", "Stored bytes of value tables that flush and compaction wrote.";
    folds_failed, counter, "folds", "Times that a merge operator failed or panicked in flush or compaction; its operands stayed.";
    files_ingested, counter, "files", "External files that were ingested.";
    extents_ingested, counter, "extents", "Extents of external files and bulk loads, which became part of tables without passing through memory.";
    extents_dropped, counter, "extents", "Extents that were dropped as a whole because they lay within a range that a caller dropped.";
    entries_expired, counter, "entries", "Entries that flush and compaction dropped, or changed to deletes, because they had expired.";
    entries_filtered, counter, "rows", "Rows that compaction filters dropped or changed.";
    adaptive_switches, counter, "switches", "Times that a table entered or left read-heavy mode.";
    adaptive_flushes, counter, "flushes", "Flushes that were requested because a table is mostly read.";
    scan_flushes, counter, "flushes", "Flushes that were requested because scans stepped over more versions than the table has in memory.";
    adaptive_jobs, counter, "jobs", "Compaction jobs whose only purpose is fewer sorted runs for reads; compactions includes them.";
    stalls, counter, "stalls", "Times that writers began to wait after a second in which no writer waited.";
    events_dropped, counter, "events", "Events that were dropped, without a call of a listener, because too many events waited.";
    listener_panics, counter, "calls", "Calls of listeners that panicked.";
    ticket_panics, counter, "calls", "Callbacks of asynchronous writes that panicked.";
    slow_operations, counter, "operations", "Operations that took longer than the options diagnostics.slow_read_micros, slow_write_micros, slow_scan_micros and slow_job_micros allow.";
    background_errors, counter, "errors", "Background jobs that failed and will be retried.";
    metrics_page_errors, counter, "pages", "Pages of metrics for other processes that could not be written.";
    scrub_extents, counter, "extents", "Extents that scrubbing verified.";
    scrub_bytes, counter, "bytes", "Bytes that scrubbing read and verified.";
    scrub_passes, counter, "passes", "Times that scrubbing verified every table.";
    scrub_findings, counter, "findings", "Damaged parts of extents that scrubbing found.";
    segments_trimmed, counter, "segments", "Journal segments that were freed because all their records are in the levels.";
    segments_kept, counter, "segments", "Trimmed segments that became history for readers of changes.";
    history_segments, gauge, "segments", "Segments that are history now.";
    history_bytes, gauge, "bytes", "Bytes of the files of history segments.";
    batches_read_as_changes, counter, "batches", "Batches delivered to readers of changes.";
    cache_bytes, gauge, "bytes", "Memory of cached blocks, index blocks, filters and range deletes now.";
    cache_accounting_bytes, gauge, "bytes", "Memory of the cache's own structures, such as shards and counters; not part of cache_bytes.";
    blocks_replaced, counter, "blocks", "Blocks that flush and compaction wrote and that replaced cached blocks.";
    cache_misses, counter, "blocks", "Blocks, index blocks and filters read from the store.";
    memory_bytes, gauge, "bytes", "Memory in use now, as far as it counts against memory_limit_bytes.";
    memory_journal_bytes, gauge, "bytes", "Part of memory_bytes: memory of journal segments with records that are not in the levels yet.";
    memory_index_bytes, gauge, "bytes", "Part of memory_bytes: memory of the indexes over records in segments.";
    memory_held_bytes, gauge, "bytes", "Memory that readers still hold: indexes that left their table, and trimmed segments that are not reused. It is not part of memory_bytes; the cache is smaller by this amount.";
    memory_limit_bytes, gauge, "bytes", "The ceiling of memory_bytes now: the option memory_bytes, or the value that a caller has set since.";
    memory_bytes_max, gauge, "bytes", "The greatest measured value of memory_bytes: writers measure every 256 KiB, jobs at their end.";
    store_bytes, gauge, "bytes", "Bytes of the data files.";
    store_live_bytes, gauge, "bytes", "Bytes of extents in use, including extents that only readers of older read views need.";
    tier_hits, counter, "reads", "Reads of extents in a bucket that the tier, the cache on local disk, answered.";
    tier_misses, counter, "reads", "Reads of extents in a bucket that the tier did not answer; 0 without a tier.";
    tier_bytes_read, counter, "bytes", "Bytes of the answers of the tier.";
    tier_bytes_written, counter, "bytes", "Bytes of frames that were written to the tier.";
    tier_bytes_dropped, counter, "bytes", "Bytes that were not written to the tier because too many bytes waited.";
    tier_frames_damaged, counter, "frames", "Reads of frames of the tier that were torn, damaged or not the expected frame; they count as misses.";
    tier_frames_evicted, counter, "frames", "Frames that were evicted from the tier to make room for other frames.";
    tier_frames, gauge, "frames", "Frames in the tier now; each has at most 64 KiB.";
    object_bytes, gauge, "bytes", "Bytes of the data objects of the database in its bucket, with those of freed extents in them; without objects that are garbage as a whole, and without those of the originals of a clone.";
    reads_hedged, counter, "reads", "Reads of objects that were requested a second time, because the first answer took longer than 95 of 100 answers take.";
    read_hedges_won, counter, "reads", "Hedged reads that the second request answered.";
    bucket_journal_creates, counter, "requests", "Requests to buckets that create objects of the journal.";
    bucket_journal_reads, counter, "requests", "Requests to buckets that read ranges of objects of the journal.";
    bucket_journal_lists, counter, "requests", "Requests to buckets that list objects of the journal: one for each thousand.";
    bucket_journal_deletes, counter, "requests", "Requests to buckets that delete objects of the journal: one for each thousand.";
    bucket_journal_bytes_sent, counter, "bytes", "Bytes of objects of the journal that were sent to buckets.";
    bucket_journal_bytes_received, counter, "bytes", "Bytes of objects of the journal that buckets answered with.";
    bucket_manifest_creates, counter, "requests", "Requests to buckets that create objects of the manifest.";
    bucket_manifest_reads, counter, "requests", "Requests to buckets that read ranges of objects of the manifest.";
    bucket_manifest_lists, counter, "requests", "Requests to buckets that list objects of the manifest: one for each thousand.";
    bucket_manifest_deletes, counter, "requests", "Requests to buckets that delete objects of the manifest: one for each thousand.";
    bucket_manifest_bytes_sent, counter, "bytes", "Bytes of objects of the manifest that were sent to buckets.";
    bucket_manifest_bytes_received, counter, "bytes", "Bytes of objects of the manifest that buckets answered with.";
    bucket_data_creates, counter, "requests", "Requests to buckets that create objects with extents.";
    bucket_data_reads, counter, "requests", "Requests to buckets that read ranges of objects with extents.";
    bucket_data_lists, counter, "requests", "Requests to buckets that list objects with extents: one for each thousand.";
    bucket_data_deletes, counter, "requests", "Requests to buckets that delete objects with extents: one for each thousand.";
    bucket_data_bytes_sent, counter, "bytes", "Bytes of objects with extents that were sent to buckets.";
    bucket_data_bytes_received, counter, "bytes", "Bytes of objects with extents that buckets answered with.";
    bucket_jobs_creates, counter, "requests", "Requests to buckets that create objects of compaction jobs.";
    bucket_jobs_reads, counter, "requests", "Requests to buckets that read ranges of objects of compaction jobs.";
    bucket_jobs_lists, counter, "requests", "Requests to buckets that list objects of compaction jobs: one for each thousand.";
    bucket_jobs_deletes, counter, "requests", "Requests to buckets that delete objects of compaction jobs: one for each thousand.";
    bucket_jobs_bytes_sent, counter, "bytes", "Bytes of objects of compaction jobs that were sent to buckets.";
    bucket_jobs_bytes_received, counter, "bytes", "Bytes of objects of compaction jobs that buckets answered with.";
    bucket_other_creates, counter, "requests", "Requests to buckets that create objects of other kinds, such as lists of garbage, pins and checks of the bucket.";
    bucket_other_reads, counter, "requests", "Requests to buckets that read ranges of objects of other kinds, such as lists of garbage, pins and checks of the bucket.";
    bucket_other_lists, counter, "requests", "Requests to buckets that list objects of other kinds, such as lists of garbage, pins and checks of the bucket: one for each thousand.";
    bucket_other_deletes, counter, "requests", "Requests to buckets that delete objects of other kinds, such as lists of garbage, pins and checks of the bucket: one for each thousand.";
    bucket_other_bytes_sent, counter, "bytes", "Bytes of objects of other kinds, such as lists of garbage, pins and checks of the bucket that were sent to buckets.";
    bucket_other_bytes_received, counter, "bytes", "Bytes of objects of other kinds, such as lists of garbage, pins and checks of the bucket that buckets answered with.";
    process_cpu_micros, counter, "microseconds", "Processor time of the whole process since the opening, in the program and in the kernel.";
    pressure_permille, gauge, "thousandths", "How far flush and compaction are behind: from 1000 on writers wait for memory, below 1000 they are slowed.";
    records_recovered, counter, "records", "Records that the opening replayed from segments.";
    segment_bytes_recovered, counter, "bytes", "Bytes of segments that the opening replayed.";
    records_behind_break, counter, "records", "Sound records behind a break of the journal, which the opening did not recover.";
    records_behind_break_lost, counter, "records", "Records behind a break that an opening for writing did not set aside for repair: they are lost.";
    device_journal_bytes_written, counter, "bytes", "Bytes appended to segments, including group and segment headers.";
    device_journal_writes, counter, "calls", "Appends to segments by a write call or by stores to mapped memory: each is a commit group, a header or a mark.";
    device_journal_syncs, counter, "calls", "Syncs of segments and of their directory.";
    device_manifest_bytes_written, counter, "bytes", "Bytes written to the manifest.";
    device_manifest_writes, counter, "calls", "Writes to the manifest.";
    device_manifest_syncs, counter, "calls", "Syncs of the manifest and of its directory.";
    device_flush_bytes_read, counter, "bytes", "Bytes that flushes read: extents of level 1 that they merge with.";
    device_flush_reads, counter, "calls", "Reads of flushes.";
    device_flush_bytes_written, counter, "bytes", "Bytes of extents that flushes wrote, including cancelled steps.";
    device_flush_writes, counter, "calls", "Extents that flushes wrote.";
    device_flush_syncs, counter, "calls", "Syncs of the store for flushes.";
    device_compaction_bytes_read, counter, "bytes", "Bytes that compactions read, including index blocks.";
    device_compaction_reads, counter, "calls", "Reads of compactions.";
    device_compaction_bytes_written, counter, "bytes", "Bytes of extents that compactions wrote, including cancelled jobs.";
    device_compaction_writes, counter, "calls", "Extents that compactions wrote.";
    device_compaction_syncs, counter, "calls", "Syncs of the store for compactions.";
    device_user_bytes_read, counter, "bytes", "Bytes that were read for checks, and for point reads and scans that missed the cache.";
    device_user_reads, counter, "calls", "Reads of the store for point reads, scans and checks.";
    device_user_batches, counter, "calls", "Calls that requested several of these reads at once.";
    device_ring_reads, counter, "calls", "Reads of these calls that used io_uring; the other reads ran one after the other.";
    transactions_begun, counter, "transactions", "Transactions that began.";
    transactions_committed, counter, "transactions", "Transactions that committed, including prepared ones.";
    transaction_conflicts, counter, "conflicts", "Checks of transactions that failed because of commits of other writers.";
    transaction_deadlocks, counter, "deadlocks", "Waits for a lock that were refused because they would close a cycle of waiting transactions.";
    transaction_timeouts, counter, "waits", "Waits for a lock or for a prepared transaction that took too long, including waits of plain writes.";
    transactions_live, gauge, "transactions", "Transactions that are running or prepared now.";
    transactions_prepared, gauge, "transactions", "Transactions that are prepared now.";
    transaction_window_bytes, gauge, "bytes", "Memory of the keys of commits that are kept now to check transactions.";
    readers_live, gauge, "readers", "Live snapshots, transactions, and scans with a moment of their own.";
    readers_expired, counter, "readers", "Readers that became older than the option reader_age_max_ms allows.";
    reader_age_micros, gauge, "microseconds", "Age of the oldest reader.";
    open_micros, gauge, "microseconds", "Duration of the opening.";
}

histograms! {
    get_nanos, histogram, "nanoseconds", "Duration of point reads, for samples: about one in 64 of each thread, including its first one. Other reads read no clock.";
    commit_nanos, histogram, "nanoseconds", "Duration of a write or of a commit of a transaction, from the call to its return, including waits and syncs; for samples as in get_nanos.";
    write_wait_micros, histogram, "microseconds", "Time that a delayed write waited for its rate and for memory; waits for locks and for the device are not included.";
    flush_micros, histogram, "microseconds", "Duration of each flush, including failed and cancelled ones.";
    compaction_micros, histogram, "microseconds", "Duration of each compaction job, including failed and cancelled ones.";
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
        self.object_bytes = reads.object_bytes;
    }

    /// Takes in the counts of requests to buckets.
    pub(crate) fn show_requests(&mut self, requests: &BucketRequests) {
        [
            self.bucket_journal_creates,
            self.bucket_journal_reads,
            self.bucket_journal_lists,
            self.bucket_journal_deletes,
            self.bucket_journal_bytes_sent,
            self.bucket_journal_bytes_received,
        ] = numbers_of(requests.part(BucketPart::Journal));
        [
            self.bucket_manifest_creates,
            self.bucket_manifest_reads,
            self.bucket_manifest_lists,
            self.bucket_manifest_deletes,
            self.bucket_manifest_bytes_sent,
            self.bucket_manifest_bytes_received,
        ] = numbers_of(requests.part(BucketPart::Manifest));
        [
            self.bucket_data_creates,
            self.bucket_data_reads,
            self.bucket_data_lists,
            self.bucket_data_deletes,
            self.bucket_data_bytes_sent,
            self.bucket_data_bytes_received,
        ] = numbers_of(requests.part(BucketPart::Data));
        [
            self.bucket_jobs_creates,
            self.bucket_jobs_reads,
            self.bucket_jobs_lists,
            self.bucket_jobs_deletes,
            self.bucket_jobs_bytes_sent,
            self.bucket_jobs_bytes_received,
        ] = numbers_of(requests.part(BucketPart::Jobs));
        [
            self.bucket_other_creates,
            self.bucket_other_reads,
            self.bucket_other_lists,
            self.bucket_other_deletes,
            self.bucket_other_bytes_sent,
            self.bucket_other_bytes_received,
        ] = numbers_of(requests.part(BucketPart::Other));
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

/// In the order of the rows of each part.
fn numbers_of(requests: &PartRequests) -> [u64; 6] {
    let PartRequests { creates, reads, lists, deletes, bytes_sent, bytes_received } = *requests;
    [creates, reads, lists, deletes, bytes_sent, bytes_received]
}

/// Adds to a counter.
#[inline]
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}
