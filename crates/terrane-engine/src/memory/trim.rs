//! Memory that the cache gave up goes back to the system.
//!
//! An allocator keeps what was freed for later. Blocks that were evicted for the sake of writers would stay with the
//! process, and what writers take would come on top of them: the sum of the two peaks, not the ceiling.
//!
//! Steps: 1. whoever divides memory notes what the cache holds; 2. the background, after each piece of work and each step
//! of a flush or compaction, compares it with the most that was noted since the last time.

use terrane_base::sync::atomic::{AtomicU64, Ordering};

use crate::engine::Engine;

/// Of the ceiling, one part in this many freed is worth a call.
const STEP_SHARE: u64 = 16;
/// Less is never worth one.
const STEP_BYTES_MIN: u64 = 4 << 20;

/// The most that the cache held since memory went back to the system.
#[derive(Debug, Default)]
pub(crate) struct TrimWatch(AtomicU64);

impl TrimWatch {
    /// Notes that the cache holds `used` bytes.
    pub(crate) fn note(&self, used: u64) {
        // Looked at first: mostly there is nothing to change. Relaxed: a hint.
        if self.0.load(Ordering::Relaxed) < used {
            self.0.fetch_max(used, Ordering::Relaxed);
        }
    }

    /// Whether the cache, which holds `used` bytes now, gave up `least` bytes or more: one caller is told so.
    fn take(&self, used: u64, least: u64) -> bool {
        let most = self.0.load(Ordering::Relaxed);
        most.saturating_sub(used) >= least
            && self.0.compare_exchange(most, used, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl Engine {
    /// Gives freed memory back to the system if the cache gave up enough of it. For the background: takes milliseconds.
    pub(crate) fn return_freed_memory(&self) {
        if !self.options.return_freed_memory {
            return;
        }
        let least = (self.budget.memory_bytes() / STEP_SHARE).max(STEP_BYTES_MIN);
        if self.freed_watch.take(self.cache.used_bytes(), least) {
            terrane_device::return_freed_memory();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_up_is_told_once() {
        let watch = TrimWatch::default();
        watch.note(100);
        watch.note(60);
        assert!(!watch.take(91, 10));
        assert!(watch.take(90, 10));
        assert!(!watch.take(90, 10) && !watch.take(81, 10));
        assert!(watch.take(80, 10));
        watch.note(200);
        assert!(!watch.take(195, 10) && watch.take(0, 10));
    }
}
