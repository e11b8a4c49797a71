//! The lead: how a thread becomes the leader, how another one pauses all leaders, and what a leader waits
//! for.
//! The head of [`super`] says why no ticket is left behind.

use terrane_base::sync::atomic::Ordering;
use terrane_base::sync::spin;

use super::phase::{CALLED, FILLED, PARKED};
use super::{Ring, SPIN_TURNS, pack};

impl Ring {
    /// Returns true if the ticket at the head is waiting for a leader.
    #[inline]
    pub(crate) fn is_head_filled(&self) -> bool {
        self.is_filled(self.lead.head.load(Ordering::Acquire))
    }

    #[inline]
    pub(super) fn is_filled(&self, ticket: u64) -> bool {
        // Acquire: pairs with the Release in `submit`.
        self.slot(ticket).word.load(Ordering::Acquire) & !(PARKED | CALLED) == pack(ticket, FILLED)
    }

    /// Asks the owner of the ticket at the head to lead, if that ticket is waiting for a leader. Then the
    /// caller need not lead for it, and can return with its next commit in time for that group.
    pub(crate) fn call_head(&self) {
        let head = self.lead.head.load(Ordering::Acquire);
        let word = &self.slot(head).word;
        let filled = pack(head, FILLED);
        let mut seen = word.load(Ordering::SeqCst);
        // A ticket that was called already, or is not filled, is left alone.
        while seen & !PARKED == filled {
            // SeqCst: see "No ticket is left behind". The mark carries no data.
            match word.compare_exchange_weak(seen, filled | CALLED, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) if seen & PARKED != 0 => return self.parking(head).wake(),
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Tries to become the leader.
    #[inline]
    pub(crate) fn try_lead(&self) -> bool {
        if self.lead.pausing.load(Ordering::Relaxed) != 0 && self.is_pausing() {
            return false;
        }
        // A read-modify-write in any case: see "No ticket is left behind". SeqCst for `release_lead`.
        !self.lead.held.swap(true, Ordering::SeqCst)
    }

    /// Returns true if a thread in [`Ring::pause`] will look for a group later. The caller leaves every
    /// filled ticket to that thread, and must not wait for it: the lead may be held for a group that needs
    /// the caller's copy.
    #[cold]
    fn is_pausing(&self) -> bool {
        // A read-modify-write: see "No ticket is left behind".
        self.lead.pausing.fetch_add(0, Ordering::SeqCst) != 0
    }

    /// Ends the caller's lead.
    #[inline]
    pub(crate) fn release_lead(&self) {
        // SeqCst: this exchange and the load, against the addition and the exchange in `pause`.
        let was_held = self.lead.held.swap(false, Ordering::SeqCst);
        debug_assert!(was_held, "only the leader releases the lead");
        if self.lead.pausing.load(Ordering::SeqCst) != 0 {
            self.lead_free.wake();
        }
    }

    /// Waits for the lead, with priority over all other threads.
    pub(crate) fn pause(&self) {
        self.lead.pausing.fetch_add(1, Ordering::SeqCst);
        self.lead_free.wait_until(|| !self.lead.held.swap(true, Ordering::SeqCst));
    }

    /// Ends the lead of [`Ring::pause`]. The caller then looks for a group, see the head of the file.
    pub(crate) fn resume(&self) {
        let pausing = self.lead.pausing.fetch_sub(1, Ordering::SeqCst);
        let was_held = self.lead.held.swap(false, Ordering::SeqCst);
        assert!(pausing > 0, "each `resume` ends a `pause`");
        assert!(was_held, "a thread that pauses the ring has the lead");
        self.lead_free.wake();
    }

    /// First ticket that is in no group yet.
    pub(crate) fn head(&self) -> u64 {
        self.lead.head.load(Ordering::Relaxed)
    }

    /// Moves the head to `next`, after the tickets that the caller took.
    #[inline]
    pub(crate) fn set_head(&self, next: u64) {
        debug_assert!(next >= self.head(), "no ticket is in two groups");
        // Release: pairs with the Acquire in `is_head_filled`.
        self.lead.head.store(next, Ordering::Release);
    }

    /// Expects `count` calls of [`Ring::copy_done`].
    pub(crate) fn expect_copies(&self, count: u32) {
        // Relaxed: the members see it through `advance`.
        let before = self.copying.swap(count, Ordering::Relaxed);
        assert!(before == 0, "{before} owners still copy into the group before");
    }

    /// Waits until every member that copies has finished.
    pub(crate) fn wait_for_copies(&self) {
        for turn in 0..SPIN_TURNS {
            // Acquire: pairs with `copy_done`; the bytes are there.
            if self.copying.load(Ordering::Acquire) == 0 {
                return;
            }
            spin(turn);
        }
        self.copied.wait_until(|| self.copying.load(Ordering::Acquire) == 0);
    }
}
