//! The extents that hold what the inputs of a finished job held.

use std::collections::HashSet;
use std::ops::Bound::Included;
use std::sync::Arc;

use terrane_base::{Collation, ExtentId};
use terrane_compaction::JobResult;
use terrane_levels::Metasnapshot;
use terrane_table::Extent;

/// The extents in the target level of a finished job that hold keys of its `inputs`, in key order: extents of
/// its `result`, those of earlier parts included, as far as `tree` has them. The job has replaced all others.
pub(crate) fn successors_of(
    tree: &Metasnapshot,
    result: &JobResult,
    inputs: &[Arc<Extent>],
) -> Vec<Arc<Extent>> {
    let Some(target) = tree.level(result.target) else { return Vec::new() };
    let leaves: HashSet<ExtentId> = result.removed.iter().map(|removed| removed.id).collect();
    let overlapping = |input: &Arc<Extent>| {
        let (smallest, largest) = (Included(&*input.meta.smallest), Included(&*input.meta.largest));
        target.range(target.overlapping(smallest, largest))
    };
    let mut successors: Vec<_> = inputs.iter().flat_map(overlapping).cloned().collect();
    let mut seen = HashSet::new();
    successors.retain(|extent| !leaves.contains(&extent.meta.id) && seen.insert(extent.meta.id));
    let collation = successors.first().map_or(Collation::BYTES, |extent| extent.meta.collation.clone());
    collation.sort_by_key(&mut successors, |extent| &extent.meta.smallest);
    successors
}
