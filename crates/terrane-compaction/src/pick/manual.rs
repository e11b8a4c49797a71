//! Manual compaction of a range of keys and levels, job by job.

use std::ops::{Bound, RangeInclusive};

use terrane_format::manifest::{LEVEL_MAX, Place};

use super::build::JobDraft;
use super::{Cursors, Picker};
use crate::claims::Claims;
use crate::job::{JobKind, JobSpec};
use crate::limits::Limits;
use crate::range::KeyRange;
use crate::shape::{TableShape, bytes_of, overlapping_range};

/// The requested range, and the progress.
#[derive(Clone, Debug)]
pub struct RangeRequest {
    range: KeyRange,
    levels: RangeInclusive<u8>,
    rewrites_last: bool,
    /// True if the last level is the target even if the tree is less deep.
    deepens: bool,
    /// Keys up to this one were rewritten.
    rewritten: Option<Vec<u8>>,
    /// True once a job has moved extents up, since the tree was deeper than it has to be: from then on none
    /// moves down.
    rises: bool,
}

/// The state of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeStep {
    /// Run this job, then ask again.
    Job(Box<JobSpec>),
    /// Running jobs hold the next extents: ask again when one has ended.
    Busy,
    /// The request is fulfilled.
    Done,
}

impl RangeRequest {
    /// Moves all extents that overlap `range` from `levels` into the last of these. Level 0 means the
    /// overflow runs. A last level deeper than the tree means the tree's deepest, or the one that a tree of
    /// these bytes should have as its deepest, if that is deeper: the picker would move the extents there
    /// later. With `rewrites_last`, extents that are in the last level already are rewritten, so that no
    /// unneeded version stays. If the range is the whole table then and the last level is not named, the
    /// tree is made as shallow as these bytes allow: the picker would do so later.
    #[must_use]
    pub fn new(range: KeyRange, levels: RangeInclusive<u8>, rewrites_last: bool) -> Self {
        RangeRequest { range, levels, rewrites_last, deepens: false, rewritten: None, rises: false }
    }

    /// Moves all extents of level `number` one level down, even into a new level; 0 means the overflow runs.
    /// Such a request makes a shape that the picker might not choose. Requires: `number` is less than
    /// [`LEVEL_MAX`].
    #[must_use]
    pub fn one_level(number: u8) -> Self {
        let levels = number..=(number + 1).min(LEVEL_MAX);
        RangeRequest { deepens: true, ..RangeRequest::new(KeyRange::all(), levels, false) }
    }

    /// Returns true if an automatic picker might undo the requested shape: then it must not run while the
    /// request is served.
    #[must_use]
    pub fn makes_shape(&self) -> bool {
        self.deepens
    }

    /// Records a finished job of this request.
    pub fn advance(&mut self, spec: &JobSpec) {
        self.rises |= is_rise(spec);
        debug_assert!(!self.rises || !self.deepens, "a request that moves one level down moves no extent up");
        if spec.rewrites
            && let Some(last) = spec.inputs.iter().filter_map(|input| input.extents.last()).next_back()
        {
            self.rewritten = Some(last.largest.clone());
        }
    }

    /// The range that is left to rewrite, when nothing is left to move.
    fn rest(&self) -> KeyRange {
        match &self.rewritten {
            Some(key) if self.range.collation.le(&self.range.start, key) => {
                KeyRange { start: self.range.collation.successor(key), ..self.range.clone() }
            }
            _ => self.range.clone(),
        }
    }
}

/// The next step of a request.
#[must_use]
pub fn pick_range(
    shape: &TableShape<'_>,
    limits: &Limits,
    claims: &Claims,
    request: &RangeRequest,
) -> RangeStep {
    let cursors = Cursors::new();
    let picker = Picker::new(shape, limits, claims, &cursors);
    if request.rises {
        return picker.rise(request).unwrap_or(RangeStep::Done);
    }
    let last = *request.levels.end();
    // The depth is that of the levels without the runs: once these are in level 1, the next look counts them.
    let deepest = shape.deepest().max(picker.targets.depth);
    let last = if request.deepens { last } else { last.min(deepest) };
    let moved = (*request.levels.start()..last).find_map(|number| match number {
        0 => picker.range_of_runs(request),
        _ => picker.range_of_level(request, number),
    });
    let step = moved.or_else(|| if request.rewrites_last { picker.rewrite(request, last) } else { None });
    step.or_else(|| picker.rise(request)).unwrap_or(RangeStep::Done)
}

/// Returns true for a job that moves extents up.
fn is_rise(spec: &JobSpec) -> bool {
    let Place::Level(target) = spec.target else { return false };
    spec.inputs.iter().any(|input| matches!(input.place, Place::Level(number) if number > target))
}

fn step(job: Option<JobSpec>) -> RangeStep {
    job.map_or(RangeStep::Busy, |job| RangeStep::Job(Box::new(job)))
}

/// Each returns `None` if nothing of the request is left in its level.
impl Picker<'_> {
    fn range_of_runs(&self, request: &RangeRequest) -> Option<RangeStep> {
        let wanted = |lead: usize| overlapping_range(self.shape.runs[lead].level, &request.range);
        let mut leads = (0..self.shape.runs.len()).filter(|lead| !wanted(*lead).is_empty()).peekable();
        leads.peek()?;
        let jobs = leads.filter_map(|lead| {
            let wanted = wanted(lead);
            debug_assert!(wanted.end <= self.shape.runs[lead].level.len(), "extents {wanted:?} of a run");
            let is_free = self.can_sink(lead, wanted.start..wanted.start + 1);
            let (lead, wanted) = is_free.then(|| self.narrowed(lead, wanted))?;
            self.sink(JobKind::Manual, lead, wanted)
        });
        Some(step(self.first_with_room(jobs)))
    }

    fn range_of_level(&self, request: &RangeRequest, number: u8) -> Option<RangeStep> {
        let level = self.shape.level(number);
        let wanted = overlapping_range(level, &request.range);
        if wanted.is_empty() {
            return None;
        }
        let Some(start) = wanted.clone().find(|index| self.can_move(number, *index..index + 1)) else {
            return Some(RangeStep::Busy);
        };
        let bytes = bytes_of(level, start..wanted.end);
        let range = self.grow_down(number, start..start + 1, bytes);
        debug_assert!(range.contains(&start), "the job would not have the extent that is free");
        Some(step(self.move_down(JobKind::Manual, number, range, false)))
    }

    /// Moves the deepest level up after a rewrite of the whole table, which may have made it so small that it
    /// fits into the level above.
    fn rise(&self, request: &RangeRequest) -> Option<RangeStep> {
        let is_whole = request.range.start.is_empty() && request.range.end == Bound::Unbounded;
        let is_free = request.rewrites_last && !request.deepens && *request.levels.end() >= LEVEL_MAX;
        if !is_whole || !is_free {
            return None;
        }
        let deepest = self.shape.deepest();
        let is_deep = deepest > self.targets.depth;
        match self.rising_job(JobKind::Manual) {
            Some(job) => Some(RangeStep::Job(Box::new(job))),
            // Running jobs move the rest: the request ends behind them.
            None if is_deep && self.claims.leaving(self.shape.table, Place::Level(deepest)) > 0 => {
                Some(RangeStep::Busy)
            }
            None => None,
        }
    }

    fn rewrite(&self, request: &RangeRequest, number: u8) -> Option<RangeStep> {
        let level = self.shape.level(number);
        let wanted = overlapping_range(level, &request.rest());
        if wanted.is_empty() {
            return None;
        }
        let mut end = wanted.start + 1;
        let mut bytes = u64::from(level.meta(wanted.start).bytes);
        while end < wanted.end {
            bytes += u64::from(level.meta(end).bytes);
            if bytes > self.limits.job_bytes_max {
                break;
            }
            end += 1;
        }
        debug_assert!(wanted.start < end && end <= wanted.end, "extents {wanted:?} up to {end}");
        let slices = vec![self.slice(Place::Level(number), wanted.start..end)];
        let kind = JobKind::Manual;
        Some(step(self.build(JobDraft { kind, slices, target: number, drops_deletes: true, rewrites: true })))
    }
}
