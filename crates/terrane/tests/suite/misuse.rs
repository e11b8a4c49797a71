//! Every misuse of the interface has one answer: the rows of `docs/misuse.md`, in their order.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane::{
    Batch, Concurrency, Db, Durability, IndexedBatch, Kind, MergeOperator, MergeOperators, Options,
    TableOptions, TransactionOptions,
};

fn open(dir: &Path) -> Db {
    Db::open_with(dir, &Options { memory_bytes: 32 << 20, ..Options::default() }).unwrap()
}

#[track_caller]
fn refused<T>(answer: terrane::Result<T>, kind: Kind, says: &str) {
    let error = answer.err().expect("a misuse is refused");
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(says), "{error}");
}

#[test]
fn a_table_of_another_database() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (open(&dir.path().join("one")), open(&dir.path().join("two")));
    let (own, foreign) = (one.default_table(), two.default_table());
    let mut batch = Batch::new();
    batch.put(foreign, b"k", b"v").unwrap();
    refused(one.write(&batch, Durability::Buffered), Kind::Invalid, "another");
    refused(batch.put(own, b"k", b"v"), Kind::Invalid, "another");
    let mut indexed = IndexedBatch::new();
    indexed.put(foreign, b"k", b"v").unwrap();
    refused(indexed.write(&one, Durability::Buffered), Kind::Invalid, "another");
    let mut transaction = one.transaction(&TransactionOptions::default()).unwrap();
    refused(transaction.get(foreign, b"k"), Kind::Invalid, "another");
    refused(transaction.put(foreign, b"k", b"v"), Kind::Invalid, "another");
    refused(transaction.range(foreign, ..), Kind::Invalid, "another");
    let snapshot = one.snapshot();
    refused(snapshot.get(foreign, b"k"), Kind::Invalid, "another");
    refused(snapshot.multi_get(foreign, &[b"k"]), Kind::Invalid, "another");
    refused(snapshot.iter(foreign).next().unwrap(), Kind::Invalid, "another");
    refused(snapshot.cursor(foreign).seek_first(), Kind::Invalid, "another");
    refused(snapshot.cursor(foreign).seek(b"k"), Kind::Invalid, "another");
    refused(IndexedBatch::new().get_at(&snapshot, foreign, b"k"), Kind::Invalid, "another");
    refused(IndexedBatch::new().range_at(&snapshot, foreign, ..).next().unwrap(), Kind::Invalid, "another");
    refused(one.compact_range(foreign, ..), Kind::Invalid, "another");
    refused(one.compact_level(foreign, 1), Kind::Invalid, "another");
    refused(one.flush_to_run(foreign), Kind::Invalid, "another");
    refused(one.bulk_load(foreign, [(b"k", b"v")]), Kind::Invalid, "another");
    // The same directory, opened again, is another database as well.
    let own = own.clone();
    one.close().unwrap();
    let again = open(&dir.path().join("one"));
    let mut batch = Batch::new();
    batch.put(&own, b"k", b"v").unwrap();
    refused(again.write(&batch, Durability::Buffered), Kind::Invalid, "another");
    assert!(again.get(b"k").unwrap().is_none() && two.get(b"k").unwrap().is_none());
}

#[test]
fn after_a_close() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    db.put(b"k", b"v").unwrap();
    let (other, table, snapshot) = (db.clone(), db.default_table().clone(), db.snapshot());
    let mut iter = table.iter();
    let mut batch = Batch::new();
    batch.put(&table, b"k", b"w").unwrap();
    let mut transaction = db.transaction(&TransactionOptions::default()).unwrap();
    transaction.put(&table, b"k", b"w").unwrap();
    db.close().unwrap();
    refused(other.write(&batch, Durability::Buffered), Kind::Cancelled, "clos");
    refused(table.put(b"k", b"w"), Kind::Cancelled, "clos");
    refused(other.try_write(&batch, Durability::Buffered), Kind::Cancelled, "clos");
    refused(transaction.commit(Durability::Buffered), Kind::Cancelled, "clos");
    refused(other.transaction(&TransactionOptions::default()), Kind::Cancelled, "clos");
    refused(other.create_table("t", &TableOptions::new()), Kind::Cancelled, "clos");
    // Open readers keep reading: their files stay.
    assert_eq!(table.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
    assert_eq!(snapshot.get(&table, b"k").unwrap().as_deref(), Some(&b"v"[..]));
    assert!(iter.next().unwrap().is_ok() && iter.next().is_none());
}

#[test]
fn readers_of_an_earlier_opening_read_what_they_saw() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = open(&path);
    let table = db.table_or_create("t").unwrap();
    table.put("in an extent", "1").unwrap();
    db.flush().unwrap();
    table.put("in memory", "2").unwrap();
    let (snapshot, mut iter, mut cursor) = (db.snapshot(), table.iter(), table.cursor());
    table.put("later", "3").unwrap();
    db.close().unwrap();
    refused(table.put("k", "v"), Kind::Cancelled, "clos");
    assert_eq!(table.iter().count(), 3);
    assert_eq!(snapshot.iter(&table).count(), 2);
    assert_eq!(table.get("in an extent").unwrap().unwrap(), "1");
    assert_eq!(iter.next().unwrap().unwrap().0, b"in an extent");
    cursor.seek_last().unwrap();
    assert_eq!(cursor.row().unwrap().0, b"in memory");
    // None of them keeps the lock after the close, and their end does not close the later opening.
    let again = open(&path);
    assert_eq!(again.table("t").unwrap().iter().count(), 3);
    drop((table, snapshot, iter, cursor));
    again.put("k", "v").unwrap();
}

#[test]
fn a_dropped_table() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    let table = db.table_or_create("t").unwrap();
    (0..100u8).for_each(|key| table.put([key], [key]).unwrap());
    db.flush().unwrap();
    let snapshot = db.snapshot();
    let (mut iter, mut cursor) = (table.iter(), table.cursor());
    assert!(iter.next().unwrap().is_ok());
    let mut batch = Batch::new();
    batch.put(&table, b"k", b"v").unwrap();
    db.drop_table("t").unwrap();
    // Iterators and cursors that were open go on.
    assert_eq!(iter.map(Result::unwrap).count(), 99);
    cursor.seek_first().unwrap();
    assert!(cursor.row().is_some());
    // Whatever begins after the drop is refused.
    cursor.refresh();
    refused(cursor.seek_first(), Kind::NotFound, "dropped");
    refused(table.cursor().seek(b"k"), Kind::NotFound, "dropped");
    refused(IndexedBatch::new().range(&table, ..).next().unwrap(), Kind::NotFound, "dropped");
    refused(table.get(b"k"), Kind::NotFound, "dropped");
    refused(table.iter().next().unwrap(), Kind::NotFound, "dropped");
    refused(snapshot.get(&table, b"k"), Kind::NotFound, "dropped");
    refused(table.put(b"k", b"v"), Kind::NotFound, "dropped");
    refused(db.write(&batch, Durability::Buffered), Kind::NotFound, "dropped");
    refused(db.table("t"), Kind::NotFound, "t");
}

/// Keys by their length, then by their bytes; under a name that says so, or does not.
#[derive(Debug)]
struct Order(&'static str);

impl terrane::KeyOrder for Order {
    fn name(&self) -> &str {
        self.0
    }

    fn encode(&self, key: &[u8], out: &mut Vec<u8>) -> terrane::Result<()> {
        out.push(key.len() as u8);
        out.extend_from_slice(key);
        Ok(())
    }

    fn decode(&self, encoded: &[u8], out: &mut Vec<u8>) -> terrane::Result<()> {
        out.extend_from_slice(&encoded[1..]);
        Ok(())
    }
}

#[test]
fn an_order_of_keys_that_changed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let options = Options { memory_bytes: 32 << 20, ..Options::default() };
    let with = |name| terrane::KeyOrders::new().with(Arc::new(Order(name))).unwrap();
    let db = Db::open_with_functions(&path, &options, with("by-length")).unwrap();
    let own = TableOptions::new().set("key_order", "by-length").unwrap();
    db.create_table("t", &own).unwrap().put(b"k", b"v").unwrap();
    db.close().unwrap();
    refused(Db::open_with(&path, &options), Kind::Invalid, "by-length");
    refused(Db::open_with_functions(&path, &options, with("by-size")), Kind::Invalid, "by-length");
    let db = Db::open_with_functions(&path, &options, with("by-length")).unwrap();
    refused(db.table("t").unwrap().set_option("key_order", "bytewise"), Kind::Invalid, "key_order");
    assert!(db.table("t").unwrap().get(b"k").unwrap().is_some());
}

#[derive(Debug)]
struct Longest;

impl MergeOperator for Longest {
    fn name(&self) -> &str {
        "longest"
    }

    fn full(
        &self,
        _: &[u8],
        base: Option<&[u8]>,
        operands: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> terrane::Result<()> {
        let longest = base.iter().chain(operands).max_by_key(|bytes| bytes.len());
        out.extend_from_slice(longest.expect("a chain has an operand"));
        Ok(())
    }
}

#[test]
fn a_merge_operator_that_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let options = Options { memory_bytes: 32 << 20, ..Options::default() };
    let operators = || MergeOperators::new().with(Arc::new(Longest)).unwrap();
    let db = Db::open_with_operators(&path, &options, operators()).unwrap();
    let own = TableOptions::new().set("merge_operator", "longest").unwrap();
    let table = db.create_table("t", &own).unwrap();
    table.merge(b"k", b"ab").unwrap();
    table.merge(b"k", b"a").unwrap();
    db.close().unwrap();
    refused(Db::open_with(&path, &options), Kind::Invalid, "longest");
    let read_only = Options { read_only: true, ..options.clone() };
    refused(Db::open_with(&path, &read_only), Kind::Invalid, "longest");
    // Nothing was changed by the attempts.
    let db = Db::open_with_operators(&path, &options, operators()).unwrap();
    assert_eq!(db.table("t").unwrap().get(b"k").unwrap().as_deref(), Some(&b"ab"[..]));
}

#[test]
fn a_prepared_transaction_that_is_never_resolved() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let mut db = open(&path);
    let mut transaction = db.transaction(&TransactionOptions::default()).unwrap();
    transaction.put(db.default_table(), b"k", b"v").unwrap();
    transaction.prepare("forgotten").unwrap();
    for _ in 0..2 {
        assert_eq!(db.prepared(), ["forgotten"]);
        assert_eq!(db.stats().transactions_prepared, 1);
        // Its keys stay closed: to transactions after their timeout, to plain writes after a second.
        for concurrency in [Concurrency::Optimistic, Concurrency::Pessimistic] {
            let options = TransactionOptions {
                concurrency,
                lock_timeout: Duration::ZERO,
                ..TransactionOptions::default()
            };
            let mut other = db.transaction(&options).unwrap();
            let written = other.put(db.default_table(), b"k", b"other");
            refused(written.and_then(|()| other.commit(Durability::Buffered)), Kind::TimedOut, "locked");
        }
        refused(db.put(b"k", b"other"), Kind::TimedOut, "locked");
        // Everything else goes on, its own work among it.
        db.put(b"l", b"other").unwrap();
        db.flush().unwrap();
        db.close().unwrap();
        db = open(&path);
    }
    assert!(db.get(b"k").unwrap().is_none());
    db.rollback_prepared("forgotten").unwrap();
    db.put(b"k", b"other").unwrap();
    refused(db.commit_prepared("forgotten", Durability::Buffered), Kind::NotFound, "forgotten");
}

#[test]
fn a_snapshot_that_is_held() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    let table = db.default_table();
    let write = |round: u8| (0..200u8).for_each(|key| table.put([key], [round; 100]).unwrap());
    write(0);
    let snapshot = db.snapshot();
    for round in 1..20 {
        write(round);
        db.flush().unwrap();
        db.compact_range(table, ..).unwrap();
    }
    // It reads what it read, however long that is ago, and only the versions that it sees are kept for it.
    let rows: Vec<_> = snapshot.iter(table).map(Result::unwrap).collect();
    assert!(rows.len() == 200 && rows.iter().all(|(_, value)| **value == [0; 100]), "{} rows", rows.len());
    assert_eq!(entries(&db), 400);
    drop(snapshot);
    write(20);
    db.compact_range(table, ..).unwrap();
    assert_eq!(entries(&db), 200);
}

/// Versions in the levels.
fn entries(db: &Db) -> u64 {
    db.wait_until_quiescent().unwrap();
    let shape = db.shape();
    shape
        .tables
        .iter()
        .flat_map(|table| table.runs.iter().chain(&table.levels))
        .map(|place| place.entries)
        .sum()
}
