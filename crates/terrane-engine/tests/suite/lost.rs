//! Files that are older than the rest of the database: a manifest without its last edits, a segment behind
//! the end that a recovery recorded. The opening is refused or ignores them; reads never mix two moments.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use support::{DIR, get, open, rows, small_options};
use terrane_base::{Kind, TableId};
use terrane_device::{Disk, File, MemDisk, OpenMode};
use terrane_engine::{Engine, Row};
use terrane_format::manifest::file::{FILE_HEADER_BYTES, FileHeader};
use terrane_format::manifest::record::{RecordHeader, RecordTag};
use terrane_levels::Manifest;

fn file(disk: &MemDisk, path: &Path) -> Arc<dyn File> {
    disk.open(path, OpenMode::Write, false).unwrap()
}

fn contents(file: &dyn File) -> Vec<u8> {
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

fn all_rows(engine: &Arc<Engine>) -> Vec<Row> {
    rows(engine, &engine.catalog().require("default").unwrap()).unwrap()
}

/// Rows as an opening finds them.
fn recovered(disk: &MemDisk) -> Vec<Row> {
    let engine = open(disk.clone(), &small_options()).unwrap();
    let found = all_rows(&engine);
    engine.close().unwrap();
    found
}

fn put_some(engine: &Engine, round: u64) {
    for number in 0..60u64 {
        let key = format!("key{:03}", number * 7 % 100);
        engine.put(TableId::DEFAULT, key.as_bytes(), &[round as u8 + 1; 700], false).unwrap();
    }
}

fn manifest_path(disk: &MemDisk) -> PathBuf {
    let names = disk.list(Path::new(DIR)).unwrap();
    let mut manifests = names.into_iter().filter(|name| name.starts_with("MANIFEST-"));
    let name = manifests.next().unwrap();
    assert_eq!(manifests.next(), None);
    Path::new(DIR).join(name)
}

/// Where the manifest can be cut behind its snapshot: each place with the number of the last edit before it.
fn cuts(disk: &MemDisk) -> Vec<(u64, u64)> {
    let bytes = contents(&*file(disk, &manifest_path(disk)));
    let header = FileHeader::decode(&bytes).unwrap();
    let (mut cuts, mut at, mut edit) = (Vec::new(), FILE_HEADER_BYTES as u64, header.base);
    while at < bytes.len() as u64 {
        let record = RecordHeader::decode(header.checksum(), &bytes[at as usize..]).unwrap();
        let end = at + record.record_len();
        if record.tag == RecordTag::Edit {
            // In the header, in the payload, before the last byte: as torn as a lost append.
            cuts.extend([at + 5, (at + end) / 2, end - 1].map(|cut| (cut, edit)));
            edit = record.number;
        }
        if matches!(record.tag, RecordTag::Edit | RecordTag::SnapshotEnd) {
            cuts.push((end, edit));
        }
        at = end;
    }
    cuts
}

#[derive(Debug, Default)]
struct Outcomes {
    right: u64,
    refused: u64,
    /// Of the refused, those whose text names the edit expected and the one found.
    named: u64,
}

/// Cuts the manifest at every place. `seen` is an edit that was durable before the last commit.
fn cut_everywhere(disk: &MemDisk, seen: u64, expected: &[Row]) -> Outcomes {
    let mut outcomes = Outcomes::default();
    for (cut, edit) in cuts(disk) {
        let place = format!("cut at {cut}, behind edit {edit} of {seen} seen");
        let image = disk.kill();
        file(&image, &manifest_path(&image)).set_len(cut).unwrap();
        match open(image, &small_options()) {
            Ok(engine) => {
                assert!(edit >= seen, "{place}: accepted");
                assert!(all_rows(&engine) == expected, "{place}: wrong rows");
                engine.close().unwrap();
                outcomes.right += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), Kind::Corrupt, "{place}: {error}");
                let text = error.to_string();
                let is_named = text.contains(&format!("or later, found {edit};"));
                assert!(!is_named || text.contains("`terrane repair`"), "{place}: {error}");
                outcomes.named += u64::from(is_named);
                outcomes.refused += 1;
            }
        }
    }
    outcomes
}

#[test]
fn a_manifest_cut_anywhere_is_noticed_by_the_journal() {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &small_options()).unwrap();
    for round in 0..4 {
        put_some(&engine, round);
        engine.flush().unwrap();
    }
    engine.wait_until_quiescent().unwrap();
    let (before, _) = Manifest::open_read_only(Arc::new(disk.kill()), Path::new(DIR)).unwrap();
    // With any commit the journal learns what the manifest has reached.
    engine.put(TableId::DEFAULT, b"last", b"one", false).unwrap();
    let (expected, dead) = (all_rows(&engine), disk.kill());
    engine.close().unwrap();
    for disk in [dead, disk] {
        let outcomes = cut_everywhere(&disk, before.edit_number(), &expected);
        println!("{outcomes:?}");
        assert!(outcomes.refused > 20 && outcomes.right > 0 && outcomes.named > 10, "{outcomes:?}");
        assert!(recovered(&disk) == expected);
    }
}

/// A group that a recovery could not read is cut for ever, also if its bytes become readable again.
#[test]
fn groups_that_a_recovery_cut_do_not_come_back() {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &small_options()).unwrap();
    for number in 1..=5u8 {
        engine.put(TableId::DEFAULT, &[b'k', number], &[number; 20], false).unwrap();
    }
    let disk = {
        let killed = disk.kill();
        engine.close().unwrap();
        killed
    };
    let segment = file(&disk, &Path::new(DIR).join("journal/000001.seg"));
    let bytes = contents(&*segment);
    let last = bytes.iter().rposition(|&byte| byte != 0).unwrap();
    segment.write_at(last as u64, &[!bytes[last]]).unwrap();
    let found = recovered(&disk);
    assert_eq!(found.len(), 4, "the last commit is torn");
    segment.write_at(last as u64, &bytes[last..=last]).unwrap();
    assert!(recovered(&disk) == found, "what was given up is back");
    let engine = open(disk, &small_options()).unwrap();
    let table = engine.catalog().require("default").unwrap();
    assert_eq!(get(&engine, &table, b"k\x05").unwrap(), None);
    engine.close().unwrap();
}
