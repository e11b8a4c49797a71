//! How many requests a follower makes.

use std::sync::Arc;

use terrane::{Follower, Kind};
use terrane_remote::Deployment;
use terrane_remote::bucket::faulty::FaultyBucket;

use super::{Place, check, collect, key, numbered, put_all};
use crate::support::refused;

/// A follower whose requests are counted.
struct Counted {
    place: Place,
    calls: FaultyBucket,
    follower: Follower,
    manifest: String,
}

impl Counted {
    fn new(place: Place, deployment: &Deployment) -> Counted {
        let calls = FaultyBucket::new(place.bucket.clone());
        let follower = place.follow_through(Arc::new(calls.clone()), deployment).expect("follows");
        Counted { place, calls, follower, manifest: format!("{}/manifest", deployment.prefix) }
    }

    /// The requests of `work` behind `news`, with which the manifest does not change: where the writer's
    /// background changed it, both are done again.
    fn calls(&self, news: &dyn Fn(), work: &dyn Fn(&Follower)) -> u64 {
        let last = || numbered(&*self.place.bucket, &self.manifest).pop_last().map(|(number, _)| number);
        loop {
            let before = last();
            self.follower.catch_up().expect("catches up");
            news();
            let from = self.calls.calls();
            work(&self.follower);
            let calls = self.calls.calls() - from;
            if last() == before {
                return calls;
            }
        }
    }
}

fn catch_up(follower: &Follower) {
    follower.catch_up().expect("catches up");
}

#[test]
fn a_catch_up_without_news_makes_two_lists() {
    let place = Place::new();
    let writer = place.open("a");
    put_all(&writer, 0..20, 1);
    writer.flush().expect("flushes");
    put_all(&writer, 20..30, 1);
    let deployment = place.deployment("elsewhere");
    let counted = Counted::new(place, &deployment);
    let view = counted.follower.view();
    let nothing = || ();
    assert_eq!(counted.calls(&nothing, &catch_up), 2, "one list of the manifest, one of the journal");
    assert_eq!(counted.follower.stats().commits_behind, 0);
    let lag = |follower: &Follower| assert_eq!(follower.lag().expect("looks"), 0);
    assert_eq!(counted.calls(&nothing, &lag), 2);
    // Each synced commit is an object.
    assert_eq!(counted.calls(&|| put_all(&writer, 30..33, 2), &catch_up), 2 + 3);
    check(&counted.follower.view(), 30..33, 2);
    check(&view, 0..30, 1);
}

#[test]
fn a_journal_in_a_directory_of_another_machine_costs_no_request() {
    let place = Place::new();
    let writer = place.open_as(&place.in_directory("a")).expect("opens");
    put_all(&writer, 0..20, 1);
    writer.flush().expect("flushes");
    let deployment = place.in_directory("elsewhere");
    let counted = Counted::new(place, &deployment);
    assert_eq!(counted.calls(&|| put_all(&writer, 20..25, 1), &catch_up), 1, "one list of the manifest");
    check(&counted.follower.view(), 0..20, 1);
}

#[test]
fn reads_of_what_the_writer_replaced_ask_for_the_manifest_once() {
    let place = Place::new();
    let writer = place.open("a");
    put_all(&writer, 0..200, 1);
    writer.flush().expect("flushes");
    place.note_named();
    let calls = FaultyBucket::new(place.bucket.clone());
    let deployment = place.deployment("elsewhere");
    let follower = place.follow_through(Arc::new(calls.clone()), &deployment).expect("follows");
    let view = follower.view();
    put_all(&writer, 0..200, 2);
    writer.flush().expect("flushes");
    writer.compact_range(writer.default_table(), ..).expect("compacts");
    writer.close().expect("closes");
    collect(&place);
    refused(view.get(key(0)).map(drop), Kind::Gone);
    let before = calls.calls();
    for number in (0..200).step_by(7) {
        refused(view.get(key(number)).map(drop), Kind::Gone);
    }
    let reads = calls.calls() - before;
    assert!(reads <= 29, "each read asks for its extent and nothing else: {reads} requests of 29 reads");
    // Behind a catch-up that is known without a request.
    follower.catch_up().expect("catches up");
    check(&follower.view(), 0..200, 2);
    let before = calls.calls();
    refused(view.get(key(3)).map(drop), Kind::Gone);
    assert!(calls.calls() - before <= 1, "{} requests", calls.calls() - before);
}
