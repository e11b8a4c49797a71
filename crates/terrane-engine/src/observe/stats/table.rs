//! The metrics of each table. They end with the table, or when the database is closed.

use terrane_base::sync::atomic::{AtomicU64, Ordering};

use terrane_base::metrics::{Metric, MetricKind, MetricScope};

use crate::observe::stats::kind;

macro_rules! table_numbers {
    ($( $name:ident, $kind:ident, $unit:literal, $about:literal; )*) => {
        /// Numbers of one table that the engine's parts add to.
        #[derive(Debug, Default)]
        pub(crate) struct TableCounters { $( pub(crate) $name: AtomicU64, )* }

        /// State of one table now, and its counts since the database was opened.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct TableStats {
            $( #[doc = $about] #[doc = concat!("\n\nUnit: ", $unit, ".")] pub $name: u64, )*
        }

        impl TableCounters {
            pub(crate) fn snapshot(&self) -> TableStats {
                TableStats { $( $name: self.$name.load(Ordering::Relaxed), )* }
            }
        }

        impl TableStats {
            /// The rows of the table of metrics, in the order of [`TableStats::values`].
            pub(crate) const METRICS: &[Metric] = &[ $(
                Metric::new(stringify!($name), MetricScope::Table, kind!($kind), $unit, $about),
            )* ];

            pub(crate) fn values(&self) -> Vec<u64> {
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
    table_stored_bytes, gauge, "bytes", "Stored bytes of these extents, and of the value tables.";
    table_value_tables, gauge, "value tables", "Value tables, which have the values that were separated.";
    table_value_bytes, gauge, "bytes", "Stored bytes of value tables.";
    table_value_live_bytes, gauge, "bytes", "Estimated bytes of live values in value tables, by the share of live values.";
    table_value_dead_permille, gauge, "thousandths", "Dead values of value tables, to which no entry points, over all their values.";
    table_value_space_permille, gauge, "thousandths", "Stored bytes of value tables over the bytes of their live values; 0 without value tables.";
    table_value_space_max_permille, gauge, "thousandths", "Ceiling of table_value_space_permille, above which dead values are collected; 0 means that there is no ceiling.";
    table_space_permille, gauge, "thousandths", "Upper bound of the space amplification: stored bytes over the live bytes of the largest level and of live values.";
    table_entries, gauge, "entries", "Versions in these extents.";
    table_deletes, gauge, "entries", "Deletes among them.";
    table_range_deletes, gauge, "fragments", "Range deletes in memory and fragments of them in extents.";
    table_versions_skipped_max, gauge, "versions", "The most deleted, expired or hidden versions that one placement or step of a scan passed by; of scans backward, keys.";
    table_backlog_permille, gauge, "thousandths", "Compaction debt of the table: 0 where its writers begin to be slowed, 1000 at the limit; it may be larger.";
    table_write_rate, gauge, "bytes per second", "Rate that the backlog of the table allows to its writers; 0 is any.";
    table_writes_paused_micros, counter, "microseconds", "Time writers were held back because of the backlog of the table.";
    table_flushes, counter, "generations", "Generations of the global index merged into the levels of the table.";
    table_flush_bytes_written, counter, "bytes", "Bytes that flushes of the table wrote.";
    table_compactions, counter, "jobs", "Compaction jobs of the table that were committed.";
    table_compaction_bytes_read, counter, "bytes", "Bytes that compaction jobs of the table read.";
    table_compaction_bytes_written, counter, "bytes", "Bytes that compaction jobs of the table wrote.";
}
