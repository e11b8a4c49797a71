//! A filter over the keys of a memtable, so that a read of an absent key costs a few words instead of a
//! search of the tree.
//!
//! ```text
//! layers   32 words | 256 words | .. each 8 times the one before, made when the one before is full
//! word     64 bits for about 4 keys, 4 bits of each: one load answers for a layer
//! ```
//!
//! Keys go into the newest layer; a lookup checks all layers. An overfull layer is slower, never wrong.
//!
//! # Memory ordering
//! Bits are set, relaxed, before the version goes into the tree. A reader that may see the version by its
//! number learned that number through a release that came after both, so it finds the bits and the layer that
//! holds them.

use std::sync::OnceLock;

use terrane_base::prefetch::prefetch;
use terrane_base::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::arena::LaneGuard;

const LAYERS: usize = 8;
/// Words of the first layer. Few: a database may have thousands of tables that are hardly written.
const WORDS_FIRST: usize = 32;
/// Each layer is this many times as large as the one before.
const GROWTH: usize = 8;
/// Keys per word, on average, when a layer is full.
const KEYS_PER_WORD: usize = 4;
/// A lane checks whether the newest layer is full each time it has counted this many entries.
const LOOK_EVERY: u64 = 32;

#[derive(Debug)]
pub(crate) struct KeyFilter {
    layers: [OnceLock<Box<[AtomicU64]>>; LAYERS],
    /// Number of layers.
    count: AtomicUsize,
}

impl KeyFilter {
    pub(crate) fn new() -> Self {
        KeyFilter { layers: std::array::from_fn(|_| OnceLock::new()), count: AtomicUsize::new(0) }
    }

    /// Adds a key by its hash. Must come before the key's version can be seen.
    #[inline]
    pub(crate) fn insert(&self, hash: u64, lane: &LaneGuard<'_>) {
        let count = self.count.load(Ordering::Acquire);
        if count == 0 || lane.entry_count().is_multiple_of(LOOK_EVERY) {
            self.grow_if_full(lane);
        }
        let newest = self.count.load(Ordering::Acquire) - 1;
        let word = word_of(self.layer(newest), hash);
        let bits = bits_of(hash);
        if word.load(Ordering::Relaxed) & bits != bits && !terrane_base::planted!(MemtableFilterForgets) {
            word.fetch_or(bits, Ordering::Relaxed);
        }
        debug_assert!(self.may_contain(hash), "reads would miss a key that the tree holds");
    }

    /// Returns true if a key with this hash may be in the memtable; `false` is certain.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        let bits = bits_of(hash);
        let mut at = self.count.load(Ordering::Acquire);
        debug_assert!(at <= LAYERS, "{at} layers of {LAYERS}");
        // The newest layer first: it is the largest, and most keys of a memtable are in it.
        while at > 0 {
            at -= 1;
            if word_of(self.layer(at), hash).load(Ordering::Relaxed) & bits == bits {
                return true;
            }
        }
        false
    }

    /// Prefetches the lines that [`KeyFilter::may_contain`] will read.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        let count = self.count.load(Ordering::Acquire);
        debug_assert!(count <= LAYERS, "{count} layers of {LAYERS}");
        for at in 0..count {
            prefetch(word_of(self.layer(at), hash));
        }
    }

    /// Bytes of all layers.
    pub(crate) fn bytes(&self) -> u64 {
        let count = self.count.load(Ordering::Acquire);
        (0..count).map(|at| size_of_val(self.layer(at)) as u64).sum()
    }

    #[cold]
    fn grow_if_full(&self, lane: &LaneGuard<'_>) {
        let count = self.count.load(Ordering::Acquire);
        debug_assert!(count <= LAYERS, "{count} layers, and {LAYERS} are possible");
        let is_full = count == 0 || lane.arena_entry_count() as usize >= words(count - 1) * KEYS_PER_WORD;
        if is_full && count < LAYERS {
            let mut made = 0;
            self.layers[count].get_or_init(|| {
                let layer: Box<[AtomicU64]> = (0..words(count)).map(|_| AtomicU64::new(0)).collect();
                made = size_of_val(&*layer) as u64;
                layer
            });
            if made > 0 {
                lane.account().take(made);
            }
            // Release: pairs with the Acquire loads; the layer is there.
            self.count.fetch_max(count + 1, Ordering::AcqRel);
        }
    }

    #[inline]
    fn layer(&self, at: usize) -> &[AtomicU64] {
        self.layers[at].get().expect("layers below the count are made")
    }
}

const fn words(layer: usize) -> usize {
    WORDS_FIRST * GROWTH.pow(layer as u32)
}

#[inline]
fn word_of(layer: &[AtomicU64], hash: u64) -> &AtomicU64 {
    &layer[(((hash >> 32) * layer.len() as u64) >> 32) as usize]
}

/// Four bits, chosen by the low half of the hash; the high half chooses the word.
#[inline]
fn bits_of(hash: u64) -> u64 {
    1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63) | 1 << (hash >> 18 & 63)
}
