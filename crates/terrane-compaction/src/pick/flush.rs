//! Plans the next step of a flush.
//!
//! A step takes a range of the generation and every extent of L1 in it. Its size follows from L1's extents
//! and the average density of the generation among them; [`flush_step`](crate::LocalCompactor::flush_step)
//! ends it earlier if it writes more.

use std::ops::Bound;

use terrane_base::SeqNo;
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::Place;
use terrane_storage::SLOT_BYTES;

use super::build::JobDraft;
use super::room::extent_bytes_max;
use super::{Cursors, Picker};
use crate::claims::Claims;
use crate::job::{JobKind, JobSpec, OutputSettings};
use crate::limits::Limits;
use crate::range::KeyRange;
use crate::shape::{TableShape, overlapping_range};

/// Bytes that a step should write: 12 extents. Smaller steps make more edits and cut more blocks at borders;
/// larger steps hold a range of L1 for longer and make pacing coarser.
pub const STEP_BYTES: u64 = 12 * SLOT_BYTES as u64;

/// A step of a flush, or the reason why there is no step now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlushPlan {
    /// Run this over the generation's entries within its range.
    Step(Box<JobSpec>),
    /// Overflow runs hold older versions of keys in the range, or the table has no automatic compaction:
    /// compact it first, or dump the generation as another run.
    Runs,
    /// A running job holds L1 at `start`: begin elsewhere, or wait.
    Busy,
}

/// The step of a flush that begins at key `start`. `generation_bytes` is an estimate of the generation's
/// bytes from there on.
#[must_use]
pub fn plan_flush(
    shape: &TableShape<'_>,
    limits: &Limits,
    claims: &Claims,
    start: &[u8],
    generation_bytes: u64,
) -> FlushPlan {
    if !limits.automatic {
        // It would merge with level 1.
        return FlushPlan::Runs;
    }
    let cursors = Cursors::new();
    let arriving = entries_of(shape, generation_bytes);
    let picker = Picker { arriving, ..Picker::new(shape, limits, claims, &cursors) };
    let first = shape.level(1).find(start);
    let mut blocked = FlushPlan::Busy;
    for end in picker.step_ends(start, first, generation_bytes) {
        let range = picker.step_range(start, first, end);
        if shape.runs.iter().any(|run| !overlapping_range(run.level, &range).is_empty()) {
            blocked = FlushPlan::Runs;
            continue;
        }
        let slices = vec![picker.slice(Place::Level(1), first..end)];
        let draft =
            JobDraft { kind: JobKind::Flush, slices, target: 1, drops_deletes: false, rewrites: false };
        if let Some(spec) = picker.build_over(draft, range) {
            return FlushPlan::Step(Box::new(spec));
        }
        blocked = FlushPlan::Busy;
    }
    blocked
}

/// The job that writes a generation as overflow run `id`, which must be newer than every other run. It drops
/// versions that no reader needs, but no deletes, because everything older lies below it.
#[must_use]
pub fn plan_dump(shape: &TableShape<'_>, limits: &Limits, id: u64) -> JobSpec {
    debug_assert!(shape.runs.iter().all(|run| run.id < id), "runs are dumped in order");
    JobSpec {
        kind: JobKind::Dump,
        request: None,
        table: shape.table,
        inputs: Vec::new(),
        values: Vec::new(),
        mended: None,
        target: Place::Run(id),
        range: KeyRange::all().ordered(&shape.collation),
        below: vec![KeyRange::all().ordered(&shape.collation)],
        below_seq_max: seq_max(shape),
        grandparents: Vec::new(),
        grandparent_bytes_max: u64::MAX,
        snapshots: shape.snapshots.to_vec(),
        output: OutputSettings::new(limits, false, shape.exceeds_memory),
        drops_deletes: false,
        rewrites: false,
        part_bytes: u64::MAX,
        extent_bytes_max: extent_bytes_max(shape.room_bytes),
    }
}

/// About the entries of a generation, if their values are as long as those that are separated.
fn entries_of(shape: &TableShape<'_>, generation_bytes: u64) -> u64 {
    let (_, live) = shape.values.sums();
    let mean = shape.values.live_bytes().checked_div(live).unwrap_or(0);
    generation_bytes.checked_div(mean).unwrap_or(0)
}

/// The greatest number that any extent holds.
fn seq_max(shape: &TableShape<'_>) -> SeqNo {
    let levels = shape.runs.iter().map(|run| run.level).chain(shape.levels.iter().copied());
    let metas = levels.flat_map(|level| (0..level.len()).map(|index| level.meta(index).seq_max));
    metas.max().unwrap_or_default()
}

impl Picker<'_> {
    /// Ends to try, as indexes into L1: the preferred one first, then shorter ones that may be free.
    fn step_ends(&self, start: &[u8], first: usize, generation_bytes: u64) -> Vec<usize> {
        let mut ends = Vec::new();
        let mut len = self.step_end(first, generation_bytes) - first;
        while len > 0 {
            ends.push(first + len);
            len /= 2;
        }
        let level = self.shape.level(1);
        let starts_behind = |meta: &ExtentMeta| meta.collation.lt(start, &meta.smallest);
        if first == level.len() || starts_behind(level.meta(first)) {
            ends.push(first);
        }
        let is_shorter = ends.is_sorted_by(|longer, shorter| longer > shorter);
        debug_assert!(
            is_shorter && ends.iter().all(|end| *end <= level.len()),
            "steps from {first}: {ends:?}"
        );
        ends
    }

    /// Index behind the last extent of a step that begins with extent `first` of L1.
    fn step_end(&self, first: usize, generation_bytes: u64) -> usize {
        let level = self.shape.level(1);
        let level_bytes = u128::from(level.totals().bytes.max(1));
        let mut end = first;
        let mut bytes = 0;
        while end < level.len() && bytes < u128::from(STEP_BYTES) {
            let own = u128::from(level.meta(end).bytes);
            bytes += own + own * u128::from(generation_bytes) / level_bytes;
            end += 1;
        }
        debug_assert!(first <= end, "a step goes forward");
        end
    }

    fn step_range(&self, start: &[u8], first: usize, end: usize) -> KeyRange {
        let level = self.shape.level(1);
        debug_assert!(first <= end && end <= level.len(), "extents {first}..{end} of level 1");
        let from_extent = (first < end).then(|| level.meta(first).smallest.as_slice());
        let collation = &self.shape.collation;
        let start = from_extent.map_or(start, |smallest| collation.min(smallest, start)).to_vec();
        let behind = (end < level.len()).then(|| level.meta(end).smallest.clone());
        let end = behind.map_or(Bound::Unbounded, Bound::Excluded);
        KeyRange { start, end, collation: collation.clone() }
    }
}
