//! Fences: ranges of keys in which nobody but their owner gets a lock, while what is in them is deleted.
//!
//! A fence is put up, and stands if nobody holds a lock behind it ([`crate::txn::locks::LockTable::fence`]); else it is taken
//! down, and put up again when some lock was released. Who wants a lock behind a fence waits in front of it, with no place
//! in the lock's queue; who puts one up holds nothing yet. So no circle of waiters goes through a fence.
//!
//! # Ordering
//! Whoever grants a lock looks for fences under the mutex of the lock's shard; a fence is put up before the shards are
//! looked through under their mutexes. So one of the two sees the other, and `count` may be read relaxed: the shard's
//! mutex orders it. Fences keep out no other fences: of two deletes of a range either may come first.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use terrane_base::sync::{Condvar, Mutex};

use crate::txn::locks::{LockKey, Owner, Patience, Refusal, Waited};
use crate::txn::range::KeyRange;

type Standing = Vec<(Owner, Arc<[KeyRange]>)>;

/// All fences of a database.
#[derive(Debug, Default)]
pub(super) struct Fences {
    standing: Mutex<Standing>,
    /// How many there are.
    count: AtomicUsize,
    /// How many wait for locks to be released.
    waiting: AtomicUsize,
    /// A fence was taken down, or a lock was released while somebody waited for that.
    changed: Condvar,
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
        let before = standing.len();
        standing.retain(|(owner, _)| *owner != self.owner);
        if standing.len() < before {
            self.fences.count.fetch_sub(1, Ordering::Relaxed);
            self.fences.changed.notify_all();
        }
    }
}

impl Fences {
    /// Puts a fence up around `ranges`, which may be none. An owner has one fence at a time.
    pub(super) fn put_up(&self, owner: Owner, ranges: &Arc<[KeyRange]>) -> Fence<'_> {
        if !ranges.is_empty() {
            self.standing.lock().push((owner, ranges.clone()));
            self.count.fetch_add(1, Ordering::Relaxed);
        }
        Fence { fences: self, owner }
    }

    /// Whether `key` is behind a fence that `owner` has not put up.
    #[inline]
    pub(super) fn keeps_out(&self, owner: Owner, key: &LockKey) -> bool {
        self.count.load(Ordering::Relaxed) > 0 && Self::has_fence(&self.standing.lock(), owner, key).is_some()
    }

    fn has_fence(standing: &Standing, owner: Owner, key: &LockKey) -> Option<Owner> {
        let others = standing.iter().filter(|(of, _)| *of != owner);
        others.filter(|(_, ranges)| ranges.iter().any(|range| range.holds(key))).map(|(of, _)| *of).next()
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

    /// Waits for a moment, or until a lock was released.
    pub(super) fn wait_for_release(&self, patience: &Patience<'_>) -> Waited {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let waited = patience.wait(&self.changed, &mut self.standing.lock());
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        waited
    }

    /// Tells who waits that a lock was released. Whoever begins to wait just now looks again soon enough.
    #[inline]
    pub(super) fn released(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
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
    }
}
