//! Where threads of the ring sleep.

use terrane_base::sync::{Condvar, Mutex};

/// Where a thread sleeps. The lock holds nothing: the state that is awaited is atomic.
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

    /// Wakes everyone. The caller has changed the awaited state before.
    #[cold]
    pub(super) fn wake(&self) {
        // Through the lock, so that the change does not fall between a sleeper's look and its sleep.
        drop(self.lock.lock());
        self.changed.notify_all();
    }
}
