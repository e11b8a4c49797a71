//! Index of the changes that the records of a batch make to each key of one table. It holds keys and the
//! places of their records; the values stay in the batch.
//!
//! Records are noted in their order, and taken back from the last one on.
//!
//! Invariants:
//! * A key has its records in their order. A range delete puts a mark behind those of each key that it hides.
//! * A key whose records reach back to no mark was written after every range delete that holds it, or lies in
//!   none. So [`BatchIndex::steps`] ends with a range delete if the key lies in a deleted range.

use std::iter::FusedIterator;
use std::ops::Bound;

use crate::key_ranges::{Added, KeyRanges};
use crate::ordered_map::{self, Compare};
use crate::{Collation, OrderedMap};

/// One thing that a batch does to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The record at this place of the batch.
    Record(usize),
    /// The delete of a range that holds the key.
    RangeDelete,
}

/// The changes of a key, the last one apart: most keys are written once.
#[derive(Clone, Debug)]
pub struct History {
    last: Step,
    earlier: Vec<Step>,
}

impl History {
    fn push(&mut self, step: Step) {
        self.earlier.push(std::mem::replace(&mut self.last, step));
    }

    /// Returns true if the batch changes the key after every range delete that holds it.
    fn is_live(&self) -> bool {
        self.last != Step::RangeDelete
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct BatchIndex<O = Collation> {
    keys: OrderedMap<History, Vec<u8>, O>,
    deleted: KeyRanges<O>,
    /// For each range delete, oldest first: what takes it back.
    added: Vec<Added>,
    live_keys: usize,
}

impl<O: Compare> BatchIndex<O> {
    /// The index of an empty batch, for keys in this order.
    #[must_use]
    pub fn new(order: &O) -> Self {
        let (keys, deleted) = (OrderedMap::new(order), KeyRanges::new(order));
        BatchIndex { keys, deleted, added: Vec::new(), live_keys: 0 }
    }

    /// The order of its keys.
    #[must_use]
    pub fn order(&self) -> &O {
        self.keys.order()
    }

    /// Number of keys with a record after every range delete that holds them.
    #[must_use]
    pub fn live_keys(&self) -> usize {
        self.live_keys
    }

    /// Returns true if no record is noted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.added.is_empty()
    }

    /// The ranges that are deleted. A key that lies there may have been written later.
    #[must_use]
    pub fn deleted(&self) -> &KeyRanges<O> {
        &self.deleted
    }

    /// Notes the record of a key at a place of the batch.
    pub fn note(&mut self, key: &[u8], at: usize) {
        let step = Step::Record(at);
        match self.keys.get_mut(key) {
            Some(history) => {
                self.live_keys += usize::from(!history.is_live());
                history.push(step);
            }
            None => {
                self.live_keys += 1;
                self.keys.insert(key.to_vec(), History { last: step, earlier: Vec::new() });
            }
        }
    }

    /// Notes the delete of a range, which is not empty.
    pub fn note_range_delete(&mut self, start: &[u8], end: &[u8]) {
        let mut hidden = 0;
        self.keys.visit_mut(start, end, |history| {
            hidden += usize::from(history.is_live());
            history.push(Step::RangeDelete);
        });
        self.live_keys -= hidden;
        self.added.push(self.deleted.add(start, end));
    }

    /// Takes back the record of a key, which was noted last.
    pub fn take_back(&mut self, key: &[u8]) {
        let by_bytes = self.keys.order().is_bytes();
        // Not found: the comparator contradicts itself.
        let Some(history) = self.keys.get_mut(key) else {
            assert!(!by_bytes, "a change that is taken back was noted");
            return;
        };
        assert!(history.is_live() || !by_bytes, "records are taken back from the last one on");
        self.live_keys -= usize::from(history.is_live());
        match history.earlier.pop() {
            Some(before) => {
                history.last = before;
                self.live_keys += usize::from(history.is_live());
            }
            None => drop(self.keys.remove(key)),
        }
    }

    /// Takes back the delete of a range, which was noted last.
    pub fn take_back_range_delete(&mut self, start: &[u8], end: &[u8]) {
        let (by_bytes, mut shown, mut hidden) = (self.keys.order().is_bytes(), 0, 0);
        self.keys.visit_mut(start, end, |history| {
            assert!(!history.is_live() || !by_bytes, "a range delete is the last step of its keys");
            if let Some(before) = history.earlier.pop() {
                hidden += usize::from(history.is_live());
                history.last = before;
                shown += usize::from(history.is_live());
            }
        });
        self.live_keys = self.live_keys + shown - hidden;
        if let Some(added) = self.added.pop() {
            self.deleted.take_back(added);
        }
    }

    /// The changes of a key, newest first; empty if no record is of it.
    #[must_use]
    pub fn steps(&self, key: &[u8]) -> Steps<'_> {
        match self.keys.get(key) {
            Some(history) => self.steps_of(key, history),
            None => Steps { is_in_deleted: self.deleted.holds(key), ..Steps::default() },
        }
    }

    /// The changes of a key that [`BatchIndex::range`] gave, newest first.
    #[must_use]
    pub fn steps_of<'i>(&self, key: &[u8], history: &'i History) -> Steps<'i> {
        let is_in_deleted = self.deleted.holds(key);
        Steps { last: Some(history.last), earlier: &history.earlier, is_in_deleted }
    }

    /// The first key within bounds that has a record, hidden by a range delete or not.
    #[must_use]
    pub fn first(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Option<&[u8]> {
        let (key, _) = self.keys.first_within(lower)?;
        self.is_within(key, Bound::Unbounded, upper).then_some(key)
    }

    /// The last key within bounds that has a record, hidden by a range delete or not.
    #[must_use]
    pub fn last(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Option<&[u8]> {
        let (key, _) = self.keys.last_within(upper)?;
        self.is_within(key, lower, Bound::Unbounded).then_some(key)
    }

    fn is_within(&self, key: &[u8], lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
        ordered_map::is_within(self.keys.order(), key, lower, upper)
    }

    /// The keys within bounds that have a record, in order, each with what was done to it.
    pub fn range(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Keys<'_, O> {
        self.keys.range(lower, upper)
    }
}

/// Keys of an index with what was done to them, in order, from both ends.
pub type Keys<'i, O = Collation> = ordered_map::Range<'i, History, Vec<u8>, O>;

/// The changes of a key, newest first.
#[derive(Clone, Debug, Default)]
pub struct Steps<'i> {
    last: Option<Step>,
    earlier: &'i [Step],
    /// True if a range that holds the key is deleted, by a step that has not come yet.
    is_in_deleted: bool,
}

impl Iterator for Steps<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let step = self.last.take().or_else(|| {
            let (last, earlier) = self.earlier.split_last()?;
            self.earlier = earlier;
            Some(*last)
        });
        step.or_else(|| std::mem::take(&mut self.is_in_deleted).then_some(Step::RangeDelete))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = usize::from(self.last.is_some()) + self.earlier.len() + usize::from(self.is_in_deleted);
        (len, Some(len))
    }
}

impl ExactSizeIterator for Steps<'_> {}

impl FusedIterator for Steps<'_> {}
