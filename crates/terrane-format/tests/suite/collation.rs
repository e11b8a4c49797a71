//! Blocks, index blocks, range deletes and descriptions of extents whose keys a comparator orders, against a
//! sorted list.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::cmp::Ordering;
use std::sync::Arc;

use terrane_base::options::{BlockEncoding, Compression};
use terrane_base::{
    Collation, Comparator, Entry, ExtentId, KeyOrders, Kind, RecordKind, SeqKind, SeqNo, TableId,
};
use terrane_format::block::{Block, BlockBuilder, BlockCursor};
use terrane_format::dump::Field;
use terrane_format::extent::{self, ExtentMeta, Footer, Handle};
use terrane_format::index::{IndexBlock, IndexBuilder, IndexRow};
use terrane_format::range_deletes::{Fragment, Fragments};

/// By length, then from the last byte to the first.
#[derive(Debug)]
struct Backward;

impl Comparator for Backward {
    fn name(&self) -> &str {
        "backward"
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        left.len().cmp(&right.len()).then_with(|| left.iter().rev().cmp(right.iter().rev()))
    }
}

fn collation() -> Collation {
    KeyOrders::new().with_comparator(Arc::new(Backward)).unwrap().collation("backward")
}

/// Keys of one to three letters as they are kept, each with its versions, in order.
fn entries() -> Vec<(Vec<u8>, u64)> {
    let mut keys: Vec<Vec<u8>> = vec![vec![]];
    for len in 1..=3usize {
        let longer = keys.iter().filter(|key| key.len() == len - 1);
        let longer: Vec<_> =
            longer.flat_map(|key| b"abcd".map(|byte| [&key[..], &[byte]].concat())).collect();
        keys.extend(longer);
    }
    let collation = collation();
    keys.iter_mut().for_each(|key| key.push(0));
    keys.sort_by(|left, right| collation.cmp(left, right));
    let versions = |key: Vec<u8>| [9, 4].map(|seq| (key.clone(), seq));
    keys.into_iter().enumerate().filter(|(at, _)| at % 3 != 1).flat_map(|(_, key)| versions(key)).collect()
}

fn block(entries: &[(Vec<u8>, u64)]) -> Vec<u8> {
    let mut builder = BlockBuilder::new(BlockEncoding::TwoLayer).ordered(&collation());
    for (key, seq) in entries {
        let seq_kind = SeqKind::new(SeqNo(*seq), RecordKind::Put);
        builder.add(Entry { key, seq_kind, value: &seq.to_le_bytes() }).unwrap();
    }
    builder.finish().to_vec()
}

/// Every key that there is, those between them, and those behind each.
fn probes() -> Vec<Vec<u8>> {
    let mut probes =
        vec![Vec::new(), b"zz\0".to_vec(), b"bz\0".to_vec(), b"aaaaa\0".to_vec(), b"d\0".to_vec()];
    for (key, _) in entries() {
        probes.push(collation().successor(&key));
        probes.push(key);
    }
    probes
}

#[test]
fn a_block_is_searched_in_the_comparators_order() {
    let (entries, collation) = (entries(), collation());
    let block = Block::decode(block(&entries)).unwrap().ordered(&collation);
    block.check_order().unwrap();
    let mut cursor = BlockCursor::new();
    for probe in probes() {
        for seq in [SeqNo::MAX, SeqNo(9), SeqNo(6), SeqNo(2)] {
            let before = |(key, own): &(Vec<u8>, u64)| {
                collation.cmp(key, &probe).then_with(|| seq.0.cmp(own)) == Ordering::Less
            };
            let at = entries.partition_point(before);
            cursor.seek(&block, &probe, seq);
            let found = cursor.entry(&block).map(|entry| (entry.key.to_vec(), entry.seq_kind.seq().0));
            assert_eq!(found.as_ref(), entries.get(at), "{probe:?} {seq}");
            let wanted = entries.get(at).filter(|(key, _)| *key == probe).map(|(_, own)| *own);
            assert_eq!(
                block.find(&probe, seq).map(|entry| entry.seq_kind.seq().0),
                wanted,
                "{probe:?} {seq}"
            );
        }
        cursor.seek_before(&block, &probe);
        let before = entries.partition_point(|(key, _)| collation.lt(key, &probe)).checked_sub(1);
        let found = cursor.entry(&block).map(|entry| (entry.key.to_vec(), entry.seq_kind.seq().0));
        assert_eq!(found.as_ref(), before.map(|at| &entries[at]), "before {probe:?}");
    }
}

#[test]
fn entries_out_of_the_comparators_order_are_refused() {
    let mut builder = BlockBuilder::new(BlockEncoding::Plain).ordered(&collation());
    let seq_kind = SeqKind::new(SeqNo(1), RecordKind::Put);
    builder.add(Entry { key: b"b\0", seq_kind, value: b"" }).unwrap();
    builder.add(Entry { key: b"aa\0", seq_kind, value: b"" }).unwrap();
    for key in [&b"b\0"[..], b"aa\0", b"a\0"] {
        assert_eq!(builder.add(Entry { key, seq_kind, value: b"" }).unwrap_err().kind(), Kind::Invalid);
    }
    let block = Block::decode(builder.finish().to_vec()).unwrap();
    assert!(block.check_order().is_err(), "not the order of bytes");
    block.ordered(&Collation::missing("backward")).check_order().unwrap();
}

/// An index block of blocks with these entries.
fn index(parts: &[&[(Vec<u8>, u64)]]) -> Vec<u8> {
    let mut builder = IndexBuilder::new();
    let mut offset = 0;
    for part in parts {
        let bytes = block(part);
        let row = IndexRow {
            offset,
            stored_len: bytes.len() as u32,
            raw_len: bytes.len() as u32,
            compression: Compression::None,
            checksum: 0,
            entries: part.len() as u32,
            deletes: 0,
            seq_min: SeqNo(4),
            seq_max: SeqNo(9),
            first_key: &part[0].0,
            last_key: &part[part.len() - 1].0,
        };
        offset += row.stored_len;
        builder.add(&row);
    }
    let mut bytes = Vec::new();
    builder.finish(&mut bytes);
    bytes
}

#[test]
fn an_index_block_is_searched_in_the_comparators_order() {
    let (entries, collation) = (entries(), collation());
    let parts: Vec<_> = entries.chunks(6).collect();
    let bytes = index(&parts);
    assert_eq!(
        IndexBlock::decode(bytes.clone()).unwrap_err().kind(),
        Kind::Corrupt,
        "not the order of bytes"
    );
    IndexBlock::decode_ordered(bytes.clone(), &Collation::missing("backward")).unwrap();
    let index = IndexBlock::decode_ordered(bytes, &collation).unwrap();
    for probe in probes() {
        let wanted = parts.partition_point(|part| collation.lt(&part[part.len() - 1].0, &probe));
        assert_eq!(index.find(&probe), wanted, "{probe:?}");
        let before = parts.partition_point(|part| collation.lt(&part[0].0, &probe)).checked_sub(1);
        assert_eq!(index.find_before(&probe), before, "before {probe:?}");
    }
}

#[test]
fn range_deletes_and_extents_lie_in_the_comparators_order() {
    let collation = collation();
    let seqs = vec![SeqNo(3)];
    let fragment =
        |start: &[u8], end: &[u8]| Fragment { start: start.to_vec(), end: end.to_vec(), seqs: seqs.clone() };
    let mut bytes = Vec::new();
    Fragments::encode(&[fragment(b"b\0", b"z\x01"), fragment(b"aa\0", b"cc\0")], &mut bytes);
    assert_eq!(Fragments::decode(&bytes).unwrap_err().kind(), Kind::Corrupt, "not the order of bytes");
    let fragments = Fragments::decode_ordered(&bytes, &collation).unwrap();
    for (key, is_covered) in [
        (&b"a\0"[..], false),
        (b"b\0", true),
        (b"z\0", true),
        (b"z\x01", false),
        (b"zb\0", true),
        (b"cc\0", false),
    ] {
        assert_eq!(fragments.covering(key).is_some(), is_covered, "{key:?}");
    }
    assert_eq!(fragments.all()[0].last_key(&collation), b"z\0".as_slice());
    let meta = ExtentMeta { smallest: b"b\0".to_vec(), largest: b"aa\0".to_vec(), ..ExtentMeta::default() };
    assert!(meta.clone().ordered(&Collation::BYTES).is_err());
    assert_eq!(meta.clone().ordered(&collation).unwrap().collation, collation);
    meta.clone().ordered(&Collation::missing("backward")).unwrap();
    let turned = ExtentMeta { smallest: meta.largest, largest: meta.smallest, ..ExtentMeta::default() };
    assert_eq!(turned.ordered(&collation).unwrap_err().kind(), Kind::Corrupt);
}

/// An offline tool has no comparator: an order that is not that of bytes is not damage to it.
#[test]
fn extents_in_a_comparators_order_are_described_in_full() {
    let names = |fields: &[Field]| fields.iter().map(|field| field.name.clone()).collect::<Vec<_>>();
    let entries = entries();
    let parts: Vec<_> = entries.chunks(6).collect();
    let (mut bytes, index) = (parts.iter().flat_map(|part| block(part)).collect::<Vec<u8>>(), index(&parts));
    let mut place = |part: &[u8]| {
        let handle = Handle::of(bytes.len() as u32, part);
        bytes.extend_from_slice(part);
        handle
    };
    let index = place(&index);
    let fragment = |start: &[u8], end: &[u8]| Fragment {
        start: start.to_vec(),
        end: end.to_vec(),
        seqs: vec![SeqNo(3)],
    };
    let (mut deletes, form) = (Vec::new(), extent::Form { is_ranged: true, ..extent::Form::default() });
    Fragments::encode(&[fragment(b"b\0", b"z\x01"), fragment(b"z\x01", b"cc\0")], &mut deletes);
    let range_deletes = place(&deletes);
    bytes.resize(extent::extent_bytes_with(bytes.len(), form) - form.footer_bytes(), 0);
    let footer = Footer {
        compression: Compression::None,
        table: TableId(1),
        bytes: (bytes.len() + form.footer_bytes()) as u32,
        blocks: parts.len() as u32,
        index,
        filter: Handle::default(),
        range_deletes,
        fragments: 2,
        raw_bytes: index.offset.into(),
        entries: entries.len() as u64,
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
    let shown = names(&extent::describe(&bytes));
    let last = parts.len() - 1;
    for wanted in
        [format!("block[{last}]"), format!("index.row[{last}]"), "range_deletes.fragment[1]".to_owned()]
    {
        assert!(shown.contains(&wanted), "{wanted} is not in {shown:?}");
    }

    let id = ExtentId { file: 1, slot: 2 };
    let (smallest, largest) = (b"b\0".to_vec(), b"aa\0".to_vec());
    let meta = ExtentMeta {
        id,
        bytes: bytes.len() as u32,
        blocks: 1,
        entries: 2,
        smallest,
        largest,
        seq_min: SeqNo(1),
        seq_max: SeqNo(1),
        index,
        format_version: 1,
        ..ExtentMeta::default()
    };
    let mut encoded = Vec::new();
    meta.encode(&mut encoded);
    let (fields, len) = extent::describe_meta(&encoded);
    assert_eq!(len, encoded.len());
    assert!(names(&fields).contains(&"smallest, largest".to_owned()), "{fields:?}");
}
