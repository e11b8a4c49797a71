//! Followers of a database whose journal lies in a directory: of another machine, or of this one.

use std::sync::Arc;
use std::time::Duration;

use terrane::{Batch, Db, Durability, Kind, Options, SeqNo, TableOptions};
use terrane_base::Functions;
use terrane_base::env::{Clock, Env};
use terrane_base::sync::Mutex;
use terrane_remote::Deployment;

use super::{Place, check, check_absent, key, put_all, put_as, value};
use crate::journals::busy::BusyBucket;
use crate::support::refused;

fn write(db: &Db, number: u32, salt: u32) -> SeqNo {
    let mut batch = Batch::new();
    batch.put(db.default_table(), key(number), value(salt)).expect("fits");
    db.write(&batch, Durability::Buffered).expect("writes")
}

#[test]
fn a_follower_on_another_machine_sees_flushed_commits_and_says_so() {
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
fn a_follower_on_another_machine_says_up_to_which_commit_it_has_all_tables() {
    let place = Place::new();
    let writer = place.open_as(&place.in_directory("a")).expect("opens");
    let other = writer.create_table("other", &TableOptions::new()).expect("creates");
    let put_both = |salt: u32| {
        let mut batch = Batch::new();
        batch.put(writer.default_table(), key(0), value(salt)).expect("fits");
        batch.put(&other, key(0), value(salt)).expect("fits");
        writer.write(&batch, Durability::Synced).expect("writes")
    };
    let both = put_both(1);
    writer.flush().expect("flushes");
    let later = put_both(2);
    writer.flush_tables(&[writer.default_table()]).expect("flushes");
    let elsewhere = place.in_directory("elsewhere");
    let follower = place.follow_through(place.bucket.clone(), &elsewhere).expect("follows");
    check(&follower.view(), 0..1, 2);
    let found = follower.view().table("other").expect("it is there").get(key(0)).expect("reads");
    assert_eq!(found.as_deref(), Some(&value(1)[..]), "its second row is in the journal alone");
    assert!((both..later).contains(&follower.stats().seq), "{:?}", follower.stats());
    refused(follower.read_at_least(later, Duration::ZERO).map(drop), Kind::TimedOut);
    put_both(3);
    writer.flush().expect("flushes");
    let view = follower.read_at_least(later, Duration::ZERO).expect("it was flushed");
    let found = view.table("other").expect("it is there").get(key(0)).expect("reads");
    assert_eq!(found.as_deref(), Some(&value(3)[..]));
}

/// A follower looks in front of each object of the journal that the move creates.
#[test]
fn while_a_journal_moves_into_the_bucket_a_follower_on_its_machine_keeps_its_view() {
    let place = Place::new();
    let writer = place.open_as(&place.in_directory("a")).expect("opens");
    put_all(&writer, 0..20, 1);
    writer.flush().expect("flushes");
    put_all(&writer, 10..40, 2);
    let here = place.deployment("a");
    let follower = Arc::new(place.follow_through(place.bucket.clone(), &here).expect("follows"));
    let has = follower.stats().seq;
    writer.close().expect("closes");
    let (looking, results) = (follower.clone(), Arc::new(Mutex::new(Vec::new())));
    let noted = results.clone();
    let busy = BusyBucket::at_creations(place.bucket.clone(), "db/journal", move || {
        noted.lock().push(looking.catch_up().map_err(|error| error.kind()));
        assert!(looking.stats().seq >= has, "the view went back: {:?}", looking.stats());
    });
    let opened = here.open_in(Arc::new(busy), &Options::default(), Functions::default(), Env::real());
    let writer = opened.expect("moves its journal");
    let results = std::mem::take(&mut *results.lock());
    assert!(results.contains(&Err(Kind::Busy)), "no look was in the middle: {results:?}");
    assert!(results.iter().all(|result| matches!(result, Ok(_) | Err(Kind::Busy))), "{results:?}");
    check(&follower.view(), 10..40, 2);
    put_all(&writer, 40..45, 3);
    follower.catch_up().expect("catches up");
    check(&follower.view(), 0..10, 1);
    check(&follower.view(), 10..40, 2);
    check(&follower.view(), 40..45, 3);
}

#[test]
fn a_follower_on_the_machine_of_the_writer_sees_all_commits_and_keeps_no_writer_out() {
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
