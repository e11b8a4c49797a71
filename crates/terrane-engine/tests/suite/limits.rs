//! A database whose numbers are larger than any real one: it is refused with an error, before a number
//! overflows.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use std::path::Path;
use std::sync::Arc;

use support::{DIR, get, open, small_options};
use terrane_base::{Kind, SeqNo, TableId};
use terrane_device::{Disk, MemDisk, OpenMode};
use terrane_format::manifest::{Edit, EditOp};
use terrane_levels::Manifest;

fn database() -> MemDisk {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &small_options()).unwrap();
    engine.put(TableId::DEFAULT, b"key", b"value", true).unwrap();
    engine.close().unwrap();
    disk
}

fn claim(disk: &MemDisk, op: EditOp) -> terrane_base::Result<()> {
    let (manifest, _) = Manifest::open(Arc::new(disk.clone()), Path::new(DIR)).unwrap();
    manifest.reach_version(op.version()).unwrap();
    let appended = manifest.append(&Edit { ops: vec![op] });
    manifest.close().unwrap();
    appended
}

#[test]
fn a_commit_number_near_the_last_possible_one_is_corrupt() {
    let numbers = [(SeqNo::MAX.0 / 2, true), (SeqNo::MAX.0 / 2 + 1, false), (SeqNo::MAX.0, false)];
    for (at, (seq, is_possible)) in numbers.into_iter().chain(numbers).enumerate() {
        let disk = database();
        let (table, seq) = (TableId::DEFAULT, SeqNo(seq));
        let is_of_all = at >= numbers.len();
        claim(&disk, if is_of_all { EditOp::FlushedAll { seq } } else { EditOp::Flushed { table, seq } })
            .unwrap();
        match open(disk, &small_options()) {
            Ok(engine) => {
                assert!(is_possible, "{seq}");
                engine.put(TableId::DEFAULT, b"later", b"value", true).unwrap();
                let table = engine.catalog().require("default").unwrap();
                assert_eq!(get(&engine, &table, b"later").unwrap().as_deref(), Some(&b"value"[..]));
                engine.close().unwrap();
            }
            Err(error) => {
                assert!(!is_possible && error.kind() == Kind::Corrupt, "{seq}: {error}");
                assert!(error.to_string().contains(DIR), "{error}");
            }
        }
    }
}

#[test]
fn a_segment_file_with_the_last_possible_number_is_corrupt() {
    let disk = database();
    let path = Path::new(DIR).join("journal/4294967295.seg");
    disk.open(&path, OpenMode::Create, false).unwrap();
    let error = open(disk.clone(), &small_options()).map(drop).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt, "{error}");
    assert!(error.to_string().contains("4294967295.seg"), "{error}");
    disk.remove(&path).unwrap();
    open(disk, &small_options()).unwrap().close().unwrap();
}

/// The engine has an array over table numbers.
#[test]
fn a_table_number_beyond_the_limit_is_refused() {
    let create = |id| EditOp::CreateTable { id: TableId(id), name: "far".into(), options: Vec::new() };
    let disk = database();
    assert_eq!(claim(&disk, create(u32::MAX)).unwrap_err().kind(), Kind::Invalid);
    claim(&disk, create((1 << 22) - 1)).unwrap();
    let engine = open(disk, &small_options()).unwrap();
    assert!(engine.catalog().find("far").is_some());
    assert!(engine.create_table("one more", &[]).is_err(), "the numbers are used up");
    engine.put(TableId::DEFAULT, b"key", b"newer", true).unwrap();
    engine.close().unwrap();
}
