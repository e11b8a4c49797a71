//! State that a trim of the journal shares with copies and ingests: the right to change which segments there
//! are, and the marks of ingests whose edit failed, which go with the segments that have them.

use terrane_base::SeqNo;
use terrane_base::sync::{Mutex, MutexGuard};

use crate::ingest_mark::Marks;

/// See the [module](self).
pub(crate) struct Trims {
    /// Only one thread trims the journal at a time, and none beside a copy, a check or an ingest.
    trimming: Mutex<()>,
    marks: Marks,
}

impl Trims {
    /// With these void marks, if the database is open for reading: no edit records them.
    pub(crate) fn new(void_marks: Vec<SeqNo>) -> Trims {
        Trims { trimming: Mutex::new(()), marks: Marks::new(void_marks) }
    }

    /// While the result lives, no other thread trims, copies or publishes an ingest.
    pub(crate) fn hold(&self) -> MutexGuard<'_, ()> {
        self.trimming.lock()
    }

    /// As [`Trims::hold`]; `None` while another thread does one of these: a check reads all segments
    /// meanwhile.
    pub(crate) fn try_hold(&self) -> Option<MutexGuard<'_, ()>> {
        self.trimming.try_lock()
    }

    /// Returns true if a thread trims, copies, checks or publishes an ingest now.
    pub(crate) fn is_held(&self) -> bool {
        self.try_hold().is_none()
    }

    /// The marks of ingests whose edit failed.
    pub(crate) fn marks(&self) -> &Marks {
        &self.marks
    }
}
