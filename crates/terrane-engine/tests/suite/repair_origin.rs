//! A repair uses the origins of extents: the database and the table that they belong to, and the extents that
//! they replaced.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::repair::{contents, manifest_of};
use crate::repair_unlisted::data_file;
use crate::support;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use support::{DIR, open, rows, small_options};
use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Batch, Moment, TableId};
use terrane_device::{Disk, MemDisk, OpenMode};
use terrane_engine::backup::{BackupOptions, Backups, DirectoryPlace, RestoreOptions};
use terrane_engine::{Bounds, Engine, RepairReport, Table, repair_on};
use terrane_format::extent::{self, Footer, origin_of};
use terrane_levels::Manifest;
use terrane_storage::SLOT_BYTES;

type Rows = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

/// Only what a test asks for is compacted: which extents there are does not depend on the background.
fn quiet() -> Options {
    Options { auto_compaction: false, ..small_options() }
}

fn repaired(disk: &MemDisk, source: &str) -> (RepairReport, Rows) {
    let (door, target): (Arc<dyn Disk>, _) = (Arc::new(disk.clone()), Path::new("/repaired"));
    let report = repair_on(&door, Path::new(source), target, &quiet(), Env::real()).unwrap();
    let engine = Engine::open_on(door, target, &quiet(), Env::real()).unwrap();
    let found = all_rows(&engine);
    engine.close().unwrap();
    (report, found)
}

fn all_rows(engine: &Arc<Engine>) -> Rows {
    let tables = engine.catalog().listed();
    let of = |name: &String| {
        let table = engine.catalog().require(name).unwrap();
        rows(engine, &table).unwrap().into_iter().collect()
    };
    tables.iter().map(|table| (table.name.clone(), of(&table.name))).collect()
}

fn put(engine: &Engine, table: TableId, from: u64, to: u64) {
    for number in from..to {
        engine.put(table, format!("key{number:04}").as_bytes(), &[number as u8; 40], false).unwrap();
    }
}

fn delete(engine: &Engine, from: u64, to: u64) {
    for number in from..to {
        engine.delete(TableId::DEFAULT, format!("key{number:04}").as_bytes(), false).unwrap();
    }
}

fn remove_manifest(disk: &MemDisk, dir: &str) {
    let is_manifest = |name: &String| name.starts_with("MANIFEST") || name == "CURRENT";
    let names = disk.list(Path::new(dir)).unwrap();
    names
        .iter()
        .filter(|name| is_manifest(name))
        .for_each(|name| disk.remove(&Path::new(dir).join(name)).unwrap());
}

/// A database with a run of rows and a run of the deletes of some.
fn with_two_runs(disk: &MemDisk) -> (Arc<Engine>, Arc<Table>) {
    let engine = open(disk.clone(), &quiet()).unwrap();
    let table = engine.catalog().require("default").unwrap();
    put(&engine, table.id, 0, 100);
    engine.flush_to_run(&table).unwrap();
    delete(&engine, 20, 50);
    engine.flush_to_run(&table).unwrap();
    (engine, table)
}

/// A run has rows, the next one the deletes of some, and the extent that a compaction made of them neither.
/// The bytes of the first run are still there, those of the second are not: only the origins in the merged
/// extent show that the rows were deleted.
#[test]
fn deleted_rows_do_not_come_back_with_extents_that_were_merged() {
    let disk = MemDisk::new();
    let (engine, table) = with_two_runs(&disk);
    let before = disk.kill();
    engine.compact_range(&table, &Bounds::all()).unwrap();
    let expected = all_rows(&engine);
    let dead = disk.kill();
    engine.close().unwrap();
    // Where the extents lie does not matter, and slots are taken again when readers allow it.
    let runs = Path::new(DIR).join("data/000077.ext");
    let own = data_file(&dead);
    let file = dead.open(&runs, OpenMode::Create, false).unwrap();
    file.write_at(0, &contents(&before, &data_file(&before))).unwrap();
    let mut rows_found = 0;
    for path in [own, runs] {
        let file = dead.open(&path, OpenMode::Write, false).unwrap();
        for (slot, footer) in footers(&contents(&dead, &path)) {
            rows_found += footer.entries - footer.deletes;
            if footer.deletes > 0 {
                file.write_at((slot * SLOT_BYTES) as u64, &[0; 2 * extent::ALIGN_BYTES]).unwrap();
            }
        }
    }
    assert!(rows_found >= 170, "{rows_found}: the first run is not there, so nothing is tested");
    dead.remove(&manifest_of(&dead)).unwrap();
    let (report, found) = repaired(&dead, DIR);
    assert_eq!(found, expected, "{report:#?}");
    assert!(report.replaced >= 30, "{report:#?}");
}

/// The footers in the bytes of a data file, with their slots.
fn footers(bytes: &[u8]) -> Vec<(usize, Footer)> {
    let slots = bytes.chunks(SLOT_BYTES).enumerate();
    slots.filter_map(|(at, slot)| Some((at, Footer::decode(&slot[..extent::locate(slot)?]).ok()?))).collect()
}

/// The compaction came to no end: what it wrote is there, and the runs as well, which are the database's.
#[test]
fn rows_of_runs_stay_beside_what_a_merge_wrote_that_came_to_no_end() {
    let disk = MemDisk::new();
    let (engine, table) = with_two_runs(&disk);
    let before = disk.kill();
    engine.compact_range(&table, &Bounds::all()).unwrap();
    let expected = all_rows(&engine);
    let merged = disk.kill();
    engine.close().unwrap();
    // The manifest is that of the moment before; what the merge wrote lies in a file of its own.
    let written = contents(&merged, &data_file(&merged));
    let path = Path::new(DIR).join("data/000077.ext");
    before.open(&path, OpenMode::Create, false).unwrap().write_at(0, &written).unwrap();
    assert!(footers(&written).iter().any(|(_, footer)| footer.entries == 70), "it is not there");
    for is_without_manifest in [false, true] {
        let disk = before.kill();
        if is_without_manifest {
            disk.remove(&manifest_of(&disk)).unwrap();
        }
        let (report, found) = repaired(&disk, DIR);
        assert_eq!(found, expected, "without a manifest: {is_without_manifest}, {report:#?}");
        assert_eq!(report.losses.iter().filter(|loss| loss.keys.is_some()).count(), 0, "{report:#?}");
    }
}

/// An extent that another database wrote lies in a file of its own beside those of this one.
#[test]
fn an_extent_of_another_database_is_left_out_and_named() {
    let make = |from: u64, to: u64| {
        let disk = MemDisk::new();
        let engine = open(disk.clone(), &quiet()).unwrap();
        put(&engine, TableId::DEFAULT, from, to);
        engine.flush().unwrap();
        let (rows, id) = (all_rows(&engine), id_of(&disk));
        let dead = disk.kill();
        engine.close().unwrap();
        (dead, rows, id)
    };
    let (other, _, other_id) = make(50, 150);
    let foreign = contents(&other, &data_file(&other));
    // With `CURRENT`, which has the id; and without, where only the segments tell which is the own one.
    for has_id in [true, false] {
        let (disk, expected, _) = make(0, 100);
        let path = Path::new(DIR).join("data/000077.ext");
        disk.open(&path, OpenMode::Create, false).unwrap().write_at(0, &foreign).unwrap();
        match has_id {
            true => disk.remove(&manifest_of(&disk)).unwrap(),
            false => remove_manifest(&disk, DIR),
        }
        let (report, found) = repaired(&disk, DIR);
        assert_eq!(found, expected, "{report:#?}");
        assert!(report.foreign_extents > 0, "{report:#?}");
        let names = |doubt: &terrane_base::Error| {
            let text = doubt.to_string();
            text.contains(&other_id) && text.contains("000077.ext")
        };
        assert!(report.doubts.iter().any(names), "{report:#?}");
    }
}

fn id_of(disk: &MemDisk) -> String {
    Manifest::open_read_only(Arc::new(disk.kill()), Path::new(DIR)).unwrap().1.database.to_string()
}

/// Without a manifest the extents of a table have its name and what its rows are folded by.
#[test]
fn a_table_keeps_its_name_and_options_without_a_manifest() {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &quiet()).unwrap();
    let dropped = engine.create_table("log", &[]).unwrap();
    put(&engine, dropped.id, 0, 10);
    engine.flush().unwrap();
    engine.drop_table("log").unwrap();
    let log = engine.create_table("log", &[("merge_operator".into(), "append".into())]).unwrap();
    for operand in ["one", "-two"] {
        let mut batch = Batch::new();
        batch.merge(log.id, b"key", operand.as_bytes(), Moment::NEVER).unwrap();
        engine.write(&batch, false).unwrap();
        engine.flush_to_run(&log).unwrap();
    }
    let expected = all_rows(&engine);
    assert_eq!(expected["log"][&b"key"[..]], b"one-two");
    let dead = disk.kill();
    engine.close().unwrap();
    remove_manifest(&dead, DIR);
    let (report, found) = repaired(&dead, DIR);
    assert_eq!(found["log"], expected["log"], "{report:#?}");
    let others: Vec<_> = found.keys().filter(|name| !expected.contains_key(*name)).collect();
    assert!(others.iter().all(|name| **name == format!("recovered.{}", dropped.id.0)), "{others:?}");
}

/// A byte of the part that says where an extent comes from covers no row.
#[test]
fn damage_where_an_extent_says_whose_it_is_takes_no_row() {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &quiet()).unwrap();
    put(&engine, TableId::DEFAULT, 0, 100);
    engine.flush().unwrap();
    let expected = all_rows(&engine);
    let dead = disk.kill();
    engine.close().unwrap();
    // Its rows are in the extent alone.
    let journal = Path::new(DIR).join("journal");
    let segments = dead.list(&journal).unwrap();
    segments.iter().for_each(|name| dead.remove(&journal.join(name)).unwrap());
    let path = data_file(&dead);
    let bytes = contents(&dead, &path);
    let len = extent::locate(&bytes).unwrap();
    let part = Footer::decode(&bytes[..len]).unwrap().origin;
    assert_eq!(origin_of(&bytes[..len]).unwrap().table, "default");
    for at in [part.offset, part.offset + 20, part.offset + part.len - 1] {
        for is_without_manifest in [false, true] {
            let disk = dead.kill();
            let file = disk.open(&path, OpenMode::Write, false).unwrap();
            file.write_at(at.into(), &[bytes[at as usize] ^ 1]).unwrap();
            if is_without_manifest {
                remove_manifest(&disk, DIR);
            }
            let (report, found) = repaired(&disk, DIR);
            assert_eq!(found, expected, "byte {at}: {report:#?}");
        }
    }
}

/// A copy has extents of the database that it was made of, and knows them as its own. Neither its file
/// `ORIGINS` nor its manifest is needed for that alone.
#[test]
fn a_checkpoint_and_a_restored_backup_know_the_extents_that_they_began_with() {
    for kind in ["checkpoint", "checkpoint of a checkpoint", "backup"] {
        let (disk, dir, expected) = copy(kind);
        let origins = Path::new(dir).join("ORIGINS");
        for damage in ["manifest", "all but the data", "manifest and ORIGINS flipped"] {
            let disk = disk.kill();
            match damage {
                "manifest" => disk.remove(&Path::new(dir).join("MANIFEST-000001")).unwrap(),
                "all but the data" => {
                    remove_manifest(&disk, dir);
                    disk.remove(&origins).unwrap();
                }
                _ => {
                    disk.remove(&Path::new(dir).join("MANIFEST-000001")).unwrap();
                    let file = disk.open(&origins, OpenMode::Write, false).unwrap();
                    file.write_at(20, b"x").unwrap();
                }
            }
            let (report, found) = repaired(&disk, dir);
            assert_eq!(found, expected, "{kind}, {damage}: {report:#?}");
            assert_eq!(report.foreign_extents, 0, "{kind}, {damage}: {report:#?}");
        }
    }
}

/// A database that is a copy, with an extent of its own beside those that it began with; its directory and
/// its rows.
fn copy(kind: &str) -> (MemDisk, &'static str, Rows) {
    let disk = MemDisk::new();
    let door: Arc<dyn Disk> = Arc::new(disk.clone());
    let engine = open(disk.clone(), &quiet()).unwrap();
    put(&engine, TableId::DEFAULT, 0, 100);
    engine.flush().unwrap();
    let reopened = |dir: &str| Engine::open_on(door.clone(), Path::new(dir), &quiet(), Env::real()).unwrap();
    match kind {
        "backup" => {
            let place = Arc::new(DirectoryPlace::new(door.clone(), Path::new("/backups")));
            let backups = Backups::new(place, Env::real());
            let made = backups
                .create(&engine, &BackupOptions::default(), &mut |_| ControlFlow::Continue(()))
                .unwrap();
            let (target, options) = (Path::new("/copy"), RestoreOptions::default());
            backups.restore_on(&door, made.id, target, &options, &mut |_| ControlFlow::Continue(())).unwrap();
        }
        "checkpoint" => {
            engine.checkpoint(Path::new("/copy")).unwrap();
        }
        _ => {
            engine.checkpoint(Path::new("/between")).unwrap();
            let between = reopened("/between");
            put(&between, TableId::DEFAULT, 100, 150);
            between.flush().unwrap();
            between.checkpoint(Path::new("/copy")).unwrap();
            between.close().unwrap();
        }
    }
    engine.close().unwrap();
    let copy = reopened("/copy");
    if kind != "checkpoint" {
        put(&copy, TableId::DEFAULT, 150, 200);
        copy.flush().unwrap();
    }
    let expected = all_rows(&copy);
    let dead = disk.kill();
    copy.close().unwrap();
    assert!(dead.exists(Path::new("/copy/ORIGINS")).unwrap(), "{kind}");
    (dead, "/copy", expected)
}
