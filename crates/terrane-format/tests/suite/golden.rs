//! The worked examples of `docs/format` are the bytes that the code writes. An accidental change of a format
//! fails here; an intended one raises the version and changes the page.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use crate::common;

use terrane_base::ExtentId;
use terrane_format::block::{self, Block};
use terrane_format::extent::{self, ExtentMeta, check};
use terrane_format::filter::{self, Filter};
use terrane_format::index::IndexBlock;

/// The bytes of the `hex` fences of a page, in order. A line reads `offset: byte byte ... | meaning`.
fn examples(page: &str) -> Vec<Vec<u8>> {
    let fences = page.split("```hex\n").skip(1).map(|fence| fence.split("```").next().unwrap());
    fences.map(bytes_of).collect()
}

fn bytes_of(fence: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in fence.lines() {
        let (offset, rest) = line.split_once(':').unwrap();
        assert_eq!(usize::from_str_radix(offset.trim(), 16).unwrap(), bytes.len(), "offset of line {line:?}");
        let digits = rest.split('|').next().unwrap().split_whitespace();
        bytes.extend(digits.map(|byte| u8::from_str_radix(byte, 16).unwrap()));
    }
    bytes
}

#[test]
fn block() {
    let expected = examples(include_str!("../../../../docs/format/block.md"));
    assert_eq!(expected, [common::example_block(), common::example_two_layer_block()]);
    assert_eq!(Block::decode(expected[0].clone()).unwrap().entry_count(), 3);
    assert_eq!(Block::decode(expected[1].clone()).unwrap().entry_count(), 16);
}

#[test]
fn index() {
    let expected = examples(include_str!("../../../../docs/format/index.md"));
    assert_eq!(expected, [common::example_index()]);
    let index = IndexBlock::decode(expected[0].clone()).unwrap();
    assert_eq!(index.row(0).checksum, block::checksum(&common::example_block()));
}

#[test]
fn filter() {
    let expected = examples(include_str!("../../../../docs/format/filter.md"));
    assert_eq!(expected, [common::example_filter(), common::example_prefixed_filter()]);
    let [keys, prefixed] = [0, 1].map(|at| Filter::decode(&expected[at]).unwrap());
    assert_eq!((keys.keys(), keys.prefixes()), (2, None));
    assert_eq!((prefixed.keys(), prefixed.prefixes()), (3, Some(filter::extractor_id("fixed:2"))));
    assert!(prefixed.may_contain(filter::prefix_hash(b"ap")) && prefixed.may_contain(filter::hash(b"apple")));
}

#[test]
fn footer_and_meta() {
    let expected = examples(include_str!("../../../../docs/format/extent.md"));
    let extent = common::example_extent();
    let meta = check::verify(&extent, ExtentId { file: 1, slot: 2 }, 1).unwrap();
    let mut encoded = Vec::new();
    meta.encode(&mut encoded);
    assert_eq!(expected, [extent[extent.len() - extent::FOOTER_BYTES..].to_vec(), encoded]);
    assert_eq!(ExtentMeta::decode(&expected[1]).unwrap().0, meta);
}

/// The fields that `describe` lists follow each other and cover the structure; only an extent has a gap,
/// zeros.
#[test]
fn descriptions_cover_every_byte() {
    let extent = common::example_extent();
    let mut meta = Vec::new();
    check::inspect(&extent, ExtentId::default(), 1).unwrap().encode(&mut meta);
    let described = [
        (block::describe(&common::example_block()), common::example_block().len(), 0),
        (block::describe(&common::example_two_layer_block()), common::example_two_layer_block().len(), 0),
        (terrane_format::index::describe(&common::example_index()), common::example_index().len(), 0),
        (terrane_format::filter::describe(&common::example_filter()), common::example_filter().len(), 0),
        (filter::describe(&common::example_prefixed_filter()), common::example_prefixed_filter().len(), 0),
        (extent::describe_meta(&meta).0, meta.len(), 0),
        (extent::describe(&extent), extent.len(), 3805),
    ];
    for (fields, len, gap_expected) in described {
        let (mut at, mut gap) = (0, 0);
        for field in fields {
            assert!(field.offset >= at && field.name != "broken", "{field:?} at {at}");
            gap += field.offset - at;
            at = field.offset + field.len;
        }
        assert_eq!((at, gap), (len, gap_expected));
    }
}
