//! Sizes of ranges against the truth, and whole extents dropped at once.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::Path;

use terrane::{Batch, Db, Durability, Kind, Options, Table};
use terrane_base::Rng;

fn options() -> Options {
    let mut options = Options::default();
    for (name, value) in [("memory_bytes", "16MiB"), ("block_bytes", "1KiB"), ("compression_last", "none")] {
        options.set(name, value).unwrap();
    }
    options
}

fn open(dir: &Path) -> Db {
    Db::open_with(dir.join("db"), &options()).unwrap()
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Writes every `step`-th key of a range, each with a value of a length of its own.
fn fill(db: &Db, numbers: std::ops::Range<u64>, step: usize, mark: u8) {
    let mut batch = Batch::new();
    for number in numbers.step_by(step) {
        let len = (number * 7919 % 300) as usize;
        batch.put(db.default_table(), key(number), vec![mark; len]).unwrap();
        if batch.len() == 500 {
            db.write(&batch, Durability::Buffered).unwrap();
            batch.clear();
        }
    }
    db.write(&batch, Durability::Buffered).unwrap();
}

/// Numbers that look random and are the same each time.
fn draws() -> impl Iterator<Item = u64> {
    let mut rng = Rng::new(1);
    std::iter::repeat_with(move || rng.next_u64() >> 33)
}

fn check_ranges(table: &Table, keys: u64) {
    let mut draws = draws();
    let whole = table.approximate_size(..).unwrap();
    for round in 0..60 {
        let width = if round % 3 == 0 { 20 } else { keys };
        let from = draws.next().unwrap() % keys;
        let to = from + draws.next().unwrap() % width;
        let (from, to) = (key(from), key(to));
        let range = || from.as_slice()..to.as_slice();
        let count = table.approximate_count(range()).unwrap();
        let truth = table.range(range()).count() as u64;
        assert!(count.admits(truth), "{count:?}: {truth} rows in {from:?}..{to:?}");
        // The parts make the whole, as far as each of them is known.
        let parts = [
            table.approximate_size(..from.as_slice()).unwrap(),
            table.approximate_size(range()).unwrap(),
            table.approximate_size(to.as_slice()..).unwrap(),
        ];
        let (sum, error) =
            parts.iter().fold((0, 0), |(sum, error), part| (sum + part.value, error + part.error));
        assert!(sum.abs_diff(whole.value) <= error + whole.error, "{parts:?} of {whole:?}");
    }
}

#[test]
fn sizes_are_within_their_error() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let table = db.default_table().clone();
    const KEYS: u64 = 40_000;
    // In memory, then in levels, then in both and a run; what a flush by itself moved in between would be
    // counted twice.
    db.pause_background();
    fill(&db, 0..KEYS / 2, 3, b'a');
    check_ranges(&table, KEYS / 2);
    db.resume_background();
    fill(&db, 0..KEYS, 3, b'a');
    db.compact_range(&table, ..).unwrap();
    let stored = db.shape().tables[0].levels.iter().map(|level| level.bytes).sum::<u64>();
    assert_eq!(table.approximate_size(..).unwrap().value, stored, "extents within the range count exactly");
    assert_eq!(
        table.iter().count() as u64,
        KEYS.div_ceil(3),
        "estimates are compared with a scan that lacks nothing"
    );
    check_ranges(&table, KEYS);
    db.pause_background();
    fill(&db, 1..KEYS, 3, b'b');
    db.flush_to_run(&table).unwrap();
    fill(&db, 2..KEYS, 3, b'c');
    check_ranges(&table, KEYS);
    // A block is little of a range of thousands of rows.
    let (from, to) = (key(KEYS / 4), key(KEYS / 2));
    let size = table.approximate_size(from.as_slice()..to.as_slice()).unwrap();
    assert!(size.error * 3 < size.value, "{size:?}");
    let nothing = table.approximate_count(to.as_slice()..from.as_slice()).unwrap();
    assert_eq!((nothing.value, nothing.error), (0, 0));
}

#[test]
fn few_keys_in_memory_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let table = db.default_table();
    // They fill a memtable, which would be flushed.
    db.pause_background();
    fill(&db, 0..20_000, 1, b'a');
    let count = |from: u64, to: u64| table.approximate_count(&key(from)[..]..&key(to)[..]).unwrap();
    assert_eq!((count(100, 1_100).value, count(100, 1_100).error), (1_000, 0));
    // So is a range around which there are few.
    assert_eq!((count(50, 19_000).value, count(50, 19_000).error), (18_950, 0));
    let middle = count(8_000, 14_000);
    assert!(middle.error > 0 && middle.admits(6_000), "{middle:?}");
    table.delete(key(200)).unwrap();
    assert_eq!(count(100, 1_100).value, 1_001, "a delete is a version more");
    // Full memtables leave memory with all their rows.
    db.resume_background();
    db.compact_range(table, ..).unwrap();
    assert_eq!(table.iter().count(), 19_999);
}

fn live_bytes(db: &Db) -> u64 {
    db.shape().store_live_bytes
}

#[test]
fn extents_of_a_range_go_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let table = db.default_table().clone();
    const KEYS: u64 = 60_000;
    fill(&db, 0..KEYS, 1, b'a');
    db.compact_range(&table, ..).unwrap();
    // Without what the compaction has left to readers that may still be there.
    drop(table);
    db.close().unwrap();
    let db = open(dir.path());
    let table = db.default_table().clone();
    let rows = table.iter().count();
    assert_eq!(rows as u64, KEYS);
    // From here on the tree changes by what the test does only.
    db.wait_until_quiescent().unwrap();
    db.pause_background();
    let before = live_bytes(&db);
    assert!(db.shape().tables[0].levels.iter().map(|level| level.extents).sum::<u64>() >= 4);
    let dropped = table.delete_files_in_range(&key(100)[..]..&key(KEYS - 100)[..]).unwrap();
    assert!(dropped.extents > 0 && dropped.entries > 0);
    // As soon as no reader of the process that was there is left, those of the other tests as well.
    let is_free = || live_bytes(&db) + dropped.extents * (2 << 20) == before;
    let clock = terrane::Env::real().clock;
    let look = |_| {
        assert!(table.get(b"nothing").unwrap().is_none());
        clock.sleep(std::time::Duration::from_millis(1));
        is_free()
    };
    assert!((0..100_000).any(look), "their slots are free, and nothing was written for it");
    assert_eq!(table.iter().count() as u64, rows as u64 - dropped.entries);
    assert!(table.get(key(50)).unwrap().is_some() && table.get(key(KEYS - 50)).unwrap().is_some());
    // An extent that an end of the range cuts stays.
    assert!(table.get(key(101)).unwrap().is_some());
    let left = table.iter().map(|row| row.unwrap().0).collect::<Vec<_>>();
    drop(table);
    db.close().unwrap();
    let db = open(dir.path());
    assert_eq!(db.default_table().iter().map(|row| row.unwrap().0).collect::<Vec<_>>(), left);
    let again = db.default_table().delete_files_in_range(&key(100)[..]..&key(KEYS - 100)[..]).unwrap();
    assert_eq!(again.extents, 0);
    assert!(db.check(&mut |_, _| ()).unwrap().findings.is_empty());
}

#[test]
fn a_snapshot_keeps_what_it_sees() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let table = db.default_table();
    let early = db.snapshot();
    fill(&db, 0..1_000, 1, b'a');
    db.flush().unwrap();
    let snapshot = db.snapshot();
    let refused = table.delete_files_in_range(..).map(drop);
    assert_eq!(refused.map_err(|error| error.kind()), Err(Kind::Busy));
    assert_eq!(snapshot.iter(table).count(), 1_000);
    drop(snapshot);
    let rows = table.iter();
    assert_eq!(
        table.delete_files_in_range(..).map_err(|error| error.kind()),
        Err(Kind::Busy),
        "an iterator is one"
    );
    assert_eq!(rows.count(), 1_000);
    // One that sees nothing of it is not in the way.
    assert_eq!(table.delete_files_in_range(..).unwrap().entries, 1_000);
    assert_eq!((early.iter(table).count(), table.iter().count()), (0, 0));
    fill(&db, 0..10, 1, b'a');
    assert_eq!(table.delete_files_in_range(..).unwrap().extents, 0, "rows in memory stay");
    assert_eq!(table.iter().count(), 10);
}

#[test]
fn dropping_extents_reveals_no_older_version() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let table = db.default_table();
    db.wait_until_quiescent().unwrap();
    db.pause_background();
    fill(&db, 0..1_000, 1, b'o');
    db.flush_to_run(table).unwrap();
    db.compact_level(table, 0).unwrap();
    db.compact_level(table, 1).unwrap();
    // Newer values above it, within the range; the older extent is not within.
    for number in 400..500 {
        table.put(key(number), b"new").unwrap();
    }
    table.delete(key(450)).unwrap();
    db.flush_to_run(table).unwrap();
    let dropped = table.delete_files_in_range(&key(300)[..]..&key(600)[..]).unwrap();
    assert_eq!(dropped.extents, 0);
    assert_eq!(table.get(key(400)).unwrap().as_deref(), Some(&b"new"[..]));
    assert_eq!(table.get(key(450)).unwrap(), None);
    // With the older one within the range, too, both go.
    let dropped = table.delete_files_in_range(..).unwrap();
    assert_eq!((dropped.extents, dropped.entries), (2, 1_100));
    assert_eq!(table.iter().count(), 0);
}

#[test]
fn rows_that_are_cached_go_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options();
    options.set("row_cache", "50").unwrap();
    let db = Db::open_with(dir.path().join("db"), &options).unwrap();
    let table = db.default_table();
    fill(&db, 0..30_000, 1, b'a');
    db.compact_range(table, ..).unwrap();
    for round in 0..3 {
        for number in draws().take(20_000).map(|draw| draw % 30_000) {
            assert!(table.get(key(number)).unwrap().is_some(), "round {round}");
        }
    }
    assert!(table.delete_files_in_range(..).unwrap().extents > 0);
    for number in 0..30_000 {
        assert_eq!(table.get(key(number)).unwrap(), None);
    }
}
