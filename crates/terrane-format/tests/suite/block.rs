//! Data blocks and index blocks against a sorted list.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use proptest::collection::vec;
use proptest::prelude::*;
use terrane_base::options::{BlockEncoding, Compression};
use terrane_base::{Entry, Kind, RecordKind, SeqKind, SeqNo};
use terrane_format::block::{self, Block, BlockBuilder, BlockCursor, RESTART_INTERVAL};
use terrane_format::index::{IndexBlock, IndexBuilder, IndexRow};

type Owned = (Vec<u8>, SeqKind, Vec<u8>);

/// Keys that are parts of each other, hold zero bytes, are empty or long: few letters make many collisions.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => vec(prop_oneof![Just(0u8), Just(1), Just(b'a'), Just(255)], 0..6),
        2 => vec(Just(b'a'), 0..24),
        1 => (vec(any::<u8>(), 0..3), 100usize..400).prop_map(|(end, len)| [vec![7; len], end].concat()),
    ]
}

/// Sorted entries without duplicates, several versions of some keys.
fn entries(count: usize) -> impl Strategy<Value = Vec<Owned>> {
    let value = prop_oneof![vec(any::<u8>(), 0..4), vec(any::<u8>(), 100..300)];
    let entry = (key(), 0u64..8, any::<bool>(), value);
    vec(entry, 0..count).prop_map(|raw| {
        let mut entries: Vec<Owned> = raw
            .into_iter()
            .map(|(key, seq, put, value)| {
                let kind = if put { RecordKind::Put } else { RecordKind::Delete };
                (key, SeqKind::new(SeqNo(seq), kind), if put { value } else { Vec::new() })
            })
            .collect();
        entries.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.seq().cmp(&a.1.seq())));
        entries.dedup_by(|a, b| a.0 == b.0 && a.1.seq() == b.1.seq());
        entries
    })
}

fn as_entry((key, seq_kind, value): &Owned) -> Entry<'_> {
    Entry { key, seq_kind: *seq_kind, value }
}

fn build(encoding: BlockEncoding, entries: &[Owned]) -> Block {
    let mut builder = BlockBuilder::new(encoding);
    for entry in entries {
        builder.add(as_entry(entry)).unwrap();
    }
    assert_eq!(builder.entry_count() as usize, entries.len());
    let (estimated, bytes_max) = (builder.estimated_bytes(), builder.bytes_max());
    let bytes = builder.finish().to_vec();
    assert!(bytes.len() <= bytes_max, "{} bytes, {bytes_max} at most", bytes.len());
    assert!(encoding == BlockEncoding::TwoLayer || bytes.len() == estimated);
    Block::decode(bytes).unwrap()
}

/// Both encodings; most blocks in two layers, which have more to go wrong.
fn encoding() -> impl Strategy<Value = BlockEncoding> {
    prop_oneof![1 => Just(BlockEncoding::Plain), 3 => Just(BlockEncoding::TwoLayer)]
}

/// The first entry at or after (`key`, `seq`).
fn lower_bound(entries: &[Owned], key: &[u8], seq: SeqNo) -> usize {
    entries.partition_point(|entry| (entry.0.as_slice(), seq) < (key, entry.1.seq()))
}

proptest! {
    #[test]
    fn searches_agree_with_a_sorted_list(
        encoding in encoding(),
        entries in entries(400),
        asked in vec((key(), 0u64..9), 1..40),
    ) {
        let block = build(encoding, &entries);
        block.check_order().unwrap();
        prop_assert_eq!(block.entry_count(), entries.len());
        let known = entries.iter().map(|entry| (entry.0.clone(), entry.1.seq().0));
        let mut cursor = BlockCursor::new();
        for (key, seq) in asked.into_iter().chain(known) {
            let seq = SeqNo(seq);
            let expected = entries.get(lower_bound(&entries, &key, seq)).map(as_entry);
            cursor.seek(&block, &key, seq);
            prop_assert_eq!(cursor.entry(&block), expected);
            prop_assert_eq!(block.find(&key, seq), expected.filter(|entry| entry.key == key));
            let before = entries.iter().rev().map(as_entry).find(|entry| entry.key < key.as_slice());
            cursor.seek_before(&block, &key);
            prop_assert_eq!(cursor.entry(&block), before);
        }
    }

    #[test]
    fn walks_agree_with_a_sorted_list(
        encoding in encoding(),
        entries in entries(80),
        turns in vec(any::<bool>(), 0..200),
    ) {
        let block = build(encoding, &entries);
        let mut cursor = BlockCursor::new();
        prop_assert_eq!(cursor.entry(&block), None);
        cursor.seek_last(&block);
        prop_assert_eq!(cursor.entry(&block), entries.last().map(as_entry));
        cursor.seek_first(&block);
        let mut at = 0;
        for is_forward in turns {
            if at >= entries.len() {
                prop_assert_eq!(cursor.entry(&block), None);
                cursor.seek_first(&block);
                at = 0;
            }
            prop_assert_eq!(cursor.entry(&block), entries.get(at).map(as_entry));
            if cursor.entry(&block).is_none() {
                break;
            }
            if is_forward { cursor.next(&block) } else { cursor.prev(&block) }
            at = if is_forward { at + 1 } else { at.wrapping_sub(1) };
        }
    }

    #[test]
    fn whole_scans_agree_with_a_sorted_list(encoding in encoding(), entries in entries(400)) {
        let block = build(encoding, &entries);
        let mut cursor = BlockCursor::new();
        cursor.seek_first(&block);
        for entry in &entries {
            prop_assert_eq!(cursor.entry(&block), Some(as_entry(entry)));
            cursor.next(&block);
        }
        prop_assert_eq!(cursor.entry(&block), None);
        cursor.seek_last(&block);
        for entry in entries.iter().rev() {
            prop_assert_eq!(cursor.entry(&block), Some(as_entry(entry)));
            cursor.prev(&block);
        }
        prop_assert_eq!(cursor.entry(&block), None);
    }

    #[test]
    fn index_agrees_with_a_sorted_list(entries in entries(120), per_block in 1usize..5, asked in vec(key(), 1..40)) {
        let chunks: Vec<&[Owned]> = entries.chunks(per_block).collect();
        let index = IndexBlock::decode(index_of(&chunks)).unwrap();
        prop_assert_eq!(index.len(), chunks.len());
        for (block, (row, chunk)) in index.rows().zip(&chunks).enumerate() {
            prop_assert_eq!(row.first_key, &chunk[0].0[..]);
            prop_assert_eq!(row.last_key, &chunk[chunk.len() - 1].0[..]);
            prop_assert_eq!(row, index.row(block));
            let next = chunks.get(block + 1).map(|next| &next[0].0[..]);
            prop_assert_eq!(index.goes_on(block), next == Some(row.last_key));
        }
        for key in asked.iter().chain(entries.iter().map(|entry| &entry.0)) {
            let expected = chunks.iter().position(|chunk| &chunk[chunk.len() - 1].0 >= key);
            prop_assert_eq!(index.find(key), expected.unwrap_or(chunks.len()));
            let before = chunks.iter().rposition(|chunk| &chunk[0].0 < key);
            prop_assert_eq!(index.find_before(key), before);
        }
    }
}

fn index_of(chunks: &[&[Owned]]) -> Vec<u8> {
    let mut builder = IndexBuilder::new();
    for (number, chunk) in chunks.iter().enumerate() {
        builder.add(&IndexRow {
            offset: number as u32 * 10,
            stored_len: 10,
            raw_len: 10,
            compression: Compression::None,
            checksum: number as u32,
            entries: chunk.len() as u32,
            deletes: 0,
            seq_min: SeqNo(0),
            seq_max: SeqNo(9),
            first_key: &chunk[0].0,
            last_key: &chunk[chunk.len() - 1].0,
        });
    }
    let (estimated, mut bytes) = (builder.estimated_bytes(), Vec::new());
    builder.finish(&mut bytes);
    assert_eq!(bytes.len(), estimated);
    bytes
}

#[test]
fn entries_out_of_order_are_refused_and_change_nothing() {
    let put = |seq| SeqKind::new(SeqNo(seq), RecordKind::Put);
    let mut builder = BlockBuilder::new(BlockEncoding::TwoLayer);
    builder.add(Entry { key: b"m", seq_kind: put(5), value: b"1" }).unwrap();
    let refused = [(&b"l"[..], 9), (b"m", 5), (b"m", 6), (b"", 1), (b"lzzz", 1)];
    for (key, seq) in refused {
        let error = builder.add(Entry { key, seq_kind: put(seq), value: b"" }).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid, "{error}");
    }
    builder.add(Entry { key: b"m", seq_kind: put(4), value: b"2" }).unwrap();
    builder.add(Entry { key: b"m\0", seq_kind: put(9), value: b"3" }).unwrap();
    let block = Block::decode(builder.finish().to_vec()).unwrap();
    assert_eq!(block.entry_count(), 3);
    assert_eq!(block.find(b"m", SeqNo(4)).unwrap().value, b"2");
}

#[test]
fn order_check_sees_what_decoding_does_not() {
    // Two one-entry blocks joined by hand: the second entry's key is not greater than the first's.
    let bytes = |key: &[u8]| [&[0, key.len() as u8, 0][..], key, &0x101u64.to_le_bytes()].concat();
    let trailer = [&0u32.to_le_bytes()[..], &2u32.to_le_bytes(), &[block::ENCODING_PLAIN]].concat();
    let block = Block::decode([bytes(b"b"), bytes(b"a"), trailer].concat()).unwrap();
    assert_eq!(block.check_order().unwrap_err().kind(), Kind::Corrupt);
}

#[test]
fn restarts_come_every_sixteenth_entry() {
    let entries: Vec<Owned> = (0..RESTART_INTERVAL * 2 + 1)
        .map(|i| (format!("{i:04}").into_bytes(), SeqKind::new(SeqNo(1), RecordKind::Put), Vec::new()))
        .collect();
    let fields = block::describe(build(BlockEncoding::Plain, &entries).bytes());
    let restarts = fields.iter().filter(|field| field.name.starts_with("restart")).count();
    assert_eq!(restarts, 3);
}

/// Entries with keys that are made from their number, each with one version and a value of its own.
fn numbered(count: usize, key: impl Fn(usize) -> Vec<u8>) -> Vec<Owned> {
    let entry = |i: usize| (key(i), SeqKind::new(SeqNo(i as u64), RecordKind::Put), vec![i as u8; 40]);
    (0..count).map(entry).collect()
}

fn is_two_layer(block: &Block) -> bool {
    block.bytes().last() == Some(&block::ENCODING_TWO_LAYER)
}

/// Every key is found, none between two of them is, and the block is laid out as asked.
fn check_all(entries: &[Owned], case: &str) {
    let block = build(BlockEncoding::TwoLayer, entries);
    assert!(is_two_layer(&block), "{case}: not in two layers");
    block.check_order().unwrap();
    let mut cursor = BlockCursor::new();
    for (number, (key, seq_kind, value)) in entries.iter().enumerate() {
        let found = block.find(key, seq_kind.seq()).unwrap_or_else(|| panic!("{case}: key {number}"));
        assert_eq!((found.seq_kind, found.value), (*seq_kind, value.as_slice()), "{case}: key {number}");
        let behind = [key, &[0][..]].concat();
        if entries.get(number + 1).is_none_or(|next| next.0 != behind) {
            assert!(block.find(&behind, SeqNo::MAX).is_none(), "{case}: behind key {number}");
        }
        let next = &entries[lower_bound(entries, &behind, SeqNo::MAX)..];
        cursor.seek(&block, &behind, SeqNo::MAX);
        assert_eq!(cursor.entry(&block), next.first().map(as_entry), "{case}: behind key {number}");
        cursor.seek_before(&block, key);
        let before = entries.iter().rev().find(|entry| entry.0 < *key);
        assert_eq!(cursor.entry(&block), before.map(as_entry), "{case}: before key {number}");
    }
}

/// The shapes of keys that a tree of heads meets: what decides lies in the first 8 bytes behind the prefix,
/// or behind them in every leaf or in some, or in the length alone.
#[test]
fn trees_of_every_shape() {
    let long = |i: usize| format!("{}/{}{:05}", i / 40, "middle".repeat(5), i).into_bytes();
    for count in [4, 7, 8, 9, 64, 127, 128, 129, 200, 800] {
        check_all(&numbered(count, |i| format!("{i:016}").into_bytes()), "digits");
        check_all(&numbered(count, |i| (i as u64 * 0x0101_0101).to_be_bytes().to_vec()), "words");
        check_all(&numbered(count, |i| [&[7; 300][..], &(i as u32).to_be_bytes()].concat()), "long prefix");
        let mut keys = numbered(count, long);
        keys.sort();
        check_all(&keys, "parts in leaves");
    }
    // Each key is the one before it and a zero byte: heads are equal as soon as they are full.
    check_all(&numbered(60, |i| vec![0; i]), "zeros");
    check_all(&numbered(60, |i| [&b"key"[..], &vec![0; i]].concat()), "prefix and zeros");
    check_all(&numbered(60, |i| vec![255; i]), "ones");
}

/// Versions of one key: all heads are equal, and the number decides.
#[test]
fn versions_of_one_key() {
    for count in [8u64, 128, 200] {
        let version =
            |seq| (b"the one key".to_vec(), SeqKind::new(SeqNo(seq), RecordKind::Put), vec![seq as u8; 50]);
        let entries: Vec<Owned> = (0..count).rev().map(|number| version(number * 2 + 1)).collect();
        let block = build(BlockEncoding::TwoLayer, &entries);
        assert!(is_two_layer(&block));
        for seq in 0..count * 2 + 2 {
            let found = block.find(b"the one key", SeqNo(seq)).map(|entry| entry.seq_kind.seq().0);
            assert_eq!(
                found,
                seq.checked_sub(1).map(|below| (below / 2 * 2 + 1).min(count * 2 - 1)),
                "at {seq}"
            );
        }
        assert!(block.find(b"the one ke", SeqNo::MAX).is_none());
        assert!(block.find(b"the one key\0", SeqNo::MAX).is_none());
    }
}

/// Several versions of many keys, so that intervals begin between two versions of one key.
#[test]
fn versions_across_intervals() {
    for (keys, versions) in [(100, 3), (43, 5), (300, 2)] {
        let entry = |i: usize| {
            let seq = (versions - i % versions) as u64 * 10;
            (
                format!("{:08}", i / versions).into_bytes(),
                SeqKind::new(SeqNo(seq), RecordKind::Put),
                vec![1; 30],
            )
        };
        let entries: Vec<Owned> = (0..keys * versions).map(entry).collect();
        let block = build(BlockEncoding::TwoLayer, &entries);
        assert!(is_two_layer(&block));
        for (key, seq_kind, _) in &entries {
            let newest = block.find(key, SeqNo::MAX).map(|entry| entry.seq_kind.seq().0);
            assert_eq!(newest, Some(versions as u64 * 10));
            assert_eq!(block.find(key, seq_kind.seq()).map(|entry| entry.seq_kind), Some(*seq_kind));
            assert!(block.find(key, SeqNo(9)).is_none());
        }
    }
}

/// 2-byte offsets end at 64 KiB: a larger block stays plain, and is read all the same.
#[test]
fn large_blocks_stay_plain() {
    for (count, is_layered) in [(1000, true), (1500, false), (3000, false)] {
        let entries = numbered(count, |i| format!("{i:016}").into_bytes());
        let block = build(BlockEncoding::TwoLayer, &entries);
        assert_eq!(is_two_layer(&block), is_layered, "{count} entries, {} bytes", block.bytes().len());
        assert_eq!(block.find(&entries[count / 2].0, SeqNo::MAX), Some(as_entry(&entries[count / 2])));
    }
    let huge = [
        numbered(1, |_| b"a".to_vec()),
        vec![(b"b".to_vec(), SeqKind::new(SeqNo(1), RecordKind::Put), vec![1; 200_000])],
    ]
    .concat();
    assert!(!is_two_layer(&build(BlockEncoding::TwoLayer, &huge)));
}

/// Numbers take as many bytes as their range needs, up to the largest there are.
#[test]
fn sequence_numbers_of_every_range() {
    for (base, step) in [(0, 0), (5, 1), (1 << 40, 1000), (0, (1 << 56) / 40), (SeqNo::MAX.0 - 40, 1)] {
        let entries: Vec<Owned> = numbered(40, |i| format!("{i:08}").into_bytes())
            .into_iter()
            .enumerate()
            .map(|(i, (key, _, value))| {
                let kind = if i % 3 == 0 { RecordKind::Delete } else { RecordKind::Put };
                let value = if i % 3 == 0 { Vec::new() } else { value };
                (key, SeqKind::new(SeqNo(base + i as u64 * step), kind), value)
            })
            .collect();
        check_all(&entries, "numbers");
    }
}
