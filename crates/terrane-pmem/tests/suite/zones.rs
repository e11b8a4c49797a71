//! Zones, objects, the reserve and volatile zones: what callers get, and errors.

use terrane_base::Kind;
use terrane_device::pm::{PmRegion, Volatile};
use terrane_pmem::{Halloc, Owner, Reserve};

use crate::support::{CHUNK_BYTES, REGION_BYTES};

fn small() -> Halloc<Volatile> {
    Halloc::create(Volatile::new(REGION_BYTES), CHUNK_BYTES, 7).unwrap()
}

#[test]
fn zones_are_adjacent_chunks_and_run_out() {
    let halloc = small();
    assert_eq!((halloc.chunk_count(), halloc.free_chunk_count()), (6, 6));
    let zones: Vec<_> = [2, 3].map(|chunks| halloc.grant(chunks, Owner(1)).unwrap()).into();
    assert_eq!((zones[0].bytes(), zones[0].offset() % CHUNK_BYTES), (2 * CHUNK_BYTES, 0));
    assert_eq!(zones[1].offset(), zones[0].offset() + zones[0].bytes());
    assert_eq!(halloc.grant(2, Owner(1)).unwrap_err().kind(), Kind::Full);
    assert_eq!(halloc.grant(0, Owner(1)).unwrap_err().kind(), Kind::Invalid);
    halloc.free_zone(zones[0]).unwrap();
    assert_eq!(halloc.grant(2, Owner(2)).unwrap().offset(), zones[0].offset());
}

#[test]
fn a_zone_that_was_freed_or_assigned_cannot_be_freed_again() {
    let halloc = small();
    let zone = halloc.grant(2, Owner(1)).unwrap();
    let assigned = halloc.assign(zone, Owner(2)).unwrap();
    assert_eq!(halloc.free_zone(zone).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(halloc.assign(zone, Owner(3)).unwrap_err().kind(), Kind::Invalid);
    halloc.free_zone(assigned).unwrap();
    assert_eq!(halloc.free_zone(assigned).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(halloc.free_chunk_count(), 6, "nothing became free twice");
    let object = halloc.allocate(100, Owner(1)).unwrap();
    halloc.free_object(object).unwrap();
    assert_eq!(halloc.free_object(object).unwrap_err().kind(), Kind::Invalid);
}

#[test]
fn objects_of_a_class_share_chunks_and_are_aligned() {
    let halloc = small();
    let objects: Vec<_> = (0..3).map(|_| halloc.allocate(600, Owner(1)).unwrap()).collect();
    assert!(objects.iter().all(|object| object.bytes() == 1024 && object.offset() % 64 == 0));
    assert_eq!(halloc.free_chunk_count(), 5, "three of 1024 bytes and their words fit a chunk of 4096");
    halloc.allocate(600, Owner(1)).unwrap();
    assert_eq!(halloc.free_chunk_count(), 4);
    let small = halloc.allocate(0, Owner(1)).unwrap();
    assert_eq!(small.bytes(), 64, "the smallest class");
    assert_eq!(
        halloc.allocate(1025, Owner(1)).unwrap_err().kind(),
        Kind::Invalid,
        "more than a quarter of a chunk"
    );
    assert_eq!(halloc.allocate(u64::MAX, Owner(1)).unwrap_err().kind(), Kind::Invalid);
    let zones = std::iter::from_fn(|| halloc.grant(1, Owner(1)).ok()).count();
    assert_eq!(zones, 3);
    assert_eq!(halloc.allocate(128, Owner(1)).unwrap_err().kind(), Kind::Full);
}

#[test]
fn offsets_are_checked_when_they_are_read() {
    let halloc = small();
    let zone = halloc.grant(2, Owner(1)).unwrap();
    let object = halloc.allocate(1024, Owner(2)).unwrap();
    assert_eq!(halloc.zone_at(zone.offset()).unwrap(), zone);
    assert_eq!(halloc.object_at(object.offset()).unwrap(), object);
    let wrong =
        [0, 1, 4096, zone.offset() + 1, zone.offset() + CHUNK_BYTES, object.offset(), REGION_BYTES, u64::MAX];
    for offset in wrong {
        assert_eq!(halloc.zone_at(offset).unwrap_err().kind(), Kind::Corrupt, "no zone at {offset}");
    }
    let wrong =
        [0, zone.offset(), object.offset() + 1, object.offset() + 1024, object.offset() - 64, u64::MAX];
    for offset in wrong {
        assert_eq!(halloc.object_at(offset).unwrap_err().kind(), Kind::Corrupt, "no object at {offset}");
    }
}

#[test]
fn a_reserve_hands_out_what_was_granted_beforehand() {
    let halloc = small();
    let reserve = Reserve::new(Owner(9), 1, 3);
    assert!(reserve.is_empty());
    assert_eq!(reserve.refill(&halloc).unwrap(), 3);
    assert_eq!((reserve.refill(&halloc).unwrap(), reserve.len(), halloc.free_chunk_count()), (0, 3, 3));
    let zone = reserve.take(&halloc, Owner(1)).unwrap();
    assert_eq!((zone.owner(), halloc.zone_at(zone.offset()).unwrap()), (Owner(1), zone));
    assert_eq!((reserve.len(), halloc.free_chunk_count()), (2, 3), "nothing was searched for");
    for _ in 0..2 {
        reserve.take(&halloc, Owner(1)).unwrap();
    }
    assert_eq!(reserve.take(&halloc, Owner(1)).unwrap().owner(), Owner(1), "an empty reserve grants");
    assert_eq!(halloc.free_chunk_count(), 2);
    assert_eq!(reserve.refill(&halloc).unwrap_err().kind(), Kind::Full);
    assert_eq!(reserve.len(), 2, "what was granted stays");
    // An opening that knows the owner of the reserve returns its zones to the next one.
    let mut image = vec![0; REGION_BYTES as usize];
    halloc.region().read(0, &mut image).unwrap();
    let (_, found) = Halloc::open(Volatile::with_content(&image), |_| true).unwrap();
    let next = Reserve::new(Owner(9), 1, 3);
    assert_eq!(next.adopt(found.zones).len(), 4);
    assert_eq!(next.len(), 2);
    let (halloc, found) = Halloc::open(Volatile::with_content(&image), |owner| owner != Owner(9)).unwrap();
    assert_eq!((found.freed_zones, found.zones.len(), halloc.free_chunk_count()), (2, 4, 2));
}

#[test]
fn a_volatile_zone_goes_back_and_leaves_no_trace() {
    let halloc = small();
    {
        let zone = halloc.grant_volatile(4).unwrap();
        let (first, second) = (zone.allocate(10).unwrap(), zone.allocate(8).unwrap());
        assert_eq!((first, second), (zone.offset(), zone.offset() + 16));
        halloc.region().store(second, 5).unwrap();
        zone.allocate(zone.bytes() - 24).unwrap();
        assert_eq!(zone.allocate(1).unwrap_err().kind(), Kind::Full);
        assert_eq!(zone.allocate(u64::MAX).unwrap_err().kind(), Kind::Full);
        assert_eq!(halloc.grant(3, Owner(1)).unwrap_err().kind(), Kind::Full);
        let mut image = vec![0; REGION_BYTES as usize];
        halloc.region().read(0, &mut image).unwrap();
        let (opened, _) = Halloc::open(Volatile::with_content(&image), |_| true).unwrap();
        assert_eq!(opened.free_chunk_count(), 6, "the table does not name it");
    }
    assert_eq!(halloc.grant(6, Owner(1)).unwrap().chunks(), 6);
}
