//! Behaviour of every bucket.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::memory::InMemory;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use terrane_base::Kind;
use terrane_base::env::Env;
use terrane_remote::bucket::{Bucket, ClientBucket, Create, DirectoryBucket, HedgeCounts, probe};

use crate::support::{every_kind, refused};

#[test]
fn objects_are_created_once_and_read() {
    for (kind, bucket, _kept) in every_kind() {
        assert_eq!(bucket.create("db/a", b"first").expect(kind), Create::Created);
        assert_eq!(bucket.create("db/a", b"second").expect(kind), Create::AlreadyExists, "{kind}");
        let parts = vec![Bytes::from_static(b"in "), Bytes::new(), Bytes::from_static(b"parts")];
        assert_eq!(bucket.begin_create("db/b", parts).wait().expect(kind), Create::Created);
        assert_eq!(bucket.get("db/a", 5).expect(kind), "first");
        assert_eq!(bucket.get("db/b", 100).expect(kind), "in parts");
        assert_eq!(bucket.get_tail("db/b", 4).expect(kind), "arts");
        assert_eq!(bucket.get_range("db/b", 3..5).expect(kind), "pa");
        let ranges = bucket.begin_get_ranges("db/b", vec![5..8, 0..2, 4..4]).wait().expect(kind);
        assert_eq!(ranges, ["rts", "in", ""], "{kind}");
    }
}

#[test]
fn wrong_requests_are_refused() {
    for (kind, bucket, _kept) in every_kind() {
        bucket.create("db/a", b"12345").expect(kind);
        refused(bucket.create("db/empty", b""), Kind::Invalid);
        for name in ["", "/db", "db//a", "../a", "db/a b"] {
            refused(bucket.create(name, b"x"), Kind::Invalid);
            refused(bucket.get_tail(name, 1), Kind::Invalid);
            refused(bucket.delete(&[name.to_owned()]), Kind::Invalid);
        }
        let message = refused(bucket.get("db/none", 9), Kind::NotFound);
        assert!(message.contains(bucket.url()) && message.contains("db/none"), "{kind}: {message}");
        refused(bucket.get_range("db/none", 0..1), Kind::NotFound);
        refused(bucket.get("db", 9), Kind::NotFound);
        // An object that is longer than what it should be is not read.
        refused(bucket.get("db/a", 4), Kind::Corrupt);
        for range in [0..6, 5..6, 9..12, 6..u64::MAX] {
            refused(bucket.get_range("db/a", range), Kind::Corrupt);
        }
        #[expect(clippy::reversed_empty_ranges, reason = "what a caller must not ask for")]
        let backward = 3..1;
        refused(bucket.get_range("db/a", backward), Kind::Corrupt);
    }
}

#[test]
fn lists_are_sorted_and_begin_behind_a_name() {
    for (kind, bucket, _kept) in every_kind() {
        for (name, bytes) in
            [("db/b/2", 2), ("db/b/10", 10), ("db/b/1", 1), ("db/bb", 3), ("db/a", 4), ("db/b/c/d", 5)]
        {
            bucket.create(name, &vec![7; bytes]).expect(kind);
        }
        let names = |folder: &str, after: Option<&str>| -> Vec<(String, u64)> {
            let listed = bucket.list(folder, after).expect(kind);
            listed.into_iter().map(|object| (object.name, object.bytes)).collect()
        };
        let owned = |list: &[(&str, u64)]| -> Vec<(String, u64)> {
            list.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect()
        };
        let all = owned(&[("db/b/1", 1), ("db/b/10", 10), ("db/b/2", 2), ("db/b/c/d", 5)]);
        assert_eq!(names("db/b", None), all, "{kind}");
        assert_eq!(names("db/b", Some("db/b/10")), all[2..], "{kind}");
        assert_eq!(names("db/b", Some("db/b/11")), all[2..], "{kind}");
        assert_eq!(names("db/b", Some("db/b/c/d")), [], "{kind}");
        assert_eq!(names("nothing", None), [], "{kind}");
        bucket.delete(&["db/b/2".to_owned(), "db/b/never".to_owned()]).expect(kind);
        assert_eq!(names("db/b", None), owned(&[("db/b/1", 1), ("db/b/10", 10), ("db/b/c/d", 5)]), "{kind}");
        assert_eq!(bucket.create("db/b/2", b"x").expect(kind), Create::Created, "{kind}");
    }
}

#[test]
fn of_many_threads_one_creates() {
    for (kind, bucket, _kept) in every_kind() {
        for round in 0..8 {
            let name = format!("db/{round}");
            let winners: Vec<u8> = std::thread::scope(|scope| {
                let create = |writer: u8| {
                    let (bucket, name) = (&bucket, &name);
                    move || (writer, bucket.create(name, &[writer; 3000]).expect(kind))
                };
                let started: Vec<_> = (1..=6).map(|writer| scope.spawn(create(writer))).collect();
                let ended = started.into_iter().map(|thread| thread.join().expect("no panic"));
                ended.filter(|(_, created)| *created == Create::Created).map(|(writer, _)| writer).collect()
            });
            assert_eq!(winners.len(), 1, "{kind}");
            assert_eq!(bucket.get(&name, 3000).expect(kind), vec![winners[0]; 3000], "{kind}");
        }
    }
}

#[test]
fn every_kind_passes_the_probe() {
    for (kind, bucket, _kept) in every_kind() {
        probe::run(&*bucket, "db", &*Env::real().random).expect(kind);
        assert_eq!(bucket.list("db", None).expect(kind), [], "{kind}: nothing is left of the probe");
    }
}

#[test]
fn calls_come_from_threads_that_run_tasks() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("starts");
    runtime.block_on(async {
        for (kind, bucket, _kept) in every_kind() {
            bucket.create("db/a", b"first").expect(kind);
            let read = tokio::spawn(async move { bucket.get("db/a", 9) }).await;
            assert_eq!(read.expect("no panic").expect(kind), "first");
        }
    });
}

#[test]
fn a_directory_keeps_objects_and_leaves_out_half_written_ones() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let open = || DirectoryBucket::open(directory.path(), Env::real()).expect("opens");
    open().create("db/deep/er/a", b"kept").expect("created");
    let bucket = open();
    assert_eq!(bucket.get("db/deep/er/a", 9).expect("is there"), "kept");
    let listed = bucket.list("db", None).expect("lists");
    let now = Env::real().clock.wall();
    assert_eq!(listed.len(), 1);
    assert!(listed[0].modified <= now + std::time::Duration::from_secs(60) && listed[0].modified > now / 2);
    refused(bucket.create(".partial/a", b"x"), Kind::Invalid);
    refused(bucket.list(".partial", None), Kind::Invalid);
    assert_eq!(directory.path().join(".partial").read_dir().expect("lists").count(), 0);
}

#[test]
fn addresses_without_a_bucket_are_refused() {
    let open = |url: &str| terrane_remote::bucket::open(url, &Env::real());
    for url in ["", "nothing", "ftp://a", "file:a", "file://a", "file:///", "memory:a"] {
        let message = refused(open(url), Kind::Invalid);
        assert!(message.contains(&format!("{url:?}")), "{message}");
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let bucket = open(&format!("file://{}/new", directory.path().display())).expect("opens");
    bucket.create("a", b"x").expect("created");
    assert!(directory.path().join("new/a").is_file());
    open("memory:").expect("opens");
    if cfg!(not(feature = "grpc")) {
        assert!(refused(open("grpc://host:1"), Kind::Invalid).contains("feature grpc"));
    }
    if cfg!(not(feature = "s3")) {
        assert!(refused(open("s3://bucket"), Kind::Invalid).contains("feature s3"));
    }
}

/// Once reads are known to be fast, one that takes 50 ms is hedged, on a busy machine after some.
#[test]
fn short_reads_that_take_long_are_hedged() {
    let client = Arc::new(ThrottledStore::new(InMemory::new(), ThrottleConfig::default()));
    let open = |hedges| {
        let bucket = ClientBucket::new(client.clone(), "client:").expect("opens");
        bucket.with_hedged_reads(hedges)
    };
    let (bucket, unhedged) = (open(true), open(false));
    bucket.create("db/a", b"0123456789").expect("created");
    let read = |bucket: &ClientBucket| assert_eq!(bucket.get_range("db/a", 2..5).expect("is there"), "234");
    for _ in 0..200 {
        read(&bucket);
        read(&unhedged);
    }
    client.config_mut(|config| config.wait_get_per_call = Duration::from_millis(50));
    while bucket.hedges().hedged == 0 {
        read(&bucket);
    }
    assert!(bucket.hedges().won <= bucket.hedges().hedged);
    read(&unhedged);
    assert_eq!(unhedged.hedges(), HedgeCounts::default());
}

#[test]
fn a_bucket_that_is_dropped_ends_its_requests() {
    let hour = Duration::from_secs(3600);
    let wait =
        ThrottleConfig { wait_put_per_call: hour, wait_get_per_call: hour, ..ThrottleConfig::default() };
    let client = ThrottledStore::new(InMemory::new(), wait);
    let bucket = ClientBucket::new(Arc::new(client), "client:").expect("opens");
    let created = bucket.begin_create("db/a", vec![Bytes::from_static(b"x")]);
    let read = bucket.begin_get_ranges("db/a", vec![0..1, 2..3]);
    drop(bucket);
    refused(created.wait(), Kind::Cancelled);
    refused(read.wait(), Kind::Cancelled);
}
