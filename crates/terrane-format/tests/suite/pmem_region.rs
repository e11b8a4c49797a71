//! Persistent memory: the header, owner words and geometry; the example of the page.

use proptest::prelude::*;
use terrane_base::Kind;
use terrane_format::pmem_region::{
    Class, Geometry, HEADER_BYTES, OwnerWord, SUPERBLOCK_BYTES, Superblock, root_at,
};

/// The region of the page: 1 MiB, chunks of 64 KiB, number 1.
fn example() -> Superblock {
    Superblock { region_id: 1, geometry: Geometry::new(1 << 20, 64 << 10).unwrap() }
}

/// Bytes that the page shows, in hexadecimal.
fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn the_example_of_the_page() {
    let header = "74 65 72 72 70 6d 65 6d  01 00 00 00  3d 07 25 17
        01 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
        00 00 10 00 00 00 00 00  00 00 01 00 00 00 00 00
        00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00";
    assert_eq!(example().encode().to_vec(), bytes(header));
    let geometry = example().geometry;
    assert_eq!((geometry.chunk_count(), geometry.chunk_at(0), geometry.word_at(2)), (15, 65536, 4112));
    let zone = OwnerWord::Zone { chunks: 3, owner: 7 };
    assert_eq!(zone.encode(geometry.word_at(2), 1).to_le_bytes().to_vec(), bytes("5a 1c 03 00 07 00 00 00"));
    let class = Class::of(1000).unwrap();
    let objects = OwnerWord::Objects { class };
    assert_eq!(
        objects.encode(geometry.word_at(0), 1).to_le_bytes().to_vec(),
        bytes("b0 21 0a 00 00 00 00 00")
    );
    let layout = geometry.objects(class).unwrap();
    assert_eq!((layout.count, layout.objects_at, layout.word_at(1), layout.object_at(1)), (63, 512, 8, 1536));
    let object = OwnerWord::Object { class, owner: 7 };
    assert_eq!(
        object.encode(geometry.chunk_at(0) + 8, 1).to_le_bytes().to_vec(),
        bytes("17 30 0a 00 07 00 00 00")
    );
}

#[test]
fn headers_are_read_back_and_damage_is_found() {
    let header = example().encode();
    assert_eq!(Superblock::decode(&header, 1 << 20).unwrap(), example());
    for (at, bit) in (0..HEADER_BYTES).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut damaged = header;
        damaged[at] ^= 1 << bit;
        assert_eq!(
            Superblock::decode(&damaged, 1 << 20).unwrap_err().kind(),
            Kind::Corrupt,
            "bit {bit} of {at}"
        );
    }
    assert_eq!(Superblock::decode(&header, 1 << 21).unwrap_err().kind(), Kind::Corrupt);
    // The magic is written last: bytes behind it do not count before.
    let mut cut = header;
    cut[..8].fill(0);
    assert_eq!(Superblock::decode(&cut, 1 << 20).unwrap_err().kind(), Kind::NotFound);
}

#[test]
fn a_geometry_needs_room_and_a_power_of_two() {
    for (region, chunk) in
        [(0, 4096), (4096, 4096), (12287, 4096), (1 << 20, 4095), (1 << 20, 2048), (1 << 40, 1 << 31)]
    {
        assert_eq!(
            Geometry::new(region, chunk).unwrap_err().kind(),
            Kind::Invalid,
            "{region} bytes by {chunk}"
        );
    }
    assert_eq!(Geometry::new(12288, 4096).unwrap().chunk_count(), 1);
    assert_eq!(Geometry::new(1 << 40, 2 << 20).unwrap().head_bytes(), SUPERBLOCK_BYTES + (524_288 - 3) * 8);
    assert!(Geometry::new(u64::MAX, 4096).is_err(), "more chunks than 32 bits count");
    assert_eq!((root_at(0).unwrap(), root_at(15).unwrap()), (1024, 1984));
    assert_eq!(root_at(16).unwrap_err().kind(), Kind::Invalid);
}

proptest! {
    #[test]
    fn chunks_and_objects_lie_within_and_apart(region in 12288u64..1 << 32, log in 12u32..22, at in any::<u64>(), bytes in 0u64..70_000) {
        let Ok(geometry) = Geometry::new(region, 1 << log) else { return Ok(()) };
        let (last, chunk_bytes) = (geometry.chunk_count() - 1, geometry.chunk_bytes());
        prop_assert!(geometry.word_at(last) + 8 <= geometry.chunk_at(0));
        prop_assert!(geometry.chunk_at(last) + chunk_bytes <= region);
        prop_assert!(geometry.chunk_at(0) % chunk_bytes == 0);
        match geometry.chunk_of(at % (region + 5000)) {
            Some(chunk) => prop_assert_eq!(geometry.chunk_at(chunk), at % (region + 5000) / chunk_bytes * chunk_bytes),
            None => prop_assert!(at % (region + 5000) < geometry.chunk_at(0) || at % (region + 5000) >= geometry.chunk_at(last) + chunk_bytes),
        }
        let Some(class) = Class::of(bytes) else { prop_assert!(bytes > 65536); return Ok(()) };
        prop_assert!(class.bytes() >= bytes && (class.bytes() < 2 * bytes || class.bytes() == 64));
        prop_assert!(class.index() < Class::COUNT);
        let Some(layout) = geometry.objects(class) else { prop_assert!(class.bytes() > chunk_bytes / 4); return Ok(()) };
        let last = layout.count - 1;
        prop_assert!(layout.count >= 3 && layout.word_at(last) + 8 <= layout.objects_at && layout.objects_at % 64 == 0);
        prop_assert!(layout.object_at(last) + class.bytes() <= chunk_bytes);
        prop_assert!(layout.object_at(last) + 2 * class.bytes() + 64 > chunk_bytes, "room for one more");
        prop_assert_eq!(layout.index_of(layout.object_at(last)), Some(last));
        prop_assert_eq!(layout.index_of(layout.object_at(last) + 1), None);
    }

    #[test]
    fn any_word_is_read_or_refused(word in any::<u64>(), place in any::<u64>(), id in any::<u128>(), chunks in any::<u16>(), owner in any::<u32>(), bytes in 0u64..65_537) {
        if let Ok(meaning) = OwnerWord::decode(word, place, id) {
            prop_assert_eq!(meaning.encode(place, id), word);
        }
        let class = Class::of(bytes).unwrap();
        let zone = OwnerWord::Zone { chunks: chunks.max(1), owner };
        for meaning in [OwnerWord::Free, zone, OwnerWord::Objects { class }, OwnerWord::Object { class, owner }] {
            prop_assert_eq!(OwnerWord::decode(meaning.encode(place, id), place, id).unwrap(), meaning);
        }
    }
}
