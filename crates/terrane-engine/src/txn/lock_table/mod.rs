//! Locks on single keys, with owners: shared and exclusive, upgrades, fair queues, timeouts, deadlock
//! detection.
//!
//! 1. Look: the lock is granted at once if nobody holds it otherwise and nobody is in front.
//! 2. Queue: behind all others, or, for an owner that holds it shared and wants it alone, in front of them.
//! 3. Search the graph of who waits for whom ([`crate::txn::wait_graph`]); a waiter that would close a cycle
//!    is refused.
//! 4. Wait: until granted, out of patience, or the database closes.
//!
//! A *fence* ([`crate::txn::range_locks`]) keeps a range of keys free of holders while it is deleted: before
//! step 1 one waits until none is around the key.
//!
//! Whoever releases or gives up settles the lock: grants what is at the front of the queue, and tells the
//! graph whom the others wait for now.
//!
//! Invariants: an exclusive holder is alone; a queue is not empty only while its front cannot be granted; a
//! lock that nobody holds or waits for is not in the map. An owner waits for one lock at a time. A lock
//! without holders has no queue, so behind a fence that stands only its owner is granted any. The order of
//! mutexes is shard, then fences or graph.

mod evict;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use terrane_base::sync::atomic::{AtomicBool, Ordering};

use terrane_base::TableId;
use terrane_base::env::Env;
use terrane_base::sync::{Condvar, Mutex, MutexGuard, unlocked};

use crate::txn::lock_expiry::LockExpiries;
use crate::txn::range_locks::{Ground, InFront, RangeLock, RangeLocks};
use crate::txn::wait_graph::{Edge, WaitGraph};

/// Maps of locks, each under a mutex of its own.
const SHARDS: usize = if cfg!(feature = "shuttle") { 2 } else { 64 };

/// How long a waiter sleeps before it looks whether the database closes.
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// Who holds a lock or waits for it: the number of a transaction, or of one plain write.
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

/// How long somebody is ready to wait.
pub(crate) struct LockWait<'e> {
    /// Its clock, and who runs where there is one thread only.
    pub(crate) env: &'e Env,
    /// The moment on that clock at which it ends.
    pub(crate) until: Duration,
    /// Ends every patience.
    pub(crate) closing: &'e AtomicBool,
    /// Whether a wait that closes a circle is refused.
    pub(crate) finds_deadlocks: bool,
}

/// Why something was not waited for to its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// These wait for each other.
    Deadlock(Vec<Edge>),
    /// Patience ended while these were in front.
    TimedOut(Vec<Owner>),
    /// Patience ended while extents came in there.
    ComingIn,
    /// The database closes.
    Closing,
}

/// How a wait ended.
pub(crate) type Waited = Result<(), Refusal>;

impl LockWait<'_> {
    /// Sleeps on `changed` for a while; tells why there is no patience left.
    pub(crate) fn wait<T>(&self, changed: &Condvar, guard: &mut MutexGuard<'_, T>) -> Waited {
        if self.closing.load(Ordering::Relaxed) {
            return Err(Refusal::Closing);
        }
        let left = self.until.saturating_sub(self.env.clock.now());
        if left.is_zero() {
            return Err(Refusal::TimedOut(Vec::new()));
        }
        let sleep = left.min(SLEEP_MAX);
        match self.env.spawn.stepper() {
            Some(stepper) => unlocked(guard, || stepper.pass(sleep)),
            None => {
                changed.wait_for(guard, sleep);
            }
        }
        Ok(())
    }
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

    /// Whether the holders leave room for the request; who is in the queue is another question.
    fn has_room(&self, owner: Owner, mode: LockMode) -> bool {
        let others = self.holders.iter().filter(|(holder, _)| *holder != owner);
        others.clone().all(|&(_, held)| !exclude(held, mode)) || terrane_base::planted!(GrantToAll)
    }

    fn hold(&mut self, owner: Owner, mode: LockMode) {
        match self.holders.iter_mut().find(|(holder, _)| *holder == owner) {
            Some((_, held)) => *held = mode.max(*held),
            None => self.holders.push((owner, mode)),
        }
    }

    /// Grants the lock, or puts the request into the queue. Returns whether it was granted.
    fn request(&mut self, owner: Owner, mode: LockMode) -> bool {
        if self.holds(owner, mode) {
            return true;
        }
        let is_upgrade = self.holds(owner, LockMode::Shared);
        // An upgrade waits for the other holders only: whoever is in the queue waits for its owner already.
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

    /// Who must go before the request at `place` of the queue is granted.
    fn blockers(&self, place: usize) -> Vec<Owner> {
        let Request { owner, mode, .. } = self.queue[place];
        let holders = self.holders.iter().copied();
        let ahead = self.queue.iter().take(place).map(|request| (request.owner, request.mode));
        let blocking = holders.chain(ahead).filter(|&(other, held)| other != owner && exclude(held, mode));
        blocking.map(|(other, _)| other).collect()
    }

    fn place_of(&self, owner: Owner) -> Option<usize> {
        self.queue.iter().position(|request| request.owner == owner)
    }

    /// Grants what can be granted, and brings the graph up to date.
    fn settle(&mut self, waits: &mut WaitGraph) {
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
    /// Some lock of the shard was granted to somebody who waited.
    changed: Condvar,
}

/// All locks of a database.
#[derive(Debug)]
pub(crate) struct LockTable {
    shards: Vec<Shard>,
    waits: Mutex<WaitGraph>,
    fences: RangeLocks,
    /// Whose locks may be taken from some moment on.
    pub(crate) expiries: LockExpiries,
}

impl LockTable {
    /// No locks.
    pub(crate) fn new() -> LockTable {
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        let (waits, fences, expiries) = (Mutex::default(), RangeLocks::default(), LockExpiries::default());
        LockTable { shards, waits, fences, expiries }
    }

    fn shard(&self, key: &LockKey) -> &Shard {
        &self.shards[key.hash as usize % SHARDS]
    }

    /// Has `owner` hold the lock of `key` in `mode` at least. An owner that holds it keeps what it has.
    pub(crate) fn acquire(
        &self,
        owner: Owner,
        key: &LockKey,
        mode: LockMode,
        patience: &LockWait<'_>,
    ) -> Waited {
        let shard = self.shard(key);
        let mut locks = shard.locks.lock();
        while self.fences.keeps_out(owner, key) && !terrane_base::planted!(GoThroughFence) {
            drop(locks);
            self.wait_outside(owner, key, patience)?;
            locks = shard.locks.lock();
        }
        let lock = locks.entry(key.clone()).or_default();
        if self.evict(lock, owner, patience) {
            lock.settle(&mut self.waits.lock());
            shard.changed.notify_all();
        }
        if lock.request(owner, mode) {
            return Ok(());
        }
        let place = lock.place_of(owner).expect("what is not granted is in the queue");
        let blockers = lock.blockers(place);
        let cycle = self.waits.lock().add(owner, key.clone(), blockers, patience.finds_deadlocks);
        if let Some(cycle) = cycle {
            self.withdraw(shard, &mut locks, key, owner);
            return Err(Refusal::Deadlock(cycle));
        }
        loop {
            let lock = locks.get_mut(key).expect("who waits keeps the lock in the map");
            if self.evict(lock, owner, patience) {
                lock.settle(&mut self.waits.lock());
                shard.changed.notify_all();
            }
            if lock.place_of(owner).is_none() {
                return Ok(());
            }
            if let Err(refusal) = patience.wait(&shard.changed, &mut locks) {
                // It may have come while the guard was given up.
                let lock = locks.get(key).expect("who waits keeps the lock in the map");
                let Some(place) = lock.place_of(owner) else { return Ok(()) };
                let blockers = lock.blockers(place);
                self.withdraw(shard, &mut locks, key, owner);
                return Err(refusal.in_front(blockers));
            }
        }
    }

    /// Waits until no fence keeps `owner` from `key`, or one that does has changed.
    #[cold]
    fn wait_outside(&self, owner: Owner, key: &LockKey, patience: &LockWait<'_>) -> Waited {
        let Some(in_front) = self.fences.in_front_of(owner, key) else { return Ok(()) };
        self.enlist(owner, key.clone(), &in_front, patience)?;
        let waited = self.fences.wait_outside(owner, key, &in_front, patience);
        self.waits.lock().remove(owner);
        waited
    }

    /// Notes for whom `owner` waits at a fence, unless that closes a circle.
    fn enlist(&self, owner: Owner, key: LockKey, in_front: &InFront, patience: &LockWait<'_>) -> Waited {
        match self.waits.lock().add(owner, key, in_front.owners(), patience.finds_deadlocks) {
            Some(cycle) => Err(Refusal::Deadlock(cycle)),
            None => Ok(()),
        }
    }

    /// Takes a request out of the queue.
    fn withdraw(&self, shard: &Shard, locks: &mut Locks, key: &LockKey, owner: Owner) {
        let lock = locks.get_mut(key).expect("who waits keeps the lock in the map");
        lock.queue.retain(|request| request.owner != owner);
        let mut waits = self.waits.lock();
        waits.remove(owner);
        lock.settle(&mut waits);
        if lock.is_idle() {
            locks.remove(key);
        }
        shard.changed.notify_all();
    }

    /// Keeps everybody but `owner` from locks of keys in `ground` as long as the fence is there.
    pub(crate) fn fence(
        &self,
        owner: Owner,
        ground: &Ground,
        patience: &LockWait<'_>,
    ) -> Result<RangeLock<'_>, Refusal> {
        let _wanting = self.fences.want();
        loop {
            let seen = self.fences.marks();
            let in_front = match self.fences.put_up(owner, ground) {
                Ok(fence) => {
                    let holders = self.holders_in(owner, ground);
                    if holders.is_empty() {
                        fence.stand();
                        return Ok(fence);
                    }
                    if self.evict_all(&holders, patience) {
                        continue;
                    }
                    InFront::Holders(holders)
                }
                Err(in_front) => in_front,
            };
            self.enlist(owner, ground.first(), &in_front, patience)?;
            let waited = self.fences.wait_behind(&in_front, seen, patience);
            self.waits.lock().remove(owner);
            waited?;
        }
    }

    /// Takes down the fences that `owner` has kept.
    pub(crate) fn take_down(&self, owner: Owner) {
        self.fences.take_down(owner);
    }

    /// Who else holds a lock there.
    fn holders_in(&self, owner: Owner, ground: &Ground) -> Vec<Owner> {
        let mut holders = Vec::new();
        for key in ground.keys.iter() {
            let locks = self.shard(key).locks.lock();
            holders.extend(locks.get(key).iter().flat_map(|lock| &lock.holders).map(|(holder, _)| *holder));
        }
        // Locks are ordered by hashes: all of them may lie in a range.
        for shard in &self.shards {
            let locks = shard.locks.lock();
            let held =
                locks.iter().filter(|(key, _)| ground.deletes(key)).flat_map(|(_, lock)| &lock.holders);
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
            if lock.queue.is_empty() {
                if lock.holders.is_empty() {
                    locks.remove(key);
                }
                continue;
            }
            lock.settle(&mut self.waits.lock());
            shard.changed.notify_all();
        }
        self.fences.released();
    }
}
