//! Ranges of keys, disjoint and in the order of their keys: what a batch deletes.
//!
//! A range that is added becomes one with those that it overlaps or touches. It can be taken back while it
//! is the last that was added: [`Added`] keeps the ranges that it replaced.

use std::ops::Bound;

use crate::ordered_map::Compare;
use crate::{Collation, OrderedMap};

/// See the [module](self): each range from its start to before its end.
#[derive(Clone, Debug)]
pub struct KeyRanges<O = Collation>(OrderedMap<Vec<u8>, Vec<u8>, O>);

/// Takes a range back.
#[derive(Clone, Debug)]
pub struct Added {
    /// Where the range starts that it became a part of.
    start: Vec<u8>,
    /// The ranges that are in that one now.
    replaced: Vec<(Vec<u8>, Vec<u8>)>,
}

impl<O: Compare> KeyRanges<O> {
    /// No range, of keys in this order.
    #[must_use]
    pub fn new(order: &O) -> Self {
        KeyRanges(OrderedMap::new(order))
    }

    /// Adds a range, which is not empty.
    pub fn add(&mut self, start: &[u8], end: &[u8]) -> Added {
        let order = self.0.order().clone();
        assert!(order.compare(start, end).is_lt() || !order.is_bytes(), "a range has a key");
        let (mut start, mut end) = (start.to_vec(), end.to_vec());
        let mut replaced = Vec::new();
        // Those that begin before its end and reach its start become one with it.
        while let Some((from, to)) = self.0.last_within(Bound::Included(&end))
            && order.compare(&start, to).is_le()
        {
            let from = from.clone();
            // Not found again: the comparator contradicts itself.
            let Some(to) = self.0.remove(&from) else { break };
            if order.compare(&from, &start).is_lt() {
                start.clone_from(&from);
            }
            if order.compare(&to, &end).is_gt() {
                end.clone_from(&to);
            }
            replaced.push((from, to));
        }
        self.0.insert(start.clone(), end);
        Added { start, replaced }
    }

    /// Takes back the range that was added last.
    pub fn take_back(&mut self, added: Added) {
        let range = self.0.remove(&added.start);
        assert!(range.is_some() || !self.0.order().is_bytes(), "only the last range is taken back");
        for (start, end) in added.replaced {
            self.0.insert(start, end);
        }
    }

    /// The range that holds a key: its start, and the first key behind it.
    #[must_use]
    pub fn around(&self, key: &[u8]) -> Option<(&[u8], &[u8])> {
        if self.0.is_empty() {
            return None;
        }
        let (start, end) = self.0.last_within(Bound::Included(key))?;
        self.0.order().compare(key, end).is_lt().then_some((start, end))
    }

    /// Returns true if `key` lies in one of them.
    #[must_use]
    pub fn holds(&self, key: &[u8]) -> bool {
        self.around(key).is_some()
    }

    /// Returns true if there is no range.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ranges in order, each with its start and the first key behind it.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(start, end)| (&start[..], &end[..]))
    }
}
