//! Threads of a database: a close joins every one, also if it fails; a handle dropped without a close ends
//! them, too.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "a test may panic and wait")]

use crate::support;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use support::{DIR, rows, small_options};
use terrane_base::env::{Env, Joiner, Spawn};
use terrane_base::options::Options;
use terrane_base::{Kind, Result, TableId};
use terrane_device::{Call, Disk, Failure, Fault, FaultyDisk, MemDisk};
use terrane_engine::Engine;

/// Not a figure: what has not ended by then, 5 ms and more apart, never ends.
const LOOKS_MAX: u32 = 8000;

/// The real threads, counted.
#[derive(Clone, Debug)]
struct Counting {
    real: Arc<dyn Spawn>,
    begun: Arc<AtomicUsize>,
    /// Bodies that have returned.
    ended: Arc<AtomicUsize>,
    joined: Arc<AtomicUsize>,
    /// Threads of a replay among those that have begun.
    replaying: Arc<AtomicUsize>,
}

struct Completeness(Box<dyn Joiner>, Arc<AtomicUsize>);

impl Joiner for Completeness {
    fn join(self: Box<Self>) {
        self.0.join();
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

impl Spawn for Counting {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Joiner>> {
        let ended = self.ended.clone();
        let counted = move || {
            body();
            ended.fetch_add(1, Ordering::SeqCst);
        };
        let joiner = self.real.spawn(name, Box::new(counted))?;
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.replaying.fetch_add(usize::from(name.starts_with("terrane-replay-")), Ordering::SeqCst);
        Ok(Box::new(Completeness(joiner, self.joined.clone())))
    }

    fn parallelism(&self) -> usize {
        self.real.parallelism()
    }
}

impl Counting {
    fn new() -> Self {
        let count = || Arc::new(AtomicUsize::new(0));
        let (begun, ended, joined, replaying) = (count(), count(), count(), count());
        Counting { real: Env::real().spawn, begun, ended, joined, replaying }
    }

    fn open(&self, disk: impl Disk + 'static, options: &Options) -> Result<Arc<Engine>> {
        let env = Env { spawn: Arc::new(self.clone()), ..Env::real() };
        Engine::open_on(Arc::new(disk), Path::new(DIR), options, env)
    }

    fn assert_all_joined(&self, place: &str) {
        let count = |number: &AtomicUsize| number.load(Ordering::SeqCst);
        assert!(count(&self.begun) >= 4, "{place}: two workers and the two threads of the journal");
        assert_eq!(count(&self.joined), count(&self.begun), "{place}: threads outlive the close");
    }
}

fn fill(engine: &Engine) {
    for number in 0..200u64 {
        engine.put(TableId::DEFAULT, &number.to_be_bytes(), &[number as u8; 2000], false).unwrap();
    }
}

#[test]
fn a_close_joins_every_thread() {
    let (threads, disk) = (Counting::new(), MemDisk::new());
    let engine = threads.open(disk.clone(), &small_options()).unwrap();
    fill(&engine);
    engine.close().unwrap();
    threads.assert_all_joined("a new database");
    let threads = Counting::new();
    let engine = threads.open(disk.clone(), &small_options()).unwrap();
    engine.set_background_paused(true);
    fill(&engine);
    engine.close().unwrap();
    threads.assert_all_joined("paused");
}

/// An opening replays on as many threads as the option says, the opener's among them.
#[test]
fn a_replay_has_the_threads_of_its_option() {
    let disk = MemDisk::new();
    let engine = Counting::new().open(disk.clone(), &small_options()).unwrap();
    engine.set_background_paused(true);
    fill(&engine);
    let dead = disk.kill();
    for replay_threads in [1, 2, 4] {
        let threads = Counting::new();
        let mut options = small_options();
        options.experiments.replay_threads = replay_threads;
        let engine = threads.open(dead.kill(), &options).unwrap();
        let table = engine.catalog().all()[0].clone();
        assert_eq!(rows(&engine, &table).unwrap().len(), 200, "the rows are there");
        // It checks, and then indexes: each time the opener does its share.
        let expected = 2 * (replay_threads as usize - 1);
        assert_eq!(threads.replaying.load(Ordering::SeqCst), expected, "{replay_threads} threads");
        engine.close().unwrap();
    }
}

#[test]
fn a_close_that_fails_joins_every_thread() {
    for call in [Call::Sync, Call::Write, Call::Allocate] {
        let (threads, disk) = (Counting::new(), FaultyDisk::new(Arc::new(MemDisk::new())));
        let engine = threads.open(disk.clone(), &small_options()).unwrap();
        fill(&engine);
        disk.fail(Fault::new(call, Failure::Broken).lasting());
        let _ = engine.flush();
        let closed = engine.close();
        threads.assert_all_joined(&format!("{call:?} fails"));
        assert!(call != Call::Sync || closed.is_err(), "a close reports commits that are not durable");
    }
    let (threads, disk) = (Counting::new(), FaultyDisk::new(Arc::new(MemDisk::new())));
    let engine = threads.open(disk.clone(), &small_options()).unwrap();
    fill(&engine);
    disk.cut();
    engine.close().unwrap_err();
    threads.assert_all_joined("the device is gone");
    assert_eq!(engine.put(TableId::DEFAULT, b"late", b"", false).unwrap_err().kind(), Kind::Cancelled);
}

#[test]
fn a_database_dropped_without_a_close_ends_its_threads() {
    let threads = Counting::new();
    let engine = threads.open(MemDisk::new(), &small_options()).unwrap();
    fill(&engine);
    drop(engine);
    // A worker that looks for work holds the engine until it has looked. Nothing waits for it, so this does.
    for _ in 0..LOOKS_MAX {
        if threads.ended.load(Ordering::SeqCst) == threads.begun.load(Ordering::SeqCst) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("threads of a dropped database live for ever");
}
