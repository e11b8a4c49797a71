//! When a writer deletes objects of its journal that are needed no more.

use terrane_base::sync::Mutex;

use super::busy::BusyBucket;
use super::*;

/// Opens a database whose writer looks after its parts all the time, by a clock of the test.
fn open_busy(bucket: Arc<dyn Bucket>, directory: &Path, env: &Env) -> Db {
    let age = Duration::from_secs(20);
    let settings = ObjectJournalSettings { replaced_age: age, ..settings() };
    let bucket_journal = Some(BucketJournal { url: None, settings });
    let mut deployment = Deployment { writer_check_ms: 1, bucket_journal, ..deployment(directory) };
    // The journal is kept for as long as what earlier states need of the store.
    deployment.settings.garbage_age = age;
    deployment.open_in(bucket, &Options::default(), Functions::default(), env.clone()).expect("opens")
}

/// Writes and flushes more than a segment has; returns how many objects the journal has then.
fn leave_garbage(db: &Db, bucket: &dyn Bucket) -> usize {
    put_all(db, 0..1200, 1);
    db.flush().expect("flushes");
    announce(db, bucket, 1200..1201);
    names(bucket, "db/journal").len()
}

/// Looks until the journal has at most so many objects.
#[track_caller]
fn wait_for_trim(bucket: &dyn Bucket, most: usize) {
    let mut left = 0;
    let is_trimmed = (0..LOOKS_MAX / 10).any(|_| {
        Env::real().clock.sleep(Duration::from_millis(1));
        left = names(bucket, "db/journal").len();
        left <= most
    });
    assert!(is_trimmed, "{left} objects stay, {most} were to stay");
}

/// The bucket of the store may take minutes to answer, while the journal's service fills.
#[test]
fn a_store_that_is_slow_keeps_no_journal_from_its_trim() {
    let (env, clock) = env();
    let root = tempfile::tempdir().expect("a temporary directory");
    let bucket: Arc<dyn Bucket> = memory(&clock);
    let gate: Arc<Mutex<()>> = Arc::default();
    let passed = gate.clone();
    let busy = BusyBucket::new(bucket.clone(), "db/data", move || drop(passed.lock()));
    let db = open_busy(Arc::new(busy), root.path(), &env);
    let all = leave_garbage(&db, &*bucket);
    // From now on the store's collection, which begins with a list, does not end.
    let closed = gate.lock();
    clock.sleep(Duration::from_secs(30));
    // It says by its time that the objects are old. Then the collection is due.
    put_all(&db, 1201..1202, 1);
    clock.sleep(Duration::from_secs(31));
    wait_for_trim(&*bucket, all / 2);
    drop(closed);
    check(&db, 0..1200, 1);
}

/// By the clock no collection is due: the service asks for one.
#[test]
fn a_journal_in_a_crowded_service_is_trimmed_at_once() {
    let (env, _) = env();
    let root = tempfile::tempdir().expect("a temporary directory");
    for (objects_max, is_crowded) in [(2000, true), (100_000, false)] {
        let disk = Arc::new(terrane_device::MemDisk::new());
        let settings = LogSettings { objects_max, ..LogSettings::default() };
        let opened = LogBucket::open(disk, Path::new("/log"), settings, env.clone()).expect("opens");
        let bucket: Arc<dyn Bucket> = Arc::new(opened);
        let db = open_busy(bucket.clone(), &root.path().join(objects_max.to_string()), &env);
        let all = leave_garbage(&db, &*bucket);
        if is_crowded {
            wait_for_trim(&*bucket, all - 400);
        } else {
            assert_eq!(names(&*bucket, "db/journal").len(), all, "they are young, and not too many");
        }
        db.close().expect("closes");
    }
}
