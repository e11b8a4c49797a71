//! A read of keys alone, or of whether there is a row, reads no separated value.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test, on files of its own")]

use std::path::Path;

use terrane::{Db, Durability, KeyCursor, Options, ReadCounters, TransactionOptions, read_counters};

const KEYS: u64 = 500;

fn open(path: &Path) -> Db {
    let mut options = Options { memory_bytes: 16 << 20, ..Options::default() };
    for (name, value) in
        [("memtable_bytes", "128KiB"), ("merge_operator", "append"), ("value_separation_bytes", "100")]
    {
        options.set(name, value).unwrap();
    }
    Db::open_with(path, &options).unwrap()
}

fn key(number: u64) -> Vec<u8> {
    format!("key-{number:05}").into_bytes()
}

fn value(number: u64) -> Vec<u8> {
    vec![number as u8; 200 + number as usize]
}

/// A database whose values are all separated, with nothing in its cache. Every tenth key was deleted.
fn cold(path: &Path) -> (Db, Vec<Vec<u8>>) {
    let db = open(path);
    (0..KEYS).for_each(|number| db.put(key(number), value(number)).unwrap());
    db.flush().unwrap();
    (0..KEYS).step_by(10).for_each(|number| db.delete(key(number)).unwrap());
    db.flush().unwrap();
    db.close().unwrap();
    (open(path), (0..KEYS).filter(|number| number % 10 != 0).map(key).collect())
}

/// The reads that `read` counts on this thread.
fn counted<T>(read: impl FnOnce() -> T) -> (T, ReadCounters) {
    let before = read_counters();
    let done = read();
    (done, read_counters() - before)
}

/// The result of `read`, which reads no separated value.
#[track_caller]
fn without_values<T>(read: impl FnOnce() -> T) -> T {
    let (done, read) = counted(read);
    assert_eq!((read.values_followed, read.value_batches), (0, 0), "{read:?}");
    done
}

fn walk(cursor: &mut KeyCursor, backward: bool) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    while let Some(key) = cursor.key() {
        keys.push(key.to_vec());
        if backward { cursor.prev().unwrap() } else { cursor.next().unwrap() }
    }
    keys
}

#[test]
fn a_read_of_keys_goes_to_no_value() {
    let dir = tempfile::tempdir().unwrap();
    let (db, keys) = cold(&dir.path().join("db"));
    let table = db.default_table();
    let backward: Vec<_> = keys.iter().rev().cloned().collect();
    assert_eq!(without_values(|| table.iter().keys().collect::<terrane::Result<Vec<_>>>().unwrap()), keys);
    let reversed = without_values(|| table.iter().keys().rev().collect::<terrane::Result<Vec<_>>>().unwrap());
    assert_eq!(reversed, backward);
    assert_eq!(without_values(|| table.range(key(100)..key(200)).count()), 90);
    let rows = without_values(|| table.iter().without_values().nth(7).unwrap().unwrap());
    assert_eq!(rows, (keys[7].clone(), Vec::new()));
    for number in 0..KEYS {
        let is_there = without_values(|| table.contains(key(number)).unwrap());
        assert_eq!(is_there, number % 10 != 0, "key {number}");
        assert_eq!(without_values(|| db.snapshot().contains(table, key(number)).unwrap()), is_there);
    }
    let mut cursor = table.cursor().keys();
    without_values(|| cursor.seek_first().unwrap());
    assert_eq!(without_values(|| walk(&mut cursor, false)), keys);
    without_values(|| cursor.seek_last().unwrap());
    assert_eq!(without_values(|| walk(&mut cursor, true)), backward);
    // The same reads, with values, do go to them: the counter tells.
    let (rows, read) = counted(|| table.iter().fold(0, |count, row| count + usize::from(row.is_ok())));
    assert_eq!((rows, read.values_followed), (keys.len(), keys.len() as u64));
}

#[test]
fn a_value_is_read_when_it_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let (db, keys) = cold(&dir.path().join("db"));
    let table = db.default_table();
    let mut cursor = table.cursor().keys();
    for (number, backward) in [(11, false), (257, true), (499, false), (1, true), (33, false)] {
        let sought = without_values(|| match backward {
            false => cursor.seek(key(number)),
            true => cursor.seek_back(key(number)),
        });
        sought.unwrap();
        assert_eq!(cursor.key(), Some(&*key(number)));
        let (value_read, read) = counted(|| cursor.value().unwrap().unwrap().to_vec());
        assert_eq!((value_read, read.values_followed), (value(number), 1));
        // It stays at its row, and goes on without values.
        assert_eq!(without_values(|| cursor.value().unwrap().unwrap().to_vec()), value(number));
        let rest = without_values(|| walk(&mut cursor, backward));
        let at = keys.iter().position(|other| *other == key(number)).unwrap();
        assert_eq!(rest.len(), if backward { at + 1 } else { keys.len() - at });
    }
    // Rows that are passed by are not read, the one behind them is.
    for is_reverse in [false, true] {
        let mut rows = table.iter();
        let (row, read) = counted(|| if is_reverse { rows.nth_back(20) } else { rows.nth(20) });
        let expected = if is_reverse { &keys[keys.len() - 21] } else { &keys[20] };
        let (found, value_read) = row.unwrap().unwrap();
        assert_eq!((&found, read.values_followed), (expected, 1));
        assert_eq!(Some(value_read), table.get(&found).unwrap().map(|value| value.to_vec()));
        assert_eq!(rows.count(), keys.len() - 21);
    }
    assert!(table.iter().nth(keys.len()).is_none());
}

#[test]
fn deletes_and_conflict_checks_go_to_no_value() {
    let dir = tempfile::tempdir().unwrap();
    let (db, keys) = cold(&dir.path().join("db"));
    let table = db.default_table();
    without_values(|| {
        let mut transaction = db.transaction(&TransactionOptions::default()).unwrap();
        transaction.put(table, key(3), "new").unwrap();
        transaction.merge(table, key(5), "more").unwrap();
        transaction.delete(table, key(7)).unwrap();
        transaction.commit(Durability::Buffered).unwrap();
        table.delete_range(key(300), key(400)).unwrap();
    });
    let left = keys.len() - 90 - 1;
    assert_eq!(without_values(|| table.range(key(6)..).count()), left - 5);
    assert!(without_values(|| !table.contains(key(350)).unwrap() && !table.contains(key(7)).unwrap()));
    // Below an operand the value counts.
    let (is_there, read) = counted(|| table.contains(key(5)).unwrap());
    assert!(is_there && read.values_followed == 1, "{read:?}");
}

#[test]
fn keys_of_a_transaction_go_to_values_below_operands_only() {
    let dir = tempfile::tempdir().unwrap();
    let (db, keys) = cold(&dir.path().join("db"));
    let table = db.default_table();
    let mut transaction = db.transaction(&TransactionOptions::default()).unwrap();
    transaction.put(table, key(3), "new").unwrap();
    transaction.put(table, key(10), "new").unwrap();
    transaction.delete(table, key(7)).unwrap();
    let all = || transaction.range(table, ..).unwrap().keys().collect::<terrane::Result<Vec<_>>>().unwrap();
    let found = without_values(all);
    let mut expected: Vec<_> = keys.iter().filter(|other| **other != key(7)).cloned().collect();
    expected.push(key(10));
    expected.sort();
    assert_eq!(found, expected);
    let back = transaction.range(table, ..).unwrap().keys().rev().collect::<terrane::Result<Vec<_>>>();
    assert!(back.unwrap().iter().eq(expected.iter().rev()));
    transaction.merge(table, key(5), "more").unwrap();
    let (rows, read) = counted(|| transaction.range(table, ..).unwrap().keys().count());
    assert_eq!((rows, read.values_followed), (expected.len(), 1), "{read:?}");
}
