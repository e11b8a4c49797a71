//! Transactions: locks, conflicts, limits, errors. By topic: `transactions/`.

#![allow(unreachable_pub, reason = "the modules are parts of one test")]
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test, which may start threads")]

#[path = "transactions/bare.rs"]
mod bare;
#[path = "transactions/data.rs"]
mod data;
#[path = "transactions/elle.rs"]
mod elle;
#[path = "../../examples/transactions.rs"]
#[allow(dead_code, reason = "its `main` is run here")]
mod example;
#[path = "transactions/hermitage.rs"]
mod hermitage;
#[path = "transactions/history.rs"]
mod history;
#[path = "transactions/indexed.rs"]
mod indexed;
#[path = "transactions/prepared.rs"]
mod prepared;
#[path = "transactions/random.rs"]
mod random;
#[path = "transactions/support.rs"]
mod support;

use std::time::Duration;

use support::{MODES, open, without_wait};
use terrane::{Batch, Concurrency, Db, Durability, Isolation, Kind, Options, TransactionOptions};

fn pessimistic(lock_timeout: Duration) -> TransactionOptions {
    TransactionOptions { concurrency: Concurrency::Pessimistic, lock_timeout, ..Default::default() }
}

#[test]
fn the_example_runs() {
    example::main().unwrap();
}

#[test]
fn locks_exclude_each_other() {
    let (_dir, db) = open();
    let table = db.default_table();
    let begin = || db.transaction(&pessimistic(Duration::ZERO)).unwrap();
    let (mut one, mut two) = (begin(), begin());
    one.put(table, b"k", b"1").unwrap();
    let error = two.put(table, b"k", b"2").unwrap_err();
    assert_eq!(error.kind(), Kind::TimedOut);
    assert!(error.message().contains("\"k\"") && error.message().contains(&one.id().to_string()), "{error}");
    assert_eq!(two.get(table, b"k").unwrap_err().kind(), Kind::TimedOut, "serializable reads lock");
    one.rollback();
    two.put(table, b"k", b"2").unwrap();
    two.commit(Durability::Buffered).unwrap();
    let (one, mut two) = (begin(), begin());
    one.get_for_update(table, b"k", false).unwrap();
    two.get_for_update(table, b"k", false).unwrap();
    assert_eq!(two.put(table, b"k", b"3").unwrap_err().kind(), Kind::TimedOut, "one still holds it");
    drop(one);
    two.put(table, b"k", b"3").unwrap();
    two.commit(Durability::Buffered).unwrap();
    assert_eq!(db.get(b"k").unwrap().as_deref(), Some(&b"3"[..]));
}

#[test]
fn a_deadlock_names_its_cycle() {
    let (_dir, db) = open();
    let table = db.default_table();
    // A transaction that waited for the holder must not be refused for another reason after the holder's
    // commit.
    let isolation = Isolation::ReadCommitted;
    let options = TransactionOptions { isolation, ..pessimistic(Duration::from_secs(600)) };
    let keys: [&[u8]; 3] = [b"a", b"b", b"c"];
    let mut transactions: Vec<_> = keys.iter().map(|_| db.transaction(&options).unwrap()).collect();
    for (transaction, key) in transactions.iter_mut().zip(keys) {
        transaction.put(table, key, b"own").unwrap();
    }
    let mut ids: Vec<u64> = transactions.iter().map(terrane::Transaction::id).collect();
    // Each wants the key of the next one; the last to ask is refused, and the others go on one after the
    // other.
    let ends: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = transactions
            .into_iter()
            .enumerate()
            .map(|(index, mut transaction)| {
                let next = keys[(index + 1) % keys.len()];
                scope.spawn(move || {
                    transaction.put(table, next, b"next")?;
                    transaction.commit(Durability::Buffered)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let errors: Vec<_> = ends.into_iter().filter_map(Result::err).collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].kind(), Kind::Deadlock);
    let cycle = errors[0].cycle();
    let mut waiters: Vec<u64> = cycle.iter().map(|edge| edge.waiter).collect();
    for (edge, next) in cycle.iter().zip(cycle.iter().cycle().skip(1)) {
        assert_eq!((edge.holder, edge.table.as_str()), (next.waiter, "default"));
    }
    let mut named: Vec<&[u8]> = cycle.iter().map(|edge| edge.key.as_slice()).collect();
    waiters.sort_unstable();
    named.sort_unstable();
    ids.sort_unstable();
    assert_eq!((waiters, named), (ids, keys.to_vec()));
    assert!(errors[0].message().contains("\"a\""), "{}", errors[0]);
}

#[test]
fn plain_writes_are_seen_and_wait() {
    let (_dir, db) = open();
    let table = db.default_table();
    let mut reader = db.transaction(&TransactionOptions::default()).unwrap();
    reader.get(table, b"k").unwrap();
    reader.put(table, b"other", b"v").unwrap();
    db.put(b"k", b"plain").unwrap();
    let error = reader.commit(Durability::Buffered).unwrap_err();
    assert_eq!(error.kind(), Kind::Conflict);
    assert!(error.message().contains("\"k\""), "{error}");
    let mut owner = db.transaction(&pessimistic(Duration::ZERO)).unwrap();
    owner.put(table, b"k", b"owner").unwrap();
    assert_eq!(db.put(b"k", b"too early").unwrap_err().kind(), Kind::TimedOut);
    // It waits as long as the owner takes; by itself a plain write gives up after a second.
    let mut batch = Batch::new();
    batch.put(table, b"k", b"plain").unwrap();
    std::thread::scope(|scope| {
        let plain = scope.spawn(|| db.write_with_deadline(&batch, Durability::Buffered, Duration::MAX));
        owner.commit(Durability::Buffered).unwrap();
        plain.join().unwrap().unwrap();
    });
    assert_eq!(db.get(b"k").unwrap().as_deref(), Some(&b"plain"[..]));
}

#[test]
fn range_deletes_conflict_with_what_was_read_or_written() {
    let (_dir, db) = open();
    let table = db.default_table();
    let rows = || {
        for key in [b"a", b"c", b"e"] {
            db.put(key, b"1").unwrap();
        }
    };
    let serializable = without_wait(Concurrency::Optimistic, Isolation::Serializable);
    let steps: [fn(&mut terrane::Transaction, &terrane::Table); 3] = [
        |running, table| drop(running.get(table, b"c").unwrap()),
        |running, table| running.put(table, b"c", b"2").unwrap(),
        |running, table| assert_eq!(running.range(table, &b"d"[..]..).unwrap().count(), 1),
    ];
    for step in steps {
        rows();
        let mut running = db.transaction(&serializable).unwrap();
        step(&mut running, table);
        running.put(table, b"z", b"").unwrap();
        table.delete_range(b"b", b"f").unwrap();
        assert_eq!(running.commit(Durability::Buffered).unwrap_err().kind(), Kind::Conflict);
    }
    rows();
    let mut running = db.transaction(&serializable).unwrap();
    running.put(table, b"c", b"2").unwrap();
    assert_eq!(running.range(table, &b"d"[..]..).unwrap().count(), 1);
    table.delete_range(b"a", b"c").unwrap();
    running.commit(Durability::Buffered).unwrap();
    assert_eq!(table.get(b"c").unwrap().as_deref(), Some(&b"2"[..]), "the range ended before it");
}

#[test]
fn a_delete_of_a_range_waits_for_locks_in_it() {
    let (_dir, db) = open();
    let table = db.default_table();
    let mut running = db.transaction(&pessimistic(Duration::from_secs(20))).unwrap();
    running.put(table, b"k", b"mine").unwrap();
    let refused = table.delete_range(b"a", b"z").unwrap_err();
    assert_eq!(refused.kind(), Kind::TimedOut, "{refused}");
    assert!(refused.message().contains("locked by transaction"), "{refused}");
    table.delete_range(b"l", b"z").unwrap();
    let mut batch = Batch::new();
    batch.delete_range(table, b"a", b"z").unwrap();
    std::thread::scope(|scope| {
        let deletes = scope.spawn(|| db.write_with_deadline(&batch, Durability::Buffered, Duration::MAX));
        running.commit(Durability::Buffered).unwrap();
        deletes.join().unwrap().unwrap();
    });
    assert!(table.get(b"k").unwrap().is_none(), "the delete waited for the lock");
}

#[test]
fn batches_that_replace_a_range_wait_for_each_other() {
    let (_dir, db) = open();
    let table = db.default_table();
    // As long as it lives all writes take locks; the longest timeout that there is is not too long.
    let long_wait = TransactionOptions { lock_timeout: Duration::MAX, ..TransactionOptions::default() };
    let mut running = db.transaction(&long_wait).unwrap();
    running.put(table, b"zz", b"").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let db = &db;
            scope.spawn(move || {
                for number in 0..50u8 {
                    let mut batch = Batch::new();
                    batch.delete_range(db.default_table(), b"a", b"z").unwrap();
                    batch.put(db.default_table(), b"m", [thread, number]).unwrap();
                    batch.put(db.default_table(), [b'n', thread], b"").unwrap();
                    db.write_with_deadline(&batch, Durability::Buffered, Duration::MAX).unwrap();
                }
            });
        }
    });
    assert_eq!(table.iter().count(), 2, "one batch was the last");
    running.commit(Durability::Buffered).unwrap();
    assert_eq!(table.iter().count(), 3);
}

#[test]
fn a_transaction_that_waited_for_its_first_lock_sees_what_the_holder_wrote() {
    let (_dir, db) = open();
    let table = db.default_table();
    let mut late = db.transaction(&pessimistic(Duration::ZERO)).unwrap();
    db.put(b"k", b"1").unwrap();
    assert_eq!(late.get_for_update(table, b"k", true).unwrap().as_deref(), Some(&b"1"[..]));
    late.put(table, b"k", b"2").unwrap();
    late.commit(Durability::Buffered).unwrap();
    // A transaction that has read something stays at that moment.
    let mut early = db.transaction(&pessimistic(Duration::ZERO)).unwrap();
    early.get(table, b"other").unwrap();
    db.put(b"k", b"3").unwrap();
    assert_eq!(early.put(table, b"k", b"4").unwrap_err().kind(), Kind::Conflict);
}

#[test]
fn a_transaction_older_than_the_window_is_too_old() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { memory_bytes: 16 << 20, write_memory_bytes: 4 << 20, ..Options::default() };
    let db = Db::open_with(dir.path().join("db"), &options).unwrap();
    let table = db.default_table();
    let mut old = db.transaction(&TransactionOptions::default()).unwrap();
    let only_reads = db.transaction(&TransactionOptions::default()).unwrap();
    old.get(table, b"k").unwrap();
    old.put(table, b"own", b"v").unwrap();
    only_reads.get(table, b"k").unwrap();
    for number in 0..40u32 {
        let mut batch = Batch::new();
        for part in 0..100u32 {
            batch.put(table, (number * 100 + part).to_be_bytes(), b"v").unwrap();
        }
        db.write(&batch, Durability::Buffered).unwrap();
    }
    assert_eq!(old.commit(Durability::Buffered).unwrap_err().kind(), Kind::TooOld);
    only_reads.commit(Durability::Buffered).unwrap();
    let mut new = db.transaction(&TransactionOptions::default()).unwrap();
    new.get(table, b"k").unwrap();
    new.put(table, b"own", b"v").unwrap();
    new.commit(Durability::Buffered).unwrap();
}

#[test]
fn a_part_of_a_range_is_checked_as_far_as_it_was_seen() {
    let (_dir, db) = open();
    let table = db.default_table();
    for key in [b"b", b"d", b"f", b"h"] {
        db.put(key, b"v").unwrap();
    }
    // Two rows from the front, one from the back: rows between `d` and `h` were not seen.
    for (key, conflicts) in
        [("a", true), ("c", true), ("d", true), ("e", false), ("g", false), ("h", true), ("z", true)]
    {
        let mut scanner = db.transaction(&TransactionOptions::default()).unwrap();
        {
            let mut rows = scanner.range(table, ..).unwrap();
            assert!(rows.next().is_some() && rows.next().is_some() && rows.next_back().is_some());
        }
        scanner.put(table, b"result", b"v").unwrap();
        let before = db.get(key.as_bytes()).unwrap();
        db.put(key.as_bytes(), b"new").unwrap();
        assert_eq!(scanner.commit(Durability::Buffered).is_err(), conflicts, "{key}");
        if before.is_none() {
            db.delete(key.as_bytes()).unwrap();
        }
        db.delete(b"result").unwrap();
    }
}

#[test]
fn limits_and_misuse_have_their_answers() {
    let ((dir, db), (_other_dir, other)) = (open(), open());
    let table = db.default_table();
    for mode in MODES {
        let options =
            TransactionOptions { keys_max: 2, bytes_max: 1 << 10, ..without_wait(mode, Isolation::Snapshot) };
        let mut small = db.transaction(&options).unwrap();
        small.put(table, b"1", b"v").unwrap();
        assert_eq!(small.put(table, b"2", [0; 2 << 10]).unwrap_err().kind(), Kind::Full);
        let kind = (0..3u8).find_map(|key| small.put(table, [key], b"v").err()).map(|error| error.kind());
        assert_eq!(kind, Some(Kind::Full), "{mode:?}");
        assert_eq!(small.put(other.default_table(), b"k", b"v").unwrap_err().kind(), Kind::Invalid);
        assert_eq!(small.get(other.default_table(), b"k").unwrap_err().kind(), Kind::Invalid);
        assert_eq!(small.put(table, vec![0; 65 << 10], b"v").unwrap_err().kind(), Kind::Invalid);
        assert_eq!(small.rollback_to_savepoint().unwrap_err().kind(), Kind::Invalid);
    }
    let gone = db.table_or_create("gone").unwrap();
    let mut transaction = db.transaction(&TransactionOptions::default()).unwrap();
    transaction.put(&gone, b"k", b"v").unwrap();
    db.drop_table("gone").unwrap();
    assert_eq!(transaction.get(&gone, b"k").unwrap_err().kind(), Kind::NotFound);
    assert_eq!(transaction.commit(Durability::Buffered).unwrap_err().kind(), Kind::NotFound);
    let begun = db.transaction(&TransactionOptions::default()).unwrap();
    db.clone().close().unwrap();
    assert_eq!(db.transaction(&TransactionOptions::default()).unwrap_err().kind(), Kind::Cancelled);
    drop((begun, db));
    let options = Options { read_only: true, ..Options::default() };
    let db = Db::open_with(dir.path().join("db"), &options).unwrap();
    assert_eq!(db.transaction(&TransactionOptions::default()).unwrap_err().kind(), Kind::Invalid);
}

#[test]
fn transactions_read_their_own_writes_and_take_them_back() {
    for mode in MODES {
        let (_dir, db) = open();
        let table = db.default_table();
        db.put(b"a", b"0").unwrap();
        let mut transaction = db.transaction(&without_wait(mode, Isolation::Serializable)).unwrap();
        transaction.put(table, b"b", b"1").unwrap();
        transaction.set_savepoint();
        transaction.delete(table, b"a").unwrap();
        transaction.put(table, b"c", b"2").unwrap();
        let values = transaction.multi_get(table, &[b"a", b"b", b"c", b"d"]).unwrap();
        let values: Vec<_> = values.iter().map(|value| value.as_deref()).collect();
        assert_eq!(values, [None, Some(&b"1"[..]), Some(&b"2"[..]), None]);
        let keys: Vec<_> = transaction.range(table, ..).unwrap().rev().map(|row| row.unwrap().0).collect();
        assert_eq!(keys, [b"c", b"b"]);
        transaction.rollback_to_savepoint().unwrap();
        let keys: Vec<_> = transaction.prefix(table, b"").unwrap().map(|row| row.unwrap().0).collect();
        assert_eq!(keys, [b"a", b"b"]);
        let seq = transaction.commit(Durability::Synced).unwrap();
        assert_eq!(seq, db.snapshot().seq());
        assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"0"[..]));
        assert!(db.get(b"c").unwrap().is_none());
    }
}

#[test]
fn transact_retries_until_every_count_is_committed() {
    for mode in MODES {
        let (_dir, db) = open();
        let options = TransactionOptions { concurrency: mode, ..Default::default() };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        db.transact(&options, Durability::Buffered, u32::MAX, |transaction| {
                            let table = db.default_table();
                            let count = transaction.get_for_update(table, b"n", true)?;
                            let count =
                                count.map_or(0, |value| u32::from_le_bytes(value[..].try_into().unwrap()));
                            transaction.put(table, b"n", (count + 1).to_le_bytes())
                        })
                        .unwrap();
                    }
                });
            }
        });
        assert_eq!(db.get(b"n").unwrap().as_deref(), Some(&400u32.to_le_bytes()[..]), "{mode:?}");
    }
}

#[test]
fn transactions_are_counted() {
    let (_dir, db) = open();
    let table = db.default_table();
    let mut loser = db.transaction(&TransactionOptions::default()).unwrap();
    loser.get(table, b"k").unwrap();
    loser.put(table, b"k", b"late").unwrap();
    let mut winner = db.transaction(&pessimistic(Duration::ZERO)).unwrap();
    winner.put(table, b"k", b"v").unwrap();
    let mut third = db.transaction(&pessimistic(Duration::ZERO)).unwrap();
    third.put(table, b"k", b"v").unwrap_err();
    assert_eq!(db.stats().transactions_live, 3);
    drop(third);
    winner.commit(Durability::Buffered).unwrap();
    assert!(db.stats().transaction_window_bytes > 0, "the loser does not see it");
    loser.commit(Durability::Buffered).unwrap_err();
    db.transaction(&TransactionOptions::default()).unwrap().prepare("one").unwrap();
    let stats = db.stats();
    assert_eq!((stats.transactions_begun, stats.transactions_committed), (4, 1));
    assert_eq!(
        (stats.transaction_conflicts, stats.transaction_timeouts, stats.transaction_deadlocks),
        (1, 1, 0)
    );
    assert_eq!((stats.transactions_live, stats.transactions_prepared), (1, 1));
    db.commit_prepared("one", Durability::Buffered).unwrap();
    let stats = db.stats();
    assert_eq!(
        (stats.transactions_committed, stats.transactions_live, stats.transactions_prepared),
        (2, 0, 0)
    );
    assert_eq!(stats.transaction_window_bytes, 0);
}
