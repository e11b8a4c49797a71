//! Transactions in a history: each runs from its beginning to its end with plain writes in between, and then
//! commits if and only if its level of isolation allows it, is rolled back, or is prepared and ended some
//! steps or restarts later.
//!
//! Each uses the keys of one *ring*, a small group of keys. No plain write of the history uses the ring of a
//! prepared transaction, so none waits for its locks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use terrane::{Concurrency, Durability, Isolation, Kind, Result, Transaction, TransactionOptions};

use super::History;
use crate::model::Change;

const TABLE: &str = "default";
/// Keys of a ring.
const KEYS: u64 = 6;
/// Rings, and so the most that is prepared at once, and one.
const RINGS: u64 = 4;

/// A running transaction, with its reads and changes.
struct Attempt {
    running: Transaction,
    options: TransactionOptions,
    /// The moment that it reads.
    moment: u64,
    ring: u64,
    changes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// Changes as they were at each savepoint.
    savepoints: Vec<BTreeMap<Vec<u8>, Option<Vec<u8>>>>,
    /// Keys that it has read from others.
    reads: BTreeSet<Vec<u8>>,
    /// Keys that it has locked.
    locked: BTreeSet<Vec<u8>>,
    /// It has read the whole ring.
    has_scanned: bool,
}

impl Attempt {
    fn is_pessimistic(&self) -> bool {
        self.options.concurrency == Concurrency::Pessimistic
    }

    fn is_serializable(&self) -> bool {
        self.options.isolation == Isolation::Serializable
    }
}

fn ring_key(ring: u64, number: u64) -> Vec<u8> {
    format!("ring{ring}/{number}").into_bytes()
}

impl History {
    /// One transaction, from its beginning to its end.
    pub(super) fn transact(&mut self) -> Result<()> {
        let free: Vec<u64> =
            (0..RINGS).filter(|ring| !self.prepared.contains_key(&ring.to_string())).collect();
        let ring = free[self.numbers.below(free.len() as u64) as usize];
        let options = crate::transactions::random_options(&mut self.numbers);
        let mut attempt = Attempt {
            running: self.db().transaction(&options)?,
            options,
            moment: self.model.now(),
            ring,
            changes: BTreeMap::new(),
            savepoints: Vec::new(),
            reads: BTreeSet::new(),
            locked: BTreeSet::new(),
            has_scanned: false,
        };
        // The first read fixes its snapshot, also if a first lock would move the snapshot.
        let mut goes_on = self.read_in(&mut attempt)?;
        for _ in 0..self.numbers.below(8) {
            if !goes_on {
                return Ok(());
            }
            goes_on = match self.numbers.below(10) {
                0..3 => self.read_in(&mut attempt)?,
                3..6 => self.write_in(&mut attempt)?,
                6 => self.scan_in(&mut attempt)?,
                7 => self.savepoint_in(&mut attempt)?,
                _ => self.write_beside(&attempt)?,
            };
        }
        if goes_on { self.end(attempt) } else { Ok(()) }
    }

    /// Returns true if a step that locks a key must be refused: another writer changed it after the
    /// transaction's snapshot.
    fn lock_is_stale(&self, attempt: &Attempt, key: &[u8]) -> bool {
        attempt.is_pessimistic()
            && attempt.options.isolation != Isolation::ReadCommitted
            && !attempt.locked.contains(key)
            && self.model.changed_since(TABLE, key, attempt.moment)
    }

    /// Compares the outcome of a step with the expected one. Returns its value if the transaction is still
    /// open.
    fn judge<T>(&self, what: &str, done: Result<T>, is_stale: bool) -> Result<Option<T>> {
        match done {
            Ok(done) => {
                assert!(!is_stale, "{}: {what} did not see that something had changed", self.place());
                Ok(Some(done))
            }
            Err(error) if error.kind() == Kind::Conflict => {
                assert!(is_stale, "{}: {what}: nothing had changed: {error}", self.place());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The value that the transaction should see.
    fn seen(&self, attempt: &Attempt, key: &[u8]) -> Option<Vec<u8>> {
        let at = match attempt.options.isolation {
            Isolation::ReadCommitted => self.model.now(),
            _ => attempt.moment,
        };
        match attempt.changes.get(key) {
            Some(own) => own.clone(),
            None => self.model.get(TABLE, key, at).map(<[u8]>::to_vec),
        }
    }

    fn read_in(&mut self, attempt: &mut Attempt) -> Result<bool> {
        let key = ring_key(attempt.ring, self.numbers.below(KEYS));
        let is_own = attempt.changes.contains_key(&key);
        let locks = attempt.is_serializable() && !is_own;
        let is_stale = locks && self.lock_is_stale(attempt, &key);
        let read = attempt.running.get(self.db().default_table(), &key);
        let Some(found) = self.judge("a read", read, is_stale)? else { return Ok(false) };
        assert_eq!(found.map(terrane::Value::into_vec), self.seen(attempt, &key), "{}: a read", self.place());
        if locks {
            attempt.reads.insert(key.clone());
        }
        if locks && attempt.is_pessimistic() {
            attempt.locked.insert(key);
        }
        Ok(true)
    }

    fn write_in(&mut self, attempt: &mut Attempt) -> Result<bool> {
        let key = ring_key(attempt.ring, self.numbers.below(KEYS));
        let value = (self.numbers.below(4) > 0).then(|| self.value());
        let is_stale = self.lock_is_stale(attempt, &key);
        let table = self.db().default_table().clone();
        let written = match &value {
            Some(value) => attempt.running.put(&table, &key, value),
            None => attempt.running.delete(&table, &key),
        };
        if self.judge("a write", written, is_stale)?.is_none() {
            return Ok(false);
        }
        if attempt.is_pessimistic() {
            attempt.locked.insert(key.clone());
        }
        attempt.changes.insert(key, value);
        Ok(true)
    }

    fn scan_in(&mut self, attempt: &mut Attempt) -> Result<bool> {
        let prefix = format!("ring{}/", attempt.ring).into_bytes();
        let rows: Vec<_> =
            attempt.running.prefix(self.db().default_table(), &prefix)?.collect::<Result<_>>()?;
        let expected: Vec<_> = (0..KEYS)
            .map(|number| ring_key(attempt.ring, number))
            .filter_map(|key| Some((key.clone(), self.seen(attempt, &key)?)))
            .collect();
        assert_eq!(rows, expected, "{}: a scan in a transaction", self.place());
        attempt.has_scanned = true;
        Ok(true)
    }

    fn savepoint_in(&mut self, attempt: &mut Attempt) -> Result<bool> {
        if self.numbers.below(2) == 0 {
            attempt.running.set_savepoint();
            attempt.savepoints.push(attempt.changes.clone());
        } else if let Some(changes) = attempt.savepoints.pop() {
            attempt.running.rollback_to_savepoint()?;
            attempt.changes = changes;
        }
        Ok(true)
    }

    /// A plain write of a key without a lock.
    fn write_beside(&mut self, attempt: &Attempt) -> Result<bool> {
        let key = ring_key(attempt.ring, self.numbers.below(KEYS));
        if !attempt.locked.contains(&key) {
            let value = (self.numbers.below(4) > 0).then(|| self.value());
            self.apply(&[(TABLE.to_owned(), key, value)])?;
        }
        Ok(true)
    }

    /// Returns true if a commit must be refused.
    fn is_stale(&self, attempt: &Attempt) -> bool {
        let changed = |key: &Vec<u8>| self.model.changed_since(TABLE, key, attempt.moment);
        if attempt.options.isolation == Isolation::ReadCommitted {
            return false;
        }
        let writes = attempt.changes.keys().any(changed);
        let reads = attempt.is_serializable() && attempt.reads.iter().any(changed);
        let all: Vec<_> = (0..KEYS).map(|number| ring_key(attempt.ring, number)).collect();
        let scans = attempt.is_serializable() && attempt.has_scanned && all.iter().any(changed);
        writes || reads || scans
    }

    fn end(&mut self, attempt: Attempt) -> Result<()> {
        let is_stale = self.is_stale(&attempt);
        let table = TABLE.to_owned();
        let changes: Vec<Change> =
            attempt.changes.iter().map(|(key, value)| (table.clone(), key.clone(), value.clone())).collect();
        match self.numbers.below(6) {
            0 => attempt.running.rollback(),
            1 | 2 if self.prepared.len() + 1 < RINGS as usize => {
                let name = attempt.ring.to_string();
                let prepared = attempt.running.prepare(&name);
                if self.judge("a prepare", prepared, is_stale)?.is_some() {
                    self.prepared.insert(name, changes);
                }
            }
            _ => {
                // A read-only transaction is of the moment that it read.
                let is_stale = is_stale && !changes.is_empty();
                let committed = attempt.running.commit(Durability::Buffered);
                if self.judge("a commit", committed, is_stale)?.is_some() && !changes.is_empty() {
                    self.model.write(&changes);
                }
            }
        }
        Ok(())
    }

    /// Commits or rolls back a prepared transaction; before that, no other writer gets its keys.
    pub(super) fn resolve(&mut self) -> Result<()> {
        let Some(name) = self.prepared.keys().next().cloned() else { return Ok(()) };
        let changes = self.prepared.remove(&name).expect("it was there");
        if let Some((_, key, _)) = changes.first() {
            let options =
                TransactionOptions { lock_timeout: Duration::ZERO, ..TransactionOptions::default() };
            let mut other = self.db().transaction(&options)?;
            other.put(self.db().default_table(), key, b"other")?;
            let error =
                other.commit(Durability::Buffered).expect_err("the prepared transaction has locked it");
            assert_eq!(error.kind(), Kind::TimedOut, "{}: {error}", self.place());
        }
        if self.numbers.below(3) == 0 {
            return self.db().rollback_prepared(&name);
        }
        self.db().commit_prepared(&name, Durability::Buffered)?;
        if !changes.is_empty() {
            self.model.write(&changes);
        }
        Ok(())
    }
}
