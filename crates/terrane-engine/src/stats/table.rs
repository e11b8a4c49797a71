//! The metrics of each table. They end with the table, or when the database is closed.

use std::sync::atomic::{AtomicU64, Ordering};

use terrane_base::metrics::{Metric, MetricKind, MetricScope};

use crate::stats::kind;
use crate::table::Table;

macro_rules! table_numbers {
    ($( $name:ident, $kind:ident, $unit:literal, $about:literal; )*) => {
        /// Numbers of one table that the engine's parts add to.
        #[derive(Debug, Default)]
        pub(crate) struct TableCounters { $( pub(crate) $name: AtomicU64, )* }

        /// What there is to say of one table now, and what was counted of it since the database was opened.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct TableStats {
            $( #[doc = $about] #[doc = concat!("\n\nUnit: ", $unit, ".")] pub $name: u64, )*
        }

        impl TableCounters {
            fn snapshot(&self) -> TableStats {
                TableStats { $( $name: self.$name.load(Ordering::Relaxed), )* }
            }
        }

        impl TableStats {
            /// The rows of the table of metrics, in the order of [`TableStats::values`].
            pub(super) const METRICS: &[Metric] = &[ $(
                Metric::new(stringify!($name), MetricScope::Table, kind!($kind), $unit, $about),
            )* ];

            pub(super) fn values(&self) -> Vec<u64> {
                vec![ $( self.$name, )* ]
            }
        }
    };
}

table_numbers! {
    table_memory_bytes, gauge, "bytes", "Records in memory that are not in the levels yet, and the indexes over them.";
    table_memory_entries, gauge, "entries", "Versions in memory.";
    table_sorted_runs, gauge, "runs", "Sorted runs that a point read of an absent key may have to look at.";
    table_overflow_runs, gauge, "runs", "Overflow runs among them.";
    table_levels, gauge, "levels", "Levels that have an extent.";
    table_extents, gauge, "extents", "Extents in overflow runs and levels.";
    table_stored_bytes, gauge, "bytes", "Stored bytes of these extents.";
    table_entries, gauge, "entries", "Versions in these extents.";
    table_deletes, gauge, "entries", "Deletes among them.";
    table_range_deletes, gauge, "fragments", "Range deletes in memory and fragments of them in extents.";
    table_flushes, counter, "generations", "Generations of the global index merged into the levels of the table.";
    table_flush_bytes_written, counter, "bytes", "Bytes that flushes of the table wrote.";
    table_compactions, counter, "jobs", "Compaction jobs of the table that were committed.";
    table_compaction_bytes_read, counter, "bytes", "Bytes that compaction jobs of the table read.";
    table_compaction_bytes_written, counter, "bytes", "Bytes that compaction jobs of the table wrote.";
}

impl Table {
    /// What there is to say of the table now.
    #[must_use]
    pub fn stats(&self) -> TableStats {
        let picture = self.pinned();
        let mut stats = self.counters.snapshot();
        let memtables = std::iter::once(&picture.active).chain(&picture.frozen);
        let (bytes, entries): (Vec<u64>, Vec<u64>) =
            memtables.map(|memtable| (memtable.record_bytes(), memtable.entry_count())).unzip();
        let (run_bytes, run_entries): (Vec<u64>, Vec<u64>) = picture
            .generations
            .iter()
            .map(|generation| (generation.record_bytes(), generation.entry_count()))
            .unzip();
        stats.table_memory_bytes = bytes.iter().chain(&run_bytes).sum::<u64>() + picture.index_bytes();
        stats.table_memory_entries = entries.iter().chain(&run_entries).sum();
        stats.table_overflow_runs = picture.tree.runs.len() as u64;
        stats.table_levels = picture.tree.levels.iter().filter(|level| !level.is_empty()).count() as u64;
        stats.table_sorted_runs = (1 + picture.frozen.len() + picture.generations.len()) as u64
            + stats.table_overflow_runs
            + stats.table_levels;
        stats.table_range_deletes = picture.range_deletes();
        for (_, level) in picture.tree.places() {
            let totals = level.totals();
            stats.table_extents += level.len() as u64;
            stats.table_stored_bytes += totals.bytes;
            stats.table_entries += totals.entries;
            stats.table_deletes += totals.deletes;
            stats.table_range_deletes += totals.range_deletes;
        }
        stats
    }
}
