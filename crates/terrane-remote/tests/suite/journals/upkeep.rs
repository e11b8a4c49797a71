//! When a writer deletes objects of its journal that are no longer needed.

use std::sync::atomic::{AtomicU32, Ordering};

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
fn leave_garbage(db: &Db, bucket: &dyn Bucket, count: u32) -> usize {
    put_all(db, 0..count, 1);
    db.flush().expect("flushes");
    announce(db, bucket, count..count + 1);
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
    let all = leave_garbage(&db, &*bucket, 1200);
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

/// The directory has the commit that was refused: the next opening wants to create its object.
#[cfg(feature = "grpc")]
#[test]
fn a_database_whose_service_is_full_opens_again_and_trims() {
    let root = tempfile::tempdir().expect("a temporary directory");
    for restarts in [false, true] {
        let disk = terrane_device::MemDisk::new();
        let settings = LogSettings { file_bytes: 1 << 18, ..LogSettings::default() };
        let open_log = || -> Arc<dyn Bucket> {
            let open = || LogBucket::open(Arc::new(disk.clone()), Path::new("/log"), settings, Env::real());
            // A thread of the service before may have it for a moment.
            let opened = (0..LOOKS_MAX / 10).find_map(|_| {
                let opened = open();
                let is_busy = opened.as_ref().is_err_and(|error| error.kind() == Kind::Busy);
                Env::real().clock.sleep(Duration::from_millis(is_busy.into()));
                Some(opened).filter(|_| !is_busy)
            });
            Arc::new(opened.expect("the lock is free again").expect("opens"))
        };
        let place = Place::memory();
        let open = |server: &terrane_remote::grpc::Server| {
            let url = Some(format!("grpc://{}", server.address()));
            let bucket_journal = Some(BucketJournal { url, settings: super::settings() });
            let directory = root.path().join(restarts.to_string());
            place.open_as(&Deployment { bucket_journal, ..deployment(&directory) })
        };
        let log = open_log();
        let mut server = crate::support::serve(log.clone());
        let db = open(&server).expect("opens");
        // More than a file has.
        leave_garbage(&db, &*log, 1200);
        disk.set_capacity(disk.used_bytes());
        let refused = (0..5000).find_map(|number| put(&db, number, 2).err());
        assert_eq!(refused.expect("the device is full").kind(), Kind::Full);
        drop((db, log));
        if restarts {
            drop(server);
            server = crate::support::serve(open_log());
        }
        for turn in 0..3 {
            let db = open(&server).expect("objects that are no longer needed go first");
            put_all(&db, 0..100, 3 + turn);
            check(&db, 0..100, 3 + turn);
        }
    }
}

/// By the clock no collection is due: the service asks for one. It is made when objects may have become
/// garbage, and not at each look.
#[test]
fn a_journal_in_a_crowded_service_is_trimmed_at_once() {
    let (env, _) = env();
    let root = tempfile::tempdir().expect("a temporary directory");
    for (objects_max, is_crowded) in [(2000, true), (100_000, false)] {
        let disk = Arc::new(terrane_device::MemDisk::new());
        let settings = LogSettings { objects_max, ..LogSettings::default() };
        let opened = LogBucket::open(disk, Path::new("/log"), settings, env.clone()).expect("opens");
        let bucket: Arc<dyn Bucket> = Arc::new(opened);
        let (looks, lists) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (look, list) = (looks.clone(), lists.clone());
        let count = move || _ = look.fetch_add(1, Ordering::SeqCst);
        let counting: Arc<dyn Bucket> = Arc::new(BusyBucket::at_looks(bucket.clone(), count));
        let count = move || _ = list.fetch_add(1, Ordering::SeqCst);
        let counting = Arc::new(BusyBucket::new(counting, "db/journal", count));
        let db = open_busy(counting, &root.path().join(objects_max.to_string()), &env);
        let all = leave_garbage(&db, &*bucket, 1200);
        let wait_for_looks = || {
            let before = looks.load(Ordering::SeqCst);
            let came = (0..LOOKS_MAX / 10).any(|_| {
                Env::real().clock.sleep(Duration::from_millis(1));
                looks.load(Ordering::SeqCst) > before + 4
            });
            assert!(came, "the background looks all the time");
        };
        if is_crowded {
            // It may have been trimmed before they were counted.
            wait_for_trim(&*bucket, 800);
        } else {
            wait_for_looks();
            assert_eq!(names(&*bucket, "db/journal").len(), all, "they are young, and not too many");
        }
        // Much is needed, so that it stays crowded.
        put_all(&db, 0..1200, 2);
        wait_for_looks();
        let before = lists.load(Ordering::SeqCst);
        wait_for_looks();
        assert_eq!(lists.load(Ordering::SeqCst), before, "nothing became garbage");
        db.close().expect("closes");
    }
}
