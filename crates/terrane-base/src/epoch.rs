//! Epochs for safe memory reclamation: a thread that pins an epoch keeps alive everything that it can see,
//! and replaced objects are freed when the last epoch that could see them has ended.
//!
//! All threads share one collector, so the time at which memory is freed depends on every thread of the
//! process. A simulated world must not depend on other threads: [`alone`] gives it a collector of its own.
//!
//! [`EpochCell`] is a value that is read so and replaced whole.
//!
//! Invariant: objects reached under a guard of [`pin`] are retired under guards of the same collector.
#![expect(unsafe_code, reason = "which collector a thread uses is a promise of the caller")]

mod cell;

use std::cell::RefCell;
use std::sync::OnceLock;

pub use cell::EpochCell;

pub use crossbeam_epoch::{Atomic, Guard, Owned, Shared};
use crossbeam_epoch::{Collector, LocalHandle};

fn shared() -> &'static Collector {
    static SHARED: OnceLock<Collector> = OnceLock::new();
    SHARED.get_or_init(Collector::new)
}

thread_local! {
    static HANDLE: RefCell<LocalHandle> = RefCell::new(shared().register());
}

/// Pins the current epoch until the guard is dropped.
#[inline]
#[must_use]
pub fn pin() -> Guard {
    // Destructors of other thread-locals may come here after the handle is gone.
    HANDLE.try_with(|handle| handle.borrow().pin()).unwrap_or_else(|_| shared().register().pin())
}

/// Destroys what replaced values leave to their epoch, unless a reader is in it now: a closed database
/// should not keep files mapped until some other database of the process moves the epoch on.
pub fn forget_garbage() {
    // Garbage of an epoch may be destroyed two epochs later; each turn advances by one.
    for _ in 0..4 {
        pin().flush();
    }
}

/// Runs `world` with a collector of its own: when memory is freed depends on `world` alone. Everything
/// retired in it is freed before this returns.
///
/// # Safety
/// Nothing that `world` makes and that is reached under [`pin`] is used after this returns, nor by another
/// thread; and `world` uses nothing of the kind that was made outside.
pub unsafe fn alone<R>(world: impl FnOnce() -> R) -> R {
    // SAFETY: the caller promises more: one thread.
    unsafe { World::default().within(world) }
}

/// A collector that several threads have for themselves: when memory is freed depends on them alone. What is
/// retired in it is freed when it is dropped and the last of them has left, at the latest.
#[derive(Clone, Debug, Default)]
pub struct World(Collector);

impl World {
    /// Runs `part` on this thread with the collector of the world.
    ///
    /// # Safety
    /// Objects created within the world and reached under [`pin`] are used within it only, and objects
    /// created outside are not used within.
    pub unsafe fn within<R>(&self, part: impl FnOnce() -> R) -> R {
        /// Puts the thread's handle back, also after a panic.
        struct Restore<'w>(&'w World, Option<LocalHandle>);
        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                let Some(before) = self.1.take() else { return };
                // A dropped handle passes its garbage on to the collector, and the destructors that run then
                // may pin: a second handle of the same collector, without garbage, is in its place for that.
                let second = self.0.0.register();
                drop(HANDLE.with(|handle| handle.replace(second)));
                drop(HANDLE.with(|handle| handle.replace(before)));
            }
        }
        let own = self.0.register();
        let _restore = Restore(self, Some(HANDLE.with(|handle| handle.replace(own))));
        part()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    static FREED: AtomicU32 = AtomicU32::new(0);

    struct Counted;
    impl Drop for Counted {
        fn drop(&mut self) {
            FREED.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_world_frees_its_own_while_others_are_pinned() {
        let _outside = pin();
        // SAFETY: nothing leaves the closure.
        unsafe {
            alone(|| {
                for _ in 0..100 {
                    let guard = pin();
                    guard.defer(|| drop(Counted));
                }
                for _ in 0..8 {
                    pin().flush();
                }
                assert_eq!(FREED.load(Ordering::Relaxed), 100);
                pin().defer(|| drop(Counted));
            });
        }
        assert_eq!(FREED.load(Ordering::Relaxed), 101, "the end of a world frees the rest");
    }
}
