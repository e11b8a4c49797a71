//! Options of a table that change while it is open.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use terrane::{Db, Kind, Options, Table, TableOptions};

const ROWS: u32 = 3000;

fn small() -> Options {
    let mut options = Options { memory_bytes: 16 << 20, ..Options::default() };
    for (name, value) in
        [("segment_bytes", "64KiB"), ("memtable_bytes", "64KiB"), ("global_index_bytes", "256KiB")]
    {
        options.set(name, value).unwrap();
    }
    options
}

/// Rewrites every row and brings them all into one level; returns what they take.
fn rewrite(db: &Db, table: &Table, stamp: u8) -> u64 {
    (0..ROWS).for_each(|key| table.put(key.to_be_bytes(), [stamp; 1000]).unwrap());
    db.flush().unwrap();
    db.compact_range(table, ..).unwrap();
    db.wait_until_quiescent().unwrap();
    number(db, table, "table_stored_bytes")
}

fn number(db: &Db, table: &Table, name: &str) -> u64 {
    db.statistics().table(table.name()).unwrap().get(name).unwrap().number()
}

#[test]
fn later_writes_follow_changed_options() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let db = Db::open_with(&path, &small()).unwrap();
    let plain =
        TableOptions::new().set("compression", "none").unwrap().set("compression_last", "none").unwrap();
    let table = db.create_table("rows", &plain).unwrap();
    let before = rewrite(&db, &table, 1);
    assert!(before > u64::from(ROWS) * 1000, "{before}");
    for name in ["compression", "compression_last"] {
        table.set_option(name, "lz4").unwrap();
    }
    let after = rewrite(&db, &table, 2);
    assert!(after < before / 4, "{after} of {before}");
    drop(table);
    db.close().unwrap();
    let db = Db::open_with(&path, &small()).unwrap();
    let table = db.table("rows").unwrap();
    assert_eq!(table.get(7u32.to_be_bytes()).unwrap().as_deref(), Some(&[2; 1000][..]));
    let reopened = rewrite(&db, &table, 3);
    assert!(reopened < before / 4, "the change is stored: {reopened} of {before}");
}

#[test]
fn levels_follow_their_limits_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let none = terrane::Compression::None;
    let options = Options { compression: none, compression_last: none, ..small() };
    let db = Db::open_with(dir.path().join("data"), &options).unwrap();
    let wide = TableOptions::new().set("level_base_bytes", "64MiB").unwrap();
    let table = db.create_table("rows", &wide).unwrap();
    for key in 0..ROWS {
        table.put(key.wrapping_mul(0x9e37_79b9).to_be_bytes(), [key as u8; 1000]).unwrap();
    }
    db.flush().unwrap();
    db.wait_until_quiescent().unwrap();
    let level_1 = || db.shape().tables.iter().find(|shape| shape.name == "rows").unwrap().levels[0].bytes;
    assert!(level_1() > u64::from(ROWS) * 1000);
    // There are no further writes: jobs that are due now are due because of the options alone.
    table.set_option("level_fanout", "2").unwrap();
    table.set_option("level_base_bytes", "256KiB").unwrap();
    db.wait_until_quiescent().unwrap();
    assert!(level_1() <= 256 << 10, "{}", level_1());
    assert_eq!(table.iter().count(), ROWS as usize);
}

#[test]
fn permanent_options_of_a_table_cannot_be_changed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let db = Db::open_with(&path, &small()).unwrap();
    let table = db.create_table("rows", &TableOptions::new()).unwrap();
    for (name, value) in [
        ("key_order", "reverse"),
        ("merge_operator", "max"),
        ("block_bytes", "1"),
        ("compression", "much"),
        ("memory_bytes", "1GiB"),
        ("none", "1"),
    ] {
        let error = table.set_option(name, value).unwrap_err();
        assert!(error.kind() == Kind::Invalid && error.to_string().contains(name), "{error}");
    }
    db.drop_table("rows").unwrap();
    assert_eq!(table.set_option("level_fanout", "4").unwrap_err().kind(), Kind::NotFound);
    db.close().unwrap();
    let db = Db::open_with(&path, &Options { read_only: true, ..small() }).unwrap();
    assert_eq!(db.default_table().set_option("level_fanout", "4").unwrap_err().kind(), Kind::Invalid);
}
