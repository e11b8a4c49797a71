//! The table of jobs: one worker for each attempt, ages by the bucket's clock, and nothing counts that is
//! not of the current attempt.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use terrane_base::Kind;
use terrane_base::env::{Clock, Env, SleepClock};
use terrane_remote::Bucket;
use terrane_remote::bucket::MemoryBucket;
use terrane_remote::bucket::faulty::{Fault, FaultyBucket};
use terrane_remote::jobs::{Beat, Claim, Coordinator, JobState, JobTable, OpenAttempt};

use crate::support::{env, every_kind, memory, names, refused};

const LOST: Duration = Duration::from_secs(10);

struct World {
    clock: Arc<SleepClock>,
    inner: Arc<MemoryBucket>,
    bucket: FaultyBucket,
    table: JobTable,
    coordinator: Coordinator,
}

fn table(bucket: Arc<dyn Bucket>) -> JobTable {
    JobTable::new(bucket, "db", Env::real().random).expect("a prefix")
}

fn world() -> World {
    let (_, clock) = env();
    let inner = memory(&clock);
    let bucket = FaultyBucket::new(inner.clone());
    let table = table(Arc::new(bucket.clone()));
    let coordinator = table.coordinate(7).expect("begins");
    World { clock, inner, bucket, table, coordinator }
}

#[track_caller]
fn claim(table: &JobTable, worker: &str) -> Claim {
    let open = *table.list_open().expect("lists").first().expect("an attempt is open");
    table.claim(open, worker).expect("claims").expect("no other worker has it")
}

#[test]
fn a_job_goes_to_one_worker_and_its_outcome_back() {
    for (kind, bucket, _alive) in every_kind() {
        let table = table(bucket.clone());
        let coordinator = table.coordinate(7).expect(kind);
        assert_eq!(table.list_open().expect(kind), []);
        let id = coordinator.offer(b"a job", 10..20, LOST).expect(kind);
        assert!(matches!(coordinator.state(id).expect(kind), JobState::Waiting { .. }), "{kind}");
        let open = table.list_open().expect(kind);
        assert_eq!(open, [OpenAttempt { id, attempt: 1 }], "{kind}");
        let mut own = table.claim(open[0], "left").expect(kind).expect("it is open");
        assert!(table.claim(open[0], "right").expect(kind).is_none(), "{kind}: two workers");
        assert_eq!(table.list_open().expect(kind), [], "{kind}");
        let expected = (Bytes::from_static(b"a job"), 10..20, LOST);
        assert_eq!((own.payload.clone(), own.lease.clone(), own.lost), expected, "{kind}");
        for _ in 0..3 {
            assert_eq!(own.beat(0).expect(kind), Beat::Current, "{kind}");
        }
        let state = coordinator.state(id).expect(kind);
        assert!(matches!(&state, JobState::Claimed { worker, .. } if worker == "left"), "{kind}: {state:?}");
        assert!(own.finish(b"an outcome").expect(kind), "{kind}");
        let outcome = Bytes::from_static(b"an outcome");
        assert_eq!(
            coordinator.state(id).expect(kind),
            JobState::Done { worker: "left".to_owned(), outcome },
            "{kind}"
        );
        coordinator.withdraw(id).expect(kind);
        assert_eq!(names(&*bucket, "db/jobs"), ["db/jobs/00000000000000000007-coordinator"], "{kind}");
        refused(coordinator.state(id), Kind::NotFound);
    }
}

#[test]
fn ages_are_those_of_the_bucket() {
    let world = world();
    let second = Duration::from_secs(1);
    let id = world.coordinator.offer(b"a job", 10..20, LOST).expect("offers");
    world.clock.sleep(3 * second);
    assert_eq!(world.coordinator.state(id).expect("state"), JobState::Waiting { age: 3 * second });
    let mut own = claim(&world.table, "left");
    world.clock.sleep(4 * second);
    let state = |age: u32, beat_age: u32, done: u64| {
        let (age, beat_age) = (age * second, beat_age * second);
        assert_eq!(
            world.coordinator.state(id).expect("state"),
            JobState::Claimed { worker: "left".to_owned(), age, beat_age, done }
        );
    };
    state(4, 4, 0);
    own.beat(u64::MAX).expect("alive");
    world.clock.sleep(2 * second);
    state(6, 2, u64::MAX);
    // The last sign counts, not the farthest one.
    own.beat(30).expect("alive");
    state(6, 0, 30);
    world.clock.sleep(5 * second);
    state(11, 5, 30);
    let objects = names(&*world.inner, &format!("db/jobs/{:020}-{:010}", 7, 1));
    assert_eq!(objects.len(), 4, "offer, attempt, claim and one sign of life: {objects:?}");
}

#[test]
fn only_the_current_attempt_counts() {
    let world = world();
    let id = world.coordinator.offer(b"a job", 10..20, LOST).expect("offers");
    let mut lost = claim(&world.table, "lost");
    assert_eq!(world.coordinator.open_attempt(id, 30..40, LOST).expect("opens"), 2);
    assert_eq!(lost.beat(0).expect("alive"), Beat::Withdrawn);
    assert!(!lost.finish(b"late").expect("reports"), "it learns that the report is not read");
    assert!(matches!(world.coordinator.state(id).expect("state"), JobState::Waiting { .. }));
    let older = world.coordinator.offer(b"another", 20..30, LOST).expect("offers");
    world.coordinator.open_attempt(older, 50..60, LOST).expect("opens");
    let open = OpenAttempt { id: older, attempt: 1 };
    assert!(world.table.claim(open, "left").expect("asks").is_none(), "the attempt was given up meanwhile");
    world.coordinator.withdraw(older).expect("withdraws");
    let next = claim(&world.table, "next");
    assert_eq!((next.attempt, next.lease.clone()), (2, 30..40));
    assert!(matches!(world.coordinator.state(id).expect("state"), JobState::Claimed { .. }));
    assert!(next.give_back("a signal\nof the system").expect("reports"));
    let reason = "a signal of the system".to_owned();
    assert_eq!(
        world.coordinator.state(id).expect("state"),
        JobState::GivenBack { worker: "next".to_owned(), reason }
    );
    world.coordinator.open_attempt(id, 40..50, LOST).expect("opens");
    let third = claim(&world.table, "third");
    assert!(third.fail(&"ä".repeat(3000)).expect("reports"), "a long reason is cut");
    let state = world.coordinator.state(id).expect("state");
    assert!(matches!(&state, JobState::Failed { reason, .. } if reason.len() == 4096), "{state:?}");
    assert!(matches!(third.finish(b"after all"), Ok(false)), "an attempt has one report");
}

#[test]
fn a_job_that_was_withdrawn_is_claimed_and_reported_by_no_worker() {
    let world = world();
    let id = world.coordinator.offer(b"a job", 10..20, LOST).expect("offers");
    let (mut own, open) = (claim(&world.table, "left"), OpenAttempt { id, attempt: 1 });
    world.coordinator.withdraw(id).expect("withdraws");
    assert!(world.table.claim(open, "right").expect("asks").is_none());
    assert_eq!(own.beat(0).expect("alive"), Beat::Withdrawn);
    assert!(!own.finish(b"late").expect("reports"));
    // What the worker wrote behind the end goes with a sweep; a number never comes back.
    assert_eq!(names(&*world.inner, "db/jobs").len(), 3);
    let live = world.coordinator.offer(b"another", 20..30, LOST).expect("offers");
    assert_eq!(live.number, id.number + 1);
    assert_eq!(world.coordinator.sweep().expect("sweeps"), 2);
    assert!(matches!(world.coordinator.state(live).expect("state"), JobState::Waiting { .. }));
    assert_eq!(names(&*world.inner, "db/jobs").len(), 3, "coordinator, offer and attempt");
}

#[test]
fn a_newer_coordinator_ends_the_jobs_of_the_older_one() {
    let world = world();
    let id = world.coordinator.offer(b"a job", 10..20, LOST).expect("offers");
    let mut own = claim(&world.table, "left");
    world.coordinator.offer(b"another", 20..30, LOST).expect("offers");
    let newer = world.table.coordinate(8).expect("begins");
    assert_eq!(own.beat(0).expect("alive"), Beat::Withdrawn);
    assert_eq!(world.table.list_open().expect("lists"), []);
    // The older one goes on for a while: workers leave its jobs.
    let late = world.coordinator.offer(b"late", 30..40, LOST).expect("the bucket cannot know");
    assert_eq!(world.table.list_open().expect("lists"), []);
    let open = OpenAttempt { id: late, attempt: 1 };
    assert!(world.table.claim(open, "left").expect("asks").is_none(), "also of one that listed it before");
    let message = refused(world.coordinator.sweep(), Kind::Poisoned);
    assert!(message.contains("epoch 8") && message.contains("epoch 7"), "{message}");
    newer.sweep().expect("sweeps");
    refused(world.coordinator.state(id), Kind::Corrupt);
    assert_eq!(names(&*world.inner, "db/jobs"), ["db/jobs/00000000000000000008-coordinator"]);
    refused(world.table.coordinate(8), Kind::Poisoned);
}

/// Two jobs that are waited for cost one look, and the look that serves is of each attempt.
#[test]
fn jobs_that_are_waited_for_share_a_look() {
    let world = world();
    let (at, fresh) = (Duration::from_secs(100), Duration::from_secs(1));
    let offer = |from| world.coordinator.offer(b"a job", from..from + 10, LOST).expect("offers");
    let (one, two) = (offer(10), offer(20));
    let looks = |what: &dyn Fn()| {
        let before = world.bucket.calls();
        what();
        (world.bucket.calls() - before) / 3
    };
    let waits = |id, at| {
        let state = world.coordinator.state_within(id, (at, fresh)).expect("state");
        assert!(matches!(state, JobState::Waiting { .. }), "{state:?}");
    };
    assert_eq!(looks(&|| waits(one, at)), 1, "a creation, a list and a deletion");
    assert_eq!(looks(&|| waits(two, at + fresh / 2)), 0);
    assert_eq!(looks(&|| waits(one, at + fresh / 2)), 0);
    assert_eq!(looks(&|| waits(two, at + fresh)), 1, "the look is old");
    // An attempt that was opened behind the look is not in it.
    let three = offer(30);
    assert_eq!(looks(&|| waits(three, at + fresh)), 1);
    world.coordinator.open_attempt(one, 40..50, LOST).expect("opens");
    assert_eq!(looks(&|| waits(one, at + fresh)), 1);
    // Two jobs, each with a worker: the signs of one are not those of the other.
    for _ in 0..3 {
        claim(&world.table, "left").beat(7).expect("alive");
    }
    let done = |id| match world.coordinator.state(id).expect("state") {
        JobState::Claimed { done, .. } => done,
        other => panic!("it was claimed: {other:?}"),
    };
    assert_eq!([one, two, three].map(done), [7; 3]);
}

/// Objects of something else, or damaged ones, under every sort of name: neither coordinators nor workers
/// take them for a newer writer.
#[test]
fn an_object_that_is_not_a_coordinator_replaces_none() {
    let world = world();
    let (coordinator, job) =
        ("db/jobs/00000000000000000099-coordinator", "db/jobs/00000000000000000098-0000000001");
    let own = "db/jobs/00000000000000000007-coordinator";
    let of_seven = world.inner.get(own, 1 << 10).expect("reads");
    world.inner.create("db/jobs/00000000000000000097-coordinator", &of_seven).expect("creates");
    for name in [coordinator, &format!("{job}/offer"), &format!("{job}/001-open"), "db/jobs/stray"] {
        world.inner.create(name, b"stray").expect("creates");
    }
    let id = world.coordinator.offer(b"a job", 10..20, LOST).expect("offers");
    let mut own = claim(&world.table, "left");
    assert_eq!((own.id, own.beat(0).expect("alive")), (id, Beat::Current));
    assert!(own.finish(b"an outcome").expect("reports"));
    assert!(matches!(world.coordinator.state(id).expect("state"), JobState::Done { .. }));
    world.coordinator.sweep().expect("sweeps");
    let next = world.table.coordinate(8).expect("begins");
    next.sweep().expect("sweeps");
    let left = names(&*world.inner, "db/jobs");
    assert_eq!(left.len(), 6, "the coordinator and the strays, which are left alone: {left:?}");
    // A name that the own epoch needs: an error, which is the caller's to take.
    world.inner.create("db/jobs/00000000000000000009-coordinator", b"stray").expect("creates");
    refused(world.table.coordinate(9), Kind::Poisoned);
}

#[test]
fn workers_are_seen_as_long_as_they_give_signs_of_life() {
    let world = world();
    assert_eq!(world.table.workers().expect("lists"), []);
    let mut left = world.table.presence("left").expect("a name");
    let mut right = world.table.presence("right-1").expect("a name");
    for _ in 0..3 {
        left.beat().expect("alive");
    }
    right.beat().expect("alive");
    world.clock.sleep(Duration::from_secs(60));
    right.beat().expect("alive");
    let seen: Vec<(String, u64)> = world
        .table
        .workers()
        .expect("lists")
        .into_iter()
        .map(|worker| (worker.name, worker.age.as_secs()))
        .collect();
    assert_eq!(seen, [("right-1".to_owned(), 0), ("left".to_owned(), 60)]);
    assert_eq!(names(&*world.inner, "db/jobs/workers").len(), 2, "one for each");
    right.end().expect("ends");
    world.clock.sleep(Duration::from_secs(3600));
    assert_eq!(world.table.workers().expect("lists"), []);
    assert_eq!(world.coordinator.sweep().expect("sweeps"), 1);
    assert_eq!(names(&*world.inner, "db/jobs/workers"), Vec::<String>::new());
    refused(world.table.presence("a b"), Kind::Invalid);
}

/// Lost answers and failed requests at each call of a job's whole life: the outcome comes once, or an error
/// says that it is not known, and nothing stays behind the sweep.
#[test]
fn every_call_of_a_job_may_fail() {
    let run = |world: &World| -> terrane_base::Result<Bytes> {
        let id = world.coordinator.offer(b"a job", 10..20, LOST)?;
        let open = world.table.list_open()?;
        let claim = world.table.claim(open[0], "left")?;
        let mut claim = claim.expect("no other worker asks, and a lost answer is found out");
        assert_eq!(claim.beat(0)?, Beat::Current);
        assert!(claim.finish(b"an outcome")?);
        let state = world.coordinator.state(id)?;
        world.coordinator.withdraw(id)?;
        match state {
            JobState::Done { outcome, .. } => Ok(outcome),
            other => panic!("it was reported: {other:?}"),
        }
    };
    let sound = world();
    let before = sound.bucket.calls();
    run(&sound).expect("runs");
    let calls = sound.bucket.calls() - before;
    assert!(calls > 12, "{calls} calls");
    let mut survived = 0;
    for call in 0..calls {
        for fault in [Fault::Before, Fault::After] {
            let world = world();
            world.bucket.fail(world.bucket.calls() + call, fault);
            match run(&world) {
                Ok(outcome) => {
                    assert_eq!(outcome, b"an outcome"[..]);
                    survived += 1;
                }
                Err(error) => assert_eq!(error.kind(), Kind::Io, "call {call}, {fault:?}: {error}"),
            }
            let fresh = world.table.coordinate(8).expect("begins");
            fresh.sweep().expect("sweeps");
            assert_eq!(
                names(&*world.inner, "db/jobs"),
                ["db/jobs/00000000000000000008-coordinator"],
                "call {call}, {fault:?}"
            );
        }
    }
    assert!(survived >= 10, "creations are tried again: {survived}");
}

#[test]
fn foreign_bytes_in_objects_of_a_job_are_damage() {
    let flips = |text: &str, read: &dyn Fn(&World) -> Kind| {
        let world = world();
        let id = world.coordinator.offer(b"a job", 10..20, LOST).expect("offers");
        let name = format!("db/jobs/{:020}-{:010}/{text}", 7, id.number);
        if text != "offer" && text != "001-open" {
            let own = claim(&world.table, "left");
            own.finish(b"an outcome").expect("reports");
        }
        let sound = world.inner.get(&name, 1 << 20).expect("reads");
        for damaged in [Bytes::from_static(b"x"), sound.slice(..sound.len() - 1), {
            let mut flipped = sound.to_vec();
            flipped[40] ^= 1;
            flipped.into()
        }] {
            world.inner.damage(&name, damaged).expect("it is there");
            assert_eq!(read(&world), Kind::Corrupt, "{text}");
        }
    };
    let open = |world: &World| OpenAttempt { id: id_of(world), attempt: 1 };
    flips("offer", &|world| world.table.claim(open(world), "left").expect_err("damaged").kind());
    flips("001-open", &|world| world.table.claim(open(world), "left").expect_err("damaged").kind());
    flips("001-claim", &|world| world.coordinator.state(id_of(world)).expect_err("damaged").kind());
    flips("001-report", &|world| world.coordinator.state(id_of(world)).expect_err("damaged").kind());
}

fn id_of(world: &World) -> terrane_remote::jobs::JobId {
    terrane_remote::jobs::JobId { epoch: world.coordinator.epoch(), number: 1 }
}

/// A report under the right name, whole, of one that never had the claim.
#[test]
fn a_report_of_another_worker_is_refused() {
    let world = world();
    let id = world.coordinator.offer(b"a job", 10..20, LOST).expect("offers");
    let own = claim(&world.table, "left");
    let other = self::world();
    let elsewhere = other.coordinator.offer(b"a job", 10..20, LOST).expect("offers");
    assert_eq!(id, elsewhere);
    claim(&other.table, "right").finish(b"forged").expect("reports");
    let name = format!("db/jobs/{:020}-{:010}/001-report", 7, 1);
    let forged = other.inner.get(&name, 1 << 20).expect("reads");
    world.inner.create(&name, &forged).expect("creates");
    let message = refused(world.coordinator.state(id), Kind::Corrupt);
    assert!(message.contains("claim"), "{message}");
    assert!(!own.finish(b"an outcome").expect("finds the other report"));
}
