//! Extents, devices and edits that the tests of this crate share.
#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses its part; a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::options::Compression;
use terrane_base::{ExtentId, SeqNo, TableId};
use terrane_device::{Disk, MemDisk, OpenMode};
use terrane_format::extent::{ExtentMeta, Handle, extent_bytes};
use terrane_format::manifest::{Edit, EditOp, Place};
use terrane_levels::{Manifest, ManifestSettings, State};

pub(crate) const DIR: &str = "/db";

pub(crate) fn dir() -> &'static Path {
    Path::new(DIR)
}

/// Extent `slot` of file 1, from `smallest` to `largest`.
pub(crate) fn extent(slot: u32, smallest: &[u8], largest: &[u8]) -> Arc<ExtentMeta> {
    let seq = u64::from(slot) + 1;
    Arc::new(ExtentMeta {
        id: ExtentId { file: 1, slot },
        bytes: extent_bytes((INDEX + 8192) as usize) as u32,
        raw_bytes: 3 << 20,
        smallest: smallest.to_vec(),
        largest: largest.to_vec(),
        seq_min: SeqNo(1),
        seq_max: SeqNo(seq),
        entries: 1000 + u64::from(slot),
        deletes: 10,
        blocks: 64,
        index: Handle { offset: INDEX, len: 4096, checksum: slot },
        filter: Handle { offset: INDEX + 4096, len: 4096, checksum: slot },
        format_version: 1,
        compression: Compression::Lz4,
        ..ExtentMeta::default()
    })
}

/// Where the index block of such an extent begins.
const INDEX: u32 = 1 << 20;

/// Extent `slot` that covers the numbers `first` to `last` as decimal keys.
pub(crate) fn numbered(slot: u32, first: u64, last: u64) -> Arc<ExtentMeta> {
    extent(slot, &key(first), &key(last))
}

pub(crate) fn key(number: u64) -> Vec<u8> {
    format!("user{number:012}").into_bytes()
}

pub(crate) fn add(slot: u32, level: u8) -> Edit {
    let number = u64::from(slot) * 10;
    Edit { ops: vec![EditOp::add(TableId::DEFAULT, Place::Level(level), numbered(slot, number, number + 9))] }
}

pub(crate) fn rolled_at(roll_bytes_min: u64, roll_factor: u64, roll_bytes_max: u64) -> ManifestSettings {
    ManifestSettings { roll_bytes_min, roll_factor, roll_bytes_max, ..ManifestSettings::default() }
}

pub(crate) fn env() -> Env {
    Env::real()
}

/// Settings that never roll by themselves.
pub(crate) fn still() -> ManifestSettings {
    ManifestSettings {
        roll_bytes_min: u64::MAX,
        roll_factor: 0,
        roll_bytes_max: u64::MAX,
        ..ManifestSettings::default()
    }
}

/// A new database with `edits` appended; returns the states after creation and after each edit.
pub(crate) fn database(disk: &MemDisk, edits: &[Edit]) -> (Manifest, Vec<State>) {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let (manifest, state) = Manifest::create_with(disk, dir(), &env(), Vec::new(), still()).unwrap();
    let mut states = vec![state];
    for edit in edits {
        manifest.append(edit).unwrap();
        states.push(State::clone(&manifest.state()));
    }
    (manifest, states)
}

pub(crate) fn open(disk: &MemDisk) -> terrane_base::Result<(Manifest, State)> {
    Manifest::open_with(Arc::new(disk.clone()), dir(), still())
}

pub(crate) fn read_file(disk: &dyn Disk, path: &Path) -> Vec<u8> {
    let file = disk.open(path, OpenMode::Read, false).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

pub(crate) fn write_file(disk: &dyn Disk, path: &Path, bytes: &[u8]) {
    let mode = if disk.exists(path).unwrap() { OpenMode::Write } else { OpenMode::Create };
    let file = disk.open(path, mode, false).unwrap();
    file.set_len(0).unwrap();
    file.write_at(0, bytes).unwrap();
    file.sync().unwrap();
}

/// A device with a copy of the small files of a database and `manifest` in the place of its manifest file.
pub(crate) fn with_manifest(disk: &MemDisk, number: u32, manifest: &[u8]) -> MemDisk {
    let copy = MemDisk::new();
    copy.create_dir(dir()).unwrap();
    let current = read_file(disk, &dir().join("CURRENT"));
    write_file(&copy, &dir().join("CURRENT"), &current);
    write_file(&copy, &dir().join(format!("MANIFEST-{number:06}")), manifest);
    copy
}
