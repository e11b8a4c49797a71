//! The newest range delete over each key, by the first key of each stretch: a persistent balanced tree, in
//! the order of the table's keys.

use std::cmp::Ordering;
use std::ops::Bound;

use rpds::RedBlackTreeMapSync;
use terrane_base::{Collation, SeqNo};

use super::{Key, Stretch};

/// See the [module](self). States share their common parts.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// Of keys that are ordered as bytes.
    Bytes(RedBlackTreeMapSync<Key, (Key, SeqNo)>),
    /// Of keys that a comparator orders.
    Ordered(RedBlackTreeMapSync<Placed, (Key, SeqNo)>, Collation),
}

/// A key together with its order.
#[derive(Clone, Debug)]
pub(super) struct Placed(Key, Collation);

impl Ord for Placed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.1.cmp(&self.0, &other.0)
    }
}

impl PartialOrd for Placed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Placed {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Placed {}

impl State {
    pub(super) fn new(collation: &Collation) -> Self {
        match collation.is_bytes() {
            true => State::Bytes(RedBlackTreeMapSync::new_sync()),
            false => State::Ordered(RedBlackTreeMapSync::new_sync(), collation.clone()),
        }
    }

    pub(super) fn collation(&self) -> &Collation {
        match self {
            State::Bytes(_) => Collation::bytes(),
            State::Ordered(_, collation) => collation,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            State::Bytes(map) => map.is_empty(),
            State::Ordered(map, _) => map.is_empty(),
        }
    }

    /// The last stretch that begins before `key`, or at it if `is_included`: its end and its number.
    #[inline]
    pub(super) fn last_to(&self, key: &[u8], is_included: bool) -> Option<(&Key, &(Key, SeqNo))> {
        match self {
            State::Bytes(map) => {
                let bound = if is_included { Bound::Included(key) } else { Bound::Excluded(key) };
                map.range::<[u8], _>((Bound::Unbounded, bound)).next_back()
            }
            State::Ordered(map, collation) => {
                let key = Placed(key.into(), collation.clone());
                let bound = if is_included { Bound::Included(&key) } else { Bound::Excluded(&key) };
                map.range::<Placed, _>((Bound::Unbounded, bound))
                    .next_back()
                    .map(|(start, end)| (&start.0, end))
            }
        }
    }

    /// The start of the first stretch that begins after `key`.
    pub(super) fn next_start(&self, key: &[u8]) -> Option<&Key> {
        match self {
            State::Bytes(map) => {
                let behind = (Bound::Excluded(key), Bound::Unbounded);
                map.range::<[u8], _>(behind).next().map(|(start, _)| start)
            }
            State::Ordered(map, collation) => {
                let key = Placed(key.into(), collation.clone());
                let behind = (Bound::Excluded(&key), Bound::Unbounded);
                map.range::<Placed, _>(behind).next().map(|(start, _)| &start.0)
            }
        }
    }

    /// The stretches that begin from `start` to before `end`.
    pub(super) fn beginning_within(&self, start: &[u8], end: &[u8]) -> Vec<Stretch> {
        match self {
            State::Bytes(map) => {
                let within = map.range::<[u8], _>((Bound::Included(start), Bound::Excluded(end)));
                within.map(|(start, end)| stretch(start, end)).collect()
            }
            State::Ordered(map, collation) => {
                let [start, end] = [start, end].map(|key| Placed(key.into(), collation.clone()));
                let within = map.range::<Placed, _>((Bound::Included(&start), Bound::Excluded(&end)));
                within.map(|(start, end)| stretch(&start.0, end)).collect()
            }
        }
    }

    pub(super) fn insert(&mut self, start: Key, end: (Key, SeqNo)) {
        match self {
            State::Bytes(map) => {
                debug_assert!(start < end.0, "invariant 1: no stretch is empty");
                map.insert_mut(start, end);
            }
            State::Ordered(map, collation) => map.insert_mut(Placed(start, collation.clone()), end),
        }
    }

    pub(super) fn remove(&mut self, start: &Key) {
        let was_there = match self {
            State::Bytes(map) => map.remove_mut(start),
            State::Ordered(map, collation) => map.remove_mut(&Placed(start.clone(), collation.clone())),
        };
        debug_assert!(was_there, "only a stretch of the state is taken out");
    }

    /// All stretches, in the order of keys.
    pub(super) fn all(&self) -> Vec<Stretch> {
        match self {
            State::Bytes(map) => map.iter().map(|(start, end)| stretch(start, end)).collect(),
            State::Ordered(map, _) => map.iter().map(|(start, end)| stretch(&start.0, end)).collect(),
        }
    }
}

pub(super) fn stretch(start: &Key, (end, seq): &(Key, SeqNo)) -> Stretch {
    Stretch { start: start.clone(), end: end.clone(), seq: *seq }
}
