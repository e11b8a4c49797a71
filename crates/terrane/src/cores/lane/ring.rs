//! A lane: a bounded ring of slots between one client and one server. A slot has a request, and then its
//! answer.
//!
//! ```text
//!            collected        answered        published     filled      collected + slots
//! ... ──free──►|───answers──────►|───requests─────►|───kept back─►|───free──►|
//!    client    |     client      |     server      |    client    |  client
//! ```
//!
//! Positions count up for ever; a slot is a position modulo the number of slots.
//!
//! # Which thread may touch what
//! 1. A slot from `answered` up to `published` belongs to the server, every other one to the client.
//! 2. `published` is added to by the client only, and the server sets its ENDED bit once. What the client had
//!    added before the bit is accepted; a position published behind the bit stays the client's: it is
//!    refused.
//! 3. `answered` is stored by the server only.
//! 4. The client's own `filled` never passes `collected + slots`, and `collected` never passes `answered`, so
//!    a slot that is filled again is one that the server has given back.
//!
//! # Orderings
//! The addition to `published` releases what was filled; the server's look at it acquires. The store to
//! `answered` releases what was answered; the client's look acquires. Both are sequentially consistent as
//! well, for the bells ([`super::bell`]).

#![expect(unsafe_code, reason = "two threads pass slots to each other by the rules above")]

use std::cell::UnsafeCell;

use super::bell::Bell;
use terrane_base::sync::Arc;
use terrane_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Set in `published` when nothing more is accepted.
const ENDED: u64 = 1 << 63;

/// A pair of cache lines, which processors fetch together, of its own.
#[repr(align(128))]
struct Apart<T>(T);

struct Shared<T> {
    slots: Box<[Apart<UnsafeCell<T>>]>,
    published: Apart<AtomicU64>,
    answered: Apart<AtomicU64>,
    /// The client is gone and publishes nothing more.
    gone: AtomicBool,
    /// By which the client sleeps.
    bell: Arc<Bell>,
}

// SAFETY: slots are the only part that is not `Sync`; rule 1 gives each of them one thread at a time, and the
// hand-overs release and acquire.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    #[inline]
    fn slot(&self, position: u64) -> *mut T {
        self.slots[position as usize & (self.slots.len() - 1)].0.get()
    }
}

/// A lane of `slots` slots, a power of two, whose client sleeps by `bell`.
///
/// # Panics
/// If `slots` is not a power of two.
#[must_use]
pub(crate) fn lane<T: Default>(slots: usize, bell: Arc<Bell>) -> (Client<T>, Server<T>) {
    assert!(slots.is_power_of_two());
    let shared = Arc::new(Shared {
        slots: (0..slots).map(|_| Apart(UnsafeCell::new(T::default()))).collect(),
        published: Apart(AtomicU64::new(0)),
        answered: Apart(AtomicU64::new(0)),
        gone: AtomicBool::new(false),
        bell,
    });
    let server = Server { shared: shared.clone(), published: 0, answered: 0 };
    (Client { shared, collected: 0, answered: 0, published: 0, filled: 0, ended_at: None }, server)
}

/// A slot that comes back to the client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken<T> {
    /// The server answered.
    Answered(T),
    /// The lane had ended: the server never saw it.
    Refused(T),
}

/// The end of a lane that asks.
pub(crate) struct Client<T> {
    shared: Arc<Shared<T>>,
    collected: u64,
    /// As far as it was last seen.
    answered: u64,
    published: u64,
    filled: u64,
    /// First position that was refused.
    ended_at: Option<u64>,
}

impl<T> Client<T> {
    /// The slot of the next request; `None` if all are in use. It counts once [`Client::submit`] is called.
    #[inline]
    pub(crate) fn free(&mut self) -> Option<&mut T> {
        if self.filled - self.collected == self.shared.slots.len() as u64 {
            return None;
        }
        // SAFETY: rules 1 and 4; `filled` is not published yet.
        Some(unsafe { &mut *self.shared.slot(self.filled) })
    }

    /// The slot of [`Client::free`] holds a request. Returns its position.
    ///
    /// # Panics
    /// If all slots are in use.
    #[inline]
    pub(crate) fn submit(&mut self) -> u64 {
        assert!(self.filled - self.collected < self.shared.slots.len() as u64, "there is a free slot");
        self.filled += 1;
        self.filled - 1
    }

    /// Requests that are kept back.
    #[inline]
    #[must_use]
    pub(crate) fn kept_back(&self) -> u64 {
        self.filled - self.published
    }

    /// Hands over what was kept back; returns whether that was anything.
    #[inline]
    pub(crate) fn publish(&mut self) -> bool {
        let added = self.kept_back();
        if added == 0 {
            return false;
        }
        // SeqCst: releases what was filled, and comes before the caller's look at the server's bell.
        let before = self.shared.published.0.fetch_add(added, Ordering::SeqCst);
        if before & ENDED != 0 {
            self.ended_at.get_or_insert(self.published);
        }
        self.published = self.filled;
        true
    }

    /// Looks how far the server is.
    #[inline]
    pub(crate) fn look(&mut self) {
        // SeqCst: acquires the answers, and comes behind the announcement at the client's bell.
        self.answered = self.shared.answered.0.load(Ordering::SeqCst);
        if self.ended_at == Some(self.answered) {
            // All that was accepted is answered: the rest is known to be refused.
            self.answered = self.published;
        }
    }

    /// Answers, and refused requests behind the last answer, that wait to be taken, as far as
    /// [`Client::look`] saw.
    #[inline]
    #[must_use]
    pub(crate) fn ready(&self) -> u64 {
        self.answered - self.collected
    }

    /// Requests that are not answered yet, as far as [`Client::look`] saw.
    #[inline]
    #[must_use]
    pub(crate) fn unanswered(&self) -> u64 {
        self.filled - self.answered
    }

    /// Returns true if every request before `position` is answered or refused, as far as [`Client::look`]
    /// saw.
    #[inline]
    #[must_use]
    pub(crate) fn is_answered_before(&self, position: u64) -> bool {
        position <= self.answered
    }

    /// Returns true if a request was refused: no later one will be accepted.
    #[must_use]
    pub(crate) fn has_ended(&self) -> bool {
        self.ended_at.is_some()
    }

    /// The next answer in the order of the requests, if it is ready; its slot is free when the borrow ends.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Taken<&mut T>> {
        if self.ready() == 0 {
            return None;
        }
        let position = self.collected;
        self.collected += 1;
        // SAFETY: rule 1; the position is answered or refused, and no other borrow of it is left.
        let slot = unsafe { &mut *self.shared.slot(position) };
        Some(if self.ended_at.is_some_and(|ended| position >= ended) {
            Taken::Refused(slot)
        } else {
            Taken::Answered(slot)
        })
    }
}

impl<T> Drop for Client<T> {
    fn drop(&mut self) {
        self.publish();
        // Release: pairs with the Acquire in `is_gone`; a thread that sees it sees the last publication.
        self.shared.gone.store(true, Ordering::Release);
    }
}

impl<T> std::fmt::Debug for Client<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Client { collected, answered, published, filled, .. } = self;
        write!(f, "Client({collected} <= {answered} <= {published} <= {filled})")
    }
}

/// The end of a lane that answers.
pub(crate) struct Server<T> {
    shared: Arc<Shared<T>>,
    /// As far as it was last seen.
    published: u64,
    answered: u64,
}

impl<T> Server<T> {
    /// Looks for requests; returns how many wait for an answer.
    #[inline]
    pub(crate) fn look(&mut self) -> usize {
        // SeqCst: acquires the requests, and comes behind the announcement at the server's bell.
        let published = self.shared.published.0.load(Ordering::SeqCst);
        if published & ENDED == 0 {
            self.published = published;
        }
        self.waiting()
    }

    /// How many requests wait, as far as [`Server::look`] saw.
    #[inline]
    #[must_use]
    pub(crate) fn waiting(&self) -> usize {
        (self.published - self.answered) as usize
    }

    /// The `index`-th of the requests that wait.
    ///
    /// # Panics
    /// If fewer wait.
    #[inline]
    #[must_use]
    pub(crate) fn get(&self, index: usize) -> &T {
        assert!(index < self.waiting(), "the request waits");
        // SAFETY: rule 1; borrowed as long as the server is, which is what changes or gives back a slot.
        unsafe { &*self.shared.slot(self.answered + index as u64) }
    }

    /// As [`Server::get`], to answer it.
    ///
    /// # Panics
    /// As [`Server::get`].
    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> &mut T {
        assert!(index < self.waiting(), "the request waits");
        // SAFETY: as above, borrowed alone.
        unsafe { &mut *self.shared.slot(self.answered + index as u64) }
    }

    /// Gives back the first `count` requests that wait, which are answered, and wakes the client.
    ///
    /// # Panics
    /// If fewer wait.
    #[inline]
    pub(crate) fn advance(&mut self, count: usize) {
        assert!(count <= self.waiting(), "an answered request was waiting");
        if count == 0 {
            return;
        }
        self.answered += count as u64;
        // SeqCst: releases the answers, and comes before the look at the client's bell.
        self.shared.answered.0.store(self.answered, Ordering::SeqCst);
        self.shared.bell.ring_if_asleep();
    }

    /// From here on nothing more is accepted; returns how many requests wait for good.
    pub(crate) fn end(&mut self) -> usize {
        // SeqCst: as `look`. What was added before is accepted, by rule 2.
        let published = self.shared.published.0.fetch_or(ENDED, Ordering::SeqCst);
        if published & ENDED == 0 {
            self.published = published;
        }
        self.waiting()
    }

    /// Returns true if the client is gone: what waits by a look from now on is the last.
    #[must_use]
    pub(crate) fn is_gone(&self) -> bool {
        // Acquire: pairs with the Release in the client's drop.
        self.shared.gone.load(Ordering::Acquire)
    }
}

impl<T> std::fmt::Debug for Server<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server({} <= {})", self.answered, self.published)
    }
}
