//! Which levels' filters are worth asking.
//!
//! A filter is useful where it says no. The deepest level of a tree that is asked for keys that exist says
//! yes nearly always: there a filter is one more cache miss, and memory that blocks could have. So some keys,
//! chosen by their hash, ask every filter and count the answers; the others ask the filters of those levels
//! where enough of the counted answers were no. The counts decay, so a load that changes is followed. Answers
//! of reads never depend on it.
//!
//! Sampling goes by the key, not by time or thread: the same reads ask the same filters, as a simulated world
//! needs.

use terrane_base::sync::atomic::{AtomicU32, Ordering};

use crossbeam_utils::CachePadded;

/// Levels whose filters are judged; deeper ones are always asked.
const LEVELS: usize = 8;
/// One key in this many is in the sample. A power of two.
const SAMPLE: u64 = 64;
/// Answers counted before a level is judged, and after which the counts are halved.
const ANSWERS_MIN: u32 = 256;
const ANSWERS_MAX: u32 = 1024;
/// A level's filters are passed by while less than one answer in this many was no. A no saves a search in an
/// index block and a data block, worth about 15 filters in cache and a thousand beyond it.
const REFUSAL_SHARE: u32 = 128;

/// Of one tree. Counts are exact enough: two threads at once may lose one.
#[derive(Debug, Default)]
pub(crate) struct FilterUse {
    counts: CachePadded<[Counts; LEVELS]>,
    /// Bit n: the filters of level n + 1 are passed by. Read by every read, written when a judgement changes.
    passed_by: CachePadded<AtomicU32>,
}

#[derive(Debug, Default)]
struct Counts {
    asked: AtomicU32,
    refused: AtomicU32,
}

/// Which filters one read asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking {
    /// Bit n: those of level n + 1. The last bit: those of overflow runs and of deeper levels.
    asked: u32,
    /// True if the answers are counted.
    pub(crate) counts: bool,
}

impl Asking {
    /// All, and nothing is counted.
    pub(crate) const ALL: Asking = Asking { asked: u32::MAX, counts: false };
    /// None.
    pub(crate) const NONE: Asking = Asking { asked: 0, counts: false };

    /// Returns true if the filters of a level are asked; the first level is 0, `None` is an overflow run.
    #[inline]
    pub(crate) fn asks(self, level: Option<usize>) -> bool {
        let bit = level.filter(|level| *level < LEVELS).unwrap_or(31);
        self.asked >> bit & 1 == 1
    }
}

impl FilterUse {
    /// How a read of the key with this hash uses filters.
    #[inline]
    pub(crate) fn asking(&self, hash: u64) -> Asking {
        // Multiplied, because the filters themselves use the bits of the hash.
        let counts = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & (SAMPLE - 1) == 0;
        let asked = if counts { u32::MAX } else { !self.passed_by.load(Ordering::Relaxed) };
        Asking { asked, counts }
    }

    /// Counts the answer of a filter of a level; the first level is 0.
    pub(crate) fn count(&self, level: usize, is_refused: bool) {
        let Some(counts) = self.counts.get(level) else { return };
        let mut asked = counts.asked.load(Ordering::Relaxed) + 1;
        let mut refused = counts.refused.load(Ordering::Relaxed) + u32::from(is_refused);
        if asked >= ANSWERS_MAX {
            (asked, refused) = (asked / 2, refused / 2);
        }
        debug_assert!(asked < ANSWERS_MAX, "older answers count half: {asked}");
        counts.asked.store(asked, Ordering::Relaxed);
        counts.refused.store(refused, Ordering::Relaxed);
        let bit = 1 << level;
        let passes_by = asked >= ANSWERS_MIN && refused * REFUSAL_SHARE < asked;
        if (self.passed_by.load(Ordering::Relaxed) & bit != 0) != passes_by {
            match passes_by {
                true => self.passed_by.fetch_or(bit, Ordering::Relaxed),
                false => self.passed_by.fetch_and(!bit, Ordering::Relaxed),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(filters: &FilterUse, level: usize) -> bool {
        let unsampled = (0..).find(|hash| !filters.asking(*hash).counts).unwrap_or(0);
        filters.asking(unsampled).asks(Some(level))
    }

    #[test]
    fn a_filter_that_never_refuses_is_passed_by_until_it_does() {
        let filters = FilterUse::default();
        assert!(
            asks(&filters, 0) && asks(&filters, 20) && Asking::ALL.asks(None) && !Asking::NONE.asks(None)
        );
        (0..ANSWERS_MIN).for_each(|_| filters.count(0, false));
        assert!(!asks(&filters, 0), "nothing was refused");
        assert!(asks(&filters, 1), "nothing is known of the next level");
        (0..ANSWERS_MAX / 32).for_each(|_| filters.count(0, true));
        assert!(asks(&filters, 0), "some are refused now");
        (0..20 * ANSWERS_MAX).for_each(|_| filters.count(0, false));
        assert!(!asks(&filters, 0), "old answers are forgotten");
    }

    #[test]
    fn the_sample_asks_whatever_is_known() {
        let filters = FilterUse::default();
        (0..ANSWERS_MIN).for_each(|_| filters.count(0, false));
        let sampled = (0..100_000).filter(|hash| filters.asking(*hash).counts);
        let sampled: Vec<u64> = sampled.collect();
        assert!(sampled.iter().all(|hash| filters.asking(*hash).asks(Some(0))));
        assert!((1000..2200).contains(&sampled.len()), "{} of 100,000", sampled.len());
    }
}
