//! Ingests that are refused, and other operations beside an ingest.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use terrane::{Comparator, Functions, KeyOrders};
use terrane_base::Rng;

use super::*;

#[test]
fn files_that_do_not_fit_are_refused_by_name() {
    let place = Fixture::new();
    let (db, table) = (&place.db, place.db.default_table());
    let none: [(&Table, &Path); 0] = [];
    assert_eq!(db.ingest(&none, IngestOptions::default()).unwrap_err().kind(), Kind::Invalid);
    let (one, other) = (place.file("one", 0..100, 1), place.file("other", 99..120, 2));
    let error = db.ingest(&[(table, &other), (table, &one)], IngestOptions::default()).unwrap_err();
    assert!(error.kind() == Kind::Invalid && error.to_string().contains("overlap"), "{error}");
    let mut file = ExtentFileWriter::create(place.path.join("u"), &options("two-layer")).unwrap();
    file.put(b"b", b"").unwrap();
    for key in [b"a", b"b"] {
        let error = file.put(key, b"").unwrap_err();
        assert!(error.kind() == Kind::Invalid && error.to_string().contains("sorted"), "{error}");
    }
    assert_eq!(file.merge(b"c", b"").unwrap_err().kind(), Kind::Invalid);
    drop(file);
    assert!(!place.path.join("u").exists(), "nothing stays of what was not finished");
    let empty = ExtentFileWriter::create(place.path.join("e"), &options("two-layer")).unwrap();
    assert_eq!(empty.finish().unwrap_err().kind(), Kind::Invalid);
    assert!(
        ExtentFileWriter::create(&one, &options("two-layer")).is_err(),
        "an existing file is not written over"
    );
    let mut counted = options("two-layer");
    counted.set("merge_operator", "counter").unwrap();
    write_file(&place.path.join("m"), &counted, &rows(0, 5, 1, 1, false));
    let error = db.ingest(&[(table, place.path.join("m"))], IngestOptions::default()).unwrap_err();
    assert!(error.kind() == Kind::Invalid && error.to_string().contains("merge_operator"), "{error}");
    let refused = db.bulk_load(table, [(b"b", b"1"), (b"a", b"2")]).unwrap_err();
    assert!(refused.kind() == Kind::Invalid && refused.to_string().contains("sorted"), "{refused}");
    let elsewhere = Fixture::new();
    let refused = db.ingest(&[(elsewhere.db.default_table(), &one)], IngestOptions::default());
    assert_eq!(refused.unwrap_err().kind(), Kind::Invalid);
    assert_eq!((table.iter().count(), db.shape().store_live_bytes), (0, 0));
    assert_eq!(db.bulk_load(table, std::iter::empty::<(&[u8], &[u8])>()).unwrap().entries, 0);
}

#[test]
fn damage_is_found() {
    let place = Fixture::new();
    let (db, table) = (&place.db, place.db.default_table());
    let good = place.file("good", 0..KEYS, 1);
    let info = inspect_extent_file(&good, true).unwrap();
    assert_eq!((info.entries, info.first, info.last), (KEYS.into(), key(0), key(KEYS - 1)));
    let bytes = std::fs::read(&good).unwrap();
    let used = (0..bytes.len()).filter(|at| bytes[*at] != 0);
    let (mut refused, mut found) = (0, 0);
    for at in used.step_by(97).chain(bytes.len() - 30..bytes.len()) {
        let (path, mut damaged) = (place.path.join(format!("bad{at}")), bytes.clone());
        damaged[at] ^= 1;
        std::fs::write(&path, &damaged).unwrap();
        let error = inspect_extent_file(&path, true).expect_err("a flipped bit is found");
        assert_eq!(error.kind(), Kind::Corrupt, "byte {at}: {error}");
        for copy in [false, true] {
            let how = IngestOptions { copy, verify: true, ..IngestOptions::default() };
            refused += u32::from(db.ingest(&[(table, &path)], how).is_err());
            found += 1;
        }
        std::fs::remove_file(&path).unwrap();
    }
    assert!(found > 100 && refused == found);
    for len in [0, 10, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(place.path.join("cut"), &bytes[..len]).unwrap();
        assert_eq!(inspect_extent_file(place.path.join("cut"), false).unwrap_err().kind(), Kind::Corrupt);
    }
    assert_eq!((table.iter().count(), db.shape().store_live_bytes), (0, 0));
}

/// Blocks of what came in may be copied as they are stored only with the number that they have there.
#[test]
fn merged_blocks_keep_the_number_of_their_commit() {
    let place = Fixture::new();
    let (db, table) = (&place.db, place.db.default_table());
    table.put(b"apart", b"first").unwrap();
    let before = db.snapshot();
    let file = place.file("a", 0..KEYS, b'a');
    db.ingest(&[(table, &file)], IngestOptions::default()).unwrap();
    let after = db.snapshot();
    // Keys within the extent, far from each other: it is opened, and most of its blocks meet nothing.
    for number in [10, 150, 290] {
        table.put(key(number), b"newer").unwrap();
    }
    let check = || {
        assert_eq!(before.iter(table).count(), 1, "a snapshot from before sees nothing of it");
        assert!(!before.contains(table, key(70)).unwrap());
        assert_eq!(after.get(table, key(70)).unwrap().as_deref(), Some(&value(b'a', 70)[..]));
        assert_eq!(after.get(table, key(150)).unwrap().as_deref(), Some(&value(b'a', 150)[..]));
        assert_eq!(table.get(key(150)).unwrap().as_deref(), Some(&b"newer"[..]));
        assert_eq!(table.iter().count(), usize::from(KEYS) + 1);
    };
    check();
    db.flush().unwrap();
    db.wait_until_quiescent().unwrap();
    check();
    db.compact_range(table, ..).unwrap();
    check();
    assert_eq!(db.check(&mut |_, _| ()).unwrap().findings.len(), 0);
}

#[test]
fn transactions_that_have_read_the_range_conflict() {
    let place = Fixture::new();
    let (db, table) = (&place.db, place.db.default_table());
    table.put(key(7), b"7").unwrap();
    let file = place.file("a", 0..100, b'a');
    let reader = db.transaction(&TransactionOptions::default()).unwrap();
    assert_eq!(reader.get(table, key(7)).unwrap().as_deref(), Some(&b"7"[..]));
    let mut writer = db.transaction(&TransactionOptions::default()).unwrap();
    assert!(writer.get(table, key(50)).unwrap().is_none());
    writer.put(table, b"elsewhere", b"1").unwrap();
    let mut apart = db.transaction(&TransactionOptions::default()).unwrap();
    assert!(apart.get(table, key(200)).unwrap().is_none());
    apart.put(table, b"elsewhere", b"2").unwrap();
    db.ingest(&[(table, &file)], IngestOptions::default()).unwrap();
    assert_eq!(reader.get(table, key(7)).unwrap().as_deref(), Some(&b"7"[..]), "it sees its moment");
    assert_eq!(writer.commit(Durability::Buffered).unwrap_err().kind(), Kind::Conflict);
    apart.commit(Durability::Buffered).unwrap();
    reader.commit(Durability::Buffered).unwrap();
    // The ingest waits for the transaction that holds a lock in the range.
    let pessimistic = TransactionOptions { concurrency: Concurrency::Pessimistic, ..Default::default() };
    let mut locker = db.transaction(&pessimistic).unwrap();
    locker.put(table, key(3), b"mine").unwrap();
    let how = IngestOptions { lock_timeout: Duration::from_millis(50), ..IngestOptions::default() };
    assert_eq!(db.ingest(&[(table, &file)], how).unwrap_err().kind(), Kind::TimedOut);
    locker.commit(Durability::Buffered).unwrap();
    assert_eq!(table.get(key(3)).unwrap().as_deref(), Some(&b"mine"[..]));
    db.ingest(&[(table, &file)], how).unwrap();
    assert_eq!(table.get(key(3)).unwrap().as_deref(), Some(&value(b'a', 3)[..]));
}

#[test]
fn operands_fold_onto_ingested_values() {
    let place = Fixture::new();
    let db = &place.db;
    let table =
        db.create_table("visits", &TableOptions::new().set("merge_operator", "counter").unwrap()).unwrap();
    let mut counted = options("two-layer");
    counted.set("merge_operator", "counter").unwrap();
    let total = |number: u16| counter::decode(&table.get(key(number)).unwrap().unwrap()).unwrap();
    table.merge(key(1), counter::encode(5)).unwrap();
    table.merge(key(2), counter::encode(5)).unwrap();
    let path = place.path.join("visits");
    let mut file = ExtentFileWriter::create(&path, &counted).unwrap();
    file.put(key(1), counter::encode(100)).unwrap();
    file.merge(key(2), counter::encode(7)).unwrap();
    file.finish().unwrap();
    db.ingest(&[(&table, &path)], IngestOptions::default()).unwrap();
    table.merge(key(1), counter::encode(1)).unwrap();
    table.merge(key(2), counter::encode(1)).unwrap();
    assert_eq!((total(1), total(2)), (101, 13));
    db.ingest(&[(&table, &path)], IngestOptions::default()).unwrap();
    assert_eq!((total(1), total(2)), (100, 20));
    db.compact_range(&table, ..).unwrap();
    assert_eq!((total(1), total(2)), (100, 20));
}

/// Writers of keys within the files wait; their records end up above the ingested entries or below them. No
/// reader sees a part of the ingest.
#[test]
fn beside_writers_and_readers() {
    let place = Fixture::new();
    let (db, table) = (&place.db, place.db.default_table());
    let files: Vec<_> = (1..=12).map(|mark| place.file(&format!("f{mark}"), 0..KEYS, mark)).collect();
    let is_done = std::sync::atomic::AtomicBool::new(false);
    let done = &is_done;
    let ordering = std::sync::atomic::Ordering::SeqCst;
    std::thread::scope(|scope| {
        for thread in 0..2u16 {
            scope.spawn(move || {
                let mut round = 0u16;
                while !done.load(ordering) {
                    round = round.wrapping_add(1);
                    table.put(key(KEYS + thread), round.to_be_bytes()).unwrap();
                    let within = key(round.wrapping_mul(7).wrapping_add(thread) % KEYS);
                    table.put(&within, [0xff; 20]).unwrap();
                }
            });
        }
        scope.spawn(move || {
            let keys: Vec<Vec<u8>> = (0..KEYS).map(key).collect();
            let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            let mut newest = 0;
            while !done.load(ordering) {
                let found = table.multi_get(&keys).unwrap();
                let marks = found.iter().flatten().map(|value| value[1]).filter(|mark| *mark != 0xff);
                let (least, most) = (marks.clone().min().unwrap_or(0), marks.max().unwrap_or(0));
                assert!(least == most || most == 0, "a part of a file is seen: {least} to {most}");
                assert!(most == 0 || most >= newest, "{most} behind {newest}");
                newest = newest.max(most);
            }
        });
        let came_in =
            files.iter().try_for_each(|file| db.ingest(&[(table, file)], IngestOptions::default()).map(drop));
        is_done.store(true, ordering);
        came_in.unwrap();
    });
    assert_eq!(db.check(&mut |_, _| ()).unwrap().findings.len(), 0);
}

/// Orders as bytes do; on request it holds a writer at its next record.
#[derive(Debug, Default)]
struct Keeping {
    keeps: AtomicBool,
    meets: Mutex<Option<Receiver<()>>>,
}

impl Comparator for Keeping {
    fn name(&self) -> &str {
        "test.keeping"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> std::cmp::Ordering {
        if self.keeps.load(Ordering::SeqCst) {
            let meets = self.meets.lock().unwrap().take();
            meets.into_iter().for_each(|meets| meets.recv().unwrap());
        }
        left.cmp(right)
    }
}

/// Extents are in the levels before their number is visible: a read in between finds what was newest before,
/// and must not leave that in the row cache. A commit before theirs, of another table, that comes to no end
/// makes it a long while.
#[test]
fn reads_that_do_not_see_an_ingest_cache_no_row() {
    const ROWS: u64 = 40_000;
    let dir = tempfile::tempdir().unwrap();
    let comparator = Arc::new(Keeping::default());
    let orders = KeyOrders::new().with_comparator(comparator.clone()).unwrap();
    let mut options = options("two-layer");
    options.set("row_cache", "50").unwrap();
    let functions = Functions { orders, ..Functions::default() };
    let db = Db::open_with_functions(dir.path().join("db"), &options, functions).unwrap();
    let table = db.default_table();
    let other =
        db.create_table("other", &TableOptions::new().set("key_order", "test.keeping").unwrap()).unwrap();
    other.put(b"a", b"1").unwrap();
    let name = |number: u64| number.to_be_bytes();
    let load = |mark: u8| db.bulk_load(table, (0..ROWS).map(|number| (name(number), [mark; 200])));
    load(1).unwrap();
    // Random reads of more than the block cache has: rows are worth their memory.
    let mut rng = Rng::new(1);
    let mut read = |expected: u8| {
        let value = table.get(name(rng.below(ROWS))).unwrap().unwrap();
        assert_eq!(value[0], expected);
    };
    (0..40_000).for_each(|_| read(1));
    // Only the ingest changes how many runs there are.
    db.wait_until_quiescent().unwrap();
    db.pause_background();
    let ((go, gone), before) = (channel(), db.shape().tables[0].sorted_runs());
    *comparator.meets.lock().unwrap() = Some(gone);
    comparator.keeps.store(true, Ordering::SeqCst);
    std::thread::scope(|scope| {
        // Dropped if this thread panics: the writer goes on.
        let go = go;
        let writer = scope.spawn(|| other.put(b"b", b"1"));
        while comparator.meets.lock().unwrap().is_some() {
            std::thread::yield_now();
        }
        let loader = scope.spawn(|| load(2));
        while db.shape().tables[0].sorted_runs() == before {
            std::thread::yield_now();
        }
        (0..20_000).for_each(|_| read(1));
        assert!(!loader.is_finished(), "it waits for the commit before its own");
        go.send(()).unwrap();
        writer.join().unwrap().unwrap();
        loader.join().unwrap().unwrap();
    });
    for number in 0..ROWS {
        assert_eq!(table.get(name(number)).unwrap().unwrap()[0], 2, "{number}");
    }
}
