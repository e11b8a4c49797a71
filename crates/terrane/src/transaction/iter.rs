//! Rows of a batch over rows of the database, from both ends.
//!
//! Each end is an [`Overlay`] of its own that goes in one direction: forward from the front, backward from
//! the back. The one at the back is made once it is asked for. From then on each end notes the last key that
//! it gave, and no end goes beyond that of the other.

mod rows;

use std::iter::FusedIterator;
use std::ops::Bound;

use terrane_base::overlay::{Direction, Overlay};
use terrane_base::{Error, Result};
use terrane_engine::{Bounds, ScanId};

use crate::iter::decoded;
use crate::snapshot::Pin;
use crate::transaction::Transaction;
use crate::transaction::indexed::IndexedBatch;
use crate::transaction::iter::rows::{OwnChanges, Rows};
use crate::{Row, Table};

/// One end of an iterator.
struct End<'b> {
    rows: Overlay<Rows<'b>, OwnChanges<'b>>,
    direction: Direction,
    is_placed: bool,
    /// The last key that it gave, while there are two ends.
    last: Option<Vec<u8>>,
}

impl<'b> End<'b> {
    fn new(rows: Rows<'b>, direction: Direction, table: &Table) -> Self {
        let (changes, order) = (rows.changes(), table.inner.semantics.collation().clone());
        End { rows: Overlay::new(rows, changes, order), direction, is_placed: false, last: None }
    }

    /// Returns true if it has given a key, or one behind it.
    fn has_given(&self, key: &[u8], table: &Table) -> bool {
        let collation = table.inner.semantics.collation();
        self.last.as_deref().is_some_and(|last| match self.direction {
            Direction::Forward => collation.le(key, last),
            Direction::Backward => collation.le(last, key),
        })
    }

    /// Its next row.
    #[inline]
    fn next(&mut self) -> Result<Option<Row>> {
        if self.is_placed {
            return self.rows.take_next(self.direction);
        }
        self.is_placed = true;
        self.rows.place(self.direction, Bound::Unbounded)?;
        Ok(self.rows.take())
    }
}

/// The rows of a range under the changes of a batch, in key order, from both ends. After an error it ends.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let db = terrane::Db::open_in_memory()?;
/// # let table = db.default_table();
/// table.put("a", "1")?;
/// table.put("b", "2")?;
/// let mut batch = terrane::IndexedBatch::new();
/// batch.put(table, "c", "3")?;
/// batch.delete(table, "a")?;
/// let rows: terrane::Result<Vec<terrane::Row>> = batch.range(table, ..).rev().collect();
/// assert_eq!(rows?, [(b"c".to_vec(), b"3".to_vec()), (b"b".to_vec(), b"2".to_vec())]);
/// # Ok(())
/// # }
/// ```
pub struct BatchIter<'b> {
    /// None where there is nothing but an error.
    front: Option<End<'b>>,
    back: Option<End<'b>>,
    failed: Option<Error>,
    table: Table,
    is_finished: bool,
}

impl<'b> BatchIter<'b> {
    /// The rows within encoded bounds, as a pin sees them, under the batch, or an error alone.
    pub(crate) fn new(batch: &'b IndexedBatch, table: &Table, bounds: Result<Bounds>, pin: Pin) -> Self {
        let (front, failed) = match bounds {
            Ok(bounds) => {
                let rows = Rows::new(batch, table.clone(), bounds, pin);
                (Some(End::new(rows, Direction::Forward, table)), None)
            }
            Err(error) => (None, Some(error)),
        };
        BatchIter { front, back: None, failed, table: table.clone(), is_finished: false }
    }

    /// Makes the end at the back, unless there is one: the front notes where it is.
    fn open_back(&mut self) {
        let Some(front) = self.front.as_mut().filter(|_| self.back.is_none()) else { return };
        debug_assert!(front.last.is_none(), "an end notes its last key only beside another one");
        front.last = front.rows.key().map(|key| key.into_owned());
        self.back = Some(End::new(front.rows.base().again(), Direction::Backward, &self.table));
    }

    #[inline]
    fn advance(&mut self, direction: Direction) -> Result<Option<Row>> {
        let (end, other) = match direction {
            Direction::Forward => (&mut self.front, &self.back),
            Direction::Backward => {
                self.open_back();
                (&mut self.back, &self.front)
            }
        };
        let Some(end) = end else { return Ok(None) };
        let Some(row) = end.next()? else {
            // Without the comparator it is unknown whether this is the end.
            return self.table.inner.semantics.collation().check().map(|()| None);
        };
        if let Some(other) = other {
            if other.has_given(&row.0, &self.table) {
                return Ok(None);
            }
            end.last = Some(row.0.clone());
        }
        Ok(Some(row))
    }

    /// The next row with its stored key.
    fn encoded_step(&mut self, direction: Direction) -> Option<Result<Row>> {
        if self.is_finished {
            return None;
        }
        let row = match self.failed.take() {
            Some(error) => Some(Err(error)),
            None => self.advance(direction).transpose(),
        };
        self.is_finished = !matches!(row, Some(Ok(_)));
        row
    }
}

impl<'b> BatchIter<'b> {
    /// The next rows have empty values if they come from the database.
    fn leave_values(&mut self) {
        for end in self.front.iter_mut().chain(&mut self.back) {
            end.rows.base_mut().leave_values();
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

    fn step(&mut self, direction: Direction) -> Option<Result<Row>> {
        let row = self.encoded_step(direction)?;
        Some(self.decoded(row))
    }
}

impl Iterator for BatchIter<'_> {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(Direction::Forward)
    }
}

impl DoubleEndedIterator for BatchIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(Direction::Backward)
    }
}

impl FusedIterator for BatchIter<'_> {}

/// The rows of a range as a transaction sees them. Of a serializable transaction it keeps which part was
/// seen.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let db = terrane::Db::open_in_memory()?;
/// # let table = db.default_table();
/// use terrane::{Isolation, Kind, TransactionOptions};
/// let options = TransactionOptions { isolation: Isolation::Serializable, ..TransactionOptions::default() };
/// let mut count = db.transaction(&options)?;
/// let users = count.range(table, "user/".."user0")?.count();
/// count.put(table, "users", users.to_string())?;
/// table.put("user/ada", "1815")?; // into the range that was read
/// let refused = count.commit(terrane::Durability::Buffered).unwrap_err();
/// assert_eq!(refused.kind(), Kind::Conflict);
/// # Ok(())
/// # }
/// ```
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
    fn step(&mut self, direction: Direction) -> Option<Result<Row>> {
        let row = self.rows.encoded_step(direction);
        let end = usize::from(direction == Direction::Backward);
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
        self.step(Direction::Forward)
    }
}

impl DoubleEndedIterator for TransactionIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(Direction::Backward)
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
