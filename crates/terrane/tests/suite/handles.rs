//! Handles keep a database open: all that read or write it, and none that only wait for it or that the
//! database keeps itself. The last handles that callbacks and the background drop are in
//! `callbacks.rs`.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::any::Any;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use terrane::typed::TypedTable;
use terrane::{
    Db, Durability, Isolation, JobEnded, Kind, Listener, Options, SeqNo, TransactionOptions, WeakDb,
};

/// As if another part of the program opened it.
fn try_open(path: &Path) -> terrane::Result<Db> {
    Db::open_with(path, &Options { memory_bytes: 32 << 20, ..Options::default() })
}

/// Opens the database, which must have been closed in good order: nothing is left to replay.
#[track_caller]
fn open_closed(path: &Path) -> Db {
    let db = try_open(path).unwrap();
    assert_eq!(db.stats().records_recovered, 0, "the close has flushed");
    db
}

#[track_caller]
fn assert_open(path: &Path, by: &str) {
    assert_eq!(try_open(path).expect_err(by).kind(), Kind::Busy, "{by}");
}

#[test]
fn a_table_alone_keeps_the_database_open_and_its_drop_closes_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let table = try_open(&path).unwrap().table_or_create("t").unwrap();
    table.put("a", "1").unwrap();
    let clone = table.clone();
    drop(table);
    assert_open(&path, "a table");
    clone.put("b", "2").unwrap();
    clone.flush().unwrap();
    clone.put("c", "3").unwrap();
    drop(clone);
    let rows: Vec<_> = open_closed(&path).table("t").unwrap().iter().map(Result::unwrap).collect();
    assert_eq!(rows, [(b"a".into(), b"1".into()), (b"b".into(), b"2".into()), (b"c".into(), b"3".into())]);
}

#[test]
fn a_typed_table_alone_keeps_the_database_open() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let open = || TypedTable::<u64, String>::new(try_open(&path)?.table_or_create("names")?);
    let names = open().unwrap();
    names.put(7, "seven").unwrap();
    assert_open(&path, "a typed table");
    drop(names);
    assert_eq!(open().unwrap().get(7).unwrap().as_deref(), Some("seven"));
}

#[test]
fn a_transaction_alone_keeps_the_database_open_until_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    for isolation in [Isolation::ReadCommitted, Isolation::Snapshot] {
        for commits in [true, false] {
            let key = format!("{isolation:?} {commits}");
            let transaction = {
                let db = try_open(&path).unwrap();
                let options = TransactionOptions { isolation, ..TransactionOptions::default() };
                let mut transaction = db.transaction(&options).unwrap();
                transaction.put(db.default_table(), &key, "v").unwrap();
                transaction
            };
            assert_open(&path, "a transaction");
            if commits {
                transaction.commit(Durability::Buffered).unwrap();
            } else {
                drop(transaction);
            }
            assert_eq!(open_closed(&path).contains(&key).unwrap(), commits, "{key}");
        }
    }
}

/// Makes a handle of a database with one row, and keeps no other.
type Make = fn(Db) -> Box<dyn Any>;

/// Of each kind, by its name; without those that have a test of their own.
const KINDS: [(&str, Make); 11] = [
    ("Db", |db| Box::new(db)),
    ("Snapshot", |db| Box::new(db.snapshot())),
    ("labelled Snapshot", |db| Box::new(db.snapshot_labelled("report"))),
    ("Iter", |db| Box::new(db.default_table().iter())),
    ("Iter of a snapshot", |db| Box::new(db.snapshot().iter(db.default_table()))),
    ("Iter that has begun", |db| {
        let mut rows = db.default_table().iter();
        assert!(rows.next().unwrap().is_ok());
        Box::new(rows)
    }),
    ("Cursor", |db| Box::new(db.default_table().cursor())),
    ("KeyCursor", |db| Box::new(db.default_table().cursor().keys())),
    ("BareTransaction", |db| Box::new(db.bare_transaction(&TransactionOptions::default()).unwrap())),
    ("Snapshot of a transaction", |db| {
        let transaction = db.bare_transaction(&TransactionOptions::default()).unwrap();
        Box::new(transaction.snapshot().unwrap())
    }),
    ("Db of a WeakDb", |db| Box::new(db.downgrade().upgrade().unwrap())),
];

#[test]
fn every_handle_keeps_the_database_open() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    for (kind, make) in KINDS {
        let db = try_open(&path).unwrap();
        db.put("k", "v").unwrap();
        let handle = make(db);
        assert_open(&path, kind);
        drop(handle);
        assert!(open_closed(&path).contains("k").unwrap(), "{kind}");
    }
}

/// Or a thread that follows the changes would keep open what it waits for.
#[test]
fn a_reader_of_changes_ends_with_the_last_handle() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let table = try_open(&path).unwrap().default_table().clone();
    let db = try_open(&dir.path().join("other")).unwrap();
    let mut changes = db.changes(SeqNo(1)).unwrap();
    db.put("k", "v").unwrap();
    assert_eq!(changes.by_ref().count(), 1);
    let outcome = std::thread::scope(|scope| {
        let waits = scope.spawn(move || changes.next_within(Duration::MAX).map(drop));
        drop(db);
        waits.join().unwrap()
    });
    assert_eq!(outcome.unwrap_err().kind(), Kind::Cancelled);
    drop(open_closed(&dir.path().join("other")));
    table.put("another database", "is not closed by it").unwrap();
}

#[test]
fn a_weak_handle_gives_the_database_while_another_handle_keeps_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = try_open(&path).unwrap();
    let (table, weak) = (db.table_or_create("t").unwrap(), db.downgrade());
    drop(db);
    weak.upgrade().unwrap().put("k", "v").unwrap();
    assert_eq!(weak.clone().upgrade().unwrap().tables(), ["default", "t"]);
    drop(table);
    assert!(weak.upgrade().is_none());
    assert_eq!(open_closed(&path).get("k").unwrap().unwrap(), "v");
    // A close is for all handles, those that are made later too.
    let db = try_open(&path).unwrap();
    let (weak, kept) = (db.downgrade(), db.clone());
    db.close().unwrap();
    assert_eq!(weak.upgrade().unwrap().put("k", "w").unwrap_err().kind(), Kind::Cancelled);
    drop(kept);
    assert!(weak.upgrade().is_none());
}

/// Notes how many tables there are when a flush ends.
struct Looks(WeakDb, Mutex<Vec<usize>>);

impl Listener for Looks {
    fn flush_ended(&self, _job: &JobEnded) {
        if let Some(db) = self.0.upgrade() {
            self.1.lock().unwrap().push(db.tables().len());
        }
    }
}

#[test]
fn a_listener_with_a_weak_handle_reads_the_database_and_does_not_keep_it_open() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let table = {
        let db = try_open(&path).unwrap();
        let looks = Arc::new(Looks(db.downgrade(), Mutex::default()));
        db.add_listener(looks.clone()).unwrap();
        let table = db.table_or_create("t").unwrap();
        table.put("k", "v").unwrap();
        table.flush().unwrap();
        db.wait_for_listeners().unwrap();
        assert_eq!(*looks.1.lock().unwrap(), [2]);
        table
    };
    assert_open(&path, "the table");
    drop(table);
    drop(open_closed(&path));
}
