//! Locks on single keys, with owners: shared and exclusive, upgrades, fair queues, timeouts, deadlock
//! detection.
//!
//! 1. Look: the lock is granted at once if no holder excludes it and its queue is empty.
//! 2. Queue: after all others, or, for an owner that holds it shared and wants it alone, in front of them.
//! 3. Search the wait graph ([`crate::locks::wait_graph`]); a waiter that would close a cycle is refused.
//! 4. Wait: until granted, the lock wait ends, or the database closes.
//!
//! A *range lock* ([`crate::locks::range_locks`]) keeps a range of keys free of other holders while it is
//! deleted: before step 1 an owner waits until no other owner's range lock covers the key.
//!
//! A thread that releases a lock or gives up its request grants the lock to the front of the queue, and
//! updates the edges of the remaining waiters in the graph.
//!
//! Invariants: an exclusive holder is alone; a queue is not empty only while its front cannot be granted; a
//! lock without holders and waiters is not in the map. An owner waits for one lock at a time. A lock without
//! holders has no queue, so of keys under a granted range lock only its owner gets a lock. The order of
//! mutexes is shard, then range locks or graph.

mod evict;
pub(crate) mod lock_wait;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use terrane_base::TableId;
use terrane_base::sync::{Condvar, Mutex};

use crate::locks::lock_expiry::LockExpiries;
use crate::locks::range_locks::{Blocker, LockTarget, RangeLock, RangeLocks};
use crate::locks::wait_graph::WaitGraph;

pub(crate) use lock_wait::{LockWait, Refusal, Waited};

/// Maps of locks, each under a mutex of its own.
const SHARDS: usize = if cfg!(feature = "shuttle") { 2 } else { 64 };

/// A holder of a lock or a waiter for it: the number of a transaction, or of one plain write.
pub(crate) type Owner = u64;

/// A key of a table. Ordered by its hash first, so that looking one up among many compares numbers and not
/// bytes that lie elsewhere: every commit looks up all of its keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LockKey {
    hash: u64,
    /// The table.
    pub(crate) table: TableId,
    /// User key; shared by all that name it.
    pub(crate) key: Arc<[u8]>,
}

impl LockKey {
    /// A key of a table.
    pub(crate) fn new(table: TableId, key: &[u8]) -> LockKey {
        let hash = terrane_format::filter::hash(key).wrapping_add(u64::from(table.0));
        LockKey { hash, table, key: key.into() }
    }
}

/// How a lock is held. Ordered by strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockMode {
    /// Beside other holders of the same kind.
    Shared,
    /// Alone.
    Exclusive,
}

#[derive(Debug)]
struct Request {
    owner: Owner,
    mode: LockMode,
    is_upgrade: bool,
}

#[derive(Debug, Default)]
struct Lock {
    holders: Vec<(Owner, LockMode)>,
    queue: VecDeque<Request>,
}

fn exclude(one: LockMode, other: LockMode) -> bool {
    one == LockMode::Exclusive || other == LockMode::Exclusive
}

impl Lock {
    fn holds(&self, owner: Owner, mode: LockMode) -> bool {
        self.holders.iter().any(|&(holder, held)| holder == owner && held >= mode)
    }

    /// Returns true if no holder excludes the request; the queue is not looked at.
    fn has_room(&self, owner: Owner, mode: LockMode) -> bool {
        let others = self.holders.iter().filter(|(holder, _)| *holder != owner);
        others.clone().all(|&(_, held)| !exclude(held, mode)) || terrane_base::planted!(GrantToAll)
    }

    fn hold(&mut self, owner: Owner, mode: LockMode) {
        match self.holders.iter_mut().find(|(holder, _)| *holder == owner) {
            Some((_, held)) => *held = mode.max(*held),
            None => self.holders.push((owner, mode)),
        }
        let own = self.holders.iter().filter(|(holder, _)| *holder == owner);
        debug_assert!(own.count() == 1, "owner {owner} holds a lock once: {self:?}");
    }

    /// Grants the lock, or puts the request into the queue. Returns whether it was granted.
    fn request(&mut self, owner: Owner, mode: LockMode) -> bool {
        if self.holds(owner, mode) {
            return true;
        }
        let is_upgrade = self.holds(owner, LockMode::Shared);
        // An upgrade waits for the other holders only: every request in the queue waits for its owner
        // already.
        let upgrades = self.queue.iter().take_while(|request| request.is_upgrade).count();
        let place = if is_upgrade { upgrades } else { self.queue.len() };
        if place == 0 && self.has_room(owner, mode) {
            self.hold(owner, mode);
            debug_assert!(self.is_sound(), "a lock is held twice: {self:?}");
            return true;
        }
        self.queue.insert(place, Request { owner, mode, is_upgrade });
        false
    }

    /// The owners that must release or withdraw before the request at `place` of the queue is granted.
    fn blockers(&self, place: usize) -> Vec<Owner> {
        let Request { owner, mode, .. } = self.queue[place];
        let holders = self.holders.iter().copied();
        let ahead = self.queue.iter().take(place).map(|request| (request.owner, request.mode));
        let blocking = holders.chain(ahead).filter(|&(other, held)| other != owner && exclude(held, mode));
        let blocking: Vec<Owner> = blocking.map(|(other, _)| other).collect();
        debug_assert!(!blocking.is_empty(), "a request waits for no owner: {self:?}");
        blocking
    }

    fn place_of(&self, owner: Owner) -> Option<usize> {
        self.queue.iter().position(|request| request.owner == owner)
    }

    /// Grants what can be granted, and brings the graph up to date.
    fn grant_waiting(&mut self, waits: &mut WaitGraph) {
        while let Some(front) = self.queue.front().filter(|front| self.has_room(front.owner, front.mode)) {
            let (owner, mode) = (front.owner, front.mode);
            self.queue.pop_front();
            self.hold(owner, mode);
            waits.remove(owner);
        }
        assert!(self.is_sound(), "a lock is held twice: {self:?}");
        for place in 0..self.queue.len() {
            waits.update(self.queue[place].owner, self.blockers(place));
        }
    }

    /// True if no two holders exclude each other.
    fn is_sound(&self) -> bool {
        let is_alone = self.holders.len() <= 1 || terrane_base::planted!(GrantToAll);
        is_alone || self.holders.iter().all(|(_, mode)| *mode == LockMode::Shared)
    }

    fn is_idle(&self) -> bool {
        self.holders.is_empty() && self.queue.is_empty()
    }
}

type Locks = BTreeMap<LockKey, Lock>;

#[derive(Debug, Default)]
struct Shard {
    locks: Mutex<Locks>,
    /// Notified when a lock of the shard was granted to a waiter.
    changed: Condvar,
}

/// All locks of a database.
#[derive(Debug)]
pub(crate) struct LockTable {
    shards: Vec<Shard>,
    waits: Mutex<WaitGraph>,
    range_locks: RangeLocks,
    /// The owners whose locks others may take from some moment on.
    pub(crate) expiries: LockExpiries,
}

impl LockTable {
    /// No locks.
    pub(crate) fn new() -> LockTable {
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        let (waits, range_locks, expiries) =
            (Mutex::default(), RangeLocks::default(), LockExpiries::default());
        LockTable { shards, waits, range_locks, expiries }
    }

    fn shard(&self, key: &LockKey) -> &Shard {
        &self.shards[key.hash as usize % SHARDS]
    }

    /// Has `owner` hold the lock of `key` in `mode` at least. An owner that holds it keeps what it has.
    pub(crate) fn acquire(&self, owner: Owner, key: &LockKey, mode: LockMode, wait: &LockWait<'_>) -> Waited {
        let shard = self.shard(key);
        let mut locks = shard.locks.lock();
        while self.range_locks.blocks(owner, key) && !terrane_base::planted!(IgnoreRangeLock) {
            drop(locks);
            self.wait_for_range_lock(owner, key, wait)?;
            locks = shard.locks.lock();
        }
        let lock = locks.entry(key.clone()).or_default();
        if self.evict(lock, owner, wait) {
            lock.grant_waiting(&mut self.waits.lock());
            shard.changed.notify_all();
        }
        if lock.request(owner, mode) {
            debug_assert!(lock.holds(owner, mode), "a lock is granted, and its owner does not hold it");
            return Ok(());
        }
        let place = lock.place_of(owner).expect("a request that was not granted is in the queue");
        let blockers = lock.blockers(place);
        let cycle = self.waits.lock().add(owner, key.clone(), blockers, wait.finds_deadlocks);
        if let Some(cycle) = cycle {
            self.withdraw(shard, &mut locks, key, owner);
            return Err(Refusal::Deadlock(cycle));
        }
        loop {
            let lock = locks.get_mut(key).expect("a waiter keeps the lock in the map");
            if self.evict(lock, owner, wait) {
                lock.grant_waiting(&mut self.waits.lock());
                shard.changed.notify_all();
            }
            if lock.place_of(owner).is_none() {
                return Ok(());
            }
            if let Err(refusal) = wait.wait(&shard.changed, &mut locks) {
                // It may have come while the guard was given up.
                let lock = locks.get(key).expect("a waiter keeps the lock in the map");
                let Some(place) = lock.place_of(owner) else { return Ok(()) };
                let blockers = lock.blockers(place);
                self.withdraw(shard, &mut locks, key, owner);
                return Err(refusal.naming(blockers));
            }
        }
    }

    /// Waits until no range lock keeps `owner` from `key`, or the one that does has changed.
    #[cold]
    fn wait_for_range_lock(&self, owner: Owner, key: &LockKey, wait: &LockWait<'_>) -> Waited {
        let Some(blocker) = self.range_locks.blocker_of(owner, key) else { return Ok(()) };
        self.add_to_graph(owner, key.clone(), &blocker, wait)?;
        let waited = self.range_locks.wait_while_blocked(owner, key, &blocker, wait);
        self.waits.lock().remove(owner);
        waited
    }

    /// Adds the wait of `owner` for a blocker to the wait graph, unless that closes a cycle.
    fn add_to_graph(&self, owner: Owner, key: LockKey, blocker: &Blocker, wait: &LockWait<'_>) -> Waited {
        match self.waits.lock().add(owner, key, blocker.owners(), wait.finds_deadlocks) {
            Some(cycle) => Err(Refusal::Deadlock(cycle)),
            None => Ok(()),
        }
    }

    /// Takes a request out of the queue.
    fn withdraw(&self, shard: &Shard, locks: &mut Locks, key: &LockKey, owner: Owner) {
        let lock = locks.get_mut(key).expect("a waiter keeps the lock in the map");
        debug_assert!(lock.place_of(owner).is_some(), "a request that is withdrawn is in the queue");
        lock.queue.retain(|request| request.owner != owner);
        let mut waits = self.waits.lock();
        waits.remove(owner);
        lock.grant_waiting(&mut waits);
        if lock.is_idle() {
            locks.remove(key);
        }
        shard.changed.notify_all();
    }

    /// Takes a range lock for `owner`: until it is released no other owner gets a lock of a key in `target`.
    pub(crate) fn lock_ranges(
        &self,
        owner: Owner,
        target: &LockTarget,
        wait: &LockWait<'_>,
    ) -> Result<RangeLock<'_>, Refusal> {
        debug_assert!(target.keys.is_sorted(), "keys under a range lock are looked up by halves");
        let _waiter = self.range_locks.register_waiter();
        loop {
            let seen = self.range_locks.changes();
            let blocker = match self.range_locks.try_add(owner, target) {
                Ok(range_lock) => {
                    let holders = self.holders_in(owner, target);
                    if holders.is_empty() {
                        range_lock.grant();
                        return Ok(range_lock);
                    }
                    if self.evict_all(&holders, wait) {
                        continue;
                    }
                    Blocker::Holders(holders)
                }
                Err(blocker) => blocker,
            };
            self.add_to_graph(owner, target.first(), &blocker, wait)?;
            let waited = self.range_locks.wait_for(&blocker, seen, wait);
            self.waits.lock().remove(owner);
            waited?;
        }
    }

    /// Releases the range locks that `owner` has kept.
    pub(crate) fn release_ranges(&self, owner: Owner) {
        self.range_locks.release_all(owner);
    }

    /// The other owners that hold a lock in `target`.
    fn holders_in(&self, owner: Owner, target: &LockTarget) -> Vec<Owner> {
        let mut holders = Vec::new();
        for key in target.keys.iter() {
            let locks = self.shard(key).locks.lock();
            holders.extend(locks.get(key).iter().flat_map(|lock| &lock.holders).map(|(holder, _)| *holder));
        }
        // Locks are ordered by hashes: all of them may lie in a range.
        for shard in &self.shards {
            let locks = shard.locks.lock();
            let held =
                locks.iter().filter(|(key, _)| target.deletes(key)).flat_map(|(_, lock)| &lock.holders);
            holders.extend(held.map(|(holder, _)| *holder));
        }
        holders.retain(|holder| *holder != owner);
        holders.sort_unstable();
        holders.dedup();
        holders
    }

    /// Gives up locks that `owner` holds.
    pub(crate) fn release<'k>(&self, owner: Owner, keys: impl IntoIterator<Item = &'k LockKey>) {
        for key in keys {
            let shard = self.shard(key);
            let mut locks = shard.locks.lock();
            let Some(lock) = locks.get_mut(key) else { continue };
            lock.holders.retain(|(holder, _)| *holder != owner);
            debug_assert!(lock.is_sound(), "a lock is held twice: {lock:?}");
            if lock.queue.is_empty() {
                if lock.holders.is_empty() {
                    locks.remove(key);
                }
                continue;
            }
            lock.grant_waiting(&mut self.waits.lock());
            shard.changed.notify_all();
        }
        self.range_locks.note_release();
    }
}
