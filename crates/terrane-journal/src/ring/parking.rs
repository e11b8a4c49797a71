//! A place for sleeping threads of the ring.

use terrane_base::sync::{Condvar, Mutex};

/// A place where a thread sleeps. The lock protects no data: the awaited state is atomic.
#[derive(Default)]
pub(super) struct Parking {
    lock: Mutex<()>,
    changed: Condvar,
}

impl Parking {
    pub(super) fn wait_until(&self, mut is_over: impl FnMut() -> bool) {
        let mut guard = self.lock.lock();
        while !is_over() {
            self.changed.wait(&mut guard);
        }
    }

    /// Wakes all sleepers. The caller has changed the awaited state before.
    #[cold]
    pub(super) fn wake(&self) {
        // Taken and released, so that the change cannot fall between a sleeper's check and its sleep.
        drop(self.lock.lock());
        self.changed.notify_all();
    }
}
