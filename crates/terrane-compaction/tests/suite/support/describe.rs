//! Jobs in the messages of tests.

use terrane_compaction::{JobResult, JobSpec};
use terrane_format::extent::ExtentMeta;

/// A job and what came of it, in short.
pub(super) fn describe(spec: &JobSpec, results: &[JobResult]) -> String {
    let inputs: Vec<String> = spec
        .inputs
        .iter()
        .map(|input| {
            let extent =
                |meta: &ExtentMeta| format!("{} of {} deletes {}", meta.bytes, meta.raw_bytes, meta.deletes);
            format!("{:?} {:?}", input.place, input.extents.iter().map(extent).collect::<Vec<_>>())
        })
        .collect();
    let added: Vec<u32> =
        results.iter().rev().take(1).flat_map(|result| &result.added).map(|meta| meta.bytes).collect();
    format!(
        "{} {inputs:?} -> {:?} {added:?}, below {:?}, {:?}",
        spec.kind,
        spec.target,
        spec.below.len(),
        spec.output
    )
}
