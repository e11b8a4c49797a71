//! The path of a commit while transactions live: locks, conflict window, journal, conflict window, locks.

use std::sync::Arc;
use std::time::Duration;

use terrane_base::error::WaitsFor;
use terrane_base::watch::{Unseen, Watch};
use terrane_base::{Batch, Error, Kind, RecordKind, Result, SeqNo, TableId};

use crate::locks::Transactions;
use crate::locks::conflict_window::{ConflictWindow, FlightId, Footprint, Look, Stale, Verdict};
use crate::locks::key_range::{KeyRange, deletes_of};
use crate::locks::lock_table::lock_wait::Room;
use crate::locks::lock_table::{LockKey, LockMode, LockTable, LockWait, Owner, Refusal, Waited};
use crate::locks::range_locks::{LockTarget, RangeLock};
use crate::observe::stats::add;
use crate::shared::Shared;
use crate::table::catalog::name_of;
use crate::throttle::deadline::{LOCK_TIMEOUT, WriteWait};
use crate::throttle::permit::WritePermit;

/// Locks that are released when the value is dropped.
pub(crate) struct Held<'l> {
    locks: &'l LockTable,
    owner: Owner,
    keys: Vec<LockKey>,
}

impl<'l> Held<'l> {
    /// Nothing yet.
    pub(crate) fn new(locks: &'l LockTable, owner: Owner) -> Self {
        Held { locks, owner, keys: Vec::new() }
    }

    /// Takes one more lock.
    pub(crate) fn acquire(&mut self, key: &LockKey, mode: LockMode, lock_wait: &LockWait<'_>) -> Waited {
        self.locks.acquire(self.owner, key, mode, lock_wait)?;
        self.keys.push(key.clone());
        Ok(())
    }

    /// Leaves the locks to the caller.
    pub(crate) fn keep(mut self) -> Vec<LockKey> {
        std::mem::take(&mut self.keys)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.locks.release(self.owner, &self.keys);
    }
}

/// The locks of a batch that belongs to no transaction: locks of keys, or one range lock for all of it.
pub(crate) type PlainLocks<'l> = (Held<'l>, Option<RangeLock<'l>>);

/// A pass of a plain batch from the gate to the end of its commit.
pub(crate) enum PlainGate<'e> {
    /// No transaction lives. One that begins waits for the pass to end.
    Unseen(Unseen<'e>),
    /// Transactions live. Dropped without [`PlainGate::leave`] the flight ends without a commit. The fields
    /// end in this order: the locks go only when the window knows of the commit.
    Watched { flight: InFlight<'e>, _locks: PlainLocks<'e>, _passed: Passed<'e> },
}

/// A watched pass, which ends with the value.
pub(crate) struct Passed<'w>(&'w Watch);

impl Drop for Passed<'_> {
    fn drop(&mut self) {
        self.0.passed();
    }
}

impl PlainGate<'_> {
    /// Ends the pass with the commit that has this number.
    #[inline]
    pub(crate) fn leave(self, seq: SeqNo) {
        debug_assert!(seq > SeqNo(0), "a commit without a number would leave the window unchanged");
        match self {
            PlainGate::Unseen(unseen) => drop(unseen),
            PlainGate::Watched { flight, _locks, _passed } => {
                flight.land(seq);
                drop(_locks);
            }
        }
    }
}

/// A flight that ends when the value is dropped: without a commit, unless [`InFlight::land`] gave its number.
pub(crate) struct InFlight<'w> {
    window: &'w ConflictWindow,
    id: Option<FlightId>,
}

impl InFlight<'_> {
    /// Ends it with the commit that has this number.
    pub(crate) fn land(mut self, seq: SeqNo) {
        debug_assert!(self.id.is_some(), "a flight is kept or ended once");
        if let Some(id) = self.id.take() {
            self.window.leave(id, Some(seq));
        }
    }

    /// Its name in the window.
    pub(crate) fn id(&self) -> Option<FlightId> {
        self.id
    }

    /// Leaves it to the caller.
    pub(crate) fn keep(mut self) -> FlightId {
        self.id.take().expect("a flight is kept or ended once")
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.window.leave(id, None);
        }
    }
}

/// The keys that a batch writes, ascending, each once. Every owner that locks several keys does so in this
/// order. Log data is not a key: two batches with log data do not conflict by it.
pub(crate) fn keys_of(batch: &Batch) -> Arc<[LockKey]> {
    let points = batch
        .records()
        .filter(|record| record.kind != RecordKind::RangeDelete && record.table != TableId::NONE);
    let mut keys: Vec<_> = points.map(|record| LockKey::new(record.table, record.key)).collect();
    keys.sort_unstable();
    keys.dedup();
    debug_assert!(keys.is_sorted_by(|a, b| a < b), "locks are taken in one order, each once");
    keys.into()
}

impl Transactions {
    /// The gate of a batch that belongs to no transaction: it passes at once if no transaction lives;
    /// otherwise it takes locks on its keys and enters the window. `wait` bounds its waits for locks and for
    /// ingests; without a bound it waits until the ingest ends. While it waits, its permit has no room.
    ///
    /// # Errors
    /// `TimedOut`, `Busy`, `Cancelled`.
    #[inline]
    pub(crate) fn pass_gate<'e>(
        &'e self,
        on: (&'e Shared, &WritePermit<'_>),
        batch: &Batch,
        wait: &WriteWait,
    ) -> Result<PlainGate<'e>> {
        match self.watch.pass() {
            Some(unseen) => Ok(PlainGate::Unseen(unseen)),
            None => self.pass_watched(on, batch, wait),
        }
    }

    #[cold]
    fn pass_watched<'e>(
        &'e self,
        (shared, permit): (&'e Shared, &WritePermit<'_>),
        batch: &Batch,
        wait: &WriteWait,
    ) -> Result<PlainGate<'e>> {
        let passed = Passed(&self.watch);
        debug_assert!(!batch.is_empty(), "an empty batch takes no lock and is not committed");
        let (writes, deletes) = (keys_of(batch), deletes_of(batch, |table| shared.collation_of(table)));
        let target = LockTarget { keys: writes.clone(), ranges: deletes.clone(), is_exclusive: false };
        let (locks, lock_wait) =
            self.lock_plain((shared, permit), &target, wait.locks_until, wait.ingest_until)?;
        let footprint = Footprint { writes, deletes, ..Footprint::default() };
        let flight = self.enter_window(shared, &footprint, false, &lock_wait)?;
        Ok(PlainGate::Watched { flight, _locks: locks, _passed: passed })
    }

    /// Locks the keys and ranges of a plain batch; also returns the rest of its wait.
    fn lock_plain<'e, 'w>(
        &'e self,
        (shared, permit): (&'w Shared, &'w WritePermit<'_>),
        target: &LockTarget,
        until: Option<Duration>,
        ingest_by: Option<Duration>,
    ) -> Result<(PlainLocks<'e>, LockWait<'w>)> {
        debug_assert!(!target.is_exclusive, "plain writers would exclude each other from whole ranges");
        let owner = self.new_owner();
        // The option bounds the wait for ingests, but not the wait for locks.
        let mut ingest_by = ingest_by;
        let lock_wait_now = || shared.lock_wait(LOCK_TIMEOUT).with_room(Some(permit));
        let mut lock_wait = lock_wait_now();
        loop {
            let lock_end = until.unwrap_or(lock_wait.until);
            lock_wait.until = ingest_by.map_or(lock_end, |ingest_by| ingest_by.min(lock_end));
            let (refusal, key) = match self.try_lock_plain(owner, target, &lock_wait) {
                Ok(locks) => {
                    lock_wait.until = lock_end;
                    return Ok((locks, lock_wait));
                }
                Err(refused) => refused,
            };
            let is_late = ingest_by.is_some_and(|ingest_by| shared.env.clock.now() >= ingest_by);
            match refusal {
                Refusal::Ingest if is_late => return Err(kept_out((shared, permit), &key)),
                // Nothing makes an ingest end sooner: it lasts as long as the device needs.
                Refusal::Ingest if until.is_none() => lock_wait = lock_wait_now(),
                Refusal::TimedOut(_) if is_late && shared.env.clock.now() < lock_end => {
                    ingest_by = None;
                    lock_wait.until = lock_end;
                }
                refusal => return Err(shared.refused(refusal, Some(&key))),
            }
        }
    }

    /// Takes one range lock for everything where there are ranges, and single keys one by one, in the order
    /// that all owners keep.
    fn try_lock_plain(
        &self,
        owner: Owner,
        target: &LockTarget,
        lock_wait: &LockWait<'_>,
    ) -> std::result::Result<PlainLocks<'_>, (Refusal, LockKey)> {
        debug_assert!(target.keys.is_sorted_by(|a, b| a < b), "locks are taken in one order, each once");
        let mut held = Held::new(&self.locks, owner);
        if !target.ranges.is_empty() {
            let range_lock = self.locks.lock_ranges(owner, target, lock_wait);
            let named =
                |refusal| (refusal, target.ranges.first().map_or_else(|| target.first(), KeyRange::first));
            return range_lock.map_err(named).map(|range_lock| (held, Some(range_lock)));
        }
        for key in target.keys.iter() {
            held.acquire(key, LockMode::Exclusive, lock_wait).map_err(|refusal| (refusal, key.clone()))?;
        }
        Ok((held, None))
    }

    /// Enters the window once no commit in flight conflicts.
    pub(crate) fn enter_window(
        &self,
        shared: &Shared,
        footprint: &Footprint,
        prepares: bool,
        lock_wait: &LockWait<'_>,
    ) -> Result<InFlight<'_>> {
        self.enter_beside(shared, (footprint, prepares), None, lock_wait)
    }

    /// [`Transactions::enter_window`] with more of a transaction that has a prepared flight, `own`, already.
    pub(crate) fn enter_beside(
        &self,
        shared: &Shared,
        (footprint, prepares): (&Footprint, bool),
        own: Option<FlightId>,
        lock_wait: &LockWait<'_>,
    ) -> Result<InFlight<'_>> {
        let window = &self.window;
        let entered = window.enter(footprint, prepares, own, lock_wait);
        let id = entered.map_err(|refusal| shared.refused(refusal, None))?;
        debug_assert!(own != Some(id), "the commit of one flight would end the other");
        Ok(InFlight { window, id: Some(id) })
    }

    /// Validates something against the window on behalf of transaction `owner`.
    pub(crate) fn validate(
        &self,
        shared: &Shared,
        owner: Owner,
        ask: impl FnOnce(&mut Look<'_>) -> Verdict,
    ) -> Result<()> {
        let answer = ask(&mut self.window.look());
        answer.map_err(|stale| shared.stale(owner, &stale))
    }
}

impl Room for WritePermit<'_> {
    fn is_reserved(&self) -> bool {
        self.has_room()
    }

    fn give_back(&self) {
        self.give_room_back();
    }
}

impl Shared {
    /// A wait that ends after `timeout`.
    pub(crate) fn lock_wait(&self, timeout: Duration) -> LockWait<'_> {
        LockWait {
            env: &self.env,
            until: self.env.clock.now().saturating_add(timeout),
            closing: self.opening.closing_flag(),
            finds_deadlocks: true,
            room: None,
        }
    }

    fn table_name(&self, id: TableId) -> String {
        name_of(&self.catalog, id).unwrap_or_else(|| id.to_string())
    }

    fn place_of(&self, key: &LockKey) -> String {
        format!("key \"{}\" of table {:?}", key.key.escape_ascii(), self.table_name(key.table))
    }

    /// The error of a wait that failed; `key` is the key whose lock was waited for, if there is one.
    #[cold]
    pub(crate) fn refused(&self, refusal: Refusal, key: Option<&LockKey>) -> Error {
        match refusal {
            Refusal::Deadlock(edges) => {
                debug_assert!(!edges.is_empty(), "owners that wait for each other make a cycle");
                add(&self.counters.transaction_deadlocks, 1);
                let edges = edges.into_iter().map(|edge| WaitsFor {
                    waiter: edge.waiter,
                    holder: edge.holder,
                    table: self.table_name(edge.key.table),
                    key: edge.key.key.to_vec(),
                });
                Error::deadlock(edges.collect())
            }
            Refusal::TimedOut(owners) => {
                add(&self.counters.transaction_timeouts, 1);
                let what = match key {
                    Some(key) => {
                        let owners: Vec<_> = owners.iter().map(u64::to_string).collect();
                        format!("{} is locked by transaction {}", self.place_of(key), owners.join(", "))
                    }
                    None => {
                        "a range that a prepared transaction scanned is written into, or what it writes is \
                             scanned by one that prepares"
                            .to_owned()
                    }
                };
                Error::new(Kind::TimedOut, format!("{what}: try again later or raise the lock timeout"))
            }
            Refusal::Ingest => {
                add(&self.counters.transaction_timeouts, 1);
                let place = key.map_or_else(String::new, |key| format!(" around {}", self.place_of(key)));
                let message =
                    format!("an ingest holds keys{place}: try again later or raise the lock timeout");
                Error::new(Kind::TimedOut, message)
            }
            Refusal::Closing => Error::new(Kind::Cancelled, "the database is closing"),
        }
    }

    #[cold]
    fn stale(&self, owner: Owner, stale: &Stale) -> Error {
        debug_assert!(
            !matches!(stale, Stale::Changed(_, SeqNo(0)) | Stale::Forgotten(SeqNo(0))),
            "no transaction begins before the first commit"
        );
        add(&self.counters.transaction_conflicts, 1);
        match stale {
            Stale::Changed(key, seq) => {
                let place = self.place_of(key);
                let message =
                    format!("transaction {owner}: {place} was changed by commit {seq}; run it again");
                Error::new(Kind::Conflict, message)
            }
            Stale::Forgotten(seq) => {
                let message = format!(
                    "transaction {owner} is too old: it does not see commits up to {seq}, which are not kept any more; \
                     run it again, sooner to its end, or raise write_memory_bytes"
                );
                Error::new(Kind::TooOld, message)
            }
        }
    }
}

/// The error of a write that an ingest held back for too long.
#[cold]
fn kept_out((shared, permit): (&Shared, &WritePermit<'_>), key: &LockKey) -> Error {
    let why = format!("an ingest holds the keys around {}", shared.place_of(key));
    permit.throttle().held_back(shared.write_wait_max().unwrap_or_default(), &why)
}
