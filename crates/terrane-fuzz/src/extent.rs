//! Target: the bytes of a whole extent, read from themselves and read as the engine reads them.

use std::sync::Arc;

use terrane_base::options::Compression;
use terrane_base::{
    Cursor, Entry, Error, ExtentId, Kind, Result, SeqNo, ValuePointer, ValuePosition, ValueTableId,
};
use terrane_format::extent::{self, ExtentMeta, ValueSection, check};
use terrane_storage::{SLOT_BYTES, Store, StoreUsage};
use terrane_table::{
    Cache, CursorOptions, Extent, ExtentCursor, ExtentScanner, ExtentWriter, WriterSettings, verify_extent,
};

use crate::{Seed, corrupt_or, parts, repair};

const ID: ExtentId = ExtentId { file: 1, slot: 0 };

/// An extent's bytes and what the manifest would say about it.
#[derive(Clone, Debug)]
pub struct ExtentBytes {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its description; the place is not filled in.
    pub meta: ExtentMeta,
}

/// Small extents of each shape: with and without filter, compression and several blocks.
#[must_use]
pub fn made() -> Vec<(String, ExtentBytes)> {
    let shapes = [
        ("one-block", 3, 16 << 10, 10, Compression::None),
        ("blocks", 60, 600, 10, Compression::None),
        ("no-filter", 40, 1000, 0, Compression::None),
        ("lz4", 60, 2000, 10, Compression::Lz4),
        ("zstd", 60, 2000, 10, Compression::Zstd),
    ];
    let make = |(name, entries, block_bytes, filter_bits_per_key, compression)| {
        let settings =
            WriterSettings { block_bytes, filter_bits_per_key, compression, ..WriterSettings::default() };
        let mut writer = ExtentWriter::new(settings).ok()?;
        for (key, seq_kind, value) in &parts::entries(entries) {
            writer.add(Entry { key, seq_kind: *seq_kind, value }).expect("entries in order");
        }
        let (mut bytes, meta) = writer.finish_bytes().expect("a small extent");
        // The writer has made room for a whole slot.
        bytes.shrink_to_fit();
        Some((String::from(name), ExtentBytes { bytes, meta }))
    };
    // A codec that this build lacks has no extent.
    shapes.into_iter().filter_map(make).chain(separated()).collect()
}

/// An extent with pointers to values, and the value table that they lead to; one writer at a time, for the
/// targets that are measured by their memory.
fn separated() -> [(String, ExtentBytes); 2] {
    let number = ValueTableId(7);
    let make = |name: &str, is_keyed: bool| {
        let mut writer = ExtentWriter::new(WriterSettings::default()).expect("the default settings");
        if !is_keyed {
            writer.set_value_table(ValueSection { number, level: 1 });
        }
        let entries = parts::entries(30);
        let puts = entries.iter().filter(|(_, kind, _)| kind.is_plain_put());
        for (entry, (key, seq_kind, value)) in (0..).zip(puts) {
            let mut pointer = Vec::new();
            let position = (entry % 2 == 0).then_some(ValuePosition { block: 0, entry });
            ValuePointer { table: number, len: value.len() as u32, position }.encode(&mut pointer);
            let entry = match is_keyed {
                true => Entry { key, seq_kind: seq_kind.separated(), value: &pointer },
                false => Entry { key, seq_kind: *seq_kind, value },
            };
            writer.add(entry).expect("entries in order");
        }
        let (mut bytes, meta) = writer.finish_bytes().expect("a small extent");
        // The writer has made room for a whole slot.
        bytes.shrink_to_fit();
        (name.to_owned(), ExtentBytes { bytes, meta })
    };
    [make("pointers", true), make("values", false)]
}

/// Corpus of [`run`].
#[must_use]
pub fn seeds() -> Vec<Seed> {
    made().into_iter().map(|(name, made)| (name, made.bytes)).collect()
}

/// The extent as it is, and with its checksums set right.
pub fn run(bytes: &[u8]) {
    judge(bytes);
    let mut bytes = bytes.to_vec();
    bytes.truncate(64 << 10);
    repair::extent(&mut bytes);
    judge(&bytes);
}

fn judge(bytes: &[u8]) {
    let _ = extent::describe(bytes);
    if let Some(len) = extent::locate(bytes) {
        assert!(len <= bytes.len());
    }
    let slots = bytes.len().div_ceil(SLOT_BYTES).max(1) as u32;
    let Some(meta) = corrupt_or(check::inspect(bytes, ID, slots)) else { return };
    let verified = match check::verify(bytes, ID, slots) {
        Ok(verified) => {
            assert_eq!(verified, meta);
            true
        }
        Err(error) => {
            assert!(matches!(error.kind(), Kind::Corrupt | Kind::Invalid), "{error}");
            false
        }
    };
    let store = Arc::new(OneExtent(bytes.to_vec()));
    let findings = verify_extent(&meta, &*store);
    assert!(!verified || findings.is_empty(), "sound by itself, but: {findings:?}");
    read(&meta, &store, verified);
}

/// Reads as the engine does. In a sound extent everything is found, both ways.
fn read(meta: &ExtentMeta, store: &Arc<OneExtent>, is_sound: bool) {
    let extent = Extent::new(meta.clone(), store.clone());
    let cache = Cache::new(1 << 20);
    let mut cursor = ExtentCursor::new(extent.clone(), cache.clone(), CursorOptions::default());
    let forward = walk(&mut cursor, is_sound, true);
    let mut backward = walk(&mut cursor, is_sound, false);
    if is_sound {
        backward.reverse();
        assert!(forward == backward, "a walk back differs");
        assert_eq!(forward.len() as u64, meta.entries);
        for (key, seq) in forward.iter().take(64) {
            let found = extent.get(&cache, key, *seq, &mut Vec::new()).expect("a sound extent reads");
            assert!(found.is_some_and(|found| found.seq() == *seq));
        }
    }
    for key in [&b""[..], b"key0007", &[0xff; 30]] {
        let found = extent.get(&cache, key, SeqNo::MAX, &mut Vec::new());
        assert!(found.is_ok() || !is_sound);
    }
    let whole = ExtentScanner::new(extent.clone(), 1 << 16);
    for mut scanner in whole.into_iter().chain(ExtentScanner::ahead(extent, 1 << 13)) {
        for at in 0..scanner.rows().len() {
            assert!(scanner.stored(at).is_ok() || !is_sound);
            assert!(scanner.block(at).is_ok() || !is_sound);
        }
    }
}

fn walk(cursor: &mut ExtentCursor, is_sound: bool, is_forward: bool) -> Vec<(Vec<u8>, SeqNo)> {
    let mut seen = Vec::new();
    let mut moved = if is_forward { cursor.seek_first() } else { cursor.seek_last() };
    while let (Ok(()), Some(entry)) = (&moved, cursor.entry()) {
        seen.push((entry.key.to_vec(), entry.seq_kind.seq()));
        moved = if is_forward { cursor.next() } else { cursor.prev() };
    }
    assert!(moved.is_ok() || !is_sound, "{moved:?}");
    seen
}

/// A store of one extent that never changes.
#[derive(Debug)]
struct OneExtent(Vec<u8>);

impl OneExtent {
    fn refused<T>() -> Result<T> {
        Err(Error::invalid("nothing changes here"))
    }
}

impl Store for OneExtent {
    fn allocate(&self, _slots: u32) -> Result<ExtentId> {
        OneExtent::refused()
    }

    fn write(&self, _id: ExtentId, _bytes: &[u8]) -> Result<()> {
        OneExtent::refused()
    }

    fn sync(&self) -> Result<()> {
        OneExtent::refused()
    }

    fn read(&self, _id: ExtentId, offset: u32, buf: &mut [u8]) -> Result<()> {
        let bytes = self.0.get(offset as usize..).and_then(|rest| rest.get(..buf.len()));
        buf.copy_from_slice(bytes.ok_or_else(|| Error::corrupt("the data file ends before"))?);
        Ok(())
    }

    fn prefetch(&self, _id: ExtentId, _offset: u32, _len: u32) {}

    fn free(&self, _id: ExtentId, _slots: u32) -> Result<()> {
        OneExtent::refused()
    }

    fn hold(&self) {}

    fn release(&self) {}

    fn restore(&self, _live: &mut dyn Iterator<Item = (ExtentId, u32)>) -> Result<()> {
        OneExtent::refused()
    }

    fn reclaim(&self) -> Result<u64> {
        OneExtent::refused()
    }

    fn usage(&self) -> StoreUsage {
        StoreUsage::default()
    }

    fn place(&self, _id: ExtentId, offset: u32) -> (String, u64) {
        ("data/000001.ext".into(), offset.into())
    }
}
