//! The loads of tables as the background follows them, and when jobs that only reads gain by may run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use terrane_base::sync::atomic::AtomicU64;
use terrane_base::{TableId, verify};
use terrane_compaction::{Counted, Load};

/// The load of every table, as far as it is counted.
#[derive(Default)]
pub(crate) struct Adaptation {
    /// Counts of each table that was ever used.
    pub(in crate::background) tables: BTreeMap<TableId, Watched>,
    /// Those whose load changes though nothing is counted: all others are at rest, and write-friendly.
    pub(in crate::background) moving: BTreeSet<TableId>,
    /// Time of the last look.
    pub(in crate::background) looked: Option<Duration>,
    /// True if a step was taken since the last time that none was left.
    pub(in crate::background) has_worked: bool,
    /// True if the step that was found last asks for a flush.
    pub(in crate::background) asks_flush: bool,
}

impl Adaptation {
    /// Returns true if the step that was found since the last call asks for a flush. Counted when the step is
    /// taken: a decision may be void, and made again.
    pub(crate) fn takes_asked_flush(&mut self) -> bool {
        std::mem::take(&mut self.asks_flush)
    }

    /// Forgets a table that was dropped.
    pub(crate) fn forget(&mut self, table: TableId) {
        self.tables.remove(&table);
        self.moving.remove(&table);
        verify!(self.is_sound());
    }

    /// Invariant: a table whose load changes was counted. What `moving` has without it would get no step.
    pub(in crate::background) fn is_sound(&self) -> bool {
        self.moving.iter().all(|id| self.tables.contains_key(id))
    }
}

/// A table's load, and the counts at the last look.
#[derive(Default)]
pub(in crate::background) struct Watched {
    pub(in crate::background) load: Load,
    pub(in crate::background) counted: Counted,
}

/// When jobs that only reads gain by are stopped, and when they may begin.
#[derive(Debug)]
pub(crate) struct ReadHeavy {
    /// Total of written bytes at which the running job is stopped; `u64::MAX` if none runs.
    pub(in crate::background) stop_at: AtomicU64,
    /// The next one does not begin before this time, in microseconds.
    pub(in crate::background) rests_until: AtomicU64,
}

impl Default for ReadHeavy {
    fn default() -> Self {
        ReadHeavy { stop_at: AtomicU64::new(u64::MAX), rests_until: AtomicU64::new(0) }
    }
}
