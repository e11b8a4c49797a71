//! The real primitives behind points, in the shape of `parking_lot` and `std`.
//!
//! How an explored thread waits: it never blocks in the operating system. It tries the lock; if another
//! thread has it, this thread reports the address of the lock to the explorer, which runs other threads until
//! one wakes it. Only one explored thread runs at a time and none is stopped between a failed attempt and the
//! call to block, so no wake-up is lost. A thread without an explorer takes the real lock.
//!
//! All threads that use a lock or a condition variable while an explored thread does are explored by the same
//! explorer.

pub mod atomic;
mod lock;
mod rw_lock;

pub use std::sync::Arc;

pub use lock::{Condvar, Mutex, MutexGuard, WaitTimeoutResult, unlocked};
pub use rw_lock::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::points::{CallSite, explorer};

/// `std::thread` as far as the seam has it.
pub mod thread {
    // Explored threads are threads of the system.
    pub use std::thread::{ThreadId, current};

    /// Lets other threads run first.
    #[track_caller]
    pub fn yield_now() {
        super::spin(u32::MAX);
    }
}

/// One turn of a spin loop that waits for another thread: an explored thread always gives way.
#[track_caller]
pub fn spin(turn: u32) {
    match explorer() {
        Some(explorer) => explorer.give_way(CallSite::of_caller("turns of a loop")),
        None if turn < 64 => std::hint::spin_loop(),
        None => std::thread::yield_now(),
    }
}

/// Tries until it succeeds: what an explored thread does instead of blocking. `on` is the address of what it
/// waits for, `place` the call that a report names.
fn until_taken<G>(
    on: usize,
    place: CallSite,
    attempt: impl Fn() -> Option<G>,
    wait: impl FnOnce() -> G,
) -> G {
    super::points::point(super::points::Point::Lock);
    let Some(explorer) = explorer() else { return wait() };
    loop {
        if let Some(guard) = attempt() {
            return guard;
        }
        explorer.block(on, None, place);
    }
}

/// Threads that are blocked on `on` can try again.
fn wake(on: usize, all: bool) {
    if let Some(explorer) = explorer() {
        explorer.wake(on, all);
    }
}

fn address<T: ?Sized>(of: &T) -> usize {
    std::ptr::from_ref(of).cast::<()>() as usize
}
