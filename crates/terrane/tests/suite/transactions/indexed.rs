//! The indexed batch against a model.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use terrane::{
    Comparator, Db, Durability, Functions, IndexedBatch, KeyOrders, Kind, Options, Row, Table, TableOptions,
};
use terrane_base::Rng;

use crate::transactions::support::{open, open_appending};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// The rows of the batch between two keys, taken from both ends in turns that the generator chooses.
fn taken(mut rows: impl DoubleEndedIterator<Item = terrane::Result<Row>>, rng: &mut Rng) -> Vec<Row> {
    let style = rng.below(3);
    let (mut front, mut back) = (Vec::new(), Vec::new());
    loop {
        let forward = style == 0 || style == 2 && rng.below(2) == 0;
        let next = if forward { rows.next() } else { rows.next_back() };
        let Some(row) = next else { break };
        if forward { front.push(row.unwrap()) } else { back.push(row.unwrap()) }
    }
    front.extend(back.into_iter().rev());
    front
}

/// One change of any kind, in the batch and in the model; the table's operator appends operands.
fn change(batch: &mut IndexedBatch, model: &mut Rows, table: &Table, rng: &mut Rng, key: Vec<u8>, step: u8) {
    match rng.below(11) {
        0..4 => {
            batch.put(table, &key, [step]).unwrap();
            model.insert(key, vec![step]);
        }
        4..6 => {
            batch.delete(table, &key).unwrap();
            model.remove(&key);
        }
        6 | 7 => {
            batch.merge(table, &key, [step]).unwrap();
            model.entry(key).or_default().push(step);
        }
        8 => {
            let end = vec![key[0] + 1 + rng.below(6) as u8];
            batch.delete_range(table, &key, &end).unwrap();
            model.retain(|other, _| *other < key || *other >= end);
        }
        9 => {
            batch.put_until(table, &key, [step], Duration::from_secs(1)).unwrap();
            model.remove(&key);
        }
        _ => {
            batch.put_until(table, &key, [step], Duration::from_secs(1 << 33)).unwrap();
            model.insert(key, vec![step]);
        }
    }
}

#[test]
fn an_indexed_batch_reads_as_if_it_were_written() {
    for seed in 0..60 {
        let (mut rng, (_dir, db)) = (Rng::new(seed), open_appending());
        let table = db.default_table();
        let mut model = Rows::new();
        for _ in 0..10 {
            let key = vec![rng.below(20) as u8];
            db.put(&key, b"stored").unwrap();
            model.insert(key, b"stored".to_vec());
        }
        let snapshot = db.snapshot();
        let (mut batch, mut savepoints) = (IndexedBatch::new(), Vec::new());
        for step in 0..80u8 {
            let key = vec![rng.below(20) as u8];
            match rng.below(16) {
                0..10 => change(&mut batch, &mut model, table, &mut rng, key, step),
                10 => {
                    batch.set_savepoint();
                    savepoints.push(model.clone());
                }
                11 => match savepoints.pop() {
                    Some(before) => {
                        batch.rollback_to_savepoint().unwrap();
                        model = before;
                    }
                    None => assert_eq!(batch.rollback_to_savepoint().unwrap_err().kind(), Kind::Invalid),
                },
                12 => assert_eq!(batch.pop_savepoint().is_ok(), savepoints.pop().is_some()),
                _ => {
                    let (low, high) = (vec![rng.below(21) as u8], vec![rng.below(21) as u8]);
                    let bounds = (Bound::Included(low.as_slice()), Bound::Excluded(high.as_slice()));
                    let expected: Vec<Row> = model
                        .iter()
                        .filter(|(key, _)| low <= **key && **key < high)
                        .map(|(k, v)| (k.clone(), v.clone()))
                        .collect();
                    assert_eq!(
                        taken(batch.range(table, bounds), &mut rng),
                        expected,
                        "seed {seed}, step {step}"
                    );
                    let at = batch.range_at(&snapshot, table, bounds);
                    assert_eq!(taken(at, &mut rng), expected, "seed {seed}, step {step}");
                }
            }
            let key = vec![rng.below(20) as u8];
            let found = batch.get(table, &key).unwrap().map(terrane::Value::into_vec);
            assert_eq!(found.as_ref(), model.get(&key), "seed {seed}, step {step}");
            assert_eq!(batch.get_at(&snapshot, table, &key).unwrap().map(terrane::Value::into_vec), found);
            assert_eq!(batch.savepoint_count(), savepoints.len());
        }
        let mut changed = 0;
        (0..20u8).for_each(|key| changed += u64::from(batch.changes_key(table, [key])));
        assert!(batch.key_count() <= changed);
        batch.write(&db, Durability::Buffered).unwrap();
        let rows: Rows = table.iter().map(Result::unwrap).collect();
        assert_eq!(rows, model, "seed {seed}");
        batch.clear();
        assert!(batch.is_empty() && batch.key_count() == 0);
    }
}

#[test]
fn a_batch_shows_nothing_of_another_database() {
    let ((_dir, one), (_other_dir, two)) = (open(), open());
    let mut batch = IndexedBatch::new();
    batch.put(one.default_table(), b"k", b"v").unwrap();
    assert!(batch.get(two.default_table(), b"k").unwrap().is_none());
    assert_eq!(batch.range(two.default_table(), ..).count(), 0);
    assert_eq!(batch.delete(two.default_table(), b"k").unwrap_err().kind(), Kind::Invalid);
}

/// The greatest key first.
#[derive(Debug)]
struct Descending;

impl Comparator for Descending {
    fn name(&self) -> &str {
        "test.descending"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        right.cmp(left)
    }
}

#[test]
fn a_batch_that_went_back_to_empty_has_the_key_order_of_its_next_database() {
    let dir = tempfile::tempdir().unwrap();
    let orders = KeyOrders::new().with_comparator(Arc::new(Descending)).unwrap();
    let functions = Functions { orders, ..Functions::default() };
    let one = Db::open_with_functions(dir.path().join("one"), &Options::default(), functions).unwrap();
    let descending = TableOptions::new().set("key_order", "test.descending").unwrap();
    let descending = ["t", "u", "v"].map(|name| one.create_table(name, &descending).unwrap());
    let (_dir, two) = open();
    // Some of them have the numbers that tables of the first have.
    let ascending = ["t", "u", "v"].map(|name| two.create_table(name, &TableOptions::new()).unwrap());
    let mut batch = IndexedBatch::new();
    batch.set_savepoint();
    descending.iter().for_each(|table| batch.put(table, "k", "v").unwrap());
    batch.rollback_to_savepoint().unwrap();
    for table in &ascending {
        batch.put(table, "aa", "1").unwrap();
        batch.put(table, "bb", "2").unwrap();
        let keys: Vec<Vec<u8>> = batch.range(table, ..).keys().collect::<terrane::Result<_>>().unwrap();
        assert_eq!(keys, [b"aa", b"bb"], "{}", table.name());
    }
}
