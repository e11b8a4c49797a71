//! Damage and failures of background work, as callers and other jobs see them.

use terrane_base::{Error, TableId};

use crate::background::maintenance::Maintenance;
use crate::background::scheduler::Schedule;
use crate::observe::findings::Finding;

impl Maintenance {
    /// Errors that the background cannot repair: damaged tables and stopped tables, which it leaves alone
    /// until the database is opened again, and work that keeps failing and is tried again. Empty when all is
    /// well.
    #[must_use]
    pub fn background_errors(&self) -> Vec<Finding> {
        let name = |id| crate::table::catalog::name_of(&self.catalog, id);
        // Before the lock, for which a waiting writer waits: a catalog may have many tables.
        let tables = self.catalog.all();
        let stopped: Vec<_> = tables
            .iter()
            .filter_map(|table| Some((Some(table.id), table.refuse_if_stopped().err()?)))
            .collect();
        self.background.scheduler.inspect(|schedule: &Schedule| {
            let hurt = schedule.quarantine.found.iter().map(|(table, error)| (Some(*table), error.clone()));
            let lasting = schedule.failures.lasting();
            let lasting = lasting.map(|lasting| (lasting.subject.1, lasting.error.clone()));
            let errors = hurt.chain(stopped).chain(lasting);
            errors.map(|(table, error)| Finding { table: table.and_then(name), error }).collect()
        })
    }

    /// The error of work on a table with its right kind: under a comparator that has failed, keys that lie
    /// wrongly are not damage. Every other error stays what it is.
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
