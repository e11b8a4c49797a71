//! Target: the bytes of one segment, walked group by group.

use terrane_base::{Batch, Kind, SegmentId, SeqNo, TableId};
use terrane_format::segment::{
    self, BATCH_HEADER_BYTES, Batches, ChainLink, GROUP_HEADER_BYTES, GroupHeader, Groups, SegmentHeader,
    group_len,
};

use crate::{Seed, corrupt_or, repair};

/// The segment as it is, and with its checksums set right.
pub fn run(bytes: &[u8]) {
    judge(bytes);
    let mut bytes = bytes.to_vec();
    repair::segment(&mut bytes);
    judge(&bytes);
}

fn judge(bytes: &[u8]) {
    match segment::describe(bytes, &mut |range, _| {
        assert!(range.start <= range.end && range.end <= bytes.len())
    }) {
        Ok(()) => {}
        Err(error) => assert_eq!(error.kind(), Kind::Corrupt, "{error}"),
    }
    for id in [SegmentId(1), SegmentId(u64::MAX)] {
        for salt in [None, Some(0)] {
            let _ = segment::durable_marks(bytes, id, salt, 0);
        }
    }
    let Some((header, mut groups)) = corrupt_or(Groups::new(bytes)) else { return };
    let mut expected = header.previous.last_seq.0 + 1;
    let mut end = groups.walk().offset;
    while let Some(group) = groups.next() {
        assert_eq!((group.offset, group.header.first_seq.0), (end, expected));
        for batch in Batches::new(bytes, &group) {
            assert_eq!(batch.first_seq.0, expected);
            let walked = batch.records(bytes, |offset, seq, record| {
                assert!(seq.0 - batch.first_seq.0 < u64::from(batch.record_count));
                assert!(offset + record.encoded_len() <= batch.offset + batch.len);
                Ok(())
            });
            let _ = corrupt_or(walked);
            expected += u64::from(batch.record_count);
        }
        assert_eq!(expected, group.header.last_seq().0 + 1, "the batches add up to the group");
        end = groups.walk().offset;
        assert!(end <= bytes.len());
    }
    let _ = (groups.stop_reason(), groups.is_torn());
    let behind = segment::durable_marks(bytes, header.id, header.salt, end);
    assert!(behind.is_none_or(|mark| mark <= SeqNo::MAX));
}

/// A segment of `bytes` bytes with `groups` groups, behind `previous`, and the link to the next one.
#[must_use]
pub fn made(id: u64, bytes: usize, groups: u64, previous: ChainLink) -> (Vec<u8>, ChainLink) {
    let header = SegmentHeader {
        id: SegmentId(id),
        file: id as u32,
        bytes: bytes as u64,
        previous,
        edit: id,
        salt: Some(0),
    };
    let mut out = header.encode().to_vec();
    let mut seq = previous.last_seq.0 + 1;
    for group in 0..groups {
        let batches: Vec<Batch> = (0..group % 3).map(|batch| batch_of(group + batch)).collect();
        let mut header = GroupHeader {
            len: group_len(batches.len(), batches.iter().map(|batch| batch.bytes().len()).sum()) as u32,
            first_seq: SeqNo(seq),
            durable: SeqNo(seq - 1),
            record_count: 0,
            batch_count: batches.len() as u32,
            edits: group as u32,
        };
        header.record_count = batches.iter().map(|batch| batch.record_count()).sum();
        let start = out.len();
        let (encoded, checksum) = header.encode(segment::segment_seed(SegmentId(id), Some(0)), start as u64);
        out.extend_from_slice(&encoded);
        for batch in &batches {
            let records = batch.bytes();
            let checksum = segment::batch_checksum(checksum, out.len() as u64, batch.record_count(), records);
            out.extend(segment::encode_batch_header(records.len() as u32, batch.record_count(), checksum));
            out.extend_from_slice(records);
        }
        out.resize(start + header.len as usize, 0);
        seq += u64::from(header.record_count);
    }
    assert!(out.len() + GROUP_HEADER_BYTES + BATCH_HEADER_BYTES <= bytes, "the groups fit");
    out.resize(bytes, 0);
    let (_, mut walk) = Groups::new(&out).expect("a sound header");
    walk.by_ref().for_each(drop);
    let end = walk.walk();
    assert_eq!(end.last_seq.0 + 1, seq, "every group is sound");
    (out, ChainLink { id: SegmentId(id), last_seq: end.last_seq, checksum: end.checksum })
}

fn batch_of(number: u64) -> Batch {
    let mut batch = Batch::new();
    for record in 0..=number % 4 {
        let key = format!("key{}", number * 7 + record);
        let table = TableId((number % 3) as u32);
        let added = match record {
            2 => batch.delete(table, key.as_bytes()),
            _ => batch.put(table, key.as_bytes(), &vec![b'v'; (number * 5) as usize]),
        };
        added.expect("a small record");
    }
    batch
}

/// Corpus of [`run`].
#[must_use]
pub fn seeds() -> Vec<Seed> {
    let behind = ChainLink { id: SegmentId(6), last_seq: SeqNo(900), checksum: 5 };
    let stale = |mut bytes: Vec<u8>| {
        // What an earlier segment left in a recycled file.
        let (old, _) = made(3, bytes.len(), 20, ChainLink::default());
        bytes[1024..].copy_from_slice(&old[1024..]);
        bytes
    };
    vec![
        ("empty".into(), made(1, 512, 0, ChainLink::default()).0),
        ("groups".into(), made(1, 4096, 12, ChainLink::default()).0),
        ("chained".into(), made(7, 4096, 9, behind).0),
        ("recycled".into(), stale(made(9, 4096, 5, behind).0)),
    ]
}
