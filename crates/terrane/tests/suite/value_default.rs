//! Tables separate long values without an option, those of earlier versions too.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use terrane::{Db, Options, Table, TableOptions};

use crate::golden;

/// From this length on values are separated.
const LONG: usize = 16 << 10;
const ROWS: u32 = 40;

fn small() -> Options {
    Options { memory_bytes: 16 << 20, ..Options::default() }
}

fn key(number: u32) -> [u8; 5] {
    let [a, b, c, d] = number.to_be_bytes();
    // Behind the keys of the golden stores.
    [0xff, a, b, c, d]
}

fn value(number: u32, len: usize) -> Vec<u8> {
    (0..len as u32).map(|at| (number.wrapping_mul(at | 1) >> 7) as u8).collect()
}

fn write(db: &Db, table: &Table, len: usize) {
    (0..ROWS).for_each(|number| table.put(key(number), value(number, len)).unwrap());
    db.flush().unwrap();
    db.compact_range(table, ..).unwrap();
}

/// Writes values of so many bytes; returns how many are separated.
fn separated(db: &Db, name: &str, len: usize) -> u64 {
    let table = db.table(name).unwrap();
    write(db, &table, len);
    for number in 0..ROWS {
        let (found, written) = (table.get(key(number)).unwrap(), value(number, len));
        assert_eq!(found.as_deref(), Some(&written[..]), "{name}, {number}");
    }
    let shape = db.shape().tables.into_iter().find(|shape| shape.name == name).unwrap();
    shape.values.live_entries
}

#[test]
fn values_of_16_kib_are_separated_unless_the_table_or_the_database_says_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = Db::open_with(&path, &small()).unwrap();
    db.create_table("new", &TableOptions::new()).unwrap();
    db.create_table("inline", &TableOptions::new().value_separation_bytes(0)).unwrap();
    for name in ["default", "new"] {
        assert_eq!(separated(&db, name, LONG - 1), 0, "{name}");
        assert_eq!(separated(&db, name, LONG), u64::from(ROWS), "{name}");
    }
    assert_eq!(separated(&db, "inline", LONG), 0);
    db.close().unwrap();
    let off = Options { value_separation_bytes: 0, ..small() };
    let db = Db::open_with(&path, &off).unwrap();
    for name in ["default", "new", "inline"] {
        assert_eq!(separated(&db, name, LONG), 0, "{name}: rewritten, they go back to their keys");
    }
    db.table("inline").unwrap().set_option("value_separation_bytes", "4096").unwrap();
    db.close().unwrap();
    let db = Db::open_with(&path, &small()).unwrap();
    assert_eq!(separated(&db, "inline", 4096), u64::from(ROWS), "changed since");
}

#[test]
fn a_table_of_an_earlier_version_separates_new_values() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("db");
    let store = golden::stores().into_iter().rfind(|store| store.ends_with("v7/plain")).unwrap();
    golden::unpack(&store.join("files"), &dir);
    let db = Db::open_with(&dir, &small()).unwrap();
    let tables = db.tables();
    assert!(tables.len() >= 3, "{tables:?}");
    for name in &tables {
        assert_eq!(separated(&db, name, LONG), u64::from(ROWS), "{name}");
    }
}
