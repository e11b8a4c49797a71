//! Checkpoints of databases that are only read: of one that no process writes, and of views beside the
//! writer. Extents are copied, so that no writer meets a file that it does not know to be shared.

use std::path::Path;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Functions, Kind};
use terrane_device::{Disk, MemDisk, OpenMode};
use terrane_engine::{Bounds, Engine, Viewed};

use super::{COPY, check, check_copy, checkpoint, filled, open_at, reopen, write};
use crate::support::{DIR, small_options};

fn view(disk: &MemDisk) -> Arc<Engine> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let opened =
        Viewed::of(&disk, Path::new(DIR), &small_options(), &Env::real(), &Functions::default(), None);
    opened.unwrap().engine
}

/// Names and bytes of the files of the database, and how many names each has.
fn files(disk: &MemDisk) -> Vec<(String, Vec<u8>, u64)> {
    let mut files = Vec::new();
    for part in ["", "data", "journal"] {
        let dir = Path::new(DIR).join(part);
        for name in disk.list(&dir).unwrap() {
            let Ok(file) = disk.open(&dir.join(&name), OpenMode::Read, false) else { continue };
            let mut bytes = vec![0; file.len().unwrap() as usize];
            file.read_at(0, &mut bytes).unwrap();
            files.push((format!("{part}/{name}"), bytes, file.names().unwrap()));
        }
    }
    files
}

#[test]
fn a_reader_makes_the_copy_that_a_writer_makes_and_leaves_the_source_alone() {
    let disk = MemDisk::new();
    let engine = filled(disk.clone(), &small_options()).unwrap();
    let (expected, last) = (check(&engine), engine.visible());
    engine.close().unwrap();
    let before = files(&disk);
    let reader = open_at(disk.clone(), DIR, &Options { read_only: true, ..small_options() }).unwrap();
    let made = checkpoint(&reader, COPY).unwrap();
    assert!(made.files_linked == 0 && made.bytes_copied > 0 && made.journal_bytes > 0, "{made:?}");
    assert_eq!(made.last_seq, last);
    reader.close().unwrap();
    assert!(files(&disk) == before, "the source is as it was");
    // Both are written from now on, and neither sees the other.
    let source = reopen(disk.clone(), DIR).unwrap();
    write(&source, 0, 400, 9).unwrap();
    source.compact_range(&source.catalog().require("default").unwrap(), &Bounds::all()).unwrap();
    check_copy(&disk, COPY, &expected);
    let copy = reopen(disk.clone(), COPY).unwrap();
    write(&copy, 500, 10, 7).unwrap();
    assert_eq!(check(&copy).len(), expected.len() + 10);
    assert_eq!(check(&source).len(), expected.len());
}

#[test]
fn damage_is_not_a_copy() {
    let disk = MemDisk::new();
    filled(disk.clone(), &small_options()).unwrap().close().unwrap();
    let open = || open_at(disk.clone(), DIR, &Options { read_only: true, ..small_options() }).unwrap();
    let expected = check(&open());
    let (mut refused, mut round) = (0, 0);
    for name in disk.list(&Path::new(DIR).join("data")).unwrap() {
        let file = disk.open(&Path::new(DIR).join("data").join(name), OpenMode::Write, false).unwrap();
        for at in (512..file.len().unwrap()).step_by(1 << 10) {
            let mut byte = [0];
            file.read_at(at, &mut byte).unwrap();
            if byte == [0] {
                continue;
            }
            file.write_at(at, &[byte[0] ^ 1]).unwrap();
            round += 1;
            let target = format!("/copies/{round}");
            match checkpoint(&open(), &target) {
                Ok(_) => check_copy(&disk, &target, &expected),
                Err(error) => {
                    assert_eq!(error.kind(), Kind::Corrupt, "{error}");
                    assert!(!disk.exists(Path::new(&target)).unwrap());
                    refused += 1;
                }
            }
            file.write_at(at, &byte).unwrap();
        }
    }
    assert!(refused > 5, "{refused} of {round} flipped bytes were in extents");
}

#[test]
fn a_view_makes_a_copy_of_its_moment_or_names_missing_extents() {
    let disk = MemDisk::new();
    let engine = filled(disk.clone(), &small_options()).unwrap();
    // No merge of the background takes an extent of the view away.
    engine.wait_until_quiescent().unwrap();
    let (expected, moment) = (check(&engine), view(&disk));
    write(&engine, 100, 4, 3).unwrap();
    let made = checkpoint(&moment, COPY).unwrap();
    assert!(made.bytes_copied > 0 && made.last_seq < engine.visible(), "{made:?}");
    check_copy(&disk, COPY, &expected);

    // Slots of its extents are freed and used again: nothing wrong gets into a copy.
    let mut gone = 0;
    for round in 4..20 {
        write(&engine, 0, 400, round).unwrap();
        for table in ["default", "other"].map(|name| engine.catalog().require(name).unwrap()) {
            engine.compact_range(&table, &Bounds::all()).unwrap();
        }
        engine.wait_until_quiescent().unwrap();
        let target = format!("/copies/round-{round}");
        match checkpoint(&moment, &target) {
            Ok(_) => check_copy(&disk, &target, &expected),
            Err(error) => {
                assert_eq!(error.kind(), Kind::Gone, "{error}");
                assert!(!disk.exists(Path::new(&target)).unwrap(), "{target} is half made");
                assert!(!disk.exists(Path::new(&format!("{target}.unfinished"))).unwrap());
                gone += 1;
            }
        }
    }
    assert!(gone > 0, "no extent of the view went");
    // A newer view has the state of now, and the writer goes on.
    let expected = check(&engine);
    checkpoint(&view(&disk), "/copies/now").unwrap();
    check_copy(&disk, "/copies/now", &expected);
    assert!(check(&engine) == expected);
    engine.close().unwrap();
}
