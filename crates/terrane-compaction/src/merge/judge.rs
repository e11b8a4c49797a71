//! The compaction filter of a job: rows that are to stay are shown to it, as far as no snapshot sees them.

use std::sync::Arc;

use terrane_base::{Collation, CompactionFilter, Error, FilterDecision, Kind, Result, SeqNo, callback};

use crate::control::{Filtering, JobControl};

/// What is to be done with a row.
pub(super) enum Sentence {
    Keep,
    Remove,
    Change(Vec<u8>),
}

/// See the [module](self).
pub(super) struct Judge {
    filter: Arc<dyn CompactionFilter>,
    /// Somebody may see what has this number or a smaller one.
    seen: SeqNo,
    /// Rows before this key go unasked.
    until: Vec<u8>,
    /// How keys are ordered.
    collation: Collation,
}

impl Judge {
    /// The job's, if it has one.
    pub(super) fn of(control: &JobControl, collation: &Collation) -> Option<Judge> {
        let Filtering { filter, seen } = control.filtering()?.clone();
        Some(Judge { filter, seen, until: Vec::new(), collation: collation.clone() })
    }

    /// Asks about a row.
    ///
    /// # Errors
    /// `Poisoned` if the filter panics, naming it and the key.
    pub(super) fn ask(&mut self, key: &[u8], seq: SeqNo, value: &[u8]) -> Result<Sentence> {
        if seq <= self.seen && !terrane_base::planted!(FilterUnderSnapshot) {
            return Ok(Sentence::Keep);
        }
        if self.collation.lt(key, &self.until) {
            return Ok(Sentence::Remove);
        }
        let decision = callback::call(|| self.filter.filter(key, value));
        let decision = decision.map_err(|_| self.panicked(key))?;
        Ok(match decision {
            FilterDecision::Remove => Sentence::Remove,
            FilterDecision::Change(value) => {
                terrane_base::key::check_value(&value).map_err(|error| {
                    let name = self.filter.name();
                    error.context(format!("compaction filter {name:?}")).with_kind(Kind::Full)
                })?;
                Sentence::Change(value)
            }
            FilterDecision::RemoveUntil(key) => {
                self.until = key;
                Sentence::Remove
            }
            _ => Sentence::Keep,
        })
    }

    #[cold]
    fn panicked(&self, key: &[u8]) -> Error {
        let (name, key) = (self.filter.name(), terrane_format::dump::text(key));
        Error::new(
            Kind::Poisoned,
            format!(
                "compaction filter {name:?} panicked at key {key}: nothing was changed; mend it or take it away"
            ),
        )
    }
}
