//! Random operations and openings against a model: the memory in use, by offset.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use terrane_base::Kind;
use terrane_device::pm::{PmRegion, Volatile};
use terrane_pmem::{Halloc, Owner};

use crate::support::{CHUNK_BYTES, Thing};

const REGION_BYTES: u64 = 20 * CHUNK_BYTES;

#[derive(Clone, Debug)]
enum Step {
    Grant(u16, u32),
    Allocate(u64, u32),
    Free(usize),
    Assign(usize, u32),
    Open(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1u16..6, 0u32..8).prop_map(|(chunks, owner)| Step::Grant(chunks, owner)),
        6 => (1u64..1024, 0u32..8).prop_map(|(bytes, owner)| Step::Allocate(bytes, owner)),
        5 => any::<usize>().prop_map(Step::Free),
        2 => (any::<usize>(), 0u32..8).prop_map(|(which, owner)| Step::Assign(which, owner)),
        1 => (0u32..8).prop_map(Step::Open),
    ];
    proptest::collection::vec(step, 0..60)
}

struct Model {
    halloc: Halloc<Volatile>,
    live: BTreeMap<u64, Thing>,
    /// Chunks of objects, by number, with the bytes of their objects.
    object_chunks: BTreeMap<u64, u64>,
}

impl Model {
    /// Chunks that no zone and no objects take.
    fn free(&self) -> BTreeSet<u64> {
        let head = REGION_BYTES / CHUNK_BYTES - u64::from(self.halloc.chunk_count());
        let of_zones = self.live.values().filter(|thing| matches!(thing, Thing::Zone(_)));
        let taken = of_zones
            .flat_map(|zone| (0..zone.bytes() / CHUNK_BYTES).map(|n| zone.offset() / CHUNK_BYTES + n));
        let taken: BTreeSet<u64> = taken.chain(self.object_chunks.keys().copied()).collect();
        (head..REGION_BYTES / CHUNK_BYTES).filter(|chunk| !taken.contains(chunk)).collect()
    }

    fn has_run(&self, chunks: u16) -> bool {
        let free = self.free();
        free.iter().any(|first| (0..u64::from(chunks)).all(|next| free.contains(&(first + next))))
    }

    fn add(&mut self, thing: Thing) {
        let (start, end) = (thing.offset(), thing.offset() + thing.bytes());
        let before = self.live.range(..end).next_back();
        assert!(
            before.is_none_or(|(_, other)| other.offset() + other.bytes() <= start),
            "{thing:?} overlaps {before:?}"
        );
        self.live.insert(start, thing);
    }

    fn allocate(&mut self, bytes: u64, owner: Owner) {
        let of_class = bytes.next_power_of_two().max(64);
        match self.halloc.allocate(bytes, owner) {
            Ok(object) => {
                assert_eq!((object.bytes(), object.owner()), (of_class, owner));
                let chunk = object.offset() / CHUNK_BYTES;
                let is_new = !self.object_chunks.contains_key(&chunk);
                assert!(!is_new || self.free().contains(&chunk), "a chunk of objects was free");
                assert_eq!(
                    *self.object_chunks.entry(chunk).or_insert(of_class),
                    of_class,
                    "one class in a chunk"
                );
                self.add(Thing::Object(object));
            }
            Err(error) => {
                assert_eq!(error.kind(), Kind::Full);
                assert!(self.free().is_empty(), "a chunk is free for objects");
            }
        }
    }

    fn nth(&self, which: usize) -> Option<Thing> {
        self.live.values().nth(which % self.live.len().max(1)).copied()
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Grant(chunks, owner) => match self.halloc.grant(chunks, Owner(owner)) {
                Ok(zone) => {
                    assert_eq!((zone.chunks(), zone.owner()), (chunks, Owner(owner)));
                    self.add(Thing::Zone(zone));
                }
                Err(error) => {
                    assert_eq!(error.kind(), Kind::Full);
                    assert!(!self.has_run(chunks), "{chunks} adjacent chunks are free");
                }
            },
            Step::Allocate(bytes, owner) => self.allocate(bytes, Owner(owner)),
            Step::Free(which) => {
                let Some(thing) = self.nth(which) else { return };
                match thing {
                    Thing::Zone(zone) => self.halloc.free_zone(zone).unwrap(),
                    Thing::Object(object) => self.halloc.free_object(object).unwrap(),
                }
                self.live.remove(&thing.offset());
            }
            Step::Assign(which, owner) => {
                if let Some(Thing::Zone(zone)) = self.nth(which) {
                    let zone = self.halloc.assign(zone, Owner(owner)).unwrap();
                    self.live.insert(zone.offset(), Thing::Zone(zone));
                }
            }
            Step::Open(unknown) => self.open(Owner(unknown)),
        }
    }

    /// Opens the region again; one owner is not known any more.
    fn open(&mut self, unknown: Owner) {
        let mut image = vec![0; REGION_BYTES as usize];
        self.halloc.region().read(0, &mut image).unwrap();
        let (halloc, found) = Halloc::open(Volatile::with_content(&image), |owner| owner != unknown).unwrap();
        let before = self.live.len() as u64;
        self.live.retain(|_, thing| thing.owner() != unknown);
        assert_eq!(found.freed_zones + found.freed_objects, before - self.live.len() as u64);
        let things: BTreeMap<u64, Thing> = found
            .zones
            .into_iter()
            .map(Thing::Zone)
            .chain(found.objects.into_iter().map(Thing::Object))
            .map(|thing| (thing.offset(), thing))
            .collect();
        assert_eq!(things, self.live);
        let of_objects = self.live.values().filter(|thing| matches!(thing, Thing::Object(_)));
        let used: BTreeSet<u64> = of_objects.map(|object| object.offset() / CHUNK_BYTES).collect();
        let chunks = self.object_chunks.len();
        self.object_chunks.retain(|chunk, _| used.contains(chunk));
        assert_eq!(found.freed_object_chunks as usize, chunks - self.object_chunks.len());
        self.halloc = halloc;
    }
}

proptest! {
    #[test]
    fn an_allocator_is_what_its_model_says(steps in steps()) {
        let halloc = Halloc::create(Volatile::new(REGION_BYTES), CHUNK_BYTES, 5).unwrap();
        let mut model = Model { halloc, live: BTreeMap::new(), object_chunks: BTreeMap::new() };
        for step in &steps {
            model.step(step);
            prop_assert_eq!(model.halloc.free_chunk_count() as usize, model.free().len());
            for thing in model.live.values() {
                match thing {
                    Thing::Zone(zone) => prop_assert_eq!(model.halloc.zone_at(zone.offset()).unwrap(), *zone),
                    Thing::Object(object) => prop_assert_eq!(model.halloc.object_at(object.offset()).unwrap(), *object),
                }
            }
        }
    }
}
