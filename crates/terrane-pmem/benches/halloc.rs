//! Latency of allocations from 128 B to 16 KiB, and what the way through a region costs.
#![expect(missing_docs, reason = "criterion's macros make an undocumented function")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use terrane_device::pm::{PmRegion, Volatile};
use terrane_pmem::{Emulated, Halloc, Owner, Profile};

const REGION_BYTES: u64 = 256 << 20;
const CHUNK_BYTES: u64 = 2 << 20;
/// Objects in use at once: more than the caches have words for.
const HELD: usize = 1000;

fn pool<R: PmRegion>(region: R) -> Halloc<R> {
    Halloc::create(region, CHUNK_BYTES, 1).expect("a new region")
}

fn allocations<R: PmRegion>(c: &mut Criterion, name: &str, halloc: &Halloc<R>) {
    let mut group = c.benchmark_group(format!("allocate and free, {name}"));
    group.sample_size(20);
    for bytes in [128, 1 << 10, 4 << 10, 16 << 10] {
        let mut held: Vec<_> =
            (0..HELD).map(|_| halloc.allocate(bytes, Owner(1)).expect("room for them")).collect();
        let mut turn = 0;
        group.bench_function(format!("object of {bytes} B"), |b| {
            b.iter(|| {
                let object = halloc.allocate(bytes, Owner(1)).expect("room for it");
                let older = std::mem::replace(&mut held[turn], object);
                halloc.free_object(older).expect("in use");
                turn = (turn + 1) % HELD;
            });
        });
        held.into_iter().for_each(|object| halloc.free_object(object).expect("in use"));
    }
    group.bench_function("zone of one chunk", |b| {
        b.iter(|| {
            let zone = halloc.grant(1, Owner(1)).expect("room for it");
            halloc.free_zone(zone).expect("in use");
        });
    });
    group.finish();
}

fn halloc(c: &mut Criterion) {
    allocations(c, "memory", &pool(Volatile::new(REGION_BYTES)));
    for (name, profile) in [("DRAM counted", Profile::DRAM), ("Optane-like", Profile::OPTANE_LIKE)] {
        allocations(c, name, &pool(Emulated::new(Volatile::new(REGION_BYTES), profile)));
    }
}

/// A word stored and made durable: through code that is generic over its region, through a trait object, and
/// with counters.
fn steps(c: &mut Criterion) {
    fn step<R: PmRegion + ?Sized>(region: &R, turn: &mut u64) {
        *turn = (*turn + 4096 + 64) % (64 << 10);
        region.store(*turn, *turn).expect("within the region");
        region.persist(*turn, 8).expect("within the region");
    }
    let region = Volatile::new(1 << 20);
    let counted = Emulated::new(Volatile::new(1 << 20), Profile::DRAM);
    let mut group = c.benchmark_group("store and persist a word");
    group.sample_size(20);
    let mut turn = 0;
    group.bench_function("generic", |b| b.iter(|| step(&region, &mut turn)));
    group.bench_function("trait object", |b| {
        let region: &dyn PmRegion = black_box(&region);
        b.iter(|| step(region, &mut turn));
    });
    group.bench_function("emulated DRAM", |b| b.iter(|| step(&counted, &mut turn)));
    group.finish();
}

/// Bytes that are streamed, and bytes that are written and flushed.
fn copies(c: &mut Criterion) {
    const LEN: usize = 64 << 10;
    let region = Volatile::new(64 << 20);
    let bytes = vec![7; LEN];
    let mut group = c.benchmark_group("64 KiB made durable");
    group.sample_size(20).throughput(criterion::Throughput::Bytes(LEN as u64));
    let mut at = 0;
    let mut next = move || {
        at = (at + LEN as u64) % (64 << 20);
        at
    };
    group.bench_function("streamed", |b| {
        b.iter(|| {
            region.stream(next(), &bytes).expect("within the region");
            region.fence().expect("it works");
        });
    });
    group.bench_function("written and flushed", |b| {
        b.iter(|| {
            let at = next();
            region.write(at, &bytes).expect("within the region");
            region.persist(at, LEN as u64).expect("within the region");
        });
    });
    group.finish();
}

criterion_group!(benches, halloc, steps, copies);
criterion_main!(benches);
