//! Cost of making operations, keys and values: what the harness itself adds to every operation.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion};
use terrane_bench::generate::catalogue::find;
use terrane_bench::generate::keys::Keys;
use terrane_bench::generate::operation::Operation;
use terrane_bench::generate::space::KeySpace;
use terrane_bench::generate::stream::Stream;
use terrane_bench::generate::values::Values;
use terrane_bench::plan::{Data, Distribution, Run, ValueSize};

const KEYS: u64 = 10_000_000;

fn data(hashed_keys: bool) -> Data {
    Data { keys: KEYS, key_bytes: 16, value: ValueSize::Fixed(100), entropy: 0.5, tables: 1, hashed_keys }
}

#[path = "../tests/suite/common/run.rs"]
mod common;

fn run(workload: &str, distribution: Distribution) -> Run {
    Run { distribution, ..common::run(workload) }
}

fn streams(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("stream");
    let cases = [
        ("readrandom", Distribution::Uniform, "uniform"),
        ("readrandom", Distribution::Sequential, "sequential"),
        ("readrandom", Distribution::Zipfian(0.99), "zipfian 0.99"),
        ("readrandom", Distribution::Zipfian(1.0), "zipfian 1.0"),
        ("readrandom", Distribution::Zipfian(1.2), "zipfian 1.2"),
        ("readrandom", Distribution::Latest, "latest"),
        ("readrandom", Distribution::HotRange(0.1, 0.9), "hot range"),
        ("ycsb_a", Distribution::Default, "default"),
        ("ycsb_d", Distribution::Default, "default"),
        ("ycsb_e", Distribution::Default, "default"),
        ("mixgraph", Distribution::Default, "default"),
        ("multireadrandom", Distribution::Uniform, "32 uniform"),
    ];
    for (workload, distribution, label) in cases {
        let space = Arc::new(KeySpace::new(KEYS));
        let definition = find(workload).expect("a sound case");
        let run = run(workload, distribution);
        let mut stream =
            Stream::new(definition, &run, &data(false), space.clone(), 1, 0, 1).expect("a sound case");
        let mut operation = Operation::Read(0);
        group.bench_function(BenchmarkId::new(workload, label), |bencher| {
            bencher.iter(|| {
                stream.next(&mut operation);
                if let Operation::Insert(number, _) = operation {
                    space.acknowledge(number);
                }
                black_box(&operation);
            });
        });
    }
    group.finish();
}

fn bytes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("bytes");
    let mut key = [0; 16];
    for (hashed, label) in [(false, "decimal"), (true, "hashed")] {
        let keys = Keys::new(&data(hashed));
        let mut number = 0;
        group.bench_function(BenchmarkId::new("key", label), |bencher| {
            bencher.iter(|| {
                number = (number + 7_919) % KEYS;
                keys.write(number, &mut key);
                black_box(&key);
            });
        });
    }
    for len in [100, 1000] {
        let mut values = Values::new(1, len, 0.5);
        let mut number = 0;
        group.bench_function(BenchmarkId::new("value", len), |bencher| {
            bencher.iter(|| {
                number = (number + 7_919) % KEYS;
                black_box(values.write(number, 1, len));
            });
        });
        let value = values.write(7, 1, len).to_vec();
        group.bench_function(BenchmarkId::new("check", len), |bencher| {
            bencher.iter(|| black_box(values.check(7, black_box(&value))));
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    streams(&mut criterion);
    bytes(&mut criterion);
    criterion.final_summary();
}
