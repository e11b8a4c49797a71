//! The edit of a trim of the journal: one operation in the manifest for any number of tables.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use std::path::Path;
use std::sync::Arc;

use support::{DIR, get, open, small_options};
use terrane_base::options::Options;
use terrane_base::{SeqNo, TableId};
use terrane_device::{Call, Failure, Fault, FaultyDisk, MemDisk};
use terrane_engine::Engine;
use terrane_format::manifest::describe;
use terrane_levels::{Manifest, State};

const TABLES: usize = 40;

fn options() -> Options {
    Options { close_flush: true, ..small_options() }
}

/// A database with so many tables and a row in each; all is flushed, and the journal begins again.
fn database(disk: impl terrane_device::Disk + 'static, tables: usize) -> Arc<Engine> {
    let engine = open(disk, &options()).unwrap();
    for number in 1..tables {
        let table = engine.create_table(&format!("table {number}"), &[]).unwrap();
        engine.put(table.id, b"first", b"1", false).unwrap();
    }
    engine.put(TableId::DEFAULT, b"first", b"1", false).unwrap();
    engine.flush().unwrap();
    engine.wait_until_quiescent().unwrap();
    engine
}

/// Fills segments by one table alone, flushes it, and waits until segments are trimmed.
fn trim(engine: &Engine) {
    let before = engine.stats().segments_trimmed;
    (0..4).for_each(|_| engine.put(TableId::DEFAULT, b"large", &[7; 48 << 10], false).map(drop).unwrap());
    engine.flush().unwrap();
    engine.wait_until_quiescent().unwrap();
    assert!(engine.stats().segments_trimmed > before, "segments are trimmed");
}

fn state(disk: &MemDisk) -> State {
    Manifest::open_read_only(Arc::new(disk.clone()), Path::new(DIR)).unwrap().1
}

/// How often the operation stands in the edits of the manifest file.
fn count(disk: &MemDisk, operation: &str) -> usize {
    let (manifest, _) = Manifest::open_read_only(Arc::new(disk.clone()), Path::new(DIR)).unwrap();
    let path = Path::new(DIR).join(format!("MANIFEST-{:06}", manifest.size().file));
    let file = terrane_device::Disk::open(disk, &path, terrane_device::OpenMode::Read, false).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    let mut found = 0;
    describe(&bytes, &mut |field| {
        let name = field.name.to_string();
        found += usize::from(name.starts_with("edit") && name.ends_with(&format!(".{operation}")));
    });
    found
}

/// Opens what a kill leaves, and finds in each table the rows that were put there.
fn check(disk: &MemDisk, tables: usize, has_large: bool) -> Arc<Engine> {
    let engine = open(disk.kill(), &options()).unwrap();
    let all = engine.catalog().listed();
    assert_eq!(all.len(), tables);
    for table in &all {
        assert_eq!(get(&engine, table, b"first").unwrap().as_deref(), Some(&b"1"[..]), "{}", table.name);
    }
    assert_eq!(get(&engine, &all[0], b"large").unwrap().is_some(), has_large);
    engine
}

#[test]
fn one_operation_speaks_of_all_tables() {
    let disk = MemDisk::new();
    let engine = database(disk.clone(), TABLES);
    trim(&engine);
    let (each, bytes) = (count(&disk, "flushed"), engine.stats().device_manifest_bytes_written);
    for _ in 0..4 {
        trim(&engine);
    }
    let written = engine.stats().device_manifest_bytes_written - bytes;
    assert!(count(&disk, "flushed-all") >= 4, "a trim says it of all");
    // Those of the flushes of the one table; of each table they were 40 for a trim.
    assert!(count(&disk, "flushed") - each < TABLES, "{} after {each}", count(&disk, "flushed"));
    assert!(written < 40_000, "{written} bytes of the manifest");
    let found = state(&disk);
    assert_eq!(found.format_version, 2);
    assert!(found.flushed_all > SeqNo(TABLES as u64), "{}", found.flushed_all);
    // Another opening reads the number from the edits, and the next one from a snapshot.
    check(&disk, TABLES, true).close().unwrap();
    let image = disk.kill();
    let (manifest, before) = Manifest::open(Arc::new(image.clone()), Path::new(DIR)).unwrap();
    manifest.roll().unwrap();
    drop(manifest);
    assert!(state(&image) == before, "the snapshot has it");
    check(&image, TABLES, true).close().unwrap();
    engine.close().unwrap();
}

/// A table that is made later has records above the number only, and they are replayed.
#[test]
fn later_tables_keep_what_the_journal_has_of_them() {
    let disk = MemDisk::new();
    let engine = database(disk.clone(), 3);
    trim(&engine);
    let floor = state(&disk).flushed_all;
    assert!(floor > SeqNo(0));
    let later = engine.create_table("later", &[]).unwrap();
    let own = state(&disk);
    let own = own.flushed(&own.tables[&later.id]);
    assert!(own >= floor, "{own} of the new table, {floor} of all");
    engine.put(later.id, b"first", b"1", true).unwrap();
    engine.put(TableId::DEFAULT, b"second", b"2", true).unwrap();
    let again = check(&disk, 4, true);
    let default = again.catalog().require("default").unwrap();
    assert_eq!(get(&again, &default, b"second").unwrap().as_deref(), Some(&b"2"[..]));
    trim(&again);
    again.close().unwrap();
    engine.close().unwrap();
}

/// The first version of the manifest serves a database with one table.
#[test]
fn one_table_needs_no_later_version() {
    let disk = MemDisk::new();
    let engine = database(disk.clone(), 1);
    trim(&engine);
    trim(&engine);
    engine.close().unwrap();
    let found = state(&disk);
    assert_eq!((found.format_version, found.flushed_all), (1, SeqNo(0)));
    check(&disk, 1, true).close().unwrap();
}

/// Without room for a new manifest file trims go on, which give space back; with room they begin one.
#[test]
fn a_full_device_trims_by_the_first_version() {
    let inner = MemDisk::new();
    let disk = FaultyDisk::new(Arc::new(inner.clone()));
    disk.fail(Fault::new(Call::Create, Failure::Full).on("MANIFEST-000002").lasting());
    let engine = database(disk.clone(), TABLES);
    trim(&engine);
    let found = state(&inner);
    assert_eq!((found.format_version, found.flushed_all), (1, SeqNo(0)));
    let lowest = found.tables.values().map(|table| found.flushed(table)).min().unwrap();
    assert!(lowest > SeqNo(TABLES as u64), "each table has a number of its own: {lowest}");
    check(&inner, TABLES, true).close().unwrap();
    disk.heal();
    trim(&engine);
    let found = state(&inner);
    assert!(found.format_version == 2 && found.flushed_all > lowest, "{}", found.flushed_all);
    engine.close().unwrap();
    check(&inner, TABLES, true).close().unwrap();
}
