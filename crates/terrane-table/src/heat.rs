//! How often an extent is read: a counter of samples that decays.
//!
//! Layout: one word, `moment << 32 | samples`. A moment is a number of half-lives since the database was
//! opened. No thread visits extents to decay them: each access halves the samples once for each moment that
//! has passed.
//!
//! Invariant: both halves of the word are read and written together. Two readers that add at the same time
//! may lose a sample: it is an estimate, and losing one is cheaper than a lock.

use terrane_base::sync::atomic::{AtomicU64, Ordering};

use crate::extent::Extent;
use crate::swip;

/// Decaying samples of reads.
#[derive(Debug, Default)]
pub struct Heat(AtomicU64);

impl Heat {
    /// Adds `samples` at `moment`.
    pub fn add(&self, samples: u32, moment: u32) {
        let now = self.at(moment).saturating_add(samples);
        debug_assert!(now >= samples, "samples that are added do not cool an extent");
        // Relaxed, here and below: the word is the only shared data.
        self.0.store(u64::from(moment) << 32 | u64::from(now), Ordering::Relaxed);
    }

    /// The decayed samples at `moment`.
    #[must_use]
    pub fn at(&self, moment: u32) -> u32 {
        let word = self.0.load(Ordering::Relaxed);
        let passed = moment.saturating_sub((word >> 32) as u32);
        (word as u32).checked_shr(passed).unwrap_or(0)
    }
}

impl Extent {
    /// Returns true if the extent may hold a version of a key, judged without reading from the store and
    /// without counting. `hash` is that of the key, or `None` to skip the filter.
    #[must_use]
    pub fn may_hold(&self, hash: Option<u64>) -> bool {
        let epoch = swip::enter();
        match (hash, self.filter.swip.load(&epoch)) {
            (Some(hash), Some(filter)) => filter.filter().may_contain(hash),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_halve_with_each_moment() {
        let heat = Heat::default();
        heat.add(8, 3);
        assert_eq!((heat.at(3), heat.at(4), heat.at(6), heat.at(7)), (8, 4, 1, 0));
        heat.add(2, 4);
        assert_eq!((heat.at(4), heat.at(5), heat.at(500)), (6, 3, 0));
        // A time that another thread read earlier.
        heat.add(1, 2);
        assert_eq!(heat.at(2), 7);
        heat.add(u32::MAX, 2);
        assert_eq!(heat.at(2), u32::MAX);
    }
}
