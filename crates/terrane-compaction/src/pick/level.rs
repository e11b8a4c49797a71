//! A level that is beyond its target: which of its extents move down.
//!
//! 1. Of [`WINDOW`] extents behind the level's cursor, take the one that meets the fewest bytes below for each
//!    byte that it moves; the first of equals. One that meets nothing moves as it is.
//! 2. Let its right neighbours join while the level has more to give and the job stays within its size: they
//!    share the extents below at their border. Where the first meets nothing, only others that meet nothing
//!    join, so that the job is a pure re-link.

use std::ops::Range;

use terrane_format::manifest::Place;

use super::build::{Draft, Slice};
use super::{Picker, WINDOW};
use crate::job::{JobKind, JobSpec};
use crate::range::Hull;
use crate::shape::bytes_of;

impl<'a> Picker<'a> {
    /// Moves extents of a level that is too large into the next one.
    pub(super) fn level_job(&self, number: u8) -> Option<JobSpec> {
        let start = self.cheapest(number)?;
        let range = self.grow_down(number, start..start + 1, self.excess(number));
        self.move_down(JobKind::Level, number, range, false)
    }

    /// The job that moves these extents of a level one level down.
    pub(super) fn move_down(
        &self,
        kind: JobKind,
        number: u8,
        range: Range<usize>,
        drops_deletes: bool,
    ) -> Option<JobSpec> {
        let slices = self.with_below(number, range).into();
        self.build(Draft { kind, slices, target: number + 1, drops_deletes, rewrites: false })
    }

    /// Index of the free extent near the cursor that meets the least below.
    fn cheapest(&self, number: u8) -> Option<usize> {
        let level = self.shape.level(number);
        let first = self.cursors.start(self.shape, number);
        let window = (0..level.len().min(WINDOW)).map(|offset| (first + offset) % level.len());
        let free = window.filter(|index| self.can_move(number, *index..index + 1));
        // Fractions are compared as they are; `min_by` keeps the first of equals.
        let costs = free.map(|index| {
            let met = bytes_of_slice(&self.with_below(number, index..index + 1)[1]);
            (index, met, u64::from(level.meta(index).bytes).max(1))
        });
        let cheapest = costs.min_by(|(_, met, bytes), (_, other_met, other_bytes)| {
            (u128::from(*met) * u128::from(*other_bytes)).cmp(&(u128::from(*other_met) * u128::from(*bytes)))
        });
        cheapest.map(|(index, ..)| index)
    }

    /// Extends `range` to the right until it moves `wanted` bytes or the job is full.
    pub(super) fn grow_down(&self, number: u8, mut range: Range<usize>, wanted: u64) -> Range<usize> {
        let level = self.shape.level(number);
        let mut moved = bytes_of(level, range.clone());
        let mut met = bytes_of_slice(&self.with_below(number, range.clone())[1]);
        let is_relink = met == 0;
        while moved < wanted && range.end < level.len() {
            let wider = range.start..range.end + 1;
            let wider_moved = moved + u64::from(level.meta(range.end).bytes);
            let below = &self.with_below(number, wider.clone())[1];
            let wider_met = if is_relink { below.range.len() as u64 } else { bytes_of_slice(below) };
            let fits = if is_relink {
                wider_met == 0 && wider.len() <= self.limits.job_relinks_max
            } else {
                wider_moved + wider_met <= self.limits.job_bytes_max
            };
            if !fits || !self.can_move(number, wider.clone()) {
                break;
            }
            (range, moved, met) = (wider, wider_moved, wider_met);
        }
        debug_assert!(is_relink == (met == 0));
        range
    }

    /// Extents of a level and what they meet in the next.
    pub(super) fn with_below(&self, number: u8, range: Range<usize>) -> [Slice<'a>; 2] {
        let upper = self.slice(Place::Level(number), range);
        let mut hull = Hull::default();
        upper.add_to(&mut hull);
        let lower = self.slice_over(Place::Level(number + 1), hull);
        [upper, lower]
    }

    pub(super) fn can_move(&self, number: u8, range: Range<usize>) -> bool {
        let slices = self.with_below(number, range);
        let mut hull = Hull::default();
        slices.iter().for_each(|slice| slice.add_to(&mut hull));
        hull.to_range().is_some_and(|range| self.is_free(&slices, number + 1, &range))
    }
}

pub(super) fn bytes_of_slice(slice: &Slice<'_>) -> u64 {
    bytes_of(slice.level, slice.range.clone())
}
