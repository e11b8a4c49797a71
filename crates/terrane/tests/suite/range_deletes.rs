//! Range deletes against a model: point reads, many at once, scans from both ends, cursors, prefixes,
//! snapshots, with flushes, compactions and reopenings among the writes.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use terrane::{Batch, Db, Durability, Kind, Options, Snapshot, Table};
use terrane_base::Rng;

/// The rows of a key space.
type Model = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug)]
enum Op {
    Put(Vec<u8>, u8),
    Delete(Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
    /// In one batch: the range delete hides the first put and not the second.
    Around(Vec<u8>, Vec<u8>, Vec<u8>),
    Flush,
    FlushToRun,
    Compact,
    Reopen,
    TakeSnapshot,
    DropSnapshot,
    Check,
}

/// Keys that are often prefixes or successors of each other.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![4 => b'a'..b'f', 1 => Just(0u8), 1 => Just(255u8)];
    proptest::collection::vec(byte, 0..4)
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (key(), any::<u8>()).prop_map(|(key, value)| Op::Put(key, value)),
        2 => key().prop_map(Op::Delete),
        5 => (key(), key()).prop_map(|(start, end)| Op::DeleteRange(start, end)),
        2 => (key(), key(), key()).prop_map(|(key, start, end)| Op::Around(key, start, end)),
        2 => Just(Op::Flush),
        1 => Just(Op::FlushToRun),
        2 => Just(Op::Compact),
        1 => Just(Op::Reopen),
        2 => Just(Op::TakeSnapshot),
        1 => Just(Op::DropSnapshot),
        3 => Just(Op::Check),
    ]
}

fn options() -> Options {
    let mut options = Options::default();
    for (name, value) in [("memory_bytes", "16MiB"), ("block_bytes", "1KiB")] {
        options.set(name, value).unwrap();
    }
    options
}

fn open(dir: &Path) -> Db {
    Db::open_with(dir, &options()).unwrap()
}

fn delete_range(model: &mut Model, start: &[u8], end: &[u8]) {
    model.retain(|key, _| !(start <= key.as_slice() && key.as_slice() < end));
}

/// Returns true if the table shows what the model holds, by every way to read.
fn check(table: &Table, snapshot: Option<&Snapshot>, model: &Model, probes: &[Vec<u8>]) {
    let expected: Vec<_> = model.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let rows = |iter: terrane::Iter| -> Vec<(Vec<u8>, Vec<u8>)> {
        iter.map(|row| row.unwrap()).map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
    };
    let iter = || snapshot.map_or_else(|| table.iter(), |snapshot| snapshot.iter(table));
    assert_eq!(rows(iter()), expected);
    let mut backward: Vec<_> =
        iter().rev().map(|row| row.unwrap()).map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    backward.reverse();
    assert_eq!(backward, expected);
    let get = |key: &[u8]| match snapshot {
        Some(snapshot) => snapshot.get(table, key).unwrap(),
        None => table.get(key).unwrap(),
    };
    for key in probes {
        assert_eq!(get(key).as_deref(), model.get(key).map(Vec::as_slice), "{key:?}");
        let prefixed = || expected.iter().filter(|(other, _)| other.starts_with(key)).cloned();
        if snapshot.is_none() {
            assert_eq!(rows(table.prefix(key)), prefixed().collect::<Vec<_>>(), "prefix {key:?}");
            let (below, above): (Vec<_>, Vec<_>) =
                expected.iter().cloned().partition(|(other, _)| other < key);
            assert_eq!(rows(table.range(key.as_slice()..)), above, "from {key:?}");
            assert_eq!(rows(table.range(..key.as_slice())), below, "to {key:?}");
        }
    }
    if snapshot.is_none() {
        let keys: Vec<&[u8]> = probes.iter().map(Vec::as_slice).collect();
        for (key, value) in keys.iter().zip(table.multi_get(&keys).unwrap()) {
            assert_eq!(value.as_deref(), model.get(*key).map(Vec::as_slice), "many, {key:?}");
        }
        turn_around(table, &expected, probes);
    }
}

/// A cursor that is moved to and fro.
fn turn_around(table: &Table, expected: &[(Vec<u8>, Vec<u8>)], probes: &[Vec<u8>]) {
    let mut cursor = table.cursor();
    for key in probes {
        cursor.seek(key).unwrap();
        let at = expected.partition_point(|(other, _)| other < key);
        let here = |cursor: &terrane::Cursor| cursor.row().map(|(key, _)| key.to_vec());
        let row = |at: Option<usize>| at.and_then(|at| expected.get(at)).map(|(key, _)| key.clone());
        assert_eq!(here(&cursor), row(Some(at)), "seek {key:?}");
        if cursor.row().is_some() {
            cursor.prev().unwrap();
            assert_eq!(here(&cursor), row(at.checked_sub(1)), "before {key:?}");
            if cursor.row().is_some() {
                cursor.next().unwrap();
                assert_eq!(here(&cursor), row(Some(at)), "and back to {key:?}");
            }
        }
    }
}

fn run(ops: &[Op], probes: &[Vec<u8>]) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let mut db = open(&path);
    let mut model = Model::new();
    let mut snapshots: Vec<(Snapshot, Model)> = Vec::new();
    for op in ops.iter().chain([&Op::Check, &Op::Compact, &Op::Check]) {
        let table = db.default_table().clone();
        match op {
            Op::Put(key, value) => {
                let value = vec![*value; 40];
                table.put(key, &value).unwrap();
                model.insert(key.clone(), value);
            }
            Op::Delete(key) => {
                table.delete(key).unwrap();
                model.remove(key);
            }
            Op::DeleteRange(start, end) => match table.delete_range(start, end) {
                Ok(()) => delete_range(&mut model, start, end),
                Err(error) => assert!(start >= end, "{error}"),
            },
            Op::Around(key, start, end) if start < end => {
                let mut batch = Batch::new();
                batch.put(&table, key, b"before").unwrap();
                batch.delete_range(&table, start, end).unwrap();
                batch.put(&table, start, b"after").unwrap();
                db.write(&batch, Durability::Buffered).unwrap();
                model.insert(key.clone(), b"before".to_vec());
                delete_range(&mut model, start, end);
                model.insert(start.clone(), b"after".to_vec());
            }
            Op::Around(..) => {}
            Op::Flush => db.flush().unwrap(),
            Op::Compact => db.compact_range(&table, ..).unwrap(),
            Op::FlushToRun => db.flush_to_run(&table).unwrap(),
            Op::Reopen => {
                snapshots.clear();
                drop(table);
                db.close().unwrap();
                db = open(&path);
            }
            Op::TakeSnapshot => snapshots.push((db.snapshot(), model.clone())),
            Op::DropSnapshot => drop(snapshots.pop()),
            Op::Check => {
                check(&table, None, &model, probes);
                for (snapshot, model) in &snapshots {
                    check(&table, Some(snapshot), model, probes);
                }
            }
        }
    }
    assert_eq!(db.check(&mut |_, _| ()).unwrap().findings.len(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn point_reads_and_scans_see_what_a_model_holds(
        ops in proptest::collection::vec(op(), 1..120),
        probes in proptest::collection::vec(key(), 12),
    ) {
        run(&ops, &probes);
    }
}

#[test]
fn empty_and_inverted_ranges_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("data"));
    let table = db.default_table();
    table.put(b"b", b"1").unwrap();
    let mut batch = Batch::new();
    for (start, end) in [(&b"b"[..], &b"b"[..]), (b"c", b"a"), (b"", b"")] {
        assert_eq!(table.delete_range(start, end).unwrap_err().kind(), Kind::Invalid);
        assert_eq!(batch.delete_range(table, start, end).unwrap_err().kind(), Kind::Invalid);
    }
    assert!(batch.is_empty());
    assert!(table.contains(b"b").unwrap());
}

fn number_key(number: u64) -> Vec<u8> {
    format!("key{number:08}").into_bytes()
}

/// Fills a table with numbers and brings them into the levels.
fn fill(db: &Db, count: u64) {
    let mut batch = Batch::new();
    for number in 0..count {
        batch.put(db.default_table(), number_key(number), [7; 20]).unwrap();
        if batch.len() == 1000 {
            db.write(&batch, Durability::Buffered).unwrap();
            batch.clear();
        }
    }
    db.write(&batch, Durability::Buffered).unwrap();
    db.compact_range(db.default_table(), ..).unwrap();
}

/// The work of a scan over a deleted range does not depend on the number of its keys, be the range delete in
/// memory, in an overflow run, or in a level; and in the end nothing of it is left.
#[test]
fn a_deleted_range_is_passed_by_at_once_and_its_space_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("data"));
    fill(&db, 200_000);
    let table = db.default_table().clone();
    let before = db.shape().tables[0].levels.iter().map(|level| level.bytes).sum::<u64>();
    table.delete_range(number_key(10), number_key(199_990)).unwrap();
    let skipped = |scan: &dyn Fn() -> usize| {
        let start = terrane::read_counters().versions_skipped;
        assert_eq!(scan(), 20);
        terrane::read_counters().versions_skipped - start
    };
    let check = || {
        assert!(skipped(&|| table.iter().count()) < 10);
        assert!(skipped(&|| table.iter().rev().count()) < 10);
        assert_eq!(table.get(number_key(100)).unwrap(), None);
        assert!(table.contains(number_key(9)).unwrap());
    };
    check();
    db.flush_to_run(&table).unwrap();
    check();
    db.compact_range(&table, ..).unwrap();
    check();
    let shape = db.shape().tables[0].clone();
    assert!(shape.levels.iter().map(|level| level.bytes).sum::<u64>() < before / 10, "{shape}");
    assert_eq!(shape.levels.iter().map(|level| level.range_deletes).sum::<u64>(), 0, "{shape}");
    assert_eq!(shape.levels.iter().map(|level| level.entries).sum::<u64>(), 20, "{shape}");
}

/// As many range deletes as this must neither stop writers nor reads nor a recovery.
#[test]
fn a_hundred_thousand_range_deletes() {
    const KEYS: u64 = 30_000;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let mut db = open(&path);
    fill(&db, KEYS);
    let mut alive = vec![true; KEYS as usize];
    let mut rng = Rng::new(1);
    for _ in 0..100_000 {
        let start = rng.below(KEYS);
        let end = (start + 1 + rng.below(5)).min(KEYS);
        db.default_table().delete_range(number_key(start), number_key(end)).unwrap();
        alive[start as usize..end as usize].fill(false);
        let put = rng.below(KEYS);
        db.put(number_key(put), b"again").unwrap();
        alive[put as usize] = true;
    }
    for step in 0..4 {
        let table = db.default_table().clone();
        let found: Vec<_> = table.iter().map(|row| row.unwrap().0.to_vec()).collect();
        let expected = || alive.iter().enumerate().filter(|(_, alive)| **alive);
        let expected: Vec<_> = expected().map(|(number, _)| number_key(number as u64)).collect();
        assert!(found == expected, "step {step}: {} rows, expected {}", found.len(), expected.len());
        for (number, is_alive) in alive.iter().enumerate().step_by(7) {
            assert_eq!(table.contains(number_key(number as u64)).unwrap(), *is_alive, "{number}");
        }
        match step {
            0 => {
                drop(table);
                db.close().unwrap();
                db = open(&path);
            }
            1 => db.flush_to_run(&table).unwrap(),
            _ => db.compact_range(&table, ..).unwrap(),
        }
    }
    assert_eq!(db.check(&mut |_, _| ()).unwrap().findings.len(), 0);
}

/// A queue: what was taken is deleted in the memtable that it was put into.
#[test]
fn tombstones_that_scans_skip_in_memory_are_flushed() {
    for is_on in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let mut options = Options { memory_bytes: 64 << 20, ..Options::default() };
        options.set("experiments.scan_flush", if is_on { "true" } else { "false" }).unwrap();
        let db = Db::open_with(dir.path().join("db"), &options).unwrap();
        let table = db.default_table();
        for number in 0..20_000 {
            db.put(number_key(number), b"value").unwrap();
        }
        table.delete_range(number_key(0), number_key(19_990)).unwrap();
        for number in 20_000..20_010 {
            db.put(number_key(number), b"value").unwrap();
        }
        for _ in 0..4 {
            assert_eq!(table.iter().count(), 20);
            db.wait_until_quiescent().unwrap();
        }
        assert_eq!(db.stats().scan_flushes, u64::from(is_on));
        let before = terrane::read_counters();
        assert_eq!(table.iter().count(), 20);
        let skipped = (terrane::read_counters() - before).versions_skipped;
        assert_eq!(skipped < 100, is_on, "{skipped} versions were stepped over");
    }
}

/// A cursor that is refreshed again and again, as short scans do, between puts and range deletes.
#[test]
fn a_refreshed_cursor_sees_range_deletes_that_came_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    let table = db.default_table();
    fill(&db, 1_000);
    table.delete_range(number_key(990), number_key(995)).unwrap();
    let mut cursor = table.cursor();
    let first_from = |cursor: &mut terrane::Cursor, number: u64| {
        cursor.refresh();
        cursor.seek(number_key(number)).unwrap();
        cursor.row().map(|(key, _)| key.to_vec())
    };
    for round in 0..60u64 {
        let at = round * 15;
        assert_eq!(first_from(&mut cursor, at), Some(number_key(at)));
        // Nothing new, or a put alone, and then a range delete.
        table.put(number_key(at + 5), b"again").unwrap();
        assert_eq!(first_from(&mut cursor, at), Some(number_key(at)));
        table.delete_range(number_key(at), number_key(at + 10)).unwrap();
        assert_eq!(first_from(&mut cursor, at), Some(number_key(at + 10)));
        table.put(number_key(at + 3), b"back").unwrap();
        assert_eq!(first_from(&mut cursor, at), Some(number_key(at + 3)));
        match round {
            20 => db.flush_to_run(table).unwrap(),
            40 => db.compact_range(table, ..).unwrap(),
            _ => {}
        }
    }
    assert_eq!(first_from(&mut cursor, 990), Some(number_key(995)));
}
