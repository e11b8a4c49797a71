//! Range deletes in an extent: encoding and decoding, hostile bytes, and an extent with nothing else.

#![allow(clippy::unwrap_used, reason = "a test")]

use proptest::collection::vec;
use proptest::prelude::*;
use terrane_base::options::Compression;
use terrane_base::{Collation, ExtentId, Kind, SeqNo, TableId, key};
use terrane_format::extent::{self, ExtentMeta, Footer, Handle, check};
use terrane_format::index::IndexBuilder;
use terrane_format::manifest::edit::decode_edits;
use terrane_format::manifest::{Edit, EditOp, Place};
use terrane_format::range_deletes::{Fragment, Fragments};

const ID: ExtentId = ExtentId { file: 0, slot: 3 };

fn fragment(start: &[u8], end: &[u8], seqs: &[u64]) -> Fragment {
    Fragment { start: start.to_vec(), end: end.to_vec(), seqs: seqs.iter().copied().map(SeqNo).collect() }
}

fn encoded(fragments: &[Fragment]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Fragments::encode(fragments, &mut bytes);
    bytes
}

/// An extent without a block.
fn extent_of(fragments: &[Fragment]) -> Vec<u8> {
    let mut bytes = Vec::new();
    IndexBuilder::new().finish(&mut bytes);
    let index = Handle::of(0, &bytes);
    let part = encoded(fragments);
    let range_deletes = Handle::of(bytes.len() as u32, &part);
    bytes.extend_from_slice(&part);
    let form = extent::Form { is_ranged: true, ..extent::Form::default() };
    let len = extent::extent_bytes_with(bytes.len(), form);
    bytes.resize(len - form.footer_bytes(), 0);
    let footer = Footer {
        compression: Compression::None,
        table: TableId(1),
        bytes: len as u32,
        blocks: 0,
        index,
        filter: Handle::default(),
        range_deletes,
        fragments: fragments.len() as u32,
        raw_bytes: 0,
        entries: 0,
        deletes: 0,
        seq_min: SeqNo(3),
        seq_max: SeqNo(9),
        expiry: None,
        references: Handle::default(),
        has_positions: false,
        value_table: None,
        origin: extent::Handle::default(),
    };
    footer.encode(&mut bytes);
    assert_eq!(bytes.len(), len);
    bytes
}

fn example() -> Vec<Fragment> {
    vec![fragment(b"a", b"b\0", &[9, 4]), fragment(b"b\0", b"m", &[3]), fragment(b"x", b"z", &[5])]
}

#[test]
fn an_extent_of_range_deletes_alone_is_sound() {
    let bytes = extent_of(&example());
    let meta = check::verify(&bytes, ID, 1).unwrap();
    assert_eq!((meta.smallest.as_slice(), meta.largest.as_slice()), (&b"a"[..], &b"z"[..]));
    assert_eq!((meta.format_version, meta.blocks, meta.entries), (2, 0, 0));
    assert_eq!(meta.range_deletes.as_ref().unwrap().fragments, 3);
    assert_eq!(extent::locate(&bytes), Some(bytes.len()));
    let mut encoded = Vec::new();
    meta.encode(&mut encoded);
    assert_eq!(encoded.len(), meta.encoded_len());
    assert_eq!(ExtentMeta::decode(&encoded).unwrap(), (meta, encoded.len()));
    let shown = extent::describe(&bytes);
    assert!(shown.iter().any(|field| field.name.contains("fragment[2]")), "{shown:?}");
}

#[test]
fn no_flipped_bit_of_an_extent_with_range_deletes_is_accepted() {
    let good = extent_of(&example());
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 1 << (at % 8);
        let error = check::verify(&bytes, ID, 1).unwrap_err();
        assert_eq!(error.kind(), Kind::Corrupt, "byte {at}: {error}");
    }
}

#[test]
fn numbers_of_an_extent_that_is_numbered_as_a_whole() {
    let decoded = |fragments: &[Fragment]| Fragments::decode(&encoded(fragments)).unwrap();
    let mut good = decoded(&[fragment(b"a", b"b", &[1]), fragment(b"c", b"d", &[1])]);
    good.number(SeqNo(7)).unwrap();
    assert_eq!(good.all(), [fragment(b"a", b"b", &[7]), fragment(b"c", b"d", &[7])]);
    for seqs in [&[2][..], &[2, 1]] {
        let mut bad = decoded(&[fragment(b"a", b"b", &[1]), fragment(b"c", b"d", seqs)]);
        let refused = bad.number(SeqNo(7)).unwrap_err();
        assert!(refused.kind() == Kind::Corrupt && refused.message().contains("from \"c\""), "{refused}");
    }
    let meta = check::verify(&extent_of(&example()), ID, 1).unwrap();
    assert_eq!(meta.numbered(SeqNo(7)).unwrap_err().kind(), Kind::Corrupt, "it has numbers");
    let unnumbered = ExtentMeta { seq_min: SeqNo(1), seq_max: SeqNo(1), ..meta };
    let numbered = unnumbered.numbered(SeqNo(7)).unwrap();
    let mut bytes = Vec::new();
    numbered.encode(&mut bytes);
    assert_eq!(ExtentMeta::decode(&bytes).unwrap(), (numbered.clone(), bytes.len()));
    assert!(numbered.is_numbered() && numbered.as_written() == unnumbered);
}

#[test]
fn contradictory_fragments_are_refused() {
    let long = vec![b'k'; key::KEY_BYTES_MAX + 2];
    for (what, fragments) in [
        ("none", vec![]),
        ("empty", vec![fragment(b"b", b"b", &[1])]),
        ("inverted", vec![fragment(b"b", b"a", &[1])]),
        ("without a number", vec![fragment(b"a", b"b", &[])]),
        ("numbers ascend", vec![fragment(b"a", b"b", &[1, 2])]),
        ("number beyond the limit", vec![fragment(b"a", b"b", &[SeqNo::MAX.0 + 1])]),
        ("overlap", vec![fragment(b"a", b"c", &[2]), fragment(b"b", b"d", &[1])]),
        ("out of order", vec![fragment(b"c", b"d", &[2]), fragment(b"a", b"b", &[1])]),
        ("too long", vec![fragment(b"a", &long, &[2])]),
    ] {
        let error = Fragments::decode(&encoded(&fragments)).unwrap_err();
        assert_eq!(error.kind(), Kind::Corrupt, "{what}: {error}");
    }
}

#[test]
fn the_last_key_before_an_end() {
    assert_eq!(Collation::BYTES.last_before(b"k\0"), b"k".as_slice());
    assert_eq!(Collation::BYTES.last_before(b"k"), b"k".as_slice());
    assert_eq!(Collation::BYTES.last_before(b"\0"), b"".as_slice());
}

proptest! {
    #[test]
    fn there_and_back(
        keys in proptest::collection::btree_set(vec(any::<u8>(), 0..6), 2..40),
        numbers in vec(1u64..1000, 1..5),
        probe in vec(any::<u8>(), 0..6),
    ) {
        let mut numbers = numbers;
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        numbers.dedup();
        let keys: Vec<_> = keys.into_iter().collect();
        let fragments: Vec<_> =
            keys.chunks_exact(2).map(|pair| fragment(&pair[0], &pair[1], &numbers)).collect();
        let decoded = Fragments::decode(&encoded(&fragments)).unwrap();
        prop_assert_eq!(decoded.all(), &fragments[..]);
        let over = fragments.iter().find(|fragment| fragment.start <= probe && probe < fragment.end);
        prop_assert_eq!(decoded.covering(&probe), over);
    }

    #[test]
    fn hostile_bytes_are_corrupt(bytes in vec(any::<u8>(), 0..200)) {
        if let Err(error) = Fragments::decode(&bytes) {
            prop_assert_eq!(error.kind(), Kind::Corrupt);
        }
    }
}

#[test]
fn an_extent_that_begins_behind_the_longest_key_can_leave_the_manifest() {
    let smallest = key::successor(&vec![b'k'; key::KEY_BYTES_MAX]);
    let op = EditOp::RemoveExtent { table: TableId(1), place: Place::Level(1), id: ID, smallest };
    let edit = Edit { ops: vec![op] };
    let mut bytes = Vec::new();
    edit.encode(&mut bytes);
    assert_eq!(decode_edits(&bytes).unwrap(), [edit]);
}
