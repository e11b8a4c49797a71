//! How many iterators a database has.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// One of the iterators that are counted.
pub(super) struct Counted(Arc<AtomicUsize>);

impl Counted {
    pub(super) fn new(all: &Arc<AtomicUsize>) -> Counted {
        // A number by itself: nothing else is read by it.
        all.fetch_add(1, Relaxed);
        Counted(all.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
