//! Extents as the writer makes them: complete, in order, within their slots, and the same when blocks are
//! reused.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeMap;
use std::sync::Mutex;

use proptest::collection::vec;
use proptest::prelude::*;
use terrane_base::options::Compression;
use terrane_base::{
    Entry, Error, ExtentId, Kind, Moment, RecordKind, Result, SeqKind, SeqNo, TableId, stored,
};
use terrane_format::block::BlockCursor;
use terrane_format::extent::{self, ExtentMeta, Footer, check};
use terrane_format::filter::{self, Filter};
use terrane_format::index::IndexBlock;
use terrane_storage::{SLOT_BYTES, Store, StoreUsage};
use terrane_table::{ExtentWriter, WriterSettings};

type Owned = (Vec<u8>, SeqKind, Vec<u8>);

fn put(seq: u64) -> SeqKind {
    SeqKind::new(SeqNo(seq), RecordKind::Put)
}

fn small_blocks(compression: Compression) -> WriterSettings {
    WriterSettings {
        table: TableId(3),
        block_bytes: 512,
        filter_bits_per_key: 10,
        compression,
        ..WriterSettings::default()
    }
}

fn write(settings: WriterSettings, entries: &[Owned]) -> (Vec<u8>, ExtentMeta) {
    let mut writer = ExtentWriter::new(settings).unwrap();
    for (key, seq_kind, value) in entries {
        writer.add(Entry { key, seq_kind: *seq_kind, value }).unwrap();
    }
    let estimated = writer.estimated_bytes();
    let (bytes, meta) = writer.finish_bytes().unwrap();
    assert!(bytes.len() <= estimated, "{} bytes, estimated {estimated}", bytes.len());
    assert!(writer.is_empty());
    (bytes, meta)
}

fn index_of(bytes: &[u8], meta: &ExtentMeta) -> IndexBlock {
    IndexBlock::decode(bytes[meta.index.offset as usize..meta.index.end() as usize].to_vec()).unwrap()
}

fn read(bytes: &[u8], meta: &ExtentMeta) -> Vec<Owned> {
    let mut entries = Vec::new();
    for row in index_of(bytes, meta).rows() {
        let stored = bytes[row.offset as usize..][..row.stored_len as usize].to_vec();
        let block = row.open_block(stored).unwrap();
        let mut cursor = BlockCursor::new();
        cursor.seek_first(&block);
        while let Some(entry) = cursor.entry(&block) {
            entries.push((entry.key.to_vec(), entry.seq_kind, entry.value.to_vec()));
            cursor.next(&block);
        }
    }
    entries
}

fn entries() -> impl Strategy<Value = Vec<Owned>> {
    let value =
        prop_oneof![vec(any::<u8>(), 0..20), (any::<u8>(), 0usize..2000).prop_map(|(b, n)| vec![b; n])];
    let entry = (vec(prop_oneof![Just(0u8), Just(255), any::<u8>()], 0..12), 0u64..6, any::<bool>(), value);
    vec(entry, 1..150).prop_map(|raw| {
        let sorted: BTreeMap<_, _> = raw.into_iter().map(|(k, seq, put, v)| ((k, !seq), (put, v))).collect();
        let show = |((key, seq), (put, value)): ((Vec<u8>, u64), (bool, Vec<u8>))| match put {
            true => (key, SeqKind::new(SeqNo(!seq), RecordKind::Put), value),
            false => (key, SeqKind::new(SeqNo(!seq), RecordKind::Delete), Vec::new()),
        };
        sorted.into_iter().map(show).collect()
    })
}

fn codec() -> impl Strategy<Value = Compression> {
    prop_oneof![Just(Compression::None), Just(Compression::Lz4)]
}

proptest! {
    #[test]
    fn written_entries_are_read_back(entries in entries(), codec in codec()) {
        let (bytes, meta) = write(small_blocks(codec), &entries);
        prop_assert_eq!(&check::verify(&bytes, meta.id, meta.slots).unwrap(), &meta);
        prop_assert_eq!(extent::locate(&bytes), Some(bytes.len()));
        prop_assert_eq!(meta.entries, entries.len() as u64);
        prop_assert_eq!(meta.deletes, entries.iter().filter(|entry| entry.1.is_delete()).count() as u64);
        prop_assert_eq!(Some(meta.seq_min), entries.iter().map(|entry| entry.1.seq()).min());
        prop_assert_eq!(Some(meta.seq_max), entries.iter().map(|entry| entry.1.seq()).max());
        prop_assert_eq!(&meta.smallest, &entries[0].0);
        prop_assert_eq!(&meta.largest, &entries[entries.len() - 1].0);
        prop_assert_eq!(read(&bytes, &meta), entries);
        let mut encoded = Vec::new();
        meta.encode(&mut encoded);
        prop_assert_eq!(encoded.len(), meta.encoded_len());
        prop_assert_eq!(ExtentMeta::decode(&encoded).unwrap(), (meta, encoded.len()));
    }

    /// An extent of which some blocks are copied and some are decoded and added again holds the same.
    #[test]
    fn reused_blocks_hold_the_same(entries in entries(), codec in codec(), copied in vec(any::<bool>(), 150)) {
        let (bytes, meta) = write(small_blocks(codec), &entries);
        let index = index_of(&bytes, &meta);
        let mut writer = ExtentWriter::new(small_blocks(Compression::None)).unwrap();
        let mut is_after_copy = false;
        for (number, row) in index.rows().enumerate() {
            let stored = &bytes[row.offset as usize..][..row.stored_len as usize];
            // Where versions of one key go on from a copied block, or into one, nothing can be joined.
            let goes_on = number > 0 && index.goes_on(number - 1);
            if goes_on && is_after_copy {
                prop_assert_eq!(writer.add_block(&row, stored, false).unwrap_err().kind(), Kind::Invalid);
                return Ok(());
            }
            is_after_copy = copied[number] && !goes_on;
            if is_after_copy {
                writer.add_block(&row, stored, false).unwrap();
                continue;
            }
            let block = row.open_block(stored.to_vec()).unwrap();
            let mut cursor = BlockCursor::new();
            cursor.seek_first(&block);
            while let Some(entry) = cursor.entry(&block) {
                writer.add(entry).unwrap();
                cursor.next(&block);
            }
        }
        let (copy, copy_meta) = writer.finish_bytes().unwrap();
        check::verify(&copy, copy_meta.id, copy_meta.slots).unwrap();
        prop_assert_eq!(read(&copy, &copy_meta), entries);
    }
}

#[test]
fn entries_out_of_order_are_refused() {
    let mut writer = ExtentWriter::new(small_blocks(Compression::None)).unwrap();
    let value = [0; 500];
    writer.add(Entry { key: b"b", seq_kind: put(5), value: &value }).unwrap();
    for (key, seq) in [(&b"a"[..], 9), (b"b", 5), (b"b", 6)] {
        // With and without a block boundary in front.
        for value in [&value[..], b""] {
            let error = writer.add(Entry { key, seq_kind: put(seq), value }).unwrap_err();
            assert_eq!(error.kind(), Kind::Invalid, "{error}");
        }
    }
    writer.add(Entry { key: b"b", seq_kind: put(4), value: &value }).unwrap();
    let (bytes, meta) = writer.finish_bytes().unwrap();
    assert_eq!((meta.entries, meta.blocks), (2, 2));
    check::verify(&bytes, meta.id, 1).unwrap();
}

#[test]
fn a_block_is_copied_only_if_it_is_the_rows_and_comes_next() {
    let entries: Vec<Owned> = (0..100u8).map(|i| (vec![i], put(1), vec![i; 50])).collect();
    let (bytes, meta) = write(small_blocks(Compression::Lz4), &entries);
    let index = index_of(&bytes, &meta);
    let (row, next) = (index.row(1), index.row(2));
    let stored = |row: &terrane_format::index::IndexRow<'_>| {
        bytes[row.offset as usize..][..row.stored_len as usize].to_vec()
    };
    let mut writer = ExtentWriter::new(small_blocks(Compression::None)).unwrap();
    let mut damaged = stored(&row);
    damaged[9] ^= 1;
    assert_eq!(writer.add_block(&row, &damaged, false).unwrap_err().kind(), Kind::Corrupt);
    assert_eq!(writer.add_block(&row, &stored(&row)[1..], false).unwrap_err().kind(), Kind::Corrupt);
    writer.add_block(&row, &stored(&row), false).unwrap();
    assert_eq!(writer.add_block(&row, &stored(&row), false).unwrap_err().kind(), Kind::Invalid);
    let same = Entry { key: row.last_key, seq_kind: put(0), value: b"" };
    assert_eq!(writer.add(same).unwrap_err().kind(), Kind::Invalid);
    writer.add_block(&next, &stored(&next), false).unwrap();
    let (copy, meta) = writer.finish_bytes().unwrap();
    assert_eq!(meta.entries, u64::from(row.entries + next.entries));
    assert_eq!(index_of(&copy, &meta).row(1).checksum, next.checksum);
}

#[test]
fn expiries_in_copied_blocks_are_counted() {
    let entries: Vec<Owned> = (0..100u8)
        .map(|number| {
            let until = if number % 3 == 0 { Moment::NEVER } else { Moment(1000 + u64::from(number) * 7) };
            let mut value = Vec::new();
            let kind = stored::put_prefix(&mut value, until, None);
            value.extend([number; 50]);
            (vec![number], SeqKind::new(SeqNo(1), kind), value)
        })
        .collect();
    for filter_bits_per_key in [0, 10] {
        let settings = WriterSettings { filter_bits_per_key, ..small_blocks(Compression::Lz4) };
        let (bytes, meta) = write(settings, &entries);
        assert_eq!(meta.expiry.expect("some expire").entries, 66);
        let mut writer = ExtentWriter::new(settings).unwrap();
        for row in index_of(&bytes, &meta).rows() {
            let stored = &bytes[row.offset as usize..][..row.stored_len as usize];
            writer.add_block(&row, stored, true).unwrap();
        }
        let (_, copy) = writer.finish_bytes().unwrap();
        assert!(copy.blocks > 3, "{} blocks", copy.blocks);
        assert_eq!(copy.expiry, meta.expiry, "filters of {filter_bits_per_key} bits");
    }
}

#[test]
fn extents_fill_exactly_one_slot() {
    for (key_len, value_len) in [(16, 100), (8, 8), (2000, 10), (60_000, 60_000), (16, 700_000)] {
        for compression in [Compression::None, Compression::Lz4] {
            let settings = WriterSettings { compression, ..WriterSettings::default() };
            let mut writer = ExtentWriter::new(settings).unwrap();
            let mut number = 0u64;
            while writer.fits(key_len, value_len) {
                let mut key = vec![b'k'; key_len];
                key[..8].copy_from_slice(&number.to_be_bytes());
                let noise =
                    (0..value_len as u64).map(|i| (i ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15) as u8);
                let value: Vec<u8> = noise.collect();
                writer.add(Entry { key: &key, seq_kind: put(1), value: &value }).unwrap();
                number += 1;
            }
            assert!(writer.memory_bytes() < 4 * SLOT_BYTES, "{} bytes held", writer.memory_bytes());
            let (bytes, meta) = writer.finish_bytes().unwrap();
            assert_eq!(meta.slots, 1, "{key_len} {value_len} {compression:?}: {} bytes", bytes.len());
            let unused = SLOT_BYTES - bytes.len();
            // The last block may come out shorter than it could have been.
            let granule = 4 * key_len + value_len + extent::ALIGN_BYTES + settings.block_bytes / 2;
            assert!(
                compression != Compression::None || unused < granule,
                "{unused} bytes of the slot unused"
            );
        }
    }
}

#[test]
fn a_value_larger_than_a_slot_takes_several() {
    let store = MemoryStore::default();
    let mut writer = ExtentWriter::new(WriterSettings::default()).unwrap();
    let value = vec![7u8; 5 << 20];
    assert!(writer.fits(1, value.len()), "an empty extent takes anything");
    writer.add(Entry { key: b"k", seq_kind: put(1), value: &value }).unwrap();
    assert!(!writer.fits(1, 1));
    let meta = writer.finish(&store).unwrap();
    assert_eq!((meta.slots, meta.blocks), (3, 1));
    assert!(writer.memory_bytes() < 4 * SLOT_BYTES, "the writer stays large: {}", writer.memory_bytes());
    let bytes = store.extents.lock().unwrap()[&meta.id].clone();
    assert_eq!(check::verify(&bytes, meta.id, meta.slots).unwrap(), meta);
    assert_eq!(read(&bytes, &meta)[0].2, value);
}

#[test]
fn a_failed_write_gives_the_slots_back() {
    let store = MemoryStore { fails: true, ..MemoryStore::default() };
    let mut writer = ExtentWriter::new(WriterSettings::default()).unwrap();
    writer.add(Entry { key: b"k", seq_kind: put(1), value: b"v" }).unwrap();
    assert_eq!(writer.finish(&store).unwrap_err().kind(), Kind::Io);
    assert_eq!(*store.freed.lock().unwrap(), [(ExtentId { file: 1, slot: 0 }, 1)]);
    assert!(writer.is_empty());
}

#[test]
fn filter_is_left_out_or_knows_each_key_once() {
    let versions: Vec<Owned> =
        (0..1000u32).map(|i| ((i / 4).to_be_bytes().to_vec(), put(9 - u64::from(i % 4)), vec![])).collect();
    let (bytes, meta) = write(small_blocks(Compression::None), &versions);
    let part = &bytes[meta.filter.offset as usize..meta.filter.end() as usize];
    let filter = Filter::decode(part).unwrap();
    assert_eq!(filter.keys(), 250);
    assert!(versions.iter().all(|entry| filter.may_contain(filter::hash(&entry.0))));
    let none = WriterSettings { filter_bits_per_key: 0, ..small_blocks(Compression::None) };
    let (bytes, meta) = write(none, &versions);
    assert!(meta.filter.is_empty());
    check::verify(&bytes, meta.id, 1).unwrap();
    let footer = Footer::decode(&bytes[bytes.len() - extent::FOOTER_BYTES..]).unwrap();
    assert_eq!(footer.table, TableId(3));
}

#[test]
fn the_newest_of_two_extents_in_a_slot_is_located() {
    let entry = |i: u8| (vec![i], put(1), vec![i; 3000]);
    let (long, _) = write(small_blocks(Compression::None), &(0..9).map(entry).collect::<Vec<_>>());
    let (short, _) = write(small_blocks(Compression::None), &[entry(1)]);
    let mut slot = vec![0; SLOT_BYTES];
    slot[..long.len()].copy_from_slice(&long);
    assert_eq!(extent::locate(&slot), Some(long.len()));
    slot[..short.len()].copy_from_slice(&short);
    assert_eq!(extent::locate(&slot), Some(short.len()));
    assert_eq!(extent::locate(&[0; 8192]), None);
}

#[test]
fn settings_out_of_range_are_refused() {
    for block_bytes in [0, SLOT_BYTES] {
        let settings = WriterSettings { block_bytes, ..WriterSettings::default() };
        assert_eq!(ExtentWriter::new(settings).unwrap_err().kind(), Kind::Invalid);
    }
    let zstd =
        ExtentWriter::new(WriterSettings { compression: Compression::Zstd, ..WriterSettings::default() });
    if let Err(error) = zstd {
        assert_eq!(error.kind(), Kind::Invalid);
        assert!(error.message().contains("cargo feature `zstd`"), "{error}");
    }
}

/// Extents in memory; writes fail on demand.
#[derive(Debug, Default)]
struct MemoryStore {
    extents: Mutex<BTreeMap<ExtentId, Vec<u8>>>,
    freed: Mutex<Vec<(ExtentId, u32)>>,
    fails: bool,
}

impl Store for MemoryStore {
    fn allocate(&self, _slots: u32) -> Result<ExtentId> {
        Ok(ExtentId { file: 1, slot: self.extents.lock().unwrap().len() as u32 })
    }

    fn write(&self, id: ExtentId, bytes: &[u8]) -> Result<()> {
        if self.fails {
            return Err(Error::new(Kind::Io, "the device is gone"));
        }
        self.extents.lock().unwrap().insert(id, bytes.to_vec());
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn read(&self, id: ExtentId, offset: u32, buf: &mut [u8]) -> Result<()> {
        buf.copy_from_slice(&self.extents.lock().unwrap()[&id][offset as usize..][..buf.len()]);
        Ok(())
    }

    fn prefetch(&self, _id: ExtentId, _offset: u32, _len: u32) {}

    fn free(&self, id: ExtentId, slots: u32) -> Result<()> {
        self.freed.lock().unwrap().push((id, slots));
        Ok(())
    }

    fn hold(&self) {}

    fn release(&self) {}

    fn restore(&self, _live: &mut dyn Iterator<Item = (ExtentId, u32)>) -> Result<()> {
        Ok(())
    }

    fn reclaim(&self) -> Result<u64> {
        Ok(0)
    }

    fn usage(&self) -> StoreUsage {
        StoreUsage::default()
    }

    fn place(&self, id: ExtentId, offset: u32) -> (String, u64) {
        (format!("{id}"), u64::from(offset))
    }
}
