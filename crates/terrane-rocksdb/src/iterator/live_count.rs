//! Number of live iterators, reported by cache handles.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// A guard that counts one live iterator; it counts nothing for families without a cache handle.
pub(crate) struct Counted(Option<Arc<AtomicUsize>>);

impl Counted {
    pub(crate) fn new(all: &Option<Arc<AtomicUsize>>) -> Counted {
        if let Some(all) = all {
            // A number by itself: nothing else is read by it.
            all.fetch_add(1, Relaxed);
        }
        Counted(all.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(all) = &self.0 {
            all.fetch_sub(1, Relaxed);
        }
    }
}
