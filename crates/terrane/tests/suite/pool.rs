//! A database whose journal is in a pool of persistent memory.
#![allow(clippy::disallowed_methods, reason = "a test copies the files of a process that dies")]

use std::path::{Path, PathBuf};

use terrane::{Batch, Db, Durability, Kind, Options, PoolPath, RepairReport, SeqNo, repair};

fn options(pool: &Path, is_buffered: bool) -> Options {
    let mut options = Options { memory_bytes: 16 << 20, write_memory_bytes: 4 << 20, ..Options::default() };
    for (name, value) in
        [("segment_bytes", "64KiB"), ("memtable_bytes", "256KiB"), ("global_index_bytes", "512KiB")]
    {
        options.set(name, value).unwrap();
    }
    options.pmem_path = PoolPath::at(pool.to_str().unwrap());
    options.experiments.pmem_buffered = is_buffered;
    options
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn fill(db: &Db, numbers: std::ops::Range<u32>) {
    for number in numbers {
        db.put(key(number), number.to_string().repeat(20)).unwrap();
    }
}

fn assert_has(db: &Db, count: u32) {
    for (number, row) in (0..).zip(db.default_table().iter()) {
        let (found, value) = row.unwrap();
        assert_eq!((&found[..], value.len()), (&key(number)[..], number.to_string().len() * 20));
    }
    assert_eq!(db.default_table().iter().count(), count as usize);
}

/// A copy of the database and its pool, as a process that dies now leaves them. The manifest is copied first:
/// a thread may prepare a segment meanwhile, and its file exists before the manifest names it.
fn dead(dir: &Path) -> (PathBuf, PathBuf) {
    let (data, pool) = (dir.join("dead"), dir.join("dead-pool"));
    copy_dir(&dir.join("data"), &data);
    std::fs::copy(dir.join("pool"), &pool).unwrap();
    (data, pool)
}

/// Copies the files of a directory, then its directories.
fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    let entries: Vec<_> = std::fs::read_dir(from).unwrap().map(Result::unwrap).collect();
    let (dirs, files): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|entry| entry.file_type().unwrap().is_dir());
    for file in files {
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
    dirs.iter().for_each(|dir| copy_dir(&dir.path(), &to.join(dir.file_name())));
}

fn segment_files(data: &Path) -> usize {
    std::fs::read_dir(data.join("journal")).unwrap().count()
}

/// With fences by instructions, and with fences that write to the device.
#[test]
fn rows_in_a_pool_come_back() {
    for is_buffered in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let (data, pool) = (dir.path().join("data"), dir.path().join("pool"));
        let db = Db::open_with(&data, &options(&pool, is_buffered)).unwrap();
        // Much of it goes to the levels meanwhile, and its zones are used again.
        fill(&db, 0..60_000);
        assert_eq!(segment_files(&data), 0, "all segments are in the pool");
        db.wait_until_quiescent().unwrap();
        db.pause_background();
        let (dead, dead_pool) = dead(dir.path());
        db.resume_background();
        {
            let db = Db::open_with(&dead, &options(&dead_pool, is_buffered)).unwrap();
            assert!(db.stats().segment_bytes_recovered > 0);
            assert_has(&db, 60_000);
        }
        fill(&db, 60_000..61_000);
        let (mut batch, table) = (Batch::new(), db.default_table());
        batch.put(table, key(61_000), "61000".repeat(20)).unwrap();
        db.write(&batch, Durability::Synced).unwrap();
        db.close().unwrap();
        let db = Db::open_with(&data, &options(&pool, is_buffered)).unwrap();
        assert_has(&db, 61_001);
        assert!(db.check(&mut |_, _| {}).unwrap().findings.is_empty());
    }
}

/// Readers of segments beside the opening: changes, history, a check by a reader, a checkpoint in files.
#[test]
fn every_reader_of_segments_reads_them_in_a_pool() {
    let dir = tempfile::tempdir().unwrap();
    let (data, pool) = (dir.path().join("data"), dir.path().join("pool"));
    let mut kept = options(&pool, true);
    kept.set("history_bytes", "1MiB").unwrap();
    let db = Db::open_with(&data, &kept).unwrap();
    fill(&db, 0..500);
    db.flush().unwrap();
    fill(&db, 500..1000);
    let mut changes = db.changes(SeqNo(1)).unwrap();
    assert_eq!(changes.by_ref().map(Result::unwrap).last().unwrap().last_seq(), SeqNo(1000));
    drop(changes);
    db.checkpoint(dir.path().join("copy")).unwrap();
    db.close().unwrap();
    assert_has(&Db::open(dir.path().join("copy")).unwrap(), 1000);
    let reading = Options { read_only: true, ..kept };
    let db = Db::open_with(&data, &reading).unwrap();
    assert_has(&db, 1000);
    assert!(db.check(&mut |_, _| {}).unwrap().findings.is_empty());
}

#[test]
fn a_wrong_pool_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let (data, pool) = (dir.path().join("data"), dir.path().join("pool"));
    let own = options(&pool, true);
    let db = Db::open_with(&data, &own).unwrap();
    fill(&db, 0..100);
    let refused = |data: &Path, options: &Options, kind: Kind, words: &str| {
        let error = Db::open_with(data, options).map(drop).expect_err(words);
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(words), "{words:?} is not in: {error}");
    };
    let (other, third) = (dir.path().join("other"), dir.path().join("third"));
    refused(&other, &own, Kind::Busy, "open already");
    drop(db);
    refused(&other, &own, Kind::Invalid, "belongs to another database");
    let mut without = own.clone();
    without.pmem_path = PoolPath::none();
    refused(&data, &without, Kind::Corrupt, "pmem_path");
    refused(&data, &Options { pmem_bytes: 64 << 20, ..own.clone() }, Kind::Invalid, "name its true length");
    let small = Options { pmem_bytes: 2 << 20, ..options(&dir.path().join("small"), true) };
    refused(&third, &small, Kind::Invalid, "too small");
    assert!(!dir.path().join("small").exists());
    let mut off = own.clone();
    off.set("journal", "off").unwrap();
    refused(&third, &off, Kind::Invalid, "journal=off");
    refused(&third, &Options { pmem_bytes: 8 << 20, ..without }, Kind::Invalid, "pmem_bytes without");
    assert_has(&Db::open_with(&data, &own).unwrap(), 100);
}

/// A pool with room for little goes on in files where that is set, and comes back with both.
#[test]
fn a_full_pool_goes_on_in_files() {
    let dir = tempfile::tempdir().unwrap();
    let (data, pool) = (dir.path().join("data"), dir.path().join("pool"));
    let small = Options { pmem_bytes: 1 << 20, pmem_full_to_file: true, ..options(&pool, true) };
    let db = Db::open_with(&data, &small).unwrap();
    db.pause_background();
    fill(&db, 0..14_000);
    assert!(segment_files(&data) > 2, "{} files", segment_files(&data));
    let (dead, dead_pool) = dead(dir.path());
    let mut again = small;
    again.pmem_path = PoolPath::at(dead_pool.to_str().unwrap());
    assert_has(&Db::open_with(&dead, &again).unwrap(), 14_000);
}

/// Runs a process that dies with `count` rows of its database in the pool and none in the levels. Returns the
/// directory and the bytes of the pool.
fn left_in_pool(dir: &Path, count: u32) -> (PathBuf, Vec<u8>) {
    let db = Db::open_with(dir.join("data"), &options(&dir.join("pool"), true)).unwrap();
    db.pause_background();
    fill(&db, 0..count);
    let (dead, dead_pool) = dead(dir);
    (dead, std::fs::read(dead_pool).unwrap())
}

/// Repairs `data` with a pool of these bytes into `name`; returns the report and the keys that are there.
fn repaired(data: &Path, bytes: &[u8], name: &str) -> (RepairReport, Vec<u32>) {
    let dir = data.parent().unwrap();
    let (pool, target) = (dir.join("damaged-pool"), dir.join(name));
    std::fs::write(&pool, bytes).unwrap();
    let report = repair(data, &target, &options(&pool, true)).unwrap();
    assert_eq!(std::fs::read(&pool).unwrap(), bytes, "the pool is only read");
    let db = Db::open(&target).unwrap();
    let rows = db.default_table().iter().map(|row| {
        let (key, value) = row.unwrap();
        let number = u32::from_be_bytes(key[..].try_into().unwrap());
        assert_eq!(value, number.to_string().repeat(20).as_bytes(), "no row is made up");
        number
    });
    (report, rows.collect())
}

/// Where the value of a row is in a pool. It is looked for behind its key: 998998..998 lies in 899899..899
/// and an 8 that may follow it.
fn place_of(bytes: &[u8], number: u32) -> usize {
    let (key, value) = (number.to_be_bytes(), number.to_string().repeat(20));
    let row = [&key[..], value.as_bytes()].concat();
    bytes.windows(row.len()).position(|window| window == row).unwrap() + key.len()
}

fn remove_manifest(data: &Path) {
    for entry in std::fs::read_dir(data).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "CURRENT" || name.starts_with("MANIFEST") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
}

/// With and without a manifest, and with a damaged head of the pool.
#[test]
fn a_repair_reads_a_pool() {
    const COUNT: u32 = 2000;
    let dir = tempfile::tempdir().unwrap();
    let (dead, pool) = left_in_pool(dir.path(), COUNT);
    let all: Vec<u32> = (0..COUNT).collect();
    let (report, found) = repaired(&dead, &pool, "whole");
    assert!(report.is_whole() && found == all, "{report:?}");
    let without = repair(&dead, dir.path().join("without"), &Options::default()).unwrap();
    let lost: Vec<String> = without.losses.iter().map(|loss| loss.error.to_string()).collect();
    let doubts: Vec<String> = without.doubts.iter().map(ToString::to_string).collect();
    assert!(!lost.is_empty() || !doubts.is_empty(), "segments are missing");

    let damaged = |at: usize| {
        let mut bytes = pool.clone();
        bytes[at] ^= 0x10;
        bytes
    };
    // The word of the first zone, then the superblock: the segments say where they are.
    let words = (4096..64 << 10).step_by(8);
    let mut words = words.filter(|at| pool[*at..at + 8] != [0; 8]);
    let (report, found) = repaired(&dead, &damaged(words.next().unwrap()), "word");
    assert!(found == all && report.is_whole() && !report.doubts.is_empty(), "{report:?}");
    let (report, found) = repaired(&dead, &damaged(20), "superblock");
    assert!(found == all && !report.doubts.is_empty(), "{report:?}");
    // Of the segment that is ready and was never used nothing tells where it was.
    assert!(report.losses.len() <= 1, "{report:?}");
    let mut other_version = pool.clone();
    other_version[8] += 1;
    let sum = crc_of_header(&other_version);
    other_version[12..16].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(dir.path().join("damaged-pool"), other_version).unwrap();
    let refused = |pool: &str, kind: Kind, words: &str| {
        let pool = dir.path().join(pool);
        let error = repair(&dead, dir.path().join("none"), &options(&pool, true)).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(words), "{words:?} is not in: {error}");
        assert!(error.to_string().contains(pool.to_str().unwrap()), "no path in: {error}");
    };
    refused("damaged-pool", Kind::Invalid, "format version 2");
    refused("no-pool", Kind::NotFound, "there is no pool");
    let held = Db::open_with(dir.path().join("data"), &options(&dir.path().join("pool"), true)).unwrap();
    refused("pool", Kind::Busy, "open already");
    drop(held);

    remove_manifest(&dead);
    let (_, found) = repaired(&dead, &pool, "no-manifest");
    assert_eq!(found, all);
    let (_, found) = repaired(&dead, &damaged(20), "no-manifest-no-superblock");
    assert_eq!(found, all);
}

/// A flipped byte takes the group that it is in, and no other one.
#[test]
fn a_flipped_byte_in_a_pool_loses_its_group() {
    const COUNT: u32 = 1000;
    let dir = tempfile::tempdir().unwrap();
    let (dead, pool) = left_in_pool(dir.path(), COUNT);
    for has_manifest in [true, false] {
        for number in [100, COUNT / 2, COUNT - 2] {
            let mut bytes = pool.clone();
            bytes[place_of(&pool, number)] ^= 1;
            let (report, found) = repaired(&dead, &bytes, &format!("{has_manifest}-{number}"));
            let expected: Vec<u32> = (0..COUNT).filter(|other| *other != number).collect();
            assert_eq!(found, expected, "has_manifest {has_manifest}");
            assert!(!report.is_whole(), "the loss is reported");
        }
        remove_manifest(&dead);
    }
}

/// A pool that is shorter than it was: the records in front of its end come over.
#[test]
fn a_repair_reads_the_rest_of_a_short_pool() {
    const COUNT: u32 = 2000;
    let dir = tempfile::tempdir().unwrap();
    let (dead, pool) = left_in_pool(dir.path(), COUNT);
    let cut = place_of(&pool, COUNT / 2) / 64 * 64;
    let (report, found) = repaired(&dead, &pool[..cut], "short");
    assert!(!report.is_whole(), "the loss is reported");
    // To find a row is a search of the whole pool.
    let before = (0..COUNT).step_by(16).filter(|number| place_of(&pool, *number) + 200 < cut);
    let before: Vec<u32> = before.collect();
    assert!(before.len() > 6, "{} rows in front of the cut", before.len());
    for number in before {
        assert!(found.binary_search(&number).is_ok(), "row {number} is in front of the cut");
    }
}

/// The checksum of a pool's header (`docs/format/pmem-region.md`).
fn crc_of_header(bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(0x7e44_a131, &bytes[..12]), &bytes[16..64])
}

/// Where bytes occur in a file.
fn places(file: &[u8], bytes: &[u8]) -> Vec<usize> {
    (0..file.len() - bytes.len()).filter(|at| file[*at..].starts_with(bytes)).collect()
}

/// A reader of the memtable gets the bytes that are in the pool: a value that changes there, in the one place
/// where it is, is read as it is then.
#[test]
fn records_of_a_memtable_are_read_where_the_pool_has_them() {
    let dir = tempfile::tempdir().unwrap();
    let (data, pool) = (dir.path().join("data"), dir.path().join("pool"));
    let db = Db::open_with(&data, &options(&pool, true)).unwrap();
    db.pause_background();
    let value = "a value that is nowhere else, -----";
    db.put("key", value).unwrap();
    let found = places(&std::fs::read(&pool).unwrap(), value.as_bytes());
    assert_eq!(found.len(), 1, "the record is in the pool once");
    let changed = value.replace('-', "+");
    let file = std::fs::OpenOptions::new().write(true).open(&pool).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, changed.as_bytes(), found[0] as u64).unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), changed.as_bytes(), "no copy is read");
}
