//! A write batch that can be read: an index over its own records.

use std::collections::BTreeMap;
use std::ops::{Bound, Range, RangeBounds};

use terrane_base::{Result, SeqNo, TableId};
use terrane_engine::Bounds;

use crate::snapshot::Pin;
use crate::transaction::iter::BatchIter;
use crate::{Batch, Db, Snapshot, Sync, Table, Value};

/// What a batch does to a key last: where in its records the value lies, or a delete.
pub(crate) type Change = Option<Range<usize>>;

/// How far a batch was at one moment.
#[derive(Clone, Copy, Debug)]
struct Mark {
    bytes: usize,
    record_count: u32,
    undo: usize,
}

/// A batch of changes that can be read as if it had been written: each read looks into the batch first, and then into a
/// snapshot or the latest state. Nothing is written before [`IndexedBatch::write`].
///
/// A batch belongs to one database, that of the first table that it changes. A later change of a key takes the place of
/// an earlier one.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// # let db = terrane::Db::open(dir.path().join("data"))?;
/// let table = db.default_table();
/// db.put(b"a", b"1")?;
/// let mut batch = terrane::IndexedBatch::new();
/// batch.put(table, b"b", b"2")?;
/// batch.set_savepoint();
/// batch.delete(table, b"a")?;
/// assert!(batch.get(table, b"a")?.is_none()); // its own delete
/// batch.rollback_to_savepoint()?;
/// assert!(batch.get(table, b"a")?.is_some()); // what the database has
/// let keys: Vec<_> = batch.range(table, ..).map(|row| row.map(|(key, _)| key)).collect::<Result<_, _>>()?;
/// assert_eq!(keys, [b"a", b"b"]);
/// batch.write(&db, terrane::Sync::No)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct IndexedBatch {
    pub(crate) batch: Batch,
    index: BTreeMap<TableId, BTreeMap<Vec<u8>, Change>>,
    savepoints: Vec<Mark>,
    /// While there is a savepoint: what the index held for each key that was changed, oldest first.
    undo: Vec<(TableId, Vec<u8>, Option<Change>)>,
    key_count: u64,
}

impl IndexedBatch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets `key` to `value` in `table`.
    ///
    /// # Errors
    /// As [`Batch::put`].
    pub fn put(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<()> {
        table.encoding(key, |key| {
            self.batch.put_encoded(table, key, value)?;
            let end = self.batch.bytes();
            self.note(table.id(), key, Some(end - value.len()..end));
            Ok(())
        })
    }

    /// Removes `key` from `table`; fine if it is not there.
    ///
    /// # Errors
    /// As [`Batch::put`].
    pub fn delete(&mut self, table: &Table, key: &[u8]) -> Result<()> {
        table.encoding(key, |key| {
            self.batch.delete_encoded(table, key)?;
            self.note(table.id(), key, None);
            Ok(())
        })
    }

    /// Notes what becomes of an encoded key.
    fn note(&mut self, table: TableId, key: &[u8], change: Change) {
        let before = self.index.entry(table).or_default().insert(key.to_vec(), change);
        self.key_count += u64::from(before.is_none());
        if !self.savepoints.is_empty() {
            self.undo.push((table, key.to_vec(), before));
        }
    }

    /// How many changes it holds, those that a later one hides counted as well.
    #[must_use]
    pub fn len(&self) -> usize {
        self.batch.len()
    }

    /// How many keys it changes.
    #[must_use]
    pub fn key_count(&self) -> u64 {
        self.key_count
    }

    /// Whether it holds no change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Bytes of the changes as they are journaled.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.batch.bytes()
    }

    /// How many savepoints are set.
    #[must_use]
    pub fn savepoint_count(&self) -> usize {
        self.savepoints.len()
    }

    /// Removes every change and every savepoint.
    pub fn clear(&mut self) {
        self.batch.clear();
        self.index.clear();
        self.savepoints.clear();
        self.undo.clear();
        self.key_count = 0;
    }

    /// Marks this moment, to go back to it.
    pub fn set_savepoint(&mut self) {
        let (bytes, record_count) = (self.batch.bytes(), self.batch.records.record_count());
        self.savepoints.push(Mark { bytes, record_count, undo: self.undo.len() });
    }

    /// Takes back every change since the last savepoint, which goes.
    ///
    /// # Errors
    /// `Invalid` if none is set.
    pub fn rollback_to_savepoint(&mut self) -> Result<()> {
        let mark = self.savepoints.pop().ok_or_else(no_savepoint)?;
        for (table, key, before) in self.undo.drain(mark.undo..).rev() {
            let index = self.index.get_mut(&table).expect("what was noted is in the index");
            match before {
                Some(change) => drop(index.insert(key, change)),
                None => {
                    index.remove(&key);
                    self.key_count -= 1;
                }
            }
        }
        self.batch.records.truncate(mark.bytes, mark.record_count);
        Ok(())
    }

    /// Forgets the last savepoint; the changes since stay.
    ///
    /// # Errors
    /// `Invalid` if none is set.
    pub fn pop_savepoint(&mut self) -> Result<()> {
        self.savepoints.pop().ok_or_else(no_savepoint)?;
        if self.savepoints.is_empty() {
            self.undo.clear();
        }
        Ok(())
    }

    /// What the batch alone says of `key`: nothing, that it is deleted (`Some(None)`), or its value.
    #[must_use]
    pub fn changed(&self, table: &Table, key: &[u8]) -> Option<Option<&[u8]>> {
        if !self.batch.is_of(table) {
            return None;
        }
        let index = self.index.get(&table.id())?;
        // A key that cannot be encoded was not changed.
        let change = table.encoding(key, |key| Ok(index.get(key))).ok()?;
        change.map(|change| self.value_of(change))
    }

    pub(crate) fn value_of(&self, change: &Change) -> Option<&[u8]> {
        change.clone().map(|range| &self.batch.records.bytes()[range])
    }

    /// The value of `key` as it will be once the batch is written to the latest state.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn get(&self, table: &Table, key: &[u8]) -> Result<Option<Value>> {
        match self.changed(table, key) {
            Some(value) => Ok(value.map(|bytes| Value::new(bytes.to_vec()))),
            None => table.get(key),
        }
    }

    /// The value of `key` in a snapshot under the batch.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn get_at(&self, snapshot: &Snapshot, table: &Table, key: &[u8]) -> Result<Option<Value>> {
        match self.changed(table, key) {
            Some(value) => Ok(value.map(|bytes| Value::new(bytes.to_vec()))),
            None => snapshot.get(table, key),
        }
    }

    /// The rows of a range as they will be once the batch is written to the latest state, from both ends.
    pub fn range<'k>(&self, table: &Table, range: impl RangeBounds<&'k [u8]>) -> BatchIter<'_> {
        self.rows(table, table.bounds(&range), table.pin())
    }

    /// The rows of a range of a snapshot under the batch, from both ends.
    pub fn range_at<'k>(
        &self,
        snapshot: &Snapshot,
        table: &Table,
        range: impl RangeBounds<&'k [u8]>,
    ) -> BatchIter<'_> {
        self.rows(table, table.bounds(&range), snapshot.pin.clone())
    }

    /// The rows within encoded bounds, as a pin sees them, under the batch.
    pub(crate) fn rows(&self, table: &Table, bounds: Result<Bounds>, pin: Pin) -> BatchIter<'_> {
        let sources = bounds.map(|bounds| {
            let changes = self.changes(table, &bounds);
            (table.encoded_iter_at(bounds, pin), changes)
        });
        BatchIter::new(sources, table.order.clone(), self)
    }

    /// The batch's own changes within encoded bounds.
    pub(crate) fn changes(&self, table: &Table, bounds: &Bounds) -> Changes<'_> {
        let index = self.index.get(&table.id()).filter(|_| self.batch.is_of(table))?;
        let (lower, upper) = (as_slice(&bounds.lower), as_slice(&bounds.upper));
        let is_empty = match (lower, upper) {
            (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (
                Bound::Included(lower) | Bound::Excluded(lower),
                Bound::Included(upper) | Bound::Excluded(upper),
            ) => lower >= upper,
        };
        (!is_empty).then(|| index.range::<[u8], _>((lower, upper)))
    }

    /// Writes the changes to the database, all or nothing, and keeps them here. Returns their position in the order of
    /// commits.
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn write(&self, db: &Db, sync: Sync) -> Result<SeqNo> {
        db.write(&self.batch, sync)
    }
}

/// Changes of a range, in order.
pub(crate) type Changes<'b> = Option<std::collections::btree_map::Range<'b, Vec<u8>, Change>>;

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

#[cold]
fn no_savepoint() -> terrane_base::Error {
    terrane_base::Error::invalid("no savepoint is set: set one first")
}
