//! Locks of transactions: two that wait for each other, the cycle in the error, and a timeout.

#![allow(clippy::disallowed_methods, reason = "a program of a user starts threads as it likes")]

use std::sync::Barrier;
use std::time::Duration;

use terrane::{Concurrency, Db, Durability, Kind, Result, TransactionOptions};

/// Locks one key, waits until each transaction has its first lock, and asks for a second one.
fn cross(db: &Db, options: &TransactionOptions, meet: &Barrier, first: &[u8], second: &[u8]) -> Result<()> {
    let mut transaction = db.transaction(options)?;
    transaction.put(db.default_table(), first, "mine")?;
    meet.wait();
    transaction.put(db.default_table(), second, "mine, too")?;
    transaction.commit(Durability::Buffered).map(drop)
}

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::open(dir.path().join("data"))?;
    let options = TransactionOptions {
        concurrency: Concurrency::Pessimistic,
        lock_timeout: Duration::from_secs(60),
        ..TransactionOptions::default()
    };
    let meet = Barrier::new(2);
    let (one, other) = std::thread::scope(|scope| {
        let one = scope.spawn(|| cross(&db, &options, &meet, b"left", b"right"));
        let other = scope.spawn(|| cross(&db, &options, &meet, b"right", b"left"));
        (one.join().expect("no panic"), other.join().expect("no panic"))
    });
    // The transaction that closes the cycle is refused at once; the other one goes on.
    assert!(one.is_ok() != other.is_ok());
    let error = one.and(other).expect_err("one of the two gives way");
    assert!(error.kind() == Kind::Deadlock && error.kind().is_worth_another_run());
    error.cycle().iter().for_each(|edge| println!("{edge}"));
    assert_eq!(error.cycle().len(), 2);

    // There is no cycle, but the holder does not release its lock either.
    let mut holder = db.transaction(&options)?;
    holder.put(db.default_table(), "left", "held")?;
    let without_wait = TransactionOptions { lock_timeout: Duration::ZERO, ..options };
    let mut waiter = db.transaction(&without_wait)?;
    let error = waiter.put(db.default_table(), "left", "wanted").expect_err("the holder has it");
    println!("{error}");
    assert_eq!(error.kind(), Kind::TimedOut);
    holder.rollback();
    waiter.put(db.default_table(), "left", "wanted")?;
    waiter.commit(Durability::Buffered)?;
    drop(db);
    Ok(())
}
