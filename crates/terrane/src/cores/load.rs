//! Which partitions are hot: a sample of requests, counted by partition, halved from time to time.
//!
//! Everything here is a hint: counters are relaxed, and a lost update shifts a decision by a sample.

use terrane_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Of `2^SAMPLE_BITS` requests of a session one is counted.
const SAMPLE_BITS: u32 = 4;
/// Samples between two reviews.
const REVIEW: u64 = 256;

/// See the head of the file.
pub(super) struct Load {
    counts: Box<[AtomicU64]>,
    spread: Box<[AtomicBool]>,
    samples: AtomicU64,
    cores: u64,
}

impl Load {
    /// With one core nothing is ever spread.
    pub(super) fn new(partitions: usize, cores: usize) -> Self {
        Load {
            counts: (0..partitions).map(|_| AtomicU64::new(0)).collect(),
            spread: (0..partitions).map(|_| AtomicBool::new(false)).collect(),
            samples: AtomicU64::new(0),
            cores: cores as u64,
        }
    }

    #[inline]
    pub(super) fn is_spread(&self, partition: usize) -> bool {
        self.spread[partition].load(Ordering::Relaxed)
    }

    /// A session asked for `partition`; `asked` counts its requests.
    #[inline]
    pub(super) fn note(&self, partition: usize, asked: u64) {
        // Multiples of the golden ratio: no period that a load has keeps in step with them, as every 16th
        // request would.
        let is_sampled = asked.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SAMPLE_BITS) == 0;
        if self.cores > 1 && is_sampled {
            self.count(partition);
        }
    }

    fn count(&self, partition: usize) {
        self.counts[partition].fetch_add(1, Ordering::Relaxed);
        if self.samples.fetch_add(1, Ordering::Relaxed) % REVIEW == REVIEW - 1 {
            self.review();
        }
    }

    /// Spreads partitions with a quarter more than a core's share of all requests; gathers those with less
    /// than an eighth more.
    #[cold]
    fn review(&self) {
        let counts: Vec<u64> = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let all: u64 = counts.iter().sum();
        for (partition, count) in counts.into_iter().enumerate() {
            let share = count * self.cores;
            if 4 * share > 5 * all {
                self.spread[partition].store(true, Ordering::Relaxed);
            } else if 8 * share < 9 * all {
                self.spread[partition].store(false, Ordering::Relaxed);
            }
            self.counts[partition].store(count / 2, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(load: &Load, partition: usize, samples: u64) {
        (0..samples).for_each(|_| load.count(partition));
    }

    #[test]
    fn a_sample_is_fair_to_loads_of_any_period() {
        for period in [2, 3, 4, 8, 16] {
            let load = Load::new(period, 2);
            // Fewer samples than a review takes, which halves the counts.
            (0..4000).for_each(|asked| load.note(asked as usize % period, asked));
            let counts: Vec<_> = load.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
            let expected = 250 / period as u64;
            assert!(counts.iter().all(|count| count.abs_diff(expected) < 8), "{counts:?}");
        }
    }

    #[test]
    fn a_partition_above_its_share_is_spread_until_it_is_below() {
        let load = Load::new(3, 2);
        ask(&load, 0, 80);
        ask(&load, 1, 88);
        ask(&load, 2, 88);
        assert!((0..3).all(|partition| !load.is_spread(partition)));
        ask(&load, 2, 256);
        assert_eq!([0, 1, 2].map(|partition| load.is_spread(partition)), [false, false, true]);
        ask(&load, 0, 512);
        assert_eq!([0, 1, 2].map(|partition| load.is_spread(partition)), [true, false, false]);
    }

    #[test]
    fn one_core_spreads_nothing() {
        let load = Load::new(2, 1);
        ask(&load, 0, 1000);
        assert!(!load.is_spread(0));
    }
}
