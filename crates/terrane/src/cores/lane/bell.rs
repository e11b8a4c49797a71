//! A bell: one thread sleeps on it, others ring it when they have work for that thread.
//!
//! The sleeper calls `announce` and then checks again for work; if there is some it calls `cancel`, else
//! `sleep`. The others store their work and then call `ring_if_asleep`. The announcement and the check after
//! it, the store and the check of the announcement are sequentially consistent; every caller ensures that for
//! its own variables.
//!
//! A ring may come late and end a later sleep at once, so a sleeper always checks again.

use terrane_base::sync::atomic::{AtomicBool, Ordering};
use terrane_base::sync::{Condvar, Mutex};

/// See the head of the file.
#[derive(Debug)]
pub(crate) struct Bell {
    asleep: AtomicBool,
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Default for Bell {
    fn default() -> Self {
        Bell::new()
    }
}

impl Bell {
    /// A bell without a sleeper.
    #[must_use]
    pub(crate) fn new() -> Self {
        Bell { asleep: AtomicBool::new(false), rung: Mutex::new(false), changed: Condvar::new() }
    }

    /// Returns true if a thread sleeps, or is about to.
    #[inline]
    pub(crate) fn is_asleep(&self) -> bool {
        // SeqCst: after the caller's store, against `announce`.
        self.asleep.load(Ordering::SeqCst)
    }

    /// Wakes the sleeper, if there is one. The caller has stored the work before.
    #[inline]
    pub(crate) fn ring_if_asleep(&self) {
        if self.is_asleep() {
            self.ring();
        }
    }

    /// Ends the present sleep or the next one.
    #[cold]
    pub(crate) fn ring(&self) {
        *self.rung.lock() = true;
        self.changed.notify_one();
    }

    /// Says that the caller is going to sleep.
    pub(crate) fn announce(&self) {
        // SeqCst: before the caller's look, against `is_asleep`.
        self.asleep.store(true, Ordering::SeqCst);
    }

    /// Takes the announcement back.
    pub(crate) fn cancel(&self) {
        // Relaxed: a thread that still sees the announcement rings without effect.
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// Sleeps until the bell is rung. The caller has announced it and looked once more.
    pub(crate) fn sleep(&self) {
        let mut rung = self.rung.lock();
        while !*rung {
            self.changed.wait(&mut rung);
        }
        *rung = false;
        drop(rung);
        self.cancel();
    }
}
