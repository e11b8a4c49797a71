//! A job as it runs with a compaction filter.

use terrane_base::CompactionFilter;

use super::JobSpec;

impl JobSpec {
    /// The job as it runs with a filter: over all rows if the filter sees all, and without parts if versions
    /// of its rows stay above its target until it ends. Readers would fold operands that stay onto a row
    /// that the filter has changed or removed, and so would a later job.
    #[must_use]
    pub fn filtered_by(&self, filter: &dyn CompactionFilter) -> JobSpec {
        let is_in_place = self.inputs.iter().all(|input| input.place == self.target);
        let has_parts = is_in_place || terrane_base::planted!(PartUnderFilter);
        let part_bytes = if has_parts { self.part_bytes } else { u64::MAX };
        let spec = JobSpec { rewrites: self.rewrites || filter.sees_all(), part_bytes, ..self.clone() };
        debug_assert!(!spec.is_in_parts() || self.is_in_parts(), "a filter makes no parts");
        spec
    }
}
