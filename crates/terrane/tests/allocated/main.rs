//! Allocations of a thread. A program of its own beside the `suite`, as the allocator is the process's, and
//! one test after the other: memory that a test has pinned keeps that of every database of the process from
//! being freed.
#![allow(unsafe_code, reason = "counts allocations")]
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a failed test may say so by a panic")]

mod short_scans;
mod tables;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The system's allocator, how often and for how many bytes this thread asked it, and how many of them it
/// holds: now, and at most since the last reset.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static ASKED: Cell<u64> = const { Cell::new(0) };
    static HELD: Cell<i64> = const { Cell::new(0) };
    static HELD_MOST: Cell<i64> = const { Cell::new(0) };
}

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get() + 1));
        let _ = ASKED.try_with(|asked| asked.set(asked.get() + layout.size() as u64));
        let held =
            HELD.try_with(|held| held.replace(held.get() + layout.size() as i64) + layout.size() as i64);
        let _ = HELD_MOST.try_with(|most| most.set(most.get().max(held.unwrap_or(0))));
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        let _ = HELD.try_with(|held| held.set(held.get() - layout.size() as i64));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The test that runs holds it.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    // A test that failed leaves the lock poisoned; the others are judged all the same.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
