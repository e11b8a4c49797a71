//! Calls the compaction filter of a job, for rows that would stay and that no snapshot sees.

use std::sync::Arc;

use terrane_base::{Collation, CompactionFilter, Error, FilterDecision, Kind, Result, SeqNo, callback};

use crate::control::{Filtering, JobControl};

/// The decision about a row.
pub(super) enum RowDecision {
    Keep,
    Remove,
    Change(Vec<u8>),
}

/// See the [module](self).
pub(super) struct RowFilter {
    filter: Arc<dyn CompactionFilter>,
    /// Snapshots may see rows with this number or a smaller one.
    seen: SeqNo,
    /// Rows before this key are kept without a call.
    until: Vec<u8>,
    /// Key order of the table.
    collation: Collation,
    /// It has made a value that is too long.
    is_wrong: bool,
}

impl RowFilter {
    /// The job's filter, if it has one.
    pub(super) fn of(control: &JobControl, collation: &Collation) -> Option<RowFilter> {
        let Filtering { filter, seen } = control.filtering()?.clone();
        Some(RowFilter { filter, seen, until: Vec::new(), collation: collation.clone(), is_wrong: false })
    }

    /// Asks the filter about a row.
    ///
    /// # Errors
    /// `Poisoned` if the filter panics, `Invalid` if it makes a value that is too long; both name it and the
    /// key.
    pub(super) fn ask(&mut self, key: &[u8], seq: SeqNo, value: &[u8]) -> Result<RowDecision> {
        debug_assert!(!self.is_wrong, "a job ends when its filter has made a value that is too long");
        if seq <= self.seen && !terrane_base::planted!(FilterUnderSnapshot) {
            return Ok(RowDecision::Keep);
        }
        if self.collation.lt(key, &self.until) {
            return Ok(RowDecision::Remove);
        }
        let decision = callback::call(|| self.filter.filter(key, value));
        let decision = decision.map_err(|_| self.panicked(key))?;
        Ok(match decision {
            FilterDecision::Remove => RowDecision::Remove,
            FilterDecision::Change(value) => {
                if let Err(error) = terrane_base::key::check_value(&value) {
                    self.is_wrong = true;
                    return Err(self.refused(key, &error));
                }
                RowDecision::Change(value)
            }
            FilterDecision::RemoveUntil(key) => {
                self.until = key;
                RowDecision::Remove
            }
            _ => RowDecision::Keep,
        })
    }

    /// Returns true if it has made a value that is too long; the job fails by that.
    pub(super) fn is_wrong(&self) -> bool {
        self.is_wrong
    }

    /// No lack of space, though a limit is passed: the filter must be fixed.
    #[cold]
    fn refused(&self, key: &[u8], error: &Error) -> Error {
        let (name, key) = (self.filter.name(), terrane_format::dump::text(key));
        let why = error.message();
        Error::invalid(format!(
            "compaction filter {name:?} at key {key}: {why}: nothing was changed; fix the filter or remove it"
        ))
    }

    #[cold]
    fn panicked(&self, key: &[u8]) -> Error {
        let (name, key) = (self.filter.name(), terrane_format::dump::text(key));
        Error::new(
            Kind::Poisoned,
            format!(
                "compaction filter {name:?} panicked at key {key}: nothing was changed; fix the filter or remove it"
            ),
        )
    }
}
