//! The rows that damage of each kind of file takes, after a repair: as a table, with what it may take.
//!
//! `cargo test -p terrane-engine --test suite repair_table -- --nocapture` prints the table;
//! `TERRANE_REPAIR_PLACES` is the number of bytes that are flipped in each part.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::behind::{aside, journal};
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
use terrane_engine::{Bounds, Engine, RepairReport, repair_on};
use terrane_format::extent::origin::ORIGIN_BYTES_MIN;
use terrane_levels::Manifest;
use terrane_storage::SLOT_BYTES;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Rows that are only in the journal, in one segment.
const LATE: u64 = 60;
/// The one of the late rows that gets a wrong byte, so that those behind it are set aside.
const WRONG: u64 = 20;
/// Where the copy of the database lies.
const COPY: &str = "/copy";

fn options() -> Options {
    Options { value_separation_bytes: 200, ..small_options() }
}

/// Bytes of a value of which no segment has two.
fn most_of_a_segment() -> usize {
    options().segment_bytes as usize * 5 / 8
}

/// A database that is damaged in many ways, and its rows.
struct Subject {
    disk: MemDisk,
    dir: &'static str,
    expected: Rows,
}

impl Subject {
    /// Rows in extents, half of the values in value tables, and some in the journal only, as the death of the
    /// process leaves them.
    fn database() -> Subject {
        let disk = MemDisk::new();
        let engine = open(disk.clone(), &options()).unwrap();
        let table = engine.catalog().require("default").unwrap();
        let put = |number: u64, value: &[u8]| {
            engine.put(TableId::DEFAULT, format!("key{number:04}").as_bytes(), value, false).unwrap();
        };
        let put_in = |round: u64, number: u64| {
            let len = if number.is_multiple_of(2) { 40 } else { 300 };
            let value: Vec<u8> = (0..len).map(|at| (at * 7 + number * 31 + round * 101) as u8).collect();
            put(number, &value);
        };
        for round in 0..2 {
            (0..400).for_each(|number| put_in(round, number));
            engine.flush().unwrap();
        }
        // No segment has room for both; behind the second one, the rest of its segment is enough for the late
        // rows.
        (0..2).for_each(|round| put(0, &vec![round; most_of_a_segment()]));
        engine.flush().unwrap();
        engine.compact_range(&table, &Bounds::all()).unwrap();
        engine.set_background_paused(true);
        (0..LATE).for_each(|number| put_in(2, number * 5));
        let expected = rows(&engine, &table).unwrap().into_iter().collect();
        let dead = disk.kill();
        engine.close().unwrap();
        Subject { disk: dead, dir: DIR, expected }
    }

    /// The database behind an opening that found a wrong byte in the segment of the late rows, and set aside
    /// those behind it; the file in which they are, and their number.
    fn with_records_aside(&self) -> (Subject, PathBuf, u64) {
        let disk = self.disk.kill();
        let segment = newest_segment(&disk);
        let bytes = contents(&disk, &segment);
        // Behind the long value the first row of this key is the late one; a file that was used before has
        // others further behind.
        let (key, filled) = (format!("key{:04}", WRONG * 5), most_of_a_segment());
        let found = bytes[filled..].windows(key.len()).position(|window| window == key.as_bytes());
        let at = filled + found.unwrap();
        disk.open(&segment, OpenMode::Write, false).unwrap().write_at(at as u64, &[bytes[at] ^ 1]).unwrap();
        let engine = open(disk.clone(), &options()).unwrap();
        let count = engine.stats().records_behind_break;
        let dead = disk.kill();
        engine.close().unwrap();
        assert_eq!(count, LATE - WRONG - 1, "rows behind the wrong byte");
        let [file] = &aside(&dead)[..] else { panic!("{:?}", aside(&dead)) };
        let (file, mut subject) =
            (journal().join(file), Subject { disk: dead, dir: DIR, expected: Rows::new() });
        let (_, found) = subject.repaired(&subject.disk.kill());
        let lost = self.expected.iter().filter(|(key, value)| found.get(*key) != Some(value)).count();
        assert_eq!(lost, 1, "the row with the wrong byte");
        subject.expected = found;
        (subject, file, count)
    }

    /// A checkpoint of the database that wrote an extent of its own, without its manifest.
    fn copy_without_manifest(&self) -> Subject {
        let disk = self.disk.kill();
        let engine = open(disk.clone(), &options()).unwrap();
        engine.checkpoint(Path::new(COPY)).unwrap();
        engine.close().unwrap();
        let copy = Engine::open_on(Arc::new(disk.clone()), Path::new(COPY), &options(), Env::real()).unwrap();
        (0..LATE).for_each(|number| {
            copy.put(TableId::DEFAULT, format!("own{number:04}").as_bytes(), b"own", false).unwrap();
        });
        copy.flush().unwrap();
        let expected =
            rows(&copy, &copy.catalog().require("default").unwrap()).unwrap().into_iter().collect();
        let dead = disk.kill();
        copy.close().unwrap();
        for name in dead.list(Path::new(COPY)).unwrap().iter().filter(|name| name.starts_with("MANIFEST")) {
            dead.remove(&Path::new(COPY).join(name)).unwrap();
        }
        Subject { disk: dead, dir: COPY, expected }
    }

    /// Repairs what lies on `disk`; the report, and the rows that there are then.
    fn repaired(&self, disk: &MemDisk) -> (RepairReport, Rows) {
        let (door, target): (Arc<dyn Disk>, _) = (Arc::new(disk.clone()), Path::new("/repaired"));
        let report = repair_on(&door, Path::new(self.dir), target, &options(), Env::real()).unwrap();
        let engine = Engine::open_on(door, target, &options(), Env::real()).unwrap();
        let found =
            rows(&engine, &engine.catalog().require("default").unwrap()).unwrap().into_iter().collect();
        engine.close().unwrap();
        (report, found)
    }

    /// Rows that are missing or have another value after a repair. Each loss must be reported.
    fn rows_lost(&self, disk: &MemDisk, what: &str) -> u64 {
        let (report, found) = self.repaired(disk);
        assert!(
            found.keys().all(|key| self.expected.contains_key(key)),
            "{what}: a row that was never there"
        );
        let lost = self.expected.iter().filter(|(key, value)| found.get(*key) != Some(value)).count() as u64;
        let is_said = !report.losses.is_empty() || !report.doubts.is_empty();
        assert!(
            lost == 0 || is_said || self.may_remove(disk),
            "{what}: {lost} rows are lost and the report does not say so"
        );
        lost
    }

    /// Returns true if a file of records that were set aside is gone from `disk`: only users remove one, when
    /// they want it no longer.
    fn may_remove(&self, disk: &MemDisk) -> bool {
        self.dir == DIR && aside(disk).len() < aside(&self.disk).len()
    }

    /// Rows that are lost with the whole file, and with its second half.
    fn without(&self, part: &Part) -> (u64, u64) {
        let copy = self.disk.kill();
        copy.remove(&part.path).unwrap();
        let deleted = self.rows_lost(&copy, &format!("{} deleted", part.name));
        let copy = self.disk.kill();
        copy.open(&part.path, OpenMode::Write, false)
            .unwrap()
            .set_len(u64::midpoint(part.from, part.to))
            .unwrap();
        (deleted, self.rows_lost(&copy, &format!("{} cut", part.name)))
    }

    /// The most rows that a flipped byte takes, and the mean, over some places of a part.
    fn flipped(&self, part: &Part) -> (u64, f64) {
        let places = number_from_env("TERRANE_REPAIR_PLACES", 3).min(part.to - part.from);
        let bytes = contents(&self.disk, &part.path);
        let lost: Vec<u64> = (0..places)
            .map(|place| {
                let at = part.from + (part.to - part.from) * (2 * place + 1) / (2 * places);
                let copy = self.disk.kill();
                let file = copy.open(&part.path, OpenMode::Write, false).unwrap();
                file.write_at(at, &[bytes[at as usize] ^ 0x10]).unwrap();
                self.rows_lost(&copy, &format!("byte {at} of {}", part.name))
            })
            .collect();
        (lost.iter().copied().max().unwrap_or(0), lost.iter().sum::<u64>() as f64 / places as f64)
    }

    /// Prints the row of a whole file; the rows that it takes where it is deleted.
    fn show(&self, part: &Part) -> u64 {
        let (deleted, cut) = self.without(part);
        let (most, mean) = self.flipped(part);
        println!("| {} | {deleted} | {cut} | {most} | {mean:.1} |", part.name);
        assert!(deleted.max(cut).max(most) <= part.covers, "{}: {deleted}, {cut}, {most}", part.name);
        deleted
    }
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

impl Part {
    /// A file of records that were set aside: from the first of them on, behind the header and a hole.
    fn set_aside(disk: &MemDisk, path: PathBuf, covers: u64) -> Part {
        let bytes = contents(disk, &path);
        let hole = 1024;
        assert!(bytes[hole / 2..hole].iter().all(|byte| *byte == 0), "the header is longer");
        let from = bytes[hole..].iter().position(|byte| *byte != 0).unwrap() + hole;
        Part { from: from as u64, ..Part::file(disk, "`*.cut`", path, covers) }
    }

    /// A whole file, up to its last byte that is not zero.
    fn file(disk: &MemDisk, name: &'static str, path: PathBuf, covers: u64) -> Part {
        let bytes = contents(disk, &path);
        let to = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
        Part { name, path, from: 0, to, covers }
    }
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
    let whole = |name, path, covers| Part::file(disk, name, path, covers);
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

#[test]
fn damage_takes_only_the_rows_that_it_covers() {
    let subject = Subject::database();
    let (whole, within) = parts(&subject.disk);
    println!("{} rows, {LATE} of them in the journal only; rows lost:\n", subject.expected.len());
    println!("| damaged | deleted | cut to half | a byte flipped: most | mean |\n|---|---|---|---|---|");
    let taken: BTreeMap<&str, u64> = whole.iter().map(|part| (part.name, subject.show(part))).collect();
    assert_eq!(taken["segment"], LATE, "the late rows are in the segment that was looked at");
    let (with_aside, path, count) = subject.with_records_aside();
    let part = Part::set_aside(&with_aside.disk, path, count);
    assert_eq!(with_aside.show(&part), count, "the file has the records that were set aside");
    let copy = subject.copy_without_manifest();
    copy.show(&Part::file(
        &copy.disk,
        "`ORIGINS` and the manifest of a copy",
        Path::new(COPY).join("ORIGINS"),
        0,
    ));
    for part in &within {
        let (most, mean) = subject.flipped(part);
        println!("| {} | | | {most} | {mean:.1} |", part.name);
        assert!(most <= part.covers, "{}: {most} rows of {}", part.name, part.covers);
    }
}
