//! Clones of earlier moments, and earlier moments of clones.

use std::time::Duration;

use terrane::{Kind, Options, SeqNo};
use terrane_base::Functions;
use terrane_base::env::Clock;
use terrane_remote::{At, JournalRead};

use super::{AGE, Place, compact, expected, filled, of_filled, put_all, rows};
use crate::support::refused;

fn commit(number: u64) -> Option<At> {
    Some(At::Commit(SeqNo(number)))
}

#[test]
fn a_clone_begins_with_an_earlier_moment() {
    let place = Place::new();
    let original = filled(&place);
    let then = place.clock.wall();
    place.clock.sleep(Duration::from_secs(5));
    put_all(&original, 0..70, 4);
    original.flush().expect("flushes");
    compact(&original);
    for (to, at, rows_then) in [
        ("c30", commit(30), expected(&[(0..30, 1)])),
        ("c40", commit(40), expected(&[(0..40, 1)])),
        ("c61", commit(61), expected(&[(0..20, 1), (20..41, 2)])),
        ("c95", commit(95), expected(&[(0..20, 1), (20..50, 2), (50..65, 3)])),
        ("then", Some(At::Time(then)), of_filled()),
        ("now", None, expected(&[(0..70, 4)])),
    ] {
        let cloned = place.clone_through(place.bucket.clone(), to, at).expect("clones");
        assert_eq!(cloned.journal, JournalRead::Bucket, "{to}");
        let clone = place.open(to);
        assert_eq!(rows(&clone), rows_then, "{to}");
        if let Some(At::Commit(commit)) = at {
            assert_eq!(cloned.commit, commit, "{to}");
        }
        put_all(&clone, 69..70, 11);
        clone.flush().expect("flushes");
        let clone = {
            clone.close().expect("closes");
            place.open(to)
        };
        let mut expected = rows_then;
        expected.insert(super::key(69).into(), super::value(11));
        assert_eq!(rows(&clone), expected, "{to}");
        clone.close().expect("closes");
    }
    original.close().expect("closes");
    place.clock.sleep(Duration::from_secs(7200));
    place.collect("db", 4);
    assert_eq!(rows(&place.open("c40")), {
        let mut rows = expected(&[(0..40, 1)]);
        rows.insert(super::key(69).into(), super::value(11));
        rows
    });
}

/// Its objects are there, but may be being deleted: a collection that began to ask before the pin does not
/// see it.
#[test]
fn a_moment_older_than_garbage_is_refused_also_while_its_objects_are_there() {
    let place = Place::new();
    let original = filled(&place);
    place.clock.sleep(Duration::from_secs(5));
    put_all(&original, 0..70, 4);
    original.flush().expect("flushes");
    compact(&original);
    place.clock.sleep(AGE - Duration::from_secs(1));
    place.clone_through(place.bucket.clone(), "young", commit(95)).expect("it is young enough");
    place.clock.sleep(Duration::from_secs(2));
    let text = refused(place.clone_through(place.bucket.clone(), "old", commit(95)), Kind::Gone);
    assert!(text.contains("garbage_age_s") && text.contains("choose a later one"), "{text}");
    assert!(place.state("old").is_none());
    assert_eq!(place.pins(), 1, "that of the young one");
    // A moment of which the present state has everything is of any age.
    place.clock.sleep(Duration::from_secs(7200));
    place.clone_to("now");
    assert_eq!(rows(&place.open("now")), expected(&[(0..70, 4)]));
    assert_eq!(rows(&place.open("young")), expected(&[(0..20, 1), (20..50, 2), (50..65, 3)]));
}

#[test]
fn earlier_moments_of_a_clone_are_opened() {
    let place = Place::new();
    filled(&place).close().expect("closes");
    place.clone_to("copy");
    let clone = place.open("copy");
    let first = clone.snapshot().seq();
    put_all(&clone, 0..70, 5);
    clone.flush().expect("flushes");
    compact(&clone);
    let deployment = place.deployment("copy");
    let at = |at| {
        let (options, env) = (Options::default(), place.env.clone());
        deployment.at_in(place.bucket.clone(), at, &options, Functions::default(), env)
    };
    let earlier = at(At::Commit(first)).expect("it is there");
    assert_eq!(rows(&earlier.db), of_filled());
    assert_eq!(rows(&at(At::Time(Duration::MAX)).expect("it is there").db), expected(&[(0..70, 5)]));
    // A clone of the earlier moment of a clone pins the objects where they are.
    place.clone_between(place.bucket.clone(), ("copy", "again"), Some(At::Commit(first))).expect("clones");
    clone.close().expect("closes");
    place.collect("copy", 4);
    assert_eq!(place.pins(), 1, "that of the second clone");
    assert_eq!(rows(&place.open("again")), of_filled());
}

/// The file that is cloned says a longer age than that by which the writers delete.
#[test]
fn a_writer_that_deletes_earlier_than_the_file_says_is_found_out() {
    let place = Place::new();
    let original = filled(&place);
    put_all(&original, 0..70, 4);
    original.flush().expect("flushes");
    compact(&original);
    original.close().expect("closes");
    // Its list of garbage may be deleted when it is `AGE` old.
    assert_eq!(place.collect("db", 1), 0);
    let mut from = place.deployment("db");
    from.settings.garbage_age = 24 * Duration::from_secs(3600);
    let clone_of = |number: u64, to: &str| {
        let (to, buckets) = (place.deployment(to), (place.bucket.clone() as _, place.bucket.clone() as _));
        let (options, env) = (Options::default(), place.env.clone());
        from.clone_in(buckets, (&to, commit(number)), &options, Functions::default(), env)
    };
    let text = refused(clone_of(95, "old"), Kind::Gone);
    assert!(text.contains("(60 s)") && text.contains("garbage_age_s"), "{text}");
    assert!(place.state("old").is_none() && place.pins() == 0);
    // What the present state names is in no list.
    clone_of(170, "now").expect("clones");
    assert_eq!(rows(&place.open("now")), expected(&[(0..70, 4)]));
}
