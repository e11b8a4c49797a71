//! Epochs for safe memory reclamation: a thread that pins an epoch keeps alive everything that it can see,
//! and replaced objects are freed when the last epoch that could see them has ended.
//!
//! All threads share one collector, so the time at which memory is freed depends on every thread of the
//! process. A simulated world must not depend on other threads: [`alone`] gives it a collector of its own.
//!
//! [`EpochCell`] is a value that is read so and replaced whole.
//!
//! Invariant: objects reached under a guard of [`pin`] are retired under guards of the same collector.
#![expect(unsafe_code, reason = "a pin follows a pointer of its thread; callers promise where objects stay")]

mod cell;

use std::cell::RefCell;
use std::ptr::null;
use std::sync::OnceLock;

pub use cell::EpochCell;

pub use crossbeam_epoch::{Atomic, Guard, Owned, Shared};
use crossbeam_epoch::{Collector, LocalHandle};

use crate::thread_cells;

fn shared() -> &'static Collector {
    static SHARED: OnceLock<Collector> = OnceLock::new();
    SHARED.get_or_init(Collector::new)
}

/// The handle of a thread. Where it is stands in the thread's cells, from the first pin until it ends.
struct Handle(RefCell<LocalHandle>);

impl Drop for Handle {
    fn drop(&mut self) {
        thread_cells::with(|cells| cells.epoch.set(null()));
    }
}

thread_local! {
    static HANDLE: Handle = Handle(RefCell::new(shared().register()));
}

/// Pins the current epoch until the guard is dropped. Part of the function that calls it, which reaches the
/// thread's cells once.
#[inline(always)]
#[must_use]
pub fn pin() -> Guard {
    let handle = thread_cells::with(|cells| cells.epoch.get());
    // SAFETY: null, or the handle of this thread, which takes itself out of the cells before it is dropped.
    // Nothing has it mutably borrowed: what it is replaced by comes through the `RefCell`.
    match unsafe { handle.as_ref() } {
        Some(handle) => handle.borrow().pin(),
        None => pin_first(),
    }
}

/// [`pin`] where the thread has no handle in its cells.
#[cold]
fn pin_first() -> Guard {
    let first = HANDLE.try_with(|handle| {
        thread_cells::with(|cells| cells.epoch.set(&raw const handle.0));
        handle.0.borrow().pin()
    });
    // Destructors of other thread-locals may come here after the handle is gone.
    first.unwrap_or_else(|_| shared().register().pin())
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

/// A collector that several threads have for themselves: when memory is freed depends on them alone. Memory
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
                // may pin and retire: a second handle of the same collector is in its place for that.
                let second = self.0.0.register();
                let own = HANDLE.with(|handle| handle.0.replace(second));
                // The drop of the second one must run no destructor: one that pinned then would have the
                // guard of another collector, and what it retires would be destroyed there, by any thread.
                // A handle collects in its first pin and in each 128th, and a pin within a pin does not
                // count. So this pin, which lasts until `own` is gone, is the only one that counts: the next
                // one, of the drop, does not collect.
                let pinned = pin();
                drop(own);
                drop(pinned);
                drop(HANDLE.with(|handle| handle.0.replace(before)));
            }
        }
        let own = self.0.register();
        let _restore = Restore(self, Some(HANDLE.with(|handle| handle.0.replace(own))));
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

    /// A thread-local whose destructor runs after that of the handle.
    struct Late;

    impl Drop for Late {
        fn drop(&mut self) {
            // A panic here would end the process.
            if thread_cells::with(|cells| cells.epoch.get()).is_null() {
                drop(pin());
                LATE_PINS.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    static LATE_PINS: AtomicU32 = AtomicU32::new(0);
    thread_local!(static LATE: Late = const { Late });

    #[test]
    fn a_thread_may_pin_until_its_last_destructor_has_run() {
        let of_a_thread = || {
            LATE.with(|_| ());
            drop(pin());
            assert!(!thread_cells::with(|cells| cells.epoch.get()).is_null(), "kept from the first pin on");
            drop(pin());
        };
        std::thread::scope(|scope| scope.spawn(of_a_thread).join().expect("ends"));
        assert_eq!(LATE_PINS.load(Ordering::Relaxed), 1, "a handle that is dropped is in no cell");
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

    /// Garbage of a world is destroyed at the end of a part of it, by the first handle or the second, and
    /// retires more: that belongs to the world, too, however far its epoch was.
    #[test]
    fn objects_that_destructors_retire_at_the_end_stay_in_the_world() {
        use std::sync::Arc;

        for advances in 0..4 {
            let (world, destroyed) = (World::default(), Arc::new([AtomicU32::new(0), AtomicU32::new(0)]));
            let counts = destroyed.clone();
            // SAFETY: nothing is reached under an epoch but the closures of the world itself.
            unsafe {
                world.within(|| {
                    pin().defer(move || {
                        counts[0].fetch_add(1, Ordering::Relaxed);
                        pin().defer(move || counts[1].fetch_add(1, Ordering::Relaxed));
                    });
                    (0..advances).for_each(|_| pin().flush());
                });
                // Parts that do nothing move the epoch on only where they end.
                for _ in 0..8 {
                    world.within(|| ());
                }
                assert_eq!(destroyed[0].load(Ordering::Relaxed), 1, "destroyed after {advances} advances");
                world.within(forget_garbage);
            }
            let of_destructor = destroyed[1].load(Ordering::Relaxed);
            assert_eq!(of_destructor, 1, "retired elsewhere after {advances} advances");
        }
    }
}
