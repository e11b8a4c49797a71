//! Jobs that publish parts of their result.

use terrane_compaction::{Compactor, JobResult, JobSpec};

use super::World;

impl World {
    /// Runs a job and publishes each part that it hands over before its end; no reader may see a difference.
    pub(super) fn run_in_parts(&mut self, spec: &JobSpec) -> JobResult {
        if let Some(mended) = &spec.mended {
            self.scanned.retain(|range| !range.overlaps(&mended.range));
        }
        let compactor = self.compactor.clone();
        let mut publish = |part: JobResult| {
            self.publish(&part);
            self.check_content();
            self.parts += 1;
            Ok(())
        };
        let result = compactor.run_in_parts(spec, &Self::control(), &mut publish).unwrap();
        self.publish(&result);
        result
    }
}
