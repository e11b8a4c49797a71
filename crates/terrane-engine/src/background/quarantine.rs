//! Work that the background leaves alone because a stored input of it is damaged.
//!
//! A compaction that meets damage would meet it again, so it is not tried again: its claim is kept until the
//! database is opened again, and the picker goes on with everything else. A table that is hurt in this way
//! flushes into overflow runs, which read nothing, so that writers go on. A caller that waits for the table's
//! levels gets the error.

use terrane_base::{Error, TableId};

use crate::background::maintenance::Maintenance;
use crate::background::scheduler::Schedule;
use crate::observe::findings::Finding;

/// Most findings that are kept.
pub(crate) const FINDINGS_MAX: usize = 1000;

/// Tables with damaged inputs, and what was found.
#[derive(Clone, Default)]
pub(crate) struct Quarantine {
    found: Vec<(TableId, Error)>,
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

impl Maintenance {
    /// Errors that the background cannot repair: damaged tables and stopped tables, which it leaves alone
    /// until the database is opened again, and work that keeps failing and is tried again. Empty when all is
    /// well.
    #[must_use]
    pub fn background_errors(&self) -> Vec<Finding> {
        let name = |id| crate::table::catalog::name_of(&self.catalog, id);
        self.background.scheduler.inspect(|schedule: &Schedule| {
            let hurt = schedule.quarantine.found.iter().map(|(table, error)| (Some(*table), error.clone()));
            let lasting = schedule.failures.lasting();
            let lasting = lasting.map(|lasting| (lasting.subject.1, lasting.error.clone()));
            let stopped = self.catalog.all();
            let stopped =
                stopped.iter().filter_map(|table| Some((Some(table.id), table.refuse_if_stopped().err()?)));
            let errors = hurt.chain(stopped).chain(lasting);
            errors.map(|(table, error)| Finding { table: table.and_then(name), error }).collect()
        })
    }

    /// The error of work on a table with its right kind: under a comparator that has failed, keys that lie
    /// wrongly are no damage. Every other error stays what it is.
    pub(crate) fn blamed(&self, table: Option<TableId>, error: Error) -> Error {
        let collation = table.filter(|_| error.is_of_order()).map(|table| self.collation_of(table));
        let Some(Err(failed)) = collation.map(|collation| collation.check()) else { return error };
        let failed = failed.context(error.message());
        match error.place() {
            Some(place) => failed.at(place.file.clone(), place.offset),
            None => failed,
        }
    }

    /// Returns true if a table has damage that the background leaves alone.
    pub(crate) fn is_hurt(&self, table: TableId) -> bool {
        self.background.scheduler.inspect(|schedule| schedule.quarantine.of(table).is_some())
    }
}
