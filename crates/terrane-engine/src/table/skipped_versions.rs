//! Versions in memory that scans of a table step over because a range delete hides them.

use terrane_base::sync::atomic::{AtomicU64, Ordering};

/// Fewer are not worth a flush, however little is in memory.
const VERSIONS_MIN: u64 = 10_000;
/// How often scans must have stepped over as many versions as there are in memory.
const TIMES_MIN: u64 = 2;

/// Hidden versions in memory that scans of a table have stepped over since the last flush was asked for.
#[derive(Debug, Default)]
pub(crate) struct SkippedVersions(AtomicU64);

impl SkippedVersions {
    pub(crate) fn add(&self, versions: u64) {
        // Relaxed, as below: a count that nothing depends on but when a flush is asked for.
        self.0.fetch_add(versions, Ordering::Relaxed);
    }

    /// Begins anew: a flush brings what is hidden into the levels.
    pub(crate) fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Whether a flush of `records` is worth what scans have stepped over.
    pub(crate) fn outweighs(&self, records: impl FnOnce() -> u64) -> bool {
        let passed = self.0.load(Ordering::Relaxed);
        passed >= VERSIONS_MIN && passed / TIMES_MIN >= records()
    }
}
