//! Scan-triggered merge: scans mark ranges of keys in which they met too many value tables
//! ([`TableShape::scanned`]); a job rewrites the values of such a range, in the order of their keys.
//!
//! The job has the extents of one level over the mark as its inputs, and leaves their keys there. The old
//! copies stay until the rest of their value tables is dead or collected, so a job moves at most half of the
//! room that is left below the limit of space ([`JobSpec::mended`] ends there). The engine removes the mark
//! with the end of the job. Scans mark the value tables that they still meet.
//!
//! [`TableShape::scanned`]: crate::TableShape
//! [`JobSpec::mended`]: crate::JobSpec

use terrane_format::manifest::Place;

use crate::job::{JobKind, JobSpec, Mended};
use crate::pick::Picker;
use crate::pick::build::{JobDraft, Slice};
use crate::range::KeyRange;
use crate::shape::overlapping_range;

/// Fewer bytes are not worth a job.
const MENDED_BYTES_MIN: u64 = 1 << 20;

impl Picker<'_> {
    /// The job for the first mark of scans that has one.
    pub(in crate::pick) fn mend_job(&self) -> Option<JobSpec> {
        let bytes_max = self.limits.job_bytes_max.min(self.value_room() / 2);
        if !self.limits.scan_triggered_values || bytes_max < MENDED_BYTES_MIN {
            return None;
        }
        self.shape.scanned.iter().find_map(|range| self.mend(range, bytes_max))
    }

    /// The job that mends `range` in the deepest level in which it has too many value tables.
    fn mend(&self, range: &KeyRange, bytes_max: u64) -> Option<JobSpec> {
        (1..=self.shape.deepest()).rev().find_map(|target| {
            let level = self.shape.level(target);
            let over = overlapping_range(level, range);
            let mut end = over.start;
            let mut bytes = 0u64;
            while end < over.end && (end == over.start || bytes < bytes_max) {
                let meta = level.meta(end);
                let values: u64 = meta.references().iter().map(|it| it.bytes).fold(0, u64::saturating_add);
                bytes = bytes.saturating_add(u64::from(meta.bytes)).saturating_add(values);
                end += 1;
            }
            debug_assert!(end <= over.end, "extents over the mark: {end} of {over:?}");
            let over = over.start..end;
            if self.met(over.clone().map(|index| level.meta(index))).len() <= self.limits.value_groups_max {
                return None;
            }
            let slices = vec![Slice { place: Place::Level(target), level, range: over }];
            let kind = JobKind::Collect;
            let draft = JobDraft { kind, slices, target, drops_deletes: false, rewrites: false };
            let mended = Mended { range: range.clone(), bytes_max };
            self.build(draft).map(|spec| JobSpec { mended: Some(mended), ..spec })
        })
    }
}
