//! How many keys of each column family are locked, for databases that limit that (`max_num_locks`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use crate::ffi::failure::{Failure, Result};

/// Locked keys by column family.
#[derive(Clone, Default)]
pub(crate) struct Counts(Arc<Mutex<BTreeMap<u32, u64>>>);

impl Counts {
    fn change(&self, family: u32, limit: u64, change: impl FnOnce(u64) -> u64) -> bool {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(family).or_default();
        let changed = change(*count);
        let is_within = changed <= limit;
        if is_within {
            *count = changed;
        }
        is_within
    }
}

/// The keys that one transaction has locked, in order, where they are limited.
pub(crate) struct Locked {
    limit: Option<u64>,
    counts: Counts,
    keys: BTreeSet<(u32, Vec<u8>)>,
    order: Vec<(u32, Vec<u8>)>,
}

impl Locked {
    /// None yet. At most `limit` keys of a column family are locked, by all transactions together; any number
    /// if it is not above 0.
    pub(crate) fn new(counts: &Counts, limit: i64) -> Locked {
        let limit = u64::try_from(limit).ok().filter(|limit| *limit > 0);
        Locked { limit, counts: counts.clone(), keys: BTreeSet::new(), order: Vec::new() }
    }

    /// Locks a key by `lock`, unless there are as many as may be.
    pub(crate) fn add(&mut self, family: u32, key: &[u8], lock: impl FnOnce() -> Result<()>) -> Result<()> {
        let Some(limit) = self.limit else { return lock() };
        let key = (family, key.to_vec());
        if self.keys.contains(&key) {
            return lock();
        }
        if !self.counts.change(family, limit, |count| count + 1) {
            return Err(Failure::new("Resource busy", "Failed to acquire lock due to max_num_locks limit"));
        }
        match lock() {
            Ok(()) => {
                self.keys.insert(key.clone());
                self.order.push(key);
                Ok(())
            }
            Err(failure) => {
                self.counts.change(family, u64::MAX, |count| count - 1);
                Err(failure)
            }
        }
    }

    /// How many it has locked.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Forgets all but the first so many.
    pub(crate) fn truncate(&mut self, len: usize) {
        for key in self.order.drain(len.min(self.order.len())..) {
            self.counts.change(key.0, u64::MAX, |count| count - 1);
            self.keys.remove(&key);
        }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.truncate(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_share_the_limit_of_a_family() {
        let counts = Counts::default();
        let (mut one, mut other) = (Locked::new(&counts, 2), Locked::new(&counts, 2));
        one.add(0, b"a", || Ok(())).expect("the first");
        one.add(0, b"a", || Ok(())).expect("it is locked already");
        other.add(0, b"b", || Ok(())).expect("the second");
        let refused = other.add(0, b"c", || Ok(())).expect_err("the third");
        assert!(refused.text().starts_with("Resource busy: "), "{}", refused.text());
        other.add(1, b"c", || Ok(())).expect("another family");
        other.add(0, b"x", || Err(Failure::invalid("no"))).expect_err("not locked");
        one.truncate(0);
        other.add(0, b"c", || Ok(())).expect("one was given back");
        drop((one, other));
        assert!(counts.0.lock().expect("no panic").values().all(|count| *count == 0));
    }
}
