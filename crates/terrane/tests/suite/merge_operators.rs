//! Merges through the public face: every way of reading, every place where operands lie, operators that fail.
#[path = "merge_operators/refused.rs"]
mod refused;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use terrane::{
    Batch, Db, Kind, MergeOperator, MergeOperators, Options, Result, Table, TableOptions, counter,
};

fn options() -> Options {
    let mut options = Options { memory_bytes: 16 << 20, ..Options::default() };
    for (name, value) in [
        ("segment_bytes", "64KiB"),
        ("memtable_bytes", "64KiB"),
        ("global_index_bytes", "256KiB"),
        ("level_base_bytes", "64KiB"),
        ("block_bytes", "1KiB"),
    ] {
        options.set(name, value).unwrap();
    }
    options
}

fn table(db: &Db, operator: &str) -> Table {
    db.create_table("t", &TableOptions::new().set("merge_operator", operator).unwrap()).unwrap()
}

fn count(bytes: &[u8]) -> i64 {
    counter::decode(bytes).unwrap()
}

/// Every way of reading gives the same sum for each key.
fn check(table: &Table, expected: &[(Vec<u8>, i64)]) {
    let keys: Vec<&[u8]> = expected.iter().map(|(key, _)| key.as_slice()).collect();
    for ((key, sum), value) in expected.iter().zip(table.multi_get(&keys).unwrap()) {
        assert_eq!(count(&value.unwrap()), *sum, "multi_get {key:?}");
        assert_eq!(count(&table.get(key).unwrap().unwrap()), *sum, "get {key:?}");
        assert_eq!(count(&table.without_filters().get(key).unwrap().unwrap()), *sum, "get without filters");
    }
    let rows = |rows: Vec<Result<terrane::Row>>| -> Vec<(Vec<u8>, i64)> {
        rows.into_iter().map(|row| row.map(|(key, value)| (key, count(&value))).unwrap()).collect()
    };
    assert_eq!(rows(table.iter().collect()), expected, "forward");
    let mut backward = rows(table.iter().rev().collect());
    backward.reverse();
    assert_eq!(backward, expected, "backward");
    let mut cursor = table.cursor();
    for (at, (key, sum)) in expected.iter().enumerate() {
        cursor.seek(key).unwrap();
        assert_eq!(cursor.row().map(|(key, value)| (key.to_vec(), count(value))), Some((key.clone(), *sum)));
        cursor.prev().unwrap();
        let before = at.checked_sub(1).map(|at| expected[at].clone());
        assert_eq!(cursor.row().map(|(key, value)| (key.to_vec(), count(value))), before, "turn back");
        cursor.seek_back(key).unwrap();
        cursor.next().unwrap();
        let after = expected.get(at + 1).cloned();
        assert_eq!(cursor.row().map(|(key, value)| (key.to_vec(), count(value))), after, "turn forward");
    }
}

#[test]
fn every_way_of_reading_folds_in_every_place() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path().join("db"), &options()).unwrap();
    let table = table(&db, "counter");
    let key = |number: u32| format!("key{number:04}").into_bytes();
    let mut sums = vec![0i64; 300];
    let mut snapshots = Vec::new();
    for round in 0..12i64 {
        for (number, sum) in sums.iter_mut().enumerate() {
            let number = number as u32;
            match (i64::from(number) + round) % 5 {
                0 => {
                    table.put(key(number), counter::encode(round)).unwrap();
                    *sum = round;
                }
                1 if round > 0 => {
                    table.delete(key(number)).unwrap();
                    table.merge(key(number), counter::encode(7)).unwrap();
                    *sum = 7;
                }
                more => {
                    for _ in 0..=more {
                        table.merge(key(number), counter::encode(round + 1)).unwrap();
                    }
                    *sum += (round + 1) * (more + 1);
                }
            }
        }
        let expected: Vec<_> =
            sums.iter().enumerate().map(|(number, sum)| (key(number as u32), *sum)).collect();
        check(&table, &expected);
        if round % 3 == 1 {
            snapshots.push((db.snapshot(), expected.clone()));
        }
        match round % 4 {
            1 => db.flush().unwrap(),
            2 => db.flush_to_run(&table).unwrap(),
            3 => db.compact_range(&table, ..).unwrap(),
            _ => {}
        }
        check(&table, &expected);
        for (snapshot, expected) in &snapshots {
            for (key, sum) in expected {
                assert_eq!(count(&snapshot.get(&table, key).unwrap().unwrap()), *sum, "snapshot {key:?}");
            }
            assert_eq!(snapshot.iter(&table).count(), expected.len());
            assert_eq!(snapshot.iter(&table).rev().count(), expected.len());
        }
    }
    assert!(db.stats().operands_folded > 0);
    drop(snapshots);
    db.compact_range(&table, ..).unwrap();
    let before = terrane::read_counters();
    check(&table, &sums.iter().enumerate().map(|(n, sum)| (key(n as u32), *sum)).collect::<Vec<_>>());
    assert_eq!((terrane::read_counters() - before).operands_resolved, 0, "all were folded in the bottom");
}

/// A cursor that was made before a flush goes on beside readers of what the flush folded.
#[test]
fn readers_of_an_old_read_view_continue() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options();
    options.set("memtable_bytes", "1MiB").unwrap();
    options.set("global_index_bytes", "1MiB").unwrap();
    let db = Db::open_with(dir.path().join("db"), &options).unwrap();
    let table = table(&db, "counter");
    let key = |number: u32| format!("key{number:04}").into_bytes();
    for number in 0..100 {
        table.put(key(number), counter::encode(100)).unwrap();
    }
    db.compact_range(&table, ..).unwrap();
    for _ in 0..5 {
        for number in 0..100 {
            table.merge(key(number), counter::encode(1)).unwrap();
        }
    }
    let expected: Vec<_> = (0..100).map(|number| (key(number), 105)).collect();
    let mut cursor = table.cursor();
    cursor.seek(key(50)).unwrap();
    assert_eq!(count(cursor.row().unwrap().1), 105);
    db.flush().unwrap();
    // The old read view continues; a new one sees the folded value.
    cursor.prev().unwrap();
    assert_eq!(count(cursor.row().unwrap().1), 105);
    check(&table, &expected);
}

#[derive(Debug)]
struct Fragile {
    fails: AtomicBool,
    panics: AtomicBool,
}

impl MergeOperator for Fragile {
    fn name(&self) -> &str {
        "fragile"
    }

    fn full(&self, _: &[u8], base: Option<&[u8]>, operands: &[&[u8]], out: &mut Vec<u8>) -> Result<()> {
        assert!(!self.panics.load(Ordering::Relaxed), "the operator panics on purpose");
        if self.fails.load(Ordering::Relaxed) {
            return Err(terrane::Error::invalid("fails on purpose"));
        }
        out.extend_from_slice(base.unwrap_or(b"-"));
        operands.iter().for_each(|operand| out.extend_from_slice(operand));
        Ok(())
    }
}

#[test]
fn an_operator_that_fails_or_panics_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let operator = Arc::new(Fragile { fails: AtomicBool::new(false), panics: AtomicBool::new(false) });
    let operators = MergeOperators::new().with(operator.clone()).unwrap();
    let db = Db::open_with_operators(&path, &options(), operators.clone()).unwrap();
    let table = table(&db, "fragile");
    table.put(b"k", b"base").unwrap();
    table.merge(b"k", b"1").unwrap();
    table.merge(b"only", b"2").unwrap();
    for switch in [&operator.fails, &operator.panics] {
        switch.store(true, Ordering::Relaxed);
        table.merge(b"k", b"x").unwrap();
        assert_eq!(table.get(b"k").unwrap_err().kind(), Kind::Invalid);
        assert_eq!(table.multi_get(&[b"k"]).unwrap_err().kind(), Kind::Invalid);
        assert!(table.iter().next().unwrap().is_err());
        assert!(table.iter().next_back().unwrap().is_err());
        db.flush().unwrap();
        db.compact_range(&table, ..).unwrap();
        let error = table.get(b"k").unwrap_err().to_string();
        assert!(error.contains("fragile") && error.contains('k'), "{error}");
        switch.store(false, Ordering::Relaxed);
    }
    assert!(db.stats().folds_failed > 0);
    assert_eq!(table.get(b"k").unwrap().as_deref(), Some(&b"base1xx"[..]));
    db.compact_range(&table, ..).unwrap();
    assert_eq!(table.get(b"only").unwrap().as_deref(), Some(&b"-2"[..]));
    db.close().unwrap();
    drop(table);
    // Missing, it is refused by name; given, everything is there.
    let error = Db::open_with(&path, &options()).unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
    assert!(error.to_string().contains("fragile") && error.to_string().contains("\"t\""), "{error}");
    let db = Db::open_with_operators(&path, &options(), operators).unwrap();
    assert_eq!(db.table("t").unwrap().get(b"k").unwrap().as_deref(), Some(&b"base1xx"[..]));
}

#[test]
fn bad_input_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = Db::open_with(&path, &options()).unwrap();
    let error = db.default_table().merge(b"k", b"v").unwrap_err();
    assert!(error.kind() == Kind::Invalid && error.to_string().contains("merge_operator"), "{error}");
    let mut batch = Batch::new();
    assert_eq!(batch.merge(db.default_table(), b"k", b"v").unwrap_err().kind(), Kind::Invalid);
    assert!(batch.is_empty());
    let unknown = TableOptions::new().set("merge_operator", "mine").unwrap();
    let error = db.create_table("u", &unknown).unwrap_err();
    assert!(error.to_string().contains("mine"), "{error}");
    assert!(db.table("u").is_err());
    let table = table(&db, "counter");
    let error = table.merge(b"k", b"not a number").unwrap_err();
    assert!(error.kind() == Kind::Invalid && error.to_string().contains("counter"), "{error}");
    assert!(table.set_option("merge_operator", "max").unwrap_err().to_string().contains("time_to_live"));
    db.close().unwrap();
    // The default table has what it was made with.
    let mut other = options();
    other.set("merge_operator", "counter").unwrap();
    let error = Db::open_with(&path, &other).unwrap_err();
    assert!(error.kind() == Kind::Invalid && error.to_string().contains("default"), "{error}");
    let fresh = dir.path().join("fresh");
    Db::open_with(&fresh, &other).unwrap().close().unwrap();
    let db = Db::open_with(&fresh, &options()).unwrap();
    db.default_table().merge(b"k", counter::encode(3)).unwrap();
    let t = db.create_table("plain", &TableOptions::new()).unwrap();
    assert!(t.merge(b"k", b"v").is_err());
    db.close().unwrap();
    other.set("merge_operator", "max").unwrap();
    assert_eq!(Db::open_with(&fresh, &other).unwrap_err().kind(), Kind::Invalid);
    assert!(MergeOperators::new().with(Arc::new(Named("counter"))).is_err());
    assert!(MergeOperators::new().with(Arc::new(Named(""))).is_err());
}

#[derive(Debug)]
struct Named(&'static str);

impl MergeOperator for Named {
    fn name(&self) -> &str {
        self.0
    }

    fn full(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]], _: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }
}

#[test]
fn single_deletes_vanish_with_their_puts() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path().join("db"), &options()).unwrap();
    let table = db.default_table();
    let key = |number: u32| format!("key{number:04}").into_bytes();
    for number in 0..500 {
        table.put(key(number), b"value").unwrap();
    }
    db.flush().unwrap();
    let before = db.snapshot();
    for number in (0..500).step_by(2) {
        table.single_delete(key(number)).unwrap();
    }
    let check = || {
        for number in 0..500 {
            assert_eq!(table.contains(key(number)).unwrap(), number % 2 == 1, "{number}");
            assert!(before.contains(table, key(number)).unwrap());
        }
        assert_eq!(table.iter().count(), 250);
        assert_eq!(table.iter().rev().count(), 250);
    };
    check();
    db.flush().unwrap();
    check();
    drop(before);
    db.compact_range(table, ..).unwrap();
    assert_eq!(table.iter().count(), 250);
    let entries: u64 = db.shape().tables[0].levels.iter().map(|level| level.entries).sum();
    assert_eq!(entries, 250);
}

#[test]
fn puts_and_single_deletes_in_turns() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path().join("db"), &options()).unwrap();
    let table = db.default_table();
    db.wait_until_quiescent().unwrap();
    db.pause_background();
    let down = |levels: std::ops::RangeInclusive<u8>| {
        db.flush_to_run(table).unwrap();
        levels.for_each(|level| db.compact_level(table, level).unwrap());
    };
    table.put(b"k", b"first").unwrap();
    down(0..=1);
    table.single_delete(b"k").unwrap();
    table.put(b"k", b"second").unwrap();
    down(0..=0);
    assert_eq!(table.get(b"k").unwrap().as_deref(), Some(&b"second"[..]));
    table.single_delete(b"k").unwrap();
    down(0..=0);
    assert_eq!(table.get(b"k").unwrap().as_deref(), None, "the first value is under the first single delete");
    down(1..=1);
    let entries: u64 = db.shape().tables[0].levels.iter().map(|level| level.entries).sum();
    assert_eq!((table.iter().count(), entries), (0, 0));
}

#[test]
fn a_range_delete_ends_a_chain() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path().join("db"), &options()).unwrap();
    let table = table(&db, "counter");
    let add = |(key, number): (&[u8], i64)| table.merge(key, counter::encode(number)).unwrap();
    for round in 0..3 {
        // Blocks and extents reach beyond the range: what lies within it is judged entry by entry.
        [(&b"a"[..], 1), (b"k1", 1), (b"k2", 10), (b"z", 1)].into_iter().for_each(add);
        match round {
            0 => {}
            1 => db.flush_to_run(&table).unwrap(),
            _ => db.compact_range(&table, ..).unwrap(),
        }
        table.delete_range(b"k", b"l").unwrap();
        [(&b"k1"[..], 2), (b"k2", 20)].into_iter().for_each(add);
        let expected = [(&b"a"[..], round + 1), (b"k1", 2), (b"k2", 20), (b"z", round + 1)];
        let expected = expected.map(|(key, sum)| (key.to_vec(), sum));
        check(&table, &expected);
        db.flush().unwrap();
        check(&table, &expected);
        db.compact_range(&table, ..).unwrap();
        check(&table, &expected);
    }
}

/// Joins operands with a bar; no program has it by itself.
#[derive(Debug)]
struct Barred;

impl MergeOperator for Barred {
    fn name(&self) -> &str {
        "test.barred"
    }

    fn full(&self, _: &[u8], base: Option<&[u8]>, operands: &[&[u8]], out: &mut Vec<u8>) -> Result<()> {
        let all: Vec<&[u8]> = base.into_iter().chain(operands.iter().copied()).collect();
        out.extend_from_slice(&all.join(&b'|'));
        Ok(())
    }
}

#[test]
fn a_repair_needs_the_operators_of_the_user() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let operators = || MergeOperators::new().with(Arc::new(Barred)).unwrap();
    // A flush at the close would fold the operands.
    let mut options = Options { close_flush: false, ..options() };
    options.set("merge_operator", "test.barred").unwrap();
    let db = Db::open_with_operators(path("db"), &options, operators()).unwrap();
    let none = TableOptions::new().set("merge_operator", "none").unwrap();
    let (barred, plain) = (table(&db, "test.barred"), db.create_table("plain", &none).unwrap());
    let tables = [db.default_table().clone(), barred.clone()];
    for table in &tables {
        table.put(b"put", b"a").unwrap();
        for operand in [b"b", b"c"] {
            table.merge(b"put", operand).unwrap();
            table.merge(b"merged", operand).unwrap();
            db.flush_to_run(table).unwrap();
        }
        table.merge(b"put", b"d").unwrap();
    }
    plain.put(b"put", b"a").unwrap();
    drop((tables, barred, plain));
    db.close().unwrap();

    let bare = Options { merge_operator: Default::default(), ..options.clone() };
    let report = terrane::repair_with_functions(path("db"), path("whole"), &bare, operators()).unwrap();
    assert!(report.is_whole(), "{report:?}");
    let db = Db::open_with_operators(path("whole"), &bare, operators()).unwrap();
    for table in [db.default_table().clone(), db.table("t").unwrap()] {
        assert_eq!(&*table.get(b"put").unwrap().unwrap(), b"a|b|c|d");
        assert_eq!(&*table.get(b"merged").unwrap().unwrap(), b"b|c");
    }
    let report = terrane::repair(path("db"), path("part"), &bare).unwrap();
    let lost: Vec<_> = report.losses.iter().map(|loss| loss.table.as_deref().unwrap()).collect();
    assert_eq!(lost, ["default", "t"], "{report:?}");
    assert!(report.losses.iter().all(|loss| loss.error.to_string().contains("test.barred")));
    let db = Db::open_with(path("part"), &bare).unwrap();
    assert_eq!(&*db.table("plain").unwrap().get(b"put").unwrap().unwrap(), b"a");
    assert_eq!(db.table("t").unwrap().get(b"put").unwrap_err().kind(), Kind::Invalid);
}
