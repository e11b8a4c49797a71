//! Targets: the edits in a manifest record, and a whole manifest file that is opened, appended to, rolled
//! over and opened again.

use std::path::Path;
use std::sync::Arc;

use terrane_base::{Error, ExtentId, Kind, Result, SegmentId, SeqNo, TableId};
use terrane_device::{Disk, MemDisk, OpenMode};
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::edit::decode_edits;
use terrane_format::manifest::file::{
    Current, DatabaseId, FILE_HEADER_BYTES, FORMAT_VERSION, FileHeader, file_name,
};
use terrane_format::manifest::record::{Link, RECORD_HEADER_BYTES, RecordTag};
use terrane_format::manifest::{self, Edit, EditOp, HistoryRule, Kept, NextIds, Place, Seal, SegmentSpec};
use terrane_levels::{Manifest, State, directory};

use crate::{Seed, corrupt_or, repair};

const DIR: &str = "db";
const FILE: u32 = 1;

/// The payload of a record: decoded, written again, and applied to a new database as far as it goes.
pub fn edit(bytes: &[u8]) {
    let Some(edits) = corrupt_or(decode_edits(bytes)) else { return };
    let mut again = Vec::new();
    edits.iter().for_each(|edit| edit.encode(&mut again));
    assert!(decode_edits(&again).expect("what was encoded is decoded") == edits);
    let mut state = State::new(DatabaseId(1), Vec::new()).expect("a new database");
    state.format_version = FORMAT_VERSION;
    for edit in &edits {
        match state.apply(edit) {
            Ok(next) => state = next,
            Err(error) => {
                assert_eq!(error.kind(), Kind::Invalid, "{error}");
                return;
            }
        }
        state.check().expect("a state that was accepted is sound");
        assert!(state.last_seq() <= SeqNo::MAX);
    }
}

/// A manifest file under the name that `CURRENT` gives: as it is, and with its checksums set right.
pub fn file(bytes: &[u8]) {
    manifest::describe(bytes, &mut |_| ());
    judge(bytes);
    let repaired = repair::manifest(bytes, FILE);
    manifest::describe(&repaired, &mut |_| ());
    judge(&repaired);
}

fn judge(bytes: &[u8]) {
    let Ok(header) = FileHeader::decode(bytes) else { return };
    let disk = MemDisk::new();
    place(&disk, &header, bytes).expect("a device without faults");
    let opened = Manifest::open(Arc::new(disk.clone()), Path::new(DIR));
    let read_only = Manifest::open_read_only(Arc::new(disk.clone()), Path::new(DIR));
    let (manifest, state) = match opened {
        Ok(opened) => opened,
        Err(error) => return refused(&error),
    };
    state.check().expect("a state that was accepted is sound");
    let (_, same) = read_only.expect("what opens for writing opens for reading");
    assert!(same == state, "both openings read the same");
    if go_on(&manifest).is_err() {
        return;
    }
    let left = State::clone(&manifest.state());
    drop(manifest);
    let (_, found) = Manifest::open(Arc::new(disk), Path::new(DIR)).expect("what was written is read");
    assert!(found == left, "what was written is found again");
}

/// Appends, rolls over and appends again: each may be refused, but then nothing is lost.
fn go_on(manifest: &Manifest) -> Result<()> {
    let note = |manifest: &Manifest| {
        manifest.append(&Edit { ops: vec![EditOp::Durable { seq: manifest.state().durable }] })
    };
    note(manifest)?;
    manifest.roll()?;
    note(manifest)?;
    manifest.close()
}

fn refused(error: &Error) {
    assert!(matches!(error.kind(), Kind::Corrupt | Kind::Invalid), "{error}");
    assert!(error.kind() == Kind::Invalid || error.to_string().contains(DIR), "names no file: {error}");
}

fn place(disk: &MemDisk, header: &FileHeader, bytes: &[u8]) -> Result<()> {
    for part in ["", directory::JOURNAL, directory::DATA] {
        disk.create_dir(&Path::new(DIR).join(part))?;
    }
    let current = Current { file: FILE, database: header.database }.encode();
    for (name, bytes) in [(directory::CURRENT, current.as_bytes()), (&file_name(FILE), bytes)] {
        disk.open(&Path::new(DIR).join(name), OpenMode::Create, false)?.write_at(0, bytes)?;
    }
    Ok(())
}

/// Edits of every sort, each valid behind those before it.
fn example() -> Vec<Edit> {
    let extent = |slot: u32, smallest: &str, largest: &str| {
        let made = crate::extent::made().swap_remove(1).1;
        let id = ExtentId { file: 1, slot };
        Arc::new(ExtentMeta { id, smallest: smallest.into(), largest: largest.into(), ..made.meta })
    };
    let (a, b, c) = (extent(0, "a", "f"), extent(1, "g", "k"), extent(2, "b", "z"));
    let users = TableId(5);
    let segment = |id: u64, file| SegmentSpec { id: SegmentId(id), file, bytes: 4096 };
    let seal = Seal { end_offset: 640, last_seq: SeqNo(77), checksum: 9 };
    let kept = |first, last| Kept {
        first_seq: SeqNo(first),
        last_seq: SeqNo(last),
        end_offset: 640,
        freed_at: 1_700_000_000_000,
    };
    let next = NextIds { table: TableId(9), segment: SegmentId(20), segment_file: 30, run: 40 };
    let options = vec![("compression".into(), "lz4".into())];
    [
        vec![EditOp::CreateTable { id: users, name: "users".into(), options: options.clone() }],
        vec![EditOp::AddSegment(segment(1, 1)), EditOp::AddSegment(segment(2, 2))],
        vec![
            EditOp::add(TableId::DEFAULT, Place::Level(1), a.clone()),
            EditOp::add(TableId::DEFAULT, Place::Level(1), b),
            EditOp::add(users, Place::Run(3), c),
            EditOp::Flushed { table: users, seq: SeqNo(50) },
        ],
        vec![EditOp::SealSegment { id: SegmentId(1), seal }, EditOp::Durable { seq: SeqNo(77) }],
        vec![EditOp::FlushedAll { seq: SeqNo(60) }],
        vec![EditOp::NextIds(next), EditOp::Epoch { epoch: 2 }, EditOp::SetOptions { id: users, options }],
        vec![
            EditOp::remove(TableId::DEFAULT, Place::Level(1), &a),
            EditOp::add(TableId::DEFAULT, Place::Level(2), a),
            EditOp::RemoveSegment { id: SegmentId(1) },
        ],
        vec![EditOp::SetHistory(HistoryRule { bytes: 1 << 20, age: 60_000 })],
        vec![EditOp::VoidMark { seq: SeqNo(78) }, EditOp::Durable { seq: SeqNo(79) }],
        vec![
            EditOp::KeepSegment { id: SegmentId(2), kept: kept(1, 77) },
            EditOp::AddSegment(segment(21, 31)),
        ],
        vec![
            EditOp::ForgetSegment { id: SegmentId(2) },
            EditOp::KeepSegment { id: SegmentId(21), kept: kept(78, 90) },
        ],
        vec![EditOp::DropTable { id: users }, EditOp::CleanClose { last_seq: SeqNo(99) }],
    ]
    .map(|ops| Edit { ops })
    .into()
}

/// Corpus of [`edit`].
#[must_use]
pub fn edit_seeds() -> Vec<Seed> {
    let edits = example();
    let encode = |edits: &[Edit]| {
        let mut bytes = Vec::new();
        edits.iter().for_each(|edit| edit.encode(&mut bytes));
        bytes
    };
    let mut seeds: Vec<Seed> =
        (1..=edits.len()).map(|count| (format!("edits-{count}"), encode(&edits[..count]))).collect();
    seeds.push(("none".into(), Vec::new()));
    seeds
}

/// Corpus of [`file()`].
#[must_use]
pub fn file_seeds() -> Vec<Seed> {
    let header = FileHeader::new(FILE, DatabaseId(0x0123_4567_89ab), 7).of_version(FORMAT_VERSION);
    let mut new = header.encode().to_vec();
    let mut link = Link { seed: header.checksum(), previous: header.checksum(), number: header.base };
    let mut create = Vec::new();
    let default = EditOp::CreateTable { id: TableId::DEFAULT, name: "default".into(), options: Vec::new() };
    Edit { ops: vec![default] }.encode(&mut create);
    link.append(RecordTag::Snapshot, &create, &mut new);
    link.append(RecordTag::SnapshotEnd, &1u64.to_le_bytes(), &mut new);
    let mut full = new.clone();
    for edit in example() {
        let mut payload = Vec::new();
        edit.encode(&mut payload);
        link.append(RecordTag::Edit, &payload, &mut full);
    }
    let mut marked = full.clone();
    link.append(RecordTag::Mark, &[], &mut marked);
    let torn = marked[..marked.len() - RECORD_HEADER_BYTES - 3].to_vec();
    assert!(torn.len() > FILE_HEADER_BYTES);
    vec![("new".into(), new), ("edits".into(), full), ("marked".into(), marked), ("torn".into(), torn)]
}
