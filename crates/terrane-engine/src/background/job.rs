//! Pieces of background work, and the look for one.

use std::ops::Deref;
use std::sync::Arc;

use terrane_base::TableId;
use terrane_compaction::{JobKind as CompactionKind, JobSpec};

use crate::background::maintenance::Maintenance;
use crate::background::scheduler::Schedule;
use crate::observe::job_kind::JobKind;
use crate::table::Table;

/// A piece of background work, as a value.
pub(crate) enum Job {
    /// Replace the full active memtable of a table.
    Freeze(Arc<Table>),
    /// Turn frozen memtables into generations, or merge them into one by pointer.
    Settle(Arc<Table>),
    /// Merge the oldest generation of a table into its levels.
    Flush(Arc<Table>),
    /// Run a compaction job.
    Compact(Arc<Table>, JobSpec),
    /// Run a compaction job that only reads gain by.
    Adapt(Arc<Table>, JobSpec),
    /// Verify the next extents against rot.
    Scrub,
    /// Give back segments that nothing needs.
    Trim,
    /// Give the device back what only waits to be used again.
    Reclaim,
    /// Take the next step of an attempt to give space back to a device that is full.
    GiveSpaceBack {
        /// True if the flush that it waited for has succeeded.
        is_flushed: bool,
    },
}

impl Job {
    /// The table it is for, if it is for one.
    pub(crate) fn on(&self) -> Option<&Arc<Table>> {
        match self {
            Job::Freeze(table) | Job::Settle(table) | Job::Flush(table) => Some(table),
            Job::Compact(table, _) | Job::Adapt(table, _) => Some(table),
            Job::Scrub | Job::Trim | Job::Reclaim | Job::GiveSpaceBack { .. } => None,
        }
    }

    /// The number of that table.
    pub(crate) fn table(&self) -> Option<TableId> {
        self.on().map(|table| table.id)
    }

    /// Returns true if space is free after it that was not before. What only reads gain by says so itself,
    /// once none is left.
    pub(crate) fn leaves_space(&self) -> bool {
        !matches!(self, Job::Adapt(..) | Job::Scrub | Job::Reclaim | Job::GiveSpaceBack { .. })
    }

    /// Returns true if the device may have more or less free space after it.
    pub(crate) fn changes_room(&self) -> bool {
        !matches!(self, Job::Freeze(_) | Job::Settle(_) | Job::Scrub)
    }

    /// Returns true if it is a compaction that a caller asked for.
    pub(crate) fn is_manual(&self) -> bool {
        matches!(self, Job::Compact(_, spec) if spec.kind == CompactionKind::Manual)
    }

    /// Returns true if it takes memory for what it reads and writes.
    pub(crate) fn needs_memory(&self) -> bool {
        !matches!(self, Job::Freeze(_) | Job::Trim | Job::Reclaim | Job::GiveSpaceBack { .. })
    }

    /// Its kind.
    pub(crate) fn kind(&self) -> JobKind {
        match self {
            Job::Freeze(_) => JobKind::Freeze,
            Job::Settle(_) => JobKind::Settle,
            Job::Flush(_) => JobKind::Flush,
            Job::Compact(..) => JobKind::Compact,
            Job::Adapt(..) => JobKind::Adapt,
            Job::Scrub => JobKind::Scrub,
            Job::Trim => JobKind::Trim,
            Job::Reclaim | Job::GiveSpaceBack { .. } => JobKind::Reclaim,
        }
    }
}

/// A look for work in a database, beside what a copy of its schedule has. Made for each look, it costs
/// nothing.
#[derive(Clone, Copy)]
pub(crate) struct Look<'e> {
    pub(crate) engine: &'e Maintenance,
    pub(crate) schedule: &'e Schedule,
}

/// The methods of `Maintenance` are found here, as in the engine.
impl Deref for Look<'_> {
    type Target = Maintenance;

    #[inline]
    fn deref(&self) -> &Maintenance {
        self.engine
    }
}
