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

#![expect(unsafe_code, reason = "threads pass entries to each other by the rules above")]

mod entry;
mod lead;
mod parking;
pub(crate) mod phase;
mod publish;
mod wait;

use std::cell::UnsafeCell;

use crossbeam_utils::CachePadded;
use terrane_base::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use terrane_base::{Batch, SeqNo};

pub(crate) use entry::Entry;
use entry::SYNC_BIT;
use parking::Parking;
use phase::{BITS, EMPTY, FILLED, PARKED, PLACED};

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
        debug_assert!(next - head <= self.slots.len() as u64, "a slot would be in the group twice");
        head..next
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
