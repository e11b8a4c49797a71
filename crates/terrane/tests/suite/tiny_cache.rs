//! Readers, writers, compaction and eviction under a cache that holds a small part of the data, every value
//! verified.
//!
//! `TERRANE_SOAK_SECONDS` runs it for so long; without it each thread does a fixed number of operations.
//!
//! Checked facts: a value names its key and its version and repeats them to its end; the version is at least
//! the one that was acknowledged before the read began, and at most the newest one begun when it ended; a
//! snapshot sees one version for as long as it lives; an iterator that is opened once and moved on now and
//! then ends with every key.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test, which may run for a set time")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use terrane::{Db, Options};
use terrane_base::Rng;

const KEYS: u64 = 60_000;
const WRITERS: u64 = 2;
const READERS: u64 = 2;
/// Operations of each thread without a time.
const OPERATIONS: u64 = 40_000;

/// Versions of every key: acknowledged, and begun.
struct Truth {
    acknowledged: Vec<AtomicU64>,
    begun: Vec<AtomicU64>,
}

/// Until when a thread works.
struct Shift {
    end: Option<Instant>,
    is_over: AtomicBool,
}

impl Shift {
    fn goes_on(&self, done: u64) -> bool {
        match self.end {
            _ if self.is_over.load(Ordering::Relaxed) => false,
            Some(end) => Instant::now() < end,
            None => done < OPERATIONS,
        }
    }
}

fn value(key: u64, version: u64) -> Vec<u8> {
    let word = [key.to_be_bytes(), version.to_be_bytes()].concat();
    word.repeat(20 + (key % 30) as usize)
}

/// The version in a value, which must be whole and of this key.
fn version_of(key: u64, bytes: &[u8]) -> u64 {
    let version = u64::from_be_bytes(bytes[8..16].try_into().unwrap());
    assert!(bytes == value(key, version), "key {key}: a value that no writer wrote");
    version
}

fn write(db: &Db, truth: &Truth, shift: &Shift, writer: u64) {
    let mut rng = Rng::new(writer + 1);
    let mut done = 0;
    while shift.goes_on(done) {
        let key = rng.below(KEYS / WRITERS) * WRITERS + writer;
        let version = truth.begun[key as usize].load(Ordering::Relaxed) + 1;
        truth.begun[key as usize].store(version, Ordering::SeqCst);
        db.put(key.to_be_bytes(), value(key, version)).unwrap();
        truth.acknowledged[key as usize].store(version, Ordering::SeqCst);
        done += 1;
    }
}

fn read(db: &Db, truth: &Truth, shift: &Shift, reader: u64) {
    let mut rng = Rng::new(reader + 100);
    let mut snapshot = db.snapshot();
    let mut seen: Vec<(u64, u64)> = Vec::new();
    let mut done = 0;
    while shift.goes_on(done) {
        // Half of the reads go to a small part of the keys.
        let key = if rng.below(2) == 0 { rng.below(KEYS / 50) } else { rng.below(KEYS) };
        let least = truth.acknowledged[key as usize].load(Ordering::SeqCst);
        let found = version_of(key, &db.get(key.to_be_bytes()).unwrap().unwrap());
        let most = truth.begun[key as usize].load(Ordering::SeqCst);
        assert!((least..=most).contains(&found), "key {key}: version {found}, expected {least} to {most}");
        if rng.below(100) == 0 {
            let bytes = snapshot.get(db.default_table(), key.to_be_bytes()).unwrap().unwrap();
            seen.push((key, version_of(key, &bytes)));
            for &(key, version) in &seen {
                let bytes = snapshot.get(db.default_table(), key.to_be_bytes()).unwrap().unwrap();
                assert_eq!(version_of(key, &bytes), version, "key {key}: the snapshot changed");
            }
            if seen.len() > 20 {
                snapshot = db.snapshot();
                seen.clear();
            }
        }
        done += 1;
    }
}

/// A reader that takes its time: its iterator holds one moment while everything below it is replaced.
fn walk(db: &Db, shift: &Shift) {
    while !shift.is_over.load(Ordering::Relaxed) {
        let mut count = 0;
        for row in db.default_table().iter() {
            let (key, bytes) = row.unwrap();
            version_of(u64::from_be_bytes(key[..].try_into().unwrap()), &bytes);
            count += 1;
            if count % 64 == 0 && !shift.is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        assert_eq!(count, KEYS, "an iterator sees every key once");
    }
}

/// Compacts everything again and again, and looks at the ceiling.
fn tend(db: &Db, shift: &Shift, ceiling: u64) -> u64 {
    let mut peak = 0;
    let mut turn = 0u64;
    while !shift.is_over.load(Ordering::Relaxed) {
        if turn % 200 == 199 {
            db.compact_range(db.default_table(), ..).unwrap();
        }
        let used = db.stats().memory_bytes;
        assert!(used <= ceiling, "{used} bytes in use under a ceiling of {ceiling}");
        peak = peak.max(used);
        turn += 1;
        std::thread::sleep(Duration::from_millis(5));
    }
    peak
}

#[test]
fn every_value_is_right_while_everything_moves() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    for (name, value) in [
        ("memory_bytes", "16MiB"),
        ("write_memory_bytes", "8MiB"),
        ("experiments.incremental_replacement", "on"),
    ] {
        options.set(name, value).unwrap();
    }
    let db = Db::open_with(dir.path().join("db"), &options).unwrap();
    for key in 0..KEYS {
        db.put(key.to_be_bytes(), value(key, 1)).unwrap();
    }
    let versions = || (0..KEYS).map(|_| AtomicU64::new(1)).collect();
    let truth = Truth { acknowledged: versions(), begun: versions() };
    let seconds = std::env::var("TERRANE_SOAK_SECONDS").ok().map(|text| text.parse().unwrap());
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let shift = Shift { end, is_over: AtomicBool::new(false) };
    std::thread::scope(|scope| {
        let (db, truth, shift) = (&db, &truth, &shift);
        let side = [scope.spawn(move || {
            walk(db, shift);
            0
        })];
        let keeper = scope.spawn(move || tend(db, shift, 16 << 20));
        let writers = (0..WRITERS).map(|writer| scope.spawn(move || write(db, truth, shift, writer)));
        let writers: Vec<_> = writers.collect();
        let readers: Vec<_> =
            (0..READERS).map(|reader| scope.spawn(move || read(db, truth, shift, reader))).collect();
        // A thread that failed must not leave the others at work.
        let ended: Vec<_> = writers.into_iter().chain(readers).map(|thread| thread.join()).collect();
        shift.is_over.store(true, Ordering::Relaxed);
        let walked = side.into_iter().map(|thread| thread.join()).collect::<Vec<_>>();
        let peak = keeper.join().unwrap();
        assert!(ended.iter().all(Result::is_ok) && walked.iter().all(Result::is_ok), "a thread failed");
        let stats = db.stats();
        println!(
            "{} records written, {} misses, {} flushes, {} compactions, {} blocks replaced, {peak} bytes at most",
            stats.records_written,
            stats.cache_misses,
            stats.flushes,
            stats.compactions,
            stats.blocks_replaced
        );
        assert!(stats.compactions > 0 && stats.cache_misses > 1000);
    });
    for key in 0..KEYS {
        let found = version_of(key, &db.get(key.to_be_bytes()).unwrap().unwrap());
        assert_eq!(found, truth.acknowledged[key as usize].load(Ordering::SeqCst));
    }
}
