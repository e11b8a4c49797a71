//! Reads of cached extents: 16-byte random keys, 100-byte values, against a hash map of the same data.
//!
//! `cargo bench -p terrane-table --bench read`; with `--test` on a small data set.
#![allow(missing_docs, reason = "criterion's macros")]
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]

#[path = "../tests/suite/support/mod.rs"]
mod support;

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use support::store::{TestStore, write_extents};
use support::{Row, sort};
use terrane_base::{Cursor, Rng, SeqNo};
use terrane_format::filter;
use terrane_table::{
    Cache, CursorOptions, Extent, ExtentCursor, ExtentList, LevelCursor, MergeCursor, WriterSettings,
};

fn entries() -> usize {
    if std::env::args().any(|arg| arg == "--test") { 10_000 } else { 1_000_000 }
}

fn random_key(rng: &mut Rng) -> Vec<u8> {
    let mut half = || rng.index(usize::MAX).to_be_bytes();
    [half(), half()].concat()
}

struct Data {
    rows: Vec<Row>,
    level: Arc<Vec<Arc<Extent>>>,
    cache: Arc<Cache>,
    /// Keys in random order: the reads.
    reads: Vec<Vec<u8>>,
    absent: Vec<Vec<u8>>,
}

fn data() -> Data {
    let mut rng = Rng::new(1);
    let mut rows: Vec<Row> =
        (0..entries()).map(|i| Row::put(&random_key(&mut rng), i as u64 + 1, &[i as u8; 100])).collect();
    sort(&mut rows);
    let level = Arc::new(write_extents(&rows, WriterSettings::default(), 2_000_000, &TestStore::new()));
    let cache = Cache::new(4 << 30);
    let reads = (0..entries()).map(|_| rows[rng.index(rows.len())].key.clone()).collect();
    let absent = (0..entries()).map(|_| random_key(&mut rng)).collect();
    let data = Data { rows, level, cache, reads, absent };
    // Every block in the cache.
    let mut cursor = LevelCursor::new(data.level.clone(), data.cache.clone(), CursorOptions::default());
    cursor.seek_first().unwrap();
    while cursor.entry().is_some() {
        cursor.next().unwrap();
    }
    data.level.iter().for_each(|extent| extent.warm(&data.cache).unwrap());
    data
}

fn get(data: &Data, key: &[u8], value: &mut Vec<u8>) -> bool {
    value.clear();
    let at = data.level.find(key);
    let Some(extent) = data.level.get(at) else { return false };
    extent.get_hashed(&data.cache, key, Some(filter::hash(key)), SeqNo::MAX, value).unwrap().is_some()
}

/// Goes round through `keys`.
fn each<'k>(keys: &'k [Vec<u8>]) -> impl FnMut() -> &'k [u8] {
    let mut at = 0;
    move || {
        at = (at + 1) % keys.len();
        &keys[at]
    }
}

fn points(c: &mut Criterion) {
    let data = data();
    let map: HashMap<&[u8], Box<[u8]>> =
        data.rows.iter().map(|row| (row.key.as_slice(), row.value.clone().into())).collect();
    let mut group = c.benchmark_group("get");
    group.throughput(Throughput::Elements(1));
    let mut value = Vec::new();
    let mut key = each(&data.reads);
    group.bench_function("hash map", |b| {
        b.iter(|| {
            value.clear();
            value.extend_from_slice(&map[key()]);
            black_box(&value);
        });
    });
    group.bench_function("cached", |b| {
        b.iter(|| {
            assert!(get(&data, key(), &mut value));
            black_box(&value);
        });
    });
    let mut key = each(&data.absent);
    group.bench_function("hash map, absent", |b| b.iter(|| black_box(map.contains_key(key()))));
    group.bench_function("absent", |b| b.iter(|| black_box(get(&data, key(), &mut value))));
    group.finish();
    scans(c, &data);
}

fn scans(c: &mut Criterion, data: &Data) {
    let mut group = c.benchmark_group("seek");
    let mut key = each(&data.reads);
    let level = || LevelCursor::new(data.level.clone(), data.cache.clone(), CursorOptions::default());
    let mut cursor = level();
    group.bench_function("level, seek", |b| b.iter(|| cursor.seek(key(), SeqNo::MAX).unwrap()));
    group.bench_function("level, seek + 8 nexts", |b| b.iter(|| seek_and_next(&mut cursor, key())));
    let split = split_in_four(data);
    let mut merge = MergeCursor::new(split);
    group
        .bench_function("merge of 4 levels, seek + 8 nexts", |b| b.iter(|| seek_and_next(&mut merge, key())));
    group.finish();

    let mut group = c.benchmark_group("scan");
    let extent = &data.level[0];
    group.throughput(Throughput::Elements(extent.meta.entries));
    let mut cursor = ExtentCursor::new(extent.clone(), data.cache.clone(), CursorOptions::default());
    group.bench_function("extent, forward", |b| {
        b.iter(|| {
            cursor.seek_first().unwrap();
            while cursor.entry().is_some() {
                cursor.next().unwrap();
            }
        });
    });
    group.bench_function("extent, backward", |b| {
        b.iter(|| {
            cursor.seek_last().unwrap();
            while cursor.entry().is_some() {
                cursor.prev().unwrap();
            }
        });
    });
    group.finish();
}

fn seek_and_next(cursor: &mut impl Cursor, key: &[u8]) {
    cursor.seek(key, SeqNo::MAX).unwrap();
    for _ in 0..8 {
        if black_box(cursor.entry()).is_some() {
            cursor.next().unwrap();
        }
    }
}

/// The same rows dealt out to four levels, all cached.
fn split_in_four(data: &Data) -> Vec<LevelCursor> {
    let deal = |which: usize| {
        let rows: Vec<Row> = data.rows.iter().skip(which).step_by(4).cloned().collect();
        let level = Arc::new(write_extents(&rows, WriterSettings::default(), 2_000_000, &TestStore::new()));
        let mut cursor = LevelCursor::new(level, data.cache.clone(), CursorOptions::default());
        cursor.seek_first().unwrap();
        while cursor.entry().is_some() {
            cursor.next().unwrap();
        }
        cursor
    };
    (0..4).map(deal).collect()
}

criterion_group!(benches, points);
criterion_main!(benches);
