//! Two-phase commit: names, locks, reopening, crashes.

use std::path::Path;
use std::sync::Arc;

use terrane::{
    Concurrency, Db, Durability, Env, Isolation, JournalMode, Kind, Options, Result, TransactionOptions,
};
use terrane_device::MemDisk;

use crate::transactions::support::{MODES, open, without_wait};

fn open_on(disk: &MemDisk) -> Db {
    let options = Options { memory_bytes: 16 << 20, ..Options::default() };
    Db::open_on(Arc::new(disk.clone()), Path::new("/db"), &options, Env::real()).unwrap()
}

/// Prepares changes of `a` and `b` under a name, after reading `c` and the range from `r` on.
fn prepare(db: &Db, name: &str, options: &TransactionOptions) -> Result<()> {
    let table = db.default_table();
    let mut transaction = db.transaction(options)?;
    transaction.get(table, b"c")?;
    transaction.range(table, b"r".as_slice()..)?.try_for_each(|row| row.map(drop))?;
    transaction.put(table, b"a", name.as_bytes())?;
    transaction.put(table, b"b", name.as_bytes())?;
    transaction.prepare(name)
}

fn values(db: &Db) -> [Option<Vec<u8>>; 2] {
    [b"a", b"b"].map(|key| db.get(key).unwrap().map(terrane::Value::into_vec))
}

#[test]
fn prepared_transactions_have_names() {
    let (_dir, db) = open();
    prepare(&db, "one", &TransactionOptions::default()).unwrap();
    assert_eq!(db.prepared(), ["one"]);
    assert_eq!(values(&db), [None, None]);
    let empty = || db.transaction(&TransactionOptions::default()).unwrap();
    for name in ["one", "", &"x".repeat(256)] {
        assert_eq!(empty().prepare(name).unwrap_err().kind(), Kind::Invalid, "{name:?}");
    }
    assert_eq!(db.commit_prepared("two", Durability::Buffered).unwrap_err().kind(), Kind::NotFound);
    let seq = db.commit_prepared("one", Durability::Synced).unwrap();
    assert_eq!(seq, db.snapshot().seq());
    assert_eq!(values(&db), [Some(b"one".to_vec()), Some(b"one".to_vec())]);
    assert_eq!(db.rollback_prepared("one").unwrap_err().kind(), Kind::NotFound);
    prepare(&db, "one", &TransactionOptions::default()).unwrap();
    db.rollback_prepared("one").unwrap();
    assert!(db.prepared().is_empty());
    db.put(b"a", b"free").unwrap();
}

#[test]
fn the_hidden_table_is_hidden() {
    let (_dir, db) = open();
    prepare(&db, "one", &TransactionOptions::default()).unwrap();
    assert_eq!(db.tables(), ["default"]);
    assert_eq!(db.table("terrane:prepared").unwrap_err().kind(), Kind::NotFound);
    assert_eq!(db.drop_table("terrane:prepared").unwrap_err().kind(), Kind::NotFound);
    assert_eq!(db.table_or_create("terrane:prepared").unwrap_err().kind(), Kind::Invalid);
    assert_eq!(db.table_or_create("terrane:other").unwrap_err().kind(), Kind::Invalid);
}

/// Everything that the prepared transaction has locked, scanned or written is closed to others, and nothing
/// else.
fn assert_locked(db: &Db, what: &str) {
    let options = without_wait(Concurrency::Optimistic, Isolation::Serializable);
    for (key, is_open) in [("a", false), ("b", false), ("c", false), ("r1", false), ("z", false), ("d", true)]
    {
        let mut other = db.transaction(&options).unwrap();
        other.put(db.default_table(), key.as_bytes(), b"other").unwrap();
        let committed = other.commit(Durability::Buffered);
        assert_eq!(committed.is_ok(), is_open, "{what}: {key}: {committed:?}");
        assert!(is_open || committed.unwrap_err().kind() == Kind::TimedOut);
    }
}

#[test]
fn prepared_transactions_keep_their_locks_over_a_reopening() {
    for mode in MODES {
        let disk = MemDisk::new();
        let db = open_on(&disk);
        prepare(&db, "one", &without_wait(mode, Isolation::Serializable)).unwrap();
        assert_locked(&db, "before");
        db.flush().unwrap();
        db.close().unwrap();
        let db = open_on(&disk);
        assert_eq!(db.prepared(), ["one"]);
        assert_locked(&db, "after");
        db.commit_prepared("one", Durability::Buffered).unwrap();
        assert_eq!(values(&db), [Some(b"one".to_vec()), Some(b"one".to_vec())]);
        db.put(b"c", b"open again").unwrap();
        db.close().unwrap();
        let db = open_on(&disk);
        assert!(db.prepared().is_empty());
        assert_eq!(values(&db), [Some(b"one".to_vec()), Some(b"one".to_vec())]);
    }
}

#[test]
fn a_crash_leaves_it_prepared_or_ended() {
    for seed in 0..20 {
        let disk = MemDisk::new();
        let db = open_on(&disk);
        db.put(b"a", b"old").unwrap();
        prepare(&db, "one", &TransactionOptions::default()).unwrap();
        let prepared = disk.crash(seed);
        let commits = seed % 2 == 0;
        let is_synced = seed % 4 == 0;
        if commits {
            db.commit_prepared("one", if is_synced { Durability::Synced } else { Durability::Buffered })
                .unwrap();
        } else {
            db.rollback_prepared("one").unwrap();
        }
        let ended = disk.crash(seed);
        drop(db);
        let db = open_on(&prepared);
        assert_eq!(db.prepared(), ["one"], "seed {seed}");
        assert_eq!(values(&db), [Some(b"old".to_vec()), None], "seed {seed}");
        db.commit_prepared("one", Durability::Synced).unwrap();
        assert_eq!(values(&db), [Some(b"one".to_vec()), Some(b"one".to_vec())], "seed {seed}");
        drop(db);
        let db = open_on(&ended);
        let is_prepared = !db.prepared().is_empty();
        // Only a commit that was not synced may be undone by a loss of power.
        assert!(!is_prepared || commits && !is_synced, "seed {seed}");
        let is_committed = commits && !is_prepared;
        let expected = if is_committed {
            [Some(b"one".to_vec()), Some(b"one".to_vec())]
        } else {
            [Some(b"old".to_vec()), None]
        };
        assert_eq!(values(&db), expected, "seed {seed}");
    }
}

#[test]
fn without_a_journal_nothing_can_be_prepared() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { journal: JournalMode::Off, ..Options::default() };
    let db = Db::open_with(dir.path().join("db"), &options).unwrap();
    assert_eq!(prepare(&db, "one", &TransactionOptions::default()).unwrap_err().kind(), Kind::Invalid);
}

#[test]
fn a_repair_brings_prepared_transactions_over() {
    let (dir, db) = open();
    db.table_or_create("gone").unwrap();
    db.drop_table("gone").unwrap();
    // In the new database it has another number.
    let kept = db.table_or_create("kept").unwrap();
    let mut transaction = db.transaction(&TransactionOptions::default()).unwrap();
    transaction.put(&kept, b"k", b"v").unwrap();
    transaction.prepare("one").unwrap();
    drop(kept);
    db.close().unwrap();
    let target = dir.path().join("repaired");
    let report = terrane::repair(dir.path().join("db"), &target, &Options::default()).unwrap();
    assert!(report.is_whole(), "{report:?}");
    let db = Db::open(&target).unwrap();
    assert_eq!(db.prepared(), ["one"]);
    db.commit_prepared("one", Durability::Synced).unwrap();
    assert_eq!(db.table("kept").unwrap().get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
}

#[test]
fn a_repair_makes_no_table_of_a_dropped_one_that_a_prepared_transaction_names() {
    let (dir, db) = open();
    let (kept, gone) = (db.table_or_create("kept").unwrap(), db.table_or_create("gone").unwrap());
    let mut transaction = db.transaction(&TransactionOptions::default()).unwrap();
    transaction.get(&gone, b"read").unwrap();
    transaction.range(&gone, b"r".as_slice()..).unwrap().for_each(|row| drop(row.unwrap()));
    transaction.put(&gone, b"k", b"v").unwrap();
    transaction.put(&kept, b"k", b"v").unwrap();
    transaction.prepare("one").unwrap();
    drop((kept, gone));
    db.drop_table("gone").unwrap();
    db.close().unwrap();
    let target = dir.path().join("repaired");
    let report = terrane::repair(dir.path().join("db"), &target, &Options::default()).unwrap();
    assert!(report.is_whole(), "{report:?}");
    let db = Db::open(&target).unwrap();
    assert_eq!(db.tables(), ["default", "kept"]);
    db.commit_prepared("one", Durability::Synced).unwrap();
    assert_eq!(db.table("kept").unwrap().get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
}
