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
    background_errors, "errors", "Background jobs that failed and will be tried again.";
    segments_trimmed, "segments", "Journal segments given back because all their records are in the levels.";
    cache_bytes, "bytes", "Memory of cached blocks, index blocks and filters now.";
    cache_misses, "blocks", "Blocks, index blocks and filters read from the store.";
    memory_bytes, "bytes", "All memory under the ceiling that is in use now.";
    records_recovered, "records", "Records replayed from segments at open.";
    segment_bytes_recovered, "bytes", "Bytes of segments replayed at open.";
    open_micros, "microseconds", "Time the open took.";
}

/// Adds to a counter.
#[inline]
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}
