//! How the owner of a ticket waits: for its slot, and for the next phase.

use terrane_base::sync::atomic::Ordering;
use terrane_base::sync::spin;

use super::phase::{BITS, CALLED, EMPTY, PARKED};
use super::{Ring, SPIN_TURNS, pack};

impl Ring {
    #[cold]
    pub(super) fn wait_for_space(&self, ticket: u64) {
        let slot = self.slot(ticket);
        // SeqCst: this addition and the load below, against the exchange and the load in `finish`: one of the
        // two sides sees the other.
        self.space_waiters.fetch_add(1, Ordering::SeqCst);
        self.space.wait_until(|| slot.word.load(Ordering::SeqCst) == pack(ticket, EMPTY));
        let waiters = self.space_waiters.fetch_sub(1, Ordering::SeqCst);
        debug_assert!(waiters > 0, "a waiter that is not counted would not be woken");
    }

    /// Waits until `ticket` leaves phase `from`; returns the new phase. A call also ends FILLED.
    #[inline]
    pub(crate) fn wait_while(&self, ticket: u64, from: u64) -> u64 {
        let word = &self.slot(ticket).word;
        let awaited = pack(ticket, from);
        for turn in 0..=SPIN_TURNS {
            // Acquire: pairs with the exchange in `advance`; what the leader or publisher did is visible.
            let now = word.load(Ordering::Acquire);
            if now != awaited {
                debug_assert!(now >> BITS == ticket, "the slot of ticket {ticket} has the word {now:#x}");
                return now & (PARKED - 1);
            }
            spin(turn);
        }
        self.park_while(ticket, awaited)
    }

    #[cold]
    fn park_while(&self, ticket: u64, awaited: u64) -> u64 {
        let word = &self.slot(ticket).word;
        // Relaxed on success: the mark carries no data. Acquire as in `wait_while`.
        let parked = word.compare_exchange(awaited, awaited | PARKED, Ordering::Relaxed, Ordering::Acquire);
        if parked.is_ok() {
            self.parking(ticket).wait_until(|| word.load(Ordering::Acquire) != awaited | PARKED);
        }
        let now = word.load(Ordering::Acquire);
        debug_assert!(now >> BITS == ticket, "the slot of ticket {ticket} has the word {now:#x}");
        now & (PARKED - 1)
    }

    /// The owner of `ticket` has seen the call and will try to lead.
    pub(crate) fn answer(&self, ticket: u64) {
        // SeqCst: comes before the exchange in `try_lead`, see "No ticket is left behind". A leader may have
        // advanced the ticket meanwhile, which cleared the mark as well.
        let old = self.slot(ticket).word.fetch_and(!CALLED, Ordering::SeqCst);
        debug_assert!(old >> BITS == ticket, "the slot of ticket {ticket} has the word {old:#x}");
    }
}
