//! The number up to which the records of all tables are in the levels, and the format version that it needs.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use std::sync::Arc;

use common::{add, database, dir, open, read_file, still, with_manifest, write_file};
use terrane_base::{Kind, SeqNo, TableId};
use terrane_device::{Call, Failure, Fault, FaultyDisk, MemDisk};
use terrane_format::manifest::file::{FORMAT_VERSION, FORMAT_VERSION_FIRST, FileHeader};
use terrane_format::manifest::record::{Link, RecordTag};
use terrane_format::manifest::{Edit, EditOp};
use terrane_levels::{Manifest, State, manifest::salvage};

const ONE: TableId = TableId(1);
const TWO: TableId = TableId(2);

fn edit(ops: impl Into<Vec<EditOp>>) -> Edit {
    Edit { ops: ops.into() }
}

fn create(id: TableId) -> EditOp {
    EditOp::CreateTable { id, name: format!("table {id}"), options: Vec::new() }
}

fn flushed(table: TableId, seq: u64) -> EditOp {
    EditOp::Flushed { table, seq: SeqNo(seq) }
}

fn all(seq: u64) -> EditOp {
    EditOp::FlushedAll { seq: SeqNo(seq) }
}

fn numbers(state: &State) -> Vec<u64> {
    state.tables.values().map(|table| state.flushed(table).0).collect()
}

/// The version in the header of the manifest file.
fn version(disk: &MemDisk, file: u32) -> u32 {
    FileHeader::decode(&read_file(disk, &dir().join(format!("MANIFEST-{file:06}")))).unwrap().format_version
}

/// A database with three tables whose numbers are 0, 40 and 90, and that of all is 60 for two of them.
fn example(disk: &MemDisk) -> Manifest {
    let (manifest, _) = database(disk, &[edit([create(ONE), create(TWO), flushed(ONE, 40)])]);
    manifest.reach_version(FORMAT_VERSION).unwrap();
    manifest.append(&edit([flushed(TWO, 90), all(60)])).unwrap();
    manifest
}

/// The higher one of a table's own number and that of all counts; both only rise.
#[test]
fn a_table_has_the_higher_number() {
    let disk = MemDisk::new();
    let manifest = example(&disk);
    assert_eq!(numbers(&manifest.state()), [60, 60, 90]);
    manifest.append(&edit([all(50)])).unwrap();
    assert_eq!(numbers(&manifest.state()), [60, 60, 90], "a lower number changes nothing");
    manifest.append(&edit([flushed(ONE, 70), all(65)])).unwrap();
    assert_eq!(numbers(&manifest.state()), [65, 70, 90]);
    assert_eq!(manifest.state().last_seq(), SeqNo(90));
    manifest.append(&edit([all(100), create(TableId(3))])).unwrap();
    assert_eq!(numbers(&manifest.state()), [100; 4], "a table that came later has no lower record");
    assert_eq!(manifest.state().last_seq(), SeqNo(100));
    manifest.append(&edit([flushed(TableId(3), 120)])).unwrap();
    assert_eq!(numbers(&manifest.state()), [100, 100, 100, 120]);
}

#[test]
fn a_floor_outlives_snapshots() {
    let disk = MemDisk::new();
    let manifest = example(&disk);
    let state = manifest.state();
    assert!(State::from_image(&state.to_image().unwrap()).unwrap() == *state, "an image");
    for file in 3..5 {
        manifest.roll().unwrap();
        let (_, found) = open(&disk).unwrap();
        assert!(found == *state, "{found:?}");
        assert_eq!((numbers(&found), found.flushed_all), (vec![60, 60, 90], SeqNo(60)));
        assert_eq!((version(&disk, file), found.format_version), (2, 2));
    }
    let (_, read) = Manifest::open_read_only(Arc::new(disk.clone()), dir()).unwrap();
    assert_eq!(numbers(&read), [60, 60, 90]);
}

/// States differ if a number differs that counts, and only then.
#[test]
fn states_are_compared_by_the_numbers_that_count() {
    let one = |ops: Vec<EditOp>| {
        let disk = MemDisk::new();
        let (manifest, _) = database(&disk, &[edit([create(ONE), create(TWO)])]);
        manifest.reach_version(FORMAT_VERSION).unwrap();
        manifest.append(&edit(ops)).unwrap();
        // The id of a database is drawn.
        let mut state = State::clone(&manifest.state());
        state.database = terrane_format::manifest::DatabaseId(1);
        state
    };
    let base = one(vec![all(60)]);
    assert!(base == one(vec![flushed(ONE, 50), all(60)]), "a number below that of all says nothing more");
    assert!(base != one(vec![flushed(ONE, 61), all(60)]));
    assert!(base != one(vec![all(61)]));
    let each = [TableId::DEFAULT, ONE, TWO].map(|table| flushed(table, 60));
    assert!(base != one(each.into()), "a table that is made later has the number, or not");
}

/// A program that knows the first version alone must refuse the file by its version.
#[test]
fn the_operation_needs_its_version() {
    let disk = MemDisk::new();
    let (manifest, states) = database(&disk, &[edit([create(ONE)])]);
    assert_eq!((version(&disk, 1), FORMAT_VERSION_FIRST), (1, 1), "nothing new is used");
    let error = manifest.append(&edit([all(7)])).unwrap_err();
    assert!(error.kind() == Kind::Invalid && error.message().contains("version 2"), "{error}");
    assert!(*manifest.state() == states[1], "nothing happened");
    manifest.roll().unwrap();
    assert_eq!(version(&disk, 2), 1, "a roll alone changes no version");
    manifest.reach_version(FORMAT_VERSION).unwrap();
    assert_eq!((manifest.size().file, version(&disk, 3), manifest.state().format_version), (3, 2, 2));
    manifest.append(&edit([all(7)])).unwrap();
    manifest.reach_version(FORMAT_VERSION).unwrap();
    assert_eq!(manifest.size().file, 3, "it has the version");
    assert_eq!(manifest.edit_number(), 2, "a roll takes no number");
}

/// No program wrote a file of the first version with the operation.
#[test]
fn the_operation_in_a_file_of_the_first_version_is_corrupt() {
    let disk = MemDisk::new();
    let (_, states) = database(&disk, &[]);
    let build = |version: u32| {
        let header = FileHeader::new(1, states[0].database, 0).of_version(version);
        let mut bytes = header.encode().to_vec();
        let mut link = Link { seed: header.checksum(), previous: header.checksum(), number: 0 };
        let put = |ops: Vec<EditOp>| {
            let mut payload = Vec::new();
            Edit { ops }.encode(&mut payload);
            payload
        };
        let default =
            EditOp::CreateTable { id: TableId::DEFAULT, name: "default".into(), options: Vec::new() };
        link.append(RecordTag::Snapshot, &put(vec![default]), &mut bytes);
        link.append(RecordTag::SnapshotEnd, &1u64.to_le_bytes(), &mut bytes);
        link.append(RecordTag::Edit, &put(vec![all(9)]), &mut bytes);
        bytes
    };
    let (_, state) = open(&with_manifest(&disk, 1, &build(2))).unwrap();
    assert_eq!(numbers(&state), [9]);
    let error = open(&with_manifest(&disk, 1, &build(1))).unwrap_err();
    assert!(error.kind() == Kind::Corrupt && error.message().contains("version 2"), "{error}");
}

/// A new file that cannot be made leaves the old one in use, with its version.
#[test]
fn a_version_that_is_not_reached_changes_nothing() {
    let inner = MemDisk::new();
    let disk = FaultyDisk::new(Arc::new(inner.clone()));
    drop(database(&inner, &[edit([create(ONE)])]));
    let (manifest, state) = Manifest::open_with(Arc::new(disk.clone()), dir(), still()).unwrap();
    disk.fail(Fault::new(Call::Write, Failure::Full).on("MANIFEST-000002"));
    assert_eq!(manifest.reach_version(FORMAT_VERSION).unwrap_err().kind(), Kind::Full);
    assert!(*manifest.state() == state && manifest.state().format_version == 1);
    assert_eq!(manifest.append(&edit([all(5)])).unwrap_err().kind(), Kind::Invalid);
    manifest.append(&edit([flushed(ONE, 5), flushed(TableId::DEFAULT, 5)])).unwrap();
    drop(manifest);
    let (manifest, found) = open(&inner).unwrap();
    assert_eq!((numbers(&found), found.flushed_all, found.format_version), (vec![5, 5], SeqNo(0), 1));
    manifest.reach_version(FORMAT_VERSION).unwrap();
    assert_eq!(manifest.state().format_version, 2);
    let reader = Manifest::open_read_only(Arc::new(inner.clone()), dir()).unwrap().0;
    assert_eq!(
        reader.reach_version(FORMAT_VERSION).unwrap_err().kind(),
        Kind::Invalid,
        "a reader writes nothing"
    );
}

/// A copy has the number, and with it the version.
#[test]
fn a_detached_state_keeps_the_floor() {
    let disk = MemDisk::new();
    let state = example(&disk).state();
    let copy = state.detached(terrane_format::manifest::DatabaseId(5), &[], SeqNo(95));
    assert_eq!((numbers(&copy), copy.format_version), (vec![60, 60, 90], 2));
    let target = MemDisk::new();
    terrane_device::Disk::create_dir(&target, dir()).unwrap();
    Manifest::write_copy(Arc::new(target.clone()), dir(), &copy).unwrap();
    assert!(open(&target).unwrap().1 == copy);
}

/// Of a manifest that is damaged behind the operation, repair knows the number; also without a file header,
/// where the version is not known.
#[test]
fn the_readable_part_of_a_damaged_manifest_has_the_floor() {
    let disk = MemDisk::new();
    let manifest = example(&disk);
    (0..3).for_each(|slot| manifest.append(&add(slot, 1)).unwrap());
    drop(manifest);
    let path = dir().join("MANIFEST-000002");
    let whole = read_file(&disk, &path);
    for damaged in [9, whole.len() - 60] {
        let mut bytes = whole.clone();
        bytes[damaged] ^= 1;
        write_file(&disk, &path, &bytes);
        let salvaged = salvage(&disk, dir()).unwrap();
        let remains = salvaged.remains.expect("it is damaged").state;
        assert_eq!(numbers(&remains), [60, 60, 90], "byte {damaged}");
    }
}
