//! Backups of databases that are only read: of one that no process writes, and of views beside the writer.

use std::path::Path;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Functions, Kind};
use terrane_device::{Disk, MemDisk};
use terrane_engine::backup::BackupOptions;
use terrane_engine::{Bounds, Engine, Viewed};

use crate::backup::{assert_verified, backups, check, create, filled, go_on, rows_in, write};
use crate::support::{DIR, small_options};

fn view(disk: &MemDisk) -> Arc<Engine> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let opened =
        Viewed::of(&disk, Path::new(DIR), &small_options(), &Env::real(), &Functions::default(), None);
    opened.unwrap().engine
}

#[test]
fn a_reader_makes_the_backup_that_a_writer_makes() {
    let disk = MemDisk::new();
    let engine = filled(disk.clone(), &small_options());
    let (expected, last) = (check(&engine), engine.visible());
    engine.close().unwrap();
    let options = Options { read_only: true, ..small_options() };
    let reader = Engine::open_on(Arc::new(disk.clone()), Path::new(DIR), &options, Env::real()).unwrap();
    let place = backups(disk);
    let made = create(&place, &reader).unwrap();
    assert_eq!((made.id, made.last_seq), (1, last));
    assert_verified(&place, 1);
    assert!(rows_in(&place, 1) == expected);
    let refused = place.create(&reader, &BackupOptions::default().flush(true), &mut go_on).unwrap_err();
    assert_eq!(refused.kind(), Kind::Invalid, "{refused}");
}

#[test]
fn a_view_makes_a_backup_of_its_moment_or_names_missing_extents() {
    let disk = MemDisk::new();
    let engine = filled(disk.clone(), &small_options());
    // No merge of the background takes an extent of the view away.
    engine.wait_until_quiescent().unwrap();
    let (expected, moment) = (check(&engine), view(&disk));
    let place = backups(disk.clone());
    // What the writer commits meanwhile is not in it, and too little to be flushed.
    write(&engine, 100, 4, 3);
    let made = create(&place, &moment).unwrap();
    assert!(made.extents > 0 && made.journal_bytes > 0 && made.last_seq < engine.visible());
    assert_verified(&place, 1);
    assert!(rows_in(&place, 1) == expected);

    // An extent after those of the view: the file keeps its length, and so every slot can be read.
    let last = engine.create_table("last", &[]).unwrap();
    engine.put(last.id, b"key", b"value", false).unwrap();
    engine.flush().unwrap();
    // Slots of its extents are freed and used again: nothing wrong gets into a backup.
    let fresh = backups(MemDisk::new());
    let mut gone = 0;
    for round in 4..20 {
        write(&engine, 0, 400, round);
        for table in ["default", "other"].map(|name| engine.catalog().require(name).unwrap()) {
            engine.compact_range(&table, &Bounds::all()).unwrap();
        }
        engine.wait_until_quiescent().unwrap();
        match create(&fresh, &moment) {
            Ok(made) => assert!(rows_in(&fresh, made.id) == expected, "round {round}"),
            Err(error) => {
                assert_eq!(error.kind(), Kind::Gone, "{error}");
                gone += 1;
            }
        }
    }
    assert!(gone > 0, "no extent of the view went");
    engine.drop_table("last").unwrap();
    // A newer view has the state of now.
    let expected = check(&engine);
    let made = create(&place, &view(&disk)).unwrap();
    assert!(rows_in(&place, made.id) == expected);
    engine.close().unwrap();
}
