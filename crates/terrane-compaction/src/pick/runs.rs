//! Overflow runs into L1.
//!
//! A run may only sink if nothing older stays above it. So a job takes some extents of one run, then of each
//! older run in turn all that overlap what was taken so far, and at last what all of these meet in L1. Newer
//! runs stay where they are. The job starts with the newest run, so that one pass over the keys ends them all.

use std::ops::Range;

use terrane_format::manifest::Place;

use super::build::{Draft, Slice};
use super::level::bytes_of_slice;
use super::{Picker, WINDOW};
use crate::job::{JobKind, JobSpec};
use crate::range::Hull;

impl<'a> Picker<'a> {
    /// Moves a part of the overflow runs into L1.
    pub(super) fn runs_job(&self) -> Option<JobSpec> {
        let runs = 0..self.shape.runs.len();
        runs.into_iter().find_map(|lead| {
            let len = self.shape.runs[lead].level.len();
            let start = (0..len.min(WINDOW)).find(|start| self.can_sink(lead, *start..start + 1))?;
            self.sink(JobKind::Runs, lead, start..len)
        })
    }

    /// The job that takes as much of `wanted` of run `lead` as one job may. Requires: the first extent is free.
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
    fn sinking(&self, lead: usize, range: Range<usize>) -> Vec<Slice<'a>> {
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
