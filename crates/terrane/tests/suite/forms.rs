//! Keys, values, ranges and options in every form that a program has them in.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use std::borrow::Cow;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::time::Duration;

use terrane::{
    Batch, Compression, Db, Durability, IndexedBatch, KeyBounds, Kind, Result, Row, Table, TableOptions,
    TransactionOptions,
};

fn db() -> Db {
    Db::open_in_memory().unwrap()
}

/// A table with the rows a to e.
fn table_of(db: &Db) -> &Table {
    let table = db.default_table();
    ["a", "b", "c", "d", "e"].iter().for_each(|key| table.put(key, key.to_uppercase()).unwrap());
    table
}

fn keys(rows: impl Iterator<Item = Result<Row>>) -> String {
    rows.map(|row| String::from_utf8(row.unwrap().0).unwrap()).collect()
}

#[test]
fn keys_and_values_are_whatever_borrows_as_bytes() {
    let db = db();
    db.put("str", String::from("String")).unwrap();
    db.put(b"array", [1, 2, 3]).unwrap();
    db.put(vec![7], vec![8]).unwrap();
    db.put([7; 300].as_slice(), []).unwrap();
    db.put(Box::<[u8]>::from(*b"box"), Cow::Borrowed(&b"cow"[..])).unwrap();
    db.put(42u64.to_be_bytes(), "a reference to one").unwrap();
    assert_eq!(db.get(b"str").unwrap().unwrap(), "String");
    assert_eq!(db.get("array").unwrap().unwrap(), [1, 2, 3]);
    assert_eq!(db.get(&[7u8][..]).unwrap().unwrap(), vec![8]);
    assert_eq!(db.get(vec![7u8; 300]).unwrap().unwrap(), []);
    let value = db.get(String::from("box")).unwrap().unwrap();
    assert_eq!(value, "cow");
    db.put(&value, value.clone()).unwrap();
    assert_eq!(db.get(&value).unwrap().unwrap(), value);
    db.delete(value).unwrap();
    assert!(!db.contains("cow").unwrap());
    let values = db.multi_get(&["str".to_owned(), "none".to_owned()]).unwrap();
    assert_eq!((values[0].as_deref(), values[1].as_deref()), (Some(&b"String"[..]), None));
}

#[test]
fn batches_transactions_and_cursors_take_the_same_keys() {
    let db = db();
    let table = db.default_table();
    let mut batch = Batch::new();
    batch.put(table, "a", b"1").unwrap();
    batch.put_all(table, [("b", "2"), ("c", "3")]).unwrap();
    batch.put_all(table, [(vec![b'd'], [4])]).unwrap();
    batch.delete(table, String::from("c")).unwrap();
    db.write(&batch, Durability::Buffered).unwrap();
    assert_eq!(keys(table.iter()), "abd");
    let mut indexed = IndexedBatch::new();
    indexed.delete_range(table, "b", vec![b'c']).unwrap();
    assert!(indexed.changes_key(table, "b") && indexed.get(table, "b").unwrap().is_none());
    let mut transaction = db.transaction(&TransactionOptions::default()).unwrap();
    transaction.put(table, "e", "5").unwrap();
    assert_eq!(transaction.get(table, b"e").unwrap().unwrap(), "5");
    assert_eq!(keys(transaction.range(table, "b"..).unwrap()), "bde");
    assert_eq!(keys(transaction.prefix(table, "e").unwrap()), "e");
    transaction.commit(Durability::Synced).unwrap();
    let snapshot = db.snapshot();
    assert!(snapshot.contains(table, "e").unwrap());
    let mut cursor = snapshot.range_cursor(table, "b".."e").unwrap();
    cursor.seek("c").unwrap();
    assert_eq!(cursor.row().unwrap().0, b"d");
    cursor.seek_back(vec![b'z']).unwrap();
    assert_eq!(cursor.row().unwrap().0, b"d");
}

#[test]
fn ranges_are_those_of_rust_over_anything_that_borrows_as_bytes() {
    let db = db();
    let table = table_of(&db);
    assert_eq!(keys(table.range("b".."d")), "bc");
    assert_eq!(keys(table.range(b"b"..=b"d")), "bcd");
    assert_eq!(keys(table.range([b'b']..)), "bcde");
    assert_eq!(keys(table.range(vec![b'b']..vec![b'c'])), "b");
    assert_eq!(keys(table.range(..String::from("c"))), "ab");
    assert_eq!(keys(table.range(..=b"c".as_slice())), "abc");
    assert_eq!(keys(table.range((Excluded("b"), Unbounded))), "cde");
    assert_eq!(keys(table.range((Included(b"b"), Excluded(b"d")))), "bc");
    assert_eq!(keys(table.range(&("b".."c"))), "b");
    assert_eq!(keys(table.range(..).rev()), "edcba");
    assert_eq!(keys(db.range("d"..)), "de");
    assert_eq!(keys(db.prefix("a")), "a");
    assert_eq!(keys(db.iter()), "abcde");
    assert_eq!(keys(db.snapshot().range(table, ..)), "abcde");
    assert_eq!(table.approximate_count("b".."d").unwrap().value, 2);
    db.compact_range(table, ..).unwrap();
    db.compact_range(table, "b".."d").unwrap();
}

/// A type of the program's own.
struct Day(u8);

impl KeyBounds for Day {
    fn lower(&self) -> std::ops::Bound<&[u8]> {
        Included(std::slice::from_ref(&self.0))
    }

    fn upper(&self) -> std::ops::Bound<&[u8]> {
        Included(std::slice::from_ref(&self.0))
    }
}

#[test]
fn a_range_can_be_a_type_of_the_program() {
    let db = db();
    assert_eq!(keys(table_of(&db).range(Day(b'c'))), "c");
}

#[test]
fn rows_are_iterated_by_keys_and_values_from_both_ends() {
    let db = db();
    let table = table_of(&db);
    let text = |bytes: Result<Vec<u8>>| String::from_utf8(bytes.unwrap()).unwrap();
    assert_eq!(table.range("b"..).keys().map(text).collect::<String>(), "bcde");
    assert_eq!(table.range("b"..).values().rev().map(text).collect::<String>(), "EDCB");
    assert_eq!(keys(table.into_iter()), "abcde");
    let mut count = 0;
    for row in table {
        count += row.unwrap().0.len();
    }
    assert_eq!(count, 5);
    let mut ended = table.range("e"..);
    assert!(ended.next().is_some() && ended.next().is_none() && ended.next_back().is_none());
}

#[test]
fn a_row_of_an_encoded_key_ends_for_good() {
    let db = db();
    let table = db.create_table("reverse", &TableOptions::new().key_order("reverse")).unwrap();
    table.put_with("a", "1", Durability::Buffered).unwrap();
    let mut rows = table.iter();
    assert!(rows.next().is_some() && rows.next().is_none() && rows.next().is_none());
}

#[test]
fn typed_options_are_those_of_the_text() {
    let db = db();
    let typed = TableOptions::new()
        .merge_operator("counter")
        .key_order("reverse")
        .prefix_extractor("fixed:4")
        .time_to_live(Duration::from_secs(90))
        .compression(Compression::None)
        .compression_last(Compression::Lz4)
        .block_bytes(4096)
        .filter_bits_per_key(12)
        .level_base_bytes(1 << 20)
        .level_fanout(8)
        .overflow_runs_max(20)
        .auto_compaction(false)
        .space_amplification_max_percent(150);
    let text = [
        ("merge_operator", "counter"),
        ("key_order", "reverse"),
        ("prefix_extractor", "fixed:4"),
        ("time_to_live", "90s"),
        ("compression", "none"),
        ("compression_last", "lz4"),
        ("block_bytes", "4096"),
        ("filter_bits_per_key", "12"),
        ("level_base_bytes", "1048576"),
        ("level_fanout", "8"),
        ("overflow_runs_max", "20"),
        ("auto_compaction", "false"),
        ("space_amplification_max_percent", "150"),
    ];
    let text = text.into_iter().try_fold(TableOptions::new(), |all, (name, value)| all.set(name, value));
    assert_eq!(typed, text.unwrap());
    let table = db.create_table("typed", &typed).unwrap();
    assert_eq!((table.key_order(), table.kept_options().len()), ("reverse", 4));
    // The later one counts.
    let twice = TableOptions::new().block_bytes(4096).set("block_bytes", "8KiB").unwrap().block_bytes(1024);
    assert_eq!(twice, TableOptions::new().block_bytes(1024));
}

#[test]
fn a_typed_option_that_is_out_of_range_is_refused_by_name() {
    let db = db();
    let error = db.create_table("bad", &TableOptions::new().block_bytes(3)).unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
    assert!(error.message().contains("block_bytes"), "{error}");
    assert_eq!(db.tables(), ["default"]);
    let table = db.table_or_create("good").unwrap();
    let error = table.set_options(&TableOptions::new().level_fanout(1)).unwrap_err();
    assert!(error.kind() == Kind::Invalid && error.message().contains("level_fanout"), "{error}");
    let error = table.set_options(&TableOptions::new().key_order("reverse")).unwrap_err();
    assert!(error.kind() == Kind::Invalid && error.message().contains("key_order"), "{error}");
    table.set_options(&TableOptions::new().time_to_live(Duration::from_secs(60)).level_fanout(8)).unwrap();
    assert_eq!(table.kept_options(), [("time_to_live".to_owned(), "60000ms".to_owned())]);
}

#[test]
#[expect(deprecated, reason = "the former names are what it tests")]
fn former_names_of_durability_still_work() {
    let former = |sync: terrane::Sync| match sync {
        terrane::Sync::No => Durability::Buffered,
        terrane::Sync::Yes => Durability::Synced,
    };
    assert_eq!(former(Durability::Buffered), Durability::Buffered);
    assert_eq!(former(Durability::Synced), Durability::Synced);
}

#[test]
fn handles_are_shared_between_threads() {
    fn is_shared<T: Send + Sync>(_: &T) {}
    let db = db();
    is_shared(&db);
    is_shared(db.default_table());
    is_shared(&db.snapshot());
}
