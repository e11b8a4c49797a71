//! A gate for writers (similar to RCU): while no watcher exists, a pass costs one counter of the passer's
//! own; a new watcher waits until every unwatched pass has ended.
//!
//! It serves transactions: while one lives, every write must lock and note its keys; while none lives, a
//! write must not pay for that. A write that read "no watcher" may still be running when the first
//! transaction begins: that one waits for it (the *grace period*), so every write that it does not wait for
//! sees the transaction.
//!
//! # Which thread may touch what
//!
//! 1. A counter of `stripes` belongs to all passers of its stripe: raised before they read `is_on`, lowered
//!    when they have seen it set or when they are done.
//! 2. `is_on` is written by the holder of `life` only. From false to true: the holder then waits until each
//!    counter was 0 once, before it releases `life`. From true to false: only while `live` is 0.
//! 3. `live` is read and written under `life`.
//!
//! # Orderings
//!
//! The passer raises its counter and then reads `is_on`; the watcher sets `is_on` and then reads the
//! counters. All four are `SeqCst`, so in their single order either the passer sees `is_on` set, or the
//! watcher sees the counter raised. The decrement (`Release`) pairs with the watcher's read of the counter:
//! the passer's work happened before the watch has begun.
//!
//! A watched pass is slower, and a grace period costs time, so a watch without watchers stays on for
//! [`LINGER`] more passes: transactions that follow each other pay for one grace period only.

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, spin, thread_number};

/// Counters over which passers are spread; a power of two.
const STRIPES: usize = if cfg!(feature = "shuttle") { 2 } else { 32 };

/// Number of passes for which a watch stays on after the last watcher has left.
pub const LINGER: u64 = if cfg!(feature = "shuttle") { 1 } else { 256 };

/// A counter in a cache line pair of its own, as processors fetch two at a time.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe(AtomicU64);

/// State of the watch: is there a watcher, and which passes are unwatched.
#[derive(Debug)]
pub struct Watch {
    is_on: AtomicBool,
    stripes: [Stripe; STRIPES],
    /// How many watch.
    life: Mutex<u64>,
    /// Watched passes since the last watcher left.
    idle: AtomicU64,
}

/// An unwatched pass. A new watcher waits until it is dropped.
#[derive(Debug)]
pub struct Unseen<'w>(&'w AtomicU64);

impl Drop for Unseen<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

impl Default for Watch {
    fn default() -> Self {
        Watch {
            is_on: AtomicBool::new(false),
            stripes: std::array::from_fn(|_| Stripe::default()),
            life: Mutex::new(0),
            idle: AtomicU64::new(0),
        }
    }
}

impl Watch {
    /// A watch without watchers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Passes. `Some` is an unwatched pass until it is dropped; at `None` a watcher exists, or did a moment
    /// ago: the caller does its watched work and then calls [`Watch::passed`].
    #[inline]
    pub fn pass(&self) -> Option<Unseen<'_>> {
        let stripe = &self.stripes[own_stripe()].0;
        stripe.fetch_add(1, Ordering::SeqCst);
        if !self.is_on.load(Ordering::SeqCst) {
            return Some(Unseen(stripe));
        }
        stripe.fetch_sub(1, Ordering::Release);
        None
    }

    /// Ends a pass that was watched.
    pub fn passed(&self) {
        if self.idle.fetch_add(1, Ordering::Relaxed) + 1 < LINGER {
            return;
        }
        // The holder of the lock begins or ends a watch; a later pass will do.
        let Some(live) = self.life.try_lock() else { return };
        if *live == 0 {
            self.is_on.store(false, Ordering::SeqCst);
        }
        self.idle.store(0, Ordering::Relaxed);
    }

    /// Begins to watch. On return every pass that went unseen has ended. The caller is not within one itself.
    pub fn begin(&self) {
        let mut live = self.life.lock();
        // Relaxed: only the holder of the lock writes it.
        if !self.is_on.load(Ordering::Relaxed) {
            self.is_on.store(true, Ordering::SeqCst);
            if !crate::planted!(SkipGracePeriod) {
                self.stripes.iter().for_each(|stripe| wait_for_zero(&stripe.0));
            }
        }
        *live += 1;
    }

    /// Ends what [`Watch::begin`] began.
    pub fn end(&self) {
        let mut live = self.life.lock();
        *live = live.checked_sub(1).expect("every end has its beginning");
        self.idle.store(0, Ordering::Relaxed);
    }

    /// How many watch now.
    #[must_use]
    pub fn live(&self) -> u64 {
        *self.life.lock()
    }
}

/// Waits until the stripe has no unwatched pass. New passers see the watch and leave at once, so this ends.
fn wait_for_zero(stripe: &AtomicU64) {
    let mut turn = 0;
    while stripe.load(Ordering::SeqCst) != 0 {
        spin(turn);
        turn = turn.saturating_add(1);
    }
}

/// The stripe of the calling thread.
#[inline]
fn own_stripe() -> usize {
    thread_number() % STRIPES
}
