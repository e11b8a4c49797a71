//! The end of a commit: it is published in the order of tickets, by whichever thread's turn it is.

use terrane_base::{Error, Kind};

use super::RingJournal;
use crate::medium::Medium;
use crate::ring::phase;

impl<M: Medium> RingJournal<M> {
    /// Does steps 4 to 6; returns whether the ticket was committed. `reached` is its current phase. After a
    /// persist step the first member leads the next one: waking it costs part of a step, missing it a whole
    /// one.
    #[inline]
    pub(super) fn publish(&self, ticket: u64, reached: u64, is_indexed: bool, is_synced: bool) -> bool {
        let published = self.ring.arrive(ticket, is_indexed);
        match is_synced {
            true => self.ring.call_head(),
            false => self.lead(None),
        }
        let counts = match published {
            Some(counts) => counts,
            None => self.ring.wait_while(ticket, reached) == phase::PUBLISHED,
        };
        debug_assert!(ticket < self.ring.published_tickets(), "a slot is returned once it is published");
        self.ring.finish(ticket);
        counts
    }

    pub(super) fn halted(&self) -> Error {
        self.poison
            .check()
            .err()
            .unwrap_or_else(|| Error::new(Kind::Poisoned, "an earlier commit was not indexed"))
    }
}
