//! A database whose journal is in a pool of persistent memory.
#![allow(clippy::disallowed_methods, reason = "a test copies the files of a process that dies")]

use std::path::{Path, PathBuf};

use terrane::{Batch, Db, Durability, Kind, Options, PoolPath, SeqNo};

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

/// A copy of the database and its pool, as a process that dies now leaves them. The manifest is copied first: a
/// thread may prepare a segment meanwhile, and its file exists before the manifest names it.
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
fn what_is_in_a_pool_comes_back() {
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

/// What reads segments beside the opening: changes, history, a check by a reader, a checkpoint in files.
#[test]
fn what_reads_segments_reads_them_in_a_pool() {
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
