//! Blocks of pointers to values, and of values that pointers say the position of.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use terrane_base::options::BlockEncoding;
use terrane_base::{Entry, RecordKind, SeqKind, SeqNo, ValuePointer, ValuePosition, ValueTableId};
use terrane_format::block::{self, Block, BlockBuilder, BlockCursor, INTERVALS_MAX};

type Owned = (Vec<u8>, SeqKind, Vec<u8>);

/// Where a two-layer block has its number of intervals, from the end.
const INTERVALS_BACK: usize = 8;

fn builder(encoding: BlockEncoding, entries: &[Owned]) -> BlockBuilder {
    let mut builder = BlockBuilder::new(encoding);
    for (key, seq_kind, value) in entries {
        builder.add(Entry { key, seq_kind: *seq_kind, value }).unwrap();
    }
    builder
}

/// Entries of so many keys with values of 40 bytes; all of one number, so that keys alone tell them apart.
fn values(count: usize, key: impl Fn(usize) -> Vec<u8>) -> Vec<Owned> {
    let put = SeqKind::new(SeqNo(7), RecordKind::Put);
    (0..count).map(|number| (key(number), put, vec![number as u8; 40])).collect()
}

fn pointer(number: usize) -> Owned {
    let position = Some(ValuePosition { block: number as u32 / 14, entry: number as u32 % 14 });
    let mut bytes = Vec::new();
    ValuePointer { table: ValueTableId(300), len: 1024, position }.encode(&mut bytes);
    let seq_kind = SeqKind::new(SeqNo(number as u64 * 7919 % 100_000), RecordKind::Pointer);
    (format!("{number:016}").into_bytes(), seq_kind, bytes)
}

/// At a position that is said there is the version that is asked for, or nothing.
#[test]
fn a_position_is_a_hint() {
    let digits = |number: usize| format!("{number:016}").into_bytes();
    let parts = |number: usize| format!("{}/{}{number:05}", number / 40, "middle".repeat(5)).into_bytes();
    let versions: Vec<Owned> = (0..40)
        .rev()
        .map(|seq| (b"the one key".to_vec(), SeqKind::new(SeqNo(seq), RecordKind::Put), vec![seq as u8; 40]))
        .collect();
    let mut in_parts = values(100, parts);
    in_parts.sort();
    let cases = [values(14, digits), values(100, digits), values(600, digits), in_parts, versions];
    let encodings = [BlockEncoding::Plain, BlockEncoding::TwoLayer];
    for (case, encoding) in cases.iter().flat_map(|case| encodings.map(|encoding| (case, encoding))) {
        let block = Block::decode(builder(encoding, case).finish().to_vec()).unwrap();
        // In a two-layer block only the first entry of an interval has a position.
        let is_alone = encoding == BlockEncoding::Plain || case.len() == 14;
        for (at, (key, seq_kind, value)) in case.iter().enumerate() {
            let said = [at, at + 1, at.saturating_sub(1), 0, case.len() - 1, case.len(), u32::MAX as usize];
            for said in said.map(|said| said as u32) {
                let expected = Some(Entry { key, seq_kind: *seq_kind, value });
                let there = block.find_at(said, key, seq_kind.seq());
                assert!(there.is_none() || there == expected, "{at} is said to be {said}: {there:?}");
                assert!(there.is_some() || !is_alone || said as usize != at, "{at} is not found there");
                let located = block.locate_at(said, key, seq_kind.seq());
                let located = located.map(|(found, value)| (found, &block.bytes()[value]));
                let found = there.map(|entry| (entry.seq_kind, entry.value));
                assert_eq!(located, found, "{at} is said to be {said}");
            }
        }
        assert_eq!(block.find_at(3, b"none", SeqNo::MAX), None);
    }
}

/// The number tells nothing here: it is one for all. A key that differs in any byte of its prefix, its head
/// or its suffix, or has a byte more or less, is another one, however long these are.
#[test]
fn no_other_key_is_taken_at_a_position() {
    let lens =
        [(0, 3), (0, 8), (0, 16), (3, 16), (8, 16), (8, 24), (9, 25), (4, 21), (20, 40), (0, 40), (12, 15)];
    for (prefix, len) in lens {
        let key = |number: usize| {
            let mut key = vec![b'p'; prefix];
            key.push(number as u8 * 17);
            key.extend((prefix + 1..len).map(|at| (at * 31 + number * at) as u8));
            key
        };
        let mut entries = values(15, key);
        // Key and number of most entries are compared in words; the others have a shorter or a longer value.
        for (number, (.., value)) in entries.iter_mut().enumerate() {
            value.resize([127, 128, 300, 2000, 17_000][number % 5], number as u8);
        }
        let block = Block::decode(builder(BlockEncoding::TwoLayer, &entries).finish().to_vec()).unwrap();
        for (at, (key, seq_kind, value)) in entries.iter().enumerate() {
            let find = |key: &[u8]| {
                let found = block.locate_at(at as u32, key, SeqNo(7));
                found.map(|(kind, value)| (kind, block.bytes()[value].to_vec()))
            };
            assert_eq!(find(key), Some((*seq_kind, value.clone())), "{prefix} of {len} bytes");
            for byte in 0..key.len() {
                let mut other = key.clone();
                other[byte] ^= 1;
                assert_eq!(find(&other), None, "byte {byte} of {len} with a prefix of {prefix}");
            }
            assert_eq!(find(&key[..len - 1]), None, "a byte less, {prefix} of {len}");
            assert_eq!(find(&key[1..]), None, "without the first byte, {prefix} of {len}");
            assert_eq!(find(&[key, &b"\0"[..]].concat()), None, "a byte more, {prefix} of {len}");
            assert_eq!(block.locate_at(at as u32, key, SeqNo(8)), None, "another number");
        }
    }
}

/// A block with any other byte is refused, or has at each position a version that it has, whole, or none.
#[test]
fn positions_in_damaged_blocks_lead_to_nothing_else() {
    let key = |number: usize| format!("{:09}/{}", number * 7, "x".repeat(number % 3 * 4)).into_bytes();
    for encoding in [BlockEncoding::Plain, BlockEncoding::TwoLayer] {
        let mut entries = values(18, key);
        entries.iter_mut().for_each(|(key, _, value)| value.resize(100 + 3 * key.len(), 0x80));
        let whole = builder(encoding, &entries).finish().to_vec();
        let mut decoded = 0;
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] = bytes[at].wrapping_add([1, 0x7f, 0x80, 0xff][at % 4]);
            let Ok(block) = Block::decode(bytes) else { continue };
            decoded += 1;
            let rows = rows(&block);
            for said in 0..rows.len() + 1 {
                for (key, seq_kind, _) in entries.iter().chain(rows.get(said)) {
                    let Some((found, value)) = block.locate_at(said as u32, key, seq_kind.seq()) else {
                        continue;
                    };
                    let value = block.bytes().get(value).expect("a value lies in its block");
                    let is_there = rows.iter().any(|row| (&row.0, row.1, &*row.2) == (key, found, value));
                    assert!(is_there, "byte {at}: entry {said} is not in the block");
                }
            }
        }
        assert!(
            decoded > 0 && decoded < whole.len(),
            "some damage is in values, {decoded} of {}",
            whole.len()
        );
    }
}

/// The entries of a block.
fn rows(block: &Block) -> Vec<Owned> {
    let mut cursor = BlockCursor::new();
    cursor.seek_first(block);
    let mut rows = Vec::new();
    while let Some(entry) = cursor.entry(block) {
        rows.push((entry.key.to_vec(), entry.seq_kind, entry.value.to_vec()));
        cursor.next(block);
    }
    rows
}

#[test]
fn pointers_have_an_interval_each_and_end_their_block() {
    for len in [40, INTERVALS_MAX - 1, INTERVALS_MAX] {
        let entries: Vec<Owned> = (0..len).map(pointer).collect();
        let mut builder = builder(BlockEncoding::TwoLayer, &entries);
        assert_eq!(builder.is_full_of_pointers(), len == INTERVALS_MAX, "{len} pointers");
        let bytes_max = builder.bytes_max();
        let bytes = builder.finish().to_vec();
        assert!(bytes.len() <= bytes_max, "{} bytes, {bytes_max} at most", bytes.len());
        assert_eq!(bytes.last(), Some(&block::ENCODING_TWO_LAYER));
        assert_eq!(usize::from(bytes[bytes.len() - INTERVALS_BACK]), len, "one interval for each");
        let block = Block::decode(bytes).unwrap();
        for (key, seq_kind, value) in &entries {
            assert_eq!(block.find(key, SeqNo::MAX), Some(Entry { key, seq_kind: *seq_kind, value }));
        }
    }
}

#[test]
fn other_entries_end_no_block_before_it_is_full() {
    let short = |number: usize| {
        (pointer(number).0, SeqKind::new(SeqNo(number as u64), RecordKind::Put), vec![number as u8; 6])
    };
    let puts: Vec<Owned> = (0..300).map(short).collect();
    assert!(!builder(BlockEncoding::TwoLayer, &puts).is_full_of_pointers());
    let half = |number: usize| if number.is_multiple_of(2) { pointer(number) } else { short(number) };
    let mixed: Vec<Owned> = (0..200).map(half).collect();
    assert!(builder(BlockEncoding::TwoLayer, &mixed).is_full_of_pointers());
    let few = |number: usize| if number.is_multiple_of(3) { pointer(number) } else { short(number) };
    let few: Vec<Owned> = (0..200).map(few).collect();
    assert!(!builder(BlockEncoding::TwoLayer, &few).is_full_of_pointers());
    let plain: Vec<Owned> = (0..200).map(pointer).collect();
    assert!(!builder(BlockEncoding::Plain, &plain).is_full_of_pointers(), "a plain block has no intervals");
}
