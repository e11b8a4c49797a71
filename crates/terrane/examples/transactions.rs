//! Transactions: money that moves between accounts, a rule over several rows, and a commit over two
//! databases.
//!
//! Run with `cargo run -p terrane --example transactions`.

use std::time::Duration;

use terrane::{
    Concurrency, Db, Durability, IndexedBatch, Isolation, Kind, Result, Table, TableOptions, Transaction,
    TransactionOptions, counter,
};

fn amount(value: Option<terrane::Value>) -> u64 {
    value.map_or(0, |value| String::from_utf8_lossy(&value).parse().unwrap_or(0))
}

/// Moves money; the caller commits.
fn transfer(transaction: &mut Transaction, accounts: &Table, from: &str, to: &str, sum: u64) -> Result<bool> {
    let has = amount(transaction.get_for_update(accounts, from.as_bytes(), true)?);
    if has < sum {
        return Ok(false);
    }
    let gets = amount(transaction.get_for_update(accounts, to.as_bytes(), true)?);
    transaction.put(accounts, from.as_bytes(), (has - sum).to_string().as_bytes())?;
    transaction.put(accounts, to.as_bytes(), (gets + sum).to_string().as_bytes())?;
    Ok(true)
}

/// Runs again by itself where others were in the way.
fn optimistic(db: &Db) -> Result<()> {
    let accounts = db.table_or_create("accounts")?;
    accounts.put("ada", "100")?;
    let is_paid = db.transact(&TransactionOptions::default(), Durability::Synced, 100, |transaction| {
        transfer(transaction, &accounts, "ada", "bob", 30)
    })?;
    assert!(is_paid);
    assert_eq!((amount(accounts.get("ada")?), amount(accounts.get("bob")?)), (70, 30));
    Ok(())
}

/// Locks what it reads; a savepoint takes half of it back.
fn pessimistic(db: &Db) -> Result<()> {
    let accounts = db.table("accounts")?;
    let options = TransactionOptions { concurrency: Concurrency::Pessimistic, ..Default::default() };
    let mut transaction = db.transaction(&options)?;
    transfer(&mut transaction, &accounts, "ada", "bob", 10)?;
    transaction.set_savepoint();
    transfer(&mut transaction, &accounts, "ada", "eve", 50)?;
    transaction.rollback_to_savepoint()?;
    transaction.commit(Durability::Buffered)?;
    assert_eq!((amount(accounts.get("ada")?), amount(accounts.get("bob")?)), (60, 40));
    Ok(())
}

/// "At most two on call": each reads the range and adds a row of its own. Serializable refuses the second
/// one, snapshot isolation does not.
fn phantoms(db: &Db) -> Result<()> {
    for (isolation, expected) in [(Isolation::Serializable, 2), (Isolation::Snapshot, 3)] {
        let on_call = db.table_or_create(&format!("on call {isolation:?}"))?;
        on_call.put("ada", "")?;
        let options = TransactionOptions { isolation, ..Default::default() };
        let mut bob = db.transaction(&options)?;
        let mut eve = db.transaction(&options)?;
        for (transaction, name) in [(&mut bob, b"bob"), (&mut eve, b"eve")] {
            if transaction.range(&on_call, ..)?.count() < 2 {
                transaction.put(&on_call, name, "")?;
            }
        }
        bob.commit(Durability::Buffered)?;
        if let Err(error) = eve.commit(Durability::Buffered) {
            assert_eq!(error.kind(), Kind::Conflict);
        }
        assert_eq!(on_call.iter().count(), expected);
    }
    Ok(())
}

/// Both databases are ready before either commits; a prepared commit survives a crash.
fn two_phases(one: &Db, two: &Db) -> Result<()> {
    for (db, key) in [(one, b"left"), (two, b"come")] {
        let mut transaction = db.transaction(&TransactionOptions::default())?;
        transaction.put(db.default_table(), key, "parcel 7")?;
        transaction.prepare("parcel 7")?;
    }
    for db in [one, two] {
        assert_eq!(db.prepared(), ["parcel 7"]);
        db.commit_prepared("parcel 7", Durability::Synced)?;
    }
    assert!(one.get("left")?.is_some() && two.get("come")?.is_some());
    Ok(())
}

/// A batch that can be read before it is written.
fn indexed(db: &Db) -> Result<()> {
    let accounts = db.table("accounts")?;
    let mut batch = IndexedBatch::new();
    batch.put(&accounts, "zoe", "5")?;
    assert_eq!(amount(batch.get(&accounts, "zoe")?), 5);
    assert_eq!(batch.range(&accounts, ..).count(), accounts.iter().count() + 1);
    batch.write(db, Durability::Buffered)?;
    Ok(())
}

/// A year ends: one range delete removes its entries, and a merge adds their sum to a counter without reading
/// it. The transaction sees both before other readers do.
fn close_the_year(db: &Db) -> Result<()> {
    let entries = db.table_or_create("entries")?;
    let totals = db.create_table("totals", &TableOptions::new().merge_operator("counter"))?;
    for day in [b"2025-03-01", b"2025-11-30", b"2026-01-02"] {
        entries.put(day, "10")?;
    }
    let mut closing = db.transaction(&TransactionOptions::default())?;
    let year = closing.prefix(&entries, "2025-")?.count() as i64 * 10;
    closing.merge(&totals, "all", counter::encode(year))?;
    closing.delete_range(&entries, "2025-", "2026-")?;
    closing.put_with_ttl(&entries, "undo", "2025", Duration::from_secs(3600))?;
    assert_eq!(closing.range(&entries, ..)?.count(), 2); // 2026 and the note
    let total = closing.get(&totals, "all")?.expect("it was just merged to");
    assert_eq!(counter::decode(&total)?, 20);
    assert_eq!(entries.iter().count(), 3);
    closing.commit(Durability::Synced)?;
    assert_eq!(entries.iter().count(), 2);
    Ok(())
}

/// Runs all of it in a directory of its own.
pub fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("temporary directory");
    let one = Db::open(dir.path().join("one"))?;
    let two = Db::open(dir.path().join("two"))?;
    optimistic(&one)?;
    pessimistic(&one)?;
    phantoms(&one)?;
    two_phases(&one, &two)?;
    close_the_year(&one)?;
    indexed(&one)
}
