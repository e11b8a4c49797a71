//! Persist steps: which commits join one, and what is durable behind it.
#![expect(unsafe_code, reason = "the leader looks at the entry at the head")]

use terrane_base::sync::atomic::Ordering;
use terrane_base::sync::thread;
use terrane_base::{Result, SeqNo};

use super::RingJournal;
use crate::Journal;
use crate::log::Log;
use crate::medium::Medium;

/// How often the leader of a persist step yields the processor, so that the returning members of the previous
/// step join this one. Without it two writers pay for a sync each. All yields together cost less than a sync
/// if no other thread wants the processor; after a step that waited in vain fewer tickets are expected.
const GATHER_TURNS: u32 = if cfg!(feature = "shuttle") { 1 } else { 192 };

impl<M: Medium> RingJournal<M> {
    /// Records that everything up to `seq` is durable.
    #[inline]
    pub(super) fn note_durable(&self, seq: SeqNo) {
        // Loaded first, because most groups make nothing durable. Relaxed: no other memory depends on it.
        if self.durable.load(Ordering::Relaxed) < seq.0 {
            self.durable.fetch_max(seq.0, Ordering::Relaxed);
        }
    }

    /// Lets the members of the previous persist step return before the next one starts.
    #[inline]
    pub(super) fn gather(&self, log: &Log) {
        let expected = log.expected();
        if expected > 1 {
            for _ in 0..GATHER_TURNS {
                if self.ring.gathered() >= expected || !self.is_sync_at_head() {
                    break;
                }
                thread::yield_now();
            }
        }
    }

    fn is_sync_at_head(&self) -> bool {
        // SAFETY: this thread leads, and the entry at the head is filled.
        self.ring.is_head_filled() && unsafe { (*self.ring.entry(self.ring.head())).sync() }
    }

    /// See [`Journal::sync_through`].
    pub(super) fn persist_through(&self, seq: SeqNo) -> Result<()> {
        debug_assert!(seq <= self.visible(), "only what is visible is wholly in its segment");
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
