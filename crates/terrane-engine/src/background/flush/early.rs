//! Flushes of memtables that are not full: which table's is worth most while memory is short or the journal
//! too long.

use crate::background::job::{Job, Look};
use crate::observe::job_kind::{JobKind, JobKinds};
use crate::table::Table;

/// Share of the write memory in use from which on memtables are flushed before they are full.
const RELIEF_DEBT: f64 = 0.90;

/// Which table is flushed before it is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Early {
    /// The one with most bytes in memory: its index comes back.
    Fullest,
    /// The one that holds back the oldest segment, which comes back once all tables with records in it are
    /// flushed.
    Oldest,
}

impl Early {
    /// The flush that gives back most, where writers use `write_bytes`, of which indexes are `index_bytes`.
    /// `is_short`: memory is; otherwise the journal is only too long.
    fn of(is_short: bool, index_bytes: u64, write_bytes: u64) -> Early {
        // With many tables the part of indexes that does not grow with records is most of it: the fullest one
        // gives back most for one flush. Segments never come back so while another table is in the oldest.
        if is_short && index_bytes > write_bytes / 2 { Early::Fullest } else { Early::Oldest }
    }
}

impl Look<'_> {
    /// While memory is short or the journal too long, and nothing is flushed: the table whose flush gives
    /// back most ([`Early`]). Its memtable is not full, but many such tables together, or one that hardly
    /// any commit writes to, can fill the memory.
    pub(crate) fn relief(self) -> Option<Job> {
        let schedule = self.schedule;
        let is_moving = schedule.runs_any(JobKinds::TO_LEVELS);
        let is_short = || self.memory.debt() >= RELIEF_DEBT;
        if is_moving || !is_short() && !self.is_journal_too_long() {
            return None;
        }
        let is_free = |table: &Table| !schedule.is_held(JobKind::Flush, table.id);
        let index_bytes = self.catalog.sums().index_bytes();
        let table = match Early::of(is_short(), index_bytes, self.memory.use_of_writers()) {
            Early::Fullest => self.catalog.fullest(is_free),
            Early::Oldest => self.catalog.oldest_filled(is_free),
        }?;
        debug_assert!(is_free(&table), "a table is flushed by one job at a time");
        table.want_flush(self.journal.visible());
        let view = table.pinned();
        if !view.generations.is_empty() {
            return Some(Job::Flush(table.clone()));
        }
        Some(Job::Freeze(table.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fullest_is_flushed_while_indexes_are_most_of_a_short_memory() {
        assert_eq!(Early::of(true, 51, 100), Early::Fullest);
        assert_eq!(Early::of(true, 50, 100), Early::Oldest, "segments are as much");
        assert_eq!(Early::of(false, 90, 100), Early::Oldest, "only the journal is too long");
    }
}
