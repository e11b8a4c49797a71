//! What scans step over in memory.
//!
//! Versions that a range delete of their own memtable or generation hides stay there until it is flushed, and may have newer
//! ones of the same keys among them: a scan steps over each. So a table whose scans have stepped over more versions than it has
//! in memory is flushed: what that costs has been paid by then, and what is hidden does not come as far as the levels.

use std::sync::Arc;
use terrane_base::sync::atomic::{AtomicU64, Ordering};

use crate::background::job::Job;
use crate::background::scheduler::Schedule;
use crate::engine::Engine;
use crate::observe::stats::add;
use crate::table::Table;
use crate::table::read_view::ReadView;

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

    /// Begins anew: what is hidden is on its way into the levels.
    pub(crate) fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Whether a flush of `records` is worth what scans have stepped over.
    fn outweighs(&self, records: impl FnOnce() -> u64) -> bool {
        let passed = self.0.load(Ordering::Relaxed);
        passed >= VERSIONS_MIN && passed / TIMES_MIN >= records()
    }
}

impl Engine {
    /// Memory that scans step over more than it is worth: its table is flushed.
    pub(crate) fn flush_for_scans(&self, tables: &[Arc<Table>], schedule: &Schedule) -> Option<Job> {
        let is_free = |table: &&Arc<Table>| {
            ["freeze", "settle", "flush"].into_iter().all(|work| !schedule.is_held(work, table.id))
        };
        let is_due = |table: &&Arc<Table>| table.passed.outweighs(|| records(&table.pinned()));
        let table = tables.iter().filter(is_free).find(is_due).filter(|_| self.options.scan_flush)?;
        if table.flush_wanted() < self.journal.visible() {
            table.want_flush(self.journal.visible());
            add(&self.counters.scan_flushes, 1);
        }
        Some(Job::Freeze(table.clone()))
    }
}

/// Records in memory.
fn records(picture: &ReadView) -> u64 {
    let memtables = std::iter::once(&picture.active).chain(&picture.frozen);
    let generations = picture.generations.iter().map(|generation| generation.entry_count());
    memtables.map(|memtable| memtable.entry_count()).chain(generations).sum()
}
