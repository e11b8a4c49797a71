//! Segments: the page `docs/format/segment.md` is the truth, nothing but a sound group is believed, hostile
//! bytes never panic.
#![allow(clippy::unwrap_used, reason = "a failed test may say so by a panic")]

use proptest::prelude::*;
use terrane_base::{Batch, SegmentId, SeqNo, TableId};
use terrane_format::segment::{
    self, BATCH_HEADER_BYTES, Batches, ChainLink, GROUP_HEADER_BYTES, GroupHeader, Groups,
    SEGMENT_HEADER_BYTES, SegmentHeader,
};

/// That of the database.
const SALT: Option<u32> = Some(0x5a17_0001);

/// Builds segments as the log does.
struct Builder {
    bytes: Vec<u8>,
    id: SegmentId,
    salt: Option<u32>,
    used: usize,
    next_seq: u64,
}

impl Builder {
    fn new(header: SegmentHeader) -> Self {
        let mut bytes = vec![0; header.bytes as usize];
        bytes[..SEGMENT_HEADER_BYTES].copy_from_slice(&header.encode());
        let next_seq = header.previous.last_seq.0 + 1;
        Builder { bytes, id: header.id, salt: header.salt, used: SEGMENT_HEADER_BYTES, next_seq }
    }

    fn group(&mut self, batches: &[Batch], durable: u64) {
        let record_bytes = batches.iter().map(|batch| batch.bytes().len()).sum();
        let record_count = batches.iter().map(Batch::record_count).sum();
        let header = GroupHeader {
            len: segment::group_len(batches.len(), record_bytes) as u32,
            first_seq: SeqNo(self.next_seq),
            durable: SeqNo(durable),
            record_count,
            batch_count: batches.len() as u32,
            edits: 0,
        };
        let start = self.used;
        let (encoded, checksum) = header.encode(segment::segment_seed(self.id, self.salt), start as u64);
        self.bytes[start..start + GROUP_HEADER_BYTES].copy_from_slice(&encoded);
        let mut at = start + GROUP_HEADER_BYTES;
        for batch in batches {
            let crc = segment::batch_checksum(checksum, at as u64, batch.record_count(), batch.bytes());
            let head = segment::encode_batch_header(batch.bytes().len() as u32, batch.record_count(), crc);
            self.bytes[at..at + BATCH_HEADER_BYTES].copy_from_slice(&head);
            at += BATCH_HEADER_BYTES;
            self.bytes[at..at + batch.bytes().len()].copy_from_slice(batch.bytes());
            at += batch.bytes().len();
        }
        self.used = start + header.len as usize;
        self.next_seq += u64::from(record_count);
    }
}

fn header(id: u64, bytes: u64, last_seq: u64) -> SegmentHeader {
    let previous = ChainLink { id: SegmentId(id - 1), last_seq: SeqNo(last_seq), checksum: 7 };
    SegmentHeader { id: SegmentId(id), file: 3, bytes, previous, edit: 0, salt: SALT }
}

fn batch(keys: &[&[u8]], value: &[u8]) -> Batch {
    let mut batch = Batch::new();
    for key in keys {
        batch.put(TableId::DEFAULT, key, value).unwrap();
    }
    batch
}

/// Number, key and value of every record that a walk believes.
fn rows(bytes: &[u8]) -> Vec<(u64, Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    let Ok((_, mut groups)) = Groups::new(bytes) else { return rows };
    for group in groups.by_ref() {
        for batch in Batches::new(bytes, &group) {
            let _ = batch.records(bytes, |_, seq, record| {
                rows.push((seq.0, record.key.to_vec(), record.value.to_vec()));
                Ok(())
            });
        }
    }
    let _ = groups.stop_reason();
    rows
}

fn sample() -> Builder {
    let mut builder = Builder::new(header(9, 2048, 41));
    builder.group(&[batch(&[b"a"], b"1"), batch(&[b"b", b"c"], b"22")], 0);
    builder.group(&[batch(&[b"d"], &[6; 100])], 44);
    builder.group(&[], 45);
    builder.group(&[batch(&[b""], b"")], 45);
    builder
}

#[test]
fn built_groups_are_read_back() {
    let builder = sample();
    let read = rows(&builder.bytes);
    let keys: Vec<_> = read.iter().map(|(seq, key, _)| (*seq, key.as_slice())).collect();
    assert_eq!(keys, [(42, &b"a"[..]), (43, b"b"), (44, b"c"), (45, b"d"), (46, b"")]);
    assert_eq!(segment::durable_marks(&builder.bytes, SegmentId(9), SALT, 0), Some(SeqNo(45)));
    assert_eq!(segment::durable_marks(&builder.bytes, SegmentId(9), SALT, builder.used), None);
    let (decoded, mut groups) = Groups::new(&builder.bytes).unwrap();
    assert_eq!((decoded, groups.by_ref().count()), (header(9, 2048, 41), 4));
    assert_eq!((groups.walk().offset, groups.walk().last_seq), (builder.used, SeqNo(46)));
}

/// The example of the page is what the code writes, byte for byte.
#[test]
fn the_example_of_the_page_is_the_written_segment() {
    let previous = ChainLink::default();
    let first = SegmentHeader { id: SegmentId(1), file: 1, bytes: 4096, previous, edit: 0, salt: SALT };
    let mut builder = Builder::new(first);
    builder.group(&[batch(&[b"k"], b"v")], 0);
    builder.group(&[], 1);
    let mut lines = String::new();
    let mut describe = |range: std::ops::Range<usize>, what: String| {
        if range.start < builder.used {
            for (index, row) in builder.bytes[range.start..range.end.min(builder.used)].chunks(16).enumerate()
            {
                let hex: Vec<_> = row.iter().map(|byte| format!("{byte:02x}")).collect();
                let note = if index == 0 { format!("  # {what}") } else { String::new() };
                let line = format!("{:03}  {:<47}{note}", range.start + 16 * index, hex.join(" "));
                lines += &format!("{}\n", line.trim_end());
            }
        }
    };
    segment::describe(&builder.bytes, &mut describe).unwrap();
    let page = include_str!("../../../../docs/format/segment.md");
    assert!(page.contains(&lines), "docs/format/segment.md should show:\n{lines}");
}

/// Version 1 knew no edits: what stood in their place means nothing.
#[test]
fn a_header_of_the_first_version_names_no_edit() {
    let mut bytes = SegmentHeader { edit: 77, salt: Some(0), ..header(9, 2048, 41) }.encode();
    assert_eq!(SegmentHeader::decode(&bytes).unwrap().0.edit, 77);
    for (version, is_read) in [(1u32, true), (2, true), (3, false), (0, false)] {
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        let checksum = terrane_format::checksum::crc32c(0, &bytes[..60]);
        bytes[60..].copy_from_slice(&checksum.to_le_bytes());
        let edit = SegmentHeader::decode(&bytes).ok().map(|(header, _)| header.edit);
        assert_eq!(edit, is_read.then_some(if version == 1 { 0 } else { 77 }), "version {version}");
    }
}

/// A mark carries the manifest's edits where a group has its count of records.
#[test]
fn a_mark_says_how_many_edits_there_were() {
    let mark = GroupHeader::mark(SeqNo(42), SeqNo(41), u32::MAX);
    let mut bytes = Builder::new(header(9, 2048, 41)).bytes;
    let (encoded, _) = mark.encode(segment::segment_seed(SegmentId(9), SALT), 64);
    bytes[64..96].copy_from_slice(&encoded);
    let (_, mut groups) = Groups::new(&bytes).unwrap();
    let group = groups.next().unwrap();
    assert_eq!((group.header, group.header.last_seq()), (mark, SeqNo(41)));
    assert_eq!(groups.walk().offset, 96);
}

/// Every bit flip in the used part is noticed, but for flips of padding.
#[test]
fn every_bit_flip_ends_the_walk_there() {
    let builder = sample();
    let whole = rows(&builder.bytes);
    let mut harmless = 0;
    for bit in 0..builder.used * 8 {
        let mut bytes = builder.bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let read = rows(&bytes);
        assert!(whole.starts_with(&read), "bit {bit}");
        harmless += usize::from(read == whole);
    }
    // Three groups with batches, each padded by at most 7 bytes.
    assert!(harmless <= 3 * 7 * 8, "{harmless} flips went unnoticed");
}

/// The same bytes under another id, or at another offset, are worth nothing.
#[test]
fn bytes_of_another_segment_or_place_are_invalid() {
    let builder = sample();
    let mut other = builder.bytes.clone();
    other[..SEGMENT_HEADER_BYTES].copy_from_slice(&header(10, 2048, 41).encode());
    assert!(rows(&other).is_empty());
    assert_eq!(segment::durable_marks(&other, SegmentId(10), SALT, 0), None);
    let mut moved = builder.bytes.clone();
    moved.copy_within(SEGMENT_HEADER_BYTES..builder.used, SEGMENT_HEADER_BYTES + 8);
    assert!(rows(&moved).is_empty());
    assert_eq!(segment::durable_marks(&moved, SegmentId(9), SALT, 0), None);
}

/// A group whose checksums are right but whose numbers do not follow is not sound.
#[test]
fn a_gap_or_repetition_in_the_numbers_ends_the_walk() {
    for next_seq in [42, 45, 47, 100] {
        let mut builder = Builder::new(header(9, 2048, 41));
        builder.group(&[batch(&[b"a", b"b", b"c"], b"1")], 0);
        builder.next_seq = next_seq;
        builder.group(&[batch(&[b"d"], b"2")], 0);
        assert_eq!(rows(&builder.bytes).len(), if next_seq == 45 { 4 } else { 3 }, "{next_seq}");
    }
}

proptest! {
    #[test]
    fn hostile_bytes_do_not_panic(
        noise in prop::collection::vec(any::<u8>(), 0..600),
        places in prop::collection::vec((64usize..2048, any::<u8>()), 0..6),
        from in 0usize..4096,
    ) {
        rows(&noise);
        let _ = SegmentHeader::decode(&noise);
        let _ = segment::describe(&noise, &mut |_, _| {});
        let _ = segment::durable_marks(&noise, SegmentId(9), SALT, from);
        let mut bytes = sample().bytes;
        for (place, byte) in places {
            bytes[place] = byte;
        }
        let _ = segment::describe(&bytes, &mut |_, _| {});
        prop_assert!(rows(&sample().bytes).starts_with(&rows(&bytes)));
    }

    /// Right checksums over wrong fields: an attacker that can write a group can also set its checksums.
    #[test]
    fn wrong_fields_with_right_checksums_do_not_panic(
        len in 0u32..2048, first_seq in prop_oneof![Just(42u64), any::<u64>()], durable: u64,
        record_count in prop_oneof![0u32..4, any::<u32>()], batch_count in prop_oneof![0u32..4, any::<u32>()],
        batch_len in prop_oneof![0u32..200, any::<u32>()], batch_records in prop_oneof![0u32..9, any::<u32>()],
        body in prop::collection::vec(any::<u8>(), 200),
    ) {
        let mut bytes = Builder::new(header(9, 2048, 41)).bytes;
        let (first_seq, durable) = (SeqNo(first_seq), SeqNo(durable % 42));
        let lie = GroupHeader { len: len / 8 * 8, first_seq, durable, record_count, batch_count, edits: record_count };
        let (encoded, checksum) = lie.encode(segment::segment_seed(SegmentId(9), SALT), 64);
        bytes[64..96].copy_from_slice(&encoded);
        bytes[108..308].copy_from_slice(&body);
        let crc = segment::batch_checksum(checksum, 96, batch_records, &body[..(batch_len as usize).min(200)]);
        bytes[96..108].copy_from_slice(&segment::encode_batch_header(batch_len, batch_records, crc));
        rows(&bytes);
        let _ = segment::describe(&bytes, &mut |_, _| {});
        let _ = segment::durable_marks(&bytes, SegmentId(9), SALT, 0);
    }
}
