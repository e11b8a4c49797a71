//! Repair of damaged databases: after damage of any byte, file or length the new database is sound, has no
//! row that the old one did not have, and every row that differs lies in a reported loss.
//!
//! `TERRANE_REPAIR_STEP` is the distance between damaged bytes (default: about 40 places per file).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use support::{DIR, number_from_env, open, rows, small_options};
use terrane_base::env::Env;
use terrane_base::{Error, Kind, Rng, TableId};
use terrane_device::{Disk, MemDisk, OpenMode};
use terrane_engine::{Bounds, Engine, RepairReport, repair_on};
use terrane_format::manifest::{Edit, EditOp};
use terrane_levels::Manifest;

type Rows = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

const TARGET: &str = "/repaired";

fn read_all(engine: &Arc<Engine>) -> Rows {
    let tables = engine.catalog().all();
    tables
        .iter()
        .map(|table| (table.name.clone(), rows(engine, table).unwrap().into_iter().collect()))
        .collect()
}

/// All rows that were ever written.
#[derive(Default)]
struct Past {
    /// Every value that any key ever had.
    ever: Rows,
    /// Tables and keys that changed after the last flush: only of these can damage of the journal take
    /// anything.
    late: BTreeSet<(String, Vec<u8>)>,
}

/// A database with rows in several levels and in the journal, as the death of its process leaves it, with its
/// rows and its past.
fn database() -> (MemDisk, Rows, Past) {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &small_options()).unwrap();
    let other = engine.create_table("other", &[("block_bytes".into(), "2048".into())]).unwrap();
    let mut numbers = Rng::new(3);
    let mut past = Past::default();
    for round in 0..4u64 {
        for number in 0..120u64 {
            let key = format!("key{:04}", (number * 7 + round * 3) % 200).into_bytes();
            let (table, name) =
                if number % 3 == 0 { (other.id, "other") } else { (TableId::DEFAULT, "default") };
            if round == 3 {
                past.late.insert((name.into(), key.clone()));
            }
            if number % 13 == 12 {
                engine.delete(table, &key, false).unwrap();
                continue;
            }
            let value: Vec<u8> = (0..numbers.below(120)).map(|_| numbers.next_u64() as u8).collect();
            engine.put(table, &key, &value, number % 30 == 0).unwrap();
            let values = past.ever.entry(name.into()).or_default().entry(key).or_default();
            values.extend_from_slice(&value);
            values.push(b'|');
        }
        if round < 3 {
            engine.flush().unwrap();
        }
        if round == 0 {
            for table in engine.catalog().all() {
                engine.compact_range(&table, &Bounds::all()).unwrap();
            }
        }
    }
    engine.wait_until_quiescent().unwrap();
    let found = read_all(&engine);
    let dead = disk.kill();
    engine.close().unwrap();
    (dead, found, past)
}

pub(crate) fn repaired(disk: &MemDisk, place: &str) -> (RepairReport, Rows) {
    let (source, target) = (Path::new(DIR), Path::new(TARGET));
    let door: Arc<dyn Disk> = Arc::new(disk.clone());
    let report = repair_on(&door, source, target, &small_options(), Env::real())
        .unwrap_or_else(|error| panic!("{place}: {error}"));
    let engine = Engine::open_on(door, target, &small_options(), Env::real())
        .unwrap_or_else(|error| panic!("{place}: {error}"));
    let found = read_all(&engine);
    engine.close().unwrap();
    (report, found)
}

/// Returns true if a loss or a doubt that was reported may be about this row.
fn is_lost(report: &RepairReport, past: &Past, table: &str, key: &[u8]) -> bool {
    let is_late = past.late.contains(&(table.to_owned(), key.to_owned()));
    let is_of_journal = |error: &Error| error.place().is_some_and(|place| place.file.contains("/journal"));
    // For damage of the manifest the concerned table is not known.
    report.doubts.iter().any(|doubt| is_late || !is_of_journal(doubt))
        || report.losses.iter().any(|loss| {
            (is_late || !is_of_journal(&loss.error))
                && loss.table.as_deref().is_none_or(|name| name == table)
                && loss.keys.as_ref().is_none_or(|(first, last)| **first <= *key && *key <= **last)
        })
}

fn judge(disk: &MemDisk, expected: &Rows, past: &Past, place: &str) -> bool {
    let (report, found) = repaired(disk, place);
    for loss in &report.losses {
        assert!(loss.error.to_string().contains(DIR), "{place}: does not name a file: {}", loss.error);
    }
    for (name, rows) in expected {
        let empty = BTreeMap::new();
        let now = found.get(name).unwrap_or(&empty);
        for (key, value) in rows {
            let is_right = now.get(key) == Some(value);
            assert!(
                is_right || is_lost(&report, past, name, key),
                "{place}: {name} {key:?} is lost and not reported"
            );
        }
    }
    // Nothing that was never written.
    for (name, rows) in found.iter().filter(|(name, _)| !name.starts_with("recovered.")) {
        for (key, value) in rows {
            let ever = past
                .ever
                .get(name)
                .and_then(|rows| rows.get(key))
                .unwrap_or_else(|| panic!("{place}: {key:?}"));
            let was = value.is_empty() || ever.windows(value.len()).any(|part| part == value);
            assert!(was, "{place}: {name} {key:?} never had this value");
            let is_right = expected.get(name).and_then(|rows| rows.get(key)) == Some(value);
            assert!(
                is_right || is_lost(&report, past, name, key),
                "{place}: {name} {key:?} is old and not reported"
            );
        }
    }
    report.losses.is_empty() && report.doubts.is_empty()
}

pub(crate) fn files(disk: &MemDisk) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for dir in ["", "journal", "data"] {
        let dir = Path::new(DIR).join(dir);
        let paths = disk.list(&dir).unwrap().into_iter().map(|name| dir.join(name));
        files.extend(paths.filter(|path| disk.open(path, OpenMode::Read, false).is_ok()));
    }
    files
}

pub(crate) fn contents(disk: &MemDisk, path: &Path) -> Vec<u8> {
    let file = disk.open(path, OpenMode::Read, false).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_sound_database_is_brought_over_whole() {
    let (disk, expected, _) = database();
    let before: Vec<_> = files(&disk).iter().map(|path| contents(&disk, path)).collect();
    let (report, found) = repaired(&disk, "sound");
    assert!(report.losses.is_empty() && report.doubts.is_empty(), "{report:?}");
    assert!(found == expected);
    assert!(report.records > 0 && report.entries > 0 && report.uncertain == 0, "{report:?}");
    let after: Vec<_> = files(&disk).iter().map(|path| contents(&disk, path)).collect();
    assert!(before == after, "the old database was touched");
    let door: Arc<dyn Disk> = Arc::new(disk);
    let refused =
        repair_on(&door, Path::new(DIR), Path::new(TARGET), &small_options(), Env::real()).unwrap_err();
    assert_eq!(refused.kind(), Kind::Invalid, "nothing is written over: {refused}");
    let nothing = Path::new("/nothing");
    let refused = repair_on(&door, nothing, Path::new("/new"), &small_options(), Env::real()).unwrap_err();
    assert_eq!(refused.kind(), Kind::NotFound, "{refused}");
}

#[test]
fn a_flipped_bit_loses_only_reported_rows() {
    let (disk, expected, past) = database();
    let mut numbers = Rng::new(5);
    let (mut tried, mut whole) = (0, 0);
    for path in files(&disk) {
        let bytes = contents(&disk, &path);
        let used: Vec<usize> = bytes
            .chunks(512)
            .enumerate()
            .filter(|(_, chunk)| chunk.iter().any(|byte| *byte != 0))
            .flat_map(|(index, chunk)| index * 512..index * 512 + chunk.len())
            .collect();
        let step = number_from_env("TERRANE_REPAIR_STEP", (used.len() as u64 / 40).max(1)) as usize;
        for at in used.into_iter().skip(numbers.below(step as u64) as usize).step_by(step) {
            let copy = disk.kill();
            let file = copy.open(&path, OpenMode::Write, false).unwrap();
            file.write_at(at as u64, &[bytes[at] ^ (1 << numbers.below(8))]).unwrap();
            let place = format!("bit of byte {at} of {}", path.display());
            whole += u64::from(judge(&copy, &expected, &past, &place));
            tried += 1;
        }
    }
    println!("{tried} repairs after a flip, {whole} without a loss");
    assert!(tried > 100 && whole < tried);
}

#[test]
fn a_missing_or_cut_file_loses_only_reported_rows() {
    let (disk, expected, past) = database();
    let mut numbers = Rng::new(6);
    for path in files(&disk) {
        let copy = disk.kill();
        copy.remove(&path).unwrap();
        judge(&copy, &expected, &past, &format!("{} missing", path.display()));
        let len = contents(&disk, &path).len() as u64;
        for _ in 0..12 {
            let (copy, at) = (disk.kill(), numbers.below(len.max(1)).min(numbers.below(8192)));
            copy.open(&path, OpenMode::Write, false).unwrap().set_len(at).unwrap();
            judge(&copy, &expected, &past, &format!("{} cut at {at}", path.display()));
        }
    }
}

#[test]
fn a_missing_directory_loses_only_reported_rows() {
    let (disk, expected, past) = database();
    for name in ["journal", "data"] {
        let (copy, dir) = (disk.kill(), Path::new(DIR).join(name));
        copy.list(&dir).unwrap().iter().for_each(|file| copy.remove(&dir.join(file)).unwrap());
        copy.remove(&dir).unwrap();
        let is_whole = judge(&copy, &expected, &past, &format!("{name} missing"));
        assert!(!is_whole, "{name} is missing, and nothing was reported");
    }
}

#[test]
fn a_note_stays_where_an_option_does_not() {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &small_options()).unwrap();
    let table = engine.create_table("other", &[]).unwrap();
    engine.put(table.id, b"k", b"v", false).unwrap();
    engine.flush().unwrap();
    engine.set_table_note(&table, "of a program").unwrap();
    engine.close().unwrap();
    // As a later version may store it.
    let (manifest, state) = Manifest::open(Arc::new(disk.clone()), Path::new(DIR)).unwrap();
    let mut options = state.table_named("other").unwrap().options.clone();
    options.push(("of_another_version".into(), "1".into()));
    manifest.append(&Edit { ops: vec![EditOp::SetOptions { id: table.id, options }] }).unwrap();
    drop(manifest);
    let (report, rows) = repaired(&disk, "an unknown option");
    assert_eq!(report.losses.len(), 1, "{:?}", report.losses);
    assert!(report.losses[0].error.message().contains("options are left out"), "{:?}", report.losses);
    assert_eq!(rows["other"].len(), 1);
    let engine = Engine::open_on(Arc::new(disk), Path::new(TARGET), &small_options(), Env::real()).unwrap();
    let table = engine.catalog().require("other").unwrap();
    assert_eq!(engine.table_note(&table).as_deref(), Some("of a program"));
    engine.close().unwrap();
}

/// All rows are in the new database, whatever the name of their table; and nothing that was never written.
fn has_every_row(disk: &MemDisk, expected: &Rows, past: &Past, place: &str) -> RepairReport {
    let (report, found) = repaired(disk, place);
    let recovered = found.iter().find(|(name, _)| name.starts_with("recovered."));
    for (name, rows) in expected {
        let now = found.get(name).filter(|now| !now.is_empty()).or(recovered.map(|(_, rows)| rows));
        let now = now.unwrap_or_else(|| panic!("{place}: no table for {name}"));
        for (key, value) in rows {
            assert!(
                now.get(key) == Some(value),
                "{place}: {name} {key:?} is {:?}\n{report:#?}",
                now.get(key)
            );
        }
        for (key, value) in now.iter().filter(|(key, _)| !rows.contains_key(*key)) {
            let ever = past.ever.get(name).and_then(|rows| rows.get(key));
            let was = ever
                .is_some_and(|ever| value.is_empty() || ever.windows(value.len()).any(|part| part == value));
            assert!(was, "{place}: {name} {key:?} was never there");
            assert!(
                report.unlisted_extents > 0,
                "{place}: {name} {key:?} is back, and the report does not say so\n{report:#?}"
            );
        }
    }
    report
}

pub(crate) fn manifest_of(disk: &MemDisk) -> PathBuf {
    let is_manifest = |path: &PathBuf| path.to_string_lossy().contains("MANIFEST");
    files(disk).into_iter().find(is_manifest).unwrap()
}

#[test]
fn without_a_manifest_every_row_is_found() {
    let (disk, expected, past) = database();
    let manifest = manifest_of(&disk);
    for names in [&["CURRENT"][..], &["manifest"], &["CURRENT", "manifest"]] {
        let copy = disk.kill();
        for name in names {
            let path = if *name == "CURRENT" { Path::new(DIR).join(name) } else { manifest.clone() };
            copy.remove(&path).unwrap();
        }
        let report = has_every_row(&copy, &expected, &past, &format!("without {names:?}"));
        assert!(!report.is_whole());
        assert_eq!(report.unlisted_extents > 0, names.contains(&"manifest"), "{report:#?}");
    }
}

#[test]
fn a_flipped_byte_or_a_cut_of_the_manifest_loses_no_row() {
    let (disk, expected, past) = database();
    let manifest = manifest_of(&disk);
    let bytes = contents(&disk, &manifest);
    let mut numbers = Rng::new(8);
    let step = number_from_env("TERRANE_REPAIR_STEP", (bytes.len() as u64 / 60).max(1));
    let mut at = numbers.below(step);
    while at < bytes.len() as u64 {
        let copy = disk.kill();
        let file = copy.open(&manifest, OpenMode::Write, false).unwrap();
        file.write_at(at, &[bytes[at as usize] ^ (1 << numbers.below(8))]).unwrap();
        has_every_row(&copy, &expected, &past, &format!("flipped byte {at}"));
        let copy = disk.kill();
        copy.open(&manifest, OpenMode::Write, false).unwrap().set_len(at).unwrap();
        has_every_row(&copy, &expected, &past, &format!("cut at {at}"));
        at += step;
    }
}

/// The rows that range deletes and later puts leave do not depend on the order of extents.
#[test]
fn range_deletes_hide_by_their_numbers_when_the_manifest_is_lost() {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &small_options()).unwrap();
    // Merged runs leave their slots to later extents: then fewer are found.
    engine.set_background_paused(true);
    let key = |number: u64| format!("key{number:04}").into_bytes();
    for round in 0..4u64 {
        (0..200).for_each(|number| {
            engine
                .put(TableId::DEFAULT, &key(number), format!("{round}.{number}").as_bytes(), false)
                .unwrap();
        });
        engine.delete_range(TableId::DEFAULT, &key(20 * round), &key(20 * round + 40), false).unwrap();
        (0..200).step_by(9).for_each(|number| {
            engine
                .put(TableId::DEFAULT, &key(number), format!("late {round}.{number}").as_bytes(), false)
                .unwrap();
        });
        if round < 3 {
            let table = engine.catalog().require("default").unwrap();
            engine.flush_to_run(&table).unwrap();
        }
    }
    let expected = read_all(&engine);
    let dead = disk.kill();
    engine.close().unwrap();
    dead.remove(&manifest_of(&dead)).unwrap();
    let (report, found) = repaired(&dead, "without a manifest");
    assert!(found == expected, "{report:#?}");
    assert!(report.unlisted_extents >= 3, "{report:#?}");
}

/// Each of three overflow runs has other versions of the same keys, and the journal has none of them.
#[test]
fn without_a_manifest_the_newest_of_many_versions_counts() {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &small_options()).unwrap();
    engine.set_background_paused(true);
    let table = engine.catalog().require("default").unwrap();
    for round in 0..3u64 {
        for number in (0..50 - 10 * round).map(|number| number * (round + 1)) {
            let (key, value) = (format!("key{number:04}"), format!("{round}.{number}"));
            engine.put(TableId::DEFAULT, key.as_bytes(), value.as_bytes(), false).unwrap();
        }
        engine.flush_to_run(&table).unwrap();
    }
    let expected = read_all(&engine);
    engine.close().unwrap();
    disk.remove(&manifest_of(&disk)).unwrap();
    let (report, found) = repaired(&disk, "without a manifest");
    assert!(found == expected, "{report:#?}");
    assert_eq!((report.records, report.unlisted_extents), (0, 3), "{report:#?}");
}
