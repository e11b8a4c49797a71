//! Counts the sums again, to compare them with what was noted: for tests and simulators.

use super::{Amounts, RECORD_GRAIN_BYTES};
use crate::table::Table;
use crate::table::catalog::Catalog;
use crate::table::due::InMemory;

impl Table {
    /// The part that was noted last, if that is what the table has, but for growth within a grain. Requires:
    /// no writer, no job.
    fn recounted(&self) -> Option<Amounts> {
        let noted = self.part.noted.lock();
        let guard = terrane_base::epoch::pin();
        let view = self.view(&guard);
        let now = Amounts::of(view);
        // Records come with an index, which grows by chunks. A writer with a number from before a freeze may
        // still add to the frozen memtable after the last note.
        let grain = RECORD_GRAIN_BYTES + view.active.index_bytes();
        let left_out = now.filled_bytes.checked_sub(noted.amounts.filled_bytes);
        let is_near = left_out.is_some_and(|bytes| bytes <= grain || !view.frozen.is_empty());
        let are_equal = noted.amounts.filled_tables == now.filled_tables
            && noted.amounts.behind_bytes <= now.behind_bytes
            && noted.amounts.level_bytes == now.level_bytes
            && noted.amounts.block_bytes == now.block_bytes
            && noted.in_memory == InMemory::of(view, self.is_full())
            && self.sums.due.has_size(self.id, noted.amounts.sizes());
        (noted.is_listed && is_near && are_equal).then_some(noted.amounts)
    }
}

impl Catalog {
    /// Counts the sums again, table by table. Requires: no writer, no job.
    ///
    /// # Errors
    /// Says which sum differs, or of which table something else was noted than it has.
    pub(crate) fn recount(&self) -> Result<(), String> {
        let tables = self.all();
        let mut parts = Amounts::default();
        for table in &tables {
            let part = table.recounted();
            parts = parts
                .plus(part.ok_or_else(|| format!("of table {:?} is noted: {:?}", table.name, table.part))?);
        }
        let index_bytes: u64 = tables.iter().map(|table| table.pinned().index_bytes()).sum();
        let counted = (index_bytes, parts);
        let sums = (self.sums().index_bytes(), self.sums().now());
        if counted == sums { Ok(()) } else { Err(format!("counted {counted:?}, the sums say {sums:?}")) }
    }
}
