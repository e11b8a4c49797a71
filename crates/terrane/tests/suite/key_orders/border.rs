//! Encoding at the interface of a table with a key order: the stored keys, refused keys, and every other call
//! that passes keys.

use terrane::cores::{Answer, Cores};
use terrane::{Db, Durability, ExtentFileWriter, IngestOptions, Kind, Options, TableOptions};

use super::orders::functions;
use super::{open, options, rows};

pub(super) fn own(order: &str) -> TableOptions {
    TableOptions::new().set("key_order", order).unwrap()
}

#[test]
fn an_order_is_stored_with_the_table() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let mut reverse = options();
    reverse.set("key_order", "reverse").unwrap();
    let db = Db::open_with(&path, &reverse).unwrap();
    db.create_table("other", &TableOptions::new()).unwrap();
    db.create_table("plain", &own("bytewise")).unwrap();
    db.create_table("numbers", &own("test.unknown")).err().unwrap();
    for table in ["default", "other", "plain"].map(|name| db.table(name).unwrap()) {
        table.put(b"a", b"1").unwrap();
        table.put(b"b", b"2").unwrap();
    }
    db.close().unwrap();
    // Whatever the database is opened with.
    let db = Db::open_with(&path, &options()).unwrap();
    let keys = |name: &str| -> Vec<Vec<u8>> {
        rows(db.table(name).unwrap().iter()).into_iter().map(|row| row.0).collect()
    };
    assert_eq!(keys("default"), [b"b", b"a"]);
    assert_eq!(keys("other"), [b"b", b"a"]);
    assert_eq!(keys("plain"), [b"a", b"b"]);
    let error = db.table("other").unwrap().set_option("key_order", "bytewise").unwrap_err();
    assert!(error.kind() == Kind::Invalid && error.to_string().contains("key_order"), "{error}");
    db.close().unwrap();
    let mut other = options();
    other.set("key_order", "test.numbers").unwrap();
    let error = Db::open_with_functions(&path, &other, functions()).err().unwrap();
    assert!(error.to_string().contains("test.numbers") && error.to_string().contains("reverse"), "{error}");
}

#[test]
fn an_order_that_is_not_registered_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (path, repaired) = (dir.path().join("data"), dir.path().join("repaired"));
    let db = open(&path);
    let error = db.create_table("t", &own("test.unknown")).unwrap_err();
    assert!(error.kind() == Kind::Invalid && error.to_string().contains("test.unknown"), "{error}");
    assert!(TableOptions::new().set("key_order", "a\u{7}").is_err());
    let table = db.create_table("t", &own("test.letters")).unwrap();
    table.put(b"Key", b"1").unwrap();
    drop(table);
    db.close().unwrap();
    for error in [
        Db::open_with(&path, &options()).err().unwrap(),
        terrane::repair(&path, &repaired, &options()).err().unwrap(),
    ] {
        assert!(error.kind() == Kind::Invalid, "{error}");
        assert!(error.to_string().contains("test.letters") && error.to_string().contains("\"t\""), "{error}");
    }
    let report = terrane::repair_with_functions(&path, &repaired, &options(), functions()).unwrap();
    assert!(report.is_whole());
    let table = open(&repaired).table("t").unwrap();
    assert_eq!(table.get(b"kEY").unwrap().as_deref(), Some(&b"1"[..]));
}

#[test]
fn keys_with_one_encoding_are_one_key() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("data"));
    let table = db.create_table("t", &own("test.letters")).unwrap();
    table.put(b"KEY", b"1").unwrap();
    db.flush().unwrap();
    table.put(b"key", b"2").unwrap();
    assert_eq!(rows(table.iter()), [(b"key".to_vec(), b"2".to_vec())]);
    // Transactions conflict over it.
    let mut transaction = db.transaction(&terrane::TransactionOptions::default()).unwrap();
    transaction.get(&table, b"Key").unwrap();
    transaction.put(&table, b"other", b"3").unwrap();
    table.put(b"kEy", b"4").unwrap();
    assert_eq!(transaction.commit(Durability::Buffered).unwrap_err().kind(), Kind::Conflict);
}

#[test]
fn a_failing_order_is_an_error_of_its_operation() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let db = open(&path);
    let table = db.create_table("t", &own("test.failing")).unwrap();
    for key in [b"a", b"x", b"y", b"z"] {
        assert_eq!(table.put(key, b"1").is_err(), key == b"x");
    }
    let error = table.get(b"x").unwrap_err();
    assert!(error.kind() == Kind::Invalid && error.to_string().contains("test.failing"), "{error}");
    assert!(table.range(b"x".as_slice()..).next().unwrap().is_err());
    assert!(table.get(b"y").unwrap().is_some(), "nothing is decoded");
    db.flush().unwrap();
    db.compact_range(&table, ..).unwrap();
    let mut iter = table.iter();
    assert!(iter.next().unwrap().is_ok());
    assert_eq!(iter.next().unwrap().unwrap_err().kind(), Kind::Corrupt);
    assert!(iter.next().is_none(), "after an error it ends");
    let mut cursor = table.cursor();
    assert!(cursor.seek(b"b").is_err() && cursor.row().is_none());
    cursor.seek(b"z").unwrap();
    assert_eq!(cursor.row().unwrap().0, b"z");
    assert!(db.check(&mut |_, _| ()).unwrap().findings.is_empty());
}

#[test]
fn prefixes_are_extracted_from_stored_keys() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("data"));
    let table = db.create_table("t", &own("reverse").set("prefix_extractor", "fixed:2").unwrap()).unwrap();
    for number in 0..1000u16 {
        table.put([&(number * 3).to_be_bytes()[..], b"-"].concat(), b"1").unwrap();
    }
    db.compact_range(&table, ..).unwrap();
    let before = terrane::read_counters();
    for number in 1..3000u16 {
        // Bytes of zero take two: there the prefix is another one, and still right.
        assert_eq!(table.prefix(number.to_be_bytes()).count(), usize::from(number % 3 == 0), "{number}");
    }
    assert!((terrane::read_counters() - before).prefix_negatives > 1000);
}

#[test]
fn cores_divide_a_table_in_its_order() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("data"));
    let table = db.create_table("t", &own("reverse")).unwrap();
    assert!(Cores::builder(&db).cores(2).ranges(&table, &[b"b", b"m"]).build().is_err(), "they descend");
    let cores = Cores::builder(&db).cores(2).ranges(&table, &[b"m", b"b"]).build().unwrap();
    let mut session = cores.session().unwrap();
    for key in [b"a", b"c", b"x"] {
        session.put(&table, key, key, Durability::Buffered).unwrap();
    }
    // A scan beyond the range of its core may miss what the session has not heard of yet.
    session.finish(&mut |_, answer| assert!(answer.is_ok()));
    session.get(&table, b"c").unwrap();
    session.scan(&table, b"q", 10).unwrap();
    session.scan_back(&table, b"b", 1).unwrap();
    let mut seen = Vec::new();
    session.finish(&mut |_, answer| match answer.unwrap() {
        Answer::Value(value) => assert_eq!(value, Some(&b"c"[..])),
        Answer::Rows(rows) => seen.push(rows.iter().map(|(key, _)| key.to_vec()).collect::<Vec<_>>()),
        _ => {}
    });
    seen.sort();
    assert_eq!(seen, [vec![b"c".to_vec()], vec![b"c".to_vec(), b"a".to_vec()]]);
}

#[test]
fn files_and_loads_are_in_the_order_of_their_table() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    let table = db.create_table("t", &own("reverse")).unwrap();
    db.bulk_load(&table, [(b"d", b"1"), (b"c", b"1")]).unwrap();
    assert_eq!(db.bulk_load(&table, [(b"a", b"1"), (b"b", b"1")]).unwrap_err().kind(), Kind::Invalid);
    let path = dir.path().join("file");
    let mut file = ExtentFileWriter::create(&path, &options_with("reverse")).unwrap();
    file.put(b"b", b"2").unwrap();
    assert_eq!(file.put(b"c", b"2").unwrap_err().kind(), Kind::Invalid, "it comes before");
    file.put(b"a", b"2").unwrap();
    file.finish().unwrap();
    let refused = db.ingest(&[(db.default_table(), &path)], IngestOptions::default()).unwrap_err();
    assert_eq!(refused.kind(), Kind::Invalid, "the table has another order");
    db.ingest(&[(&table, &path)], IngestOptions::default()).unwrap();
    let keys: Vec<_> = table.iter().map(|row| row.unwrap().0).collect();
    assert_eq!(keys, [b"d", b"c", b"b", b"a"]);
    assert_eq!(table.approximate_count(&b"c"[..]..&b"a"[..]).unwrap().value, 2);
}

fn options_with(order: &str) -> Options {
    let mut options = Options::default();
    options.set("key_order", order).unwrap();
    options
}
