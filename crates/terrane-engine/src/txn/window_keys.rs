//! The noted keys of a table that a comparator orders, as the conflict window keeps them for who looks a range up.
//!
//! Invariants: the map holds the newest number of each key of the table that the first `commits` commits of the window wrote.
//! It is asked from one end only: of two a map panics where the comparator, asked once more, has the second one first.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use terrane_base::{Collation, SeqNo};

use crate::read::scan::Bounds;
use crate::txn::conflict_window::remove_if;

/// What a key takes here beside its bytes, which the window shares: its entry, and its part of the map's nodes.
const KEY_BYTES: u64 = (size_of::<(Placed, SeqNo)>() * 3 / 2) as u64;

/// A key where the comparator puts it.
#[derive(Debug)]
struct Placed {
    key: Arc<[u8]>,
    collation: Collation,
}

impl Ord for Placed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.collation.cmp(&self.key, &other.key)
    }
}

impl PartialOrd for Placed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Placed {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Placed {}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct WindowKeys {
    collation: Collation,
    keys: BTreeMap<Placed, SeqNo>,
    /// Commits at the front of the window whose keys are here.
    pub(super) commits: usize,
}

impl WindowKeys {
    pub(super) fn new(collation: &Collation) -> Self {
        WindowKeys { collation: collation.clone(), keys: BTreeMap::new(), commits: 0 }
    }

    /// Memory that it takes, about.
    pub(super) fn bytes(&self) -> u64 {
        self.keys.len() as u64 * KEY_BYTES
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    fn place(&self, key: &Arc<[u8]>) -> Placed {
        Placed { key: key.clone(), collation: self.collation.clone() }
    }

    /// Notes that the commit `seq` wrote a key; numbers only rise.
    pub(super) fn note(&mut self, key: &Arc<[u8]>, seq: SeqNo) {
        let place = self.place(key);
        self.keys.insert(place, seq);
    }

    /// Forgets a key unless a later commit wrote it.
    pub(super) fn forget(&mut self, key: &Arc<[u8]>, seq: SeqNo) {
        let place = self.place(key);
        remove_if(&mut self.keys, place, seq);
    }

    /// A key within bounds that a commit above `since` wrote. Looks at the keys of the range alone.
    pub(super) fn changed(&self, bounds: &Bounds, since: SeqNo) -> Option<(&Arc<[u8]>, SeqNo)> {
        let place = |key: &Vec<u8>| self.place(&key.as_slice().into());
        let from = match &bounds.lower {
            Bound::Included(key) => Bound::Included(place(key)),
            Bound::Excluded(key) => Bound::Excluded(place(key)),
            Bound::Unbounded => Bound::Unbounded,
        };
        let behind = self.keys.range((from, Bound::Unbounded));
        let mut within = behind.take_while(|(place, _)| bounds.below_upper(&place.key));
        within.find(|(_, seq)| **seq > since).map(|(place, seq)| (&place.key, *seq))
    }
}
