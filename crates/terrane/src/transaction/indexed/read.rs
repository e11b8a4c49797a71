//! Reads through a batch: its own changes, folded over the database's values if there are operands.

use terrane_base::batch_index::{Step, Steps};
use terrane_base::chain::Chain;
use terrane_base::{BatchIndex, RecordKind, Result, SeqKind, SeqNo};
use terrane_engine::Bounds;

use super::{IndexedBatch, record_at};
use crate::transaction::deleted;
use crate::transaction::iter::BatchIter;
use crate::{KeyBounds, Snapshot, Table, Value};

impl IndexedBatch {
    /// Returns true if it changes `key`, individually or by a deleted range.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.put(table, "a", "1")?;
    /// assert!(batch.changes_key(table, "a") && !batch.changes_key(table, "b"));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn changes_key(&self, table: &Table, key: impl AsRef<[u8]>) -> bool {
        self.changes_bytes(table, key.as_ref())
    }

    fn changes_bytes(&self, table: &Table, key: &[u8]) -> bool {
        // A key that cannot be encoded is not changed.
        let is_changed = table.encoding(key, |key| Ok(self.own(table, key).len() > 0));
        is_changed.unwrap_or(false)
    }

    /// Returns true if the database's value of `key` is needed.
    pub(crate) fn is_open(&self, table: &Table, key: &[u8]) -> Result<bool> {
        table.encoding(key, |key| Ok(self.reach_down(&self.own(table, key))))
    }

    /// The index of a table, if the batch changes it.
    pub(crate) fn index_of(&self, table: &Table) -> Option<&BatchIndex> {
        self.index.get(&table.id()).filter(|_| self.batch.is_of(table))
    }

    /// The changes of an encoded key in the batch, newest first.
    pub(crate) fn own(&self, table: &Table, key: &[u8]) -> Steps<'_> {
        self.index_of(table).map(|index| index.steps(key)).unwrap_or_default()
    }

    /// A step as a version of its key: its kind and its stored value.
    fn version(&self, step: Step) -> (RecordKind, &[u8]) {
        match step {
            Step::RangeDelete => (RecordKind::Delete, &[]),
            Step::Record(at) => {
                let record = record_at(&self.batch, at);
                (record.kind, record.value)
            }
        }
    }

    /// Returns true if the steps of a key are folded with the database's value.
    pub(crate) fn reach_down(&self, own: &Steps<'_>) -> bool {
        own.clone().all(|step| matches!(self.version(step).0, RecordKind::Merge | RecordKind::MergeUntil))
    }

    /// The value of an encoded key, of its steps over the value `below`.
    pub(crate) fn resolve(
        &self,
        table: &Table,
        key: &[u8],
        own: Steps<'_>,
        below: Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>> {
        let Some(newest) = own.clone().next() else { return Ok(below) };
        match self.version(newest) {
            (RecordKind::Put, value) => return Ok(Some(value.to_vec())),
            (RecordKind::Delete | RecordKind::SingleDelete, _) => return Ok(None),
            _ => {}
        }
        let (mut chain, now) = (Chain::new(), table.inner.semantics.now());
        // Any descending numbers will do; the database's value is the first.
        let mut seq = SeqNo(own.len() as u64 + 1);
        let mut goes_on = true;
        for step in own {
            let (kind, value) = self.version(step);
            goes_on = goes_on && chain.take(SeqKind::new(seq, kind), value, now)?;
            seq = SeqNo(seq.0 - 1);
        }
        if let Some(below) = below.filter(|_| goes_on && !terrane_base::planted!(ForgetBelow)) {
            chain.take(SeqKind::new(SeqNo(1), RecordKind::Put), &below, now)?;
        }
        let mut value = Vec::new();
        let operator = table.inner.semantics.operator().map(|operator| &**operator);
        Ok(chain.fold(operator, key, &mut value)?.then_some(value))
    }

    /// [`IndexedBatch::resolve`] over what `below` finds, which is only asked if it counts.
    pub(crate) fn resolve_over(
        &self,
        table: &Table,
        key: &[u8],
        own: Steps<'_>,
        below: impl FnOnce() -> Result<Option<Vec<u8>>>,
    ) -> Result<Option<Vec<u8>>> {
        // What nearly every change is.
        match own.clone().next().map(|newest| self.version(newest)) {
            Some((RecordKind::Put, value)) => return Ok(Some(value.to_vec())),
            Some((RecordKind::Delete | RecordKind::SingleDelete, _)) => return Ok(None),
            _ => {}
        }
        let below = if self.reach_down(&own) { below()? } else { None };
        self.resolve(table, key, own, below)
    }

    /// The value of `key` as it will be once the batch is written to the latest state.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("k", "old")?;
    /// let mut batch = terrane::IndexedBatch::new();
    /// assert_eq!(batch.get(table, "k")?.expect("of the database"), "old");
    /// batch.put(table, "k", "new")?;
    /// assert_eq!(batch.get(table, "k")?.expect("its own"), "new");
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn get(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.get_over(table, key.as_ref(), None)
    }

    /// The value of `key` in a snapshot under the batch.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let before = db.snapshot();
    /// table.put("k", "v")?;
    /// let batch = terrane::IndexedBatch::new();
    /// assert!(batch.get_at(&before, table, "k")?.is_none());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn get_at(&self, snapshot: &Snapshot, table: &Table, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.get_bytes_at(snapshot, table, key.as_ref())
    }

    fn get_bytes_at(&self, snapshot: &Snapshot, table: &Table, key: &[u8]) -> Result<Option<Value>> {
        table.refuse_pin(&snapshot.pin)?;
        let value = self.get_over(table, key, Some(snapshot.seq()))?;
        snapshot.pin.check().map(|()| value)
    }

    pub(crate) fn get_over(&self, table: &Table, key: &[u8], at: Option<SeqNo>) -> Result<Option<Value>> {
        table.encoding(key, |encoded| {
            let own = self.own(table, encoded);
            let below = if self.reach_down(&own) { table.get_at(key, at)? } else { None };
            if own.len() == 0 {
                return Ok(below);
            }
            Ok(self.resolve(table, encoded, own, below.map(Value::into_vec))?.map(Value::new))
        })
    }

    /// The rows of a range as they will be once the batch is written to the latest state, from both ends.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// table.put("a", "1")?;
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.put(table, "b", "2")?;
    /// assert_eq!(batch.range(table, "a"..).count(), 2);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[track_caller]
    pub fn range(&self, table: &Table, range: impl KeyBounds) -> BatchIter<'_> {
        BatchIter::new(
            self,
            table,
            table.refuse_if_dropped().and(table.bounds(range.lower(), range.upper())),
            table.pin(),
        )
    }

    /// The rows of a range of a snapshot under the batch, from both ends.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let before = db.snapshot();
    /// table.put("a", "1")?;
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.put(table, "b", "2")?;
    /// assert_eq!(batch.range_at(&before, table, ..).count(), 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn range_at(&self, snapshot: &Snapshot, table: &Table, range: impl KeyBounds) -> BatchIter<'_> {
        let bounds = table.refuse_pin(&snapshot.pin).and(table.bounds(range.lower(), range.upper()));
        BatchIter::new(self, table, bounds, snapshot.pin.clone())
    }

    /// The parts of encoded bounds that the batch does not delete, in order.
    pub(crate) fn rest_of(&self, table: &Table, bounds: Bounds) -> Vec<Bounds> {
        match self.index_of(table) {
            Some(index) if !terrane_base::planted!(ScanOwnDeletes) => {
                deleted::rest_of(index.deleted(), bounds)
            }
            _ => vec![bounds],
        }
    }
}
