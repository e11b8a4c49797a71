//! Databases whose compactions workers do, on threads of their own.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use terrane::{Db, Options};
use terrane_base::Functions;
use terrane_base::env::Env;
use terrane_engine::{OpenedParts, Parts, PartsRequest};
use terrane_remote::bucket::MemoryBucket;
use terrane_remote::bucket::faulty::FaultyBucket;
use terrane_remote::jobs::{BucketCompactor, BucketCompactorSettings, Stop, Worker, WorkerSettings};
use terrane_remote::manifest::TakeOver;
use terrane_remote::{Bucket, BucketStore, ManifestFolder};

use crate::support::small;

/// Parts in a bucket, whose compactions are offered to workers.
struct WithWorkers {
    bucket: Arc<dyn Bucket>,
    /// The bucket as the table of jobs sees it.
    jobs: Arc<dyn Bucket>,
    settings: BucketCompactorSettings,
}

impl fmt::Debug for WithWorkers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithWorkers").finish_non_exhaustive()
    }
}

impl Parts for WithWorkers {
    fn address(&self) -> &str {
        "memory:db"
    }

    fn open(&self, request: &PartsRequest<'_>) -> terrane_base::Result<OpenedParts> {
        let env = request.env.clone();
        let opened = ManifestFolder::new(self.bucket.clone(), "db")?.take_over(&TakeOver::new(request))?;
        let store = BucketStore::open(self.bucket.clone(), "db", opened.epoch, small(), env.clone())?;
        let store = Arc::new(store);
        let workers =
            BucketCompactor::begin((self.jobs.clone(), "db"), opened.epoch, &store, self.settings, &env);
        let (manifest, compactor) = (Arc::new(opened.manifest), workers.map(|(_, make)| make));
        Ok(OpenedParts { manifest, store, log: None, upkeep: None, compactor, requests: None })
    }
}

fn options() -> Options {
    let mut options = Options::default();
    for (name, value) in [
        ("memory_bytes", "16MiB"),
        ("write_memory_bytes", "4MiB"),
        ("segment_bytes", "64KiB"),
        ("memtable_bytes", "64KiB"),
        ("global_index_bytes", "96KiB"),
        ("level_base_bytes", "128KiB"),
        ("block_bytes", "1KiB"),
        ("background_threads", "2"),
    ] {
        options.set(name, value).expect("an option");
    }
    options
}

/// How long a silent worker is waited for where workers die. Where none dies it is [`NEVER`], as a busy
/// machine may leave a live worker without a processor for longer than this.
const LOST: Duration = Duration::from_millis(400);
/// Longer than any test waits.
const NEVER: Duration = Duration::from_secs(600);

fn settings(claim: Duration, lost: Duration) -> BucketCompactorSettings {
    BucketCompactorSettings { claim, poll: Duration::from_millis(10), lost, ..Default::default() }
}

/// A worker on a thread.
struct Running {
    stop: Stop,
    thread: JoinHandle<Vec<String>>,
}

impl Running {
    fn start(bucket: Arc<dyn Bucket>, name: &str) -> Running {
        let settings =
            WorkerSettings { name: name.to_owned(), poll: Duration::from_millis(10), store: small() };
        let worker = Worker::new(bucket, "db", settings, Env::real()).expect("possible settings");
        let stop = Stop::default();
        let asked = stop.clone();
        let body = move || {
            let mut lines = Vec::new();
            worker.run(&asked, None, &mut |line| lines.push(line.to_owned())).expect("runs");
            lines
        };
        #[expect(clippy::disallowed_methods, reason = "a worker of tests, whose lines are its result")]
        let thread = std::thread::spawn(body);
        Running { stop, thread }
    }

    /// Stops it; returns the lines that it printed.
    fn end(self) -> Vec<String> {
        self.stop.ask();
        self.thread.join().expect("it does not panic")
    }
}

fn key(number: u32) -> String {
    format!("key-{number:05}")
}

fn value(number: u32, round: u32) -> Vec<u8> {
    let mut rng = terrane_base::Rng::new(u64::from(number) << 32 | u64::from(round));
    (0..40).flat_map(|_| rng.next_u64().to_le_bytes()).collect()
}

/// Puts, overwrites and deletes, flushes in between, and a compaction of everything.
fn work(db: &Db) {
    for round in 0..4 {
        for number in (0..1200).filter(|number| number % (round + 1) == 0) {
            match (number + round) % 7 {
                0 => db.delete(key(number)).expect("deletes"),
                _ => db.put(key(number), value(number, round)).expect("puts"),
            }
        }
        db.flush().expect("flushes");
    }
    db.compact_range(db.default_table(), ..).expect("compacts");
}

fn rows(db: &Db) -> Vec<(Vec<u8>, Vec<u8>)> {
    let rows = db.default_table().range(..).map(|row| row.expect("reads"));
    rows.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

/// The rows of a database in a directory, whose compactions run in its process.
fn local_rows() -> Vec<(Vec<u8>, Vec<u8>)> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::open_with(dir.path(), &options()).expect("opens");
    work(&db);
    let rows = rows(&db);
    db.close().expect("closes");
    rows
}

fn open(parts: &WithWorkers, journal: &Path) -> Db {
    Db::open_elsewhere(journal, &options(), Env::real(), Functions::default(), parts).expect("opens")
}

fn memory() -> Arc<dyn Bucket> {
    Arc::new(MemoryBucket::new(Env::real().clock))
}

#[test]
fn a_database_whose_compactions_workers_do_has_the_same_rows() {
    let (bucket, journal) = (memory(), tempfile::tempdir().expect("a temporary directory"));
    let parts =
        WithWorkers { jobs: bucket.clone(), bucket: bucket.clone(), settings: settings(NEVER, NEVER) };
    let workers = [Running::start(bucket.clone(), "one"), Running::start(bucket, "two")];
    let db = open(&parts, journal.path());
    work(&db);
    let expected = local_rows();
    assert!(rows(&db) == expected, "the rows of a local database");
    let statistics = db.stats();
    assert!(statistics.compactions_elsewhere > 0, "workers did some");
    assert!(db.check(&mut |_, _| ()).expect("reads").findings.is_empty());
    db.close().expect("closes");
    let db = open(&parts, journal.path());
    assert!(rows(&db) == expected, "after another opening");
    db.close().expect("closes");
    let lines: Vec<String> = workers.into_iter().flat_map(Running::end).collect();
    let done = lines.iter().filter(|line| line.contains(": done")).count() as u64;
    assert!(done >= statistics.compactions_elsewhere, "a line for each job: {lines:?}");
}

#[test]
fn a_database_whose_workers_all_die_goes_on() {
    let (bucket, journal) = (memory(), tempfile::tempdir().expect("a temporary directory"));
    let parts = WithWorkers {
        jobs: bucket.clone(),
        bucket: bucket.clone(),
        settings: settings(Duration::from_millis(200), LOST),
    };
    let faulty = FaultyBucket::new(bucket);
    // It dies in its first job, or its second.
    faulty.fail_from(60);
    let worker = Running::start(Arc::new(faulty), "dying");
    let db = open(&parts, journal.path());
    work(&db);
    assert!(rows(&db) == local_rows(), "the rows of a local database");
    let statistics = db.stats();
    assert!(statistics.compactions > statistics.compactions_elsewhere, "the database did the others itself");
    assert!(db.check(&mut |_, _| ()).expect("reads").findings.is_empty());
    db.close().expect("closes");
    worker.end();
}

/// The bucket does not answer for the table of jobs, or has foreign objects there: the database opens, and
/// does its compactions itself.
#[test]
fn a_database_opens_with_a_damaged_table_of_jobs() {
    for is_down in [true, false] {
        let (bucket, journal) = (memory(), tempfile::tempdir().expect("a temporary directory"));
        let jobs = FaultyBucket::new(bucket.clone());
        jobs.set_down(is_down);
        for epoch in 1..10 {
            let name = format!("db/jobs/{epoch:020}-coordinator");
            bucket.create(&name, b"stray").expect("creates");
        }
        let settings = settings(Duration::from_millis(200), LOST);
        let parts = WithWorkers { bucket, jobs: Arc::new(jobs), settings };
        let db = open(&parts, journal.path());
        db.put("key", "value").expect("puts");
        db.flush().expect("flushes");
        db.compact_range(db.default_table(), ..).expect("compacts");
        assert_eq!(db.get("key").expect("reads").as_deref(), Some(&b"value"[..]));
        let statistics = db.stats();
        assert_eq!((statistics.compactions_elsewhere, statistics.compactions_fallen_back), (0, 0));
        db.close().expect("closes");
    }
}
