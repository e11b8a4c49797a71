//! Scans within prefixes against a model, with extractors that change, and the reads that filters save.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use terrane::{
    Db, Functions, Kind, Options, PrefixExtractor, PrefixExtractors, ReadCounters, Table, TableOptions,
};

/// The rows of a key space.
type Model = BTreeMap<Vec<u8>, Vec<u8>>;
type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// A prefix of a byte more than the first byte says, for keys that are so long: an extractor that no name can
/// say.
#[derive(Debug)]
struct ByFirstByte;

impl PrefixExtractor for ByFirstByte {
    fn name(&self) -> &str {
        "test.first_byte"
    }

    fn prefix_len(&self, key: &[u8]) -> Option<usize> {
        let len = 1 + usize::from(key.first()? % 4);
        (key.len() >= len).then_some(len)
    }
}

/// Fails for some keys.
#[derive(Debug)]
struct Failing;

impl PrefixExtractor for Failing {
    fn name(&self) -> &str {
        "test.failing"
    }

    fn prefix_len(&self, key: &[u8]) -> Option<usize> {
        assert!(key.last() != Some(&b'c'), "a key that the extractor fails for");
        Some(if key.last() == Some(&b'b') { key.len() + 1 } else { key.len().min(1) })
    }
}

fn functions() -> Functions {
    let extractors = PrefixExtractors::new();
    extractors.with(Arc::new(ByFirstByte)).unwrap().with(Arc::new(Failing)).unwrap().into()
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

const EXTRACTORS: [&str; 8] =
    ["none", "fixed:1", "fixed:2", "capped:2", "until:a", "until:ab", "test.first_byte", "test.failing"];

#[derive(Clone, Debug)]
enum Op {
    Put(Vec<u8>, u8),
    Delete(Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
    Flush,
    FlushToRun,
    Compact,
    Reopen,
    Extractor(usize),
    Check,
}

/// Keys that are often prefixes of each other.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![6 => b'a'..b'd', 1 => Just(255u8)];
    proptest::collection::vec(byte, 0..5)
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (key(), any::<u8>()).prop_map(|(key, value)| Op::Put(key, value)),
        2 => key().prop_map(Op::Delete),
        1 => (key(), key()).prop_map(|(start, end)| Op::DeleteRange(start, end)),
        2 => Just(Op::Flush),
        2 => Just(Op::FlushToRun),
        1 => Just(Op::Compact),
        1 => Just(Op::Reopen),
        2 => (0..EXTRACTORS.len()).prop_map(Op::Extractor),
        2 => Just(Op::Check),
    ]
}

fn rows(iter: impl Iterator<Item = terrane::Result<terrane::Row>>) -> Rows {
    iter.map(|row| row.unwrap()).map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

/// Returns true if scans within prefixes show what the model holds, from both ends and to and fro.
fn check(table: &Table, model: &Model, probes: &[Vec<u8>]) {
    for (at, prefix) in probes.iter().enumerate() {
        let within = |key: &[u8]| key.starts_with(prefix);
        let expected: Rows =
            model.iter().filter(|(key, _)| within(key)).map(|(k, v)| (k.clone(), v.clone())).collect();
        assert_eq!(rows(table.prefix(prefix)), expected, "prefix {prefix:?}");
        let mut backward = rows(table.prefix(prefix).rev());
        backward.reverse();
        assert_eq!(backward, expected, "prefix {prefix:?}, backward");
        let other = &probes[(at + 1) % probes.len()];
        seek_within(table, prefix, other, &expected);
        let upper = [prefix.as_slice(), other].concat();
        let range = (Bound::Excluded(prefix.as_slice()), Bound::Included(upper.as_slice()));
        let expected: Rows = model
            .iter()
            .filter(|(key, _)| prefix < *key && **key <= upper)
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        assert_eq!(rows(table.range(range)), expected, "above {prefix:?} to {upper:?}");
        to_and_fro(table, prefix, &upper, &expected);
    }
}

/// A cursor within a prefix, from keys in it and beside it.
fn seek_within(table: &Table, prefix: &[u8], other: &[u8], expected: &Rows) {
    let mut cursor = table.prefix_cursor(prefix).unwrap();
    let here = |cursor: &terrane::Cursor| cursor.row().map(|(key, _)| key.to_vec());
    for target in [[prefix, other].concat(), other.to_vec()] {
        let at = expected.partition_point(|(key, _)| *key < target);
        let key = |at: Option<usize>| at.and_then(|at| expected.get(at)).map(|(key, _)| key.clone());
        cursor.seek(&target).unwrap();
        assert_eq!(here(&cursor), key(Some(at)), "{target:?} within {prefix:?}");
        if cursor.row().is_some() {
            cursor.prev().unwrap();
            assert_eq!(here(&cursor), key(at.checked_sub(1)), "before {target:?} within {prefix:?}");
        }
        let behind = expected.partition_point(|(key, _)| *key <= target);
        cursor.seek_back(&target).unwrap();
        assert_eq!(here(&cursor), key(behind.checked_sub(1)), "{target:?} back within {prefix:?}");
        if cursor.row().is_some() {
            cursor.next().unwrap();
            assert_eq!(here(&cursor), key(Some(behind)), "behind {target:?} within {prefix:?}");
        }
        cursor.refresh();
    }
}

/// Both ends of one iterator in turns.
fn to_and_fro(table: &Table, lower: &[u8], upper: &[u8], expected: &Rows) {
    let mut iter = table.range((Bound::Excluded(lower), Bound::Included(upper)));
    let (mut front, mut back) = (Vec::new(), Vec::new());
    loop {
        let is_front = front.len() <= back.len();
        let row = if is_front { iter.next() } else { iter.next_back() };
        let Some(row) = row.transpose().unwrap() else { break };
        if is_front { &mut front } else { &mut back }.push((row.0.to_vec(), row.1.to_vec()));
    }
    front.extend(back.into_iter().rev());
    assert_eq!(&front, expected, "in turns, above {lower:?} to {upper:?}");
}

fn run(ops: &[Op], probes: &[Vec<u8>], first: usize) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let mut db = open(&path);
    db.create_table("t", &TableOptions::new().set("prefix_extractor", EXTRACTORS[first]).unwrap()).unwrap();
    let mut model = Model::new();
    for op in ops.iter().chain([&Op::Check, &Op::Flush, &Op::Check, &Op::Compact, &Op::Check]) {
        let table = db.table("t").unwrap();
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
            Op::DeleteRange(start, end) if start < end => {
                table.delete_range(start, end).unwrap();
                model.retain(|key, _| !(start <= key && key < end));
            }
            Op::DeleteRange(..) => {}
            Op::Flush => db.flush().unwrap(),
            Op::FlushToRun => db.flush_to_run(&table).unwrap(),
            Op::Compact => db.compact_range(&table, ..).unwrap(),
            Op::Reopen => {
                drop(table);
                db.close().unwrap();
                db = open(&path);
            }
            Op::Extractor(number) => table.set_option("prefix_extractor", EXTRACTORS[*number]).unwrap(),
            Op::Check => check(&table, &model, probes),
        }
    }
    assert!(db.check(&mut |_, _| ()).unwrap().findings.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn scans_within_prefixes_return_every_row(
        ops in proptest::collection::vec(op(), 20..100),
        probes in proptest::collection::vec(key(), 4..10),
        first in 0..EXTRACTORS.len(),
    ) {
        run(&ops, &probes, first);
    }
}

fn counted(read: impl FnOnce()) -> ReadCounters {
    let before = terrane::read_counters();
    read();
    terrane::read_counters() - before
}

/// Prefixes 0, 2, 4, .. of 4 bytes, with ten keys each.
fn fill(db: &Db, table: &Table) {
    for number in 0..20_000u32 {
        let key = [(number / 10 * 2).to_be_bytes(), (number % 10).to_be_bytes()].concat();
        table.put(&key, [7; 100]).unwrap();
    }
    db.compact_range(table, ..).unwrap();
}

fn seek_missing(table: &Table) -> ReadCounters {
    counted(|| {
        (0..1000u32).for_each(|number| assert!(table.prefix((number * 2 + 1).to_be_bytes()).next().is_none()))
    })
}

#[test]
fn missing_prefixes_cost_a_filter_and_no_block() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    let table =
        db.create_table("t", &TableOptions::new().set("prefix_extractor", "fixed:4").unwrap()).unwrap();
    fill(&db, &table);
    let asked = seek_missing(&table);
    assert!(asked.prefix_probes >= 900, "but at borders of extents each asks one: {asked:?}");
    assert!(asked.prefix_negatives * 100 >= asked.prefix_probes * 90, "few are false: {asked:?}");
    assert_eq!(asked.prefix_negatives + asked.prefix_positives_false, asked.prefix_probes);
    assert_eq!(asked.index_blocks_searched, asked.prefix_positives_false);
    assert_eq!(asked.filter_probes, 0, "those are of point reads");
    let there = counted(|| {
        (0..100u32).for_each(|number| assert_eq!(table.prefix((number * 2).to_be_bytes()).count(), 10))
    });
    assert!(
        there.prefix_probes >= 100 && there.prefix_negatives + there.prefix_positives_false < 5,
        "{there:?}"
    );
    // A prefix that is longer or shorter than the extractor's: the first is within it, the other is not.
    let longer = counted(|| assert_eq!(table.prefix([0, 0, 0, 1, 0]).count(), 0));
    assert_eq!(longer.prefix_probes, longer.prefix_negatives + longer.prefix_positives_false);
    let shorter = counted(|| assert_eq!(table.prefix([0, 0, 0]).count(), 1280));
    assert_eq!(shorter.prefix_probes, 0);
}

#[test]
fn filters_of_another_extractor_are_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = open(&path);
    let table =
        db.create_table("t", &TableOptions::new().set("prefix_extractor", "fixed:4").unwrap()).unwrap();
    fill(&db, &table);
    for name in ["fixed:2", "capped:4", "none"] {
        table.set_option("prefix_extractor", name).unwrap();
        assert_eq!(seek_missing(&table).prefix_probes, 0, "{name}");
    }
    // Stored: the next opening finds it.
    table.set_option("prefix_extractor", "fixed:4").unwrap();
    drop(table);
    db.close().unwrap();
    let table = open(&path).table("t").unwrap();
    assert!(seek_missing(&table).prefix_negatives >= 900);
}

#[test]
fn unknown_extractors_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = open(&path);
    for value in ["fixed:0", "fixed:x", "capped:99999", "until:", "a\u{1}b", ""] {
        let error = TableOptions::new().set("prefix_extractor", value).unwrap_err();
        assert!(error.kind() == Kind::Invalid && error.to_string().contains("prefix_extractor"), "{error}");
    }
    let unknown = TableOptions::new().set("prefix_extractor", "test.unknown").unwrap();
    let error = db.create_table("t", &unknown).unwrap_err();
    assert!(error.kind() == Kind::Invalid && error.to_string().contains("test.unknown"), "{error}");
    let table = db.create_table("t", &TableOptions::new()).unwrap();
    let error = table.set_option("prefix_extractor", "test.unknown").unwrap_err();
    assert!(error.kind() == Kind::Invalid && error.to_string().contains("test.unknown"), "{error}");
    table.set_option("prefix_extractor", "test.first_byte").unwrap();
    drop(table);
    db.close().unwrap();
    // A table whose prefix extractor is not registered is not opened.
    let error = Db::open_with(&path, &options()).err().unwrap();
    assert!(error.kind() == Kind::Invalid, "{error}");
    assert!(error.to_string().contains("test.first_byte") && error.to_string().contains("\"t\""), "{error}");
    open(&path).close().unwrap();
    let mut wrong = options();
    wrong.set("prefix_extractor", "test.unknown").unwrap();
    let error = Db::open_with_functions(&path, &wrong, functions()).err().unwrap();
    assert!(error.kind() == Kind::Invalid && error.to_string().contains("test.unknown"), "{error}");
    assert!(
        PrefixExtractors::new().with(Arc::new(ByFirstByte)).unwrap().with(Arc::new(ByFirstByte)).is_err()
    );
}
