//! Ways to keep an object alive while it is read: the epoch in use, epochs of our own, and counting
//! references, the counter-example. One thread and two, on one hot object and on many.
//!
//! `cargo bench -p terrane-table --bench epoch`; with `--test` a few turns.
#![allow(missing_docs, reason = "criterion's macros")]
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test says by panicking that it failed")]
#![expect(unsafe_code, reason = "the own epochs promise what `Guard` asks for")]

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use terrane_base::Rng;
use terrane_table::swip::{self, Guard, Swip};

/// Epochs of our own: a slot of a cache line for each thread, which says in which epoch it reads. An object
/// that is retired in epoch `e` is dropped when every thread reads in `e + 1` or later, or not at all.
mod own {
    use super::*;

    const SLOTS: usize = 64;
    const OUTSIDE: u64 = u64::MAX;
    /// Retirements between two attempts to move the epoch on.
    const RETIRED_MAX: usize = 64;

    #[repr(align(128))]
    struct Slot(AtomicU64);

    static EPOCH: AtomicU64 = AtomicU64::new(1);
    static READERS: [Slot; SLOTS] = [const { Slot(AtomicU64::new(OUTSIDE)) }; SLOTS];
    static NEXT: AtomicU64 = AtomicU64::new(0);

    type Retired = VecDeque<(u64, Box<dyn Any + Send>)>;

    thread_local! {
        static SLOT: Cell<usize> = const { Cell::new(usize::MAX) };
        static RETIRED: RefCell<Retired> = const { RefCell::new(VecDeque::new()) };
    }

    pub(super) struct Pinned(&'static Slot);

    #[inline]
    pub(super) fn enter() -> Pinned {
        let slot = SLOT.get();
        let slot = if slot == usize::MAX { register() } else { slot };
        let slot = &READERS[slot];
        slot.0.store(EPOCH.load(Ordering::Relaxed), Ordering::Relaxed);
        // The store before the loads under the guard: pairs with the fence of `retire`.
        fence(Ordering::SeqCst);
        Pinned(slot)
    }

    #[cold]
    fn register() -> usize {
        let slot = NEXT.fetch_add(1, Ordering::Relaxed) as usize % SLOTS;
        SLOT.set(slot);
        slot
    }

    impl Drop for Pinned {
        #[inline]
        fn drop(&mut self) {
            self.0.0.store(OUTSIDE, Ordering::Release);
        }
    }

    // SAFETY: an object retired in epoch `e` is dropped when no slot shows `e` or less. A reader that entered
    // before the retirement shows at most `e`, and the fences order its entry against the check of the slots.
    unsafe impl Guard for Pinned {
        fn retire<R: Send + 'static>(&self, reference: R) {
            fence(Ordering::SeqCst);
            let epoch = EPOCH.fetch_add(1, Ordering::SeqCst);
            RETIRED.with_borrow_mut(|retired| {
                retired.push_back((epoch, Box::new(reference)));
                if retired.len() >= RETIRED_MAX {
                    let least = READERS.iter().map(|slot| slot.0.load(Ordering::SeqCst)).min();
                    while retired.front().is_some_and(|(epoch, _)| *epoch < least.unwrap_or(0)) {
                        retired.pop_front();
                    }
                }
            });
        }
    }
}

/// An object behind a lock and a count: what reading costs where nothing else keeps it alive.
struct Counted(Mutex<Arc<u64>>);

/// Reads of each thread in one measured turn.
const TURNS: u64 = 200_000;

/// The time of `turns` calls of `read` on each of `threads` threads at once.
fn timed(threads: u64, turns: u64, read: &(impl Fn(usize) -> u64 + Sync)) -> Duration {
    let barrier = Barrier::new(threads as usize);
    let took = Mutex::new(Duration::ZERO);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (barrier, took) = (&barrier, &took);
            scope.spawn(move || {
                let mut rng = Rng::new(thread);
                let mut sum = 0;
                barrier.wait();
                let start = Instant::now();
                for _ in 0..turns {
                    sum += read(rng.next_u64() as usize);
                }
                black_box(sum);
                let mut longest = took.lock().unwrap();
                *longest = longest.max(start.elapsed());
            });
        }
    });
    took.into_inner().unwrap()
}

fn bench(criterion: &mut Criterion) {
    let is_test = std::env::args().any(|arg| arg == "--test");
    for objects in [1usize, 10_000] {
        let swips: Vec<Swip<u64>> = (0..objects).map(|_| Swip::default()).collect();
        let counted: Vec<_> = (0..objects as u64).map(|i| Counted(Mutex::new(Arc::new(i)))).collect();
        for (i, swip) in swips.iter().enumerate() {
            assert!(swip.publish(Arc::new(i as u64)).is_ok());
        }
        let epoch = |at: usize| *swips[at % objects].load(&swip::enter()).unwrap();
        let own = |at: usize| *swips[at % objects].load(&own::enter()).unwrap();
        let count = |at: usize| *swips[at % objects].load_owned(&swip::enter()).unwrap();
        let locked = |at: usize| **black_box(&counted[at % objects].0.lock().unwrap().clone());
        // Own epochs free what they retire as well: the comparison is of two that work.
        for _ in 0..if is_test { 100 } else { 10_000 } {
            let guard = own::enter();
            assert!(swips[0].clear(&guard) && swips[0].publish(Arc::new(7)).is_ok());
        }
        for threads in [1, 2] {
            let mut group = criterion.benchmark_group(format!("{objects} objects, {threads} threads"));
            group.sample_size(10).warm_up_time(Duration::from_millis(100));
            group.measurement_time(Duration::from_millis(500));
            let turns = if is_test { 1000 } else { TURNS };
            group.throughput(Throughput::Elements(turns));
            let mut run = |name: &str, read: &(dyn Fn(usize) -> u64 + Sync)| {
                group.bench_function(name, |bencher| {
                    bencher
                        .iter_custom(|count| (0..count).map(|_| timed(threads, turns, &|at| read(at))).sum());
                });
            };
            run("epoch in use", &epoch);
            run("own epochs", &own);
            run("counting references", &count);
            run("lock and count", &locked);
            group.finish();
        }
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
