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
    table_sorted_runs, gauge, "runs", "Sorted runs that a point read of an absent key may have to search.";
    table_overflow_runs, gauge, "runs", "Overflow runs among these sorted runs.";
    table_levels, gauge, "levels", "Levels with at least one extent.";
    table_extents, gauge, "extents", "Extents in overflow runs and levels.";
    table_stored_bytes, gauge, "bytes", "Stored bytes of these extents, and of the value tables.";
    table_value_tables, gauge, "value tables", "Value tables, which hold separated values.";
    table_value_bytes, gauge, "bytes", "Stored bytes of value tables.";
    table_value_live_bytes, gauge, "bytes", "Estimated bytes of live values in value tables, from the share of live values.";
    table_value_dead_permille, gauge, "thousandths", "Share of dead values, to which no entry points, in all values of value tables.";
    table_value_space_permille, gauge, "thousandths", "Stored bytes of value tables divided by the bytes of their live values; 0 without value tables.";
    table_value_space_max_permille, gauge, "thousandths", "Ceiling of table_value_space_permille: above it, compaction collects dead values; 0 means that there is no ceiling.";
    table_space_permille, gauge, "thousandths", "Upper bound of the space amplification: stored bytes divided by the live bytes of the largest level and of live values.";
    table_entries, gauge, "entries", "Versions in the extents of overflow runs and levels.";
    table_deletes, gauge, "entries", "Deletes among these versions.";
    table_range_deletes, gauge, "fragments", "Range deletes in memory, and their fragments in extents.";
    table_versions_skipped_max, gauge, "versions", "The greatest number of deleted, expired or hidden versions that one seek or step of a scan skipped; for backward scans, of keys.";
    table_backlog_permille, gauge, "thousandths", "Compaction debt of the table: at 0 its writers begin to be slowed, at 1000 the debt is at its limit; it may be larger.";
    table_write_rate, gauge, "bytes per second", "Rate that the compaction debt of the table allows to its writers; 0 means any rate.";
    table_writes_paused_micros, counter, "microseconds", "Time that writers waited because of the compaction debt of the table.";
    table_flushes, counter, "generations", "Generations of the global index that were merged into the levels of the table.";
    table_flush_bytes_written, counter, "bytes", "Bytes that flushes of the table wrote.";
    table_compactions, counter, "jobs", "Compaction jobs of the table that were committed.";
    table_compaction_bytes_read, counter, "bytes", "Bytes that compaction jobs of the table read.";
    table_compaction_bytes_written, counter, "bytes", "Bytes that compaction jobs of the table wrote.";
}
