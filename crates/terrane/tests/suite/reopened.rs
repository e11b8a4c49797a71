//! Handles that are kept over a close, while a later opening of the same directory writes: they read what
//! they saw, or an error; never the bytes that the later opening has put in their place.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::Path;

use terrane::{Db, Error, Kind, MemoryDevice, Options, Table};

/// Rows that are in extents before the close, and behind them rows that are only in the journal: too few to
/// fill a memtable.
const STORED: u32 = 3000;
const ALL: u32 = 3400;

/// Small limits, so that a later opening soon uses the space of the earlier one again; blocks are not
/// compressed, so that a wrong one would not fail by its codec alone.
fn options() -> Options {
    let mut options = Options {
        memory_bytes: 16 << 20,
        write_memory_bytes: 4 << 20,
        segment_bytes: 64 << 10,
        memtable_bytes: 128 << 10,
        global_index_bytes: 128 << 10,
        level_base_bytes: 256 << 10,
        close_flush: false,
        ..Options::default()
    };
    let set = [("compression", "none"), ("compression_last", "none"), ("diagnostics.metrics_page_ms", "0")];
    for (name, value) in set {
        options.set(name, value).unwrap();
    }
    options
}

fn key(number: u32) -> Vec<u8> {
    format!("key-{number:06}").into_bytes()
}

/// As long as every other value, so that records and entries of two openings lie alike.
fn value(fill: &str, number: u32) -> Vec<u8> {
    format!("{fill}-{number:06}-{}", "x".repeat(120)).into_bytes()
}

fn put_all(table: &Table, fill: &str, numbers: std::ops::Range<u32>) {
    numbers.for_each(|number| table.put(key(number), value(fill, number)).unwrap());
}

/// Returns true if a kept handle may return this error in the place of its rows.
fn is_allowed(error: &Error) -> bool {
    matches!(error.kind(), Kind::Corrupt | Kind::Gone | Kind::NotFound | Kind::Io | Kind::Cancelled)
}

/// Reads every row by each of the handles; returns how many were read, and how many refused.
fn read_all(table: &Table, snapshot: &terrane::Snapshot) -> (u32, u32) {
    let (mut read, mut refused) = (0, 0);
    for number in 0..ALL {
        for answer in [table.get(key(number)), snapshot.get(table, key(number))] {
            match answer {
                Ok(found) => {
                    assert_eq!(found.as_deref(), Some(&value("old", number)[..]), "row {number}");
                    read += 1;
                }
                Err(error) => {
                    assert!(is_allowed(&error), "row {number}: {error}");
                    refused += 1;
                }
            }
        }
    }
    (read, refused)
}

/// Goes through an iterator that was made before the close: the rows as they were, up to an error.
fn walk(rows: impl Iterator<Item = terrane::Result<terrane::Row>>, first: u32) -> u32 {
    let mut next = first;
    for row in rows {
        match row {
            Ok((found, data)) => {
                assert_eq!((&found[..], &data[..]), (&key(next)[..], &value("old", next)[..]));
                next += 1;
            }
            Err(error) => {
                assert!(is_allowed(&error), "row {next}: {error}");
                return next;
            }
        }
    }
    assert_eq!(next, ALL, "an iterator that ends without an error has shown every row");
    next
}

/// Returns how many reads were refused because a later opening had used their space again.
fn kept_handles_read_what_they_saw(open: impl Fn() -> Db) -> u32 {
    let old = open();
    let table = old.table_or_create("t").unwrap();
    put_all(&table, "old", 0..STORED);
    old.flush().unwrap();
    old.compact_range(&table, ..).unwrap();
    put_all(&table, "old", STORED..ALL);
    let (snapshot, mut rows) = (old.snapshot(), table.iter());
    let mut cursor = table.cursor();
    assert_eq!(rows.next().unwrap().unwrap().0, key(0));
    old.close().unwrap();
    let (mut first, mut refused) = (1, 0);
    for round in 0..6 {
        let fill = format!("n{round:02}");
        let new = open();
        let of_new = new.table("t").unwrap();
        put_all(&of_new, &fill, 0..ALL);
        new.flush().unwrap();
        new.compact_range(&of_new, ..).unwrap();
        new.wait_until_quiescent().unwrap();
        // While the later opening is there, and behind its close.
        refused += read_all(&table, &snapshot).1;
        for number in [0, first, STORED - 1, ALL - 1] {
            match cursor.seek(key(number)) {
                Ok(()) => {
                    if let Some((found, data)) = cursor.row() {
                        assert_eq!((found, data), (&key(number)[..], &value("old", number)[..]));
                    }
                }
                Err(error) => assert!(is_allowed(&error), "{error}"),
            }
        }
        assert_eq!(table.put("k", "v").unwrap_err().kind(), Kind::Cancelled);
        for number in (0..ALL).step_by(97) {
            assert_eq!(of_new.get(key(number)).unwrap().unwrap(), value(&fill, number));
        }
        new.close().unwrap();
        if round == 3 {
            first = walk(&mut rows, first);
        }
    }
    let (read, refused_last) = read_all(&table, &snapshot);
    assert_eq!(read + refused_last, 2 * ALL);
    // What was only in memory is read from there.
    assert!(read >= 2 * (ALL - STORED), "{read} rows are read");
    assert!(walk(table.iter(), 0) <= ALL && first > 0);
    refused + refused_last
}

#[test]
fn in_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let path: &Path = dir.path();
    let refused = kept_handles_read_what_they_saw(|| Db::open_with(path, &options()).unwrap());
    assert!(refused > 0, "no later opening used the space of an extent again");
}

/// A close that gives no space back, as one that fails: segments that were trimmed stay as unlisted files,
/// and handles of that opening read the rows that they saw in them. Whether a later opening uses the space of
/// an extent again depends on which jobs met, as no close moves extents to the front.
#[test]
fn after_a_close_that_left_spare_files() {
    let device = MemoryDevice::new(256 << 20);
    let mut options = options();
    options.set("idle_reclaim", "off").unwrap();
    kept_handles_read_what_they_saw(|| device.open("/db", &options).unwrap());
}

#[test]
fn on_a_device_in_memory() {
    let device = MemoryDevice::new(256 << 20);
    let refused = kept_handles_read_what_they_saw(|| device.open("/db", &options()).unwrap());
    assert!(refused > 0, "no later opening used the space of an extent again");
}
