//! Properties, answered from the shape of the tree. [`crate::extents`] says how levels are numbered; the
//! overflow runs are RocksDB's level 0.

use std::ffi::c_char;
use std::fmt::Write as _;

use terrane::{JobKind, LevelShape, TableShape, ValuesShape};

use crate::db::{Database, Family, FamilyHandle};
use crate::extents::LEVELS;
use crate::extents::levels::{Levels, deepest_in};
use crate::ffi::arguments::Text;
use crate::ffi::types::{Out, lasting_text, put};
use crate::options::objects::cache::cache_bytes;

const PREFIX: &str = "rocksdb.";
impl Database {
    fn shape_of(&self, family: &Family) -> TableShape {
        let tables = self.view().shape().tables;
        tables.into_iter().find(|table| table.name == family.table.name()).unwrap_or_default()
    }

    /// A property that is a number.
    fn number(&self, family: &Family, name: &str) -> Option<u64> {
        let table = || self.shape_of(family);
        let sorted = |count: fn(&LevelShape) -> u64| {
            let table = table();
            table.runs.iter().chain(&table.levels).map(count).sum::<u64>()
        };
        Some(match name {
            "estimate-num-keys" => estimated_keys(&table()),
            "num-entries-active-mem-table" => table().memtable_entries,
            "num-entries-imm-mem-tables" => in_memory(&table()).1 - table().memtable_entries,
            "num-immutable-mem-table" => table().frozen + table().generations,
            "cur-size-active-mem-table" => table().memtable_bytes,
            "cur-size-all-mem-tables" | "size-all-mem-tables" => in_memory(&table()).0,
            "total-sst-files-size" | "live-sst-files-size" => sorted(|level| level.bytes),
            "estimate-live-data-size" => sorted(|level| level.bytes),
            "estimate-table-readers-mem" => 0,
            "base-level" => {
                let table = table();
                base_level(&table, family.levels(deepest_in(&table)))
            }
            "num-blob-files" => table().values.tables,
            "total-blob-file-size" | "live-blob-file-size" => table().values.bytes,
            "live-blob-file-garbage-size" => garbage(&table().values),
            "mem-table-flush-pending" => u64::from(table().frozen > 0),
            "compaction-pending" | "num-running-compactions" => self.running(JobKind::Compact),
            "num-running-flushes" => self.running(JobKind::Flush),
            "background-errors" => self.view().background_errors().len() as u64,
            "is-write-stopped" => u64::from(self.view().pressure() >= 1.0),
            "is-file-deletions-enabled" => 1,
            "block-cache-capacity" => {
                let options = self.db.options();
                options.memory_bytes - options.write_memory_bytes
            }
            "block-cache-usage" => cache_bytes(&self.view()),
            _ => return None,
        })
    }

    /// Number of running jobs of this kind.
    fn running(&self, kind: JobKind) -> u64 {
        self.db.progress().iter().filter(|progress| progress.work == kind).count() as u64
    }

    pub(crate) fn metric(&self, name: &str) -> u64 {
        self.view().statistics().get(name).map_or(0, |value| value.number())
    }

    /// A property as text; none if there is no such property.
    fn text(&self, family: &Family, property: &str) -> Option<String> {
        let name = property.strip_prefix(PREFIX)?;
        if let Some(number) = self.number(family, name) {
            return Some(number.to_string());
        }
        if let Some(level) = name.strip_prefix("num-files-at-level") {
            let table = self.shape_of(family);
            let files = files_at(&table, family.levels(deepest_in(&table)), level.parse().ok()?);
            return files.map(|files| files.to_string());
        }
        match name {
            "stats" => Some(self.family_stats(family, &self.shape_of(family)) + &self.database_stats()),
            "cfstats" | "cfstats-no-file-histogram" => {
                Some(self.family_stats(family, &self.shape_of(family)))
            }
            "dbstats" => Some(self.database_stats()),
            "levelstats" => {
                let table = self.shape_of(family);
                Some(level_lines(&table, family.levels(deepest_in(&table))))
            }
            "blob-stats" => Some(blob_lines(&self.shape_of(family).values)),
            "sstables" => Some(self.view().shape().to_string()),
            _ => None,
        }
    }
}

/// Versions in levels and memory, deletes and what they delete left out.
fn estimated_keys(table: &TableShape) -> u64 {
    let stored = table.runs.iter().chain(&table.levels);
    let (entries, deletes) =
        stored.fold((0, 0), |(entries, deletes), level| (entries + level.entries, deletes + level.deletes));
    (entries + in_memory(table).1).saturating_sub(2 * deletes)
}

/// Stored bytes of value tables that no live value needs.
fn garbage(values: &ValuesShape) -> u64 {
    values.bytes.saturating_sub(values.live_bytes)
}

/// Value tables, in RocksDB's words.
fn blob_lines(values: &ValuesShape) -> String {
    let amplification = values.bytes as f64 / values.live_bytes.max(1) as f64;
    format!(
        "Number of blob files: {}\nTotal size of blob files: {}\nTotal size of garbage in blob files: {}\nBlob file \
         space amplification: {amplification}\n",
        values.tables,
        values.bytes,
        garbage(values),
    )
}

/// Bytes and versions in memory.
fn in_memory(table: &TableShape) -> (u64, u64) {
    let bytes = table.memtable_bytes + table.frozen_bytes + table.generation_bytes + table.index_bytes;
    (bytes, table.memtable_entries + table.frozen_entries + table.generation_entries)
}

/// The first level that has extents; of an empty tree that which the first will have.
fn base_level(table: &TableShape, levels: Levels) -> u64 {
    let first = table.levels.iter().position(|level| level.extents > 0).unwrap_or(0);
    levels.number_of(first + 1) as u64
}

/// Extents of the level that callers see as `number`; none if there is no such level.
fn files_at(table: &TableShape, levels: Levels, number: usize) -> Option<u64> {
    match levels.meant(number) {
        Some(0) => Some(table.runs.iter().map(|run| run.extents).sum()),
        Some(level) if level <= table.levels.len() => Some(table.levels[level - 1].extents),
        _ => (number < LEVELS).then_some(0),
    }
}

/// All levels, each with the number that callers see; the overflow runs are one level.
pub(crate) fn rows_of_levels(table: &TableShape, levels: Levels) -> Vec<(usize, LevelShape)> {
    let mut runs = LevelShape::default();
    for run in &table.runs {
        runs.extents += run.extents;
        runs.bytes += run.bytes;
        runs.entries += run.entries;
        runs.deletes += run.deletes;
    }
    let count = LEVELS.max(levels.number_of(deepest_in(table)) + 1);
    let row = |number| match levels.meant(number) {
        Some(0) => runs.clone(),
        level => level.and_then(|level| table.levels.get(level - 1)).cloned().unwrap_or_default(),
    };
    (0..count).map(|number| (number, row(number))).collect()
}

fn level_lines(table: &TableShape, levels: Levels) -> String {
    let mut lines = "Level Files Size(MB)\n--------------------\n".to_owned();
    for (number, level) in rows_of_levels(table, levels) {
        let _ = writeln!(lines, "{number:>3} {:>8} {:>8}", level.extents, level.bytes >> 20);
    }
    lines
}

pub(crate) fn value(
    database: Option<&Database>,
    handle: Option<&FamilyHandle>,
    name: Text<'_>,
) -> *mut c_char {
    let text = database.and_then(|database| {
        let family = handle.map_or(database.default_family(), |handle| &handle.family);
        database.text(family, name.utf8().ok()?)
    });
    text.map_or(std::ptr::null_mut(), |text| lasting_text(&text))
}

/// 0 if there is such a number.
pub(crate) fn int(
    database: Option<&Database>,
    handle: Option<&FamilyHandle>,
    name: Text<'_>,
    place: Out<'_, u64>,
) -> i32 {
    let number = database.and_then(|database| {
        let family = handle.map_or(database.default_family(), |handle| &handle.family);
        database.number(family, name.utf8().ok()?.strip_prefix(PREFIX)?)
    });
    match number {
        Some(number) => {
            put(place, number);
            0
        }
        None => -1,
    }
}

cf_variants! {
    fn rocksdb_property_value | rocksdb_property_value_cf(
        database: Option<&Database>;
        name: Text<'_>,
    ) -> *mut c_char as target {
        value(database, target.handle(), name)
    }

    fn rocksdb_property_int | rocksdb_property_int_cf(
        database: Option<&Database>;
        name: Text<'_>,
        place: Out<'_, u64>,
    ) -> i32 as target {
        int(database, target.handle(), name, place)
    }
}
