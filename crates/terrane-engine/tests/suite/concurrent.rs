//! Writers, readers, scans, snapshots, flush, compaction and table changes all at once, with invariants that
//! hold at every moment and after reopening.
//!
//! `TERRANE_CONCURRENT_BATCHES` scales it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use support::{get, number_from_env, open, small_options};
use terrane_base::env::{Env, Joiner};
use terrane_base::options::Options;
use terrane_base::{Batch, Rng};
use terrane_device::{MemDisk, PosixDisk};
use terrane_engine::{Bounds, Engine, ReadMode, Snapshot, Table};

const WRITERS: u64 = 3;
const TABLES: [&str; 2] = ["left", "right"];
/// Keys that each batch stamps, in each of two tables.
const STAMPED: u64 = 4;

/// The state that a writer left of its own keys, which it writes now and then and not with every batch: by
/// table and key, the number that the value is made of, or `None` for a deleted key.
type Bulk = BTreeMap<(&'static str, Vec<u8>), Option<u64>>;

struct Shared {
    engine: Arc<Engine>,
    tables: [Arc<Table>; 2],
    /// The newest acknowledged stamp of each writer.
    acknowledged: [AtomicU64; WRITERS as usize],
    bulk: [Mutex<Bulk>; WRITERS as usize],
    done: AtomicBool,
    failed: AtomicBool,
    batches: u64,
}

fn key(writer: u64, index: u64) -> Vec<u8> {
    format!("w{writer}/{index}").into_bytes()
}

fn bulk_value(seed: u64) -> Vec<u8> {
    let mut numbers = Rng::new(seed);
    (0..100).flat_map(|_| numbers.next_u64().to_le_bytes()).collect()
}

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value[..8].try_into().unwrap())
}

/// Runs `body` on a thread; a panic there ends the others and fails the test.
fn start(
    name: &str,
    shared: &Arc<Shared>,
    body: impl FnOnce(&Arc<Shared>) + Send + 'static,
) -> Box<dyn Joiner> {
    struct Failed(Arc<Shared>);
    impl Drop for Failed {
        fn drop(&mut self) {
            if std::thread::panicking() {
                self.0.failed.store(true, Ordering::SeqCst);
                self.0.done.store(true, Ordering::SeqCst);
            }
        }
    }
    let failed = Failed(shared.clone());
    Env::real().spawn.spawn(name, Box::new(move || body(&failed.0))).unwrap()
}

/// Each batch stamps the same number on all keys of the writer in both tables, and adds bulk of its own.
fn write(shared: &Shared, writer: u64) {
    let mut numbers = Rng::new(writer);
    let mut bulk = Bulk::new();
    for stamp in 1..=shared.batches {
        if shared.done.load(Ordering::SeqCst) {
            return;
        }
        let mut batch = Batch::new();
        for index in 0..STAMPED {
            for table in &shared.tables {
                let mut value = vec![stamp as u8; 8 + numbers.below(400) as usize];
                value[..8].copy_from_slice(&stamp.to_le_bytes());
                batch.put(table.id, &key(writer, index), &value).unwrap();
            }
        }
        let of = (stamp % 2) as usize;
        let (name, table) = (TABLES[of], shared.tables[of].id);
        let key = format!("bulk{:06}w{writer}", numbers.below(5000)).into_bytes();
        let seed = (!numbers.one_in(8)).then(|| numbers.next_u64());
        match seed {
            None => batch.delete(table, &key).unwrap(),
            Some(seed) => batch.put(table, &key, &bulk_value(seed)).unwrap(),
        }
        shared.engine.write(&batch, numbers.one_in(200)).unwrap();
        shared.acknowledged[writer as usize].store(stamp, Ordering::SeqCst);
        bulk.insert((name, key), seed);
        if stamp % 256 == 0 {
            assert_bulk(&shared.engine, &bulk);
        }
    }
    *shared.bulk[writer as usize].lock() = bulk;
}

/// Acknowledged values exist, however old they are, and no older value is in their place.
fn assert_bulk(engine: &Arc<Engine>, bulk: &Bulk) {
    let tables = TABLES.map(|name| engine.catalog().require(name).unwrap());
    for ((name, key), seed) in bulk {
        let table = tables.iter().find(|table| table.name == *name).unwrap();
        let found = get(engine, table, key).unwrap();
        assert!(found == seed.map(bulk_value), "table {name}, key {}: {seed:?} was left", key.escape_ascii());
    }
}

/// One snapshot of the keys of one writer: the same stamp everywhere, or no key at all.
fn stamp_in_snapshot(shared: &Shared, writer: u64, snapshot: &Snapshot) -> u64 {
    let mut seen = None;
    for table in &shared.tables {
        for index in 0..STAMPED {
            let mut value = Vec::new();
            let found = shared
                .engine
                .get(table, &key(writer, index), ReadMode::at(snapshot.seq()), &mut value)
                .unwrap();
            let stamp = if found { number(&value) } else { 0 };
            let first = *seen.get_or_insert(stamp);
            assert_eq!(stamp, first, "writer {writer} key {index} table {}: a part of a batch", table.name);
            assert!(value.iter().skip(8).all(|&byte| byte == stamp as u8), "a value of another batch");
        }
    }
    seen.unwrap_or(0)
}

fn read(shared: &Shared, seed: u64) {
    let mut numbers = Rng::new(seed);
    let mut newest = [0; WRITERS as usize];
    while !shared.done.load(Ordering::SeqCst) {
        let writer = numbers.below(WRITERS);
        let least = shared.acknowledged[writer as usize].load(Ordering::SeqCst);
        match numbers.below(4) {
            0 | 1 => {
                let snapshot = Snapshot::new(shared.engine.clone());
                let stamp = stamp_in_snapshot(shared, writer, &snapshot);
                assert!(
                    stamp >= least.max(newest[writer as usize]),
                    "a snapshot goes back: {stamp} < {least}"
                );
                newest[writer as usize] = stamp;
                // Again, while the background goes on.
                assert_eq!(stamp_in_snapshot(shared, writer, &snapshot), stamp, "a snapshot changes");
            }
            2 => {
                let table = &shared.tables[numbers.below(2) as usize];
                let value = get(&shared.engine, table, &key(writer, numbers.below(STAMPED))).unwrap();
                let stamp = value.map_or(0, |value| number(&value));
                assert!(stamp >= least.max(newest[writer as usize]), "a read goes back: {stamp} < {least}");
                newest[writer as usize] = stamp;
            }
            _ => scan(shared, &mut numbers),
        }
    }
}

/// A scan of one moment, both ways: sorted, the same rows, whole batches.
fn scan(shared: &Shared, numbers: &mut Rng) {
    let snapshot = Snapshot::new(shared.engine.clone());
    let table = &shared.tables[numbers.below(2) as usize];
    let bounds = if numbers.one_in(4) { Bounds::all() } else { Bounds::prefix(b"w") };
    let rows = |bounds: &Bounds| shared.engine.range(table, bounds.clone(), snapshot.seq());
    let forward: Vec<_> = rows(&bounds).collect::<Result<_, _>>().unwrap();
    let mut backward: Vec<_> = rows(&bounds).rev().collect::<Result<_, _>>().unwrap();
    backward.reverse();
    assert!(forward.is_sorted_by(|a, b| a.0 < b.0), "sorted, no key twice");
    assert!(forward == backward, "{} rows forward, {} backward", forward.len(), backward.len());
    for writer in 0..WRITERS {
        let prefix = format!("w{writer}/").into_bytes();
        let mut stamps = forward.iter().filter(|row| row.0.starts_with(&prefix)).map(|row| number(&row.1));
        let Some(first) = stamps.next() else { continue };
        assert!(stamps.all(|stamp| stamp == first), "a scan sees a part of a batch");
    }
}

fn maintain(shared: &Shared) {
    let mut numbers = Rng::new(77);
    let env = Env::real();
    while !shared.done.load(Ordering::SeqCst) {
        match numbers.below(6) {
            0 => shared.engine.flush().unwrap(),
            1 => {
                let table = &shared.tables[numbers.below(2) as usize];
                shared.engine.compact_range(table, &Bounds::prefix(b"bulk00")).unwrap();
            }
            2 => shared.engine.cancel_compactions(),
            _ => env.clock.sleep(std::time::Duration::from_millis(numbers.below(20))),
        }
    }
}

/// Creates and drops a table over and over, while this and another thread write to it.
fn change_tables(shared: &Arc<Shared>) {
    let mut round = 0u64;
    while !shared.done.load(Ordering::SeqCst) {
        round += 1;
        let table = shared.engine.create_table("fleeting", &[]).unwrap();
        let id = table.id;
        let other = start("fleeting-writer", shared, move |shared| {
            let value = vec![7; 900];
            for number in 0..300u64 {
                // Also after the drop: such a record goes nowhere and harms nothing.
                shared.engine.put(id, &number.to_be_bytes(), &value, false).unwrap();
            }
        });
        for number in 0..100u64 {
            shared.engine.put(id, &number.to_be_bytes(), &round.to_le_bytes(), false).unwrap();
        }
        shared.engine.drop_table("fleeting").unwrap();
        other.join();
    }
}

/// The ceiling of memory, sampled.
fn watch_memory(shared: &Shared) {
    let limit = shared.engine.options().memory_bytes;
    let env = Env::real();
    while !shared.done.load(Ordering::SeqCst) {
        let used = shared.engine.stats().memory_bytes;
        assert!(used <= limit + limit / 20, "{used} bytes in use, the limit is {limit}");
        env.clock.sleep(std::time::Duration::from_millis(1));
    }
}

fn run(engine: Arc<Engine>, batches: u64) -> (Vec<u64>, Bulk) {
    let tables = TABLES.map(|name| match engine.catalog().find(name) {
        Some(table) => table,
        None => engine.create_table(name, &[]).unwrap(),
    });
    let shared = Arc::new(Shared {
        engine,
        tables,
        acknowledged: Default::default(),
        bulk: Default::default(),
        done: AtomicBool::new(false),
        failed: AtomicBool::new(false),
        batches,
    });
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| start(&format!("writer-{writer}"), &shared, move |shared| write(shared, writer)))
        .collect();
    let others = [
        start("reader-1", &shared, |shared| read(shared, 1)),
        start("reader-2", &shared, |shared| read(shared, 2)),
        start("maintain", &shared, |shared| maintain(shared)),
        start("tables", &shared, change_tables),
        start("memory", &shared, |shared| watch_memory(shared)),
    ];
    writers.into_iter().for_each(Joiner::join);
    shared.done.store(true, Ordering::SeqCst);
    others.into_iter().for_each(Joiner::join);
    assert!(!shared.failed.load(Ordering::SeqCst), "a thread panicked");
    let snapshot = Snapshot::new(shared.engine.clone());
    let stamps: Vec<_> = (0..WRITERS).map(|writer| stamp_in_snapshot(&shared, writer, &snapshot)).collect();
    assert_eq!(stamps, vec![batches; WRITERS as usize], "everything acknowledged is there");
    drop(snapshot);
    let bulk: Bulk = shared.bulk.iter().flat_map(|bulk| std::mem::take(&mut *bulk.lock())).collect();
    assert_bulk(&shared.engine, &bulk);
    assert_eq!(shared.engine.stats().background_errors, 0);
    let report = shared.engine.check(&mut |_, _| ()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    (stamps, bulk)
}

/// Opens the database and checks that every writer's keys bear one stamp; returns the stamps.
fn stamps_found(engine: &Arc<Engine>) -> Vec<u64> {
    (0..WRITERS)
        .map(|writer| {
            let mut stamps = Vec::new();
            for table in TABLES.map(|name| engine.catalog().require(name).unwrap()) {
                for index in 0..STAMPED {
                    let value = get(engine, &table, &key(writer, index)).unwrap();
                    stamps.push(value.map_or(0, |value| number(&value)));
                }
            }
            assert!(stamps.iter().all(|stamp| *stamp == stamps[0]), "writer {writer}: {stamps:?}");
            stamps[0]
        })
        .collect()
}

#[test]
fn everything_at_once_in_memory_and_after_reopening() {
    let batches = number_from_env("TERRANE_CONCURRENT_BATCHES", 1500);
    for global_index_bytes in [64 << 10, 512 << 10] {
        let options = Options { global_index_bytes, ..small_options() };
        let disk = MemDisk::new();
        let engine = open(disk.clone(), &options).unwrap();
        let (stamps, bulk) = run(engine.clone(), batches);
        // At rest: no thread may store through a mapping while an image is taken.
        engine.wait_until_quiescent().unwrap();
        assert_bulk(&engine, &bulk);
        let again = open(disk.kill(), &options).unwrap();
        assert_eq!(stamps_found(&again), stamps, "a death loses nothing acknowledged");
        assert_bulk(&again, &bulk);
        again.close().unwrap();
        for image in [disk.crash(1), disk.crash(2)] {
            let again = open(image, &options).unwrap();
            let found = stamps_found(&again);
            assert!(found.iter().zip(&stamps).all(|(found, most)| found <= most), "{found:?} of {stamps:?}");
            again.close().unwrap();
        }
        engine.close().unwrap();
        let engine = open(disk, &options).unwrap();
        assert_eq!(stamps_found(&engine), stamps);
        assert_bulk(&engine, &bulk);
        engine.close().unwrap();
    }
}

#[test]
fn everything_at_once_on_files() {
    let dir = tempfile::tempdir().unwrap();
    let path: PathBuf = dir.path().join("db");
    let batches = number_from_env("TERRANE_CONCURRENT_BATCHES", 600);
    let reopen =
        || Engine::open_on(Arc::new(PosixDisk::new()), &path, &small_options(), Env::real()).unwrap();
    let engine = reopen();
    let (stamps, bulk) = run(engine.clone(), batches);
    engine.close().unwrap();
    let engine = reopen();
    assert_eq!(stamps_found(&engine), stamps);
    assert_bulk(&engine, &bulk);
    engine.close().unwrap();
}
