//! N11: latency of single allocations of one thread, from 128 B to 16 KiB, with the flushes and fences that
//! each takes.
//!
//! `cargo bench -p terrane-pmem --bench allocators` prints a table. Beside Halloc: `malloc` of the system,
//! which keeps nothing, and a word of a mapped file that is stored and made durable by `msync`, the least
//! that an allocator on a plain file can do. Without `--bench`, every subject runs once with little.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::hint::black_box;
use std::time::Duration;

use terrane_base::env::{Clock, Env};
use terrane_device::pm::{Mapped, PlainMode, PmRegion, Volatile};
use terrane_pmem::{Emulated, Halloc, Owner, Profile};

const REGION_BYTES: u64 = 512 << 20;
const SIZES: [u64; 5] = [128, 512, 1 << 10, 4 << 10, 16 << 10];
/// Bytes of chunks: of objects, and of zones.
const CHUNK_BYTES: u64 = 2 << 20;
const ZONE_BYTES: u64 = 16 << 10;
const PRESETS: [(&str, Profile); 3] =
    [("DRAM", Profile::DRAM), ("Optane-like", Profile::OPTANE_LIKE), ("8x", Profile::DRAM_8X)];

/// Runs `allocate` `count` times; prints median and 99th percentile in nanoseconds, without what a look at
/// the clock takes.
fn measured(clock: &dyn Clock, count: usize, mut allocate: impl FnMut()) -> String {
    let look = (0..1000).map(|_| {
        let before = clock.now();
        clock.now() - before
    });
    let look = look.min().unwrap_or(Duration::ZERO);
    let mut taken = Vec::with_capacity(count);
    for _ in 0..count {
        let before = clock.now();
        allocate();
        taken.push((clock.now() - before).saturating_sub(look).as_nanos());
    }
    taken.sort_unstable();
    format!("{} / {}", taken[count / 2], taken[count * 99 / 100])
}

/// Allocations of `bytes` of a new region of `region_bytes`, each of `count` kept.
fn halloc_row(clock: &dyn Clock, profile: Profile, (bytes, count): (u64, usize), is_zone: bool) -> String {
    let chunk_bytes = if is_zone { ZONE_BYTES } else { CHUNK_BYTES };
    let room = (bytes.max(if is_zone { ZONE_BYTES } else { 128 }) * count as u64 * 2).min(REGION_BYTES);
    let region = Emulated::new(Volatile::new(room.max(4 * CHUNK_BYTES)), profile);
    // Memory that was touched, so that the first touch of pages is not measured.
    let zeros = vec![0; CHUNK_BYTES as usize];
    for at in (0..region.len() / CHUNK_BYTES).map(|chunk| chunk * CHUNK_BYTES) {
        region.write(at, &zeros).unwrap();
    }
    let halloc = Halloc::create(region, chunk_bytes, 1).unwrap();
    let before = halloc.region().counts();
    let cell = measured(clock, count, || match is_zone {
        true => drop(black_box(halloc.grant(1, Owner(1)).unwrap())),
        false => drop(black_box(halloc.allocate(bytes, Owner(1)).unwrap())),
    });
    let after = halloc.region().counts();
    let each = |before: u64, after: u64| (after - before) as f64 / count as f64;
    let (lines, fences) =
        (each(before.flushed_lines, after.flushed_lines), each(before.fences, after.fences));
    format!("{cell} ({lines:.3}, {fences:.3})")
}

fn malloc_row(clock: &dyn Clock, bytes: u64, count: usize) -> String {
    let mut held: Vec<Vec<u8>> = Vec::with_capacity(count);
    measured(clock, count, || held.push(black_box(Vec::with_capacity(bytes as usize))))
}

fn msync_row(clock: &dyn Clock, count: usize) -> String {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let region = Mapped::create(&dir.path().join("pool"), 16 << 20, PlainMode::Synced).unwrap();
    let mut turn = 0;
    measured(clock, count, || {
        turn = (turn + 8) % (16 << 20);
        region.store(turn, 1).unwrap();
        region.persist(turn, 8).unwrap();
    })
}

fn line(subject: &str, cells: impl Iterator<Item = String>) {
    println!("| {subject} | {} |", cells.collect::<Vec<_>>().join(" | "));
}

fn main() {
    let is_measured = std::env::args().any(|argument| argument == "--bench");
    let clock = Env::real().clock;
    // A million of the smallest; of others what has room.
    let count = |bytes: u64| match is_measured {
        true => (REGION_BYTES / 2 / bytes.max(256)).min(1_000_000) as usize,
        false => 10,
    };
    println!("N11: nanoseconds of an allocation, median / 99th percentile (lines flushed, fences)");
    println!("| subject | {} |", SIZES.map(|bytes| format!("{bytes} B")).join(" | "));
    println!("|---|{}", "---|".repeat(SIZES.len()));
    for (name, profile) in PRESETS {
        let objects = SIZES.iter().map(|bytes| halloc_row(&*clock, profile, (*bytes, count(*bytes)), false));
        line(&format!("Halloc, object, {name}"), objects);
        let zone = halloc_row(&*clock, profile, (ZONE_BYTES, count(ZONE_BYTES)), true);
        line(&format!("Halloc, zone of 16 KiB, {name}"), std::iter::once(zone));
    }
    line("malloc", SIZES.iter().map(|bytes| malloc_row(&*clock, *bytes, count(*bytes))));
    let synced = msync_row(&*clock, if is_measured { 500 } else { 1 });
    line("a word of a file, `msync`", std::iter::once(synced));
}
