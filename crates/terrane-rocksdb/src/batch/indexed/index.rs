//! The index of a batch over column families, each in its own order of keys: that of its comparator if it
//! has one.

use std::collections::BTreeMap;

use terrane_base::BatchIndex;

use crate::batch::layout::Change;
use crate::callbacks::order::Order;

/// The index of one column family.
type FamilyIndex = BatchIndex<Order>;

/// The index of a batch.
#[derive(Debug, Default)]
pub(crate) struct Index {
    families: BTreeMap<u32, FamilyIndex>,
    /// The order of families whose own order is not known.
    order: Order,
}

impl Index {
    /// An empty index; families have this order until [`Index::set_order`].
    pub(crate) fn new(order: Order) -> Index {
        Index { families: BTreeMap::new(), order }
    }

    pub(crate) fn clear(&mut self) {
        self.families.clear();
    }

    /// The batch's changes to keys of a column family, if there are any.
    pub(crate) fn family(&self, family: u32) -> Option<&FamilyIndex> {
        self.families.get(&family)
    }

    /// Has the keys of a family lie in this order; whether they lay in another one: then its records are to
    /// be noted again.
    pub(crate) fn set_order(&mut self, family: u32, order: &Order) -> bool {
        match self.families.get_mut(&family) {
            Some(index) if index.order().is(order) => false,
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
        let index = self.families.entry(family).or_insert_with(|| FamilyIndex::new(&self.order));
        match *change {
            Change::Put(key, _) | Change::Merge(key, _) | Change::Delete(key) | Change::SingleDelete(key) => {
                index.note(key, at);
            }
            Change::RangeDelete(start, end) if index.order().cmp(start, end).is_lt() => {
                index.note_range_delete(start, end);
            }
            Change::RangeDelete(..) | Change::LogData(_) => {}
        }
    }

    /// Takes back the record that was noted last.
    pub(crate) fn take_back(&mut self, family: u32, change: &Change<'_>) {
        let Some(index) = self.families.get_mut(&family) else { return };
        match *change {
            Change::Put(key, _) | Change::Merge(key, _) | Change::Delete(key) | Change::SingleDelete(key) => {
                index.take_back(key);
            }
            Change::RangeDelete(start, end) if index.order().cmp(start, end).is_lt() => {
                index.take_back_range_delete(start, end);
            }
            Change::RangeDelete(..) | Change::LogData(_) => {}
        }
    }
}
