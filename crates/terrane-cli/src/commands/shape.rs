//! `shape`: the state of the trees as a table and as a small picture.

use std::fmt::Write as _;
use std::io::Write;

use serde_json::json;
use terrane::{Db, LevelShape, TableShape, ValuesShape};

use super::follow;
use super::tables::share;
use crate::arguments::{Engine, Shape};
use crate::exit::Failure;
use crate::files;
use crate::text::{count, size};

/// Width of the longest bar of the picture, in columns.
const BAR_COLUMNS: usize = 48;

pub(super) fn run(engine: &Engine, command: &Shape, out: &mut dyn Write) -> Result<(), Failure> {
    let show = if command.json { show_json } else { show };
    follow::each_second(engine, &command.database, command.follow, out, &mut |db, out| show(db, out))
}

fn show(db: &Db, out: &mut dyn Write) -> Result<(), Failure> {
    let shape = db.shape();
    for table in &shape.tables {
        out.write_all(table_text(table).as_bytes())?;
    }
    // Extents lie in slots, which the device gives space only as far as it is used.
    let on_device =
        device_bytes(db).map_or(String::new(), |bytes| format!(", {} on the device", size(bytes)));
    writeln!(
        out,
        "journal: {} segments, {}; data: {} in extents{on_device}; debt {:.2}",
        shape.segments,
        size(shape.segment_bytes),
        size(extent_bytes(&shape)),
        shape.debt,
    )?;
    if shape.history_segments > 0 {
        writeln!(out, "history: {} segments, {}", shape.history_segments, size(shape.history_bytes))?;
    }
    Ok(())
}

/// Bytes of all extents, those of value tables included.
fn extent_bytes(shape: &terrane::Shape) -> u64 {
    let of = |table: &TableShape| {
        table.runs.iter().chain(&table.levels).map(|level| level.bytes).sum::<u64>() + table.values.bytes
    };
    shape.tables.iter().map(of).sum()
}

/// Bytes that the data files take on their device; `None` where they lie elsewhere.
fn device_bytes(db: &Db) -> Option<u64> {
    let data = db.path().join("data");
    files::exists(&data).then(|| files::device_bytes(&data))
}

/// As [`show`], for programs: one object in a line.
fn show_json(db: &Db, out: &mut dyn Write) -> Result<(), Failure> {
    let shape = db.shape();
    let level = |level: &LevelShape| {
        json!({
            "extents": level.extents,
            "versions": level.entries,
            "bytes": level.bytes,
            "blocks": level.blocks,
            "block_bytes": level.block_bytes,
            "deletes": level.deletes,
            "range_deletes": level.range_deletes,
        })
    };
    let memory =
        |count: u64, entries: u64, bytes: u64| json!({"count": count, "versions": entries, "bytes": bytes});
    let table = |table: &TableShape| {
        json!({
            "table": table.name,
            "sorted_runs": table.sorted_runs(),
            "memtable": memory(1, table.memtable_entries, table.memtable_bytes),
            "frozen": memory(table.frozen, table.frozen_entries, table.frozen_bytes),
            "generations": memory(table.generations, table.generation_entries, table.generation_bytes),
            "runs": table.runs.iter().map(level).collect::<Vec<_>>(),
            "levels": table.levels.iter().map(level).collect::<Vec<_>>(),
            "value_tables": table.values.tables,
            "value_bytes": table.values.bytes,
            "value_dead_permille": table.values.dead_permille(),
        })
    };
    let object = json!({
        "tables": shape.tables.iter().map(table).collect::<Vec<_>>(),
        "segments": shape.segments,
        "segment_bytes": shape.segment_bytes,
        "history_segments": shape.history_segments,
        "history_bytes": shape.history_bytes,
        "store_bytes": shape.store_bytes,
        "store_live_bytes": shape.store_live_bytes,
        "extent_bytes": extent_bytes(&shape),
        "device_bytes": device_bytes(db),
        "debt": shape.debt,
    });
    Ok(writeln!(out, "{object}")?)
}

/// One sorted run, or a group of them that is shown together.
struct Part {
    name: String,
    entries: u64,
    bytes: u64,
    detail: String,
}

fn table_text(table: &TableShape) -> String {
    let parts = parts(table);
    let longest = parts.iter().map(|part| part.bytes).max().unwrap_or(0);
    let mut text = format!("table {}: {} sorted runs\n", table.name, table.sorted_runs());
    let _ = writeln!(text, "  {:<14} {:>14} {:>10}", "", "versions", "bytes");
    for part in &parts {
        let bar = bar(part.bytes, longest);
        let line = format!(
            "  {:<14} {:>14} {:>10}  {bar} {}",
            part.name,
            count(part.entries),
            size(part.bytes),
            part.detail
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let _ = table.use_of_late().map(|line| writeln!(text, "  {line}"));
    text
}

/// Top down, as a read searches them.
fn parts(table: &TableShape) -> Vec<Part> {
    let part =
        |name: &str, entries, bytes, detail: String| Part { name: name.to_owned(), entries, bytes, detail };
    let mut parts = vec![part("memtable", table.memtable_entries, table.memtable_bytes, String::new())];
    if table.frozen > 0 {
        parts.push(part(
            "frozen",
            table.frozen_entries,
            table.frozen_bytes,
            format!("{} memtables", table.frozen),
        ));
    }
    if table.generations > 0 {
        let detail = format!("{} generations", table.generations);
        parts.push(part("global index", table.generation_entries, table.generation_bytes, detail));
    }
    for (index, run) in table.runs.iter().enumerate() {
        parts.push(level_part(format!("overflow run {index}"), run));
    }
    let deepest = table.levels.iter().rposition(|level| level.extents > 0).map_or(0, |index| index + 1);
    for (index, level) in table.levels.iter().enumerate().take(deepest) {
        parts.push(level_part(format!("level {}", index + 1), level));
    }
    if table.values.tables > 0 {
        parts.push(part("values", table.values.entries, table.values.bytes, values_text(&table.values)));
    }
    parts
}

/// How many value tables there are, how much of them is dead, and their space against its ceiling.
fn values_text(values: &ValuesShape) -> String {
    let (tables, dead, space) =
        (count(values.tables), share(values.dead_permille()), values.space_permille());
    let ceiling = match values.space_permille_max {
        0 => String::new(),
        most => format!(" of at most {}", share(most)),
    };
    format!("{tables} value tables, {dead} dead, space {}{ceiling}", share(space))
}

fn level_part(name: String, level: &LevelShape) -> Part {
    let deletes =
        if level.deletes > 0 { format!(", {} deletes", count(level.deletes)) } else { String::new() };
    let ranges = match level.range_deletes {
        0 => String::new(),
        fragments => format!(", {} range deletes", count(fragments)),
    };
    let blocks = match level.mean_block_bytes() {
        0 => String::new(),
        bytes => format!(", blocks of {}", size(bytes)),
    };
    let detail = format!("{} extents{blocks}{deletes}{ranges}", count(level.extents));
    Part { name, entries: level.entries, bytes: level.bytes, detail }
}

/// A bar in proportion to the square root of the bytes: levels differ by a factor of ten, and all must be
/// seen.
fn bar(bytes: u64, longest: u64) -> String {
    if bytes == 0 {
        return String::new();
    }
    let share = (bytes as f64 / longest as f64).sqrt();
    "#".repeat(((share * BAR_COLUMNS as f64).round() as usize).max(1))
}
