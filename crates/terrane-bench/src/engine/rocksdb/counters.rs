//! RocksDB's counters and shape, from its texts: by name, because its numbers of counters change between
//! versions.

use std::collections::BTreeMap;

use crate::engine::rocksdb::database::Database;
use crate::engine::{EngineCounters, Shape, ShapeRow};

/// A table file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFile {
    /// The column family.
    pub family: String,
    /// Its name.
    pub name: String,
    /// The level.
    pub level: u32,
    /// Its bytes.
    pub bytes: u64,
    /// Its entries.
    pub entries: u64,
}

/// Counters from the text of `Statistics`, lines of `rocksdb.name COUNT : n`.
#[must_use]
pub fn of_statistics(text: &str) -> EngineCounters {
    let tickers: BTreeMap<&str, u64> = text.lines().filter_map(ticker).collect();
    let get = |name: &str| tickers.get(name).copied();
    let positive = get("rocksdb.bloom.filter.full.positive");
    let true_positive = get("rocksdb.bloom.filter.full.true.positive");
    let useful = get("rocksdb.bloom.filter.useful");
    let read = get("rocksdb.last.level.read.bytes").zip(get("rocksdb.non.last.level.read.bytes"));
    EngineCounters {
        log_bytes_written: get("rocksdb.wal.bytes"),
        log_syncs: get("rocksdb.wal.synced"),
        flush_bytes_written: get("rocksdb.flush.write.bytes"),
        compaction_bytes_written: get("rocksdb.compact.write.bytes"),
        compaction_bytes_read: get("rocksdb.compact.read.bytes"),
        stall_micros: get("rocksdb.stall.micros"),
        cache_hits: get("rocksdb.block.cache.hit"),
        cache_misses: get("rocksdb.block.cache.miss"),
        read_bytes: read.map(|(last, other)| last + other),
        filter_probes: positive.zip(useful).map(|(yes, no)| yes + no),
        filter_false_positives: positive.zip(true_positive).map(|(yes, right)| yes.saturating_sub(right)),
        runs_searched: None,
        blocks_decoded: get("rocksdb.number.block.decompressed"),
        transactions_aborted: None,
        bucket_creates: None,
        bucket_reads: None,
        bucket_bytes_sent: None,
        bucket_bytes_received: None,
    }
}

fn ticker(line: &str) -> Option<(&str, u64)> {
    let (name, rest) = line.split_once(" COUNT : ")?;
    Some((name, rest.split_whitespace().next()?.parse().ok()?))
}

/// Counters from the text of a `PerfContext`, items of `name = n` between commas; zero counters are left out
/// there.
#[must_use]
pub fn of_perf_context(text: &str) -> EngineCounters {
    let counts: BTreeMap<&str, u64> = text.split(',').filter_map(perf_item).collect();
    let get = |name: &str| counts.get(name).copied().unwrap_or(0);
    EngineCounters {
        cache_hits: Some(get("block_cache_hit_count")),
        cache_misses: Some(get("block_read_count")),
        read_bytes: Some(get("block_read_byte")),
        filter_probes: Some(get("bloom_sst_hit_count") + get("bloom_sst_miss_count")),
        ..EngineCounters::default()
    }
}

fn perf_item(item: &str) -> Option<(&str, u64)> {
    let (name, value) = item.split_once('=')?;
    Some((name.trim(), value.trim().parse().ok()?))
}

/// The shape of all tables together.
pub(super) fn shape(database: &Database) -> Shape {
    let sum = |name: &str| database.tables().map(|table| database.number(table, name)).sum::<u64>();
    let active = sum("rocksdb.cur-size-active-mem-table");
    let mut rows = vec![
        ShapeRow {
            part: "memtable".to_owned(),
            runs: database.tables().len() as u64,
            entries: Some(sum("rocksdb.num-entries-active-mem-table")),
            bytes: active,
        },
        ShapeRow {
            part: "frozen".to_owned(),
            runs: sum("rocksdb.num-immutable-mem-table"),
            entries: Some(sum("rocksdb.num-entries-imm-mem-tables")),
            bytes: sum("rocksdb.cur-size-all-mem-tables").saturating_sub(active),
        },
    ];
    rows.extend(levels(&database.files()));
    Shape { rows }
}

/// Bytes of blob files per thousand without garbage, of the table that has the most of them; `None` without
/// blob files.
pub(super) fn values_permille(database: &Database) -> Option<u64> {
    let of_table = |table| {
        let bytes = database.number(table, "rocksdb.total-blob-file-size");
        let garbage = database.number(table, "rocksdb.live-blob-file-garbage-size");
        (u128::from(bytes) * 1000).checked_div(u128::from(bytes.saturating_sub(garbage)))
    };
    database.tables().filter_map(of_table).max().and_then(|permille| u64::try_from(permille).ok())
}

/// Rows of the levels that hold files; in level 0 each file is a run, below each table's level is one.
#[must_use]
pub fn levels(files: &[TableFile]) -> Vec<ShapeRow> {
    let mut levels: BTreeMap<u32, (ShapeRow, Vec<&str>)> = BTreeMap::new();
    for file in files {
        let (row, families) = levels.entry(file.level).or_default();
        row.bytes += file.bytes;
        row.entries = Some(row.entries.unwrap_or(0) + file.entries);
        if file.level == 0 || !families.contains(&file.family.as_str()) {
            row.runs += 1;
            families.push(&file.family);
        }
    }
    let named =
        |(level, (row, _)): (u32, (ShapeRow, Vec<&str>))| ShapeRow { part: format!("L{level}"), ..row };
    levels.into_iter().map(named).collect()
}
