//! The tables whose levels have debt, ordered by their debt.
//!
//! A computation of the debt computes the backlog of few tables: those whose levels or options changed, those
//! with a running job, and [`TABLES_PER_LOOK`] other tables with debt, in turn, because the measured rates of
//! all tables change slowly. The other backlogs stay as they were. So the cost does not grow with the number
//! of tables.
//!
//! Invariants: a table that is not here has no debt and its writers are not slowed. `ranks` has each table of
//! `debts` once.

use std::collections::{BTreeMap, BTreeSet};

use terrane_base::TableId;
use terrane_base::sync::Mutex;

/// Unchanged tables with debt that each computation includes.
const TABLES_PER_LOOK: usize = 8;
/// Parts of the way from the start to the end of a backlog that ranks distinguish.
const RANKS: f64 = 65_536.0;

/// The tables with debt.
#[derive(Debug, Default)]
pub(super) struct TableDebts(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    debts: BTreeMap<TableId, Debt>,
    ranks: BTreeSet<(u64, TableId)>,
    /// Tables whose writers are slowed.
    slow: usize,
    /// The table that was the last one in turn.
    last: Option<TableId>,
}

#[derive(Clone, Copy, Debug)]
struct Debt {
    rank: u64,
    is_slow: bool,
}

impl TableDebts {
    /// Notes the backlog of a table, and whether its writers are slowed, as `look` finds them. It looks under
    /// the lock: the last one to note has seen the newest.
    pub(super) fn note(&self, table: TableId, look: impl FnOnce() -> (f64, bool)) {
        let mut inner = self.0.lock();
        let (backlog, is_slow) = look();
        debug_assert!(!backlog.is_nan(), "a backlog that is not a number ranks before all tables with debt");
        inner.remove(table);
        if backlog > -1.0 || is_slow {
            inner.insert(table, Debt { rank: rank_of(backlog), is_slow });
        }
    }

    /// Removes a table that was dropped.
    pub(super) fn forget(&self, table: TableId) {
        self.0.lock().remove(table);
    }

    /// The longest backlog, -1 where no table has debt, and whether writers of any table are slowed.
    pub(super) fn most(&self) -> (f64, bool) {
        let inner = self.0.lock();
        let most = inner.ranks.last().map_or(-1.0, |(rank, _)| *rank as f64 / RANKS - 1.0);
        debug_assert!(
            inner.slow <= inner.debts.len() && inner.ranks.len() == inner.debts.len(),
            "one rank for each"
        );
        (most, inner.slow > 0)
    }

    /// The tables in turn.
    pub(super) fn next(&self) -> Vec<TableId> {
        use std::ops::Bound::{Excluded, Unbounded};
        let mut inner = self.0.lock();
        let count = inner.debts.len().min(TABLES_PER_LOOK);
        let after = inner.last.map_or(Unbounded, Excluded);
        let behind = inner.debts.range((after, Unbounded)).map(|(id, _)| *id);
        let next: Vec<_> = behind.chain(inner.debts.keys().copied()).take(count).collect();
        debug_assert!(next.len() == count, "as many tables as are looked at in a turn");
        inner.last = next.last().copied().or(inner.last);
        next
    }
}

impl Inner {
    fn insert(&mut self, table: TableId, debt: Debt) {
        let is_new = self.debts.insert(table, debt).is_none() && self.ranks.insert((debt.rank, table));
        assert!(is_new, "a table has one debt");
        self.slow += usize::from(debt.is_slow);
    }

    fn remove(&mut self, table: TableId) {
        if let Some(debt) = self.debts.remove(&table) {
            assert!(self.ranks.remove(&(debt.rank, table)), "each debt has its rank");
            self.slow -= usize::from(debt.is_slow);
        }
    }
}

fn rank_of(backlog: f64) -> u64 {
    ((backlog + 1.0) * RANKS) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_backlog_is_known_without_a_walk() {
        let debts = TableDebts::default();
        assert_eq!(debts.most(), (-1.0, false));
        debts.note(TableId(1), || (0.5, true));
        debts.note(TableId(2), || (-0.5, false));
        assert_eq!(debts.most(), (0.5, true));
        debts.note(TableId(1), || (-0.75, false));
        assert_eq!(debts.most(), (-0.5, false));
        debts.note(TableId(2), || (-1.0, false));
        debts.forget(TableId(1));
        debts.forget(TableId(1));
        assert_eq!(debts.most(), (-1.0, false));
        assert!(debts.next().is_empty());
    }

    #[test]
    fn tables_with_debt_are_checked_in_turn() {
        let debts = TableDebts::default();
        (0..3).for_each(|id| debts.note(TableId(id), || (0.0, true)));
        assert_eq!(debts.next().len(), 3, "all, where they are few");
        let count = 5 * TABLES_PER_LOOK as u32 / 2;
        (0..count).for_each(|id| debts.note(TableId(id), || (0.0, true)));
        let mut seen: Vec<_> = (0..3).flat_map(|_| debts.next()).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count as usize, "each within three looks");
    }
}
