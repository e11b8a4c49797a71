//! What the engine counted since it was opened. One table of names, units and sentences serves the struct, the
//! text form and the documentation.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($( $name:ident, $unit:literal, $about:literal; )*) => {
        /// Counters that the engine's parts add to.
        #[derive(Debug, Default)]
        pub(crate) struct Counters { $( pub(crate) $name: AtomicU64, )* }

        /// What the engine counted since it was opened.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            $( #[doc = $about] #[doc = concat!("\n\nUnit: ", $unit, ".")] pub $name: u64, )*
        }

        impl Counters {
            pub(crate) fn snapshot(&self) -> Stats {
                Stats { $( $name: self.$name.load(Ordering::Relaxed), )* }
            }
        }

        impl Stats {
            /// Every counter: name, unit, value and one sentence.
            #[must_use]
            pub fn rows(&self) -> Vec<(&'static str, &'static str, u64, &'static str)> {
                vec![ $( (stringify!($name), $unit, self.$name, $about), )* ]
            }
        }
    };
}

counters! {
    batches_written, "batches", "Batches committed.";
    records_written, "records", "Records committed.";
    bytes_written, "bytes", "Encoded bytes of the records committed.";
    writes_paused_micros, "microseconds", "Time writers were held back because the background was behind.";
    memtables_frozen, "memtables", "Memtables switched because they were full or on request.";
    index_merges, "memtables", "Frozen memtables merged by pointer into a generation of the global index.";
    flushes, "generations", "Generations of the global index merged into level 1.";
    flush_steps, "steps", "Ranges of a generation merged, each with one manifest edit.";
    flush_bytes_written, "bytes", "Bytes that flush steps wrote.";
    overflow_runs_written, "runs", "Generations written as an overflow run because level 1 was behind.";
    compactions, "jobs", "Compaction jobs committed.";
    compaction_bytes_read, "bytes", "Bytes that compaction jobs read.";
    compaction_bytes_written, "bytes", "Bytes that compaction jobs wrote.";
    bytes_reused, "bytes", "Bytes that flush and compaction took over undecoded: re-linked extents, copied blocks.";
    operands_folded, "operands", "Operands of merges that flush and compaction folded, with others or with a value.";
    folds_failed, "folds", "Times that a merge operator failed or panicked in flush or compaction: its operands stayed.";
    files_ingested, "files", "External files taken in.";
    extents_ingested, "extents", "Extents that came in without passing through memory: of external files and bulk loads.";
    extents_dropped, "extents", "Extents dropped whole because they lay within a range that was given up.";
    entries_expired, "entries", "Entries that flush and compaction dropped, or turned to deletes, because they had expired.";
    entries_filtered, "rows", "Rows that compaction filters took out or changed.";
    adaptive_switches, "switches", "Times that the tree of a table began or ceased to be kept for reads alone.";
    adaptive_flushes, "flushes", "Flushes asked for because a table is mostly read.";
    adaptive_jobs, "jobs", "Compaction jobs that only gave reads fewer sorted runs; among the jobs committed.";
    background_errors, "errors", "Background jobs that failed and will be tried again.";
    scrub_extents, "extents", "Extents that scrubbing verified.";
    scrub_bytes, "bytes", "Bytes that scrubbing read and verified.";
    scrub_passes, "passes", "Times that scrubbing went through every table.";
    scrub_findings, "findings", "Damaged parts of extents that scrubbing found.";
    segments_trimmed, "segments", "Journal segments given back because all their records are in the levels.";
    cache_bytes, "bytes", "Memory of cached blocks, index blocks and filters now.";
    blocks_replaced, "blocks", "Blocks written by flush and compaction that took the place of cached ones.";
    cache_misses, "blocks", "Blocks, index blocks and filters read from the store.";
    memory_bytes, "bytes", "All memory under the ceiling that is in use now.";
    records_recovered, "records", "Records replayed from segments at open.";
    segment_bytes_recovered, "bytes", "Bytes of segments replayed at open.";
    device_journal_bytes_written, "bytes", "Bytes appended to segments, group and segment headers included.";
    device_journal_writes, "calls", "Appends to segments, each one commit group, header or mark; stores into mapped memory.";
    device_journal_syncs, "calls", "Syncs of segments and of their directory.";
    device_manifest_bytes_written, "bytes", "Bytes written to the manifest.";
    device_manifest_writes, "calls", "Writes to the manifest.";
    device_manifest_syncs, "calls", "Syncs of the manifest and of its directory.";
    device_flush_bytes_read, "bytes", "Bytes that flushes read: extents of level 1 that they merge with.";
    device_flush_reads, "calls", "Reads of flushes.";
    device_flush_bytes_written, "bytes", "Bytes of extents that flushes wrote, those of cancelled steps included.";
    device_flush_writes, "calls", "Extents that flushes wrote.";
    device_flush_syncs, "calls", "Syncs of the store that flushes asked for.";
    device_compaction_bytes_read, "bytes", "Bytes that compactions read, index blocks included.";
    device_compaction_reads, "calls", "Reads of compactions.";
    device_compaction_bytes_written, "bytes", "Bytes of extents that compactions wrote, those of cancelled jobs included.";
    device_compaction_writes, "calls", "Extents that compactions wrote.";
    device_compaction_syncs, "calls", "Syncs of the store that compactions asked for.";
    device_user_bytes_read, "bytes", "Bytes that point reads and scans which missed the cache read, and checks.";
    device_user_reads, "calls", "Reads of the store for point reads, scans and checks.";
    device_user_batches, "calls", "Calls that made several of these reads at once.";
    device_ring_reads, "calls", "Reads of such calls that went by io_uring; the others were made one after the other.";
    transactions_begun, "transactions", "Transactions begun.";
    transactions_committed, "transactions", "Transactions committed, prepared ones included.";
    transaction_conflicts, "conflicts", "Checks of transactions that failed because of what others committed.";
    transaction_deadlocks, "circles", "Waits for a lock that were refused because they closed a circle.";
    transaction_timeouts, "waits", "Waits for a lock or for what is prepared that took too long, of plain writes included.";
    transactions_live, "transactions", "Transactions that are running or prepared now.";
    transactions_prepared, "transactions", "Transactions that are prepared now.";
    transaction_window_bytes, "bytes", "Memory of what is kept of commits for the checks of transactions now.";
    open_micros, "microseconds", "Time the open took.";
}

impl Stats {
    /// Bytes written to the device: journal, manifest, flush and compaction. Divided by the bytes that a user wrote
    /// it is the write amplification.
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
