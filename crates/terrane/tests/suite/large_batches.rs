//! A batch of 100 MiB with the default options.

#![allow(clippy::unwrap_used, reason = "a test")]

use terrane::{Batch, Concurrency, Db, Durability, Options, TransactionOptions};

const MIB: usize = 1 << 20;
const ROWS: u32 = 100;

fn value(row: u32) -> Vec<u8> {
    vec![row as u8; MIB]
}

fn batch(db: &Db) -> Batch {
    let mut batch = Batch::new();
    for row in 0..ROWS {
        batch.put(db.default_table(), row.to_be_bytes(), value(row)).unwrap();
    }
    assert!(batch.bytes() > 100 * MIB);
    batch
}

fn check(db: &Db, what: &str) {
    for row in 0..ROWS {
        assert!(db.get(row.to_be_bytes()).unwrap().unwrap()[..] == value(row)[..], "{what}: row {row}");
    }
    assert_eq!(db.default_table().iter().count(), ROWS as usize, "{what}");
    // With what jobs lend while none runs.
    let (most, shared) = (db.stats().memory_bytes_max, db.options().memory_bytes / 16 * 15);
    assert!(most <= shared, "{what}: {most} bytes counted, writers and cache have {shared}");
}

#[test]
fn a_batch_of_100_mib_is_written_with_default_options() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::default();
    let db = Db::open_with(dir.path(), &options).unwrap();
    let batch = batch(&db);
    db.pause_background();
    db.write(&batch, Durability::Buffered).unwrap();
    check(&db, "written");
    db.close().unwrap();
    let db = Db::open_with(dir.path(), &options).unwrap();
    assert_eq!(db.stats().records_recovered, u64::from(ROWS), "it was in the journal only");
    check(&db, "replayed");
    drop(db);
}

#[test]
fn two_batches_of_100_mib_at_once_and_one_of_a_transaction_stay_under_the_ceiling() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), &Options::default()).unwrap();
    let batch = batch(&db);
    std::thread::scope(|scope| {
        (0..2).for_each(|_| {
            scope.spawn(|| db.write(&batch, Durability::Buffered).unwrap());
        });
    });
    drop(batch);
    check(&db, "at once");
    let optimistic = TransactionOptions { concurrency: Concurrency::Optimistic, ..Default::default() };
    let mut transaction = db.transaction(&optimistic).unwrap();
    for row in 0..ROWS {
        transaction.put(db.default_table(), row.to_be_bytes(), value(row)).unwrap();
    }
    transaction.commit(Durability::Buffered).unwrap();
    check(&db, "by a transaction");
}
