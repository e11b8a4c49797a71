//! Publishes tickets in their order; only the thread that holds the baton does so.
#![expect(unsafe_code, reason = "reads entries of tickets that have arrived (rule 4 of the ring)")]

use terrane_base::SeqNo;
use terrane_base::sync::atomic::Ordering;

use super::phase::{HALTED, PUBLISHED};
use super::{ARRIVED, HALT, HEAD, Ring};

impl Ring {
    /// Publishes `own`, whose owner is the caller, and every arrived ticket after it; passes the baton on.
    /// Returns whether `own` was committed.
    pub(super) fn publish_from(&self, own: u64) -> bool {
        let mut own_counts = true;
        let mut next = own;
        loop {
            let first = next;
            let (after, halted_at) = self.publish_run(first);
            if first == own {
                own_counts = own < halted_at;
            }
            next = after;
            // AcqRel: passes the baton with all writes of the publisher, or keeps it and takes the entry.
            let marks = self.slot(next).baton.fetch_or(HEAD, Ordering::AcqRel);
            assert!(marks & HEAD == 0, "ticket {next} has two publishers");
            let goes_on = marks & ARRIVED != 0;
            for ticket in first..next {
                if ticket != own {
                    self.advance(ticket, if ticket < halted_at { PUBLISHED } else { HALTED });
                }
            }
            if !goes_on {
                return own_counts;
            }
        }
    }

    /// Publishes the run of arrived tickets from `first`; returns the ticket after it, and the first ticket
    /// of it that was not committed.
    fn publish_run(&self, first: u64) -> (u64, u64) {
        debug_assert_eq!(
            first,
            self.published.tickets.load(Ordering::Relaxed),
            "tickets are published in order"
        );
        let (mut next, mut visible) = (first, None);
        let mut halted_at = if self.published.halted.load(Ordering::Relaxed) { first } else { u64::MAX };
        loop {
            let slot = self.slot(next);
            // SAFETY: rule 4; the ticket has arrived and the caller holds the baton.
            let last_seq = unsafe { (*slot.entry.get()).last_seq };
            if last_seq == HALT {
                self.published.halted.store(true, Ordering::Relaxed);
                halted_at = halted_at.min(next);
            }
            if next < halted_at && last_seq != SeqNo(0) {
                debug_assert!(visible.is_none_or(|before| before < last_seq), "numbers follow the tickets");
                visible = Some(last_seq);
            }
            slot.baton.store(0, Ordering::Relaxed);
            next += 1;
            // Acquire: pairs with the Release in `arrive`. After a whole lap it reads the 0 stored above.
            if self.slot(next).baton.load(Ordering::Acquire) != ARRIVED {
                break;
            }
        }
        debug_assert!(next - first <= self.slots.len() as u64, "a lap has each slot once");
        if let Some(visible) = visible {
            let before = self.published.visible.load(Ordering::Relaxed);
            assert!(before <= visible.0, "{visible} would hide records up to {before} from readers again");
            self.published.visible.store(visible.0, Ordering::Release);
        }
        self.published.tickets.store(next, Ordering::Release);
        (next, halted_at)
    }
}
