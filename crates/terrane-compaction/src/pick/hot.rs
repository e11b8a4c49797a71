//! Hot and cold extents: which extents of a level that is too large stay.
//!
//! Reads end in the first sorted run that has the key, so data that is read often belongs in the upper
//! levels. Extents that are not much hotter than their level's average are treated alike and move in cursor
//! order, because that order makes each move overlap the fewest bytes. The hotter an extent is, the later it
//! moves; the classes are wide, so that sampling noise does not disturb the order.

use super::Picker;

/// An extent with fewer samples is not hot, whatever the others have.
const SAMPLES_MIN: u32 = 8;
/// How many times hotter than its level's average a hot extent is.
const HOT_FACTOR: u32 = 2;
/// Factor from each class to the next.
const CLASS_FACTOR: u32 = 4;

/// How hot the extents of a level are. Empty: unknown, all are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heats {
    samples: Vec<u32>,
    /// Samples above which an extent is hot.
    edge: u32,
}

impl Heats {
    /// The heat of each extent of a level, in order: decayed samples of reads.
    #[must_use]
    pub fn new(samples: Vec<u32>) -> Self {
        let sum: u64 = samples.iter().map(|count| u64::from(*count)).sum();
        let mean = sum.checked_div(samples.len() as u64).unwrap_or(0);
        let mean = u32::try_from(mean).unwrap_or(u32::MAX);
        debug_assert!(samples.is_empty() || u64::from(mean) <= sum, "the mean of {} samples", samples.len());
        Heats { edge: mean.saturating_mul(HOT_FACTOR).max(SAMPLES_MIN), samples }
    }

    /// 0 for an average extent; greater for hotter ones.
    #[must_use]
    pub fn class(&self, index: usize) -> u32 {
        let Some(&count) = self.samples.get(index) else { return 0 };
        debug_assert!(self.edge > 0, "edges grow, so the first one is above 0");
        let edges = std::iter::successors(Some(self.edge), |edge| edge.checked_mul(CLASS_FACTOR));
        edges.take_while(|edge| count > *edge).count() as u32
    }

    /// Returns true if all extents are alike.
    fn is_even(&self) -> bool {
        self.samples.iter().all(|count| *count <= self.edge)
    }
}

impl Picker<'_> {
    /// The indexes of `window`, the coldest class first, in their order within a class.
    pub(super) fn coldest_first(&self, number: u8, mut window: Vec<usize>) -> Vec<usize> {
        if let Some(heats) = self.heats(number) {
            window.sort_by_key(|index| heats.class(*index));
            let _ = terrane_base::planted!(MoveTheHottest).then(|| window.reverse());
        }
        window
    }

    /// Bytes of a level from an extent on, up to the first hotter one; no limit without a hotter one.
    pub(super) fn bytes_as_cold(&self, number: u8, start: usize) -> u64 {
        let level = self.shape.level(number);
        let Some(heats) = self.heats(number) else { return u64::MAX };
        debug_assert!(start < level.len(), "extent {start} of level {number}");
        let own = heats.class(start);
        let alike = (start..level.len()).take_while(|index| heats.class(*index) <= own);
        alike.map(|index| u64::from(level.meta(index).bytes)).sum()
    }

    /// The heats of a level, unless all are alike.
    fn heats(&self, number: u8) -> Option<&Heats> {
        let heats = usize::from(number).checked_sub(1).and_then(|index| self.shape.heats.get(index));
        heats.filter(|heats| !heats.is_even())
    }
}
