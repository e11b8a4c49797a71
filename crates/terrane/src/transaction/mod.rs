//! Transactions: changes that are made concurrently with those of other writers as if no other writer
//! existed.

// In the order of the documentation pages.
mod begin;

mod read;

mod write;

mod bare;
mod deleted;
mod indexed;
mod iter;

use std::fmt;

use terrane_base::sync::{Mutex, MutexGuard};
use terrane_base::{Error, Result, SeqNo};
use terrane_engine::{Bounds, ScanId, Transaction as Core, TransactionOptions};

pub use bare::{BareTransaction, LockMark};
pub use indexed::IndexedBatch;
pub use iter::{BatchIter, TransactionIter};

use crate::{Db, Durability, Snapshot, Table};

/// A transaction: reads and changes that take effect together at the commit, or not at all. Dropped without a
/// commit, it is rolled back.
///
/// [`Isolation`](crate::Isolation) sets what it promises, and [`Concurrency`](crate::Concurrency) when it
/// detects that the promise cannot be kept. It may then fail with an error whose kind
/// [`is_worth_another_run`](crate::Kind::is_worth_another_run): [`Db::transact`] runs it again automatically.
///
/// Writes outside of transactions ([`Db::put`], [`Db::write`]) are seen by every check, and wait up to a
/// second for keys that a transaction has locked. Its size is bounded as that of a batch, and by
/// [`TransactionOptions`](crate::TransactionOptions).
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// # let db = terrane::Db::open(dir.path().join("data"))?;
/// let table = db.default_table();
/// db.put("stock", "3")?;
/// let mut sale = db.transaction(&terrane::TransactionOptions::default())?;
/// if sale.get(table, "stock")?.as_deref() == Some(b"3") {
///     sale.put(table, "stock", "2")?;
/// }
/// db.put("stock", "0")?; // another writer was faster
/// assert_eq!(sale.commit(terrane::Durability::Buffered).unwrap_err().kind(), terrane::Kind::Conflict);
/// # Ok(())
/// # }
/// ```
pub struct Transaction {
    batch: IndexedBatch,
    /// Reads are recorded under the lock as well; they are many and short.
    core: Mutex<Core>,
    limits: TransactionOptions,
    id: u64,
}

impl Transaction {
    #[track_caller]
    pub(crate) fn begin(db: &Db, options: &TransactionOptions) -> Result<Transaction> {
        let core = Core::begin_for(db.engine().clone(), db.handle().clone(), options.clone())?;
        let (id, limits) = (core.id(), options.clone());
        Ok(Transaction { batch: IndexedBatch::new(), core: Mutex::new(core), limits, id })
    }

    fn core(&self) -> MutexGuard<'_, Core> {
        // A panic between two steps leaves nothing half done, so the next call may continue.
        self.core.lock()
    }

    /// Its number, as errors of other transactions name it; unique while the database is open.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// let first = db.transaction(&terrane::TransactionOptions::default())?;
    /// let second = db.transaction(&terrane::TransactionOptions::default())?;
    /// assert_ne!(first.id(), second.id());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Its changes so far.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.put(table, "k", "v")?;
    /// assert_eq!(transaction.changes().len(), 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn changes(&self) -> &IndexedBatch {
        &self.batch
    }

    fn checked(&self, table: &Table) -> Result<MutexGuard<'_, Core>> {
        let core = self.core();
        require_table(&core, table).map(|()| core)
    }

    fn check_limits(&self, core: &Core, more_bytes: usize) -> Result<()> {
        let more = u64::from(more_bytes > 0);
        core.check_limits(self.batch.len() as u64 + more, (self.batch.bytes() + more_bytes) as u64)
    }

    pub(crate) fn after_scan(&self, scan: ScanId, parts: Vec<Bounds>) {
        self.core().after_scan(scan, parts);
    }

    /// The snapshot that it sees; `None` if each read sees the latest state.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.put(table, "k", "v")?;
    /// if let Some(snapshot) = transaction.snapshot() {
    ///     assert!(!snapshot.contains(table, "k")?); // without the transaction's own changes
    /// }
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn snapshot(&self) -> Option<Snapshot> {
        self.core().snapshot().map(|pin| Snapshot { pin: pin.clone() })
    }

    /// Marks this moment, to go back to it.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.put(table, "a", "1")?;
    /// transaction.set_savepoint();
    /// transaction.put(table, "b", "2")?;
    /// transaction.rollback_to_savepoint()?;
    /// transaction.commit(terrane::Durability::Buffered)?;
    /// assert!(table.contains("a")? && !table.contains("b")?);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn set_savepoint(&mut self) {
        self.batch.set_savepoint();
    }

    /// Undoes every change since the last savepoint, which is removed. Locks that were taken since stay, and
    /// reads since then are still checked.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.set_savepoint();
    /// transaction.put(table, "b", "2")?;
    /// transaction.rollback_to_savepoint()?;
    /// assert!(transaction.changes().is_empty());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` if none is set.
    pub fn rollback_to_savepoint(&mut self) -> Result<()> {
        self.batch.rollback_to_savepoint()
    }

    /// Forgets the last savepoint; the changes since stay.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.set_savepoint();
    /// transaction.put(table, "b", "2")?;
    /// transaction.pop_savepoint()?;
    /// assert!(transaction.rollback_to_savepoint().is_err()); // none is left
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` if none is set.
    pub fn pop_savepoint(&mut self) -> Result<()> {
        self.batch.pop_savepoint()
    }

    /// Commits: all changes take effect, or the transaction is rolled back and none does. Returns the
    /// position in the order of commits; of a transaction without changes, the position that it saw.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.put(table, "k", "v")?;
    /// let seq = transaction.commit(terrane::Durability::Synced)?;
    /// assert_eq!(seq, db.snapshot().seq());
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Conflict`, `Deadlock`, `TooOld`, `TimedOut`: run it again. As [`Db::write`] besides.
    pub fn commit(self, durability: Durability) -> Result<SeqNo> {
        let Transaction { batch, core, .. } = self;
        let core = core.into_inner();
        batch.batch.check(core.engine())?;
        core.commit(&batch.batch.records, durability.is_synced())
    }

    /// Prepares the changes for a commit under `name`, durably on return: the first step of a commit over
    /// several databases. Then [`Db::commit_prepared`] or [`Db::rollback_prepared`] ends it, even after the
    /// database was closed or has crashed; until then its locks stay. On an error it is rolled back.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.put(table, "k", "v")?;
    /// transaction.prepare("payment 7")?; // survives a loss of power
    /// db.commit_prepared("payment 7", terrane::Durability::Synced)?;
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::commit`]; `Invalid` for a bad name or one that is in use, with the option
    /// `journal=off`, or beyond 64 MiB of changes and locks.
    pub fn prepare(self, name: &str) -> Result<()> {
        let Transaction { batch, core, .. } = self;
        let mut core = core.into_inner();
        batch.batch.check(core.engine())?;
        core.prepare(name, &batch.batch.records)
    }

    /// Gives every change up. The same as dropping it.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.put(table, "k", "v")?;
    /// transaction.rollback();
    /// assert!(!table.contains("k")?);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn rollback(self) {}
}

/// Refuses a table of another database, or one that was dropped.
fn require_table(core: &Core, table: &Table) -> Result<()> {
    if table.engine.instance() != core.engine().instance() {
        let name = table.name();
        let message = format!("table {name:?} is of another opened database than the transaction");
        return Err(Error::invalid(message));
    }
    table.refuse_if_dropped()
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, options) = (&self.id, &self.limits);
        f.debug_struct("Transaction").field("id", id).field("options", options).finish_non_exhaustive()
    }
}
