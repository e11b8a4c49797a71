//! Schedules of threads that allocate and free, explored; crash images at every store and fence.
#![cfg(feature = "shuttle")]
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner, thread};
use support::{Thing, World, check_image, small, watch};
use terrane_base::Kind;
use terrane_pmem::{Owner, Reserve, Shadowed};

fn explore(rounds: usize, test: impl Fn() + Send + Sync + 'static) {
    let config = || {
        let mut config = Config::new();
        // Crash images are opened on the stack of the thread that is cut.
        config.stack_size = 1 << 20;
        config.silence_warnings = true;
        config
    };
    let test = Arc::new(test);
    let again = test.clone();
    Runner::new(RandomScheduler::new(rounds), config()).run(move || test());
    Runner::new(PctScheduler::new(3, rounds), config()).run(move || again());
}

/// Runs each of `programs` by a thread of its own, with crash images at every cut; checks the memory in use
/// in the end.
fn race(prepare: impl Fn(&World<Shadowed>), programs: &[fn(&World<Shadowed>)]) {
    let world = Arc::new(small());
    prepare(&world);
    // Images are looked at under the lock of the region, where no schedule goes on.
    let findings = watch(world.halloc.region(), &world.expected, 8, 1);
    let threads: Vec<_> = programs
        .iter()
        .map(|program| {
            let (world, program) = (world.clone(), *program);
            thread::spawn(move || program(&world))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    world.halloc.region().unwatch();
    assert_eq!(findings.lock().unwrap().wrong, Vec::<String>::new());
    let expected = world.expected.lock().unwrap().clone();
    assert!(expected.pending.is_empty());
    check_image(&world.halloc.region().images().image(0), &expected).unwrap();
}

fn objects_of(world: &World<Shadowed>, owner: u32) -> Vec<Thing> {
    world.live().into_iter().filter(|thing| thing.owner() == Owner(owner)).collect()
}

#[test]
fn threads_that_allocate_get_different_memory() {
    explore(60, || {
        race(
            |_| {},
            &[
                |world| {
                    world.allocate(1024, Owner(1));
                    world.grant(1, Owner(1));
                },
                |world| {
                    world.allocate(1024, Owner(2));
                    world.allocate(1024, Owner(2));
                },
            ],
        );
    });
}

#[test]
fn space_that_one_thread_frees_goes_to_another_one() {
    explore(60, || {
        race(
            |world| {
                world.grant(4, Owner(1));
                world.allocate(1024, Owner(1));
            },
            &[
                |world| objects_of(world, 1).into_iter().for_each(|thing| world.free(thing)),
                |world| {
                    world.grant(2, Owner(2));
                    world.allocate(1024, Owner(2));
                },
                |world| world.grant(1, Owner(3)),
            ],
        );
    });
}

/// Of two threads that free the same thing one gets an error.
#[test]
fn memory_becomes_free_once() {
    explore(60, || {
        let world = Arc::new(small());
        let zone = world.halloc.grant(2, Owner(1)).unwrap();
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let world = world.clone();
                thread::spawn(move || world.halloc.free_zone(zone).map_err(|error| error.kind()))
            })
            .collect();
        let results: BTreeSet<String> =
            threads.into_iter().map(|thread| format!("{:?}", thread.join().unwrap())).collect();
        assert_eq!(results.len(), 2, "{results:?}");
        assert!(results.contains(&format!("{:?}", Err::<(), _>(Kind::Invalid))));
        assert_eq!(world.halloc.free_chunk_count(), 6);
    });
}

#[test]
fn a_reserve_is_refilled_while_zones_are_taken() {
    explore(60, || {
        let world = Arc::new(small());
        let reserve = Arc::new(Reserve::new(Owner(9), 1, 2));
        let filler = {
            let (world, reserve) = (world.clone(), reserve.clone());
            thread::spawn(move || reserve.refill(&world.halloc).map(drop))
        };
        let takers: Vec<_> = (1..3)
            .map(|owner| {
                let (world, reserve) = (world.clone(), reserve.clone());
                thread::spawn(move || reserve.take(&world.halloc, Owner(owner)).unwrap())
            })
            .collect();
        let offsets: BTreeSet<u64> = takers.into_iter().map(|taker| taker.join().unwrap().offset()).collect();
        filler.join().unwrap().unwrap();
        assert_eq!(offsets.len(), 2, "each taker has a zone of its own");
        assert_eq!(world.halloc.free_chunk_count() as usize + 2 + reserve.len(), 6);
    });
}
