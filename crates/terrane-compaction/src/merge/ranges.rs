//! The range deletes of a merge: which entries they hide, and which of them the output must contain.
//!
//! Steps: 1. the range deletes of all inputs and of memory become *fragments* (`fragments.rs`);
//! 2. a version is dropped if a fragment has a newer number in its stripe; an extent or a block is skipped
//!    without reading if that holds for all of its versions; 3. a number *survives* over keys that deeper
//!    levels may hold, and where versions that it hides stay for a snapshot.

use std::ops::{Bound, Range};

use terrane_base::{Collation, Result, SeqNo, verify};
use terrane_format::extent::ExtentMeta;
use terrane_format::range_deletes::Fragment;

use crate::compactor::ExtentSource;
use crate::fragments::{add, fragmented};
use crate::job::JobSpec;
use crate::range::KeyRange;

/// A block under at most this many fragments may be copied: it cannot be cut, so all of them go into its
/// extent.
const FRAGMENTS_OVER_BLOCK_MAX: usize = 64;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Ranges {
    /// In key order.
    fragments: Vec<Fragment>,
    /// Live snapshots, ascending.
    snapshots: Vec<SeqNo>,
    /// Key order of the table.
    collation: Collation,
    /// The first fragment that ends after the last queried key; keys ascend.
    at: usize,
}

impl Ranges {
    /// Collects those of a job's inputs and of `memory`, which may overlap and repeat.
    pub(super) fn gather(
        spec: &JobSpec,
        extents: &dyn ExtentSource,
        mut memory: Vec<Fragment>,
    ) -> Result<Ranges> {
        for meta in spec.inputs.iter().flat_map(|input| &input.extents) {
            if meta.range_deletes.is_some() {
                let extent = extents.extent(meta)?;
                let fragments = extent.read_range_deletes()?.unwrap_or_default();
                memory.extend(fragments.all().iter().cloned());
            }
        }
        let mut snapshots = spec.snapshots.clone();
        snapshots.sort_unstable();
        let collation = spec.collation().clone();
        let fragments = fragmented(&memory, &snapshots, &collation);
        verify!(
            !collation.is_bytes() || fragments.is_sorted_by(|a, b| a.end <= b.start),
            "fragments overlap"
        );
        Ok(Ranges { fragments, snapshots, collation, at: 0 })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    /// Returns true if a range delete hides version `seq` of `key` from every reader. Queried keys ascend.
    #[inline]
    pub(super) fn hides(&mut self, key: &[u8], seq: SeqNo) -> bool {
        while self.fragments.get(self.at).is_some_and(|fragment| self.collation.le(&fragment.end, key)) {
            self.at += 1;
        }
        let over = self.fragments.get(self.at).filter(|fragment| self.collation.le(&fragment.start, key));
        over.and_then(|fragment| fragment.next_above(seq)).is_some_and(|by| self.is_one_stripe(seq, by))
    }

    /// Returns true if everything with keys `first` to `last` and numbers `seq_min` to `seq_max` is hidden
    /// from every reader.
    pub(super) fn hide_all(&self, first: &[u8], last: &[u8], seq_min: SeqNo, seq_max: SeqNo) -> bool {
        debug_assert!(self.snapshots.is_sorted(), "a version that a snapshot sees would be hidden from it");
        let mut reached = first;
        for fragment in &self.fragments[self.over(first, last)] {
            let by = fragment.next_above(seq_max).filter(|by| self.is_one_stripe(seq_min, *by));
            if self.collation.lt(reached, &fragment.start) || by.is_none() {
                return false;
            }
            reached = &fragment.end;
        }
        self.collation.lt(last, reached)
    }

    /// Returns true if some entries with keys `first` to `last` and numbers from `seq_min` on may be hidden,
    /// or if a block with these keys is under too many fragments.
    pub(super) fn forbid_copy(&self, first: &[u8], last: &[u8], seq_min: SeqNo) -> bool {
        let over = &self.fragments[self.over(first, last)];
        over.len() > FRAGMENTS_OVER_BLOCK_MAX
            || over.iter().any(|fragment| fragment.next_above(seq_min).is_some())
    }

    /// Returns true if a fragment has keys in `first` to `last`, or ends directly before: then an extent with
    /// these keys is not re-linked.
    pub(super) fn touch(&self, first: &[u8], last: &[u8]) -> bool {
        let next = self.fragments.partition_point(|fragment| self.collation.lt(&fragment.end, first));
        self.fragments.get(next).is_some_and(|fragment| self.collation.le(&fragment.start, last))
    }

    /// The range deletes of the output, in key order.
    pub(super) fn surviving(&self, spec: &JobSpec) -> Vec<Fragment> {
        let collation = &self.collation;
        let mut survivors: Vec<Fragment> = Vec::new();
        for fragment in &self.fragments {
            let first = spec.below.partition_point(|range| range.ends_before(&fragment.start));
            let kept = self.kept_for_snapshots(spec, fragment);
            let mut from = fragment.start.clone();
            for range in &spec.below[first..] {
                if collation.le(&fragment.end, &range.start) {
                    break;
                }
                let start = collation.max(&range.start, &from).clone();
                add(&mut survivors, (&from, &start), &kept, collation);
                let end = end_of(range).filter(|end| collation.lt(end, &fragment.end));
                from = end.unwrap_or_else(|| fragment.end.clone());
                add(&mut survivors, (&start, &from), &fragment.seqs, collation);
            }
            add(&mut survivors, (&from, &fragment.end), &kept, collation);
        }
        verify!(
            !collation.is_bytes() || survivors.is_sorted_by(|a, b| a.end <= b.start),
            "survivors overlap"
        );
        survivors
    }

    /// The numbers of a fragment that hide something from some readers even if nothing is deeper.
    fn kept_for_snapshots(&self, spec: &JobSpec, fragment: &Fragment) -> Vec<SeqNo> {
        if self.snapshots.is_empty() {
            return Vec::new();
        }
        let is_over = |meta: &&ExtentMeta| {
            self.collation.lt(&meta.smallest, &fragment.end)
                && self.collation.le(&fragment.start, &meta.largest)
        };
        let metas = spec.inputs.iter().flat_map(|input| &input.extents).filter(is_over);
        let oldest = metas.map(|meta| meta.seq_min).min().unwrap_or_default();
        let is_kept = |seq: &&SeqNo| !self.is_one_stripe(oldest, **seq);
        fragment.seqs.iter().filter(is_kept).copied().collect()
    }

    /// The fragments that have keys in `first` to `last`.
    fn over(&self, first: &[u8], last: &[u8]) -> Range<usize> {
        let start = self.fragments.partition_point(|fragment| self.collation.le(&fragment.end, first));
        let rest = &self.fragments[start..];
        start..start + rest.partition_point(|fragment| self.collation.le(&fragment.start, last))
    }

    /// Returns true if every reader that sees `older` sees `newer`, too.
    fn is_one_stripe(&self, older: SeqNo, newer: SeqNo) -> bool {
        terrane_base::planted!(RangeDeleteForgetsSnapshots) || {
            let next = self.snapshots.partition_point(|snapshot| *snapshot < older);
            self.snapshots.get(next).is_none_or(|snapshot| *snapshot >= newer)
        }
    }
}

/// The exclusive end of a range; `None` if it has none.
fn end_of(range: &KeyRange) -> Option<Vec<u8>> {
    match &range.end {
        Bound::Included(end) => Some(range.collation.successor(end)),
        Bound::Excluded(end) => Some(end.clone()),
        Bound::Unbounded => None,
    }
}
