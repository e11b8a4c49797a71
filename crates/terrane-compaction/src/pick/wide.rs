//! Range deletes over much deeper data: they move down early, because that frees more than it writes.
//!
//! A merge skips entries that a range delete hides from every reader without reading them, whole extents at a
//! time. So a job is worth the bytes of the extents that lie wholly under the range deletes that it moves, in
//! its target and deeper, and it costs the other extents that it overlaps. If the former are more, waiting
//! for the level's turn costs space, and each scan across the range costs a lookup. Each such job moves range
//! deletes one level or run down, so these jobs end.

use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::Place;

use super::Picker;
use super::build::Slice;
use crate::job::{JobKind, JobSpec};
use crate::shape::{LevelView, overlapping};
use crate::versions::in_one_stripe;

/// Bytes that a job must free, relative to those that it may have to write.
const GAIN: u64 = 2;
/// Fewest extents wholly under range deletes that are worth a job of their own.
const HIDDEN_MIN: u64 = 4;
/// Extents of a level that are checked for range deletes: they represent those after them.
const LOOKED_MAX: usize = 256;
/// Extents with range deletes that are tried in a level or run.
const TRIED_MAX: usize = 64;

/// The gain of a job with the range deletes of an extent.
#[derive(Default)]
struct Gain {
    /// Bytes and number of extents that are skipped without reading.
    hidden_bytes: u64,
    hidden: u64,
    /// Bytes that it must merge.
    merged_bytes: u64,
}

impl<'a> Picker<'a> {
    /// The job that moves range deletes over much data down, the deepest first.
    pub(super) fn wide_job(&self) -> Option<JobSpec> {
        if !self.limits.early_range_deletes || !self.shape.may_be_wide {
            return None;
        }
        self.levels().find_map(|number| self.wide_in_level(number)).or_else(|| self.wide_in_runs())
    }

    /// Returns true if there are range deletes over much data, whatever running jobs hold.
    pub(super) fn has_wide(&self) -> bool {
        let in_level =
            |number: u8| ranged(self.shape.level(number)).any(|index| self.is_wide_in_level(number, index));
        let in_run =
            |lead: usize| ranged(self.shape.runs[lead].level).any(|index| self.is_wide_in_run(lead, index));
        self.levels().any(in_level) || (0..self.shape.runs.len()).any(in_run)
    }

    /// Levels from which extents can move down, the deepest first.
    fn levels(&self) -> impl Iterator<Item = u8> {
        (1..self.shape.deepest()).rev()
    }

    fn is_wide_in_level(&self, number: u8, index: usize) -> bool {
        self.is_wide(&self.with_below(number, index..index + 1), number + 1)
    }

    fn is_wide_in_run(&self, lead: usize, index: usize) -> bool {
        self.is_wide(&self.sinking(lead, index..index + 1), 1)
    }

    fn wide_in_level(&self, number: u8) -> Option<JobSpec> {
        let is_wide = |index: usize| self.is_wide_in_level(number, index);
        let level = self.shape.level(number);
        let index =
            ranged(level).find(|index| is_wide(*index) && self.can_move(number, *index..index + 1))?;
        let others = (index + 1..level.len()).take(TRIED_MAX).take_while(|next| is_wide(*next));
        let end = others.last().unwrap_or(index);
        debug_assert!(index <= end && end < level.len(), "extents {index} to {end} of level {number}");
        let wanted = (index..=end).map(|index| u64::from(level.meta(index).bytes)).sum();
        let range = self.grow_down(number, index..index + 1, wanted);
        self.move_down(JobKind::Deletes, number, range, true)
    }

    fn wide_in_runs(&self) -> Option<JobSpec> {
        (0..self.shape.runs.len()).find_map(|lead| {
            let run = self.shape.runs[lead].level;
            let is_wide = |index: usize| self.is_wide_in_run(lead, index);
            let index =
                ranged(run).find(|index| is_wide(*index) && self.can_sink(lead, *index..index + 1))?;
            let others = (index + 1..run.len()).take(TRIED_MAX).take_while(|next| is_wide(*next));
            let end = others.last().unwrap_or(index);
            debug_assert!(index <= end, "extents join behind the first");
            self.sink(JobKind::Runs, lead, index..end + 1)
        })
    }

    /// Returns true if a job of these slices, the first of which is one extent, into level `target` frees
    /// much more than it writes.
    fn is_wide(&self, slices: &[Slice<'a>], target: u8) -> bool {
        debug_assert!(slices[0].range.len() == 1, "the first slice is one extent, not {:?}", slices[0].range);
        let upper = slices[0].level.meta(slices[0].range.start);
        let Some(section) = &upper.range_deletes else { return false };
        let mut gain = Gain { merged_bytes: upper.bytes.into(), ..Gain::default() };
        for slice in &slices[1..] {
            self.look(upper, slice, true, &mut gain);
        }
        for number in target + 1..=self.shape.deepest() {
            let level = self.shape.level(number);
            let range = overlapping(level, &section.start, &section.last_key(&upper.collation));
            self.look(upper, &self.slice(Place::Level(number), range), false, &mut gain);
        }
        // Many fragments over few extents are narrow: the keys between them are not hidden. One fragment for
        // each extent is what a merge makes of a single range delete, because nothing has to be hidden
        // between the extents below.
        gain.hidden >= HIDDEN_MIN.max(u64::from(section.fragments) / 2)
            && gain.hidden_bytes >= gain.merged_bytes.saturating_mul(GAIN)
    }

    /// Adds the gain of an extent with range deletes over a slice; `is_merged`: the job merges what it does
    /// not hide.
    fn look(&self, upper: &ExtentMeta, slice: &Slice<'a>, is_merged: bool, gain: &mut Gain) {
        debug_assert!(slice.range.end <= slice.level.len(), "a slice is a part of its level");
        for index in slice.range.clone().take(LOOKED_MAX) {
            let lower = slice.level.meta(index);
            if self.hides(upper, lower) {
                gain.hidden += 1;
                gain.hidden_bytes += u64::from(lower.bytes);
            } else if is_merged {
                gain.merged_bytes += u64::from(lower.bytes);
            }
        }
    }

    /// Returns true if the range deletes of `upper` cover all of `lower`, which is older, for every reader.
    fn hides(&self, upper: &ExtentMeta, lower: &ExtentMeta) -> bool {
        let collation = &lower.collation;
        let reach_over = |start: &[u8], end: &[u8]| {
            collation.le(start, &lower.smallest) && collation.lt(&lower.largest, end)
        };
        upper.range_deletes.as_ref().is_some_and(|section| reach_over(&section.start, &section.end))
            && in_one_stripe(self.shape.snapshots, lower.seq_min, upper.seq_max)
    }
}

/// Indexes of the first extents with range deletes.
fn ranged(level: &dyn LevelView) -> impl Iterator<Item = usize> {
    let next = |from: usize| level.next_ranged(from);
    std::iter::successors(next(0), move |last| next(last + 1)).take(TRIED_MAX)
}
