//! Databases, transactions that may fail at any operation, and choices from a seed.

use std::time::Duration;

use terrane::{Concurrency, Db, Durability, Isolation, Options, Result, Transaction, TransactionOptions};

pub const MODES: [Concurrency; 2] = [Concurrency::Optimistic, Concurrency::Pessimistic];
pub const LEVELS: [Isolation; 3] = [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable];

pub fn open() -> (tempfile::TempDir, Db) {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    (dir, db)
}

/// A database whose default table appends operands.
pub fn open_appending() -> (tempfile::TempDir, Db) {
    let dir = tempfile::tempdir().unwrap();
    let db = reopen_appending(&dir);
    (dir, db)
}

pub fn reopen_appending(dir: &tempfile::TempDir) -> Db {
    let mut options = Options::default();
    options.set("merge_operator", "append").unwrap();
    Db::open_with(dir.path().join("db"), &options).unwrap()
}

/// Options of a transaction that waits for no lock.
pub fn without_wait(concurrency: Concurrency, isolation: Isolation) -> TransactionOptions {
    TransactionOptions { concurrency, isolation, lock_timeout: Duration::ZERO, ..Default::default() }
}

/// A transaction that is rolled back by the first error that asks for another run; what comes later does
/// nothing.
pub struct Attempt<'d> {
    db: &'d Db,
    running: Option<Transaction>,
}

impl<'d> Attempt<'d> {
    pub fn begin(db: &'d Db, options: &TransactionOptions) -> Self {
        Attempt { db, running: Some(db.transaction(options).unwrap()) }
    }

    fn step<T>(&mut self, step: impl FnOnce(&mut Transaction) -> Result<T>) -> Option<T> {
        match step(self.running.as_mut()?) {
            Ok(done) => Some(done),
            Err(error) => {
                assert!(error.kind().is_worth_another_run(), "{error}");
                self.running = None;
                None
            }
        }
    }

    pub fn put(&mut self, key: &str, value: &str) {
        let db = self.db;
        self.step(|running| running.put(db.default_table(), key.as_bytes(), value.as_bytes()));
    }

    /// The value; `None` if the transaction failed. A key without a value reads as empty.
    pub fn get(&mut self, key: &str) -> Option<String> {
        let db = self.db;
        let value = self.step(|running| running.get(db.default_table(), key.as_bytes()))?;
        Some(text(value.as_deref().unwrap_or_default()))
    }

    pub fn get_for_update(&mut self, key: &str) -> Option<String> {
        let db = self.db;
        let value = self.step(|running| running.get_for_update(db.default_table(), key.as_bytes(), true))?;
        Some(text(value.as_deref().unwrap_or_default()))
    }

    /// The keys of the rows with this value.
    pub fn keys_with(&mut self, wanted: &str) -> Option<Vec<String>> {
        let db = self.db;
        self.step(|running| {
            let mut keys = Vec::new();
            for row in running.range(db.default_table(), ..)? {
                let (key, value) = row?;
                if value == wanted.as_bytes() {
                    keys.push(text(&key));
                }
            }
            Ok(keys)
        })
    }

    pub fn rollback(&mut self) {
        self.running = None;
    }

    /// Returns true if it committed.
    pub fn commit(&mut self) -> bool {
        let Some(running) = self.running.take() else { return false };
        match running.commit(Durability::Buffered) {
            Ok(_) => true,
            Err(error) => {
                assert!(error.kind().is_worth_another_run(), "{error}");
                false
            }
        }
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
