//! Cuts, flipped bits, zeroed, lost and misplaced writes, hostile bytes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::{add, database, dir, open, read_file, with_manifest};
use proptest::prelude::*;
use terrane_base::{Kind, SeqNo};
use terrane_device::MemDisk;
use terrane_format::manifest::edit::decode_edits;
use terrane_format::manifest::record::{Link, RECORD_HEADER_BYTES, RecordTag};
use terrane_format::manifest::{Edit, EditOp, FileHeader, describe};
use terrane_levels::State;

/// A database with a few edits, its manifest file, and where each of its records begins.
struct Sample {
    disk: MemDisk,
    bytes: Vec<u8>,
    states: Vec<State>,
    /// Where the snapshot ends and the first edit begins.
    snapshot_end: usize,
    /// Where the durable-end mark begins.
    mark: usize,
}

fn sample() -> Sample {
    let disk = MemDisk::new();
    let durable = Edit { ops: vec![EditOp::Durable { seq: SeqNo(9) }] };
    let (manifest, states) = database(&disk, &[add(1, 1), durable, add(2, 2), add(3, 1)]);
    let snapshot_end = manifest.size().snapshot_bytes as usize;
    let bytes = read_file(&disk, &dir().join("MANIFEST-000001"));
    let mark = bytes.len() - RECORD_HEADER_BYTES;
    Sample { disk, bytes, states, snapshot_end, mark }
}

impl Sample {
    fn open(&self, bytes: &[u8]) -> terrane_base::Result<(State, u64)> {
        let disk = with_manifest(&self.disk, 1, bytes);
        let (manifest, state) = open(&disk)?;
        let torn = manifest.torn_bytes();
        // Whatever was found, it goes on from there and is found again.
        manifest.append(&add(500, 7)).unwrap();
        drop(manifest);
        let (again, found) = open(&disk.crash(1)).unwrap();
        assert_eq!(again.torn_bytes(), 0);
        assert_eq!(found, state.apply(&add(500, 7)).unwrap());
        Ok((state, torn))
    }
}

#[test]
fn a_cut_at_any_byte_leaves_a_prefix_of_the_edits_or_is_corrupt() {
    let sample = sample();
    let mut found_states = Vec::new();
    for len in 0..sample.bytes.len() {
        match sample.open(&sample.bytes[..len]) {
            Ok((state, _)) => {
                assert!(len >= sample.snapshot_end);
                let number = sample.states.iter().position(|known| *known == state).unwrap();
                found_states.push(number);
            }
            Err(error) => {
                assert_eq!(error.kind(), Kind::Corrupt, "cut at {len}: {error}");
                assert!(len < sample.snapshot_end, "cut at {len}: {error}");
            }
        }
    }
    assert!(found_states.is_sorted(), "a longer file never has fewer edits");
    found_states.dedup();
    assert_eq!(found_states, [0, 1, 2, 3, 4]);
}

#[test]
fn every_flipped_bit_is_found_with_its_place() {
    let sample = sample();
    for bit in 0..sample.bytes.len() * 8 {
        let mut bytes = sample.bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        match sample.open(&bytes) {
            // The mark is the last thing in the file and carries no state: nothing can be lost with it.
            Ok((state, torn)) => {
                assert!(bit / 8 >= sample.mark, "bit {bit} unnoticed");
                assert_eq!(torn, RECORD_HEADER_BYTES as u64);
                assert_eq!(&state, sample.states.last().unwrap());
            }
            Err(error) => {
                assert_eq!(error.kind(), Kind::Corrupt, "bit {bit}: {error}");
                let place = error.place().unwrap();
                assert_eq!(place.file, "/db/MANIFEST-000001");
                assert!(place.offset <= bit as u64 / 8, "bit {bit}: {error}");
            }
        }
    }
}

/// Zeros are not an end: those before something valid are damage, those at the end are a torn append.
#[test]
fn a_zeroed_range_is_found() {
    let sample = sample();
    for start in sample.snapshot_end..sample.bytes.len() {
        let mut bytes = sample.bytes.clone();
        bytes[start..].fill(0);
        let (state, torn) = sample.open(&bytes).unwrap();
        // The last bytes are of a checksum, and may be zeros already.
        assert!(sample.states.contains(&state) && (torn > 0 || bytes == sample.bytes));
        let mut bytes = sample.bytes.clone();
        let end = (start + 16).min(sample.mark);
        bytes[start.min(end)..end].fill(0);
        if bytes != sample.bytes {
            assert_eq!(sample.open(&bytes).unwrap_err().kind(), Kind::Corrupt, "zeros from {start}");
        }
    }
}

#[test]
fn a_lost_doubled_or_misplaced_record_is_found() {
    let sample = sample();
    let starts = record_starts(&sample);
    let edits: Vec<&[u8]> = starts.windows(2).map(|pair| &sample.bytes[pair[0]..pair[1]]).collect();
    let (front, mark) = (&sample.bytes[..sample.snapshot_end], &sample.bytes[sample.mark..]);
    let build = |order: &[usize]| {
        let parts = order.iter().map(|&i| edits[i]);
        std::iter::once(front).chain(parts).chain([mark]).collect::<Vec<_>>().concat()
    };
    assert_eq!(build(&[0, 1, 2, 3]), sample.bytes);
    for order in [&[0, 2, 3][..], &[1, 2, 3], &[0, 1, 2], &[0, 0, 1, 2, 3], &[1, 0, 2, 3], &[0, 1, 3, 2], &[]]
    {
        let error = sample.open(&build(order)).unwrap_err();
        assert_eq!(error.kind(), Kind::Corrupt, "{order:?}");
    }
}

/// A write that the device dropped: the mark of the record before is still in its place.
#[test]
fn a_lost_write_under_a_later_one_is_found() {
    let sample = sample();
    let starts = record_starts(&sample);
    let header = FileHeader::decode(&sample.bytes).unwrap();
    for lost in 0..starts.len() - 1 {
        let mut bytes = sample.bytes.clone();
        let (start, end) = (starts[lost], starts[lost + 1]);
        let mut old = Vec::new();
        let previous = match lost {
            0 => last_snapshot_checksum(&sample, &header),
            _ => u32_at(&sample.bytes, starts[lost - 1] + 24),
        };
        let mut link = Link { seed: header.checksum(), previous, number: lost as u64 };
        link.append(RecordTag::Mark, &[], &mut old);
        bytes[start..end].fill(0);
        bytes[start..start + old.len()].copy_from_slice(&old);
        let error = sample.open(&bytes).unwrap_err();
        assert!(error.kind() == Kind::Corrupt && error.message().contains("missing"), "{error}");
        assert_eq!(error.place().unwrap().offset, start as u64);
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn last_snapshot_checksum(sample: &Sample, header: &FileHeader) -> u32 {
    let end_record = sample.snapshot_end - RECORD_HEADER_BYTES - 8;
    assert!(header.checksum() != 0);
    u32_at(&sample.bytes, end_record + 24)
}

/// Where each edit begins, and where the last one ends.
fn record_starts(sample: &Sample) -> Vec<usize> {
    let mut starts = vec![sample.snapshot_end];
    while *starts.last().unwrap() < sample.mark {
        let at = *starts.last().unwrap();
        starts.push(at + RECORD_HEADER_BYTES + u32_at(&sample.bytes, at) as usize);
    }
    assert_eq!(*starts.last().unwrap(), sample.mark);
    starts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn hostile_files_are_refused(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cut in any::<prop::sample::Index>(),
        tail in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let sample = sample();
        let mut bytes = sample.bytes.clone();
        bytes.truncate(cut.index(bytes.len()) + 1);
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.extend_from_slice(&tail);
        let mut lies_within = true;
        describe(&bytes, &mut |field| lies_within &= field.offset + field.len <= bytes.len());
        prop_assert!(lies_within);
        match sample.open(&bytes) {
            Ok((state, _)) => prop_assert!(sample.states.contains(&state)),
            Err(error) => prop_assert_eq!(error.kind(), Kind::Corrupt),
        }
    }

    /// Hostile payloads under right checksums: the decoder and the state refuse or accept, and nothing else.
    #[test]
    fn hostile_payloads_are_refused(
        payload in hostile_payload(),
        snapshot in any::<bool>(),
    ) {
        let _ = decode_edits(&payload);
        let sample = sample();
        let header = FileHeader::decode(&sample.bytes).unwrap();
        let mut bytes = sample.bytes[..sample.mark].to_vec();
        let starts = record_starts(&sample);
        let last = starts[starts.len() - 2];
        let (previous, number, tag) = (u32_at(&bytes, last + 24), 4, RecordTag::Edit);
        let mut link = Link { seed: header.checksum(), previous, number };
        if snapshot {
            bytes.truncate(64);
            link = Link { seed: header.checksum(), previous: header.checksum(), number: 0 };
            link.append(RecordTag::Snapshot, &payload, &mut bytes);
            link.append(RecordTag::SnapshotEnd, &1u64.to_le_bytes(), &mut bytes);
        } else {
            link.append(tag, &payload, &mut bytes);
        }
        let disk = with_manifest(&sample.disk, 1, &bytes);
        match open(&disk) {
            Ok((_, state)) => state.check().unwrap(),
            Err(error) => prop_assert_eq!(error.kind(), Kind::Corrupt),
        }
    }
}

/// Random bytes, and encoded edits with a few bytes changed.
fn hostile_payload() -> impl Strategy<Value = Vec<u8>> {
    let changed = (0u32..9, prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4));
    let changed = changed.prop_map(|(slot, changes)| {
        let mut payload = Vec::new();
        add(slot, 1).encode(&mut payload);
        for (at, byte) in changes {
            let at = at.index(payload.len());
            payload[at] = byte;
        }
        payload
    });
    prop_oneof![prop::collection::vec(any::<u8>(), 0..200), changed]
}
