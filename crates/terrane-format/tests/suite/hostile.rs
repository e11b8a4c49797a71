//! Untrusted bytes: every decoder answers with a value or `Corrupt`, whatever the bytes are.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use crate::common;

use proptest::collection::vec;
use proptest::prelude::*;
use terrane_base::options::{BlockEncoding, Compression};
use terrane_base::{ExtentId, Kind, SeqNo};
use terrane_format::block::{self, Block, BlockCursor};
use terrane_format::codec;
use terrane_format::extent::{self, ExtentMeta, FOOTER_BYTES, Footer, check};
use terrane_format::filter::{self, Filter};
use terrane_format::index::{self, IndexBlock};

const ID: ExtentId = ExtentId { file: 1, slot: 2 };

fn encoding() -> impl Strategy<Value = BlockEncoding> {
    prop_oneof![Just(BlockEncoding::Plain), Just(BlockEncoding::TwoLayer)]
}

/// Changes to make to good bytes: overwrite at a place, and cut or lengthen the end.
#[derive(Clone, Debug)]
struct Damage {
    writes: Vec<(prop::sample::Index, u8)>,
    end: i8,
}

fn damage() -> impl Strategy<Value = Damage> {
    let interesting = prop_oneof![any::<u8>(), Just(0u8), Just(1), Just(0x7f), Just(0x80), Just(0xff)];
    (vec((any::<prop::sample::Index>(), interesting), 0..6), prop_oneof![3 => Just(0i8), 1 => any::<i8>()])
        .prop_map(|(writes, end)| Damage { writes, end })
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let len = bytes.len().saturating_add_signed(isize::from(self.end));
        bytes.resize(len, 0x55);
        for (place, byte) in &self.writes {
            if !bytes.is_empty() {
                let at = place.index(bytes.len());
                bytes[at] = *byte;
            }
        }
    }
}

/// Every way into a block; what comes out does not matter, only that it ends.
fn use_block(block: &Block) {
    let _ = block.check_order();
    let mut cursor = BlockCursor::new();
    for key in [&b""[..], b"apple", b"apricot", b"aprico\xff", b"zz", &[0xff; 40]] {
        for seq in [SeqNo(0), SeqNo(3), SeqNo::MAX] {
            let _ = block.find(key, seq);
            cursor.seek(block, key, seq);
            walk(&mut cursor, block);
            cursor.seek_before(block, key);
            while cursor.entry(block).is_some() {
                cursor.prev(block);
            }
        }
    }
    cursor.seek_last(block);
    walk(&mut cursor, block);
}

fn walk(cursor: &mut BlockCursor, block: &Block) {
    let mut steps = 0;
    while cursor.entry(block).is_some() {
        cursor.next(block);
        steps += 1;
        assert!(steps <= block.entry_count(), "a walk shows more entries than there are");
    }
}

fn corrupt_or<T>(result: terrane_base::Result<T>, good: impl FnOnce(T)) {
    match result {
        Ok(value) => good(value),
        Err(error) => assert_eq!(error.kind(), Kind::Corrupt, "{error}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn block(random in vec(any::<u8>(), 0..200), damage in damage(), encoding in encoding(), long in 0usize..300) {
        corrupt_or(Block::decode(random), |block| use_block(&block));
        let mut bytes = long_block(encoding, long);
        damage.apply(&mut bytes);
        let _ = block::describe(&bytes);
        corrupt_or(Block::decode(bytes), |block| use_block(&block));
    }

    #[test]
    fn cursor_on_another_block(
        a in (encoding(), 0usize..60),
        b in (encoding(), 0usize..60),
        turns in vec(0u8..4, 0..40),
    ) {
        let blocks = [a, b].map(|(encoding, count)| Block::decode(long_block(encoding, count)).unwrap());
        let mut cursor = BlockCursor::new();
        for (number, turn) in turns.into_iter().enumerate() {
            let block = &blocks[number % 2];
            match turn {
                0 => cursor.seek(block, b"key03", SeqNo::MAX),
                1 => cursor.seek_last(block),
                2 if cursor.is_placed() => cursor.prev(block),
                3 if cursor.is_placed() => cursor.next(block),
                _ => {}
            }
            let _ = cursor.entry(block);
        }
    }

    #[test]
    fn index_block(random in vec(any::<u8>(), 0..200), damage in damage(), fixed in any::<bool>()) {
        corrupt_or(IndexBlock::decode(random), |_| ());
        let mut bytes = common::example_index();
        damage.apply(&mut bytes);
        if fixed {
            common::fix_checksum(b"INDX", &mut bytes);
        }
        let _ = index::describe(&bytes);
        corrupt_or(IndexBlock::decode(bytes), |index| {
            for key in [&b""[..], b"apple", b"b", &[0xff; 9]] {
                assert!(index.find(key) <= index.len());
                assert!(index.find_before(key).is_none_or(|block| block < index.len()));
            }
            for row in index.rows() {
                corrupt_or(row.open_block(common::example_block()), |block| use_block(&block));
            }
        });
    }

    #[test]
    fn filter_bytes(
        random in vec(any::<u8>(), 0..200),
        damage in damage(),
        fixed in any::<bool>(),
        prefixed in any::<bool>(),
    ) {
        corrupt_or(Filter::decode(&random), |_| ());
        let mut bytes = if prefixed { common::example_prefixed_filter() } else { common::example_filter() };
        damage.apply(&mut bytes);
        if fixed {
            common::fix_checksum(b"FLTR", &mut bytes);
        }
        let _ = filter::describe(&bytes);
        corrupt_or(Filter::decode(&bytes), |filter| {
            for key in 0..100u64 {
                let _ = filter.may_contain(filter::hash(&key.to_le_bytes()));
            }
        });
    }

    #[test]
    fn footer_and_extent(random in vec(any::<u8>(), 0..200), damage in damage(), fixed in any::<bool>()) {
        corrupt_or(check::verify(&random, ID, 1), |_| ());
        let mut bytes = common::example_extent();
        if fixed {
            let at = bytes.len() - FOOTER_BYTES;
            let mut footer = bytes.split_off(at);
            for (place, byte) in &damage.writes {
                footer[place.index(FOOTER_BYTES - 12)] = *byte;
            }
            common::fix_checksum(b"FOOT", &mut footer[..FOOTER_BYTES - 8]);
            corrupt_or(Footer::decode(&footer), |_| ());
            bytes.extend_from_slice(&footer);
        } else {
            damage.apply(&mut bytes);
        }
        let _ = extent::describe(&bytes);
        let _ = extent::locate(&bytes);
        corrupt_or(check::inspect(&bytes, ID, 1), |_| ());
        corrupt_or(check::verify(&bytes, ID, 1), |_| ());
    }

    #[test]
    fn meta(random in vec(any::<u8>(), 0..200), damage in damage()) {
        corrupt_or(ExtentMeta::decode(&random), |_| ());
        let mut bytes = Vec::new();
        check::inspect(&common::example_extent(), ID, 1).unwrap().encode(&mut bytes);
        damage.apply(&mut bytes);
        let _ = extent::describe_meta(&bytes);
        corrupt_or(ExtentMeta::decode(&bytes), |(meta, len)| {
            assert!(len <= bytes.len());
            assert_eq!(meta.encoded_len(), len);
        });
    }

    #[test]
    fn codecs(stored in vec(any::<u8>(), 0..300), raw_len in prop_oneof![0usize..5000, any::<usize>()]) {
        for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
            match codec::decode(compression, &stored, raw_len) {
                Ok(raw) => prop_assert_eq!(raw.len(), raw_len),
                Err(error) => prop_assert!(matches!(error.kind(), Kind::Corrupt | Kind::Invalid), "{}", error),
            }
        }
    }
}

/// A block of `count` entries, so that damage meets restarts, shared prefixes and long values.
fn long_block(encoding: BlockEncoding, count: usize) -> Vec<u8> {
    use terrane_base::{Entry, RecordKind, SeqKind};
    let mut builder = block::BlockBuilder::new(encoding);
    for i in 0..count {
        let (key, value) = (format!("key{:02}{}", i / 3, "x".repeat(i % 3 * 60)), vec![i as u8; i * 7 % 200]);
        let seq_kind = SeqKind::new(SeqNo(1000 - i as u64), RecordKind::Put);
        builder.add(Entry { key: key.as_bytes(), seq_kind, value: &value }).unwrap();
    }
    builder.finish().to_vec()
}

/// Any single flipped bit of an extent is found, wherever it lies.
#[test]
fn every_bit_of_an_extent_is_checked() {
    let good = common::example_extent();
    check::verify(&good, ID, 1).unwrap();
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << bit;
            let error = check::verify(&bytes, ID, 1).expect_err("a flipped bit was not seen");
            assert_eq!(error.kind(), Kind::Corrupt, "byte {at} bit {bit}: {error}");
        }
    }
}

/// A filter that does not exist cannot lie somewhere: the zeros behind the content start at the index's end.
#[test]
fn a_missing_filter_has_no_place() {
    let good = common::example_extent();
    let (content, footer) = good.split_at(good.len() - FOOTER_BYTES);
    let footer = Footer { filter: extent::Handle::default(), ..Footer::decode(footer).unwrap() };
    for (filter, is_good) in
        [(footer.filter, true), (extent::Handle { offset: 5000, len: 0, checksum: 0 }, false)]
    {
        let mut bytes = content.to_vec();
        bytes[footer.index.end() as usize..].fill(0);
        Footer { filter, ..footer }.encode(&mut bytes);
        assert_eq!(check::verify(&bytes, ID, 1).map_err(|error| error.kind()).is_ok(), is_good);
    }
}

#[test]
fn impossible_sizes_are_refused_before_memory_is_taken() {
    let refused = [
        (Compression::None, 10, 11),
        (Compression::Lz4, 10, 10 * 255 + 1),
        (Compression::Lz4, 0, 0),
        (Compression::Zstd, 100, codec::RAW_BYTES_MAX_SINGLE + 1),
        (Compression::Lz4, usize::MAX >> 40, usize::MAX),
    ];
    for (compression, stored_len, raw_len) in refused {
        let error = codec::decode(compression, &vec![0; stored_len], raw_len).unwrap_err();
        assert_eq!(error.kind(), Kind::Corrupt, "{error}");
    }
}

/// Many cases, since each is short; more on demand (`PROPTEST_CASES`).
fn cases() -> u32 {
    ProptestConfig::default().cases.max(2000)
}
