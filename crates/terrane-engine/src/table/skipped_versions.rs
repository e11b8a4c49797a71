//! Versions in memory that scans of a table step over because a range delete hides them.

use std::sync::{Arc, OnceLock};

use terrane_base::TableId;
use terrane_base::sync::atomic::{AtomicU64, Ordering};

use crate::table::sums::TableSums;

/// Fewer are not worth a flush, however little is in memory.
const VERSIONS_MIN: u64 = 10_000;
/// How often scans must have stepped over as many versions as there are in memory.
const TIMES_MIN: u64 = 2;

/// Hidden versions in memory that scans of a table have stepped over since the last flush was asked for.
#[derive(Debug, Default)]
pub(crate) struct SkippedVersions {
    count: AtomicU64,
    /// Where the table is listed once they are many.
    listed_in: OnceLock<(Arc<TableSums>, TableId)>,
}

impl SkippedVersions {
    pub(crate) fn add(&self, versions: u64) {
        debug_assert!(versions > 0, "a step that passes none writes nothing that other threads read");
        // Relaxed, as below: a count that nothing depends on but when a flush is asked for.
        let before = self.count.fetch_add(versions, Ordering::Relaxed);
        let becomes_many = before < VERSIONS_MIN && before.saturating_add(versions) >= VERSIONS_MIN;
        if becomes_many && let Some((sums, table)) = self.listed_in.get() {
            sums.due().note_scanned(*table);
        }
    }

    /// Says where the table is listed once they are many.
    pub(crate) fn join(&self, sums: &Arc<TableSums>, table: TableId) {
        self.listed_in.get_or_init(|| (sums.clone(), table));
    }

    /// Returns true if they are so many that a flush may be worth it.
    pub(crate) fn are_many(&self) -> bool {
        self.count.load(Ordering::Relaxed) >= VERSIONS_MIN
    }

    /// Begins again: a flush brings hidden versions into the levels.
    pub(crate) fn forget(&self) {
        self.count.store(0, Ordering::Relaxed);
    }

    /// Returns true if a flush of `records` is worth what scans have stepped over.
    pub(crate) fn outweighs(&self, records: impl FnOnce() -> u64) -> bool {
        let passed = self.count.load(Ordering::Relaxed);
        passed >= VERSIONS_MIN && passed / TIMES_MIN >= records()
    }
}
