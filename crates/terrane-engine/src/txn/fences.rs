//! Fences: what a batch with range deletes changes, as one piece of ground where nobody else gets a lock meanwhile.
//!
//! A fence is put up around the deleted ranges and the single keys of the batch together, and stands if nobody holds a lock
//! behind it ([`crate::txn::locks::LockTable::fence`]); else it is taken down, and put up again when some lock was released.
//! Who wants a lock behind a fence waits in front of it, with no place in the lock's queue; who puts one up has nothing until
//! it has everything. So no circle of waiters goes through a fence.
//!
//! # Ordering
//! Whoever grants a lock looks for fences under the mutex of the lock's shard; a fence is put up before the shards are
//! looked through under their mutexes. So one of the two sees the other, and `count` may be read relaxed: the shard's
//! mutex orders it. A fence keeps out another one that has a single key behind it; of two deletes of a range either may
//! come first. Where extents come in, no delete may come in between: that fence is alone on its ranges.

use std::sync::Arc;

use terrane_base::sync::atomic::{AtomicUsize, Ordering};
use terrane_base::sync::{Condvar, Mutex};

use crate::txn::locks::{LockKey, Owner, Patience, Refusal, Waited};
use crate::txn::range::KeyRange;

#[derive(Debug, Default)]
struct Standing {
    fences: Vec<(Owner, Ground)>,
    marks: Marks,
}

/// How often something happened that somebody may wait for who wants a fence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// A lock was released.
    releases: u64,
    /// A fence was taken down. Apart: who finds a lock behind its fence takes it down again, and wakes nobody but those whom
    /// the fence kept out.
    taken_down: u64,
}

/// What keeps a fence from standing.
#[derive(Debug)]
pub(super) enum InFront {
    /// Locks of these behind it.
    Holders(Vec<Owner>),
    /// The fence of this one.
    Fence(Owner),
}

/// What a fence is put up around.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ground {
    /// Ascending.
    pub(crate) keys: Arc<[LockKey]>,
    /// Ranges.
    pub(crate) ranges: Arc<[KeyRange]>,
    /// Whether nobody else may delete keys in the ranges meanwhile.
    pub(crate) is_alone: bool,
}

impl Ground {
    /// Whether the key lies there.
    pub(crate) fn holds(&self, key: &LockKey) -> bool {
        self.deletes(key) || self.keys.binary_search(key).is_ok()
    }

    /// Whether the key lies in one of the ranges.
    pub(crate) fn deletes(&self, key: &LockKey) -> bool {
        self.ranges.iter().any(|range| range.holds(key))
    }

    /// Whether a single key of one lies in the other, or ranges meet of which one must be alone.
    fn excludes(&self, other: &Ground) -> bool {
        let meet = || self.ranges.iter().any(|range| other.ranges.iter().any(|other| range.meets(other)));
        if (self.is_alone || other.is_alone) && meet() {
            return true;
        }
        self.keys.iter().any(|key| other.holds(key)) || other.keys.iter().any(|key| self.holds(key))
    }
}

/// All fences of a database.
#[derive(Debug, Default)]
pub(super) struct Fences {
    standing: Mutex<Standing>,
    /// How many there are.
    count: AtomicUsize,
    /// How many wait for locks to be released.
    waiting: AtomicUsize,
    /// One of the marks was set.
    changed: Condvar,
}

/// Somebody who wants a fence: whoever releases a lock tells.
#[derive(Debug)]
pub(super) struct Wanting<'f>(&'f Fences);

impl Drop for Wanting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A fence. It goes with the value.
#[derive(Debug)]
pub(crate) struct Fence<'f> {
    fences: &'f Fences,
    owner: Owner,
}

impl Drop for Fence<'_> {
    fn drop(&mut self) {
        let mut standing = self.fences.standing.lock();
        standing.fences.retain(|(owner, _)| *owner != self.owner);
        standing.marks.taken_down += 1;
        self.fences.count.fetch_sub(1, Ordering::Relaxed);
        self.fences.changed.notify_all();
    }
}

impl Fences {
    /// Puts a fence up around `ground`, or names who has one that keeps it out. An owner has one fence at a time.
    pub(super) fn put_up(&self, owner: Owner, ground: &Ground) -> Result<Fence<'_>, Owner> {
        let mut standing = self.standing.lock();
        if let Some((of, _)) = standing.fences.iter().find(|(_, other)| other.excludes(ground)) {
            return Err(*of);
        }
        standing.fences.push((owner, ground.clone()));
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(Fence { fences: self, owner })
    }

    /// Whether `key` is behind a fence that `owner` has not put up.
    #[inline]
    pub(super) fn keeps_out(&self, owner: Owner, key: &LockKey) -> bool {
        self.count.load(Ordering::Relaxed) > 0 && Self::has_fence(&self.standing.lock(), owner, key).is_some()
    }

    fn has_fence(standing: &Standing, owner: Owner, key: &LockKey) -> Option<Owner> {
        let others = standing.fences.iter().filter(|(of, _)| *of != owner);
        others.filter(|(_, ground)| ground.holds(key)).map(|(of, _)| *of).next()
    }

    /// Waits until no fence keeps `owner` from `key`.
    #[cold]
    pub(super) fn wait_outside(&self, owner: Owner, key: &LockKey, patience: &Patience<'_>) -> Waited {
        let mut standing = self.standing.lock();
        while let Some(of) = Self::has_fence(&standing, owner, key) {
            patience.wait(&self.changed, &mut standing).map_err(|refusal| refusal.in_front(vec![of]))?;
        }
        Ok(())
    }

    /// Announces that somebody wants a fence. What is released from now on shows in [`Fences::marks`].
    pub(super) fn want(&self) -> Wanting<'_> {
        // Before the shards are looked through under their mutexes: who releases a lock that was seen there sees this.
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Wanting(self)
    }

    /// To be taken before a try to put up a fence.
    pub(super) fn marks(&self) -> Marks {
        self.standing.lock().marks
    }

    /// Waits until what was in front may have gone since `seen`.
    pub(super) fn wait_behind(&self, in_front: InFront, seen: Marks, patience: &Patience<'_>) -> Waited {
        let mut standing = self.standing.lock();
        let is_there = |now: Marks| match in_front {
            InFront::Holders(_) => now.releases == seen.releases,
            InFront::Fence(_) => now.taken_down == seen.taken_down,
        };
        while is_there(standing.marks) {
            if let Err(refusal) = patience.wait(&self.changed, &mut standing) {
                return Err(refusal.in_front(match in_front {
                    InFront::Holders(owners) => owners,
                    InFront::Fence(owner) => vec![owner],
                }));
            }
        }
        Ok(())
    }

    /// Tells those who want a fence that a lock was released.
    #[inline]
    pub(super) fn released(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.standing.lock().marks.releases += 1;
            self.changed.notify_all();
        }
    }
}

impl Refusal {
    /// The same, where it is patience that ended while these were in front.
    pub(super) fn in_front(self, owners: Vec<Owner>) -> Refusal {
        match self {
            Refusal::TimedOut(_) => Refusal::TimedOut(owners),
            other => other,
        }
    }
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use std::ops::Bound;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use terrane_base::TableId;
    use terrane_base::env::Env;

    use super::*;
    use crate::scan::Bounds;
    use crate::txn::locks::{LockMode, LockTable};

    #[test]
    fn nobody_else_gets_a_lock_behind_a_fence() {
        let (env, closing) = (Env::real(), AtomicBool::new(false));
        let impatient = Patience { env: &env, until: Duration::ZERO, closing: &closing };
        let key = |text: &str| LockKey::new(TableId(1), text.as_bytes());
        let bounds = Bounds { lower: Bound::Included(b"b".to_vec()), upper: Bound::Excluded(b"d".to_vec()) };
        let ranges: Arc<[KeyRange]> = [KeyRange { table: TableId(1), bounds }].into();
        let ranges = Ground { ranges, ..Ground::default() };
        let table = LockTable::new();
        let exclusive = LockMode::Exclusive;

        table.acquire(1, &key("c"), exclusive, &impatient).unwrap();
        let refused = table.fence(2, &ranges, &impatient).map(drop);
        assert_eq!(refused, Err(Refusal::TimedOut(vec![1])), "somebody holds a key there");
        table.acquire(1, &key("b"), exclusive, &impatient).unwrap();
        table.release(1, &[key("b"), key("c")]);

        let fence = table.fence(2, &ranges, &impatient).unwrap();
        assert_eq!(table.acquire(1, &key("c"), exclusive, &impatient), Err(Refusal::TimedOut(vec![2])));
        table.acquire(1, &key("d"), exclusive, &impatient).unwrap();
        table.acquire(2, &key("c"), exclusive, &impatient).unwrap();
        table.release(2, &[key("c")]);
        let second = table.fence(3, &ranges, &impatient).unwrap();
        drop(fence);
        assert_eq!(table.acquire(1, &key("c"), exclusive, &impatient), Err(Refusal::TimedOut(vec![3])));
        drop(second);
        table.acquire(1, &key("c"), exclusive, &impatient).unwrap();
        table.release(1, &[key("c")]);

        let alone = Ground { is_alone: true, ..ranges.clone() };
        let fence = table.fence(4, &alone, &impatient).unwrap();
        let refused = table.fence(5, &ranges, &impatient).map(drop);
        assert_eq!(refused, Err(Refusal::TimedOut(vec![4])), "one must be alone there");
        drop(fence);
        let replaced = Ground { keys: [key("c")].into(), ..ranges.clone() };
        let fence = table.fence(4, &replaced, &impatient).unwrap();
        let refused = table.fence(5, &replaced, &impatient).map(drop);
        assert_eq!(refused, Err(Refusal::TimedOut(vec![4])), "both have the same key");
        drop(fence);
        drop(table.fence(5, &replaced, &impatient).unwrap());
    }
}
