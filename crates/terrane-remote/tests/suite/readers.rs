//! Readers of a database in a bucket: beside a writer, behind one, and what they leave alone.

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use terrane::{Db, Kind, Options};
use terrane_base::Functions;
use terrane_base::env::Env;
use terrane_remote::bucket::MemoryBucket;
use terrane_remote::{Bucket, BucketStoreSettings, Deployment, JournalRead, Reading};

use crate::support::{env, names, refused};

struct Fixture {
    root: TempDir,
    bucket: Arc<MemoryBucket>,
}

impl Fixture {
    fn new() -> Fixture {
        let bucket = Arc::new(MemoryBucket::new(Env::real().clock));
        Fixture { root: tempfile::tempdir().expect("a temporary directory"), bucket }
    }

    fn deployment(&self, journal: &str) -> Deployment {
        Deployment {
            journal: self.root.path().join(journal),
            bucket_journal: None,
            cache: None,
            abandon: None,
            url: "memory:".to_owned(),
            prefix: "db".to_owned(),
            settings: BucketStoreSettings {
                object_bytes: 1 << 20,
                stage_bytes: 64 << 20,
                ..BucketStoreSettings::default()
            },
            compaction: None,
            hedged_reads: true,
            writer_check_ms: 3_600_000,
            options: vec![
                ("memory_bytes".to_owned(), "16MiB".to_owned()),
                ("close_flush".to_owned(), "false".to_owned()),
            ],
        }
    }

    fn write(&self) -> Db {
        let opened = self.deployment("j").open_in(
            self.bucket.clone(),
            &Options::default(),
            Functions::default(),
            Env::real(),
        );
        opened.expect("opens")
    }

    fn read(&self, journal: &str, env: Env) -> terrane::Result<Reading> {
        let options = Options::default();
        self.deployment(journal).read_in(self.bucket.clone(), &options, Functions::default(), env)
    }
}

#[track_caller]
fn check(reading: &Reading, journal: JournalRead, flushed: &str, in_journal: Option<&str>) {
    let found = |key: &str| reading.db.get(key).expect("reads").map(|value| value.to_vec());
    assert_eq!(reading.journal, journal);
    assert_eq!(found("flushed").as_deref(), Some(flushed.as_bytes()));
    assert_eq!(found("in the journal").as_deref(), in_journal.map(str::as_bytes));
    assert!(reading.db.check(&mut |_, _| ()).expect("reads").findings.is_empty());
}

#[test]
fn a_reader_changes_nothing_and_shows_the_journal_where_no_writer_has_it() {
    let place = Fixture::new();
    let text = refused(place.read("j", Env::real()), Kind::NotFound);
    assert!(text.contains("no database"), "{text}");
    assert!(names(&*place.bucket, "db").is_empty(), "a reader makes nothing");
    let db = place.write();
    db.put("flushed", "1").expect("put");
    db.flush().expect("flushes");
    db.put("in the journal", "2").expect("put");
    let before = names(&*place.bucket, "db");
    let beside = place.read("j", Env::real()).expect("beside its writer");
    check(&beside, JournalRead::HasWriter, "1", None);
    check(&place.read("nowhere", Env::real()).expect("reads"), JournalRead::Elsewhere, "1", None);
    assert!(!place.root.path().join("nowhere").exists(), "a reader makes nothing");
    assert_eq!(names(&*place.bucket, "db"), before, "no probe, no take-over");
    assert_eq!(beside.db.put("k", "v").expect_err("it only reads").kind(), Kind::Invalid);
    // The writer is the writer still, and the reader stays where it was.
    db.put("flushed", "3").expect("put");
    db.flush().expect("it was not replaced");
    check(&beside, JournalRead::HasWriter, "1", None);
    check(&place.read("j", Env::real()).expect("reads"), JournalRead::HasWriter, "3", Some("2"));
    db.put("in the journal", "4").expect("put");
    db.close().expect("closes");
    let before = names(&*place.bucket, "db");
    let behind = place.read("j", Env::real()).expect("behind its writer");
    check(&behind, JournalRead::Whole, "3", Some("4"));
    assert_eq!(names(&*place.bucket, "db"), before, "no probe, no take-over");
    // Two at once; no writer on this machine meanwhile.
    check(&place.read("j", Env::real()).expect("two readers"), JournalRead::Whole, "3", Some("4"));
    let busy = place.deployment("j").open_in(
        place.bucket.clone(),
        &Options::default(),
        Functions::default(),
        Env::real(),
    );
    assert_eq!(busy.expect_err("its segments are being read").kind(), Kind::Busy);
    drop((beside, behind));
    place.write().close().expect("the journal is whole still");
}

#[test]
fn an_object_that_is_gone_is_damage_first_and_later_the_work_of_a_writer() {
    let place = Fixture::new();
    let db = place.write();
    db.put("flushed", "1").expect("put");
    db.flush().expect("flushes");
    let (doors, clock) = env();
    let early = place.read("elsewhere", doors.clone()).expect("reads").db;
    let late = place.read("elsewhere", doors).expect("reads").db;
    place.bucket.delete(&names(&*place.bucket, "db/data")).expect("deletes");
    assert_eq!(early.get("flushed").expect_err("it is missing").kind(), Kind::Corrupt);
    terrane_base::env::Clock::sleep(&*clock, Duration::from_secs(3600));
    let text = refused(late.get("flushed").map(drop), Kind::Gone);
    assert!(text.contains("open it again"), "{text}");
}
