//! Which source of a merge goes first: a tournament over the current keys of the sources.
//!
//! Only the first source moves, so only its matches are repeated: one against the runner-up while it stays
//! before that one, otherwise as many as the tree is high. A match compares the eight bytes behind the prefix
//! that all keys share; only where these are equal does it look at the sources.
//!
//! Invariants between two moves:
//! 1. `heads[s]` is the head of the current key of source `s`, `u64::MAX` at its end.
//! 2. `runner_up` is the source that would go first if the winner did not exist; none if there is one source
//!    only.

use std::cmp::Ordering;

use terrane_base::{Collation, Cursor, SeqNo};
use terrane_table::loser_tree::{LoserTree, Ranking};

use super::source::Source;

/// See the [module](self).
pub(super) struct Order {
    /// Bytes that all keys have in common from the front.
    prefix_len: usize,
    heads: Vec<u64>,
    tree: LoserTree,
    runner_up: Option<usize>,
}

impl Order {
    /// The order of sources none of which has given out anything.
    pub(super) fn new<C: Cursor>(sources: &[Source<'_, '_, C>], collation: &Collation) -> Self {
        let prefix_len = common_prefix(sources, collation);
        let heads = sources.iter().map(|source| head(source, prefix_len, collation)).collect();
        let mut order = Order { prefix_len, heads, tree: LoserTree::default(), runner_up: None };
        if !sources.is_empty() {
            order.tree.play(sources.len(), &mut Field { heads: &order.heads, sources, collation });
            order.find_runner_up(sources, collation);
        }
        order
    }

    /// Bytes that all keys have in common from the front.
    pub(super) fn prefix_len(&self) -> usize {
        self.prefix_len
    }

    /// The source that goes first, and the one that would without it; sources at their end take no part.
    #[inline]
    pub(super) fn first<C: Cursor>(&self, sources: &[Source<'_, '_, C>]) -> Option<(usize, Option<usize>)> {
        debug_assert!(self.heads.len() == sources.len(), "each source has a head");
        debug_assert!(
            self.runner_up.is_some() == (sources.len() > 1),
            "of several sources one is the runner-up, of one source none"
        );
        let has_key = |index: usize| self.heads[index] != u64::MAX || sources[index].key().is_some();
        let winner = (!sources.is_empty()).then(|| self.tree.winner())?;
        has_key(winner).then(|| (winner, self.runner_up.filter(|index| has_key(*index))))
    }

    /// The rank of a source. Requires: it has a key.
    #[inline]
    pub(super) fn rank<'s, C: Cursor>(
        &self,
        sources: &'s Source<'_, '_, C>,
        index: usize,
    ) -> Option<Rank<'s>> {
        Rank::of(sources, self.heads[index], index)
    }

    /// Finds the place of the source that went first after it has moved.
    #[inline]
    pub(super) fn replay<C: Cursor>(&mut self, sources: &[Source<'_, '_, C>], collation: &Collation) {
        let winner = self.tree.winner();
        self.heads[winner] = head(&sources[winner], self.prefix_len, collation);
        let Some(runner_up) = self.runner_up else { return };
        debug_assert!(runner_up != winner, "invariant 2");
        let mut field = Field { heads: &self.heads, sources, collation };
        if field.beats(winner, runner_up) {
            return;
        }
        self.tree.replay(&mut field);
        // A comparator may contradict itself.
        debug_assert!(self.tree.winner() == runner_up || !collation.is_bytes(), "no other source has moved");
        self.find_runner_up(sources, collation);
    }

    #[inline]
    fn find_runner_up<C: Cursor>(&mut self, sources: &[Source<'_, '_, C>], collation: &Collation) {
        let mut field = Field { heads: &self.heads, sources, collation };
        debug_assert!(self.heads.len() == sources.len(), "a head for each source");
        self.runner_up = self.tree.losers_on_path().reduce(|a, b| if field.beats(b, a) { b } else { a });
    }
}

/// The inputs of a match.
struct Field<'f, 's, 'a, 'c, C> {
    heads: &'f [u64],
    sources: &'s [Source<'a, 'c, C>],
    collation: &'f Collation,
}

impl<C: Cursor> Field<'_, '_, '_, '_, C> {
    fn beats_by_rank(&self, a: usize, b: usize) -> bool {
        let rank = |index: usize| Rank::of(&self.sources[index], self.heads[index], index);
        match (rank(a), rank(b)) {
            (Some(a), Some(b)) => a.is_before(&b, self.collation),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => a < b,
        }
    }
}

impl<C: Cursor> Ranking for Field<'_, '_, '_, '_, C> {
    #[inline]
    fn beats(&mut self, a: usize, b: usize) -> bool {
        debug_assert!(a != b, "source {a} does not play against itself");
        match self.heads[a].cmp(&self.heads[b]) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => self.beats_by_rank(a, b),
        }
    }
}

/// The values by which sources with a key are ordered.
pub(super) struct Rank<'k> {
    pub(super) head: u64,
    pub(super) key: &'k [u8],
    /// Number of the entry, if the source is at an entry.
    pub(super) seq: Option<SeqNo>,
    pub(super) index: usize,
}

impl<'k> Rank<'k> {
    #[inline]
    fn of<C: Cursor>(source: &'k Source<'_, '_, C>, head: u64, index: usize) -> Option<Self> {
        let seq = source.entry().map(|entry| entry.seq_kind.seq());
        source.key().map(|key| Rank { head, key, seq, index })
    }

    /// Lesser keys first, then sources that must be opened (invariant 2 of the merge), then newer versions,
    /// then newer sources.
    #[inline]
    pub(super) fn is_before(&self, other: &Rank<'_>, collation: &Collation) -> bool {
        match self.head.cmp(&other.head).then_with(|| collation.cmp(self.key, other.key)) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => match (self.seq, other.seq) {
                (Some(seq), Some(other_seq)) if seq != other_seq => {
                    (seq > other_seq) != terrane_base::planted!(SwapVersions)
                }
                (Some(_), None) => false,
                (None, Some(_)) => true,
                _ => self.index < other.index,
            },
        }
    }
}

#[inline]
fn head<C: Cursor>(source: &Source<'_, '_, C>, prefix_len: usize, collation: &Collation) -> u64 {
    let key = source.key();
    key.map_or(u64::MAX, |key| collation.head_behind(key, prefix_len.min(key.len())))
}

/// Bytes that all keys of the sources have in common from the front: those that the least and the greatest
/// have.
fn common_prefix<C: Cursor>(sources: &[Source<'_, '_, C>], collation: &Collation) -> usize {
    let bounds = || sources.iter().filter_map(Source::bounds);
    let least = bounds().map(|(first, _)| first).reduce(|a, b| collation.min(a, b)).unwrap_or_default();
    let greatest = bounds().map(|(_, last)| last).reduce(|a, b| collation.max(a, b)).unwrap_or_default();
    collation.common_len(least, greatest)
}
