//! Which value tables a job rewrites.
//!
//! A job that meets a pointer may move its value (`merge/values.rs`). It moves the values of a value table
//! 1. to give the space of dead values back, if the job is done before the value tables take too much
//!    (`values/collect.rs`);
//! 2. if their keys come to one of the last two levels and were written for an upper one, from level 2 on
//!    (*lazy merge*; `Limits::lazy_values`), or with every level otherwise: values never move more often;
//! 3. if too many value tables overlap where the job is (*scan-optimised merge*;
//!    `Limits::scan_optimised_values`), found by a sweep over the ends of their ranges;
//! 4. in a range of keys where scans have met too many value tables (*scan-triggered merge*;
//!    `values/mend.rs`).
//!
//! Sources: 2 and 3 DiffKV (Li et al., USENIX ATC 2021). The article has scans mark what they meet, as 4
//! does; its code has 3, which moves every value about once for each `value_groups_max` flushes whether
//! anything is scanned or not.

mod collect;
mod debt;
mod mend;

use std::collections::BTreeMap;

use terrane_base::ValueTableId;
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::Place;

use super::Picker;
use crate::job::{Input, JobKind, ValueInput};

pub use collect::value_space_permille;
pub use debt::value_debt_permille;

/// A value table that entries of a job's inputs point into.
#[derive(Clone, Copy)]
struct Met<'a> {
    meta: &'a ExtentMeta,
    /// Entries that point into it, from everywhere.
    live: u64,
    /// Of these, the entries of the inputs.
    here: u64,
}

/// The value tables that inputs point into, by number.
type MetTables<'a> = BTreeMap<ValueTableId, Met<'a>>;

impl<'a> Picker<'a> {
    /// The value tables that inputs point into, and which of them a job to `target` rewrites.
    pub(super) fn values_of(&self, kind: JobKind, inputs: &[Input], target: u8) -> Vec<ValueInput> {
        let met = self.met(inputs.iter().flat_map(|input| &input.extents));
        if met.is_empty() {
            return Vec::new();
        }
        let mut collected = Vec::new();
        if kind == JobKind::Collect || self.limits.value_collect_riding {
            let is_small = self.has_few_values();
            let dying =
                if is_small { self.dying_pointers(inputs, target) } else { self.dying(inputs, target) };
            collected = self.collected(&met, dying);
        }
        let crowded = if self.limits.scan_optimised_values { self.crowded(&met) } else { Vec::new() };
        let depth = self.targets.depth.max(self.shape.deepest());
        let merge_level = if self.limits.lazy_values { depth.saturating_sub(1).max(2) } else { 1 };
        let sinks = |meta: &ExtentMeta| {
            let written_for = meta.value_table.map_or(0, |section| section.level);
            kind != JobKind::Flush && target >= merge_level && written_for < target
        };
        let is_searched = |numbers: &[ValueTableId]| numbers.is_sorted_by(|a, b| a < b);
        debug_assert!(
            is_searched(&collected) && is_searched(&crowded),
            "value tables are searched by number"
        );
        let has = |numbers: &[ValueTableId], number| numbers.binary_search(&number).is_ok();
        let input = |(number, Met { meta, .. }): (ValueTableId, Met<'_>)| {
            let is_rewritten = has(&collected, number) || has(&crowded, number) || sinks(meta);
            ValueInput { meta: meta.clone(), is_rewritten }
        };
        met.into_iter().map(input).collect()
    }

    /// The value tables that extents point into.
    fn met<'e>(&self, extents: impl Iterator<Item = &'e ExtentMeta>) -> MetTables<'a> {
        let mut met = MetTables::new();
        for reference in extents.flat_map(ExtentMeta::references) {
            if let Some(met) = met.get_mut(&reference.table) {
                met.here = met.here.saturating_add(reference.entries);
            } else if let Some((meta, live)) = self.shape.values.values(reference.table) {
                met.insert(reference.table, Met { meta, live, here: reference.entries });
            }
        }
        let is_numbered = |(number, met): (&ValueTableId, &Met<'_>)| {
            met.meta.value_table.is_some_and(|section| section.number == *number)
        };
        debug_assert!(met.iter().all(is_numbered), "what was met are value tables");
        met
    }

    /// Most entries of the levels that a job to `target` can hide: as many as come from above.
    fn dying(&self, inputs: &[Input], target: u8) -> u64 {
        let above = inputs.iter().filter(|input| input.place != Place::Level(target));
        debug_assert!(inputs.is_sorted_by(|a, b| a.place != b.place), "a place is one input");
        let entries = above.flat_map(|input| &input.extents).map(|meta| meta.entries);
        entries.fold(self.arriving, u64::saturating_add)
    }

    /// About the pointers that a job to `target` hides: of the entries that come from above, the share that
    /// pointers are of those at the target. A table of short values that has a few long ones moves none.
    fn dying_pointers(&self, inputs: &[Input], target: u8) -> u64 {
        let at_target = inputs.iter().filter(|input| input.place == Place::Level(target));
        let (mut entries, mut pointers) = (0u64, 0u64);
        for meta in at_target.flat_map(|input| &input.extents) {
            entries = entries.saturating_add(meta.entries);
            pointers = pointers.saturating_add(collect::pointers_of(meta));
        }
        debug_assert!(pointers <= entries, "{pointers} pointers of {entries} entries");
        let dying = self.dying(inputs, target).min(entries);
        collect::part(dying, pointers.min(entries), entries.max(1))
    }

    /// The value tables that lie where more than the limit overlap.
    fn crowded(&self, met: &MetTables<'_>) -> Vec<ValueTableId> {
        let limit = self.limits.value_groups_max;
        if met.len() <= limit {
            return Vec::new();
        }
        let collation = &self.shape.collation;
        let mut by_start: Vec<(ValueTableId, &ExtentMeta)> =
            met.iter().map(|(number, met)| (*number, met.meta)).collect();
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
}
