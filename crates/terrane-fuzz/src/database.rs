//! Target: a whole database with one damaged file. Bytes: which file, what is set right, then the damage, change by
//! change.
//!
//! Without repair, every answer is right or an error that names a file. With the checksums set right the bytes may
//! say something else as well as they said the truth; then nothing panics, hangs or takes memory without bound.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Error, Kind, Result, TableId};
use terrane_device::{Disk, MemDisk, OpenMode};
use terrane_engine::{Bounds, Engine, ReadMode, Row, Table};
use terrane_format::manifest::file::parse_file_name;

use crate::Seed;
use crate::input::Input;
use crate::mutate::Numbers;
use crate::repair;

/// Where the database lies.
pub const DIR: &str = "/db";
const CHANGES_MAX: usize = 12;

/// The smallest limits, so that few records make segments, extents and levels.
#[must_use]
pub fn small_options() -> Options {
    Options {
        memory_bytes: 16 << 20,
        write_memory_bytes: 4 << 20,
        segment_bytes: 64 << 10,
        memtable_bytes: 64 << 10,
        global_index_bytes: 96 << 10,
        level_base_bytes: 128 << 10,
        block_bytes: 1 << 10,
        level_fanout: 2,
        background_threads: 1,
        ..Options::default()
    }
}

/// Opens the database on a device in memory.
///
/// # Errors
/// The engine's.
pub fn open(disk: impl Disk + 'static) -> Result<Arc<Engine>> {
    Engine::open_on(Arc::new(disk), Path::new(DIR), &small_options(), Env::real())
}

/// Every row of a table at the present.
///
/// # Errors
/// The engine's.
///
/// # Panics
/// If a scan backward gives other rows than one forward.
pub fn rows(engine: &Arc<Engine>, table: &Table) -> Result<Vec<Row>> {
    let seq = engine.visible();
    let forward: Vec<Row> = engine.range(table, Bounds::all(), seq).collect::<Result<_>>()?;
    let mut backward: Vec<Row> = engine.range(table, Bounds::all(), seq).rev().collect::<Result<_>>()?;
    backward.reverse();
    assert!(forward == backward, "table {:?}: a backward scan differs", table.name);
    Ok(forward)
}

type Rows = BTreeMap<String, Vec<Row>>;

/// A closed database: two tables, extents in levels, records in segments.
struct Base {
    disk: MemDisk,
    files: Vec<(PathBuf, Vec<u8>)>,
    rows: Rows,
}

fn base() -> &'static Base {
    static BASE: OnceLock<Base> = OnceLock::new();
    BASE.get_or_init(|| {
        let disk = MemDisk::new();
        let rows = fill(&disk).expect("a device without faults");
        let files = files(&disk).expect("a device without faults");
        Base { disk, files, rows }
    })
}

fn fill(disk: &MemDisk) -> Result<Rows> {
    let engine = open(disk.clone())?;
    let other = engine.create_table("other", &[])?;
    let mut numbers = Numbers(4);
    for round in 0..3u64 {
        for number in 0..60u64 {
            let value: Vec<u8> = (0..12).flat_map(|_| numbers.draw().to_le_bytes()).collect();
            let table = if number % 3 == 0 { other.id } else { TableId::DEFAULT };
            engine.put(table, format!("key{:04}", (number * 7 + round) % 80).as_bytes(), &value, false)?;
        }
        if round < 2 {
            engine.flush()?;
        }
    }
    engine.wait_until_quiescent()?;
    let rows = read_all(&engine)?;
    engine.close()?;
    Ok(rows)
}

fn read_all(engine: &Arc<Engine>) -> Result<Rows> {
    engine.catalog().all().iter().map(|table| Ok((table.name.clone(), rows(engine, table)?))).collect()
}

fn files(disk: &MemDisk) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut files = Vec::new();
    for dir in ["", "journal", "data"].map(|dir| Path::new(DIR).join(dir)) {
        for name in disk.list(&dir)? {
            let path = dir.join(name);
            // A directory cannot be opened.
            let Ok(file) = disk.open(&path, OpenMode::Read, false) else { continue };
            let mut bytes = vec![0; file.len()? as usize];
            file.read_at(0, &mut bytes)?;
            files.push((path, bytes));
        }
    }
    Ok(files)
}

/// See the head of the file.
pub fn run(bytes: &[u8]) {
    let base = base();
    let mut input = Input(bytes);
    let (path, old) = &base.files[usize::from(input.u8()) % base.files.len()];
    let is_repaired = input.u8() & 1 == 1;
    let mut bytes = old.clone();
    for _ in 0..CHANGES_MAX {
        if input.is_over() {
            break;
        }
        change(&mut bytes, &base.files, &mut input);
    }
    if is_repaired {
        bytes = repaired(path, bytes);
    }
    let disk = base.disk.kill();
    replace(&disk, path, old, &bytes).expect("a device without faults");
    judge(disk, if is_repaired { None } else { Some(&base.rows) });
}

fn change(bytes: &mut Vec<u8>, files: &[(PathBuf, Vec<u8>)], input: &mut Input<'_>) {
    let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let kind = input.below(8);
    let at = input.u32() as usize % (used + 1);
    let len = usize::from(input.u8());
    match kind {
        0..=3 => {
            let new = input.take(len % 16 + 1);
            let end = (at + new.len()).min(bytes.len());
            if at < end {
                bytes[at..end].copy_from_slice(&new[..end - at]);
            }
        }
        4 => bytes.truncate(at),
        5 => {
            let end = (at + len * 32).min(bytes.len());
            bytes[at.min(end)..end].fill(0);
        }
        6 => {
            let from = input.u32() as usize % (used + 1);
            let piece = bytes[from..(from + len).min(bytes.len())].to_vec();
            let end = (at + piece.len()).min(bytes.len());
            bytes[at..end].copy_from_slice(&piece[..end - at]);
        }
        _ => bytes.clone_from(&files[len % files.len()].1),
    }
}

fn repaired(path: &Path, mut bytes: Vec<u8>) -> Vec<u8> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.ends_with(".seg") {
        repair::segment(&mut bytes);
    } else if let Some(number) = parse_file_name(&name) {
        bytes = repair::manifest(&bytes, number);
    }
    bytes
}

/// Writes only what differs: data files are long and nearly empty.
fn replace(disk: &MemDisk, path: &Path, old: &[u8], new: &[u8]) -> Result<()> {
    const PIECE: usize = 4096;
    let file = disk.open(path, OpenMode::Write, false)?;
    if old.len() != new.len() {
        file.set_len(new.len() as u64)?;
    }
    for (number, piece) in new.chunks(PIECE).enumerate() {
        let at = number * PIECE;
        if old.get(at..at + piece.len()) != Some(piece) {
            file.write_at(at as u64, piece)?;
        }
    }
    Ok(())
}

fn judge(disk: MemDisk, expected: Option<&Rows>) {
    let engine = match open(disk) {
        Ok(engine) => engine,
        Err(error) => return refuse(&error, expected),
    };
    match (read_all(&engine), expected) {
        (Ok(found), Some(expected)) => assert!(&found == expected, "wrong data"),
        (Ok(_), None) => {}
        (Err(error), _) => refuse(&error, expected),
    }
    for (name, rows) in expected.into_iter().flatten() {
        let table = engine.catalog().find(name).expect("a table is missing");
        for (key, value) in rows.iter().step_by(7) {
            let mut found = Vec::new();
            match engine.get(&table, key, ReadMode::default(), &mut found) {
                Ok(is_there) => assert!(is_there && found == *value, "wrong value of {key:?}"),
                Err(error) => refuse(&error, expected),
            }
        }
    }
    match engine.check(&mut |_, _| ()) {
        Ok(report) => report.findings.iter().for_each(|finding| refuse(&finding.error, expected)),
        Err(error) => refuse(&error, expected),
    }
    go_on(&engine);
    // Closing may fail on a damaged database, but only with an error.
    let _ = engine.close();
}

/// What is written after opening is read back, whatever the flush meets.
fn go_on(engine: &Arc<Engine>) {
    let Some(table) = engine.catalog().find("default") else { return };
    if engine.put(table.id, b"new", b"value", false).is_ok() {
        for _ in 0..2 {
            let mut found = Vec::new();
            if let Ok(is_there) = engine.get(&table, b"new", ReadMode::default(), &mut found) {
                assert!(is_there && found == b"value", "what was written is not there");
            }
            let _ = engine.flush();
        }
    }
}

fn refuse(error: &Error, expected: Option<&Rows>) {
    if expected.is_some() {
        let kinds = [Kind::Corrupt, Kind::Io, Kind::NotFound, Kind::Invalid];
        assert!(kinds.contains(&error.kind()), "{error}");
        assert!(error.to_string().contains(DIR), "does not name a file: {error}");
    }
}

/// Corpus of [`run`].
#[must_use]
pub fn seeds() -> Vec<Seed> {
    let change =
        |kind: u8, at: u32, len: u8, new: &[u8]| [&[kind][..], &at.to_le_bytes(), &[len], new].concat();
    let mut seeds = vec![("whole".into(), vec![0, 0])];
    for file in 0..8u8 {
        let changes = [
            change(0, 70, 3, b"wxyz"),
            change(4, 300, 0, b""),
            change(5, 128, 2, b""),
            change(7, 0, file + 1, b""),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            for is_repaired in [0, 1] {
                seeds.push((
                    format!("file-{file}-{number}-{is_repaired}"),
                    [&[file, is_repaired][..], &change].concat(),
                ));
            }
        }
    }
    seeds
}
