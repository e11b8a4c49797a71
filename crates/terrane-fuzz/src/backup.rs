//! Target: a place of backups with one manifest: listed, verified, restored and collected.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::{Error, ExtentId, Kind, SegmentId, SeqNo};
use terrane_device::{Disk, MemDisk, OpenMode};
use terrane_engine::backup::{BackupPlace, Backups, DirectoryPlace, RestoreOptions};
use terrane_format::backup::{
    BackupManifest, BackupSegment, HEADER_BYTES, ObjectKind, TRAILER_BYTES, bytes_name, extent_name, open,
    seal,
};
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::file::DatabaseId;
use terrane_format::manifest::{Edit, EditOp, Place};
use terrane_format::segment::Groups;
use terrane_levels::State;

use crate::Seed;

const PLACE: &str = "place";
const DATABASE: DatabaseId = DatabaseId(0x0123_4567_89ab);

/// The manifest object as it is, and with its frame set right around what it frames.
///
/// # Panics
/// If what was decoded is not encoded to the same, or an error is not one that the caller can act on.
pub fn run(bytes: &[u8]) {
    judge(bytes);
    if bytes.len() >= HEADER_BYTES + TRAILER_BYTES {
        judge(&framed(&bytes[HEADER_BYTES..bytes.len() - TRAILER_BYTES]));
    }
}

fn framed(body: &[u8]) -> Vec<u8> {
    let (header, trailer) = seal(ObjectKind::Manifest, 1, body);
    [&header, body, &trailer].concat()
}

fn refused(error: &Error) {
    assert!(matches!(error.kind(), Kind::Corrupt | Kind::Invalid | Kind::NotFound), "{error}");
}

fn judge(object: &[u8]) {
    if let Ok(body) = open(ObjectKind::Manifest, 1, object)
        && let Ok(manifest) = BackupManifest::decode(body)
    {
        assert!(BackupManifest::decode(&manifest.encode()).expect("what was encoded is decoded") == manifest);
        if let Ok(state) = State::from_image(&manifest.state) {
            let again =
                State::from_image(&state.to_image().expect("a sound state")).expect("what was encoded");
            assert!(again == state, "a state is read as it was written");
        }
    }
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let place = DirectoryPlace::new(disk.clone(), Path::new(PLACE));
    place.prepare().expect("a device without faults");
    let objects = example().1;
    for (name, bytes) in objects.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())) {
        let file = disk.open(&Path::new(PLACE).join(name), OpenMode::Create, false).expect("a new file");
        file.write_at(0, bytes).expect("a device without faults");
    }
    let file =
        disk.open(&Path::new(PLACE).join("backups/000001"), OpenMode::Create, false).expect("a new file");
    file.write_at(0, object).expect("a device without faults");
    let backups = Backups::new(Arc::new(place), Env::real());
    let mut go_on = |_: &_| ControlFlow::Continue(());
    let list = backups.list().expect("damage is listed");
    assert_eq!(list.backups.len() + list.damaged.len(), 1);
    let verified = backups.verify(1, 0, &mut go_on).expect("damage is a finding");
    let restored = backups.restore_on(&disk, 1, Path::new("target"), &RestoreOptions::default(), &mut go_on);
    match restored {
        Ok(_) => {}
        Err(error) => refused(&error),
    }
    assert!(!disk.exists(Path::new("target.unfinished")).expect("a device without faults"));
    if !verified.findings.is_empty() {
        let removed = backups.delete(1).expect("also a damaged one");
        assert_eq!(removed.objects, objects.len() as u64, "no other backup needs the objects");
    }
}

/// A manifest of two extents and a segment, and the other objects of its place.
fn example() -> (BackupManifest, Vec<(String, Vec<u8>)>) {
    let mut state = State::new(DATABASE, vec![("compression".into(), "lz4".into())]).expect("a new database");
    let mut objects = Vec::new();
    for (slot, level) in [(0, 1), (1, 2)] {
        let made = crate::extent::made().swap_remove(1).1;
        let meta = ExtentMeta { id: ExtentId { file: 1, slot }, slots: 1, ..made.meta };
        let name = extent_name(DATABASE, &meta);
        let (header, trailer) = seal(ObjectKind::Extent, name, &made.bytes);
        objects.push((format!("extents/{name:032x}"), [&header, made.bytes.as_slice(), &trailer].concat()));
        let add = EditOp::add(terrane_base::TableId::DEFAULT, Place::Level(level), Arc::new(meta));
        state = state.apply(&Edit { ops: vec![add] }).expect("an edit");
    }
    let segment = crate::segment::seeds().swap_remove(1).1;
    let (id, end) = {
        let (header, mut groups) = Groups::new(&segment).expect("a sound segment");
        groups.by_ref().for_each(drop);
        (header.id, groups.walk())
    };
    let source = &segment[..end.offset];
    let name = bytes_name(source);
    let (header, trailer) = seal(ObjectKind::Segment, name, source);
    objects.push((format!("segments/{name:032x}"), [&header, source, &trailer].concat()));
    let segments = vec![BackupSegment { id, bytes: source.len() as u64, last_seq: end.last_seq, name }];
    let manifest = BackupManifest {
        database: DATABASE,
        created_millis: 1_700_000_000_000,
        last_seq: end.last_seq,
        extents: 2,
        extent_bytes: 0,
        copied_bytes: 7,
        options: vec![("memory_bytes".into(), "64MiB".into())],
        segments,
        state: state.to_image().expect("a sound state"),
    };
    (manifest, objects)
}

/// Corpus of [`run`].
#[must_use]
pub fn seeds() -> Vec<Seed> {
    let whole = example().0;
    let empty = State::new(DATABASE, Vec::new()).and_then(|state| state.to_image()).expect("a new database");
    let bare = BackupManifest { options: Vec::new(), segments: Vec::new(), state: empty, ..whole.clone() };
    let lost = BackupSegment { id: SegmentId(9), bytes: 64, last_seq: SeqNo(9), name: 5 };
    let missing = BackupManifest { segments: vec![whole.segments[0], lost], ..whole.clone() };
    let manifests = [("whole", whole), ("bare", bare), ("missing", missing)];
    manifests.map(|(name, manifest)| (name.to_owned(), framed(&manifest.encode()))).into()
}
