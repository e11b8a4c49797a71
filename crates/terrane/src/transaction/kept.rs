//! The maps of a batch's index: by stored keys, in the table's order.
//!
//! Bytewise keys are compared as slices and stored alone. Under a comparator each key is stored with its
//! collation, and a range is searched from one end only, because a map panics on a range whose end comes
//! before its start, which an inconsistent comparator may return.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, btree_map};
use std::ops::Bound;

use terrane_base::Collation;
use terrane_engine::Bounds;

/// A map by the stored keys of one table.
#[derive(Clone, Debug)]
pub(crate) enum KeyMap<V> {
    /// By bytes.
    Bytes(BTreeMap<Vec<u8>, V>),
    /// By a comparator.
    Compared(BTreeMap<Kept, V>, Collation),
}

impl<V> Default for KeyMap<V> {
    fn default() -> Self {
        KeyMap::Bytes(BTreeMap::new())
    }
}

impl<V> KeyMap<V> {
    pub(crate) fn new(collation: &Collation) -> Self {
        if collation.is_bytes() {
            Self::default()
        } else {
            KeyMap::Compared(BTreeMap::new(), collation.clone())
        }
    }

    pub(crate) fn collation(&self) -> &Collation {
        match self {
            KeyMap::Bytes(_) => Collation::bytes(),
            KeyMap::Compared(_, collation) => collation,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            KeyMap::Bytes(map) => map.len(),
            KeyMap::Compared(map, _) => map.len(),
        }
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&V> {
        match self {
            KeyMap::Bytes(map) => map.get(key),
            KeyMap::Compared(map, collation) => map.get(&(key, collation) as &dyn Placed),
        }
    }

    pub(crate) fn get_mut(&mut self, key: &[u8]) -> Option<&mut V> {
        match self {
            KeyMap::Bytes(map) => map.get_mut(key),
            KeyMap::Compared(map, collation) => map.get_mut(&(key, &*collation) as &dyn Placed),
        }
    }

    /// Returns the previous value of the key.
    pub(crate) fn insert(&mut self, key: &[u8], value: V) -> Option<V> {
        match self {
            KeyMap::Bytes(map) => map.insert(key.to_vec(), value),
            KeyMap::Compared(map, collation) => {
                map.insert(Kept { key: key.to_vec(), collation: collation.clone() }, value)
            }
        }
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<V> {
        match self {
            KeyMap::Bytes(map) => map.remove(key),
            KeyMap::Compared(map, collation) => map.remove(&(key, &*collation) as &dyn Placed),
        }
    }

    /// The last entry that is not after `key`.
    pub(crate) fn last_up_to(&self, key: &[u8]) -> Option<(&[u8], &V)> {
        match self {
            KeyMap::Bytes(map) => {
                let up_to = map.range::<[u8], _>((Bound::Unbounded, Bound::Included(key)));
                up_to.map(|(key, value)| (&key[..], value)).next_back()
            }
            KeyMap::Compared(map, collation) => {
                let place: &dyn Placed = &(key, collation);
                let up_to = map.range::<dyn Placed, _>((Bound::Unbounded, Bound::Included(place)));
                up_to.map(|(kept, value)| (&kept.key[..], value)).next_back()
            }
        }
    }

    /// All of them, in order.
    pub(crate) fn iter(&self) -> Rows<'_, V> {
        match self {
            KeyMap::Bytes(map) => Rows::Bytes(map.range::<[u8], _>(..)),
            KeyMap::Compared(map, collation) => Rows::Ahead(Ahead {
                rows: map.range::<dyn Placed, _>(..),
                upper: Bound::Unbounded,
                collation,
                is_over: false,
            }),
        }
    }

    /// Those within bounds, in order.
    pub(crate) fn range(&self, bounds: &Bounds) -> Rows<'_, V> {
        let ends = || (as_slice(&bounds.lower), as_slice(&bounds.upper));
        match self {
            KeyMap::Bytes(_) if is_empty(bounds) => Rows::Found(Vec::new().into_iter()),
            KeyMap::Bytes(map) => Rows::Bytes(map.range::<[u8], _>(ends())),
            KeyMap::Compared(map, collation) => {
                let places = as_slice(&bounds.lower).map(|key| (key, collation));
                let from: Bound<&dyn Placed> = match &places {
                    Bound::Included(place) => Bound::Included(place),
                    Bound::Excluded(place) => Bound::Excluded(place),
                    Bound::Unbounded => Bound::Unbounded,
                };
                let rows = map.range::<dyn Placed, _>((from, Bound::Unbounded));
                Rows::Ahead(Ahead { rows, upper: bounds.upper.clone(), collation, is_over: false })
            }
        }
    }
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// Returns true if no key can lie between the bounds.
pub(crate) fn is_empty(bounds: &Bounds) -> bool {
    match (&bounds.lower, &bounds.upper) {
        (Bound::Included(lower), Bound::Included(upper)) => bounds.collation.lt(upper, lower),
        (Bound::Unbounded, Bound::Excluded(upper)) => upper.is_empty(),
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (
            Bound::Included(lower) | Bound::Excluded(lower),
            Bound::Included(upper) | Bound::Excluded(upper),
        ) => bounds.collation.le(upper, lower),
    }
}

/// Keys with their values, in order, from both ends.
pub(crate) enum Rows<'m, V> {
    Bytes(btree_map::Range<'m, Vec<u8>, V>),
    /// From the front one by one, up to where the range ends.
    Ahead(Ahead<'m, V>),
    /// Collected entries: a range that is read from the back has its end searched from the front.
    Found(std::vec::IntoIter<(&'m [u8], &'m V)>),
}

/// The entries from the beginning of a range on, under a comparator.
pub(crate) struct Ahead<'m, V> {
    rows: btree_map::Range<'m, Kept, V>,
    upper: Bound<Vec<u8>>,
    collation: &'m Collation,
    is_over: bool,
}

impl<'m, V> Iterator for Ahead<'m, V> {
    type Item = (&'m [u8], &'m V);

    fn next(&mut self) -> Option<Self::Item> {
        let (kept, value) = self.rows.next().filter(|_| !self.is_over)?;
        self.is_over = !self.collation.is_below(&kept.key, as_slice(&self.upper));
        (!self.is_over).then_some((&kept.key[..], value))
    }
}

impl<'m, V> Iterator for Rows<'m, V> {
    type Item = (&'m [u8], &'m V);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Rows::Bytes(rows) => rows.next().map(|(key, value)| (&key[..], value)),
            Rows::Ahead(rows) => rows.next(),
            Rows::Found(rows) => rows.next(),
        }
    }
}

impl<V> DoubleEndedIterator for Rows<'_, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if let Rows::Ahead(rows) = self {
            let found: Vec<_> = rows.collect();
            *self = Rows::Found(found.into_iter());
        }
        match self {
            Rows::Bytes(rows) => rows.next_back().map(|(key, value)| (&key[..], value)),
            Rows::Found(rows) => rows.next_back(),
            Rows::Ahead(_) => unreachable!("collected above"),
        }
    }
}

/// A key and the comparator that orders it. A map of them is searched with a [`Placed`], without a copy.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    key: Vec<u8>,
    collation: Collation,
}

/// A key in its order, wherever it lies.
trait Placed {
    /// The key and what orders it.
    fn placed(&self) -> (&[u8], &Collation);
}

impl Placed for Kept {
    fn placed(&self) -> (&[u8], &Collation) {
        (&self.key, &self.collation)
    }
}

impl Placed for (&[u8], &Collation) {
    fn placed(&self) -> (&[u8], &Collation) {
        *self
    }
}

impl<'a> Borrow<dyn Placed + 'a> for Kept {
    fn borrow(&self) -> &(dyn Placed + 'a) {
        self
    }
}

impl Ord for dyn Placed + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        let ((key, collation), (other, _)) = (self.placed(), other.placed());
        collation.cmp(key, other)
    }
}

impl PartialOrd for dyn Placed + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn Placed + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.placed().0 == other.placed().0
    }
}

impl Eq for dyn Placed + '_ {}

impl Ord for Kept {
    fn cmp(&self, other: &Self) -> Ordering {
        self.collation.cmp(&self.key, &other.key)
    }
}

impl PartialOrd for Kept {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Kept {}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{self, AtomicU32};

    use terrane_base::{Comparator, KeyOrders};

    use super::*;

    /// Answers that follow no order, and are others the next time.
    #[derive(Debug)]
    struct Odd(AtomicU32);

    impl Comparator for Odd {
        fn name(&self) -> &str {
            "odd"
        }

        fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
            let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
            let asked = self.0.fetch_add(1, atomic::Ordering::Relaxed).to_be_bytes();
            if left.iter().chain(right).chain(&asked).fold(0x811c_9dc5, mix) >> 7 & 1 == 0 {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
    }

    /// The collation of a comparator that contradicts itself.
    pub(crate) fn odd() -> Collation {
        let orders = KeyOrders::new().with_comparator(Arc::new(Odd(AtomicU32::new(0)))).expect("a free name");
        orders.collation("odd")
    }

    /// A number as a key under a comparator.
    pub(crate) fn marked(number: u32) -> Vec<u8> {
        [&number.to_be_bytes()[..], &[0]].concat()
    }

    #[test]
    fn a_comparator_that_contradicts_itself_gives_rows_and_no_panic() {
        let mut map = KeyMap::new(&odd());
        for number in 0..600 {
            map.insert(&marked(number), number);
        }
        let mut found = 0;
        for number in 0..600 {
            let [lower, upper] = [number * 7919 % 600, number * 104_729 % 600].map(marked);
            for lower in [Bound::Included(lower.clone()), Bound::Excluded(lower)] {
                let bounds = Bounds { lower, upper: Bound::Excluded(upper.clone()), collation: odd() };
                found += map.range(&bounds).rev().count();
            }
            map.last_up_to(&marked(number));
        }
        assert!(found > 0 && map.iter().count() == 600);
    }

    #[test]
    fn a_comparator_decides_what_lies_between() {
        #[derive(Debug)]
        struct Length;
        impl Comparator for Length {
            fn name(&self) -> &str {
                "length"
            }
            fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
                left.len().cmp(&right.len())
            }
        }
        let orders = KeyOrders::new().with_comparator(Arc::new(Length)).expect("a free name");
        let collation = orders.collation("length");
        let mut map = KeyMap::new(&collation);
        for key in [&b"zz\0"[..], b"a\0", b"aaaa\0", b"z\0", b"aaa\0"] {
            map.insert(key, ());
        }
        let bounds = Bounds {
            lower: Bound::Excluded(b"a\0".to_vec()),
            upper: Bound::Included(b"aaa\0".to_vec()),
            collation,
        };
        let found: Vec<_> = map.range(&bounds).map(|(key, ())| key).collect();
        assert_eq!(found, [&b"z\0"[..], b"zz\0", b"aaa\0"]);
        assert_eq!(map.last_up_to(b"ba\0").map(|(key, ())| key), Some(&b"z\0"[..]));
    }
}
