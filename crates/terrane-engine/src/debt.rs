//! What the background owes, as one number for [`crate::pressure`]: the largest share of three limits that is
//! used up.
//!
//! * memory: segments and indexes against the write memory. At 1 writers wait: the ceiling is hard. They wait as well
//!   while the cache has yet to give back what was lent to it.
//! * overflow runs against `overflow_runs_max`, of the table that has most.
//! * bytes that compaction owes against a multiple of the level base, of the table that owes most.
//!
//! The last two never reach 1: writers get slower, they never stop.

use terrane_compaction::debt_bytes;

use crate::engine::Engine;
use crate::table::Table;

/// Level bases of compaction debt that count as the limit.
const DEBT_BASES: f64 = 16.0;
/// Debt that is not memory stays below this.
const SLOWEST: f64 = 0.98;

impl Engine {
    /// Computes the debt anew and tells the writers. Called when memory or levels changed.
    pub(crate) fn refresh_debt(&self) {
        self.stop_for_writers();
        let balance = self.balance_memory();
        // What the cache has not given back yet is waited for like memory that is not flushed yet.
        let memory = if balance.is_over { 1.0 } else { self.debt_of(balance.write_bytes) };
        let owed = self.catalog.all().iter().map(|table| self.owed_by(table)).fold(0.0, f64::max);
        self.pressure.set_debt(memory.max(owed.min(SLOWEST)));
    }

    /// Share of the write memory that is in use.
    pub(crate) fn memory_debt(&self) -> f64 {
        self.debt_of(self.write_memory_in_use())
    }

    fn debt_of(&self, write_bytes: u64) -> f64 {
        write_bytes as f64 / self.plan.write_bytes as f64
    }

    fn owed_by(&self, table: &Table) -> f64 {
        let tree = table.pinned().tree;
        let runs = tree.runs.len() as f64 / table.settings.overflow_runs_max as f64;
        let limits = &table.settings.limits;
        let bytes = debt_bytes(&crate::compact::shape_of(table.id, &tree, &[]), limits) as f64;
        runs.max(bytes / (DEBT_BASES * table.settings.level_base_bytes as f64))
    }
}
