//! The row cache in the engine: it answers reads, and never with a value that a flush has replaced.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use std::sync::Arc;

use support::{get, open, small_options};
use terrane_base::counters::read_counters;
use terrane_base::options::Options;
use terrane_base::{SeqNo, TableId};
use terrane_device::MemDisk;
use terrane_engine::{Engine, ReadMode, Table, Values};

const KEYS: u64 = 3000;

fn key(number: u64) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

/// So long that few share a block: only a read that has to ask the store fills.
fn value(number: u64, version: u64) -> Vec<u8> {
    let mut value = format!("value {version} of {number}").into_bytes();
    value.resize(700, b'.');
    value
}

fn default_table(engine: &Engine) -> Arc<Table> {
    engine.catalog().require("default").unwrap()
}

/// Every key three times, and by both ways.
fn read_all(engine: &Engine, table: &Table, at: Option<SeqNo>, expected: impl Fn(u64) -> Option<Vec<u8>>) {
    let mode = at.map_or(ReadMode::default(), ReadMode::at);
    for _ in 0..3 {
        for number in 0..KEYS {
            let mut found = Vec::new();
            let is_found = engine.get(table, &key(number), mode, &mut found).unwrap();
            assert_eq!(is_found.then_some(found), expected(number), "{number}");
        }
    }
    let keys: Vec<Vec<u8>> = (0..KEYS).map(key).collect();
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let mut values = Values::new();
    for (first, part) in [(0, &keys[..]), (7, &keys[7..50])] {
        engine.multi_get_into(table, part, mode, &mut values).unwrap();
        for (number, found) in (first..).zip(values.iter()) {
            assert_eq!(found, expected(number).as_deref(), "{number} of many");
        }
    }
}

#[test]
fn no_read_gets_an_old_value_after_a_flush() {
    let engine = open(MemDisk::new(), &Options { row_cache: 50, ..small_options() }).unwrap();
    let table = default_table(&engine);
    let mut snapshots = Vec::new();
    let before = read_counters();
    for version in 0..4u64 {
        for number in (0..KEYS).filter(|number| number.is_multiple_of(version + 1)) {
            if version == 2 && number % 5 == 0 {
                engine.delete(TableId::DEFAULT, &key(number), false).unwrap();
            } else {
                engine.put(TableId::DEFAULT, &key(number), &value(number, version), false).unwrap();
            }
        }
        let expected = move |number: u64, last: u64| {
            let newest = (0..=last).rev().find(|version| number.is_multiple_of(version + 1))?;
            (newest != 2 || !number.is_multiple_of(5)).then(|| value(number, newest))
        };
        // Rows of the version before are in the cache, the new ones still in memory.
        read_all(&engine, &table, None, |number| expected(number, version));
        engine.flush().unwrap();
        read_all(&engine, &table, None, |number| expected(number, version));
        snapshots.push(terrane_engine::Snapshot::new(engine.clone()));
        for (last, snapshot) in (0..).zip(&snapshots) {
            read_all(&engine, &table, Some(snapshot.seq()), |number| expected(number, last));
        }
    }
    assert!((read_counters() - before).rows_cached > 3 * KEYS, "the row cache was of use");
    engine.close().unwrap();
}

#[test]
fn off_is_off() {
    let engine = open(MemDisk::new(), &Options { row_cache: 0, ..small_options() }).unwrap();
    let table = default_table(&engine);
    engine.put(TableId::DEFAULT, b"k", b"v", false).unwrap();
    engine.flush().unwrap();
    let before = read_counters();
    for _ in 0..1000 {
        assert_eq!(get(&engine, &table, b"k").unwrap().as_deref(), Some(&b"v"[..]));
    }
    let done = read_counters() - before;
    assert_eq!((done.reads, done.rows_cached), (1000, 0));
    engine.close().unwrap();
}
