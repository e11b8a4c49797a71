//! The persist step, and the end of a log: everything is made durable, and a mark says so.

use terrane_base::{Result, SeqNo};

use super::Log;
use crate::medium::Medium;
use crate::poison::Poison;
use crate::ring::Ring;

impl Log {
    pub(super) fn persist<M: Medium>(&mut self, medium: &M) -> Result<()> {
        if self.is_dirty {
            medium.persist()?;
            self.is_dirty = false;
        }
        let durable = SeqNo(self.next_seq.0 - 1);
        debug_assert!(self.durable <= durable, "what is durable stays so");
        self.durable = durable;
        Ok(())
    }

    /// Makes everything durable and writes a durable-end mark, which is durable on return. The mark names the
    /// last edit of the manifest, so the segment with it has to stay: where the active one is long, the mark
    /// gets a short segment of its own, if there is space for one.
    pub(crate) fn close<M: Medium>(&mut self, ring: &Ring, medium: &M, poison: &Poison) -> Result<SeqNo> {
        poison.check()?;
        medium.begin_end();
        if self.active.as_ref().is_some_and(|active| active.used > self.short_bytes) {
            let _ = self.rotate(0, ring.published_tickets(), ring.head(), medium, poison);
        }
        let closed =
            self.persist(medium).and_then(|()| self.mark(medium)).and_then(|()| self.persist(medium));
        closed.inspect_err(|error| poison.set(error.clone()))?;
        debug_assert!(self.durable.0 + 1 == self.next_seq.0, "a closed journal is durable to its end");
        Ok(SeqNo(self.next_seq.0 - 1))
    }
}
