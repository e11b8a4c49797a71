//! Transactions: changes that are made concurrently with those of other writers as if no other writer
//! existed.

mod bare;
mod deleted;
mod indexed;
mod iter;
mod write;

use std::fmt;
use std::ops::RangeBounds;

use terrane_base::sync::{Mutex, MutexGuard};
use terrane_base::{Error, Result, SeqNo};
use terrane_engine::{Bounds, LockMode, Origin, ReaderKind, ScanId, Transaction as Core, TransactionOptions};

pub use bare::{BareTransaction, LockMark};
pub use indexed::IndexedBatch;
pub use iter::{BatchIter, TransactionIter};

use crate::snapshot;
use crate::{Db, Snapshot, Sync, Table, Value};

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
/// db.put(b"stock", b"3")?;
/// let mut sale = db.transaction(&terrane::TransactionOptions::default())?;
/// if sale.get(table, b"stock")?.as_deref() == Some(b"3") {
///     sale.put(table, b"stock", b"2")?;
/// }
/// db.put(b"stock", b"0")?; // another writer was faster
/// assert_eq!(sale.commit(terrane::Sync::No).unwrap_err().kind(), terrane::Kind::Conflict);
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
        let core = Core::begin(db.engine().clone(), options.clone())?;
        let (id, limits) = (core.id(), options.clone());
        Ok(Transaction { batch: IndexedBatch::new(), core: Mutex::new(core), limits, id })
    }

    fn core(&self) -> MutexGuard<'_, Core> {
        // A panic between two steps leaves nothing half done, so the next call may continue.
        self.core.lock()
    }

    /// Its number, as errors of other transactions name it; unique while the database is open.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Its changes so far.
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

    /// The value of `key`: the transaction's own, or the one that it sees.
    ///
    /// # Errors
    /// As [`Table::get`]; `Full` beyond the limits of the transaction. Where it locks, as
    /// [`Transaction::put`].
    pub fn get(&self, table: &Table, key: &[u8]) -> Result<Option<Value>> {
        self.read(table, key, |core, key| core.before_read(table.id(), key))
    }

    /// The value of `key`, which no other writer changes until this transaction has ended; `exclusive`: no
    /// other transaction gets it for update either. An optimistic transaction takes no lock, and its commit
    /// fails if another writer changed the key.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn get_for_update(&self, table: &Table, key: &[u8], exclusive: bool) -> Result<Option<Value>> {
        let mode = if exclusive { LockMode::Exclusive } else { LockMode::Shared };
        terrane_base::key::check_key(key)?;
        {
            // Also for a key that it has changed itself, because the caller may want the lock.
            let mut core = self.checked(table)?;
            table.encoding(key, |key| core.before_read_for_update(table.id(), key, mode))?;
        }
        self.read(table, key, |_, _| Ok(()))
    }

    fn read(
        &self,
        table: &Table,
        key: &[u8],
        before: impl FnOnce(&mut Core, &[u8]) -> Result<()>,
    ) -> Result<Option<Value>> {
        terrane_base::key::check_key(key)?;
        let at = {
            let mut core = self.checked(table)?;
            if self.batch.is_open(table, key)? {
                table.encoding(key, |key| before(&mut core, key))?;
                self.check_limits(&core, 0)?;
            }
            core.snapshot().map(|snapshot| snapshot.seq())
        };
        let value = self.batch.get_over(table, key, at)?;
        self.check_age().map(|()| value)
    }

    /// Refuses a read if the versions that it sees may not be kept any more.
    fn check_age(&self) -> Result<()> {
        self.core().snapshot().map_or(Ok(()), |snapshot| snapshot.check())
    }

    /// The values of several keys, in their order; of one moment, but for the transaction's own.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn multi_get(&self, table: &Table, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        let mut others = Vec::with_capacity(keys.len());
        for key in keys {
            if self.batch.is_open(table, key)? {
                others.push(*key);
            }
        }
        let at = {
            let mut core = self.checked(table)?;
            for key in &others {
                terrane_base::key::check_key(key)?;
                table.encoding(key, |key| core.before_read(table.id(), key))?;
                self.check_limits(&core, 0)?;
            }
            core.snapshot().map(|snapshot| snapshot.seq())
        };
        let mut read = table.multi_get_at(&others, at)?.into_iter();
        self.check_age()?;
        let values = keys.iter().map(|key| {
            table.encoding(key, |key| {
                let own = self.batch.own(table, key);
                let below = if own.is_open() { read.next().flatten() } else { None };
                Ok(self.batch.resolve(table, key, &own, below.map(Value::into_vec))?.map(Value::new))
            })
        });
        values.collect()
    }

    /// The rows of a range: its own changes over those that it sees. A serializable transaction records the
    /// part that was read, when the iterator is dropped. To change rows that are read, collect them first:
    /// the iterator borrows the transaction.
    ///
    /// # Errors
    /// `Invalid` for a table of another database, `NotFound` if it was dropped, `Full` beyond the limits.
    pub fn range<'k>(&self, table: &Table, range: impl RangeBounds<&'k [u8]>) -> Result<TransactionIter<'_>> {
        self.scan(table, table.bounds(&range)?)
    }

    /// The rows whose keys begin with `prefix`.
    ///
    /// # Errors
    /// As [`Transaction::range`].
    pub fn prefix(&self, table: &Table, prefix: &[u8]) -> Result<TransactionIter<'_>> {
        self.scan(table, table.prefix_bounds(prefix)?)
    }

    fn scan(&self, table: &Table, bounds: Bounds) -> Result<TransactionIter<'_>> {
        let (scan, pin) = {
            let mut core = self.checked(table)?;
            let scan = core.before_scan(table.id(), &bounds);
            self.check_limits(&core, 0)?;
            let pin = core.snapshot().cloned();
            (scan, pin.unwrap_or_else(|| snapshot::pin(&table.engine, Origin::here(ReaderKind::Transaction))))
        };
        let rows = BatchIter::new(&self.batch, table, Ok(bounds.clone()), pin);
        Ok(TransactionIter { rows, transaction: self, scan, bounds, seen: [None, None], is_whole: false })
    }

    pub(crate) fn after_scan(&self, scan: ScanId, parts: Vec<Bounds>) {
        self.core().after_scan(scan, parts);
    }

    /// The snapshot that it sees; `None` if each read sees the latest state.
    #[must_use]
    pub fn snapshot(&self) -> Option<Snapshot> {
        self.core().snapshot().map(|pin| Snapshot { pin: pin.clone() })
    }

    /// Marks this moment, to go back to it.
    pub fn set_savepoint(&mut self) {
        self.batch.set_savepoint();
    }

    /// Undoes every change since the last savepoint, which is removed. Locks that were taken since stay, and
    /// reads since then are still checked.
    ///
    /// # Errors
    /// `Invalid` if none is set.
    pub fn rollback_to_savepoint(&mut self) -> Result<()> {
        self.batch.rollback_to_savepoint()
    }

    /// Forgets the last savepoint; the changes since stay.
    ///
    /// # Errors
    /// `Invalid` if none is set.
    pub fn pop_savepoint(&mut self) -> Result<()> {
        self.batch.pop_savepoint()
    }

    /// Commits: all changes take effect, or the transaction is rolled back and none does. Returns the
    /// position in the order of commits; of a transaction without changes, the position that it saw.
    ///
    /// # Errors
    /// `Conflict`, `Deadlock`, `TooOld`, `TimedOut`: run it again. As [`Db::write`] besides.
    pub fn commit(self, sync: Sync) -> Result<SeqNo> {
        let Transaction { batch, core, .. } = self;
        let core = core.into_inner();
        batch.batch.check(core.engine())?;
        core.commit(&batch.batch.records, sync.is_yes())
    }

    /// Prepares the changes for a commit under `name`, durably on return: the first step of a commit over
    /// several databases. Then [`Db::commit_prepared`] or [`Db::rollback_prepared`] ends it, even after the
    /// database was closed or has crashed; until then its locks stay. On an error it is rolled back.
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

impl Db {
    /// Begins a transaction.
    ///
    /// # Errors
    /// `Invalid` if the database is open for reading only, `Cancelled` after a close.
    #[track_caller]
    pub fn transaction(&self, options: &TransactionOptions) -> Result<Transaction> {
        Transaction::begin(self, options)
    }

    /// Runs `body` in transactions until one commits, or fails with an error that another run would not help;
    /// at most `runs` times. Returns what `body` returned.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// let table = db.default_table();
    /// let count = db.transact(&terrane::TransactionOptions::default(), terrane::Sync::No, 10, |transaction| {
    ///     let count = transaction.get(table, b"visits")?.map_or(0, |value| value[0]) + 1;
    ///     transaction.put(table, b"visits", &[count])?;
    ///     Ok(count)
    /// })?;
    /// assert_eq!(count, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of `body` and of [`Transaction::commit`].
    #[track_caller]
    pub fn transact<T>(
        &self,
        options: &TransactionOptions,
        sync: Sync,
        runs: u32,
        mut body: impl FnMut(&mut Transaction) -> Result<T>,
    ) -> Result<T> {
        let mut run = 1;
        loop {
            let mut transaction = self.transaction(options)?;
            let done = body(&mut transaction);
            let done = done.and_then(|value| transaction.commit(sync).map(|_| value));
            match done {
                Err(error) if error.kind().is_worth_another_run() && run < runs => run += 1,
                done => return done,
            }
        }
    }

    /// The names of the prepared transactions that wait to be committed or rolled back.
    #[must_use]
    pub fn prepared(&self) -> Vec<String> {
        self.engine().prepared()
    }

    /// Commits the transaction that is prepared as `name`. Returns its position in the order of commits.
    /// Changes of a table that was dropped meanwhile are left out.
    ///
    /// # Errors
    /// `NotFound` if nothing is prepared under the name, `Busy` while another thread resolves it. As
    /// [`Db::write`] besides: it stays prepared then.
    pub fn commit_prepared(&self, name: &str, sync: Sync) -> Result<SeqNo> {
        self.engine().commit_prepared(name, &terrane_base::Batch::new(), sync.is_yes())
    }

    /// Rolls the transaction back that is prepared as `name`; on disk when this returns.
    ///
    /// # Errors
    /// As [`Db::commit_prepared`].
    pub fn rollback_prepared(&self, name: &str) -> Result<()> {
        self.engine().rollback_prepared(name)
    }
}
