//! Range locks: while one is held, no other owner gets a lock of a key that it covers.
//!
//! A range lock covers what a batch with range deletes changes: the deleted ranges and the single keys of the
//! batch, together.
//!
//! 1. The entry of the range lock is added to the list, so that no other owner is granted a new lock of a
//!    covered key.
//! 2. If no other owner holds a lock of a covered key, the range lock is granted
//!    ([`crate::locks::lock_table::LockTable::lock_ranges`]).
//! 3. Otherwise the entry is removed, and the owner tries again after some lock was released.
//!
//! An owner that wants the lock of a covered key waits for the range lock, without a place in the queue of
//! the key's lock. A plain batch, or an optimistic transaction at its commit, holds no other locks while it
//! waits for its range lock, so no deadlock goes through it. A pessimistic transaction holds locks while it
//! wants more: its waits for range locks are edges of the wait graph, as waits for locks of keys are. An
//! entry that is not granted lasts for a moment only, and gives no edge.
//!
//! # Ordering
//! The lock table looks for range locks under the mutex of a lock's shard before it grants the lock. An entry
//! is added before the shards are searched under their mutexes. So one of the two sees the other, and `count`
//! may be read relaxed: the shard's mutex orders it.
//!
//! # Which range locks exclude each other
//! Two of them do if a single key of one is covered by the other; of two deletes of a range either may come
//! first. An ingest excludes deletes, too: its range lock is exclusive on its ranges.

use std::sync::Arc;

use terrane_base::sync::atomic::{AtomicUsize, Ordering};
use terrane_base::sync::{Condvar, Mutex};

use crate::locks::key_range::KeyRange;
use crate::locks::lock_table::{LockKey, LockWait, Owner, Refusal, Waited};

/// One range lock, granted or being tried.
#[derive(Debug)]
struct Entry {
    number: u64,
    owner: Owner,
    target: LockTarget,
    /// True once no other owner holds a lock of a covered key: the entry stays until it is released.
    is_granted: bool,
}

impl Entry {
    fn as_blocker(&self) -> Blocker {
        Blocker::RangeLock {
            owner: self.owner,
            is_granted: self.is_granted,
            is_exclusive: self.target.is_exclusive,
        }
    }
}

#[derive(Debug, Default)]
struct State {
    entries: Vec<Entry>,
    next_number: u64,
    changes: ChangeCounts,
}

/// Counts of the events for which an owner that wants a range lock waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChangeCounts {
    /// Locks of keys that were released.
    releases: u64,
    /// Entries that were removed or granted. Counted apart from `releases`: an owner that finds a holder
    /// removes its entry at once, which must wake only owners that waited for that entry.
    entry_changes: u64,
}

/// The reason why an owner does not get a lock or a range lock.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Blocker {
    /// Owners that hold locks of covered keys.
    Holders(Vec<Owner>),
    /// A range lock.
    RangeLock {
        /// Its owner.
        owner: Owner,
        /// True if it is granted.
        is_granted: bool,
        /// True if it belongs to an ingest.
        is_exclusive: bool,
    },
}

impl Blocker {
    /// The owners for which a waiter waits: the edges of the wait graph.
    pub(super) fn owners(&self) -> Vec<Owner> {
        match self {
            Blocker::Holders(owners) => owners.clone(),
            Blocker::RangeLock { owner, is_granted: true, .. } => vec![*owner],
            Blocker::RangeLock { .. } => Vec::new(),
        }
    }
}

/// The keys and ranges that a range lock covers.
#[derive(Clone, Debug, Default)]
pub(crate) struct LockTarget {
    /// Single keys, ascending.
    pub(crate) keys: Arc<[LockKey]>,
    /// Ranges.
    pub(crate) ranges: Arc<[KeyRange]>,
    /// True if no other owner may delete keys in the ranges meanwhile.
    pub(crate) is_exclusive: bool,
}

impl LockTarget {
    /// Returns true if the key is covered.
    pub(crate) fn holds(&self, key: &LockKey) -> bool {
        self.deletes(key) || self.keys.binary_search(key).is_ok()
    }

    /// Returns true if the key lies in one of the ranges.
    pub(crate) fn deletes(&self, key: &LockKey) -> bool {
        self.ranges.iter().any(|range| range.holds(key))
    }

    /// A key by which errors name it.
    pub(super) fn first(&self) -> LockKey {
        let range = || self.ranges.first().map(KeyRange::first);
        self.keys.first().cloned().or_else(range).expect("a range lock covers something")
    }

    /// Returns true if a single key of one is covered by the other, or ranges meet of which one is exclusive.
    fn excludes(&self, other: &LockTarget) -> bool {
        let meet = || self.ranges.iter().any(|range| other.ranges.iter().any(|other| range.meets(other)));
        if (self.is_exclusive || other.is_exclusive) && meet() {
            return true;
        }
        self.keys.iter().any(|key| other.holds(key)) || other.keys.iter().any(|key| self.holds(key))
    }
}

/// All range locks of a database.
#[derive(Debug, Default)]
pub(super) struct RangeLocks {
    state: Mutex<State>,
    /// Number of entries.
    count: AtomicUsize,
    /// Number of owners that wait for locks of keys to be released.
    waiting: AtomicUsize,
    /// Notified when one of the change counts rises.
    changed: Condvar,
}

/// Registration of an owner that wants a range lock: while it exists, releases of locks are counted.
#[derive(Debug)]
pub(super) struct Waiter<'f>(&'f RangeLocks);

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let waiting = self.0.waiting.fetch_sub(1, Ordering::Relaxed);
        assert!(waiting > 0, "a range lock that waits is counted once");
    }
}

/// A range lock, which is released when the value is dropped.
#[derive(Debug)]
pub(crate) struct RangeLock<'f> {
    range_locks: &'f RangeLocks,
    number: u64,
}

impl RangeLock<'_> {
    /// Grants it: no other owner holds a lock of a covered key.
    pub(super) fn grant(&self) {
        let mut state = self.range_locks.state.lock();
        let own = state.entries.iter_mut().find(|entry| entry.number == self.number);
        let own = own.expect("an entry exists until its range lock is dropped");
        debug_assert!(!own.is_granted, "a range lock is granted once");
        own.is_granted = true;
        // Owners that it blocks wait for its owner from now on, and add that edge to the wait graph.
        state.changes.entry_changes += 1;
        self.range_locks.changed.notify_all();
    }

    /// Keeps it until [`RangeLocks::release_all`] releases those of its owner.
    pub(crate) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for RangeLock<'_> {
    fn drop(&mut self) {
        self.range_locks.remove(|entry| entry.number == self.number);
    }
}

impl RangeLocks {
    /// Adds an entry for `target`, or returns the range lock that excludes it.
    pub(super) fn try_add(&self, owner: Owner, target: &LockTarget) -> Result<RangeLock<'_>, Blocker> {
        let mut state = self.state.lock();
        let mut others = state.entries.iter().filter(|entry| entry.owner != owner);
        if let Some(other) = others.find(|entry| entry.target.excludes(target)) {
            return Err(other.as_blocker());
        }
        state.next_number += 1;
        let number = state.next_number;
        debug_assert!(
            state.entries.last().is_none_or(|last| last.number < number),
            "each range lock has a number of its own"
        );
        state.entries.push(Entry { number, owner, target: target.clone(), is_granted: false });
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(RangeLock { range_locks: self, number })
    }

    /// Releases every range lock of `owner`.
    pub(super) fn release_all(&self, owner: Owner) {
        self.remove(|entry| entry.owner == owner);
    }

    fn remove(&self, is_meant: impl Fn(&Entry) -> bool) {
        let mut state = self.state.lock();
        let before = state.entries.len();
        state.entries.retain(|entry| !is_meant(entry));
        state.changes.entry_changes += 1;
        let count = self.count.fetch_sub(before - state.entries.len(), Ordering::Relaxed);
        assert!(
            count == before,
            "{before} range locks are there, {count} are counted: writers would miss one"
        );
        self.changed.notify_all();
    }

    /// Returns true if a range lock of another owner covers `key`.
    #[inline]
    pub(super) fn blocks(&self, owner: Owner, key: &LockKey) -> bool {
        self.count.load(Ordering::Relaxed) > 0 && self.blocker_of(owner, key).is_some()
    }

    /// The range lock that keeps `owner` from `key`.
    pub(super) fn blocker_of(&self, owner: Owner, key: &LockKey) -> Option<Blocker> {
        Self::find(&self.state.lock(), owner, key)
    }

    fn find(state: &State, owner: Owner, key: &LockKey) -> Option<Blocker> {
        let mut others = state.entries.iter().filter(|entry| entry.owner != owner && entry.target.holds(key));
        others.next().map(Entry::as_blocker)
    }

    /// Waits while the range lock `seen` keeps `owner` from `key`.
    #[cold]
    pub(super) fn wait_while_blocked(
        &self,
        owner: Owner,
        key: &LockKey,
        seen: &Blocker,
        lock_wait: &LockWait<'_>,
    ) -> Waited {
        debug_assert!(matches!(seen, Blocker::RangeLock { .. }), "locks of keys are not waited for here");
        let mut state = self.state.lock();
        while Self::find(&state, owner, key).as_ref() == Some(seen) {
            let waited = lock_wait.wait(&self.changed, &mut state);
            waited.map_err(|refusal| refusal.naming_blocker(seen))?;
        }
        Ok(())
    }

    /// Registers an owner that wants a range lock. [`RangeLocks::changes`] counts every release from now on.
    pub(super) fn register_waiter(&self) -> Waiter<'_> {
        // Before the shards are searched under their mutexes: the thread that releases a lock which was seen
        // there sees the new count.
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waiter(self)
    }

    /// The change counts; to be taken before [`RangeLocks::try_add`].
    pub(super) fn changes(&self) -> ChangeCounts {
        self.state.lock().changes
    }

    /// Waits until `blocker` may have gone since `seen`.
    pub(super) fn wait_for(&self, blocker: &Blocker, seen: ChangeCounts, lock_wait: &LockWait<'_>) -> Waited {
        let mut state = self.state.lock();
        debug_assert!(
            state.changes.releases >= seen.releases && state.changes.entry_changes >= seen.entry_changes,
            "counts of changes only rise"
        );
        let is_unchanged = |now: ChangeCounts| match blocker {
            Blocker::Holders(_) => now.releases == seen.releases,
            Blocker::RangeLock { .. } => now.entry_changes == seen.entry_changes,
        };
        while is_unchanged(state.changes) {
            let waited = lock_wait.wait(&self.changed, &mut state);
            waited.map_err(|refusal| refusal.naming_blocker(blocker))?;
        }
        Ok(())
    }

    /// Wakes owners that wait for the release of a lock.
    #[inline]
    pub(super) fn note_release(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.state.lock().changes.releases += 1;
            self.changed.notify_all();
        }
    }
}

impl Refusal {
    /// The same; a timeout names the owners for which the caller waited.
    pub(super) fn naming(self, owners: Vec<Owner>) -> Refusal {
        match self {
            Refusal::TimedOut(_) => Refusal::TimedOut(owners),
            other => other,
        }
    }

    fn naming_blocker(self, blocker: &Blocker) -> Refusal {
        match (self, blocker) {
            (Refusal::TimedOut(_), Blocker::RangeLock { is_exclusive: true, .. }) => Refusal::Ingest,
            (refusal, Blocker::Holders(owners)) => refusal.naming(owners.clone()),
            (refusal, Blocker::RangeLock { owner, .. }) => refusal.naming(vec![*owner]),
        }
    }
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use std::ops::Bound;
    use std::time::Duration;
    use terrane_base::sync::atomic::AtomicBool;

    use terrane_base::TableId;
    use terrane_base::env::Env;

    use super::*;
    use crate::locks::lock_table::{LockMode, LockTable};
    use crate::read::scan::Bounds;

    #[test]
    fn a_range_lock_excludes_other_owners() {
        let (env, closing) = (Env::real(), AtomicBool::new(false));
        let (until, finds_deadlocks, room) = (Duration::ZERO, true, None);
        let no_wait = LockWait { env: &env, until, closing: &closing, finds_deadlocks, room };
        let key = |text: &str| LockKey::new(TableId(1), text.as_bytes());
        let bounds = Bounds {
            lower: Bound::Included(b"b".to_vec()),
            upper: Bound::Excluded(b"d".to_vec()),
            ..Bounds::all()
        };
        let ranges: Arc<[KeyRange]> = [KeyRange { table: TableId(1), bounds }].into();
        let ranges = LockTarget { ranges, ..LockTarget::default() };
        let table = LockTable::new();
        let exclusive = LockMode::Exclusive;

        table.acquire(1, &key("c"), exclusive, &no_wait).unwrap();
        let refused = table.lock_ranges(2, &ranges, &no_wait).map(drop);
        assert_eq!(refused, Err(Refusal::TimedOut(vec![1])), "owner 1 holds a key there");
        table.acquire(1, &key("b"), exclusive, &no_wait).unwrap();
        table.release(1, &[key("b"), key("c")]);

        let range_lock = table.lock_ranges(2, &ranges, &no_wait).unwrap();
        assert_eq!(table.acquire(1, &key("c"), exclusive, &no_wait), Err(Refusal::TimedOut(vec![2])));
        table.acquire(1, &key("d"), exclusive, &no_wait).unwrap();
        table.acquire(2, &key("c"), exclusive, &no_wait).unwrap();
        table.release(2, &[key("c")]);
        let second = table.lock_ranges(3, &ranges, &no_wait).unwrap();
        drop(range_lock);
        assert_eq!(table.acquire(1, &key("c"), exclusive, &no_wait), Err(Refusal::TimedOut(vec![3])));
        drop(second);
        table.acquire(1, &key("c"), exclusive, &no_wait).unwrap();
        table.release(1, &[key("c")]);

        let exclusive_range = LockTarget { is_exclusive: true, ..ranges.clone() };
        let range_lock = table.lock_ranges(4, &exclusive_range, &no_wait).unwrap();
        let refused = table.lock_ranges(5, &ranges, &no_wait).map(drop);
        assert_eq!(refused, Err(Refusal::Ingest), "one of them is exclusive");
        assert_eq!(table.acquire(1, &key("c"), exclusive, &no_wait), Err(Refusal::Ingest));
        drop(range_lock);
        let replaced = LockTarget { keys: [key("c")].into(), ..ranges.clone() };
        let range_lock = table.lock_ranges(4, &replaced, &no_wait).unwrap();
        let refused = table.lock_ranges(5, &replaced, &no_wait).map(drop);
        assert_eq!(refused, Err(Refusal::TimedOut(vec![4])), "both have the same key");
        drop(range_lock);
        drop(table.lock_ranges(5, &replaced, &no_wait).unwrap());
    }
}
