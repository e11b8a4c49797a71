//! Keys that a transaction locks, or keeps to check them at its commit.

use std::collections::btree_map::Entry;

use terrane_base::{Error, Result, TableId, verify};

use crate::locks::lock_table::{LockKey, LockMode, LockWait};
use crate::shared::Shared;
use crate::txn::transaction::commit::check_write;
use crate::txn::transaction::{KEPT_OVERHEAD_BYTES, Transaction};

/// A moment of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct LockMark(usize);

impl Transaction {
    pub(super) fn claim(&mut self, table: TableId, key: &[u8], mode: LockMode) -> Result<()> {
        let key = LockKey::new(table, key);
        if self.is_pessimistic() {
            return self.lock(key, mode);
        }
        self.has_begun = true;
        let since = match &self.snapshot {
            Some(snapshot) => snapshot.seq(),
            None => self.engine.visible(),
        };
        debug_assert!(since >= self.since, "the window keeps the commits above a read");
        let bytes = kept_bytes(&key);
        // The version that was read first must not have changed.
        if let Entry::Vacant(entry) = self.reads.entry(key) {
            if let Some(noted) = &mut self.noted {
                noted.push(entry.key().clone());
            }
            entry.insert(since);
            self.kept_bytes += bytes;
        }
        Ok(())
    }

    pub(super) fn lock(&mut self, key: LockKey, mode: LockMode) -> Result<()> {
        if self.is_handed_over {
            return Err(Error::invalid("the transaction was prepared and is over: begin another one"));
        }
        self.refuse_if_lost()?;
        if self.held.get(&key).is_some_and(|held| *held >= mode) {
            return Ok(());
        }
        let engine = self.engine.clone();
        let taken = engine.txn.locks.acquire(self.id, &key, mode, &self.lock_wait(&engine));
        taken.map_err(|refusal| engine.refused(refusal, Some(&key)))?;
        let is_new = self.held.insert(key.clone(), mode).is_none();
        debug_assert!(
            is_new || mode == LockMode::Exclusive,
            "a lock that is held is taken again only to exclude others"
        );
        if is_new {
            self.kept_bytes += kept_bytes(&key);
        }
        self.begin_with_lock();
        let checked = match &self.snapshot {
            Some(snapshot) => self
                .engine
                .txn
                .validate(&self.engine, self.id, |look| check_write(look, &key, snapshot.seq())),
            None => Ok(()),
        };
        match (&checked, &mut self.noted) {
            // A refused call leaves no lock.
            (Err(_), _) if is_new => self.unlock(&key),
            (Ok(()), Some(noted)) if is_new => noted.push(key),
            _ => {}
        }
        checked
    }

    /// Releases one lock.
    fn unlock(&mut self, key: &LockKey) {
        if self.held.remove(key).is_some() {
            assert!(self.kept_bytes >= kept_bytes(key), "the bytes of {key:?} were not counted");
            self.kept_bytes -= kept_bytes(key);
            self.engine.txn.locks.release(self.id, [key]);
        }
    }

    /// Walks what the transaction keeps and counts its bytes again.
    pub(super) fn recounted_bytes(&self) -> u64 {
        let keys = self.held.keys().chain(self.reads.keys()).map(kept_bytes);
        let ranges = self.locked_ranges.iter().chain(self.scans.iter().flatten());
        keys.sum::<u64>() + ranges.map(|range| super::bounds_bytes(&range.bounds)).sum::<u64>()
    }

    pub(super) fn lock_wait<'e>(&self, shared: &'e Shared) -> LockWait<'e> {
        let lock_wait = shared.lock_wait(self.options.lock_timeout);
        LockWait { finds_deadlocks: self.options.finds_deadlocks, ..lock_wait }
    }

    /// Marks this moment, for [`Transaction::release_since`].
    pub fn mark(&mut self) -> LockMark {
        LockMark(self.noted.get_or_insert_default().len())
    }

    /// Releases locks of keys that were first locked after a mark, and no longer checks keys that were first
    /// read for update after it. The caller must undo its changes of them as well. A lock that became
    /// exclusive stays.
    pub fn release_since(&mut self, mark: LockMark) {
        let Some(noted) = &mut self.noted else { return };
        let since: Vec<_> = noted.drain(mark.0.min(noted.len())..).collect();
        for key in since {
            self.unlock(&key);
            if self.reads.remove(&key).is_some() {
                self.kept_bytes -= kept_bytes(&key);
            }
        }
        verify!(self.kept_bytes == self.recounted_bytes(), "{} bytes are counted", self.kept_bytes);
    }
}

fn kept_bytes(key: &LockKey) -> u64 {
    key.key.len() as u64 + KEPT_OVERHEAD_BYTES
}
