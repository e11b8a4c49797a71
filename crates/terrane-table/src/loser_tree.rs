//! Loser tree (Knuth, The Art of Computer Programming vol. 3, section 5.4.1): finds the least of n sources
//! with about log2(n) comparisons per step.
//!
//! Layout: `nodes[0]` is the winner; `nodes[1..n]` are the inner nodes of a heap-shaped tree whose leaf of
//! source `i` would be node `n + i`. Each inner node keeps the *loser* of its match, so that a new entry of
//! the winner is compared only with the losers on its own path to the root. Any n works, not only powers of
//! two.

use terrane_base::verify;

/// Compares the sources of a loser tree.
pub trait Ranking {
    /// Returns true if source `a` goes before source `b`; `a != b`. Never a draw.
    fn beats(&mut self, a: usize, b: usize) -> bool;
}

/// The tournament over sources `0..n`.
#[derive(Debug, Default)]
pub struct LoserTree {
    nodes: Vec<u32>,
    /// Winners by node, only used while the whole tournament is played.
    winners: Vec<u32>,
}

impl LoserTree {
    /// Plays the whole tournament between `count` sources.
    ///
    /// # Panics
    /// If `count` is 0.
    pub fn play(&mut self, count: usize, ranking: &mut impl Ranking) {
        assert!(count > 0);
        self.nodes.clear();
        self.nodes.resize(count, 0);
        self.winners.clear();
        self.winners.resize(count, 0);
        self.winners.extend(0..count as u32);
        for node in (1..count).rev() {
            let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
            let left_wins = ranking.beats(left as usize, right as usize);
            let (winner, loser) = if left_wins { (left, right) } else { (right, left) };
            self.winners[node] = winner;
            self.nodes[node] = loser;
        }
        // With a single source there is no inner node, and its leaf is node 1.
        self.nodes[0] = self.winners[1];
        verify!(self.has_each_once(), "a source lost its place: {self:?}");
    }

    /// The source that goes first. Requires: a tournament was played.
    #[inline]
    #[must_use]
    pub fn winner(&self) -> usize {
        self.nodes[0] as usize
    }

    /// Plays the winner's matches again after its entry changed.
    #[inline]
    pub fn replay(&mut self, ranking: &mut impl Ranking) {
        let mut winner = self.nodes[0];
        let mut node = (self.nodes.len() + winner as usize) / 2;
        while node > 0 {
            let other = self.nodes[node];
            if ranking.beats(other as usize, winner as usize) {
                self.nodes[node] = winner;
                winner = other;
            }
            node /= 2;
        }
        self.nodes[0] = winner;
        debug_assert!((winner as usize) < self.nodes.len(), "the winner is a source");
    }

    /// Returns true if every source is at one place of the tree.
    fn has_each_once(&self) -> bool {
        let mut sources = self.nodes.clone();
        sources.sort_unstable();
        sources.iter().copied().eq(0..self.nodes.len() as u32)
    }

    /// The losers on the winner's way up; the least of them is the runner-up.
    #[inline]
    pub fn losers_on_path(&self) -> impl Iterator<Item = usize> + '_ {
        let mut node = (self.nodes.len() + self.winner()) / 2;
        debug_assert!(node < self.nodes.len(), "the way up begins at a leaf");
        std::iter::from_fn(move || {
            if node == 0 {
                return None;
            }
            let other = self.nodes[node] as usize;
            node /= 2;
            Some(other)
        })
    }
}
