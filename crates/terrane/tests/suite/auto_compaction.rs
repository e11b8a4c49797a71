//! Tables without automatic compaction: each flush becomes an overflow run, which stays, in order, until a
//! caller requests a compaction.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane::{Db, JobEnded, Kind, Listener, Options, Table, TableOptions, TableShape};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

const KEYS: u64 = 500;

fn open(dir: &tempfile::TempDir) -> Db {
    let mut options = Options::default();
    for (name, value) in [("memory_bytes", "64MiB"), ("adaptive_shape", "eager")] {
        options.set(name, value).unwrap();
    }
    Db::open_with(dir.path().join("db"), &options).unwrap()
}

fn manual(db: &Db) -> Table {
    let options = TableOptions::new().set("auto_compaction", "false").unwrap();
    db.create_table("manual", &options).unwrap()
}

fn shape(db: &Db) -> TableShape {
    db.shape().tables.into_iter().find(|table| table.name == "manual").unwrap()
}

fn key(number: u64) -> Vec<u8> {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % KEYS).to_be_bytes().to_vec()
}

/// Overwrites some keys and deletes others, what `round` says, and flushes.
fn write_round(db: &Db, table: &Table, rows: &mut Rows, round: u64) {
    for number in round * 7..round * 7 + 20 {
        table.put(key(number), round.to_be_bytes()).unwrap();
        rows.insert(key(number), round.to_be_bytes().to_vec());
    }
    table.delete(key(round * 7 + 3)).unwrap();
    rows.remove(&key(round * 7 + 3));
    db.flush().unwrap();
}

fn assert_rows(table: &Table, rows: &Rows) {
    let forward: Vec<_> = table.iter().map(|row| row.unwrap()).collect();
    let expected: Vec<_> = rows.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    assert_eq!(forward, expected);
    let backward: Vec<_> = table.iter().rev().map(|row| row.unwrap()).collect();
    assert!(backward.iter().eq(expected.iter().rev()));
    for number in 0..KEYS {
        let key = number.to_be_bytes();
        assert_eq!(table.get(key).unwrap().as_deref(), rows.get(&key[..]).map(Vec::as_slice));
    }
    let keys: Vec<_> = (0..KEYS).map(u64::to_be_bytes).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let found = table.multi_get(&keys).unwrap();
    assert!(
        keys.iter().zip(&found).all(|(key, found)| found.as_deref() == rows.get(*key).map(Vec::as_slice))
    );
}

#[derive(Default)]
struct Counts {
    flushes: AtomicU64,
    compactions: AtomicU64,
}

impl Listener for Counts {
    fn flush_ended(&self, job: &JobEnded) {
        assert_eq!(job.written.len(), 1, "a small run is one extent");
        assert_eq!(job.written[0].level, 0);
        assert!(job.inputs.is_empty(), "nothing is merged by it");
        self.flushes.fetch_add(1, Ordering::Relaxed);
    }

    fn compaction_ended(&self, _job: &JobEnded) {
        self.compactions.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn hundreds_of_runs_stay_until_a_compaction_is_requested() {
    const ROUNDS: u64 = 300;
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir);
    let counts = Arc::new(Counts::default());
    db.add_listener(counts.clone()).unwrap();
    let table = manual(&db);
    let mut rows = Rows::new();
    for round in 0..ROUNDS {
        write_round(&db, &table, &mut rows, round);
    }
    db.wait_until_quiescent().unwrap();
    let tree = shape(&db);
    assert_eq!((tree.runs.len() as u64, tree.levels.len()), (ROUNDS, 0), "{tree}");
    assert_rows(&table, &rows);
    let statistics = db.statistics();
    let metric = |name| statistics.table("manual").unwrap().get(name).unwrap().number();
    assert_eq!(metric("table_backlog_permille"), 0, "no writer is slowed by runs that no job merges");
    assert_eq!(metric("table_write_rate"), 0);
    db.wait_for_listeners().unwrap();
    let counted = (counts.flushes.load(Ordering::Relaxed), counts.compactions.load(Ordering::Relaxed));
    assert_eq!(counted, (ROUNDS, 0), "an event for each flush, none for a compaction");

    // They are the same in another process.
    drop((table, db));
    let db = open(&dir);
    let table = db.table("manual").unwrap();
    db.wait_until_quiescent().unwrap();
    assert_eq!(shape(&db).runs.len() as u64, ROUNDS);
    assert_rows(&table, &rows);

    db.compact_range(&table, ..).unwrap();
    let tree = shape(&db);
    assert_eq!((tree.runs.len(), tree.levels.len()), (0, 1), "{tree}");
    assert_rows(&table, &rows);
    // Level 1 does not take what comes then, either.
    write_round(&db, &table, &mut rows, ROUNDS);
    write_round(&db, &table, &mut rows, ROUNDS + 1);
    db.wait_until_quiescent().unwrap();
    assert_eq!(shape(&db).runs.len(), 2);
    assert_rows(&table, &rows);
}

#[test]
fn switched_on_again_the_background_catches_up() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir);
    let table = db.create_table("manual", &TableOptions::new()).unwrap();
    let mut rows = Rows::new();
    write_round(&db, &table, &mut rows, 0);
    db.wait_until_quiescent().unwrap();
    assert_eq!(shape(&db).runs.len(), 0, "a table is compacted by itself");
    table.set_option("auto_compaction", "false").unwrap();
    for round in 1..=40 {
        write_round(&db, &table, &mut rows, round);
    }
    db.wait_until_quiescent().unwrap();
    assert_eq!(shape(&db).runs.len(), 40);
    table.set_option("auto_compaction", "true").unwrap();
    db.wait_until_quiescent().unwrap();
    assert_eq!(shape(&db).runs.len(), 0);
    assert_rows(&table, &rows);
    assert_eq!(table.set_option("auto_compaction", "perhaps").unwrap_err().kind(), Kind::Invalid);
}

#[test]
fn full_memtables_become_runs_and_range_deletes_stay_in_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    for (name, value) in [("memory_bytes", "16MiB"), ("memtable_bytes", "256KiB"), ("compression", "none")] {
        options.set(name, value).unwrap();
    }
    let db = Db::open_with(dir.path().join("db"), &options).unwrap();
    let table = manual(&db);
    let value = |number: u64| [&number.to_be_bytes()[..], &[7; 992]].concat();
    for number in 0..20_000u64 {
        table.put((number % 5000).to_be_bytes(), value(number)).unwrap();
    }
    // Beside the flushes: whatever became a run meanwhile, the newest of each key is there.
    let newest = (0..5000u64).map(|number| (number.to_be_bytes().to_vec(), value(15_000 + number)));
    assert!(table.iter().map(Result::unwrap).eq(newest));
    table.delete_range(0u64.to_be_bytes(), 4990u64.to_be_bytes()).unwrap();
    db.flush().unwrap();
    db.wait_until_quiescent().unwrap();
    let tree = shape(&db);
    // However late the flushes come: a run holds at most half of the memory.
    assert!(tree.runs.len() >= 3 && tree.levels.is_empty(), "{tree}");
    let most = db.statistics().get("memory_bytes_max").unwrap().number();
    assert!(most <= 16 << 20, "the ceiling holds: {most}");
    assert_eq!(table.iter().count(), 10);
    db.compact_range(&table, ..).unwrap();
    assert_eq!(table.iter().count(), 10);
    assert_eq!(shape(&db).runs.len(), 0);
}
