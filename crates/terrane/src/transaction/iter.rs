//! Rows of a batch over rows of the database, merged from both ends.
//!
//! Each end has one row of the database and one change ahead. Where both are of one key, the change wins; a delete shows
//! nothing. The ends share the two sources, so a source that one end has emptied may still be ahead at the other: the
//! sources themselves never give a row twice, and what an end has ahead the other end takes over when its source is
//! empty.

use std::cmp::Ordering;
use std::sync::Arc;

use terrane_base::key_order::Order;
use terrane_base::{Error, Result};
use terrane_engine::{Bounds, ScanId};

use crate::Row;
use crate::iter::{EncodedIter, decoded};
use crate::transaction::Transaction;
use crate::transaction::indexed::{Changes, IndexedBatch};

/// A change as the iterator holds it: the key, and the value or a delete.
type Changed<'b> = (&'b [u8], Option<&'b [u8]>);

/// What is next at one end.
#[derive(Default)]
struct Ahead<'b> {
    row: Option<Row>,
    change: Option<Changed<'b>>,
}

/// The rows of a range under the changes of a batch, in key order, from both ends. After an error it ends.
pub struct BatchIter<'b> {
    /// None where there is nothing but an error.
    rows: Option<EncodedIter>,
    failed: Option<Error>,
    order: Option<Arc<Order>>,
    changes: Changes<'b>,
    batch: &'b IndexedBatch,
    front: Ahead<'b>,
    back: Ahead<'b>,
    is_finished: bool,
}

impl<'b> BatchIter<'b> {
    /// The rows of both sources, which have encoded keys, or an error alone.
    pub(crate) fn new(
        sources: Result<(EncodedIter, Changes<'b>)>,
        order: Option<Arc<Order>>,
        batch: &'b IndexedBatch,
    ) -> Self {
        let (rows, changes, failed) = match sources {
            Ok((rows, changes)) => (Some(rows), changes, None),
            Err(error) => (None, None, Some(error)),
        };
        BatchIter {
            rows,
            failed,
            order,
            changes,
            batch,
            front: Ahead::default(),
            back: Ahead::default(),
            is_finished: false,
        }
    }

    fn fill_front(&mut self) -> Result<()> {
        if self.front.row.is_none() {
            let next = self.rows.as_mut().and_then(Iterator::next).transpose()?;
            self.front.row = next.or_else(|| self.back.row.take());
        }
        if self.front.change.is_none() {
            let next = self.changes.as_mut().and_then(Iterator::next);
            let next = next.map(|(key, change)| (key.as_slice(), self.batch.value_of(change)));
            self.front.change = next.or_else(|| self.back.change.take());
        }
        Ok(())
    }

    fn fill_back(&mut self) -> Result<()> {
        if self.back.row.is_none() {
            let next = self.rows.as_mut().and_then(DoubleEndedIterator::next_back).transpose()?;
            self.back.row = next.or_else(|| self.front.row.take());
        }
        if self.back.change.is_none() {
            let next = self.changes.as_mut().and_then(DoubleEndedIterator::next_back);
            let next = next.map(|(key, change)| (key.as_slice(), self.batch.value_of(change)));
            self.back.change = next.or_else(|| self.front.change.take());
        }
        Ok(())
    }

    fn advance(&mut self, forward: bool) -> Result<Option<Row>> {
        loop {
            if forward {
                self.fill_front()?
            } else {
                self.fill_back()?
            }
            let end = if forward { &mut self.front } else { &mut self.back };
            let order = match (&end.row, &end.change) {
                (None, None) => return Ok(None),
                (Some(_), None) => return Ok(end.row.take()),
                (None, Some(_)) => Ordering::Greater,
                (Some((row, _)), Some((change, _))) if forward => row.as_slice().cmp(change),
                (Some((row, _)), Some((change, _))) => change.cmp(&row.as_slice()),
            };
            if order == Ordering::Less {
                return Ok(end.row.take());
            }
            if order == Ordering::Equal {
                end.row = None;
            }
            if let Some((key, Some(value))) = end.change.take() {
                return Ok(Some((key.to_vec(), value.to_vec())));
            }
        }
    }

    /// The next row with its key as it is kept.
    fn encoded_step(&mut self, forward: bool) -> Option<Result<Row>> {
        if self.is_finished {
            return None;
        }
        let row = match self.failed.take() {
            Some(error) => Some(Err(error)),
            None => self.advance(forward).transpose(),
        };
        self.is_finished = !matches!(row, Some(Ok(_)));
        row
    }
}

impl BatchIter<'_> {
    /// A row with its key as users know it. After an error the iterator ends.
    fn decoded(&mut self, row: Result<Row>) -> Result<Row> {
        let Some(order) = &self.order else { return row };
        let row = row.and_then(|row| decoded(order, row));
        self.is_finished |= row.is_err();
        row
    }

    fn step(&mut self, forward: bool) -> Option<Result<Row>> {
        let row = self.encoded_step(forward)?;
        Some(self.decoded(row))
    }
}

impl Iterator for BatchIter<'_> {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(true)
    }
}

impl DoubleEndedIterator for BatchIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(false)
    }
}

/// The rows of a range as a transaction sees them. Of a serializable transaction it keeps which part was seen.
pub struct TransactionIter<'t> {
    pub(super) rows: BatchIter<'t>,
    pub(super) transaction: &'t Transaction,
    pub(super) scan: Option<ScanId>,
    /// The whole range.
    pub(super) bounds: Bounds,
    /// The last key from the front and from the back, encoded.
    pub(super) seen: [Option<Vec<u8>>; 2],
    pub(super) is_whole: bool,
}

impl TransactionIter<'_> {
    fn step(&mut self, end: usize) -> Option<Result<Row>> {
        let row = self.rows.encoded_step(end == 0);
        match &row {
            Some(Ok((key, _))) if self.scan.is_some() => self.seen[end] = Some(key.clone()),
            Some(_) => {}
            // The ends have met: nothing is in between.
            None => self.is_whole = true,
        }
        row.map(|row| self.rows.decoded(row))
    }
}

impl Iterator for TransactionIter<'_> {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(0)
    }
}

impl DoubleEndedIterator for TransactionIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(1)
    }
}

impl Drop for TransactionIter<'_> {
    fn drop(&mut self) {
        use std::ops::Bound::Included;
        let Some(scan) = self.scan.take().filter(|_| !self.is_whole) else { return };
        let [front, back] = std::mem::take(&mut self.seen);
        let front = front.map(|key| Bounds { lower: self.bounds.lower.clone(), upper: Included(key) });
        let back = back.map(|key| Bounds { lower: Included(key), upper: self.bounds.upper.clone() });
        self.transaction.after_scan(scan, front.into_iter().chain(back).collect());
    }
}
