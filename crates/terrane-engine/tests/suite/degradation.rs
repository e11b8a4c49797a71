//! The operations that still work after a fault: one test per rule of `docs/degradation.md`, except the rules
//! about failing calls of the device (those are in `faults.rs`).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use support::{DIR, get, open, rows, small_options};
use terrane_base::Kind;
use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_device::{Disk, MemDisk, OpenMode};
use terrane_engine::{Bounds, Engine, Table};
use terrane_levels::Manifest;
use terrane_storage::SLOT_BYTES;

/// Looks, 5 ms and more apart, after which something stands still.
const LOOKS_MAX: u32 = 12_000;

fn key(number: u64) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

fn write(engine: &Engine, table: &Table, numbers: std::ops::Range<u64>, fill: u8) {
    for number in numbers {
        engine.put(table.id, &key(number), &[fill; 100], false).unwrap();
    }
}

fn default_table(engine: &Engine) -> Arc<Table> {
    engine.catalog().require("default").unwrap()
}

/// Where the blocks of the first extent of a table lie: its file and the offset of its first byte there.
fn first_extent(disk: &MemDisk, table: &str) -> (PathBuf, u64) {
    let (_, state) = Manifest::open_read_only(Arc::new(disk.clone()), Path::new(DIR)).unwrap();
    let table = state.table_named(table).unwrap();
    let id = table.extents.places().find_map(|(_, level)| level.iter().next().map(|meta| meta.id)).unwrap();
    let path = Path::new(DIR).join("data").join(format!("{:06}.ext", id.file));
    (path, u64::from(id.slot) * SLOT_BYTES as u64)
}

fn flip(disk: &MemDisk, path: &Path, at: u64) {
    let file = disk.open(path, OpenMode::Write, false).unwrap();
    let mut byte = [0];
    file.read_at(at, &mut byte).unwrap();
    file.write_at(at, &[byte[0] ^ 4]).unwrap();
}

/// A closed database with two tables of 600 rows each in one level, one block of the default table damaged.
fn damaged() -> MemDisk {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &small_options()).unwrap();
    let other = engine.create_table("other", &[]).unwrap();
    write(&engine, &default_table(&engine), 0..600, b'a');
    write(&engine, &other, 0..600, b'o');
    engine.flush().unwrap();
    engine.wait_until_quiescent().unwrap();
    engine.close().unwrap();
    let (path, start) = first_extent(&disk, "default");
    // Somewhere in the third block.
    flip(&disk, &path, start + 2500);
    disk
}

/// A caller may step on after an error: the scan is at no row then, until it is placed again.
#[test]
fn a_scan_that_has_met_a_damaged_block_is_at_no_row() {
    let engine = open(damaged(), &small_options()).unwrap();
    let table = default_table(&engine);
    for goes_back in [false, true] {
        let mut scan = engine.scan(&table, Bounds::all(), engine.visible());
        scan.seek_first().unwrap();
        let error = loop {
            assert!(scan.key().is_some(), "the damaged block is met");
            if let Err(error) = scan.next() {
                break error;
            }
        };
        assert_eq!(error.kind(), Kind::Corrupt, "{error}");
        if goes_back {
            scan.prev().unwrap()
        } else {
            scan.next().unwrap()
        }
        assert_eq!(scan.key(), None);
        scan.seek_first().unwrap();
        assert_eq!(scan.key(), Some(&key(0)[..]));
    }
    engine.close().unwrap();
}

#[test]
fn beside_a_damaged_block_everything_else_is_read() {
    let engine = open(damaged(), &small_options()).unwrap();
    let (table, other) = (default_table(&engine), engine.catalog().require("other").unwrap());
    assert_eq!(rows(&engine, &other).unwrap().len(), 600, "another table");
    let lost: Vec<u64> = (0..600).filter(|number| get(&engine, &table, &key(*number)).is_err()).collect();
    assert!((1..60).contains(&lost.len()), "one block's keys: {lost:?}");
    let (first, last) = (lost[0], *lost.last().unwrap());
    assert_eq!(lost, (first..=last).collect::<Vec<_>>());
    let error = get(&engine, &table, &key(first)).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt);
    assert!(error.place().is_some_and(|place| place.file.ends_with(".ext")), "{error}");
    // A scan up to the block and a scan from behind it succeed; a scan across it gets the error.
    let upper = std::ops::Bound::Excluded(key(first));
    let below = Bounds { upper, ..Bounds::all() };
    assert_eq!(engine.range(&table, below, engine.visible()).filter(|row| row.is_ok()).count() as u64, first);
    let above = Bounds { lower: std::ops::Bound::Included(key(last + 1)), ..Bounds::all() };
    let found = engine.range(&table, above, engine.visible()).filter(|row| row.is_ok()).count() as u64;
    assert_eq!(found, 599 - last);
    let error = rows(&engine, &table).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt, "{error}");
    engine.close().unwrap();
}

#[test]
fn a_compaction_that_meets_damage_is_left_alone_and_writers_go_on() {
    let disk = damaged();
    let engine = open(disk.clone(), &small_options()).unwrap();
    let (table, other) = (default_table(&engine), engine.catalog().require("other").unwrap());
    assert!(engine.background_errors().is_empty());
    // Over the damaged block, so that flush and compaction meet it; much more than the write memory.
    for round in 0..12u8 {
        for chunk in 0..60 {
            write(&engine, &table, chunk * 100..chunk * 100 + 100, round);
            write(&engine, &other, chunk * 100..chunk * 100 + 100, round);
        }
        engine.flush().unwrap_or_else(|error| panic!("round {round}: {error}"));
    }
    let error = engine.compact_range(&table, &Bounds::all()).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt, "{error}");
    let error = engine.wait_until_quiescent().unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt, "{error}");
    let errors = engine.background_errors();
    assert!(!errors.is_empty() && errors.iter().all(|found| found.table.as_deref() == Some("default")));
    assert!(errors.iter().all(|found| found.error.place().is_some()), "{errors:?}");
    engine.compact_range(&other, &Bounds::all()).unwrap();
    // It is not tried again and again: each wait wakes the workers, and ends when they find no job.
    let before = engine.stats().background_errors;
    for _ in 0..20 {
        assert_eq!(engine.wait_until_quiescent().unwrap_err().kind(), Kind::Corrupt);
    }
    assert_eq!(engine.stats().background_errors, before);
    assert!(before < 10, "{before} attempts");
    for number in (0..6000).step_by(7) {
        assert_eq!(get(&engine, &table, &key(number)).unwrap(), Some(vec![11; 100]), "newer than the damage");
        assert_eq!(get(&engine, &other, &key(number)).unwrap(), Some(vec![11; 100]));
    }
    engine.close().unwrap();
    // Writes after the fault exist after an opening.
    let engine = open(disk, &small_options()).unwrap();
    let table = default_table(&engine);
    assert_eq!(get(&engine, &table, &key(4242)).unwrap(), Some(vec![11; 100]));
    engine.close().unwrap();
}

/// The only segment file that holds records, and where its last group lies.
fn used_segment(disk: &MemDisk) -> (PathBuf, Vec<u8>) {
    let dir = Path::new(DIR).join("journal");
    let with_bytes = disk.list(&dir).unwrap().into_iter().map(|name| {
        let file = disk.open(&dir.join(&name), OpenMode::Read, false).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(0, &mut bytes).unwrap();
        (dir.join(name), bytes)
    });
    with_bytes.max_by_key(|(_, bytes)| bytes.iter().filter(|byte| **byte != 0).count()).unwrap()
}

/// A process that died: 20 rows synced, then 20 that were not.
fn died() -> MemDisk {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &small_options()).unwrap();
    let table = default_table(&engine);
    write(&engine, &table, 0..20, b's');
    engine.sync().unwrap();
    // The mark of the sync stands in the next group.
    write(&engine, &table, 20..40, b'u');
    let dead = disk.kill();
    engine.close().unwrap();
    dead
}

#[test]
fn damage_in_front_of_the_durable_end_of_the_journal_is_refused() {
    let disk = died();
    let (path, bytes) = used_segment(&disk);
    let at = bytes.windows(40).position(|part| part == [b's'; 40]).unwrap() as u64;
    flip(&disk, &path, at);
    for read_only in [true, false] {
        let error = open(disk.clone(), &Options { read_only, ..small_options() }).map(drop).unwrap_err();
        assert_eq!(error.kind(), Kind::Corrupt, "{error}");
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    }
}

#[test]
fn damage_behind_the_durable_end_of_the_journal_is_cut() {
    let disk = died();
    let (path, bytes) = used_segment(&disk);
    let at = bytes.windows(40).rposition(|part| part == [b'u'; 40]).unwrap() as u64;
    flip(&disk, &path, at);
    // A reader sees the prefix, and `check` knows a torn tail from damage.
    let engine = open(disk.clone(), &Options { read_only: true, ..small_options() }).unwrap();
    assert_eq!(rows(&engine, &default_table(&engine)).unwrap().len(), 39);
    let report = engine.check(&mut |_, _| ()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    engine.close().unwrap();
    let engine = open(disk, &small_options()).unwrap();
    assert_eq!(rows(&engine, &default_table(&engine)).unwrap().len(), 39);
    assert!(engine.check(&mut |_, _| ()).unwrap().findings.is_empty());
    engine.close().unwrap();
}

#[test]
fn a_lost_file_is_named_when_opening() {
    let whole = damaged();
    let (data, _) = first_extent(&whole, "default");
    let dir = Path::new(DIR);
    let manifest = whole.list(dir).unwrap().into_iter().find(|name| name.starts_with("MANIFEST")).unwrap();
    for path in [data, dir.join("CURRENT"), dir.join(manifest), dir.join("journal"), dir.join("data")] {
        for read_only in [true, false] {
            let disk = whole.kill();
            for name in disk.list(&path).unwrap_or_default() {
                disk.remove(&path.join(name)).unwrap();
            }
            disk.remove(&path).unwrap();
            let error = open(disk, &Options { read_only, ..small_options() }).map(drop).unwrap_err();
            assert_eq!(error.kind(), Kind::Corrupt, "{error}");
            assert!(error.to_string().contains(DIR), "{error}");
        }
    }
}

#[test]
fn scrubbing_finds_rot_once_and_blocks_no_other_work() {
    let options = Options { scrub_bytes_per_second: 64 << 20, ..small_options() };
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &options).unwrap();
    let table = default_table(&engine);
    write(&engine, &table, 0..600, b'a');
    engine.flush().unwrap();
    engine.wait_until_quiescent().unwrap();
    let passes = |engine: &Engine, count: u64| {
        let goal = engine.stats().scrub_passes + count;
        for _ in 0..LOOKS_MAX {
            if engine.stats().scrub_passes >= goal {
                return;
            }
            Env::real().clock.sleep(Duration::from_millis(5));
        }
        panic!("scrubbing stands still: {:?}", engine.stats());
    };
    passes(&engine, 1);
    assert!(engine.scrub_findings().is_empty());
    let (path, start) = first_extent(&disk, "default");
    flip(&disk, &path, start + 100);
    flip(&disk, &path, start + 5000);
    passes(&engine, 3);
    let findings = engine.scrub_findings();
    let mut places: Vec<u64> =
        findings.iter().map(|found| found.error.place().unwrap().offset - start).collect();
    // A pass was under way: it may have been between the two places when they were damaged.
    places.sort_unstable();
    assert!(findings.iter().all(|found| found.error.kind() == Kind::Corrupt), "{findings:?}");
    assert!(findings.iter().all(|found| found.table.as_deref() == Some("default")), "{findings:?}");
    assert_eq!(places.len(), 2, "each once: {findings:?}");
    assert!(places[0] <= 100 && places[1] > 3000 && places[1] <= 5000, "{places:?}");
    assert_eq!(engine.stats().scrub_findings, 2);
    // No caller waits for it.
    engine.wait_until_quiescent().unwrap();
    write(&engine, &table, 600..700, b'b');
    engine.flush().unwrap();
    engine.close().unwrap();
}

#[test]
fn scrubbing_is_off_by_default() {
    let engine = open(MemDisk::new(), &small_options()).unwrap();
    assert_eq!(engine.options().scrub_bytes_per_second, 0);
    engine.close().unwrap();
}
