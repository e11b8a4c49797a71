//! Journals in a bucket: what was acknowledged is there, whatever fails and wherever the database is opened.

pub(crate) mod busy;
mod crashes;
mod directories;
mod readers;
mod upkeep;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use terrane::{Db, Durability, Kind, Options};
use terrane_base::env::{Clock, Env};
use terrane_base::{Functions, SegmentId};
use terrane_format::journal_object::JournalObject;
use terrane_format::manifest::DatabaseId;
use terrane_format::object::parse_object_name;
use terrane_journal::CommitLog;
use terrane_remote::bucket::faulty::{Fault, FaultyBucket};
use terrane_remote::bucket::{DirectoryBucket, LogBucket, LogSettings, MemoryBucket};
use terrane_remote::journal::{Restored, TakeJournal};
use terrane_remote::{
    Bucket, BucketJournal, BucketStoreSettings, Deployment, JournalFolder, ObjectCommitLog,
    ObjectJournalSettings, Reading,
};

use crate::support::{env, memory, names, refused, retrying};

/// Looks until a condition holds: not a figure, a condition that fails after as many looks never holds.
const LOOKS_MAX: u32 = 100_000;

/// Batches that are full soon, and are never uploaded for their age.
fn settings() -> ObjectJournalSettings {
    ObjectJournalSettings {
        batch_bytes: 4096,
        batch: Duration::from_secs(3600),
        replaced_age: Duration::from_secs(60),
        ..ObjectJournalSettings::default()
    }
}

fn deployment(directory: &Path) -> Deployment {
    let options =
        [("memory_bytes", "16777216"), ("write_memory_bytes", "4194304"), ("segment_bytes", "65536")];
    let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut options = Vec::from(options);
    options.push(("close_flush".to_owned(), "false".to_owned()));
    Deployment {
        journal: directory.to_owned(),
        bucket_journal: Some(BucketJournal { url: None, settings: settings() }),
        cache: None,
        abandon: None,
        url: "memory:".to_owned(),
        prefix: "db".to_owned(),
        settings: BucketStoreSettings { probe: false, ..BucketStoreSettings::default() },
        compaction: None,
        hedged_reads: true,
        writer_check_ms: 3_600_000,
        options,
    }
}

struct Place {
    root: TempDir,
    bucket: Arc<dyn Bucket>,
}

impl Place {
    fn new(bucket: Arc<dyn Bucket>) -> Place {
        Place { root: tempfile::tempdir().expect("a temporary directory"), bucket }
    }

    fn memory() -> Place {
        Place::new(Arc::new(MemoryBucket::new(Env::real().clock)))
    }

    fn deployment(&self, name: &str) -> Deployment {
        deployment(&self.root.path().join(name))
    }

    fn open_as(&self, deployment: &Deployment) -> terrane::Result<Db> {
        deployment.open_in(self.bucket.clone(), &Options::default(), Functions::default(), Env::real())
    }

    fn read_as(&self, deployment: &Deployment) -> terrane::Result<Reading> {
        deployment.read_in(self.bucket.clone(), &Options::default(), Functions::default(), Env::real())
    }

    fn read(&self, name: &str) -> terrane::Result<Reading> {
        self.read_as(&self.deployment(name))
    }

    fn open(&self, name: &str) -> Db {
        self.open_as(&self.deployment(name)).expect("opens")
    }
}

fn key(number: u32) -> String {
    format!("key{number:06}")
}

/// Writes a key durably.
pub(crate) fn put(db: &Db, number: u32, salt: u32) -> terrane::Result<()> {
    let value = [salt.to_le_bytes(); 30].concat();
    db.default_table().put_with(key(number), value, Durability::Synced)
}

pub(crate) fn put_all(db: &Db, range: std::ops::Range<u32>, salt: u32) {
    range.for_each(|number| put(db, number, salt).expect("put"));
}

#[track_caller]
pub(crate) fn check(db: &Db, range: std::ops::Range<u32>, salt: u32) {
    for number in range {
        let found = db.get(key(number)).expect("reads");
        assert!(found.as_deref() == Some(&[salt.to_le_bytes(); 30].concat()[..]), "{}, {salt}", key(number));
    }
}

/// A take-over of a journal without a segment before.
fn asked(database: u128, epoch: u64) -> TakeJournal {
    TakeJournal { database: DatabaseId(database), epoch, has_segments: false, was_in_objects: true }
}

/// A log of the folder `db`, behind a fence of this epoch, with no directory.
pub(crate) fn log(bucket: &Arc<dyn Bucket>, epoch: u64, env: &Env) -> terrane::Result<ObjectCommitLog> {
    let folder = JournalFolder::new(bucket.clone(), "db")?;
    let fence = folder.take_over(&asked(7, epoch), &*env.random)?;
    let restored = Restored::default();
    ObjectCommitLog::open(folder, &fence, restored, settings(), env)
}

/// The number of an object of the journal.
fn number(name: &str) -> u64 {
    name.rsplit('/').next().and_then(parse_object_name).expect("a number")
}

/// Writes these keys until an object says that those in front of it are no longer needed, as they are once
/// their segments were flushed and trimmed; returns the number from which on objects are needed.
fn announce(db: &Db, bucket: &dyn Bucket, range: std::ops::Range<u32>) -> u64 {
    let first = |name: &String| {
        let bytes = bucket.get(name, u64::MAX - 1).expect("reads");
        JournalObject::decode_front(&bytes).expect("a header").first
    };
    let before = first(&names(bucket, "db/journal")[1]);
    let mut looks = (0..LOOKS_MAX).map(|_| {
        put_all(db, range.clone(), 9);
        first(&names(bucket, "db/journal").pop().expect("there are some"))
    });
    looks.find(|needed| *needed > before).expect("the segments are trimmed")
}

fn bytes(number: u64, len: usize) -> Vec<u8> {
    crate::support::pattern(len, number)
}

#[test]
fn acknowledged_commits_are_there_elsewhere() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let files = DirectoryBucket::open(root.path(), Env::real()).expect("opens");
    // More than a segment has in one of them: each synced put takes a file and its syncs in the other.
    let log = Place::new(crate::support::object_log());
    let mut places = vec![(Place::memory(), 700), (Place::new(Arc::new(files)), 110), (log, 700)];
    #[cfg(feature = "grpc")]
    let server = crate::support::serve(crate::support::object_log());
    #[cfg(feature = "grpc")]
    places.push((Place::new(Arc::new(crate::support::connect(server.address()))), 700));
    for (place, end) in places {
        // Without a close: each machine is lost while it has the database open.
        let first = place.open("a");
        put_all(&first, 0..60, 1);
        first.flush().expect("flushes");
        put_all(&first, 40..80, 2);
        let second = place.open("b");
        check(&second, 0..40, 1);
        check(&second, 40..80, 2);
        put_all(&second, 80..100, 3);
        let third = place.open("c");
        check(&third, 0..40, 1);
        check(&third, 40..80, 2);
        check(&third, 80..100, 3);
        assert!(third.check(&mut |_, _| ()).expect("reads").findings.is_empty());
        third.close().expect("closes");
        let fourth = place.open("c");
        check(&fourth, 40..80, 2);
        check(&fourth, 80..100, 3);
        put_all(&fourth, 100..end, 4);
        let fifth = place.open("d");
        check(&fifth, 80..100, 3);
        check(&fifth, 100..end, 4);
        for replaced in [first, second, fourth] {
            let error = put(&replaced, 0, 9).expect_err("it was replaced");
            assert!(error.kind() == Kind::Poisoned && error.to_string().contains("epoch"), "{error}");
        }
        check(&fifth, 0..40, 1);
    }
}

#[test]
fn a_writer_that_wakes_acknowledges_nothing() {
    let (env, _) = env();
    let bucket: Arc<dyn Bucket> = Arc::new(MemoryBucket::new(Env::real().clock));
    let first = log(&bucket, 1, &env).expect("opens");
    first.append(SegmentId(1), 0, &bytes(1, 100)).expect("appends");
    first.persist().expect("it is the writer");
    // Bytes that it had not begun to upload when it fell asleep.
    first.append(SegmentId(1), 100, &bytes(2, 50)).expect("appends");
    let second = log(&bucket, 2, &env).expect("opens");
    second.append(SegmentId(2), 0, &bytes(3, 100)).expect("appends");
    second.persist().expect("it is the writer");
    for _ in 0..2 {
        let message = refused(first.persist(), Kind::Poisoned);
        assert!(message.contains("the writer of epoch 2 has taken over"), "{message}");
        refused(first.append(SegmentId(1), 150, b"more"), Kind::Poisoned);
    }
    second.append(SegmentId(2), 100, &bytes(4, 100)).expect("appends");
    second.persist().expect("it is the writer still");
    refused(log(&bucket, 1, &env), Kind::Poisoned);
    let folder = JournalFolder::new(bucket, "db").expect("a prefix");
    let message = refused(folder.take_over(&asked(8, 3), &*env.random), Kind::Corrupt);
    assert!(message.contains("database"), "{message}");
}

#[test]
fn the_window_of_a_local_journal_is_closed() {
    let place = Place::memory();
    let first = place.open("a");
    put_all(&first, 0..10, 1);
    let second = place.open("b");
    // Before the first one has looked whether it was replaced.
    put(&first, 10, 1).expect_err("it was replaced");
    assert_eq!(second.get(key(10)).expect("reads"), None);
    check(&second, 0..10, 1);
}

#[test]
fn lost_answers_and_faults_lose_nothing() {
    for seed in 0..3 {
        let (env, clock) = env();
        let faulty = FaultyBucket::new(memory(&clock));
        let place = Place::new(retrying(Arc::new(faulty.clone()), &env));
        faulty.fail_at_random(4, seed);
        for turn in 0..3 {
            let db = place.open(["a", "b", "a"][turn as usize]);
            check(&db, 0..turn * 20, 1);
            put_all(&db, turn * 20..turn * 20 + 20, 1);
        }
    }
    // Each creation of a log once, without a bucket that repeats.
    for (call, fault) in (0..8).flat_map(|call| [(call, Fault::Before), (call, Fault::After)]) {
        let (env, clock) = env();
        let faulty = FaultyBucket::new(memory(&clock));
        let bucket: Arc<dyn Bucket> = Arc::new(faulty.clone());
        let opened = log(&bucket, 1, &env).expect("opens");
        faulty.fail(faulty.calls() + call, fault);
        for at in 0..6 {
            opened.append(SegmentId(1), at * 100, &bytes(at, 100)).expect("appends");
            opened.persist().expect("it is tried again");
        }
    }
}

/// A writer whose objects are young keeps some for readers, and few in a bucket that is crowded.
#[test]
fn objects_go_by_their_count_before_they_are_old() {
    for (garbage_objects_max, objects_max, kept) in
        [(20, 4000, 11), (100_000, 4000, 1200), (100_000, 2000, 51)]
    {
        let (env, _) = env();
        let disk = Arc::new(terrane_device::MemDisk::new());
        let limits = LogSettings { objects_max, ..LogSettings::default() };
        let opened = LogBucket::open(disk, Path::new("/log"), limits, env.clone()).expect("opens");
        let bucket: Arc<dyn Bucket> = Arc::new(opened);
        let folder = JournalFolder::new(bucket.clone(), "db").expect("a prefix");
        let fence = folder.take_over(&asked(7, 1), &*env.random).expect("the first writer");
        let settings = ObjectJournalSettings { garbage_objects_max, ..settings() };
        let log = ObjectCommitLog::open(folder, &fence, Restored::default(), settings, &env).expect("opens");
        let write = |segment, at: u64| {
            log.append(SegmentId(segment), at * 5, b"bytes").expect("appends");
            log.persist().expect("it is the writer");
        };
        (0..1200).for_each(|at| write(1, at));
        assert_eq!(log.collect_garbage().expect("lists"), 0, "all are needed");
        write(2, 0);
        log.trim(SegmentId(1));
        write(2, 1);
        log.collect_garbage().expect("deletes");
        // The fence stays, and so do needed objects.
        let left = names(&*bucket, "db/journal").len();
        assert_eq!(left, kept + 3, "of {garbage_objects_max} objects in a log of {objects_max}");
        assert!(names(&*bucket, "db/journal")[0].ends_with("00001"), "the fence is kept");
        drop(log);
        self::log(&bucket, 2, &env).expect("the journal is whole");
    }
}

#[test]
fn unsynced_commits_get_to_the_bucket_by_themselves() {
    let place = Place::memory();
    let soon = ObjectJournalSettings { batch: Duration::from_millis(1), ..settings() };
    let journal = Some(BucketJournal { url: None, settings: soon });
    let db = place.open_as(&Deployment { bucket_journal: journal, ..place.deployment("a") }).expect("opens");
    let objects = || names(&*place.bucket, "db/journal").len();
    let before = objects();
    db.put("k", "v").expect("put");
    let clock = Env::real().clock;
    let came = (0..LOOKS_MAX).any(|_| {
        clock.sleep(Duration::from_millis(1));
        objects() > before
    });
    assert!(came, "it is uploaded without a sync");
    assert_eq!(place.open("b").get("k").expect("reads").expect("it is there"), "v");
}

#[test]
fn an_old_directory_counts_for_nothing() {
    let place = Place::memory();
    let first = place.open("a");
    put_all(&first, 0..5, 1);
    // Never acknowledged as durable, and only in the old directory.
    first.put("unsynced", "v").expect("put");
    let second = place.open("b");
    put_all(&second, 5..10, 2);
    drop((first, second));
    let again = place.open("a");
    check(&again, 0..5, 1);
    check(&again, 5..10, 2);
    assert_eq!(again.get("unsynced").expect("reads"), None);
    drop(again);
    // A directory of another database is not emptied.
    let other = Deployment { prefix: "other".to_owned(), ..place.deployment("c") };
    put_all(&place.open_as(&other).expect("opens"), 0..5, 3);
    for _ in 0..2 {
        let refused = place.open_as(&place.deployment("c")).expect_err("it is of another one");
        assert!(refused.kind() == Kind::Invalid && refused.to_string().contains("/other"), "{refused}");
    }
    check(&place.open_as(&other).expect("opens"), 0..5, 3);
}

#[test]
fn a_journal_moves_into_the_bucket_and_not_back() {
    let place = Place::memory();
    let local = Deployment { bucket_journal: None, ..place.deployment("a") };
    put_all(&place.open_as(&local).expect("opens"), 0..5, 1);
    let refused = place.open_as(&place.deployment("b")).expect_err("commits would be lost");
    assert!(refused.to_string().contains("abandon"), "{refused}");
    put_all(&place.open("a"), 5..10, 2);
    for name in ["a", "c"] {
        let local = Deployment { bucket_journal: None, ..place.deployment(name) };
        let refused = place.open_as(&local).expect_err("the journal is in the bucket");
        assert!(refused.kind() == Kind::Invalid && refused.to_string().contains("in_bucket"), "{refused}");
    }
    let elsewhere = place.open("b");
    check(&elsewhere, 0..5, 1);
    check(&elsewhere, 5..10, 2);
    drop(elsewhere);
    // An address without the journal.
    let empty: Vec<String> = names(&*place.bucket, "db/journal");
    place.bucket.delete(&empty).expect("deletes");
    let lost = place.open_as(&place.deployment("d")).expect_err("there is no journal");
    assert!(lost.kind() == Kind::Corrupt && lost.to_string().contains("db/journal"), "{lost}");
}

#[test]
fn objects_go_when_none_needs_them() {
    let (env, clock) = env();
    let bucket: Arc<dyn Bucket> = memory(&clock);
    let first = log(&bucket, 1, &env).expect("opens");
    let write = |log: &ObjectCommitLog, segment: u64, times: u64| {
        for at in 0..times {
            log.append(SegmentId(segment), at * 100, &bytes(at, 100)).expect("appends");
            log.persist().expect("it is the writer");
        }
    };
    write(&first, 1, 3);
    write(&first, 2, 2);
    let count = || names(&*bucket, "db/journal").len();
    assert_eq!((count(), first.collect_garbage().expect("lists")), (6, 0));
    first.trim(SegmentId(1));
    // The next object names the needed ones; it is not old yet.
    first.append(SegmentId(2), 200, b"abc").expect("appends");
    first.persist().expect("it is the writer");
    assert_eq!(first.collect_garbage().expect("lists"), 0);
    clock.sleep(Duration::from_secs(61));
    first.append(SegmentId(2), 203, b"def").expect("appends");
    first.persist().expect("it is the writer");
    assert_eq!(first.collect_garbage().expect("lists"), 3);
    assert_eq!(count(), 5, "the fence and what has bytes of segment 2");
    let folder = JournalFolder::new(bucket.clone(), "db").expect("a prefix");
    assert_eq!(folder.chain().expect("whole").len(), 4);
    let second = log(&bucket, 2, &env).expect("opens");
    second.append(SegmentId(3), 0, b"abc").expect("appends");
    second.persist().expect("it is the writer");
    refused(first.append(SegmentId(2), 206, b"x").and_then(|()| first.persist()), Kind::Poisoned);
    // The first fence stays: a writer before it finds it for ever.
    assert_eq!(names(&*bucket, "db/journal")[0], "db/journal/00000000000000000001");
}
