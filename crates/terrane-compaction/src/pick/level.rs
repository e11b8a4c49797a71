//! Which extents of a level that is larger than its target move down.
//!
//! 1. The first after the level's cursor that no running job holds. In turn, and not the cheapest first: the
//!    extents that waited longest are densest relative to the level below, so each byte that moves overlaps
//!    the fewest. The design page has the measurements. Extents that are read much more than others wait
//!    (`hot.rs`).
//! 2. Its right neighbours join while the level has more to move and the job stays within its size: they
//!    share the border extents below. If the first can be re-linked, only others that can be re-linked join,
//!    so that the job writes nothing.

use std::ops::Range;

use terrane_format::manifest::Place;

use super::build::{JobDraft, Slice};
use super::{Picker, WINDOW};
use crate::job::{JobKind, JobSpec};
use crate::range::Hull;
use crate::shape::bytes_of;

impl<'a> Picker<'a> {
    /// Moves extents of a level that is too large into the next one.
    pub(super) fn level_job(&self, number: u8) -> Option<JobSpec> {
        let start = self.next_free(number)?;
        let wanted = self.excess(number).min(self.bytes_as_cold(number, start));
        let range = self.grow_down(number, start..start + 1, wanted);
        debug_assert!(range.contains(&start), "the job would not have the extent that is free");
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
        debug_assert!(!range.is_empty(), "no extent of level {number} moves down");
        let slices = self.with_below(number, range).into();
        self.build(JobDraft { kind, slices, target: number + 1, drops_deletes, rewrites: false })
    }

    /// Index of the first free extent after the cursor, wrapping around at the end of the level; of the
    /// coldest one, if heat is known.
    pub(super) fn next_free(&self, number: u8) -> Option<usize> {
        let len = self.shape.level(number).len();
        let first = self.cursors.start(self.shape, number);
        debug_assert!(len == 0 || first < len, "the cursor of level {number} stands at {first} of {len}");
        let window = (0..len.min(WINDOW)).map(|offset| (first + offset) % len).collect();
        let mut window = self.coldest_first(number, window).into_iter();
        window.find(|index| self.can_move(number, *index..index + 1))
    }

    /// Extends `range` to the right until it moves `wanted` bytes or the job is full.
    pub(super) fn grow_down(&self, number: u8, mut range: Range<usize>, wanted: u64) -> Range<usize> {
        let level = self.shape.level(number);
        let is_relink = self.can_relink(number, range.clone());
        let mut moved = bytes_of(level, range.clone());
        while moved < wanted && range.end < level.len() {
            let wider = range.start..range.end + 1;
            moved += u64::from(level.meta(range.end).bytes);
            let fits = if is_relink {
                wider.len() <= self.limits.job_relinks_max && self.can_relink(number, wider.clone())
            } else {
                let met = bytes_of_slice(&self.with_below(number, wider.clone())[1]);
                moved + met <= self.limits.job_bytes_max
            };
            if !fits || !self.can_move(number, wider.clone()) {
                break;
            }
            range = wider;
        }
        debug_assert!(!range.is_empty() && range.end <= level.len(), "extents {range:?} of level {number}");
        range
    }

    /// Returns true if extents overlap nothing below and the last of them has the encoding that it would get
    /// there.
    fn can_relink(&self, number: u8, range: Range<usize>) -> bool {
        let [upper, lower] = self.with_below(number, range);
        lower.range.is_empty() && self.is_as_written(&upper, number + 1)
    }

    /// Extents of a level and those that they overlap in the next.
    pub(super) fn with_below(&self, number: u8, range: Range<usize>) -> [Slice<'a>; 2] {
        let upper = self.slice(Place::Level(number), range);
        let mut hull = Hull::default();
        upper.add_to(&mut hull);
        debug_assert!(hull.bounds().is_some(), "extents of level {number} move");
        let lower = self.slice_over(Place::Level(number + 1), hull);
        [upper, lower]
    }

    pub(super) fn can_move(&self, number: u8, range: Range<usize>) -> bool {
        debug_assert!(range.end <= self.shape.level(number).len(), "extents {range:?} of level {number}");
        let slices = self.with_below(number, range);
        let mut hull = Hull::default();
        slices.iter().for_each(|slice| slice.add_to(&mut hull));
        hull.to_range().is_some_and(|range| self.is_free(&slices, number + 1, &range))
    }
}

pub(super) fn bytes_of_slice(slice: &Slice<'_>) -> u64 {
    bytes_of(slice.level, slice.range.clone())
}
