//! The durable part of the journal, and the persist steps of threads that do not lead.

use terrane_base::sync::atomic::Ordering;
use terrane_base::{Result, SeqNo};

use super::RingJournal;
use crate::Journal;
use crate::medium::Medium;

impl<M: Medium> RingJournal<M> {
    /// Records that everything up to `seq` is durable.
    #[inline]
    pub(super) fn note_durable(&self, seq: SeqNo) {
        // Loaded first, because most groups make nothing durable. Relaxed: no other memory depends on it.
        if self.durable.load(Ordering::Relaxed) < seq.0 {
            self.durable.fetch_max(seq.0, Ordering::Relaxed);
        }
        debug_assert!(self.durable.load(Ordering::Relaxed) >= seq.0, "what was durable once stays so");
    }

    /// See [`Journal::sync_through`].
    pub(super) fn persist_through(&self, seq: SeqNo) -> Result<()> {
        debug_assert!(seq <= self.visible(), "only a visible commit is wholly in its segment");
        let is_durable = self.durable() >= seq;
        // A closed journal is refused nothing that its close has made durable.
        if is_durable && self.is_closed.load(Ordering::Acquire) {
            return Ok(());
        }
        self.poison.check()?;
        // Often so where writers sync: no lock is taken that they would wait for.
        if is_durable {
            return Ok(());
        }
        self.medium.persist_through(seq).inspect_err(|error| self.poison.set(error.clone()))?;
        self.note_durable(seq);
        Ok(())
    }
}
