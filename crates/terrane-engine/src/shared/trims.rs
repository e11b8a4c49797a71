//! State that a trim of the journal shares with copies, ingests and checks: the right to change which
//! segments there are, and the marks of ingests whose edit failed, which go with the segments that have them.
//!
//! A copy and an ingest hold it for a moment, so a trim waits for them. A check reads all segments meanwhile:
//! jobs do not wait for one.

use terrane_base::SeqNo;
use terrane_base::sync::atomic::{AtomicU64, Ordering};
use terrane_base::sync::{Mutex, MutexGuard};

use crate::ingest_mark::Marks;

/// See the [module](self).
pub(crate) struct Trims {
    /// Only one thread trims the journal at a time, and none during a copy or an ingest.
    trimming: Mutex<()>,
    /// No thread trims during a check.
    checking: Mutex<()>,
    /// Trims that run, or wait for their turn.
    trims: AtomicU64,
    /// Checks that run, or wait for a trim.
    checks: AtomicU64,
    marks: Marks,
}

/// The right to trim.
pub(crate) struct Trimming<'t> {
    _no_check: MutexGuard<'t, ()>,
    _no_moment: MutexGuard<'t, ()>,
    _counted: Counted<'t>,
}

/// While it lives, no segment goes.
pub(crate) struct Checking<'t> {
    _no_trim: MutexGuard<'t, ()>,
    _counted: Counted<'t>,
}

/// One of those that a counter counts.
struct Counted<'t>(&'t AtomicU64);

impl Counted<'_> {
    // Relaxed, here and where it is read: the locks exclude, and a worker that looks at a count looks again.
    fn in_(count: &AtomicU64) -> Counted<'_> {
        count.fetch_add(1, Ordering::Relaxed);
        Counted(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let before = self.0.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "more have ended than have begun");
    }
}

impl Trims {
    /// With these void marks, if the database is open for reading: no edit records them.
    pub(crate) fn new(void_marks: Vec<SeqNo>) -> Trims {
        let (trims, checks) = (AtomicU64::new(0), AtomicU64::new(0));
        Trims {
            trimming: Mutex::new(()),
            checking: Mutex::new(()),
            trims,
            checks,
            marks: Marks::new(void_marks),
        }
    }

    /// While the result lives, no other thread trims, copies or publishes an ingest. For a moment only: jobs
    /// wait for it, and refused writers for these.
    pub(crate) fn hold(&self) -> MutexGuard<'_, ()> {
        self.trimming.lock()
    }

    /// While the result lives, no other thread trims or checks.
    pub(crate) fn hold_for_check(&self) -> Checking<'_> {
        let counted = Counted::in_(&self.checks);
        debug_assert!(self.is_checked(), "a check that waits is seen as well");
        Checking { _no_trim: self.checking.lock(), _counted: counted }
    }

    /// Waits until nothing else has the segments. For a close, during which no job runs: jobs would wait for
    /// a check after it.
    pub(crate) fn hold_for_trim(&self) -> Trimming<'_> {
        let counted = Counted::in_(&self.trims);
        debug_assert!(self.is_trimming(), "a trim that waits is seen as well");
        let no_moment = self.trimming.lock();
        Trimming { _no_check: self.checking.lock(), _no_moment: no_moment, _counted: counted }
    }

    /// As [`Trims::hold_for_trim`]; `None` while a check has the segments.
    pub(crate) fn hold_for_trim_unless_checked(&self) -> Option<Trimming<'_>> {
        let counted = Counted::in_(&self.trims);
        debug_assert!(self.is_trimming(), "a trim that waits is seen as well");
        let no_moment = self.trimming.lock();
        // No other trim has it: that would have the first lock as well.
        let no_check = self.checking.try_lock()?;
        Some(Trimming { _no_check: no_check, _no_moment: no_moment, _counted: counted })
    }

    /// Returns true if a check has the segments, or waits for them.
    pub(crate) fn is_checked(&self) -> bool {
        self.checks.load(Ordering::Relaxed) > 0
    }

    /// Returns true if a thread trims, or waits until it may.
    pub(crate) fn is_trimming(&self) -> bool {
        self.trims.load(Ordering::Relaxed) > 0
    }

    /// The marks of ingests whose edit failed.
    pub(crate) fn marks(&self) -> &Marks {
        &self.marks
    }
}
