//! Repairs with extents and segments that no readable part of the manifest names.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::repair::{contents, files, manifest_of, repaired};
use crate::support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use support::{DIR, get, open, small_options};
use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Batch, Moment, TableId};
use terrane_device::{Disk, MemDisk, OpenMode};
use terrane_engine::{Bounds, Engine, Snapshot};

/// Extents end at multiples of it.
const PAGE: usize = 4096;

fn appending() -> Options {
    let mut options = small_options();
    options.set("merge_operator", "append").unwrap();
    options
}

fn append(engine: &Engine, key: &[u8], operand: &str) {
    let mut batch = Batch::new();
    batch.merge(TableId::DEFAULT, key, operand.as_bytes(), Moment::NEVER).unwrap();
    engine.write(&batch, false).unwrap();
}

pub(crate) fn data_file(disk: &MemDisk) -> PathBuf {
    files(disk).into_iter().find(|path| path.to_string_lossy().contains("/data/")).unwrap()
}

/// Puts the bytes of free slots back that a database gives to the file system when it rests.
fn put_back_free_slots(disk: &MemDisk, before: &MemDisk) {
    let path = data_file(disk);
    let (now, then) = (contents(disk, &path), contents(before, &path));
    let file = disk.open(&path, OpenMode::Write, false).unwrap();
    for (at, page) in then.chunks(PAGE).enumerate() {
        let start = at * PAGE;
        let is_free = now[start.min(now.len())..now.len().min(start + PAGE)].iter().all(|byte| *byte == 0);
        if is_free && page.iter().any(|byte| *byte != 0) {
            file.write_at(start as u64, page).unwrap();
        }
    }
}

/// Three overflow runs have an operand each, and the extent that a compaction made of them has all three as
/// one. The runs are in no level any more, and their bytes are still there.
#[test]
fn operands_that_were_folded_count_once_without_a_manifest() {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &appending()).unwrap();
    engine.set_background_paused(true);
    let table = engine.catalog().require("default").unwrap();
    engine.put(TableId::DEFAULT, b"key", b"base", false).unwrap();
    // Keeps the operands apart from the value.
    let snapshot = Snapshot::new(engine.clone());
    for operand in ["-1", "-2", "-3"] {
        append(&engine, b"key", operand);
        engine.flush_to_run(&table).unwrap();
    }
    let before = disk.kill();
    engine.set_background_paused(false);
    engine.compact_range(&table, &Bounds::all()).unwrap();
    assert_eq!(get(&engine, &table, b"key").unwrap().as_deref(), Some(&b"base-1-2-3"[..]));
    let dead = disk.kill();
    drop(snapshot);
    engine.close().unwrap();
    put_back_free_slots(&dead, &before);
    dead.remove(&manifest_of(&dead)).unwrap();
    let (report, found) = repaired_with(&dead, &appending());
    assert_eq!(found.as_deref(), Some(&b"base-1-2-3"[..]), "{report}");
}

/// The value of `key` in what a repair makes of the database, and its report as text.
fn repaired_with(disk: &MemDisk, options: &Options) -> (String, Option<Vec<u8>>) {
    let (door, target): (Arc<dyn Disk>, _) = (Arc::new(disk.clone()), Path::new("/repaired"));
    let report = terrane_engine::repair_on(&door, Path::new(DIR), target, options, Env::real()).unwrap();
    assert!(report.unlisted_extents >= 2, "the runs are not found, so nothing is tested: {report:#?}");
    let engine = Engine::open_on(door, target, options, Env::real()).unwrap();
    let value = get(&engine, &engine.catalog().require("default").unwrap(), b"key").unwrap();
    engine.close().unwrap();
    (format!("{report:#?}"), value)
}

/// A database whose rows are in the journal, as the death of its process leaves it.
fn journaled(keys: &[&str]) -> MemDisk {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &small_options()).unwrap();
    engine.set_background_paused(true);
    keys.iter().for_each(|key| engine.put(TableId::DEFAULT, key.as_bytes(), b"value", false).unwrap());
    let dead = disk.kill();
    engine.close().unwrap();
    dead
}

fn segment_of(disk: &MemDisk) -> PathBuf {
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|end| end == "seg");
    files(disk).into_iter().find(is_segment).unwrap()
}

/// With the manifest it is a file that no state lists; without it, `CURRENT` has the id of the database.
#[test]
fn a_segment_of_another_database_is_left_out() {
    let other = journaled(&["of another"]);
    let foreign = contents(&other, &segment_of(&other));
    for is_without_manifest in [false, true] {
        let disk = journaled(&["own"]);
        let path = Path::new(DIR).join("journal/000077.seg");
        let file = disk.open(&path, OpenMode::Create, false).unwrap();
        file.write_at(0, &foreign).unwrap();
        if is_without_manifest {
            disk.remove(&manifest_of(&disk)).unwrap();
        }
        let (report, found) = repaired(&disk, "a foreign segment");
        let keys: Vec<_> = found["default"].keys().collect();
        assert_eq!(keys, [b"own"], "{report:#?}");
        let is_said = report.doubts.iter().any(|doubt| doubt.to_string().contains("another database"));
        assert!(is_said || !is_without_manifest, "{report:#?}");
    }
}

/// The id that `CURRENT` has makes groups readable whose segment has no front, also where the damage is in
/// the number of the segment itself.
#[test]
fn without_a_manifest_a_segment_without_its_front_is_read() {
    for damaged_at in [16, 61] {
        let disk = journaled(&["own"]);
        disk.remove(&manifest_of(&disk)).unwrap();
        let path = segment_of(&disk);
        let byte = contents(&disk, &path)[damaged_at as usize];
        disk.open(&path, OpenMode::Write, false).unwrap().write_at(damaged_at, &[byte ^ 0x40]).unwrap();
        let (report, found) = repaired(&disk, "a segment without its front");
        assert!(found["default"].contains_key(&b"own"[..]), "byte {damaged_at}: {report:#?}");
        let is_said =
            report.losses.iter().any(|loss| loss.error.to_string().contains("the front of segment"));
        assert!(is_said, "byte {damaged_at}: {report:#?}");
    }
}
