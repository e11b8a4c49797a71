//! Target: jobs and their results as bytes, for compaction on other machines.

use std::sync::Arc;

use terrane_base::options::{BlockEncoding, Compression, ValueCompression};
use terrane_base::{ExtentId, Kind, Moment, SeqNo, TableId};
use terrane_compaction::{
    Grandparent, Input, JobKind, JobRequest, JobResult, JobSpec, KeyRange, OutputSettings, Removed, Work,
    decode_report, encode_report,
};
use terrane_format::checksum::crc32c;
use terrane_format::extent::{ExtentMeta, Handle, Origin};
use terrane_format::manifest::{DatabaseId, Place};
use terrane_storage::SLOT_BYTES;

use crate::Seed;

/// The file in which a worker writes.
const LEASE: std::ops::Range<u32> = 9..11;

/// A request or a report, as the first byte says: as it is, and with its checksum set right.
///
/// # Panics
/// If a request that was read is not written to the same, a report says what its job cannot have, or an error
/// is not one of damage or of a later version.
pub fn run(bytes: &[u8]) {
    let Some((which, bytes)) = bytes.split_first() else { return };
    let (judge, seed): (fn(&[u8]), _) =
        if which % 2 == 0 { (judge_request, *b"JOBQ") } else { (judge_report, *b"JOBR") };
    judge(bytes);
    if let Some(end) = bytes.len().checked_sub(4) {
        let checksum = crc32c(u32::from_le_bytes(seed), &bytes[..end]);
        judge(&[&bytes[..end], &checksum.to_le_bytes()].concat());
    }
}

fn is_expected(kind: Kind, bytes: &[u8]) -> bool {
    let is_later = bytes.get(8..10).is_some_and(|version| version != [1, 0]);
    kind == if is_later { Kind::Invalid } else { Kind::Corrupt } || kind == Kind::Corrupt
}

fn judge_request(bytes: &[u8]) {
    match JobRequest::decode(bytes) {
        Ok(request) => {
            let again = request.encode();
            assert!(JobRequest::decode(&again).expect("what was encoded is decoded") == request);
            let _ = request.spec.claim();
        }
        Err(error) => assert!(is_expected(error.kind(), bytes), "{error}"),
    }
}

fn judge_report(bytes: &[u8]) {
    let spec = spec();
    match decode_report(bytes, &spec, &LEASE) {
        Ok(result) => {
            assert!(result.check());
            let given = |id| spec.inputs.iter().flat_map(|input| &input.extents).any(|meta| meta.id == id);
            assert!(result.removed.iter().all(|removed| given(removed.id)), "it takes what was not given");
            assert!(
                result.written().all(|meta| LEASE.contains(&meta.id.file)),
                "it names an extent that is not its own"
            );
            let again = encode_report(&spec, &result);
            assert!(decode_report(&again, &spec, &LEASE).expect("what was encoded is decoded") == result);
        }
        Err(error) => assert!(is_expected(error.kind(), bytes), "{error}"),
    }
}

fn meta(file: u32, slot: u32, smallest: &str, largest: &str) -> ExtentMeta {
    ExtentMeta {
        id: ExtentId { file, slot },
        bytes: 1000,
        raw_bytes: 900,
        smallest: smallest.as_bytes().to_vec(),
        largest: largest.as_bytes().to_vec(),
        seq_min: SeqNo(3),
        seq_max: SeqNo(90),
        entries: 10,
        blocks: 1,
        index: Handle { offset: 500, len: 100, checksum: 1 },
        ..ExtentMeta::default()
    }
}

fn spec() -> JobSpec {
    let upper = vec![meta(1, 0, "a", "b"), meta(1, 1, "d", "f")];
    let lower = vec![meta(2, 0, "c", "e"), meta(2, 1, "g", "h")];
    JobSpec {
        kind: JobKind::Level,
        request: None,
        table: TableId(3),
        inputs: vec![
            Input { place: Place::Level(1), extents: upper },
            Input { place: Place::Level(2), extents: lower },
        ],
        values: Vec::new(),
        mended: None,
        target: Place::Level(2),
        range: KeyRange::closed(b"a", b"h"),
        below: vec![KeyRange::closed(b"a", b"b"), KeyRange::closed(b"g", b"k")],
        below_seq_max: SeqNo(2),
        grandparents: vec![Grandparent { largest: b"e".to_vec(), bytes: 4000 }],
        grandparent_bytes_max: 1 << 30,
        snapshots: vec![SeqNo(5), SeqNo(80)],
        output: OutputSettings {
            block_bytes: 16 << 10,
            block_encoding: BlockEncoding::TwoLayer,
            filter_bits_per_key: 10,
            compression: Compression::Lz4,
            value_compression: ValueCompression::AsTable,
            separate_from: u64::MAX,
        },
        drops_deletes: false,
        rewrites: false,
        part_bytes: u64::MAX,
        extent_bytes_max: SLOT_BYTES as u64,
    }
}

fn request() -> JobRequest {
    let origin = Origin {
        database: DatabaseId(7),
        edit: 4,
        job: 2,
        level: 2,
        table: "users".to_owned(),
        ..Origin::default()
    };
    JobRequest {
        spec: spec(),
        moment: Moment(1_700_000_000_000),
        operator: Some("counter".to_owned()),
        extractor: Some("fixed:4".to_owned()),
        origin: Some(origin),
    }
}

/// The first extent of the upper level is re-linked, the last one below stays, the others are merged.
fn result(spec: &JobSpec) -> JobResult {
    let (moved, merged) = (spec.inputs[0].extents[0].clone(), meta(9, 0, "c", "f"));
    let removed = spec.inputs.iter().flat_map(|input| {
        let leaves = input.extents.iter().filter(|meta| meta.id != ExtentId { file: 2, slot: 1 });
        leaves.map(|meta| Removed { place: input.place, id: meta.id, smallest: meta.smallest.clone() })
    });
    JobResult {
        table: spec.table,
        target: spec.target,
        removed: removed.collect(),
        relinked: vec![moved.id],
        added: vec![Arc::new(moved), Arc::new(merged)],
        values: Vec::new(),
        work: Work { bytes_read: 2000, entries_in: 40, ..Work::default() },
        next: None,
    }
}

/// Corpus of [`run`].
#[must_use]
pub fn seeds() -> Vec<Seed> {
    let (whole, spec) = (request(), spec());
    let bare = JobRequest { operator: None, extractor: None, origin: None, ..whole.clone() };
    let mut runs = bare.clone();
    runs.spec.inputs[0].place = Place::Run(17);
    runs.spec.range = KeyRange::all();
    let seeds = [
        ("request", 0, whole.encode()),
        ("request-bare", 0, bare.encode()),
        ("request-runs", 0, runs.encode()),
        ("report", 1, encode_report(&spec, &result(&spec))),
    ];
    let seed = |(name, which, bytes): (&str, u8, Vec<u8>)| (name.to_owned(), [&[which][..], &bytes].concat());
    seeds.into_iter().map(seed).collect()
}
