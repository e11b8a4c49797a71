//! A number for each thread, for selecting one of several parts that threads usually do not share.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::thread_cells;

/// The number of the calling thread: from 0, in the order in which threads ask for the first time. An
/// explored thread has its number in its program, so that a schedule does not depend on the programs before
/// it.
#[inline]
#[must_use]
pub fn thread_number() -> usize {
    thread_cells::with(|cells| {
        if cells.number.get() == usize::MAX {
            cells.number.set(new_number());
        }
        cells.number.get()
    })
}

#[cold]
fn new_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    #[cfg(all(feature = "schedule", not(feature = "shuttle")))]
    if let Some(explorer) = super::points::explorer() {
        return explorer.number();
    }
    // Relaxed: a number for each thread and nothing else.
    NEXT.fetch_add(1, Ordering::Relaxed)
}
