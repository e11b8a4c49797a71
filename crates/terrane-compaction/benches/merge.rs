//! Merges in memory: entries of 16 B keys and 100 B values, in bytes of input per second.
//!
//! * `dense_1_1`: both sources hold every second key: nothing is reused.
//! * `dense_1_10`: one entry of the newer source between ten of the older one.
//! * `overwrite_1_10`: the same, but each entry replaces one.
//! * `clustered_1_10`: the newer source has its entries in clusters: blocks between them are copied.
//! * `disjoint`: nothing overlaps: extents are re-linked.
//! * `disjoint_lz4`: nothing overlaps, but the target compresses: everything is decoded.
//! * `flush_1_1`: entries in memory into a level of the same size.
//! * `runs_N`: N sources that hold every Nth key, so that each entry comes from another source than the
//!   one before.
#![allow(clippy::unwrap_used, reason = "a failed step fails the bench")]
#![expect(missing_docs, reason = "criterion's macro makes a public function")]

use std::path::Path;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use terrane_base::env::Env;
use terrane_base::options::{Compression, Options};
use terrane_base::{Cursor, Entry, RecordKind, Result, Rng, SeqKind, SeqNo, TableId};
use terrane_compaction::{
    Claims, Compactor, FlushPlan, Input, JobControl, JobKind, JobResult, JobSpec, KeyRange, Limits,
    LocalCompactor, OutputSettings, TableShape, plan_dump, plan_flush,
};
use terrane_device::{Disk, MemDisk};
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::Place;
use terrane_levels::Metasnapshot;
use terrane_storage::{LocalStore, SLOT_BYTES, Store, StoreSettings};

/// Entries of the larger source.
const ENTRIES: u64 = 200_000;
const VALUE_BYTES: usize = 100;

/// Numbered keys without a table of rows: what the merge costs must not drown in what its input costs.
struct NumberCursor {
    numbers: Vec<u64>,
    at: usize,
    seq_kind: SeqKind,
    key: [u8; 16],
    value: Vec<u8>,
}

impl NumberCursor {
    fn new(numbers: Vec<u64>, seq: u64) -> Self {
        let mut rng = Rng::new(seq);
        let value = std::iter::repeat_with(|| rng.below(32) as u8);
        let value = value.take(VALUE_BYTES).collect();
        let seq_kind = SeqKind::new(SeqNo(seq), RecordKind::Put);
        let at = numbers.len();
        NumberCursor { numbers, at, seq_kind, key: [0; 16], value }
    }

    fn place(&mut self, at: usize) {
        self.at = at;
        if let Some(number) = self.numbers.get(at) {
            self.key = key(*number);
        }
    }
}

fn key(number: u64) -> [u8; 16] {
    let mut key = *b"user000000000000";
    let mut rest = number;
    for digit in key[4..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

impl Cursor for NumberCursor {
    fn entry(&self) -> Option<Entry<'_>> {
        let is_placed = self.at < self.numbers.len();
        is_placed.then(|| Entry { key: &self.key, seq_kind: self.seq_kind, value: &self.value })
    }

    fn seek(&mut self, wanted: &[u8], _seq: SeqNo) -> Result<()> {
        self.place(self.numbers.partition_point(|number| key(*number).as_slice() < wanted));
        Ok(())
    }

    fn seek_before(&mut self, wanted: &[u8]) -> Result<()> {
        let at = self.numbers.partition_point(|number| key(*number).as_slice() < wanted);
        self.place(at.checked_sub(1).unwrap_or(self.numbers.len()));
        Ok(())
    }

    fn seek_first(&mut self) -> Result<()> {
        self.place(0);
        Ok(())
    }

    fn seek_last(&mut self) -> Result<()> {
        self.place(self.numbers.len().wrapping_sub(1));
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.place(self.at + 1);
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        self.place(self.at.checked_sub(1).unwrap_or(self.numbers.len()));
        Ok(())
    }
}

struct Bench {
    store: Arc<dyn Store>,
    compactor: LocalCompactor,
    limits: Limits,
}

impl Bench {
    fn new() -> Bench {
        let disk = MemDisk::new();
        let dir = Path::new("data");
        disk.create_dir(dir).unwrap();
        let store = LocalStore::open(Arc::new(disk), dir, StoreSettings::default()).unwrap();
        store.restore(&mut std::iter::empty()).unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        let mut limits = Limits::from_options(&Options::default().resolve(1).unwrap());
        (limits.compression, limits.compression_last) = (Compression::None, Compression::None);
        Bench { compactor: LocalCompactor::new(Arc::clone(&store)), store, limits }
    }

    fn control() -> JobControl {
        JobControl::new(Env::real().clock, None)
    }

    /// Writes a run of numbered keys.
    fn extents(&self, numbers: Vec<u64>, seq: u64) -> Vec<ExtentMeta> {
        let metasnapshot = Metasnapshot::<Arc<ExtentMeta>>::new();
        let spec = plan_dump(&TableShape::of(TableId(1), &metasnapshot, &[]), &self.limits, 1);
        let result = self
            .compactor
            .dump_run(&spec, &mut NumberCursor::new(numbers, seq), Vec::new(), &Self::control())
            .unwrap();
        result.added.iter().map(|meta| (**meta).clone()).collect()
    }

    fn merge_spec(&self, newer: Vec<u64>, older: Vec<u64>, compression: Compression) -> JobSpec {
        let input =
            |level, numbers, seq| Input { place: Place::Level(level), extents: self.extents(numbers, seq) };
        self.spec_of(vec![input(1, newer, 10), input(2, older, 5)], compression)
    }

    /// Merges `count` runs of every `count`th key.
    fn runs_spec(&self, count: u64) -> JobSpec {
        let input = |run| Input {
            place: Place::Run(run),
            extents: self.extents((0..ENTRIES / count).map(|n| count * n + run).collect(), count - run),
        };
        self.spec_of((0..count).map(input).collect(), Compression::None)
    }

    fn spec_of(&self, inputs: Vec<Input>, compression: Compression) -> JobSpec {
        let metas = || inputs.iter().flat_map(|input| &input.extents);
        let smallest = metas().map(|meta| &meta.smallest).min().unwrap().clone();
        let largest = metas().map(|meta| &meta.largest).max().unwrap().clone();
        let output = OutputSettings { compression, ..OutputSettings::new(&self.limits, false, false) };
        JobSpec {
            kind: JobKind::Level,
            request: None,
            table: TableId(1),
            inputs,
            values: Vec::new(),
            mended: None,
            target: Place::Level(2),
            range: KeyRange::closed(&smallest, &largest),
            below: Vec::new(),
            below_seq_max: SeqNo(0),
            grandparents: Vec::new(),
            grandparent_bytes_max: u64::MAX,
            snapshots: Vec::new(),
            output,
            drops_deletes: false,
            rewrites: false,
            part_bytes: u64::MAX,
            extent_bytes_max: SLOT_BYTES as u64,
        }
    }

    fn give_back(&self, result: &JobResult) {
        for meta in result.written() {
            self.store.free(meta.id, meta.slots).unwrap();
        }
    }
}

fn bench_merge(c: &mut Criterion, name: &str, newer: Vec<u64>, older: Vec<u64>, compression: Compression) {
    let bench = Bench::new();
    let spec = bench.merge_spec(newer, older, compression);
    bench_spec(c, name, &bench, &spec);
}

fn bench_spec(c: &mut Criterion, name: &str, bench: &Bench, spec: &JobSpec) {
    let mut group = c.benchmark_group("merge");
    group.throughput(Throughput::Bytes(spec.input_bytes()));
    group.sample_size(10);
    group.bench_function(name, |b| {
        b.iter(|| {
            let result = bench.compactor.run(spec, &Bench::control()).unwrap();
            bench.give_back(&result);
            result
        });
    });
    group.finish();
}

fn bench_flush(c: &mut Criterion) {
    let bench = Bench::new();
    let older = bench.extents((0..ENTRIES).map(|n| 2 * n).collect(), 5);
    let mut cursor = NumberCursor::new((0..ENTRIES).map(|n| 2 * n + 1).collect(), 10);
    let bytes: u64 = older.iter().map(|meta| u64::from(meta.bytes)).sum();
    let metasnapshot = {
        let add =
            |meta: ExtentMeta| terrane_levels::Change::Add { place: Place::Level(1), extent: Arc::new(meta) };
        Metasnapshot::new().apply(older.into_iter().map(add).collect()).unwrap()
    };
    let mut group = c.benchmark_group("merge");
    group.throughput(Throughput::Bytes(2 * bytes));
    group.sample_size(10);
    group.bench_function("flush_1_1", |b| {
        b.iter(|| {
            let mut from = Vec::new();
            loop {
                let shape = TableShape::of(TableId(1), &metasnapshot, &[]);
                let plan = plan_flush(&shape, &bench.limits, &Claims::new(), &from, bytes);
                let FlushPlan::Step(spec) = plan else { panic!("{plan:?}") };
                let result =
                    bench.compactor.flush_step(&spec, &mut cursor, &from, &Bench::control()).unwrap();
                bench.give_back(&result);
                match result.next {
                    Some(next) => from = next,
                    None => break,
                }
            }
        });
    });
    group.finish();
}

fn merges(c: &mut Criterion) {
    let all = |step: u64, start: u64| (0..ENTRIES / step).map(|n| start + 2 * step * n).collect::<Vec<_>>();
    bench_merge(c, "dense_1_1", all(1, 1), all(1, 0), Compression::None);
    bench_merge(c, "dense_1_10", all(10, 1), all(1, 0), Compression::None);
    bench_merge(c, "overwrite_1_10", all(10, 0), all(1, 0), Compression::None);
    let clustered = (0..ENTRIES / 10).map(|n| 20_000 * (n / 1000) + n % 1000 * 2 + 1).collect();
    bench_merge(c, "clustered_1_10", clustered, all(1, 0), Compression::None);
    let above = (0..ENTRIES).map(|n| 10 * ENTRIES + n).collect::<Vec<_>>();
    bench_merge(c, "disjoint", above.clone(), all(1, 0), Compression::None);
    bench_merge(c, "disjoint_lz4", above, all(1, 0), Compression::Lz4);
    bench_flush(c);
    for count in [2, 8, 64, 256] {
        let bench = Bench::new();
        let spec = bench.runs_spec(count);
        bench_spec(c, &format!("runs_{count}"), &bench, &spec);
    }
}

criterion_group!(benches, merges);
criterion_main!(benches);
