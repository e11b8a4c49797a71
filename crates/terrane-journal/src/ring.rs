//! The commit ring: tickets, slots, waiting, and publication in ticket order. Knows no bytes of segments.
//!
//! ```text
//! EMPTY(t) --owner fills--> FILLED(t) --leader--> [COPY(t) --leader-->] PLACED(t) | FAILED(t)
//!    ^                                                                     | owner indexes, arrives
//!    '-------owner: EMPTY(t + slots)------- PUBLISHED(t) | HALTED(t) <--publisher--'
//! ```
//!
//! A slot's `word` holds a ticket and a phase, so laps of the ring cannot be confused. The *leader* is the
//! thread that holds `lead.held`; the *publisher* is the thread that holds the baton (below).
//!
//! # Which thread may touch what
//! 1. EMPTY(t), FILLED(t) coming: only the owner of ticket t touches the entry.
//! 2. FILLED, COPY: only the leader writes the entry. In COPY the owner reads it.
//! 3. PLACED, FAILED: only the owner touches the entry, until it arrives.
//! 4. Arrived: only the publisher reads the entry. From PUBLISHED or HALTED on the owner may use it again.
//! 5. `lead.head`, and all state that the journal guards by [`Ring::lead`], belong to the leader.
//! 6. `published.*` is written by the publisher only.
//!
//! # The baton
//! Each slot's `baton` collects two marks: ARRIVED (the owner is done) and HEAD (every earlier ticket is
//! published). The thread that sets the second mark becomes the publisher of that slot and of every following
//! slot that has arrived. So there is exactly one publisher, and no thread waits to become it.
//!
//! # No ticket is left behind
//! A filled ticket at the head always has a thread that will lead it. The owner tries after filling; if
//! another thread leads at that moment, that leader's members look again once they are indexed (`helping`),
//! and a leader that found nothing looks again itself. Both sides change `lead.held` by a read-modify-write:
//! either the owner's change comes later and finds the lead free, or the leader's release comes later and
//! reads from the owner's change; then every thread that acts on the release sees the slot filled.
//!
//! An owner that finds a thread pausing the ring does not try again: that thread looks for a group when it
//! resumes. Both sides change `lead.pausing` in the same way.
//!
//! A helper may *call* the owner instead of leading for it ([`Ring::call_head`]): the owner clears the call,
//! then tries to lead as after filling. A thread that finds a call set leaves the ticket to the owner: its
//! attempt is still to come, by the same argument, because it follows the clearing.

#![expect(unsafe_code, reason = "entries pass between threads by the rules above")]

mod entry;
mod parking;
pub(crate) mod phase;
mod publish;

use std::cell::UnsafeCell;

use crossbeam_utils::CachePadded;
use terrane_base::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use terrane_base::sync::spin;
use terrane_base::{Batch, SeqNo};

pub(crate) use entry::Entry;
use entry::SYNC_BIT;
use parking::Parking;
use phase::{BITS, CALLED, EMPTY, FILLED, PARKED, PLACED};

const ARRIVED: u32 = 1;
const HEAD: u32 = 2;

/// Turns of spinning before a thread sleeps. A wake-up costs ten times as much as the first turns, but a
/// spinning thread may keep the awaited one from its processor, so the later turns yield the processor.
const SPIN_TURNS: u32 = if cfg!(feature = "shuttle") { 1 } else { 96 };

/// One cache line.
#[repr(align(64))]
struct Slot {
    word: AtomicU64,
    entry: UnsafeCell<Entry>,
    baton: AtomicU32,
}

/// `last_seq` of a ticket that was placed but not indexed: nothing from there on may become visible.
const HALT: SeqNo = SeqNo(u64::MAX);

#[cfg(not(feature = "shuttle"))]
const _: () = assert!(size_of::<Slot>() == 64); // Neighbouring tickets of different threads must not share a line.

struct Lead {
    held: AtomicBool,
    /// Threads between [`Ring::pause`] and [`Ring::resume`]; they get the lead before the next leader.
    pausing: AtomicU32,
    /// First ticket that is in no group yet.
    head: AtomicU64,
}

struct Published {
    visible: AtomicU64,
    /// First ticket that is not published.
    tickets: AtomicU64,
    /// True if a ticket was placed but not indexed: nothing becomes visible any more.
    halted: AtomicBool,
}

/// See the head of the file.
pub(crate) struct Ring {
    slots: Box<[Slot]>,
    parking: Box<[Parking]>,
    tail: CachePadded<AtomicU64>,
    lead: CachePadded<Lead>,
    published: CachePadded<Published>,
    /// Threads that sleep in `enter`, because the ring is full.
    space: Parking,
    space_waiters: AtomicU32,
    /// Threads that sleep in `pause`.
    lead_free: Parking,
    /// Owners that still copy their records into the group being formed.
    copying: CachePadded<AtomicU32>,
    copied: Parking,
}

// SAFETY: entries are the only non-`Sync` part; rules 1 to 4 in the head of the file give each of them one
// owner at a time, and each hand-over is a Release of `word` or `baton` paired with an Acquire.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    /// A ring of `slots` slots, a power of two, on which everything up to `visible` is published.
    pub(crate) fn new(slots: usize, visible: SeqNo) -> Self {
        assert!(slots.is_power_of_two() && slots >= 2);
        let slot = |ticket: usize| Slot {
            word: AtomicU64::new(pack(ticket as u64, EMPTY)),
            entry: UnsafeCell::new(Entry::empty()),
            baton: AtomicU32::new(if ticket == 0 { HEAD } else { 0 }),
        };
        Ring {
            slots: (0..slots).map(slot).collect(),
            parking: (0..slots).map(|_| Parking::default()).collect(),
            tail: CachePadded::new(AtomicU64::new(0)),
            lead: CachePadded::new(Lead {
                held: AtomicBool::new(false),
                pausing: AtomicU32::new(0),
                head: AtomicU64::new(0),
            }),
            published: CachePadded::new(Published {
                visible: AtomicU64::new(visible.0),
                tickets: AtomicU64::new(0),
                halted: AtomicBool::new(false),
            }),
            space: Parking::default(),
            space_waiters: AtomicU32::new(0),
            lead_free: Parking::default(),
            copying: CachePadded::new(AtomicU32::new(0)),
            copied: Parking::default(),
        }
    }

    #[inline]
    fn slot(&self, ticket: u64) -> &Slot {
        &self.slots[ticket as usize & (self.slots.len() - 1)]
    }

    fn parking(&self, ticket: u64) -> &Parking {
        &self.parking[ticket as usize & (self.slots.len() - 1)]
    }

    /// The entry of `ticket`.
    ///
    /// # Safety
    /// The caller may use the entry by the rules in the head of the file.
    #[inline]
    pub(crate) unsafe fn entry(&self, ticket: u64) -> *mut Entry {
        self.slot(ticket).entry.get()
    }

    /// Everything up to this number is indexed.
    #[inline]
    pub(crate) fn visible(&self) -> SeqNo {
        // Acquire: pairs with the Release in `publish_from`; a thread that sees a number sees its entries.
        SeqNo(self.published.visible.load(Ordering::Acquire))
    }

    /// First ticket that is not published.
    pub(crate) fn published_tickets(&self) -> u64 {
        // Acquire: pairs with the Release in `publish_from`.
        self.published.tickets.load(Ordering::Acquire)
    }

    /// Number of tickets that were taken and are in no group yet. Called by the leader.
    pub(crate) fn gathered(&self) -> u64 {
        self.tail.load(Ordering::Relaxed) - self.lead.head.load(Ordering::Relaxed)
    }

    // --- the owner ---

    /// Takes a ticket, waits for its slot and fills it; `batch` is `None` for a persist step only.
    ///
    /// The caller completes all phases before it drops `batch`.
    #[inline]
    pub(crate) fn submit(&self, batch: Option<&Batch>, sync: bool) -> u64 {
        let ticket = self.tail.fetch_add(1, Ordering::Relaxed);
        let slot = self.slot(ticket);
        // Acquire: pairs with the exchange in `finish`; the owner of the previous lap has finished.
        if slot.word.load(Ordering::Acquire) != pack(ticket, EMPTY) {
            self.wait_for_space(ticket);
        }
        // SAFETY: rule 1.
        let entry = unsafe { &mut *slot.entry.get() };
        debug_assert!(entry.error.is_none(), "the owner of the previous lap took its error");
        let bytes = batch.map_or(&[][..], Batch::bytes);
        assert!(bytes.len() <= u32::MAX as usize, "a batch is limited to `BATCH_BYTES_MAX`");
        debug_assert!(
            batch.is_none_or(|batch| batch.record_count() < SYNC_BIT),
            "bit 31 of the count is `sync`"
        );
        entry.records = bytes.as_ptr();
        entry.len = bytes.len() as u32;
        entry.record_count = batch.map_or(0, Batch::record_count) | if sync { SYNC_BIT } else { 0 };
        entry.last_seq = SeqNo(0);
        // Release: pairs with the Acquire in `is_filled`; the leader sees the entry.
        slot.word.store(pack(ticket, FILLED), Ordering::Release);
        ticket
    }

    #[cold]
    fn wait_for_space(&self, ticket: u64) {
        let slot = self.slot(ticket);
        // SeqCst: this addition and the load below, against the exchange and the load in `finish`: one of the
        // two sides sees the other.
        self.space_waiters.fetch_add(1, Ordering::SeqCst);
        self.space.wait_until(|| slot.word.load(Ordering::SeqCst) == pack(ticket, EMPTY));
        self.space_waiters.fetch_sub(1, Ordering::SeqCst);
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
        word.load(Ordering::Acquire) & (PARKED - 1)
    }

    /// The owner of `ticket` has seen the call and will try to lead.
    pub(crate) fn answer(&self, ticket: u64) {
        // SeqCst: comes before the exchange in `try_lead`, see "No ticket is left behind". A leader may have
        // advanced the ticket meanwhile, which cleared the mark as well.
        self.slot(ticket).word.fetch_and(!CALLED, Ordering::SeqCst);
    }

    /// The owner has copied its records.
    pub(crate) fn copy_done(&self) {
        // AcqRel: pairs with the Acquire in `wait_for_copies`, through every other member's subtraction.
        let copying = self.copying.fetch_sub(1, Ordering::AcqRel);
        assert!(copying > 0, "more owners copied than the leader expects: it may have gone on without one");
        if copying == 1 {
            self.copied.wake();
        }
    }

    /// The owner is done with the entry. `is_indexed` is false for a ticket that was placed but not indexed.
    /// If the owner published its own ticket, returns whether it was committed.
    #[inline]
    pub(crate) fn arrive(&self, ticket: u64, is_indexed: bool) -> Option<bool> {
        let slot = self.slot(ticket);
        if !is_indexed {
            // SAFETY: rule 3.
            unsafe { (*slot.entry.get()).last_seq = HALT };
        } else if terrane_base::planted!(PublishOutOfOrder) {
            // SAFETY: rule 3.
            self.published.visible.fetch_max(unsafe { (*slot.entry.get()).last_seq }.0, Ordering::Release);
        }
        // AcqRel: Release hands entry and index entries to the publisher; Acquire takes the baton from it.
        let marks = slot.baton.fetch_or(ARRIVED, Ordering::AcqRel);
        assert!(marks & ARRIVED == 0, "ticket {ticket} arrives twice: a later one would be published early");
        (marks & HEAD != 0).then(|| self.publish_from(ticket))
    }

    /// The owner has finished: the slot is free for the next lap.
    #[inline]
    pub(crate) fn finish(&self, ticket: u64) {
        let next = pack(ticket + self.slots.len() as u64, EMPTY);
        // SeqCst: see `wait_for_space`; it also releases the entry.
        let old = self.slot(ticket).word.swap(next, Ordering::SeqCst);
        debug_assert!((pack(ticket, PLACED)..pack(ticket + 1, 0)).contains(&old), "{old:#x} of {ticket}");
        if self.space_waiters.load(Ordering::SeqCst) != 0 {
            self.space.wake();
        }
    }

    // --- the leader ---

    /// Returns true if the ticket at the head is waiting for a leader.
    #[inline]
    pub(crate) fn is_head_filled(&self) -> bool {
        self.is_filled(self.lead.head.load(Ordering::Acquire))
    }

    #[inline]
    fn is_filled(&self, ticket: u64) -> bool {
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

    /// The tickets of the next group: the filled ones from the head on, limited by the ring's size and
    /// `bytes_max` record bytes, but at least one if the head is filled. Called by the leader.
    #[inline]
    pub(crate) fn collect(&self, bytes_max: usize) -> std::ops::Range<u64> {
        let head = self.head();
        let (mut next, mut bytes) = (head, 0);
        while next - head < self.slots.len() as u64 && self.is_filled(next) {
            // SAFETY: rule 2.
            bytes += unsafe { (*self.entry(next)).len() };
            if bytes > bytes_max && next > head {
                break;
            }
            next += 1;
        }
        head..next
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

    /// Moves a ticket to `phase` and wakes its owner if it sleeps.
    #[inline]
    pub(crate) fn advance(&self, ticket: u64, phase: u64) {
        // AcqRel: Release hands the entry to the owner; pairs with the Acquire in `wait_while`.
        let old = self.slot(ticket).word.swap(pack(ticket, phase), Ordering::AcqRel);
        phase::check_step(ticket, old, phase);
        if old & PARKED != 0 {
            self.parking(ticket).wake();
        }
    }

    /// Moves the caller's own ticket to `phase`: no thread sleeps on it.
    #[inline]
    pub(crate) fn advance_own(&self, ticket: u64, phase: u64) {
        let word = &self.slot(ticket).word;
        debug_assert!(word.load(Ordering::Relaxed) & PARKED == 0, "the owner is awake: it is the caller");
        phase::check_step(ticket, word.load(Ordering::Relaxed), phase);
        word.store(pack(ticket, phase), Ordering::Relaxed);
    }
}

#[inline]
fn pack(ticket: u64, phase: u64) -> u64 {
    ticket << BITS | phase
}
