//! The metrics of a table.

use terrane_base::sync::atomic::Ordering;
use terrane_compaction::{value_space_permille, whole_space_permille};
use terrane_levels::Metasnapshot;

use crate::observe::stats::TableStats;
use crate::table::Table;
use crate::table::tree_shape::shape_of;
use crate::table::values_shape::values_shape;

impl Table {
    /// The state of the table now.
    #[must_use]
    pub fn stats(&self) -> TableStats {
        let view = self.pinned();
        let mut stats = self.counters.snapshot();
        let memtables = std::iter::once(&view.active).chain(&view.frozen);
        stats.table_memory_bytes = view.memory_bytes();
        stats.table_memory_entries = memtables.map(|memtable| memtable.entry_count()).sum::<u64>()
            + view.generations.iter().map(|generation| generation.entry_count()).sum::<u64>();
        stats.table_versions_skipped_max = self.semantics.skips().most.load(Ordering::Relaxed);
        stats.table_backlog_permille = self.pressure.backlog_permille();
        stats.table_write_rate = self.pressure.rate().map_or(0, |rate| rate as u64);
        stats.table_overflow_runs = view.tree.runs.len() as u64;
        stats.table_levels = view.tree.levels.iter().filter(|level| !level.is_empty()).count() as u64;
        stats.table_sorted_runs = (1 + view.frozen.len() + view.generations.len()) as u64
            + stats.table_overflow_runs
            + stats.table_levels;
        stats.table_range_deletes = view.range_deletes();
        for (_, level) in view.tree.places() {
            let totals = level.totals();
            stats.table_extents += level.len() as u64;
            stats.table_stored_bytes += totals.bytes;
            stats.table_entries += totals.entries;
            stats.table_deletes += totals.deletes;
            stats.table_range_deletes += totals.range_deletes;
        }
        self.add_values(&view.tree, &mut stats);
        stats.table_space_permille = whole_space_permille(&shape_of(self, &view.tree, &[]));
        stats
    }

    fn add_values(&self, tree: &Metasnapshot, stats: &mut TableStats) {
        let values = values_shape(self, tree);
        stats.table_value_space_max_permille = values.space_permille_max;
        if values.tables == 0 {
            return;
        }
        stats.table_value_tables = values.tables;
        stats.table_value_bytes = values.bytes;
        stats.table_value_live_bytes = values.live_bytes;
        stats.table_value_dead_permille = values.dead_permille();
        stats.table_value_space_permille = value_space_permille(&shape_of(self, tree, &[]));
        stats.table_stored_bytes += values.bytes;
    }
}
