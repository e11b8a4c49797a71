//! How many separated values scans read.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test, on files of its own")]

use std::path::Path;

use terrane::{Db, Options};
use terrane_base::Rng;

fn open(path: &Path) -> Db {
    let mut options = Options { memory_bytes: 16 << 20, ..Options::default() };
    for (name, value) in
        [("compression", "none"), ("compression_last", "none"), ("value_separation_bytes", "100")]
    {
        options.set(name, value).unwrap();
    }
    Db::open_with(path, &options).unwrap()
}

fn key(number: u64) -> Vec<u8> {
    format!("key-{number:05}").into_bytes()
}

#[test]
fn a_short_scan_of_long_values_reads_few_that_it_does_not_show() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let long = |number: u64| {
        let mut rng = Rng::new(number);
        (0..16_384).map(|_| rng.next_u64() as u8).collect::<Vec<u8>>()
    };
    let db = open(&path);
    // A job would put other extents in the place of those in the cache.
    db.default_table().set_option("auto_compaction", "false").unwrap();
    // Neighbours are in other sorted groups: no read-ahead of one group gets them.
    for round in 0..10 {
        for number in (0..100).filter(|number| number * 7 % 10 == round) {
            db.put(key(number), long(number)).unwrap();
        }
        db.flush().unwrap();
    }
    db.close().unwrap();
    let db = open(&path);
    let reads_of = |from: u64, rows: u64| {
        let before = terrane::read_counters();
        let mut cursor = db.default_table().cursor();
        cursor.seek(key(from)).unwrap();
        for number in from..from + rows {
            assert!(cursor.row().is_some_and(|row| row == (&key(number), &long(number))), "row {number}");
            if number + 1 < from + rows {
                cursor.next().unwrap();
            }
        }
        (terrane::read_counters() - before).blocks_missed
    };
    // The first scan also loads the index blocks.
    reads_of(0, 8);
    let reads = reads_of(60, 8);
    assert!((8..=9).contains(&reads), "{reads} blocks for 8 values of a block each");
    let reads = reads_of(20, 30);
    assert!((30..=45).contains(&reads), "{reads} blocks for 30 values of a block each");
}
