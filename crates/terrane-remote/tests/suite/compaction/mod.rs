//! Compaction on other machines: a job that a worker does leaves what it leaves here, and whatever becomes of
//! workers, bucket and reports, the job is done once.

mod databases;
mod fixture;
mod workers;

use std::sync::Arc;
use std::time::Duration;

use terrane_base::Kind;
use terrane_base::sync::Mutex;
use terrane_compaction::{CancelCause, Compactor, Elsewhere};
use terrane_remote::Bucket;
use terrane_remote::bucket::faulty::{Fault, FaultyBucket};
use terrane_remote::jobs::{Claim, Ended, Step, Stop};

use fixture::{Fixture, claim};

const DONE: Elsewhere = Elsewhere { is_done: true, fell_back: false, attempts_lost: 0 };
const FELL_BACK: Elsewhere = Elsewhere { is_done: false, fell_back: true, attempts_lost: 0 };

#[test]
fn a_worker_leaves_what_a_merge_in_the_database_leaves() {
    let fixture = Fixture::new().with_worker();
    for _ in 0..3 {
        let (result, control) = fixture.run();
        assert_eq!(control.elsewhere(), DONE);
        assert_eq!(control.work(), result.work);
        assert!(result.work.bytes_written > 0 && result.work.blocks_copied > 0);
    }
    assert!(fixture.objects_of_jobs().is_empty(), "ended jobs leave no offer");
}

#[test]
fn a_job_that_no_worker_claims_runs_here_and_the_next_ones_are_not_offered_for_a_while() {
    let fixture = Fixture::new();
    let (_, control) = fixture.run();
    assert_eq!(control.elsewhere(), FELL_BACK);
    let before = terrane_base::env::Clock::now(&*fixture.clock);
    assert!(before >= Duration::from_secs(5), "it waited for a claim");
    assert!(fixture.objects_of_jobs().is_empty());
    let fixture = fixture.with_worker();
    let (_, control) = fixture.run();
    assert_eq!(control.elsewhere(), Elsewhere::default(), "it was not offered");
    assert_eq!(terrane_base::env::Clock::now(&*fixture.clock), before, "and did not wait");
    terrane_base::env::Clock::sleep(&*fixture.clock, Duration::from_secs(31));
    assert_eq!(fixture.run().1.elsewhere(), DONE, "the pause is over");
}

/// How many calls of the bucket a worker makes for the job.
fn calls_of_worker() -> u64 {
    let fixture = Fixture::new();
    let bucket = FaultyBucket::new(fixture.bucket.clone());
    let (worker, counted) = (fixture.worker(Arc::new(bucket.clone()), "counted"), bucket.clone());
    let until = Arc::new(Mutex::new(None));
    let seen = until.clone();
    fixture.clock.set(move |_| {
        if let Ok(Step::Ended(_)) = worker.step(&Stop::default()) {
            seen.lock().get_or_insert(counted.calls());
        }
    });
    assert_eq!(fixture.run().1.elsewhere(), DONE);
    let calls = *until.lock();
    calls.expect("a worker did it")
}

/// Runs the job with a worker whose calls fail from one on, as if its machine had stopped there, and a sound
/// one that looks for jobs after it.
#[test]
fn a_worker_may_die_at_any_call_of_the_bucket() {
    let calls = calls_of_worker();
    assert!(calls > 8, "{calls} calls");
    for died_at in 0..calls {
        let fixture = Fixture::new();
        let bucket = FaultyBucket::new(fixture.bucket.clone());
        bucket.fail_from(died_at);
        let dying = fixture.worker(Arc::new(bucket), "dying");
        let sound = fixture.worker(fixture.bucket.clone(), "sound");
        fixture.clock.set(move |_| {
            let _ = dying.step(&Stop::default());
            let _ = sound.step(&Stop::default());
        });
        let control = fixture.run().1;
        let Elsewhere { is_done, fell_back, attempts_lost } = control.elsewhere();
        assert!(is_done && !fell_back && attempts_lost <= 1, "died at {died_at}: {:?}", control.elsewhere());
    }
}

/// A lost answer, an answer that never comes and a refusal, each at each call; with `TERRANE_CALLS_PART`
/// each of them at one call of so many, so that with three every call fails once.
#[test]
fn a_call_of_a_worker_may_fail_in_any_way() {
    let calls = calls_of_worker();
    let part: u64 = std::env::var("TERRANE_CALLS_PART").map_or(1, |text| text.parse().expect("a number"));
    for (first, fault) in (0..).zip([Fault::Before, Fault::After, Fault::Refused]) {
        for at in (0..calls).filter(|at| at % part == first % part) {
            let fixture = Fixture::new();
            let bucket = FaultyBucket::new(fixture.bucket.clone());
            bucket.fail(at, fault);
            let worker = fixture.worker(Arc::new(bucket), "faulty");
            fixture.clock.set(move |_| drop(worker.step(&Stop::default())));
            let elsewhere = fixture.run().1.elsewhere();
            assert!(elsewhere.is_done != elsewhere.fell_back, "{fault:?} at {at}: {elsewhere:?}");
        }
    }
}

#[test]
fn a_job_runs_here_when_every_attempt_is_lost() {
    let fixture = Fixture::new();
    let table = fixture.coordinator.table().clone();
    fixture.clock.set(move |_| drop(claim(&table)));
    assert_eq!(fixture.run().1.elsewhere(), Elsewhere { attempts_lost: 3, ..FELL_BACK });
    assert!(fixture.objects_of_jobs().is_empty());
}

#[test]
fn an_attempt_that_is_given_back_is_followed_by_another_one_at_once() {
    let fixture = Fixture::new();
    let table = fixture.coordinator.table().clone();
    let sound = fixture.worker(fixture.bucket.clone(), "sound");
    let mut is_first = true;
    fixture.clock.set(move |_| {
        if is_first && let Some(claim) = claim(&table) {
            is_first = false;
            assert!(claim.give_back("evicted").expect("reported"));
        } else {
            let _ = sound.step(&Stop::default());
        }
    });
    assert_eq!(fixture.run().1.elsewhere(), Elsewhere { attempts_lost: 1, ..DONE });
    let now = terrane_base::env::Clock::now(&*fixture.clock);
    assert!(now < Duration::from_secs(5), "nothing was waited for: {now:?}");
}

/// A worker that was taken for dead reports what it did: first, while another attempt runs, then again after
/// the job has ended.
#[test]
fn the_report_of_a_lost_attempt_counts_for_nothing() {
    let fixture = Fixture::new();
    let table = fixture.coordinator.table().clone();
    let sound = fixture.worker(fixture.bucket.clone(), "sound");
    let zombie: Arc<Mutex<Option<Claim>>> = Arc::default();
    let held = zombie.clone();
    fixture.clock.set(move |now| {
        let mut held = held.lock();
        match &*held {
            None => *held = claim(&table),
            // The coordinator has opened the next attempt by now.
            Some(lost) if now > Duration::from_secs(12) => {
                assert!(
                    !lost.finish(b"a wrong outcome").expect("reported"),
                    "the writer does not wait for it"
                );
                let _ = sound.step(&Stop::default());
            }
            Some(_) => {}
        }
    });
    assert_eq!(fixture.run().1.elsewhere(), Elsewhere { attempts_lost: 1, ..DONE });
    let late = zombie.lock().take().expect("it claimed");
    assert!(!late.finish(b"another one").expect("reported"));
}

/// A worker of another job, or an enemy with the right to write into the bucket.
#[test]
fn a_hostile_report_is_refused_and_the_job_runs_here() {
    // The outcome of a sound worker of another job with the same inputs: its objects are not of this lease.
    let foreign = {
        let other = Fixture::new();
        let (table, kept) = (other.coordinator.table().clone(), Arc::new(Mutex::new(None)));
        let (worker, seen) = (other.worker(other.bucket.clone(), "sound"), kept.clone());
        let bucket = other.bucket.clone();
        other.clock.set(move |_| {
            let _ = worker.step(&Stop::default());
            let reports = bucket.list("db/jobs", None).expect("lists");
            if let Some(report) = reports.iter().find(|object| object.name.ends_with("-report")) {
                let bytes = bucket.get(&report.name, 1 << 30).expect("reads");
                seen.lock().get_or_insert(bytes);
            }
        });
        assert_eq!(other.run().1.elsewhere(), DONE);
        drop(table);
        let report: bytes::Bytes = kept.lock().take().expect("reported");
        // Behind the header of the object.
        let at = report.windows(8).position(|bytes| bytes == b"TRNJOBO1").expect("an outcome");
        report.slice(at..)
    };
    let mut flipped = foreign.to_vec();
    let last = flipped.len() - 1;
    flipped[last] ^= 1;
    let outcomes = [b"x".to_vec(), foreign[..foreign.len() / 2].to_vec(), flipped, foreign.to_vec()];
    for (at, outcome) in outcomes.into_iter().enumerate() {
        let fixture = Fixture::new();
        let table = fixture.coordinator.table().clone();
        fixture.clock.set(move |_| {
            if let Some(claim) = claim(&table) {
                assert!(claim.finish(&outcome).expect("reported"));
            }
        });
        let elsewhere = fixture.run().1.elsewhere();
        assert_eq!(elsewhere, Elsewhere { attempts_lost: 1, ..FELL_BACK }, "outcome {at}");
    }
}

#[test]
fn a_job_that_a_worker_cannot_do_runs_here() {
    let fixture = Fixture::new();
    let table = fixture.coordinator.table().clone();
    fixture.clock.set(move |_| {
        if let Some(claim) = claim(&table) {
            assert!(claim.fail("no such codec").expect("reported"));
        }
    });
    assert_eq!(fixture.run().1.elsewhere(), Elsewhere { attempts_lost: 1, ..FELL_BACK });
}

#[test]
fn a_job_runs_here_when_the_bucket_does_not_answer() {
    let faulty = Arc::new(Mutex::new(None));
    let seen = faulty.clone();
    let fixture = Fixture::over(move |bucket| {
        let bucket = FaultyBucket::new(bucket);
        *seen.lock() = Some(bucket.clone());
        Arc::new(bucket)
    });
    let bucket: FaultyBucket = faulty.lock().take().expect("made");
    fixture.clock.set(move |_| bucket.set_down(true));
    let elsewhere = fixture.run().1.elsewhere();
    assert_eq!(elsewhere, Elsewhere { attempts_lost: 1, ..FELL_BACK });
}

#[test]
fn a_cancelled_job_is_withdrawn_and_its_worker_learns_so() {
    let fixture = Fixture::new();
    let table = fixture.coordinator.table().clone();
    let (control, held) = (Arc::new(fixture.control()), Arc::new(Mutex::new(None)));
    let (cancelled, seen) = (control.clone(), held.clone());
    fixture.clock.set(move |now| {
        let mut seen = seen.lock();
        if seen.is_none() {
            *seen = claim(&table);
        }
        if now > Duration::from_secs(1) {
            cancelled.cancel(CancelCause::Closing);
        }
    });
    let error = fixture.compactor.run(&fixture.spec, &control).expect_err("cancelled");
    assert_eq!(error.kind(), Kind::Cancelled);
    assert_eq!(control.elsewhere(), Elsewhere::default());
    assert!(fixture.objects_of_jobs().is_empty());
    let mut claim = held.lock().take().expect("claimed");
    assert_eq!(claim.beat(0).expect("answers"), terrane_remote::jobs::Beat::Withdrawn);
}

/// A worker that was asked to stop before it looks takes no job.
#[test]
fn a_worker_that_is_asked_to_stop_claims_nothing() {
    let fixture = Fixture::new();
    let lease = fixture.store.lease(1).expect("numbers");
    let request = terrane_compaction::JobRequest::of(&fixture.spec, &fixture.control()).expect("is sent");
    fixture.coordinator.offer(&request.encode(), lease, Duration::from_secs(10)).expect("offered");
    let worker = fixture.worker(fixture.bucket.clone(), "stopping");
    let stop = Stop::default();
    stop.ask();
    assert!(matches!(worker.step(&stop), Ok(Step::Idle)));
    assert_eq!(fixture.coordinator.table().list_open().expect("lists").len(), 1);
}

/// The payload of a job is damaged, or of a later version: the worker says so at once.
#[test]
fn a_worker_reports_a_job_that_it_cannot_read() {
    let fixture = Fixture::new();
    let lease = fixture.store.lease(1).expect("numbers");
    let payload = [&b"TRNJOBF1"[..], &(1_u64 << 20).to_le_bytes(), b"no request"].concat();
    fixture.coordinator.offer(&payload, lease, Duration::from_secs(10)).expect("offered");
    let worker = fixture.worker(fixture.bucket.clone(), "sound");
    let Ok(Step::Ended(line)) = worker.step(&Stop::default()) else { panic!("it takes the job") };
    assert!(matches!(&line.ended, Ended::Failed(why) if why.contains("job request")), "{line}");
    assert!(line.to_string().contains("cannot be done"), "{line}");
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let refused = |change: fn(&mut terrane_remote::jobs::BucketCompactorSettings), expected: &str| {
        let mut settings = terrane_remote::jobs::BucketCompactorSettings::default();
        change(&mut settings);
        let error = settings.check().expect_err(expected);
        assert!(error.kind() == Kind::Invalid && error.to_string().contains(expected), "{error}");
    };
    refused(|settings| settings.poll = Duration::ZERO, "poll_ms");
    refused(|settings| settings.claim = Duration::from_millis(100), "claim_ms");
    refused(|settings| settings.lost = Duration::from_millis(700), "lost_ms");
    refused(|settings| settings.lost = Duration::from_secs(4000), "lost_ms");
    refused(|settings| settings.attempts = 0, "attempts");
    refused(|settings| settings.job_bytes = 0, "job_bytes");
}

/// Its manifest refuses what it publishes; before that, no worker works for it.
#[test]
fn workers_do_nothing_for_a_writer_that_was_replaced() {
    let fixture = Fixture::new();
    let table = fixture.coordinator.table().clone();
    let next = table.coordinate(fixture::EPOCH + 1).expect("takes over");
    let fixture = fixture.with_worker();
    assert_eq!(fixture.run().1.elsewhere(), FELL_BACK, "no worker claims it");
    drop(next);
}

#[test]
fn a_writer_that_is_replaced_while_a_worker_runs_its_job_gets_no_report() {
    let fixture = Fixture::new();
    let table = fixture.coordinator.table().clone();
    let held = Mutex::new(None);
    fixture.clock.set(move |_| {
        let Some(claim) = claim(&table) else { return };
        let next = table.coordinate(fixture::EPOCH + 1).expect("takes over");
        assert!(!claim.finish(b"outcome").expect("reported"), "the writer does not wait for it");
        held.lock().get_or_insert(next);
    });
    let elsewhere = fixture.run().1.elsewhere();
    assert!(!elsewhere.is_done && elsewhere.fell_back, "{elsewhere:?}");
}
