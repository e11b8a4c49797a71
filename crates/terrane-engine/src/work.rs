//! Pieces of background work.

use std::sync::Arc;

use terrane_base::TableId;
use terrane_compaction::JobSpec;

use crate::table::Table;

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
            Work::Trim => None,
        }
    }

    /// One word for displays.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Work::Freeze(_) => "freeze",
            Work::Settle(_) => "settle",
            Work::Flush(_) => "flush",
            Work::Compact(..) => "compact",
            Work::Trim => "trim",
        }
    }
}
