//! Every step of the allocator, cut at every store and fence, with the images that may be left.
//!
//! `TERRANE_PM_SEQUENCES` says how many random sequences there are.

use std::sync::{Arc, Mutex};

use proptest::prelude::ProptestConfig;
use terrane_base::{Kind, Rng};
use terrane_device::pm::PmRegion;
use terrane_pmem::{Event, Halloc, Owner, Shadowed};

use crate::support::{
    CHUNK_BYTES, REGION_BYTES, Thing, World, check_cut_recovery, check_image, small, watch,
};

/// Images at a cut that are looked at one by one; from more of them samples are drawn.
const ALL: u64 = 4096;

#[test]
fn each_operation_survives_a_cut_anywhere() {
    let world = small();
    let findings = watch(world.halloc.region(), &world.expected, ALL, 1);
    world.grant(2, Owner(1));
    world.grant(1, Owner(2));
    world.allocate(1024, Owner(1));
    world.allocate(512, Owner(2));
    world.allocate(1024, Owner(150));
    let [Thing::Zone(first), Thing::Zone(second), ..] = world.live()[..] else {
        panic!("two zones come first")
    };
    world.assign(first, Owner(3));
    world.assign(second, Owner(120));
    for thing in world.live() {
        world.fill(thing, 0xa5);
        world.free(thing);
    }
    // Chunks that have other bytes now become zones and chunks of objects again.
    world.grant(3, Owner(1));
    world.allocate(64, Owner(1));
    let findings = findings.lock().unwrap();
    assert_eq!(findings.wrong, Vec::<String>::new());
    assert!(findings.images > 100, "{} images", findings.images);
}

/// A chunk whose bytes look like words of objects becomes one of objects.
#[test]
fn old_bytes_of_a_chunk_never_count() {
    let world = small();
    world.allocate(1024, Owner(1));
    let image = world.halloc.region().images().newest();
    // The words of that chunk, at the same place: freed, and taken by a zone with these very bytes.
    let object = world.live()[0];
    let start = object.offset() / CHUNK_BYTES * CHUNK_BYTES;
    world.free(object);
    let (halloc, _) =
        Halloc::open(Shadowed::with_content(&world.halloc.region().images().newest()), |_| true).unwrap();
    let world = World::new(halloc);
    world.grant(1, Owner(2));
    let zone = world.live()[0];
    assert_eq!(zone.offset(), start, "the chunk is free again, and the first one");
    let old = &image[start as usize..start as usize + 64];
    world.halloc.region().write(start, old).unwrap();
    world.halloc.region().persist(start, 64).unwrap();
    world.free(zone);
    let findings = watch(world.halloc.region(), &world.expected, ALL, 2);
    world.allocate(1024, Owner(3));
    assert_eq!(world.live()[0].offset(), object.offset(), "the same object");
    assert_eq!(findings.lock().unwrap().wrong, Vec::<String>::new());
}

#[test]
fn random_operations_survive_cuts_anywhere() {
    let asked = std::env::var("TERRANE_PM_SEQUENCES").ok();
    let asked = asked.map(|text| text.parse().expect("TERRANE_PM_SEQUENCES is a number"));
    let sequences: u64 = asked.unwrap_or_else(|| ProptestConfig::default().cases.into());
    let (mut images, mut cuts_of_recovery) = (0, 0);
    for sequence in 0..sequences {
        let mut rng = Rng::part(23, sequence);
        let world = small();
        let findings = watch(world.halloc.region(), &world.expected, 6, sequence);
        for _ in 0..rng.index(16) {
            world.step(&mut rng);
        }
        world.halloc.region().unwatch();
        let findings = findings.lock().unwrap();
        assert_eq!(findings.wrong, Vec::<String>::new(), "sequence {sequence}");
        images += findings.images;
        if sequence % 8 == 0 {
            check_cut_recovery(&world.halloc.region().images().sample(&mut rng));
            cuts_of_recovery += 1;
        }
    }
    println!("{sequences} sequences, {images} images, {cuts_of_recovery} openings cut");
    assert!(images > sequences * 10, "{images} images of {sequences} sequences");
}

#[test]
fn an_opening_may_be_cut_anywhere() {
    let world = small();
    for owner in [1, 101] {
        world.grant(1, Owner(owner));
        world.allocate(1024, Owner(owner));
        world.allocate(512, Owner(owner + 1));
    }
    world.allocate(64, Owner(102));
    world.halloc.region().images().each(ALL, &mut Rng::new(3), |image| check_cut_recovery(&image));
}

/// After an opening everything that is free can be handed out, and nothing twice.
#[test]
fn space_that_an_opening_frees_can_be_used() {
    for sequence in 0..20 {
        let mut rng = Rng::part(29, sequence);
        let world = small();
        (0..12).for_each(|_| world.step(&mut rng));
        let image = world.halloc.region().images().sample(&mut rng);
        check_image(&image, &world.expected.lock().unwrap()).unwrap();
        let (halloc, _) = Halloc::open(Shadowed::with_content(&image), crate::support::is_known).unwrap();
        let (halloc, found) =
            Halloc::open(Shadowed::with_content(&halloc.region().images().image(0)), |_| true).unwrap();
        let world = World::new(halloc);
        let zones = found.zones.into_iter().map(Thing::Zone);
        world.expected.lock().unwrap().live.extend(zones.chain(found.objects.into_iter().map(Thing::Object)));
        while world.halloc.free_chunk_count() > 0 {
            world.grant(1, Owner(9));
        }
        let ends: Vec<_> =
            world.live().iter().map(|thing| (thing.offset(), thing.offset() + thing.bytes())).collect();
        let mut sorted = ends.clone();
        sorted.sort_unstable();
        assert!(sorted.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{sorted:?} overlap");
        assert_eq!(world.halloc.grant(1, Owner(9)).unwrap_err().kind(), Kind::Full);
    }
}

/// Making a region ready: a cut leaves one that is ready and empty, or one that can be made ready.
#[test]
fn making_a_region_ready_may_be_cut_anywhere() {
    let region = Shadowed::with_content(&{
        let mut content = vec![0xee; REGION_BYTES as usize];
        content[..8].fill(0);
        content
    });
    let (ready, not_ready) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
    let (counted_ready, counted_not) = (ready.clone(), not_ready.clone());
    let mut rng = Rng::new(4);
    region.watch(move |cut| {
        if !matches!(cut.event, Event::BeforeFence | Event::Fence) {
            return;
        }
        cut.images().each(12, &mut rng, |image| {
            match Halloc::open(Shadowed::with_content(&image), |_| true) {
                Ok((halloc, found)) => {
                    assert_eq!(found, terrane_pmem::Recovered::default());
                    assert_eq!(halloc.free_chunk_count(), halloc.chunk_count());
                    *counted_ready.lock().unwrap() += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), Kind::NotFound, "{error}");
                    Halloc::create(Shadowed::with_content(&image), CHUNK_BYTES, 8).unwrap();
                    *counted_not.lock().unwrap() += 1;
                }
            }
        });
    });
    let halloc = Halloc::create(region, CHUNK_BYTES, 7).unwrap();
    assert!(*ready.lock().unwrap() > 0 && *not_ready.lock().unwrap() > 0);
    halloc.region().unwatch();
    let again = Shadowed::with_content(&halloc.region().images().image(0));
    assert_eq!(Halloc::create(again, CHUNK_BYTES, 9).unwrap_err().kind(), Kind::Invalid);
}

#[test]
fn a_root_word_changes_at_once() {
    let halloc = Halloc::create(Shadowed::new(REGION_BYTES), CHUNK_BYTES, 7).unwrap();
    halloc.set_root(3, 11).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = seen.clone();
    halloc.region().watch(move |cut| {
        cut.images().each(64, &mut Rng::new(1), |image| {
            let (halloc, _) = Halloc::open(Shadowed::with_content(&image), |_| true).unwrap();
            noted.lock().unwrap().push((cut.event, halloc.root(3).unwrap()));
        });
    });
    halloc.set_root(3, u64::MAX).unwrap();
    let seen = seen.lock().unwrap();
    assert!(seen.iter().all(|(_, word)| [11, u64::MAX].contains(word)), "{seen:?}");
    assert!(seen.contains(&(Event::BeforeFence, 11)) && seen.contains(&(Event::BeforeFence, u64::MAX)));
    assert_eq!(seen.last(), Some(&(Event::Fence, u64::MAX)));
    assert_eq!(
        seen.iter().filter(|(event, _)| *event == Event::Fence).count(),
        1,
        "one image after the fence"
    );
    assert_eq!(halloc.root(16).unwrap_err().kind(), Kind::Invalid);
}
