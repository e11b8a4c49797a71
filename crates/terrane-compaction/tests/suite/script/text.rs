//! Levels and jobs as text.
//!
//! ```text
//! L1 x2 6MiB of 16MiB
//!   [a#3..c#9] 2MiB
//!   [d#1..m#1] 4MiB del=50% lz4
//!   [d#9..m#9] 4KiB rdel=d..m/2
//! ```
//!
//! `rdel` are range deletes, in so many fragments, from the first to before the second key. The numbers
//! behind the keys are the least and the greatest sequence number. `x2` and the sizes of the head line are
//! printed, not read.

use std::fmt::Write;
use std::ops::Bound;
use std::sync::Arc;

use terrane_base::options::{Compression, Setting};
use terrane_base::{ExtentId, SeqNo};
use terrane_compaction::{JobSpec, KeyRange, Targets};
use terrane_format::extent::{self, ExtentMeta, Handle, RangeSection};
use terrane_format::manifest::Place;
use terrane_levels::{Level, Metasnapshot};
use terrane_storage::SLOT_BYTES;

use super::{ShowSize, closed, show_place};

const ENTRIES: u64 = 1000;
/// Slots of the largest extent that a script may have.
pub(crate) const SLOTS_MAX: u32 = 16;

pub(crate) fn parse_levels(lines: &[&str], next_slot: &mut u32) -> Vec<(Place, ExtentMeta)> {
    let mut place = Place::Level(1);
    let mut extents = Vec::new();
    for line in lines {
        if let Some(line) = line.strip_prefix("  ") {
            extents.extend(parse_extents(line, next_slot).into_iter().map(|meta| (place, meta)));
        } else {
            let name = line.split_whitespace().next().unwrap();
            place = match name.split_at(1) {
                ("L", number) => Place::Level(number.parse().unwrap()),
                ("R", id) => Place::Run(id.parse().unwrap()),
                _ => panic!("expected a level or a run: {line}"),
            };
        }
    }
    extents
}

/// `[a#1..c#9] 2MiB del=50% lz4`, or `100 x [k000..] 2MiB`: so many extents with numbered keys.
fn parse_extents(line: &str, next_slot: &mut u32) -> Vec<ExtentMeta> {
    let Some((count, rest)) = line.split_once(" x ") else { return vec![parse_extent(line, next_slot)] };
    let count: usize = count.trim().parse().unwrap();
    let (range, rest) = rest.split_once("] ").unwrap();
    let prefix = range.strip_prefix('[').unwrap().trim_end_matches("..");
    let extent = |index: usize| {
        let line = format!("[{prefix}{index:04}0#1..{prefix}{index:04}9#1] {rest}");
        parse_extent(&line, next_slot)
    };
    (0..count).map(extent).collect()
}

fn parse_extent(line: &str, next_slot: &mut u32) -> ExtentMeta {
    let mut words = line.split_whitespace();
    let range = words.next().unwrap().trim_start_matches('[').trim_end_matches(']');
    let (first, last) = range.split_once("..").unwrap();
    let key = |text: &str| -> (Vec<u8>, u64) {
        let (key, seq) = text.split_once('#').unwrap_or((text, "1"));
        (key.as_bytes().to_vec(), seq.parse().unwrap())
    };
    let ((smallest, seq_min), (largest, seq_max)) = (key(first), key(last));
    let bytes = u64::parse(words.next().unwrap()).unwrap() as u32;
    let (mut deletes, mut compression, mut range_deletes) = (0, Compression::None, None);
    for word in words {
        if let Some(ranges) = word.strip_prefix("rdel=") {
            range_deletes = Some(Box::new(parse_ranges(ranges)));
            continue;
        }
        match word.strip_prefix("del=").map(|share| share.trim_end_matches('%')) {
            Some(share) => deletes = share.parse::<u64>().unwrap() * ENTRIES / 100,
            None => compression = Setting::parse(word).unwrap(),
        }
    }
    *next_slot += SLOTS_MAX;
    ExtentMeta {
        id: ExtentId { file: 1, slot: *next_slot },
        slots: slots_of(bytes),
        bytes,
        raw_bytes: bytes.into(),
        smallest,
        largest,
        seq_min: SeqNo(seq_min),
        seq_max: SeqNo(seq_max),
        entries: ENTRIES,
        deletes,
        blocks: 1,
        index: Handle::default(),
        filter: Handle::default(),
        range_deletes,
        expiry: None,
        format_version: extent::VERSION,
        compression,
        ..ExtentMeta::default()
    }
}

fn parse_ranges(text: &str) -> RangeSection {
    let (range, fragments) = text.split_once('/').unwrap_or((text, "1"));
    let (start, end) = range.split_once("..").unwrap();
    let (start, end) = (start.as_bytes().to_vec(), end.as_bytes().to_vec());
    RangeSection { part: Handle::default(), fragments: fragments.parse().unwrap(), start, end }
}

pub(crate) fn slots_of(bytes: u32) -> u32 {
    (bytes as usize).div_ceil(SLOT_BYTES) as u32
}

pub(crate) fn show_levels(metasnapshot: &Metasnapshot<Arc<ExtentMeta>>, targets: &Targets) -> String {
    let mut out = String::new();
    for run in &metasnapshot.runs {
        let bytes = run.level.totals().bytes.show_size();
        writeln!(out, "R{} x{} {bytes}", run.id, run.level.len()).unwrap();
        show_extents(&mut out, &run.level);
    }
    for (index, level) in metasnapshot.levels.iter().enumerate() {
        let number = index as u8 + 1;
        let (bytes, target) = (level.totals().bytes.show_size(), targets.of(number).show_size());
        writeln!(out, "L{number} x{} {bytes} of {target}", level.len()).unwrap();
        show_extents(&mut out, level);
    }
    if out.is_empty() { "empty".to_owned() } else { out }
}

/// All extents of a small level; of a large one the first and the last.
fn show_extents(out: &mut String, level: &Level<Arc<ExtentMeta>>) {
    let len = level.len();
    for (index, meta) in level.iter().enumerate() {
        match index {
            _ if len <= 12 || index < 2 || index + 2 >= len => {
                writeln!(out, "  {}", show_extent(meta)).unwrap()
            }
            2 => writeln!(out, "  ..").unwrap(),
            _ => {}
        }
    }
}

fn show_extent(meta: &ExtentMeta) -> String {
    let key = |key: &[u8], seq: SeqNo| format!("{}#{}", String::from_utf8_lossy(key), seq.0);
    let mut out = format!(
        "[{}..{}] {}",
        key(&meta.smallest, meta.seq_min),
        key(&meta.largest, meta.seq_max),
        u64::from(meta.bytes).show_size()
    );
    if meta.deletes > 0 {
        write!(out, " del={}%", meta.deletes * 100 / meta.entries).unwrap();
    }
    if let Some(section) = &meta.range_deletes {
        let [start, end] = [&section.start, &section.end].map(|key| String::from_utf8_lossy(key));
        write!(out, " rdel={start}..{end}/{}", section.fragments).unwrap();
    }
    if meta.compression != Compression::None {
        write!(out, " {}", meta.compression.show()).unwrap();
    }
    out
}

/// A job in one line.
pub(crate) fn show_job_line(spec: &JobSpec) -> String {
    let inputs: Vec<String> = spec
        .inputs
        .iter()
        .map(|input| {
            format!("{} x{} {}", show_place(input.place), input.extents.len(), input.bytes().show_size())
        })
        .collect();
    let how = if spec.is_move() { "move" } else { "merge" };
    format!("{} {how} {} -> {}\n", spec.kind, inputs.join(" + "), show_place(spec.target))
}

/// A job with its inputs and what it must know.
pub(crate) fn show_job(spec: &JobSpec) -> String {
    let mut out = show_job_line(spec);
    for input in &spec.inputs {
        let names: Vec<String> = input.extents.iter().map(show_extent).collect();
        let names = match names.as_slice() {
            [first, .., last] if names.len() > 6 => format!("{first} .. {last}"),
            _ => names.join(", "),
        };
        writeln!(out, "  {} {names}", show_place(input.place)).unwrap();
    }
    write!(out, "  range {}", closed(&spec.range)).unwrap();
    if spec.output.compression != Compression::None {
        write!(out, ", {}", spec.output.compression.show()).unwrap();
    }
    match spec.below.as_slice() {
        [] => write!(out, ", bottom").unwrap(),
        below => write!(out, ", below {}", below.iter().map(closed).collect::<Vec<_>>().join(" ")).unwrap(),
    }
    if spec.drops_deletes {
        write!(out, ", drops deletes").unwrap();
    }
    if spec.extent_bytes_max < SLOT_BYTES as u64 {
        let (extents, parts) = (spec.extent_bytes_max.show_size(), spec.part_bytes.show_size());
        write!(out, ", extents of {extents}, parts of {parts}").unwrap();
    }
    out
}

/// `a..m` (m inclusive) or `..` for everything.
pub(crate) fn parse_range(text: &str) -> KeyRange {
    let (start, end) = text.split_once("..").unwrap();
    let end = if end.is_empty() { Bound::Unbounded } else { Bound::Included(end.as_bytes().to_vec()) };
    KeyRange { start: start.as_bytes().to_vec(), end, ..KeyRange::all() }
}
