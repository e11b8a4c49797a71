//! Two-phase commit: a transaction that is prepared under a name can be committed after any failure and any
//! reopening, until it is rolled back.
//!
//! 1. Prepare (`transaction/prepare.rs`): lock and validate as a commit does, then write changes, locks and
//!    ranges as one record of the hidden table, synced (`docs/format/prepared.md`). Locks and ranges stay
//!    held.
//! 2. Commit: one batch of the changes and the delete of the record. Roll back: the delete of the record.
//! 3. Open: each record of the hidden table takes its locks and ranges again.
//!
//! Invariants: a name is in the map from before its record is written until after its record is deleted;
//! a thread that changes the record has set the entry busy. Two prepared transactions never exclude each
//! other, so all of their locks can be taken again in any order.

use std::collections::btree_map;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::options::JournalMode;
use terrane_base::record::Record;
use terrane_base::{Batch, Error, Kind, RecordKind, Result, SeqNo};
use terrane_format::prepared::Prepared as Stored;

use crate::locks::conflict_window::{FlightId, Footprint};
use crate::locks::gate::{Held, InFlight, keys_of};
use crate::locks::key_range::{KeyRange, deletes_of};
use crate::locks::lock_table::{LockKey, LockMode};
use crate::locks::prepared_names::{Entry, Waiting};
use crate::locks::range_locks::LockTarget;
use crate::observe::stats::add;
use crate::read::get::ReadMode;
use crate::read::scan::Bounds;
use crate::table::Table;
use crate::table::catalog::NAME_BYTES_MAX;
use crate::throttle::deadline::LOCK_TIMEOUT;
use crate::throttle::permit::WritePermit;
use crate::write::WritePath;

/// How long the commit of a prepared transaction waits for running commits.
const RESUME_TIMEOUT: Duration = Duration::from_secs(60);

fn batch_of(stored: &Stored<'_>) -> Result<Batch> {
    let mut batch = Batch::new();
    let mut rest = stored.batch;
    while !rest.is_empty() {
        let (record, len) = Record::decode(rest)?;
        batch.push(record)?;
        rest = &rest[len..];
    }
    Ok(batch)
}

impl WritePath {
    /// The names of the prepared transactions that wait to be resolved, in order.
    #[must_use]
    pub fn prepared(&self) -> Vec<String> {
        let prepared = self.txn.prepared.lock();
        let waiting = prepared.iter().filter(|(_, entry)| matches!(entry, Entry::Ready(_)));
        waiting.map(|(name, _)| name.clone()).collect()
    }

    /// Commits a prepared transaction, and the changes of `more` after its own, all or nothing: their keys
    /// are locked for it as far as they are not yet. Returns its position in the order of commits.
    ///
    /// # Errors
    /// `NotFound` if nothing is prepared under the name, `Busy` while another thread resolves it; `TimedOut`,
    /// `Deadlock` where more is locked; `Invalid` for more range deletes. As [`WritePath::write`] besides: it
    /// stays prepared then.
    pub fn commit_prepared(&self, name: &str, more: &Batch, sync: bool) -> Result<SeqNo> {
        if more.records().any(|record| record.kind == RecordKind::RangeDelete) {
            return Err(Error::invalid(
                "a range delete cannot be added to a prepared transaction: prepare it as well",
            ));
        }
        let committed = TwoPhase::of(self).resolve(name, |waiting, table| {
            let batch = TwoPhase::of(self).prepared_with(name, more, table)?;
            let commit = || TwoPhase::of(self).commit_resumed(waiting, &batch, more, sync);
            self.with_space(&batch, false, commit).map(Some)
        })?;
        add(&self.counters.transactions_committed, 1);
        Ok(committed.expect("a commit has a number"))
    }

    /// The changes that are prepared under a name.
    ///
    /// # Errors
    /// `NotFound` if nothing is; `Corrupt`, `Io`.
    pub fn prepared_batch(&self, name: &str) -> Result<Batch> {
        let mut record = Vec::new();
        let is_there = match self.catalog.find_hidden() {
            Some(table) => self.get(&table, name.as_bytes(), ReadMode::default(), &mut record)?,
            None => false,
        };
        if !is_there {
            return Err(Error::new(Kind::NotFound, format!("nothing is prepared as {name:?}")));
        }
        batch_of(&Stored::decode(&record)?)
    }

    /// Rolls a prepared transaction back, durably.
    ///
    /// # Errors
    /// As [`WritePath::commit_prepared`].
    pub fn rollback_prepared(&self, name: &str) -> Result<()> {
        TwoPhase::of(self).resolve(name, |_, table| {
            self.delete(table.id, name.as_bytes(), true)?;
            Ok(None)
        })?;
        Ok(())
    }
}

/// Prepared transactions of a write path.
#[derive(Clone, Copy)]
pub(crate) struct TwoPhase<'e> {
    engine: &'e WritePath,
}

/// The write path is found here, as in the engine.
impl Deref for TwoPhase<'_> {
    type Target = WritePath;

    #[inline]
    fn deref(&self) -> &WritePath {
        self.engine
    }
}

impl<'e> TwoPhase<'e> {
    /// Those of this write path.
    pub(crate) fn of(engine: &'e WritePath) -> TwoPhase<'e> {
        TwoPhase { engine }
    }

    pub(super) fn check_prepared_name(self, name: &str) -> Result<()> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            let message = format!("name of a prepared transaction: use 1 to {NAME_BYTES_MAX} bytes");
            return Err(Error::invalid(message));
        }
        if self.options.journal == JournalMode::Off {
            return Err(Error::invalid(
                "with journal=off nothing is durable at once: transactions cannot be prepared",
            ));
        }
        Ok(())
    }

    pub(super) fn reserve_name(self, name: &str) -> Result<()> {
        match self.txn.prepared.lock().entry(name.to_owned()) {
            btree_map::Entry::Occupied(_) => {
                let message =
                    format!("a transaction is prepared as {name:?} already: resolve it or use another name");
                Err(Error::invalid(message))
            }
            btree_map::Entry::Vacant(entry) => {
                entry.insert(Entry::Busy);
                Ok(())
            }
        }
    }

    /// Commits `batch`, the changes of a prepared transaction with those of `more`. If it fails the
    /// transaction is prepared as before.
    fn commit_resumed(self, waiting: &Waiting, batch: &Batch, more: &Batch, sync: bool) -> Result<SeqNo> {
        debug_assert!(
            batch.record_count() > more.record_count(),
            "the record of the transaction goes with it"
        );
        let (_held, flight) = self.lock_more(waiting, more)?;
        let mut probe = self.slow_log.probe_write(batch);
        let mut permit = self.write_control().admit_prepared(batch)?;
        probe.note_admitted();
        self.resume(waiting, flight.as_ref().and_then(InFlight::id), &permit)?;
        let begun = self.write_control().begin_commit(&mut permit, batch, None);
        let committed = begun.and_then(|()| self.commit_batch(batch, sync));
        let committed = committed.inspect_err(|_| self.txn.window.hold_back(waiting.flight))?;
        probe.note_committed();
        permit.spend();
        self.account(batch, committed);
        if let Some(flight) = flight {
            flight.land(committed.seq);
        }
        Ok(committed.seq)
    }

    /// Enters the commit of a prepared transaction into the window, after running commits; `more` is the
    /// flight of its further changes.
    fn resume(self, waiting: &Waiting, more: Option<FlightId>, permit: &WritePermit<'_>) -> Result<()> {
        let lock_wait = self.lock_wait(RESUME_TIMEOUT).with_room(Some(permit));
        let resumed = self.txn.window.resume(waiting.flight, more, &lock_wait);
        resumed.map_err(|refusal| self.refused(refusal, None))
    }

    /// The changes of a prepared transaction's commit.
    fn prepared_with(self, name: &str, more: &Batch, table: &Table) -> Result<Batch> {
        let mut record = Vec::new();
        if !self.get(table, name.as_bytes(), ReadMode::default(), &mut record)? {
            let message = format!("the record of the prepared transaction {name:?} is lost");
            return Err(Error::corrupt(message));
        }
        let mut batch = batch_of(&Stored::decode(&record)?)?;
        drop(record);
        more.records().try_for_each(|record| batch.push(record))?;
        if !terrane_base::planted!(KeepPrepared) {
            batch.delete(table.id, name.as_bytes())?;
        }
        Ok(batch)
    }

    /// Locks keys for a prepared transaction that it does not write itself, and enters the conflict window
    /// with them. Keys that the transaction only read or locked are not in the window yet; without them other
    /// transactions would miss the change.
    fn lock_more(self, waiting: &Waiting, more: &Batch) -> Result<(Held<'e>, Option<InFlight<'e>>)> {
        let engine = self.engine;
        let mut held = Held::new(&engine.txn.locks, waiting.owner);
        let is_written = |key: &LockKey| waiting.writes.binary_search(key).is_ok();
        let new = keys_of(more).iter().filter(|key| !is_written(key)).cloned().collect::<Arc<[_]>>();
        if new.is_empty() {
            return Ok((held, None));
        }
        let lock_wait = self.lock_wait(LOCK_TIMEOUT);
        for key in new.iter() {
            let taken = match waiting.locks.contains(key) {
                // It may be shared. It stays the transaction's if the commit fails.
                true => self.txn.locks.acquire(waiting.owner, key, LockMode::Exclusive, &lock_wait),
                false => held.acquire(key, LockMode::Exclusive, &lock_wait),
            };
            taken.map_err(|refusal| self.refused(refusal, Some(key)))?;
        }
        let footprint = Footprint { writes: new, ..Footprint::default() };
        debug_assert!(footprint.writes.is_sorted(), "a footprint has its keys in order");
        let flight =
            engine.txn.enter_beside(engine, (&footprint, false), Some(waiting.flight), &lock_wait)?;
        Ok((held, Some(flight)))
    }

    /// Takes a prepared transaction, runs `step` on it, and removes it if that succeeds.
    fn resolve(
        self,
        name: &str,
        step: impl FnOnce(&Waiting, &Table) -> Result<Option<SeqNo>>,
    ) -> Result<Option<SeqNo>> {
        self.refuse_if_read_only()?;
        let waiting = self.take_prepared(name)?;
        let table =
            self.catalog.find_hidden().expect("a prepared transaction has a record in the hidden table");
        match step(&waiting, &table) {
            Ok(seq) => {
                self.txn.window.leave(waiting.flight, seq);
                self.txn.locks.release_ranges(waiting.owner);
                self.txn.locks.release(waiting.owner, &waiting.locks);
                let taken = self.txn.prepared.lock().remove(name);
                debug_assert!(matches!(taken, Some(Entry::Busy)), "{name:?} was taken by this thread");
                self.txn.watch.end();
                Ok(seq)
            }
            Err(error) => {
                let taken = self.txn.prepared.lock().insert(name.to_owned(), Entry::Ready(waiting));
                debug_assert!(matches!(taken, Some(Entry::Busy)), "{name:?} was taken by this thread");
                Err(error)
            }
        }
    }

    fn take_prepared(self, name: &str) -> Result<Waiting> {
        let mut prepared = self.txn.prepared.lock();
        let Some(entry) = prepared.get_mut(name) else {
            let names: Vec<_> = prepared.keys().map(String::as_str).collect();
            let message = format!("nothing is prepared as {name:?}; prepared are: {}", names.join(", "));
            return Err(Error::new(Kind::NotFound, message));
        };
        match std::mem::replace(entry, Entry::Busy) {
            Entry::Ready(waiting) => Ok(waiting),
            Entry::Busy => {
                let message = format!("another thread prepares or resolves {name:?} now");
                Err(Error::new(Kind::Busy, message))
            }
        }
    }

    /// The hidden table; made when it is needed first.
    pub(super) fn hidden_table(self) -> Result<Arc<Table>> {
        match self.catalog.find_hidden() {
            Some(table) => Ok(table),
            None => self.create_hidden_table(),
        }
    }

    /// Takes the locks of every prepared transaction again, as the rows of the hidden `table` say.
    pub(crate) fn restore_prepared(self, table: &Table) -> Result<()> {
        for row in self.range(table, Bounds::all(), self.visible()) {
            let (name, record) = row?;
            let name = String::from_utf8_lossy(&name).into_owned();
            let waiting = self.restore_one(&record);
            let waiting = waiting.map_err(|error| error.context(format!("prepared transaction {name:?}")))?;
            let before = self.txn.prepared.lock().insert(name, Entry::Ready(waiting));
            debug_assert!(before.is_none(), "the locks of one prepared transaction were taken twice");
        }
        Ok(())
    }

    fn restore_one(self, record: &[u8]) -> Result<Waiting> {
        let stored = Stored::decode(record)?;
        let batch = batch_of(&stored)?;
        let (writes, deletes) = (keys_of(&batch), deletes_of(&batch, |table| self.collation_of(table)));
        let ranges = stored.scans.iter().map(|scan| {
            let (lower, upper) = (scan.lower.map(<[u8]>::to_vec), scan.upper.map(<[u8]>::to_vec));
            let bounds = Bounds { lower, upper, collation: self.collation_of(scan.table) };
            KeyRange { table: scan.table, bounds }
        });
        let ranges = ranges.collect();
        let footprint = Footprint { writes: writes.clone(), deletes: deletes.clone(), ranges };
        self.txn.watch.begin();
        let owner = self.txn.new_owner();
        let lock_wait = self.lock_wait(Duration::ZERO);
        let exclude = || Error::corrupt("two prepared transactions have locks that exclude each other");
        let mut held = Held::new(&self.txn.locks, owner);
        let claims = stored.claims.iter().map(|claim| {
            let mode = if claim.is_exclusive { LockMode::Exclusive } else { LockMode::Shared };
            (LockKey::new(claim.table, claim.key), mode)
        });
        let writes_claimed = writes.iter().map(|key| (key.clone(), LockMode::Exclusive));
        for (key, mode) in claims.chain(writes_claimed) {
            if terrane_base::planted!(ForgetPreparedLocks) {
                break;
            }
            let taken = held.acquire(&key, mode, &lock_wait);
            taken.map_err(|_| exclude())?;
        }
        if !deletes.is_empty() && !terrane_base::planted!(ForgetPreparedLocks) {
            let target = LockTarget { ranges: deletes, ..LockTarget::default() };
            self.txn.locks.lock_ranges(owner, &target, &lock_wait).map_err(|_| exclude())?.keep();
        }
        let entered: Result<InFlight<'_>> = self.txn.enter_window(self.engine, &footprint, true, &lock_wait);
        let flight = entered.map_err(|error| error.with_kind(Kind::Corrupt))?.keep();
        Ok(Waiting { owner, locks: held.keep(), writes, flight })
    }
}
