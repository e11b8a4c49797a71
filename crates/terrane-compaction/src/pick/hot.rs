//! Hot and cold: which extents of a level that is too large stay.
//!
//! Reads end in the first sorted run that has the key, so what is read often belongs into the upper levels. Extents
//! that are not much hotter than their level on average are all alike, and move in their turn as they would without
//! heat: that order makes each move meet the fewest bytes. The hotter an extent is, the later it moves; the classes are
//! wide, so that the noise of sampling does not disturb the order.

use super::Picker;

/// Samples below which an extent is not hot, whatever the others are.
const SAMPLES_MIN: u32 = 8;
/// How many times hotter than its level on average an extent must be.
const HOT_FACTOR: u32 = 2;
/// From each class to the next.
const CLASS_FACTOR: u32 = 4;

/// How hot the extents of a level are. Empty: nothing is known, all are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heats {
    samples: Vec<u32>,
    /// Samples above which an extent is hot.
    edge: u32,
}

impl Heats {
    /// The heat of each extent of a level, in order: sampled reads, the older the less of them.
    #[must_use]
    pub fn new(samples: Vec<u32>) -> Self {
        let sum: u64 = samples.iter().map(|count| u64::from(*count)).sum();
        let mean = sum.checked_div(samples.len() as u64).unwrap_or(0);
        let mean = u32::try_from(mean).unwrap_or(u32::MAX);
        Heats { edge: mean.saturating_mul(HOT_FACTOR).max(SAMPLES_MIN), samples }
    }

    /// 0 for an extent like the others; the hotter, the greater.
    #[must_use]
    pub fn class(&self, index: usize) -> u32 {
        let Some(&count) = self.samples.get(index) else { return 0 };
        let edges = std::iter::successors(Some(self.edge), |edge| edge.checked_mul(CLASS_FACTOR));
        edges.take_while(|edge| count > *edge).count() as u32
    }

    /// Whether all extents are alike.
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

    /// Bytes of a level from an extent on, up to the first that is hotter; no limit where none is.
    pub(super) fn bytes_as_cold(&self, number: u8, start: usize) -> u64 {
        let level = self.shape.level(number);
        let Some(heats) = self.heats(number) else { return u64::MAX };
        let own = heats.class(start);
        let alike = (start..level.len()).take_while(|index| heats.class(*index) <= own);
        alike.map(|index| u64::from(level.meta(index).bytes)).sum()
    }

    /// The heats of a level, unless its extents are all alike.
    fn heats(&self, number: u8) -> Option<&Heats> {
        let heats = usize::from(number).checked_sub(1).and_then(|index| self.shape.heats.get(index));
        heats.filter(|heats| !heats.is_even())
    }
}
