//! Separated values: a database with value tables answers as one without, gives the space of dead values
//! back, and tells what a damaged value table takes along.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test, on files of its own")]

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use terrane::{Db, Kind, Options, Table};
use terrane_base::Rng;

/// Values of 100 bytes and more are separated, or none is; memtables are small, so that levels are deep.
/// Value tables of a table with fewer bytes are not collected (`docs/design/0036-separated-values.md`).
const COLLECTED_BYTES_MIN: u64 = 8 << 20;

fn open(path: &Path, is_on: bool) -> Db {
    let mut options = Options { memory_bytes: 16 << 20, ..Options::default() };
    for (name, value) in [
        ("memtable_bytes", "128KiB"),
        ("level_base_bytes", "128KiB"),
        ("level_fanout", "3"),
        ("merge_operator", "append"),
        ("compression", "none"),
        ("compression_last", "none"),
        ("value_separation_bytes", if is_on { "100" } else { "0" }),
    ] {
        options.set(name, value).unwrap();
    }
    Db::open_with(path, &options).unwrap()
}

fn key(number: u64) -> Vec<u8> {
    format!("key-{number:05}").into_bytes()
}

/// Every fifth value is short.
fn value(number: u64, round: u64) -> Vec<u8> {
    let len = if number.is_multiple_of(5) { 20 } else { 300 + (number * 7 + round * 13) % 900 };
    let mut rng = Rng::new(number << 20 | round);
    (0..len).map(|_| rng.next_u64() as u8).collect()
}

/// Writes of all sorts over `keys` keys.
fn write_round(db: &Db, round: u64, keys: u64) {
    let table = db.default_table();
    for number in (0..keys).filter(|number| !(number + round).is_multiple_of(3)) {
        match (number * 31 + round) % 11 {
            0 => table.delete(key(number)).unwrap(),
            1 => table.merge(key(number), value(number, round)).unwrap(),
            _ => table.put(key(number), value(number, round)).unwrap(),
        }
    }
    table.delete_range(key(round * 17 % keys), key(round * 17 % keys + 9)).unwrap();
}

fn rows(table: &Table) -> Vec<(Vec<u8>, Vec<u8>)> {
    table.iter().map(|row| row.unwrap()).map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

/// Reads of all kinds return the same of two databases, which have the same rows.
fn assert_alike(separated: &Db, inline: &Db, keys: u64) {
    let (table, other) = (separated.default_table(), inline.default_table());
    let expected = rows(other);
    assert_eq!(rows(table), expected);
    let backward = table.iter().rev().map(|row| row.unwrap());
    let backward: Vec<_> = backward.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    assert!(backward.iter().eq(expected.iter().rev()));
    let keys: Vec<Vec<u8>> = (0..keys).map(key).collect();
    for (key, found) in keys.iter().zip(table.multi_get(&keys).unwrap()) {
        let expected = other.get(key).unwrap().map(|value| value.to_vec());
        assert_eq!(found.map(|value| value.to_vec()), expected);
        assert_eq!(table.get(key).unwrap().map(|value| value.to_vec()), expected);
    }
}

/// A metric of the default table.
fn metric(db: &Db, name: &str) -> u64 {
    db.statistics().table("default").unwrap().get(name).unwrap().number()
}

fn value_tables(db: &Db) -> u64 {
    metric(db, "table_value_tables")
}

#[test]
fn a_database_with_value_tables_answers_as_one_without() {
    let dir = tempfile::tempdir().unwrap();
    let paths = ["separated", "inline"].map(|name| dir.path().join(name));
    let (mut separated, mut inline) = (open(&paths[0], true), open(&paths[1], false));
    let mut snapshots = Vec::new();
    for round in 0..12 {
        write_round(&separated, round, 600);
        write_round(&inline, round, 600);
        if round % 4 == 1 {
            snapshots.push((separated.snapshot(), inline.snapshot()));
        }
        if round % 3 == 2 {
            separated.flush().unwrap();
        }
        assert_alike(&separated, &inline, 600);
    }
    separated.flush().unwrap();
    assert!(value_tables(&separated) > 0 && value_tables(&inline) == 0);
    separated.compact_range(separated.default_table(), ..).unwrap();
    for (snapshot, expected) in &snapshots {
        for number in 0..600 {
            let found = snapshot.get(separated.default_table(), key(number)).unwrap();
            let expected = expected.get(inline.default_table(), key(number)).unwrap();
            assert_eq!(found.map(|value| value.to_vec()), expected.map(|value| value.to_vec()));
        }
    }
    snapshots.clear();
    assert_alike(&separated, &inline, 600);
    separated.close().unwrap();
    inline.close().unwrap();
    // Without the option separated values stay so until they are rewritten; with it inline ones go to value
    // tables.
    (separated, inline) = (open(&paths[0], false), open(&paths[1], true));
    assert_alike(&separated, &inline, 600);
    write_round(&separated, 40, 600);
    write_round(&inline, 40, 600);
    for db in [&separated, &inline] {
        db.flush().unwrap();
        db.compact_range(db.default_table(), ..).unwrap();
        assert!(db.check(&mut |_, _| ()).unwrap().findings.is_empty());
    }
    assert!(value_tables(&inline) > 0);
    assert_alike(&separated, &inline, 600);
}

#[test]
fn space_of_dead_values_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"), true);
    let table = db.default_table();
    for round in 0..8 {
        for number in 0..8_000 {
            table.put(key(number), value(number, round)).unwrap();
        }
    }
    db.flush().unwrap();
    // A version that a newer one hides counts as live until both meet in a merge: in overflow runs they may
    // not have met yet.
    db.compact_range(table, ..).unwrap();
    db.wait_until_quiescent().unwrap();
    let permille = metric(&db, "table_value_space_permille");
    let live: usize = (0..8_000).map(|number| value(number, 7).len()).sum();
    let stored = metric(&db, "table_value_bytes");
    assert!(stored < 8 * live as u64 / 3, "{stored} for {live}: eight rounds of values were written");
    // Fewer are not collected: whether they are above the ceiling depends on which jobs met.
    assert!(permille <= 1250 || stored < COLLECTED_BYTES_MIN, "{permille} of 1250, {stored} bytes");
    assert!(db.stats().values_moved > 0);
    table.delete_range(key(0), key(9_000)).unwrap();
    db.flush().unwrap();
    db.compact_range(table, ..).unwrap();
    assert_eq!(value_tables(&db), 0, "the last pointer into each has gone");
}

/// Changes a byte in the middle of a value of this content, wherever the data files have it.
fn damage(dir: &Path, content: &[u8]) {
    for entry in std::fs::read_dir(dir.join("data")).unwrap() {
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.read(true).write(true).open(entry.unwrap().path()).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        if let Some(at) = bytes.windows(content.len()).position(|window| window == content) {
            file.seek(SeekFrom::Start((at + content.len() / 2) as u64)).unwrap();
            file.write_all(&[bytes[at + content.len() / 2] ^ 1]).unwrap();
            return;
        }
    }
    panic!("the value is in no data file");
}

/// A database of 400 keys, all flushed, whose key 77 has a damaged value.
fn open_damaged(path: &Path) -> Db {
    let db = open(path, true);
    for number in 0..400 {
        db.put(key(number), value(number, 0)).unwrap();
    }
    db.flush().unwrap();
    db.close().unwrap();
    damage(path, &value(77, 0));
    open(path, true)
}

#[test]
fn a_damaged_value_is_an_error_of_its_key_and_repair_brings_the_others_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = open_damaged(&path);
    let table = db.default_table();
    let error = table.get(key(77)).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt);
    assert!(error.place().is_some_and(|place| place.file.ends_with(".ext")), "{error}");
    let lost: Vec<u64> = (0..400).filter(|number| table.get(key(*number)).is_err()).collect();
    assert!(lost.len() <= 64 && lost.contains(&77), "the keys of one block: {lost:?}");
    assert_eq!(db.check(&mut |_, _| ()).unwrap().findings.len(), 1);
    db.close().unwrap();
    let repaired = dir.path().join("repaired");
    let report = terrane::repair(&path, &repaired, &Options::default()).unwrap();
    assert!(!report.losses.is_empty());
    let db = open(&repaired, true);
    for number in 0..400 {
        let found = db.get(key(number)).unwrap().map(|found| found.to_vec());
        assert_eq!(found, (!lost.contains(&number)).then(|| value(number, 0)), "key {number}");
    }
}

#[test]
fn backups_and_checkpoints_have_separated_values() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"), true);
    for round in 0..3 {
        write_round(&db, round, 400);
        db.flush().unwrap();
    }
    assert!(value_tables(&db) > 0);
    let expected = rows(db.default_table());
    let (checkpoint, restored) = (dir.path().join("checkpoint"), dir.path().join("restored"));
    db.checkpoint(&checkpoint).unwrap();
    let backups = terrane::Backups::open(dir.path().join("backups"));
    let made = backups.create(&db).unwrap();
    assert!(backups.verify(made.id).unwrap().findings.is_empty());
    // What comes later is in neither, and what both have is not changed by it.
    (0..400).for_each(|number| db.put(key(number), value(number, 9)).unwrap());
    db.compact_range(db.default_table(), ..).unwrap();
    db.close().unwrap();
    backups.restore(made.id, &restored).unwrap();
    for path in [checkpoint, restored] {
        let copy = open(&path, true);
        assert_eq!(rows(copy.default_table()), expected, "{}", path.display());
        assert!(copy.check(&mut |_, _| ()).unwrap().findings.is_empty(), "{}", path.display());
        assert!(value_tables(&copy) > 0);
    }
}

#[test]
fn numbers_of_value_tables_go_on_behind_an_opening() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let db = open(&dir.path().join("db"), true);
        for number in 0..50 {
            db.put(key(100 * round + number), value(number, round)).unwrap();
        }
        db.flush().unwrap();
        assert!(value_tables(&db) > round, "value tables of earlier openings stay");
        for (earlier, number) in (0..=round).flat_map(|round| (0..50).map(move |number| (round, number))) {
            let found = db.get(key(100 * earlier + number)).unwrap().map(|found| found.to_vec());
            assert_eq!(found, Some(value(number, earlier)));
        }
        db.close().unwrap();
    }
}

/// The rows that a cursor shows from where it is on, at most 40.
fn walk(cursor: &mut terrane::Cursor, backward: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    while let Some((key, value)) = cursor.row().filter(|_| rows.len() < 40) {
        rows.push((key.to_vec(), value.to_vec()));
        if backward { cursor.prev().unwrap() } else { cursor.next().unwrap() }
    }
    rows
}

#[test]
fn cursors_show_separated_values_from_a_cold_cache_and_after_refreshes() {
    let dir = tempfile::tempdir().unwrap();
    let paths = ["separated", "inline"].map(|name| dir.path().join(name));
    let dbs = || [open(&paths[0], true), open(&paths[1], false)];
    let [separated, inline] = dbs();
    for round in 0..6 {
        write_round(&separated, round, 600);
        write_round(&inline, round, 600);
        separated.flush().unwrap();
    }
    separated.close().unwrap();
    inline.close().unwrap();
    // Nothing is cached now, so values are read in batches.
    let [separated, inline] = dbs();
    let mut cursors = [&separated, &inline].map(|db| db.default_table().cursor());
    let before = terrane::read_counters();
    for round in 0..30 {
        let backward = round % 2 == 1;
        let [shown, expected] = cursors.each_mut().map(|cursor| {
            let from = key(round * 97 % 600);
            if backward {
                cursor.seek_back(from).unwrap()
            } else {
                cursor.seek(from).unwrap()
            }
            let mut rows = walk(cursor, backward);
            // Back over some of it.
            if cursor.row().is_some() {
                rows.extend(walk(cursor, !backward));
            }
            rows
        });
        assert_eq!(shown, expected, "round {round}");
        if round % 4 == 3 {
            write_round(&separated, 50 + round, 600);
            write_round(&inline, 50 + round, 600);
            separated.flush().unwrap();
            cursors.iter_mut().for_each(terrane::Cursor::refresh);
        }
    }
    let read = terrane::read_counters() - before;
    assert!(read.value_batches > 0 && read.value_batch_reads > read.value_batches, "{read:?}");
}

#[test]
fn multi_get_fetches_separated_values_together() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = open(&path, true);
    for number in (0..900).filter(|number| number % 7 != 0) {
        db.put(key(number), value(number, 0)).unwrap();
    }
    db.flush().unwrap();
    db.close().unwrap();
    let db = open(&path, true);
    let keys: Vec<Vec<u8>> = (0..900).map(key).collect();
    let batches_of_a_read = || {
        let before = terrane::read_counters();
        let found = db.default_table().multi_get(&keys).unwrap();
        let read = terrane::read_counters() - before;
        for (number, found) in (0..900).zip(found) {
            let expected = (number % 7 != 0).then(|| value(number, 0));
            assert_eq!(found.map(|value| value.to_vec()), expected, "key {number}");
        }
        assert!(read.values_followed + read.rows_cached > 500, "{read:?}");
        read.value_batches
    };
    assert!(batches_of_a_read() > 0, "the cache of a new opening holds no values");
    // A job that the opening has started may put other value tables in the place of those in the cache.
    db.wait_until_quiescent().unwrap();
    assert!((0..10).any(|_| batches_of_a_read() == 0), "the cache holds all values");
}

#[test]
fn a_damaged_value_in_a_batch_is_an_error_with_its_key_and_others_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let db = open_damaged(&dir.path().join("db"));
    let table = db.default_table();
    let error = table.multi_get(&[key(1), key(77), key(390)]).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt);
    assert!(error.to_string().contains("value table") && error.to_string().contains("key-00077"), "{error}");
    assert!(error.place().is_some_and(|place| place.file.ends_with(".ext")), "{error}");
    let mut rows = 0;
    let error = table.iter().find_map(|row| row.inspect(|_| rows += 1).err()).unwrap();
    assert!(error.to_string().contains("value table") && error.to_string().contains("key-000"), "{error}");
    assert!((1..=77).contains(&rows), "the rows before the damaged block: {rows}");
    let found = table.multi_get(&[key(1), key(390)]).unwrap();
    assert!(found.iter().all(Option::is_some));
}

/// Both versions are in one value table, whose entries of a key lie side by side.
#[test]
fn an_older_version_keeps_its_value_beside_a_newer_one() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("data"), true);
    let table = db.default_table();
    let keys: Vec<Vec<u8>> = (0..50).map(key).collect();
    let put = |fill: u8| keys.iter().for_each(|key| table.put(key, [fill; 300]).unwrap());
    put(1);
    let before = db.snapshot();
    put(2);
    db.flush().unwrap();
    assert_eq!(value_tables(&db), 1);
    let is_old = |value: &[u8]| value == [1; 300];
    for _ in ["from the device", "from the cache"] {
        for key in &keys {
            assert!(is_old(&before.get(table, key).unwrap().unwrap()), "{key:?}");
            assert_eq!(table.get(key).unwrap().unwrap(), [2; 300]);
        }
        assert!(before.multi_get(table, &keys).unwrap().iter().flatten().all(|value| is_old(value)));
        assert_eq!(before.iter(table).filter(|row| is_old(&row.as_ref().unwrap().1)).count(), 50);
        assert_eq!(before.iter(table).rev().filter(|row| is_old(&row.as_ref().unwrap().1)).count(), 50);
    }
}
