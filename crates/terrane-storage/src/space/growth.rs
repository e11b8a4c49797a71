//! How much a data file grows.

use std::ops::RangeInclusive;

use super::RESERVE_SLOTS_MIN;
use crate::slots::FILE_SLOTS;

/// Least and most slots by which a data file grows at once; between them, a quarter of its length.
///
/// Not more than the reserve, or the new slots would be freed at once.
const GROW_SLOTS: RangeInclusive<u32> = 4..=RESERVE_SLOTS_MIN;

/// How to make room for a run that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// Number of the data file; a new one if `from` is 0.
    pub file: u32,
    /// Its current length in slots.
    pub from: u32,
    /// The smallest length with which the run fits.
    pub at_least: u32,
    /// The length to try first.
    pub to: u32,
}

impl Growth {
    pub(super) fn new(file: u32, from: u32, needed: u32) -> Self {
        let step = (from / 4).clamp(*GROW_SLOTS.start(), *GROW_SLOTS.end()).max(needed);
        let to = (from + step).min(FILE_SLOTS);
        assert!(from + needed <= to, "file {file} of {from} slots cannot grow by {needed}");
        Growth { file, from, at_least: from + needed, to }
    }
}
