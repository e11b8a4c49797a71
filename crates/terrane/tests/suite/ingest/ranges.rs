//! Range deletes of external files: the versions that they hide, those that they do not, and their ingest.

use super::*;
use terrane_base::Rng;

/// A file with rows of some keys and deletes of some ranges, which are added before and behind the rows.
pub(super) fn write_ranged(
    path: &Path,
    options: &Options,
    rows: &BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    ranges: &[(u16, u16)],
) {
    let mut file = ExtentFileWriter::create(path, options).unwrap();
    let (before, behind) = ranges.split_at(ranges.len() / 2);
    let delete = |file: &mut ExtentFileWriter, (start, end): &(u16, u16)| {
        file.delete_range(key(*start), key(*end)).unwrap();
    };
    before.iter().for_each(|range| delete(&mut file, range));
    for (key, value) in rows {
        match value {
            Some(value) => file.put(key, value).unwrap(),
            None => file.delete(key).unwrap(),
        }
    }
    behind.iter().for_each(|range| delete(&mut file, range));
    let written = file.finish().unwrap();
    assert_eq!(written.entries, rows.len() as u64);
    assert_eq!(written.range_deletes > 0, !ranges.is_empty());
}

/// The effect of a file on the model: its range deletes hide older rows, and none of its own.
pub(super) fn apply_ranged(
    model: &mut Model,
    rows: &BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    ranges: &[(u16, u16)],
) {
    for (start, end) in ranges {
        model.retain(|found, _| !(key(*start) <= *found && *found < key(*end)));
    }
    apply(model, rows);
}

pub(super) fn all(range: std::ops::Range<u16>, mark: u8) -> BTreeMap<Vec<u8>, Option<Vec<u8>>> {
    range.map(|number| (key(number), Some(value(mark, number)))).collect()
}

pub(super) fn model_of(range: std::ops::Range<u16>, mark: u8) -> Model {
    range.map(|number| (key(number), value(mark, number))).collect()
}

/// Range deletes in the extents of a table.
fn stored_ranges(db: &Db, name: &str) -> u64 {
    let shape = db.shape();
    let table = shape.tables.iter().find(|table| table.name == name).unwrap();
    table.runs.iter().chain(&table.levels).map(|level| level.range_deletes).sum()
}

/// Brings older versions to this depth, before a file comes in.
pub(super) fn sink(db: &Db, table: &Table, depth: u8) {
    match depth {
        0 => {}
        1 => db.flush_to_run(table).unwrap(),
        2 => db.flush().unwrap(),
        _ => db.compact_range(table, ..).unwrap(),
    }
}

#[test]
fn range_deletes_of_a_file_hide_older_rows_and_none_of_its_own() {
    for depth in 0..4 {
        for copy in [false, true] {
            let place = Fixture::new();
            let (db, table) = (&place.db, place.db.default_table());
            for number in 0..KEYS {
                table.put(key(number), value(b'o', number)).unwrap();
            }
            sink(db, table, depth);
            let (old, before) = (model_of(0..KEYS, b'o'), db.snapshot());
            let (rows, ranges) = (all(50..70, b'n'), [(40, 60), (55, 80), (200, 210), (210, 220)]);
            let file = place.path.join("file");
            write_ranged(&file, &options("two-layer"), &rows, &ranges);
            let info = inspect_extent_file(&file, true).unwrap();
            assert_eq!((info.entries, info.range_deletes), (20, 2), "what overlaps or meets is one");
            let how = IngestOptions { copy, ..IngestOptions::default() };
            let ingested = db.ingest(&[(table, &file)], how).unwrap();
            assert_eq!((ingested.entries, ingested.range_deletes, ingested.extents), (20, 2, 2));
            assert_eq!((ingested.files_linked == 0, ingested.bytes_copied > 0), (copy, copy));
            let after = db.snapshot();
            let mut expected = old.clone();
            apply_ranged(&mut expected, &rows, &ranges);
            // Later rows lie above the range deletes.
            table.put(key(41), b"later").unwrap();
            let mut newest = expected.clone();
            newest.insert(key(41), b"later".to_vec());
            let look = || {
                check(table, Some(&before), &old);
                check(table, Some(&after), &expected);
                check(table, None, &newest);
            };
            look();
            db.flush().unwrap();
            look();
            db.compact_range(table, ..).unwrap();
            look();
            drop((before, after));
            db.compact_range(table, ..).unwrap();
            check(table, None, &newest);
            assert_eq!(db.check(&mut |_, _| ()).unwrap().findings.len(), 0);
        }
    }
}

#[test]
fn range_deletes_alone_are_a_file_and_go_with_what_they_hide() {
    let place = Fixture::new();
    let (db, table) = (&place.db, place.db.default_table());
    let file = place.path.join("file");
    write_ranged(&file, &options("two-layer"), &BTreeMap::new(), &[(10, KEYS)]);
    let info = inspect_extent_file(&file, true).unwrap();
    assert_eq!((info.entries, info.extents, info.range_deletes), (0, 1, 1));
    assert_eq!((info.first, info.last), (key(10), key(KEYS)));
    db.bulk_load(table, (0..KEYS).map(|number| (key(number), value(b'o', number)))).unwrap();
    let how = IngestOptions { remove: true, ..IngestOptions::default() };
    // By itself the background would merge it before anybody looks.
    db.pause_background();
    db.ingest(&[(table, &file)], how).unwrap();
    check(table, None, &model_of(0..10, b'o'));
    assert_eq!(stored_ranges(db, "default"), 1, "{}", db.shape());
    db.resume_background();
    db.compact_range(table, ..).unwrap();
    db.wait_until_quiescent().unwrap();
    check(table, None, &model_of(0..10, b'o'));
    assert_eq!(stored_ranges(db, "default"), 0, "{}", db.shape());
}

#[test]
fn more_range_deletes_than_an_extent_holds_take_several() {
    let place = Fixture::new();
    let (db, table) = (&place.db, place.db.default_table());
    let long = |number: u16, end: u8| [&key(number)[..], &vec![end; 60_000]].concat();
    let path = place.path.join("file");
    let mut file = ExtentFileWriter::create(&path, &options("two-layer")).unwrap();
    for number in (0..KEYS).step_by(2) {
        table.put(long(number, 5), b"in").unwrap();
        table.put(long(number, 7), b"out").unwrap();
        file.delete_range(long(number, 4), long(number, 6)).unwrap();
    }
    let written = file.finish().unwrap();
    assert!(written.range_deletes == 150 && written.extents > 9, "{written:?}");
    let ingested = db.ingest(&[(table, &path)], IngestOptions::default()).unwrap();
    assert_eq!(ingested.extents, written.extents);
    assert_eq!(table.iter().map(|row| row.unwrap().1.to_vec()).collect::<Vec<_>>(), [&b"out"[..]; 150]);
    assert!(table.get(long(8, 5)).unwrap().is_none() && table.contains(long(8, 7)).unwrap());
}

#[test]
fn files_that_only_touch_are_ingested_together_and_overlapping_ones_are_not() {
    let place = Fixture::new();
    let (db, table) = (&place.db, place.db.default_table());
    db.bulk_load(table, (0..KEYS).map(|number| (key(number), value(b'o', number)))).unwrap();
    let [deletes, behind, within] = ["deletes", "behind", "within"].map(|name| place.path.join(name));
    write_ranged(&deletes, &options("two-layer"), &all(20..30, b'a'), &[(10, 100)]);
    write_ranged(&behind, &options("two-layer"), &all(100..150, b'b'), &[(110, 200)]);
    write_ranged(&within, &options("two-layer"), &all(99..150, b'c'), &[]);
    let refused = db.ingest(&[(table, &within), (table, &deletes)], IngestOptions::default()).unwrap_err();
    assert!(refused.kind() == Kind::Invalid && refused.to_string().contains("overlap"), "{refused}");
    check(table, None, &model_of(0..KEYS, b'o'));
    for files in [[&deletes, &behind], [&behind, &deletes]] {
        db.ingest(&files.map(|file| (table, file)), IngestOptions::default()).unwrap();
        let mut expected = model_of(0..KEYS, b'o');
        apply_ranged(&mut expected, &all(20..30, b'a'), &[(10, 100)]);
        apply_ranged(&mut expected, &all(100..150, b'b'), &[(110, 200)]);
        check(table, None, &expected);
    }
    assert_eq!(db.check(&mut |_, _| ()).unwrap().findings.len(), 0);
}

#[test]
fn files_with_range_deletes_are_ingested_into_many_tables_atomically() {
    let place = Fixture::new();
    let db = &place.db;
    let tables = ["one", "two", "three"].map(|name| db.create_table(name, &TableOptions::new()).unwrap());
    let mut files = Vec::new();
    for (number, table) in (0..).zip(&tables) {
        db.bulk_load(table, (0..KEYS).map(|key_number| (key(key_number), value(b'o', key_number)))).unwrap();
        for part in 0..3u16 {
            let path = place.path.join(format!("{number}-{part}"));
            let from = part * 100;
            write_ranged(
                &path,
                &options("two-layer"),
                &all(from..from + 10, b'n'),
                &[(from, from + 50 + number)],
            );
            files.push((table, path));
        }
    }
    let ingested = db.ingest(&files, IngestOptions::default()).unwrap();
    assert_eq!((ingested.entries, ingested.range_deletes), (90, 9));
    for (number, table) in (0..).zip(&tables) {
        let mut expected = model_of(0..KEYS, b'o');
        for from in [0, 100, 200] {
            apply_ranged(&mut expected, &all(from..from + 10, b'n'), &[(from, from + 50 + number)]);
        }
        check(table, None, &expected);
    }
}

#[test]
fn ranges_without_a_key_are_refused() {
    let place = Fixture::new();
    let mut file = ExtentFileWriter::create(place.path.join("file"), &options("two-layer")).unwrap();
    for (start, end) in [(b"b", b"a"), (b"a", b"a")] {
        let refused = file.delete_range(start, end).unwrap_err();
        assert!(refused.kind() == Kind::Invalid && refused.to_string().contains("range delete"), "{refused}");
    }
    assert_eq!(file.delete_range(b"a", [1; 70_000]).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(file.finish().unwrap_err().kind(), Kind::Invalid, "nothing was added");
}

#[test]
fn range_deletes_lie_in_the_order_of_the_table() {
    let place = Fixture::new();
    let db = &place.db;
    let mut reverse = options("two-layer");
    reverse.set("key_order", "reverse").unwrap();
    let table =
        db.create_table("reverse", &TableOptions::new().set("key_order", "reverse").unwrap()).unwrap();
    for key in [b"a", b"b", b"c", b"d"] {
        table.put(key, b"old").unwrap();
    }
    let path = place.path.join("file");
    let mut file = ExtentFileWriter::create(&path, &reverse).unwrap();
    assert_eq!(file.delete_range(b"b", b"d").unwrap_err().kind(), Kind::Invalid);
    file.delete_range(b"d", b"b").unwrap();
    file.put(b"c", b"new").unwrap();
    file.finish().unwrap();
    db.ingest(&[(&table, &path)], IngestOptions::default()).unwrap();
    let rows: Vec<_> =
        table.iter().map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect();
    let row = |key: &[u8], value: &[u8]| (key.to_vec(), value.to_vec());
    assert_eq!(rows, [row(b"c", b"new"), row(b"b", b"old"), row(b"a", b"old")]);
}

#[test]
fn an_ingested_range_delete_is_a_conflict() {
    let place = Fixture::new();
    let (db, table) = (&place.db, place.db.default_table());
    table.put(key(7), b"7").unwrap();
    let file = place.path.join("file");
    write_ranged(&file, &options("two-layer"), &BTreeMap::new(), &[(0, 100)]);
    let mut writer = db.transaction(&TransactionOptions::default()).unwrap();
    assert!(writer.get(table, key(7)).unwrap().is_some());
    writer.put(table, b"elsewhere", b"1").unwrap();
    let mut apart = db.transaction(&TransactionOptions::default()).unwrap();
    assert!(apart.get(table, key(200)).unwrap().is_none());
    apart.put(table, b"elsewhere", b"2").unwrap();
    db.ingest(&[(table, &file)], IngestOptions::default()).unwrap();
    assert!(writer.get(table, key(7)).unwrap().is_some(), "it sees its moment");
    assert_eq!(writer.commit(Durability::Buffered).unwrap_err().kind(), Kind::Conflict);
    apart.commit(Durability::Buffered).unwrap();
    let pessimistic = TransactionOptions { concurrency: Concurrency::Pessimistic, ..Default::default() };
    let mut locker = db.transaction(&pessimistic).unwrap();
    locker.put(table, key(3), b"mine").unwrap();
    let how = IngestOptions { lock_timeout: Duration::from_millis(50), ..IngestOptions::default() };
    assert_eq!(db.ingest(&[(table, &file)], how).unwrap_err().kind(), Kind::TimedOut);
    locker.commit(Durability::Buffered).unwrap();
    db.ingest(&[(table, &file)], how).unwrap();
    assert_eq!(table.get(key(3)).unwrap(), None);
}

#[test]
fn rows_that_are_cached_are_forgotten_by_range() {
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
    let path = dir.path().join("file");
    let mut file = ExtentFileWriter::create(&path, &options).unwrap();
    file.delete_range(name(0), name(ROWS / 2)).unwrap();
    file.finish().unwrap();
    db.ingest(&[(table, &path)], IngestOptions::default()).unwrap();
    for number in 0..ROWS {
        assert_eq!(table.contains(name(number)).unwrap(), number >= ROWS / 2, "{number}");
    }
}

#[test]
fn damage_of_range_deletes_is_found() {
    let place = Fixture::new();
    let (db, table) = (&place.db, place.db.default_table());
    let good = place.path.join("good");
    write_ranged(&good, &options("two-layer"), &all(0..9, b'a'), &[(3, 30), (40, 50)]);
    inspect_extent_file(&good, true).unwrap();
    let bytes = std::fs::read(&good).unwrap();
    let mut found = 0;
    for at in (2 << 20..bytes.len()).filter(|at| bytes[*at] != 0) {
        let (path, mut damaged) = (place.path.join("bad"), bytes.clone());
        damaged[at] ^= 1;
        std::fs::write(&path, &damaged).unwrap();
        let error = inspect_extent_file(&path, true).expect_err("a flipped bit is found");
        assert_eq!(error.kind(), Kind::Corrupt, "byte {at}: {error}");
        assert!(db.ingest(&[(table, &path)], IngestOptions::default()).is_err(), "byte {at}");
        found += 1;
    }
    assert!(found > 150, "{found}");
    assert_eq!(db.shape().store_live_bytes, 0);
}

#[test]
fn copies_and_repairs_keep_ingested_range_deletes() {
    let place = Fixture::new();
    let (db, table) = (&place.db, place.db.default_table());
    for number in 0..KEYS {
        table.put(key(number), value(b'o', number)).unwrap();
    }
    let (file, rows, ranges) = (place.path.join("file"), all(50..70, b'n'), [(40, 80)]);
    write_ranged(&file, &options("two-layer"), &rows, &ranges);
    db.ingest(&[(table, &file)], IngestOptions::default()).unwrap();
    let mut expected = model_of(0..KEYS, b'o');
    apply_ranged(&mut expected, &rows, &ranges);
    // With its rows in one extent, where a snapshot keeps the range delete.
    let apart = db.create_table("apart", &TableOptions::new()).unwrap();
    db.bulk_load(&apart, (0..KEYS).map(|number| (key(number), value(b'o', number)))).unwrap();
    let snapshot = db.snapshot();
    db.ingest(&[(&apart, &file)], IngestOptions { remove: true, ..IngestOptions::default() }).unwrap();
    db.compact_range(&apart, ..).unwrap();
    assert_eq!(stored_ranges(db, "apart"), 1, "{}", db.shape());
    let copy = db.checkpoint(place.path.join("copy")).unwrap();
    let backups = Backups::open(place.path.join("backups"));
    let made = backups.create(db).unwrap();
    assert!(backups.verify(made.id).unwrap().findings.is_empty());
    backups.restore(made.id, place.path.join("restored")).unwrap();
    let follower = Db::open_follower(place.path.join("data")).unwrap();
    check(follower.view().default_table(), None, &expected);
    drop((follower, snapshot));
    db.clone().close().unwrap();
    let mended = place.path.join("mended");
    terrane::repair(place.path.join("data"), &mended, &options("two-layer")).unwrap();
    for path in [copy.path, place.path.join("restored"), mended, place.path.join("data")] {
        let db = Db::open_with(&path, &options("two-layer")).unwrap();
        check(db.default_table(), None, &expected);
        check(&db.table("apart").unwrap(), None, &expected);
        db.close().unwrap();
    }
}
