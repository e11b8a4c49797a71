//! Followers of a database whose journal lies in a directory: of another machine, or of this one.

use std::time::Duration;

use terrane::{Batch, Db, Durability, Kind, SeqNo};
use terrane_base::env::Clock;
use terrane_remote::Deployment;

use super::{Place, check, check_absent, key, put_all, put_as, value};
use crate::support::refused;

fn write(db: &Db, number: u32, salt: u32) -> SeqNo {
    let mut batch = Batch::new();
    batch.put(db.default_table(), key(number), value(salt)).expect("fits");
    db.write(&batch, Durability::Buffered).expect("writes")
}

#[test]
fn of_another_machine_a_follower_has_what_was_flushed_and_says_so() {
    let place = Place::new();
    let writer = place.open_as(&place.in_directory("a")).expect("opens");
    let flushed = write(&writer, 0, 1);
    writer.flush().expect("flushes");
    let committed = write(&writer, 1, 1);
    let elsewhere = place.in_directory("elsewhere");
    let follower = place.follow_through(place.bucket.clone(), &elsewhere).expect("follows");
    check(&follower.view(), 0..1, 1);
    check_absent(&follower.view(), 1..2);
    let lag = follower.measure_lag().expect("looks");
    assert!(lag.is_least, "the journal has what cannot be seen: {lag:?}");
    follower.read_at_least(flushed, Duration::ZERO).expect("it was flushed");
    let late = follower.read_at_least(committed, Duration::from_millis(100)).map(drop);
    let text = refused(late, Kind::TimedOut);
    assert!(text.contains(&format!("has commit {flushed}, and not {committed}")), "{text}");
    place.clock.sleep(Duration::from_secs(40));
    writer.flush().expect("flushes");
    let lag = follower.measure_lag().expect("looks");
    assert_eq!((lag.commits, lag.is_least), (1, true));
    assert!(lag.time.expect("the objects have times") >= Duration::from_secs(40), "{lag:?}");
    check(&follower.read_at_least(committed, Duration::ZERO).expect("it was flushed"), 0..2, 1);
    // A database that was closed says which commit was its last.
    write(&writer, 2, 1);
    writer.close().expect("closes");
    let lag = follower.measure_lag().expect("looks");
    assert_eq!((lag.commits, lag.is_least), (1, false));
    assert!(!elsewhere.journal.exists(), "a follower makes nothing");
}

#[test]
fn of_this_machine_a_follower_has_all_and_keeps_no_writer_out() {
    let place = Place::new();
    let here = place.in_directory("a");
    let writer = place.open_as(&here).expect("opens");
    let follower = place.follow_through(place.bucket.clone(), &here).expect("follows");
    let mut views = Vec::new();
    for salt in 1..5 {
        for number in 0..300 {
            put_as(&writer, number, salt, Durability::Buffered).expect("put");
        }
        if salt % 2 == 0 {
            writer.flush().expect("flushes");
        }
        put_all(&writer, 300..302, salt);
        assert_eq!(follower.lag().expect("looks"), 302);
        assert_eq!(follower.catch_up().expect("catches up"), 302);
        views.push((salt, follower.view()));
    }
    for (salt, view) in &views {
        check(view, 300..302, *salt);
    }
    check(&follower.view(), 0..300, 4);
    assert!(!follower.measure_lag().expect("looks").is_least);
    let seq = write(&writer, 400, 7);
    check(&follower.read_at_least(seq, Duration::ZERO).expect("it is there"), 400..401, 7);
    // The follower holds no lock.
    writer.close().expect("closes");
    let writer = place.open_as(&here).expect("opens again");
    put_all(&writer, 500..501, 1);
    follower.catch_up().expect("catches up");
    check(&follower.view(), 500..501, 1);
    check(&follower.view(), 0..300, 4);
}

#[test]
fn a_database_that_is_not_there_and_a_file_without_the_journal_are_refused() {
    let place = Place::new();
    let absent = place.follow_through(place.bucket.clone(), &place.deployment("elsewhere"));
    let text = refused(absent, Kind::NotFound);
    assert!(text.contains("no database"), "{text}");
    put_all(&place.open("a"), 0..3, 1);
    let lacking = Deployment { bucket_journal: None, ..place.deployment("elsewhere") };
    let text = refused(place.follow_through(place.bucket.clone(), &lacking), Kind::Invalid);
    assert!(text.contains("in_bucket"), "{text}");
}
