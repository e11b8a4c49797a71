//! The persist step, and the end of a log: everything is made durable, and a mark says so.

use std::sync::Arc;

use terrane_base::{Result, SeqNo};
use terrane_format::segment;

use super::{Active, Kept, Log, Sealed};
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
        debug_assert!(self.durable <= durable, "a durable commit stays durable");
        self.durable = durable;
        Ok(())
    }

    /// Leaves the active segment if it has more than `bytes`: the next group goes to another one, as the
    /// first one after an opening does. The next commit makes it: an empty segment in the chain could be
    /// lost with the power while a later one is kept, and replay takes that for damage. On return the log
    /// keeps only former segments that a member points to.
    pub(crate) fn seal_longer_than<M: Medium>(
        &mut self,
        bytes: u64,
        ring: &Ring,
        medium: &M,
        poison: &Poison,
    ) -> Result<()> {
        poison.check()?;
        let is_long = |active: &super::Active| active.memory().region.len() as u64 > bytes;
        if self.active.as_ref().is_some_and(is_long)
            && let Some(sealed) = self.active_end()
            && medium.seal(&sealed)
            && let Some(former) = self.active.take()
        {
            debug_assert!(sealed.link.last_seq > self.previous.last_seq, "an active segment has a record");
            let Active { used, header_edit, edit, kept, .. } = former;
            let before = std::mem::replace(&mut self.previous, sealed.link);
            self.sealed = Some(Sealed { used, header_edit, edit, before });
            self.retired.push((ring.head(), kept));
        }
        debug_assert!(self.sealed.is_none() || self.active.is_none(), "a sealed segment takes no group");
        if self.active.is_none() {
            // Its memory is not worth the room that the caller makes.
            medium.give_up_long();
        }
        self.release_former(ring.published_tickets());
        Ok(())
    }

    /// Goes on in the sealed segment, if it is still there: no segment can be made for the mark after it.
    /// Requires: no record comes any more. A trim that has decided on the segment would take it with them.
    fn unseal<M: Medium>(&mut self, medium: &M) {
        let Some(Sealed { used, header_edit, edit, before }) = self.sealed.take() else { return };
        debug_assert!(self.active.is_none(), "behind a sealed segment no other one was begun");
        let link = self.previous;
        let Some(memory) = medium.unseal(link.id) else { return };
        assert!(memory.id == link.id, "{:?} goes on in the memory of {:?}", link.id, memory.id);
        self.previous = before;
        self.active = Some(Active {
            seed: segment::segment_seed(link.id, Some(self.salt)),
            used,
            checksum: link.checksum,
            header_edit,
            edit,
            kept: Arc::new(Kept(memory)),
        });
    }

    /// Makes everything durable and writes a durable-end mark, which is durable on return. The mark names the
    /// last edit of the manifest, so the segment with it has to stay: where the active one is long, the mark
    /// gets a short segment of its own, if there is space for one; if not, and the last one was left before,
    /// the mark goes after its records: it has room for one.
    pub(crate) fn close<M: Medium>(&mut self, ring: &Ring, medium: &M, poison: &Poison) -> Result<SeqNo> {
        poison.check()?;
        medium.begin_end();
        let is_full = self.active.as_ref().is_some_and(|active| active.used > self.short_bytes);
        if (self.sealed.is_some() || is_full)
            && self.rotate(0, ring.published_tickets(), ring.head(), medium, poison).is_err()
            && !terrane_base::planted!(CloseWithoutMark)
        {
            self.unseal(medium);
        }
        let closed =
            self.persist(medium).and_then(|()| self.mark(medium)).and_then(|()| self.persist(medium));
        closed.inspect_err(|error| poison.set(error.clone()))?;
        debug_assert!(self.durable.0 + 1 == self.next_seq.0, "a closed journal is durable to its end");
        Ok(SeqNo(self.next_seq.0 - 1))
    }
}
