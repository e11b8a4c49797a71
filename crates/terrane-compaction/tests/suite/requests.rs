//! Jobs and their results as bytes: every field comes back, damage is found, and what a hostile worker says
//! is refused.
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]

mod long_values;

use crate::support;

use std::ops::Bound;
use std::sync::Arc;

use support::{Row, World, rows_of};
use terrane_base::env::SleepClock;
use terrane_base::merge_operator::built_in;
use terrane_base::options::{BlockEncoding, Compression};
use terrane_base::prefix_extractor::PrefixExtractors;
use terrane_base::stored::put_prefix;
use terrane_base::{
    CompactionFilter, Error, ExtentId, FilterDecision, Kind, MergeOperator, Moment, Result, Rng, SeqKind,
    SeqNo, TableId,
};
use terrane_compaction::{
    Compactor, Grandparent, JobControl, JobKind, JobRequest, JobResult, JobSpec, KeyRange, Stays, Work,
    decode_report, encode_report,
};
use terrane_format::checksum::crc32c;
use terrane_format::extent::{ExtentMeta, Origin};
use terrane_format::manifest::{DatabaseId, Place};
use terrane_table::Extent;

const ANY_FILE: std::ops::Range<u32> = 0..u32::MAX;

fn key(number: usize) -> Vec<u8> {
    format!("key-{number:06}").into_bytes()
}

/// Two levels that overlap, and a job that merges them.
fn world() -> (World, JobSpec) {
    let mut world = World::new();
    world.limits.level_base_bytes = 1 << 20;
    world.limits.level_fanout = 100;
    let old: Vec<Row> =
        (0..6000).map(|number| Row::put(key(number), 1 + number as u64, vec![b'o'; 1000])).collect();
    world.load(Place::Level(2), &old);
    let new: Vec<Row> = (1000..6000)
        .step_by(2)
        .map(|number| match number % 3 {
            0 => Row::delete(key(number), 10_000 + number as u64),
            _ => Row::put(key(number), 10_000 + number as u64, vec![b'n'; 900]),
        })
        .collect();
    world.load(Place::Level(1), &new);
    let spec = world.pick().expect("level 1 is too large");
    assert_eq!((spec.kind, spec.target), (JobKind::Level, Place::Level(2)));
    assert!(spec.inputs.len() == 2 && spec.inputs[1].extents.len() > 2);
    (world, spec)
}

fn control() -> JobControl {
    let control = World::control();
    control.fold_with(built_in("append:,").unwrap());
    control.filter_prefixes(PrefixExtractors::new().find("fixed:4").unwrap());
    control.write_as(Origin {
        database: DatabaseId(7),
        edit: 9,
        job: 3,
        table: "users".to_owned(),
        options: vec![("a".to_owned(), "b".to_owned())],
        ..Origin::default()
    });
    control
}

fn request() -> JobRequest {
    let (_, spec) = world();
    JobRequest::of(&spec, &control()).unwrap()
}

/// The bytes with their checksum set right.
fn sealed(mut bytes: Vec<u8>, seed: &[u8; 4]) -> Vec<u8> {
    let end = bytes.len() - 4;
    let checksum = crc32c(u32::from_le_bytes(*seed), &bytes[..end]);
    bytes[end..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[test]
fn every_field_of_a_request_comes_back() {
    let first = request();
    assert!(first.origin.is_some() && first.operator.is_some() && first.extractor.is_some());
    type Change = fn(&mut JobRequest);
    let changes: [Change; 23] = [
        |_| (),
        |request| request.spec.kind = JobKind::Manual,
        |request| request.spec.kind = JobKind::Runs,
        |request| request.spec.table = TableId(u32::MAX),
        |request| (request.spec.target, request.origin) = (Place::Level(63), None),
        |request| request.spec.range = KeyRange::all(),
        |request| request.spec.range.end = Bound::Excluded(b"z".to_vec()),
        |request| request.spec.below = vec![KeyRange::closed(b"a", b"b"), KeyRange::closed(b"c", b"d")],
        |request| request.spec.below_seq_max = SeqNo::MAX,
        |request| request.spec.grandparent_bytes_max = u64::MAX,
        |request| request.spec.snapshots = vec![SeqNo(1), SeqNo(5), SeqNo::MAX],
        |request| request.spec.output.block_bytes = 1 << 20,
        |request| request.spec.output.block_encoding = BlockEncoding::Plain,
        |request| request.spec.output.filter_bits_per_key = 30,
        |request| request.spec.output.compression = Compression::Zstd,
        |request| request.spec.drops_deletes = true,
        |request| request.spec.rewrites = true,
        |request| request.spec.inputs.truncate(1),
        |request| request.spec.inputs[0].place = Place::Run(u64::MAX),
        |request| request.moment = Moment(u64::MAX),
        |request| request.operator = None,
        |request| request.extractor = Some("until:/".to_owned()),
        |request| request.origin = None,
    ];
    let mut seen: Vec<Vec<u8>> = Vec::new();
    for (at, change) in changes.into_iter().enumerate() {
        let mut request = first.clone();
        change(&mut request);
        let bytes = request.encode();
        assert_eq!(JobRequest::decode(&bytes).unwrap(), request, "change {at}");
        assert!(!seen.contains(&bytes), "change {at} changes no byte");
        seen.push(bytes);
    }
    let mut with = first;
    with.spec.grandparents = vec![Grandparent { largest: b"m".to_vec(), bytes: 77 }];
    assert_eq!(JobRequest::decode(&with.encode()).unwrap(), with);
}

#[test]
fn every_cut_and_every_flipped_bit_of_a_request_is_found() {
    let bytes = request().encode();
    for len in 0..bytes.len() {
        let error = JobRequest::decode(&bytes[..len]).expect_err("cut");
        assert_eq!(error.kind(), Kind::Corrupt, "{len} bytes");
    }
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let error = JobRequest::decode(&flipped).expect_err("flipped");
        assert_eq!(error.kind(), Kind::Corrupt, "bit {bit}");
    }
    let longer = sealed([bytes.clone(), vec![0; 3]].concat(), b"JOBQ");
    assert!(JobRequest::decode(&longer).unwrap_err().to_string().contains("behind the end"));
    let mut newer = bytes;
    newer[8] = 2;
    let error = JobRequest::decode(&sealed(newer, b"JOBQ")).unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid, "{error}");
}

/// An enemy sets the checksum right.
#[test]
fn a_request_that_contradicts_itself_is_refused() {
    let first = request();
    type Change = fn(&mut JobRequest);
    let changes: [(Change, &str); 14] = [
        (|request| request.spec.inputs.clear(), "nothing to merge"),
        (|request| request.spec.inputs[0].extents.clear(), "without an extent"),
        (|request| request.spec.inputs[1].place = request.spec.inputs[0].place, "input twice"),
        (|request| request.spec.inputs[1].extents.reverse(), "overlap"),
        (
            |request| {
                let id = request.spec.inputs[0].extents[0].id;
                request.spec.inputs[1].extents[0].id = id;
            },
            "input twice",
        ),
        (|request| request.spec.range.end = Bound::Included(key(5)), "outside of the range"),
        (|request| request.spec.range.start = b"z".to_vec(), "ends before it begins"),
        (|request| request.spec.snapshots = vec![SeqNo(5), SeqNo(1)], "out of order"),
        (|request| request.spec.snapshots = vec![SeqNo(1 << 56)], "beyond 56 bits"),
        (
            |request| request.spec.below = vec![KeyRange::closed(b"a", b"c"), KeyRange::closed(b"b", b"d")],
            "overlap",
        ),
        (|request| request.spec.target = Place::Run(4), "not a level"),
        (|request| request.spec.output.block_bytes = 0, "blocks of 0 bytes"),
        (|request| request.spec.output.filter_bits_per_key = 31, "31 bits"),
        (|request| request.origin.as_mut().unwrap().level = 9, "another job"),
    ];
    for (change, expected) in changes {
        let mut request = first.clone();
        change(&mut request);
        let error = JobRequest::decode(&request.encode()).expect_err(expected);
        assert!(error.kind() == Kind::Corrupt && error.to_string().contains(expected), "{expected}: {error}");
    }
    let bytes = first.encode();
    let mut rng = Rng::new(5);
    for _ in 0..4000 {
        let mut noise = bytes.clone();
        for _ in 0..=rng.index(3) {
            let at = 10 + rng.index(noise.len() - 10);
            noise[at] = rng.next_u64() as u8;
        }
        if let Ok(request) = JobRequest::decode(&sealed(noise, b"JOBQ")) {
            assert_eq!(JobRequest::decode(&request.encode()).unwrap(), request);
        }
    }
}

#[derive(Debug)]
struct Own;

impl CompactionFilter for Own {
    fn name(&self) -> &str {
        "own"
    }

    fn filter(&self, _key: &[u8], _value: &[u8]) -> FilterDecision {
        FilterDecision::Keep
    }
}

impl MergeOperator for Own {
    fn name(&self) -> &str {
        "own"
    }

    fn full(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]], _: &mut Vec<u8>) -> Result<()> {
        Err(Error::invalid("never called"))
    }
}

#[test]
fn a_job_that_needs_local_functions_stays() {
    let (_, spec) = world();
    let plain = World::control;
    let of = |spec: &JobSpec, control: &JobControl| JobRequest::of(spec, control).expect_err("stays");
    assert_eq!(JobRequest::of(&spec, &plain()).unwrap().spec, spec);
    let filtering = plain();
    filtering.filter_with(Arc::new(Own), SeqNo(0));
    assert_eq!(of(&spec, &filtering), Stays::Filter("own".to_owned()));
    let folding = plain();
    folding.fold_with(Arc::new(Own));
    assert_eq!(of(&spec, &folding), Stays::Operator("own".to_owned()));
    let mut moves = spec.clone();
    moves.inputs.retain(|input| input.place != moves.target);
    moves.output.compression = moves.inputs[0].extents[0].compression;
    moves.drops_deletes = false;
    assert!(moves.is_move());
    assert_eq!(of(&moves, &plain()), Stays::Moves);
    for kind in [JobKind::Flush, JobKind::Dump, JobKind::Collect] {
        let other = JobSpec { kind, ..spec.clone() };
        assert_eq!(of(&other, &plain()), Stays::Kind(kind));
    }
    let mut unordered = spec;
    unordered.range.collation = terrane_base::Collation::missing("backward");
    let stays = of(&unordered, &plain());
    assert_eq!(stays, Stays::Order("backward".to_owned()));
    assert!(stays.to_string().contains("\"backward\""));
    let unknown = JobRequest { operator: Some("none such".to_owned()), ..request() };
    let error = unknown.control(Arc::new(SleepClock::default())).unwrap_err();
    assert!(error.kind() == Kind::Invalid && error.to_string().contains("none such"), "{error}");
}

/// Runs a job as another machine does: from the bytes of its request, to the bytes of a report.
fn run_from_bytes(world: &World, spec: &JobSpec, control: &JobControl) -> (JobRequest, Vec<u8>) {
    let bytes = JobRequest::of(spec, control).unwrap().encode();
    let request = JobRequest::decode(&bytes).unwrap();
    let control = request.control(Arc::new(SleepClock::default())).unwrap();
    let result = world.compactor.run(&request.spec, &control).unwrap();
    let report = encode_report(&request.spec, &result);
    (request, report)
}

#[test]
fn a_job_that_travelled_leaves_what_it_leaves_here() {
    let (mut there, spec) = world();
    let (_, report) = run_from_bytes(&there, &spec, &control());
    let result = decode_report(&report, &spec, &ANY_FILE).unwrap();
    there.publish(&result);
    there.check_content();
    let (mut here, same) = world();
    assert_eq!(same, spec, "both worlds are the same");
    let local = here.compactor.run(&same, &control()).unwrap();
    assert_eq!(result, local, "result and its report");
    here.publish(&local);
    assert_eq!(there.content(SeqNo::MAX), here.content(SeqNo::MAX));
    let level = |world: &World| world.rows(spec.target);
    assert_eq!(level(&there), level(&here));
}

/// A worker whose clock is ahead would drop what has not expired yet.
#[test]
fn the_time_of_a_job_travels() {
    // What has expired by the clock of the test is not even loaded.
    const LATER: u64 = 1 << 52;
    let mut world = World::new();
    let row = |name: &str, seq: u64, until: u64| {
        let mut value = Vec::new();
        let kind = put_prefix(&mut value, Moment(LATER + until), None);
        value.extend_from_slice(b"value");
        Row { key: name.as_bytes().to_vec(), seq_kind: SeqKind::new(SeqNo(seq), kind), value }
    };
    world.load(Place::Level(2), &[row("a", 1, 1_000), row("b", 2, 3_000)]);
    world.load(Place::Level(1), &[row("b2", 3, 2_000)]);
    let (_, mut spec) = self::world();
    spec.range = KeyRange::all();
    (spec.grandparents, spec.below, spec.rewrites) = (Vec::new(), Vec::new(), true);
    for input in &mut spec.inputs {
        let extents = world.extents().into_iter().filter(|(place, _)| *place == input.place);
        input.extents = extents.map(|(_, extent)| extent.meta.clone()).collect();
    }
    let control = World::control();
    control.decide_as_of(Moment(LATER + 2_500));
    let request = JobRequest::decode(&JobRequest::of(&spec, &control).unwrap().encode()).unwrap();
    assert_eq!(request.moment, Moment(LATER + 2_500));
    // The clock of the other machine says 1970.
    let elsewhere = request.control(Arc::new(SleepClock::default())).unwrap();
    let result = world.compactor.run(&request.spec, &elsewhere).unwrap();
    assert_eq!(result.work.entries_expired, 2);
    let extent = |meta: &Arc<ExtentMeta>| Extent::new((**meta).clone(), world.store.clone());
    let left: Vec<Row> = result.added.iter().flat_map(|meta| rows_of(&extent(meta))).collect();
    assert_eq!(left, [row("b", 2, 3_000)]);
}

#[test]
fn every_cut_and_every_flipped_bit_of_a_report_is_found() {
    let (world, spec) = world();
    let (_, report) = run_from_bytes(&world, &spec, &control());
    for len in 0..report.len() {
        assert_eq!(decode_report(&report[..len], &spec, &ANY_FILE).unwrap_err().kind(), Kind::Corrupt);
    }
    for bit in 0..report.len() * 8 {
        let mut flipped = report.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let error = decode_report(&flipped, &spec, &ANY_FILE).expect_err("flipped");
        assert_eq!(error.kind(), Kind::Corrupt, "bit {bit}");
    }
    let mut rng = Rng::new(6);
    for _ in 0..4000 {
        let mut noise = report.clone();
        for _ in 0..=rng.index(3) {
            let at = 10 + rng.index(noise.len() - 10);
            noise[at] = rng.next_u64() as u8;
        }
        if let Ok(result) = decode_report(&sealed(noise, b"JOBR"), &spec, &ANY_FILE) {
            assert!(result.check());
        }
    }
}

/// A worker that is hostile, or of another job, sets its checksum right.
#[test]
fn a_report_is_refused_that_no_worker_makes_of_the_job() {
    let (world, spec) = world();
    let control = control();
    let result = world.compactor.run(&JobRequest::of(&spec, &control).unwrap().spec, &control).unwrap();
    assert_eq!(decode_report(&encode_report(&spec, &result), &spec, &ANY_FILE).unwrap(), result);
    let new = |result: &JobResult| {
        result.added.iter().position(|meta| !result.relinked.contains(&meta.id)).expect("it writes")
    };
    let file = result.added[new(&result)].id.file;
    type Change<'c> = &'c dyn Fn(&mut ExtentMeta);
    let changes: [(Change<'_>, &str); 6] = [
        (&|meta| meta.id.file = file + 1, "not one that the worker was given"),
        (&|meta| meta.seq_max = SeqNo(1 << 50), "sequence numbers"),
        (&|meta| meta.seq_min = SeqNo(0), "sequence numbers"),
        (&|meta| (meta.entries, meta.deletes) = (1 << 40, 0), "entries"),
        (&|meta| meta.slots = 1000, "slots"),
        (&|meta| meta.smallest = b"a".to_vec(), "overlap"),
    ];
    for (change, expected) in changes {
        let mut lied = result.clone();
        let at = new(&lied).max(1);
        change(Arc::make_mut(&mut lied.added[at]));
        let error =
            decode_report(&encode_report(&spec, &lied), &spec, &(file..file + 1)).expect_err(expected);
        assert!(error.kind() == Kind::Corrupt && error.to_string().contains(expected), "{expected}: {error}");
    }
    let refused = |lied: &JobResult, expected: &str| {
        let error = decode_report(&encode_report(&spec, lied), &spec, &ANY_FILE).expect_err(expected);
        assert!(error.kind() == Kind::Corrupt && error.to_string().contains(expected), "{expected}: {error}");
    };
    let mut outside = result.clone();
    let last = outside.added.len() - 1;
    Arc::make_mut(&mut outside.added[last]).largest = b"z".to_vec();
    refused(&outside, "outside of the job's range");
    refused(&JobResult { table: TableId(99), ..result.clone() }, "table");
    let work = Work { bytes_read: u64::MAX, ..result.work };
    refused(&JobResult { work, ..result.clone() }, "a count of");
    let mut foreign = result.clone();
    let id = ExtentId { file: 77, slot: 5 };
    Arc::make_mut(&mut foreign.added[0]).id = id;
    foreign.relinked = vec![id];
    refused(&foreign, "does not have it elsewhere");
    let mut same = result.clone();
    Arc::make_mut(&mut same.added[new(&result)]).id = spec.inputs[0].extents[0].id;
    refused(&same, "one of the inputs");
    let mut twice = result.clone();
    let again = twice.added[0].clone();
    twice.added.push(again);
    refused(&twice, "comes twice");
    // Nothing of an input may stay beside what replaces it.
    let mut kept = result.clone();
    kept.removed.retain(|removed| removed.place != spec.target);
    refused(&kept, "overlap");
}
