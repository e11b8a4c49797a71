//! Each flush and each fence of each operation is left out once: the checker must find it.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use terrane_base::Result;
use terrane_device::pm::{PmRegion, Survives};
use terrane_pmem::{Halloc, Owner, Shadowed};

use crate::support::{CHUNK_BYTES, Findings, REGION_BYTES, Thing, World, watch};

/// A step that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Omitted {
    None,
    Flush(usize),
    Fence(usize),
}

/// A region that leaves a flush or a fence out.
struct Omitting {
    region: Shadowed,
    omitted: Arc<Mutex<Omitted>>,
    flushes: AtomicUsize,
    fences: AtomicUsize,
}

impl Omitting {
    fn begin(&self, omitted: Omitted) {
        *self.omitted.lock().unwrap() = omitted;
        self.flushes.store(0, Ordering::Relaxed);
        self.fences.store(0, Ordering::Relaxed);
    }
}

impl fmt::Debug for Omitting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.region.fmt(f)
    }
}

impl PmRegion for Omitting {
    fn len(&self) -> u64 {
        self.region.len()
    }

    fn survives(&self) -> Survives {
        self.region.survives()
    }

    fn load(&self, offset: u64) -> Result<u64> {
        self.region.load(offset)
    }

    fn store(&self, offset: u64, word: u64) -> Result<()> {
        self.region.store(offset, word)
    }

    fn exchange(&self, offset: u64, expected: u64, word: u64) -> Result<u64> {
        self.region.exchange(offset, expected, word)
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.region.read(offset, bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.region.write(offset, bytes)
    }

    fn stream(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.region.stream(offset, bytes)
    }

    fn flush(&self, offset: u64, len: u64) -> Result<()> {
        let number = self.flushes.fetch_add(1, Ordering::Relaxed);
        match *self.omitted.lock().unwrap() {
            Omitted::Flush(omitted) if omitted == number => Ok(()),
            _ => self.region.flush(offset, len),
        }
    }

    fn fence(&self) -> Result<()> {
        let number = self.fences.fetch_add(1, Ordering::Relaxed);
        match *self.omitted.lock().unwrap() {
            Omitted::Fence(omitted) if omitted == number => Ok(()),
            _ => self.region.fence(),
        }
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

/// An allocator with a zone and an object; free chunks have words that would count if they were believed.
fn prepared() -> World<Omitting> {
    let region = Omitting {
        region: Shadowed::new(REGION_BYTES),
        omitted: Arc::new(Mutex::new(Omitted::None)),
        flushes: AtomicUsize::new(0),
        fences: AtomicUsize::new(0),
    };
    let world = World::new(Halloc::create(region, CHUNK_BYTES, 7).unwrap());
    // Every chunk once full of bytes that are no words.
    for byte in 0..6 {
        world.grant(1, Owner(byte));
    }
    for thing in world.live() {
        world.fill(thing, 0xa5);
        world.free(thing);
    }
    world.grant(1, Owner(1));
    world.allocate(1024, Owner(2));
    world
}

/// Runs `operation` without a step; returns how many flushes and fences it has, and what was found wrong
/// until the power fails after it.
fn run(operation: Operation, omitted: Omitted) -> (usize, usize, Findings) {
    let world = prepared();
    let findings = watch(&world.halloc.region().region, &world.expected, 4096, 1);
    world.halloc.region().begin(omitted);
    operation(&world);
    let region = world.halloc.region();
    let (flushes, fences) = (region.flushes.load(Ordering::Relaxed), region.fences.load(Ordering::Relaxed));
    region.begin(Omitted::None);
    // A store elsewhere is one more moment to cut, after the operation.
    region.region.store(4000, 1).unwrap();
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
