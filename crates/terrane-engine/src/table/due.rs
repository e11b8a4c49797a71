//! The tables in which work may be due: a worker that looks for work looks at these, never at all tables.
//!
//! * filled: has records in memory; ordered by the oldest segment of these.
//! * by size: has records in memory; ordered by the bytes of these and of their indexes, as noted.
//! * by total: all; ordered by the same and the bytes of their levels.
//! * behind: has records in memory; ordered by the first number of the oldest memtable or generation of
//!   these.
//! * unflushed: its ledger has records that are not in the levels ([`crate::table::ledger`]), whatever its
//!   view has.
//! * moving: has a full memtable, a frozen memtable or a generation.
//! * asked: has requests for compactions that wait.
//! * levels: its levels, its options or its requests changed, or it was opened, and no picker has found since
//!   that it has no job, whatever else runs ([`DueTables::note_no_job`]).
//! * in turn: a picker found no job, but time, snapshots or heat may bring one without a change.
//! * scanned: its scans have stepped over many hidden versions that no flush has forgotten.
//! * used: was read or written since the last look at the loads.
//! * stopped: its background work has stopped.
//!
//! Invariants: a table that is in no set has no work. A set may have tables without work, which costs a look.
//! The state changes first, then the set: a worker that finds the table in the set finds the change, and one
//! that finds an older state cannot take the table out ([`Stamp`]). The lock is a leaf, held for one step in
//! a tree or for a copy of tables that are due.

mod sizes;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use terrane_base::sync::Mutex;
use terrane_base::{SegmentId, SeqNo, TableId};

use crate::table::Table;
use crate::table::catalog::Catalog;
use crate::table::read_view::ReadView;

pub(crate) use sizes::Sizes;

/// Tables in turn for each look.
const TABLES_PER_LOOK: usize = 8;

/// The number of a change of a table: of two, the later one is higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct DueTables(Mutex<Sets>);

#[derive(Debug, Default)]
struct Sets {
    filled: BTreeSet<(SegmentId, TableId)>,
    by_size: BTreeSet<(u64, TableId)>,
    /// Of tables of one size the one with the least number comes last.
    by_total: BTreeSet<(u64, Reverse<TableId>)>,
    behind: BTreeSet<(SeqNo, TableId)>,
    unflushed: BTreeSet<TableId>,
    moving: BTreeSet<TableId>,
    asked: BTreeSet<TableId>,
    levels: BTreeMap<TableId, u64>,
    /// The number of the last change.
    changes: u64,
    in_turn: BTreeSet<TableId>,
    /// The table that was the last one in turn.
    last: Option<TableId>,
    scanned: BTreeSet<TableId>,
    used: BTreeSet<TableId>,
    stopped: BTreeSet<TableId>,
}

/// The facts about a table's memory that decide in which sets it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InMemory {
    oldest_segment: Option<SegmentId>,
    filled_from: Option<SeqNo>,
    is_moving: bool,
}

impl InMemory {
    /// The facts of a table with this view.
    pub(crate) fn of(view: &ReadView, is_full: bool) -> InMemory {
        InMemory {
            oldest_segment: view.oldest_segment(),
            filled_from: view.filled_from(),
            is_moving: is_full || !view.frozen.is_empty() || !view.generations.is_empty(),
        }
    }
}

/// How a table whose levels have no job may come to have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoJob {
    /// By a change of the table only.
    UntilChanged,
    /// By other causes, too.
    ForNow,
}

/// Which tables a look at the levels has to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Those that changed, and some in turn.
    Some,
    /// All that may have a job.
    All,
    /// Those that have requests.
    Asked,
}

impl DueTables {
    /// Puts a table that was noted as `old` where it belongs as `new`.
    pub(crate) fn turn(&self, table: TableId, old: &InMemory, new: &InMemory) {
        if old == new {
            return;
        }
        let mut sets = self.0.lock();
        if old.oldest_segment != new.oldest_segment {
            if let Some(segment) = old.oldest_segment {
                assert!(sets.filled.remove(&(segment, table)), "a table is listed under what was noted");
            }
            if let Some(segment) = new.oldest_segment {
                sets.filled.insert((segment, table));
                sets.unflushed.insert(table);
            }
        }
        if old.filled_from != new.filled_from {
            if let Some(seq) = old.filled_from {
                assert!(sets.behind.remove(&(seq, table)), "a table is listed under what was noted");
            }
            sets.behind.extend(new.filled_from.map(|seq| (seq, table)));
        }
        match new.is_moving {
            true => sets.moving.insert(table),
            false => sets.moving.remove(&table),
        };
    }

    /// Notes that the levels of a table may have work, from what changed before this call.
    pub(crate) fn note_levels(&self, table: TableId) {
        let mut sets = self.0.lock();
        sets.changes += 1;
        let stamp = sets.changes;
        let is_later = || sets.levels.get(&table).is_none_or(|before| *before < stamp);
        debug_assert!(is_later(), "a later change has a greater number");
        if !terrane_base::planted!(MissChangedTable) {
            sets.levels.insert(table, stamp);
        }
    }

    /// Notes whether a table has requests.
    pub(crate) fn note_asked(&self, table: TableId, is_asked: bool) {
        let mut sets = self.0.lock();
        match is_asked {
            true => sets.asked.insert(table),
            false => sets.asked.remove(&table),
        };
    }

    /// Notes whether a table's ledger `has_records`. That is asked under the lock: a writer that adds the
    /// first one meanwhile notes the table after it.
    pub(crate) fn note_unflushed(&self, table: TableId, has_records: impl FnOnce() -> bool) {
        let mut sets = self.0.lock();
        match has_records() {
            true => sets.unflushed.insert(table),
            false => sets.unflushed.remove(&table),
        };
    }

    /// Notes that a table's levels have no job, as they were when the table was found with `stamp`.
    pub(crate) fn note_no_job(&self, table: TableId, stamp: Option<Stamp>, how: NoJob) {
        let mut sets = self.0.lock();
        let is_known = stamp.is_none_or(|Stamp(found)| found <= sets.changes);
        debug_assert!(is_known, "a table was found in a state that is still to come");
        let is_as_found = match stamp {
            Some(Stamp(found)) => sets.levels.get(&table) == Some(&found),
            None => sets.in_turn.contains(&table),
        };
        if !is_as_found {
            return;
        }
        if stamp.is_some() {
            sets.levels.remove(&table);
        }
        match how {
            NoJob::UntilChanged => sets.in_turn.remove(&table),
            NoJob::ForNow => sets.in_turn.insert(table),
        };
    }

    /// Notes that scans of a table have stepped over many versions.
    pub(crate) fn note_scanned(&self, table: TableId) {
        self.0.lock().scanned.insert(table);
    }

    /// Notes that a table was read or written.
    pub(crate) fn note_used(&self, table: TableId) {
        self.0.lock().used.insert(table);
    }

    /// Notes that background work on a table has stopped.
    pub(crate) fn note_stopped(&self, table: TableId) {
        self.0.lock().stopped.insert(table);
    }

    /// Takes a table out of all sets. Requires: nothing is noted of it any more but by [`Self::turn`] to
    /// nothing.
    pub(crate) fn forget(&self, table: TableId) {
        let mut locked = self.0.lock();
        debug_assert!(
            !locked.by_total.contains(&(0, Reverse(table))),
            "a size leaves the sets before the table"
        );
        let Sets { unflushed, moving, asked, levels, in_turn, scanned, used, stopped, .. } = &mut *locked;
        for set in [unflushed, moving, asked, in_turn, scanned, used, stopped] {
            set.remove(&table);
        }
        levels.remove(&table);
    }

    /// Returns true if background work on some table has stopped.
    pub(crate) fn has_stopped(&self) -> bool {
        !self.0.lock().stopped.is_empty()
    }

    /// The oldest segment that a table has records of in memory.
    pub(crate) fn oldest_segment(&self) -> Option<SegmentId> {
        self.0.lock().filled.first().map(|(segment, _)| *segment)
    }

    /// Returns true if another table than this one may have records numbered up to `seq` in memory.
    pub(crate) fn others_are_behind(&self, table: TableId, seq: SeqNo) -> bool {
        let sets = self.0.lock();
        let mut others = sets.behind.iter().filter(|(_, other)| *other != table);
        others.next().is_some_and(|(first, _)| *first <= seq)
    }

    /// The tables that were read or written since the last call.
    pub(crate) fn take_used(&self) -> BTreeSet<TableId> {
        std::mem::take(&mut self.0.lock().used)
    }

    /// Returns true if a look at the levels finds this table sooner or later.
    fn finds_levels(&self, table: TableId) -> bool {
        let sets = self.0.lock();
        sets.levels.contains_key(&table) || sets.in_turn.contains(&table)
    }

    fn levels(&self, depth: Depth) -> Vec<(TableId, Option<Stamp>)> {
        let mut sets = self.0.lock();
        let turn = match depth {
            Depth::Asked => {
                let stamp_of = |id: &TableId| (*id, sets.levels.get(id).copied().map(Stamp));
                return sets.asked.iter().map(stamp_of).collect();
            }
            Depth::All => sets.in_turn.iter().copied().collect(),
            Depth::Some => sets.next_in_turn(),
        };
        debug_assert!(sets.levels.values().all(|stamp| *stamp <= sets.changes), "a change was numbered");
        let mut found: BTreeMap<TableId, Option<Stamp>> = turn.into_iter().map(|id| (id, None)).collect();
        found.extend(sets.levels.iter().map(|(id, stamp)| (*id, Some(Stamp(*stamp)))));
        found.into_iter().collect()
    }
}

impl Sets {
    /// The tables that are in turn next.
    fn in_turn_next(&self) -> impl Iterator<Item = TableId> {
        let count = self.in_turn.len().min(TABLES_PER_LOOK);
        let after = self.last.map_or(Unbounded, Excluded);
        self.in_turn.range((after, Unbounded)).chain(&self.in_turn).take(count).copied()
    }

    /// The same; the next call begins after them.
    fn next_in_turn(&mut self) -> Vec<TableId> {
        let next: Vec<_> = self.in_turn_next().collect();
        self.last = next.last().copied().or(self.last);
        let ids = || next.iter().collect::<BTreeSet<_>>();
        debug_assert!(ids().len() == next.len(), "a look finds a table once, however few are in turn");
        next
    }
}

/// Each leaves out tables whose background work has stopped, and is in the order of ids.
impl Catalog {
    fn due(&self) -> &DueTables {
        self.sums().due()
    }

    /// The tables that are not left out, of these.
    fn worked(&self, ids: impl IntoIterator<Item = TableId>) -> Vec<Arc<Table>> {
        let guard = terrane_base::epoch::pin();
        let tables = ids.into_iter().filter_map(|id| self.get(id, &guard));
        let tables: Vec<_> = tables.filter(|table| !table.is_stopped()).cloned().collect();
        debug_assert!(tables.is_sorted_by(|a, b| a.id < b.id), "each table once, in the order of numbers");
        tables
    }

    /// Tables whose memtable is full or that have frozen memtables or generations.
    pub(crate) fn moving(&self) -> Vec<Arc<Table>> {
        let ids = self.due().0.lock().moving.clone();
        self.worked(ids)
    }

    /// Tables with records in memory.
    pub(crate) fn filled(&self) -> Vec<Arc<Table>> {
        let ids: BTreeSet<_> = self.due().0.lock().filled.iter().map(|(_, id)| *id).collect();
        self.worked(ids)
    }

    /// Tables whose ledgers have records that are not in the levels, also those whose background work has
    /// stopped.
    pub(crate) fn unflushed(&self) -> Vec<Arc<Table>> {
        let ids = self.due().0.lock().unflushed.clone();
        let guard = terrane_base::epoch::pin();
        ids.into_iter().filter_map(|id| self.get(id, &guard).cloned()).collect()
    }

    /// Of the tables with records in memory that `is_meant`, the one with the oldest segment.
    pub(crate) fn oldest_filled(&self, is_meant: impl Fn(&Table) -> bool) -> Option<Arc<Table>> {
        let mut after = Unbounded;
        loop {
            let next = self.due().0.lock().filled.range((after, Unbounded)).next().copied()?;
            let found = self.worked([next.1]).pop().filter(|table| is_meant(table));
            if found.is_some() {
                return found;
            }
            after = Excluded(next);
        }
    }

    /// Tables whose levels may have work.
    pub(crate) fn due_levels(&self, depth: Depth) -> Vec<(Arc<Table>, Option<Stamp>)> {
        let found = self.due().levels(depth);
        let guard = terrane_base::epoch::pin();
        let tables = found.into_iter().filter_map(|(id, stamp)| Some((self.get(id, &guard)?, stamp)));
        let tables = tables.filter(|(table, _)| !table.is_stopped());
        let tables: Vec<_> = tables.map(|(table, stamp)| (table.clone(), stamp)).collect();
        let are_in_order = || tables.is_sorted_by(|(a, _), (b, _)| a.id < b.id);
        debug_assert!(are_in_order(), "each table once, in the order of numbers");
        tables
    }

    /// Tables whose scans have stepped over many versions since a flush.
    pub(crate) fn scanned(&self) -> Vec<Arc<Table>> {
        let mut sets = self.due().0.lock();
        let guard = terrane_base::epoch::pin();
        // Under the lock: a scan that counts beyond the limit again comes after it.
        let is_many = |id: &TableId| self.get(*id, &guard).is_some_and(|table| table.passed.are_many());
        sets.scanned.retain(is_many);
        let ids = sets.scanned.clone();
        drop(sets);
        self.worked(ids)
    }

    /// The first table whose background work has stopped.
    pub(crate) fn first_stopped(&self) -> Option<Arc<Table>> {
        let id = self.due().0.lock().stopped.first().copied()?;
        let first = self.get(id, &terrane_base::epoch::pin()).cloned();
        debug_assert!(first.as_ref().is_none_or(|table| table.is_stopped()), "work on {id:?} goes on");
        first
    }

    /// The tables that the next look at the levels finds with [`Depth::Some`], by number.
    pub(crate) fn due_ids(&self) -> Vec<TableId> {
        let sets = self.due().0.lock();
        sets.levels.keys().copied().chain(sets.in_turn_next()).collect()
    }

    /// Returns true if a look at the levels finds this table sooner or later.
    pub(crate) fn finds_levels(&self, table: &Table) -> bool {
        self.due().finds_levels(table.id)
    }
}

#[cfg(test)]
mod tests;
