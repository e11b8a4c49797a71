//! Databases of buckets: everything of `Db`, a kill, a take-over, faults.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use terrane::{Backups, Db, Kind, Options};
use terrane_base::Functions;
use terrane_base::env::Env;
use terrane_device::{Disk, PosixDisk};
use terrane_remote::bucket::faulty::FaultyBucket;
use terrane_remote::bucket::{DirectoryBucket, MemoryBucket};
use terrane_remote::{Bucket, BucketStoreSettings, Deployment};

use crate::support::{env, retrying};

/// Looks until a condition holds: not a figure, a condition that fails after as many looks never holds.
pub(crate) const LOOKS_MAX: u32 = 100_000;

/// A deployment with its journal in `journal`, and limits so small that few writes flush and compact.
pub(crate) fn deployment(journal: &Path) -> Deployment {
    let settings = BucketStoreSettings {
        object_bytes: 1 << 20,
        stage_bytes: 64 << 20,
        garbage_age: Duration::from_secs(3600),
        probe: true,
    };
    let small = [
        ("memory_bytes", 16 << 20),
        ("write_memory_bytes", 4 << 20),
        ("segment_bytes", 64 << 10),
        ("memtable_bytes", 64 << 10),
        ("global_index_bytes", 96 << 10),
        ("level_base_bytes", 128 << 10),
        ("block_bytes", 1 << 10),
        ("background_threads", 2),
    ];
    let mut options: Vec<(String, String)> =
        small.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect();
    options.push(("close_flush".to_owned(), "false".to_owned()));
    Deployment {
        journal: journal.to_owned(),
        bucket_journal: None,
        cache: None,
        abandon: None,
        url: "memory:".to_owned(),
        prefix: "db".to_owned(),
        settings,
        compaction: None,
        hedged_reads: true,
        writer_check_ms: 3_600_000,
        options,
    }
}

pub(crate) struct Fixture {
    root: TempDir,
    bucket: Arc<dyn Bucket>,
}

impl Fixture {
    pub(crate) fn new(bucket: Arc<dyn Bucket>) -> Fixture {
        Fixture { root: tempfile::tempdir().expect("a temporary directory"), bucket }
    }

    fn memory() -> Fixture {
        Fixture::new(Arc::new(MemoryBucket::new(Env::real().clock)))
    }

    pub(crate) fn journal(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn open_as(&self, deployment: &Deployment) -> terrane::Result<Db> {
        deployment.open_in(self.bucket.clone(), &Options::default(), Functions::default(), Env::real())
    }

    /// Opens the database with the journal `name`.
    pub(crate) fn open(&self, name: &str) -> Db {
        self.open_as(&deployment(&self.journal(name))).expect("opens")
    }

    /// Opens the database with a copy `to` of the journal `from` while a writer has that one open: what
    /// another machine finds on the volume after the first one was cut off, or a new process after a kill.
    fn open_copy(&self, from: &str, to: &str) -> Db {
        let (from, to) = (self.journal(from), self.journal(to));
        copy(&from, &to);
        let opened = self.open_as(&deployment(&to));
        let Err(error) = opened else { return opened.expect("opens") };
        // The first writer got a segment while it was copied. It is replaced now, and gets no further one.
        assert!(error.kind() == Kind::Corrupt && error.to_string().contains("is missing"), "{error}");
        std::fs::remove_dir_all(to.join("journal")).expect("it was copied");
        copy(&from.join("journal"), &to.join("journal"));
        self.open_as(&deployment(&to)).expect("the copy is whole")
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("new");
    for name in PosixDisk::new().list(from).expect("there") {
        let (source, target) = (from.join(&name), to.join(&name));
        if source.is_dir() {
            copy(&source, &target);
        } else if name != "LOCK" {
            // A segment may go meanwhile: no commit is only there.
            let copied = std::fs::copy(&source, target);
            assert!(copied.is_ok() || !source.exists(), "{copied:?}");
        }
    }
}

fn key(number: u32) -> String {
    format!("key{number:06}")
}

/// Sets keys of a range to values of this salt.
pub(crate) fn put(db: &Db, range: std::ops::Range<u32>, salt: u32) {
    for number in range {
        db.put(key(number), value(number, salt)).expect("put");
    }
}

fn value(number: u32, salt: u32) -> Vec<u8> {
    let mut rng = terrane_base::Rng::new(u64::from(number) << 32 | u64::from(salt));
    (0..40).flat_map(|_| rng.next_u64().to_le_bytes()).collect()
}

#[track_caller]
pub(crate) fn check(db: &Db, range: std::ops::Range<u32>, salt: u32) {
    for number in range {
        let found = db.get(key(number)).expect("reads");
        assert!(found.as_deref() == Some(&value(number, salt)[..]), "{} with salt {salt}", key(number));
    }
}

#[test]
fn written_rows_survive_flush_compaction_close_and_kill() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let files = DirectoryBucket::open(root.path(), Env::real()).expect("opens");
    for place in [Fixture::memory(), Fixture::new(Arc::new(files))] {
        let db = place.open("a");
        put(&db, 0..200, 1);
        db.flush().expect("flushes");
        put(&db, 100..300, 2);
        db.flush().expect("flushes");
        db.compact_range(db.default_table(), ..).expect("compacts");
        put(&db, 300..330, 3);
        let rows = db.default_table().range(..).count();
        assert_eq!(rows, 330, "a scan over levels and memory");
        db.close().expect("closes");
        let db = place.open("a");
        check(&db, 0..100, 1);
        check(&db, 100..300, 2);
        check(&db, 300..330, 3);
        put(&db, 0..20, 4);
        db.flush().expect("flushes");
        put(&db, 20..40, 5);
        assert!(db.check(&mut |_, _| ()).expect("reads").findings.is_empty());
        // Killed: what a process leaves behind that had no time for a close.
        let killed = place.open_copy("a", "b");
        check(&killed, 0..20, 4);
        check(&killed, 20..40, 5);
        check(&killed, 40..100, 1);
        check(&killed, 100..300, 2);
        check(&killed, 300..330, 3);
        assert!(killed.check(&mut |_, _| ()).expect("reads").findings.is_empty());
        killed.close().expect("closes");
        assert_eq!(db.flush().expect_err("it was replaced").kind(), Kind::Poisoned);
    }
}

#[test]
fn a_writer_that_was_replaced_stops_and_damages_nothing() {
    let place = Fixture::memory();
    let first = place.open_as(&Deployment { writer_check_ms: 5, ..deployment(&place.journal("a")) });
    let first = first.expect("opens");
    put(&first, 0..300, 1);
    first.flush().expect("flushes");
    put(&first, 300..400, 2);
    let second = place.open_copy("a", "b");
    check(&second, 0..300, 1);
    check(&second, 300..400, 2);
    put(&second, 300..700, 3);
    second.flush().expect("flushes");
    // The first one finds out by itself, without a flush.
    let clock = Env::real().clock;
    let refused = (0..LOOKS_MAX).find_map(|_| {
        clock.sleep(Duration::from_millis(1));
        first.put("k", "v").err()
    });
    let refused = refused.expect("a replaced writer acknowledges nothing");
    assert_eq!(refused.kind(), Kind::Poisoned, "{refused}");
    assert!(refused.to_string().contains("taken over"), "it says why: {refused}");
    assert_eq!(first.flush().expect_err("it was replaced").kind(), Kind::Poisoned);
    check(&first, 0..300, 1);
    first.close().expect_err("what it had in memory is not in the bucket");
    check(&second, 0..300, 1);
    check(&second, 300..700, 3);
    second.close().expect("closes");
    // Its journal is not the one of the last writer any more.
    let stale = place.open_as(&deployment(&place.journal("a"))).expect_err("an old journal");
    assert!(stale.kind() == Kind::Invalid && stale.to_string().contains("abandon"), "{stale}");
    let third = place.open("b");
    check(&third, 0..300, 1);
    check(&third, 300..700, 3);
}

#[test]
fn a_lost_journal_is_given_up_by_its_name_only() {
    let place = Fixture::memory();
    let db = place.open("a");
    put(&db, 0..200, 1);
    db.flush().expect("flushes");
    put(&db, 200..210, 2);
    drop(db);
    let elsewhere = deployment(&place.journal("b"));
    let refused = place.open_as(&elsewhere).expect_err("commits would be lost").to_string();
    let (_, rest) = refused.split_once("abandon = \"").expect("it says how");
    let id = u128::from_str_radix(&rest[..32], 16).expect("an id");
    let other = Deployment { abandon: Some(id ^ 1), ..elsewhere.clone() };
    place.open_as(&other).expect_err("that is another journal");
    let db = place.open_as(&Deployment { abandon: Some(id), ..elsewhere.clone() }).expect("given up");
    check(&db, 0..200, 1);
    assert_eq!(db.get(key(200)).expect("reads"), None, "it was in the journal only");
    put(&db, 200..300, 3);
    drop(db);
    let db = place.open_as(&elsewhere).expect("it is the journal of the last writer");
    check(&db, 200..300, 3);
}

#[test]
fn a_journal_makes_no_second_database() {
    let place = Fixture::memory();
    let right = deployment(&place.journal("a"));
    let db = place.open_as(&right).expect("opens");
    put(&db, 0..20, 1);
    drop(db);
    let wrong = Deployment { prefix: "bd".to_owned(), ..right.clone() };
    for _ in 0..2 {
        let refused = place.open_as(&wrong).expect_err("there is no database");
        assert!(refused.kind() == Kind::Invalid && refused.to_string().contains("/bd"), "{refused}");
    }
    // The refused openings took nothing from the database that the journal is of.
    let db = place.open_as(&right).expect("opens");
    check(&db, 0..20, 1);
}

#[test]
fn faults_of_the_bucket_are_tried_again_and_lose_nothing() {
    for seed in 0..2 {
        let (env, clock) = env();
        let faulty = FaultyBucket::new(crate::support::memory(&clock));
        let place = Fixture::new(retrying(Arc::new(faulty.clone()), &env));
        faulty.fail_at_random(5, seed);
        for turn in 0..2 {
            let db = place.open("a");
            put(&db, turn * 200..turn * 200 + 300, turn);
            db.flush().expect("flushes");
            db.compact_range(db.default_table(), ..).expect("compacts");
            check(&db, turn * 200..turn * 200 + 300, turn);
            db.close().expect("closes");
        }
        faulty.fail_at_random(0, 0);
        let db = place.open("a");
        check(&db, 0..200, 0);
        check(&db, 200..500, 1);
    }
}

#[test]
fn a_bucket_that_is_gone_fails_flushes_and_loses_no_commit() {
    let (_, clock) = env();
    let faulty = FaultyBucket::new(crate::support::memory(&clock));
    let place = Fixture::new(Arc::new(faulty.clone()));
    let db = place.open("a");
    put(&db, 0..100, 1);
    db.flush().expect("flushes");
    faulty.set_down(true);
    // Commits go on until the journal needs a segment, which the manifest has to name.
    let refused = (100..200).find(|number| db.put(key(*number), value(*number, 2)).is_err());
    let acknowledged = 100..refused.unwrap_or(200);
    db.flush().expect_err("there is no bucket");
    check(&db, acknowledged.clone(), 2);
    place.open_as(&deployment(&place.journal("other"))).expect_err("there is no bucket");
    drop(db);
    faulty.set_down(false);
    let again = place.open("a");
    check(&again, 0..100, 1);
    check(&again, acknowledged, 2);
    again.flush().expect("it is there again");
}

#[test]
fn a_backup_copies_and_a_checkpoint_is_refused() {
    let place = Fixture::memory();
    let db = place.open("a");
    put(&db, 0..300, 1);
    db.flush().expect("flushes");
    put(&db, 300..350, 2);
    let copies = place.root.path().join("copies");
    let refused = db.checkpoint(&copies).expect_err("extents cannot be linked");
    assert!(refused.kind() == Kind::Invalid && refused.to_string().contains("backup"), "{refused}");
    let backups = Backups::open(&copies);
    let made = backups.create(&db).expect("it copies");
    let restored = place.root.path().join("restored");
    backups.restore(made.id, &restored).expect("it is whole");
    let db = Db::open(&restored).expect("a database in a directory");
    check(&db, 0..300, 1);
    check(&db, 300..350, 2);
}

#[test]
fn every_part_is_tried_in_words() {
    let place = Fixture::memory();
    let bucket = place.root.path().join("bucket");
    std::fs::create_dir(&bucket).expect("new");
    let url = format!("file://{}", bucket.display());
    let deployment = Deployment { url, ..deployment(&place.journal("a")) };
    let doctor = |deployment: &Deployment| -> Vec<(String, bool, String)> {
        let tried = deployment.doctor().into_iter();
        let words = |outcome: &terrane::Result<String>| match outcome {
            Ok(words) => words.clone(),
            Err(error) => error.to_string(),
        };
        tried.map(|tried| (tried.part, tried.outcome.is_ok(), words(&tried.outcome))).collect()
    };
    let before = doctor(&deployment);
    assert!(before.iter().all(|(_, is_well, _)| *is_well), "{before:?}");
    assert!(before.iter().any(|(part, _, words)| part == "manifest" && words.contains("no database yet")));
    let db = deployment.open().expect("opens");
    db.put("k", "v").expect("put");
    let open = doctor(&deployment);
    assert!(open.iter().any(|(part, _, words)| part == "journal" && words.contains("a process has it open")));
    db.put("k", "w").expect("it is the writer still");
    db.flush().expect("it is the writer still");
    db.close().expect("closes");
    let moved = doctor(&Deployment { journal: place.journal("b"), ..deployment.clone() });
    let wrong: Vec<_> = moved.iter().filter(|(_, is_well, _)| !is_well).collect();
    assert!(wrong.len() == 1 && wrong[0].0 == "manifest" && wrong[0].2.contains("journal"), "{moved:?}");
    let lost = doctor(&Deployment { prefix: "bd".to_owned(), ..deployment.clone() });
    let wrong: Vec<_> = lost.iter().filter(|(_, is_well, _)| !is_well).collect();
    assert!(wrong.len() == 1 && wrong[0].0 == "manifest" && wrong[0].2.contains("/bd"), "{lost:?}");
    let nowhere = doctor(&Deployment { url: "ftp://host".to_owned(), ..deployment });
    assert!(nowhere.iter().any(|(part, is_well, _)| part == "storage" && !is_well), "{nowhere:?}");
}

#[test]
fn statistics_have_the_requests_of_each_part() {
    let repeated = |bucket: MemoryBucket| -> Arc<dyn Bucket> { retrying(Arc::new(bucket), &Env::real()) };
    let fixture = Fixture::new(repeated(MemoryBucket::new(Env::real().clock)));
    let db = fixture.open("journal");
    let opened = db.stats();
    assert!(opened.bucket_other_creates > 0, "the probe makes objects");
    assert!(opened.bucket_manifest_creates > 0, "the opening takes the manifest over");
    assert_eq!((opened.bucket_journal_creates, opened.bucket_data_creates), (0, 0));
    db.put("a", vec![7; 4096]).expect("put");
    db.flush().expect("flushed");
    let stats = db.stats();
    assert!(stats.bucket_data_creates > 0 && stats.bucket_data_bytes_sent > 0, "{stats:?}");
    assert!(stats.bucket_manifest_creates > opened.bucket_manifest_creates, "{stats:?}");
    assert!(stats.process_cpu_micros >= opened.process_cpu_micros);
    db.close().expect("closed");
    // A reader counts what it reads.
    let read = deployment(&fixture.journal("other"));
    let reading =
        read.read_in(fixture.bucket.clone(), &Options::default(), Functions::default(), Env::real());
    let reading = reading.expect("opens").db;
    let before = reading.stats().bucket_data_reads;
    assert_eq!(reading.get("a").expect("read").expect("is there").len(), 4096);
    assert!(reading.stats().bucket_data_reads > before);
}
