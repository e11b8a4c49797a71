//! Costs of calls to the real device and to the one in memory.
#![expect(missing_docs, reason = "criterion's macros make an undocumented function")]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use terrane_device::{Disk, File, FileRead, MemDisk, OpenMode, PosixDisk, Region};

const FILE_BYTES: usize = 64 << 20;
const SLOT: usize = 2 << 20;

fn filled(disk: &dyn Disk, dir: &Path, name: &str, direct: bool) -> Arc<dyn File> {
    let file = disk.open(&dir.join(name), OpenMode::Create, direct).expect("the directory is writable");
    file.write_at(0, &vec![7; FILE_BYTES]).expect("the device has room");
    file.sync().expect("the device works");
    file
}

fn reads(c: &mut Criterion) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the build directory is writable");
    let mem = MemDisk::new();
    let files = [
        ("cached", filled(&PosixDisk::new(), dir.path(), "cached", false)),
        ("direct, bounced", filled(&PosixDisk::new(), dir.path(), "direct", true)),
        ("in memory", filled(&mem, Path::new(""), "memory", false)),
    ];
    let mut group = c.benchmark_group("read 16 KiB");
    group.sample_size(20);
    for (name, file) in files {
        let mut buf = vec![0; (16 << 10) + 1];
        let mut turn = 0usize;
        group.bench_function(name, |b| {
            b.iter(|| {
                turn = (turn + 7919 * 4096) % (FILE_BYTES - buf.len());
                // From the second byte: an unaligned buffer.
                file.read_at(turn as u64, &mut buf[1..]).expect("within the file");
                black_box(&buf);
            });
        });
    }
    group.finish();
}

/// Scattered reads of 16 KiB, 32 at a time: one after the other, and as one batch.
fn batches(c: &mut Criterion) {
    const DEPTH: usize = 32;
    const LEN: usize = 16 << 10;
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the build directory is writable");
    let disk = PosixDisk::new();
    let mut group = c.benchmark_group("32 scattered reads of 16 KiB");
    group.sample_size(20);
    group.throughput(criterion::Throughput::Elements(DEPTH as u64));
    for (name, direct) in [("cached", false), ("direct", true)] {
        let file = filled(&disk, dir.path(), name, direct);
        let mut bufs = vec![vec![0; LEN]; DEPTH];
        let mut turn = 0;
        let mut next = move || {
            turn = (turn + 7919 * 4096 + 13) % (FILE_BYTES - LEN);
            turn as u64
        };
        group.bench_function(format!("{name}, alone"), |b| {
            b.iter(|| {
                for buf in &mut bufs {
                    file.read_at(next(), buf).expect("within the file");
                }
            });
        });
        group.bench_function(format!("{name}, batch"), |b| {
            b.iter(|| {
                let mut reads: Vec<FileRead<'_>> =
                    bufs.iter_mut().map(|buf| FileRead::new(&*file, next(), buf)).collect();
                disk.read_batch(&mut reads);
                assert!(reads.iter().all(|read| read.result.is_ok()), "within the file");
            });
        });
    }
    group.finish();
}

fn space(c: &mut Criterion) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the build directory is writable");
    let file = filled(&PosixDisk::new(), dir.path(), "space", false);
    let mut group = c.benchmark_group("2 MiB of a file");
    group.sample_size(20);
    let slots = FILE_BYTES / SLOT;
    let mut turn = 0;
    group.bench_function("punch and reserve again", |b| {
        b.iter(|| {
            turn = (turn + 1) % slots;
            file.punch((turn * SLOT) as u64, SLOT as u64).expect("the device works");
            file.allocate((turn * SLOT) as u64, SLOT as u64).expect("the device has room");
        });
    });
    group.finish();
}

fn regions(c: &mut Criterion) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the build directory is writable");
    let mut group = c.benchmark_group("16 MiB region");
    group.sample_size(10);
    group.bench_function("heap, prefault", |b| {
        b.iter_batched(
            || Region::heap(16 << 20),
            |region| region.prefault().map(|()| region),
            BatchSize::PerIteration,
        );
    });
    let mut number = 0;
    let mut mapped = || {
        number += 1;
        let path = dir.path().join(number.to_string());
        let file = PosixDisk::new().open(&path, OpenMode::Create, false).expect("the directory is writable");
        file.allocate(0, 16 << 20).expect("the device has room");
        PosixDisk::new().remove(&path).expect("just made");
        file.map(16 << 20, true).expect("allocated")
    };
    group.bench_function("mapped file, prefault", |b| {
        b.iter_batched(&mut mapped, |region| region.prefault().map(|()| region), BatchSize::PerIteration);
    });
    group.finish();
}

criterion_group!(benches, reads, batches, space, regions);
criterion_main!(benches);
