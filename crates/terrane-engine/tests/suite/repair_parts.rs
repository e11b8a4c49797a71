//! Damage of each part of an extent, and repairs: a wrong byte takes the rows of its block, and no others
//! where it lies in an index block, a filter, range deletes, an origin or a footer.
//!
//! `TERRANE_REPAIR_STEP` is the distance between damaged bytes (default: about 40 places per part).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::repair::{contents, manifest_of, repaired};
use crate::repair_unlisted::data_file;
use crate::support;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use support::{DIR, get, number_from_env, open, small_options};
use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Batch, Moment, Rng, TableId};
use terrane_device::{Disk, MemDisk, OpenMode};
use terrane_engine::{Bounds, Engine, RepairReport, repair_on};
use terrane_format::extent::{ExtentMeta, Footer};
use terrane_format::index::IndexBlock;
use terrane_levels::Manifest;
use terrane_storage::SLOT_BYTES;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

const KEYS: u64 = 300;

fn key(number: u64) -> Vec<u8> {
    format!("key{number:04}").into_bytes()
}

/// Bytes that no codec makes shorter, so that extents with the same keys lie alike.
fn value(round: u64, number: u64) -> Vec<u8> {
    let mut numbers = Rng::new(round * 1000 + number);
    (0..8).flat_map(|_| numbers.next_u64().to_le_bytes()).collect()
}

fn put_round(engine: &Engine, round: u64) {
    for number in 0..KEYS {
        engine.put(TableId::DEFAULT, &key(number), &value(round, number), false).unwrap();
    }
}

fn compact(engine: &Arc<Engine>) {
    let table = engine.catalog().require("default").unwrap();
    engine.compact_range(&table, &Bounds::all()).unwrap();
}

/// Rows in one extent of many blocks, and over it a run with deletes, among them one of a range.
fn database() -> (MemDisk, Rows) {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &small_options()).unwrap();
    put_round(&engine, 1);
    compact(&engine);
    engine.set_background_paused(true);
    let mut rows: Rows = (0..KEYS).map(|number| (key(number), value(1, number))).collect();
    for number in (0..KEYS).step_by(7) {
        engine.delete(TableId::DEFAULT, &key(number), false).unwrap();
        rows.remove(&key(number));
    }
    engine.delete_range(TableId::DEFAULT, &key(40), &key(90), false).unwrap();
    rows.retain(|at, _| !(key(40)..key(90)).contains(at));
    for number in 80..100 {
        engine.put(TableId::DEFAULT, &key(number), &value(2, number), false).unwrap();
        rows.insert(key(number), value(2, number));
    }
    engine.flush_to_run(&engine.catalog().require("default").unwrap()).unwrap();
    let dead = disk.kill();
    engine.close().unwrap();
    (dead, rows)
}

/// Rows in blocks of their own, so that the index block is long.
fn rows_of_blocks() -> (MemDisk, Rows) {
    let (disk, mut numbers) = (MemDisk::new(), Rng::new(9));
    let engine = open(disk.clone(), &small_options()).unwrap();
    let mut long = || (0..1000).map(|_| numbers.next_u64() as u8).collect();
    let rows: Rows = (0..KEYS).map(|number| (key(number), long())).collect();
    for (key, value) in &rows {
        engine.put(TableId::DEFAULT, key, value, false).unwrap();
    }
    compact(&engine);
    let dead = disk.kill();
    engine.close().unwrap();
    (dead, rows)
}

/// The metas of all extents that the manifest names.
fn metas(disk: &MemDisk) -> Vec<ExtentMeta> {
    let (manifest, state) = Manifest::open(Arc::new(disk.kill()), Path::new(DIR)).unwrap();
    drop(manifest);
    state.metas().map(|meta| meta.as_ref().clone()).collect()
}

fn start_of(meta: &ExtentMeta) -> usize {
    meta.id.slot as usize * SLOT_BYTES
}

fn extent_bytes(disk: &MemDisk, meta: &ExtentMeta) -> Vec<u8> {
    contents(disk, &data_file(disk))[start_of(meta)..][..meta.bytes as usize].to_vec()
}

/// A copy of the database in which these bytes of the extent are others.
fn written(disk: &MemDisk, meta: &ExtentMeta, at: usize, bytes: &[u8]) -> MemDisk {
    let copy = disk.kill();
    let file = copy.open(&data_file(disk), OpenMode::Write, false).unwrap();
    file.write_at((start_of(meta) + at) as u64, bytes).unwrap();
    copy
}

/// Some bytes of a part, the first and the last one among them.
fn places(part: Range<usize>) -> Vec<usize> {
    let step = number_from_env("TERRANE_REPAIR_STEP", (part.len() as u64 / 40).max(1)) as usize;
    part.clone().step_by(step).chain([part.end - 1]).collect()
}

/// The index block of an extent.
fn index_of(bytes: &[u8], meta: &ExtentMeta) -> IndexBlock {
    IndexBlock::decode(bytes[meta.index.offset as usize..meta.index.end() as usize].to_vec()).unwrap()
}

fn default_rows(disk: &MemDisk, place: &str) -> (RepairReport, Rows) {
    let (report, mut found) = repaired(disk, place);
    (report, found.remove("default").unwrap())
}

/// Returns true if `check` finds damage in the database, which a repair leaves as it is.
fn is_found_by_check(disk: &MemDisk) -> bool {
    // A reader has no jobs, which would write damaged extents again.
    let engine = open(disk.kill(), &Options { read_only: true, ..small_options() }).unwrap();
    let report = engine.check(&mut |_, _| ()).unwrap();
    engine.close().unwrap();
    !report.findings.is_empty()
}

#[test]
fn a_flipped_byte_of_an_extent_takes_at_most_the_rows_of_its_block() {
    let (disk, expected) = database();
    let mut numbers = Rng::new(1);
    let metas = metas(&disk);
    assert_eq!(metas.len(), 2, "an extent with rows, and one with deletes and range deletes");
    for meta in &metas {
        let bytes = extent_bytes(&disk, meta);
        let (index, footer) = (index_of(&bytes, meta), Footer::decode(&bytes).unwrap());
        assert!(index.len() > 1, "the loss of a block and that of all would be alike");
        let blocks = index.rows().map(|row| row.offset as usize..(row.offset + row.stored_len) as usize);
        let parts = [footer.index, footer.filter, footer.range_deletes, footer.origin];
        let parts = parts.iter().filter(|part| !part.is_empty());
        let parts = parts.map(|part| part.offset as usize..part.end() as usize);
        let end = bytes.len() - footer.encoded_len()..bytes.len();
        for (number, part) in blocks.chain(parts).chain([end]).enumerate() {
            let is_block = number < index.len();
            for at in places(part.clone()).into_iter().take(if is_block { 2 } else { usize::MAX }) {
                let place = format!("byte {at} of extent {}, part {number}", meta.id);
                let flipped = bytes[at] ^ (1 + numbers.below(255) as u8);
                let copy = written(&disk, meta, at, &[flipped]);
                let (report, found) = default_rows(&copy, &place);
                assert!(is_found_by_check(&copy), "{place}: check says that all is sound");
                if is_block {
                    let row = index.row(number);
                    let is_covered = |at: &Vec<u8>| (row.first_key..=row.last_key).contains(&at.as_slice());
                    let others = |rows: &Rows| -> Rows {
                        rows.clone().into_iter().filter(|(at, _)| !is_covered(at)).collect()
                    };
                    assert!(
                        others(&found) == others(&expected),
                        "{place}: rows of other blocks\n{report:#?}"
                    );
                    assert_eq!((report.losses.len(), report.mends.len()), (1, 0), "{place}: {report:#?}");
                    continue;
                }
                assert!(found == expected, "{place}: a row is lost or back\n{report:#?}");
                assert!(report.is_whole() && report.uncertain == 0, "{place}: {report:#?}");
                if part.start == meta.index.offset as usize {
                    assert_eq!((report.mends.len(), report.salvaged), (1, meta.entries), "{place}");
                    let said = report.mends[0].to_string();
                    assert!(said.contains("index block") && said.contains(".ext"), "{place}: {said}");
                }
            }
        }
    }
}

/// Without a manifest the footer says what the index block must be.
#[test]
fn a_flipped_byte_of_an_index_block_takes_nothing_without_a_manifest() {
    let (disk, expected) = database();
    let metas = metas(&disk);
    disk.remove(&manifest_of(&disk)).unwrap();
    let sound = default_rows(&disk.kill(), "sound extents").1;
    assert!(sound == expected, "this test is about index blocks");
    for meta in metas {
        let bytes = extent_bytes(&disk, &meta);
        let ranges = meta.range_deletes.as_ref().map(|section| section.part);
        for part in [Some(meta.index), ranges].into_iter().flatten() {
            for at in places(part.offset as usize..part.end() as usize).into_iter().step_by(4) {
                let copy = written(&disk, &meta, at, &[bytes[at] ^ 0x41]);
                let (report, found) = default_rows(&copy, &format!("byte {at} of extent {}", meta.id));
                assert!(found == expected, "byte {at} of extent {}: {report:#?}", meta.id);
                assert_eq!(report.mends.len(), 1, "{report:#?}");
            }
        }
    }
}

/// The rows that differ lie in a loss of a range of keys, and are not other ones.
fn judge(report: &RepairReport, found: &Rows, expected: &Rows, place: &str) -> usize {
    let is_lost = |at: &Vec<u8>| {
        report
            .losses
            .iter()
            .any(|loss| loss.keys.as_ref().is_some_and(|(first, last)| (first..=last).contains(&at)))
    };
    for (at, value) in found {
        assert!(expected.get(at) == Some(value) || is_lost(at), "{place}: {at:?} is old\n{report:#?}");
    }
    let lost: Vec<_> = expected.keys().filter(|at| !found.contains_key(*at)).collect();
    assert!(lost.iter().all(|at| is_lost(at)), "{place}: a loss is not named\n{report:#?}");
    lost.len()
}

#[test]
fn a_damaged_range_of_an_index_block_takes_the_rows_of_its_blocks_alone() {
    let (disk, expected) = database();
    let meta = metas(&disk).into_iter().find(|meta| meta.entries == KEYS).unwrap();
    let bytes = extent_bytes(&disk, &meta);
    let (index, start, len) = (index_of(&bytes, &meta), meta.index.offset as usize, meta.index.len as usize);
    let row_len = index.row(0).encoded_len();
    for from in (0..len - 200).step_by(row_len * 3 - 5) {
        let place = format!("200 bytes from byte {from} of the index block");
        let copy = written(&disk, &meta, start + from, &[0; 200]);
        let (report, found) = default_rows(&copy, &place);
        assert!(judge(&report, &found, &expected, &place) > 0, "{place} of {len} are damaged");
        assert_eq!((report.losses.len(), report.mends.len()), (1, 1), "{place}: {report:#?}");
        let lost = report.losses[0].entries.unwrap();
        let blocks = index.rows().filter(|row| u64::from(row.entries) * 6 >= lost).count();
        assert!(blocks > 0, "{place}: {lost} versions are more than those of six blocks");
        assert_eq!(report.salvaged + lost, KEYS, "{place}: each version is found or lost");
        assert!(report.doubts.iter().any(|doubt| doubt.to_string().contains("index block")), "{place}");
        assert!(is_found_by_check(&copy), "{place}: check says that all is sound");
    }
}

#[test]
fn a_file_that_ends_within_an_index_block_keeps_the_blocks_of_the_rows_in_front() {
    let (disk, expected) = rows_of_blocks();
    let meta = metas(&disk).into_iter().next().unwrap();
    let (start, len) = (start_of(&meta) as u64 + u64::from(meta.index.offset), u64::from(meta.index.len));
    assert!(len > 8192, "an index block of {len} bytes lies in few pages");
    let copy = disk.kill();
    copy.open(&data_file(&disk), OpenMode::Write, false).unwrap().set_len(start + len * 3 / 4).unwrap();
    let (report, found) = default_rows(&copy, "cut");
    let lost = judge(&report, &found, &expected, "cut");
    assert!((1..expected.len() * 3 / 5).contains(&lost), "{lost} rows are lost: {report:#?}");
}

/// Two compactions write the same keys, so that their extents lie alike; then the slot of the newer one has
/// parts of the older one.
#[test]
fn bytes_of_an_older_extent_in_the_slot_stay_out() {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &small_options()).unwrap();
    put_round(&engine, 1);
    compact(&engine);
    let before = disk.kill();
    let older = metas(&before).into_iter().next().unwrap();
    let stale = extent_bytes(&before, &older);
    put_round(&engine, 2);
    compact(&engine);
    let disk = disk.kill();
    engine.close().unwrap();
    let newer = metas(&disk).into_iter().next().unwrap();
    let bytes = extent_bytes(&disk, &newer);
    assert_eq!(
        (older.index.offset, older.index.len),
        (newer.index.offset, newer.index.len),
        "they lie alike"
    );
    let expected: Rows = (0..KEYS).map(|number| (key(number), value(2, number))).collect();
    let (start, end) = (newer.index.offset as usize, newer.index.end() as usize);
    let old = |range: Range<usize>| (range.start, stale[range].to_vec());
    for (place, (at, older_bytes), is_damaged) in [
        ("the whole extent", old(0..stale.len()), false),
        ("all blocks", old(0..start), false),
        ("the index block", old(start..end), false),
        ("blocks and index block, one byte of it damaged", old(0..end), true),
        ("half of the index block", old(start..(start + end) / 2), false),
        ("blocks and half of the index block", old(0..(start + end) / 2), false),
        ("half of the blocks", old(0..start / 2), true),
    ] {
        let copy = written(&disk, &newer, at, &older_bytes);
        let copy = match is_damaged {
            true => written(&copy, &newer, start + 33, &[0x5a]),
            false => copy,
        };
        let (report, found) = default_rows(&copy, place);
        judge(&report, &found, &expected, place);
        assert!(found.iter().all(|(at, value)| expected.get(at) == Some(value)), "{place}: an old value");
        assert!(!report.is_whole(), "{place}: {report:#?}");
    }
    // Behind the end of the extent lies a whole older one, and the index block is damaged beyond one byte.
    let copy = written(&disk, &newer, bytes.len(), &stale);
    let copy = written(&copy, &newer, (start + end) / 2, &[0; 90]);
    let (report, found) = default_rows(&copy, "behind the end");
    assert!(judge(&report, &found, &expected, "behind the end") > 0, "{report:#?}");
    assert!(found.iter().all(|(at, value)| expected.get(at) == Some(value)), "an old value");
}

/// With a wrong filter the extent still shows which operands it has: else those that the journal has, too,
/// would be folded once more.
#[test]
fn a_damaged_filter_folds_no_operand_twice() {
    let mut options: Options = small_options();
    options.set("merge_operator", "append").unwrap();
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &options).unwrap();
    engine.set_background_paused(true);
    for operand in ["a", "b"] {
        let mut batch = Batch::new();
        batch.merge(TableId::DEFAULT, b"key", operand.as_bytes(), Moment::NEVER).unwrap();
        engine.write(&batch, false).unwrap();
    }
    // The journal has them as well as the run, and the manifest, which is lost, that they were flushed.
    engine.flush_to_run(&engine.catalog().require("default").unwrap()).unwrap();
    let disk = disk.kill();
    engine.close().unwrap();
    let meta = metas(&disk).into_iter().next().unwrap();
    disk.remove(&manifest_of(&disk)).unwrap();
    for at in meta.filter.offset as usize..meta.filter.end() as usize {
        let byte = extent_bytes(&disk, &meta)[at];
        let copy = written(&disk, &meta, at, &[byte ^ 0xff]);
        let door: Arc<dyn Disk> = Arc::new(copy);
        let target = Path::new("/repaired");
        let report = repair_on(&door, Path::new(DIR), target, &options, Env::real()).unwrap();
        let engine = Engine::open_on(door, target, &options, Env::real()).unwrap();
        let value = get(&engine, &engine.catalog().require("default").unwrap(), b"key").unwrap();
        assert_eq!(value.as_deref(), Some(&b"ab"[..]), "byte {at}: {report:#?}");
        engine.close().unwrap();
    }
}
