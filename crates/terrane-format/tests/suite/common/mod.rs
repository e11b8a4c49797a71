//! The example extent of `docs/format/extent.md`, and bytes changed with their checksums set right.

use terrane_base::options::{BlockEncoding, Compression};
use terrane_base::{Entry, RecordKind, SeqKind, SeqNo, TableId};
use terrane_format::block::{self, BlockBuilder};
use terrane_format::checksum::crc32c;
use terrane_format::extent::{self, Footer, Handle};
use terrane_format::filter;
use terrane_format::index::{IndexBuilder, IndexRow};

/// Three entries, of which two are versions of one key.
pub(crate) fn example_block() -> Vec<u8> {
    let put = |seq| SeqKind::new(SeqNo(seq), RecordKind::Put);
    let delete = SeqKind::new(SeqNo(8), RecordKind::Delete);
    let mut builder = BlockBuilder::new(BlockEncoding::Plain);
    builder.add(Entry { key: b"apple", seq_kind: put(7), value: b"red" }).unwrap();
    builder.add(Entry { key: b"apricot", seq_kind: delete, value: b"" }).unwrap();
    builder.add(Entry { key: b"apricot", seq_kind: put(3), value: b"orange" }).unwrap();
    builder.finish().to_vec()
}

/// Two leaves of eight keys; those of the second one agree beyond 8 bytes, so that it has a part.
#[allow(dead_code, reason = "not every test binary looks at it")]
pub(crate) fn example_two_layer_block() -> Vec<u8> {
    let mut builder = BlockBuilder::new(BlockEncoding::TwoLayer);
    for (number, last) in (0..).zip([b'a'..=b'h', b'1'..=b'8'].into_iter().flatten()) {
        let stem = if number < 8 { "ox/" } else { "oxen/northern/" };
        let key = [stem.as_bytes(), &[last]].concat();
        let seq_kind = SeqKind::new(SeqNo(1000 + number), RecordKind::Put);
        builder.add(Entry { key: &key, seq_kind, value: &[last] }).unwrap();
    }
    builder.finish().to_vec()
}

/// The index of an extent that holds the example block alone.
pub(crate) fn example_index() -> Vec<u8> {
    let block = example_block();
    let mut builder = IndexBuilder::new();
    builder.add(&IndexRow {
        offset: 0,
        stored_len: block.len() as u32,
        raw_len: block.len() as u32,
        compression: Compression::None,
        checksum: block::checksum(&block),
        entries: 3,
        deletes: 1,
        seq_min: SeqNo(3),
        seq_max: SeqNo(8),
        first_key: b"apple",
        last_key: b"apricot",
    });
    let mut bytes = Vec::new();
    builder.finish(&mut bytes);
    bytes
}

pub(crate) fn example_filter() -> Vec<u8> {
    let mut bytes = Vec::new();
    filter::build(&[filter::hash(b"apple"), filter::hash(b"apricot")], 10, &mut bytes);
    bytes
}

/// The same with the prefix that both have by the extractor `fixed:2`.
#[allow(dead_code, reason = "not every test binary has filters")]
pub(crate) fn example_prefixed_filter() -> Vec<u8> {
    let mut bytes = Vec::new();
    let hashes = [filter::hash(b"apple"), filter::hash(b"apricot"), filter::prefix_hash(b"ap")];
    filter::build_with(&hashes, Some("fixed:2"), 10, &mut bytes);
    bytes
}

pub(crate) fn example_extent() -> Vec<u8> {
    let mut bytes = example_block();
    let raw_bytes = bytes.len() as u64;
    let index = Handle::of(bytes.len() as u32, &example_index());
    bytes.extend_from_slice(&example_index());
    let filter = Handle::of(bytes.len() as u32, &example_filter());
    bytes.extend_from_slice(&example_filter());
    let len = extent::extent_bytes(bytes.len());
    bytes.resize(len - extent::FOOTER_BYTES, 0);
    let footer = Footer {
        compression: Compression::Lz4,
        table: TableId(5),
        bytes: len as u32,
        blocks: 1,
        index,
        filter,
        range_deletes: Handle::default(),
        fragments: 0,
        raw_bytes,
        entries: 3,
        deletes: 1,
        seq_min: SeqNo(3),
        seq_max: SeqNo(8),
        expiry: None,
        references: Handle::default(),
        has_positions: false,
        value_table: None,
        origin: extent::Handle::default(),
    };
    footer.encode(&mut bytes);
    bytes
}

/// Sets the checksum in the last four bytes right, so that a decoder has to find the damage by itself.
#[allow(dead_code, reason = "not every test binary changes bytes")]
pub(crate) fn fix_checksum(seed: &[u8; 4], bytes: &mut [u8]) {
    if let Some((body, checksum)) = bytes.split_last_chunk_mut() {
        *checksum = crc32c(u32::from_le_bytes(*seed), body).to_le_bytes();
    }
}
