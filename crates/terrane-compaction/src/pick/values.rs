//! Which value tables a job writes anew, and the job that collects dead values.
//!
//! A job that meets a pointer may move its value (`merge/values.rs`). It moves the values of a value table if
//! 1. too many of its entries are dead: what is dead goes with the old value table once all pointers moved;
//! 2. its keys come to one of the last two levels and were written for an upper one: values move no more
//!    often than that (*lazy merge*; `Limits::lazy_values`), and with every level otherwise;
//! 3. too many value tables overlap where the job is: a scan would read from all of them at once
//!    (*scan-optimised merge*), found by a sweep over the ends of their ranges.
//!
//! What no job of the levels touches would keep its dead values for ever. So where the stored bytes of all
//! value tables are too many for what is live in them, a job of its own takes the extents of one level that
//! point into the value table with the most dead entries, and leaves their keys in that level.
//!
//! Sources: 1 to 3 DiffKV (Li et al., USENIX ATC 2021), where a value table whose keys no compaction takes is
//! never collected.

use std::collections::BTreeMap;
use std::ops::Range;

use terrane_base::ValueTableId;
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::Place;

use super::Picker;
use super::build::{JobDraft, Slice};
use crate::job::{Input, JobKind, JobSpec, ValueInput};
use crate::shape::{LevelView, TableShape};

const PERMILLE: u128 = 1000;
/// Fewer stored bytes of value tables are not worth a job that only collects.
const COLLECTED_BYTES_MIN: u64 = 8 << 20;
/// Value tables that a job considers for collection, those with the most dead entries first.
const VICTIMS_MAX: usize = 64;

/// Stored bytes of value tables per thousand bytes that their live entries need; 1000 for a table without
/// any.
#[must_use]
pub fn value_space_permille(shape: &TableShape<'_>) -> u64 {
    let (totals, live) = shape.values.sums();
    let live_bytes = u128::from(totals.bytes) * u128::from(live) / u128::from(totals.entries.max(1));
    match (totals.bytes, live_bytes) {
        (0, _) => PERMILLE as u64,
        (_, 0) => u64::MAX,
        (bytes, live) => u64::try_from(u128::from(bytes) * PERMILLE / live).unwrap_or(u64::MAX),
    }
}

/// Dead entries per thousand of a value table.
fn dead_permille(meta: &ExtentMeta, live_entries: u64) -> u64 {
    let dead = meta.entries.saturating_sub(live_entries);
    (u128::from(dead) * PERMILLE / u128::from(meta.entries.max(1))) as u64
}

impl Picker<'_> {
    /// The value tables that inputs point into, and which of them a job to `target` writes anew.
    pub(super) fn values_of(&self, kind: JobKind, inputs: &[Input], target: u8) -> Vec<ValueInput> {
        let mut met: BTreeMap<ValueTableId, &ExtentMeta> = BTreeMap::new();
        let mut is_dead: BTreeMap<ValueTableId, bool> = BTreeMap::new();
        let references = inputs.iter().flat_map(|input| &input.extents).flat_map(ExtentMeta::references);
        for reference in references {
            if let Some((meta, live)) = self.shape.values.values(reference.table) {
                met.insert(reference.table, meta);
                let is_garbage = dead_permille(meta, live) > self.limits.value_garbage_permille;
                is_dead.insert(reference.table, is_garbage);
            }
        }
        if met.is_empty() {
            return Vec::new();
        }
        let crowded = self.crowded(&met);
        let depth = self.targets.depth.max(self.shape.deepest());
        let merge_level = if self.limits.lazy_values { depth.saturating_sub(1).max(1) } else { 1 };
        let sinks = |meta: &ExtentMeta| {
            let written_for = meta.value_table.map_or(0, |section| section.level);
            kind != JobKind::Flush && target >= merge_level && written_for < target
        };
        let input = |(number, meta): (ValueTableId, &ExtentMeta)| {
            let is_rewritten = is_dead[&number] || crowded.contains(&number) || sinks(meta);
            ValueInput { meta: meta.clone(), is_rewritten }
        };
        met.into_iter().map(input).collect()
    }

    /// The value tables that lie where more than the limit overlap.
    fn crowded(&self, met: &BTreeMap<ValueTableId, &ExtentMeta>) -> Vec<ValueTableId> {
        let limit = self.limits.value_groups_max;
        if met.len() <= limit {
            return Vec::new();
        }
        let collation = &self.shape.collation;
        let mut by_start: Vec<(ValueTableId, &ExtentMeta)> =
            met.iter().map(|(number, meta)| (*number, *meta)).collect();
        collation.sort_by_key(&mut by_start, |(_, meta)| &meta.smallest);
        // Those that are over the present start; the first whose end is passed leave.
        let mut over: Vec<(ValueTableId, &ExtentMeta)> = Vec::new();
        let mut crowded = Vec::new();
        for (number, meta) in by_start {
            over.retain(|(_, open)| collation.le(&meta.smallest, &open.largest));
            over.push((number, meta));
            if over.len() > limit {
                crowded.extend(over.iter().map(|(number, _)| *number));
            }
        }
        crowded.sort_unstable();
        crowded.dedup();
        debug_assert!(crowded.iter().all(|number| met.contains_key(number)), "they were met");
        crowded
    }

    /// A job that collects, if the value tables take too many bytes for what is live in them.
    pub(super) fn collect_job(&self) -> Option<JobSpec> {
        let (totals, _) = self.shape.values.sums();
        let limit = self.limits.value_space_permille;
        if limit == 0 || totals.bytes < COLLECTED_BYTES_MIN || value_space_permille(self.shape) <= limit {
            return None;
        }
        self.victims().into_iter().find_map(|number| self.collect(number))
    }

    /// The value tables with the most dead entries, most first.
    fn victims(&self) -> Vec<ValueTableId> {
        let mut victims: Vec<(u64, ValueTableId)> = Vec::new();
        self.shape.values.each(&mut |meta, live| {
            let dead = dead_permille(meta, live);
            if let Some(section) = meta.value_table.filter(|_| dead > 0) {
                victims.push((dead, section.number));
            }
        });
        victims.sort_unstable_by_key(|(dead, number)| (std::cmp::Reverse(*dead), *number));
        victims.truncate(VICTIMS_MAX);
        debug_assert!(victims.iter().all(|(dead, _)| *dead <= PERMILLE as u64), "a share of the entries");
        victims.into_iter().map(|(_, number)| number).collect()
    }

    /// The job over extents of one level that point into this value table, deepest level first.
    fn collect(&self, number: ValueTableId) -> Option<JobSpec> {
        let (values, _) = self.shape.values.values(number)?;
        let points = |meta: &ExtentMeta| meta.references().iter().any(|it| it.table == number);
        for target in (1..=self.shape.deepest()).rev() {
            let level = self.shape.level(target);
            let over = crate::shape::overlapping(level, &values.smallest, &values.largest);
            let Some(first) = over.clone().find(|index| points(level.meta(*index))) else { continue };
            let range = self.grow_collection(level, first, over.end, &points);
            let slices = vec![Slice { place: Place::Level(target), level, range }];
            let kind = JobKind::Collect;
            let draft = JobDraft { kind, slices, target, drops_deletes: false, rewrites: false };
            let job = self.build(draft).map(|mut spec| {
                let values = spec.values.iter_mut().find(|values| values.number() == number);
                values.expect("the extents point into it").is_rewritten = true;
                spec
            });
            if job.is_some() {
                return job;
            }
        }
        None
    }

    /// The neighbours that point into the same value table, as many as a job takes.
    fn grow_collection(
        &self,
        level: &dyn LevelView,
        first: usize,
        end: usize,
        points: &dyn Fn(&ExtentMeta) -> bool,
    ) -> Range<usize> {
        let cost = |index: usize| {
            let meta = level.meta(index);
            let values: u64 = meta.references().iter().map(|it| it.bytes).fold(0, u64::saturating_add);
            u64::from(meta.bytes).saturating_add(values)
        };
        let mut last = first;
        let mut bytes = cost(first);
        while last + 1 < end && points(level.meta(last + 1)) {
            bytes = bytes.saturating_add(cost(last + 1));
            if bytes > self.limits.job_bytes_max {
                break;
            }
            last += 1;
        }
        debug_assert!(first <= last && last < end, "extents {first} to {last} of those before {end}");
        first..last + 1
    }
}
