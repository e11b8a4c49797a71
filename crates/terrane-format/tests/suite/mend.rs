//! Damaged parts of extents: one wrong byte is set right, and an index block keeps rows that blocks prove.

#![allow(clippy::unwrap_used, reason = "a test")]

use terrane_base::options::{BlockEncoding, Compression};
use terrane_base::{Entry, ExtentId, RecordKind, Rng, SeqKind, SeqNo, TableId};
use terrane_format::block::{self, BlockBuilder, BlockCursor};
use terrane_format::checksum::{WrongByte, crc32c, wrong_bytes};
use terrane_format::extent::mend::{Part, State, state_of};
use terrane_format::extent::{self, ExtentMeta, Footer, Handle, check};
use terrane_format::index::{IndexBlock, IndexBuilder, IndexRow, Remains, remains_of};
use terrane_format::range_deletes::{Fragment, Fragments};

const ID: ExtentId = ExtentId { file: 1, slot: 2 };
const BLOCKS: u64 = 40;
/// Entries of each block.
const ENTRIES: u64 = 5;

/// An extent of many blocks, and its meta. Two with other `salt`s have other values of the same lengths.
fn extent_of(salt: u64) -> (Vec<u8>, ExtentMeta) {
    let (mut bytes, mut index, mut numbers) = (Vec::new(), IndexBuilder::new(), Rng::new(salt));
    for at in 0..BLOCKS {
        let mut builder = BlockBuilder::new(BlockEncoding::Plain);
        let keys: Vec<String> = (0..ENTRIES).map(|entry| format!("key{:04}", at * ENTRIES + entry)).collect();
        for key in &keys {
            let seq_kind = SeqKind::new(SeqNo(1000 + at), RecordKind::Put);
            builder
                .add(Entry { key: key.as_bytes(), seq_kind, value: &numbers.next_u64().to_le_bytes() })
                .unwrap();
        }
        let block = builder.finish();
        index.add(&IndexRow {
            offset: bytes.len() as u32,
            stored_len: block.len() as u32,
            raw_len: block.len() as u32,
            compression: Compression::None,
            checksum: block::checksum(block),
            entries: ENTRIES as u32,
            deletes: 0,
            seq_min: SeqNo(1000 + at),
            seq_max: SeqNo(1000 + at),
            first_key: keys[0].as_bytes(),
            last_key: keys[keys.len() - 1].as_bytes(),
        });
        bytes.extend_from_slice(block);
    }
    let (start, raw_bytes) = (bytes.len(), bytes.len() as u64);
    index.finish(&mut bytes);
    let index = Handle::of(start as u32, &bytes[start..]);
    let len = extent::extent_bytes(bytes.len());
    bytes.resize(len - extent::FOOTER_BYTES, 0);
    let footer = Footer {
        compression: Compression::None,
        table: TableId(1),
        bytes: len as u32,
        blocks: BLOCKS as u32,
        index,
        filter: Handle::default(),
        range_deletes: Handle::default(),
        fragments: 0,
        raw_bytes,
        entries: BLOCKS * ENTRIES,
        deletes: 0,
        seq_min: SeqNo(1000),
        seq_max: SeqNo(999 + BLOCKS),
        expiry: None,
        references: Handle::default(),
        has_positions: false,
        value_table: None,
        origin: Handle::default(),
    };
    footer.encode(&mut bytes);
    let meta = check::verify(&bytes, ID, 1).unwrap();
    (bytes, meta)
}

fn part(bytes: &[u8], handle: Handle) -> &[u8] {
    &bytes[handle.offset as usize..handle.end() as usize]
}

fn is_index(bytes: &[u8]) -> bool {
    IndexBlock::decode(bytes.to_vec()).is_ok()
}

#[test]
fn a_wrong_byte_is_found_by_the_checksum() {
    let mut numbers = Rng::new(1);
    for len in [1, 2, 5, 300, 4096] {
        let sound: Vec<u8> = (0..len).map(|_| numbers.next_u64() as u8).collect();
        let expected = crc32c(7, &sound);
        for at in (0..len).step_by((len / 64).max(1)) {
            let bits = 1 + numbers.below(255) as u8;
            let mut bytes = sound.clone();
            bytes[at] ^= bits;
            let found: Vec<WrongByte> = wrong_bytes(crc32c(7, &bytes), expected, len).collect();
            assert_eq!(found, [WrongByte { at, bits }], "of {len} bytes");
        }
        assert_eq!(wrong_bytes(expected, expected, len).next(), None);
    }
}

#[test]
fn each_wrong_byte_of_an_index_block_is_set_right() {
    let (bytes, meta) = extent_of(1);
    let sound = part(&bytes, meta.index);
    let state = |bytes: &[u8]| state_of(Part::Index, meta.index, bytes, &mut is_index);
    assert_eq!(state(sound), State::Sound);
    let mut numbers = Rng::new(2);
    for at in 0..sound.len() {
        let mut wrong = sound.to_vec();
        wrong[at] ^= 1 + numbers.below(255) as u8;
        assert_eq!(state(&wrong), State::Mended(sound.to_vec()), "byte {at}");
        let other = (at + 1 + numbers.below(sound.len() as u64 - 1) as usize) % sound.len();
        wrong[other] ^= 0x20;
        let is_content_sound = at.min(other) >= sound.len() - 4;
        assert_eq!(state(&wrong) != State::Damaged, is_content_sound, "bytes {at} and {other}");
    }
    assert_eq!(state(&sound[1..]), State::Damaged);
    assert_eq!(state(&[]), State::Damaged);
}

/// The index block of another extent has its own checksum; one byte of it would have to be wrong in both.
#[test]
fn the_part_of_another_extent_is_never_set_right() {
    let ((bytes, meta), (older, older_meta)) = (extent_of(1), extent_of(2));
    assert_eq!(meta.index.offset, older_meta.index.offset, "both lie alike, or this tests little");
    let stale = part(&older, older_meta.index);
    assert_eq!(state_of(Part::Index, meta.index, stale, &mut is_index), State::Another);
    let mut numbers = Rng::new(3);
    for at in 0..stale.len() {
        let mut wrong = stale.to_vec();
        wrong[at] ^= 1 + numbers.below(255) as u8;
        assert_eq!(state_of(Part::Index, meta.index, &wrong, &mut is_index), State::Damaged, "byte {at}");
    }
    // One byte of many explains the checksum, but what it gives is refused: it is not taken all the same.
    let sound = part(&bytes, meta.index);
    let mut wrong = sound.to_vec();
    wrong[5] ^= 1;
    assert_eq!(state_of(Part::Index, meta.index, &wrong, &mut |_| false), State::Damaged);
}

#[test]
fn each_wrong_byte_of_range_deletes_is_set_right() {
    let fragment = |start: &str, end: &str, seqs: &[u64]| Fragment {
        start: start.into(),
        end: end.into(),
        seqs: seqs.iter().copied().map(SeqNo).collect(),
    };
    let mut sound = Vec::new();
    Fragments::encode(&[fragment("a", "b", &[9, 4]), fragment("b", "m", &[3])], &mut sound);
    let handle = Handle::of(0, &sound);
    for at in 0..sound.len() {
        let mut wrong = sound.clone();
        wrong[at] ^= 0x11;
        let mut is_right = |bytes: &[u8]| Fragments::decode(bytes).is_ok();
        assert_eq!(
            state_of(Part::RangeDeletes, handle, &wrong, &mut is_right),
            State::Mended(sound.clone()),
            "byte {at}"
        );
    }
}

/// Reads the blocks of `extent`, as a repair does.
fn reader(extent: &[u8]) -> impl FnMut(&IndexRow<'_>) -> bool + '_ {
    |row| {
        let stored = Handle { offset: row.offset, len: row.stored_len, checksum: 0 };
        let Ok(block) = row.open_block(part(extent, stored).to_vec()) else { return false };
        let mut cursor = BlockCursor::new();
        cursor.seek_first(&block);
        let starts = cursor.entry(&block).unwrap().key == row.first_key;
        cursor.seek_last(&block);
        starts && cursor.entry(&block).unwrap().key == row.last_key
    }
}

/// The numbers of the blocks that have a row of their own.
fn kept(remains: &Remains, sound: &IndexBlock) -> Vec<usize> {
    let index = IndexBlock::decode(remains.bytes.clone()).unwrap();
    assert_eq!(index.len(), remains.blocks);
    assert_eq!(index.data_bytes(), sound.data_bytes(), "rows and gaps cover all blocks");
    let own = (0..index.len()).filter(|at| !remains.gaps.contains(at));
    own.map(|at| sound.rows().position(|row| row == index.row(at)).unwrap()).collect()
}

#[test]
fn rows_beside_a_damaged_range_stay_and_one_row_stands_for_the_others() {
    let (bytes, meta) = extent_of(1);
    let sound = part(&bytes, meta.index);
    let index = IndexBlock::decode(sound.to_vec()).unwrap();
    let row_len = index.row(0).encoded_len();
    let rows = sound.len() - 9;
    for (from, to) in
        [(0, 1), (0, row_len * 3), (row_len * 7 + 9, row_len * 7 + 11), (500, 900), (rows - 1, rows)]
    {
        let mut wrong = sound.to_vec();
        wrong[from..to].iter_mut().for_each(|byte| *byte ^= 0xa5);
        let remains = remains_of(&wrong, &meta, &mut reader(&bytes)).unwrap();
        let damaged = from / row_len..=(to - 1) / row_len;
        let expected: Vec<usize> = (0..BLOCKS as usize).filter(|at| !damaged.contains(at)).collect();
        assert_eq!(kept(&remains, &index), expected, "bytes {from} to {to}");
        assert_eq!(remains.gaps, [*damaged.start()], "bytes {from} to {to}");
        assert_eq!(remains.entries, expected.len() as u64 * ENTRIES);
        let found = IndexBlock::decode(remains.bytes).unwrap();
        let gap = found.row(*damaged.start());
        assert_eq!(u64::from(gap.entries), damaged.clone().count() as u64 * ENTRIES, "all that is missing");
        let before = damaged.start().checked_sub(1).map_or(index.first_key(0), |at| index.last_key(at));
        assert_eq!(gap.first_key, before, "the keys between the neighbours are in doubt, and no others");
        assert!(!reader(&bytes)(&gap), "no bytes pass for the blocks of a gap");
    }
}

#[test]
fn rows_between_two_damaged_ranges_hang_on_nothing_and_go() {
    let (bytes, meta) = extent_of(1);
    let sound = part(&bytes, meta.index);
    let index = IndexBlock::decode(sound.to_vec()).unwrap();
    let row_len = index.row(0).encoded_len();
    let mut wrong = sound.to_vec();
    // Offsets: no row leads to the next one there.
    wrong[row_len * 5] ^= 0xff;
    wrong[row_len * 9] ^= 0xff;
    let remains = remains_of(&wrong, &meta, &mut reader(&bytes)).unwrap();
    let expected: Vec<usize> = (0..5).chain(10..BLOCKS as usize).collect();
    assert_eq!(kept(&remains, &index), expected);
    // Checksums: rows lead on, and those alone go whose blocks do not prove them.
    let mut wrong = sound.to_vec();
    wrong[row_len * 5 + 12] ^= 0xff;
    wrong[row_len * 9 + 12] ^= 0xff;
    let remains = remains_of(&wrong, &meta, &mut reader(&bytes)).unwrap();
    let expected: Vec<usize> = (0..BLOCKS as usize).filter(|at| ![5, 9].contains(at)).collect();
    assert_eq!((kept(&remains, &index), remains.gaps), (expected, vec![5, 9]));
}

#[test]
fn rows_of_an_older_extent_in_the_slot_stay_out() {
    let ((bytes, meta), (older, older_meta)) = (extent_of(1), extent_of(2));
    let (sound, stale) = (part(&bytes, meta.index), part(&older, older_meta.index));
    // Index blocks mixed at every place: rows of the older one have no block among the newer ones.
    for cut in (1..sound.len()).step_by(7) {
        let mixed = [&stale[..cut], &sound[cut..]].concat();
        let Some(remains) = remains_of(&mixed, &meta, &mut reader(&bytes)) else { continue };
        let index = IndexBlock::decode(sound.to_vec()).unwrap();
        // Each row that stays is one of the newer extent, which `kept` looks for.
        assert!(!kept(&remains, &index).is_empty());
    }
    // Older numbers than the meta has: rows are not of the extent, though older blocks prove them.
    let newer = ExtentMeta { seq_min: SeqNo(5000), seq_max: SeqNo(6000), ..meta.clone() };
    let mut wrong = stale.to_vec();
    wrong[600] ^= 1;
    assert!(remains_of(&wrong, &newer, &mut reader(&older)).is_none());
    let more = ExtentMeta { smallest: b"key".to_vec(), ..meta };
    assert!(remains_of(&wrong, &more, &mut reader(&older)).is_none(), "it begins at another key");
}

/// Bytes that look like rows from everywhere: the walk ends soon, and nothing is made of them.
#[test]
fn hostile_index_blocks_leave_nothing() {
    let (bytes, meta) = extent_of(1);
    let len = 1 << 20;
    let mut numbers = Rng::new(4);
    let mut row = Vec::new();
    let mut builder = IndexBuilder::new();
    builder.add(&IndexBlock::decode(part(&bytes, meta.index).to_vec()).unwrap().row(0));
    builder.finish(&mut row);
    row.truncate(row.len() - 9);
    let repeated: Vec<u8> = row.iter().copied().cycle().take(len).collect();
    let mut hostile = vec![vec![0; len], vec![1; len], repeated];
    hostile.push((0..len).map(|_| numbers.next_u64() as u8).collect());
    hostile.push((0..len).map(|_| numbers.below(3) as u8).collect());
    for index in hostile {
        let mut asked = 0;
        let large = ExtentMeta { index: Handle { offset: u32::MAX, ..meta.index }, ..meta.clone() };
        let found = remains_of(&index, &large, &mut |_| {
            asked += 1;
            false
        });
        assert!(found.is_none());
        assert!(asked <= len / 43, "{asked} blocks are read");
    }
    for len in 0..60 {
        assert!(remains_of(&vec![0; len], &meta, &mut |_| true).is_none());
    }
}
