//! External files and bulk loads against a model, over every state of the tree beneath them.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test, with files of the user")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use terrane::{
    Backups, Concurrency, Db, Durability, ExtentFileWriter, IngestOptions, Kind, Options, Snapshot, Table,
    TableOptions, TransactionOptions, counter, inspect_extent_file,
};
use terrane_base::Rng;

#[path = "ingest/edges.rs"]
mod edges;
#[path = "ingest/layers.rs"]
mod layers;
#[path = "ingest/ranges.rs"]
mod ranges;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug)]
enum Op {
    Put(u16, u8),
    Delete(u16),
    DeleteRange(u16, u16),
    /// First key, keys, step, mark; every fifth is a delete. Ranges that are deleted.
    Ingest(u16, u16, u16, u8, bool, Vec<(u16, u16)>),
    Load(u16, u16, u16, u8),
    Flush,
    FlushToRun,
    Level(u8),
    Compact,
    Pause(bool),
    Reopen,
    TakeSnapshot,
    DropSnapshot,
    Check,
}

const KEYS: u16 = 300;

fn key(number: u16) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

/// Long enough that a few fill a block: then blocks are copied, and extents re-linked.
fn value(mark: u8, number: u16) -> Vec<u8> {
    let mut value = vec![mark; 150 + usize::from(number % 50)];
    value[0] = number as u8;
    value
}

fn op() -> impl Strategy<Value = Op> {
    let number = || 0..KEYS;
    let range = || (0..KEYS, 1..40u16).prop_map(|(start, len)| (start, start + len));
    let ranges = || prop_oneof![Just(Vec::new()), proptest::collection::vec(range(), 1..4)];
    prop_oneof![
        8 => (number(), any::<u8>()).prop_map(|(key, mark)| Op::Put(key, mark)),
        3 => number().prop_map(Op::Delete),
        2 => (number(), number()).prop_map(|(start, end)| Op::DeleteRange(start, end)),
        6 => (number(), 0..60u16, 1..8u16, any::<u8>(), any::<bool>(), ranges())
            .prop_map(|(from, count, step, mark, copy, ranges)| {
                // A file has something.
                let count = count.max(u16::from(ranges.is_empty()));
                Op::Ingest(from, count, step, mark, copy, ranges)
            }),
        3 => (number(), 1..60u16, 1..8u16, any::<u8>())
            .prop_map(|(from, count, step, mark)| Op::Load(from, count, step, mark)),
        2 => Just(Op::Flush),
        2 => Just(Op::FlushToRun),
        2 => (0..3u8).prop_map(Op::Level),
        2 => Just(Op::Compact),
        1 => any::<bool>().prop_map(Op::Pause),
        1 => Just(Op::Reopen),
        2 => Just(Op::TakeSnapshot),
        1 => Just(Op::DropSnapshot),
        4 => Just(Op::Check),
    ]
}

fn options(encoding: &str) -> Options {
    let mut options = Options::default();
    for (name, value) in [("memory_bytes", "16MiB"), ("block_bytes", "1KiB"), ("block_encoding", encoding)] {
        options.set(name, value).unwrap();
    }
    options
}

fn write_file(path: &Path, options: &Options, rows: &BTreeMap<Vec<u8>, Option<Vec<u8>>>) {
    let mut file = ExtentFileWriter::create(path, options).unwrap();
    for (key, value) in rows {
        match value {
            Some(value) => file.put(key, value).unwrap(),
            None => file.delete(key).unwrap(),
        }
    }
    assert_eq!(file.finish().unwrap().entries, rows.len() as u64);
}

fn rows(from: u16, count: u16, step: u16, mark: u8, deletes: bool) -> BTreeMap<Vec<u8>, Option<Vec<u8>>> {
    let numbers = (from..KEYS).step_by(usize::from(step)).take(usize::from(count));
    numbers.map(|number| (key(number), (!deletes || number % 5 > 0).then(|| value(mark, number)))).collect()
}

fn apply(model: &mut Model, rows: &BTreeMap<Vec<u8>, Option<Vec<u8>>>) {
    for (key, value) in rows {
        match value {
            Some(value) => drop(model.insert(key.clone(), value.clone())),
            None => drop(model.remove(key)),
        }
    }
}

fn check(table: &Table, snapshot: Option<&Snapshot>, model: &Model) {
    let iter = || snapshot.map_or_else(|| table.iter(), |snapshot| snapshot.iter(table));
    let collect =
        |row: terrane::Result<terrane::Row>| row.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap();
    let expected: Vec<_> = model.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    assert!(iter().map(collect).collect::<Vec<_>>() == expected, "forward");
    let mut backward: Vec<_> = iter().rev().map(collect).collect();
    backward.reverse();
    assert!(backward == expected, "backward");
    let keys: Vec<Vec<u8>> = (0..KEYS).map(key).collect();
    for key in &keys {
        let found = match snapshot {
            Some(snapshot) => snapshot.get(table, key).unwrap(),
            None => table.get(key).unwrap(),
        };
        assert_eq!(found.as_deref(), model.get(key).map(Vec::as_slice), "{}", key.escape_ascii());
    }
    let borrowed: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let found = match snapshot {
        Some(snapshot) => snapshot.multi_get(table, &borrowed).unwrap(),
        None => table.multi_get(&borrowed).unwrap(),
    };
    for (key, value) in keys.iter().zip(found) {
        assert_eq!(value.as_deref(), model.get(key).map(Vec::as_slice), "many, {}", key.escape_ascii());
    }
}

/// The result of `take_in`. If a pause stopped a background job in the middle, the background goes on and
/// `take_in` runs once more: on a slow machine a job may begin just before the pause.
fn unless_held<T>(db: &Db, take_in: impl Fn() -> terrane::Result<T>) -> T {
    match take_in() {
        Err(error) if error.kind() == Kind::Busy => {
            db.resume_background();
            db.wait_until_quiescent().unwrap();
            let taken = take_in().unwrap();
            db.pause_background();
            taken
        }
        taken => taken.unwrap(),
    }
}

fn run(ops: &[Op], encoding: &str) {
    let dir = tempfile::tempdir().unwrap();
    let (path, options) = (dir.path().join("data"), options(encoding));
    let mut db = Db::open_with(&path, &options).unwrap();
    let mut model = Model::new();
    let mut snapshots: Vec<(Snapshot, Model)> = Vec::new();
    for (number, op) in
        ops.iter().chain([&Op::Check, &Op::Pause(false), &Op::Compact, &Op::Check]).enumerate()
    {
        let table = db.default_table().clone();
        match op {
            Op::Put(number, mark) => {
                table.put(key(*number), value(*mark, *number)).unwrap();
                model.insert(key(*number), value(*mark, *number));
            }
            Op::Delete(number) => {
                table.delete(key(*number)).unwrap();
                model.remove(&key(*number));
            }
            Op::DeleteRange(start, end) if start < end => {
                table.delete_range(key(*start), key(*end)).unwrap();
                model.retain(|found, _| !(key(*start) <= *found && *found < key(*end)));
            }
            Op::DeleteRange(..) => {}
            Op::Ingest(from, count, step, mark, copy, deleted) => {
                let rows = rows(*from, *count, *step, *mark, true);
                let file = dir.path().join(format!("{number}.extents"));
                ranges::write_ranged(&file, &options, &rows, deleted);
                let how = IngestOptions {
                    copy: *copy,
                    remove: number % 2 == 0,
                    verify: true,
                    ..Default::default()
                };
                let ingested = unless_held(&db, || db.ingest(&[(&table, &file)], how));
                assert_eq!(ingested.files_linked, u64::from(!copy));
                ranges::apply_ranged(&mut model, &rows, deleted);
            }
            Op::Load(from, count, step, mark) => {
                let rows = rows(*from, *count, *step, *mark, false);
                let pairs = || rows.iter().map(|(key, value)| (key, value.as_deref().unwrap()));
                unless_held(&db, || db.bulk_load(&table, pairs()));
                apply(&mut model, &rows);
            }
            Op::Flush => drop(db.flush()),
            Op::FlushToRun => drop(db.flush_to_run(&table)),
            Op::Level(level) => drop(db.compact_level(&table, *level)),
            Op::Compact => drop(db.compact_range(&table, ..)),
            Op::Pause(true) => {
                db.wait_until_quiescent().ok();
                db.pause_background();
            }
            Op::Pause(false) => db.resume_background(),
            Op::Reopen => {
                snapshots.clear();
                drop(table);
                db.close().unwrap();
                db = Db::open_with(&path, &options).unwrap();
            }
            Op::TakeSnapshot => snapshots.push((db.snapshot(), model.clone())),
            Op::DropSnapshot => drop(snapshots.pop()),
            Op::Check => {
                check(&table, None, &model);
                snapshots.iter().for_each(|(snapshot, model)| check(&table, Some(snapshot), model));
            }
        }
    }
    assert_eq!(db.check(&mut |_, _| ()).unwrap().findings.len(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn newest_wins(ops in proptest::collection::vec(op(), 1..60), is_plain: bool) {
        run(&ops, if is_plain { "plain" } else { "two-layer" });
    }
}

struct Fixture {
    _dir: tempfile::TempDir,
    path: PathBuf,
    db: Db,
}

impl Fixture {
    fn new() -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_owned();
        let db = Db::open_with(path.join("data"), &options("two-layer")).unwrap();
        Fixture { _dir: dir, path, db }
    }

    fn file(&self, name: &str, numbers: std::ops::Range<u16>, mark: u8) -> PathBuf {
        let path = self.path.join(name);
        let rows = numbers.map(|number| (key(number), Some(value(mark, number)))).collect();
        write_file(&path, &options("two-layer"), &rows);
        path
    }
}

#[test]
fn a_file_is_linked_and_its_space_is_given_back() {
    let place = Fixture::new();
    let (db, table) = (&place.db, place.db.default_table());
    let file = place.file("a", 0..KEYS, b'a');
    let ingested = db.ingest(&[(table, &file)], IngestOptions::default()).unwrap();
    assert_eq!((ingested.files_linked, ingested.bytes_copied, ingested.entries), (1, 0, KEYS.into()));
    assert_eq!(db.stats().device_flush_bytes_written + db.stats().device_compaction_bytes_written, 0);
    // Its own name goes whenever one likes.
    std::fs::remove_file(&file).unwrap();
    check(table, None, &(0..KEYS).map(|number| (key(number), value(b'a', number))).collect());
    table.delete_range(key(0), key(KEYS)).unwrap();
    db.compact_range(table, ..).unwrap();
    db.wait_until_quiescent().unwrap();
    assert_eq!(
        db.shape().tables[0].levels.iter().map(|level| level.extents).sum::<u64>(),
        0,
        "{}",
        db.shape()
    );
    let copied = place.file("b", 0..KEYS, b'b');
    let how = IngestOptions { copy: true, remove: true, ..IngestOptions::default() };
    assert!(db.ingest(&[(table, &copied)], how).unwrap().bytes_copied > 0);
    assert!(!copied.exists());
    assert_eq!(table.iter().count(), usize::from(KEYS));
}

#[test]
fn many_files_are_ingested_into_many_tables_atomically() {
    let place = Fixture::new();
    let db = &place.db;
    let (one, other) = (db.default_table(), &db.create_table("other", &TableOptions::new()).unwrap());
    db.put(key(5), b"older").unwrap();
    let before = db.snapshot();
    let files =
        [place.file("a", 0..100, b'a'), place.file("b", 100..200, b'b'), place.file("c", 50..150, b'c')];
    let targets = [(one, &files[0]), (one, &files[1]), (other, &files[2])];
    let ingested = db.ingest(&targets, IngestOptions::default()).unwrap();
    let after = db.snapshot();
    assert_eq!(after.seq(), ingested.seq);
    db.put(key(5), b"newer").unwrap();
    assert_eq!((one.iter().count(), other.iter().count()), (200, 100));
    assert_eq!((before.iter(one).count(), before.iter(other).count()), (1, 0));
    assert_eq!(before.get(one, key(5)).unwrap().as_deref(), Some(&b"older"[..]));
    assert_eq!(after.get(one, key(5)).unwrap().as_deref(), Some(&value(b'a', 5)[..]));
    assert_eq!(one.get(key(5)).unwrap().as_deref(), Some(&b"newer"[..]));
    // The same file again is newer than that.
    db.ingest(&[(one, &files[0])], IngestOptions::default()).unwrap();
    assert_eq!(one.get(key(5)).unwrap().as_deref(), Some(&value(b'a', 5)[..]));
}

#[test]
fn rows_that_are_cached_are_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options("two-layer");
    options.set("row_cache", "50").unwrap();
    let db = Db::open_with(dir.path().join("db"), &options).unwrap();
    let table = db.default_table();
    let name = |number: u64| number.to_be_bytes();
    const ROWS: u64 = 60_000;
    db.bulk_load(table, (0..ROWS).map(|number| (name(number), [1; 200]))).unwrap();
    let mut rng = Rng::new(1);
    for _ in 0..60_000 {
        assert!(table.get(name(rng.below(ROWS))).unwrap().is_some());
    }
    db.bulk_load(table, (0..ROWS).map(|number| (name(number), [2; 200]))).unwrap();
    for number in 0..ROWS {
        assert_eq!(table.get(name(number)).unwrap().as_deref(), Some(&[2; 200][..]));
    }
}

#[test]
fn copies_and_repairs_have_it() {
    let place = Fixture::new();
    let (db, table) = (&place.db, place.db.default_table());
    table.put(key(1), b"older").unwrap();
    let file = place.file("a", 0..KEYS, b'a');
    db.ingest(&[(table, &file)], IngestOptions { remove: true, ..IngestOptions::default() }).unwrap();
    let expected: Model = (0..KEYS).map(|number| (key(number), value(b'a', number))).collect();
    let copy = db.checkpoint(place.path.join("copy")).unwrap();
    let second = Db::open_with(&copy.path, &options("two-layer")).unwrap();
    check(second.default_table(), None, &expected);
    second.close().unwrap();
    let backups = Backups::open(place.path.join("backups"));
    let made = backups.create(db).unwrap();
    assert!(backups.verify(made.id).unwrap().findings.is_empty());
    backups.restore(made.id, place.path.join("restored")).unwrap();
    let restored = Db::open_with(place.path.join("restored"), &options("two-layer")).unwrap();
    check(restored.default_table(), None, &expected);
    restored.close().unwrap();
    let follower = Db::open_follower(place.path.join("data")).unwrap();
    check(follower.view().default_table(), None, &expected);
    drop(follower);
    db.clone().close().unwrap();
    let mended = place.path.join("mended");
    terrane::repair(place.path.join("data"), &mended, &options("two-layer")).unwrap();
    let mended = Db::open_with(&mended, &options("two-layer")).unwrap();
    check(mended.default_table(), None, &expected);
}
