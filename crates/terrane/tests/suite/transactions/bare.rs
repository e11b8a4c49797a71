//! Transactions whose caller keeps the changes, and the options for them.

use std::time::{Duration, Instant};

use terrane::{
    BareTransaction, Batch, ChangeKind, Concurrency, Db, Durability, Isolation, Kind, Table, TableOptions,
    TransactionOptions,
};

use crate::transactions::support::{open, without_wait};

fn begin(db: &Db, concurrency: Concurrency, isolation: Isolation) -> BareTransaction {
    db.bare_transaction(&without_wait(concurrency, isolation)).unwrap()
}

fn batch_of(table: &Table, key: &[u8]) -> Batch {
    let mut batch = Batch::new();
    batch.put(table, key, b"v").unwrap();
    batch
}

#[test]
fn locks_since_a_mark_are_given_back() {
    let (_dir, db) = open();
    let table = db.default_table();
    let mut one = begin(&db, Concurrency::Pessimistic, Isolation::ReadCommitted);
    let mut two = begin(&db, Concurrency::Pessimistic, Isolation::ReadCommitted);
    one.lock(table, b"a", true).unwrap();
    let mark = one.mark();
    one.lock(table, b"a", true).unwrap();
    one.lock(table, b"b", false).unwrap();
    assert_eq!(two.lock(table, b"b", true).unwrap_err().kind(), Kind::TimedOut);
    one.release_since(mark);
    two.lock(table, b"b", true).unwrap();
    assert_eq!(two.lock(table, b"a", true).unwrap_err().kind(), Kind::TimedOut, "locked before the mark");
    one.commit(&batch_of(table, b"a"), Durability::Buffered).unwrap();
    drop(one);
    two.lock(table, b"a", true).unwrap();
}

#[test]
fn keys_that_were_given_back_are_not_checked() {
    let (_dir, db) = open();
    let table = db.default_table();
    let mut one = begin(&db, Concurrency::Optimistic, Isolation::ReadCommitted);
    let mark = one.mark();
    one.lock(table, b"a", true).unwrap();
    db.put(b"a", b"of another writer").unwrap();
    let refused = one.commit(&batch_of(table, b"a"), Durability::Buffered).unwrap_err();
    assert_eq!(refused.kind(), Kind::Conflict);
    let again = one.commit(&batch_of(table, b"a"), Durability::Buffered).unwrap_err();
    assert_eq!(again.kind(), Kind::Conflict, "it is as it was");
    one.release_since(mark);
    one.lock(table, b"a", true).unwrap();
    one.commit(&batch_of(table, b"a"), Durability::Buffered).unwrap();
    assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"v"[..]));
}

#[test]
fn a_kept_snapshot_does_not_move() {
    let (_dir, db) = open();
    let table = db.default_table();
    for keeps_snapshot in [false, true] {
        let options = without_wait(Concurrency::Pessimistic, Isolation::Snapshot);
        let options = TransactionOptions { keeps_snapshot, ..options };
        let mut one = db.bare_transaction(&options).unwrap();
        let began = one.snapshot().unwrap().seq();
        db.put(b"k", b"since").unwrap();
        match one.lock(table, b"k", true) {
            Ok(()) => assert!(!keeps_snapshot && one.snapshot().unwrap().seq() > began),
            Err(error) => {
                assert!(keeps_snapshot && error.kind() == Kind::Conflict, "{error}");
                assert_eq!(one.snapshot().unwrap().seq(), began);
                // A refused transaction has no lock.
                db.put(b"k", b"again").unwrap();
            }
        }
    }
}

#[test]
fn deadlock_detection_is_an_option_of_the_transaction() {
    let (_dir, db) = open();
    let table = db.default_table();
    let options = without_wait(Concurrency::Pessimistic, Isolation::ReadCommitted);
    let mut finding = db.bare_transaction(&options).unwrap();
    let mut other =
        db.bare_transaction(&TransactionOptions { finds_deadlocks: false, ..options.clone() }).unwrap();
    finding.lock(table, b"2", false).unwrap();
    other.lock(table, b"2", false).unwrap();
    // It does not look for deadlocks itself: which of the two closes the cycle depends on which one comes
    // last.
    let long_wait =
        TransactionOptions { lock_timeout: Duration::from_secs(600), finds_deadlocks: false, ..options };
    let mut waiting = db.bare_transaction(&long_wait).unwrap();
    waiting.lock(table, b"1", true).unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| waiting.lock(table, b"2", true));
        // As soon as that one waits, there is a deadlock.
        let until = Instant::now() + Duration::from_secs(300);
        let mut kind = Kind::TimedOut;
        while kind == Kind::TimedOut && Instant::now() < until {
            kind = finding.lock(table, b"1", true).unwrap_err().kind();
        }
        assert_eq!(kind, Kind::Deadlock);
        assert_eq!(other.lock(table, b"1", true).unwrap_err().kind(), Kind::TimedOut);
        drop((finding, other));
        waiter.join().unwrap().unwrap();
    });
}

#[test]
fn an_expired_transaction_loses_its_locks_and_does_not_commit() {
    let (_dir, db) = open();
    let table = db.default_table();
    let options = without_wait(Concurrency::Pessimistic, Isolation::ReadCommitted);
    let brief = TransactionOptions { expires_after: Some(Duration::ZERO), ..options.clone() };
    let mut late = db.bare_transaction(&brief).unwrap();
    late.lock(table, b"a", true).unwrap();
    late.lock(table, b"b", true).unwrap();
    late.lock(table, b"c", true).unwrap();
    assert!(late.has_expired());
    let mut next = db.bare_transaction(&options).unwrap();
    assert!(!next.has_expired());
    next.lock(table, b"a", true).unwrap();
    assert_eq!(late.lock(table, b"d", true).unwrap_err().kind(), Kind::TooOld);
    assert_eq!(late.commit(&batch_of(table, b"a"), Durability::Buffered).unwrap_err().kind(), Kind::TooOld);
    assert_eq!(late.prepare("late", &batch_of(table, b"a")).unwrap_err().kind(), Kind::TooOld);
    // Plain writes take them, too, of a key and of a range.
    db.put(b"b", b"plain").unwrap();
    let mut range = Batch::new();
    range.delete_range(table, b"b", b"d").unwrap();
    db.write(&range, Durability::Buffered).unwrap();
    // A lock that it lost is not released a second time.
    drop(late);
    let mut third = db.bare_transaction(&options).unwrap();
    assert_eq!(third.lock(table, b"a", true).unwrap_err().kind(), Kind::TimedOut);
    next.commit(&batch_of(table, b"a"), Durability::Buffered).unwrap();
    assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"v"[..]));
}

#[test]
fn a_transaction_that_has_time_left_commits() {
    let (_dir, db) = open();
    let table = db.default_table();
    let options = TransactionOptions { expires_after: Some(Duration::from_secs(3600)), ..Default::default() };
    let mut one = db.bare_transaction(&options).unwrap();
    one.lock(table, b"k", true).unwrap();
    one.commit(&batch_of(table, b"k"), Durability::Buffered).unwrap();
}

#[test]
fn prepared_changes_are_listed() {
    let (_dir, db) = open();
    let ordered =
        db.create_table("ordered", &TableOptions::new().set("key_order", "reverse").unwrap()).unwrap();
    let mut batch = batch_of(db.default_table(), b"k");
    batch.put(&ordered, b"o", b"w").unwrap();
    batch.delete(db.default_table(), b"d").unwrap();
    let mut one = begin(&db, Concurrency::Pessimistic, Isolation::ReadCommitted);
    one.prepare("p", &batch).unwrap();
    let refused = one.prepare("p", &batch).unwrap_err();
    assert_eq!(refused.kind(), Kind::Invalid, "{refused}");
    let mut seen = Vec::new();
    db.prepared_changes("p", &mut |table, change| match change {
        ChangeKind::Put { key, value } => seen.push((table, key.to_vec(), Some(value.to_vec()))),
        ChangeKind::Delete { key } => seen.push((table, key.to_vec(), None)),
        other => panic!("{other:?} was not prepared"),
    })
    .unwrap();
    let id = db.default_table().number();
    let wanted = [
        (id, b"k".to_vec(), Some(b"v".to_vec())),
        (ordered.number(), b"o".to_vec(), Some(b"w".to_vec())),
        (id, b"d".to_vec(), None),
    ];
    assert_eq!(seen, wanted);
    let missing = db.prepared_changes("q", &mut |_, _| ()).unwrap_err();
    assert_eq!(missing.kind(), Kind::NotFound);
    db.commit_prepared("p", Durability::Buffered).unwrap();
    assert_eq!(db.prepared_changes("p", &mut |_, _| ()).unwrap_err().kind(), Kind::NotFound);
    assert_eq!(ordered.get(b"o").unwrap().as_deref(), Some(&b"w"[..]));
}

#[test]
fn a_prepared_batch_is_committed_with_more_changes() {
    let (_dir, db) = open();
    let table = db.default_table();
    let mut one = begin(&db, Concurrency::Pessimistic, Isolation::ReadCommitted);
    one.prepare("p", &batch_of(table, b"a")).unwrap();
    let mut beside = begin(&db, Concurrency::Optimistic, Isolation::Snapshot);
    let mut more = Batch::new();
    more.put(table, b"a", b"again").unwrap();
    more.put(table, b"b", b"more").unwrap();
    let mut range = Batch::new();
    range.delete_range(table, b"x", b"y").unwrap();
    assert_eq!(db.commit_prepared_with("p", &range, Durability::Buffered).unwrap_err().kind(), Kind::Invalid);
    // A transaction waits for locks of others.
    let mut holder = begin(&db, Concurrency::Pessimistic, Isolation::ReadCommitted);
    holder.lock(table, b"b", true).unwrap();
    assert_eq!(db.commit_prepared_with("p", &more, Durability::Buffered).unwrap_err().kind(), Kind::TimedOut);
    assert_eq!(db.prepared(), ["p"], "it stays prepared");
    drop(holder);
    db.commit_prepared_with("p", &more, Durability::Buffered).unwrap();
    assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"again"[..]));
    assert_eq!(db.get(b"b").unwrap().as_deref(), Some(&b"more"[..]));
    // Others see it in their checks, and its locks are free.
    assert_eq!(
        beside.commit(&batch_of(table, b"b"), Durability::Buffered).unwrap_err().kind(),
        Kind::Conflict
    );
    let mut next = begin(&db, Concurrency::Pessimistic, Isolation::ReadCommitted);
    next.lock(table, b"a", true).unwrap();
    next.lock(table, b"b", true).unwrap();
}

/// A key that was locked and not written is of the commit's change as well: a lock that others share is not
/// enough, and others see the change in their checks.
#[test]
fn more_changes_of_keys_that_were_only_locked_are_seen_by_others() {
    let (_dir, db) = open();
    let table = db.default_table();
    let mut one = begin(&db, Concurrency::Pessimistic, Isolation::ReadCommitted);
    one.lock(table, b"c", true).unwrap();
    one.lock(table, b"d", false).unwrap();
    one.prepare("p", &batch_of(table, b"a")).unwrap();
    let mut beside = begin(&db, Concurrency::Optimistic, Isolation::Snapshot);
    let mut more = Batch::new();
    more.put(table, b"c", b"more").unwrap();
    more.put(table, b"d", b"more").unwrap();
    let mut sharing = begin(&db, Concurrency::Pessimistic, Isolation::ReadCommitted);
    sharing.lock(table, b"d", false).unwrap();
    let refused = db.commit_prepared_with("p", &more, Durability::Buffered).map_err(|error| error.kind());
    assert_eq!(refused, Err(Kind::TimedOut), "another one has the shared lock, too");
    drop(sharing);
    db.commit_prepared_with("p", &more, Durability::Buffered).unwrap();
    for key in [b"c", b"d"] {
        assert_eq!(db.get(key).unwrap().as_deref(), Some(&b"more"[..]));
    }
    let refused = beside.commit(&batch_of(table, b"c"), Durability::Buffered).map_err(|error| error.kind());
    assert_eq!(refused, Err(Kind::Conflict), "the key was changed after its snapshot");
    let mut next = begin(&db, Concurrency::Pessimistic, Isolation::ReadCommitted);
    next.lock(table, b"c", true).unwrap();
    next.lock(table, b"d", true).unwrap();
}

/// Ranges that a transaction has scanned keep other transactions off, not its own changes.
#[test]
fn more_changes_may_lie_where_the_prepared_transaction_has_scanned() {
    let (_dir, db) = open();
    let table = db.default_table();
    let options = without_wait(Concurrency::Pessimistic, Isolation::Serializable);
    let mut one = db.transaction(&options).unwrap();
    assert_eq!(one.range(table, b"r".as_slice()..b"s".as_slice()).unwrap().count(), 0);
    one.put(table, b"a", b"v").unwrap();
    one.prepare("p").unwrap();
    let refused = db.put(b"r1", b"other").map_err(|error| error.kind());
    assert_eq!(refused, Err(Kind::TimedOut), "it has scanned there");
    db.commit_prepared_with("p", &batch_of(table, b"r1"), Durability::Buffered).unwrap();
    assert_eq!(db.get(b"r1").unwrap().as_deref(), Some(&b"v"[..]));
    db.put(b"r1", b"other").unwrap();
}

/// Ranges that a batch deletes and that were not announced are fenced at the commit, and stay so where it is
/// prepared.
#[test]
fn deleted_ranges_of_a_batch_keep_off_locks_of_others() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let db = Db::open(&path).unwrap();
    let table = db.default_table();
    let mut range = Batch::new();
    range.delete_range(table, b"a", b"c").unwrap();
    let mut holder = begin(&db, Concurrency::Pessimistic, Isolation::ReadCommitted);
    holder.lock(table, b"b", true).unwrap();
    let mut deleting = begin(&db, Concurrency::Pessimistic, Isolation::ReadCommitted);
    assert_eq!(deleting.commit(&range, Durability::Buffered).unwrap_err().kind(), Kind::TimedOut);
    holder.prepare("one", &batch_of(table, b"b")).unwrap();
    drop(holder);
    assert_eq!(deleting.prepare("two", &range).unwrap_err().kind(), Kind::TimedOut);
    let mut beside = Batch::new();
    beside.delete_range(table, b"x", b"z").unwrap();
    deleting.prepare("two", &beside).unwrap();
    drop(deleting);
    let mut third = begin(&db, Concurrency::Pessimistic, Isolation::ReadCommitted);
    assert_eq!(third.lock(table, b"y", true).unwrap_err().kind(), Kind::TimedOut, "a range lock stays");
    drop(third);
    db.close().unwrap();

    let db = Db::open(&path).unwrap();
    assert_eq!(db.prepared(), ["one", "two"]);
    let mut third = begin(&db, Concurrency::Pessimistic, Isolation::ReadCommitted);
    assert_eq!(third.lock(db.default_table(), b"y", true).unwrap_err().kind(), Kind::TimedOut);
    db.commit_prepared("two", Durability::Buffered).unwrap();
    third.lock(db.default_table(), b"y", true).unwrap();
    db.commit_prepared("one", Durability::Buffered).unwrap();
    assert_eq!(db.get(b"b").unwrap().as_deref(), Some(&b"v"[..]));
}

#[test]
fn deleted_ranges_of_a_batch_are_as_the_snapshot_saw_them() {
    let (_dir, db) = open();
    let table = db.default_table();
    let mut one = begin(&db, Concurrency::Pessimistic, Isolation::Snapshot);
    one.lock(table, b"z", true).unwrap();
    db.put(b"b", b"since").unwrap();
    let mut range = Batch::new();
    range.delete_range(table, b"a", b"c").unwrap();
    assert_eq!(one.commit(&range, Durability::Buffered).unwrap_err().kind(), Kind::Conflict);
    db.put(b"d", b"outside").unwrap();
    let mut other = begin(&db, Concurrency::Pessimistic, Isolation::Snapshot);
    other.lock(table, b"y", true).unwrap();
    other.commit(&range, Durability::Buffered).unwrap();
    assert_eq!((db.get(b"b").unwrap(), db.get(b"d").unwrap().is_some()), (None, true));
}
