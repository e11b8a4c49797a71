//! Jobs of tables that separate long values go to other machines where they have none.

use terrane_compaction::{Compactor, JobRequest, Stays, decode_report};

use super::{ANY_FILE, control, run_from_bytes, world};

/// New tables separate long values: what decides is whether the job has one.
#[test]
fn a_job_without_long_values_travels_although_its_table_separates_them() {
    let (world, spec) = world();
    let separating = |from: u64| {
        let mut separating = spec.clone();
        separating.output.separate_from = from;
        separating
    };
    let from = 16 << 10;
    let request = JobRequest::of(&separating(from), &control()).unwrap();
    assert_eq!(request.spec, JobRequest::of(&spec, &control()).unwrap().spec, "as if nothing were separated");
    let (_, report) = run_from_bytes(&world, &separating(from), &control());
    let result = decode_report(&report, &request.spec, &ANY_FILE).unwrap();
    assert!(result.values.is_empty() && result.added.iter().all(|meta| meta.references.is_none()));
    let (here, _) = super::world();
    let local = here.compactor.run(&separating(from), &control()).unwrap();
    assert!(local.work.blocks_copied > 0, "blocks are copied with room for no pointers");
    assert_eq!(result, local, "a table without long values is written as if nothing were separated");
    // Values of 900 and 1000 bytes, some of them deleted.
    assert!(JobRequest::of(&separating(1 << 10), &control()).is_ok());
    assert_eq!(JobRequest::of(&separating(500), &control()).unwrap_err(), Stays::Values);
    // No entry, and range deletes of any length.
    let mut ranges = separating(500);
    ranges.inputs.iter_mut().flat_map(|input| &mut input.extents).for_each(|meta| meta.entries = 0);
    assert!(!matches!(JobRequest::of(&ranges, &control()), Err(Stays::Values)));
}
