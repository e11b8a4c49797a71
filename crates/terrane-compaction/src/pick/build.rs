//! Makes a job of selected extents: the extents that they overlap, what lies below, and whether the job can
//! run now.

use std::ops::Range;

use terrane_base::{Collation, SeqNo, verify};
use terrane_format::manifest::Place;

use super::Picker;
use super::room::{extent_bytes_max, part_bytes};
use crate::job::{Grandparent, Input, JobKind, JobSpec, OutputSettings};
use crate::range::{Hull, KeyRange};
use crate::shape::{LevelView, bytes_of, overlapping, overlapping_range};

/// A list of more ranges below a job is replaced by one range, and a longer list of grandparents is left out:
/// a spec stays small even for a level of 500,000 extents.
const LISTED_MAX: usize = 1024;

/// Extents of one level or run, by index.
#[derive(Clone)]
pub(super) struct Slice<'a> {
    pub(super) place: Place,
    pub(super) level: &'a dyn LevelView,
    pub(super) range: Range<usize>,
}

impl<'a> Slice<'a> {
    pub(super) fn add_to(&self, hull: &mut Hull<'a>) {
        debug_assert!(
            self.range.end <= self.level.len(),
            "extents {:?} are some of the level's {}",
            self.range,
            self.level.len()
        );
        // Extents are in order: the first and the last bound them all.
        if let Some(last) = self.range.clone().next_back() {
            hull.add(self.level.meta(self.range.start));
            hull.add(self.level.meta(last));
        }
    }
}

/// The extents of a job, before its spec is built.
pub(super) struct JobDraft<'a> {
    pub(super) kind: JobKind,
    /// Newest first.
    pub(super) slices: Vec<Slice<'a>>,
    pub(super) target: u8,
    pub(super) drops_deletes: bool,
    pub(super) rewrites: bool,
}

impl<'a> Picker<'a> {
    pub(super) fn slice(&self, place: Place, range: Range<usize>) -> Slice<'a> {
        Slice { place, level: self.shape.view(place), range }
    }

    /// The extents of a level or run that overlap a hull.
    pub(super) fn slice_over(&self, place: Place, hull: Hull<'a>) -> Slice<'a> {
        let level = self.shape.view(place);
        let range = hull.bounds().map_or(0..0, |(first, last)| overlapping(level, first, last));
        Slice { place, level, range }
    }

    /// The job, if it has inputs and no running job holds what it needs.
    pub(super) fn build(&self, draft: JobDraft<'a>) -> Option<JobSpec> {
        debug_assert!(draft.target > 0, "a job writes into a level");
        let mut hull = Hull::default();
        draft.slices.iter().for_each(|slice| slice.add_to(&mut hull));
        self.build_over(draft, hull.to_range()?)
    }

    /// As [`Picker::build`], for an output that may have more keys than the inputs.
    pub(super) fn build_over(&self, draft: JobDraft<'a>, range: KeyRange) -> Option<JobSpec> {
        debug_assert!(draft.target > 0, "a job has a level as its target");
        if !self.is_free(&draft.slices, draft.target, &range) {
            return None;
        }
        let inputs = draft.slices.iter().filter(|slice| !slice.range.is_empty());
        let input = |slice: &Slice<'_>| Input {
            place: slice.place,
            extents: slice.range.clone().map(|index| slice.level.meta(index).clone()).collect(),
        };
        // Range deletes that were collected must not be divided again.
        let is_gather = draft.kind == JobKind::Gather;
        let grandparents = if is_gather { Vec::new() } else { self.grandparents(&draft, &range) };
        let inputs: Vec<Input> = inputs.map(input).collect();
        // What only moves is re-linked, which a job in parts does not do.
        let target = Place::Level(draft.target);
        let replaces = inputs.iter().any(|input| input.place == target);
        let rises = inputs.iter().any(|input| input.is_below(target));
        let has_parts = replaces && (!rises || terrane_base::planted!(PartOfRisingJob));
        let part_bytes = if has_parts { part_bytes(draft.kind, self.shape.room_bytes) } else { u64::MAX };
        let spec = JobSpec {
            kind: draft.kind,
            request: None,
            table: self.shape.table,
            values: self.values_of(draft.kind, &inputs, draft.target),
            mended: None,
            inputs,
            target,
            below: self.below(draft.target, &draft.slices, &range),
            below_seq_max: self.below_seq_max(draft.target, &draft.slices, &range),
            grandparents,
            range,
            grandparent_bytes_max: self.limits.grandparent_bytes_max,
            snapshots: self.shape.snapshots.to_vec(),
            output: self.output_for(draft.target),
            drops_deletes: draft.drops_deletes,
            rewrites: draft.rewrites,
            part_bytes,
            extent_bytes_max: extent_bytes_max(self.shape.room_bytes),
        };
        verify!(spec.check());
        Some(spec)
    }

    /// How extents of a level are encoded: as those of the last level if no level is, or will be, deeper.
    pub(super) fn output_for(&self, number: u8) -> OutputSettings {
        let is_last = number >= self.targets.depth.min(self.shape.deepest());
        OutputSettings::new(self.limits, is_last, self.shape.exceeds_memory)
    }

    /// Returns true if the last extent of a slice has the compression that it would get in a level. Called
    /// for every prefix of a growing slice, it holds for all of it.
    pub(super) fn is_as_written(&self, slice: &Slice<'_>, target: u8) -> bool {
        let compression = self.output_for(target).compression;
        let last = slice.range.clone().next_back();
        last.is_none_or(|last| slice.level.meta(last).compression == compression)
    }

    /// Returns true if no running job holds what a job over these slices needs; see [`JobSpec::claim`].
    pub(super) fn is_free(&self, slices: &[Slice<'a>], target: u8, range: &KeyRange) -> bool {
        debug_assert!(target > 0, "a job writes into a level");
        let table = self.shape.table;
        let free = |place, range: &KeyRange| self.claims.is_free(table, place, range);
        let slice_is_free = |slice: &Slice<'a>| {
            let mut hull = Hull::default();
            slice.add_to(&mut hull);
            slice.place == Place::Level(target)
                || hull.to_range().is_none_or(|range| free(slice.place, &range))
        };
        self.claims.is_idle(table) || (free(Place::Level(target), range) && slices.iter().all(slice_is_free))
    }

    /// The keys within `range` that levels deeper than `target` may hold after the inputs were removed.
    fn below(&self, target: u8, slices: &[Slice<'a>], range: &KeyRange) -> Vec<KeyRange> {
        let mut ranges: Vec<(&[u8], &[u8])> = Vec::new();
        for number in target + 1..=self.shape.deepest() {
            let place = Place::Level(number);
            let over = self.slice(place, overlapping_range(self.shape.view(place), range));
            let input =
                slices.iter().find(|slice| slice.place == place).map_or(0..0, |slice| slice.range.clone());
            let stays = |index: &usize| !input.contains(index);
            if over.range.len() > LISTED_MAX {
                let mut all = Hull::default();
                over.add_to(&mut all);
                ranges.extend(all.bounds());
                continue;
            }
            let metas = over.range.clone().filter(stays).map(|index| over.level.meta(index));
            ranges.extend(metas.map(|meta| (meta.smallest.as_slice(), meta.largest.as_slice())));
        }
        unite(ranges, &self.shape.collation)
    }

    /// The greatest number within `range` in levels deeper than `target` after the inputs were removed.
    fn below_seq_max(&self, target: u8, slices: &[Slice<'a>], range: &KeyRange) -> SeqNo {
        let numbers = (target + 1..=self.shape.deepest()).flat_map(|number| {
            let place = Place::Level(number);
            let over = self.slice(place, overlapping_range(self.shape.view(place), range));
            let input =
                slices.iter().find(|slice| slice.place == place).map_or(0..0, |slice| slice.range.clone());
            let stays = over.range.filter(move |index| !input.contains(index));
            stays.map(move |index| over.level.meta(index).seq_max)
        });
        numbers.max().unwrap_or_default()
    }

    fn grandparents(&self, draft: &JobDraft<'a>, range: &KeyRange) -> Vec<Grandparent> {
        let place = Place::Level(draft.target + 1);
        let over = self.slice(place, overlapping_range(self.shape.view(place), range));
        // Range deletes are cut at their borders, mostly the long ones: of many grandparents every n-th is
        // listed.
        let is_ranged = draft.slices.iter().any(|slice| {
            slice.level.next_ranged(slice.range.start).is_some_and(|next| slice.range.contains(&next))
        });
        if over.range.len() > LISTED_MAX && !is_ranged {
            return Vec::new();
        }
        let together = over.range.len().div_ceil(LISTED_MAX).max(1);
        debug_assert!(over.range.len() <= together * LISTED_MAX, "the list stays short");
        let groups = over.range.clone().step_by(together);
        let group = |first: usize| {
            let group = first..(first + together).min(over.range.end);
            let largest = over.level.meta(group.end - 1).largest.clone();
            Grandparent { largest, bytes: bytes_of(over.level, group) }
        };
        groups.map(group).collect()
    }
}

/// Sorted, disjoint ranges that cover the same keys.
fn unite(mut ranges: Vec<(&[u8], &[u8])>, collation: &Collation) -> Vec<KeyRange> {
    collation.sort_by_key(&mut ranges, |range| range.0);
    let mut united: Vec<(&[u8], &[u8])> = Vec::new();
    for (first, last) in ranges {
        match united.last_mut() {
            Some((_, end)) if collation.le(first, end) => *end = collation.max(last, *end),
            _ => united.push((first, last)),
        }
    }
    let range = |(first, last)| KeyRange::closed(first, last).ordered(collation);
    united.into_iter().map(range).collect()
}
