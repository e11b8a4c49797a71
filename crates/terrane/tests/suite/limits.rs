//! The documented limits: sizes within them work, also after a flush and a reopening; sizes beyond them are
//! refused by name and change nothing.

#![allow(clippy::unwrap_used, reason = "a test")]

use terrane::{Batch, Db, Durability, Kind, Options, TableOptions};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

fn open(dir: &tempfile::TempDir, memory_bytes: usize) -> Db {
    let options = Options { memory_bytes: memory_bytes as u64, ..Options::default() };
    Db::open_with(dir.path().join("db"), &options).unwrap()
}

#[test]
fn the_longest_keys_and_values_go_through_every_part() {
    let dir = tempfile::tempdir().unwrap();
    let longest_key = vec![7; 64 * KIB];
    let longest_value: Vec<u8> = (0..64 * MIB).map(|i| (i / 1000) as u8).collect();
    let rows: [(&[u8], &[u8]); 5] = [
        (b"", b"empty key"),
        (b"empty value", b""),
        (&longest_key, b"longest key"),
        (&longest_key[..64 * KIB - 1], &longest_value[..3 * MIB]),
        (b"longest value", &longest_value),
    ];
    let check = |db: &Db| {
        for (key, value) in rows {
            assert_eq!(db.get(key).unwrap().as_deref(), Some(value), "key of {} bytes", key.len());
        }
        let mut expected: Vec<_> = rows.to_vec();
        expected.sort_unstable();
        let found: Vec<_> = db.default_table().iter().map(Result::unwrap).collect();
        assert!(found.iter().map(|(k, v)| (k.as_slice(), v.as_slice())).eq(expected));
    };
    let db = open(&dir, 1024 * MIB);
    for (key, value) in rows {
        db.put(key, value).unwrap();
    }
    check(&db);
    db.close().unwrap();
    let db = open(&dir, 1024 * MIB);
    check(&db);
    db.flush().unwrap();
    check(&db);
    db.compact_range(db.default_table(), ..).unwrap();
    check(&db);
    assert!(db.check(&mut |_, _| ()).unwrap().findings.is_empty());
    db.close().unwrap();
    check(&open(&dir, 1024 * MIB));
}

#[test]
fn writes_beyond_a_limit_are_refused_and_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir, 16 * MIB);
    let table = db.default_table();
    let refused = [
        db.put(vec![0; 64 * KIB + 1], b""),
        db.put(b"k", vec![0; 64 * MIB + 1]),
        // Within the limit of a value, beyond what the memory budget leaves for one batch.
        db.put(b"k", vec![0; 14 * MIB]),
    ];
    for result in refused {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid, "{error}");
        assert!(error.to_string().contains("limit"), "{error}");
    }
    assert_eq!(db.get(vec![0; 64 * KIB + 1]).unwrap_err().kind(), Kind::Invalid);
    let mut batch = Batch::new();
    batch.put(table, b"a", b"1").unwrap();
    assert!(batch.put(table, vec![0; 64 * KIB + 1], b"").is_err());
    assert_eq!(batch.len(), 1, "a refused change is not in the batch");
    db.write(&batch, Durability::Synced).unwrap();
    assert_eq!(table.iter().count(), 1);
}

#[test]
fn tables_come_and_go() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir, 16 * MIB);
    assert_eq!(db.table("none").unwrap_err().kind(), Kind::NotFound);
    assert_eq!(db.drop_table("default").unwrap_err().kind(), Kind::Invalid);
    for name in ["", "a\nb", &"x".repeat(256), "default"] {
        assert_eq!(
            db.create_table(name, &TableOptions::new()).unwrap_err().kind(),
            Kind::Invalid,
            "{name:?}"
        );
    }
    assert_eq!(TableOptions::new().set("memory_bytes", "1GiB").unwrap_err().kind(), Kind::Invalid);
    for round in 0..20 {
        let table = db.create_table("t", &TableOptions::new()).unwrap();
        assert!(table.iter().next().is_none(), "a new table is empty in round {round}");
        for number in 0..500u32 {
            table.put(number.to_be_bytes(), [round; 100]).unwrap();
        }
        if round % 2 == 0 {
            db.flush().unwrap();
        }
        let mut rows = table.iter();
        assert!(rows.next().is_some());
        db.drop_table("t").unwrap();
        assert_eq!(rows.count(), 499, "an iterator keeps what it reads");
        assert_eq!(table.put(b"k", b"v").unwrap_err().kind(), Kind::NotFound);
        let mut batch = Batch::new();
        batch.put(&table, b"k", b"v").unwrap();
        batch.put(db.default_table(), b"k", b"v").unwrap();
        assert_eq!(db.write(&batch, Durability::Buffered).unwrap_err().kind(), Kind::NotFound);
        assert!(!db.contains(b"k").unwrap(), "a refused batch leaves nothing behind");
    }
    db.close().unwrap();
    let db = open(&dir, 16 * MIB);
    assert_eq!(db.tables(), ["default"]);
    assert!(db.check(&mut |_, _| ()).unwrap().findings.is_empty());
}

#[test]
fn a_journal_that_is_off_loses_nothing_in_an_orderly_close() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir, 16 * MIB);
    db.put(b"journaled", b"1").unwrap();
    db.close().unwrap();
    let mut options = Options { memory_bytes: 16 << 20, ..Options::default() };
    options.set("journal", "off").unwrap();
    let path = dir.path().join("db");
    let db = Db::open_with(&path, &options).unwrap();
    assert!(db.contains(b"journaled").unwrap());
    db.put(b"unjournaled", b"2").unwrap();
    db.close().unwrap();
    let db = open(&dir, 16 * MIB);
    assert!(db.contains(b"journaled").unwrap() && db.contains(b"unjournaled").unwrap());
    db.put(b"journaled again", b"3").unwrap();
    drop(db);
    assert!(open(&dir, 16 * MIB).contains(b"journaled again").unwrap());
}

/// Writers go on until the close refuses them: acknowledged rows must be in the last flush.
#[test]
fn a_close_without_a_journal_keeps_every_acknowledged_write() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options { memory_bytes: 64 << 20, ..Options::default() };
    options.set("journal", "off").unwrap();
    let path = dir.path().join("db");
    let db = Db::open_with(&path, &options).unwrap();
    let acknowledged: Vec<u64> = std::thread::scope(|scope| {
        let writers = [0u8, 1, 2].map(|writer| {
            let table = db.default_table().clone();
            scope.spawn(move || {
                let is_done =
                    |row: u64| match table.put([&[writer][..], &row.to_be_bytes()].concat(), b"value") {
                        Ok(()) => false,
                        Err(error) => {
                            assert_eq!(error.kind(), Kind::Cancelled, "{error}");
                            true
                        }
                    };
                (0..).find(|row| is_done(*row)).unwrap()
            })
        });
        while db.snapshot().iter(db.default_table()).take(1_000).count() < 1_000 {
            std::thread::yield_now();
        }
        db.clone().close().unwrap();
        writers.map(|writer| writer.join().unwrap()).to_vec()
    });
    drop(db);
    let db = open(&dir, 64 * MIB);
    for (writer, rows) in acknowledged.into_iter().enumerate() {
        for row in 0..rows {
            let key = [&[writer as u8][..], &row.to_be_bytes()].concat();
            assert!(db.contains(&key).unwrap(), "row {row} of {rows} was acknowledged to writer {writer}");
        }
    }
}

#[test]
fn puts_added_at_once_are_those_added_one_by_one() {
    let dir = tempfile::tempdir().unwrap();
    let (db, other) = (open(&dir, 64 * MIB), Db::open(dir.path().join("other")).unwrap());
    let options = |name, value| TableOptions::new().set(name, value).unwrap();
    let tables = [
        db.default_table().clone(),
        db.create_table("backward", &options("key_order", "reverse")).unwrap(),
        db.create_table("mortal", &options("time_to_live", "1h")).unwrap(),
    ];
    let rows: [(&[u8], &[u8]); 3] = [(b"a", b"1"), (b"b", b""), (b"a", b"2")];
    let (mut at_once, mut one_by_one) = (Batch::new(), Batch::new());
    for table in &tables {
        at_once.put_all(table, rows).unwrap();
        rows.iter().for_each(|(key, value)| one_by_one.put(table, key, value).unwrap());
        at_once.put_all(table, rows.into_iter().take(0)).unwrap();
    }
    assert_eq!((at_once.len(), at_once.bytes()), (one_by_one.len(), one_by_one.bytes()));
    db.write(&at_once, Durability::Buffered).unwrap();
    for table in &tables {
        assert_eq!(table.get(b"a").unwrap().as_deref(), Some(&b"2"[..]), "{}", table.name());
        assert_eq!(table.get(b"b").unwrap().as_deref(), Some(&b""[..]), "{}", table.name());
    }
    // A failed call leaves the changes before it.
    let too_long = vec![0; 64 * KIB + 1];
    let mut batch = Batch::new();
    let mixed: [(&[u8], &[u8]); 3] = [(b"front", b"1"), (&too_long, b"2"), (b"behind", b"3")];
    assert_eq!(batch.put_all(&tables[0], mixed).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(batch.len(), 1);
    assert_eq!(batch.put_all(other.default_table(), rows).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(batch.len(), 1);
    // A table that was dropped meanwhile keeps the batch out.
    batch.put_all(&tables[1], rows).unwrap();
    db.drop_table("backward").unwrap();
    assert_eq!(db.write(&batch, Durability::Buffered).unwrap_err().kind(), Kind::NotFound);
}

#[test]
fn a_batch_is_of_one_database() {
    let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [here, there] = [&dirs[0], &dirs[1]].map(|dir| open(dir, 64 * MIB));
    let mut batch = Batch::new();
    batch.put(here.default_table(), b"k", b"here").unwrap();
    for refused in [
        batch.put(there.default_table(), b"k", b"there"),
        batch.delete(there.default_table(), b"k"),
        there.write(&batch, Durability::Buffered).map(drop),
    ] {
        let error = refused.unwrap_err();
        assert!(error.kind() == Kind::Invalid && error.message().contains("another"), "{error}");
    }
    assert_eq!((batch.len(), there.get(b"k").unwrap()), (1, None));
    here.write(&batch, Durability::Buffered).unwrap();
    assert_eq!(here.get(b"k").unwrap().as_deref(), Some(&b"here"[..]));

    // Opened again it is another one: its tables may be others.
    here.close().unwrap();
    let again = open(&dirs[0], 64 * MIB);
    assert_eq!(again.write(&batch, Durability::Buffered).unwrap_err().kind(), Kind::Invalid);
    batch.clear();
    batch.put(again.default_table(), b"k", b"again").unwrap();
    again.write(&batch, Durability::Buffered).unwrap();
    assert_eq!(again.get(b"k").unwrap().as_deref(), Some(&b"again"[..]));
}

#[test]
fn a_change_that_was_refused_names_no_database_and_no_table() {
    let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [here, there] = [&dirs[0], &dirs[1]].map(|dir| open(dir, 64 * MIB));
    let too_long = vec![0; 64 * KIB + 1];
    let mut batch = Batch::new();
    assert_eq!(batch.put(there.default_table(), &too_long, b"").unwrap_err().kind(), Kind::Invalid);
    batch.put(here.default_table(), b"k", b"here").unwrap();
    let dropped = here.create_table("dropped", &TableOptions::default()).unwrap();
    assert_eq!(batch.delete(&dropped, &too_long).unwrap_err().kind(), Kind::Invalid);
    here.drop_table("dropped").unwrap();
    here.write(&batch, Durability::Buffered).unwrap();
    assert_eq!(here.get(b"k").unwrap().as_deref(), Some(&b"here"[..]));
}
