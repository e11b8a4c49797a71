//! [`MergeCursor`]: merges sorted sources into one, in both directions.
//!
//! Steps of a move: 1. move the winner's source, 2. compute its rank, 3. repeat its matches in the loser
//! tree. A source that wins twice in a row is compared only with the runner-up from then on, so that a long
//! run from one source costs one comparison an entry.
//!
//! A single source needs no tournament: its own position is that of the merge.
//!
//! Matches compare *ranks* first: the 8 key bytes after the prefix that all current keys share. Only equal
//! ranks look at whole keys. The shared prefix is found when the cursor is placed and only shrinks until it
//! is placed again, so its upkeep is bounded by its length.
//!
//! Invariants while placed at entry E of source w:
//! 1. forward, every other source is at its first entry at or after E, or at its end; if steps
//!    may skip older versions, it may be at a later entry behind versions of the previous key. Backward, it
//!    is at its last entry at or before E.
//! 2. of sources with the same key and number the highest index, the oldest place, wins in both directions,
//!    and the others are skipped, so a duplicate shows once. An entry in two places was copied down from the
//!    newer place, and operands may have been folded there with older entries.
//! 3. `tied[s]` holds for every source s that lost its latest match by equality; while none is set, the entry
//!    after E cannot be a duplicate of E, and no key is copied.

mod field;

use std::cmp::Ordering;

use terrane_base::counters::{add, count};
use terrane_base::{Collation, Cursor, Entry, Result, SeqKind, SeqNo};

use crate::loser_tree::LoserTree;
use crate::shared_prefix::SharedPrefix;
use field::{Field, step};

/// Merges sources in internal order. Give newer sources lower indexes.
///
/// Sources that gain entries while they are merged (a memtable) are fine: such an entry is seen or not.
#[derive(Debug)]
pub struct MergeCursor<C> {
    field: Field<C>,
    tree: LoserTree,
    placed: bool,
    /// Known only while the winner keeps winning.
    runner_up: Option<usize>,
    /// Key of the entry that is being left, where duplicates or a turn need it.
    left: Vec<u8>,
    /// Sources that wait for memory or a device during a seek.
    waiting: Vec<usize>,
}

impl<C: Cursor> MergeCursor<C> {
    /// Merges `sources`; the merge has no position yet.
    #[must_use]
    pub fn new(sources: Vec<C>) -> Self {
        // One source needs neither ranks nor ties, and no memory for them.
        let count = if sources.len() == 1 { 0 } else { sources.len() };
        MergeCursor {
            field: Field {
                collation: Collation::BYTES,
                sources,
                ranks: vec![0; count],
                shared: SharedPrefix::default(),
                backward: false,
                skips: false,
                tied: vec![false; count],
                tied_count: 0,
            },
            tree: LoserTree::default(),
            placed: false,
            runner_up: None,
            left: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// The merge, of sources whose keys are ordered so.
    #[must_use]
    pub fn ordered(mut self, collation: &Collation) -> Self {
        debug_assert!(!self.placed, "sources that were placed by another order would be merged wrongly");
        if !collation.is_bytes() {
            self.field.collation = collation.clone();
        }
        self
    }

    #[inline]
    fn is_single(&self) -> bool {
        self.field.sources.len() == 1
    }

    /// The source that the current entry comes from, if there is one.
    #[inline]
    fn winner(&self) -> usize {
        if self.is_single() { 0 } else { self.tree.winner() }
    }

    /// Index of the source that the current entry comes from.
    #[must_use]
    pub fn source_index(&self) -> Option<usize> {
        self.entry().map(|_| self.winner())
    }

    /// The sources, in order.
    #[must_use]
    pub fn sources(&self) -> &[C] {
        &self.field.sources
    }

    /// Gives the sources back.
    #[must_use]
    pub fn into_sources(self) -> Vec<C> {
        self.field.sources
    }

    /// Places every source by `place` and plays the tournament.
    fn place(&mut self, backward: bool, mut place: impl FnMut(&mut C) -> Result<()>) -> Result<()> {
        self.placed = false;
        debug_assert!(!self.field.skips, "a placement stops at each version, whatever the step before did");
        count(|cells| add(&cells.runs_sought, self.field.sources.len() as u64));
        for source in &mut self.field.sources {
            place(source)?;
        }
        self.position(backward);
        Ok(())
    }

    /// Makes the position out of where the sources stand, all on the right side of it.
    fn position(&mut self, backward: bool) {
        self.field.backward = backward;
        if self.is_single() {
            self.placed = true;
        } else {
            self.play();
        }
        debug_assert!(
            self.placed || self.field.sources.is_empty(),
            "a merge of sources stands where they stand"
        );
    }

    /// Plays the whole tournament from where the sources stand.
    fn play(&mut self) {
        self.runner_up = None;
        let count = self.field.sources.len();
        if count == 0 {
            return;
        }
        self.field.rank_all();
        self.field.tied.fill(false);
        self.field.tied_count = 0;
        self.tree.play(count, &mut self.field);
        self.field.set_tied(self.tree.winner(), false);
        debug_assert_eq!(
            self.field.tied_count,
            self.field.tied.iter().filter(|tied| **tied).count(),
            "invariant 3"
        );
        self.placed = true;
    }

    /// One step in direction `backward`.
    fn step(&mut self, backward: bool) -> Result<()> {
        debug_assert!(self.entry().is_some(), "the caller asks for a step only from an entry");
        if !self.placed {
            return Ok(());
        }
        if let [source] = self.field.sources.as_mut_slice() {
            let stepped = step(source, backward, self.field.skips);
            self.placed = stepped.is_ok();
            return stepped;
        }
        let stepped = if self.field.backward != backward {
            self.turn(backward)
        } else if self.field.tied_count == 0 {
            self.advance()
        } else {
            self.advance_past_duplicates()
        };
        self.placed = stepped.is_ok();
        stepped
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        let winner = self.tree.winner();
        self.field.advance(winner)?;
        if let Some(runner_up) = self.runner_up
            && self.field.order(winner, runner_up) == Ordering::Less
        {
            return Ok(());
        }
        self.runner_up = None;
        self.tree.replay(&mut self.field);
        self.field.set_tied(self.tree.winner(), false);
        if self.tree.winner() == winner {
            let field = &self.field;
            self.runner_up =
                self.tree.losers_on_path().reduce(|a, b| if field.order(b, a).is_lt() { b } else { a });
        }
        debug_assert!(self.runner_up != Some(self.tree.winner()), "the runner-up is another source");
        Ok(())
    }

    fn advance_past_duplicates(&mut self) -> Result<()> {
        debug_assert!(
            self.field.tied_count > 0,
            "no other source has this entry: the search for it is in vain"
        );
        let Some(seq_kind) = self.keep_left() else { return Ok(()) };
        self.advance()?;
        while self
            .entry()
            .is_some_and(|entry| entry.seq_kind.seq() == seq_kind.seq() && entry.key == self.left)
        {
            self.advance()?;
        }
        Ok(())
    }

    /// Copies the current key to `left`.
    fn keep_left(&mut self) -> Option<SeqKind> {
        debug_assert!(
            self.tree.winner() < self.field.sources.len(),
            "the entry is that of the source that goes first"
        );
        let entry = self.field.sources[self.tree.winner()].entry()?;
        self.left.clear();
        self.left.extend_from_slice(entry.key);
        Some(entry.seq_kind)
    }

    /// Moves every source to the other side of the current entry. Invariant 1 says where each stands now.
    fn turn(&mut self, backward: bool) -> Result<()> {
        debug_assert!(self.field.backward != backward, "a turn changes the direction");
        let Some(seq_kind) = self.keep_left() else { return Ok(()) };
        let left = Entry { key: &self.left, seq_kind, value: &[] };
        let beyond = if backward { Ordering::Less } else { Ordering::Greater };
        for source in &mut self.field.sources {
            if source.entry().is_none() {
                // All its entries lie behind; the nearest is its end on this side.
                if backward { source.seek_last()? } else { source.seek_first()? }
            }
            // One step as a rule; more for entries that appeared in between.
            while source
                .entry()
                .is_some_and(|entry| internal_order(&self.field.collation, &entry, &left) != beyond)
            {
                if backward { source.prev()? } else { source.next()? }
            }
        }
        self.field.backward = backward;
        self.play();
        Ok(())
    }
}

impl<C: Cursor> Cursor for MergeCursor<C> {
    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        if self.placed { self.field.sources[self.winner()].entry() } else { None }
    }

    fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        if self.is_single() {
            return self.place(false, |source| source.seek(key, seq));
        }
        debug_assert!(!self.field.skips, "a placement stops at each version, whatever the step before did");
        self.placed = false;
        count(|cells| add(&cells.runs_sought, self.field.sources.len() as u64));
        self.waiting.clear();
        self.field.sources.iter_mut().for_each(|source| source.prepare_seek(key));
        for (index, source) in self.field.sources.iter_mut().enumerate() {
            if !source.begin_seek(key, seq)? {
                self.waiting.push(index);
            }
        }
        for &index in &self.waiting {
            self.field.sources[index].seek(key, seq)?;
        }
        self.position(false);
        Ok(())
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.place(true, |source| source.seek_before(key))
    }

    fn seek_first(&mut self) -> Result<()> {
        self.place(false, C::seek_first)
    }

    fn seek_last(&mut self) -> Result<()> {
        self.place(true, C::seek_last)
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        self.step(false)
    }

    /// Each source passes by the older versions that it has itself; those of others follow.
    #[inline]
    fn next_key(&mut self) -> Result<()> {
        debug_assert!(!self.field.skips, "the step before has ended");
        self.field.skips = true;
        let stepped = self.step(false);
        self.field.skips = false;
        stepped
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        self.step(true)
    }
}

/// Key ascending, then number descending. The kind does not order: a number names one record.
#[inline]
pub(crate) fn internal_order(collation: &Collation, a: &Entry<'_>, b: &Entry<'_>) -> Ordering {
    collation.cmp(a.key, b.key).then_with(|| b.seq_kind.seq().cmp(&a.seq_kind.seq()))
}
