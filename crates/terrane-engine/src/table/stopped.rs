//! Tables whose background work has stopped until the database is opened again.
//!
//! A step that the ledger refuses once it refuses again. Where the manifest has the edit already, each
//! further attempt would append one more, about extents that no read looks at; and what the manifest says of
//! the table and what its read view has differ from then on. So the first refusal stops the table: no work on
//! it is given out, and nothing installs anything in it (that is looked at under `Table::installing`, so no
//! edit comes after the one that was refused). Segments are no longer trimmed, whichever tables they are of:
//! the next opening replays them. Reads go on, and writes until memory is full. A caller that waits for the
//! table, or asks for work on it by name, gets the error of the refusal.
//!
//! The manifest is not poisoned: it is whole, and so are all other tables.

use std::fmt::Display;
use std::sync::{Arc, OnceLock};

use terrane_base::{Error, Kind, Result};

use crate::table::Table;
use crate::table::catalog::Catalog;
use crate::table::due::DueTables;

/// Why background work on a table has stopped, if it has. Set once: the scheduler looks at it
/// without a lock.
#[derive(Default)]
pub(crate) struct Stopped(OnceLock<Error>);

/// The rest of a step that was refused.
#[derive(Clone, Copy)]
pub(crate) enum Left {
    /// It was refused before its edit.
    Nothing,
    /// Its edit is in the manifest, its result not in the read view.
    Edit,
    /// It panicked on the way.
    Unknown,
}

impl Table {
    /// Stops background work on the table because of `what`; returns the error that says so. Later callers
    /// get the first error.
    #[cold]
    pub(crate) fn stop(&self, what: impl Display, left: Left) -> Error {
        let left = match left {
            Left::Nothing => "nothing was changed",
            Left::Edit => "the manifest has the result, and reads go on without it",
            Left::Unknown => "it is not known how much was changed",
        };
        let message = format!(
            "table {:?}: {what}: {left}; background work on the table has stopped: close the database and reopen it: its \
             journal has what is only in memory, unless it is off",
            self.name
        );
        let error = Error::new(Kind::Poisoned, message);
        self.stopped.0.get_or_init(|| error.clone());
        debug_assert!(self.is_stopped(), "a job would begin on levels that are not known");
        self.note_due(DueTables::note_stopped);
        error
    }

    /// Returns true if background work on the table has stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.0.get().is_some()
    }

    /// Refuses a request of a caller, or a step that would install something.
    ///
    /// # Errors
    /// `Poisoned` if background work on the table has stopped.
    pub(crate) fn refuse_if_stopped(&self) -> Result<()> {
        self.stopped.0.get().cloned().map_or(Ok(()), Err)
    }
}

impl Catalog {
    /// Why background work has stopped on one of `tables`, or on any where none are named.
    pub(crate) fn stop_of(&self, tables: Option<&[Arc<Table>]>) -> Option<Error> {
        let error = |table: &Arc<Table>| table.refuse_if_stopped().err();
        match tables {
            Some(tables) => tables.iter().find_map(error),
            None => self.first_stopped().as_ref().and_then(error),
        }
    }
}

#[cfg(test)]
mod tests;
