//! The tables by size: which one a flush relieves most, and which ones a page of metrics shows.

use std::cmp::Reverse;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use terrane_base::TableId;

use super::DueTables;
use crate::table::Table;
use crate::table::catalog::Catalog;

/// Bytes of a table that decide where it is in the sets by size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Bytes of records in memory and of their indexes.
    pub(crate) in_memory: u64,
    /// The same and the bytes of the levels.
    pub(crate) total: u64,
}

impl DueTables {
    /// Lists a table by its size, of which nothing is noted yet.
    pub(crate) fn list_size(&self, table: TableId) {
        let is_new = self.0.lock().by_total.insert((0, Reverse(table)));
        assert!(is_new, "table {table} is listed twice");
    }

    /// Takes a table out of the list by size. Requires: its size was noted as 0.
    pub(crate) fn unlist_size(&self, table: TableId) {
        let was_listed = self.0.lock().by_total.remove(&(0, Reverse(table)));
        assert!(was_listed, "what was noted of {table} leaves the sets before the table");
    }

    /// Notes that the records of a table in memory with their indexes had `old.in_memory` bytes, and these
    /// with its levels `old.total` ones; now it has `new`.
    pub(crate) fn turn_size(&self, table: TableId, old: Sizes, new: Sizes) {
        if old == new {
            return;
        }
        let mut sets = self.0.lock();
        let was_listed = old.in_memory == 0 || sets.by_size.remove(&(old.in_memory, table));
        assert!(was_listed, "a table is listed under what was noted");
        if new.in_memory > 0 {
            sets.by_size.insert((new.in_memory, table));
        }
        let was_listed = sets.by_total.remove(&(old.total, Reverse(table)));
        assert!(was_listed, "a table is listed under the total that was noted");
        sets.by_total.insert((new.total, Reverse(table)));
    }

    /// Number of tables, and of those with records in memory.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let sets = self.0.lock();
        (sets.by_total.len() as u64, sets.by_size.len() as u64)
    }

    /// Returns true if the table is listed with these sizes.
    pub(crate) fn has_size(&self, table: TableId, sizes: Sizes) -> bool {
        let sets = self.0.lock();
        let is_in_memory = sizes.in_memory == 0 || sets.by_size.contains(&(sizes.in_memory, table));
        is_in_memory && sets.by_total.contains(&(sizes.total, Reverse(table)))
    }
}

impl Catalog {
    /// The `count` tables with most bytes in memory and in levels, as noted; largest first.
    pub(crate) fn largest(&self, count: usize) -> Vec<Arc<Table>> {
        let ids: Vec<_> = self.due().0.lock().by_total.iter().rev().take(count).map(|(_, id)| id.0).collect();
        let guard = terrane_base::epoch::pin();
        ids.into_iter().filter_map(|id| self.get(id, &guard).cloned()).collect()
    }

    /// Of the tables with records in memory that `is_meant`, the one with most bytes of these and of their
    /// indexes.
    pub(crate) fn fullest(&self, is_meant: impl Fn(&Table) -> bool) -> Option<Arc<Table>> {
        let mut before = Unbounded;
        loop {
            let next = self.due().0.lock().by_size.range((Unbounded, before)).next_back().copied()?;
            let found = self.worked([next.1]).pop().filter(|table| is_meant(table));
            if found.is_some() {
                return found;
            }
            before = Excluded(next);
        }
    }
}
