//! Every byte of every file of a small database, with every option that changes stored bytes: a bit of it
//! flipped, the file cut there, the file removed. Afterwards every read gives the right rows, or an error
//! that names the file; never wrong rows, never a panic.
//!
//! The database is opened for reading only, so that one image serves all flips; files that an opening writes
//! to are opened for writing as well, on a copy. Sampled by default; `TERRANE_ROT=all` takes every byte in
//! use.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use support::stored::{Rows, files, read_all};
use support::{DIR, open, small_options};
use terrane_base::options::{Compression, Options};
use terrane_base::{Error, Kind, Rng, TableId};
use terrane_device::{Disk, File, MemDisk, OpenMode};
use terrane_engine::Engine;

/// Options that change the stored bytes.
fn formats() -> Vec<(&'static str, Options)> {
    let with = |change: fn(&mut Options)| {
        let mut options = small_options();
        change(&mut options);
        options
    };
    vec![
        ("plain", with(|o| (o.compression, o.compression_last) = (Compression::None, Compression::None))),
        ("lz4", with(|o| (o.compression, o.compression_last) = (Compression::Lz4, Compression::Lz4))),
        ("no filter", with(|o| o.filter_bits_per_key = 0)),
        #[cfg(feature = "zstd")]
        ("zstd", with(|o| (o.compression, o.compression_last) = (Compression::Zstd, Compression::Zstd))),
    ]
}

/// A closed database: two tables, several levels, deletes, a large value, records in segments only.
fn database(options: &Options) -> (MemDisk, Rows) {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), options).unwrap();
    let other = engine.create_table("other", &[]).unwrap();
    let mut numbers = Rng::new(9);
    for round in 0..4u64 {
        for number in 0..60u64 {
            let key = format!("key{:04}", (number * 7 + round * 3) % 120);
            let table = if number % 3 == 0 { other.id } else { TableId::DEFAULT };
            if number % 11 == 10 {
                engine.delete(table, key.as_bytes(), false).unwrap();
                continue;
            }
            let len = if number == 30 { 3000 } else { numbers.below(90) };
            let value: Vec<u8> = (0..len).map(|_| b'a' + numbers.below(4) as u8).collect();
            engine.put(table, key.as_bytes(), &value, number % 20 == 0).unwrap();
        }
        if round < 3 {
            engine.flush().unwrap();
        }
        if round == 1 {
            let table = engine.catalog().require("default").unwrap();
            engine.compact_range(&table, &terrane_engine::Bounds::all()).unwrap();
        }
    }
    engine.wait_until_quiescent().unwrap();
    let found = read_all(&engine).unwrap();
    engine.close().unwrap();
    (disk, found)
}

/// The kind of a file, by its name.
fn kind_of(path: &Path) -> &'static str {
    let name = path.file_name().unwrap().to_string_lossy();
    match &*name {
        "CURRENT" => "CURRENT",
        "LOCK" => "LOCK",
        _ if name.starts_with("MANIFEST") => "manifest",
        _ if name.ends_with(".seg") => "segment",
        _ if name.ends_with(".ext") => "data",
        _ => panic!("what is {name}?"),
    }
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
#[derive(Clone, Copy, Debug, Default)]
struct Outcomes {
    tried: u64,
    /// The open refused.
    at_open: u64,
    /// A read refused.
    at_read: u64,
    /// Only `check` said so.
    at_check: u64,
    harmless: u64,
}

/// Outcomes by kind of damage and kind of file.
#[derive(Default)]
struct Table(BTreeMap<(&'static str, &'static str), Outcomes>);

/// The kinds of files.
const KINDS: [&str; 5] = ["data", "CURRENT", "LOCK", "manifest", "segment"];

impl Table {
    /// Every kind of file was damaged in this way, and it was noticed, but for the lock, which holds nothing.
    fn assert_noticed(&self, damage: &'static str, kinds: &[&'static str]) {
        for kind in kinds {
            let seen = self.0.get(&(damage, kind)).copied().unwrap_or_default();
            assert!(seen.tried > 0, "{damage}: {kind} was never damaged");
            assert!(*kind == "LOCK" || seen.harmless < seen.tried, "{damage}: {kind}: {seen:?}");
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| damage | file | tried | refused at open | at a read | by check | harmless |")?;
        writeln!(f, "|---|---|---|---|---|---|---|")?;
        for ((damage, kind), seen) in &self.0 {
            let Outcomes { tried, at_open, at_read, at_check, harmless } = seen;
            writeln!(f, "| {damage} | {kind} | {tried} | {at_open} | {at_read} | {at_check} | {harmless} |")?;
        }
        Ok(())
    }
}

struct Judge<'a> {
    options: &'a Options,
    expected: &'a Rows,
}

impl Judge<'_> {
    /// Opens, reads everything and checks.
    fn judge(&self, disk: &MemDisk, read_only: bool, seen: &mut Outcomes, place: &str) {
        seen.tried += 1;
        let options = Options { read_only, ..self.options.clone() };
        let engine = match open(disk.clone(), &options) {
            Ok(engine) => engine,
            Err(error) => {
                seen.at_open += 1;
                return refused(&error, place);
            }
        };
        let read = read_all(&engine);
        let points = self.read_points(&engine, place);
        let checked = engine.check(&mut |_, _| ());
        // Closing may fail on a damaged database, but only with an error.
        let _ = engine.close();
        match (read, points, checked) {
            (Ok(found), points, checked) => {
                assert!(&found == self.expected, "{place}: wrong data");
                match (points, checked) {
                    (Err(error), _) => {
                        seen.at_read += 1;
                        refused(&error, place);
                    }
                    (Ok(()), Ok(report)) if report.findings.is_empty() => seen.harmless += 1,
                    (Ok(()), Ok(report)) => {
                        seen.at_check += 1;
                        report.findings.iter().for_each(|finding| refused(&finding.error, place));
                    }
                    (Ok(()), Err(error)) => {
                        seen.at_check += 1;
                        refused(&error, place);
                    }
                }
            }
            (Err(error), _, checked) => {
                seen.at_read += 1;
                refused(&error, place);
                let is_found = checked.map_or(true, |report| !report.findings.is_empty());
                assert!(is_found, "{place}: a read met {error} and check found nothing");
            }
        }
    }

    /// Point reads of every row, and of keys that are not there.
    fn read_points(&self, engine: &Engine, place: &str) -> Result<(), Error> {
        for (name, rows) in self.expected {
            let table = engine.catalog().require(name)?;
            for (key, value) in rows {
                let found = support::get(engine, &table, key)?;
                assert!(found.as_ref() == Some(value), "{place}: wrong value of {key:?}");
            }
            for absent in [&b"key"[..], b"key0000x", b"zz"] {
                assert!(support::get(engine, &table, absent)?.is_none(), "{place}: {absent:?} appeared");
            }
        }
        Ok(())
    }
}

fn refused(error: &Error, place: &str) {
    assert_eq!(error.kind(), Kind::Corrupt, "{place}: {error}");
    assert!(error.to_string().contains(DIR), "{place}: does not name a file: {error}");
    assert!(error.place().is_some(), "{place}: does not name an offset: {error}");
}

/// Places of a file: every byte in use with `TERRANE_ROT=all`, else samples; a few beyond the bytes in use.
fn places(bytes: &[u8], numbers: &mut Rng) -> Vec<u64> {
    let is_all = std::env::var("TERRANE_ROT").is_ok_and(|all| all == "all");
    let used: Vec<u64> = {
        // Runs of zeros as long as this are room that nothing was written to.
        let run = 512;
        let blocks = bytes.chunks(run).enumerate().filter(|(_, block)| block.iter().any(|byte| *byte != 0));
        blocks.flat_map(|(index, block)| (0..block.len()).map(move |at| (index * run + at) as u64)).collect()
    };
    let mut all = if is_all {
        used
    } else {
        let step = (used.len() as u64 / 60).max(1);
        used.iter().filter(|_| numbers.one_in(step)).copied().collect()
    };
    all.extend((0..8).map(|_| numbers.below(bytes.len().max(1) as u64)));
    all.retain(|at| (*at as usize) < bytes.len());
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn no_changed_byte_gives_wrong_rows() {
    let mut table = Table::default();
    for (name, options) in formats() {
        let (disk, expected) = database(&options);
        let judge = Judge { options: &options, expected: &expected };
        let mut numbers = Rng::new(1);
        for path in files(&disk) {
            let (bytes, kind) = (contents(&disk, &path), kind_of(&path));
            for at in places(&bytes, &mut numbers) {
                let place = format!("{name}: bit of byte {at} of {}", path.display());
                let flipped = bytes[at as usize] ^ (1 << numbers.below(8));
                let file = writable(&disk, &path);
                file.write_at(at, &[flipped]).unwrap();
                judge.judge(&disk, true, table.0.entry(("bit flipped", kind)).or_default(), &place);
                // Every byte of a file that has few.
                if kind != "data" && (bytes.len() < 100 || numbers.one_in(4)) {
                    let seen = table.0.entry(("bit flipped, opened for writing", kind)).or_default();
                    judge.judge(&disk.kill(), false, seen, &place);
                }
                file.write_at(at, &[bytes[at as usize]]).unwrap();
            }
        }
        let mut seen = Outcomes::default();
        judge.judge(&disk, true, &mut seen, "undamaged again");
        assert_eq!(seen.harmless, 1, "the flips were taken back");
    }
    println!("{table}");
    table.assert_noticed("bit flipped", &KINDS);
    table.assert_noticed("bit flipped, opened for writing", &KINDS[1..]);
}

#[test]
fn no_changed_file_length_gives_wrong_rows() {
    let mut table = Table::default();
    for (name, options) in formats() {
        let (disk, expected) = database(&options);
        let judge = Judge { options: &options, expected: &expected };
        let mut numbers = Rng::new(2);
        for path in files(&disk) {
            let (bytes, kind) = (contents(&disk, &path), kind_of(&path));
            for at in places(&bytes, &mut numbers).into_iter().step_by(3) {
                let copy = disk.kill();
                writable(&copy, &path).set_len(at).unwrap();
                let place = format!("{name}: {} cut at {at}", path.display());
                judge.judge(&copy, true, table.0.entry(("cut", kind)).or_default(), &place);
                judge.judge(
                    &copy,
                    false,
                    table.0.entry(("cut, opened for writing", kind)).or_default(),
                    &place,
                );
            }
            let copy = disk.kill();
            copy.remove(&path).unwrap();
            let place = format!("{name}: {} removed", path.display());
            judge.judge(&copy, true, table.0.entry(("removed", kind)).or_default(), &place);
            judge.judge(
                &copy,
                false,
                table.0.entry(("removed, opened for writing", kind)).or_default(),
                &place,
            );
        }
    }
    println!("{table}");
    for damage in ["cut", "cut, opened for writing", "removed", "removed, opened for writing"] {
        table.assert_noticed(damage, &KINDS);
    }
}
