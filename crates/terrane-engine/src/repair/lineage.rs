//! Which extents took the place of others: what a merge dropped does not come back with its inputs.
//!
//! An extent says which extents were merged into it, and for which keys: it *replaced* them there. Of such a
//! key, a version of a replaced extent is left out if the one that replaced it does not have the version
//! any more: it was dropped, because it was deleted or written over. That holds whether the result of the
//! job was ever published: all that the job had seen by then is known to the extents that it left.
//!
//! A version may have been copied by another job before. So all extents that have it must be replaced at the
//! key, or be older than the one that dropped it; if one of them is not, it stays.
//!
//! Nothing is left out where a block that may have had the key cannot be read.

use std::collections::BTreeMap;

use terrane_base::{Collation, SeqNo};
use terrane_format::extent::{Replaced, mark_of};

use crate::repair::found::Found;
use crate::repair::origins::{Age, Family};
use crate::repair::versions::Version;

/// The age of an extent, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// Before extents said where they come from.
    Long,
    /// Then.
    At(Age),
    /// It cannot be read.
    Unknown,
}

#[derive(Debug)]
struct Known {
    written: Written,
    replaced: Vec<Replaced>,
    /// The extents that took its place for some keys, each with the entry that says so.
    by: Vec<(usize, usize)>,
}

/// The extents of a table, and what each took the place of.
#[derive(Debug, Default)]
pub(super) struct Lineage {
    extents: Vec<Known>,
    /// True if an extent was replaced that is there still.
    has_replaced: bool,
}

impl Lineage {
    /// The lineage of extents, which are known by their place in the list.
    pub(super) fn of<'f>(found: impl Iterator<Item = &'f Found>, family: &Family) -> Lineage {
        let mut lineage = Lineage::default();
        let mut places: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (place, Found { meta, origin, .. }) in found.enumerate() {
            places.entry(mark_of(meta)).or_default().push(place);
            let written = match origin {
                Some(origin) => Written::At(family.age(origin)),
                None if meta.has_origin() => Written::Unknown,
                None => Written::Long,
            };
            let replaced = origin.as_ref().map(|origin| origin.replaced.clone()).unwrap_or_default();
            lineage.extents.push(Known { written, replaced, by: Vec::new() });
        }
        for by in 0..lineage.extents.len() {
            for entry in 0..lineage.extents[by].replaced.len() {
                let marks = lineage.extents[by].replaced[entry].marks.clone();
                let met = marks.iter().filter_map(|mark| places.get(mark)).flatten();
                for place in met.filter(|place| **place != by) {
                    lineage.extents[*place].by.push((by, entry));
                    lineage.has_replaced = true;
                }
            }
        }
        let is_of_others = |(place, known): (usize, &Known)| known.by.iter().all(|(by, _)| *by != place);
        debug_assert!(lineage.extents.iter().enumerate().all(is_of_others), "an extent replaced itself");
        lineage
    }

    /// Leaves out the versions of `key` that were dropped, of all that there are. Returns how many.
    pub(super) fn leave_out(&self, key: &[u8], collation: &Collation, versions: &mut Vec<Version>) -> u64 {
        debug_assert!(
            versions.iter().all(|version| version.of.place < self.extents.len()),
            "a version is of an extent of the lineage"
        );
        if !self.has_replaced || versions.is_empty() {
            return 0;
        }
        let dropped: Vec<SeqNo> = versions
            .iter()
            .filter(|version| {
                self.replacing(version.of.place, key, collation)
                    .any(|by| self.dropped(version, by, key, collation, versions))
            })
            .map(Version::seq)
            .collect();
        let before = versions.len();
        versions.retain(|version| !dropped.contains(&version.seq()));
        (before - versions.len()) as u64
    }

    /// The extents that took the place of another one at `key`.
    fn replacing<'k>(
        &'k self,
        extent: usize,
        key: &'k [u8],
        collation: &'k Collation,
    ) -> impl Iterator<Item = usize> + 'k {
        let by = self.extents[extent].by.iter().copied();
        by.filter(|(by, entry)| self.extents[*by].replaced[*entry].covers(key, collation)).map(|(by, _)| by)
    }

    /// Returns true if the extent `by`, which took the place of the one that has the version, dropped it for
    /// good.
    fn dropped(
        &self,
        version: &Version,
        by: usize,
        key: &[u8],
        collation: &Collation,
        versions: &[Version],
    ) -> bool {
        debug_assert!(
            versions.iter().any(|other| other.seq() == version.seq()),
            "a version is one of those of its key"
        );
        let mut same = versions.iter().filter(|other| other.seq() == version.seq());
        same.all(|other| {
            self.replacing(other.of.place, key, collation).next().is_some()
                || self.is_older(other.of.place, by)
        })
    }

    fn is_older(&self, extent: usize, than: usize) -> bool {
        match (self.extents[extent].written, self.extents[than].written) {
            (Written::Long, Written::At(_)) => true,
            (Written::At(age), Written::At(than)) => age < than,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use terrane_base::{RecordKind, SeqKind};

    use crate::repair::versions::Whose;

    /// Extents by the edit after which they were written (0: long ago), of which each names those before it
    /// that it replaced from "f" to "q".
    fn lineage(extents: &[(u64, &[usize])]) -> Lineage {
        let known = extents.iter().enumerate().map(|(by, (edit, _))| Known {
            written: if *edit == 0 { Written::Long } else { Written::At((0, *edit, 0)) },
            replaced: vec![Replaced { from: b"f".to_vec(), to: b"q".to_vec(), marks: Vec::new() }],
            by: extents
                .iter()
                .enumerate()
                .filter(|(_, of)| of.1.contains(&by))
                .map(|(at, _)| (at, 0))
                .collect(),
        });
        Lineage { extents: known.collect(), has_replaced: true }
    }

    /// The versions, by extent and number, that stay of a key.
    fn kept(lineage: &Lineage, key: &str, versions: &[(usize, u64)]) -> Vec<(usize, u64)> {
        let version = |(place, seq): &(usize, u64)| Version {
            seq_kind: SeqKind::new(SeqNo(*seq), RecordKind::Put),
            value: Vec::new(),
            of: Whose { is_listed: false, place: *place },
            others: Vec::new(),
        };
        let mut versions: Vec<Version> = versions.iter().map(version).collect();
        let before = versions.len();
        let left_out = lineage.leave_out(key.as_bytes(), &Collation::BYTES, &mut versions);
        assert_eq!(before - versions.len(), left_out as usize);
        versions.iter().map(|version| (version.of.place, version.seq().0)).collect()
    }

    #[test]
    fn rows_dropped_by_a_merge_go_and_rows_it_kept_stay() {
        let merged = lineage(&[(3, &[]), (4, &[]), (9, &[0, 1])]);
        assert_eq!(kept(&merged, "key", &[(0, 5), (1, 7)]), [], "a delete was dropped with its row");
        assert_eq!(kept(&merged, "key", &[(0, 5), (1, 7), (2, 7)]), [(1, 7), (2, 7)]);
        let of_others = [(0, 5), (1, 7)];
        assert!(
            ["e", "q"].iter().all(|key| kept(&merged, key, &of_others) == of_others),
            "beyond its stretch"
        );
    }

    #[test]
    fn a_copy_goes_if_it_is_older_than_the_merge_that_dropped_it() {
        let of = |edit| lineage(&[(3, &[]), (edit, &[]), (9, &[0])]);
        assert_eq!(kept(&of(8), "key", &[(0, 5), (1, 5)]), []);
        assert_eq!(kept(&of(0), "key", &[(0, 5), (1, 5)]), [], "it is of a time before origins");
        assert_eq!(
            kept(&of(9), "key", &[(0, 5), (1, 5)]),
            [(0, 5), (1, 5)],
            "no record says which came first"
        );
        assert_eq!(kept(&of(12), "key", &[(0, 5), (1, 5)]), [(0, 5), (1, 5)], "it was there still");
    }
}
