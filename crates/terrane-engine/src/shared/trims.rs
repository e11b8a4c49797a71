//! State that a trim of the journal shares with copies and ingests: the right to change which segments there
//! are, and the marks of ingests whose edit failed, which go with the segments that have them.

use std::sync::Arc;

use terrane_base::sync::{Mutex, MutexGuard};
use terrane_base::{Error, Result, SeqNo};
use terrane_levels::State;

use crate::ingest_mark::{Fate, Marks};

/// See the [module](self).
pub(crate) struct Trims {
    /// Only one thread trims the journal at a time, and none beside a copy or an ingest.
    trimming: Mutex<()>,
    marks: Marks,
}

impl Trims {
    /// With these marks that no edit will tell of: the database is open for reading.
    pub(crate) fn new(void_marks: Vec<SeqNo>) -> Trims {
        Trims { trimming: Mutex::new(()), marks: Marks::new(void_marks) }
    }

    /// While the result lives, no other thread trims, copies or publishes an ingest.
    pub(crate) fn hold(&self) -> MutexGuard<'_, ()> {
        self.trimming.lock()
    }

    /// As [`Marks::note_failure`].
    pub(crate) fn note_failure(&self, seq: SeqNo, error: &Error) {
        self.marks.note_failure(seq, error);
    }

    /// As [`Marks::void`].
    pub(crate) fn void_marks(&self) -> Vec<SeqNo> {
        self.marks.void()
    }

    /// As [`Marks::forget`].
    pub(crate) fn forget_marks(&self, marks: &[SeqNo]) {
        self.marks.forget(marks);
    }

    /// As [`Marks::noted_in`].
    pub(crate) fn noted_in(&self, state: impl FnOnce() -> Arc<State>) -> Arc<State> {
        self.marks.noted_in(state)
    }

    /// As [`Marks::fate`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn fate(&self, seq: SeqNo, state: impl FnOnce() -> Arc<State>) -> Result<Fate> {
        self.marks.fate(seq, state)
    }
}
