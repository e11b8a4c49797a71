//! Runs work that borrows from its caller on several threads.
#![expect(unsafe_code, reason = "threads get a borrow as `'static`; `fork_join` joins them before it ends")]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use terrane_base::env::{Joiner, Spawn};
use terrane_base::sync::Mutex;

/// Joins every thread when dropped, also if the caller's own share panics.
struct Threads(Vec<Box<dyn Joiner>>);

impl Threads {
    fn join(&mut self) {
        for thread in self.0.drain(..) {
            thread.join();
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.join();
    }
}

/// Runs `work` on up to `threads` threads at once, including the caller; returns when all have finished. A
/// panic in one of them continues in the caller. `work` distributes its tasks itself.
pub(crate) fn fork_join(spawn: &dyn Spawn, threads: usize, work: &(dyn Fn() + Sync)) {
    let panic: Mutex<Option<Box<dyn Any + Send>>> = Mutex::new(None);
    let guarded = || {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(work)) {
            *panic.lock() = Some(payload);
        }
    };
    let guarded: &(dyn Fn() + Sync) = &guarded;
    // SAFETY: every thread that gets the reference is joined before this function returns or unwinds, by
    // `Threads`, and `Joiner::join` returns only when the thread has ended: the caller is another thread.
    let for_threads: &'static (dyn Fn() + Sync) = unsafe { std::mem::transmute(guarded) };
    let mut started = Threads(Vec::new());
    for number in 1..threads {
        match spawn.spawn(&format!("terrane-replay-{number}"), Box::new(for_threads)) {
            Ok(thread) => started.0.push(thread),
            // Fewer threads do the same work.
            Err(_) => break,
        }
    }
    guarded();
    started.join();
    if let Some(payload) = panic.into_inner() {
        resume_unwind(payload);
    }
}
