//! The journal in persistent memory: records for each commit group, threads, and replay.
//!
//! `cargo bench -p terrane-journal --bench pm` prints the rates. Without `--bench`, every subject runs once
//! with little.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

mod listed;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// A journal on its medium, with what replay needs.
struct Bed {
    journal: Box<dyn Journal>,
    disk: Arc<dyn Disk>,
    listed: Arc<Listed>,
    dir: tempfile::TempDir,
}

const SUBJECTS: [&str; 5] = ["dram", "optane-like", "plain file", "plain file, msync", "segment files"];

fn zones<R: PmRegion + 'static>(region: R) -> Arc<dyn Disk> {
    let base: Arc<dyn Disk> = Arc::new(MemDisk::new());
    base.create_dir(Path::new(DIR)).unwrap();
    let halloc = Halloc::create(region, 64 << 10, 1).unwrap();
    Arc::new(ZoneDisk::new(base, Path::new(DIR), halloc, Vec::new(), false).unwrap())
}

fn bed(subject: &str, bytes: u64, group_bytes_max: usize) -> Bed {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mapped = |mode| Mapped::create(&dir.path().join("pool"), bytes, mode).unwrap();
    let disk: Arc<dyn Disk> = match subject {
        "dram" => zones(Emulated::new(Volatile::new(bytes), Profile::DRAM)),
        "optane-like" => zones(Emulated::new(Volatile::new(bytes), Profile::OPTANE_LIKE)),
        "plain file" => zones(mapped(PlainMode::Buffered)),
        "plain file, msync" => zones(mapped(PlainMode::Synced)),
        _ => Arc::new(PosixDisk::new()),
    };
    let is_file = subject == "segment files";
    let path = if is_file { dir.path().to_owned() } else { DIR.into() };
    let settings = JournalSettings { group_bytes_max, segment_bytes: 16 << 20, ..JournalSettings::default() };
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
    let mut batch = Batch::new();
    for number in 0..records as u64 {
        batch.put(TableId::DEFAULT, &number.to_le_bytes()[..KEY_BYTES], &[7; VALUE_BYTES]).unwrap();
    }
    batch
}

/// Records per second of `threads` threads that commit `records` at once, each commit synced.
fn rate(bed: &Bed, threads: usize, records: usize, time: Duration) -> f64 {
    let clock = Env::real().clock;
    let (begin, done) = (clock.now(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let batch = batch(records);
                while clock.now() - begin < time {
                    if bed.journal.commit(&batch, true, &mut |_| {}).is_err() {
                        break;
                    }
                    done.fetch_add(records as u64, Ordering::Relaxed);
                }
            });
        }
    });
    done.load(Ordering::Relaxed) as f64 / (clock.now() - begin).as_secs_f64()
}

/// Bytes of a group with `records` batches of one record.
fn group_bytes(records: usize) -> usize {
    batch(1).bytes().len() * records
}

fn groups(bytes: u64, time: Duration) {
    println!("\nN7: records per second, 32 threads; most commits in a group, or records in a commit");
    for subject in SUBJECTS {
        let capped = [1, 8, 32].map(|most| rate(&bed(subject, bytes, group_bytes(most)), 32, 1, time));
        let tied = [1, 10, 30, 90].map(|records| rate(&bed(subject, bytes, 1), 32, records, time));
        println!("{subject}: in a group 1, 8, 32: {capped:.0?}; in a commit 1, 10, 30, 90: {tied:.0?}");
    }
}

fn threads(bytes: u64, time: Duration) {
    println!("\nN8: synced commits of one record per second; threads 1, 2, 4, 16, 64");
    for subject in SUBJECTS {
        let rates = [1, 2, 4, 16, 64].map(|threads| rate(&bed(subject, bytes, 1 << 20), threads, 1, time));
        println!("{subject}: {rates:.0?}");
    }
}

fn restart(bytes: u64, sizes: &[u64]) {
    println!("\nN12: replay without an index, MB/s; bytes x threads 1, 2");
    let (clock, spawn) = (Env::real().clock, Env::real().spawn);
    for subject in ["dram", "optane-like", "plain file", "segment files"] {
        for size in sizes {
            let bed = bed(subject, bytes, 1 << 20);
            let batch = batch(500);
            for _ in 0..size / batch.bytes().len() as u64 {
                bed.journal.commit(&batch, false, &mut |_| {}).unwrap();
            }
            bed.journal.sync().unwrap();
            let listed = bed.listed.0.lock().unwrap().clone();
            let rates = [1, 2].map(|threads| {
                let settings = ReplaySettings {
                    threads,
                    durable_floor: SeqNo(0),
                    flushed: SeqNo(0),
                    make_durable: false,
                    salt: 0,
                };
                let (begin, path) = (clock.now(), bed.path(subject));
                let replayed =
                    replay(&*bed.disk, path, &listed, &settings, &*spawn, &|_, _, _, _| Ok(())).unwrap();
                replayed.bytes as f64 / (clock.now() - begin).as_secs_f64() / 1e6
            });
            println!("{subject}, {} MiB: {rates:.0?}", size >> 20);
        }
    }
}

fn main() {
    let is_measured = std::env::args().any(|argument| argument == "--bench");
    let (bytes, time) = match is_measured {
        true => (1 << 30, Duration::from_millis(500)),
        false => (64 << 20, Duration::from_millis(1)),
    };
    groups(bytes, time);
    threads(bytes, time);
    restart(bytes, if is_measured { &[32 << 20, 128 << 20, 512 << 20] } else { &[1 << 20] });
}
