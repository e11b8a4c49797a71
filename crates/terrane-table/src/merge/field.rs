//! The sources of a merge, and what decides which of two goes first.

use std::cmp::Ordering;

use terrane_base::{Collation, Cursor, Result};

use super::internal_order;
use crate::loser_tree::Ranking;
use crate::shared_prefix::SharedPrefix;

/// The sources and what matches between them need.
#[derive(Debug)]
pub(super) struct Field<C> {
    /// How keys are ordered.
    pub(super) collation: Collation,
    pub(super) sources: Vec<C>,
    pub(super) ranks: Vec<u64>,
    /// Prefix of every current key; ranks start behind it.
    pub(super) shared: SharedPrefix,
    pub(super) backward: bool,
    /// True if a step forward may pass by older versions of the key.
    pub(super) skips: bool,
    pub(super) tied: Vec<bool>,
    pub(super) tied_count: usize,
}

impl<C: Cursor> Field<C> {
    #[inline]
    pub(super) fn advance(&mut self, index: usize) -> Result<()> {
        debug_assert!(self.ranks.len() == self.sources.len(), "one source alone has no rank");
        step(&mut self.sources[index], self.backward, self.skips)?;
        match self.rank(index) {
            Some(rank) => self.ranks[index] = rank,
            None => self.rank_all(),
        }
        Ok(())
    }

    /// The rank of a source's entry: less goes first in the present direction. `None` if the key does not
    /// have the shared prefix.
    #[inline]
    pub(super) fn rank(&self, index: usize) -> Option<u64> {
        let Some(entry) = self.sources[index].entry() else { return Some(u64::MAX) };
        let head = self.collation.head(self.shared.behind(entry.key)?);
        Some(if self.backward { !head } else { head })
    }

    /// Finds the shared prefix and ranks every source. Order between sources does not change by it.
    pub(super) fn rank_all(&mut self) {
        debug_assert!(self.ranks.len() == self.sources.len(), "each of several sources has a rank");
        let mut keys = self.sources.iter().filter_map(|source| source.entry()).map(|entry| entry.key);
        let first = keys.next().unwrap_or_default();
        let len = keys.fold(first.len(), |len, key| self.collation.common_len(&first[..len], key));
        self.shared.set(&first[..len]);
        for index in 0..self.sources.len() {
            // Every current key has the shared prefix by construction.
            self.ranks[index] = self.rank(index).unwrap_or(u64::MAX);
        }
    }

    /// Order in the present direction; exhausted sources last; `Equal` only for the same key and number.
    #[inline]
    pub(super) fn order(&self, a: usize, b: usize) -> Ordering {
        match self.ranks[a].cmp(&self.ranks[b]) {
            Ordering::Equal => self.order_whole(a, b),
            order => order,
        }
    }

    pub(super) fn order_whole(&self, a: usize, b: usize) -> Ordering {
        match (self.sources[a].entry(), self.sources[b].entry()) {
            (Some(a), Some(b)) if self.backward => internal_order(&self.collation, &b, &a),
            (Some(a), Some(b)) => internal_order(&self.collation, &a, &b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => a.cmp(&b),
        }
    }

    #[inline]
    pub(super) fn set_tied(&mut self, index: usize, tied: bool) {
        if self.tied[index] != tied {
            self.tied[index] = tied;
            self.tied_count = if tied { self.tied_count + 1 } else { self.tied_count - 1 };
        }
        debug_assert!(self.tied_count <= self.tied.len(), "duplicates would be looked for where none are");
    }
}

impl<C: Cursor> Ranking for Field<C> {
    #[inline]
    fn beats(&mut self, a: usize, b: usize) -> bool {
        debug_assert!(a != b, "source {a} does not play against itself");
        let order = self.order(a, b);
        let a_wins = if order == Ordering::Equal { a > b } else { order == Ordering::Less };
        let loser = if a_wins { b } else { a };
        self.set_tied(loser, order == Ordering::Equal);
        a_wins
    }
}

#[inline]
pub(super) fn step(source: &mut impl Cursor, backward: bool, skips: bool) -> Result<()> {
    debug_assert!(
        !(backward && skips),
        "versions are passed by forwards only: backwards the oldest comes first"
    );
    match (backward, skips) {
        (true, _) => source.prev(),
        (false, true) => source.next_key(),
        (false, false) => source.next(),
    }
}
