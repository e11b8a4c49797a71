//! Locks of expired transactions ([`crate::locks::lock_expiry`]): an owner that is blocked by one takes it.

use crate::locks::lock_table::{Lock, LockTable, LockWait, Owner};

impl LockTable {
    /// Takes a lock from holders whose time is over; whether there were any.
    pub(super) fn evict(&self, lock: &mut Lock, owner: Owner, wait: &LockWait<'_>) -> bool {
        let before = lock.holders.len();
        if before > 0 {
            let now = || wait.env.clock.now();
            lock.holders.retain(|(holder, _)| *holder == owner || !self.expiries.gives_up(*holder, now()));
        }
        debug_assert!(lock.is_sound(), "a lock is held twice: {lock:?}");
        lock.holders.len() < before
    }

    /// Takes all locks from those of some owners whose time is over; whether there were any.
    pub(super) fn evict_all(&self, owners: &[Owner], wait: &LockWait<'_>) -> bool {
        let now = wait.env.clock.now();
        let over: Vec<Owner> =
            owners.iter().copied().filter(|owner| self.expiries.gives_up(*owner, now)).collect();
        for shard in self.shards.iter().filter(|_| !over.is_empty()) {
            let mut locks = shard.locks.lock();
            for lock in locks.values_mut() {
                let before = lock.holders.len();
                lock.holders.retain(|(holder, _)| !over.contains(holder));
                debug_assert!(lock.is_sound(), "a lock is held twice: {lock:?}");
                if lock.holders.len() < before {
                    lock.grant_waiting(&mut self.waits.lock());
                }
            }
            locks.retain(|_, lock| !lock.is_idle());
            shard.changed.notify_all();
        }
        !over.is_empty()
    }
}
