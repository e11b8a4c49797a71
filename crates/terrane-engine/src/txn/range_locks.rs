//! Fences: what a batch with range deletes changes, as one piece of ground where nobody else gets a lock
//! meanwhile.
//!
//! A fence is put up around the deleted ranges and the single keys of the batch together, and stands if
//! nobody holds a lock behind it ([`crate::txn::lock_table::LockTable::fence`]); else it is taken down, and
//! put up again when some lock was released. Who wants a lock behind a fence waits in front of it, with no
//! place in the lock's queue. A plain batch, and an optimistic transaction at its commit, has nothing until
//! it has everything, so no circle goes through its fence. A pessimistic transaction holds locks and fences
//! while it wants another: whoever waits for it, or it for others, is in the graph of waiters as those are
//! who wait for locks. A fence that is only tried stands in nobody's way for long, and has no edge.
//!
//! # Ordering
//! Whoever grants a lock looks for fences under the mutex of the lock's shard; a fence is put up before the
//! shards are looked through under their mutexes. So one of the two sees the other, and `count` may be read
//! relaxed: the shard's mutex orders it. A fence keeps out another one that has a single key behind it; of
//! two deletes of a range either may come first. Where extents come in, no delete may come in between: that
//! fence is alone on its ranges.

use std::sync::Arc;

use terrane_base::sync::atomic::{AtomicUsize, Ordering};
use terrane_base::sync::{Condvar, Mutex};

use crate::txn::key_range::KeyRange;
use crate::txn::lock_table::{LockKey, LockWait, Owner, Refusal, Waited};

#[derive(Debug)]
struct Post {
    number: u64,
    owner: Owner,
    ground: Ground,
    /// Nobody else holds a lock behind it, so it stays.
    stands: bool,
}

impl Post {
    fn in_front(&self) -> InFront {
        InFront::RangeLock { owner: self.owner, stands: self.stands, is_alone: self.ground.is_alone }
    }
}

#[derive(Debug, Default)]
struct Standing {
    fences: Vec<Post>,
    next_number: u64,
    marks: Marks,
}

/// How often something happened that somebody may wait for who wants a fence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// A lock was released.
    releases: u64,
    /// A fence was taken down, or stands now. Apart: who finds a lock behind its fence takes it down again,
    /// and wakes nobody but those whom the fence kept out.
    moved: u64,
}

/// What keeps somebody from a lock or a fence.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InFront {
    /// Locks of these behind it.
    Holders(Vec<Owner>),
    /// The fence of this one.
    RangeLock {
        /// Who has put it up.
        owner: Owner,
        /// Whether it stands.
        stands: bool,
        /// Whether extents come in behind it.
        is_alone: bool,
    },
}

impl InFront {
    /// For whom one waits, until that has ended.
    pub(super) fn owners(&self) -> Vec<Owner> {
        match self {
            InFront::Holders(owners) => owners.clone(),
            InFront::RangeLock { owner, stands: true, .. } => vec![*owner],
            InFront::RangeLock { .. } => Vec::new(),
        }
    }
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

    /// A key to name it by.
    pub(super) fn first(&self) -> LockKey {
        let range = || self.ranges.first().map(KeyRange::first);
        self.keys.first().cloned().or_else(range).expect("a fence is put up around something")
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
pub(super) struct RangeLocks {
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
pub(super) struct Wanting<'f>(&'f RangeLocks);

impl Drop for Wanting<'_> {
    fn drop(&mut self) {
        let waiting = self.0.waiting.fetch_sub(1, Ordering::Relaxed);
        assert!(waiting > 0, "a fence that waits is counted once");
    }
}

/// A fence. It goes with the value.
#[derive(Debug)]
pub(crate) struct RangeLock<'f> {
    fences: &'f RangeLocks,
    number: u64,
}

impl RangeLock<'_> {
    /// Nobody else holds a lock behind it.
    pub(super) fn stand(&self) {
        let mut standing = self.fences.standing.lock();
        let own = standing.fences.iter_mut().find(|post| post.number == self.number);
        own.expect("a fence is there until it is dropped").stands = true;
        // Those in front of it wait for its owner from now on, and have to say so.
        standing.marks.moved += 1;
        self.fences.changed.notify_all();
    }

    /// Leaves it standing until its owner's are taken down.
    pub(crate) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for RangeLock<'_> {
    fn drop(&mut self) {
        self.fences.remove(|post| post.number == self.number);
    }
}

impl RangeLocks {
    /// Puts a fence up around `ground`, or names who has one that keeps it out.
    pub(super) fn put_up(&self, owner: Owner, ground: &Ground) -> Result<RangeLock<'_>, InFront> {
        let mut standing = self.standing.lock();
        let mut others = standing.fences.iter().filter(|post| post.owner != owner);
        if let Some(other) = others.find(|post| post.ground.excludes(ground)) {
            return Err(other.in_front());
        }
        standing.next_number += 1;
        let number = standing.next_number;
        debug_assert!(
            standing.fences.last().is_none_or(|last| last.number < number),
            "a number for each fence"
        );
        standing.fences.push(Post { number, owner, ground: ground.clone(), stands: false });
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(RangeLock { fences: self, number })
    }

    /// Takes down every fence of `owner`.
    pub(super) fn take_down(&self, owner: Owner) {
        self.remove(|post| post.owner == owner);
    }

    fn remove(&self, is_meant: impl Fn(&Post) -> bool) {
        let mut standing = self.standing.lock();
        let before = standing.fences.len();
        standing.fences.retain(|post| !is_meant(post));
        standing.marks.moved += 1;
        let count = self.count.fetch_sub(before - standing.fences.len(), Ordering::Relaxed);
        assert!(count == before, "{before} fences are there, {count} are counted: writers would pass one");
        self.changed.notify_all();
    }

    /// Whether `key` is behind a fence that `owner` has not put up.
    #[inline]
    pub(super) fn keeps_out(&self, owner: Owner, key: &LockKey) -> bool {
        self.count.load(Ordering::Relaxed) > 0 && self.in_front_of(owner, key).is_some()
    }

    /// The fence that keeps `owner` from `key`.
    pub(super) fn in_front_of(&self, owner: Owner, key: &LockKey) -> Option<InFront> {
        Self::find(&self.standing.lock(), owner, key)
    }

    fn find(standing: &Standing, owner: Owner, key: &LockKey) -> Option<InFront> {
        let mut others = standing.fences.iter().filter(|post| post.owner != owner && post.ground.holds(key));
        others.next().map(Post::in_front)
    }

    /// Waits while the fence that was `seen` keeps `owner` from `key`.
    #[cold]
    pub(super) fn wait_outside(
        &self,
        owner: Owner,
        key: &LockKey,
        seen: &InFront,
        patience: &LockWait<'_>,
    ) -> Waited {
        let mut standing = self.standing.lock();
        while Self::find(&standing, owner, key).as_ref() == Some(seen) {
            let waited = patience.wait(&self.changed, &mut standing);
            waited.map_err(|refusal| refusal.in_front_of(seen))?;
        }
        Ok(())
    }

    /// Announces that somebody wants a fence. What is released from now on shows in [`RangeLocks::marks`].
    pub(super) fn want(&self) -> Wanting<'_> {
        // Before the shards are looked through under their mutexes: who releases a lock that was seen there
        // sees this.
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Wanting(self)
    }

    /// To be taken before a try to put up a fence.
    pub(super) fn marks(&self) -> Marks {
        self.standing.lock().marks
    }

    /// Waits until what was in front may have gone since `seen`.
    pub(super) fn wait_behind(&self, in_front: &InFront, seen: Marks, patience: &LockWait<'_>) -> Waited {
        let mut standing = self.standing.lock();
        let is_there = |now: Marks| match in_front {
            InFront::Holders(_) => now.releases == seen.releases,
            InFront::RangeLock { .. } => now.moved == seen.moved,
        };
        while is_there(standing.marks) {
            let waited = patience.wait(&self.changed, &mut standing);
            waited.map_err(|refusal| refusal.in_front_of(in_front))?;
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

    fn in_front_of(self, in_front: &InFront) -> Refusal {
        match (self, in_front) {
            (Refusal::TimedOut(_), InFront::RangeLock { is_alone: true, .. }) => Refusal::ComingIn,
            (refusal, InFront::Holders(owners)) => refusal.in_front(owners.clone()),
            (refusal, InFront::RangeLock { owner, .. }) => refusal.in_front(vec![*owner]),
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
    use crate::read::scan::Bounds;
    use crate::txn::lock_table::{LockMode, LockTable};

    #[test]
    fn nobody_else_gets_a_lock_behind_a_fence() {
        let (env, closing) = (Env::real(), AtomicBool::new(false));
        let impatient =
            LockWait { env: &env, until: Duration::ZERO, closing: &closing, finds_deadlocks: true };
        let key = |text: &str| LockKey::new(TableId(1), text.as_bytes());
        let bounds = Bounds {
            lower: Bound::Included(b"b".to_vec()),
            upper: Bound::Excluded(b"d".to_vec()),
            ..Bounds::all()
        };
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
        assert_eq!(refused, Err(Refusal::ComingIn), "one must be alone there");
        assert_eq!(table.acquire(1, &key("c"), exclusive, &impatient), Err(Refusal::ComingIn));
        drop(fence);
        let replaced = Ground { keys: [key("c")].into(), ..ranges.clone() };
        let fence = table.fence(4, &replaced, &impatient).unwrap();
        let refused = table.fence(5, &replaced, &impatient).map(drop);
        assert_eq!(refused, Err(Refusal::TimedOut(vec![4])), "both have the same key");
        drop(fence);
        drop(table.fence(5, &replaced, &impatient).unwrap());
    }
}
