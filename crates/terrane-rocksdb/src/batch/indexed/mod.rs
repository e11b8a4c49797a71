//! Write batches that can be read: the batch as RocksDB lays it out, and an index over its records
//! ([`index`]).
//!
//! The changes of a key are folded over the row of the database ([`Own::over`]); iterators lay the batch's
//! keys over those of another iterator (`crate::iterator::overlay`). Transactions keep their changes in one.
//! A batch is shared by its handle, its iterators and its transaction, under a mutex of its own: callers use
//! it from one thread at a time, so no thread waits.

pub(crate) mod index;
#[cfg(test)]
mod tests;

use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use terrane_base::batch_index::Step;

use crate::batch::indexed::index::Index;
use crate::batch::layout::Change;
use crate::batch::write_batch::WriteBatch;
use crate::callbacks::merge::MergeOperator;
use crate::callbacks::order::Order;
use crate::ffi::failure::{Failure, Result};

/// The error of a merge without an operator.
const NO_OPERATOR: &str = "Merge_operator must be set for column_family";

/// A batch with its index.
pub(crate) struct Indexed {
    pub(crate) batch: WriteBatch,
    index: Index,
    /// The fewest bytes that it has had since [`Indexed::hold`].
    shortest: usize,
}

/// One that is shared.
#[derive(Clone)]
pub(crate) struct SharedBatch(pub(crate) Arc<Mutex<Indexed>>);

/// The state of a key in a batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Own {
    /// Nothing.
    Nothing,
    /// It is deleted.
    Deleted,
    /// It has this value.
    Value(Vec<u8>),
    /// Operands, oldest first, are folded with what lies below.
    Open(Vec<Vec<u8>>),
    /// Operands, oldest first, are folded with this value, or with none.
    Closed(Option<Vec<u8>>, Vec<Vec<u8>>),
}

impl SharedBatch {
    /// An empty batch of at most so many bytes; 0 for any number.
    pub(crate) fn new(bytes_max: usize) -> SharedBatch {
        SharedBatch::of(WriteBatch::limited(0, bytes_max), Order::default())
    }

    /// This batch, which is empty. Keys of families whose own order is not known are sorted by `order`.
    pub(crate) fn of(batch: WriteBatch, order: Order) -> SharedBatch {
        SharedBatch(Arc::new(Mutex::new(Indexed { batch, index: Index::new(order), shortest: 0 })))
    }

    /// The batch, for this thread alone.
    pub(crate) fn get(&self) -> MutexGuard<'_, Indexed> {
        // A panic leaves a batch whose records are whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Indexed {
    /// Adds a change of a column family; whether there was room for it.
    pub(crate) fn add(&mut self, family: u32, change: Change<'_>) -> bool {
        let at = self.batch.bytes();
        let is_added = self.batch.try_add(family, change);
        if is_added {
            self.index.note(family, &change, at);
        }
        is_added
    }

    /// Has it index the keys of a column family in this order, which is the family's own.
    #[inline]
    pub(crate) fn order_by(&mut self, family: u32, order: &Order) {
        if self.index.set_order(family, order) {
            for (at, of, change) in self.batch.placed_changes().filter(|(_, of, _)| *of == family) {
                self.index.note(of, &change, at);
            }
        }
    }

    /// The batch without its index.
    pub(crate) fn batch(&mut self) -> &mut WriteBatch {
        &mut self.batch
    }

    pub(crate) fn clear(&mut self) {
        self.batch.clear();
        self.index.clear();
        self.shortest = self.shortest.min(self.batch.bytes());
    }

    /// Notes what it has now, and returns how many bytes that are.
    pub(crate) fn hold(&mut self) -> usize {
        self.shortest = self.batch.bytes();
        self.shortest
    }

    /// Returns true if nothing was taken back of the first so many bytes since [`Indexed::hold`].
    pub(crate) fn is_whole_to(&self, bytes: usize) -> bool {
        self.shortest >= bytes
    }

    /// Sets how many bytes it may have; 0 for any number.
    pub(crate) fn set_bytes_max(&mut self, bytes_max: usize) {
        self.batch.set_bytes_max(bytes_max);
    }

    pub(crate) fn set_save_point(&mut self) {
        self.batch.set_save_point();
    }

    /// Takes back what was done since the last save point, which goes.
    pub(crate) fn roll_back_to_save_point(&mut self) -> Result<()> {
        let (bytes, _) = self.batch.save_point()?;
        let since: Vec<_> = self.batch.changes_since(bytes).collect::<Result<_>>()?;
        for (family, change) in since.iter().rev() {
            self.index.take_back(*family, change);
        }
        self.shortest = self.shortest.min(bytes);
        self.batch.roll_back_to_save_point()
    }

    /// The state of a key in the batch.
    pub(crate) fn own(&self, family: u32, key: &[u8]) -> Own {
        let mut operands = Vec::new();
        for step in self.index.family(family).map(|index| index.steps(key)).unwrap_or_default() {
            let base = match step {
                Step::RangeDelete => None,
                Step::Record(at) => match self.batch.change_at(at) {
                    Some(Change::Merge(_, operand)) => {
                        operands.push(operand.to_vec());
                        continue;
                    }
                    Some(Change::Put(_, value)) => Some(value.to_vec()),
                    _ => None,
                },
            };
            return closed(base, operands);
        }
        if operands.is_empty() {
            return Own::Nothing;
        }
        operands.reverse();
        Own::Open(operands)
    }

    /// Where the deleted range that holds a key begins, and what lies behind it.
    pub(crate) fn deleted_around(&self, family: u32, key: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let (start, end) = self.index.family(family)?.deleted().around(key)?;
        Some((start.to_vec(), end.to_vec()))
    }

    /// The first key within bounds that it has a record of.
    pub(crate) fn first(&self, family: u32, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Option<Vec<u8>> {
        self.index.family(family)?.first(lower, upper).map(<[u8]>::to_vec)
    }

    /// The last key within bounds that it has a record of.
    pub(crate) fn last(&self, family: u32, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Option<Vec<u8>> {
        self.index.family(family)?.last(lower, upper).map(<[u8]>::to_vec)
    }
}

/// Folds operands, newest first, over their base.
fn closed(base: Option<Vec<u8>>, mut operands: Vec<Vec<u8>>) -> Own {
    operands.reverse();
    match base {
        _ if !operands.is_empty() => Own::Closed(base, operands),
        Some(value) => Own::Value(value),
        None => Own::Deleted,
    }
}

impl Own {
    /// The value of the key, over what `below` finds; that is only asked where it counts.
    pub(crate) fn over(
        self,
        key: &[u8],
        operator: Option<&MergeOperator>,
        below: impl FnOnce() -> Result<Option<Vec<u8>>>,
    ) -> Result<Option<Vec<u8>>> {
        let (base, operands) = match self {
            Own::Nothing => return below(),
            Own::Deleted => return Ok(None),
            Own::Value(value) => return Ok(Some(value)),
            Own::Open(operands) => (below()?, operands),
            Own::Closed(base, operands) => (base, operands),
        };
        let operator = operator.ok_or_else(|| Failure::invalid(NO_OPERATOR))?;
        let operands: Vec<&[u8]> = operands.iter().map(Vec::as_slice).collect();
        let value = operator.full(key, base.as_deref(), &operands);
        let failed = || Failure::corrupt("Merge operator failed");
        value.ok_or_else(failed).map(Some)
    }
}
