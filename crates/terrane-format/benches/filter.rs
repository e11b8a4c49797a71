//! Filters for one extent at about 10 bits per key: what building and asking cost, in the processor's cache
//! and out of it, and how many false positives there are. `docs/design/0003-filter.md` quotes the figures.
#![allow(clippy::unwrap_used, reason = "benches may panic")]
#![allow(missing_docs, reason = "criterion's macros")]

use std::hint::black_box;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use terrane_base::rng;
use terrane_format::filter::{self, Filter};
use xorf::{BinaryFuse8, BinaryFuse16, Filter as _};

/// Keys of an extent of 2 MB with entries of some 60 bytes.
const KEYS: u64 = 32_768;
const BITS_PER_KEY: u32 = 10;
/// Filters asked in turn, so that none stays in the processor's cache: some 40 MB.
const EXTENTS: u64 = 1024;

/// The same numbers in every run.
fn mix(seed: u64) -> u64 {
    rng::mix(seed.wrapping_mul(rng::STEP))
}

fn hashes(extent: u64) -> Vec<u64> {
    (0..KEYS).map(|key| filter::hash(&(extent * KEYS + key).to_be_bytes())).collect()
}

fn bloom(hashes: &[u64]) -> Filter {
    let mut bytes = Vec::new();
    filter::build(hashes, BITS_PER_KEY, &mut bytes);
    Filter::decode(&bytes).unwrap()
}

fn build(c: &mut Criterion) {
    let hashes = hashes(0);
    let mut group = c.benchmark_group("filter_build");
    group.throughput(Throughput::Elements(KEYS));
    let mut out = Vec::new();
    group.bench_function("blocked_bloom", |b| {
        b.iter(|| {
            out.clear();
            filter::build(black_box(&hashes), BITS_PER_KEY, &mut out);
        });
    });
    group.bench_function("binary_fuse_8", |b| b.iter(|| BinaryFuse8::try_from(black_box(&hashes)).unwrap()));
    group
        .bench_function("binary_fuse_16", |b| b.iter(|| BinaryFuse16::try_from(black_box(&hashes)).unwrap()));
    group.finish();
}

fn ask<F>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    filters: &[F],
    contains: impl Fn(&F, u64) -> bool,
) {
    let absent: Vec<u64> = (0..1 << 16).map(|key| filter::hash(&(!(key as u64)).to_be_bytes())).collect();
    for (place, filters) in [("cached", &filters[..1]), ("memory", filters)] {
        let mut turn = 0usize;
        // Each answer takes part in the next choice, as the levels of a lookup follow each other.
        group.bench_function(format!("{name}/{place}"), |b| {
            b.iter(|| {
                turn = turn.wrapping_add(1);
                let filter = &filters[mix(turn as u64) as usize % filters.len()];
                let found = contains(filter, absent[turn % absent.len()]);
                turn = turn.wrapping_add(usize::from(found));
            });
        });
    }
    let asked = 1_000_000;
    let found =
        (0..asked).filter(|key| contains(&filters[0], filter::hash(&(!*key as u64).to_be_bytes()))).count();
    println!("{name}: {:.3} % false positives", found as f64 * 100.0 / asked as f64);
}

fn probe(c: &mut Criterion) {
    let mut group = c.benchmark_group("filter_ask_absent");
    let blooms: Vec<_> = (0..EXTENTS).map(|extent| bloom(&hashes(extent))).collect();
    println!("blocked_bloom: {:.2} bits per key", blooms[0].memory_bytes() as f64 * 8.0 / KEYS as f64);
    ask(&mut group, "blocked_bloom", &blooms, |filter, hash| filter.may_contain(hash));
    drop(blooms);
    let fuses: Vec<_> = (0..EXTENTS).map(|extent| BinaryFuse8::try_from(&hashes(extent)).unwrap()).collect();
    println!("binary_fuse_8: {:.2} bits per key", fuses[0].fingerprints.len() as f64 * 8.0 / KEYS as f64);
    ask(&mut group, "binary_fuse_8", &fuses, |filter, hash| filter.contains(&hash));
    group.finish();
}

criterion_group!(benches, build, probe);
criterion_main!(benches);
