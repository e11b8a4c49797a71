//! A database at rest: spare space goes back to the device, and later work does not suffer from it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use std::cell::Cell;

use support::{open, rows, small_options, until};
use terrane_base::options::{Experiments, Options};
use terrane_device::MemDisk;

const ROWS: u64 = 4000;

/// Real space on the device after some bursts of writes, each with a rest behind it; with `idle_reclaim` as
/// soon as it is less than half of `kept`.
fn used_at_rest(idle_reclaim: bool, kept: u64) -> u64 {
    let disk = MemDisk::new();
    let experiments = Experiments { idle_reclaim, ..Experiments::default() };
    let options = Options { experiments, ..small_options() };
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
    // Space that a reader may still see is not given back; any thread of the process can be such a reader for
    // a moment.
    let is_back = || engine.wait_until_quiescent().is_ok() && disk.used_bytes() * 2 < kept;
    if idle_reclaim {
        until("half of it comes back", is_back);
    }
    let used = disk.used_bytes();
    // The freed space was not in use: after a power cut right now every row is found.
    let cut = open(disk.crash(1), &options).unwrap();
    let table = cut.catalog().require("default").unwrap();
    assert_eq!(rows(&cut, &table).unwrap().len(), expected.len());
    cut.close().unwrap();
    engine.close().unwrap();
    used
}

#[test]
fn at_rest_spare_space_is_given_back_to_the_device() {
    let kept = used_at_rest(false, 0);
    let given_back = used_at_rest(true, kept);
    assert!(given_back * 2 < kept, "{given_back} bytes against {kept}");
}

#[test]
fn the_space_of_a_dropped_table_comes_back_without_writes() {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &small_options()).unwrap();
    let table = engine.create_table("dropped", &[]).unwrap();
    for number in 0..ROWS {
        let value: Vec<u8> = (0..100).map(|at| ((number * (at * 2 + 7)) >> 3) as u8).collect();
        engine.put(table.id, format!("key{number:06}").as_bytes(), &value, false).unwrap();
    }
    drop(table);
    engine.flush().unwrap();
    // Behind this nothing is left to give back.
    engine.wait_until_quiescent().unwrap();
    let before = disk.used_bytes();
    engine.drop_table("dropped").unwrap();
    // What a reader may still see when the background gives space back is left to the next time, and any
    // thread of the process can be such a reader for a moment. A drop has it give back again, without a
    // write.
    let looks = Cell::new(0u32);
    until("half of it comes back", || {
        looks.set(looks.get() + 1);
        if looks.get().is_multiple_of(1000) {
            engine.create_table("another", &[]).unwrap();
            engine.drop_table("another").unwrap();
        }
        disk.used_bytes() * 2 < before
    });
    engine.close().unwrap();
}
