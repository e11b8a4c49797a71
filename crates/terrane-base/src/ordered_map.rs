//! A map whose key order is known at run time only: the order of bytes, or that of a comparator.
//!
//! In the order of bytes keys are compared as slices. Under a comparator each key is stored with its order,
//! because a `BTreeMap` calls the comparison of its keys only. Lookups take a borrowed key, without a copy.
//!
//! A comparator may contradict itself. Then a lookup may miss a key, but it never panics: a range is searched
//! by one end only, because a `BTreeMap` panics if the comparator, called again, puts the second end first.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, btree_map};
use std::ops::Bound;

use crate::Collation;

/// The order of the keys of a map.
pub trait Compare: Clone {
    /// How two keys relate; keys that are equal have the same bytes.
    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering;

    /// Returns true if keys are compared as bytes.
    fn is_bytes(&self) -> bool;
}

impl Compare for Collation {
    #[inline]
    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        self.cmp(left, right)
    }

    #[inline]
    fn is_bytes(&self) -> bool {
        Collation::is_bytes(self)
    }
}

/// See the [module](self). `K` holds the bytes of a key; maps that share keys with others have an
/// `Arc<[u8]>`.
#[derive(Clone, Debug)]
pub struct OrderedMap<V, K = Vec<u8>, O = Collation> {
    order: O,
    rows: Rows<V, K, O>,
}

#[derive(Clone, Debug)]
enum Rows<V, K, O> {
    /// By bytes.
    Bytes(BTreeMap<K, V>),
    /// By a comparator.
    Compared(BTreeMap<Kept<K, O>, V>),
}

impl<V, K: Borrow<[u8]> + Ord, O: Compare> OrderedMap<V, K, O> {
    /// Bytes of an entry under a comparator, without those that its key points at.
    pub const ENTRY_BYTES: usize = size_of::<(Kept<K, O>, V)>();

    /// An empty map of keys in this order.
    #[must_use]
    pub fn new(order: &O) -> Self {
        let rows =
            if order.is_bytes() { Rows::Bytes(BTreeMap::new()) } else { Rows::Compared(BTreeMap::new()) };
        OrderedMap { order: order.clone(), rows }
    }

    /// The order of its keys.
    #[must_use]
    pub fn order(&self) -> &O {
        &self.order
    }

    /// Its keys.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.rows {
            Rows::Bytes(map) => map.len(),
            Rows::Compared(map) => map.len(),
        }
    }

    /// Returns true if it has no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<&V> {
        match &self.rows {
            Rows::Bytes(map) => map.get(key),
            Rows::Compared(map) => map.get(&(key, &self.order) as &dyn Placed<O>),
        }
    }

    /// The value of a key, mutable.
    pub fn get_mut(&mut self, key: &[u8]) -> Option<&mut V> {
        match &mut self.rows {
            Rows::Bytes(map) => map.get_mut(key),
            Rows::Compared(map) => map.get_mut(&(key, &self.order) as &dyn Placed<O>),
        }
    }

    /// Gives a key a value; returns the one that it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match &mut self.rows {
            Rows::Bytes(map) => map.insert(key, value),
            Rows::Compared(map) => map.insert(Kept { key, order: self.order.clone() }, value),
        }
    }

    /// Removes a key; returns the value that it had.
    pub fn remove(&mut self, key: &[u8]) -> Option<V> {
        match &mut self.rows {
            Rows::Bytes(map) => map.remove(key),
            Rows::Compared(map) => map.remove(&(key, &self.order) as &dyn Placed<O>),
        }
    }

    /// The last key within an upper bound, and its value.
    #[must_use]
    pub fn last_within(&self, upper: Bound<&[u8]>) -> Option<(&K, &V)> {
        match &self.rows {
            Rows::Bytes(map) => map.range::<[u8], _>((Bound::Unbounded, upper)).next_back(),
            Rows::Compared(map) => {
                let place = upper.map(|key| (key, &self.order));
                let upper = place.as_ref().map(|place| place as &dyn Placed<O>);
                let mut within = map.range::<dyn Placed<O>, _>((Bound::Unbounded, upper));
                within.next_back().map(|(kept, value)| (&kept.key, value))
            }
        }
    }

    /// The first key within a lower bound, and its value.
    #[must_use]
    pub fn first_within(&self, lower: Bound<&[u8]>) -> Option<(&K, &V)> {
        match &self.rows {
            Rows::Bytes(map) => map.range::<[u8], _>((lower, Bound::Unbounded)).next(),
            Rows::Compared(map) => {
                let place = lower.map(|key| (key, &self.order));
                let lower = place.as_ref().map(|place| place as &dyn Placed<O>);
                let mut within = map.range::<dyn Placed<O>, _>((lower, Bound::Unbounded));
                within.next().map(|(kept, value)| (&kept.key, value))
            }
        }
    }

    /// Calls `visit` with the value of each key from `start` to before `end`, in order.
    pub fn visit_mut(&mut self, start: &[u8], end: &[u8], visit: impl FnMut(&mut V)) {
        let (lower, upper) = (Bound::Included(start), Bound::Excluded(end));
        match &mut self.rows {
            Rows::Bytes(_) if is_empty(&self.order, lower, upper) => {}
            Rows::Bytes(map) => {
                map.range_mut::<[u8], _>((lower, upper)).map(|(_, value)| value).for_each(visit)
            }
            Rows::Compared(map) => {
                let (place, order) = ((start, &self.order), &self.order);
                let lower = Bound::Included(&place as &dyn Placed<O>);
                let rows = map.range_mut::<dyn Placed<O>, _>((lower, Bound::Unbounded));
                let within = rows.take_while(|(kept, _)| order.compare(kept.key.borrow(), end).is_lt());
                within.map(|(_, value)| value).for_each(visit);
            }
        }
    }

    /// All keys with their values, in order.
    pub fn iter(&self) -> Range<'_, V, K, O> {
        self.range(Bound::Unbounded, Bound::Unbounded)
    }

    /// The keys within bounds with their values, in order.
    pub fn range(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Range<'_, V, K, O> {
        match &self.rows {
            Rows::Bytes(_) if is_empty(&self.order, lower, upper) => Range::Found(Vec::new().into_iter()),
            Rows::Bytes(map) => Range::Bytes(map.range::<[u8], _>((lower, upper))),
            Rows::Compared(map) => {
                let place = lower.map(|key| (key, &self.order));
                let lower = place.as_ref().map(|place| place as &dyn Placed<O>);
                let rows = map.range::<dyn Placed<O>, _>((lower, Bound::Unbounded));
                let upper = upper.map(<[u8]>::to_vec);
                Range::Ahead(Ahead { rows, upper, order: &self.order, is_over: false })
            }
        }
    }
}

/// Returns true if no key can lie between two bounds.
pub fn is_empty(order: &impl Compare, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
    match (lower, upper) {
        (Bound::Included(lower), Bound::Included(upper)) => order.compare(upper, lower).is_lt(),
        (Bound::Unbounded, Bound::Excluded(upper)) => upper.is_empty(),
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (
            Bound::Included(lower) | Bound::Excluded(lower),
            Bound::Included(upper) | Bound::Excluded(upper),
        ) => order.compare(upper, lower).is_le(),
    }
}

/// Returns true if a key lies within bounds.
pub fn is_within(order: &impl Compare, key: &[u8], lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
    let is_above = match lower {
        Bound::Included(lower) => order.compare(key, lower).is_ge(),
        Bound::Excluded(lower) => order.compare(key, lower).is_gt(),
        Bound::Unbounded => true,
    };
    is_above
        && match upper {
            Bound::Included(upper) => order.compare(key, upper).is_le(),
            Bound::Excluded(upper) => order.compare(key, upper).is_lt(),
            Bound::Unbounded => true,
        }
}

/// Keys with their values, in order, from both ends.
#[derive(Debug)]
pub enum Range<'m, V, K, O> {
    /// Keys in the order of bytes.
    Bytes(btree_map::Range<'m, K, V>),
    /// Keys under a comparator, read from the front until the range ends.
    Ahead(Ahead<'m, V, K, O>),
    /// The remaining rows: under a comparator the end of a range is found from the front, so the first read
    /// from the back collects all rows.
    Found(std::vec::IntoIter<(&'m K, &'m V)>),
}

/// The rows of a range from its lower end on, under a comparator.
#[derive(Debug)]
pub struct Ahead<'m, V, K, O> {
    rows: btree_map::Range<'m, Kept<K, O>, V>,
    upper: Bound<Vec<u8>>,
    order: &'m O,
    is_over: bool,
}

impl<'m, V, K: Borrow<[u8]>, O: Compare> Iterator for Ahead<'m, V, K, O> {
    type Item = (&'m K, &'m V);

    fn next(&mut self) -> Option<Self::Item> {
        let (kept, value) = self.rows.next().filter(|_| !self.is_over)?;
        self.is_over = match &self.upper {
            Bound::Included(upper) => self.order.compare(kept.key.borrow(), upper).is_gt(),
            Bound::Excluded(upper) => self.order.compare(kept.key.borrow(), upper).is_ge(),
            Bound::Unbounded => false,
        };
        (!self.is_over).then_some((&kept.key, value))
    }
}

impl<'m, V, K: Borrow<[u8]>, O: Compare> Iterator for Range<'m, V, K, O> {
    type Item = (&'m K, &'m V);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Range::Bytes(rows) => rows.next(),
            Range::Ahead(rows) => rows.next(),
            Range::Found(rows) => rows.next(),
        }
    }
}

impl<V, K: Borrow<[u8]>, O: Compare> DoubleEndedIterator for Range<'_, V, K, O> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if let Range::Ahead(rows) = self {
            let found: Vec<_> = rows.collect();
            *self = Range::Found(found.into_iter());
        }
        match self {
            Range::Bytes(rows) => rows.next_back(),
            Range::Found(rows) => rows.next_back(),
            Range::Ahead(_) => unreachable!("collected above"),
        }
    }
}

/// A key and what orders it.
#[derive(Clone, Debug)]
struct Kept<K, O> {
    key: K,
    order: O,
}

/// A key in its order, wherever it lies.
trait Placed<O> {
    /// The key and what orders it.
    fn placed(&self) -> (&[u8], &O);
}

impl<K: Borrow<[u8]>, O> Placed<O> for Kept<K, O> {
    fn placed(&self) -> (&[u8], &O) {
        (self.key.borrow(), &self.order)
    }
}

impl<O> Placed<O> for (&[u8], &O) {
    fn placed(&self) -> (&[u8], &O) {
        *self
    }
}

impl<'a, K: Borrow<[u8]> + 'a, O: Compare + 'a> Borrow<dyn Placed<O> + 'a> for Kept<K, O> {
    fn borrow(&self) -> &(dyn Placed<O> + 'a) {
        self
    }
}

impl<O: Compare> Ord for dyn Placed<O> + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        let ((key, order), (other, _)) = (self.placed(), other.placed());
        order.compare(key, other)
    }
}

impl<O: Compare> PartialOrd for dyn Placed<O> + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<O: Compare> PartialEq for dyn Placed<O> + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.placed().0 == other.placed().0
    }
}

impl<O: Compare> Eq for dyn Placed<O> + '_ {}

impl<K: Borrow<[u8]>, O: Compare> Ord for Kept<K, O> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order.compare(self.key.borrow(), other.key.borrow())
    }
}

impl<K: Borrow<[u8]>, O: Compare> PartialOrd for Kept<K, O> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Borrow<[u8]>, O: Compare> PartialEq for Kept<K, O> {
    fn eq(&self, other: &Self) -> bool {
        let (key, other): (&[u8], &[u8]) = (self.key.borrow(), other.key.borrow());
        key == other
    }
}

impl<K: Borrow<[u8]>, O: Compare> Eq for Kept<K, O> {}
