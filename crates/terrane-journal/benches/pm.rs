//! The journal in persistent memory: records for each commit group (N7), threads (N8), replay (N12), and the
//! journal of files with a sync for each group beside it (XS and XP, as far as the journal goes).
//!
//! `cargo bench -p terrane-journal --bench pm -- SECTION` prints tables; SECTION is `n7`, `n8`, `n12` or
//! `all`. `n12 SUBJECT` replays on one medium only, for a profile of it. Without `--bench`, every subject
//! runs once with little.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

mod listed;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use listed::Listed;
use terrane_base::env::Env;
use terrane_base::{Batch, SeqNo, TableId};
use terrane_device::pm::{Mapped, PlainMode, PmRegion, Volatile};
use terrane_device::{Disk, MemDisk, PosixDisk};
use terrane_journal::pm::{PmJournal, ZoneDisk};
use terrane_journal::{FileJournal, Journal, JournalSettings, JournalStart, ReplaySettings, replay};
use terrane_pmem::{Emulated, Halloc, Profile};

const DIR: &str = "journal";
const KEY_BYTES: usize = 8;
const VALUE_BYTES: usize = 32;
/// Runs of a measurement, of which the median counts.
const REPEATS: usize = 3;

/// A journal on its medium, with what replay needs.
struct Bed {
    journal: Box<dyn Journal>,
    disk: Arc<dyn Disk>,
    listed: Arc<Listed>,
    dir: tempfile::TempDir,
}

/// The media of the journal. The last one is the journal of files, which a database without persistent memory
/// has.
const SUBJECTS: [&str; 6] = ["DRAM", "Optane-like", "8x", "plain file", "plain file, msync", "segment files"];
/// Those whose replay is measured.
const REPLAYED: [&str; 5] = ["DRAM", "Optane-like", "8x", "plain file", "segment files"];

fn zones<R: PmRegion + 'static>(region: R) -> Arc<dyn Disk> {
    // Memory that was touched, so that the first touch of pages is not measured.
    let zeros = vec![0; 1 << 20];
    for at in (0..region.len()).step_by(zeros.len()) {
        region.write(at, &zeros[..zeros.len().min((region.len() - at) as usize)]).unwrap();
    }
    let base: Arc<dyn Disk> = Arc::new(MemDisk::new());
    base.create_dir(Path::new(DIR)).unwrap();
    let halloc = Halloc::create(region, 64 << 10, 1).unwrap();
    Arc::new(ZoneDisk::new(base, Path::new(DIR), halloc, Vec::new(), false).unwrap())
}

fn emulated(bytes: u64, profile: Profile) -> Arc<dyn Disk> {
    zones(Emulated::new(Volatile::new(bytes), profile))
}

/// Large in a large region, so that no rotation is measured.
fn segment_bytes(bytes: u64) -> u64 {
    bytes / 16
}

fn bed(subject: &str, bytes: u64, group_bytes_max: usize) -> Bed {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mapped = |mode| Mapped::create(&dir.path().join("pool"), bytes, mode).unwrap();
    let disk: Arc<dyn Disk> = match subject {
        "DRAM" => emulated(bytes, Profile::DRAM),
        "Optane-like" => emulated(bytes, Profile::OPTANE_LIKE),
        "8x" => emulated(bytes, Profile::DRAM_8X),
        "plain file" => zones(mapped(PlainMode::Buffered)),
        "plain file, msync" => zones(mapped(PlainMode::Synced)),
        _ => Arc::new(PosixDisk::new()),
    };
    let is_file = subject == "segment files";
    let path = if is_file { dir.path().to_owned() } else { DIR.into() };
    let settings = JournalSettings {
        group_bytes_max,
        segment_bytes: segment_bytes(bytes),
        ..JournalSettings::default()
    };
    let (listed, start, env) = (Arc::new(Listed::default()), JournalStart::default(), Env::real());
    let journal: Box<dyn Journal> = match is_file {
        true => {
            Box::new(FileJournal::open(disk.clone(), &path, &settings, &env, listed.clone(), &start).unwrap())
        }
        false => {
            Box::new(PmJournal::open(disk.clone(), &path, &settings, &env, listed.clone(), &start).unwrap())
        }
    };
    Bed { journal, disk, listed, dir }
}

impl Bed {
    fn path(&self, subject: &str) -> &Path {
        if subject == "segment files" { self.dir.path() } else { Path::new(DIR) }
    }
}

fn batch(records: usize) -> Batch {
    batch_of(records, VALUE_BYTES)
}

fn batch_of(records: usize, value_bytes: usize) -> Batch {
    let mut batch = Batch::new();
    let value = vec![7; value_bytes];
    for number in 0..records as u64 {
        batch.put(TableId::DEFAULT, &number.to_le_bytes()[..KEY_BYTES], &value).unwrap();
    }
    batch
}

/// The cost of committing.
#[derive(Clone, Copy, Default)]
struct Rate {
    records_per_second: f64,
    /// Latency of a commit in nanoseconds: mean and 99th percentile.
    mean: f64,
    p99: u64,
}

/// `threads` threads commit `records` at once, each commit synced, for `time`.
fn rate(bed: &Bed, threads: usize, records: usize, time: Duration) -> Rate {
    let clock = Env::real().clock;
    let (begin, done, all) = (clock.now(), AtomicU64::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let (batch, mut taken) = (batch(records), Vec::new());
                let mut before = clock.now();
                while before - begin < time {
                    if bed.journal.commit(&batch, true, &mut |_| {}).is_err() {
                        break;
                    }
                    let now = clock.now();
                    taken.push((now - before).as_nanos() as u64);
                    before = now;
                }
                done.fetch_add((taken.len() * records) as u64, Ordering::Relaxed);
                all.lock().unwrap().append(&mut taken);
            });
        }
    });
    let records_per_second = done.load(Ordering::Relaxed) as f64 / (clock.now() - begin).as_secs_f64();
    let mut taken = all.into_inner().unwrap();
    taken.sort_unstable();
    let mean = taken.iter().sum::<u64>() as f64 / taken.len().max(1) as f64;
    Rate { records_per_second, mean, p99: taken.get(taken.len() * 99 / 100).copied().unwrap_or(0) }
}

/// The median by rate of `REPEATS` runs, each with a journal of its own.
fn median(mut run: impl FnMut() -> Rate) -> Rate {
    let mut rates: Vec<Rate> = (0..REPEATS).map(|_| run()).collect();
    rates.sort_by(|a, b| a.records_per_second.total_cmp(&b.records_per_second));
    rates[REPEATS / 2]
}

fn head(title: &str, columns: &[usize]) {
    println!("\n{title}");
    println!("| subject | {} |", columns.iter().map(usize::to_string).collect::<Vec<_>>().join(" | "));
    println!("|---|{}", "---|".repeat(columns.len()));
}

fn line(subject: &str, cells: impl Iterator<Item = String>) {
    println!("| {subject} | {} |", cells.collect::<Vec<_>>().join(" | "));
}

fn millions(rate: &Rate) -> String {
    format!("{:.3}", rate.records_per_second / 1e6)
}

fn latency(rate: &Rate) -> String {
    format!("{:.1} / {:.1}", rate.mean / 1e3, rate.p99 as f64 / 1e3)
}

/// Bytes of a group with `records` batches of one record.
fn group_bytes(records: usize) -> usize {
    batch(1).bytes().len() * records
}

/// N7: the batch of the ring. The published run has 32 threads with many commits in flight each; here a
/// commit waits, so a group holds more commits than there are threads only if a commit has several records.
fn groups(bytes: u64, time: Duration) {
    let measure = |columns: &[usize], title: &str, run: &dyn Fn(&str, usize) -> Rate| {
        let rates: Vec<Vec<Rate>> = SUBJECTS
            .iter()
            .map(|subject| columns.iter().map(|column| median(|| run(subject, *column))).collect())
            .collect();
        head(&format!("N7: {title}; 32 threads; millions of records per second"), columns);
        for (subject, rates) in SUBJECTS.iter().zip(&rates) {
            line(subject, rates.iter().map(millions));
        }
        head("The same: mean / 99th percentile of a commit, microseconds", columns);
        for (subject, rates) in SUBJECTS.iter().zip(&rates) {
            line(subject, rates.iter().map(latency));
        }
        head("The same: records per second against the first column", columns);
        for (subject, rates) in SUBJECTS.iter().zip(&rates) {
            let first = rates[0].records_per_second;
            line(subject, rates.iter().map(|rate| format!("{:.1}", rate.records_per_second / first)));
        }
    };
    measure(&[1, 2, 4, 8, 32], "most commits of one record in a group", &|subject, most| {
        rate(&bed(subject, bytes, group_bytes(most)), 32, 1, time)
    });
    measure(&[1, 10, 30, 50, 90, 128, 256], "records in a commit, a group for each", &|subject, records| {
        rate(&bed(subject, bytes, 1), 32, records, time)
    });
}

fn threads(bytes: u64, time: Duration) {
    const THREADS: [usize; 6] = [1, 2, 4, 8, 32, 64];
    let rates = SUBJECTS.map(|subject| {
        THREADS.map(|threads| median(|| rate(&bed(subject, bytes, 1 << 20), threads, 1, time)))
    });
    head("N8: synced commits of one record over threads, millions per second", &THREADS);
    SUBJECTS.iter().zip(&rates).for_each(|(subject, rates)| line(subject, rates.iter().map(millions)));
    head("N8: mean / 99th percentile of a commit, microseconds", &THREADS);
    SUBJECTS.iter().zip(&rates).for_each(|(subject, rates)| line(subject, rates.iter().map(latency)));
}

/// Megabytes per second of a replay without an index.
fn replay_rate(bed: &Bed, subject: &str, threads: usize) -> f64 {
    let (clock, spawn) = (Env::real().clock, Env::real().spawn);
    let listed = bed.listed.0.lock().unwrap().clone();
    let settings =
        ReplaySettings { threads, durable_floor: SeqNo(0), flushed: SeqNo(0), make_durable: false, salt: 0 };
    let begin = clock.now();
    let replayed =
        replay(&*bed.disk, bed.path(subject), &listed, &settings, &*spawn, &|_, _, _, _| Ok(())).unwrap();
    replayed.bytes as f64 / (clock.now() - begin).as_secs_f64() / 1e6
}

fn restart(bytes: u64, sizes: &[u64], only: Option<&str>) {
    const THREADS: [usize; 3] = [1, 2, 4];
    for value in [VALUE_BYTES, 500] {
        head(&format!("N12: replay over threads, MB/s, values of {value} B; no index is built"), &THREADS);
        for subject in REPLAYED.into_iter().filter(|subject| only.is_none_or(|only| only == *subject)) {
            for size in sizes {
                let bed = bed(subject, bytes, 1 << 20);
                let batch = batch_of(100, value);
                for _ in 0..size / batch.bytes().len() as u64 {
                    bed.journal.commit(&batch, false, &mut |_| {}).unwrap();
                }
                bed.journal.sync().unwrap();
                let rates = THREADS.map(|threads| {
                    let mut rates = [(); REPEATS].map(|()| replay_rate(&bed, subject, threads));
                    rates.sort_by(f64::total_cmp);
                    rates[REPEATS / 2]
                });
                let name = format!("{subject}, {} MiB", size >> 20);
                line(&name, rates.iter().map(|rate| format!("{rate:.0}")));
            }
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_measured = arguments.iter().any(|argument| argument == "--bench");
    let mut named = arguments.iter().filter(|argument| !argument.starts_with('-')).map(String::as_str);
    let (section, only) = (named.next().unwrap_or("all"), named.next());
    let (bytes, time) = match is_measured {
        true => (256 << 20, Duration::from_millis(100)),
        false => (8 << 20, Duration::from_millis(1)),
    };
    let is_known = only.is_none_or(|only| section == "n12" && REPLAYED.contains(&only));
    assert!(is_known, "a subject is one of {REPLAYED:?}, behind n12");
    let is_asked = |name: &str| [name, "all"].contains(&section);
    assert!(["all", "n7", "n8", "n12"].contains(&section), "there is no section {section}");
    if is_asked("n7") {
        groups(bytes, time);
    }
    if is_asked("n8") {
        threads(bytes, time);
    }
    if is_asked("n12") {
        restart(bytes, if is_measured { &[32 << 20, 192 << 20] } else { &[1 << 20] }, only);
    }
}
