//! The seam between the real primitives and the schedule explorer `shuttle` (feature `shuttle`).
//!
//! Lock-free code imports its atomics, locks and spin hints from here and from nowhere else, so that the same
//! source runs under both.

#[cfg(not(feature = "shuttle"))]
mod imp {
    pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
    pub use std::sync::{Arc, atomic};
    pub use std::thread;

    /// Lets go of a lock while `meanwhile` is done.
    pub fn unlocked<T, R>(guard: &mut MutexGuard<'_, T>, meanwhile: impl FnOnce() -> R) -> R {
        MutexGuard::unlocked(guard, meanwhile)
    }

    /// One turn of a spin loop that waits for another thread: `turn` counts from 0.
    ///
    /// The first turns burn cycles, later ones give the processor away; with two cores a long spin would
    /// keep the awaited thread from running.
    #[inline]
    pub fn spin(turn: u32) {
        if turn < 64 {
            std::hint::spin_loop();
        } else {
            thread::yield_now();
        }
    }
}

#[cfg(feature = "shuttle")]
mod imp {
    pub use shuttle::sync::{Arc, atomic};
    pub use shuttle::thread;

    /// Lets go of a lock while `meanwhile` is done: where there are no threads, and the explorer has threads.
    pub fn unlocked<T, R>(_guard: &mut MutexGuard<'_, T>, _meanwhile: impl FnOnce() -> R) -> R {
        unreachable!("what is explored has threads to wait for")
    }

    /// One turn of a spin loop: always gives way, or the explorer would never schedule the other side.
    pub fn spin(_turn: u32) {
        thread::yield_now();
    }

    /// `parking_lot::Mutex` in shape, shuttle's inside.
    #[derive(Debug, Default)]
    pub struct Mutex<T>(shuttle::sync::Mutex<T>);

    /// Guard of [`Mutex`].
    pub type MutexGuard<'a, T> = shuttle::sync::MutexGuard<'a, T>;

    impl<T> Mutex<T> {
        /// A new, unlocked mutex.
        pub const fn new(value: T) -> Self {
            Mutex(shuttle::sync::Mutex::new(value))
        }

        /// Locks; a poisoned lock is a failed test already.
        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("lock poisoned")
        }

        /// Locks unless another thread holds the lock.
        pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok()
        }
    }

    /// `parking_lot::Condvar` in shape, shuttle's inside.
    #[derive(Debug, Default)]
    pub struct Condvar(shuttle::sync::Condvar);

    impl Condvar {
        /// A new condition variable.
        pub const fn new() -> Self {
            Condvar(shuttle::sync::Condvar::new())
        }

        /// Waits until notified.
        pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            // SAFETY: the guard is moved out and a guard of the same mutex is moved back in before anyone
            // can see the gap; `wait` does not unwind between the two (a panic here ends the explored run).
            #[expect(unsafe_code, reason = "shuttle's condvar takes the guard by value")]
            unsafe {
                let taken = std::ptr::read(guard);
                let back = self.0.wait(taken).expect("lock poisoned");
                std::ptr::write(guard, back);
            }
        }

        /// Waits until notified; the time never comes, so that a wake-up that is missing shows.
        pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _timeout: std::time::Duration) {
            self.wait(guard);
        }

        /// Wakes one waiter.
        pub fn notify_one(&self) {
            self.0.notify_one();
        }

        /// Wakes all waiters.
        pub fn notify_all(&self) {
            self.0.notify_all();
        }
    }
}

pub use imp::*;
