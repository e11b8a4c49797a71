//! Work that the background leaves alone because a stored input of it is damaged.
//!
//! A compaction that meets damage would meet it again, so it is not tried again: its claim is kept until the
//! database is opened again, and the picker goes on with everything else. A table that is hurt in this way
//! flushes into overflow runs, which read nothing, so that writers go on. A caller that waits for the table's
//! levels gets the error.

use terrane_base::{Error, TableId};

/// Most findings that are kept.
pub(crate) const FINDINGS_MAX: usize = 1000;

/// Tables with damaged inputs, and what was found.
#[derive(Clone, Default)]
pub(crate) struct Quarantine {
    pub(in crate::background) found: Vec<(TableId, Error)>,
}

impl Quarantine {
    /// Notes damage in a table's levels.
    pub(crate) fn add(&mut self, table: TableId, error: Error) {
        let is_known = self.found.iter().any(|(of, known)| *of == table && known.place() == error.place());
        if !is_known && self.found.len() < FINDINGS_MAX {
            self.found.push((table, error));
        }
        debug_assert!(self.found.len() <= FINDINGS_MAX, "{} findings are kept", self.found.len());
    }

    /// The damage of a table's levels.
    pub(crate) fn of(&self, table: TableId) -> Option<&Error> {
        self.found.iter().find(|(of, _)| *of == table).map(|(_, error)| error)
    }

    /// The damage of the levels of any table.
    pub(crate) fn first(&self) -> Option<&Error> {
        self.found.first().map(|(_, error)| error)
    }

    /// Forgets a table that was dropped.
    pub(crate) fn forget(&mut self, table: TableId) {
        self.found.retain(|(of, _)| *of != table);
        debug_assert!(self.of(table).is_none(), "findings of a table that was dropped");
    }
}
