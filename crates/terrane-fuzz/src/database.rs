//! Target: a whole database with one damaged file. Bytes: the number of the file, which checksums are set
//! right, then the damage, change by change.
//!
//! All of it happens in a stepped world, so an input repeats exactly. Damage of a data file hits extents that
//! live; set right are then the checksums of their blocks, index, filter and footer, and of their metas in
//! the manifest.
//!
//! Without repair, every answer is right or an error that names a file. With the checksums set right the
//! bytes may say something else as well as they said the truth; then nothing panics, hangs or takes memory
//! without bound.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use terrane_base::options::Options;
use terrane_base::{Error, ExtentId, Kind, Result, Rng, TableId};
use terrane_device::{Disk, MemDisk, OpenMode};
use terrane_engine::{Bounds, Engine, ReadMode, Row, Table};
use terrane_format::manifest::file::parse_file_name;
use terrane_levels::Manifest;
use terrane_sim::SteppedWorld;
use terrane_storage::SLOT_BYTES;

use crate::Seed;
use crate::input::Input;
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
        // Damage to the journal is a part of the test.
        close_flush: false,
        background_threads: 1,
        ..Options::default()
    }
}

/// Opens the database on a device in memory, in `world`.
///
/// # Errors
/// The engine's.
pub fn open(disk: impl Disk + 'static, world: &SteppedWorld) -> Result<Arc<Engine>> {
    world.begin_operation();
    Engine::open_on(Arc::new(disk), Path::new(DIR), &small_options(), world.env())
}

/// Every row of a table at the present.
///
/// # Errors
/// The engine's.
///
/// # Panics
/// If a scan backward gives other rows than one forward.
pub fn rows(engine: &Arc<Engine>, table: &Table) -> Result<Vec<Row>> {
    let (forward, backward) = both_ways(engine, table)?;
    assert!(forward == backward, "table {:?}: a backward scan differs", table.name);
    Ok(forward)
}

/// The rows of a scan forward, and those of one backward, in the same order.
fn both_ways(engine: &Arc<Engine>, table: &Table) -> Result<(Vec<Row>, Vec<Row>)> {
    let seq = engine.visible();
    let forward: Vec<Row> = engine.range(table, Bounds::all(), seq).collect::<Result<_>>()?;
    let mut backward: Vec<Row> = engine.range(table, Bounds::all(), seq).rev().collect::<Result<_>>()?;
    backward.reverse();
    Ok((forward, backward))
}

type Rows = BTreeMap<String, Vec<Row>>;

/// A closed database: two tables, extents in levels, records in segments.
struct Base {
    disk: MemDisk,
    files: Vec<DamagedFile>,
    rows: Rows,
}

/// A file of the database, to be damaged.
struct DamagedFile {
    path: PathBuf,
    bytes: Vec<u8>,
    /// Where something lies: all up to the last byte that is not zero, or the extents that live.
    places: Vec<Range<usize>>,
    /// The extents at those places.
    extents: Vec<ExtentId>,
}

impl DamagedFile {
    /// The offset of byte `number` of all that lies in the file.
    fn place(&self, number: usize) -> usize {
        let len: usize = self.places.iter().map(Range::len).sum();
        let mut number = number % (len + 1);
        for place in &self.places {
            if number < place.len() {
                return place.start + number;
            }
            number -= place.len();
        }
        self.places.last().map_or(0, |last| last.end)
    }
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
    let world = SteppedWorld::new(4);
    let engine = open(disk.clone(), &world)?;
    let other = engine.create_table("other", &[])?;
    let mut numbers = Rng::new(4);
    for round in 0..3u64 {
        for number in 0..60u64 {
            let value: Vec<u8> = (0..12).flat_map(|_| numbers.next_u64().to_le_bytes()).collect();
            let table = if number % 3 == 0 { other.id } else { TableId::DEFAULT };
            world.begin_operation();
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

fn files(disk: &MemDisk) -> Result<Vec<DamagedFile>> {
    let (_, state) = Manifest::open_read_only(Arc::new(disk.clone()), Path::new(DIR))?;
    let mut files = Vec::new();
    for dir in ["", "journal", "data"].map(|dir| Path::new(DIR).join(dir)) {
        for name in disk.list(&dir)? {
            let path = dir.join(name);
            // A directory cannot be opened.
            let Ok(file) = disk.open(&path, OpenMode::Read, false) else { continue };
            let mut bytes = vec![0; file.len()? as usize];
            file.read_at(0, &mut bytes)?;
            files.push(damaged_file(path, bytes, &state));
        }
    }
    Ok(files)
}

fn damaged_file(path: PathBuf, bytes: Vec<u8>, state: &terrane_levels::State) -> DamagedFile {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let number = name.strip_suffix(".ext").and_then(|number| number.parse::<u32>().ok());
    let trees = state.tables.values().flat_map(|table| table.extents.places());
    let metas = trees.flat_map(|(_, level)| level.iter().cloned().collect::<Vec<_>>());
    let (extents, places): (Vec<_>, Vec<_>) = metas
        .filter(|meta| Some(meta.id.file) == number)
        .map(|meta| {
            let start = meta.id.slot as usize * SLOT_BYTES;
            (meta.id, start..start + meta.bytes as usize)
        })
        .unzip();
    let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let places = if places.is_empty() { std::iter::once(0..used).collect() } else { places };
    DamagedFile { path, bytes, places, extents }
}

/// See the head of the file.
pub fn run(bytes: &[u8]) {
    let base = base();
    let mut input = Input(bytes);
    let file = &base.files[usize::from(input.u8()) % base.files.len()];
    let is_repaired = input.u8() & 1 == 1;
    let mut bytes = file.bytes.clone();
    for _ in 0..CHANGES_MAX {
        if input.is_over() {
            break;
        }
        change(&mut bytes, file, &base.files, &mut input);
    }
    let disk = base.disk.kill();
    if is_repaired {
        bytes = repaired(file, bytes, base, &disk);
    }
    replace(&disk, &file.path, &file.bytes, &bytes).expect("a device without faults");
    judge(disk, if is_repaired { None } else { Some(&base.rows) });
}

fn change(bytes: &mut Vec<u8>, file: &DamagedFile, files: &[DamagedFile], input: &mut Input<'_>) {
    let kind = input.below(8);
    let at = file.place(input.u32() as usize).min(bytes.len());
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
            let from = file.place(input.u32() as usize).min(bytes.len());
            let piece = bytes[from..(from + len).min(bytes.len())].to_vec();
            let end = (at + piece.len()).min(bytes.len());
            bytes[at..end].copy_from_slice(&piece[..end - at]);
        }
        _ => bytes.clone_from(&files[len % files.len()].bytes),
    }
}

fn repaired(file: &DamagedFile, mut bytes: Vec<u8>, base: &Base, disk: &MemDisk) -> Vec<u8> {
    let name = file.path.file_name().unwrap_or_default().to_string_lossy();
    if name.ends_with(".seg") {
        repair::segment(&mut bytes);
    } else if let Some(number) = parse_file_name(&name) {
        bytes = repair::manifest(&bytes, number);
    } else if !file.extents.is_empty() {
        repair_extents(file, &mut bytes, base, disk);
    }
    bytes
}

/// Sets right what the extents say of themselves, and then what the manifest says of them.
fn repair_extents(file: &DamagedFile, bytes: &mut [u8], base: &Base, disk: &MemDisk) {
    let mut extents = Vec::new();
    for (id, place) in file.extents.iter().zip(&file.places) {
        let Some(extent) = bytes.get_mut(place.clone()) else { continue };
        repair::extent(extent);
        extents.push((*id, extent.to_vec()));
    }
    for manifest in &base.files {
        let name = manifest.path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(number) = parse_file_name(&name) {
            let new = repair::metas(&manifest.bytes, number, &extents);
            replace(disk, &manifest.path, &manifest.bytes, &new).expect("a device without faults");
        }
    }
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
    let world = SteppedWorld::new(5);
    let engine = match open(disk, &world) {
        Ok(engine) => engine,
        Err(error) => return refuse(&error, expected),
    };
    match expected {
        Some(rows) => match read_all(&engine) {
            Ok(found) => assert!(&found == rows, "wrong data"),
            Err(error) => refuse(&error, expected),
        },
        // Bytes that lie, with checksums set right, may say something else to each scan.
        None => engine.catalog().all().iter().for_each(|table| drop(both_ways(&engine, table))),
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
    world.begin_operation();
    match engine.check(&mut |_, _| ()) {
        Ok(report) => report.findings.iter().for_each(|finding| refuse(&finding.error, expected)),
        Err(error) => refuse(&error, expected),
    }
    go_on(&engine, &world);
    // Closing may fail on a damaged database, but only with an error.
    let _ = engine.close();
}

/// Rows written after opening are read back, whatever the flush meets.
fn go_on(engine: &Arc<Engine>, world: &SteppedWorld) {
    let Some(table) = engine.catalog().find("default") else { return };
    if engine.put(table.id, b"new", b"value", false).is_ok() {
        for _ in 0..2 {
            let mut found = Vec::new();
            if let Ok(is_there) = engine.get(&table, b"new", ReadMode::default(), &mut found) {
                assert!(is_there && found == b"value", "what was written is not there");
            }
            world.begin_operation();
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
