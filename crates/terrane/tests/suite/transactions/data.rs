//! Merges, single deletes, times to live and range deletes within transactions: read back, in conflict,
//! prepared.

use std::time::Duration;

use terrane::{Concurrency, Db, Durability, Isolation, Kind, Transaction, TransactionOptions};

use crate::transactions::support::{LEVELS, MODES, open_appending, text, without_wait};

fn get(transaction: &Transaction, db: &Db, key: &str) -> Option<String> {
    transaction.get(db.default_table(), key.as_bytes()).unwrap().map(|value| text(&value))
}

fn rows(transaction: &Transaction, db: &Db) -> Vec<(String, String)> {
    let rows = transaction.range(db.default_table(), ..).unwrap();
    rows.map(|row| row.map(|(key, value)| (text(&key), text(&value))).unwrap()).collect()
}

fn row(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

fn found(db: &Db, key: &str) -> Option<String> {
    db.get(key.as_bytes()).unwrap().map(|value| text(&value))
}

/// In every mode and at every level.
fn each(case: impl Fn(&Db, &TransactionOptions)) {
    for mode in MODES {
        for level in LEVELS {
            let (_dir, db) = open_appending();
            case(&db, &without_wait(mode, level));
        }
    }
}

#[test]
fn a_transaction_folds_its_own_operands_over_what_it_sees() {
    each(|db, options| {
        let table = db.default_table();
        db.put(b"a", b"1").unwrap();
        table.merge(b"a", b"2").unwrap();
        let mut own = db.transaction(options).unwrap();
        own.merge(table, b"a", b"3").unwrap();
        own.merge(table, b"b", b"x").unwrap();
        assert_eq!((get(&own, db, "a"), get(&own, db, "b")), (Some("123".into()), Some("x".into())));
        own.set_savepoint();
        own.merge(table, b"a", b"4").unwrap();
        own.put(table, b"b", b"y").unwrap();
        own.merge(table, b"b", b"z").unwrap();
        assert_eq!(rows(&own, db), [row("a", "1234"), row("b", "yz")]);
        let many = own.multi_get(table, &["b", "none", "a"]).unwrap();
        let many: Vec<_> = many.into_iter().map(|value| value.map(|value| text(&value))).collect();
        assert_eq!(many, [Some("yz".into()), None, Some("1234".into())]);
        own.rollback_to_savepoint().unwrap();
        assert_eq!(rows(&own, db), [row("a", "123"), row("b", "x")]);
        own.delete(table, b"a").unwrap();
        own.merge(table, b"a", b"5").unwrap();
        assert_eq!(get(&own, db, "a"), Some("5".into()));
        assert_eq!(found(db, "a"), Some("12".into()), "no other reader sees it");
        own.commit(Durability::Buffered).unwrap();
        assert_eq!((found(db, "a"), found(db, "b")), (Some("5".into()), Some("x".into())));
    });
}

#[test]
fn a_transaction_sees_its_own_range_deletes() {
    each(|db, options| {
        let table = db.default_table();
        for key in ["a", "b", "c", "d"] {
            db.put(key.as_bytes(), b"old").unwrap();
        }
        let mut own = db.transaction(options).unwrap();
        own.put(table, b"b1", b"gone").unwrap();
        own.delete_range(table, b"b", b"d").unwrap();
        assert_eq!(rows(&own, db), [row("a", "old"), row("d", "old")]);
        assert_eq!((get(&own, db, "b"), get(&own, db, "b1"), get(&own, db, "c")), (None, None, None));
        own.set_savepoint();
        own.put(table, b"c", b"new").unwrap();
        own.merge(table, b"b", b"alone").unwrap();
        let mut backward = rows(&own, db);
        assert_eq!(backward, [row("a", "old"), row("b", "alone"), row("c", "new"), row("d", "old")]);
        let rev = own.range(table, ..).unwrap().rev().map(|row| text(&row.unwrap().0));
        backward.reverse();
        assert!(rev.eq(backward.into_iter().map(|(key, _)| key)));
        own.rollback_to_savepoint().unwrap();
        own.delete_range(table, b"a", b"b").unwrap();
        assert_eq!(rows(&own, db), [row("d", "old")]);
        own.put(table, b"b", b"last").unwrap();
        own.commit(Durability::Buffered).unwrap();
        let left: Vec<_> = table.iter().map(|row| text(&row.unwrap().0)).collect();
        assert_eq!(left, ["b", "d"]);
    });
}

#[test]
fn times_to_live_and_single_deletes_are_seen_as_they_will_be() {
    each(|db, options| {
        let table = db.default_table();
        db.put(b"once", b"v").unwrap();
        let mut own = db.transaction(options).unwrap();
        own.put_until(table, b"past", b"v", Duration::from_secs(1)).unwrap();
        own.put_with_ttl(table, b"future", b"v", Duration::from_secs(3600)).unwrap();
        own.single_delete(table, b"once").unwrap();
        own.merge(table, b"past", b"alone").unwrap();
        assert_eq!(rows(&own, db), [row("future", "v"), row("past", "alone")]);
        own.commit(Durability::Buffered).unwrap();
        assert_eq!((found(db, "past"), found(db, "once")), (Some("alone".into()), None));
        assert_eq!(found(db, "future"), Some("v".into()));
    });
}

/// A merge is a write: of two beside each other only one commits, but where each read sees its own moment.
#[test]
fn merges_to_one_key_are_in_conflict() {
    each(|db, options| {
        let table = db.default_table();
        let begin = || db.transaction(options).unwrap();
        let (mut one, mut two) = (begin(), begin());
        one.merge(table, b"k", b"1").unwrap();
        if options.concurrency == Concurrency::Pessimistic {
            assert_eq!(two.merge(table, b"k", b"2").unwrap_err().kind(), Kind::TimedOut);
            drop(two);
            one.commit(Durability::Buffered).unwrap();
            assert_eq!(found(db, "k"), Some("1".into()));
            return;
        }
        two.merge(table, b"k", b"2").unwrap();
        two.commit(Durability::Buffered).unwrap();
        match options.isolation {
            Isolation::ReadCommitted => {
                one.commit(Durability::Buffered).unwrap();
                assert_eq!(found(db, "k"), Some("21".into()), "none is lost");
            }
            _ => assert_eq!(one.commit(Durability::Buffered).unwrap_err().kind(), Kind::Conflict),
        }
    });
}

#[test]
fn a_range_delete_is_a_write_of_every_key_of_the_range() {
    each(|db, options| {
        let table = db.default_table();
        let mut own = db.transaction(options).unwrap();
        own.delete_range(table, b"b", b"d").unwrap();
        let mut other = db.transaction(options).unwrap();
        other.put(table, b"d", b"outside").unwrap();
        if options.concurrency == Concurrency::Pessimistic {
            assert_eq!(other.put(table, b"c", b"v").unwrap_err().kind(), Kind::TimedOut);
            assert_eq!(other.get_for_update(table, b"b", false).unwrap_err().kind(), Kind::TimedOut);
            other.commit(Durability::Buffered).unwrap();
            own.put(table, b"c", b"own").unwrap();
            own.commit(Durability::Buffered).unwrap();
            db.put(b"b", b"free").unwrap();
            assert_eq!(found(db, "c"), Some("own".into()));
            return;
        }
        other.put(table, b"c", b"v").unwrap();
        other.commit(Durability::Buffered).unwrap();
        let committed = own.commit(Durability::Buffered);
        match options.isolation {
            Isolation::ReadCommitted => {
                committed.unwrap();
                assert_eq!(found(db, "c"), None);
            }
            _ => assert_eq!(committed.unwrap_err().kind(), Kind::Conflict),
        }
    });
}

#[test]
fn a_read_is_in_conflict_with_a_range_delete_of_another_transaction() {
    for concurrency in MODES {
        let (_dir, db) = open_appending();
        let (table, options) = (db.default_table(), without_wait(concurrency, Isolation::Serializable));
        db.put(b"c", b"v").unwrap();
        let mut scans = db.transaction(&options).unwrap();
        assert_eq!(scans.range(table, b"b".as_slice()..b"e".as_slice()).unwrap().count(), 1);
        let mut deletes = db.transaction(&options).unwrap();
        deletes.delete_range(table, b"a", b"d").unwrap();
        deletes.commit(Durability::Buffered).unwrap();
        scans.put(table, b"x", b"one was there").unwrap();
        assert_eq!(scans.commit(Durability::Buffered).unwrap_err().kind(), Kind::Conflict, "{concurrency:?}");
        // And the other way round: a pessimistic reader's lock holds the range delete up.
        let reads = db.transaction(&options).unwrap();
        reads.get(table, b"q").unwrap();
        let mut deletes = db.transaction(&options).unwrap();
        let refused = deletes.delete_range(table, b"p", b"r");
        match concurrency {
            Concurrency::Pessimistic => assert_eq!(refused.unwrap_err().kind(), Kind::TimedOut),
            Concurrency::Optimistic => deletes.commit(Durability::Buffered).map(drop).unwrap(),
        }
        drop(reads);
    }
}

/// A deadlock through a range lock is found, and its cycle is named.
#[test]
fn a_deadlock_through_a_range_lock_is_found() {
    let (_dir, db) = open_appending();
    let table = db.default_table();
    let options = TransactionOptions {
        concurrency: Concurrency::Pessimistic,
        lock_timeout: Duration::from_secs(600),
        ..TransactionOptions::default()
    };
    let (mut one, mut two) = (db.transaction(&options).unwrap(), db.transaction(&options).unwrap());
    let ids = [one.id(), two.id()];
    one.put(table, b"x", b"1").unwrap();
    two.delete_range(table, b"b", b"d").unwrap();
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(move || one.put(table, b"c", b"1").map(|()| drop(one)));
        let second = two.put(table, b"x", b"2");
        drop(two);
        (first.join().unwrap(), second)
    });
    let refused: Vec<_> = [first, second].into_iter().filter_map(Result::err).collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0].kind(), Kind::Deadlock);
    let mut waiters: Vec<_> = refused[0].cycle().iter().map(|edge| edge.waiter).collect();
    waiters.sort_unstable();
    assert_eq!(waiters, ids);
}

/// Prepared, they survive a reopening, and their range stays fenced until they are resolved.
#[test]
fn a_prepared_transaction_keeps_its_changes_and_ranges() {
    for concurrency in MODES {
        for commits in [true, false] {
            let (dir, db) = open_appending();
            for key in ["b", "c"] {
                db.put(key.as_bytes(), b"old").unwrap();
            }
            let mut own = db.transaction(&without_wait(concurrency, Isolation::Serializable)).unwrap();
            let table = db.default_table();
            own.delete_range(table, b"a", b"c").unwrap();
            own.merge(table, b"c", b"+new").unwrap();
            own.put_until(table, b"past", b"v", Duration::from_secs(1)).unwrap();
            own.prepare("it").unwrap();
            let is_fenced = |db: &Db| {
                let mut other = db.transaction(&without_wait(concurrency, Isolation::Snapshot)).unwrap();
                let written = other
                    .put(db.default_table(), b"b", b"v")
                    .and_then(|()| other.commit(Durability::Buffered));
                assert_eq!(written.unwrap_err().kind(), Kind::TimedOut, "{concurrency:?}");
            };
            is_fenced(&db);
            db.close().unwrap();
            let db = crate::transactions::support::reopen_appending(&dir);
            is_fenced(&db);
            match commits {
                true => drop(db.commit_prepared("it", Durability::Buffered).unwrap()),
                false => db.rollback_prepared("it").unwrap(),
            }
            let old = || Some("old".to_owned());
            let expected = if commits { (None, Some("old+new".to_owned())) } else { (old(), old()) };
            assert_eq!((found(&db, "b"), found(&db, "c")), expected);
            assert_eq!(found(&db, "past"), None);
            db.put(b"b", b"free").unwrap();
        }
    }
}

#[test]
fn misuse_has_its_answers() {
    let (_dir, db) = crate::transactions::support::open();
    let mut own = db.transaction(&TransactionOptions::default()).unwrap();
    let table = db.default_table();
    assert_eq!(own.merge(table, b"k", b"v").unwrap_err().kind(), Kind::Invalid, "no operator");
    assert_eq!(own.delete_range(table, b"b", b"b").unwrap_err().kind(), Kind::Invalid);
    assert_eq!(own.delete_range(table, b"b", b"a").unwrap_err().kind(), Kind::Invalid);
    let none = own.put_with_ttl(table, b"k", b"v", Duration::ZERO);
    assert_eq!(none.unwrap_err().kind(), Kind::Invalid);
    assert!(own.changes().is_empty());
    let narrow = TransactionOptions { keys_max: 1, ..TransactionOptions::default() };
    let mut own = db.transaction(&narrow).unwrap();
    own.delete_range(table, b"a", b"b").unwrap();
    assert_eq!(own.delete_range(table, b"c", b"d").unwrap_err().kind(), Kind::Full);
}
