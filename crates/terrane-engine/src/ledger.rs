//! What a table owes to the levels: every memtable that it ever wrote to and whose records are not yet in the levels by an
//! edit that is durable. Whoever has the right to change the table's picture has the ledger, and no picture is installed
//! before the ledger agrees ([`Ledger::turn`]).
//!
//! The rule: memory leaves what reads look at only in the step that puts its records into what replaces it.
//! 1. A memtable stays, active or frozen, until a generation of the same picture says that it has taken it in as a whole, and
//!    until every number that it may hold is visible: no writer is on his way to it. One without records may just go.
//! 2. What a generation has taken in stays with one, until the edit that says so is appended.
//! 3. A table that was dropped owes nothing.
//!
//! It is independent of the pictures: it learns of memtables when they become active, and knows the oldest segment of each. So
//! it is asked once more before segments are trimmed. Nothing of it is on the way of a read or a write.

use std::sync::Arc;

use terrane_base::{Error, Kind, Result, SegmentId, SeqNo};
use terrane_memtable::{GlobalIndex, Memtable};

use crate::picture::Picture;

/// What may leave memory in a step, and what that rests on.
pub(crate) enum Leaves<'g> {
    /// Nothing.
    Nothing,
    /// Frozen memtables of which no number is above the one that is visible, into a generation.
    Settled {
        /// The visible number.
        visible: SeqNo,
    },
    /// What this generation has taken in: the edit that says that it is in the levels is appended.
    Flushed(&'g GlobalIndex),
    /// Everything: the edit that drops the table is appended.
    Dropped,
}

/// The memtables of a table whose records are not in its levels, oldest first. The last one is active.
pub(crate) struct Ledger {
    owed: Vec<Owed>,
}

struct Owed {
    /// The first number of the memtable; the last one is that in front of the next memtable.
    first_seq: SeqNo,
    held: Held,
}

enum Held {
    /// As an active or frozen memtable.
    Memtable(Arc<Memtable>),
    /// By a generation that has taken it in; the oldest segment that it points into.
    Generation(Option<SegmentId>),
}

/// A memtable, by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    first: SeqNo,
    /// `None` for the active one.
    last: Option<SeqNo>,
}

impl std::fmt::Display for Numbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.last {
            Some(last) => write!(f, "commits {} to {last}", self.first),
            None => write!(f, "commits from {} on", self.first),
        }
    }
}

impl Ledger {
    /// The ledger of a table whose memory is this memtable.
    pub(crate) fn new(active: &Arc<Memtable>) -> Ledger {
        Ledger { owed: vec![Owed::new(active)] }
    }

    /// Agrees to `next` as the picture of the table, or says what would be lost and stays as it is.
    ///
    /// # Errors
    /// `Poisoned`.
    pub(crate) fn turn(&mut self, next: &Picture, leaves: &Leaves<'_>) -> Result<()> {
        for at in 0..self.owed.len() {
            let numbers = self.numbers(at);
            if let Err(why) = self.owed[at].fate(numbers, next, leaves)
                && !terrane_base::planted!(MergeIntoFlushedGeneration)
            {
                return Err(violated(format!("{numbers} would leave memory {why}")));
            }
        }
        let mut at = 0;
        while at < self.owed.len() {
            match self.owed[at].fate(self.numbers(at), next, leaves) {
                Ok(Fate::Stays) => at += 1,
                Ok(Fate::TakenIn(oldest)) => {
                    self.owed[at].held = Held::Generation(oldest);
                    at += 1;
                }
                // The numbers of what is behind it begin where they did.
                Ok(Fate::Gone) | Err(_) => drop(self.owed.remove(at)),
            }
        }
        if self.owed.last().is_none_or(|last| last.first_seq < next.active.first_seq()) {
            self.owed.push(Owed::new(&next.active));
        }
        Ok(())
    }

    /// Checks that with `generation` everything numbered up to `flushed` is in the levels: nothing else begins there.
    ///
    /// # Errors
    /// `Poisoned`.
    pub(crate) fn check_flushed(&self, generation: &GlobalIndex, flushed: SeqNo) -> Result<()> {
        let stays = |at: &usize| !generation.has_taken_in(self.owed[*at].first_seq);
        match (0..self.owed.len()).filter(stays).find(|at| self.owed[*at].first_seq <= flushed) {
            None => Ok(()),
            Some(at) => {
                let numbers = self.numbers(at);
                Err(violated(format!("{numbers} are in memory and would be told as flushed up to {flushed}")))
            }
        }
    }

    /// Checks that nothing that is owed lies in a segment up to `upto`.
    ///
    /// # Errors
    /// `Poisoned`.
    pub(crate) fn check_trim(&self, upto: SegmentId) -> Result<()> {
        let needs = |at: &usize| self.owed[*at].oldest_segment().is_some_and(|oldest| oldest <= upto);
        match (0..self.owed.len()).find(needs) {
            None => Ok(()),
            Some(at) => {
                let numbers = self.numbers(at);
                Err(violated(format!("{numbers} need a segment up to {upto}, which would be trimmed")))
            }
        }
    }

    /// Breaks the ledger: it has a memtable that no picture has.
    #[cfg(test)]
    pub(crate) fn owe(&mut self, memtable: &Arc<Memtable>) {
        self.owed.push(Owed::new(memtable));
    }

    fn numbers(&self, at: usize) -> Numbers {
        let next = self.owed.get(at + 1).map(|next| next.first_seq);
        Numbers { first: self.owed[at].first_seq, last: next.map(|next| SeqNo(next.0 - 1)) }
    }
}

/// What becomes of a memtable in a step.
enum Fate {
    Stays,
    TakenIn(Option<SegmentId>),
    Gone,
}

impl Owed {
    fn new(memtable: &Arc<Memtable>) -> Owed {
        Owed { first_seq: memtable.first_seq(), held: Held::Memtable(memtable.clone()) }
    }

    fn oldest_segment(&self) -> Option<SegmentId> {
        match &self.held {
            Held::Memtable(memtable) => memtable.oldest_segment(),
            Held::Generation(oldest) => *oldest,
        }
    }

    /// What becomes of it with the picture `next`; why that must not be, if it must not.
    fn fate(
        &self,
        numbers: Numbers,
        next: &Picture,
        leaves: &Leaves<'_>,
    ) -> std::result::Result<Fate, &'static str> {
        if matches!(leaves, Leaves::Dropped) {
            return Ok(Fate::Gone);
        }
        let is_taken_in = || next.generations.iter().any(|one| one.has_taken_in(self.first_seq));
        let memtable = match &self.held {
            Held::Generation(_) if is_taken_in() => return Ok(Fate::Stays),
            Held::Generation(_) => {
                return match leaves {
                    Leaves::Flushed(generation) if generation.has_taken_in(self.first_seq) => Ok(Fate::Gone),
                    _ => Err("though no edit says that they are in the levels"),
                };
            }
            Held::Memtable(memtable) => memtable,
        };
        if std::iter::once(&next.active).chain(&next.frozen).any(|one| Arc::ptr_eq(one, memtable)) {
            return Ok(Fate::Stays);
        }
        let Leaves::Settled { visible } = leaves else {
            return Err("in a step that brings no memtable away");
        };
        if numbers.last.is_none_or(|last| last > *visible) {
            return Err("though writers may be on their way");
        }
        match is_taken_in() {
            true => Ok(Fate::TakenIn(memtable.oldest_segment())),
            false if memtable.is_empty() => Ok(Fate::Gone),
            false => Err("though no generation that reads look at has taken them in"),
        }
    }
}

/// The error of a step that would lose records; the ledger stays as it is. Who asked stops the table (`stopped.rs`), whose
/// error says what is left of the step and what helps.
fn violated(what: String) -> Error {
    Error::new(Kind::Poisoned, what)
}

#[cfg(test)]
mod tests;
