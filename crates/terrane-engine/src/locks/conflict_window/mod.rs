//! The conflict window: which commit changed a key last, of commits that a living transaction does not see.
//!
//! While a transaction lives, each commit passes through here:
//! 1. Enter: wait until no commit or prepared transaction *in flight* scanned a range that this one writes
//!    into, or writes into a range that this one scanned; then be in flight.
//! 2. Validate: look up keys and ranges. Locks exclude commits of the same keys, step 1 those with
//!    overlapping ranges; every other commit is noted. No device is read.
//! 3. Leave: note the written keys under the number of the commit, which is visible by then.
//!
//! Commits that every living transaction sees are removed; a full window drops old ones ([`Inner::lost`]).
//!
//! Invariants:
//! * A commit above `lost` that became visible after the oldest registered position is noted or in flight.
//! * `last` holds the newest noted number of each key of `order`, and no other key; `sorted` the same of the
//!   commits at the front of `order`: the next lookup of a range sorts the others in. `compared` is the same
//!   for each table with a comparator. `deleted` holds the ranges that commits of `order` deleted.
//! * A snapshot's position is read and registered under one lock: nothing it needs leaves before.

mod accounting;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use terrane_base::sync::atomic::{AtomicU64, Ordering};

use terrane_base::sync::{Condvar, Mutex, MutexGuard};
use terrane_base::{SeqNo, TableId, verify};

use crate::locks::key_range::{KeyRange, TableKey};
use crate::locks::lock_table::{LockKey, LockWait, Refusal};
use crate::locks::window_keys::WindowKeys;
use accounting::{bytes_of, bytes_of_ranges, remove_if};

/// The keys and ranges that a commit writes and has scanned.
#[derive(Clone, Debug, Default)]
pub(crate) struct Footprint {
    /// Written keys, ascending, each once.
    pub(crate) writes: Arc<[LockKey]>,
    /// Ranges that are deleted.
    pub(crate) deletes: Arc<[KeyRange]>,
    /// Scanned ranges that must be as they were seen.
    pub(crate) ranges: Arc<[KeyRange]>,
}

impl Footprint {
    fn scanned_writes_of(&self, other: &Footprint) -> bool {
        self.ranges.iter().any(|range| {
            other.writes.iter().any(|key| range.holds(key))
                || other.deletes.iter().any(|deleted| range.meets(deleted))
        })
    }
}

/// A commit that has entered, or a prepared transaction.
#[derive(Debug)]
struct Flight {
    number: u64,
    footprint: Footprint,
    /// Its commit is still to come, at any time: after every commit that is in flight now, or not.
    is_prepared: bool,
}

/// Names a flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlightId(u64);

/// Why a validation failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stale {
    /// The key was changed by the commit with this number.
    Changed(LockKey, SeqNo),
    /// Commits up to this number are forgotten.
    Forgotten(SeqNo),
}

/// Result of a check that a footprint is as it was.
pub(crate) type Verdict = Result<(), Stale>;

#[derive(Debug, Default)]
struct Inner {
    last: BTreeMap<LockKey, SeqNo>,
    /// The ranges that a noted commit has deleted, if there are any.
    deleted: BTreeMap<SeqNo, Arc<[KeyRange]>>,
    /// Commits as they left, oldest first.
    order: VecDeque<(SeqNo, Arc<[LockKey]>)>,
    sorted: BTreeMap<TableKey, SeqNo>,
    /// Commits at the front of `order` whose keys are in `sorted`.
    sorted_commits: usize,
    /// Tables that a comparator orders, once a range of them was looked up: their keys in its order.
    compared: BTreeMap<TableId, WindowKeys>,
    /// Bytes of the noted keys and ranges, without `compared`.
    bytes: u64,
    /// Positions of living transactions, and how many have each.
    readers: BTreeMap<SeqNo, u64>,
    /// Commits with this number and below may be missing.
    lost: SeqNo,
    in_flight: Vec<Flight>,
    next_flight: u64,
}

/// The window of a database.
#[derive(Debug)]
pub(crate) struct ConflictWindow {
    inner: Mutex<Inner>,
    /// Some flight has ended.
    left: Condvar,
    bytes_max: AtomicU64,
    /// Memory that it takes, for the memory arbiter.
    bytes: Arc<AtomicU64>,
}

impl Inner {
    /// Returns true if a commit with this footprint must wait for one that is in flight. Which of the two
    /// gets the lower number is open until it has left, but a commit that is not prepared precedes a
    /// transaction that prepares now.
    fn must_wait(&self, own: &[FlightId], footprint: &Footprint, prepares: bool) -> bool {
        debug_assert!(
            self.in_flight.iter().all(|flight| flight.number <= self.next_flight),
            "two flights would have one number"
        );
        self.in_flight.iter().filter(|flight| !own.contains(&FlightId(flight.number))).any(|flight| {
            let other = &flight.footprint;
            other.scanned_writes_of(footprint)
                || ((prepares || !flight.is_prepared) && footprint.scanned_writes_of(other))
        })
    }

    fn check_kept(&self, since: SeqNo) -> Verdict {
        if since < self.lost { Err(Stale::Forgotten(self.lost)) } else { Ok(()) }
    }

    fn validate_key(&self, key: &LockKey, since: SeqNo) -> Verdict {
        self.check_kept(since)?;
        match self.last.get(key) {
            Some(&seq) if seq > since => Err(Stale::Changed(key.clone(), seq)),
            _ => match self.deleted_since(since, |deleted| deleted.holds(key)) {
                Some((seq, _)) => Err(Stale::Changed(key.clone(), seq)),
                None => Ok(()),
            },
        }
    }

    /// A commit above `since` that has deleted a range like this.
    fn deleted_since(
        &self,
        since: SeqNo,
        is_meant: impl Fn(&KeyRange) -> bool,
    ) -> Option<(SeqNo, &KeyRange)> {
        debug_assert!(
            since >= self.lost,
            "commits up to {} are forgotten: the answer would lack them",
            self.lost
        );
        if terrane_base::planted!(ForgetDeletedRanges) {
            return None;
        }
        let later = self.deleted.range((Bound::Excluded(since), Bound::Unbounded));
        let mut later = later.flat_map(|(seq, ranges)| ranges.iter().map(move |range| (*seq, range)));
        later.find(|(_, range)| is_meant(range))
    }

    fn validate_range(&mut self, range: &KeyRange, since: SeqNo) -> Verdict {
        self.check_kept(since)?;
        if !range.bounds.collation.is_bytes() {
            if let Some((key, seq)) = self.compared(range).changed(&range.bounds, since) {
                return Err(Stale::Changed(LockKey::new(range.table, key), seq));
            }
        } else {
            let Some(bounds) = range.in_map() else { return Ok(()) };
            self.sort();
            if let Some(((table, key), seq)) = self.sorted.range(bounds).find(|(_, seq)| **seq > since) {
                return Err(Stale::Changed(LockKey::new(*table, key), *seq));
            }
        }
        match self.deleted_since(since, |deleted| deleted.meets(range)) {
            Some((seq, deleted)) => Err(Stale::Changed(deleted.first(), seq)),
            None => Ok(()),
        }
    }

    /// Adds the keys that were noted since the last time to the sorted ones.
    fn sort(&mut self) {
        for (seq, keys) in self.order.range(self.sorted_commits..) {
            for key in keys.iter() {
                self.sorted.insert((key.table, key.key.clone()), *seq);
            }
        }
        self.sorted_commits = self.order.len();
        debug_assert!(self.sorted.len() == self.last.len(), "every noted key is sorted in, and no other");
    }

    /// The keys of a range's table in the order of its comparator, with what was noted since the last time.
    fn compared(&mut self, range: &KeyRange) -> &WindowKeys {
        let compared =
            self.compared.entry(range.table).or_insert_with(|| WindowKeys::new(&range.bounds.collation));
        debug_assert!(compared.commits <= self.order.len(), "a commit that was cut is counted");
        for (seq, keys) in self.order.range(compared.commits..) {
            let own = keys.iter().filter(|key| key.table == range.table);
            own.for_each(|key| compared.note(&key.key, *seq));
        }
        compared.commits = self.order.len();
        compared
    }

    fn note(&mut self, seq: SeqNo, keys: Arc<[LockKey]>, deletes: Arc<[KeyRange]>) {
        for key in keys.iter() {
            // Under the lock of the key, so numbers only rise.
            let before = self.last.insert(key.clone(), seq);
            debug_assert!(
                before.is_none_or(|before| before < seq),
                "{key:?} was changed by {before:?}, then {seq}"
            );
        }
        self.bytes += bytes_of(&keys) + bytes_of_ranges(&deletes);
        if !deletes.is_empty() {
            self.deleted.insert(seq, deletes);
        }
        self.order.push_back((seq, keys));
    }

    /// Drops commits that every reader sees, and the oldest ones beyond `bytes_max`.
    fn cut(&mut self, bytes_max: u64) {
        let seen = self.readers.keys().next().copied().unwrap_or(SeqNo::MAX);
        while let Some((seq, _)) = self.order.front() {
            let is_seen = *seq <= seen;
            if !is_seen && self.held_bytes() <= bytes_max {
                break;
            }
            let (seq, keys) = self.order.pop_front().expect("there is a front");
            let deletes = self.deleted.remove(&seq).unwrap_or_default();
            self.bytes -= bytes_of(&keys) + bytes_of_ranges(&deletes);
            let is_sorted = self.sorted_commits > 0;
            self.sorted_commits -= usize::from(is_sorted);
            for key in keys.iter() {
                remove_if(&mut self.last, key.clone(), seq);
                if is_sorted {
                    remove_if(&mut self.sorted, (key.table, key.key.clone()), seq);
                }
            }
            self.cut_compared(seq, &keys);
            if !is_seen {
                self.lost = self.lost.max(seq);
            }
        }
        if self.order.is_empty() {
            // Also the keys that a contradictory comparator has hidden.
            self.compared.clear();
            let is_empty = self.last.is_empty() && self.sorted.is_empty() && self.deleted.is_empty();
            debug_assert!(is_empty && self.bytes == 0, "{} bytes are of no commit", self.bytes);
        }
    }
}

/// A view of the window under its mutex: answers stay true while it lives.
pub(crate) struct Look<'w>(MutexGuard<'w, Inner>);

impl Look<'_> {
    /// Fails if the key was changed by a commit above `since`.
    pub(crate) fn key(&self, key: &LockKey, since: SeqNo) -> Verdict {
        self.0.validate_key(key, since)
    }

    /// Fails if a key of the range was changed by a commit above `since`.
    pub(crate) fn range(&mut self, range: &KeyRange, since: SeqNo) -> Verdict {
        self.0.validate_range(range, since)
    }
}

impl ConflictWindow {
    /// An empty window that takes about `bytes_max` bytes at most.
    pub(crate) fn new(bytes_max: u64) -> ConflictWindow {
        ConflictWindow {
            inner: Mutex::new(Inner::default()),
            left: Condvar::new(),
            bytes_max: AtomicU64::new(bytes_max),
            bytes: Arc::default(),
        }
    }

    /// Changes how much it takes at most, from the next commit on.
    pub(crate) fn set_bytes_max(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Where the bytes it holds are counted.
    pub(crate) fn bytes_shared(&self) -> Arc<AtomicU64> {
        self.bytes.clone()
    }

    /// Bytes it holds.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Registers the position that `take` returns; nothing above it is cut from then on. `take` must be
    /// short.
    pub(crate) fn register<T>(&self, take: impl FnOnce() -> (SeqNo, T)) -> (SeqNo, T) {
        let mut inner = self.inner.lock();
        let (at, taken) = take();
        debug_assert!(at >= inner.lost, "a transaction that begins sees every commit that is forgotten");
        *inner.readers.entry(at).or_insert(0) += 1;
        (at, taken)
    }

    /// Ends a registration.
    pub(crate) fn unregister(&self, at: SeqNo) {
        let mut inner = self.inner.lock();
        inner.unregister(at);
        self.tidy(&mut inner);
    }

    /// Enters a commit, or a transaction that prepares; it waits as the head of the module says, but never
    /// for `own`, a prepared flight of the same transaction.
    pub(crate) fn enter(
        &self,
        footprint: &Footprint,
        prepares: bool,
        own: Option<FlightId>,
        lock_wait: &LockWait<'_>,
    ) -> Result<FlightId, Refusal> {
        debug_assert!(footprint.writes.is_sorted_by(|a, b| a < b), "written keys are in order, each once");
        let mut inner = self.inner.lock();
        while inner.must_wait(own.as_slice(), footprint, prepares) {
            lock_wait.wait(&self.left, &mut inner)?;
        }
        inner.next_flight += 1;
        let number = inner.next_flight;
        inner.in_flight.push(Flight { number, footprint: footprint.clone(), is_prepared: prepares });
        Ok(FlightId(number))
    }

    /// Lets a prepared flight commit now; it does not wait for `more`, another flight of the same commit.
    pub(crate) fn resume(
        &self,
        id: FlightId,
        more: Option<FlightId>,
        lock_wait: &LockWait<'_>,
    ) -> Result<(), Refusal> {
        let flights: Vec<FlightId> = more.into_iter().chain([id]).collect();
        let mut inner = self.inner.lock();
        debug_assert!(more.is_none_or(|more| more != id), "a flight is beside itself");
        let own = inner.in_flight.iter().find(|flight| flight.number == id.0);
        let footprint = own.expect("a flight is there until it leaves").footprint.clone();
        while inner.must_wait(&flights, &footprint, false) {
            lock_wait.wait(&self.left, &mut inner)?;
        }
        self.set_prepared(&mut inner, id, false);
        Ok(())
    }

    /// Makes a flight whose commit failed a prepared one again.
    pub(crate) fn hold_back(&self, id: FlightId) {
        self.set_prepared(&mut self.inner.lock(), id, true);
        self.left.notify_all();
    }

    fn set_prepared(&self, inner: &mut Inner, id: FlightId, is_prepared: bool) {
        let own = inner.in_flight.iter_mut().find(|flight| flight.number == id.0);
        let own = own.expect("a flight is there until it leaves");
        debug_assert!(own.is_prepared != is_prepared, "a prepared flight resumes, another is held back");
        own.is_prepared = is_prepared;
    }

    /// Looks things up; nothing is noted or cut until the answer is dropped.
    pub(crate) fn look(&self) -> Look<'_> {
        Look(self.inner.lock())
    }

    /// Ends a flight: its keys are noted under `committed`, the number under which they are visible.
    pub(crate) fn leave(&self, id: FlightId, committed: Option<SeqNo>) {
        let mut inner = self.inner.lock();
        let at = inner.in_flight.iter().position(|flight| flight.number == id.0);
        let flight = inner.in_flight.swap_remove(at.expect("a flight leaves once"));
        if let Some(seq) = committed {
            inner.note(seq, flight.footprint.writes, flight.footprint.deletes);
        }
        self.tidy(&mut inner);
        self.left.notify_all();
    }

    fn tidy(&self, inner: &mut Inner) {
        inner.cut(self.bytes_max.load(Ordering::Relaxed));
        verify!(inner.check());
        self.bytes.store(inner.held_bytes(), Ordering::Relaxed);
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
