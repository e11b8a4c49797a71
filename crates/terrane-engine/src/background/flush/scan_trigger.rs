//! Flushes of versions in memory that scans step over.
//!
//! Versions that a range delete of their own memtable or generation hides stay there until it is flushed, and
//! may have newer ones of the same keys among them: a scan steps over each. So a table whose scans have
//! stepped over more versions than it has in memory is flushed: by then the steps have cost as much as the
//! flush, and hidden versions do not come as far as the levels.

use std::sync::Arc;

use terrane_base::SeqNo;

use crate::background::job::{Job, Look};
use crate::observe::job_kind::JobKinds;
use crate::observe::stats::add;
use crate::table::Table;
use crate::table::read_view::ReadView;

impl Look<'_> {
    /// Memory that scans step over more than it is worth: its table is flushed.
    pub(crate) fn flush_for_scans(self) -> Option<Job> {
        let tables = self.catalog.scanned();
        let is_free = |table: &&Arc<Table>| !self.schedule.holds_any(JobKinds::TO_LEVELS, table.id);
        let is_due = |table: &&Arc<Table>| table.passed.outweighs(|| records(&table.pinned()));
        let table =
            tables.iter().filter(is_free).find(is_due).filter(|_| self.options.experiments.scan_flush)?;
        // Several workers may look at once; the flush that one of them asks for counts once.
        if table.want_flush(self.journal.visible()) {
            add(&self.counters.scan_flushes, 1);
        }
        debug_assert!(table.flush_wanted() > SeqNo(0), "nothing goes on behind the switch of its memtable");
        Some(Job::Freeze(table.clone()))
    }
}

/// Records in memory.
fn records(view: &ReadView) -> u64 {
    let memtables = std::iter::once(&view.active).chain(&view.frozen);
    let generations = view.generations.iter().map(|generation| generation.entry_count());
    memtables.map(|memtable| memtable.entry_count()).chain(generations).sum()
}
