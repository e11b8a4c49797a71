//! The noted keys of a table that a comparator orders, as the conflict window keeps them for lookups of a
//! range.
//!
//! Invariants: the map holds the newest number of each key of the table that the first `commits` commits of
//! the window wrote.

use std::ops::Bound;
use std::sync::Arc;

use terrane_base::{Collation, OrderedMap, SeqNo};

use crate::read::scan::Bounds;

type Keys = OrderedMap<SeqNo, Arc<[u8]>>;

/// Bytes that a key takes here beside its own, which the window shares: its entry, and its part of the map's
/// nodes.
const KEY_BYTES: u64 = (Keys::ENTRY_BYTES * 3 / 2) as u64;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct WindowKeys {
    keys: Keys,
    /// Commits at the front of the window whose keys are here.
    pub(super) commits: usize,
}

impl WindowKeys {
    pub(super) fn new(collation: &Collation) -> Self {
        WindowKeys { keys: OrderedMap::new(collation), commits: 0 }
    }

    /// Its approximate memory.
    pub(super) fn bytes(&self) -> u64 {
        self.keys.len() as u64 * KEY_BYTES
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Notes that the commit `seq` wrote a key; numbers only rise.
    pub(super) fn note(&mut self, key: &Arc<[u8]>, seq: SeqNo) {
        self.keys.insert(key.clone(), seq);
    }

    /// Forgets a key unless a later commit wrote it.
    pub(super) fn forget(&mut self, key: &Arc<[u8]>, seq: SeqNo) {
        if self.keys.get(key) == Some(&seq) {
            self.keys.remove(key);
        }
    }

    /// A key within bounds that a commit above `since` wrote. Searches the keys of the range only.
    pub(super) fn changed(&self, bounds: &Bounds, since: SeqNo) -> Option<(&Arc<[u8]>, SeqNo)> {
        let as_slice = |bound| Bound::as_ref(bound).map(Vec::as_slice);
        let mut within = self.keys.range(as_slice(&bounds.lower), as_slice(&bounds.upper));
        within.find(|(_, seq)| **seq > since).map(|(key, seq)| (key, *seq))
    }
}
