//! The keys of a scenario, shared by the threads of a run: which numbers exist, which is inserted next.
//!
//! As YCSB's acknowledged counter: a number may be read once it and all lower ones are written, so that no
//! reader meets a key whose insert is still under way. Inserts may be acknowledged in any order: one bit
//! each, in chunks that are made when first touched.
//!
//! * `next`: advanced by threads that claim numbers. `acknowledged`: advanced by threads that acknowledge,
//!   only forward, only over set bits.
//! * A bit is set before `acknowledged` is read, and `acknowledged` is moved before the bit at its new place
//!   is read, all sequentially consistent. So of two threads, one that sets the bit at `n` and one that moves
//!   to `n`, at least one sees both, and goes on: no acknowledgement is stranded.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

/// Numbers of one chunk of bits.
const CHUNK: u64 = 1 << 20;
/// Chunks at most: room for 2^36 inserts.
const CHUNKS: usize = 1 << 16;

type Chunk = Box<[AtomicU64]>;

/// The key numbers of a scenario.
#[derive(Debug)]
pub struct KeySpace {
    /// Numbers below are written and may be read.
    acknowledged: CachePadded<AtomicU64>,
    /// The number to insert next.
    next: CachePadded<AtomicU64>,
    /// Numbers below existed from the start and have no bit.
    base: u64,
    chunks: Box<[OnceLock<Chunk>]>,
}

impl KeySpace {
    /// A space in which the numbers below `existing` are written.
    #[must_use]
    pub fn new(existing: u64) -> Self {
        KeySpace {
            acknowledged: CachePadded::new(AtomicU64::new(existing)),
            next: CachePadded::new(AtomicU64::new(existing)),
            base: existing,
            chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect(),
        }
    }

    /// How many keys may be read: the numbers below are all written.
    #[inline]
    #[must_use]
    pub fn count(&self) -> u64 {
        self.acknowledged.load(Ordering::Acquire)
    }

    /// How many numbers were given out to be inserted, including those that existed from the start.
    #[must_use]
    pub fn claimed(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Takes the next number to insert; no other thread gets it. The caller must [`KeySpace::acknowledge`]
    /// it.
    #[inline]
    pub fn claim_insert(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// As [`KeySpace::claim_insert`] while numbers below `bound` are left.
    #[inline]
    pub fn claim_below(&self, bound: u64) -> Option<u64> {
        // A number past the bound must not be taken: it would not be written, and the count would stop before
        // it.
        self.next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| (next < bound).then_some(next + 1))
            .ok()
    }

    /// Says that a number is written. Numbers may come in any order; a number that already counts changes
    /// nothing.
    ///
    /// # Panics
    /// More than 2^36 numbers above those that existed at the start.
    pub fn acknowledge(&self, number: u64) {
        let Some(place) = number.checked_sub(self.base) else { return };
        let (word, bit) = self.word(place);
        word.fetch_or(1 << bit, Ordering::SeqCst);
        self.advance();
    }

    /// Moves `acknowledged` over every set bit that follows it.
    fn advance(&self) {
        loop {
            let count = self.acknowledged.load(Ordering::SeqCst);
            let (word, bit) = self.word(count - self.base);
            let run = u64::from((word.load(Ordering::SeqCst) >> bit).trailing_ones());
            if run == 0 {
                return;
            }
            // On failure another thread moved it; either way what follows is looked at again.
            let _ =
                self.acknowledged.compare_exchange(count, count + run, Ordering::SeqCst, Ordering::Relaxed);
        }
    }

    /// The word of a place above the base, and the bit in it.
    fn word(&self, place: u64) -> (&AtomicU64, u32) {
        let chunk = usize::try_from(place / CHUNK).ok().and_then(|chunk| self.chunks.get(chunk));
        let chunk = chunk.expect("a run inserts fewer than 2^36 keys");
        let words = chunk.get_or_init(|| (0..CHUNK / 64).map(|_| AtomicU64::new(0)).collect());
        (&words[(place % CHUNK / 64) as usize], (place % 64) as u32)
    }
}
