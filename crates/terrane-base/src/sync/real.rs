//! The real primitives: what a program without an explorer runs on.

pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
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
