//! Point reads of a database that is all in cache, against a plain hash map of the same rows in the same run:
//! 16-byte keys, 100-byte values, read in random order.
//!
//! `cargo bench -p terrane-engine --bench point_read`; with `--test` on a small data set.
#![allow(missing_docs, reason = "criterion's macros")]
#![allow(clippy::unwrap_used, reason = "a benchmark may panic")]

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use terrane_base::options::Options;
use terrane_base::{Batch, TableId, env::Env, rng};
use terrane_engine::{Engine, ReadMode, Table, Values};

/// Keys of one multi_get.
const BATCH: usize = 64;

fn rows() -> u64 {
    if std::env::args().any(|arg| arg == "--test") { 20_000 } else { 1_000_000 }
}

/// Keys in no order, each once.
fn mix(number: u64) -> u64 {
    rng::mix(number.wrapping_mul(rng::STEP))
}

fn key(number: u64) -> Vec<u8> {
    format!("{:016x}", mix(number)).into_bytes()
}

struct Data {
    _dir: tempfile::TempDir,
    engine: Arc<Engine>,
    table: Arc<Table>,
    map: HashMap<Vec<u8>, Vec<u8>>,
    /// Keys to read, in this order.
    reads: Vec<Vec<u8>>,
}

fn data(changed: &[(&str, &str)]) -> Data {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options { memory_bytes: 2 << 30, ..Options::default() };
    changed.iter().for_each(|(name, value)| options.set(name, value).unwrap());
    let engine = Engine::open(&dir.path().join("data"), &options, Env::real()).unwrap();
    let table = engine.catalog().require("default").unwrap();
    let mut map = HashMap::new();
    for first in (0..rows()).step_by(1000) {
        let mut batch = Batch::new();
        for number in first..first + 1000 {
            let value = vec![number as u8; 100];
            batch.put(TableId::DEFAULT, &key(number), &value).unwrap();
            map.insert(key(number), value);
        }
        engine.write(&batch, false).unwrap();
    }
    engine.flush().unwrap();
    let reads = (0..rows()).map(|turn| key(mix(turn + 1) % rows())).collect();
    let data = Data { _dir: dir, engine, table, map, reads };
    // Every block into the cache.
    let mut value = Vec::new();
    for number in 0..rows() {
        value.clear();
        assert!(data.engine.get(&data.table, &key(number), ReadMode::default(), &mut value).unwrap());
    }
    data
}

fn single(data: &Data, name: &str, c: &mut Criterion) {
    let (mut at, mut value) = (0, Vec::new());
    c.bench_function(name, |b| {
        b.iter(|| {
            at = (at + 1) % data.reads.len();
            value.clear();
            let mode = ReadMode::default();
            black_box(data.engine.get(&data.table, black_box(&data.reads[at]), mode, &mut value).unwrap())
        });
    });
}

fn batched(data: &Data, name: &str, c: &mut Criterion) {
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(BATCH as u64));
    let keys: Vec<&[u8]> = data.reads.iter().map(Vec::as_slice).collect();
    let (mut at, mut values) = (0, Values::new());
    group.bench_function(format!("{BATCH} keys"), |b| {
        b.iter(|| {
            at = (at + BATCH) % (keys.len() - BATCH);
            let mode = ReadMode::default();
            data.engine.multi_get_into(&data.table, &keys[at..at + BATCH], mode, &mut values).unwrap();
            black_box(values.get(0).map(<[u8]>::len))
        });
    });
    group.finish();
}

fn point_reads(c: &mut Criterion) {
    let rest = data(&[("row_cache", "0")]);
    let (mut at, mut value) = (0, Vec::new());
    c.bench_function("hash map", |b| {
        b.iter(|| {
            at = (at + 1) % rest.reads.len();
            value.clear();
            value.extend_from_slice(rest.map.get(black_box(&rest.reads[at])).unwrap());
            black_box(value.len())
        });
    });
    single(&rest, "get", c);
    batched(&rest, "multi_get", c);
    drop(rest);
    let plain = [
        ("row_cache", "0"),
        ("experiments.adaptive_filters", "false"),
        ("experiments.interleaved_multi_get", "false"),
    ];
    let plain = data(&plain);
    single(&plain, "get, every filter asked", c);
    batched(&plain, "multi_get, one after the other", c);
    drop(plain);
    let rows = data(&[("row_cache", "10")]);
    single(&rows, "get, row cache 10", c);
}

criterion_group!(benches, point_reads);
criterion_main!(benches);
