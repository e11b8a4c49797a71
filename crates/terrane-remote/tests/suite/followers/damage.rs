//! Damaged, missing and foreign objects: errors that name them, and a follower goes on when they heal.

use bytes::Bytes;
use terrane::{Follower, Kind};
use terrane_remote::bucket::faulty::FaultyBucket;
use terrane_remote::{Bucket, Create};

use super::{Place, check, numbered, put_all};
use crate::support::refused;

/// The follower returns the error of the object, and its view stays.
#[track_caller]
fn refuses(follower: &Follower, name: &str) {
    let before = follower.stats();
    let text = refused(follower.catch_up(), Kind::Corrupt);
    let last = name.rsplit('/').next().expect("a name");
    let missing = format!("object {} is missing", last.trim_start_matches('0'));
    assert!(text.contains(last) || text.contains(&missing), "{name}: {text}");
    assert_eq!(follower.stats(), before);
    check(&follower.view(), 0..5, 1);
    refused(follower.lag(), Kind::Corrupt);
}

/// The object is as before, and the follower goes on.
#[track_caller]
fn goes_on(follower: &Follower, salt: u32) {
    follower.catch_up().expect("it healed");
    check(&follower.view(), 0..5, salt);
}

#[test]
fn objects_that_are_damaged_or_missing_are_named_until_they_heal() {
    for folder in ["db/manifest", "db/journal"] {
        for is_damage in [true, false] {
            let place = Place::new();
            let writer = place.open("a");
            put_all(&writer, 0..5, 1);
            let follower = place.follow();
            let known = numbered(&*place.bucket, folder).pop_last().expect("an object").0;
            for _ in 0..4 {
                put_all(&writer, 0..5, 2);
                writer.flush().expect("flushes");
            }
            put_all(&writer, 0..5, 3);
            let next = numbered(&*place.bucket, folder).remove(&(known + 1)).expect("there is more");
            let whole = place.bucket.get(&next, u64::MAX - 1).expect("reads");
            if is_damage {
                for at in [9, whole.len() / 2, whole.len() - 1] {
                    let mut damaged = whole.to_vec();
                    damaged[at] ^= 4;
                    place.bucket.damage(&next, Bytes::from(damaged)).expect("is there");
                    refuses(&follower, &next);
                }
                place.bucket.damage(&next, whole).expect("is there");
            } else {
                place.bucket.delete(std::slice::from_ref(&next)).expect("deletes");
                refuses(&follower, &next);
                place.bucket.create(&next, &whole).expect("creates");
            }
            goes_on(&follower, 3);
        }
    }
}

#[test]
fn objects_that_belong_elsewhere_are_refused() {
    for folder in ["db/manifest", "db/journal"] {
        let (place, other) = (Place::new(), Place::new());
        let writer = place.open("a");
        put_all(&writer, 0..5, 1);
        // Nothing comes by itself from now on.
        writer.close().expect("closes");
        let follower = place.follow();
        let foreign = format!("{folder}/notes.txt");
        place.bucket.create(&foreign, b"x").expect("creates");
        refuses(&follower, &foreign);
        place.bucket.delete(&[foreign]).expect("deletes");
        goes_on(&follower, 1);
        // The next object of another database.
        let known = numbered(&*place.bucket, folder).pop_last().expect("an object").0;
        let stranger = other.open("a");
        for _ in 0..8 {
            put_all(&stranger, 0..5, 9);
            stranger.flush().expect("flushes");
        }
        let next = numbered(&*other.bucket, folder).remove(&(known + 1)).expect("there are as many");
        let bytes = other.bucket.get(&next, u64::MAX - 1).expect("reads");
        assert_eq!(place.bucket.create(&next, &bytes).expect("creates"), Create::Created);
        refuses(&follower, &next);
        place.bucket.delete(&[next]).expect("deletes");
        put_all(&place.open("a"), 0..5, 2);
        goes_on(&follower, 2);
    }
}

#[test]
fn each_request_that_fails_is_made_again_by_the_next_catch_up() {
    let place = Place::new();
    let writer = place.open("a");
    put_all(&writer, 0..5, 1);
    let faulty = FaultyBucket::new(place.bucket.clone());
    let follower = || {
        let deployment = place.deployment("elsewhere");
        place.follow_through(std::sync::Arc::new(faulty.clone()), &deployment).expect("follows")
    };
    let mut failed = 0;
    for call in 0.. {
        let follower = follower();
        put_all(&writer, 0..5, call + 2);
        writer.flush().expect("flushes");
        put_all(&writer, 0..3, call + 2);
        let from = faulty.calls();
        faulty.fail_from(from + u64::from(call));
        let caught_up = follower.catch_up();
        faulty.fail_from(u64::MAX);
        if caught_up.is_ok() {
            break;
        }
        failed += 1;
        assert_eq!(caught_up.expect_err("a request failed").kind(), Kind::Io);
        goes_on(&follower, call + 2);
    }
    assert!(failed >= 4, "lists of manifest, data and journal, and an object of each: {failed}");
}
