//! Pieces of background work.

use std::sync::Arc;

use terrane_base::TableId;
use terrane_compaction::JobSpec;

use crate::engine::Engine;
use crate::schedule::Schedule;
use crate::table::Table;

/// Work that brings memory back. Writers need no other.
pub(crate) const MEMORY_WORK: [&str; 4] = ["freeze", "settle", "flush", "trim"];
/// Every work that somebody may wait for.
pub(crate) const AWAITED_WORK: [&str; 5] = ["freeze", "settle", "flush", "trim", "compact"];

/// A piece of background work, as a value.
pub(crate) enum Work {
    /// Replace the full active memtable of a table.
    Freeze(Arc<Table>),
    /// Turn frozen memtables into generations, or merge them into one by pointer.
    Settle(Arc<Table>),
    /// Merge the oldest generation of a table into its levels.
    Flush(Arc<Table>),
    /// Run a compaction job.
    Compact(Arc<Table>, JobSpec),
    /// Verify the next extents against rot.
    Scrub,
    /// Give back segments that nothing needs.
    Trim,
}

impl Work {
    /// The table it is for, if it is for one.
    pub(crate) fn table(&self) -> Option<TableId> {
        match self {
            Work::Freeze(table) | Work::Settle(table) | Work::Flush(table) | Work::Compact(table, _) => {
                Some(table.id)
            }
            Work::Scrub | Work::Trim => None,
        }
    }

    /// One word for displays.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Work::Freeze(_) => "freeze",
            Work::Settle(_) => "settle",
            Work::Flush(_) => "flush",
            Work::Compact(..) => "compact",
            Work::Scrub => "scrub",
            Work::Trim => "trim",
        }
    }
}

impl Engine {
    /// The next piece of what was asked for by name: runs out of memory, a level into the next. It is done while the
    /// background is paused, too.
    pub(crate) fn next_asked(&self, schedule: &Schedule) -> Option<Work> {
        let tables = self.catalog.all();
        if let Some(work) = self.next_run_wanted(&tables, schedule) {
            return Some(work);
        }
        let (table, spec) = self.pick_compaction(&tables, schedule, false)?;
        Some(Work::Compact(table, spec))
    }
}
