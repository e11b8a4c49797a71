//! The memory of the whole process under a small ceiling: a child loads several times as much as the ceiling,
//! overwrites it, reads it in random order and scans it, by four or sixty-four threads. Then one of them
//! checks the database, copies it in two ways, compacts it and reads it whole while the others go on reading
//! and writing.
//!
//! The promise is `memory_bytes` and 24 MiB (`docs/promises.md`).
//! * [`run`]: the child says at its end how much memory it had at most (`VmHWM` of `/proc/self/status`, with
//!   the text and the mapped segments). The promise is for a release build. This program is built with debug
//!   assertions and information, and carries tests: [`SLACK`] is what it may have beyond.
//! * [`run_in_cgroup`]: a memory cgroup of just that size would kill it. There the kernel drops pages of the
//!   text and of mapped files when they are too many, so nothing is allowed beyond.
//! * [`run_with_jemalloc`]: the same with another allocator, preloaded; with more than 16 threads without its
//!   caches of threads.
//!
//! A process whose memory follows its data passes all of these by far: the data are larger.
//!
//! Not run where `/proc` is missing, and in the builds of sanitizers, which have memory of their own.

use std::io::{BufRead, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use terrane::{Backups, Batch, Compression, Db, Durability, Options};
use terrane_base::Rng;
use terrane_device::MemoryLimit;

use crate::{Outcome, number_from_env};

/// The work of a child.
#[derive(Clone, Copy)]
struct Load {
    /// `memory_bytes`.
    ceiling_mib: u64,
    threads: u64,
    /// The rows that it loads, a multiple of the threads.
    rows: u64,
    /// Bytes of each value, a multiple of eight.
    value_bytes: usize,
    direct_io: bool,
}

const fn load(ceiling_mib: u64, threads: u64, rows: u64) -> Load {
    Load { ceiling_mib, threads, rows, value_bytes: 1000, direct_io: false }
}

const LOADS: [Load; 4] =
    [load(16, 4, 80_000), load(16, 64, 80_000), load(64, 4, 140_800), load(64, 64, 140_800)];
/// Separated values, whose reads are whole sectors: each scan reads many of them and their index blocks at
/// once.
const LONG_VALUES: Load = Load { rows: 6_400, value_bytes: 16 << 10, direct_io: true, ..LOADS[1] };
/// Those in a cgroup.
const LOADS_IN_CGROUP: [Load; 4] = [LOADS[0], LOADS[1], LOADS[3], LONG_VALUES];
/// Those with jemalloc as it is.
const LOADS_WITH_JEMALLOC: [Load; 2] = [load(16, 4, 80_000), load(16, 16, 80_000)];
/// Those with [`WITHOUT_THREAD_CACHES`].
const LOADS_WITHOUT_THREAD_CACHES: [Load; 2] = [LOADS[1], LONG_VALUES];
const JEMALLOC: Allocator = Allocator { library: "libjemalloc.so.2", settings: "" };
/// As the promise asks for more than 16 threads: jemalloc fills the cache of each thread with ten pieces of a
/// size when the thread wants one.
const WITHOUT_THREAD_CACHES: Allocator = Allocator { settings: "tcache:false", ..JEMALLOC };
/// Scans of a hundred rows by each thread.
const SCANS: u64 = 8;
/// Places in the order of keys between rows that are written one after the other; prime.
const STRIDE: u64 = 2_531;
/// Bytes of the values of a batch, whose memory is the writer's.
const BATCH_BYTES: usize = 16 << 10;
const MIB: u64 = 1 << 20;
/// Memory that the promise allows beside the ceiling.
const BESIDE: u64 = 24 * MIB;
/// Memory that a test build may take beyond the promise where the kernel drops none of its pages: 8 MiB of
/// the program itself, and pages of segments, which it would write and drop in a cgroup.
const SLACK: u64 = 16 * MIB;

/// An allocator that is preloaded.
#[derive(Clone, Copy)]
struct Allocator {
    library: &'static str,
    /// Its `MALLOC_CONF`.
    settings: &'static str,
}

impl Load {
    fn data_bytes(self) -> u64 {
        self.rows * self.value_bytes as u64
    }
}

/// The bytes of each value, in the child.
fn value_bytes() -> usize {
    number_from_env("TERRANE_REAL_VALUE", 1000) as usize
}

pub(crate) fn run() -> Outcome {
    if let Some(why) = obstacle() {
        return Outcome::NotRun(why);
    }
    let mut seen = Vec::new();
    for load in LOADS {
        let Load { ceiling_mib: ceiling, threads, .. } = load;
        let most = of_child(load, None, None);
        let allowed = ceiling * MIB + BESIDE + SLACK;
        assert!(load.data_bytes() > allowed, "a process that held its data would pass the limit");
        assert!(
            most <= allowed,
            "memory_bytes {ceiling} MiB, {threads} threads: the process had {most}, allowed are {allowed}"
        );
        seen.push(format!("{threads} threads {} of {} MiB", most / MIB, allowed / MIB));
    }
    Outcome::Passed(seen.join(", "))
}

pub(crate) fn run_in_cgroup() -> Outcome {
    all_in_cgroups(&LOADS_IN_CGROUP.map(|load| (load, None)))
}

pub(crate) fn run_with_jemalloc() -> Outcome {
    let mut probe = Command::new(std::env::current_exe().unwrap());
    probe.arg("--list").env("LD_PRELOAD", JEMALLOC.library);
    // The dynamic linker complains of a library that it does not find, and starts the program without it.
    let complaint = String::from_utf8_lossy(&probe.output().unwrap().stderr).trim().to_owned();
    if !complaint.is_empty() {
        return Outcome::NotRun(complaint);
    }
    let loads = LOADS_WITH_JEMALLOC.map(|load| (load, Some(JEMALLOC)));
    let without = LOADS_WITHOUT_THREAD_CACHES.map(|load| (load, Some(WITHOUT_THREAD_CACHES)));
    all_in_cgroups(&[loads, without].concat())
}

fn all_in_cgroups(loads: &[(Load, Option<Allocator>)]) -> Outcome {
    if let Some(why) = obstacle().or_else(files_are_memory) {
        return Outcome::NotRun(why);
    }
    let mut seen = Vec::new();
    for (load, allocator) in loads {
        let allowed = load.ceiling_mib * MIB + BESIDE;
        assert!(load.data_bytes() > allowed, "a process that held its data would be killed");
        let limit = match MemoryLimit::new(allowed) {
            Ok(limit) => limit,
            Err(why) => return Outcome::NotRun(why),
        };
        of_child(*load, Some(&limit), *allocator);
        let settings = allocator.map_or("", |allocator| allocator.settings);
        let shown = if settings.is_empty() { String::new() } else { format!(" with {settings}") };
        seen.push(format!("{} threads in {} MiB{shown}", load.threads, allowed / MIB));
    }
    Outcome::Passed(seen.join(", "))
}

/// Why the memory of a process says nothing here.
fn obstacle() -> Option<String> {
    if option_env!("RUSTFLAGS").is_some_and(|flags| flags.contains("sanitizer")) {
        return Some("a sanitizer has memory of its own".to_owned());
    }
    most_so_far().is_none().then(|| "/proc/self/status has no VmHWM".to_owned())
}

/// The directory of the build, which hardly ever lies in memory, as the one of temporary files may: a cgroup
/// counts files in memory as memory.
const PLACE: &str = env!("CARGO_TARGET_TMPDIR");

/// Says so if the files of a test would be in memory.
fn files_are_memory() -> Option<String> {
    let output = Command::new("stat").args(["-f", "-c", "%T", PLACE]).stdin(Stdio::null()).output();
    let is_memory = output.is_ok_and(|output| output.stdout.starts_with(b"tmpfs"));
    is_memory.then(|| format!("{PLACE} is in memory"))
}

/// The most memory that a child has with this load, in bytes; within a limit that kills it, and with an
/// allocator that is preloaded, if there are these.
fn of_child(load: Load, limit: Option<&MemoryLimit>, allocator: Option<Allocator>) -> u64 {
    let Load { ceiling_mib: ceiling, threads, rows, value_bytes, direct_io } = load;
    let dir = tempfile::tempdir_in(PLACE).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .env("TERRANE_REAL_CHILD", "memory")
        .env("TERRANE_REAL_DIR", dir.path().join("db"))
        .env("TERRANE_REAL_MEMORY", ceiling.to_string())
        .env("TERRANE_REAL_THREADS", threads.to_string())
        .env("TERRANE_REAL_ROWS", rows.to_string())
        .env("TERRANE_REAL_VALUE", value_bytes.to_string())
        .env("TERRANE_REAL_DIRECT", u64::from(direct_io).to_string())
        .env_remove("LD_PRELOAD")
        .env_remove("MALLOC_CONF");
    if let Some(allocator) = allocator {
        let Allocator { library, settings } = allocator;
        command.env("LD_PRELOAD", library).env("TERRANE_REAL_ALLOCATOR", library);
        command.env("MALLOC_CONF", settings);
    }
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    if let Some(limit) = limit {
        // Before it begins: it has allocated hardly anything yet.
        limit.add(child.id()).unwrap();
    }
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    let what = format!(
        "memory_bytes {ceiling} MiB, {threads} threads, values of {value_bytes} bytes, {}",
        allocator.map_or("usual allocator", |allocator| allocator.library)
    );
    let is_killed = limit.is_some() && output.status.signal() == Some(9);
    assert!(!is_killed, "{what}: the kernel killed the process, which exceeded memory_bytes and 24 MiB");
    assert!(output.status.success(), "{what}: {}: {complaint}", output.status);
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
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).unwrap();
    assert_eq!(line, "go\n", "the parent has taken care of the limit");
    if let Ok(allocator) = std::env::var("TERRANE_REAL_ALLOCATOR") {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        assert!(maps.contains(&allocator), "{allocator} is a part of the process");
    }
    let (rows, threads) =
        (number_from_env("TERRANE_REAL_ROWS", 1), number_from_env("TERRANE_REAL_THREADS", 1));
    let value_bytes = value_bytes();
    let options = Options {
        memory_bytes: number_from_env("TERRANE_REAL_MEMORY", 16) * MIB,
        compression: Compression::None,
        compression_last: Compression::None,
        background_threads: 2,
        direct_io: number_from_env("TERRANE_REAL_DIRECT", 0) == 1,
        ..Options::default()
    };
    let db = Db::open_with(dir, &options).unwrap();
    let share = rows / threads;
    // The last load has neighbours in other value tables.
    let placed = |at: u64| if value_bytes == LONG_VALUES.value_bytes { at * STRIDE % rows } else { at };
    by_threads(threads, &|thread| write(&db, thread, (thread * share..(thread + 1) * share).map(placed)));
    // Rows of every part of the database, so that overwrites, flushes and merges meet.
    by_threads(threads, &|thread| write(&db, thread + threads, (thread..rows).step_by(8 * threads as usize)));
    by_threads(threads, &|thread| {
        let mut numbers = Rng::new(thread);
        for _ in 0..share / 2 {
            let key = numbers.below(rows).to_be_bytes();
            assert!(
                db.get(key).unwrap().is_some_and(|value| value.len() == value_bytes),
                "every row is there"
            );
        }
        let from = (thread * share).to_be_bytes();
        let read = db.range(from..).take(share as usize / 2).map(|row| row.unwrap().1.len()).sum::<usize>();
        assert_eq!(read, share as usize / 2 * value_bytes);
    });
    // Scans from many places at once, beside inserts.
    by_threads(threads, &|thread| {
        let mut numbers = Rng::new(thread);
        for _ in 0..SCANS {
            let from = numbers.below(rows);
            db.range(from.to_be_bytes()..)
                .take(100)
                .for_each(|row| assert_eq!(row.unwrap().1.len(), value_bytes));
            write(&db, from, std::iter::once(from));
        }
    });
    by_threads(threads, &|thread| match thread {
        0 => jobs(&db, dir, rows),
        _ => write(&db, thread + 2 * threads, (thread..rows).step_by(8 * threads as usize)),
    });
    db.close().unwrap();
    println!("{}", most_so_far().unwrap());
}

/// The work that costs memory beside reads and writes.
fn jobs(db: &Db, dir: &Path, rows: u64) {
    let report = db.check(&mut |_, _| {}).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    db.checkpoint(dir.with_file_name("checkpoint")).unwrap();
    Backups::open(dir.with_file_name("backups")).create(db).unwrap();
    db.compact_range(db.default_table(), ..).unwrap();
    // As an export does.
    let bytes = db.iter().map(|row| row.unwrap().1.len()).sum::<usize>();
    assert_eq!(bytes, rows as usize * value_bytes());
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
    let (mut numbers, mut value) = (Rng::new(seed), vec![0; value_bytes()]);
    let mut batch = Batch::new();
    for row in rows {
        value.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&numbers.next_u64().to_le_bytes()));
        batch.put(db.default_table(), row.to_be_bytes(), &value).unwrap();
        if batch.len() == 16 || batch.len() * value.len() >= BATCH_BYTES {
            db.write(&batch, Durability::Buffered).unwrap();
            batch.clear();
        }
    }
    db.write(&batch, Durability::Buffered).unwrap();
}
