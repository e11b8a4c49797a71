//! Seeks of a prefix in trees that have and that lack it, with and without a prefix extractor, in the cache and beyond it;
//! and what prefixes in filters cost reads of absent keys. Five runs of keys of 8 + 8 bytes, ten of each prefix.
//!
//! `cargo bench -p terrane-engine --bench prefix`; with `--test` on a small data set.
#![allow(missing_docs, reason = "criterion's macros")]
#![allow(clippy::unwrap_used, reason = "a benchmark may panic")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use terrane_base::options::Options;
use terrane_base::{Batch, TableId, env::Env, rng};
use terrane_engine::{Bounds, Engine, ReadMode, Table};

const RUNS: u64 = 5;
const KEYS_OF_PREFIX: u64 = 10;

fn prefixes() -> u64 {
    if std::env::args().any(|arg| arg == "--test") { 1_000 } else { 100_000 }
}

/// Prefixes in no order, each once.
fn mix(number: u64) -> u64 {
    rng::mix(number.wrapping_mul(rng::STEP))
}

struct Data {
    _dir: tempfile::TempDir,
    engine: Arc<Engine>,
    table: Arc<Table>,
}

/// Each run has prefixes of its own, which lie among those of all others.
fn data(memory: &str, extractor: &str) -> Data {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    let settings = [("memory_bytes", "1GiB"), ("prefix_extractor", extractor), ("overflow_runs_max", "64")];
    settings.into_iter().for_each(|(name, value)| options.set(name, value).unwrap());
    let open = |options: &Options| {
        let engine = Engine::open(&dir.path().join("data"), options, Env::real()).unwrap();
        engine.set_background_paused(true);
        let table = engine.catalog().require("default").unwrap();
        (engine, table)
    };
    let (engine, table) = open(&options);
    for run in 0..RUNS {
        for number in (run..prefixes()).step_by(RUNS as usize) {
            let mut batch = Batch::new();
            for rest in 0..KEYS_OF_PREFIX {
                let key = [mix(number).to_be_bytes(), rest.to_be_bytes()].concat();
                batch.put(TableId::DEFAULT, &key, &mix(rest).to_be_bytes().repeat(12)).unwrap();
            }
            engine.write(&batch, false).unwrap();
        }
        engine.flush_to_run(&table).unwrap();
    }
    drop(table);
    engine.close().unwrap();
    drop(engine);
    options.set("memory_bytes", memory).unwrap();
    let (engine, table) = open(&options);
    let data = Data { _dir: dir, engine, table };
    (0..prefixes()).for_each(|number| assert_eq!(seek(&data, number), KEYS_OF_PREFIX as usize));
    data
}

/// Rows of one prefix.
fn seek(data: &Data, number: u64) -> usize {
    let seq = data.engine.visible();
    let mut scan = data.engine.scan(&data.table, Bounds::prefix(&mix(number).to_be_bytes()), seq);
    let mut rows = 0;
    scan.seek_first().unwrap();
    while scan.entry().is_some() {
        rows += 1;
        scan.next().unwrap();
    }
    rows
}

fn seeks(c: &mut Criterion) {
    for (memory, place) in [("1GiB", "cached"), ("32MiB", "beyond the cache")] {
        for extractor in ["none", "fixed:8"] {
            let data = data(memory, extractor);
            let (mut there, mut missing, mut absent) = (0, 0, 0);
            c.bench_function(&format!("prefix that is there, {place}, {extractor}"), |b| {
                b.iter(|| {
                    there += 1;
                    black_box(seek(&data, mix(there) % prefixes()))
                });
            });
            c.bench_function(&format!("prefix that is missing, {place}, {extractor}"), |b| {
                b.iter(|| {
                    missing += 1;
                    black_box(seek(&data, prefixes() + missing))
                });
            });
            let mut value = Vec::new();
            c.bench_function(&format!("get of an absent key, {place}, {extractor}"), |b| {
                b.iter(|| {
                    absent += 1;
                    let key =
                        [mix(mix(absent) % prefixes()).to_be_bytes(), mix(absent).to_be_bytes()].concat();
                    black_box(data.engine.get(&data.table, &key, ReadMode::default(), &mut value).unwrap())
                });
            });
        }
    }
}

criterion_group!(benches, seeks);
criterion_main!(benches);
