//! A database at rest: the device has back what only waited to be used again, and nobody misses it afterwards.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use support::{open, rows, small_options};
use terrane_base::options::Options;
use terrane_device::MemDisk;

const ROWS: u64 = 4000;

/// Real space on the device after some bursts of writes, each with a rest behind it.
fn used_at_rest(idle_reclaim: bool) -> u64 {
    let disk = MemDisk::new();
    let options = Options { idle_reclaim, ..small_options() };
    let engine = open(disk.clone(), &options).unwrap();
    let table = engine.catalog().require("default").unwrap();
    let mut expected = Vec::new();
    for round in 0..4u64 {
        expected = (0..ROWS)
            .map(|number| {
                (format!("key{number:06}").into_bytes(), (number * 31 + round).to_le_bytes().repeat(12))
            })
            .collect();
        for (key, value) in &expected {
            engine.put(table.id, key, value, false).unwrap();
        }
        engine.flush().unwrap();
        engine.wait_until_quiescent().unwrap();
        assert!(rows(&engine, &table).unwrap() == expected, "round {round}");
    }
    let used = disk.used_bytes();
    // What was given back without being in use: a cut right now finds every row.
    let cut = open(disk.crash(1), &options).unwrap();
    let table = cut.catalog().require("default").unwrap();
    assert_eq!(rows(&cut, &table).unwrap().len(), expected.len());
    cut.close().unwrap();
    engine.close().unwrap();
    used
}

#[test]
fn at_rest_the_device_has_back_what_is_not_in_use() {
    let (given_back, kept) = (used_at_rest(true), used_at_rest(false));
    assert!(given_back * 2 < kept, "{given_back} bytes against {kept}");
}
