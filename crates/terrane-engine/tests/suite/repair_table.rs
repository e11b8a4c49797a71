//! The rows that damage of each kind of file takes, after a repair: as a table, with what it may take.
//!
//! `cargo test -p terrane-engine --test suite repair_table -- --nocapture` prints the table;
//! `TERRANE_REPAIR_PLACES` is the number of bytes that are flipped in each part.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::repair::{contents, files};
use crate::support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use support::{DIR, number_from_env, open, rows, small_options};
use terrane_base::TableId;
use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_device::{Disk, MemDisk, OpenMode};
use terrane_engine::{Bounds, Engine, repair_on};
use terrane_format::extent::origin::ORIGIN_BYTES_MIN;
use terrane_levels::Manifest;
use terrane_storage::SLOT_BYTES;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Rows that are only in the journal.
const LATE: u64 = 60;

fn options() -> Options {
    Options { value_separation_bytes: 200, ..small_options() }
}

/// Rows in extents, half of the values in value tables, and some in the journal only, as the death of the
/// process leaves them.
fn database() -> (MemDisk, Rows) {
    let disk = MemDisk::new();
    let engine = open(disk.clone(), &options()).unwrap();
    let table = engine.catalog().require("default").unwrap();
    let put = |round: u64, number: u64| {
        let len = if number.is_multiple_of(2) { 40 } else { 300 };
        let value: Vec<u8> = (0..len).map(|at| (at * 7 + number * 31 + round * 101) as u8).collect();
        engine.put(TableId::DEFAULT, format!("key{number:04}").as_bytes(), &value, false).unwrap();
    };
    for round in 0..2 {
        (0..400).for_each(|number| put(round, number));
        engine.flush().unwrap();
    }
    engine.compact_range(&table, &Bounds::all()).unwrap();
    engine.set_background_paused(true);
    (0..LATE).for_each(|number| put(2, number * 5));
    let expected = rows(&engine, &table).unwrap().into_iter().collect();
    let dead = disk.kill();
    engine.close().unwrap();
    (dead, expected)
}

/// Rows that are missing or have another value after a repair. Each loss must be reported.
fn rows_lost(disk: &MemDisk, expected: &Rows, what: &str) -> u64 {
    let (door, target): (Arc<dyn Disk>, _) = (Arc::new(disk.clone()), Path::new("/repaired"));
    let report = repair_on(&door, Path::new(DIR), target, &options(), Env::real()).unwrap();
    let engine = Engine::open_on(door, target, &options(), Env::real()).unwrap();
    let found: Rows =
        rows(&engine, &engine.catalog().require("default").unwrap()).unwrap().into_iter().collect();
    engine.close().unwrap();
    assert!(found.keys().all(|key| expected.contains_key(key)), "{what}: a row that was never there");
    let lost = expected.iter().filter(|(key, value)| found.get(*key) != Some(value)).count() as u64;
    let is_said = !report.losses.is_empty() || !report.doubts.is_empty();
    assert!(lost == 0 || is_said, "{what}: {lost} rows are lost and the report does not say so");
    lost
}

/// A kind of file, or a part of one, that is damaged.
struct Part {
    name: &'static str,
    path: PathBuf,
    /// The bytes of it that are flipped.
    from: u64,
    to: u64,
    /// Rows that it has, its versions counted.
    covers: u64,
}

/// The file of the segment with the newest groups.
fn newest_segment(disk: &MemDisk) -> PathBuf {
    let id_of = |path: &PathBuf| {
        let bytes = contents(disk, path);
        let has_groups = bytes.len() > 64 && bytes[64..].iter().any(|byte| *byte != 0);
        let id = u64::from_le_bytes(bytes.get(16..24)?.try_into().unwrap());
        has_groups.then_some(id)
    };
    let segments = files(disk).into_iter().filter(|path| path.extension().is_some_and(|end| end == "seg"));
    segments.max_by_key(id_of).unwrap()
}

/// All parts: whole files, and what an extent with rows and a value table consist of.
fn parts(disk: &MemDisk) -> (Vec<Part>, Vec<Part>) {
    let named = |part: &str| files(disk).into_iter().find(|path| path.to_string_lossy().contains(part));
    let whole = |name, path: PathBuf, covers| {
        let bytes = contents(disk, &path);
        let to = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
        Part { name, path, from: 0, to, covers }
    };
    let data = named("/data/").unwrap();
    let files = vec![
        whole("`CURRENT`", named("CURRENT").unwrap(), 0),
        whole("manifest", named("MANIFEST").unwrap(), 0),
        whole("segment", newest_segment(disk), LATE),
        whole("data file", data.clone(), 400),
    ];
    let (manifest, state) = Manifest::open(Arc::new(disk.kill()), Path::new(DIR)).unwrap();
    drop(manifest);
    let mut within = Vec::new();
    for (is_values, names) in [
        (
            false,
            [
                "extent: blocks",
                "extent: index, filter, list of value tables",
                "extent: origin",
                "extent: footer",
            ],
        ),
        (true, ["value table: blocks", "value table: index", "value table: origin", "value table: footer"]),
    ] {
        let meta = state.metas().find(|meta| meta.value_table.is_some() == is_values).unwrap();
        let start = u64::from(meta.id.slot) * SLOT_BYTES as u64;
        let references = meta.references.as_ref().map_or(0, |section| section.part.end());
        let parts_end = meta.index.end().max(meta.filter.end()).max(references);
        let footer = u64::from(meta.bytes) - meta.form().footer_bytes() as u64;
        assert!(meta.has_origin(), "extent {} does not say where it comes from", meta.id);
        let borders = [0, meta.index.offset.into(), parts_end];
        let ends = [borders[1], borders[2], parts_end + ORIGIN_BYTES_MIN as u64, meta.bytes.into()];
        let begins = [borders[0], borders[1], parts_end, footer];
        // One wrong byte of an index block is found by its checksum, and nothing else there is needed.
        let covers = [meta.entries, 0, 0, 0];
        within.extend((0..names.len()).map(|at| Part {
            name: names[at],
            path: data.clone(),
            from: start + begins[at],
            to: start + ends[at],
            covers: covers[at],
        }));
    }
    (files, within)
}

/// The most rows that a flipped byte takes, and the mean, over some places of a part.
fn flipped(disk: &MemDisk, expected: &Rows, part: &Part) -> (u64, f64) {
    let places = number_from_env("TERRANE_REPAIR_PLACES", 3).min(part.to - part.from);
    let bytes = contents(disk, &part.path);
    let lost: Vec<u64> = (0..places)
        .map(|place| {
            let at = part.from + (part.to - part.from) * (2 * place + 1) / (2 * places);
            let copy = disk.kill();
            let file = copy.open(&part.path, OpenMode::Write, false).unwrap();
            file.write_at(at, &[bytes[at as usize] ^ 0x10]).unwrap();
            rows_lost(&copy, expected, &format!("byte {at} of {}", part.name))
        })
        .collect();
    (lost.iter().copied().max().unwrap_or(0), lost.iter().sum::<u64>() as f64 / places as f64)
}

#[test]
fn damage_takes_only_the_rows_that_it_covers() {
    let (disk, expected) = database();
    let (whole, within) = parts(&disk);
    println!("{} rows, {LATE} of them in the journal only; rows lost:\n", expected.len());
    println!("| damaged | deleted | cut to half | a byte flipped: most | mean |\n|---|---|---|---|---|");
    for part in &whole {
        let copy = disk.kill();
        copy.remove(&part.path).unwrap();
        let deleted = rows_lost(&copy, &expected, &format!("{} deleted", part.name));
        let copy = disk.kill();
        copy.open(&part.path, OpenMode::Write, false).unwrap().set_len(part.to / 2).unwrap();
        let cut = rows_lost(&copy, &expected, &format!("{} cut", part.name));
        let (most, mean) = flipped(&disk, &expected, part);
        println!("| {} | {deleted} | {cut} | {most} | {mean:.1} |", part.name);
        assert!(deleted.max(cut).max(most) <= part.covers, "{}: {deleted}, {cut}, {most}", part.name);
    }
    for part in &within {
        let (most, mean) = flipped(&disk, &expected, part);
        println!("| {} | | | {most} | {mean:.1} |", part.name);
        assert!(most <= part.covers, "{}: {most} rows of {}", part.name, part.covers);
    }
}
