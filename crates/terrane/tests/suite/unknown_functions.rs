//! Databases whose tables name functions that the program does not have: they open with what can be read.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "unknown_functions/functions.rs"]
mod functions;

use std::path::Path;
use std::sync::Arc;

use functions::{Joined, functions, table};
use terrane::{Db, Error, Functions, Kind, MergeOperators, Options, Result, Table};

/// Without the flush of the close: operands stay apart.
fn options(is_read_only: bool) -> Options {
    Options { memory_bytes: 16 << 20, read_only: is_read_only, close_flush: false, ..Options::default() }
}

/// A database with the tables `merged` and `prefixed`, rows in extents and in the journal.
fn make(path: &Path, functions: Functions) -> Db {
    let db = Db::open_with_functions(path, &options(false), functions).unwrap();
    db.put(b"k", b"plain").unwrap();
    let merged = table(&db, "merged", ("merge_operator", "test.joined"));
    let prefixed = table(&db, "prefixed", ("prefix_extractor", "test.first"));
    merged.put(b"base", b"1").unwrap();
    merged.put(b"whole", b"value").unwrap();
    prefixed.put(b"aa", b"1").unwrap();
    db.flush().unwrap();
    merged.merge(b"base", b"2").unwrap();
    merged.merge(b"base", b"3").unwrap();
    merged.merge(b"none", b"4").unwrap();
    prefixed.put(b"ab", b"2").unwrap();
    prefixed.put(b"b", b"3").unwrap();
    db
}

fn refused(result: Result<impl Sized>, parts: &[&str]) {
    let error: Error = result.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid, "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "{part:?} is not in {error}");
    }
}

fn keys_in(table: &Table, prefix: &[u8]) -> Vec<Vec<u8>> {
    table.prefix(prefix).map(|row| row.unwrap().0.to_vec()).collect()
}

#[test]
fn a_database_of_unknown_functions_is_read() -> Result<()> {
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("data");
    let db = make(&path, functions());
    table(&db, "mirrored", ("key_order", "test.mirrored")).put(b"ab", b"1")?;
    table(&db, "backward", ("key_order", "test.backward")).put(b"ab", b"1")?;
    db.close()?;

    refused(Db::open(&path), &["test."]);
    let db = Db::open_with_functions(&path, &options(true), Functions::any())?;
    assert_eq!(db.tables(), ["default", "merged", "prefixed", "mirrored", "backward"]);
    assert_eq!(db.get(b"k")?.as_deref(), Some(&b"plain"[..]));
    let merged = db.table("merged")?;
    assert_eq!(merged.get(b"whole")?.as_deref(), Some(&b"value"[..]));
    for key in [&b"base"[..], b"none"] {
        refused(merged.get(key), &["test.joined", "not registered"]);
    }
    assert_eq!(keys_in(&db.table("prefixed")?, b"a"), [b"aa", b"ab"]);
    // Without the functions of the order, keys are shown as they are stored.
    let mirrored = db.table("mirrored")?;
    let keys: Vec<_> = mirrored.iter().map(|row| row.map(|(key, _)| key.to_vec())).collect::<Result<_>>()?;
    assert_eq!(keys, [b"ba"]);
    let report = db.check(&mut |_, _| ())?;
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert_eq!(report.unordered, ["backward"]);
    Ok(())
}

#[test]
fn operands_of_an_unknown_operator_outlive_writes_and_compactions() -> Result<()> {
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("data");
    make(&path, functions()).close()?;

    let db = Db::open_with_functions(&path, &options(false), Functions::any())?;
    let merged = db.table("merged")?;
    refused(merged.merge(b"base", b"5"), &["test.joined", "not registered"]);
    merged.put(b"own", b"6")?;
    db.table("prefixed")?.put(b"ac", b"7")?;
    db.flush()?;
    db.compact_range(&merged, ..)?;
    db.compact_range(&db.table("prefixed")?, ..)?;
    assert_eq!(keys_in(&db.table("prefixed")?, b"a"), [b"aa", b"ab", b"ac"]);
    db.close()?;

    read_with_functions(&path)
}

/// With the functions every row is there as if they had never been missing.
fn read_with_functions(path: &Path) -> Result<()> {
    let db = Db::open_with_functions(path, &options(false), functions())?;
    let merged = db.table("merged")?;
    assert_eq!(merged.get(b"base")?.as_deref(), Some(&b"1+2+3"[..]));
    assert_eq!(merged.get(b"none")?.as_deref(), Some(&b"4"[..]));
    merged.merge(b"none", b"8")?;
    assert_eq!(merged.get(b"none")?.as_deref(), Some(&b"4+8"[..]));
    assert!(keys_in(&db.table("prefixed")?, b"a").starts_with(&[b"aa".to_vec(), b"ab".to_vec()]));
    db.close()
}

#[test]
fn a_repair_keeps_the_names_of_unknown_functions() -> Result<()> {
    let dir = tempfile::tempdir().expect("temporary directory");
    let (path, repaired) = (dir.path().join("data"), dir.path().join("repaired"));
    make(&path, functions()).close()?;
    let report = terrane::repair_with_functions(&path, &repaired, &options(false), Functions::any())?;
    assert!(report.is_whole(), "{:?}", report.losses);
    read_with_functions(&repaired)
}

#[test]
fn a_name_of_the_c_interface_needs_no_operator() -> Result<()> {
    let dir = tempfile::tempdir().expect("temporary directory");
    let (path, repaired) = (dir.path().join("data"), dir.path().join("repaired"));
    let slot = || MergeOperators::new().with(Arc::new(Joined("rocksdb:default")));
    let mut named = options(false);
    named.set("merge_operator", "rocksdb:default")?;
    let db = Db::open_with_operators(&path, &named, slot()?)?;
    db.put(b"k", b"v")?;
    db.default_table().merge(b"m", b"1")?;
    db.close()?;

    let db = Db::open(&path)?;
    assert_eq!(db.get(b"k")?.as_deref(), Some(&b"v"[..]));
    refused(db.get(b"m"), &["rocksdb:default", "not registered"]);
    db.put(b"k", b"w")?;
    db.close()?;
    let report = terrane::repair(&path, &repaired, &options(false))?;
    assert!(report.is_whole(), "{:?}", report.losses);
    let db = Db::open_with_operators(&repaired, &options(false), slot()?)?;
    assert_eq!(db.get(b"k")?.as_deref(), Some(&b"w"[..]));
    assert_eq!(db.get(b"m")?.as_deref(), Some(&b"1"[..]));
    db.close()
}
