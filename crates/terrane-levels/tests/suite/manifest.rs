//! The manifest in order: creation, appends, reopening, rolling over, refusals.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use std::path::Path;
use std::sync::Arc;

use common::{add, database, dir, env, numbered, open, read_file, still, with_manifest, write_file};
use terrane_base::{Kind, SegmentId, SeqNo, TableId};
use terrane_device::{Disk, MemDisk, OpenMode, PosixDisk};
use terrane_format::manifest::file::FileHeader;
use terrane_format::manifest::{Edit, EditOp, NextIds, Place, Seal, SegmentSpec};
use terrane_levels::directory::{self, Contents, Others};
use terrane_levels::{Manifest, State};

fn edit(ops: impl Into<Vec<EditOp>>) -> Edit {
    Edit { ops: ops.into() }
}

fn create_table(id: u32, name: &str) -> EditOp {
    let options = vec![("compression".to_owned(), "lz4".to_owned())];
    EditOp::CreateTable { id: TableId(id), name: name.into(), options }
}

fn segment(id: u64, file: u32) -> SegmentSpec {
    SegmentSpec { id: SegmentId(id), file, bytes: 1 << 20 }
}

fn seal(end_offset: u64) -> Seal {
    Seal { end_offset, last_seq: SeqNo(77), checksum: 0xabcd }
}

/// An edit of every sort; each leads to a state that the next needs.
fn every_edit() -> Vec<Edit> {
    let moved = numbered(3, 30, 39);
    vec![
        edit([create_table(1, "users"), create_table(5, "old")]),
        edit([EditOp::SetOptions { id: TableId(1), options: vec![("a".into(), "b".into())] }]),
        add(3, 1),
        edit([
            EditOp::add(TableId(5), Place::Run(4), numbered(7, 1, 2)),
            EditOp::add(TableId(1), Place::Run(2), numbered(8, 1, 2)),
            EditOp::add(TableId(1), Place::Run(9), numbered(9, 1, 2)),
        ]),
        edit([
            EditOp::add(TableId::DEFAULT, Place::Level(6), moved.clone()),
            EditOp::remove(TableId::DEFAULT, Place::Level(1), &moved),
        ]),
        edit([EditOp::AddSegment(segment(1, 1)), EditOp::AddSegment(segment(2, 2))]),
        edit([EditOp::AddSegment(segment(3, 3)), EditOp::SealSegment { id: SegmentId(2), seal: seal(100) }]),
        edit([EditOp::RemoveSegment { id: SegmentId(2) }, EditOp::AddSegment(segment(4, 2))]),
        edit([EditOp::Flushed { table: TableId(1), seq: SeqNo(50) }, EditOp::Durable { seq: SeqNo(70) }]),
        edit([EditOp::DropTable { id: TableId(5) }, create_table(6, "old")]),
        edit([EditOp::NextIds(NextIds {
            table: TableId(9),
            segment: SegmentId(9),
            segment_file: 9,
            run: 99,
        })]),
        edit([EditOp::Epoch { epoch: 3 }]),
        edit([EditOp::CleanClose { last_seq: SeqNo(80) }]),
    ]
}

/// Every field that a dump of these bytes tells.
fn described(bytes: &[u8]) -> Vec<terrane_format::dump::Field> {
    let mut fields = Vec::new();
    terrane_format::manifest::describe(bytes, &mut |field| fields.push(field));
    fields
}

#[test]
fn appended_edits_are_there_after_reopening() {
    let disk = MemDisk::new();
    let (manifest, states) = database(&disk, &every_edit());
    assert_eq!(manifest.edit_number(), every_edit().len() as u64);
    manifest.close().unwrap();
    drop(manifest);
    let (manifest, state) = open(&disk).unwrap();
    assert_eq!(&state, states.last().unwrap());
    assert_eq!(*manifest.state(), state);
    assert_eq!(manifest.edit_number(), every_edit().len() as u64);
    assert_eq!(manifest.torn_bytes(), 0);
    assert_eq!(state.clean_close, Some(SeqNo(80)));
    assert_eq!(state.last_sealed.unwrap().0.id, SegmentId(2));
    assert_eq!(state.last_seq(), SeqNo(80));
    assert!(state.tables[&TableId(5)].dropped, "its extent is still to be removed");
    assert_eq!(state.table_named("old").unwrap().id, TableId(6));
    assert_eq!(state.extents().count(), 4);
    state.check().unwrap();
}

#[test]
fn a_roll_keeps_the_state_and_the_edit_number() {
    for count in 0..=every_edit().len() {
        let disk = MemDisk::new();
        let (manifest, states) = database(&disk, &every_edit()[..count]);
        manifest.roll().unwrap();
        assert_eq!(manifest.size().file, 2);
        assert_eq!(manifest.size().edit_bytes, 0);
        assert!(!disk.exists(&dir().join("MANIFEST-000001")).unwrap());
        let (manifest, state) = open(&disk).unwrap();
        assert_eq!(&state, states.last().unwrap(), "after {count} edits");
        assert_eq!(manifest.edit_number(), count as u64);
        manifest.append(&add(1000, 3)).unwrap();
        assert_eq!(open(&disk).unwrap().0.edit_number(), count as u64 + 1);
    }
}

#[test]
fn edits_that_contradict_the_state_are_refused_and_leave_nothing() {
    let disk = MemDisk::new();
    let (manifest, states) = database(&disk, &every_edit());
    let bad_run = EditOp::add(TableId(1), Place::Run(3), numbered(20, 1, 2));
    let twice = [EditOp::add(TableId(1), Place::Level(1), numbered(3, 500, 501))];
    let wide = EditOp::add(TableId::DEFAULT, Place::Level(6), numbered(20, 35, 36));
    let unknown = EditOp::remove(TableId::DEFAULT, Place::Level(6), &numbered(33, 30, 39));
    let elsewhere = EditOp::remove(TableId::DEFAULT, Place::Level(5), &numbered(3, 30, 39));
    let mut broken = numbered(40, 600, 601);
    Arc::make_mut(&mut broken).deletes = u64::MAX;
    let refused = vec![
        edit([create_table(2, "users")]),
        edit([create_table(3, "users2")]),
        edit([create_table(20, "")]),
        edit([create_table(20, &"x".repeat(256))]),
        edit([EditOp::DropTable { id: TableId::DEFAULT }]),
        edit([EditOp::DropTable { id: TableId(5) }]),
        edit([EditOp::SetOptions { id: TableId(77), options: vec![] }]),
        edit([EditOp::SetOptions { id: TableId(1), options: vec![("a".into(), "b".repeat(5000))] }]),
        edit([bad_run]),
        edit(twice),
        edit([wide]),
        edit([unknown]),
        edit([elsewhere]),
        edit([EditOp::add(TableId(5), Place::Level(1), numbered(20, 1, 2))]),
        edit([EditOp::add(TableId(77), Place::Level(1), numbered(20, 1, 2))]),
        edit([EditOp::add(TableId(1), Place::Level(0), numbered(20, 1, 2))]),
        edit([EditOp::add(TableId(1), Place::Level(64), numbered(20, 1, 2))]),
        edit([EditOp::add(TableId(1), Place::Run(u64::MAX), numbered(20, 1, 2))]),
        edit([EditOp::add(TableId(1), Place::Level(2), broken)]),
        edit([EditOp::AddSegment(segment(4, 20))]),
        edit([EditOp::AddSegment(segment(20, 3))]),
        edit([EditOp::AddSegment(segment(u64::MAX, 30))]),
        edit([EditOp::RemoveSegment { id: SegmentId(2) }]),
        edit([EditOp::SealSegment { id: SegmentId(2), seal: seal(1) }]),
        edit([EditOp::SealSegment { id: SegmentId(3), seal: seal(2 << 20) }]),
        edit([EditOp::Durable { seq: SeqNo(1 << 56) }]),
        edit([EditOp::NextIds(NextIds::default())]),
        edit([EditOp::Epoch { epoch: 3 }]),
    ];
    for edit in refused {
        let error = manifest.append(&edit).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid, "{edit:?}: {error}");
        assert_eq!(&*manifest.state(), states.last().unwrap(), "{edit:?}");
    }
    assert_eq!(manifest.edit_number(), every_edit().len() as u64);
    assert_eq!(&open(&disk).unwrap().1, states.last().unwrap());
}

#[test]
fn a_dropped_table_is_forgotten_with_its_last_extent() {
    let disk = MemDisk::new();
    let (manifest, _) = database(&disk, &every_edit());
    manifest.append(&edit([EditOp::remove(TableId(5), Place::Run(4), &numbered(7, 1, 2))])).unwrap();
    assert!(!manifest.state().tables.contains_key(&TableId(5)));
    assert!(manifest.append(&edit([create_table(5, "again")])).is_err(), "numbers are not used twice");
}

#[test]
fn any_later_edit_takes_the_clean_close_off() {
    let disk = MemDisk::new();
    let (manifest, _) = database(&disk, &[edit([EditOp::CleanClose { last_seq: SeqNo(5) }]), edit([])]);
    assert_eq!(manifest.state().clean_close, None);
    assert_eq!(open(&disk).unwrap().1.clean_close, None);
}

#[test]
fn the_manifest_rolls_by_size_under_load() {
    let disk = MemDisk::new();
    let settings = common::rolled_at(2000, 3, u64::MAX);
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let (manifest, _) = Manifest::create_with(shared, dir(), &env(), Vec::new(), settings).unwrap();
    std::thread::scope(|scope| {
        for level in 1..=4u8 {
            let manifest = &manifest;
            scope.spawn(move || {
                for i in 0..150 {
                    let slot = u32::from(level) * 1000 + i;
                    manifest.append(&add(slot, level)).unwrap();
                    assert!(manifest.state().extents().any(|(id, _)| id.slot == slot));
                    if i >= 50 {
                        let old = u32::from(level) * 1000 + i - 50;
                        let number = u64::from(old) * 10;
                        let meta = numbered(old, number, number + 9);
                        let gone = EditOp::remove(TableId::DEFAULT, Place::Level(level), &meta);
                        manifest.append(&edit([gone])).unwrap();
                    }
                }
            });
        }
    });
    let state = manifest.state();
    assert_eq!(state.extents().count(), 200);
    assert!(manifest.size().file > 3, "{:?}", manifest.size());
    assert!(manifest.size().edit_bytes <= 3 * manifest.size().snapshot_bytes.max(2000));
    let manifests = disk.list(dir()).unwrap().iter().filter(|name| name.starts_with("MANIFEST")).count();
    assert_eq!(manifests, 1);
    let (reopened, found) = open(&disk).unwrap();
    assert_eq!(found, *state);
    assert_eq!(reopened.edit_number(), manifest.edit_number());
}

#[test]
fn a_large_snapshot_is_written_in_bounded_records() {
    let disk = MemDisk::new();
    let (manifest, _) = database(&disk, &[]);
    for part in 0..10u32 {
        let ops = (0..2000).map(|i| {
            let slot = part * 2000 + i;
            EditOp::add(
                TableId::DEFAULT,
                Place::Level(2),
                numbered(slot, u64::from(slot) * 10, u64::from(slot) * 10 + 9),
            )
        });
        manifest.append(&edit(ops.collect::<Vec<_>>())).unwrap();
    }
    manifest.roll().unwrap();
    let bytes = read_file(&disk, &dir().join("MANIFEST-000002"));
    let fields = described(&bytes);
    let longest =
        fields.iter().filter(|f| f.name.ends_with(".length")).map(|f| f.value.parse::<u64>().unwrap());
    let longest: Vec<u64> = longest.collect();
    assert!(longest.len() > 10 && longest.iter().all(|len| *len < 300 << 10), "{longest:?}");
    assert_eq!(open(&disk).unwrap().1, *manifest.state());
}

#[test]
fn describe_covers_every_byte() {
    let disk = MemDisk::new();
    database(&disk, &every_edit());
    let bytes = read_file(&disk, &dir().join("MANIFEST-000001"));
    let fields = described(&bytes);
    let mut at = 0;
    for field in &fields {
        assert_eq!(field.offset, at, "{field:?}");
        assert_ne!(field.name, "broken", "{field:?}");
        at += field.len;
    }
    assert_eq!(at, bytes.len());
    assert!(fields.iter().any(|f| f.name == "edit[12].epoch" && f.value == "3"), "{fields:#?}");
    let damaged = described(&bytes[..bytes.len() - 40]);
    assert_eq!(damaged.last().unwrap().name, "broken");
}

#[test]
fn reading_only_changes_nothing_and_appends_nothing() {
    let disk = MemDisk::new();
    let (_, states) = database(&disk, &every_edit());
    // A torn tail stays as it is.
    let path = dir().join("MANIFEST-000001");
    let mut bytes = read_file(&disk, &path);
    bytes.extend_from_slice(&[7; 13]);
    write_file(&disk, &path, &bytes);
    let (manifest, state) = Manifest::open_read_only(Arc::new(disk.clone()), dir()).unwrap();
    assert_eq!(&state, states.last().unwrap());
    assert_eq!(manifest.torn_bytes(), 13);
    assert_eq!(manifest.append(&add(100, 1)).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(manifest.roll().unwrap_err().kind(), Kind::Invalid);
    manifest.close().unwrap();
    assert_eq!(read_file(&disk, &path), bytes);
}

/// No lock protects a reader: whatever moment it hits, it finds a state that was durable.
#[test]
fn reading_only_beside_a_writer_finds_some_state() {
    let disk = MemDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let settings = common::rolled_at(1000, 0, 0);
    let (manifest, _) = Manifest::create_with(shared.clone(), dir(), &env(), Vec::new(), settings).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (0..400).for_each(|slot| manifest.append(&add(slot, 1)).unwrap()));
        let mut last = 0;
        while !writer.is_finished() {
            let (seen, state) = Manifest::open_read_only(shared.clone(), dir()).unwrap();
            assert_eq!(state.extents().count() as u64, seen.edit_number());
            assert!(seen.edit_number() >= last && seen.edit_number() <= manifest.edit_number() + 1);
            last = seen.edit_number();
        }
    });
    assert_eq!(Manifest::open_read_only(shared, dir()).unwrap().0.edit_number(), 400);
}

#[test]
fn a_newer_format_version_names_the_release_it_needs() {
    let disk = MemDisk::new();
    let (_, states) = database(&disk, &[]);
    let header =
        FileHeader { format_version: 3, reader: [3, 1, 4], ..FileHeader::new(1, states[0].database, 0) };
    let mut bytes = header.encode().to_vec();
    bytes.extend_from_slice(b"whatever a later version puts here");
    let error = open(&with_manifest(&disk, 1, &bytes)).unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
    assert!(error.message().contains("Terrane 3.1.4"), "{error}");
}

#[test]
fn swapped_files_are_detected() {
    let (disk, other) = (MemDisk::new(), MemDisk::new());
    let (manifest, _) = database(&disk, &[]);
    database(&other, &[]);
    let foreign = read_file(&other, &dir().join("MANIFEST-000001"));
    let error = open(&with_manifest(&disk, 1, &foreign)).unwrap_err();
    assert!(error.kind() == Kind::Corrupt && error.message().contains("another database"), "{error}");
    let old = read_file(&disk, &dir().join("MANIFEST-000001"));
    manifest.roll().unwrap();
    let error = open(&with_manifest(&disk, 2, &old)).unwrap_err();
    assert!(error.kind() == Kind::Corrupt && error.message().contains("wrong name"), "{error}");
    assert_eq!(error.place().unwrap().file, "/db/MANIFEST-000002");
}

/// A rename of `CURRENT` that was acknowledged and then lost.
#[test]
fn an_old_current_is_found_out() {
    let disk = MemDisk::new();
    let (manifest, states) = database(&disk, &[add(1, 1)]);
    let (old, current) = (dir().join("MANIFEST-000001"), dir().join("CURRENT"));
    let (old_bytes, current_bytes) = (read_file(&disk, &old), read_file(&disk, &current));
    manifest.roll().unwrap();
    write_file(&disk, &old, &old_bytes);
    write_file(&disk, &current, &current_bytes);
    // Nothing was appended since: an unfinished roll looks the same and loses nothing.
    assert_eq!(open(&disk.kill()).unwrap().1, states[1]);
    manifest.append(&add(2, 1)).unwrap();
    let error = open(&disk).unwrap_err();
    assert!(error.kind() == Kind::Corrupt && error.message().contains("CURRENT is older"), "{error}");
}

#[test]
fn a_manifest_that_lost_edits_does_not_reach_the_number_seen() {
    let disk = MemDisk::new();
    let (manifest, _) = database(&disk, &[add(1, 1)]);
    let before = disk.kill();
    manifest.append(&add(2, 1)).unwrap();
    let seen = manifest.edit_number();
    manifest.check_reached(seen).unwrap();
    let (stale, _) = open(&before).unwrap();
    assert_eq!(stale.check_reached(seen).unwrap_err().kind(), Kind::Corrupt);
}

#[test]
fn a_missing_manifest_or_current_is_named() {
    let disk = MemDisk::new();
    assert_eq!(open(&disk).unwrap_err().kind(), Kind::NotFound);
    database(&disk, &[]).0.roll().unwrap();
    let (manifest, current) = (dir().join("MANIFEST-000002"), dir().join("CURRENT"));
    let without_current = disk.kill();
    without_current.remove(&current).unwrap();
    let error = open(&without_current).unwrap_err();
    assert!(error.kind() == Kind::Corrupt && error.message().contains("MANIFEST-000002"), "{error}");
    assert!(
        Manifest::create(Arc::new(without_current), dir(), &env(), vec![]).is_err(),
        "it is not overwritten"
    );
    disk.remove(&manifest).unwrap();
    let error = open(&disk).unwrap_err();
    assert_eq!((error.kind(), error.place().unwrap().file.as_str()), (Kind::Corrupt, "/db/CURRENT"));
}

#[test]
fn a_directory_of_another_program_is_refused_by_a_name_in_it() {
    let disk = MemDisk::new();
    disk.create_dir(dir()).unwrap();
    assert_eq!(directory::inspect(&disk, dir(), Others::Refused).unwrap(), Contents::Vacant);
    write_file(&disk, &dir().join("LOCK"), b"1\n");
    assert_eq!(directory::inspect(&disk, dir(), Others::Refused).unwrap(), Contents::Vacant);
    write_file(&disk, &dir().join("holiday.jpg"), b"");
    let error = directory::inspect(&disk, dir(), Others::Refused).unwrap_err();
    assert!(error.kind() == Kind::Invalid && error.message().contains("holiday.jpg"), "{error}");
    assert!(Manifest::create(Arc::new(disk.clone()), dir(), &env(), vec![]).is_err());
    assert_eq!(disk.list(dir()).unwrap(), ["LOCK", "holiday.jpg"]);
    write_file(&disk, &dir().join("CURRENT"), b"MANIFEST-000005\n");
    let error = open(&disk).unwrap_err();
    assert!(error.kind() == Kind::Invalid && error.message().contains("RocksDB"), "{error}");
}

#[test]
fn journal_files_without_current_are_not_taken_for_leftovers() {
    let disk = MemDisk::new();
    disk.create_dir(&dir().join("journal")).unwrap();
    write_file(&disk, &dir().join("journal/000001.seg"), b"x");
    let error = directory::inspect(&disk, dir(), Others::Refused).unwrap_err();
    assert!(error.kind() == Kind::Corrupt && error.message().contains("journal/000001.seg"), "{error}");
}

/// The real device, also a relative path and parents that do not exist.
#[test]
fn the_manifest_works_on_files() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a/b/db");
    let disk: Arc<dyn Disk> = Arc::new(PosixDisk::new());
    assert_eq!(directory::inspect(&*disk, &path, Others::Refused).unwrap(), Contents::Missing);
    directory::prepare(&*disk, &path).unwrap();
    let _lock = disk.lock(&path.join(directory::LOCK)).unwrap();
    let (manifest, _) = Manifest::create_with(disk.clone(), &path, &env(), Vec::new(), still()).unwrap();
    for edit in every_edit() {
        manifest.append(&edit).unwrap();
    }
    manifest.roll().unwrap();
    manifest.append(&add(50, 4)).unwrap();
    let state: State = State::clone(&manifest.state());
    drop(manifest);
    assert_eq!(directory::inspect(&*disk, &path, Others::Refused).unwrap(), Contents::Database);
    let (manifest, found) = Manifest::open(disk.clone(), &path).unwrap();
    assert_eq!(found, state);
    manifest.append(&add(51, 4)).unwrap();
    let names = disk.list(&path).unwrap();
    assert_eq!(names, ["CURRENT", "LOCK", "MANIFEST-000002", "data", "journal"]);
    assert!(Manifest::create(disk.clone(), &path, &env(), vec![]).is_err());
    disk.open(Path::new(&path.join("CURRENT")), OpenMode::Read, false).unwrap();
}
