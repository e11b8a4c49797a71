//! A write batch that can be read: an index over its own records.

// In the order of the documentation page.
mod write;

mod read;

mod savepoints;

use std::collections::BTreeMap;
use std::ops::Range;

use terrane_base::record::Header;
use terrane_base::{Collation, OrderedMap, RecordKind, Result, SeqNo, TableId, ordered_map};

use crate::batch::Mark;
use crate::transaction::deleted::Deleted;
use crate::{Batch, Db, Durability, Table};

/// The effect of one record of a batch on its key.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    kind: RecordKind,
    /// Range of its stored value in the batch.
    value: Range<usize>,
}

/// The change of a key by a batch.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// One record counts.
    One(Written),
    /// Operands of merges, oldest first, possibly with a base as the first record.
    Chain(Vec<Written>),
}

impl Change {
    fn records(&self) -> &[Written] {
        match self {
            Change::One(written) => std::slice::from_ref(written),
            Change::Chain(chain) => chain,
        }
    }

    /// Returns true if the database's value is needed as well.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.records()[0].kind, RecordKind::Merge | RecordKind::MergeUntil)
    }
}

/// The changes of a batch in one table.
#[derive(Clone, Debug)]
struct TableIndex {
    keys: OrderedMap<Change>,
    /// Ranges that it deletes. A key of `keys` that lies there was written later.
    deleted: Deleted,
}

impl TableIndex {
    fn of(table: &Table) -> Self {
        let collation = table.inner.sense.collation();
        TableIndex { keys: OrderedMap::new(collation), deleted: Deleted::new(collation) }
    }
}

/// The batch's own value of a key.
pub(crate) enum Own<'b> {
    /// None: the database's value counts.
    Nothing,
    /// It lies in a range that is deleted.
    Deleted,
    /// This.
    Change(&'b Change),
}

impl Own<'_> {
    /// Returns true if the database's value is needed.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Own::Nothing => true,
            Own::Deleted => false,
            Own::Change(change) => change.is_open(),
        }
    }
}

/// The state of a batch at one time.
#[derive(Clone, Debug)]
struct Savepoint {
    batch: Mark,
    undo: usize,
}

/// Undoes one step.
#[derive(Clone, Debug)]
enum Undo {
    /// The previous change of the key.
    Key(TableId, Vec<u8>, Option<Change>),
    /// The key had one operand less.
    Operand(TableId, Vec<u8>),
    /// The previous ranges of the table.
    Deleted(TableId, Deleted),
}

/// A batch of changes that can be read as if it had been written: each read searches the batch first, and
/// then a snapshot or the latest state. Nothing is written before [`IndexedBatch::write`].
///
/// A batch belongs to one database, that of the first table that it changes. A later change of a key replaces
/// an earlier one, but a merge is folded with the batch's own change of the key, or else with the database's
/// value.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// # let db = terrane::Db::open(dir.path().join("data"))?;
/// let table = db.default_table();
/// db.put("a", "1")?;
/// let mut batch = terrane::IndexedBatch::new();
/// batch.put(table, "b", "2")?;
/// batch.set_savepoint();
/// batch.delete(table, "a")?;
/// assert!(batch.get(table, "a")?.is_none()); // its own delete
/// batch.rollback_to_savepoint()?;
/// assert!(batch.get(table, "a")?.is_some()); // what the database has
/// let keys: Vec<_> = batch.range(table, ..).map(|row| row.map(|(key, _)| key)).collect::<Result<_, _>>()?;
/// assert_eq!(keys, [b"a", b"b"]);
/// batch.write(&db, terrane::Durability::Buffered)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct IndexedBatch {
    pub(crate) batch: Batch,
    index: BTreeMap<TableId, TableIndex>,
    savepoints: Vec<Savepoint>,
    /// While there is a savepoint: what takes each change back, oldest first.
    undo: Vec<Undo>,
    key_count: u64,
}

impl IndexedBatch {
    /// An empty batch.
    ///
    /// ```
    /// assert!(terrane::IndexedBatch::new().is_empty());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn note_undo(&mut self, undo: Undo) {
        if !self.savepoints.is_empty() {
            self.undo.push(undo);
        }
    }

    /// Adds a record of one key, and indexes it.
    fn add(&mut self, table: &Table, add: impl FnOnce(&mut Batch) -> Result<()>) -> Result<()> {
        let at = self.batch.bytes();
        add(&mut self.batch)?;
        let bytes = &self.batch.records.bytes()[at..];
        let header = Header::decode(bytes).expect("a batch holds whole records");
        let key = &bytes[header.header_len..header.header_len + header.key_len];
        let end = self.batch.bytes();
        let written = Written { kind: header.kind, value: end - header.value_len..end };
        let undo = self.index.entry(table.id()).or_insert_with(|| TableIndex::of(table)).note(
            table.id(),
            key,
            written,
        );
        self.key_count += u64::from(matches!(undo, Undo::Key(_, _, None)));
        self.note_undo(undo);
        Ok(())
    }

    /// Number of changes, including those that a later one hides.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.put(table, "k", "1")?;
    /// batch.put(table, "k", "2")?;
    /// assert_eq!(batch.len(), 2);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.batch.len()
    }

    /// Number of keys that it changes individually; keys in a range that it deletes later do not count.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.put(table, "k", "1")?;
    /// batch.put(table, "k", "2")?;
    /// assert_eq!(batch.key_count(), 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn key_count(&self) -> u64 {
        self.key_count
    }

    /// Returns true if it holds no change.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.delete(table, "k")?;
    /// assert!(!batch.is_empty());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Bytes of the changes as they are journaled.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.put(table, "k", [0; 1000])?;
    /// assert!(batch.bytes() > 1000);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.batch.bytes()
    }

    /// Removes every change and every savepoint.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.put(table, "k", "v")?;
    /// batch.clear();
    /// assert!(batch.get(table, "k")?.is_none());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn clear(&mut self) {
        self.batch.clear();
        self.index.clear();
        self.savepoints.clear();
        self.undo.clear();
        self.key_count = 0;
    }

    /// Writes the changes to the database, all or nothing, and keeps them here. Returns their position in the
    /// order of commits.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut batch = terrane::IndexedBatch::new();
    /// batch.put(table, "k", "v")?;
    /// batch.write(&db, terrane::Durability::Synced)?;
    /// assert!(table.contains("k")?);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn write(&self, db: &Db, durability: Durability) -> Result<SeqNo> {
        db.write(&self.batch, durability)
    }
}

impl TableIndex {
    /// Notes a record; returns what takes that back.
    fn note(&mut self, table: TableId, key: &[u8], written: Written) -> Undo {
        let is_operand = matches!(written.kind, RecordKind::Merge | RecordKind::MergeUntil);
        if !is_operand {
            let before = self.keys.insert(key.to_vec(), Change::One(written));
            return Undo::Key(table, key.to_vec(), before);
        }
        match self.keys.get_mut(key) {
            Some(Change::Chain(chain)) => {
                chain.push(written);
                Undo::Operand(table, key.to_vec())
            }
            Some(change) => {
                let before = change.clone();
                let Change::One(first) = before.clone() else { unreachable!("chains are matched above") };
                *change = Change::Chain(vec![first, written]);
                Undo::Key(table, key.to_vec(), Some(before))
            }
            None => {
                let end = written.value.end;
                let deleted = Written { kind: RecordKind::Delete, value: end..end };
                let change = match self.deleted.holds(key) {
                    true => Change::Chain(vec![deleted, written]),
                    false => Change::One(written),
                };
                self.keys.insert(key.to_vec(), change);
                Undo::Key(table, key.to_vec(), None)
            }
        }
    }

    fn take_back(&mut self, undo: Undo) {
        match undo {
            Undo::Key(_, key, Some(change)) => drop(self.keys.insert(key, change)),
            Undo::Key(_, key, None) => drop(self.keys.remove(&key)),
            Undo::Operand(_, key) => {
                if let Some(Change::Chain(chain)) = self.keys.get_mut(&key) {
                    chain.pop();
                }
            }
            Undo::Deleted(_, deleted) => self.deleted = deleted,
        }
    }
}

/// Changes of a range, in order.
pub(crate) type Changes<'b> = Option<ordered_map::Range<'b, Change, Vec<u8>, Collation>>;
