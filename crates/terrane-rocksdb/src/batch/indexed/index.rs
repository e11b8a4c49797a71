//! What the records of a batch do to each key. The index holds keys and where their records lie, and the
//! values stay in the batch.
//!
//! Each column family has its own order of keys, that of its comparator if it has one.
//!
//! Invariants:
//! * A key has its records in their order. A range delete puts a mark behind those of each key that it hides.
//! * `deleted` is the union of `ranges`. A key whose records reach back to no mark was written after every
//!   range that holds it, or lies in none.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::batch::indexed::key::{Key, Ordered, Sought};
use crate::batch::layout::Change;
use crate::callbacks::order::Order;

/// One thing that was done to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
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
struct Ranges(BTreeMap<Key, Vec<u8>>);

impl Ranges {
    fn add(&mut self, start: &[u8], end: &[u8], order: &Order) {
        let (mut start, mut end) = (Key::new(start, order), end.to_vec());
        while let Some((from, to)) = self.last_to(Bound::Included(&end), order)
            && order.cmp(to, &start.bytes).is_ge()
        {
            let from = from.clone();
            // A comparator that contradicts itself does not find it again.
            let Some(to) = self.0.remove(&from) else { break };
            start = start.min(from);
            if order.cmp(&to, &end).is_gt() {
                end = to;
            }
        }
        self.0.insert(start, end);
    }

    fn last_to(&self, upper: Bound<&[u8]>, order: &Order) -> Option<(&Key, &Vec<u8>)> {
        last_to(&self.0, upper, order)
    }

    fn around(&self, key: &[u8], order: &Order) -> Option<(&[u8], &[u8])> {
        let before = self.last_to(Bound::Included(key), order);
        before.filter(|(_, end)| order.cmp(key, end).is_lt()).map(|(start, end)| (&*start.bytes, &**end))
    }
}

/// What is done to one column family.
#[derive(Debug, Default)]
struct FamilyIndex {
    order: Order,
    keys: BTreeMap<Key, Entry>,
    ranges: Vec<(Vec<u8>, Vec<u8>)>,
    deleted: Ranges,
}

impl FamilyIndex {
    fn new(order: &Order) -> FamilyIndex {
        FamilyIndex { order: order.clone(), ..FamilyIndex::default() }
    }

    fn entry(&mut self, key: &[u8]) -> Option<&mut Entry> {
        self.keys.get_mut(&Sought(key, &self.order) as &dyn Ordered)
    }

    /// Calls `visit` with what was done to each key of a range.
    fn within(&mut self, start: &[u8], end: &[u8], mut visit: impl FnMut(&mut Entry)) {
        let order = self.order.clone();
        let sought = Sought(start, &order);
        // One end only: a map panics where a comparator contradicts itself between two.
        let from = (Bound::Included(&sought as &dyn Ordered), Bound::Unbounded);
        for (key, entry) in self.keys.range_mut::<dyn Ordered, _>(from) {
            if order.cmp(&key.bytes, end).is_ge() {
                return;
            }
            visit(entry);
        }
    }

    fn note(&mut self, change: &Change<'_>, at: usize) {
        if let Some(key) = key_of(change) {
            match self.entry(key) {
                Some(entry) => entry.push(Done::Record(at)),
                None => {
                    let entry = Entry { last: Done::Record(at), earlier: Vec::new() };
                    self.keys.insert(Key::new(key, &self.order), entry);
                }
            }
        }
        if let Change::RangeDelete(start, end) = change
            && self.order.cmp(start, end).is_lt()
        {
            self.within(start, end, |entry| entry.push(Done::RangeDelete));
            self.deleted.add(start, end, &self.order);
            self.ranges.push((start.to_vec(), end.to_vec()));
        }
    }

    fn take_back(&mut self, change: &Change<'_>) {
        if let Some(key) = key_of(change)
            && let Some(entry) = self.entry(key)
        {
            match entry.earlier.pop() {
                Some(before) => entry.last = before,
                None => drop(self.keys.remove(&Sought(key, &self.order) as &dyn Ordered)),
            }
        }
        if let Change::RangeDelete(start, end) = change
            && self.order.cmp(start, end).is_lt()
        {
            self.within(start, end, |entry| {
                if let Some(before) = entry.earlier.pop() {
                    entry.last = before;
                }
            });
            self.ranges.pop();
            self.deleted = Ranges::default();
            self.ranges.iter().for_each(|(start, end)| self.deleted.add(start, end, &self.order));
        }
    }
}

/// The index of a batch.
#[derive(Debug, Default)]
pub(crate) struct Index {
    families: BTreeMap<u32, FamilyIndex>,
    /// The order of families whose own order is not known.
    order: Order,
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
    /// An empty index; families have this order until [`Index::set_order`].
    pub(crate) fn new(order: Order) -> Index {
        Index { families: BTreeMap::new(), order }
    }

    pub(crate) fn clear(&mut self) {
        self.families.clear();
    }

    /// Has the keys of a family lie in this order; whether they lay in another one: then its records are to
    /// be noted anew.
    pub(crate) fn set_order(&mut self, family: u32, order: &Order) -> bool {
        match self.families.get_mut(&family) {
            Some(index) if index.order.is(order) => false,
            Some(index) => {
                *index = FamilyIndex::new(order);
                true
            }
            None => {
                if !self.order.is(order) {
                    self.families.insert(family, FamilyIndex::new(order));
                }
                false
            }
        }
    }

    /// Notes the record at a place.
    pub(crate) fn note(&mut self, family: u32, change: &Change<'_>, at: usize) {
        self.families.entry(family).or_insert_with(|| FamilyIndex::new(&self.order)).note(change, at);
    }

    /// Takes back the record that was noted last.
    pub(crate) fn take_back(&mut self, family: u32, change: &Change<'_>) {
        if let Some(index) = self.families.get_mut(&family) {
            index.take_back(change);
        }
    }

    /// What was done to a key, newest first; nothing if it has no record.
    pub(crate) fn done(&self, family: u32, key: &[u8]) -> impl Iterator<Item = Done> {
        let entry = self
            .families
            .get(&family)
            .and_then(|index| index.keys.get(&Sought(key, &index.order) as &dyn Ordered));
        entry
            .into_iter()
            .flat_map(|entry| std::iter::once(&entry.last).chain(entry.earlier.iter().rev()))
            .copied()
    }

    /// The deleted range that holds a key: its start, and what lies behind it.
    pub(crate) fn deleted_around(&self, family: u32, key: &[u8]) -> Option<(&[u8], &[u8])> {
        let index = self.families.get(&family)?;
        index.deleted.around(key, &index.order)
    }

    /// The first key within bounds that has a record.
    pub(crate) fn first(&self, family: u32, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Option<&[u8]> {
        let FamilyIndex { keys, order, .. } = self.families.get(&family)?;
        let sought = lower.map(|key| Sought(key, order));
        let lower = sought.as_ref().map(|sought| sought as &dyn Ordered);
        let (key, _) = keys.range::<dyn Ordered, _>((lower, Bound::Unbounded)).next()?;
        let is_within = match upper {
            Bound::Excluded(upper) => order.cmp(&key.bytes, upper).is_lt(),
            Bound::Included(upper) => order.cmp(&key.bytes, upper).is_le(),
            Bound::Unbounded => true,
        };
        is_within.then_some(&key.bytes)
    }

    /// The last key within bounds that has a record.
    pub(crate) fn last(&self, family: u32, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Option<&[u8]> {
        let FamilyIndex { keys, order, .. } = self.families.get(&family)?;
        let (key, _) = last_to(keys, upper, order)?;
        let is_within = match lower {
            Bound::Excluded(lower) => order.cmp(&key.bytes, lower).is_gt(),
            Bound::Included(lower) => order.cmp(&key.bytes, lower).is_ge(),
            Bound::Unbounded => true,
        };
        is_within.then_some(&key.bytes)
    }
}

/// The last key of a map up to a bound, and what it has.
fn last_to<'m, V>(map: &'m BTreeMap<Key, V>, upper: Bound<&[u8]>, order: &Order) -> Option<(&'m Key, &'m V)> {
    let sought = upper.map(|key| Sought(key, order));
    let upper = sought.as_ref().map(|sought| sought as &dyn Ordered);
    map.range::<dyn Ordered, _>((Bound::Unbounded, upper)).next_back()
}
