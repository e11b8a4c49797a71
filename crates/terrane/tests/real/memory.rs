//! The memory of the whole process under a small ceiling: a child loads several times as much as the ceiling,
//! overwrites it, reads it in random order and scans it, by four or sixty-four threads, and says at its end
//! how much memory it had at most (`VmHWM` of `/proc/self/status`, with the text and the mapped segments).
//!
//! The promise is `memory_bytes` and 24 MiB (`docs/promises.md`) for a release build. This program is built
//! with debug assertions and information, and carries tests: [`SLACK`] is what it may have beyond. A process
//! whose memory follows its data passes that by far: the data are larger than both together.
//!
//! Not run where `/proc` is missing, and in the builds of sanitizers, which have memory of their own.

use std::path::Path;
use std::process::{Command, Stdio};

use terrane::{Batch, Compression, Db, Durability, Options};
use terrane_base::Rng;

use crate::{Outcome, number_from_env};

/// Ceilings in MiB, each with the threads and the rows that are loaded, a multiple of these.
const CEILINGS: [(u64, u64, u64); 4] =
    [(16, 4, 80_000), (16, 64, 80_000), (64, 4, 140_800), (64, 64, 140_800)];
const VALUE_BYTES: usize = 1000;
const MIB: u64 = 1 << 20;
/// Memory that the promise allows beside the ceiling.
const BESIDE: u64 = 24 * MIB;
/// Memory that a test build may take beyond the promise.
const SLACK: u64 = 8 * MIB;

pub(crate) fn run() -> Outcome {
    if option_env!("RUSTFLAGS").is_some_and(|flags| flags.contains("sanitizer")) {
        return Outcome::NotRun("a sanitizer has memory of its own".to_owned());
    }
    if most_so_far().is_none() {
        return Outcome::NotRun("/proc/self/status has no VmHWM".to_owned());
    }
    let mut seen = Vec::new();
    for (ceiling, threads, rows) in CEILINGS {
        let most = of_child(ceiling, threads, rows);
        let allowed = ceiling * MIB + BESIDE + SLACK;
        assert!(rows * VALUE_BYTES as u64 > allowed, "a process that held its data would pass the limit");
        assert!(
            most <= allowed,
            "memory_bytes {ceiling} MiB, {threads} threads: the process had {most}, allowed are {allowed}"
        );
        seen.push(format!("{threads} threads {} of {} MiB", most / MIB, allowed / MIB));
    }
    Outcome::Passed(seen.join(", "))
}

/// The most memory that a child has under this ceiling, in bytes.
fn of_child(ceiling: u64, threads: u64, rows: u64) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .env("TERRANE_REAL_CHILD", "memory")
        .env("TERRANE_REAL_DIR", dir.path().join("db"))
        .env("TERRANE_REAL_MEMORY", ceiling.to_string())
        .env("TERRANE_REAL_THREADS", threads.to_string())
        .env("TERRANE_REAL_ROWS", rows.to_string())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{ceiling} MiB: {}: {complaint}", output.status);
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

/// The most memory that this process had, in bytes.
fn most_so_far() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    most.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// The child: prints its most memory in bytes.
pub(crate) fn child(dir: &Path) {
    let (rows, threads) =
        (number_from_env("TERRANE_REAL_ROWS", 1), number_from_env("TERRANE_REAL_THREADS", 1));
    let options = Options {
        memory_bytes: number_from_env("TERRANE_REAL_MEMORY", 16) * MIB,
        compression: Compression::None,
        compression_last: Compression::None,
        background_threads: 2,
        ..Options::default()
    };
    let db = Db::open_with(dir, &options).unwrap();
    let share = rows / threads;
    by_threads(threads, &|thread| write(&db, thread, thread * share..(thread + 1) * share));
    // Rows of every part of the database, so that overwrites, flushes and merges meet.
    by_threads(threads, &|thread| write(&db, thread + threads, (thread..rows).step_by(8 * threads as usize)));
    by_threads(threads, &|thread| {
        let mut numbers = Rng::new(thread);
        for _ in 0..share / 2 {
            let key = numbers.below(rows).to_be_bytes();
            assert!(
                db.get(key).unwrap().is_some_and(|value| value.len() == VALUE_BYTES),
                "every row is there"
            );
        }
        let from = (thread * share).to_be_bytes();
        let read = db.range(from..).take(share as usize / 2).map(|row| row.unwrap().1.len()).sum::<usize>();
        assert_eq!(read, share as usize / 2 * VALUE_BYTES);
    });
    db.close().unwrap();
    println!("{}", most_so_far().unwrap());
}

fn by_threads(threads: u64, work: &(dyn Fn(u64) + Sync)) {
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || work(thread));
        }
    });
}

/// Writes these rows, with values of noise, a few in each batch.
fn write(db: &Db, seed: u64, rows: impl Iterator<Item = u64>) {
    let (mut numbers, mut value) = (Rng::new(seed), [0; VALUE_BYTES]);
    let mut batch = Batch::new();
    for row in rows {
        value.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&numbers.next_u64().to_le_bytes()));
        batch.put(db.default_table(), row.to_be_bytes(), value).unwrap();
        if batch.len() == 16 {
            db.write(&batch, Durability::Buffered).unwrap();
            batch.clear();
        }
    }
    db.write(&batch, Durability::Buffered).unwrap();
}
