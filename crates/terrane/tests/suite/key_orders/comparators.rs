//! Tables with comparators: many extents, refused calls, failures, and external files.

use std::ops::Bound;

use terrane::{Db, Durability, ExtentFileWriter, IngestOptions, Kind, Options, TransactionOptions};

use super::border::own;
use super::orders::functions;
use super::{open, options, rows};

/// Decimal numbers: as bytes they lie otherwise.
fn key(number: u64) -> Vec<u8> {
    number.to_string().into_bytes()
}

/// Numbers of all rows, which are in their order.
fn numbers(table: &terrane::Table) -> Vec<u64> {
    let number = |row: (Vec<u8>, Vec<u8>)| String::from_utf8(row.0).unwrap().parse().unwrap();
    rows(table.iter()).into_iter().map(number).collect()
}

#[test]
fn many_extents_of_several_levels_lie_in_the_comparators_order() {
    const ROWS: u64 = 60_000;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let db = open(&path);
    let small =
        own("test.decimal").set("level_base_bytes", "4MiB").unwrap().set("compression", "none").unwrap();
    let table = db.create_table("t", &small.set("compression_last", "none").unwrap()).unwrap();
    // A step that is prime to the count: every number once, far from the one before.
    for at in 0..ROWS {
        let number = at * 7919 % ROWS;
        table.put(key(number), [number as u8; 300]).unwrap();
        if at % 20_000 == 19_999 {
            db.flush().unwrap();
        }
    }
    table.delete_range(key(9_000), key(11_000)).unwrap();
    db.flush().unwrap();
    table.put(key(10_000), b"again").unwrap();
    let wanted: Vec<u64> = (0..ROWS).filter(|n| !(9_000..11_000).contains(n) || *n == 10_000).collect();
    assert_eq!(numbers(&table), wanted);
    db.compact_range(&table, (Bound::Included(&key(500)[..]), Bound::Excluded(&key(40_000)[..]))).unwrap();
    assert_eq!(numbers(&table), wanted);
    db.compact_range(&table, ..).unwrap();
    assert_eq!(numbers(&table), wanted);
    assert!(table.approximate_count(&key(20_000)[..]..&key(30_000)[..]).unwrap().value > 9_000);
    drop(table);
    db.close().unwrap();
    let db = open(&path);
    let table = db.table("t").unwrap();
    assert_eq!(numbers(&table), wanted);
    let shape = db.shape().tables.into_iter().find(|shape| shape.name == "t").unwrap();
    assert!(shape.levels.iter().map(|level| level.extents).sum::<u64>() > 6, "{shape:?}");
    for number in (0..ROWS).step_by(997) {
        assert_eq!(table.get(key(number)).unwrap().is_some(), wanted.binary_search(&number).is_ok());
    }
    assert!(db.check(&mut |_, _| ()).unwrap().findings.is_empty());
}

#[test]
fn rows_in_the_journal_are_there_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let db = open(&path);
    let table = db.create_table("t", &own("test.decimal")).unwrap();
    for number in [9, 10, 100, 8] {
        table.put(key(number), b"v").unwrap();
    }
    table.delete_range(key(9), key(100)).unwrap();
    // Nothing was flushed: closing leaves it to the journal.
    drop(table);
    db.close().unwrap();
    assert_eq!(numbers(&open(&path).table("t").unwrap()), [8, 100]);
}

#[test]
fn a_comparator_that_is_missing_or_another_one_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let (path, repaired) = (dir.path().join("data"), dir.path().join("repaired"));
    let db = open(&path);
    for (name, order) in [("t", "test.decimal"), ("letters", "test.letters")] {
        db.create_table(name, &own(order)).unwrap().put(b"1", b"v").unwrap();
    }
    db.flush().unwrap();
    db.close().unwrap();
    for error in [
        Db::open_with(&path, &options()).err().unwrap(),
        terrane::repair(&path, &repaired, &options()).err().unwrap(),
    ] {
        assert_eq!(error.kind(), Kind::Invalid, "{error}");
        assert!(
            error.to_string().contains("test.decimal") || error.to_string().contains("test.letters"),
            "{error}"
        );
    }
    // The names stand for the other kind of order.
    let mut swapped = functions();
    swapped.orders = super::orders::swapped();
    let error = Db::open_with_functions(&path, &options(), swapped).err().unwrap();
    assert!(error.kind() == Kind::Invalid && error.to_string().contains("comparator"), "{error}");
    let report = terrane::repair_with_functions(&path, &repaired, &options(), functions()).unwrap();
    assert!(report.is_whole());
    assert_eq!(numbers(&open(&repaired).table("t").unwrap()), [1]);
}

#[test]
fn after_a_panic_everything_is_refused_until_the_database_is_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let db = open(&path);
    let table = db.create_table("t", &own("test.failing-comparator")).unwrap();
    let other = db.create_table("other", &own("test.decimal")).unwrap();
    table.put(b"a", b"1").unwrap();
    other.put(b"1", b"1").unwrap();
    db.flush().unwrap();
    let error = table.get(b"x").unwrap_err();
    assert!(
        error.kind() == Kind::Poisoned && error.to_string().contains("test.failing-comparator"),
        "{error}"
    );
    for refused in [table.get(b"a").map(drop), table.put(b"b", b"1"), table.iter().next().unwrap().map(drop)]
    {
        assert_eq!(refused.unwrap_err().kind(), Kind::Poisoned);
    }
    other.put(b"2", b"2").unwrap();
    drop((table, other));
    db.close().unwrap();
    let db = open(&path);
    assert_eq!(db.table("t").unwrap().get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(numbers(&db.table("other").unwrap()), [1, 2]);
}

#[test]
fn files_and_loads_are_in_the_comparators_order() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    let table = db.create_table("t", &own("test.decimal")).unwrap();
    db.bulk_load(&table, [(b"9".as_slice(), b"1"), (b"10", b"1")]).unwrap();
    assert_eq!(
        db.bulk_load(&table, [(b"30".as_slice(), b"1"), (b"4", b"1")]).unwrap_err().kind(),
        Kind::Invalid
    );
    let path = dir.path().join("file");
    let mut by_decimal = Options::default();
    by_decimal.set("key_order", "test.decimal").unwrap();
    let mut file = ExtentFileWriter::create_with_orders(&path, &by_decimal, &functions().orders).unwrap();
    file.put(b"11", b"2").unwrap();
    assert_eq!(file.put(b"2", b"2").unwrap_err().kind(), Kind::Invalid, "it comes before");
    file.put(b"100", b"2").unwrap();
    file.finish().unwrap();
    let refused = db.ingest(&[(db.default_table(), &path)], IngestOptions::default()).unwrap_err();
    assert_eq!(refused.kind(), Kind::Invalid, "the table has another order");
    db.ingest(&[(&table, &path)], IngestOptions::default()).unwrap();
    assert_eq!(numbers(&table), [9, 10, 11, 100]);
}

#[test]
fn an_ingest_conflicts_with_the_scans_of_a_serializable_transaction() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("data"));
    let table = db.create_table("t", &own("test.decimal")).unwrap();
    let begin = || {
        let mut transaction = db.transaction(&TransactionOptions::default()).unwrap();
        let range = (Bound::Included(b"9".as_slice()), Bound::Excluded(b"100".as_slice()));
        assert_eq!(rows(transaction.range(&table, range).unwrap()).len(), 0);
        transaction.put(&table, b"1000", b"mine").unwrap();
        transaction
    };
    let beside = begin();
    table.put(b"900", b"v").unwrap();
    beside.commit(Durability::Buffered).unwrap();
    let met = begin();
    table.put(b"10", b"v").unwrap();
    assert_eq!(met.commit(Durability::Buffered).unwrap_err().kind(), Kind::Conflict);
}

/// Range deletes that reach over several extents are cut behind the last key of each.
#[test]
fn extents_are_listed_with_the_keys_of_the_user() {
    for order in ["test.decimal", "reverse", "bytewise"] {
        let dir = tempfile::tempdir().unwrap();
        let db = open(&dir.path().join("data"));
        // Several extents, with the values in them.
        let plain = own(order).set("compression", "none").unwrap().value_separation_bytes(0);
        let table = db.create_table("t", &plain.set("compression_last", "none").unwrap()).unwrap();
        for number in 0..60 {
            table.put(key(number), vec![number as u8; 100_000]).unwrap();
        }
        let snapshot = db.snapshot();
        let (first, behind) = if order == "reverse" { (999, 0) } else { (0, 999) };
        table.delete_range(key(first), key(behind)).unwrap();
        db.flush().unwrap();
        db.compact_range(&table, ..).unwrap();
        let extents = table.extents().unwrap();
        let with_deletes = extents.iter().filter(|extent| extent.summary.range_deletes > 0).count();
        assert!(with_deletes > 2, "{order}: {extents:?}");
        for extent in &extents {
            assert!(
                table.compare_keys(&extent.smallest, &extent.largest).unwrap().is_le(),
                "{order}: {extent:?}"
            );
        }
        drop(snapshot);
    }
}
