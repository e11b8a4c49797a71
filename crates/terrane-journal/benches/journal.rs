//! Commits and replay: the ring alone, mapped against written segments, sync groups, replay per core.
//!
//! `cargo bench -p terrane-journal`; figures and their meaning are in `docs/design/0001-mapped-append.md`.
#![allow(
    missing_docs,
    unsafe_code,
    clippy::unwrap_used,
    reason = "a benchmark; the written medium fills raw segments"
)]

mod listed;
mod written;

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use listed::Listed;
use terrane_base::env::Env;
use terrane_base::{Batch, SegmentId, SeqNo, TableId};
use terrane_device::{Call, Disk, FaultyDisk, PosixDisk, Region};
use terrane_format::segment;
use terrane_journal::{
    FileJournal, Journal, JournalSettings, JournalStart, ListedSegment, NullJournal, Poison, ReplaySettings,
    RingJournal, SegmentRegistrar, replay,
};
use written::WrittenMedium;

/// A journal on its own directory, and a count of its `fdatasync` calls.
struct Bed {
    journal: Box<dyn Journal>,
    disk: FaultyDisk,
    _dir: tempfile::TempDir,
}

fn bed(kind: &str) -> Bed {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let disk = FaultyDisk::new(Arc::new(PosixDisk::new()));
    let (settings, start) = (JournalSettings::default(), JournalStart::default());
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let journal: Box<dyn Journal> = match kind {
        "null" => Box::new(NullJournal::new(&settings, &start).unwrap()),
        "mapped" => Box::new(
            FileJournal::open(
                shared,
                dir.path(),
                &settings,
                &Env::real(),
                Arc::new(Listed::default()),
                &start,
            )
            .unwrap(),
        ),
        _ => {
            let medium = WrittenMedium::new(shared, dir.path(), settings.segment_bytes);
            Box::new(RingJournal::new(medium, Arc::new(Poison::new()), &settings, &start).unwrap())
        }
    };
    Bed { journal, disk, _dir: dir }
}

fn batch(value_len: usize) -> Batch {
    let mut batch = Batch::new();
    batch.put(TableId::DEFAULT, &[3; 16], &vec![5; value_len]).unwrap();
    batch
}

/// Time for `commits` commits by `threads` threads; gives up old segments as it goes, as flushes do.
fn run(journal: &dyn Journal, threads: u64, commits: u64, value_len: usize, sync: bool) -> Duration {
    let batch = batch(value_len);
    let clock = Env::real().clock;
    // The first segments are made and the background is idle.
    journal.commit(&batch, sync, &mut |_| {}).unwrap();
    let start = clock.now();
    let commit_share = |thread: u64| {
        for number in 0..commits.div_ceil(threads) {
            let last = journal.commit(&batch, sync, &mut |placed| {
                black_box(placed.offset);
            });
            black_box(last.unwrap());
            if thread == 0 && number % 4096 == 0 {
                journal.trim(SegmentId(u64::MAX)).unwrap();
            }
        }
    };
    if threads == 1 {
        commit_share(0);
    } else {
        std::thread::scope(|scope| {
            for thread in 0..threads {
                scope.spawn(move || commit_share(thread));
            }
        });
    }
    clock.now() - start
}

/// The cost of placing a record without any ring: header, checksums, copy.
fn floor(c: &mut Criterion) {
    let (region, batch) = (Region::heap(64 << 20), batch(100));
    region.prefault().unwrap();
    let (seed, len) =
        (segment::segment_seed(SegmentId(1), Some(0)), segment::group_len(1, batch.bytes().len()));
    let mut at = 64;
    c.bench_function("place without ring, 100 B", |b| {
        b.iter(|| {
            at = if at + len > region.len() { 64 } else { at };
            let header = segment::GroupHeader {
                len: len as u32,
                first_seq: SeqNo(at as u64),
                durable: SeqNo(0),
                record_count: 1,
                batch_count: 1,
                edits: 0,
            };
            let (header, group) = header.encode(seed, at as u64);
            let crc = segment::batch_checksum(group, at as u64 + 32, 1, batch.bytes());
            let head = segment::encode_batch_header(batch.bytes().len() as u32, 1, crc);
            // SAFETY: in bounds, and the region is this function's.
            unsafe {
                region.write(at, &header);
                region.write(at + 32, &head);
                region.write(at + 44, batch.bytes());
            }
            at += len;
            black_box(segment::chain(segment::chain(1, group), crc))
        });
    });
}

fn unsynced(c: &mut Criterion) {
    for value_len in [100, 1000, 100_000] {
        let mut group = c.benchmark_group(format!("unsynced commit, {value_len} B"));
        group.throughput(Throughput::Elements(1)).sample_size(10).measurement_time(Duration::from_secs(2));
        for kind in ["null", "mapped", "written"] {
            for threads in [1, 2, 4] {
                let bed = bed(kind);
                group.bench_function(BenchmarkId::new(kind, threads), |b| {
                    b.iter_custom(|commits| run(&*bed.journal, threads, commits, value_len, false));
                });
            }
        }
    }
}

/// Both media in turn, so that the noise of the device and of neighbours meets both; medians over the rounds.
fn synced(_: &mut Criterion) {
    let is_test = std::env::args().any(|arg| arg == "--test");
    let rounds = if is_test { 1 } else { 60 };
    for threads in [1, 4, 16] {
        let beds = [("mapped", bed("mapped")), ("written", bed("written"))];
        let commits = if is_test { threads } else { 40 * threads };
        let mut times = [Vec::new(), Vec::new()];
        let mut syncs = [0, 0];
        // The first round writes the zeros of the new files and is not counted.
        for round in 0..=rounds {
            for (index, (_, bed)) in beds.iter().enumerate() {
                let before = bed.disk.count(Call::Sync);
                let time = run(&*bed.journal, threads, commits, 100, true);
                if round > 0 {
                    times[index].push(time.as_nanos() as u64 / commits);
                    syncs[index] += bed.disk.count(Call::Sync) - before;
                }
            }
        }
        for (index, (kind, _)) in beds.iter().enumerate() {
            times[index].sort_unstable();
            let per_sync = (rounds * commits) as f64 / syncs[index].max(1) as f64;
            println!(
                "synced commit, 100 B, {threads:2} threads, {kind:7}: median {:7.1} us a commit, {per_sync:4.1} commits a sync",
                times[index][times[index].len() / 2] as f64 / 1000.0,
            );
        }
    }
}

fn replaying(c: &mut Criterion) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let disk: Arc<dyn Disk> = Arc::new(PosixDisk::new());
    let listed = Arc::new(Listed::default());
    let registrar = Arc::clone(&listed) as Arc<dyn SegmentRegistrar>;
    let (settings, start) = (JournalSettings::default(), JournalStart::default());
    let journal =
        FileJournal::open(Arc::clone(&disk), dir.path(), &settings, &Env::real(), registrar, &start);
    let journal = journal.unwrap();
    let batch = batch(100);
    let commits = if std::env::args().any(|arg| arg == "--test") { 10_000 } else { 2_000_000 };
    for _ in 0..commits {
        journal.commit(&batch, false, &mut |_| {}).unwrap();
    }
    journal.close().unwrap();
    let bytes = journal.segments().iter().map(|segment| segment.used).sum();
    let listed = listed.0.lock().unwrap().clone();
    report_cpu(bytes, &mut || replay_once(&disk, dir.path(), &listed, 1, commits));
    let mut group = c.benchmark_group("replay, 100 B records");
    group.throughput(Throughput::Bytes(bytes)).sample_size(10);
    for threads in [1, 2] {
        group.bench_function(BenchmarkId::from_parameter(threads), |b| {
            b.iter(|| replay_once(&disk, dir.path(), &listed, threads, commits));
        });
    }
}

fn replay_once(disk: &Arc<dyn Disk>, dir: &Path, listed: &[ListedSegment], threads: usize, commits: u64) {
    let how =
        ReplaySettings { threads, durable_floor: SeqNo(0), flushed: SeqNo(0), make_durable: false, salt: 0 };
    let sink = |_: &Arc<_>, offset: usize, _: &terrane_base::record::Record<'_>, _: SeqNo| {
        black_box(offset);
        Ok(())
    };
    let replayed = replay(&**disk, dir, listed, &how, &*Env::real().spawn, &sink).unwrap();
    assert_eq!(replayed.last_seq, SeqNo(commits));
}

/// Prints the speed in time on the processor, which neighbours disturb less than wall time (Linux only).
fn report_cpu(bytes: u64, work: &mut dyn FnMut()) {
    work();
    let before = on_cpu();
    (0..5).for_each(|_| work());
    let nanos = on_cpu() - before;
    println!("replay, 100 B records: {:.2} GB/s of processor time", 5.0 * bytes as f64 / nanos.max(1) as f64);
}

/// Nanoseconds that this thread has run.
fn on_cpu() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|nanos| nanos.parse::<u64>().ok()).unwrap_or_default()
}

/// As [`report_cpu`], for lone unsynced commits; the best of some rounds.
fn commit_cpu(_: &mut Criterion) {
    let commits = if std::env::args().any(|arg| arg == "--test") { 1000 } else { 2_000_000 };
    for kind in ["null", "mapped", "written"] {
        let bed = bed(kind);
        let round = || {
            let before = on_cpu();
            run(&*bed.journal, 1, commits, 100, false);
            (on_cpu() - before) / commits
        };
        let best = (0..5).map(|_| round()).min().unwrap_or_default();
        println!("unsynced commit, 100 B,  1 thread, {kind:7}: {best} ns of processor time");
    }
}

criterion_group!(benches, floor, commit_cpu, unsynced, synced, replaying);
criterion_main!(benches);
