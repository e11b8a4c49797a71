//! Regions whose bytes are not those that were stored: an error, never a panic.

use terrane_base::{Kind, Rng};
use terrane_device::pm::{Mapped, PlainMode, PmRegion, Volatile};
use terrane_pmem::{Halloc, Owner};

use crate::support::{CHUNK_BYTES, REGION_BYTES};

/// A region in use, and the offsets of its words that are not zero.
fn image() -> (Vec<u8>, Vec<usize>) {
    let halloc = Halloc::create(Volatile::new(REGION_BYTES), CHUNK_BYTES, 7).unwrap();
    halloc.grant(2, Owner(1)).unwrap();
    halloc.allocate(1024, Owner(2)).unwrap();
    halloc.allocate(64, Owner(3)).unwrap();
    halloc.grant(1, Owner(4)).unwrap();
    let mut image = vec![0; REGION_BYTES as usize];
    halloc.region().read(0, &mut image).unwrap();
    let words = (64..image.len()).step_by(8).filter(|at| image[*at..at + 8] != [0; 8]).collect();
    (image, words)
}

/// Opens an image and uses it; returns the kind of the error of the opening.
fn open(image: &[u8]) -> Option<Kind> {
    match Halloc::open(Volatile::with_content(image), |owner| owner.0 % 2 == 1) {
        Ok((halloc, found)) => {
            found.zones.iter().for_each(|zone| assert_eq!(halloc.zone_at(zone.offset()).unwrap(), *zone));
            found.objects.iter().for_each(|object| halloc.free_object(*object).unwrap());
            while halloc.grant(1, Owner(1)).is_ok() {}
            None
        }
        Err(error) => Some(error.kind()),
    }
}

#[test]
fn every_flipped_bit_of_a_header_or_an_owner_word_is_found() {
    let (image, words) = image();
    assert_eq!(words.len(), 6, "two zones, two chunks of objects, two objects");
    assert_eq!(open(&image), None);
    let bytes = (0..64).chain(words.into_iter().flat_map(|at| at..at + 8));
    for (at, bit) in bytes.flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut damaged = image.clone();
        damaged[at] ^= 1 << bit;
        assert_eq!(open(&damaged), Some(Kind::Corrupt), "bit {bit} of byte {at}");
    }
}

#[test]
fn words_at_other_places_are_found() {
    let (image, words) = image();
    for (from, to) in words.iter().flat_map(|from| words.iter().map(move |to| (*from, *to))) {
        let mut damaged = image.clone();
        damaged.copy_within(from..from + 8, to);
        assert_eq!(open(&damaged).is_none(), from == to, "the word of {from} at {to}");
    }
}

/// Sound words that contradict each other.
#[test]
fn zones_that_overlap_are_damage() {
    let halloc = Halloc::create(Volatile::new(REGION_BYTES), CHUNK_BYTES, 7).unwrap();
    let three = halloc.grant(3, Owner(1)).unwrap();
    let word = halloc.region().load(4096).unwrap();
    halloc.free_zone(three).unwrap();
    halloc.grant(1, Owner(1)).unwrap();
    halloc.grant(1, Owner(1)).unwrap();
    halloc.region().store(4096, word).unwrap();
    let mut image = vec![0; REGION_BYTES as usize];
    halloc.region().read(0, &mut image).unwrap();
    assert_eq!(open(&image), Some(Kind::Corrupt));
}

#[test]
fn random_bytes_never_panic() {
    let (image, _) = image();
    for round in 0..2000 {
        let mut rng = Rng::part(31, round);
        let mut damaged = image.clone();
        for _ in 0..=rng.skewed(200) {
            let at = if rng.one_in(2) { rng.index(8 * 1024) } else { rng.index(damaged.len()) };
            damaged[at] = rng.next_u64() as u8;
        }
        // With a sound header the opening looks at the bytes behind it.
        if rng.one_in(2) {
            damaged[..64].copy_from_slice(&image[..64]);
        }
        assert!(matches!(open(&damaged), None | Some(Kind::Corrupt)), "round {round}");
        damaged.truncate(rng.index(damaged.len()) + 64);
        salvage(&damaged, &mut rng);
    }
}

/// Reads the rest of an image; a region that is too short for any is refused.
fn salvage(image: &[u8], rng: &mut Rng) {
    let region = Volatile::with_content(image);
    let len = region.len();
    let Ok((halloc, found)) = Halloc::salvage(region, CHUNK_BYTES) else { return };
    let presumed = found.unclear.iter().filter_map(|at| halloc.presumed_zone(*at, rng.next_u64(), Owner(9)));
    for zone in found.zones.iter().copied().chain(presumed) {
        assert!(zone.offset() + zone.bytes() <= len, "{zone:?} of {len} bytes");
        halloc.region().read(zone.offset(), &mut vec![0; zone.bytes() as usize]).unwrap();
    }
    assert_eq!(halloc.grant(1, Owner(1)).unwrap_err().kind(), Kind::Full, "nothing is handed out");
}

#[test]
fn sound_parts_are_salvaged() {
    let (image, words) = image();
    let salvaged = |image: &[u8]| Halloc::salvage(Volatile::with_content(image), CHUNK_BYTES).unwrap().1;
    let whole = salvaged(&image);
    let owners: Vec<u32> = whole.zones.iter().map(|zone| zone.owner().0).collect();
    assert_eq!((owners, whole.unclear.len(), whole.damage.len()), (vec![1, 4], 0, 0));
    let first = whole.zones[0];
    assert_eq!(first.bytes(), 2 * CHUNK_BYTES);
    // Its word is damaged: it is not known what begins there, and nothing else is touched.
    let mut damaged = image.clone();
    damaged[words[0]] ^= 1;
    let found = salvaged(&damaged);
    assert_eq!((found.zones.len(), found.unclear, found.damage.len()), (1, vec![first.offset()], 1));
    // Without the number of the region no word can be proven.
    let mut damaged = image.clone();
    damaged[16] ^= 1;
    let found = salvaged(&damaged);
    assert_eq!((found.zones.len(), found.unclear.len(), found.damage.len()), (0, 4, 1));
    // A region that is cut in a zone has the front of the zone.
    let cut = first.offset() + CHUNK_BYTES;
    let found = salvaged(&image[..cut as usize]);
    assert_eq!((found.zones.len(), found.zones[0].bytes(), found.damage.len()), (1, CHUNK_BYTES, 1));
}

#[test]
fn regions_of_another_length_version_or_kind_are_refused() {
    let (image, _) = image();
    assert_eq!(open(&image[..image.len() - CHUNK_BYTES as usize]), Some(Kind::Corrupt), "cut");
    let longer = [image.clone(), vec![0; CHUNK_BYTES as usize]].concat();
    assert_eq!(open(&longer), Some(Kind::Corrupt), "longer");
    assert_eq!(open(&vec![0; REGION_BYTES as usize]), Some(Kind::NotFound), "never made ready");
    assert_eq!(open(&vec![0xff; REGION_BYTES as usize]), Some(Kind::Corrupt));
    assert!(open(&image[..64]).is_some());
    for bytes in [64, 4096, 8192] {
        let made = Halloc::create(Volatile::new(bytes), CHUNK_BYTES, 1);
        assert_eq!(made.unwrap_err().kind(), Kind::Invalid, "{bytes} bytes have no room for a chunk");
    }
    for chunk_bytes in [0, 1000, 2048, 5000, 2 << 30] {
        let made = Halloc::create(Volatile::new(REGION_BYTES), chunk_bytes, 1);
        assert_eq!(made.unwrap_err().kind(), Kind::Invalid, "chunks of {chunk_bytes} bytes");
    }
}

#[test]
fn a_file_is_opened_again_with_what_was_in_it() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("region");
    let (zone, object) = {
        let region = Mapped::create(&path, 64 << 10, PlainMode::Buffered).unwrap();
        let halloc = Halloc::create(region, CHUNK_BYTES, 11).unwrap();
        halloc.set_root(0, 99).unwrap();
        halloc.grant(1, Owner(2)).unwrap();
        (halloc.grant(2, Owner(1)).unwrap(), halloc.allocate(100, Owner(1)).unwrap())
    };
    let region = Mapped::open(&path, PlainMode::Synced).unwrap();
    region.check(0, region.len()).unwrap();
    let (halloc, found) = Halloc::open(region, |owner| owner == Owner(1)).unwrap();
    assert_eq!((found.zones, found.objects, found.freed_zones), (vec![zone], vec![object], 1));
    assert_eq!((halloc.root(0).unwrap(), halloc.region_id()), (99, 11));
}
