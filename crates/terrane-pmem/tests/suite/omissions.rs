//! Each flush and each fence of each operation is left out once: the checker must find it.

use std::sync::{Arc, Mutex};

use terrane_device::pm::PmRegion;
use terrane_pmem::{Halloc, Omitting, Owner, Shadowed, Step};

use crate::support::{CHUNK_BYTES, Findings, REGION_BYTES, Thing, World, watch};

/// A step that is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Omitted {
    #[default]
    None,
    Flush(usize),
    Fence(usize),
}

/// The omitted step of an operation, and the flushes and fences that were met so far.
#[derive(Debug, Default)]
struct Steps {
    omitted: Omitted,
    flushes: usize,
    fences: usize,
}

impl Steps {
    /// Counts a step; whether it is left out.
    fn omits(&mut self, step: Step) -> bool {
        let (met, count) = match step {
            Step::Flush(_) => (Omitted::Flush(self.flushes), &mut self.flushes),
            Step::Fence => (Omitted::Fence(self.fences), &mut self.fences),
        };
        *count += 1;
        self.omitted == met
    }
}

type Operation = fn(&World<Omitting>);

fn grant(world: &World<Omitting>) {
    world.grant(2, Owner(5));
}

fn free_zone(world: &World<Omitting>) {
    world.free(*world.live().iter().find(|thing| matches!(thing, Thing::Zone(_))).unwrap());
}

fn assign(world: &World<Omitting>) {
    let zone = world.live().into_iter().find_map(|thing| match thing {
        Thing::Zone(zone) => Some(zone),
        Thing::Object(_) => None,
    });
    world.assign(zone.unwrap(), Owner(6));
}

fn allocate(world: &World<Omitting>) {
    world.allocate(1024, Owner(5));
}

fn allocate_from_new_chunk(world: &World<Omitting>) {
    world.allocate(512, Owner(5));
}

fn free_object(world: &World<Omitting>) {
    world.free(*world.live().iter().find(|thing| matches!(thing, Thing::Object(_))).unwrap());
}

/// An allocator with a zone and an object, and the steps that are made on its region; free chunks have words
/// that would count if they were believed.
fn prepared() -> (World<Omitting>, Arc<Mutex<Steps>>) {
    let steps = Arc::new(Mutex::new(Steps::default()));
    let met = steps.clone();
    let region = Arc::new(Shadowed::new(REGION_BYTES));
    let region = Omitting::new(region, move |step| met.lock().unwrap().omits(step));
    let world = World::new(Halloc::create(region, CHUNK_BYTES, 7).unwrap());
    // Every chunk once full of bytes that are not words.
    for byte in 0..6 {
        world.grant(1, Owner(byte));
    }
    for thing in world.live() {
        world.fill(thing, 0xa5);
        world.free(thing);
    }
    world.grant(1, Owner(1));
    world.allocate(1024, Owner(2));
    (world, steps)
}

/// Runs `operation` without a step; returns how many flushes and fences it has, and what was found wrong
/// until the power fails after it.
fn run(operation: Operation, omitted: Omitted) -> (usize, usize, Findings) {
    let (world, steps) = prepared();
    let region = world.halloc.region().region();
    let findings = watch(region, &world.expected, 4096, 1);
    *steps.lock().unwrap() = Steps { omitted, ..Steps::default() };
    operation(&world);
    let Steps { flushes, fences, .. } = std::mem::take(&mut *steps.lock().unwrap());
    // A store elsewhere is one more moment to cut, after the operation.
    region.store(4000, 1).unwrap();
    let findings = std::mem::take(&mut *findings.lock().unwrap());
    (flushes, fences, findings)
}

#[test]
fn the_checker_finds_every_missing_flush_and_fence() {
    let operations: [(&str, Operation, (usize, usize)); 6] = [
        ("grant", grant, (1, 1)),
        ("free a zone", free_zone, (1, 1)),
        ("assign", assign, (1, 1)),
        ("allocate", allocate, (1, 1)),
        ("allocate from a new chunk", allocate_from_new_chunk, (2, 3)),
        ("free an object", free_object, (1, 1)),
    ];
    for (name, operation, steps) in operations {
        let (flushes, fences, findings) = run(operation, Omitted::None);
        assert_eq!((flushes, fences), steps, "{name}: flushes and fences");
        assert_eq!(findings.wrong, Vec::<String>::new(), "{name}: nothing is left out");
        let omissions = (0..flushes).map(Omitted::Flush).chain((0..fences).map(Omitted::Fence));
        for omitted in omissions {
            let (.., findings) = run(operation, omitted);
            // Behind the word of a new chunk of objects: its own thread makes a fence again before the object
            // counts; only a thread that takes another object of the chunk needs this one (see the
            // schedules).
            let is_for_others = name == "allocate from a new chunk" && omitted == Omitted::Fence(1);
            assert_eq!(
                findings.wrong.is_empty(),
                is_for_others,
                "{name} without {omitted:?}: {:?}",
                findings.wrong
            );
        }
    }
}
