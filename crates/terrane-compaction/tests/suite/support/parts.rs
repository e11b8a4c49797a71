//! Jobs that publish parts of their result.

use terrane_compaction::{Compactor, JobResult, JobSpec};

use super::World;

impl World {
    /// Runs a job and publishes what it hands over on the way, which nobody may see.
    pub(super) fn run_in_parts(&mut self, spec: &JobSpec) -> JobResult {
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
