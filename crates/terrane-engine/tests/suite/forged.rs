//! Forged bytes: values that contain groups of the segment in which they will lie, and segments that are made
//! to let a repair run without end.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use support::{DIR, get, open, rows, small_options};
use terrane_base::env::Env;
use terrane_base::{SegmentId, SeqNo, TableId};
use terrane_device::{Disk, MemDisk, OpenMode};
use terrane_engine::{RepairReport, repair_on};
use terrane_format::segment::{
    self, BATCH_HEADER_BYTES, GROUP_HEADER_BYTES, GroupHeader, SEGMENT_HEADER_BYTES, SegmentHeader,
};
use terrane_levels::Manifest;

const TARGET: &str = "/repaired";
const KEY: &[u8] = b"k";

/// The segment that holds records, its id, and its bytes.
fn used_segment(disk: &MemDisk) -> (PathBuf, SegmentHeader, Vec<u8>) {
    let dir = Path::new(DIR).join("journal");
    let files = disk.list(&dir).unwrap().into_iter().filter_map(|name| {
        let file = disk.open(&dir.join(&name), OpenMode::Read, false).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(0, &mut bytes).unwrap();
        let (header, _) = SegmentHeader::decode(&bytes).ok()?;
        Some((dir.join(name), header, bytes))
    });
    files.max_by_key(|(_, _, bytes)| bytes.iter().filter(|byte| **byte != 0).count()).unwrap()
}

/// A group at `offset` of segment `id` with one record, as an attacker writes it that knows format and
/// segment but has never seen the files: `seq` is its number, and it claims that everything up to the one
/// before is durable.
fn forged(id: SegmentId, offset: usize, seq: u64) -> Vec<u8> {
    let mut batch = terrane_base::Batch::new();
    batch.put(TableId::DEFAULT, b"forged", b"never written").unwrap();
    let header = GroupHeader {
        len: segment::group_len(1, batch.bytes().len()) as u32,
        first_seq: SeqNo(seq),
        durable: SeqNo(seq - 1),
        record_count: 1,
        batch_count: 1,
        edits: 0,
    };
    let (encoded, checksum) = header.encode(segment::segment_seed(id, None), offset as u64);
    let at = offset + GROUP_HEADER_BYTES;
    let sum = segment::batch_checksum(checksum, at as u64, 1, batch.bytes());
    let mut bytes = encoded.to_vec();
    bytes.extend(segment::encode_batch_header(batch.bytes().len() as u32, 1, sum));
    bytes.extend_from_slice(batch.bytes());
    bytes.resize(header.len as usize, 0);
    bytes
}

/// A process that died with one synced row and then one whose value holds a forged group; and where that
/// row's group begins in which file.
fn database() -> (MemDisk, PathBuf, usize) {
    // A mark comes in front of the value, or not, as the background goes: most lives are alike.
    (0..100).find_map(|_| try_database()).expect("a value lies where it was made for")
}

fn try_database() -> Option<(MemDisk, PathBuf, usize)> {
    // The same writes twice: the first life shows where the value will lie.
    let write = |value: &[u8]| {
        let disk = MemDisk::new();
        let engine = open(disk.clone(), &small_options()).unwrap();
        engine.put(TableId::DEFAULT, b"first", b"row", true).unwrap();
        engine.put(TableId::DEFAULT, KEY, value, false).unwrap();
        let dead = disk.kill();
        engine.close().unwrap();
        dead
    };
    let mark = b"HERE".repeat(100);
    let (path, header, bytes) = used_segment(&write(&mark));
    let value_at = bytes.windows(mark.len()).position(|part| part == mark).unwrap();
    // Room in front, so that the damage hits the outer group and not the forged one.
    let group_at = (value_at + 64).next_multiple_of(8);
    let mut value = vec![b'x'; 400];
    let group = forged(header.id, group_at, 1000);
    value[group_at - value_at..][..group.len()].copy_from_slice(&group);
    let disk = write(&value);
    let (_, _, bytes) = used_segment(&disk);
    let is_there = bytes[group_at..group_at + group.len()] == group;
    is_there.then_some((disk, path, value_at))
}

fn flip(disk: &MemDisk, path: &Path, at: usize) {
    let file = disk.open(path, OpenMode::Write, false).unwrap();
    let mut byte = [0];
    file.read_at(at as u64, &mut byte).unwrap();
    file.write_at(at as u64, &[byte[0] ^ 4]).unwrap();
}

fn repaired(disk: &MemDisk) -> RepairReport {
    let door: Arc<dyn Disk> = Arc::new(disk.clone());
    repair_on(&door, Path::new(DIR), Path::new(TARGET), &small_options(), Env::real()).unwrap()
}

/// Groups that were never durable are cut, also if a value in them looks like a durable group.
#[test]
fn a_value_in_a_torn_group_is_not_a_durable_mark() {
    let (disk, path, value_at) = database();
    flip(&disk, &path, value_at);
    let engine = open(disk, &small_options()).unwrap_or_else(|error| panic!("{error}"));
    let table = engine.catalog().require("default").unwrap();
    assert_eq!(rows(&engine, &table).unwrap().len(), 1);
    assert_eq!(get(&engine, &table, b"first").unwrap(), Some(b"row".to_vec()));
    engine.close().unwrap();
}

/// A repair goes on behind damage, but not in the middle of a value; also where the segment's header is lost.
#[test]
fn a_value_in_a_damaged_group_brings_no_record_into_a_repair() {
    for header_is_lost in [false, true] {
        let (disk, path, value_at) = database();
        flip(&disk, &path, value_at);
        if header_is_lost {
            flip(&disk, &path, 20);
        }
        let report = repaired(&disk);
        assert!(report.losses.len() + report.doubts.len() > 0, "{report:?}");
        assert_eq!(report.records, 1, "{report:?}");
        let engine =
            terrane_engine::Engine::open_on(Arc::new(disk), Path::new(TARGET), &small_options(), Env::real())
                .unwrap();
        let table = engine.catalog().require("default").unwrap();
        assert_eq!(get(&engine, &table, b"forged").unwrap(), None);
        assert_eq!(get(&engine, &table, b"first").unwrap(), Some(b"row".to_vec()));
        engine.close().unwrap();
    }
}

/// Replaces the used segment by a longer one with the same header and `fill` behind it.
fn made_up(fill: impl Fn(&mut [u8], u32)) -> MemDisk {
    const BYTES: usize = 8 << 20;
    let (disk, path, _) = database();
    let (_, mut header, _) = used_segment(&disk);
    let state = Manifest::open_read_only(Arc::new(disk.clone()), Path::new(DIR)).unwrap().1;
    header.salt = Some(state.database.segment_salt());
    header.bytes = BYTES as u64;
    let mut bytes = vec![0; BYTES];
    bytes[..SEGMENT_HEADER_BYTES].copy_from_slice(&header.encode());
    fill(&mut bytes, segment::segment_seed(header.id, header.salt));
    let file = disk.open(&path, OpenMode::Write, false).unwrap();
    file.set_len(BYTES as u64).unwrap();
    file.write_at(0, &bytes).unwrap();
    disk
}

/// A valid group header with a batch that is not there.
fn hollow(seq: u64, len: usize, seed: u32, offset: usize) -> [u8; GROUP_HEADER_BYTES] {
    let header = GroupHeader {
        len: len as u32,
        first_seq: SeqNo(seq),
        durable: SeqNo(0),
        record_count: 1,
        batch_count: 1,
        edits: 0,
    };
    header.encode(seed, offset as u64).0
}

/// Every second number is missing: each gap is a loss of its own, and there are more than a report names.
#[test]
fn losses_without_end_are_counted_and_not_kept() {
    const LEN: usize = 48;
    let disk = made_up(|bytes, seed| {
        for (index, offset) in (SEGMENT_HEADER_BYTES..bytes.len() - LEN).step_by(LEN).enumerate() {
            bytes[offset..offset + GROUP_HEADER_BYTES].copy_from_slice(&hollow(
                2 * index as u64 + 1,
                LEN,
                seed,
                offset,
            ));
        }
    });
    let report = repaired(&disk);
    let named: usize = report.losses.iter().map(|loss| loss.error.message().len() + 100).sum();
    assert!(named <= 32 << 20, "{named} bytes of losses");
    assert!(report.losses_left_out > 10_000, "{} and {}", report.losses.len(), report.losses_left_out);
    assert!(!report.is_whole());
}

/// Each header claims the rest of the segment for a batch whose checksum is wrong: looked at one by one they
/// would take 80,000 times the segment.
#[test]
fn damaged_groups_within_damaged_groups_end() {
    let disk = made_up(|bytes, seed| {
        let end = bytes.len();
        for (index, offset) in (SEGMENT_HEADER_BYTES..end - 64).step_by(48).enumerate() {
            let len = (end - offset) / 8 * 8;
            bytes[offset..offset + GROUP_HEADER_BYTES].copy_from_slice(&hollow(
                index as u64 + 1,
                len,
                seed,
                offset,
            ));
            let batch_bytes = len - GROUP_HEADER_BYTES - BATCH_HEADER_BYTES;
            let head = segment::encode_batch_header(batch_bytes as u32, 1, 0);
            bytes[offset + GROUP_HEADER_BYTES..offset + GROUP_HEADER_BYTES + BATCH_HEADER_BYTES]
                .copy_from_slice(&head);
        }
    });
    let report = repaired(&disk);
    assert!(!report.is_whole() || !report.doubts.is_empty(), "{report:?}");
    let looked_at = report.losses.len() as u64 + report.losses_left_out;
    assert!(looked_at < 100, "{looked_at} damaged groups were checked");
}
