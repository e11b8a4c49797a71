//! Conditions on every crash image of an allocator, and operations that are cut.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use terrane_base::Rng;
use terrane_device::pm::PmRegion;
use terrane_pmem::{CrashImages, Event, Halloc, Object, Owner, Shadowed, Zone};

pub(crate) const CHUNK_BYTES: u64 = 4096;
/// Six chunks behind two of superblock and table.
pub(crate) const REGION_BYTES: u64 = 8 * CHUNK_BYTES;
/// Owners from here on are not known to the opener.
pub(crate) const UNKNOWN: u32 = 100;

pub(crate) fn is_known(owner: Owner) -> bool {
    owner.0 < UNKNOWN
}

/// Something that an owner has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Thing {
    Zone(Zone),
    Object(Object),
}

impl Thing {
    pub(crate) fn owner(&self) -> Owner {
        match self {
            Thing::Zone(zone) => zone.owner(),
            Thing::Object(object) => object.owner(),
        }
    }

    pub(crate) fn offset(&self) -> u64 {
        match self {
            Thing::Zone(zone) => zone.offset(),
            Thing::Object(object) => object.offset(),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Thing::Zone(zone) => zone.bytes(),
            Thing::Object(object) => object.bytes(),
        }
    }
}

/// An operation that has not returned.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pending {
    Add { owner: Owner, bytes: u64 },
    Remove(Thing),
    Change(Thing, Owner),
}

/// Acknowledged changes, and those that are not yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    pub(crate) live: BTreeSet<Thing>,
    pub(crate) pending: Vec<Pending>,
}

impl Expected {
    /// Checks what an opening found.
    pub(crate) fn check(&self, found: &BTreeSet<Thing>) -> Result<(), String> {
        let may_go = |thing: &Thing| {
            self.pending.iter().any(|pending| match pending {
                Pending::Remove(gone) | Pending::Change(gone, _) => gone == thing,
                Pending::Add { .. } => false,
            })
        };
        let known = self.live.iter().filter(|thing| is_known(thing.owner()));
        if let Some(lost) = known.clone().find(|thing| !found.contains(thing) && !may_go(thing)) {
            return Err(format!("lost: {lost:?}"));
        }
        let mut open = self.pending.clone();
        for extra in found.difference(&self.live) {
            let allowed = open.iter().position(|pending| match *pending {
                Pending::Add { owner, bytes } => extra.owner() == owner && extra.bytes() == bytes,
                Pending::Change(from, owner) => extra.offset() == from.offset() && extra.owner() == owner,
                Pending::Remove(_) => false,
            });
            let Some(allowed) = allowed else { return Err(format!("not in use: {extra:?}")) };
            open.remove(allowed);
        }
        Ok(())
    }
}

/// The result of opening an image; an error says why the image is not one that may be left.
pub(crate) fn recover(region: Shadowed) -> Result<(Halloc<Shadowed>, BTreeSet<Thing>), String> {
    let (halloc, found) = Halloc::open(region, is_known).map_err(|error| error.to_string())?;
    let zones = found.zones.iter().map(|zone| Thing::Zone(*zone));
    let things: BTreeSet<Thing> =
        zones.chain(found.objects.iter().map(|object| Thing::Object(*object))).collect();
    let of_zones: u32 = found.zones.iter().map(|zone| u32::from(zone.chunks())).sum();
    let of_objects: BTreeSet<u64> =
        found.objects.iter().map(|object| object.offset() / CHUNK_BYTES).collect();
    let used = of_zones + of_objects.len() as u32;
    if halloc.free_chunk_count() + used != halloc.chunk_count() {
        let (free, all) = (halloc.free_chunk_count(), halloc.chunk_count());
        return Err(format!("leaked: {free} free and {used} in use of {all} chunks"));
    }
    if let Some(unknown) = things.iter().find(|thing| !is_known(thing.owner())) {
        return Err(format!("leaked: {unknown:?} has no owner"));
    }
    Ok((halloc, things))
}

/// Checks one image.
pub(crate) fn check_image(image: &[u8], expected: &Expected) -> Result<(), String> {
    let (_, found) = recover(Shadowed::with_content(image))?;
    expected.check(&found)
}

/// Checks that an opening of `image` may be cut anywhere: the next one finds the same.
pub(crate) fn check_cut_recovery(image: &[u8]) {
    let whole = recover(Shadowed::with_content(image)).unwrap().1;
    let region = Shadowed::with_content(image);
    let cuts = Arc::new(Mutex::new(Vec::new()));
    let noted = cuts.clone();
    region.watch(move |cut| {
        if cut.event != Event::Flush {
            noted.lock().unwrap().push(cut.images());
        }
    });
    let (halloc, found) = recover(region).unwrap();
    assert_eq!(found, whole);
    halloc.region().unwatch();
    cuts.lock().unwrap().push(halloc.region().images());
    let cuts: Vec<CrashImages> = cuts.lock().unwrap().clone();
    for images in cuts {
        images.each(16, &mut Rng::new(5), |image| {
            assert_eq!(recover(Shadowed::with_content(&image)).unwrap().1, whole, "a cut opening");
        });
    }
}

/// The findings of watchers, with the number of images they looked at.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) images: u64,
    pub(crate) wrong: Vec<String>,
}

/// Images that are drawn at a cut with more than the limit.
const SAMPLES: u64 = 6;

/// Looks at all images at every cut of `region`, each with its expected content; where there are more than
/// `limit`, at a few.
pub(crate) fn watch(
    region: &Shadowed,
    expected: &Arc<Mutex<Expected>>,
    limit: u64,
    seed: u64,
) -> Arc<Mutex<Findings>> {
    let findings = Arc::new(Mutex::new(Findings::default()));
    let (noted, expected, mut rng) = (findings.clone(), expected.clone(), Rng::new(seed));
    region.watch(move |cut| {
        // A flush changes no image.
        if cut.event == Event::Flush {
            return;
        }
        let expected = expected.lock().unwrap().clone();
        let mut findings = noted.lock().unwrap();
        let images = cut.images();
        let few = if images.count() > limit { SAMPLES } else { limit };
        images.each(few, &mut rng, |image| {
            findings.images += 1;
            if let Err(why) = check_image(&image, &expected) {
                findings.wrong.push(format!("{:?}: {why}", cut.event));
            }
        });
    });
    findings
}

/// An allocator with its expected state.
pub(crate) struct World<R> {
    pub(crate) halloc: Halloc<R>,
    pub(crate) expected: Arc<Mutex<Expected>>,
}

impl<R: PmRegion> World<R> {
    pub(crate) fn new(halloc: Halloc<R>) -> Self {
        World { halloc, expected: Arc::default() }
    }

    /// Runs an operation; what it does is pending until it has returned.
    fn run(&self, pending: Pending, operation: impl FnOnce() -> terrane_base::Result<Option<Thing>>) {
        self.expected.lock().unwrap().pending.push(pending);
        let result = operation();
        let mut expected = self.expected.lock().unwrap();
        let same = format!("{pending:?}");
        let at = expected.pending.iter().position(|pending| format!("{pending:?}") == same).unwrap();
        expected.pending.remove(at);
        if let Ok(added) = result {
            if let Pending::Remove(gone) | Pending::Change(gone, _) = pending {
                expected.live.remove(&gone);
            }
            expected.live.extend(added);
        }
    }

    pub(crate) fn grant(&self, chunks: u16, owner: Owner) {
        let pending = Pending::Add { owner, bytes: u64::from(chunks) * CHUNK_BYTES };
        self.run(pending, || self.halloc.grant(chunks, owner).map(|zone| Some(Thing::Zone(zone))));
    }

    pub(crate) fn allocate(&self, bytes: u64, owner: Owner) {
        let pending = Pending::Add { owner, bytes: bytes.next_power_of_two() };
        self.run(pending, || self.halloc.allocate(bytes, owner).map(|object| Some(Thing::Object(object))));
    }

    pub(crate) fn free(&self, thing: Thing) {
        self.run(Pending::Remove(thing), || match thing {
            Thing::Zone(zone) => self.halloc.free_zone(zone).map(|()| None),
            Thing::Object(object) => self.halloc.free_object(object).map(|()| None),
        });
    }

    pub(crate) fn assign(&self, zone: Zone, owner: Owner) {
        let pending = Pending::Change(Thing::Zone(zone), owner);
        self.run(pending, || self.halloc.assign(zone, owner).map(|zone| Some(Thing::Zone(zone))));
    }

    /// The owner writes the front of its memory: bytes that must not count as anything else later.
    pub(crate) fn fill(&self, thing: Thing, byte: u8) {
        let region = self.halloc.region();
        region.stream(thing.offset(), &vec![byte; 256.min(thing.bytes() as usize)]).unwrap();
        region.fence().unwrap();
    }

    pub(crate) fn live(&self) -> Vec<Thing> {
        self.expected.lock().unwrap().live.iter().copied().collect()
    }

    /// One operation at random.
    pub(crate) fn step(&self, rng: &mut Rng) {
        let owner = Owner(if rng.one_in(4) { UNKNOWN } else { 0 } + rng.below(3) as u32);
        let live = self.live();
        match rng.below(10) {
            0..=2 => self.grant(1 + rng.below(3) as u16, owner),
            3..=5 => self.allocate(*rng.pick(&[64, 500, 512, 1024]), owner),
            6 if !live.is_empty() => match *rng.pick(&live) {
                Thing::Zone(zone) => self.assign(zone, owner),
                object @ Thing::Object(_) => self.free(object),
            },
            _ if !live.is_empty() => self.free(*rng.pick(&live)),
            _ => {}
        }
    }
}

pub(crate) fn small() -> World<Shadowed> {
    World::new(Halloc::create(Shadowed::new(REGION_BYTES), CHUNK_BYTES, 7).unwrap())
}
