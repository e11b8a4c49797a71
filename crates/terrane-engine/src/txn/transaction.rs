//! One transaction: its snapshot, its locks, and the reads that must still be valid at its commit.
//!
//! It knows keys, not values: its caller keeps the changes as a batch, and reads through the engine at the
//! position that the transaction gives.
//!
//! * Begin: from now on every write is watched; take a snapshot. If nothing was read or locked before the
//!   first lock, that lock moves the snapshot on: a transaction that waited for the lock sees what the holder
//!   wrote.
//! * Optimistic: keep what was read; lock and validate it at the commit, in the order of keys.
//! * Pessimistic: lock at once, and fail at once if the key was changed after the snapshot. Ranges that a
//!   serializable one scans are kept and validated at the commit in both modes. It takes the range lock of a
//!   range that it deletes at once, or at the commit if the commit is the first call that knows of the range.

mod commit;
mod keys;
mod prepare;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use terrane_base::{Batch, Error, Kind, Result, SeqNo, TableId};

use crate::engine::Engine;
use crate::locks::key_range::KeyRange;
use crate::locks::lock_expiry::Expiry;
use crate::locks::lock_table::{LockKey, LockMode, Owner};
use crate::locks::range_locks::LockTarget;
use crate::observe::stats::add;
use crate::read::scan::Bounds;
use crate::read::snapshots::snapshot::Snapshot;
use crate::readers::{Origin, ReaderKind};
use crate::shared::SharedRef;
use crate::txn::options::{Concurrency, Isolation, TransactionOptions};
use commit::check_delete;

pub use keys::LockMark;

/// Bytes of a key, a lock or a range that is kept, beside its own, as counted for the limit.
const KEPT_OVERHEAD_BYTES: u64 = 96;

/// Names a scan whose range is kept.
#[derive(Clone, Copy, Debug)]
pub struct ScanId(usize);

/// A running transaction. Dropped, it is rolled back.
pub struct Transaction {
    engine: Arc<Engine>,
    id: Owner,
    options: TransactionOptions,
    /// The origin, for the list of live readers.
    origin: Origin,
    /// The snapshot of all reads; `None` if each read sees its own moment.
    snapshot: Option<Arc<Snapshot>>,
    /// Registered with the window, which keeps the commits above it.
    since: SeqNo,
    /// True if anything was read or locked.
    has_begun: bool,
    /// Ranges that it deletes; it holds a range lock on each.
    locked_ranges: Vec<KeyRange>,
    /// Locks that it has taken.
    held: BTreeMap<LockKey, LockMode>,
    /// Since the first mark: the keys that were locked, or kept for the commit, in order.
    noted: Option<Vec<LockKey>>,
    /// Keys that must not be changed above this number until it commits.
    reads: BTreeMap<LockKey, SeqNo>,
    /// Some of the reads were for update: they are checked even if nothing is written.
    has_claims: bool,
    /// Scanned ranges that must not have changed at the commit.
    scans: Vec<Option<KeyRange>>,
    kept_bytes: u64,
    /// Its timeout, if it has one.
    expiry: Option<Arc<Expiry>>,
    /// True if locks and watch belong to a prepared transaction now.
    is_handed_over: bool,
    /// The handle that its snapshots keep as well. Last, because its drop may close the engine.
    opened: SharedRef,
}

impl Transaction {
    /// Begins a transaction.
    ///
    /// # Errors
    /// `Invalid` if the database is open for reading only, `Cancelled` if it is closing.
    #[track_caller]
    pub fn begin(engine: Arc<Engine>, options: TransactionOptions) -> Result<Transaction> {
        Transaction::begin_for(engine.clone(), engine, options)
    }

    /// As [`Transaction::begin`], for a caller whose handle of the engine the transaction and its snapshots
    /// keep.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn begin_for(
        engine: Arc<Engine>,
        opened: SharedRef,
        options: TransactionOptions,
    ) -> Result<Transaction> {
        debug_assert!(opened.instance() == engine.instance(), "the handle is one of this engine");
        engine.refuse_if_read_only()?;
        if engine.is_closing() {
            return Err(Error::new(Kind::Cancelled, "the database is closing"));
        }
        let txn = &engine.txn;
        txn.watch.begin();
        let origin = Origin::here(ReaderKind::Transaction);
        let (since, snapshot) =
            txn.window.register(|| take_snapshot(&opened, options.isolation, origin.clone()));
        let id = txn.new_owner();
        add(&engine.counters.transactions_begun, 1);
        let ends = options.expires_after.map(|after| engine.env.clock.now().saturating_add(after));
        let expiry = ends.map(|at| txn.locks.expiries.add(id, at));
        Ok(Transaction {
            engine,
            id,
            options,
            origin,
            snapshot,
            since,
            has_begun: false,
            locked_ranges: Vec::new(),
            held: BTreeMap::new(),
            noted: None,
            reads: BTreeMap::new(),
            has_claims: false,
            scans: Vec::new(),
            kept_bytes: 0,
            expiry,
            is_handed_over: false,
            opened,
        })
    }

    /// Its number, as it stands in errors.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Its settings.
    #[must_use]
    pub fn options(&self) -> &TransactionOptions {
        &self.options
    }

    /// Its engine.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The snapshot of its reads; `None`: each read sees the commits that are visible when it begins.
    #[must_use]
    pub fn snapshot(&self) -> Option<&Arc<Snapshot>> {
        self.snapshot.as_ref().filter(|_| !terrane_base::planted!(ReadBesideSnapshot))
    }

    fn is_serializable(&self) -> bool {
        self.options.isolation == Isolation::Serializable
    }

    fn is_pessimistic(&self) -> bool {
        self.options.concurrency == Concurrency::Pessimistic
    }

    /// Refuses a call that would pass the limits: its batch has `changes` of `bytes`.
    ///
    /// # Errors
    /// `Full`, naming the limit.
    pub fn check_limits(&self, changes: u64, bytes: u64) -> Result<()> {
        let keys = changes + (self.held.len() + self.reads.len() + self.scans.len()) as u64;
        let bytes = bytes + self.kept_bytes;
        let (name, is, limit) = if keys > self.options.keys_max {
            ("keys_max", keys, self.options.keys_max)
        } else if bytes > self.options.bytes_max {
            ("bytes_max", bytes, self.options.bytes_max)
        } else {
            return Ok(());
        };
        let message =
            format!("transaction {}: {is} is beyond {name}={limit}: split it or raise the limit", self.id);
        Err(Error::new(Kind::Full, message))
    }

    /// To be called before `key` is read.
    ///
    /// # Errors
    /// `Conflict`, `Deadlock`, `TooOld`, `TimedOut`, `Cancelled` where the read takes a lock.
    pub fn before_read(&mut self, table: TableId, key: &[u8]) -> Result<()> {
        debug_assert!(!self.is_handed_over, "a transaction that was prepared is over");
        if !self.is_serializable() {
            self.has_begun = true;
            return Ok(());
        }
        self.claim(table, key, LockMode::Shared)
    }

    /// To be called before a read of `key` that no other writer may invalidate until this transaction has
    /// ended.
    ///
    /// # Errors
    /// As [`Transaction::before_read`].
    pub fn before_read_for_update(&mut self, table: TableId, key: &[u8], mode: LockMode) -> Result<()> {
        self.has_claims = true;
        self.claim(table, key, mode)
    }

    /// To be called before `key` is written.
    ///
    /// # Errors
    /// As [`Transaction::before_read`].
    pub fn before_write(&mut self, table: TableId, key: &[u8]) -> Result<()> {
        debug_assert!(!self.is_handed_over, "a transaction that was prepared is over");
        if self.is_pessimistic() {
            return self.lock(LockKey::new(table, key), LockMode::Exclusive);
        }
        self.has_begun = true;
        Ok(())
    }

    /// To be called before the keys from `start` to before `end` are deleted.
    ///
    /// # Errors
    /// As [`Transaction::before_read`].
    pub fn before_delete_range(&mut self, table: TableId, start: &[u8], end: &[u8]) -> Result<()> {
        debug_assert!(!self.is_handed_over, "a transaction that was prepared is over");
        if !self.is_pessimistic() {
            self.has_begun = true;
            return Ok(());
        }
        let (lower, upper) = (Bound::Included(start.to_vec()), Bound::Excluded(end.to_vec()));
        let collation = self.engine.collation_of(table);
        let range = KeyRange { table, bounds: Bounds { lower, upper, collation } };
        let target = LockTarget { ranges: [range.clone()].into(), ..LockTarget::default() };
        let engine = self.engine.clone();
        let range_lock = engine.txn.locks.lock_ranges(self.id, &target, &self.lock_wait(&engine));
        range_lock.map_err(|refusal| engine.refused(refusal, Some(&range.first())))?.keep();
        self.kept_bytes += bounds_bytes(&range.bounds);
        self.begin_with_lock();
        let checked = match &self.snapshot {
            Some(snapshot) => {
                engine.txn.validate(&engine, self.id, |look| check_delete(look, &range, snapshot.seq()))
            }
            None => Ok(()),
        };
        self.locked_ranges.push(range);
        checked
    }

    /// A transaction that locks first reads at the moment of its first lock.
    fn begin_with_lock(&mut self) {
        if !self.has_begun {
            self.has_begun = true;
            if !self.options.keeps_snapshot {
                self.renew();
            }
        }
    }

    /// Moves its snapshot to this moment. Requires: it has read nothing.
    fn renew(&mut self) {
        let window = &self.engine.txn.window;
        let take = || take_snapshot(&self.opened, self.options.isolation, self.origin.clone());
        let (since, snapshot) = window.register(take);
        debug_assert!(since >= self.since, "a snapshot that is taken later is of an earlier moment");
        window.unregister(self.since);
        debug_assert!(self.reads.is_empty() && self.scans.is_empty(), "a read would be of another moment");
        self.since = since;
        self.snapshot = snapshot;
    }

    /// To be called before rows of a range are read; afterwards [`Transaction::after_scan`] says which part
    /// was.
    pub fn before_scan(&mut self, table: TableId, bounds: &Bounds) -> Option<ScanId> {
        self.has_begun = true;
        debug_assert!(!self.is_handed_over, "a transaction that was prepared is over");
        if !self.is_serializable() {
            return None;
        }
        self.kept_bytes += bounds_bytes(bounds);
        self.scans.push(Some(KeyRange { table, bounds: bounds.clone() }));
        Some(ScanId(self.scans.len() - 1))
    }

    /// Notes that only these parts of the range were read.
    pub fn after_scan(&mut self, scan: ScanId, parts: Vec<Bounds>) {
        let Some(range) = self.scans[scan.0].take() else { return };
        assert!(self.kept_bytes >= bounds_bytes(&range.bounds), "the bytes of a scan were not counted");
        self.kept_bytes -= bounds_bytes(&range.bounds);
        self.kept_bytes += parts.iter().map(bounds_bytes).sum::<u64>();
        let mut parts = parts.into_iter().map(|bounds| Some(KeyRange { table: range.table, bounds }));
        self.scans[scan.0] = parts.next().flatten();
        self.scans.extend(parts);
    }

    /// Commits the changes of `batch`: all of them, or none. Returns the position in the order of commits; of
    /// a transaction that changes nothing, what it sees.
    ///
    /// # Errors
    /// `Conflict`, `Deadlock`, `TooOld`, `TimedOut`: nothing was changed, run it again.
    /// Besides as [`WritePath::write`](crate::WritePath::write).
    pub fn commit(self, batch: &Batch, sync: bool) -> Result<SeqNo> {
        self.try_commit(batch, sync)
    }

    /// [`Transaction::commit`] that leaves the transaction as it was if it fails. If it does not, the
    /// transaction is over and must be dropped.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn try_commit(&self, batch: &Batch, sync: bool) -> Result<SeqNo> {
        self.in_time(|| self.commit_in_time(batch, sync))
    }

    fn commit_in_time(&self, batch: &Batch, sync: bool) -> Result<SeqNo> {
        debug_assert!(!self.is_handed_over, "a transaction that was prepared is over");
        if batch.is_empty() && !self.has_claims {
            // All its reads are of one moment in the order of commits.
            if sync {
                self.engine.sync()?;
            }
            add(&self.engine.counters.transactions_committed, 1);
            return Ok(self.since);
        }
        if batch.is_empty() {
            return self.commit_reads(sync);
        }
        let is_bounded = self.engine.write_wait_max().is_some();
        self.engine.with_space(batch, is_bounded, || self.commit_changes(batch, sync))
    }

    /// Commits a transaction that changes nothing and has locks or checks.
    fn commit_reads(&self, sync: bool) -> Result<SeqNo> {
        let engine = &*self.engine;
        let (locks, flight) = self.pass_gate(&Batch::new(), None)?;
        let seq = engine.visible();
        debug_assert!(seq >= self.since, "a visible commit stays visible");
        flight.land(seq);
        drop(locks);
        if sync {
            // As for a transaction without checks: the commits that it read are durable.
            engine.sync()?;
        }
        add(&engine.counters.transactions_committed, 1);
        Ok(seq)
    }

    /// Leaves the locks to a prepared transaction: all that it holds, and its number, which owns its range
    /// locks. Then it is over.
    pub(super) fn hand_over(&mut self, mut locks: Vec<LockKey>) -> (Owner, Vec<LockKey>) {
        debug_assert!(!self.is_handed_over, "its locks have another owner already");
        self.is_handed_over = true;
        let held = std::mem::take(&mut self.held);
        locks.extend(held.into_keys());
        // It releases none of them any more.
        self.noted = None;
        self.kept_bytes = self.recounted_bytes();
        (self.id, locks)
    }

    /// Keys that are locked only because they were read, with the mode.
    pub(super) fn claims(&self) -> impl Iterator<Item = (&LockKey, LockMode)> {
        let reads = self.reads.keys().map(|key| (key, LockMode::Shared));
        self.held.iter().map(|(key, mode)| (key, *mode)).chain(reads)
    }
}

/// A position, and the snapshot that keeps it readable where all reads see one.
fn take_snapshot(opened: &SharedRef, isolation: Isolation, origin: Origin) -> (SeqNo, Option<Arc<Snapshot>>) {
    if isolation == Isolation::ReadCommitted {
        return (opened.visible(), None);
    }
    let snapshot = Snapshot::from(opened.clone(), origin);
    (snapshot.seq(), Some(Arc::new(snapshot)))
}

fn bounds_bytes(bounds: &Bounds) -> u64 {
    bounds.bytes() + KEPT_OVERHEAD_BYTES
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let txn = &self.engine.txn;
        debug_assert!(!self.is_handed_over || self.held.is_empty(), "a prepared transaction keeps its locks");
        txn.window.unregister(self.since);
        if self.expiry.is_some() {
            txn.locks.expiries.remove(self.id);
        }
        if !self.is_handed_over {
            if !self.locked_ranges.is_empty() {
                txn.locks.release_ranges(self.id);
            }
            txn.locks.release(self.id, self.held.keys());
            txn.watch.end();
        }
    }
}
