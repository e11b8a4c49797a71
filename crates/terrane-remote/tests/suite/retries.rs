//! Requests that fail are repeated, and what happened is found out.

use std::sync::Arc;

use bytes::Bytes;
use terrane_base::Kind;
use terrane_base::env::Clock;
use terrane_remote::bucket::faulty::{Fault, FaultyBucket};
use terrane_remote::{Bucket, Create};
use terrane_storage::{BucketPart, BucketRequests, PartRequests};

use crate::support::{env, memory, refused, retrying};

#[test]
fn a_lost_answer_of_a_creation_is_resolved() {
    let (env, clock) = env();
    let faulty = FaultyBucket::new(memory(&clock));
    let bucket = retrying(Arc::new(faulty.clone()), &env);
    for len in [1usize, 1 << 20, (1 << 20) + 1, 3 << 20] {
        for fault in [Fault::Before, Fault::After] {
            let (name, rival) = (format!("db/{len}-{fault:?}"), format!("db/{len}-{fault:?}-rival"));
            let parts = vec![Bytes::from(vec![1; len / 2]), Bytes::from(vec![2; len - len / 2])];
            faulty.fail(faulty.calls(), fault);
            assert_eq!(bucket.begin_create(&name, parts.clone()).wait().expect("created"), Create::Created);
            assert_eq!(bucket.get(&name, len as u64).expect("is there"), parts.concat());
            // The object of a rival is not taken for the own one, whatever the first attempt did.
            let mut other = parts.concat();
            *other.last_mut().expect("at least one byte") ^= 1;
            bucket.create(&rival, &other).expect("created");
            faulty.fail(faulty.calls(), fault);
            let created = bucket.begin_create(&rival, parts).wait().expect("answered");
            assert_eq!(created, Create::AlreadyExists, "{len} bytes, {fault:?}");
            assert_eq!(bucket.get(&rival, len as u64).expect("is there"), other);
        }
    }
    // A longer object with the same end is not the own one.
    bucket.create("db/longer", b"xab").expect("created");
    faulty.fail(faulty.calls(), Fault::After);
    assert_eq!(bucket.create("db/longer", b"ab").expect("answered"), Create::AlreadyExists);
}

#[test]
fn every_request_is_repeated_until_the_deadline() {
    let (env, clock) = env();
    let faulty = FaultyBucket::new(memory(&clock));
    let bucket = retrying(Arc::new(faulty.clone()), &env);
    bucket.create("db/a", b"first").expect("created");
    for fault in [Fault::Before, Fault::After] {
        let next = |calls: u64| (0..calls).for_each(|call| faulty.fail(faulty.calls() + call, fault));
        next(3);
        assert_eq!(bucket.get("db/a", 9).expect("read"), "first");
        next(3);
        assert_eq!(bucket.get_range("db/a", 1..3).expect("read"), "ir");
        next(3);
        assert_eq!(bucket.list("db", None).expect("listed").len(), 1);
        next(3);
        bucket.delete(&["db/b".to_owned()]).expect("deleted");
    }
    faulty.set_down(true);
    let (start, calls) = (clock.now(), faulty.calls());
    let outcomes = [
        bucket.create("db/b", b"x").map(drop),
        bucket.get("db/a", 9).map(drop),
        bucket.get_range("db/a", 1..3).map(drop),
        bucket.list("db", None).map(drop),
        bucket.delete(&["db/a".to_owned()]),
    ];
    for outcome in outcomes {
        let message = refused(outcome, Kind::Io);
        assert!(message.contains("memory:/db") && message.contains("attempts in 1 s"), "{message}");
    }
    let took = clock.now() - start;
    assert!(took.as_millis() <= 5000 && took.as_millis() >= 2500, "{took:?}");
    assert!(faulty.calls() - calls > 5 * 20, "each request is repeated");
    faulty.set_down(false);
    assert_eq!(bucket.get("db/a", 9).expect("read"), "first");
    refused(bucket.get("db/b", 9), Kind::NotFound);
}

#[test]
fn a_refusal_behind_a_lost_answer_is_repeated() {
    let (env, clock) = env();
    let faulty = FaultyBucket::new(memory(&clock));
    let bucket = retrying(Arc::new(faulty.clone()), &env);
    faulty.fail(0, Fault::After);
    faulty.fail(1, Fault::Refused);
    // The first attempt created it: an answer of `Invalid` would say that nothing was changed.
    assert_eq!(bucket.create("db/a", b"x").expect("resolved"), Create::Created);
    assert_eq!(bucket.get("db/a", 1).expect("is there"), "x");
}

#[test]
fn a_refusal_is_not_repeated() {
    let (env, clock) = env();
    let faulty = FaultyBucket::new(memory(&clock));
    let bucket = retrying(Arc::new(faulty.clone()), &env);
    let start = clock.now();
    for call in 0..2 {
        faulty.fail(call, Fault::Refused);
    }
    refused(bucket.create("db/a", b"x"), Kind::Invalid);
    refused(bucket.list("db", None), Kind::Invalid);
    refused(bucket.get("db/a", 1), Kind::NotFound);
    assert_eq!((faulty.calls(), clock.now()), (3, start));
}

#[test]
fn requests_that_were_begun_together_have_one_deadline() {
    let (env, clock) = env();
    let faulty = FaultyBucket::new(memory(&clock));
    let bucket = retrying(Arc::new(faulty.clone()), &env);
    faulty.set_down(true);
    let begin = |index: usize| bucket.begin_create(&format!("db/{index}"), vec![Bytes::from_static(b"x")]);
    let begun: Vec<_> = (0..50).map(begin).collect();
    let start = clock.now();
    for pending in begun {
        refused(pending.wait(), Kind::Io);
    }
    // A second for the first, three further attempts for each other one.
    let took = (clock.now() - start).as_millis();
    assert!(took <= 1000 + 49 * 70, "{took} ms");
    // One that is waited for late is repeated all the same.
    let late = begin(99);
    faulty.set_down(false);
    clock.sleep(std::time::Duration::from_secs(100));
    assert_eq!(late.wait().expect("created"), Create::Created);
}

#[test]
fn every_attempt_is_counted_for_its_part() {
    let (env, clock) = env();
    let faulty = FaultyBucket::new(memory(&clock));
    let bucket = retrying(Arc::new(faulty.clone()), &env);
    assert_eq!(bucket.requests(), BucketRequests::default());
    faulty.fail(faulty.calls(), Fault::Before);
    bucket.create("db/data/1", b"12345678").expect("created");
    let count = |part| *bucket.requests().part(part);
    let created = PartRequests { creates: 2, bytes_sent: 16, ..PartRequests::default() };
    assert_eq!(count(BucketPart::Data), created, "the failed attempt sent its bytes");
    faulty.fail(faulty.calls(), Fault::Before);
    assert_eq!(bucket.get_range("db/data/1", 2..5).expect("read"), "345");
    let read = PartRequests { reads: 2, bytes_received: 3, ..created };
    assert_eq!(count(BucketPart::Data), read, "the failed attempt had no answer");
    // Ranges that an object store reads by one request, with the bytes between them.
    bucket.begin_get_ranges("db/data/1", vec![0..1, 7..8]).wait().expect("read");
    assert_eq!(count(BucketPart::Data), PartRequests { reads: 3, bytes_received: 11, ..read });
    bucket.create("db/manifest/1", b"m").expect("created");
    assert_eq!(bucket.get("db/manifest/1", 9).expect("read"), "m");
    bucket.list("db/manifest", None).expect("listed");
    bucket.delete(&["db/manifest/1".to_owned(), "db/manifest/2".to_owned()]).expect("deleted");
    let manifest =
        PartRequests { creates: 1, reads: 1, lists: 1, deletes: 1, bytes_sent: 1, bytes_received: 1 };
    assert_eq!(count(BucketPart::Manifest), manifest);
    for part in [BucketPart::Journal, BucketPart::Jobs, BucketPart::Other] {
        assert_eq!(count(part), PartRequests::default());
    }
    // Copies of a handle count together.
    let copy = (*bucket).clone();
    copy.create("db/journal/1", b"j").expect("created");
    assert_eq!(count(BucketPart::Journal).creates, 1);
}
