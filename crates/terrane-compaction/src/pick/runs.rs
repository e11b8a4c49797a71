//! Moves overflow runs into L1.
//!
//! A run may only move down if nothing older stays above it. So a job takes some extents of one run, then
//! from each older run in turn all extents that overlap those taken so far, and last the extents of L1 that
//! all of these overlap. Newer runs stay. The job starts with the newest run, so that one pass over the keys
//! ends all runs. If one job cannot hold all of the runs, the next continues after it, because the extents
//! that waited longest are densest there.
//!
//! A job reads each of its runs concurrently, so it takes at most [`RUNS_MAX`] of them. If there are more,
//! the oldest move down first, and the newer ones wait for the next job.
//!
//! Bytes that a merge writes into L1 are written again when L1 moves on. So while there is a level below, L1
//! may grow to [`THROUGH_FACTOR`] times its target, and the job that would make it larger moves the extents
//! that it overlaps in L1 along into L2.

use std::ops::Range;

use terrane_format::manifest::Place;

use super::build::{JobDraft, Slice};
use super::level::bytes_of_slice;
use super::{Picker, WINDOW};
use crate::job::{JobKind, JobSpec};
use crate::range::Hull;

/// Most overflow runs of one job. A merge has a chunk, a block and an index of each in memory: with this
/// many, all chunks together stay within their bound, and each still holds several blocks.
pub const RUNS_MAX: usize = 256;
/// Level 1 may be this many times its target before a merge of overflow runs moves it along.
pub(super) const THROUGH_FACTOR: u64 = 2;
/// A job that moves level 1 along may have this many times the input of others: most of it is from level 2.
const THROUGH_JOB_FACTOR: u64 = 2;

impl<'a> Picker<'a> {
    /// Moves a part of the overflow runs into L1, or with what they overlap there into L2.
    pub(super) fn runs_job(&self) -> Option<JobSpec> {
        let runs = 0..self.shape.runs.len();
        self.first_with_room(runs.into_iter().filter_map(|lead| {
            let level = self.shape.runs[lead].level;
            let first = self.cursors.start_in_run(self.shape.table, level);
            let mut window = (0..level.len().min(WINDOW)).map(|offset| (first + offset) % level.len());
            let start = window.find(|start| self.can_sink(lead, *start..start + 1))?;
            let (lead, wanted) = self.narrowed(lead, start..level.len());
            debug_assert!(
                lead < self.shape.runs.len() && !wanted.is_empty(),
                "extents {wanted:?} of run {lead}"
            );
            self.pass_through(lead, wanted.clone()).or_else(|| self.sink(JobKind::Runs, lead, wanted))
        }))
    }

    /// The run to begin with, and its wanted extents, so that the first of them takes at most [`RUNS_MAX`]
    /// runs along: `lead`, or an older one of those which its first extent would take. What can move down
    /// with that one can move down without it.
    pub(super) fn narrowed(&self, lead: usize, wanted: Range<usize>) -> (usize, Range<usize>) {
        debug_assert!(!wanted.is_empty(), "one extent of run {lead} sinks at least");
        let slices = self.sinking(lead, wanted.start..wanted.start + 1);
        let runs = slices[..slices.len() - 1].iter().enumerate();
        let oldest = runs.filter(|(_, slice)| !slice.range.is_empty()).rev().nth(RUNS_MAX - 1);
        match oldest {
            Some((behind, slice)) if behind > 0 => (lead + behind, slice.range.clone()),
            _ => (lead, wanted),
        }
    }

    /// Returns true if merges of overflow runs may move level 1 along into the next level.
    pub(super) fn can_pass_through(&self) -> bool {
        self.limits.merge_through && self.shape.deepest() > 1
    }

    /// The job that moves as much of run `lead` as one job may into L2, with everything that it overlaps, if
    /// L1 would grow too large otherwise.
    fn pass_through(&self, lead: usize, wanted: Range<usize>) -> Option<JobSpec> {
        debug_assert!(!wanted.is_empty(), "no extent of run {lead} passes through level 1");
        let run_bytes = self.shape.runs.iter().map(|run| run.level.totals().bytes).sum::<u64>();
        let level_1 = self.level_bytes.first().copied().unwrap_or(0);
        let limit = self.targets.of(1).saturating_mul(THROUGH_FACTOR);
        let meets_nothing = || {
            let slices = self.sinking(lead, wanted.clone());
            slices[1..].iter().all(|slice| slice.range.is_empty())
        };
        if !self.can_pass_through() || level_1.saturating_add(run_bytes) <= limit || meets_nothing() {
            return None;
        }
        let is_free = |slices: &[Slice<'a>]| {
            let mut hull = Hull::default();
            slices.iter().for_each(|slice| slice.add_to(&mut hull));
            hull.to_range().is_some_and(|range| self.is_free(slices, 2, &range))
        };
        let bytes_max = self.limits.job_bytes_max.saturating_mul(THROUGH_JOB_FACTOR);
        let mut taken: Option<Vec<Slice<'a>>> = None;
        for end in wanted.start + 1..=wanted.end {
            let slices = self.sinking_through(lead, wanted.start..end);
            let fits = slices.iter().map(bytes_of_slice).sum::<u64>() <= bytes_max && is_narrow(&slices);
            if !fits || !is_free(&slices) {
                break;
            }
            taken = Some(slices);
        }
        let draft = JobDraft {
            kind: JobKind::Runs,
            slices: taken?,
            target: 2,
            drops_deletes: false,
            rewrites: false,
        };
        // Its output is large: replaced extents are freed as it proceeds.
        let spec = self.build(draft)?;
        Some(JobSpec { part_bytes: self.limits.part_bytes.min(spec.part_bytes), ..spec })
    }

    /// The extents of [`Self::sinking`], and all that they overlap in L2.
    fn sinking_through(&self, lead: usize, range: Range<usize>) -> Vec<Slice<'a>> {
        let mut slices = self.sinking(lead, range);
        let mut hull = Hull::default();
        slices.iter().for_each(|slice| slice.add_to(&mut hull));
        debug_assert!(
            slices.iter().all(|slice| slice.place != Place::Level(2)),
            "an extent is an input once"
        );
        slices.push(self.slice_over(Place::Level(2), hull));
        slices
    }

    /// The job that takes as much of `wanted` of run `lead` as one job may. Requires: the first extent is
    /// free, and takes at most [`RUNS_MAX`] runs along ([`Self::narrowed`]), or nearly all that it takes is
    /// hidden by its range deletes and skipped without reading.
    pub(super) fn sink(&self, kind: JobKind, lead: usize, wanted: Range<usize>) -> Option<JobSpec> {
        let mut range = wanted.start..wanted.start;
        // While this holds, the job writes nothing.
        let mut is_relink = true;
        while range.end < wanted.end {
            let wider = range.start..range.end + 1;
            let slices = self.sinking(lead, wider.clone());
            is_relink = is_relink
                && slices[1..].iter().all(|slice| slice.range.is_empty())
                && self.is_as_written(&slices[0], 1);
            let fits = if is_relink {
                wider.len() <= self.limits.job_relinks_max
            } else {
                slices.iter().map(bytes_of_slice).sum::<u64>() <= self.limits.job_bytes_max
                    && is_narrow(&slices)
            };
            // One extent and what it overlaps always make a job.
            let joins = range.is_empty() || (fits && self.can_sink(lead, wider.clone()));
            if !joins {
                break;
            }
            range = wider;
        }
        assert!(!range.is_empty() || wanted.is_empty(), "one extent and what it overlaps always make a job");
        let slices = self.sinking(lead, range);
        self.build(JobDraft { kind, slices, target: 1, drops_deletes: false, rewrites: false })
    }

    /// Some extents of run `lead` and those that must move down with them, newest first, L1 last.
    pub(super) fn sinking(&self, lead: usize, range: Range<usize>) -> Vec<Slice<'a>> {
        let mut slices = vec![self.slice(Place::Run(self.shape.runs[lead].id), range)];
        let mut hull = Hull::default();
        slices[0].add_to(&mut hull);
        let older = self.shape.runs[lead + 1..].iter().map(|run| Place::Run(run.id));
        for place in older.chain([Place::Level(1)]) {
            let slice = self.slice_over(place, hull);
            slice.add_to(&mut hull);
            slices.push(slice);
        }
        debug_assert!(
            slices.len() == self.shape.runs.len() - lead + 1,
            "nothing older stays above what sinks"
        );
        slices
    }

    pub(super) fn can_sink(&self, lead: usize, range: Range<usize>) -> bool {
        debug_assert!(range.end <= self.shape.runs[lead].level.len(), "extents {range:?} of run {lead}");
        let slices = self.sinking(lead, range);
        let mut hull = Hull::default();
        slices.iter().for_each(|slice| slice.add_to(&mut hull));
        hull.to_range().is_some_and(|range| self.is_free(&slices, 1, &range))
    }
}

/// Returns true if there are at most [`RUNS_MAX`] overflow runs among slices.
fn is_narrow(slices: &[Slice<'_>]) -> bool {
    let is_run = |slice: &&Slice<'_>| matches!(slice.place, Place::Run(_)) && !slice.range.is_empty();
    slices.iter().filter(is_run).count() <= RUNS_MAX
}
