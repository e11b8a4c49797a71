//! Target: the end of an external file, its trailer and its contents.

use terrane_base::ExtentId;
use terrane_base::options::Compression;
use terrane_base::{Entry, RecordKind, SeqKind};
use terrane_format::extent::{ExtentMeta, UNNUMBERED_SEQ};
use terrane_format::external::{self, BYTEWISE, Contents, KEY_ORDER, MERGE_OPERATOR, TRAILER_BYTES, Trailer};
use terrane_format::range_deletes::Fragment;
use terrane_table::{ExtentWriter, WriterSettings};

use crate::{Seed, corrupt_or, repair};

/// Bytes of a slot.
const SLOT_BYTES: u64 = 2 << 20;
/// Seed of the checksum of contents.
const CONTENTS: &[u8; 4] = b"XCON";

/// Contents and the trailer behind them, as they are and with the checksum of the contents set right.
///
/// # Panics
/// If what was decoded is not encoded to the same again.
pub fn run(bytes: &[u8]) {
    let Some((contents, trailer)) = bytes.split_last_chunk::<TRAILER_BYTES>() else { return };
    // The trailer says how long the file is; there is no file to compare with.
    let claimed = contents.len() as u64;
    for slots in [0, 1, 2, 3] {
        let _ = corrupt_or(Trailer::decode(trailer, slots * SLOT_BYTES + claimed + TRAILER_BYTES as u64));
    }
    let mut repaired = contents.to_vec();
    repair::trailer(CONTENTS, &mut repaired);
    for contents in [contents, &repaired] {
        for slots in 0..4 {
            let _ = external::describe(contents, slots * SLOT_BYTES, SLOT_BYTES);
            let decoded = corrupt_or(Contents::decode(contents, slots * SLOT_BYTES, SLOT_BYTES));
            if let Some(decoded) = decoded {
                check(&decoded, slots);
            }
        }
    }
}

fn check(decoded: &Contents, slots: u64) {
    assert_eq!(u64::from(decoded.slots()), slots);
    let again = decoded.encode();
    let same = Contents::decode(&again, slots * SLOT_BYTES, SLOT_BYTES).expect("what was encoded is decoded");
    assert!(same == *decoded);
    for pair in decoded.extents.windows(2).chain(decoded.deletes.windows(2)) {
        assert!(pair[0].largest < pair[1].smallest, "extents are in order");
    }
    assert!(decoded.extents.iter().all(|meta| meta.range_deletes.is_none() && meta.blocks > 0));
    assert!(decoded.deletes.iter().all(|meta| meta.range_deletes.is_some() && meta.blocks == 0));
}

fn deletes(slot: u32, first: u8) -> ExtentMeta {
    let mut writer = ExtentWriter::new(WriterSettings::default()).expect("settings within range");
    for number in 0..3u8 {
        let (start, end) = (vec![first, 2 * number], vec![first, 2 * number + 1]);
        writer.add_range_delete(Fragment { start, end, seqs: vec![UNNUMBERED_SEQ] }).expect("in order");
    }
    let (_, meta) = writer.finish_bytes().expect("an extent of one slot");
    ExtentMeta { id: ExtentId { file: 0, slot }, ..meta }
}

fn extent(slot: u32, first: u8, compression: Compression) -> ExtentMeta {
    let settings = WriterSettings { compression, ..WriterSettings::default() };
    let mut writer = ExtentWriter::new(settings).expect("settings within range");
    for number in 0..20u8 {
        let key = [first, number];
        let seq_kind = SeqKind::new(UNNUMBERED_SEQ, RecordKind::Put);
        writer.add(Entry { key: &key, seq_kind, value: &[number; 30] }).expect("in order");
    }
    let (_, meta) = writer.finish_bytes().expect("an extent of one slot");
    ExtentMeta { id: ExtentId { file: 0, slot }, ..meta }
}

/// Corpus of [`run`].
#[must_use]
pub fn seeds() -> Vec<Seed> {
    let bytewise = (KEY_ORDER.to_owned(), BYTEWISE.to_owned());
    let counter = (MERGE_OPERATOR.to_owned(), "counter".to_owned());
    let (extents, options) = (vec![extent(0, b'a', Compression::None)], vec![bytewise.clone()]);
    let one = Contents { options, extents, deletes: Vec::new() };
    let ranged = Contents { deletes: vec![deletes(1, b'a'), deletes(2, b'b')], ..one.clone() };
    let erasing = Contents { extents: Vec::new(), deletes: vec![deletes(0, b'a')], ..one.clone() };
    let extents = (0..3).map(|slot| extent(slot, b'a' + slot as u8, Compression::Lz4)).collect();
    let three = Contents { options: vec![bytewise, counter], extents, deletes: Vec::new() };
    let bare = Contents { options: Vec::new(), ..one.clone() };
    let seed = |(name, contents): (&str, Contents)| {
        let encoded = contents.encode();
        let contents_at = u64::from(contents.slots()) * SLOT_BYTES;
        let trailer = Trailer { contents_at, contents_len: encoded.len() as u64 };
        (name.to_owned(), [encoded, trailer.encode().to_vec()].concat())
    };
    [("one", one), ("three", three), ("bare", bare), ("ranged", ranged), ("erasing", erasing)]
        .map(seed)
        .into()
}
