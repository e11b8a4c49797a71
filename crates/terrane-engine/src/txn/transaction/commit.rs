//! The commit of a transaction: it takes the locks that the transaction does not hold yet, and validates that
//! no other commit has changed a row that it read.

use std::collections::BTreeMap;
use std::sync::Arc;

use terrane_base::{Batch, Error, Kind, Result, SeqNo, verify};

use crate::locks::conflict_window::{Footprint, Look, Verdict};
use crate::locks::gate::{Held, InFlight, PlainLocks, keys_of};
use crate::locks::key_range::{KeyRange, deletes_of};
use crate::locks::lock_table::lock_wait::Room;
use crate::locks::lock_table::{LockKey, LockMode, LockWait};
use crate::locks::range_locks::{LockTarget, RangeLock};
use crate::observe::stats::add;
use crate::txn::transaction::Transaction;

impl Transaction {
    /// Returns true if it has taken longer than it may.
    #[must_use]
    pub fn has_expired(&self) -> bool {
        self.expiry.as_ref().is_some_and(|expiry| expiry.is_over(self.engine.env.clock.now()))
    }

    /// Ends it by `end`, unless its time is over. If that fails it runs on.
    pub(in crate::txn) fn in_time<T>(&self, end: impl FnOnce() -> Result<T>) -> Result<T> {
        let Some(expiry) = &self.expiry else { return end() };
        if !expiry.begin_end(self.engine.env.clock.now()) {
            return Err(self.expired());
        }
        end().inspect_err(|_| expiry.go_on())
    }

    /// Refuses more locks once another owner may have taken one.
    pub(super) fn refuse_if_lost(&self) -> Result<()> {
        match &self.expiry {
            Some(expiry) if expiry.is_lost() => Err(self.expired()),
            _ => Ok(()),
        }
    }

    #[cold]
    fn expired(&self) -> Error {
        let message = format!(
            "transaction {} has taken longer than expires_after: others may have its locks; run it again, sooner to its end, or \
             raise the option",
            self.id
        );
        Error::new(Kind::TooOld, message)
    }

    /// Commits a transaction that changes something. If it fails nothing is changed, and it can be committed
    /// again.
    pub(super) fn commit_changes(&self, batch: &Batch, sync: bool) -> Result<SeqNo> {
        debug_assert!(!batch.is_empty(), "a commit has records, or it takes no number");
        let engine = &*self.engine;
        let mut probe = engine.slow_log.probe_write(batch);
        let (control, deadline) = (engine.write_control(), engine.admission_deadline());
        let mut permit = control.admit(batch, deadline)?;
        probe.note_admitted();
        let (locks, flight) = self.pass_gate(batch, Some(&permit))?;
        control.begin_commit(&mut permit, batch, deadline)?;
        let committed = engine.commit_batch(batch, sync)?;
        debug_assert!(committed.seq > self.since, "a commit comes behind what its transaction has read");
        flight.land(committed.seq);
        drop(locks);
        probe.note_committed();
        permit.spend();
        add(&engine.counters.transactions_committed, 1);
        engine.account(batch, committed);
        Ok(committed.seq)
    }

    /// The gate of a commit: takes the locks that it needs, enters the window, and validates. `room` is given
    /// back before a wait.
    pub(super) fn pass_gate(
        &self,
        batch: &Batch,
        room: Option<&dyn Room>,
    ) -> Result<(PlainLocks<'_>, InFlight<'_>)> {
        let engine = &*self.engine;
        let (held, range_lock, footprint) = self.lock_for_commit(batch, room)?;
        let lock_wait = self.lock_wait(engine).with_room(room);
        let flight = engine.txn.enter_window(engine, &footprint, false, &lock_wait)?;
        debug_assert!(flight.id().is_some(), "a transaction is validated in the window, so it stays valid");
        self.validate(&footprint)?;
        Ok(((held, range_lock), flight))
    }

    /// Takes the locks that the commit needs and that are not held. Where an optimistic one deletes ranges it
    /// holds nothing yet, and gets everything at once or waits: one range lock covers all that it changes or
    /// has read. A pessimistic one takes range locks for the ranges that it has not locked yet. `room` is
    /// given back before a wait.
    pub(in crate::txn) fn lock_for_commit(
        &self,
        batch: &Batch,
        room: Option<&dyn Room>,
    ) -> Result<(Held<'_>, Option<RangeLock<'_>>, Footprint)> {
        let (writes, deletes) = (keys_of(batch), deletes_of(batch, |table| self.engine.collation_of(table)));
        let ranges = self.scans.iter().flatten().cloned().collect();
        verify!(self.kept_bytes == self.recounted_bytes(), "{} bytes are counted", self.kept_bytes);
        if !deletes.is_empty() && !self.is_pessimistic() {
            let mut keys: Vec<_> = writes.iter().chain(self.reads.keys()).cloned().collect();
            keys.sort_unstable();
            keys.dedup();
            let target = LockTarget { keys: keys.into(), ranges: deletes.clone(), is_exclusive: false };
            let lock_wait = self.lock_wait(&self.engine).with_room(room);
            let range_lock = self.engine.txn.locks.lock_ranges(self.id, &target, &lock_wait);
            let first = deletes.first().map(KeyRange::first);
            let range_lock = range_lock.map_err(|refusal| self.engine.refused(refusal, first.as_ref()))?;
            let held = Held::new(&self.engine.txn.locks, self.id);
            return Ok((held, Some(range_lock), Footprint { writes, deletes, ranges }));
        }
        let mut wanted: BTreeMap<&LockKey, LockMode> =
            self.reads.keys().map(|key| (key, LockMode::Shared)).collect();
        wanted.extend(writes.iter().map(|key| (key, LockMode::Exclusive)));
        let mut held = Held::new(&self.engine.txn.locks, self.id);
        let lock_wait = self.lock_wait(&self.engine).with_room(room);
        for (key, mode) in wanted {
            if self.held.get(key).is_none_or(|held| *held < mode) {
                let taken = held.acquire(key, mode, &lock_wait);
                taken.map_err(|refusal| self.engine.refused(refusal, Some(key)))?;
            }
        }
        let range_lock = self.lock_other_ranges(&deletes, &lock_wait)?;
        Ok((held, range_lock, Footprint { writes, deletes, ranges }))
    }

    /// A range lock for those of the ranges that are not locked yet, if there are any.
    fn lock_other_ranges(
        &self,
        deletes: &[KeyRange],
        lock_wait: &LockWait<'_>,
    ) -> Result<Option<RangeLock<'_>>> {
        debug_assert!(
            deletes.is_empty() || self.is_pessimistic(),
            "an optimistic transaction locks its ranges together with its keys"
        );
        let rest: Arc<[KeyRange]> =
            deletes.iter().filter(|range| !self.has_range_lock(range)).cloned().collect();
        let Some(first) = rest.first().map(KeyRange::first) else { return Ok(None) };
        let target = LockTarget { ranges: rest, ..LockTarget::default() };
        let range_lock = self.engine.txn.locks.lock_ranges(self.id, &target, lock_wait);
        range_lock.map(Some).map_err(|refusal| self.engine.refused(refusal, Some(&first)))
    }

    /// Returns true if one of its range locks covers all of the range: no other writer has changed it since.
    fn has_range_lock(&self, range: &KeyRange) -> bool {
        self.locked_ranges.iter().any(|locked| locked.covers(range))
    }

    /// Checks that everything is as the transaction saw it. Requires: it holds the locks, and is in the
    /// window.
    ///
    /// # Errors
    /// `Conflict` or `TooOld` if not; `Poisoned` if a comparator has failed: its answers about ranges are
    /// worth nothing.
    pub(in crate::txn) fn validate(&self, footprint: &Footprint) -> Result<()> {
        let seen = self.look_at(footprint);
        // After the validation, and after range locks and window were asked: a comparator that failed there
        // is seen here.
        self.check_comparators(footprint)?;
        seen
    }

    /// Fails if a comparator of a table that was read or is written has failed.
    fn check_comparators(&self, footprint: &Footprint) -> Result<()> {
        let keys = self.reads.keys().chain(footprint.writes.iter()).map(|key| key.table);
        let ranges = footprint.ranges.iter().chain(footprint.deletes.iter()).map(|range| range.table);
        // Keys are ordered by their hashes: those of several tables lie mixed.
        let (mut last, mut checked) = (None, Vec::new());
        for table in keys.chain(ranges) {
            if last != Some(table) && !checked.contains(&table) {
                self.engine.collation_of(table).check()?;
                checked.extend(last.replace(table));
            }
        }
        Ok(())
    }

    fn look_at(&self, footprint: &Footprint) -> Result<()> {
        let at = self.snapshot.as_ref().map(|snapshot| snapshot.seq());
        debug_assert!(
            at.is_none_or(|at| at == self.since),
            "the window keeps what the snapshot does not see"
        );
        debug_assert!(at.is_some() || footprint.ranges.is_empty(), "a scan is validated at a snapshot");
        self.engine.txn.validate(&self.engine, self.id, |look| {
            if let (Some(at), false) = (at, self.is_pessimistic()) {
                footprint.writes.iter().try_for_each(|key| check_write(look, key, at))?;
            }
            if let Some(at) = at {
                // Ranges that were locked before were validated then.
                let mut rest = footprint.deletes.iter().filter(|range| !self.has_range_lock(range));
                rest.try_for_each(|range| check_delete(look, range, at))?;
            }
            let is_skipped = terrane_base::planted!(ForgetClaims)
                || terrane_base::planted!(SkipPointValidation) && !self.has_claims;
            if !is_skipped {
                self.reads.iter().try_for_each(|(key, since)| look.key(key, *since))?;
            }
            match at {
                Some(at) if !terrane_base::planted!(SkipRangeValidation) => {
                    footprint.ranges.iter().try_for_each(|range| look.range(range, at))
                }
                _ => Ok(()),
            }
        })
    }
}

/// Fails if another commit changed a key that is written.
pub(super) fn check_write(look: &Look<'_>, key: &LockKey, since: SeqNo) -> Verdict {
    if terrane_base::planted!(SkipWriteValidation) { Ok(()) } else { look.key(key, since) }
}

/// Fails if another commit changed a key of a range that is deleted.
pub(super) fn check_delete(look: &mut Look<'_>, range: &KeyRange, since: SeqNo) -> Verdict {
    if terrane_base::planted!(SkipDeleteValidation) { Ok(()) } else { look.range(range, since) }
}
