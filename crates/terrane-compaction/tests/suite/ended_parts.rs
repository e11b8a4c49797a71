//! Jobs in parts that end behind any of their parts, on a device that is nearly full: with puts, deletes,
//! single deletes, operands, range deletes, snapshots and a compaction filter. Whatever a job has published
//! by then, every reader sees what it should, and later jobs do the rest.

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use support::{Content, Row, World};
use terrane_base::chain::Chain;
use terrane_base::merge_operator::built_in;
use terrane_base::stored::put_prefix;
use terrane_base::{CompactionFilter, FilterDecision, Kind, Moment, RecordKind, Rng, SeqKind, SeqNo};
use terrane_compaction::{
    CancelCause, Claims, Compactor, JobControl, JobSpec, KeyRange, RangeRequest, RangeStep, pick_range,
};
use terrane_format::range_deletes::Fragment;

/// Extents of jobs end here, so that few rows make many of them.
const EXTENT_BYTES: u64 = 4 << 10;
const PART_BYTES: u64 = 512;
const KEYS: u64 = 100;
/// Most jobs that a tree of these sizes may take to come to rest.
const JOBS_MAX: usize = 1000;

/// Changes values that begin with `1`, and removes those that begin with `0`.
#[derive(Debug)]
struct Sieve;

impl Sieve {
    fn of(value: &[u8]) -> Option<Vec<u8>> {
        match value.first() {
            Some(b'0') => None,
            Some(b'1') => Some([b"F", value].concat()),
            _ => Some(value.to_vec()),
        }
    }
}

impl CompactionFilter for Sieve {
    fn name(&self) -> &str {
        "sieve"
    }

    fn filter(&self, key: &[u8], value: &[u8]) -> FilterDecision {
        // Keys with operands are not for it: readers fold onto what is there.
        match Sieve::of(value) {
            _ if kind_of(key) != KeyKind::Filtered => FilterDecision::Keep,
            None => FilterDecision::Remove,
            Some(same) if same == value => FilterDecision::Keep,
            Some(other) => FilterDecision::Change(other),
        }
    }
}

/// The operations that a key gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyKind {
    Merged,
    Single,
    Filtered,
}

fn kind_of(key: &[u8]) -> KeyKind {
    match key[key.len() - 1] % 3 {
        0 => KeyKind::Merged,
        1 => KeyKind::Single,
        _ => KeyKind::Filtered,
    }
}

pub(crate) fn key_of(number: u64) -> Vec<u8> {
    format!("key-{number:06}").into_bytes()
}

pub(crate) fn row(key: &[u8], seq: u64, kind: RecordKind, len: u64) -> Row {
    let mut value = Vec::new();
    let mut seq_kind = SeqKind::new(SeqNo(seq), kind);
    if kind == RecordKind::Merge {
        seq_kind = SeqKind::new(SeqNo(seq), put_prefix(&mut value, Moment::NEVER, Some(0)));
    }
    if !kind.is_delete() {
        value.push(b'0' + (seq % 3) as u8);
        value.resize(value.len() + len as usize, b'a' + (seq % 26) as u8);
    }
    Row { key: key.to_vec(), seq_kind, value }
}

/// The value of a key whose versions these are, newest place first and newest first in each.
fn fold(key: &[u8], rows: &[&Row]) -> Option<Vec<u8>> {
    let mut chain = Chain::new();
    for row in rows {
        if !chain.take(row.seq_kind, &row.value, Moment(2)).expect("numbers of operands fit") {
            break;
        }
    }
    let (operator, mut value) = (built_in("append").expect("it is built in"), Vec::new());
    chain.fold(Some(&*operator), key, &mut value).expect("folds").then_some(value)
}

/// The values that a reader sees of rows, of which range deletes hide some.
pub(crate) fn seen(rows: &[Row], ranges: &[Fragment], reader: SeqNo) -> Content {
    let is_over = |range: &&Fragment, key: &[u8]| *range.start <= *key && *key < *range.end;
    let is_hidden = |row: &Row| {
        let mut over = ranges.iter().filter(|range| is_over(range, &row.key));
        over.any(|range| range.seqs.iter().any(|seq| *seq > row.seq_kind.seq() && *seq <= reader))
    };
    let mut by_key: BTreeMap<&[u8], Vec<&Row>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.seq_kind.seq() <= reader && !is_hidden(row)) {
        by_key.entry(&row.key).or_default().push(row);
    }
    let read = by_key.into_iter().filter_map(|(key, rows)| Some((key.to_vec(), fold(key, &rows)?)));
    read.collect()
}

/// A table, and every version that it was given.
struct Model {
    world: World,
    numbers: Rng,
    seq: u64,
    /// Newest first.
    rows: Vec<Row>,
    ranges: Vec<Fragment>,
    /// Keys whose newest version is a put: one single delete may follow.
    put_once: BTreeSet<u64>,
    has_filter: bool,
    /// Parts behind which a job was ended.
    ends: usize,
}

impl Model {
    fn new(seed: u64) -> Model {
        let mut world = World::new();
        world.room_bytes = 0;
        world.limits.block_bytes = 512;
        world.limits.level_base_bytes = 16 << 10;
        world.limits.level_fanout = 2;
        world.limits.overflow_runs_trigger = 1 + seed % 3;
        world.limits.merge_through = seed % 4 < 2;
        let (rows, ranges, put_once) = (Vec::new(), Vec::new(), BTreeSet::new());
        let (numbers, has_filter) = (Rng::new(seed), seed % 3 == 2);
        Model { world, numbers, seq: 0, rows, ranges, put_once, has_filter, ends: 0 }
    }

    /// Some versions of keys of a range.
    fn new_rows(&mut self) -> Vec<Row> {
        let (span, start) = (1 + self.numbers.below(KEYS), self.numbers.below(KEYS));
        let count = 10 + self.numbers.below(120);
        let numbers: Vec<u64> = (0..count).map(|_| start + self.numbers.below(span)).collect();
        numbers.into_iter().map(|number| self.new_row(number)).collect()
    }

    fn new_row(&mut self, number: u64) -> Row {
        self.seq += 1;
        let (key, what) = (key_of(number), self.numbers.below(8));
        let kind = match kind_of(&key) {
            // A single delete is for a key that was put once since the one before.
            KeyKind::Single if self.put_once.contains(&number) => RecordKind::SingleDelete,
            KeyKind::Single => RecordKind::Put,
            KeyKind::Merged if what < 4 => RecordKind::Merge,
            _ if what == 7 => RecordKind::Delete,
            _ => RecordKind::Put,
        };
        match kind {
            RecordKind::Put => self.put_once.insert(number),
            _ => self.put_once.remove(&number),
        };
        let len = if kind == RecordKind::Merge { self.numbers.below(20) } else { self.numbers.below(600) };
        row(&key, self.seq, kind, len)
    }

    /// A range delete over few keys; single deletes count from there on.
    fn new_range(&mut self) -> Fragment {
        self.seq += 1;
        let start = self.numbers.below(KEYS);
        let end = start + 1 + self.numbers.below(20);
        self.put_once.retain(|number| !(start..end).contains(number));
        Fragment { start: key_of(start), end: key_of(end), seqs: vec![SeqNo(self.seq)] }
    }

    fn control(&self) -> Arc<JobControl> {
        let control = World::control();
        control.fold_with(built_in("append").expect("it is built in"));
        if self.has_filter {
            control.filter_with(Arc::new(Sieve), self.world.snapshots.last().copied().unwrap_or_default());
        }
        Arc::new(control)
    }

    /// Writes a run of new versions.
    fn write(&mut self) {
        let rows = self.new_rows();
        let ranges: Vec<Fragment> = match self.numbers.below(8) {
            0 => vec![self.new_range()],
            _ => Vec::new(),
        };
        self.rows.splice(0..0, rows.iter().rev().cloned());
        self.ranges.extend(ranges.iter().cloned());
        self.world.dump_with(&rows, ranges);
        self.check("a run");
    }

    /// Every reader sees what it should: of a row that the filter may have seen, either of both.
    fn check(&self, behind: &str) {
        let places = self.world.extents();
        let mut ranges = Vec::new();
        for (_, extent) in &places {
            let fragments = extent.read_range_deletes().expect("reads").unwrap_or_default();
            ranges.extend(fragments.all().iter().cloned());
        }
        let rows: Vec<Row> = places.iter().flat_map(|(_, extent)| support::rows_of(extent)).collect();
        for reader in self.world.snapshots.iter().chain([&SeqNo::MAX]) {
            let found = seen(&rows, &ranges, *reader);
            let expected = seen(&self.rows, &self.ranges, *reader);
            for number in 0..2 * KEYS {
                let key = key_of(number);
                let (found, expected) = (found.get(&key), expected.get(&key));
                let filtered = expected.and_then(|value| Sieve::of(value));
                let is_filtered = self.has_filter && kind_of(&key) == KeyKind::Filtered;
                assert!(
                    found == expected || is_filtered && found == filtered.as_ref(),
                    "behind {behind}: key {number}, reader {reader}: {found:?} for {expected:?}"
                );
            }
        }
        self.world.check_space();
    }

    /// Runs a job up to so many parts; returns true if it came to its end before.
    fn run(&mut self, spec: &JobSpec, parts: usize) -> bool {
        let mut spec = JobSpec { extent_bytes_max: EXTENT_BYTES, ..spec.clone() };
        spec.part_bytes = if spec.is_in_parts() { PART_BYTES } else { u64::MAX };
        if self.has_filter {
            spec = spec.filtered_by(&Sieve);
        }
        let (control, compactor, mut published) = (self.control(), self.world.compactor.clone(), 0);
        let string = Arc::clone(&control);
        let ended = compactor.run_in_parts(&spec, &control, &mut |part| {
            self.world.publish(&part);
            published += 1;
            self.check(&format!("part {published} of {} into {:?}", spec.kind, spec.target));
            if published == parts {
                string.cancel(CancelCause::Asked);
            }
            Ok(())
        });
        match ended {
            Ok(result) => {
                self.world.publish(&result);
                self.world.cursors.advance(&spec);
                self.check(&format!("{} into {:?}", spec.kind, spec.target));
                true
            }
            Err(error) => {
                assert_eq!((error.kind(), published), (Kind::Cancelled, parts), "{error}");
                self.ends += 1;
                self.check("an end");
                false
            }
        }
    }

    /// Ends the next job behind its first part, the one that is picked then behind its second, and so on,
    /// until one comes to its end.
    fn work(&mut self) {
        for parts in 1.. {
            let Some(spec) = self.world.pick() else { return };
            if self.run(&spec, parts) {
                return;
            }
        }
    }

    /// So does a request for a range.
    fn compact_range(&mut self, range: KeyRange) {
        let mut request = RangeRequest::new(range, 0..=u8::MAX, self.numbers.below(2) == 0);
        let mut parts = 1;
        loop {
            match pick_range(&self.world.shape(), &self.world.limits, &Claims::new(), &request) {
                RangeStep::Done => return,
                RangeStep::Busy => panic!("nothing is claimed"),
                RangeStep::Job(spec) if self.run(&spec, parts) => {
                    request.advance(&spec);
                    parts = 1;
                }
                RangeStep::Job(_) => parts += 1,
            }
        }
    }

    fn step(&mut self) {
        match self.numbers.below(10) {
            0..=3 => self.write(),
            4 if self.world.snapshots.len() < 3 => self.world.snapshots.push(SeqNo(self.seq)),
            5 if !self.world.snapshots.is_empty() => {
                let at = self.numbers.below(self.world.snapshots.len() as u64);
                self.world.snapshots.remove(at as usize);
            }
            6 => {
                let start = self.numbers.below(KEYS);
                let end = start + self.numbers.below(KEYS);
                self.compact_range(KeyRange::closed(&key_of(start), &key_of(end)));
            }
            _ => self.work(),
        }
        self.world.snapshots.dedup();
    }
}

/// Returns behind how many parts jobs were ended.
fn run(seed: u64, steps: usize) -> usize {
    println!("seed {seed}");
    let mut model = Model::new(seed);
    (0..steps).for_each(|_| model.step());
    // What ended jobs have left is done by later ones, which come to their end: a job that is ended behind
    // its first part each time may publish the same part again and again.
    let mut jobs = 0;
    while let Some(spec) = model.world.pick() {
        assert!(model.run(&spec, usize::MAX), "nothing ends it");
        jobs += 1;
        assert!(
            jobs < JOBS_MAX,
            "seed {seed}: the picker finds jobs without end, now {} into {:?}",
            spec.kind,
            spec.target
        );
    }
    model.world.snapshots.clear();
    let mut request = RangeRequest::new(KeyRange::all(), 0..=u8::MAX, true);
    while let RangeStep::Job(spec) =
        pick_range(&model.world.shape(), &model.world.limits, &Claims::new(), &request)
    {
        assert!(model.run(&spec, usize::MAX), "nothing ends it");
        request.advance(&spec);
    }
    let extents = model.world.extents();
    let entries: u64 = extents.iter().map(|(_, extent)| extent.meta.entries).sum();
    let rows: Vec<Row> = extents.iter().flat_map(|(_, extent)| support::rows_of(extent)).collect();
    assert_eq!(entries, seen(&rows, &[], SeqNo::MAX).len() as u64, "seed {seed}: garbage stays");
    model.ends
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a whole number"))
}

#[test]
fn every_reader_sees_the_same_behind_any_part_of_a_job_that_ends_there() {
    const SEEDS: u64 = 9;
    let count = number("TERRANE_PARTS_SEEDS", SEEDS).min(SEEDS);
    let start = number("TERRANE_PARTS_START", 0);
    let ends: usize = (start..start + count).map(|at| run(at % SEEDS, 24)).sum();
    assert!(count < SEEDS || ends > 20, "jobs were ended behind {ends} parts");
}
