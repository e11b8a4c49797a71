//! Points: the operations at which one thread can see what another has done. With the feature `schedule`
//! every lock, condition variable, atomic operation, spin and call of a device passes one.
//!
//! The effect of a point depends on the thread:
//! 1. A thread inside `explored` asks its `Explorer`, which may let another thread run first. Only one thread
//!    of an explored program runs at a time; an explorer that draws its choices from a seed makes the program
//!    deterministic.
//! 2. Any other thread continues at once. If the variable `TERRANE_DELAYS` is set to a number, the thread is
//!    sometimes delayed, by random numbers that follow from that number and from the number of threads that
//!    passed a point before it did.
//!
//! Without the feature a point does nothing.

/// The next action of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Take a lock, or signal a condition variable.
    Lock,
    /// Write an atomic variable for others to see.
    Publish,
    /// Read an atomic variable that others write.
    Load,
    /// Call a device.
    Device,
}

#[cfg(not(feature = "schedule"))]
mod imp {
    /// Passes a point.
    #[inline(always)]
    pub fn point(_point: super::Point) {}

    /// Returns true on a thread of an explored program: this build has no such thread.
    #[inline(always)]
    #[must_use]
    pub fn is_explored() -> bool {
        false
    }
}

#[cfg(feature = "schedule")]
mod imp {
    use std::cell::{Cell, RefCell};
    use std::fmt;
    use std::panic::Location;
    use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
    use std::sync::{Arc, OnceLock};
    use std::time::Duration;

    use super::Point;

    /// Where a thread waits: the call in the program's source, so that a report of a deadlock names it.
    #[derive(Clone, Copy, Debug)]
    pub struct CallSite {
        /// The kind of what the thread waits for.
        pub what: &'static str,
        /// The call.
        pub call: &'static Location<'static>,
    }

    impl CallSite {
        /// The caller of the function that calls this, if that has `#[track_caller]` too.
        #[track_caller]
        #[must_use]
        pub fn of_caller(what: &'static str) -> CallSite {
            CallSite { what, call: Location::caller() }
        }
    }

    impl fmt::Display for CallSite {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{} at {}:{}", self.what, self.call.file(), self.call.line())
        }
    }

    /// Chooses which thread of an explored program runs. One object stands for one thread.
    ///
    /// Contract for implementers: each call returns when the calling thread may run, and at most one thread
    /// of the program runs at a time.
    pub trait Explorer: Send + Sync {
        /// The number of the thread in its program, from 0.
        fn number(&self) -> usize;

        /// The thread is about to pass a point.
        fn point(&self, point: Point);

        /// The thread waits for another one in a loop at `place`: others run first.
        fn give_way(&self, place: CallSite);

        /// The thread, which is at `place`, cannot go on until [`Explorer::wake`] names `on`, or until the
        /// timeout. Returns false for the timeout.
        fn block(&self, on: usize, timeout: Option<Duration>, place: CallSite) -> bool;

        /// Threads that are blocked on `on` can go on: all, or one of them.
        fn wake(&self, on: usize, all: bool);
    }

    thread_local! {
        static EXPLORER: RefCell<Option<Arc<dyn Explorer>>> = const { RefCell::new(None) };
        static DELAYS: Cell<u64> = const { Cell::new(0) };
    }

    /// Nothing has passed a point yet, so that the variable for delays is not read.
    const UNKNOWN: u8 = 0;
    /// No thread of this process has been explored, and none is delayed.
    const IDLE: u8 = 1;
    /// Each point looks for the explorer of its thread, or delays the thread.
    const ACTIVE: u8 = 2;

    /// Most tests run without an explorer: one relaxed load is the whole cost of a point for them.
    ///
    /// Relaxed everywhere: a thread is only explored after it has stored `ACTIVE` itself, and nothing
    /// replaces `ACTIVE`, so it reads `ACTIVE` from then on. What other threads read does not matter.
    static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);

    #[inline]
    fn is_idle() -> bool {
        match STATE.load(Ordering::Relaxed) {
            UNKNOWN => first_look() == IDLE,
            state => state == IDLE,
        }
    }

    /// The state behind a first look at the variable.
    #[cold]
    fn first_look() -> u8 {
        let state = if delays().is_some() { ACTIVE } else { IDLE };
        match STATE.compare_exchange(UNKNOWN, state, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => state,
            Err(known) => known,
        }
    }

    /// Runs `body` on this thread as a thread of the program that `explorer` explores.
    pub fn explored<R>(explorer: Arc<dyn Explorer>, body: impl FnOnce() -> R) -> R {
        /// Ends the exploration of this thread, also after a panic.
        struct Leave(Option<Arc<dyn Explorer>>);
        impl Drop for Leave {
            fn drop(&mut self) {
                let before = self.0.take();
                EXPLORER.with(|current| *current.borrow_mut() = before);
            }
        }
        STATE.store(ACTIVE, Ordering::Relaxed);
        let _leave = Leave(EXPLORER.with(|current| current.borrow_mut().replace(explorer)));
        body()
    }

    /// The explorer of this thread, if it has one.
    #[inline]
    pub(in crate::sync) fn explorer() -> Option<Arc<dyn Explorer>> {
        if is_idle() { None } else { explorer_of_thread() }
    }

    fn explorer_of_thread() -> Option<Arc<dyn Explorer>> {
        // Destructors of other thread-locals may come here after this one is gone.
        EXPLORER.try_with(|current| current.borrow().clone()).ok().flatten()
    }

    /// Returns true on a thread of an explored program: what it does must follow from the choices of its
    /// explorer, so not from an address of memory.
    #[must_use]
    pub fn is_explored() -> bool {
        explorer().is_some()
    }

    /// Passes a point.
    #[inline]
    pub fn point(point: Point) {
        if !is_idle() {
            pass(point);
        }
    }

    fn pass(point: Point) {
        match explorer_of_thread() {
            Some(explorer) => explorer.point(point),
            None => delay(point),
        }
    }

    fn delays() -> Option<u64> {
        static DELAYS: OnceLock<Option<u64>> = OnceLock::new();
        *DELAYS.get_or_init(|| {
            let text = std::env::var("TERRANE_DELAYS").ok()?;
            Some(text.parse().expect("TERRANE_DELAYS is a number: the seed of random delays"))
        })
    }

    /// Delays the thread now and then: long waits are rare, so that tests come to their end.
    fn delay(point: Point) {
        let Some(seed) = delays() else { return };
        let draw = next_random(seed);
        let chance = (draw >> 16) & 0xffff;
        if point == Point::Load {
            if chance < 32 {
                std::thread::yield_now();
            }
            return;
        }
        match chance {
            0..2 => nap(Duration::from_micros(1000 + draw % 4096)),
            2..40 => nap(Duration::from_micros(1 + draw % 200)),
            40..1000 => std::thread::yield_now(),
            _ => {}
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a delay of the thread itself, never of an explored one")]
    fn nap(duration: Duration) {
        std::thread::sleep(duration);
    }

    /// Xorshift (Marsaglia 2003); each thread has a stream of its own.
    fn next_random(seed: u64) -> u64 {
        static THREADS: AtomicU64 = AtomicU64::new(0);
        let next = |state: &Cell<u64>| {
            let mut x = state.get();
            if x == 0 {
                // Relaxed: a number for each thread and nothing else.
                let thread = THREADS.fetch_add(1, Ordering::Relaxed);
                x = (seed ^ thread.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1;
            }
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            state.set(x);
            x
        };
        DELAYS.try_with(next).unwrap_or(u64::MAX)
    }
}

pub use imp::*;
