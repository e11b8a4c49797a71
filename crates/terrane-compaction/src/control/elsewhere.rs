//! Where a job was done, for the statistics of its engine.

use terrane_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How often a job was tried on other machines, and where it was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Elsewhere {
    /// True if a worker did it.
    pub is_done: bool,
    /// True if it was offered to workers, and then done where the database is open.
    pub fell_back: bool,
    /// Attempts of workers that came to no result.
    pub attempts_lost: u64,
}

/// An [`Elsewhere`] that is read when the job has ended, by the thread that ran it: `Relaxed` is enough.
#[derive(Debug, Default)]
pub(super) struct AtomicElsewhere {
    is_done: AtomicBool,
    fell_back: AtomicBool,
    attempts_lost: AtomicU64,
}

impl AtomicElsewhere {
    pub(super) fn store(&self, elsewhere: Elsewhere) {
        debug_assert!(!(elsewhere.is_done && elsewhere.fell_back), "a job is done in one place");
        self.is_done.store(elsewhere.is_done, Ordering::Relaxed);
        self.fell_back.store(elsewhere.fell_back, Ordering::Relaxed);
        self.attempts_lost.store(elsewhere.attempts_lost, Ordering::Relaxed);
    }

    pub(super) fn load(&self) -> Elsewhere {
        Elsewhere {
            is_done: self.is_done.load(Ordering::Relaxed),
            fell_back: self.fell_back.load(Ordering::Relaxed),
            attempts_lost: self.attempts_lost.load(Ordering::Relaxed),
        }
    }
}
