//! A value that a reader of a cell sees lives as long as its guard, and everything is freed once.
//!
//! All tasks of the explorer share one thread, and with it one handle of the collector. So each guard is made
//! with a handle of its own, as on threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shuttle::thread;
use terrane_base::epoch::{EpochCell, Guard, World, pin};

use crate::explore;

/// A number, and how many values were freed so far. What was freed has another number.
struct Counted {
    number: AtomicU64,
    freed: Arc<AtomicU64>,
}

const FREED: u64 = u64::MAX;

impl Drop for Counted {
    fn drop(&mut self) {
        assert_ne!(self.number.swap(FREED, Ordering::Relaxed), FREED, "freed twice");
        self.freed.fetch_add(1, Ordering::Relaxed);
    }
}

impl Counted {
    fn check(&self, least: u64) -> u64 {
        let number = self.number.load(Ordering::Relaxed);
        assert!((least..FREED).contains(&number), "{number} behind {least}");
        number
    }
}

#[derive(Clone)]
struct Shared {
    world: World,
    cell: Arc<EpochCell<Counted>>,
    freed: Arc<AtomicU64>,
}

impl Shared {
    fn new() -> Shared {
        let freed = Arc::<AtomicU64>::default();
        let cell = Arc::new(EpochCell::new(Counted { number: AtomicU64::new(0), freed: freed.clone() }));
        Shared { world: World::default(), cell, freed }
    }

    fn within<R>(&self, part: impl FnOnce() -> R) -> R {
        // SAFETY: cell and guards of a test are used with its own collector only.
        #[expect(unsafe_code, reason = "a collector of its own for each schedule")]
        unsafe {
            self.world.within(part)
        }
    }

    fn pin(&self) -> Guard {
        self.within(pin)
    }

    fn replace(&self, number: u64) {
        let next = Counted { number: AtomicU64::new(number), freed: self.freed.clone() };
        self.within(|| self.cell.replace(next));
    }

    /// Frees what no guard protects.
    fn collect(&self) {
        (0..4).for_each(|_| self.pin().flush());
    }
}

/// Reads twice under one guard, keeps a count behind it, and looks at all of it after each step of others.
fn read(shared: &Shared) {
    let guard = shared.pin();
    let first = shared.cell.load(&guard);
    let number = first.check(0);
    thread::yield_now();
    let kept = shared.cell.share(&guard);
    let later = kept.check(number);
    thread::yield_now();
    assert_eq!((first.check(0), kept.check(0)), (number, later), "a value never changes");
    drop(guard);
    shared.collect();
    thread::yield_now();
    assert_eq!(kept.check(0), later);
}

/// Finds a replaced value that is freed at once, and a count that is given up twice.
#[test]
fn a_value_that_a_reader_sees_outlives_its_replacement() {
    explore(|| {
        let shared = Shared::new();
        let readers = [(); 2].map(|()| {
            let shared = shared.clone();
            thread::spawn(move || read(&shared))
        });
        for number in 1..=3 {
            shared.replace(number);
            shared.collect();
            thread::yield_now();
        }
        for reader in readers {
            reader.join().unwrap();
        }
        let (world, freed) = (shared.world.clone(), shared.freed.clone());
        // The last one goes with the cell; its drop pins, too.
        shared.clone().within(move || drop(shared));
        drop(world);
        assert_eq!(freed.load(Ordering::Relaxed), 4, "each value is freed");
    });
}
