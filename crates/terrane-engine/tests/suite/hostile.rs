//! Damaged bytes: every file of a small database, damaged in every region. Opening, reading everything and
//! checking either gives the right data or an error that names the file; never a panic, never wrong data.
//!
//! `TERRANE_HOSTILE_STEP` is the distance between damaged bytes of a data file (small files are sampled
//! denser).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use support::stored::{Rows, files, read_all};
use support::{DIR, get, number_from_env, open, part_of_cuts, small_options};
use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Error, Kind, Rng, TableId};
use terrane_device::{Disk, File, MemDisk, OpenMode, PosixDisk};
use terrane_engine::Engine;

/// A closed store with extents in levels, records in segments, two tables, and its rows.
fn store() -> (MemDisk, Rows) {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &small_options()).unwrap();
    let other = engine.create_table("other", &[]).unwrap();
    let mut numbers = Rng::new(4);
    for round in 0..3u64 {
        for number in 0..150u64 {
            let value: Vec<u8> = (0..40).flat_map(|_| numbers.next_u64().to_le_bytes()).collect();
            let table = if number % 3 == 0 { other.id } else { TableId::DEFAULT };
            engine
                .put(table, format!("key{:04}", (number * 7 + round) % 200).as_bytes(), &value, false)
                .unwrap();
        }
        if round < 2 {
            engine.flush().unwrap();
        }
    }
    engine.wait_until_quiescent().unwrap();
    let found = read_all(&engine).unwrap();
    engine.close().unwrap();
    (disk, found)
}

fn contents(disk: &MemDisk, path: &Path) -> Vec<u8> {
    let file = disk.open(path, OpenMode::Read, false).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

fn writable(disk: &MemDisk, path: &Path) -> Arc<dyn File> {
    disk.open(path, OpenMode::Write, false).unwrap()
}

/// The outcomes of damaged databases.
#[derive(Debug, Default)]
struct Outcomes {
    right: u64,
    refused: u64,
    found_by_check: u64,
}

impl Outcomes {
    /// Opens the store, reads everything twice (scan and point reads) and checks it.
    fn judge(&mut self, disk: MemDisk, expected: &Rows, place: &str) {
        let options = small_options();
        let engine = match open(disk, &options) {
            Ok(engine) => engine,
            Err(error) => return self.refuse(&error, place),
        };
        match read_all(&engine) {
            Ok(found) => assert!(&found == expected, "{place}: wrong data"),
            Err(error) => self.refuse(&error, place),
        }
        for (name, rows) in expected {
            let Some(table) = engine.catalog().find(name) else { panic!("{place}: no table {name}") };
            for (key, value) in rows.iter().step_by(5) {
                match get(&engine, &table, key) {
                    Ok(found) => assert!(found.as_ref() == Some(value), "{place}: wrong value of {key:?}"),
                    Err(error) => self.refuse(&error, place),
                }
            }
        }
        match engine.check(&mut |_, _| ()) {
            Ok(report) if report.findings.is_empty() => self.right += 1,
            Ok(report) => {
                self.found_by_check += 1;
                report.findings.iter().for_each(|finding| self.refuse(&finding.error, place));
            }
            Err(error) => self.refuse(&error, place),
        }
        // Closing may fail on a damaged store, but only with an error.
        let _ = engine.close();
    }

    fn refuse(&mut self, error: &Error, place: &str) {
        assert!(
            [Kind::Corrupt, Kind::Io, Kind::NotFound, Kind::Invalid].contains(&error.kind()),
            "{place}: {error}"
        );
        assert!(error.to_string().contains(DIR), "{place}: does not name a file: {error}");
        self.refused += 1;
    }
}

/// Offsets worth damaging: all near the beginning and the end of the bytes in use, samples between.
fn offsets(bytes: &[u8], numbers: &mut Rng) -> Vec<u64> {
    let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last as u64 + 1);
    let step = number_from_env("TERRANE_HOSTILE_STEP", 4096).min((used / 24).max(1));
    let dense = (0..used.min(48)).step_by(3).chain((used.saturating_sub(48)..used).step_by(3));
    let sampled = (0..used / step).map(|index| index * step + numbers.below(step));
    let mut all: Vec<_> = dense.chain(sampled).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn a_flipped_bit_is_noticed_or_harmless() {
    let (disk, expected) = store();
    let mut numbers = Rng::new(1);
    let mut outcomes = Outcomes::default();
    let (first, part) = part_of_cuts();
    for path in files(&disk) {
        let bytes = contents(&disk, &path);
        for (index, offset) in (0..).zip(offsets(&bytes, &mut numbers)) {
            // Drawn for each, so that a part has the bits of the whole.
            let bit = numbers.below(8);
            if index % part != first {
                continue;
            }
            let copy = disk.kill();
            let flipped = bytes[offset as usize] ^ (1 << bit);
            writable(&copy, &path).write_at(offset, &[flipped]).unwrap();
            outcomes.judge(copy, &expected, &format!("bit {bit} of byte {offset} of {}", path.display()));
        }
    }
    println!("{outcomes:?}");
    assert!(outcomes.refused > 20 / part, "{outcomes:?}");
}

#[test]
fn a_truncated_or_zeroed_file_is_noticed_or_harmless() {
    let (disk, expected) = store();
    let mut numbers = Rng::new(2);
    let mut outcomes = Outcomes::default();
    let (first, part) = part_of_cuts();
    for path in files(&disk) {
        let bytes = contents(&disk, &path);
        for (index, offset) in (0..).zip(offsets(&bytes, &mut numbers).into_iter().step_by(2)) {
            let zeroed = 1 + numbers.below(4096);
            if index % part != first {
                continue;
            }
            let copy = disk.kill();
            writable(&copy, &path).set_len(offset).unwrap();
            outcomes.judge(copy, &expected, &format!("{} cut at {offset}", path.display()));
            let copy = disk.kill();
            let len = zeroed.min(bytes.len() as u64 - offset);
            writable(&copy, &path).write_at(offset, &vec![0; len as usize]).unwrap();
            outcomes.judge(copy, &expected, &format!("{} zeroed at {offset} for {len}", path.display()));
        }
    }
    println!("{outcomes:?}");
    assert!(outcomes.refused > 20 / part, "{outcomes:?}");
}

#[test]
fn a_missing_or_exchanged_file_is_noticed_or_harmless() {
    let (disk, expected) = store();
    let mut outcomes = Outcomes::default();
    let all = files(&disk);
    for path in &all {
        let copy = disk.kill();
        copy.remove(path).unwrap();
        outcomes.judge(copy, &expected, &format!("{} missing", path.display()));
    }
    let saved: Vec<_> = all.iter().map(|path| contents(&disk, path)).collect();
    for (a, first) in all.iter().enumerate() {
        for (b, second) in all.iter().enumerate().skip(a + 1) {
            let copy = disk.kill();
            for (path, bytes) in [(first, &saved[b]), (second, &saved[a])] {
                let file = writable(&copy, path);
                file.set_len(0).unwrap();
                file.write_at(0, bytes).unwrap();
            }
            let place = format!("{} and {} exchanged", first.display(), second.display());
            outcomes.judge(copy, &expected, &place);
        }
    }
    println!("{outcomes:?}");
    assert!(outcomes.refused > 10, "{outcomes:?}");
}

/// An older copy of one file, as a careless restore leaves it.
#[test]
fn a_file_from_an_earlier_moment_is_noticed_or_harmless() {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &small_options()).unwrap();
    for number in 0..200u64 {
        engine.put(TableId::DEFAULT, &number.to_be_bytes(), &[1; 700], false).unwrap();
    }
    engine.flush().unwrap();
    engine.close().unwrap();
    let before = disk.kill();
    let engine = open(disk.clone(), &small_options()).unwrap();
    for number in 0..200u64 {
        engine.put(TableId::DEFAULT, &number.to_be_bytes(), &[2; 700], false).unwrap();
    }
    engine.flush().unwrap();
    engine.wait_until_quiescent().unwrap();
    let expected = read_all(&engine).unwrap();
    engine.close().unwrap();
    let mut outcomes = Outcomes::default();
    for path in files(&before).iter().filter(|path| files(&disk).contains(path)) {
        // The manifest and CURRENT together are an older database, sound in itself if its extents are.
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("MANIFEST")) {
            continue;
        }
        let copy = disk.kill();
        let bytes = contents(&before, path);
        let file = writable(&copy, path);
        file.set_len(0).unwrap();
        file.write_at(0, &bytes).unwrap();
        outcomes.judge(copy, &expected, &format!("an earlier {}", path.display()));
    }
    println!("{outcomes:?}");
}

#[test]
fn a_foreign_directory_is_refused_and_left_alone() {
    for name in ["notes.txt", "IDENTITY", "000005.sst", "journal.txt"] {
        let disk = MemDisk::new();
        disk.create_dir(Path::new(DIR)).unwrap();
        let path = Path::new(DIR).join(name);
        let file = disk.open(&path, OpenMode::Create, false).unwrap();
        file.write_at(0, b"of another program").unwrap();
        let error = open(disk.clone(), &small_options()).map(drop).unwrap_err();
        assert!([Kind::Invalid, Kind::Corrupt].contains(&error.kind()), "{name}: {error}");
        assert!(error.to_string().contains(DIR), "{error}");
        assert_eq!(contents(&disk, &path), b"of another program");
        let left: Vec<_> = disk.list(Path::new(DIR)).unwrap();
        assert_eq!(left, vec![name.to_owned()], "nothing was made beside it");
    }
}

#[test]
fn a_second_opening_is_refused_with_the_process_of_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let open = || Engine::open_on(Arc::new(PosixDisk::new()), &path, &small_options(), Env::real());
    let engine = open().unwrap();
    let error = open().map(drop).unwrap_err();
    assert_eq!(error.kind(), Kind::Busy);
    let text = error.to_string();
    assert!(text.contains(path.to_str().unwrap()), "{text}");
    assert!(text.contains(&std::process::id().to_string()), "{text}");
    engine.close().unwrap();
    open().unwrap().close().unwrap();
}

#[test]
fn a_read_only_open_writes_nothing_and_refuses_writes() {
    let (closed, expected) = store();
    // Closed, and as a death in the middle leaves it.
    let running = closed.kill();
    let engine = open(running.clone(), &small_options()).unwrap();
    engine.put(TableId::DEFAULT, b"key0001", b"newer", false).unwrap();
    let dead = running.kill();
    let expected_dead = read_all(&engine).unwrap();
    engine.close().unwrap();
    let read_only = Options { read_only: true, ..small_options() };
    for (disk, expected) in [(closed, expected), (dead, expected_dead)] {
        let contents_of = |disk: &MemDisk| -> BTreeMap<PathBuf, Vec<u8>> {
            files(disk).into_iter().map(|path| (path.clone(), contents(disk, &path))).collect()
        };
        let before = contents_of(&disk);
        let engine = open(disk.clone(), &read_only).unwrap();
        // Another reader beside it.
        open(disk.clone(), &read_only).unwrap().close().unwrap();
        assert!(read_all(&engine).unwrap() == expected);
        assert!(engine.check(&mut |_, _| ()).unwrap().findings.is_empty());
        let refusals = [
            engine.put(TableId::DEFAULT, b"k", b"v", false).unwrap_err(),
            engine.delete(TableId::DEFAULT, b"k", true).unwrap_err(),
            engine.flush().unwrap_err(),
            engine.sync().unwrap_err(),
            engine.create_table("more", &[]).map(drop).unwrap_err(),
            engine.drop_table("other").unwrap_err(),
        ];
        for refusal in refusals {
            assert_eq!(refusal.kind(), Kind::Invalid, "{refusal}");
            assert!(refusal.to_string().contains("read_only"), "{refusal}");
        }
        engine.close().unwrap();
        assert!(contents_of(&disk) == before, "a read-only open changed something");
    }
}

#[test]
fn a_read_only_opening_without_a_database_creates_no_file() {
    let disk = MemDisk::new();
    let error = open(disk.clone(), &Options { read_only: true, ..small_options() }).map(drop).unwrap_err();
    assert!([Kind::NotFound, Kind::Invalid].contains(&error.kind()), "{error}");
    assert!(!disk.exists(Path::new(DIR)).unwrap());
}
