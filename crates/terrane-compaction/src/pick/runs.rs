//! Overflow runs into L1.
//!
//! A run may only sink if nothing older stays above it. So a job takes some extents of one run, then of each
//! older run in turn all that overlap what was taken so far, and at last what all of these meet in L1. Newer
//! runs stay where they are. The job starts with the newest run, so that one pass over the keys ends them all. Where
//! one job cannot hold the whole of the runs, the next goes on behind it: what waited longest lies deepest there.
//!
//! A job reads each of its runs beside the others, so it takes [`RUNS_MAX`] of them at most. Where there are more, those
//! that waited longest sink first, and the newer ones stay until the next job.
//!
//! What a merge into L1 writes is written once more when L1 moves on. So while there is a level below, L1 may grow to
//! [`THROUGH_FACTOR`] times its target, and the job that would make it larger takes what it meets in L1 along into L2.

use std::ops::Range;

use terrane_format::manifest::Place;

use super::build::{Draft, Slice};
use super::level::bytes_of_slice;
use super::{Picker, WINDOW};
use crate::job::{JobKind, JobSpec};
use crate::range::Hull;

/// Overflow runs that one job takes at most. A merge has a chunk, a block and an index of each in memory at once: of
/// so many all chunks together stay within their bound, and each is still of several blocks.
pub(crate) const RUNS_MAX: usize = 256;
/// Level 1 may be so many times its target before a merge of overflow runs takes it along.
pub(super) const THROUGH_FACTOR: u64 = 2;
/// A job that takes level 1 along may have so many times the input of others: most of it is of level 2.
const THROUGH_JOB_FACTOR: u64 = 2;

impl<'a> Picker<'a> {
    /// Moves a part of the overflow runs into L1, or with what they meet there into L2.
    pub(super) fn runs_job(&self) -> Option<JobSpec> {
        let runs = 0..self.shape.runs.len();
        runs.into_iter().find_map(|lead| {
            let level = self.shape.runs[lead].level;
            let first = self.cursors.start_in_run(self.shape.table, level);
            let mut window = (0..level.len().min(WINDOW)).map(|offset| (first + offset) % level.len());
            let start = window.find(|start| self.can_sink(lead, *start..start + 1))?;
            let (lead, wanted) = self.narrowed(lead, start..level.len());
            self.pass_through(lead, wanted.clone()).or_else(|| self.sink(JobKind::Runs, lead, wanted))
        })
    }

    /// The run to begin with, and what is wanted of it, so that the first extent of that takes no more than [`RUNS_MAX`]
    /// runs along: `lead`, or an older one of those which its first extent would take. What can sink with that can
    /// sink without it.
    pub(super) fn narrowed(&self, lead: usize, wanted: Range<usize>) -> (usize, Range<usize>) {
        let slices = self.sinking(lead, wanted.start..wanted.start + 1);
        let runs = slices[..slices.len() - 1].iter().enumerate();
        let oldest = runs.filter(|(_, slice)| !slice.range.is_empty()).rev().nth(RUNS_MAX - 1);
        match oldest {
            Some((behind, slice)) if behind > 0 => (lead + behind, slice.range.clone()),
            _ => (lead, wanted),
        }
    }

    /// Whether there is a level into which merges of overflow runs may take level 1 along.
    pub(super) fn can_pass_through(&self) -> bool {
        self.limits.merge_through && self.shape.deepest() > 1
    }

    /// The job that moves as much of run `lead` as one job may into L2, with all that it meets on the way, if L1 would
    /// grow too large otherwise.
    fn pass_through(&self, lead: usize, wanted: Range<usize>) -> Option<JobSpec> {
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
        let draft =
            Draft { kind: JobKind::Runs, slices: taken?, target: 2, drops_deletes: false, rewrites: false };
        // Its output is large: what it replaces comes free as it goes.
        Some(JobSpec { part_bytes: self.limits.part_bytes, ..self.build(draft)? })
    }

    /// What [`Self::sinking`] takes, and all that it meets in L2.
    fn sinking_through(&self, lead: usize, range: Range<usize>) -> Vec<Slice<'a>> {
        let mut slices = self.sinking(lead, range);
        let mut hull = Hull::default();
        slices.iter().for_each(|slice| slice.add_to(&mut hull));
        slices.push(self.slice_over(Place::Level(2), hull));
        slices
    }

    /// The job that takes as much of `wanted` of run `lead` as one job may. Requires: the first extent is free, and takes
    /// no more than [`RUNS_MAX`] runs along ([`Self::narrowed`]), or nearly all that it takes is hidden by its range deletes and
    /// passed by unread.
    pub(super) fn sink(&self, kind: JobKind, lead: usize, wanted: Range<usize>) -> Option<JobSpec> {
        let mut range = wanted.start..wanted.start;
        // As long as this holds, the job writes nothing.
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
            // One extent and what it meets always make a job.
            let joins = range.is_empty() || (fits && self.can_sink(lead, wider.clone()));
            if !joins {
                break;
            }
            range = wider;
        }
        let slices = self.sinking(lead, range);
        self.build(Draft { kind, slices, target: 1, drops_deletes: false, rewrites: false })
    }

    /// Some extents of run `lead` and what must sink with them, newest first, L1 last.
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
        slices
    }

    pub(super) fn can_sink(&self, lead: usize, range: Range<usize>) -> bool {
        let slices = self.sinking(lead, range);
        let mut hull = Hull::default();
        slices.iter().for_each(|slice| slice.add_to(&mut hull));
        hull.to_range().is_some_and(|range| self.is_free(&slices, 1, &range))
    }
}

/// Whether there are no more than [`RUNS_MAX`] overflow runs among slices.
fn is_narrow(slices: &[Slice<'_>]) -> bool {
    let is_run = |slice: &&Slice<'_>| matches!(slice.place, Place::Run(_)) && !slice.range.is_empty();
    slices.iter().filter(is_run).count() <= RUNS_MAX
}
