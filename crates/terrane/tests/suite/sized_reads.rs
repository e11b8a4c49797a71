//! Reads into memory of a known size (`Table::get_to`) say what other point reads say, wherever a value comes
//! from: memtable, overflow run, level, cached or not, row cache; whole, separated, of operands, with an
//! expiry; deleted, or hidden by a range delete.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::mem::MaybeUninit;
use std::path::Path;
use std::time::Duration;

use terrane::{Db, Options, Table, TableOptions};

const KEYS: u32 = 400;
/// Stands in the places before a read.
const BEFORE: u8 = b'#';

fn open(path: &Path, row_cache: &str) -> Db {
    let mut options = Options { memory_bytes: 16 << 20, ..Options::default() };
    for (name, value) in [("block_bytes", "1KiB"), ("row_cache", row_cache)] {
        options.set(name, value).unwrap();
    }
    Db::open_with(path, &options).unwrap()
}

fn tables(db: &Db) -> Vec<Table> {
    let plain = || TableOptions::new().merge_operator("append");
    [
        ("plain", plain()),
        ("separated", plain().value_separation_bytes(200)),
        ("expiring", plain().time_to_live(Duration::from_secs(3600))),
    ]
    .into_iter()
    .map(|(name, options)| db.table(name).or_else(|_| db.create_table(name, &options)).unwrap())
    .collect()
}

fn key(number: u32) -> String {
    format!("key-{number:04}")
}

/// Also empty ones, and some that are longer than a block.
fn value(number: u32, round: u32) -> Vec<u8> {
    let len = if number.is_multiple_of(50) { 3000 } else { (number * 7 + round * 11) % 400 };
    (0..len).map(|at| (at * 31 + number + round) as u8).collect()
}

fn write(table: &Table, round: u32) {
    table.delete_range(key(round * 37), key(round * 37 + 25)).unwrap();
    for number in (0..KEYS).filter(|number| (number + round).is_multiple_of(3)) {
        match (number + round) / 3 % 5 {
            0 => table.delete(key(number)).unwrap(),
            1 => table.merge(key(number), value(number, round)).unwrap(),
            _ => table.put(key(number), value(number, round)).unwrap(),
        }
    }
    table.delete_range(key(round * 41 + 100), key(round * 41 + 110)).unwrap();
}

/// A read into so many places: what it returned, and the places.
fn read(table: &Table, key: &str, room: usize) -> (Option<usize>, Vec<u8>) {
    let mut places = vec![MaybeUninit::new(BEFORE); room];
    let len = table.get_to(key, &mut places).unwrap();
    let mut others = vec![MaybeUninit::new(BEFORE); room];
    assert_eq!(table.get_to_here(key.as_bytes(), &mut others).unwrap(), len, "{key} as a part of its caller");
    if len.is_some_and(|len| len <= room) {
        assert!(others.iter().copied().map(byte).eq(places.iter().copied().map(byte)), "{key}");
    }
    // Each was written when the places were made.
    (len, places.iter().copied().map(byte).collect())
}

#[expect(unsafe_code, reason = "what was initialized is read")]
fn byte(place: MaybeUninit<u8>) -> u8 {
    // SAFETY: all places were initialized, and no function makes them uninitialized again.
    unsafe { place.assume_init() }
}

/// Each key is read for the first time by the read that is looked at where `is_first` is true: its parts are
/// not cached then.
fn check(table: &Table, is_first: bool) {
    for number in 0..=KEYS {
        let key = key(number);
        let early = is_first.then(|| read(table, &key, 4096));
        let expected = table.get(&key).unwrap().map(|value| value.to_vec());
        let len = expected.as_ref().map(Vec::len);
        let rooms = [0, len.unwrap_or(0).saturating_sub(1), len.unwrap_or(0), len.unwrap_or(0) + 9];
        let reads = rooms.map(|room| read(table, &key, room));
        for (found, places) in early.into_iter().chain(reads) {
            assert_eq!(found, len, "{key} of {}", table.name());
            let Some(value) = expected.as_ref().filter(|value| value.len() <= places.len()) else { continue };
            let (begin, rest) = places.split_at(value.len());
            assert_eq!(begin, value, "{key} of {}", table.name());
            assert!(rest.iter().all(|byte| *byte == BEFORE), "nothing is written behind the value of {key}");
        }
    }
}

fn check_all(tables: &[Table], is_first: bool) {
    for table in tables {
        check(table, is_first);
        check(table, false);
    }
}

fn run(row_cache: &str) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    for round in 0..4 {
        let db = open(&path, row_cache);
        let tables = tables(&db);
        // In levels alone, and nothing of them is cached.
        check_all(&tables, true);
        for part in 0..3 {
            tables.iter().for_each(|table| write(table, round * 3 + part));
            check_all(&tables, false);
            if part == 1 {
                db.flush().unwrap();
                check_all(&tables, true);
            }
        }
        for table in &tables {
            db.flush().unwrap();
            db.compact_range(table, ..).unwrap();
        }
        check_all(&tables, true);
        db.close().unwrap();
    }
}

#[test]
fn reads_into_memory_of_a_known_size_say_what_reads_into_a_vector_say() {
    run("0");
}

#[test]
fn reads_into_memory_of_a_known_size_say_the_same_with_a_row_cache() {
    run("50");
}

#[test]
fn a_read_into_memory_of_a_known_size_fails_as_others_do() {
    let db = Db::open_in_memory().unwrap();
    let table = db.create_table("gone", &TableOptions::new()).unwrap();
    let longest = vec![b'k'; 1 << 20];
    let failure = table.get_to(&longest, &mut []).unwrap_err();
    assert_eq!(failure.to_string(), table.get(&longest).unwrap_err().to_string());
    let failure = table.get_to_here(&longest, &mut []).unwrap_err();
    assert_eq!(failure.to_string(), table.get(&longest).unwrap_err().to_string());
    db.drop_table("gone").unwrap();
    for failure in [table.get_to("k", &mut []).unwrap_err(), table.get_to_here(b"k", &mut []).unwrap_err()] {
        assert_eq!(failure.to_string(), table.get("k").unwrap_err().to_string());
    }
}
