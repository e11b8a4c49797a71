//! How often an extent is read: samples that fade.
//!
//! Layout: one word, `moment << 32 | samples`. A moment is a number of half-lives since the database was opened. Nobody
//! walks over extents to let them cool: whoever adds or looks halves the samples once for each moment that passed.
//!
//! Invariant: the two halves of the word belong together, for they are read and written at once. Two readers that add
//! at the same time may lose a sample: it is an estimate, and a lost one is cheaper than a locked one.

use terrane_base::sync::atomic::{AtomicU64, Ordering};

use crate::extent::Extent;
use crate::swip;

/// Samples of reads, the older the less of them.
#[derive(Debug, Default)]
pub struct Heat(AtomicU64);

impl Heat {
    /// Adds `samples` at `moment`.
    pub fn add(&self, samples: u32, moment: u32) {
        let now = self.at(moment).saturating_add(samples);
        // Relaxed, here and below: the word is all there is to see.
        self.0.store(u64::from(moment) << 32 | u64::from(now), Ordering::Relaxed);
    }

    /// What is left of the samples at `moment`.
    #[must_use]
    pub fn at(&self, moment: u32) -> u32 {
        let word = self.0.load(Ordering::Relaxed);
        let passed = moment.saturating_sub((word >> 32) as u32);
        (word as u32).checked_shr(passed).unwrap_or(0)
    }
}

impl Extent {
    /// Whether a version of a key may be here, as far as is known without reading from the store or counting:
    /// `hash` is that of the key, or `None` not to ask the filter.
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
        // A clock that another thread read earlier.
        heat.add(1, 2);
        assert_eq!(heat.at(2), 7);
        heat.add(u32::MAX, 2);
        assert_eq!(heat.at(2), u32::MAX);
    }
}
