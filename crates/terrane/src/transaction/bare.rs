//! Transactions whose changes are stored elsewhere: for a layer with its own form of batch.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use terrane_base::record::Record;
use terrane_base::{RecordKind, Result, SeqNo, Stored, TableId};
use terrane_engine::{ChangeKind, Concurrency, LockMode, Transaction as Core, TransactionOptions};

pub use terrane_engine::LockMark;

use super::require_table;
use crate::{Batch, Db, Durability, Snapshot, Table};

/// A transaction that knows keys and no values: its caller keeps the changes, does the reads, names the keys
/// that it will change or has read, and passes the changes as a [`Batch`] at the end. For layers with their
/// own form of batch; other programs use [`Transaction`](crate::Transaction).
///
/// Levels above [`Isolation::Snapshot`](crate::Isolation::Snapshot) promise no more than that one, because
/// only locked reads are known. Dropped, it is rolled back.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// # let db = terrane::Db::open(dir.path().join("data"))?;
/// let table = db.default_table();
/// let mut transaction = db.bare_transaction(&terrane::TransactionOptions::default())?;
/// transaction.lock(table, "k", true)?;
/// db.put("k", "another's")?;
/// let mut batch = terrane::Batch::new();
/// batch.put(table, "k", "mine")?;
/// let refused = transaction.commit(&batch, terrane::Durability::Buffered).unwrap_err();
/// assert_eq!(refused.kind(), terrane::Kind::Conflict);
/// # Ok(())
/// # }
/// ```
pub struct BareTransaction {
    core: Core,
}

impl BareTransaction {
    /// Its number, as errors of other transactions name it; unique while the database is open.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// let transaction = db.bare_transaction(&terrane::TransactionOptions::default())?;
    /// println!("transaction {}", transaction.id());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn id(&self) -> u64 {
        self.core.id()
    }

    /// The moment after which no other writer may have changed its keys; `None` at
    /// [`Isolation::ReadCommitted`](crate::Isolation::ReadCommitted), where that is the moment of each lock.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let transaction = db.bare_transaction(&terrane::TransactionOptions::default())?;
    /// let snapshot = transaction.snapshot().expect("of the default level");
    /// assert!(!snapshot.contains(table, "k")?);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn snapshot(&self) -> Option<Snapshot> {
        self.core.snapshot().map(|pin| Snapshot { pin: pin.clone() })
    }

    /// Has `key` for this transaction until its end; `exclusive`: alone. An optimistic transaction takes no
    /// lock, but notices at its commit if another writer changed the key.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.bare_transaction(&terrane::TransactionOptions::default())?;
    /// transaction.lock(table, "k", true)?;
    /// let mut batch = terrane::Batch::new();
    /// batch.put(table, "k", "v")?;
    /// transaction.commit(&batch, terrane::Durability::Buffered)?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Conflict`, `Deadlock`, `TooOld`, `TimedOut`: the key is not locked, other locks stay. `Full` beyond
    /// the limits of the transaction, `Invalid` for a bad key, a table of another database or a transaction
    /// that was prepared, `NotFound` if the table was dropped.
    pub fn lock(&mut self, table: &Table, key: impl AsRef<[u8]>, exclusive: bool) -> Result<()> {
        self.lock_bytes(table, key.as_ref(), exclusive)
    }

    fn lock_bytes(&mut self, table: &Table, key: &[u8], exclusive: bool) -> Result<()> {
        terrane_base::key::check_key(key)?;
        require_table(&self.core, table)?;
        self.core.check_limits(1, key.len() as u64)?;
        let mode = if exclusive { LockMode::Exclusive } else { LockMode::Shared };
        let is_write = exclusive && self.core.options().concurrency == Concurrency::Pessimistic;
        table.encoding(key, |key| match is_write {
            true => self.core.before_write(table.id(), key),
            false => self.core.before_read_for_update(table.id(), key, mode),
        })
    }

    /// Returns true if it has taken longer than [`TransactionOptions::expires_after`] allows: what fails with
    /// `TooOld` fails for that.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// let transaction = db.bare_transaction(&terrane::TransactionOptions::default())?;
    /// assert!(!transaction.has_expired()); // without a limit it never does
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn has_expired(&self) -> bool {
        self.core.has_expired()
    }

    /// Marks this moment, for [`BareTransaction::release_since`].
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.bare_transaction(&terrane::TransactionOptions::default())?;
    /// let mark = transaction.mark();
    /// transaction.lock(table, "k", true)?;
    /// transaction.release_since(mark);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn mark(&mut self) -> LockMark {
        self.core.mark()
    }

    /// Releases the keys that were first locked after a mark. The caller must also undo the changes since
    /// then. A shared lock that became exclusive after the mark stays.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.bare_transaction(&terrane::TransactionOptions::default())?;
    /// let mark = transaction.mark();
    /// transaction.lock(table, "k", true)?;
    /// transaction.release_since(mark); // the key is free again
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn release_since(&mut self, mark: LockMark) {
        self.core.release_since(mark);
    }

    /// Commits the changes of `batch` atomically. Returns the position in commit order. It locks keys of the
    /// batch that are not locked yet. After success the transaction is over and must be dropped; if it fails,
    /// the transaction is unchanged.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.bare_transaction(&terrane::TransactionOptions::default())?;
    /// let mut batch = terrane::Batch::new();
    /// batch.put(table, "k", "v")?;
    /// transaction.commit(&batch, terrane::Durability::Synced)?;
    /// assert!(table.contains("k")?);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::commit`](crate::Transaction::commit).
    pub fn commit(&mut self, batch: &Batch, durability: Durability) -> Result<SeqNo> {
        batch.check(self.core.engine())?;
        self.core.try_commit(&batch.records, durability.is_synced())
    }

    /// Makes the changes of `batch` ready to be committed under `name`, as
    /// [`Transaction::prepare`](crate::Transaction::prepare). After it has succeeded the transaction is over
    /// and is to be dropped; if it fails, the transaction is as it was.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.bare_transaction(&terrane::TransactionOptions::default())?;
    /// let mut batch = terrane::Batch::new();
    /// batch.put(table, "k", "v")?;
    /// transaction.prepare("payment 7", &batch)?;
    /// assert_eq!(db.prepared(), ["payment 7"]);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::prepare`](crate::Transaction::prepare).
    pub fn prepare(&mut self, name: &str, batch: &Batch) -> Result<()> {
        batch.check(self.core.engine())?;
        self.core.prepare(name, &batch.records)
    }
}

impl fmt::Debug for BareTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, options) = (self.core.id(), self.core.options());
        f.debug_struct("BareTransaction").field("id", &id).field("options", options).finish_non_exhaustive()
    }
}

impl Db {
    /// Begins a transaction whose changes the caller keeps.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.bare_transaction(&terrane::TransactionOptions::default())?;
    /// let mut batch = terrane::Batch::new();
    /// batch.put(table, "k", "v")?;
    /// transaction.commit(&batch, terrane::Durability::Buffered)?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::transaction`].
    #[track_caller]
    pub fn bare_transaction(&self, options: &TransactionOptions) -> Result<BareTransaction> {
        let core = Core::begin_for(self.engine().clone(), self.handle().clone(), options.clone())?;
        Ok(BareTransaction { core })
    }

    /// As [`Db::commit_prepared`], with the changes of `more` after the prepared ones, atomically. Keys of
    /// `more` that are not locked yet, or shared with others, are locked for it, as for a write.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.bare_transaction(&terrane::TransactionOptions::default())?;
    /// let mut batch = terrane::Batch::new();
    /// batch.put(table, "k", "v")?;
    /// transaction.prepare("payment 7", &batch)?;
    /// let mut more = terrane::Batch::new();
    /// more.put(table, "payment 7", "paid")?;
    /// db.commit_prepared_with("payment 7", &more, terrane::Durability::Synced)?;
    /// assert!(table.contains("k")? && table.contains("payment 7")?);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::commit_prepared`] and [`Db::write`]; `TimedOut`, `Deadlock` if other transactions hold the
    /// locks; `Invalid` for range deletes. It stays prepared then.
    pub fn commit_prepared_with(&self, name: &str, more: &Batch, durability: Durability) -> Result<SeqNo> {
        more.check(self.engine())?;
        self.engine().commit_prepared(name, &more.records, durability.is_synced())
    }

    /// Tells the changes that are prepared under `name`, in their order, each with the number of its table;
    /// log data with 4,294,967,295. Those of tables that were dropped since are left out, as they are at the
    /// commit.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.bare_transaction(&terrane::TransactionOptions::default())?;
    /// let mut batch = terrane::Batch::new();
    /// batch.put(table, "k", "v")?;
    /// transaction.prepare("payment 7", &batch)?;
    /// let mut count = 0;
    /// db.prepared_changes("payment 7", &mut |_table, _change| count += 1)?;
    /// assert_eq!(count, 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if nothing is prepared under the name; `Corrupt`, `Io`.
    pub fn prepared_changes(&self, name: &str, visit: &mut dyn FnMut(u32, ChangeKind<'_>)) -> Result<()> {
        let batch = self.engine().prepared_batch(name)?;
        let tables = self.tables().into_iter().filter_map(|name| self.table(&name).ok());
        let tables: BTreeMap<TableId, Table> = tables.map(|table| (table.id(), table)).collect();
        for record in batch.records() {
            if let Some(data) = record.log_data() {
                visit(record.table.0, ChangeKind::LogData { data });
            }
            let Some(table) = tables.get(&record.table) else { continue };
            let Some(order) = &table.order else {
                change_of(&record)?.into_iter().for_each(|change| visit(record.table.0, change));
                continue;
            };
            let key = order.decode(record.key)?;
            let end = match record.kind {
                RecordKind::RangeDelete => Cow::Owned(order.decode(record.value)?),
                _ => Cow::Borrowed(record.value),
            };
            let decoded = Record { key: &key, value: &end, ..record };
            change_of(&decoded)?.into_iter().for_each(|change| visit(record.table.0, change));
        }
        Ok(())
    }
}

/// A record as readers of changes get it; none for kinds that no batch of a user has.
fn change_of<'r>(record: &Record<'r>) -> Result<Option<ChangeKind<'r>>> {
    let (key, stored) = (record.key, Stored::decode(record.kind, record.value)?);
    Ok(match record.kind {
        RecordKind::Put | RecordKind::PutUntil => Some(ChangeKind::Put { key, value: stored.value }),
        RecordKind::Delete => Some(ChangeKind::Delete { key }),
        RecordKind::SingleDelete => Some(ChangeKind::SingleDelete { key }),
        RecordKind::Merge | RecordKind::MergeUntil => Some(ChangeKind::Merge { key, operand: stored.value }),
        RecordKind::RangeDelete => Some(ChangeKind::DeleteRange { start: key, end: record.value }),
        _ => None,
    })
}
