//! The load of a table: samples of its reads, and what they say about its tree.

use terrane_base::sampling;
use terrane_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use terrane_compaction::Counted;

/// Counts of a table's reads since the database was opened, and the mode that was derived from them, for
/// displays.
#[derive(Debug, Default)]
pub(crate) struct TableLoad {
    /// True if the table is listed for the next look.
    is_listed: AtomicBool,
    pub(crate) reads: AtomicU64,
    pub(crate) read_runs: AtomicU64,
    pub(crate) seeks: AtomicU64,
    pub(crate) seek_runs: AtomicU64,
    /// True if the tree is kept for reads.
    pub(crate) is_read_heavy: AtomicBool,
    /// Sorted runs per read of late, in thousandths.
    pub(crate) runs_per_read_milli: AtomicU64,
}

impl TableLoad {
    /// The counts so far, without those of writes.
    pub(crate) fn counted(&self) -> Counted {
        // Relaxed: these are counts, each for itself.
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counted {
            reads: read(&self.reads),
            read_runs: read(&self.read_runs),
            seeks: read(&self.seeks),
            seek_runs: read(&self.seek_runs),
            ..Counted::default()
        }
    }

    /// Returns true if the table was not listed yet; it is from now on. To be called after the counts.
    #[inline]
    pub(crate) fn enter_list(&self) -> bool {
        // AcqRel, as below: of two exchanges the later one sees what was counted before the earlier one.
        !self.is_listed.swap(true, Ordering::AcqRel)
    }

    /// The table is no longer listed. To be called before a look at the counts.
    pub(crate) fn leave_list(&self) {
        self.is_listed.swap(false, Ordering::AcqRel);
    }

    pub(crate) fn add_reads(&self, reads: u64, runs: u64) {
        self.reads.fetch_add(reads * sampling::EVERY, Ordering::Relaxed);
        self.read_runs.fetch_add(runs * sampling::EVERY, Ordering::Relaxed);
    }
}
