//! Targets below the checksums of an extent: data block, index block, filter, compressed bytes, and the
//! description of an extent that the manifest holds.

use terrane_base::chain::Chain;
use terrane_base::merge_operator::built_in;
use terrane_base::options::{BlockEncoding, Compression};
use terrane_base::{Collation, Entry, ExtentId, Kind, Moment, RecordKind, SeqKind, SeqNo, Stored};
use terrane_format::block::{self, Block, BlockBuilder, BlockCursor};
use terrane_format::codec::{self, Encoder};
use terrane_format::extent::{self, ExtentMeta};
use terrane_format::filter::{self, Filter};
use terrane_format::index::{self, IndexBlock};
use terrane_format::range_deletes::{self, Fragment, Fragments};

use crate::extent::ExtentBytes;
use crate::input::Input;
use crate::{Seed, corrupt_or, repair};

/// Entries of a block that are looked up one by one.
const LOOKUPS_MAX: usize = 64;

/// A data block: decoded and used in every way.
pub fn block(bytes: &[u8]) {
    let _ = block::describe(bytes);
    if let Some(block) = corrupt_or(Block::decode(bytes.to_vec())) {
        use_block(&block);
    }
}

type Row = (Vec<u8>, SeqKind, Vec<u8>);

fn row(entry: Entry<'_>) -> Row {
    (entry.key.to_vec(), entry.seq_kind, entry.value.to_vec())
}

/// Walks a block both ways, searches it, and checks what holds for every block, and for one in order.
pub(crate) fn use_block(block: &Block) {
    let is_ordered = block.check_order().is_ok();
    let mut cursor = BlockCursor::new();
    cursor.seek_first(block);
    let mut forward = Vec::new();
    while let Some(entry) = cursor.entry(block) {
        forward.push(row(entry));
        assert!(forward.len() <= block.entry_count(), "more entries than there are");
        cursor.next(block);
    }
    assert_eq!(forward.len(), block.entry_count(), "a walk forward sees every entry");
    use_stored(&forward);
    cursor.seek_last(block);
    for expected in forward.iter().rev() {
        assert_eq!(
            cursor.entry(block).map(row).as_ref(),
            Some(expected),
            "a walk back sees what one forward saw"
        );
        cursor.prev(block);
    }
    assert!(cursor.entry(block).is_none());
    for key in [&b""[..], b"a", b"key0005", &[0xff; 40]] {
        let found = block.find(key, SeqNo::MAX).is_some();
        cursor.seek(block, key, SeqNo::MAX);
        let at = cursor.entry(block).is_some_and(|entry| entry.key == key);
        assert!(!is_ordered || found == at, "a search and a seek agree");
        cursor.seek_before(block, key);
        let before = cursor.entry(block).is_none_or(|entry| entry.key < key);
        assert!(!is_ordered || before, "a seek before a key ends before it");
    }
    locate_each(block, &forward);
    if is_ordered {
        for (key, seq_kind, value) in forward.iter().take(LOOKUPS_MAX) {
            let found = block.find(key, seq_kind.seq()).expect("every entry is found");
            assert_eq!((found.seq_kind, found.value), (*seq_kind, value.as_slice()));
        }
    }
}

/// Looks for entries at their positions and at others: there is that version, or nothing.
fn locate_each(block: &Block, rows: &[Row]) {
    for (at, (key, seq_kind, _)) in rows.iter().enumerate().take(LOOKUPS_MAX) {
        for said in [at, at + 1, at.saturating_sub(1), rows.len(), at << 20] {
            let Some((found, value)) = block.locate_at(said as u32, key, seq_kind.seq()) else { continue };
            let value = block.bytes().get(value).expect("a value lies in its block");
            let is_there = rows.iter().any(|row| (&row.0, row.1, &*row.2) == (key, found, value));
            assert!(is_there, "entry {said} is not in the block");
        }
    }
}

/// Takes apart what stands in front of values, and folds what looks like operands.
fn use_stored(rows: &[Row]) {
    let mut chain = Chain::new();
    for (_, seq_kind, bytes) in rows {
        if let Some(stored) = corrupt_or(Stored::of_entry(*seq_kind, bytes)) {
            assert!(bytes.ends_with(stored.value), "a value is the end of the stored bytes");
        }
        if corrupt_or(chain.take(*seq_kind, bytes, Moment(1 << 40))) != Some(true) {
            let mut value = Vec::new();
            let _ = chain.fold(built_in("append").as_deref(), b"k", &mut value);
            chain.clear();
        }
    }
}

/// Entries with shared prefixes, versions, deletes and values of several lengths.
pub(crate) fn entries(count: u64) -> Vec<Row> {
    let entry = |number: u64| {
        let key = format!("key{:04}{}", number / 3, "x".repeat((number / 3 % 4) as usize * 20));
        let is_delete = number % 7 == 3;
        let kind = if is_delete { RecordKind::Delete } else { RecordKind::Put };
        let value = if is_delete { Vec::new() } else { vec![number as u8; (number * 13 % 300) as usize] };
        (key.into_bytes(), SeqKind::new(SeqNo(10_000 - number), kind), value)
    };
    (0..count).map(entry).collect()
}

/// A block of `count` entries in the plain encoding.
pub(crate) fn block_of(count: u64) -> Vec<u8> {
    encoded_block_of(BlockEncoding::Plain, count)
}

fn encoded_block_of(encoding: BlockEncoding, count: u64) -> Vec<u8> {
    let mut builder = BlockBuilder::new(encoding);
    for (key, seq_kind, value) in &entries(count) {
        builder.add(Entry { key, seq_kind: *seq_kind, value }).expect("entries within the limits");
    }
    builder.finish().to_vec()
}

/// Corpus of [`fn@block`].
#[must_use]
pub fn block_seeds() -> Vec<Seed> {
    let plain = [0, 1, 3, 16, 17, 50].map(|count| (format!("entries-{count}"), block_of(count)));
    let two_layer = [9, 50, 200]
        .map(|count| (format!("two-layer-{count}"), encoded_block_of(BlockEncoding::TwoLayer, count)));
    plain.into_iter().chain(two_layer).collect()
}

/// An index block, as it is and with its checksum set right.
pub fn index(bytes: &[u8]) {
    let _ = index::describe(bytes);
    let _ = corrupt_or(IndexBlock::decode(bytes.to_vec()));
    let mut bytes = bytes.to_vec();
    repair::trailer(repair::INDEX, &mut bytes);
    let _ = index::describe(&bytes);
    let Some(index) = corrupt_or(IndexBlock::decode(bytes)) else { return };
    for key in [&b""[..], b"key0003", b"key0010xxxxxxxx", &[0xff; 9]] {
        let found = index.find(key);
        assert!(found <= index.len());
        assert!(
            index.rows().take(found).all(|row| row.last_key < key),
            "the entries in front end before the key"
        );
        assert!(index.rows().skip(found).all(|row| row.last_key >= key), "what follows does not");
        assert!(index.find_before(key).is_none_or(|block| block < index.len()));
    }
    let example = block_of(3);
    for (number, row) in index.rows().enumerate() {
        let _ = index.goes_on(number);
        let _ = corrupt_or(row.open_block(example.clone()));
    }
    assert!(index.data_bytes() <= u64::from(u32::MAX));
}

/// Corpus of [`index()`].
#[must_use]
pub fn index_seeds() -> Vec<Seed> {
    let part = |(name, made): (String, ExtentBytes)| {
        let handle = made.meta.index;
        (name, made.bytes[handle.offset as usize..handle.end() as usize].to_vec())
    };
    crate::extent::made().into_iter().map(part).collect()
}

/// A filter, as it is and with its checksum set right.
pub fn filter(bytes: &[u8]) {
    let _ = filter::describe(bytes);
    let _ = corrupt_or(Filter::decode(bytes));
    let mut bytes = bytes.to_vec();
    repair::trailer(repair::FILTER, &mut bytes);
    let _ = filter::describe(&bytes);
    let Some(filter) = corrupt_or(Filter::decode(&bytes)) else { return };
    for number in 0..64u64 {
        let _ = filter.may_contain(filter::hash(&number.to_le_bytes()));
    }
    for hash in [0, u64::MAX, 1 << 63, u64::from(u32::MAX)] {
        let _ = filter.may_contain(hash);
    }
    assert!(filter.memory_bytes() <= bytes.len() + 128, "a filter takes the memory of its bytes");
}

/// Corpus of [`filter()`].
#[must_use]
pub fn filter_seeds() -> Vec<Seed> {
    let build = |(keys, bits): (u64, u32)| {
        let hashes: Vec<u64> = (0..keys).map(|key| filter::hash(&key.to_le_bytes())).collect();
        let mut bytes = Vec::new();
        filter::build(&hashes, bits, &mut bytes);
        (format!("keys-{keys}-bits-{bits}"), bytes)
    };
    let mut seeds: Vec<Seed> = [(1, 10), (60, 10), (200, 16), (20, 1), (33, 30)].map(build).into();
    for name in ["fixed:4", "a name that is as long as a name can possibly be"] {
        let hashes = [filter::hash(b"apple"), filter::prefix_hash(b"appl")];
        let mut bytes = Vec::new();
        filter::build_with(&hashes, Some(name), 10, &mut bytes);
        seeds.push((format!("prefixes-{}", name.len()), bytes));
    }
    seeds
}

/// The range deletes of an extent, as they are and with their checksum set right.
pub fn range_deletes(bytes: &[u8]) {
    let _ = range_deletes::describe(bytes);
    let _ = corrupt_or(Fragments::decode(bytes));
    let mut bytes = bytes.to_vec();
    repair::trailer(repair::RANGES, &mut bytes);
    let _ = range_deletes::describe(&bytes);
    let Some(fragments) = corrupt_or(Fragments::decode(&bytes)) else { return };
    let all = fragments.all();
    assert!(all.windows(2).all(|pair| pair[0].end <= pair[1].start), "fragments are disjoint");
    for fragment in all.iter().take(LOOKUPS_MAX) {
        assert!(fragment.start < fragment.end && *fragment.last_key(&Collation::BYTES) >= *fragment.start);
        assert_eq!(fragments.covering(&fragment.start), Some(fragment));
        assert_ne!(fragments.covering(&fragment.end), Some(fragment));
        let newest = fragment.newest(SeqNo::MAX).expect("a fragment has a number");
        assert_eq!(fragment.newest(newest), Some(newest));
        assert!(fragment.next_above(newest).is_none());
    }
    let mut again = Vec::new();
    Fragments::encode(all, &mut again);
    assert_eq!(again.len(), bytes.len());
    assert_eq!(Fragments::decode(&again).expect("what was encoded is decoded"), fragments);
}

/// Range deletes side by side, one in three over two snapshots.
pub(crate) fn fragments(count: u64) -> Vec<Fragment> {
    let fragment = |number: u64| Fragment {
        start: format!("key{number:04}").into_bytes(),
        end: format!("key{number:04}{}", "z".repeat(1 + number as usize % 3)).into_bytes(),
        seqs: (0..1 + number % 3).map(|older| SeqNo(20_000 - older * 100 - number)).collect(),
    };
    (0..count).map(fragment).collect()
}

/// Corpus of [`range_deletes()`].
#[must_use]
pub fn range_delete_seeds() -> Vec<Seed> {
    let encode = |count: u64| {
        let mut bytes = Vec::new();
        Fragments::encode(&fragments(count), &mut bytes);
        (format!("fragments-{count}"), bytes)
    };
    [1, 3, 40].map(encode).into()
}

/// Compressed bytes: codec, length after decompression, then the bytes.
pub fn codec(bytes: &[u8]) {
    let mut input = Input(bytes);
    let compression = Compression::from_u8(input.below(3)).expect("three codecs");
    let raw_len = input.u32() as usize;
    // The format refuses blocks beyond its limits before it decodes them; near the limit one input would take
    // all the time of a run.
    let raw_len = if raw_len > codec::RAW_BYTES_MAX_SINGLE { raw_len } else { raw_len % (4 << 20) };
    match codec::decode(compression, input.rest(), raw_len) {
        Ok(raw) => assert_eq!(raw.len(), raw_len),
        Err(error) => assert!(matches!(error.kind(), Kind::Corrupt | Kind::Invalid), "{error}"),
    }
    // And there again.
    let Ok(mut encoder) = Encoder::new(compression) else { return };
    let mut stored = Vec::new();
    let used = encoder.encode(input.rest(), &mut stored).expect("input within the limits");
    let again = codec::decode(used, &stored, input.rest().len()).expect("what was encoded is decoded");
    assert_eq!(again, input.rest());
}

/// Corpus of [`codec()`].
#[must_use]
pub fn codec_seeds() -> Vec<Seed> {
    let raws = [block_of(17), vec![7; 3000], (0..=255).collect::<Vec<u8>>(), Vec::new()];
    let mut seeds = Vec::new();
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let Ok(mut encoder) = Encoder::new(compression) else { continue };
        for (number, raw) in raws.iter().enumerate() {
            let mut stored = Vec::new();
            let used = encoder.encode(raw, &mut stored).expect("raw bytes within the limits");
            let head = [&[used as u8][..], &(raw.len() as u32).to_le_bytes()].concat();
            seeds.push((format!("{compression:?}-{number}").to_lowercase(), [head, stored].concat()));
        }
    }
    seeds
}

/// The meta of an extent in the manifest.
pub fn meta(bytes: &[u8]) {
    let _ = extent::describe_meta(bytes);
    let Some((meta, len)) = corrupt_or(ExtentMeta::decode(bytes)) else { return };
    assert!(len <= bytes.len());
    let mut again = Vec::new();
    meta.encode(&mut again);
    assert_eq!(again.len(), meta.encoded_len());
    assert_eq!(ExtentMeta::decode(&again).expect("what was encoded is decoded"), (meta, again.len()));
}

/// Corpus of [`meta()`].
#[must_use]
pub fn meta_seeds() -> Vec<Seed> {
    let encode = |(name, made): (String, ExtentBytes)| {
        let mut bytes = Vec::new();
        ExtentMeta { id: ExtentId { file: 3, slot: 9 }, ..made.meta }.encode(&mut bytes);
        (name, bytes)
    };
    crate::extent::made().into_iter().map(encode).collect()
}

/// An index block with rows as short as they can be, as many as are asked for.
///
/// # Panics
/// Never with a count below 2^28.
#[must_use]
pub fn index_of_small_rows(count: u32) -> Vec<u8> {
    let mut builder = index::IndexBuilder::new();
    for number in 0..count {
        builder.add(&index::IndexRow {
            offset: number * 16,
            stored_len: 16,
            raw_len: 16,
            compression: Compression::None,
            checksum: 0,
            entries: 1,
            deletes: 0,
            seq_min: SeqNo(1),
            seq_max: SeqNo(1),
            first_key: b"",
            last_key: b"",
        });
    }
    let mut bytes = Vec::new();
    builder.finish(&mut bytes);
    assert!(IndexBlock::decode(bytes.clone()).is_ok(), "sound rows");
    bytes
}
