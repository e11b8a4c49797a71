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
}

impl RowFilter {
    /// The job's filter, if it has one.
    pub(super) fn of(control: &JobControl, collation: &Collation) -> Option<RowFilter> {
        let Filtering { filter, seen } = control.filtering()?.clone();
        Some(RowFilter { filter, seen, until: Vec::new(), collation: collation.clone() })
    }

    /// Asks the filter about a row.
    ///
    /// # Errors
    /// `Poisoned` if the filter panics, naming it and the key.
    pub(super) fn ask(&mut self, key: &[u8], seq: SeqNo, value: &[u8]) -> Result<RowDecision> {
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
                terrane_base::key::check_value(&value).map_err(|error| {
                    let name = self.filter.name();
                    error.context(format!("compaction filter {name:?}")).with_kind(Kind::Full)
                })?;
                RowDecision::Change(value)
            }
            FilterDecision::RemoveUntil(key) => {
                self.until = key;
                RowDecision::Remove
            }
            _ => RowDecision::Keep,
        })
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
