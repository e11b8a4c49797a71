//! What the records of a batch do to each key. The index holds keys and where their records lie, and the values stay in the batch.
//!
//! Invariants:
//! * A key has its records in their order. A range delete puts a mark behind those of each key that it hides.
//! * `deleted` is the union of `ranges`. A key whose records reach back to no mark was written after every range that holds it, or lies
//!   in none.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::batch::Change;

/// One thing that was done to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// By the record at this place.
    Record(usize),
    /// A range that holds it was deleted.
    RangeDelete,
}

/// What was done to a key, the last apart: most keys are written once.
#[derive(Debug)]
struct Entry {
    last: Done,
    earlier: Vec<Done>,
}

impl Entry {
    fn push(&mut self, done: Done) {
        self.earlier.push(std::mem::replace(&mut self.last, done));
    }
}

/// Ranges of keys, disjoint: each from its start to before its end.
#[derive(Debug, Default)]
struct Ranges(BTreeMap<Vec<u8>, Vec<u8>>);

impl Ranges {
    fn add(&mut self, start: &[u8], end: &[u8]) {
        let (mut start, mut end) = (start.to_vec(), end.to_vec());
        while let Some((from, to)) = self.0.range(..=end.clone()).next_back()
            && *to >= start
        {
            let from = from.clone();
            let to = self.0.remove(&from).unwrap_or_default();
            start = start.min(from);
            end = end.max(to);
        }
        self.0.insert(start, end);
    }

    fn around(&self, key: &[u8]) -> Option<(&[u8], &[u8])> {
        let before = self.0.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back();
        before.filter(|(_, end)| key < end.as_slice()).map(|(start, end)| (&**start, &**end))
    }
}

/// What is done to one column family.
#[derive(Debug, Default)]
struct FamilyIndex {
    keys: BTreeMap<Vec<u8>, Entry>,
    ranges: Vec<(Vec<u8>, Vec<u8>)>,
    deleted: Ranges,
}

/// The index of a batch.
#[derive(Debug, Default)]
pub(super) struct Index {
    families: BTreeMap<u32, FamilyIndex>,
}

/// The key of a record of one key.
fn key_of<'b>(change: &Change<'b>) -> Option<&'b [u8]> {
    match change {
        Change::Put(key, _) | Change::Merge(key, _) | Change::Delete(key) | Change::SingleDelete(key) => {
            Some(key)
        }
        Change::RangeDelete(..) | Change::LogData(_) => None,
    }
}

impl Index {
    pub(super) fn clear(&mut self) {
        self.families.clear();
    }

    /// Notes the record at a place.
    pub(super) fn note(&mut self, family: u32, change: &Change<'_>, at: usize) {
        let index = self.families.entry(family).or_default();
        if let Some(key) = key_of(change) {
            match index.keys.get_mut(key) {
                Some(entry) => entry.push(Done::Record(at)),
                None => {
                    let entry = Entry { last: Done::Record(at), earlier: Vec::new() };
                    index.keys.insert(key.to_vec(), entry);
                }
            }
        }
        if let Change::RangeDelete(start, end) = change
            && start < end
        {
            for (_, entry) in index.keys.range_mut::<[u8], _>(between(start, end)) {
                entry.push(Done::RangeDelete);
            }
            index.deleted.add(start, end);
            index.ranges.push((start.to_vec(), end.to_vec()));
        }
    }

    /// Takes back the record that was noted last.
    pub(super) fn take_back(&mut self, family: u32, change: &Change<'_>) {
        let Some(index) = self.families.get_mut(&family) else { return };
        if let Some(key) = key_of(change)
            && let Some(entry) = index.keys.get_mut(key)
        {
            match entry.earlier.pop() {
                Some(before) => entry.last = before,
                None => drop(index.keys.remove(key)),
            }
        }
        if let Change::RangeDelete(start, end) = change
            && start < end
        {
            for (_, entry) in index.keys.range_mut::<[u8], _>(between(start, end)) {
                if let Some(before) = entry.earlier.pop() {
                    entry.last = before;
                }
            }
            index.ranges.pop();
            index.deleted = Ranges::default();
            index.ranges.iter().for_each(|(start, end)| index.deleted.add(start, end));
        }
    }

    /// What was done to a key, newest first; nothing if it has no record.
    pub(super) fn done(&self, family: u32, key: &[u8]) -> impl Iterator<Item = Done> {
        let entry = self.families.get(&family).and_then(|index| index.keys.get(key));
        entry
            .into_iter()
            .flat_map(|entry| std::iter::once(&entry.last).chain(entry.earlier.iter().rev()))
            .copied()
    }

    /// The deleted range that holds a key: its start, and what lies behind it.
    pub(super) fn deleted_around(&self, family: u32, key: &[u8]) -> Option<(&[u8], &[u8])> {
        self.families.get(&family)?.deleted.around(key)
    }

    /// The first key within bounds that has a record.
    pub(super) fn first(&self, family: u32, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Option<&[u8]> {
        let keys = &self.families.get(&family)?.keys;
        let (key, _) = keys.range::<[u8], _>((lower, Bound::Unbounded)).next()?;
        let is_within = match upper {
            Bound::Excluded(upper) => key.as_slice() < upper,
            Bound::Included(upper) => key.as_slice() <= upper,
            Bound::Unbounded => true,
        };
        is_within.then_some(key)
    }

    /// The last key within bounds that has a record.
    pub(super) fn last(&self, family: u32, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Option<&[u8]> {
        let keys = &self.families.get(&family)?.keys;
        let (key, _) = keys.range::<[u8], _>((Bound::Unbounded, upper)).next_back()?;
        let is_within = match lower {
            Bound::Excluded(lower) => key.as_slice() > lower,
            Bound::Included(lower) => key.as_slice() >= lower,
            Bound::Unbounded => true,
        };
        is_within.then_some(key)
    }
}

fn between<'a>(start: &'a [u8], end: &'a [u8]) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
    (Bound::Included(start), Bound::Excluded(end))
}
