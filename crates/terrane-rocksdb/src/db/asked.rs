//! Which flushes and compactions of a column family callers asked for. Event listeners get the reason
//! of a job, and the engine does not keep it.
//!
//! A flush returns before listeners get its event, so its mark stays until the event of its end takes it. A
//! compaction waits for the listeners, as in RocksDB, so its mark is there while the call runs.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Reasons of flushes, as RocksDB numbers them.
const FOR_COMPACTION: u32 = 4;
const MEMTABLE_FULL: u32 = 6;
const FLUSH_CALL: u32 = 10;
/// Reasons of compactions, as RocksDB numbers them.
const OVERFLOW_RUNS: u32 = 1;
const LEVEL_SIZE: u32 = 2;
const COMPACTION_CALL: u32 = 9;

/// Requests of callers that are running now.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    flushes: AtomicUsize,
    compactions: AtomicUsize,
}

/// A compaction that a caller waits for.
pub(crate) struct AskedCompaction<'a>(&'a AtomicUsize);

impl Drop for AskedCompaction<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Asked {
    /// A caller asks for a flush.
    pub(crate) fn flush(&self) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
    }

    /// A caller asks for a compaction, until the mark is dropped.
    pub(crate) fn compaction(&self) -> AskedCompaction<'_> {
        self.compactions.fetch_add(1, Ordering::Relaxed);
        AskedCompaction(&self.compactions)
    }

    /// The reason of a flush.
    pub(crate) fn flush_reason(&self) -> u32 {
        match (self.flushes.load(Ordering::Relaxed), self.compactions.load(Ordering::Relaxed)) {
            (0, 0) => MEMTABLE_FULL,
            (0, _) => FOR_COMPACTION,
            _ => FLUSH_CALL,
        }
    }

    /// The reason of a flush that has ended: later ones have one of their own.
    pub(crate) fn take_flush_reason(&self) -> u32 {
        let reason = self.flush_reason();
        let one_less = |flushes: usize| flushes.checked_sub(1);
        let _ = self.flushes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
        reason
    }

    /// The reason of a compaction from this level, 0 for overflow runs.
    pub(crate) fn compaction_reason(&self, from: u8) -> u32 {
        match (self.compactions.load(Ordering::Relaxed), from) {
            (0, 0) => OVERFLOW_RUNS,
            (0, _) => LEVEL_SIZE,
            _ => COMPACTION_CALL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_the_reason_of_the_call_that_asked_for_it() {
        let asked = Asked::default();
        assert_eq!((asked.flush_reason(), asked.compaction_reason(0)), (MEMTABLE_FULL, OVERFLOW_RUNS));
        let compaction = asked.compaction();
        assert_eq!((asked.flush_reason(), asked.compaction_reason(1)), (FOR_COMPACTION, COMPACTION_CALL));
        drop(compaction);
        asked.flush();
        assert_eq!((asked.take_flush_reason(), asked.flush_reason()), (FLUSH_CALL, MEMTABLE_FULL));
        assert_eq!(asked.compaction_reason(1), LEVEL_SIZE);
    }
}
