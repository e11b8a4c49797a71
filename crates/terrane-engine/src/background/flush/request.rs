//! The request for a flush.

use std::sync::Arc;

use terrane_base::SeqNo;

use crate::background::maintenance::Maintenance;
use crate::table::Table;

impl Maintenance {
    /// Asks for the flush of everything committed so far in `tables`; returns up to which number that is. A
    /// caller that waits for it gets the error of tables whose background work has stopped.
    pub(crate) fn request_flush(&self, tables: &[Arc<Table>]) -> SeqNo {
        let mut upto = SeqNo(0);
        self.journal.between_groups(&mut |next_seq| upto = SeqNo(next_seq.0 - 1));
        for table in tables.iter().filter(|table| !table.is_stopped()) {
            // One that refuses has stopped.
            let _ = self.freeze(table);
            table.want_flush(upto);
        }
        let is_asked = |table: &Arc<Table>| table.is_stopped() || table.flush_wanted() >= upto;
        debug_assert!(
            tables.iter().all(is_asked),
            "a caller waits for a flush up to {upto} that is not asked for"
        );
        self.give_up_adapting();
        self.background.scheduler.wake();
        upto
    }
}
