//! Contents of external files: encoding and decoding of both versions, and refused contents.

#![allow(clippy::unwrap_used, reason = "a test")]

use terrane_base::{ExtentId, Kind, SeqNo};
use terrane_format::extent::{ExtentMeta, Handle, RangeSection, UNNUMBERED_SEQ};
use terrane_format::external::{BYTEWISE, Contents, KEY_ORDER, describe};

const SLOT_BYTES: u64 = 2 << 20;

/// The description of an extent with a block.
fn of_entries(slot: u32, first: &[u8], last: &[u8]) -> ExtentMeta {
    ExtentMeta {
        id: ExtentId { file: 0, slot },
        smallest: first.to_vec(),
        largest: last.to_vec(),
        bytes: 4096,
        raw_bytes: 100,
        entries: 2,
        blocks: 1,
        index: Handle { offset: 100, len: 64, checksum: 1 },
        seq_min: UNNUMBERED_SEQ,
        seq_max: UNNUMBERED_SEQ,
        ..ExtentMeta::default()
    }
}

/// The description of an extent with range deletes only.
fn of_deletes(slot: u32, start: &[u8], end: &[u8]) -> ExtentMeta {
    let part = Handle { offset: 16, len: 60, checksum: 2 };
    let section = RangeSection { part, fragments: 1, start: start.to_vec(), end: end.to_vec() };
    ExtentMeta {
        raw_bytes: 0,
        entries: 0,
        blocks: 0,
        index: Handle { offset: 0, len: 16, checksum: 1 },
        range_deletes: Some(Box::new(section)),
        format_version: 2,
        ..of_entries(slot, start, end)
    }
}

fn contents(extents: Vec<ExtentMeta>, deletes: Vec<ExtentMeta>) -> Contents {
    Contents { options: vec![(KEY_ORDER.into(), BYTEWISE.into())], extents, deletes }
}

fn decode(contents: &Contents) -> terrane_base::Result<Contents> {
    Contents::decode(&contents.encode(), u64::from(contents.slots()) * SLOT_BYTES, SLOT_BYTES)
}

#[test]
fn contents_with_and_without_range_deletes_are_decoded() {
    let entries = || vec![of_entries(0, b"a", b"c"), of_entries(1, b"d", b"f")];
    let deletes = |slot| vec![of_deletes(slot, b"a", b"b"), of_deletes(slot + 1, b"c", b"z")];
    let files = [
        (2, contents(entries(), vec![])),
        (3, contents(entries(), deletes(2))),
        (3, contents(vec![], deletes(0))),
    ];
    for (version, contents) in files {
        let bytes = contents.encode();
        assert_eq!(bytes[..2], u16::to_le_bytes(version), "range deletes alone make another version");
        assert!(decode(&contents).unwrap() == contents);
        let fields = describe(&bytes, u64::from(contents.slots()) * SLOT_BYTES, SLOT_BYTES);
        assert!(fields[0].value.contains(&version.to_string()), "{fields:?}");
        let named = |name: &str| fields.iter().any(|field| field.name.starts_with(name));
        assert_eq!(named("extent["), !contents.extents.is_empty(), "{fields:?}");
        assert_eq!(named("deletes["), !contents.deletes.is_empty(), "{fields:?}");
        let end = fields.iter().map(|field| field.offset + field.len).max();
        assert_eq!(end, Some(bytes.len()));
    }
}

#[test]
fn lists_that_contradict_themselves_are_refused() {
    let with_both = ExtentMeta {
        raw_bytes: 100,
        entries: 2,
        blocks: 1,
        index: Handle { offset: 100, len: 64, checksum: 1 },
        range_deletes: of_deletes(1, b"a", b"b").range_deletes.map(|mut section| {
            section.part.offset = 164;
            section
        }),
        ..of_deletes(1, b"a", b"b")
    };
    let numbered = ExtentMeta { seq_min: SeqNo(2), seq_max: SeqNo(2), ..of_deletes(1, b"a", b"b") };
    let entries = || vec![of_entries(0, b"a", b"c")];
    for (what, contents) in [
        ("nothing", contents(vec![], vec![])),
        ("entries among range deletes", contents(entries(), vec![of_entries(1, b"d", b"e")])),
        ("range deletes among entries", contents(vec![of_deletes(0, b"a", b"b")], vec![])),
        ("range deletes beside entries", contents(entries(), vec![with_both])),
        ("a number", contents(entries(), vec![numbered])),
        ("a gap", contents(entries(), vec![of_deletes(2, b"a", b"b")])),
        ("a slot of entries", contents(entries(), vec![of_deletes(0, b"a", b"b")])),
        ("that meet", contents(entries(), vec![of_deletes(1, b"a", b"b"), of_deletes(2, b"b", b"c")])),
    ] {
        let error = decode(&contents).map(drop).unwrap_err();
        assert_eq!(error.kind(), Kind::Corrupt, "{what}: {error}");
    }
}

#[test]
fn a_list_of_range_deletes_is_never_empty() {
    let two = contents(vec![of_entries(0, b"a", b"c")], vec![of_deletes(1, b"a", b"b")]);
    let mut bytes = two.encode();
    // Of another version these are the contents of a file without range deletes and something behind.
    bytes[0] = 2;
    let refused = Contents::decode(&bytes, 2 * SLOT_BYTES, SLOT_BYTES).map(drop).unwrap_err();
    assert_eq!(refused.kind(), Kind::Corrupt);
    let one = contents(vec![of_entries(0, b"a", b"c")], vec![]);
    let body = one.encode();
    for version in [3, 4] {
        let mut body = body[..body.len() - 4].to_vec();
        body[0] = version;
        body.push(0);
        let checksum = terrane_format::checksum::crc32c(u32::from_le_bytes(*b"XCON"), &body);
        body.extend_from_slice(&checksum.to_le_bytes());
        let refused = Contents::decode(&body, SLOT_BYTES, SLOT_BYTES).map(drop).unwrap_err();
        assert_eq!(refused.kind(), Kind::Corrupt, "version {version}: {refused}");
    }
}
