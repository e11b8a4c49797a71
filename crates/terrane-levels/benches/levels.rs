//! Levels, metasnapshots, pins and the manifest at scale. Run with `cargo bench -p terrane-levels`.
#![expect(missing_docs, reason = "criterion's macro makes a public function")]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use terrane_base::env::Env;
use terrane_base::{ExtentId, Rng, SeqNo, TableId};
use terrane_device::{Disk, MemDisk, PosixDisk};
use terrane_format::extent::{ExtentMeta, Handle, extent_bytes};
use terrane_format::manifest::{Edit, EditOp, Place};
use terrane_levels::{HasMeta, Level, Manifest, ManifestSettings, Pins, Removal};

type Extents = Arc<ExtentMeta>;

fn key(number: u64) -> Vec<u8> {
    format!("user{number:012}").into_bytes()
}

fn meta(slot: u32, first: u64, last: u64) -> ExtentMeta {
    let index = Handle { offset: 2_000_000, len: 4096, checksum: 1 };
    let filter = Handle { offset: 2_004_096, len: 4096, checksum: 1 };
    ExtentMeta {
        id: ExtentId { file: 1 + slot / 512, slot: slot % 512 },
        bytes: extent_bytes(2_008_192) as u32,
        raw_bytes: 4 << 20,
        smallest: key(first),
        largest: key(last),
        seq_min: SeqNo(1),
        seq_max: SeqNo(u64::from(slot) + 1),
        entries: 20_000,
        deletes: 5,
        blocks: 250,
        index,
        filter,
        format_version: 1,
        ..ExtentMeta::default()
    }
}

fn numbered(slot: u32) -> Extents {
    Arc::new(meta(slot, u64::from(slot) * 1000, u64::from(slot) * 1000 + 999))
}

fn level(count: u32) -> Level<Extents> {
    Level::from_extents((0..count).map(numbered).collect()).expect("disjoint")
}

fn bench_find(c: &mut Criterion) {
    for count in [100u32, 10_000, 100_000] {
        let level = level(count);
        // Keys are not asked for in order.
        let mut rng = Rng::new(1);
        let keys: Vec<_> = (0..4096).map(|_| key(rng.below(u64::from(count) * 1000))).collect();
        let mut at = 0;
        c.bench_function(&format!("find in {count} extents"), |b| {
            b.iter(|| {
                at = (at + 1) % keys.len();
                black_box(level.covering(black_box(&keys[at])))
            });
        });
        let plain: Vec<Extents> = level.iter().cloned().collect();
        c.bench_function(&format!("find in {count} extents, plain binary search"), |b| {
            b.iter(|| {
                at = (at + 1) % keys.len();
                let index = plain.partition_point(|extent| extent.largest < *black_box(&keys[at]));
                black_box(plain.get(index).filter(|extent| extent.smallest <= keys[at]))
            });
        });
    }
}

fn bench_replace(c: &mut Criterion) {
    for count in [10_000u32, 500_000] {
        let level = level(count);
        let step = count / 10;
        let old: Vec<_> = (0..10).map(|i| level.get((i * step + 7) as usize).clone()).collect();
        let new: Vec<_> = (0..10u32)
            .map(|i| {
                let first = u64::from(i * step + 7) * 1000;
                Arc::new(meta(count + i, first, first + 999))
            })
            .collect();
        c.bench_function(&format!("replace 10 of {count} extents"), |b| {
            b.iter(|| {
                let meta = |extent: &Extents| extent.meta().id;
                let removals: Vec<_> =
                    old.iter().map(|e| Removal { id: meta(e), smallest: &e.smallest }).collect();
                black_box(level.replace(&removals, new.clone()).expect("same ranges"))
            });
        });
    }
}

fn bench_pins(c: &mut Criterion) {
    let pins = Pins::new();
    let _held: Vec<_> = (0..32).map(|seq| pins.pin(|| SeqNo(seq))).collect();
    c.bench_function("pin and unpin beside 32 pins", |b| b.iter(|| black_box(pins.pin(|| SeqNo(100)))));
}

fn still() -> ManifestSettings {
    ManifestSettings {
        roll_bytes_min: u64::MAX,
        roll_factor: 0,
        roll_bytes_max: u64::MAX,
        ..ManifestSettings::default()
    }
}

/// A manifest with `count` extents in its snapshot.
fn filled(disk: &Arc<dyn Disk>, dir: &Path, count: u32) -> Manifest {
    let (manifest, _) =
        Manifest::create_with(disk.clone(), dir, &Env::real(), Vec::new(), still()).expect("new");
    let slots: Vec<u32> = (0..count).collect();
    for part in slots.chunks(50_000) {
        let add = |slot: &u32| EditOp::add(TableId::DEFAULT, Place::Level(2), numbered(*slot));
        manifest.append(&Edit { ops: part.iter().map(add).collect() }).expect("space");
    }
    manifest.roll().expect("space");
    manifest
}

fn bench_manifest(c: &mut Criterion) {
    let mut group = c.benchmark_group("manifest");
    group.sample_size(10);
    let count = if std::env::args().any(|arg| arg == "--test") { 5_000 } else { 500_000 };
    let dir = Path::new("/db");
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let manifest = filled(&disk, dir, count);
    group.bench_function(format!("roll {count} extents, memory device"), |b| {
        b.iter(|| manifest.roll().expect("space"));
    });
    group.bench_function(format!("open {count} extents, memory device"), |b| {
        b.iter_batched(
            || (),
            |()| Manifest::open_with(disk.clone(), dir, still()).expect("whole"),
            BatchSize::PerIteration,
        );
    });
    let mut seq = 0;
    group.bench_function(format!("append beside {count} extents, memory device"), |b| {
        b.iter(|| {
            seq += 1;
            let old = numbered(7);
            let mut new = meta(count + seq % 2, 7000, 7999);
            new.seq_max = SeqNo(u64::from(count) + 9);
            let new = Arc::new(new);
            let swap = |from: &ExtentMeta, to: &Extents| Edit {
                ops: vec![
                    EditOp::remove(TableId::DEFAULT, Place::Level(2), from),
                    EditOp::add(TableId::DEFAULT, Place::Level(2), to.clone()),
                ],
            };
            manifest.append(&swap(&old, &new)).expect("space");
            manifest.append(&swap(&new, &old)).expect("space");
        });
    });
    println!("manifest of {} appends: {:?}", 2 * seq, manifest.size());
    group.bench_function(format!("open {count} extents and those edits"), |b| {
        b.iter(|| Manifest::open_with(disk.clone(), dir, still()).expect("whole"));
    });
    group.finish();
}

fn bench_files(c: &mut Criterion) {
    let mut group = c.benchmark_group("manifest on files");
    group.sample_size(10);
    let root = tempfile::tempdir().expect("a temporary directory");
    let dir = root.path().join("db");
    let disk: Arc<dyn Disk> = Arc::new(PosixDisk::new());
    let manifest = filled(&disk, &dir, 1000);
    let mut seq = 0;
    group.bench_function("append, durable", |b| {
        b.iter(|| {
            seq += 1;
            manifest.append(&Edit { ops: vec![EditOp::Durable { seq: SeqNo(seq) }] }).expect("space");
        });
    });
    group.finish();
}

criterion_group!(benches, bench_find, bench_replace, bench_pins, bench_manifest, bench_files);
criterion_main!(benches);
