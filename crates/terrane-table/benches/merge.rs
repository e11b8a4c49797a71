//! Merge throughput over sorted vectors: entries in random order among the sources, and in long runs from
//! one.
//!
//! `cargo bench -p terrane-table --bench merge`; with `--test` on a small data set.
#![allow(missing_docs, reason = "criterion's macros")]
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]

#[path = "../tests/suite/support/mod.rs"]
mod support;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use support::{Row, RowCursor};
use terrane_base::{Cursor, Rng};
use terrane_table::MergeCursor;

fn entries() -> u64 {
    if std::env::args().any(|arg| arg == "--test") { 1_000 } else { 200_000 }
}

/// Keys as programs write them: a name and a number, so that the first 8 bytes say nothing.
fn rows() -> impl Iterator<Item = Row> {
    (0..entries()).map(|i| Row::put(format!("customer/{i:012}").as_bytes(), i + 1, &[b'v'; 100]))
}

fn deal(count: usize, mut choose: impl FnMut(u64) -> usize) -> MergeCursor<RowCursor> {
    let mut dealt = vec![Vec::new(); count];
    for (number, row) in rows().enumerate() {
        dealt[choose(number as u64) % count].push(row);
    }
    MergeCursor::new(dealt.into_iter().map(RowCursor::new).collect())
}

fn drain(merge: &mut MergeCursor<RowCursor>) {
    merge.seek_first().unwrap();
    let mut count = 0;
    while merge.entry().is_some() {
        count += 1;
        merge.next().unwrap();
    }
    assert_eq!(count, entries());
}

fn merges(c: &mut Criterion) {
    let mut group = c.benchmark_group("merge");
    group.throughput(Throughput::Elements(entries()));
    for count in [1, 2, 4, 8, 16] {
        let mut rng = Rng::new(3);
        let mut shuffled = deal(count, |_| rng.index(count));
        group.bench_function(BenchmarkId::new("shuffled", count), |b| b.iter(|| drain(&mut shuffled)));
        let mut runs = deal(count, |number| (number / 100) as usize);
        group.bench_function(BenchmarkId::new("runs of 100", count), |b| b.iter(|| drain(&mut runs)));
    }
    group.finish();
}

criterion_group!(benches, merges);
criterion_main!(benches);
