//! The space manager with 100,000 slots, the data of a database of about 200 GB.
#![expect(missing_docs, reason = "criterion's macros make an undocumented function")]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use terrane_base::ExtentId;
use terrane_storage::space::{Reserve, Space};

const SLOTS: u32 = 100_000;
const CHURN: u32 = 1000;

/// All slots taken, one by one.
fn filled() -> (Space, Vec<ExtentId>) {
    let mut space = Space::new();
    let extents = (0..SLOTS).map(|_| take(&mut space, 1)).collect();
    (space, extents)
}

fn take(space: &mut Space, slots: u32) -> ExtentId {
    loop {
        if let Some((id, _)) = space.take(slots) {
            return id;
        }
        let plan = space.plan_growth(slots);
        space.grown(plan.file, plan.to);
    }
}

/// Frees slots all over the files.
fn free_scattered(space: &mut Space, extents: &[ExtentId], count: u32) {
    for index in 0..count {
        let id = extents[(index as usize * 7919) % extents.len()];
        space.free(id, 1).expect("taken once, freed once");
    }
}

fn space(c: &mut Criterion) {
    let mut group = c.benchmark_group("space");
    group.sample_size(10);
    group.throughput(Throughput::Elements(SLOTS.into()));
    group.bench_function("fill", |b| b.iter(filled));
    group.throughput(Throughput::Elements(CHURN.into()));
    group.bench_function("free and take again, scattered", |b| {
        let (mut space, extents) = filled();
        b.iter(|| {
            free_scattered(&mut space, &extents, CHURN);
            (0..CHURN).for_each(|_| drop(space.take(1)));
        });
    });
    group.bench_function("take runs of 8 past scattered slots", |b| {
        let fragmented = || {
            let (mut space, extents) = filled();
            free_scattered(&mut space, &extents, SLOTS / 4);
            space
        };
        b.iter_batched(
            fragmented,
            |mut space| (0..CHURN).map(|_| take(&mut space, 8)).count(),
            BatchSize::LargeInput,
        );
    });
    group.throughput(Throughput::Elements((SLOTS / 2).into()));
    group.bench_function("reclaim half, scattered", |b| {
        let half_free = || {
            let (mut space, extents) = filled();
            free_scattered(&mut space, &extents, SLOTS / 2);
            space
        };
        b.iter_batched(
            half_free,
            |mut space| {
                while let Some(plan) = space.plan_reclaim(Reserve::Share) {
                    space.reclaimed(&plan, true);
                }
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

criterion_group!(benches, space);
criterion_main!(benches);
