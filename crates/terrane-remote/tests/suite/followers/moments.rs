//! The moment of a view, which does not change, and waiting for a commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use terrane::{Batch, Db, Durability, Kind, SeqNo, TableOptions};
use terrane_base::sync::Mutex;
use terrane_remote::Deployment;

use super::{Place, check, check_absent, key, put_all, put_as, value};
use crate::journals::busy::BusyBucket;
use crate::support::{names, refused};

#[test]
fn a_follower_goes_on_and_its_views_stay() {
    let place = Place::new();
    let writer = place.open("a");
    put_all(&writer, 0..20, 1);
    let before = names(&*place.bucket, "db");
    let follower = place.follow();
    let first = follower.view();
    check(&first, 0..20, 1);
    put_all(&writer, 10..30, 2);
    writer.flush().expect("flushes");
    put_all(&writer, 25..40, 3);
    check(&first, 0..20, 1);
    check_absent(&first, 20..40);
    assert_eq!(follower.lag().expect("looks"), 35);
    assert_eq!(follower.catch_up().expect("catches up"), 35);
    let second = follower.view();
    check(&second, 0..10, 1);
    check(&second, 10..25, 2);
    check(&second, 25..40, 3);
    assert_eq!(follower.lag().expect("looks"), 0);
    check(&first, 0..20, 1);
    check_absent(&first, 20..40);
    assert!(second.check(&mut |_, _| ()).expect("reads").findings.is_empty());
    assert_eq!(second.put("k", "v").expect_err("it only reads").kind(), Kind::Invalid);
    // More than a segment has, and levels that were merged.
    for salt in 4..8 {
        put_all(&writer, 0..200, salt);
        writer.flush().expect("flushes");
    }
    writer.compact_range(writer.default_table(), ..).expect("compacts");
    writer.delete(key(0)).expect("deletes");
    writer.sync().expect("syncs");
    follower.catch_up().expect("catches up");
    check(&follower.view(), 1..200, 7);
    check_absent(&follower.view(), 0..1);
    // Objects of before may be gone; a follower made none.
    let is_foreign = |name: &String| !before.contains(name) && name.contains("/elsewhere");
    assert!(!names(&*place.bucket, "db").iter().any(is_foreign));
    assert!(!place.root.path().join("elsewhere").exists(), "a follower makes nothing");
    put_all(&writer, 0..1, 9);
}

#[test]
fn unsynced_commits_show_as_far_as_they_are_in_objects() {
    let place = Place::new();
    let writer = place.open("a");
    let follower = place.follow();
    for number in 0..100 {
        put_as(&writer, number, 1, Durability::Buffered).expect("put");
    }
    follower.catch_up().expect("catches up");
    let view = follower.view();
    let shown = (0..100).take_while(|number| view.get(key(*number)).expect("reads").is_some()).count() as u32;
    assert!((1..100).contains(&shown), "objects of 4 KiB have some of 100 commits: {shown}");
    check_absent(&view, shown..100);
    writer.sync().expect("syncs");
    assert_eq!(follower.lag().expect("looks"), u64::from(100 - shown));
    follower.catch_up().expect("catches up");
    check(&follower.view(), 0..100, 1);
}

#[test]
fn the_lag_has_commits_and_the_time_of_the_writer() {
    let place = Place::new();
    let writer = place.open("a");
    put_all(&writer, 0..5, 1);
    // Otherwise its background may change the manifest later.
    writer.close().expect("closes");
    let follower = place.follow();
    let lag = follower.measure_lag().expect("looks");
    assert_eq!((lag.commits, lag.is_least, lag.time), (0, false, Some(Duration::ZERO)));
    // Time passes in which no writer is at work.
    terrane_base::env::Clock::sleep(&*place.clock, Duration::from_secs(30));
    assert_eq!(follower.measure_lag().expect("looks").time, Some(Duration::ZERO));
    let writer = place.open("a");
    put_all(&writer, 5..8, 1);
    let lag = follower.measure_lag().expect("looks");
    assert_eq!((lag.commits, lag.is_least, lag.time), (3, false, Some(Duration::from_secs(30))));
    follower.catch_up().expect("catches up");
    let lag = follower.measure_lag().expect("looks");
    assert_eq!((lag.commits, lag.time), (0, Some(Duration::ZERO)));
    assert_eq!(follower.stats().commits_behind, 3);
}

#[test]
fn a_caller_reads_its_own_write_or_learns_what_the_follower_has() {
    let place = Place::new();
    let writer = place.open("a");
    let follower = place.follow();
    let mut batch = Batch::new();
    batch.put(writer.default_table(), key(1), value(1)).expect("fits");
    let seq = writer.write(&batch, Durability::Synced).expect("writes");
    check(&follower.read_at_least(seq, Duration::ZERO).expect("it is there"), 1..2, 1);
    let catch_ups = follower.stats().catch_ups;
    check(&follower.read_at_least(seq, Duration::ZERO).expect("it is there"), 1..2, 1);
    assert_eq!(follower.stats().catch_ups, catch_ups, "the view has it: nothing is read");
    let late = follower.read_at_least(SeqNo(seq.0 + 1), Duration::from_secs(5)).map(drop);
    let text = refused(late, Kind::TimedOut);
    assert!(text.contains(&format!("has commit {seq}, and not {}", SeqNo(seq.0 + 1))), "{text}");
    // It comes while the caller waits: the bucket's list is where the follower looks.
    let bucket = place.bucket.clone();
    let busy = BusyBucket::new(bucket, "db/journal", move || put_all(&writer, 2..3, 1));
    let waiting = place.follow_through(Arc::new(busy), &place.deployment("elsewhere")).expect("follows");
    let view = waiting.read_at_least(SeqNo(seq.0 + 5), Duration::from_secs(60)).expect("it comes");
    check(&view, 1..3, 1);
}

/// One caller stands in its look; others neither wait for longer than they said nor look again for
/// themselves.
#[test]
fn callers_that_wait_share_a_look_and_keep_their_deadlines() {
    let place = Place::new();
    let writer = place.open("a");
    let is_held = Arc::new(AtomicBool::new(false));
    let (looks, go_on) = (std::sync::mpsc::channel(), std::sync::mpsc::channel());
    let (held, gate) = (is_held.clone(), Mutex::new(go_on.1));
    let slow = BusyBucket::new(place.bucket.clone(), "db/manifest", move || {
        if held.swap(false, Ordering::Relaxed) {
            looks.0.send(()).expect("the test waits");
            gate.lock().recv().expect("the test goes on");
        }
    });
    let follower = place.follow_through(Arc::new(slow), &place.deployment("elsewhere")).expect("follows");
    let before = follower.stats();
    let seq = SeqNo(before.seq.0 + 5);
    put_all(&writer, 0..5, 1);
    is_held.store(true, Ordering::Relaxed);
    std::thread::scope(|scope| {
        let wait =
            || check(&follower.read_at_least(seq, Duration::from_secs(60)).expect("it is there"), 0..5, 1);
        let first = scope.spawn(wait);
        looks.1.recv().expect("it looks");
        refused(follower.read_at_least(seq, Duration::ZERO).map(drop), Kind::TimedOut);
        let others: Vec<_> = (0..3).map(|_| scope.spawn(wait)).collect();
        go_on.0.send(()).expect("it waits");
        others.into_iter().chain([first]).for_each(|waiting| waiting.join().expect("no panic"));
    });
    assert_eq!(follower.stats().catch_ups - before.catch_ups, 1, "one look serves all");
}

/// Two tables, of which one is flushed: the manifest has what the journal must have as well.
#[test]
fn a_view_is_of_one_moment() {
    let place = Place::new();
    let writer = place.open("a");
    let other = writer.create_table("other", &TableOptions::new()).expect("creates");
    let put_both = |salt: u32| {
        let mut batch = Batch::new();
        batch.put(writer.default_table(), key(0), value(salt)).expect("fits");
        batch.put(&other, key(0), value(salt)).expect("fits");
        writer.write(&batch, Durability::Synced).expect("writes");
    };
    let is_equal = |view: &Db| {
        let here = view.get(key(0)).expect("reads");
        here.is_some() && here == view.table("other").expect("it is there").get(key(0)).expect("reads")
    };
    put_both(1);
    let follower = place.follow();
    assert!(is_equal(&follower.view()));
    for salt in 2..6 {
        put_both(salt);
        writer.flush_tables(&[writer.default_table()]).expect("flushes");
        follower.catch_up().expect("catches up");
        assert!(is_equal(&follower.view()), "the batch is half there: {salt}");
        assert_eq!(follower.view().get(key(0)).expect("reads").as_deref(), Some(&value(salt)[..]));
    }
}

/// The writer flushes between any two requests of a follower.
#[test]
fn a_writer_that_is_faster_leaves_a_whole_view() {
    let place = Place::new();
    let writer = place.open("a");
    put_all(&writer, 0..10, 1);
    let count = std::sync::atomic::AtomicU32::new(1);
    let busy = BusyBucket::new(place.bucket.clone(), "db/journal", move || {
        let salt = 1 + count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        put_all(&writer, 0..10, salt);
        writer.flush().expect("flushes");
        put_all(&writer, 0..5, salt);
    });
    let follower = place.follow_through(Arc::new(busy), &place.deployment("elsewhere")).expect("follows");
    for _ in 0..5 {
        let view = follower.view();
        let salts: Vec<u32> = (0..10)
            .map(|number| {
                let found = view.get(key(number)).expect("reads").expect("it was put");
                u32::from_le_bytes(found[..4].try_into().expect("four bytes"))
            })
            .collect();
        assert!(salts.is_sorted_by(|a, b| a >= b) && salts[0] - salts[9] <= 1, "no prefix: {salts:?}");
        follower.catch_up().expect("catches up");
    }
}

#[test]
fn the_lag_behind_a_close_that_flushed_is_that_of_the_writer() {
    let place = Place::new();
    let deployment = place.deployment("a");
    let flushes = |(name, _): &(String, String)| name != "close_flush";
    let deployment =
        Deployment { options: deployment.options.into_iter().filter(flushes).collect(), ..deployment };
    let open = || place.open_as(&deployment).expect("opens");
    let writer = open();
    put_all(&writer, 0..5, 1);
    writer.close().expect("closes");
    // The manifest needs no journal now, so the follower reads none.
    let follower = place.follow();
    assert_eq!(follower.measure_lag().expect("looks").time, Some(Duration::ZERO));
    terrane_base::env::Clock::sleep(&*place.clock, Duration::from_secs(30));
    let writer = open();
    put_all(&writer, 5..8, 1);
    let lag = follower.measure_lag().expect("looks");
    assert_eq!((lag.commits, lag.time), (3, Some(Duration::from_secs(30))));
}
