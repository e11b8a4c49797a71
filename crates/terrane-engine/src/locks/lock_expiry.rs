//! Transactions with a timeout: after it their commits fail, and an owner that waits for one of their locks
//! takes it.
//!
//! Invariant: no lock is taken from a transaction whose commit has begun; a transaction that lost a lock
//! never commits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::sync::Mutex;
use terrane_base::sync::atomic::{AtomicUsize, Ordering};

use crate::locks::lock_table::Owner;

/// How far a transaction that expires is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Running,
    /// Its commit has begun.
    Ending,
    /// Another owner may have taken one of its locks.
    Lost,
}

/// The end of one transaction.
#[derive(Debug)]
pub(crate) struct Expiry {
    /// The moment on the engine's clock.
    at: Duration,
    stage: Mutex<Stage>,
}

impl Expiry {
    /// Returns true if its locks may be taken: it is late, and its commit has not begun.
    fn gives_up(&self, now: Duration) -> bool {
        let mut stage = self.stage.lock();
        if *stage == Stage::Running && now >= self.at {
            *stage = Stage::Lost;
        }
        *stage == Stage::Lost
    }

    /// Returns true if it is too late to commit.
    pub(crate) fn is_over(&self, now: Duration) -> bool {
        let stage = *self.stage.lock();
        stage == Stage::Lost || stage == Stage::Running && now >= self.at
    }

    /// Returns true if another owner may have taken one of its locks.
    pub(crate) fn is_lost(&self) -> bool {
        *self.stage.lock() == Stage::Lost
    }

    /// Begins the commit; whether it is not too late.
    pub(crate) fn begin_end(&self, now: Duration) -> bool {
        let mut stage = self.stage.lock();
        let is_in_time = *stage == Stage::Running && now < self.at || terrane_base::planted!(CommitExpired);
        if is_in_time {
            *stage = Stage::Ending;
        }
        is_in_time
    }

    /// The commit has failed: it runs on.
    pub(crate) fn go_on(&self) {
        let mut stage = self.stage.lock();
        debug_assert!(*stage == Stage::Ending, "a commit that has failed had begun");
        if *stage == Stage::Ending {
            *stage = Stage::Running;
        }
    }
}

/// The transactions that expire, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct LockExpiries {
    /// Number of them, so that a thread sees without a mutex that there is nothing to look up. Relaxed: a
    /// thread that finds a lock of one took the shard's mutex after it was counted.
    count: AtomicUsize,
    by_owner: Mutex<BTreeMap<Owner, Arc<Expiry>>>,
}

impl LockExpiries {
    /// Has a transaction end at a moment.
    pub(crate) fn add(&self, owner: Owner, at: Duration) -> Arc<Expiry> {
        let expiry = Arc::new(Expiry { at, stage: Mutex::new(Stage::Running) });
        let before = self.by_owner.lock().insert(owner, expiry.clone());
        assert!(before.is_none(), "the locks of owner {owner} expire at two times");
        self.count.fetch_add(1, Ordering::Relaxed);
        expiry
    }

    /// Forgets one that is over.
    pub(crate) fn remove(&self, owner: Owner) {
        let gone = self.by_owner.lock().remove(&owner);
        let count = self.count.fetch_sub(1, Ordering::Relaxed);
        assert!(gone.is_some() && count > 0, "the locks of owner {owner} do not expire");
    }

    /// Returns true if a lock of this one may be taken.
    pub(crate) fn gives_up(&self, owner: Owner, now: Duration) -> bool {
        if self.count.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let expiry = self.by_owner.lock().get(&owner).cloned();
        expiry.is_some_and(|expiry| expiry.gives_up(now))
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn a_commit_that_has_begun_keeps_its_locks() {
        let expiries = LockExpiries::default();
        let end = Duration::from_secs(1);
        let (before, after) = (Duration::ZERO, end);
        let expiry = expiries.add(7, end);
        assert!(!expiries.gives_up(7, before) && !expiry.is_over(before));
        assert!(expiry.begin_end(before));
        assert!(!expiries.gives_up(7, after), "its commit has begun");
        expiry.go_on();
        assert!(expiry.is_over(after) && !expiry.is_lost());
        assert!(expiries.gives_up(7, after) && expiry.is_lost());
        assert!(!expiry.begin_end(before), "a lock may be gone");
        assert!(!expiries.gives_up(8, after), "it does not expire");
        expiries.remove(7);
        assert!(!expiries.gives_up(7, after));
    }
}
