//! Jobs that publish parts of their result.

use terrane_compaction::{Compactor, JobRequest, JobResult, JobSpec, decode_report, encode_report};

use super::World;

impl World {
    /// Runs a job and publishes each part that it hands over before its end; no reader may see a difference.
    pub(super) fn run_in_parts(&mut self, spec: &JobSpec) -> JobResult {
        if let Some(mended) = &spec.mended {
            self.scanned.retain(|range| !range.overlaps(&mended.range));
        }
        let (compactor, parts) = (self.compactor.clone(), self.parts);
        check_request(spec);
        let mut publish = |part: JobResult| {
            self.publish(&part);
            self.check_content();
            self.parts += 1;
            Ok(())
        };
        let result = compactor.run_in_parts(spec, &Self::control(), &mut publish).unwrap();
        if self.parts == parts {
            check_report(spec, &result);
        }
        self.publish(&result);
        result
    }
}

/// A job that does not stay comes back from its bytes as it was.
fn check_request(spec: &JobSpec) {
    if let Ok(request) = JobRequest::of(spec, &World::control()) {
        assert_eq!(JobRequest::decode(&request.encode()).unwrap(), request);
    }
}

/// So does the result of such a job: no check of reports refuses what a worker makes.
fn check_report(spec: &JobSpec, result: &JobResult) {
    let files = 0..u32::MAX;
    if JobRequest::of(spec, &World::control()).is_ok() {
        let report = encode_report(spec, result);
        assert_eq!(&decode_report(&report, spec, &files).unwrap(), result);
    }
}
