//! Sound records behind a break of the journal: they do not count, but an opening reports them and keeps
//! their bytes for repair.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::repair::repaired;
use crate::support::{DIR, get, open, rows, small_options};
use terrane_base::options::Options;
use terrane_base::{Kind, TableId};
use terrane_device::{Disk, MemDisk, OpenMode};
use terrane_engine::Engine;
use terrane_journal::{ASIDE_FILES_MAX, aside_numbers, file_number};

const ID: TableId = TableId::DEFAULT;

pub(crate) fn journal() -> PathBuf {
    Path::new(DIR).join("journal")
}

/// A database whose process died when it had written `count` records, none of them synced.
pub(crate) fn died_with(count: u32, value: &[u8]) -> MemDisk {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &small_options()).unwrap();
    // Nothing is flushed.
    engine.set_background_paused(true);
    for number in 1..=count {
        engine.put(ID, format!("j{number:03}").as_bytes(), value, false).unwrap();
    }
    let dead = disk.kill();
    engine.close().unwrap();
    dead
}

/// Flips a bit of the key `key` in the journal.
pub(crate) fn damage(disk: &MemDisk, key: &[u8]) {
    let names = disk.list(&journal()).unwrap();
    for name in names.into_iter().filter(|name| file_number(name).is_some()) {
        let file = disk.open(&journal().join(name), OpenMode::Write, false).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(0, &mut bytes).unwrap();
        if let Some(at) = bytes.windows(key.len()).position(|window| window == key) {
            return file.write_at(at as u64, &[bytes[at] ^ 1]).unwrap();
        }
    }
    panic!("no segment has the key {key:?}");
}

pub(crate) fn keys(engine: &Arc<Engine>) -> Vec<String> {
    let rows = rows(engine, &engine.catalog().require("default").unwrap()).unwrap();
    rows.into_iter().map(|(key, _)| String::from_utf8(key).unwrap()).collect()
}

/// The files of records that were set aside.
pub(crate) fn aside(disk: &MemDisk) -> Vec<String> {
    let mut names = disk.list(&journal()).unwrap();
    names.retain(|name| aside_numbers(name).is_some());
    names.sort();
    names
}

fn read_only() -> Options {
    Options { read_only: true, ..small_options() }
}

#[test]
fn records_behind_a_damaged_byte_are_named_and_set_aside() {
    let disk = died_with(6, b"value");
    damage(&disk, b"j002");
    let reader = open(disk.clone(), &read_only()).unwrap();
    assert_eq!((keys(&reader), reader.stats().records_behind_break), (vec!["j001".to_owned()], 4));
    let report = reader.check(&mut |_, _| ()).unwrap();
    let [finding] = &report.findings[..] else { panic!("{:?}", report.findings) };
    let message = finding.error.to_string();
    assert_eq!(finding.error.kind(), Kind::Corrupt);
    assert!(message.contains("4 sound records, #3 to #6") && message.contains("000001.seg"), "{message}");
    assert!(report.set_aside.is_empty() && aside(&disk).is_empty(), "a reader writes nothing");
    reader.close().unwrap();

    let engine = open(disk.clone(), &small_options()).unwrap();
    assert_eq!((keys(&engine), engine.stats().records_behind_break), (vec!["j001".to_owned()], 4));
    assert_eq!(aside(&disk), ["000001-1.cut"]);
    let report = engine.check(&mut |_, _| ()).unwrap();
    assert!(report.findings.is_empty(), "the database is sound without them: {:?}", report.findings);
    assert_eq!(report.set_aside, [journal().join("000001-1.cut")]);
    engine.put(ID, b"new", b"value", true).unwrap();
    engine.flush().unwrap();
    engine.close().unwrap();

    let engine = open(disk.clone(), &small_options()).unwrap();
    assert_eq!((keys(&engine).len(), engine.stats().records_behind_break), (2, 0));
    assert_eq!(aside(&disk), ["000001-1.cut"], "no opening removes it");
    engine.close().unwrap();
    let (report, found) = repaired(&disk, "set aside");
    let found: Vec<&[u8]> = found["default"].keys().map(Vec::as_slice).collect();
    assert_eq!(found, [&b"j001"[..], b"j003", b"j004", b"j005", b"j006", b"new"]);
    assert_eq!((report.set_aside, report.losses.len()), (4, 1));
    let lost = report.losses[0].error.to_string();
    assert!(lost.contains("records 2 to 2 are lost"), "{lost}");
}

/// The segments behind a break go with it, whole.
#[test]
fn a_break_in_one_segment_sets_those_behind_it_aside() {
    let disk = died_with(200, &[7; 1500]);
    damage(&disk, b"j010");
    let engine = open(disk.clone(), &small_options()).unwrap();
    assert_eq!((keys(&engine).len(), engine.stats().records_behind_break), (9, 190));
    let files = aside(&disk);
    assert!(files.len() > 2 && files.iter().all(|name| name.ends_with("-9.cut")), "{files:?}");
    engine.close().unwrap();
    let (report, found) = repaired(&disk, "several segments");
    assert_eq!((found["default"].len(), report.set_aside, report.losses.len()), (199, 190, 1));
    assert!(found["default"].values().all(|value| *value == [7; 1500]));
}

#[test]
fn a_torn_tail_leaves_nothing_to_set_aside() {
    let disk = died_with(6, b"value");
    damage(&disk, b"j006");
    let engine = open(disk.clone(), &small_options()).unwrap();
    assert_eq!((keys(&engine).len(), engine.stats().records_behind_break), (5, 0));
    assert_eq!(aside(&disk), [""; 0]);
    engine.close().unwrap();
}

/// Numbers come again after an opening: the rows written since count, in the levels and in the journal.
#[test]
fn repair_reads_what_was_set_aside_below_what_was_written_since() {
    let disk = died_with(12, b"set aside");
    damage(&disk, b"j002");
    let engine = open(disk.clone(), &small_options()).unwrap();
    for key in [b"j003", b"j004", b"j005"] {
        engine.put(ID, key, b"flushed", false).unwrap();
    }
    engine.flush().unwrap();
    engine.put(ID, b"j007", b"journaled", false).unwrap();
    engine.delete(ID, b"j008", false).unwrap();
    engine.delete_range(ID, b"j009", b"j011", false).unwrap();
    let dead = disk.kill();
    engine.close().unwrap();
    let (report, found) = repaired(&dead, "newer rows");
    let found: Vec<(&[u8], &[u8])> =
        found["default"].iter().map(|(key, value)| (key.as_slice(), value.as_slice())).collect();
    let expected: [(&[u8], &[u8]); 8] = [
        (b"j001", b"set aside"),
        (b"j003", b"flushed"),
        (b"j004", b"flushed"),
        (b"j005", b"flushed"),
        (b"j006", b"set aside"),
        (b"j007", b"journaled"),
        (b"j011", b"set aside"),
        (b"j012", b"set aside"),
    ];
    assert_eq!(found, expected);
    assert!(report.doubts.iter().any(|doubt| doubt.to_string().contains("3 are left out")), "{report:?}");
}

/// An opening that dies in the middle leaves a part of a file; the next one makes it whole.
#[test]
fn a_part_of_a_file_is_made_again() {
    let disk = died_with(6, b"value");
    damage(&disk, b"j002");
    let part = journal().join("000001-1.cut");
    disk.open(&part, OpenMode::Create, false).unwrap().write_at(0, &[1; 5000]).unwrap();
    open(disk.clone(), &small_options()).unwrap().close().unwrap();
    let (report, found) = repaired(&disk, "a part");
    assert_eq!((found["default"].len(), report.set_aside), (5, 4));
}

#[test]
fn beyond_so_many_files_an_opening_goes_on_and_says_so() {
    let disk = died_with(6, b"value");
    damage(&disk, b"j002");
    for number in 0..ASIDE_FILES_MAX {
        let name = format!("{:06}-5.cut", 100 + number);
        disk.open(&journal().join(name), OpenMode::Create, false).unwrap();
    }
    let engine = open(disk.clone(), &small_options()).unwrap();
    let stats = engine.stats();
    assert_eq!((stats.records_behind_break, stats.records_behind_break_lost), (4, 4));
    assert_eq!(aside(&disk).len(), ASIDE_FILES_MAX);
    let table = engine.catalog().require("default").unwrap();
    assert_eq!(get(&engine, &table, b"j001").unwrap(), Some(b"value".to_vec()));
    engine.close().unwrap();
}
