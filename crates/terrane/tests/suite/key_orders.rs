//! Tables with other key orders against a model that compares keys: reverse, little-endian numbers, and
//! letters without case, so that different bytes are one key.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "key_orders/orders.rs"]
mod orders;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;

use orders::{Key, WhichOrder, functions};
use proptest::prelude::*;
use terrane::{
    Batch, Db, Durability, IndexedBatch, Options, Result, Row, Table, TableOptions, TransactionOptions,
};

/// The rows of a table, in its order; keys as they are shown.
type Model = BTreeMap<Key, Vec<u8>>;

#[derive(Clone, Debug)]
enum Op {
    Put(Vec<u8>, u8),
    Merge(Vec<u8>, u8),
    Delete(Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
    Batch(Vec<u8>, Vec<u8>, u8),
    Transaction(Vec<u8>, Vec<u8>, u8),
    Flush,
    FlushToRun,
    Compact(Vec<u8>, Vec<u8>),
    Reopen,
    Check,
}

fn options() -> Options {
    let mut options = Options::default();
    for (name, value) in [("memory_bytes", "16MiB"), ("block_bytes", "1KiB"), ("background_threads", "1")] {
        options.set(name, value).unwrap();
    }
    options
}

fn open(dir: &Path) -> Db {
    Db::open_with_functions(dir, &options(), functions()).unwrap()
}

fn op(which: WhichOrder) -> impl Strategy<Value = Op> {
    let key = move || which.key();
    prop_oneof![
        12 => (key(), any::<u8>()).prop_map(|(key, value)| Op::Put(key, value)),
        4 => (key(), any::<u8>()).prop_map(|(key, value)| Op::Merge(key, value)),
        2 => key().prop_map(Op::Delete),
        2 => (key(), key()).prop_map(|(start, end)| Op::DeleteRange(start, end)),
        2 => (key(), key(), any::<u8>()).prop_map(|(put, delete, value)| Op::Batch(put, delete, value)),
        2 => (key(), key(), any::<u8>()).prop_map(|(put, delete, value)| Op::Transaction(put, delete, value)),
        2 => Just(Op::Flush),
        1 => Just(Op::FlushToRun),
        1 => (key(), key()).prop_map(|(start, end)| Op::Compact(start, end)),
        1 => Just(Op::Reopen),
        2 => Just(Op::Check),
    ]
}

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

fn rows(iter: impl Iterator<Item = Result<Row>>) -> Rows {
    iter.map(|row| row.unwrap()).map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

fn expected<'m>(rows: impl Iterator<Item = (&'m Key, &'m Vec<u8>)>) -> Rows {
    rows.map(|(key, value)| (key.shown(), value.clone())).collect()
}

/// Returns true if the table shows what the model holds, by every way to read.
fn check(db: &Db, table: &Table, model: &Model, which: WhichOrder, probes: &[Vec<u8>]) {
    let all = expected(model.iter());
    assert_eq!(rows(table.iter()), all);
    let mut backward = rows(table.iter().rev());
    backward.reverse();
    assert_eq!(backward, all);
    let snapshot = db.snapshot();
    assert_eq!(rows(snapshot.iter(table)), all);
    let keys: Vec<&[u8]> = probes.iter().map(Vec::as_slice).collect();
    for (key, value) in keys.iter().zip(table.multi_get(&keys).unwrap()) {
        let wanted = model.get(&which.of(key)).map(Vec::as_slice);
        assert_eq!(value.as_deref(), wanted, "many, {key:?}");
        assert_eq!(table.get(key).unwrap().as_deref(), wanted, "{key:?}");
        assert_eq!(snapshot.get(table, key).unwrap().as_deref(), wanted, "{key:?}");
        let from = rows(table.range(*key..));
        assert_eq!(from, expected(model.range(which.of(key)..)), "from {key:?}");
        let to = rows(table.range((Bound::Unbounded, Bound::Included(*key))));
        assert_eq!(to, expected(model.range(..=which.of(key))), "to {key:?}");
        if let Some(prefixed) = which.begins_with(key) {
            let wanted = expected(model.iter().filter(|(other, _)| prefixed(&other.shown())));
            assert_eq!(rows(table.prefix(key)), wanted, "prefix {key:?}");
        } else {
            assert!(table.prefix(key).next().unwrap().is_err(), "there is no such range");
        }
    }
    cursor(table, model, which, probes);
    under_a_batch(db, table, model, which, probes);
}

/// A cursor that is moved to and fro.
fn cursor(table: &Table, model: &Model, which: WhichOrder, probes: &[Vec<u8>]) {
    let mut cursor = table.cursor();
    let here = |cursor: &terrane::Cursor| cursor.row().map(|(key, _)| key.to_vec());
    for probe in probes {
        cursor.seek(probe).unwrap();
        let at_or_after = model.range(which.of(probe)..).next().map(|(key, _)| key.shown());
        assert_eq!(here(&cursor), at_or_after, "seek {probe:?}");
        let before = model.range(..which.of(probe)).next_back().map(|(key, _)| key.shown());
        if cursor.row().is_some() {
            cursor.prev().unwrap();
            assert_eq!(here(&cursor), before, "before {probe:?}");
        }
        cursor.seek_back(probe).unwrap();
        let at_or_before = model.range(..=which.of(probe)).next_back().map(|(key, _)| key.shown());
        assert_eq!(here(&cursor), at_or_before, "seek back {probe:?}");
        if cursor.row().is_some() {
            let key = which.of(&here(&cursor).unwrap());
            cursor.next().unwrap();
            let next = model.range((Bound::Excluded(key), Bound::Unbounded)).next();
            assert_eq!(here(&cursor), next.map(|(key, _)| key.shown()), "behind {probe:?}");
        }
    }
}

/// Rows under changes that are not written: of an indexed batch, and of a transaction that is rolled back.
fn under_a_batch(db: &Db, table: &Table, model: &Model, which: WhichOrder, probes: &[Vec<u8>]) {
    let (mut batch, mut model) = (IndexedBatch::new(), model.clone());
    let mut transaction = db.transaction(&TransactionOptions::default()).unwrap();
    for (number, key) in probes.iter().enumerate() {
        if number % 2 == 0 {
            batch.put(table, key, b"mine").unwrap();
            transaction.put(table, key, b"mine").unwrap();
            model.insert(which.of(key), b"mine".to_vec());
        } else {
            batch.delete(table, key).unwrap();
            transaction.delete(table, key).unwrap();
            model.remove(&which.of(key));
        }
    }
    let (lower, upper) = (&probes[0], &probes[1]);
    let range = (Bound::Included(lower.as_slice()), Bound::Excluded(upper.as_slice()));
    let wanted = match which.of(lower) < which.of(upper) {
        true => expected(model.range(which.of(lower)..which.of(upper))),
        false => Vec::new(),
    };
    assert_eq!(rows(batch.range(table, range)), wanted);
    assert_eq!(rows(transaction.range(table, range).unwrap()), wanted);
    let mut backward = rows(batch.range(table, ..).rev());
    backward.reverse();
    assert_eq!(backward, expected(model.iter()));
    for key in probes {
        let wanted = model.get(&which.of(key)).map(Vec::as_slice);
        assert_eq!(batch.get(table, key).unwrap().as_deref(), wanted);
        assert_eq!(transaction.get(table, key).unwrap().as_deref(), wanted);
    }
}

fn apply(db: &Db, table: &Table, model: &mut Model, which: WhichOrder, op: &Op) {
    match op {
        Op::Put(key, value) => {
            table.put(key, [*value; 40]).unwrap();
            model.insert(which.of(key), vec![*value; 40]);
        }
        Op::Merge(key, value) => {
            table.merge(key, [*value]).unwrap();
            // The operator writes the key as it is shown, then what there was, then the operands.
            let key = which.of(key);
            let rest = model.remove(&key).unwrap_or_else(|| key.shown());
            model.insert(key, [rest, vec![*value]].concat());
        }
        Op::Delete(key) => {
            table.delete(key).unwrap();
            model.remove(&which.of(key));
        }
        Op::DeleteRange(start, end) => {
            let range = which.of(start)..which.of(end);
            assert_eq!(table.delete_range(start, end).is_ok(), range.start < range.end, "{start:?} {end:?}");
            model.retain(|key, _| !range.contains(key));
        }
        Op::Batch(put, delete, value) => {
            let mut batch = Batch::new();
            batch.put(table, put, [*value]).unwrap();
            batch.delete(table, delete).unwrap();
            db.write(&batch, Durability::Buffered).unwrap();
            model.insert(which.of(put), vec![*value]);
            model.remove(&which.of(delete));
        }
        Op::Transaction(put, delete, value) => {
            let mut transaction = db.transaction(&TransactionOptions::default()).unwrap();
            let found = transaction.get_for_update(table, put, true).unwrap();
            assert_eq!(found.as_deref(), model.get(&which.of(put)).map(Vec::as_slice));
            transaction.put(table, put, [*value]).unwrap();
            transaction.delete(table, delete).unwrap();
            transaction.commit(Durability::Buffered).unwrap();
            model.insert(which.of(put), vec![*value]);
            model.remove(&which.of(delete));
        }
        Op::Flush => db.flush().unwrap(),
        Op::FlushToRun => db.flush_to_run(table).unwrap(),
        Op::Compact(start, end) => {
            db.compact_range(table, (Bound::Included(start.as_slice()), Bound::Included(end.as_slice())))
                .unwrap();
        }
        Op::Reopen | Op::Check => {}
    }
}

fn run(which: WhichOrder, ops: &[Op], probes: &[Vec<u8>]) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let mut db = open(&path);
    let own = TableOptions::new().set("key_order", which.name()).unwrap();
    db.create_table("t", &own.set("merge_operator", "test.with-key").unwrap()).unwrap();
    let mut model = Model::new();
    let all = Op::Compact(probes[0].clone(), probes[0].clone());
    for op in ops.iter().chain([&Op::Check, &Op::Flush, &all, &Op::Check]) {
        let table = db.table("t").unwrap();
        apply(&db, &table, &mut model, which, op);
        match op {
            Op::Reopen => {
                drop(table);
                db.close().unwrap();
                db = open(&path);
            }
            Op::Check => check(&db, &table, &model, which, probes),
            _ => {}
        }
    }
    assert!(db.check(&mut |_, _| ()).unwrap().findings.is_empty());
}

fn case(which: WhichOrder) -> impl Strategy<Value = (Vec<Op>, Vec<Vec<u8>>)> {
    (proptest::collection::vec(op(which), 10..80), proptest::collection::vec(which.key(), 4..8))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn reverse((ops, probes) in case(WhichOrder::Reverse)) {
        run(WhichOrder::Reverse, &ops, &probes);
    }

    #[test]
    fn numbers_with_the_least_byte_first((ops, probes) in case(WhichOrder::Numbers)) {
        run(WhichOrder::Numbers, &ops, &probes);
    }

    #[test]
    fn the_shortest_first_by_a_comparator((ops, probes) in case(WhichOrder::Shortest)) {
        run(WhichOrder::Shortest, &ops, &probes);
    }

    #[test]
    fn decimal_numbers_by_a_comparator((ops, probes) in case(WhichOrder::Decimal)) {
        run(WhichOrder::Decimal, &ops, &probes);
    }

    #[test]
    fn from_the_last_byte_on_by_a_comparator((ops, probes) in case(WhichOrder::Backward)) {
        run(WhichOrder::Backward, &ops, &probes);
    }

    #[test]
    fn letters_without_case((ops, probes) in case(WhichOrder::Letters)) {
        run(WhichOrder::Letters, &ops, &probes);
    }
}

#[path = "key_orders/beside.rs"]
mod beside;
#[path = "key_orders/border.rs"]
mod border;

#[path = "key_orders/comparators.rs"]
mod comparators;

#[path = "key_orders/distrust.rs"]
mod distrust;
#[path = "key_orders/failing.rs"]
mod failing;
