//! Databases of a deployment with `[cache]`.

use std::path::Path;
use std::sync::Arc;

use terrane::{Db, Kind, Options};
use terrane_base::Functions;
use terrane_base::env::Env;
use terrane_remote::bucket::faulty::FaultyBucket;
use terrane_remote::{BucketStoreSettings, Deployment, TierSettings};

use crate::databases::{check, put};
use crate::support::{env, memory, refused};

fn deployment(root: &Path, journal: &str) -> Deployment {
    let options = [("block_bytes", "1024"), ("memory_bytes", "16777216")];
    Deployment {
        settings: BucketStoreSettings { probe: false, ..BucketStoreSettings::default() },
        cache: Some(TierSettings { directory: root.join("cache"), bytes: 16 << 20 }),
        options: options.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        ..Deployment::new(root.join(journal), "memory:".to_owned())
    }
}

fn open(deployment: &Deployment, bucket: &FaultyBucket) -> terrane::Result<Db> {
    let bucket = Arc::new(bucket.clone());
    deployment.open_in(bucket, &Options::default(), Functions::default(), Env::real())
}

#[test]
fn a_database_reads_from_its_cache_after_a_restart() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let bucket = FaultyBucket::new(memory(&env().1));
    let with = deployment(root.path(), "a");
    let without = Deployment { cache: None, ..with.clone() };
    let db = open(&with, &bucket).expect("opens");
    put(&db, 0..4000, 1);
    db.flush().expect("flushed");
    db.close().expect("closed");
    let calls_of = |deployment: &Deployment| {
        let db = open(deployment, &bucket).expect("opens");
        let before = bucket.calls();
        check(&db, 0..4000, 1);
        let calls = bucket.calls() - before;
        let stats = db.stats();
        let counted = [stats.tier_hits, stats.tier_bytes_read, stats.tier_frames].map(|count| count > 0);
        assert_eq!(counted, [deployment.cache.is_some(); 3], "{stats:?}");
        assert_eq!(stats.tier_misses, 0, "it has all of the objects");
        db.close().expect("closed");
        calls
    };
    let (cached, uncached) = (calls_of(&with), calls_of(&without));
    // What remains are tables of objects.
    assert!(cached <= 4 && uncached > 2 * cached, "{cached} calls with a cache, {uncached} without");
}

#[test]
fn a_reader_uses_the_cache_if_no_writer_does_and_keeps_no_writer_out() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let bucket = FaultyBucket::new(memory(&env().1));
    let deployment = deployment(root.path(), "a");
    let db = open(&deployment, &bucket).expect("opens");
    put(&db, 0..1000, 1);
    db.flush().expect("flushed");
    let calls_of = || {
        let inner = Arc::new(bucket.clone());
        let reading = deployment.read_in(inner, &Options::default(), Functions::default(), Env::real());
        let db = reading.expect("opens").db;
        let before = bucket.calls();
        check(&db, 0..1000, 1);
        bucket.calls() - before
    };
    let beside_writer = calls_of();
    db.close().expect("closed");
    let alone = calls_of();
    // Without the lock of the journal's directory.
    let elsewhere = Deployment { journal: root.path().join("b"), ..deployment.clone() };
    let inner = Arc::new(bucket.clone());
    let reading = elsewhere.read_in(inner, &Options::default(), Functions::default(), Env::real());
    let writer = open(&deployment, &bucket).expect("opens without the cache, which the reader has");
    put(&writer, 1000..1010, 1);
    writer.close().expect("closed");
    drop(reading);
    assert!(alone < beside_writer, "{alone} calls with the cache, {beside_writer} without");
}

#[test]
fn a_follower_uses_the_cache() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let bucket = FaultyBucket::new(memory(&env().1));
    let writer = Deployment { cache: None, ..deployment(root.path(), "a") };
    let db = open(&writer, &bucket).expect("opens");
    put(&db, 0..1000, 1);
    db.flush().expect("flushed");
    let calls_of = |deployment: &Deployment| {
        let inner = Arc::new(bucket.clone());
        let options = Options::default();
        let follower =
            deployment.follow_in(inner, &options, Functions::default(), Env::real()).expect("opens");
        let before = bucket.calls();
        check(&follower.view(), 0..1000, 1);
        bucket.calls() - before
    };
    let follower = Deployment { journal: root.path().join("b"), ..deployment(root.path(), "b") };
    let cold = calls_of(&follower);
    let warm = calls_of(&follower);
    let without = calls_of(&Deployment { cache: None, ..follower });
    assert!(warm < cold && warm < without, "{cold} calls, then {warm}; {without} without a cache");
    db.close().expect("closed");
}

#[test]
fn the_cache_is_tried_in_words() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let deployment = deployment(root.path(), "a");
    let tried = || {
        let tried = deployment.doctor().into_iter().find(|tried| tried.part == "cache");
        tried.expect("it is tried").outcome
    };
    assert!(tried().expect("none yet").contains("the first opening makes it, of 16 MiB"));
    let bucket = FaultyBucket::new(memory(&env().1));
    let db = open(&deployment, &bucket).expect("opens");
    let found = tried().expect("sound");
    assert!(found.contains("15 MiB are there") && found.contains("a process has it open"), "{found}");
    db.close().expect("closed");
    assert!(tried().expect("sound").contains("no process has it open"));
    let notes = root.path().join("cache/notes.txt");
    terrane_device::Disk::lock(&terrane_device::PosixDisk::new(), &notes).expect("a file of something else");
    assert!(refused(tried(), Kind::Invalid).contains("notes.txt"));
}

#[test]
fn a_deployment_that_is_tried_makes_no_cache() {
    let root = tempfile::tempdir().expect("a temporary directory");
    std::fs::create_dir(root.path().join("bucket")).expect("a directory for the bucket");
    let url = format!("file://{}", root.path().join("bucket").display());
    let tried = Deployment { url, ..deployment(root.path(), "a") };
    let writer = Deployment { cache: None, ..tried.clone() };
    let db = writer.open().expect("opens");
    put(&db, 0..10, 1);
    db.close().expect("closed");
    let follower = tried.doctor().into_iter().find(|tried| tried.part == "a follower here");
    follower.expect("it is tried").outcome.expect("there is a database to follow");
    assert!(!root.path().join("cache").exists(), "the doctor made the files of the cache");
}
