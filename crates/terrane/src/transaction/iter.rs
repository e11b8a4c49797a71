//! Rows of a batch over rows of the database, merged from both ends.
//!
//! Each end has one row of the database and one change ahead. If both have the same key, the change wins, or
//! is folded with the row; a delete hides the row. Ranges that the batch deletes are not read at all. The
//! ends share the two sources, so a source that one end has exhausted may still be ahead at the other: the
//! sources never return a row twice, and an end whose source is empty takes over what the other end has
//! ahead.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::iter::FusedIterator;

use terrane_base::batch_index::History;
use terrane_base::{Error, Result};
use terrane_engine::{Bounds, PinnedRange, ScanId};

use crate::iter::decoded;
use crate::snapshot::Pin;
use crate::transaction::Transaction;
use crate::transaction::indexed::{Changes, IndexedBatch};
use crate::{Row, Table};

/// A change in the iterator: the key and what the batch does to it.
type Changed<'b> = (&'b Vec<u8>, &'b History);

/// The rows of several ranges, with stored keys, in order, from both ends.
struct Parts {
    table: Table,
    pin: Pin,
    /// Those that neither end has begun.
    left: VecDeque<Bounds>,
    front: Option<PinnedRange>,
    back: Option<PinnedRange>,
    /// Whether rows have empty values, and separated ones are not read.
    leaves_values: bool,
}

impl Parts {
    fn open(&self, bounds: Bounds) -> PinnedRange {
        let mut rows = self.table.encoded_iter_at(bounds, self.pin.clone());
        rows.leave_values(self.leaves_values);
        rows
    }

    /// The value of a row, also if values are left. None if it has expired meanwhile.
    fn value_of(&self, (key, value): Row) -> Result<Option<Vec<u8>>> {
        if !self.leaves_values {
            return Ok(Some(value));
        }
        debug_assert!(value.is_empty(), "a row whose value was left has none");
        let mut value = Vec::new();
        let mode = self.table.mode(Some(self.pin.seq()));
        let is_there = self.table.engine.get(&self.table.inner, &key, mode, &mut value)?;
        self.pin.check().map(|()| is_there.then_some(value))
    }

    fn next(&mut self) -> Option<Result<Row>> {
        loop {
            if let Some(row) = self.front.as_mut().and_then(Iterator::next) {
                return Some(row);
            }
            match self.left.pop_front() {
                Some(bounds) => self.front = Some(self.open(bounds)),
                None => return self.back.as_mut()?.next(),
            }
        }
    }

    fn next_back(&mut self) -> Option<Result<Row>> {
        loop {
            if let Some(row) = self.back.as_mut().and_then(DoubleEndedIterator::next_back) {
                return Some(row);
            }
            match self.left.pop_back() {
                Some(bounds) => self.back = Some(self.open(bounds)),
                None => return self.front.as_mut()?.next_back(),
            }
        }
    }
}

/// The next row and the next change at one end.
#[derive(Default)]
struct Ahead<'b> {
    row: Option<Row>,
    change: Option<Changed<'b>>,
}

/// The rows of a range under the changes of a batch, in key order, from both ends. After an error it ends.
pub struct BatchIter<'b> {
    /// None where there is nothing but an error.
    rows: Option<Parts>,
    failed: Option<Error>,
    table: Table,
    changes: Changes<'b>,
    batch: &'b IndexedBatch,
    front: Ahead<'b>,
    back: Ahead<'b>,
    is_finished: bool,
}

impl<'b> BatchIter<'b> {
    /// The rows within encoded bounds, as a pin sees them, under the batch, or an error alone.
    pub(crate) fn new(batch: &'b IndexedBatch, table: &Table, bounds: Result<Bounds>, pin: Pin) -> Self {
        let (rows, changes, failed) = match bounds {
            Ok(bounds) => {
                let changes = batch.changes(table, &bounds);
                let left = batch.rest_of(table, bounds).into();
                let rows =
                    Parts { table: table.clone(), pin, left, front: None, back: None, leaves_values: false };
                (Some(rows), changes, None)
            }
            Err(error) => (None, None, Some(error)),
        };
        BatchIter {
            rows,
            failed,
            table: table.clone(),
            changes,
            batch,
            front: Ahead::default(),
            back: Ahead::default(),
            is_finished: false,
        }
    }

    fn fill_front(&mut self) -> Result<()> {
        if self.front.row.is_none() {
            let next = self.rows.as_mut().and_then(Parts::next).transpose()?;
            self.front.row = next.or_else(|| self.back.row.take());
        }
        if self.front.change.is_none() {
            let next = self.changes.as_mut().and_then(Iterator::next);
            self.front.change = next.or_else(|| self.back.change.take());
        }
        Ok(())
    }

    fn fill_back(&mut self) -> Result<()> {
        if self.back.row.is_none() {
            let next = self.rows.as_mut().and_then(Parts::next_back).transpose()?;
            self.back.row = next.or_else(|| self.front.row.take());
        }
        if self.back.change.is_none() {
            let next = self.changes.as_mut().and_then(DoubleEndedIterator::next_back);
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
            let collation = self.table.inner.sense.collation();
            let end = if forward { &mut self.front } else { &mut self.back };
            let order = match (&end.row, &end.change) {
                // Without the comparator it is unknown whether this is the end.
                (None, None) => return collation.check().map(|()| None),
                (Some(_), None) => return Ok(end.row.take()),
                (None, Some(_)) => Ordering::Greater,
                (Some((row, _)), Some((change, _))) if forward => collation.cmp(row, change),
                (Some((row, _)), Some((change, _))) => collation.cmp(change, row),
            };
            if order == Ordering::Less {
                return Ok(end.row.take());
            }
            let row = if order == Ordering::Equal { end.row.take() } else { None };
            let Some((key, history)) = end.change.take() else { return Ok(None) };
            let below = match (row, &self.rows) {
                (Some(row), Some(rows)) if self.batch.change_reaches_down(&self.table, (key, history)) => {
                    rows.value_of(row)?
                }
                _ => None,
            };
            if let Some(value) = self.batch.resolve_change(&self.table, (key, history), below)? {
                return Ok(Some((key.to_vec(), value)));
            }
        }
    }

    /// The next row with its stored key.
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

impl<'b> BatchIter<'b> {
    /// The next rows have empty values if they come from the database.
    fn leave_values(&mut self) {
        if let Some(rows) = &mut self.rows {
            rows.leaves_values = true;
            for rows in rows.front.iter_mut().chain(&mut rows.back) {
                rows.leave_values(true);
            }
        }
    }

    /// The keys alone; separated values are read only below operands of the batch.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.put(table, "a", "1")?;
    /// let keys: Vec<Vec<u8>> = batch.range(table, ..).keys().collect::<terrane::Result<_>>()?;
    /// assert_eq!(keys, [b"a"]);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn keys(mut self) -> impl DoubleEndedIterator<Item = Result<Vec<u8>>> + FusedIterator + use<'b> {
        self.leave_values();
        self.map(|row| row.map(|(key, _)| key))
    }

    /// The values alone, in the order of their keys.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.put(table, "a", "1")?;
    /// let values: Vec<Vec<u8>> = batch.range(table, ..).values().collect::<terrane::Result<_>>()?;
    /// assert_eq!(values, [b"1"]);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn values(self) -> impl DoubleEndedIterator<Item = Result<Vec<u8>>> + FusedIterator + use<'b> {
        self.map(|row| row.map(|(_, value)| value))
    }
}

impl BatchIter<'_> {
    /// A row with its key as users know it. After an error the iterator ends.
    fn decoded(&mut self, row: Result<Row>) -> Result<Row> {
        let Some(order) = &self.table.order else { return row };
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

impl FusedIterator for BatchIter<'_> {}

/// The rows of a range as a transaction sees them. Of a serializable transaction it keeps which part was
/// seen.
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

impl<'t> TransactionIter<'t> {
    /// The keys alone; separated values are read only below operands of the transaction.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.put(table, "a", "1")?;
    /// let keys: Vec<Vec<u8>> = transaction.range(table, ..)?.keys().collect::<terrane::Result<_>>()?;
    /// assert_eq!(keys, [b"a"]);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn keys(mut self) -> impl DoubleEndedIterator<Item = Result<Vec<u8>>> + FusedIterator + use<'t> {
        self.rows.leave_values();
        self.map(|row| row.map(|(key, _)| key))
    }

    /// The values alone, in the order of their keys.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.put(table, "a", "1")?;
    /// let values: Vec<Vec<u8>> = transaction.range(table, ..)?.values().collect::<terrane::Result<_>>()?;
    /// assert_eq!(values, [b"1"]);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn values(self) -> impl DoubleEndedIterator<Item = Result<Vec<u8>>> + FusedIterator + use<'t> {
        self.map(|row| row.map(|(_, value)| value))
    }
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

impl FusedIterator for TransactionIter<'_> {}

impl Drop for TransactionIter<'_> {
    fn drop(&mut self) {
        use std::ops::Bound::Included;
        let Some(scan) = self.scan.take().filter(|_| !self.is_whole) else { return };
        let [front, back] = std::mem::take(&mut self.seen);
        let front = front.map(|key| Bounds { upper: Included(key), ..self.bounds.clone() });
        let back = back.map(|key| Bounds { lower: Included(key), ..self.bounds.clone() });
        self.transaction.after_scan(scan, front.into_iter().chain(back).collect());
    }
}
