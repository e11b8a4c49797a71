//! Followers that were away while the writer deleted what they did not read.

use std::sync::Arc;
use std::time::Duration;

use terrane::{Db, Kind};
use terrane_base::env::Clock;
use terrane_remote::Bucket;

use super::{AGE, Place, check, check_absent, collect, key, numbered, put_all};
use crate::support::{names, refused};

/// Writes more than some segments have, and flushes often, so that snapshots follow in the manifest.
fn flush_often(writer: &Db, salt: u32) {
    for _ in 0..70 {
        put_all(writer, 0..40, salt);
        writer.flush().expect("flushes");
    }
}

#[test]
fn a_follower_that_was_away_begins_again() {
    let place = Place::new();
    let writer = place.open("a");
    put_all(&writer, 0..5, 1);
    let follower = place.follow();
    let known = numbered(&*place.bucket, "db/manifest").pop_last().expect("an object").0;
    flush_often(&writer, 2);
    // The writer itself deletes what a snapshot of an hour ago replaced.
    place.clock.sleep(Duration::from_secs(7200));
    flush_often(&writer, 3);
    let left = numbered(&*place.bucket, "db/manifest");
    assert!(!left.contains_key(&known) && !left.contains_key(&(known + 1)), "{:?}", left.first_key_value());
    put_all(&writer, 70..75, 4);
    follower.catch_up().expect("catches up");
    check(&follower.view(), 0..40, 3);
    check(&follower.view(), 70..75, 4);
    put_all(&writer, 0..1, 5);
    follower.catch_up().expect("catches up");
    check(&follower.view(), 0..1, 5);
}

#[test]
fn a_journal_that_was_trimmed_is_read_again() {
    let place = Place::new();
    let writer = place.open("a");
    put_all(&writer, 0..5, 1);
    let follower = place.follow();
    let known = numbered(&*place.bucket, "db/journal").pop_last().expect("an object").0;
    // Some segments.
    for salt in 2..5 {
        put_all(&writer, 0..600, salt);
        writer.flush().expect("flushes");
    }
    put_all(&writer, 600..605, 5);
    collect(&place);
    let left = numbered(&*place.bucket, "db/journal");
    assert!(!left.contains_key(&known), "{known} is there, of {:?}", left.keys());
    follower.catch_up().expect("catches up");
    check(&follower.view(), 0..600, 4);
    check(&follower.view(), 600..605, 5);
    assert_eq!(follower.lag().expect("looks"), 0);
}

/// A view with rows in extents, which the writer replaces.
fn replaced(place: &Place) -> (Db, terrane::Follower, Db) {
    replaced_in(place, place.bucket.clone())
}

/// [`replaced`], through a bucket of the follower.
pub(super) fn replaced_in(place: &Place, bucket: Arc<dyn Bucket>) -> (Db, terrane::Follower, Db) {
    let writer = place.open("a");
    put_all(&writer, 0..200, 1);
    writer.flush().expect("flushes");
    place.note_named();
    let follower = place.follow_through(bucket, &place.deployment("elsewhere")).expect("follows");
    let view = follower.view();
    put_all(&writer, 0..200, 2);
    writer.flush().expect("flushes");
    writer.compact_range(writer.default_table(), ..).expect("compacts");
    (writer, follower, view)
}

#[test]
fn extents_that_the_writer_deleted_are_gone() {
    let place = Place::new();
    let (_writer, follower, view) = replaced(&place);
    let iterator = view.iter();
    collect(&place);
    let text = refused(view.get(key(7)).map(drop), Kind::Gone);
    assert!(text.contains("catch up"), "{text}");
    let read: terrane::Result<Vec<_>> = iterator.collect();
    assert_eq!(read.expect_err("its extents are gone").kind(), Kind::Gone);
    follower.catch_up().expect("catches up");
    check(&follower.view(), 0..50, 2);
    // What the manifest names, and is not there, is damage.
    let later = place.follow();
    place.bucket.delete(&names(&*place.bucket, "db/data")).expect("deletes");
    let text = refused(later.view().get(key(7)).map(drop), Kind::Corrupt);
    assert!(text.contains("missing"), "{text}");
}

#[test]
fn a_view_is_read_as_long_as_garbage_is_kept() {
    let place = Place::new();
    let (writer, follower, view) = replaced(&place);
    follower.catch_up().expect("catches up");
    place.clock.sleep(AGE - Duration::from_secs(1));
    put_all(&writer, 0..1, 3);
    follower.catch_up().expect("catches up");
    check(&view, 0..200, 1);
}

#[test]
fn a_view_that_is_older_than_garbage_is_given_up_though_its_objects_are_there() {
    let place = Place::new();
    let (writer, follower, view) = replaced(&place);
    follower.catch_up().expect("catches up");
    place.clock.sleep(AGE);
    put_all(&writer, 0..1, 3);
    follower.catch_up().expect("catches up");
    refused(view.get(key(7)).map(drop), Kind::Gone);
    check(&follower.view(), 0..1, 3);
    check(&follower.view(), 1..200, 2);
    check_absent(&follower.view(), 200..201);
}
