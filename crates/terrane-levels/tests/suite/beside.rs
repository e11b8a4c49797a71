//! Databases in directories that have files of others.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use std::sync::Arc;

use common::{dir, env, write_file};
use terrane_base::Kind;
use terrane_device::{Disk, MemDisk};
use terrane_levels::Manifest;
use terrane_levels::directory::{self, Contents, Others};

#[test]
fn a_database_is_made_beside_them_if_they_may_stay() {
    let disk = MemDisk::new();
    disk.create_dir(dir()).unwrap();
    write_file(&disk, &dir().join("holiday.jpg"), b"");
    assert_eq!(directory::inspect(&disk, dir(), Others::Refused).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(directory::inspect(&disk, dir(), Others::Stay).unwrap(), Contents::Vacant);
    Manifest::create_beside(Arc::new(disk.clone()), dir(), &env(), vec![], Others::Stay).unwrap();
    assert_eq!(directory::inspect(&disk, dir(), Others::Refused).unwrap(), Contents::Database);
    assert!(disk.list(dir()).unwrap().iter().any(|name| name == "holiday.jpg"), "it stays");
}

#[test]
fn a_manifest_of_another_program_stays() {
    let disk = MemDisk::new();
    disk.create_dir(dir()).unwrap();
    write_file(&disk, &dir().join("MANIFEST-000001"), b"\x56\xf9\xb8\xf8\x1c\0\x01leveldb");
    let error =
        Manifest::create_beside(Arc::new(disk.clone()), dir(), &env(), vec![], Others::Stay).map(drop);
    let error = error.unwrap_err();
    assert!(
        error.kind() == Kind::Invalid && error.message().contains("MANIFEST-000001 of another"),
        "{error}"
    );
    assert!(disk.exists(&dir().join("MANIFEST-000001")).unwrap(), "it stays");
}

#[test]
fn a_database_that_lost_its_current_file_is_damaged() {
    let disk = MemDisk::new();
    disk.create_dir(&dir().join("journal")).unwrap();
    write_file(&disk, &dir().join("journal/000001.seg"), b"x");
    let error = directory::inspect(&disk, dir(), Others::Stay).unwrap_err();
    assert!(error.kind() == Kind::Corrupt && error.message().contains("journal/000001.seg"), "{error}");
}
