//! Trees of a given shape on request: overflow runs that stay, levels that are merged one by one, and the
//! jobs that a pause stops.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;

use terrane::{Db, Kind, Options, Shape, TableOptions, TableShape};

const KEYS: u64 = 20_000;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn open(dir: &tempfile::TempDir) -> Db {
    let mut options = Options::default();
    for (name, value) in
        [("memory_bytes", "64MiB"), ("compression_last", "none"), ("experiments.idle_flush", "false")]
    {
        options.set(name, value).unwrap();
    }
    Db::open_with(dir.path().join("db"), &options).unwrap()
}

fn key(number: u64) -> Vec<u8> {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec()
}

/// Puts every `step`-th key from `first` on, with values that say which round it was.
fn put(db: &Db, rows: &mut Rows, first: u64, step: usize, round: u8) {
    for number in (first..KEYS).step_by(step) {
        db.put(key(number), [round; 100]).unwrap();
        rows.insert(key(number), vec![round; 100]);
    }
}

fn table(db: &Db) -> TableShape {
    db.shape().tables.into_iter().next().unwrap()
}

fn assert_rows(db: &Db, rows: &Rows) {
    let found: Rows = db.default_table().iter().map(|row| row.unwrap()).collect();
    assert_eq!(&found, rows);
    for number in (0..KEYS).step_by(97) {
        let found = db.get(key(number)).unwrap();
        assert_eq!(found.as_deref(), rows.get(&key(number)).map(Vec::as_slice));
    }
}

/// Everything in the last level, then `runs` overflow runs of a tenth of the keys each; the background is
/// paused.
fn load_with_runs(db: &Db, runs: u8) -> Rows {
    let mut rows = Rows::new();
    put(db, &mut rows, 0, 1, 0);
    db.compact_range(db.default_table(), ..).unwrap();
    db.wait_until_quiescent().unwrap();
    db.pause_background();
    for round in 1..=runs {
        put(db, &mut rows, u64::from(round), 10, round);
        db.flush_to_run(db.default_table()).unwrap();
        assert_eq!(table(db).runs.len(), usize::from(round), "one run for each flush");
    }
    rows
}

#[test]
fn each_level_in_turn_is_empty_after_it_was_merged_into_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir);
    let mut rows = load_with_runs(&db, 6);
    let before = table(&db);
    assert_eq!((before.memtable_entries, before.frozen, before.generations), (0, 0, 0));
    assert!(before.runs.iter().all(|run| run.entries == KEYS / 10), "{before}");
    assert_eq!(before.levels[0].entries, KEYS, "the flushes left level 1 alone");
    assert_rows(&db, &rows);

    // Rows in memory stay there.
    put(&db, &mut rows, 7, 100, 7);
    db.compact_level(db.default_table(), 0).unwrap();
    let after = table(&db);
    assert_eq!((after.runs.len(), after.levels[0].entries, after.levels.len()), (0, KEYS, 1), "{after}");
    assert_eq!(after.memtable_entries, KEYS / 100);
    assert_rows(&db, &rows);

    for level in 1..=3u8 {
        db.compact_level(db.default_table(), level).unwrap();
        let after = table(&db);
        let entries: Vec<u64> = after.levels.iter().map(|level| level.entries).collect();
        let mut expected = vec![0; usize::from(level)];
        expected.push(KEYS);
        assert_eq!(entries, expected, "{after}");
        assert_rows(&db, &rows);
    }
    db.resume_background();
    db.wait_until_quiescent().unwrap();
    assert_rows(&db, &rows);
    db.close().unwrap();
    assert_rows(&open(&dir), &rows);
}

#[test]
fn a_request_without_work_changes_no_extent() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir);
    db.pause_background();
    let before = db.stats();
    for level in 0..3 {
        db.compact_level(db.default_table(), level).unwrap();
    }
    db.flush_to_run(db.default_table()).unwrap();
    assert_eq!(db.stats().compactions, before.compactions);
    assert_eq!(table(&db).sorted_runs(), 1);
    let error = db.compact_level(db.default_table(), 63).unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
    // Calls that follow the shape or wait for the background are still refused.
    assert_eq!(db.flush().unwrap_err().kind(), Kind::Invalid);
    let gone = db.create_table("gone", &terrane::TableOptions::new()).unwrap();
    db.drop_table("gone").unwrap();
    assert_eq!(db.compact_level(&gone, 0).unwrap_err().kind(), Kind::NotFound);
    assert_eq!(db.flush_to_run(&gone).unwrap_err().kind(), Kind::NotFound);
}

#[test]
fn requests_work_beside_a_running_background() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir);
    let mut rows = Rows::new();
    for round in 0..4 {
        put(&db, &mut rows, 0, 3, round);
        db.flush_to_run(db.default_table()).unwrap();
        db.compact_level(db.default_table(), 0).unwrap();
        db.compact_level(db.default_table(), 1).unwrap();
        assert_eq!(table(&db).runs.len(), 0);
        assert_rows(&db, &rows);
    }
    db.wait_until_quiescent().unwrap();
    assert_rows(&db, &rows);
}

#[test]
fn a_request_of_a_database_that_is_read_only_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    open(&dir).close().unwrap();
    let options = Options { read_only: true, ..Options::default() };
    let db = Db::open_with(dir.path().join("db"), &options).unwrap();
    assert_eq!(db.compact_level(db.default_table(), 0).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(db.flush_to_run(db.default_table()).unwrap_err().kind(), Kind::Invalid);
}

#[test]
fn a_shape_shows_every_part_with_its_entries_and_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir);
    load_with_runs(&db, 2);
    db.put(b"k", b"v").unwrap();
    let shape: Shape = db.shape();
    let text = shape.to_string();
    let table = &shape.tables[0];
    let level = |name: &str, level: &terrane::LevelShape| {
        let terrane::LevelShape { entries, deletes, bytes, extents, .. } = level;
        format!("  {name}: {entries} entries ({deletes} deletes), {bytes} bytes, {extents} extents")
    };
    let expected = vec![
        "table default: 4 sorted runs".to_owned(),
        format!("  memtable: 1 entries, {} bytes", table.memtable_bytes),
        "  frozen: 0 memtables, 0 entries, 0 bytes".to_owned(),
        "  global index: 0 generations, 0 entries, 0 bytes".to_owned(),
        level("overflow run 0", &table.runs[0]),
        level("overflow run 1", &table.runs[1]),
        level("level 1", &table.levels[0]),
    ];
    assert!(table.memtable_bytes > 0 && table.runs[0].bytes > 0 && table.levels[0].extents > 0);
    assert_eq!(text.lines().take(expected.len()).map(str::to_owned).collect::<Vec<_>>(), expected);
}

#[test]
fn a_flush_of_some_tables_leaves_the_others_in_memory() {
    let (dir, other_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (db, other) = (open(&dir), open(&other_dir));
    let [one, two, dropped] =
        ["one", "two", "dropped"].map(|name| db.create_table(name, &TableOptions::new()).unwrap());
    let default = db.default_table();
    for table in [default, &one, &two] {
        table.put(b"key", b"value").unwrap();
    }
    let in_memory = || {
        let shape = db.shape();
        ["default", "one", "two"].map(|name| {
            let table = shape.tables.iter().find(|table| table.name == name).unwrap();
            table.memtable_entries + table.frozen_entries + table.generation_entries
        })
    };
    assert_eq!(in_memory(), [1, 1, 1]);
    one.flush().unwrap();
    assert_eq!(in_memory(), [1, 0, 1]);

    // A table that cannot be flushed stops the flush of the others in the list.
    db.drop_table("dropped").unwrap();
    assert_eq!(db.flush_tables(&[&two, &dropped]).unwrap_err().kind(), Kind::NotFound);
    assert_eq!(db.begin_flush(&[&two, other.default_table()]).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(in_memory(), [1, 0, 1]);
    db.flush_tables(&[default, &two]).unwrap();
    assert_eq!(in_memory(), [0, 0, 0]);

    // A flush that is asked for while the background is paused comes behind the pause.
    db.pause_background();
    one.put(b"key", b"other").unwrap();
    assert_eq!(one.flush().unwrap_err().kind(), Kind::Invalid);
    db.begin_flush(&[&one]).unwrap();
    assert_eq!(in_memory(), [0, 1, 0]);
    db.resume_background();
    db.wait_until_quiescent().unwrap();
    assert_eq!(in_memory(), [0, 0, 0]);
    for table in [default, &one, &two] {
        assert!(table.contains(b"key").unwrap());
    }
}
