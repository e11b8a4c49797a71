//! The jobs that a worker takes, attempts that stop or panic, and reports that lie.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::{Clock, Env, Random, SleepClock};
use terrane_base::sync::Mutex;
use terrane_compaction::{
    Compactor, Elsewhere, JobRequest, JobResult, JobSpec, LocalCompactor, encode_report,
};
use terrane_format::checksum::crc32c;
use terrane_format::extent::ExtentMeta;
use terrane_remote::bucket::faulty::{Fault, FaultyBucket};
use terrane_remote::jobs::{
    BucketCompactor, BucketCompactorSettings, Claim, Ended, JobTable, Step, Stop, Worker, WorkerSettings,
};
use terrane_remote::{Bucket, BucketStore};
use terrane_storage::Store;

use super::fixture::{EPOCH, Fixture, claim};
use super::{DONE, FELL_BACK, calls_of_worker};
use crate::support::small;

/// A request as a writer offers it.
fn offered(object_bytes: u64, request: &[u8]) -> Vec<u8> {
    [&b"TRNJOBF1"[..], &object_bytes.to_le_bytes(), request].concat()
}

/// The outcome of a claimed job, with a result that a lying worker has changed.
fn outcome(
    bucket: Arc<dyn Bucket>,
    (claim, spec): (&Claim, &JobSpec),
    lie: &dyn Fn(&mut JobResult, &BucketStore),
) -> Vec<u8> {
    let env = Env::real();
    let place = (EPOCH, claim.lease.clone());
    let store = Arc::new(BucketStore::open_leased(bucket, "db", place, small(), env.clone()).expect("opens"));
    let metas = spec.inputs.iter().flat_map(|input| &input.extents);
    store.restore(&mut metas.map(|meta| (meta.id, meta.slots))).expect("restores");
    let control = terrane_compaction::JobControl::new(env.clock, None);
    let mut result = LocalCompactor::new(store.clone()).run(spec, &control).expect("merges");
    lie(&mut result, &store);
    let written = store.written().expect("synced");
    let mut out = b"TRNJOBO1".to_vec();
    out.extend_from_slice(&written.nonce.to_le_bytes());
    out.extend_from_slice(&(written.objects.len() as u32).to_le_bytes());
    for object in &written.objects {
        out.extend_from_slice(&object.number.to_le_bytes());
        out.extend_from_slice(&object.part.to_le_bytes());
        out.extend_from_slice(&object.bytes.to_le_bytes());
    }
    let checksum = crc32c(u32::from_le_bytes(*b"JOBO"), &out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out.extend_from_slice(&encode_report(spec, &result));
    out
}

/// The first extent that was written, changed.
fn first(change: fn(&mut ExtentMeta)) -> impl Fn(&mut JobResult, &BucketStore) {
    move |result, _| {
        let written = result.added.iter_mut().find(|meta| result.relinked.binary_search(&meta.id).is_err());
        change(Arc::make_mut(written.expect("it writes some")));
    }
}

fn reported(lie: impl Fn(&mut JobResult, &BucketStore) + Send + 'static) -> Elsewhere {
    let fixture = Fixture::new();
    let (table, bucket, spec) =
        (fixture.coordinator.table().clone(), fixture.bucket.clone(), fixture.spec.clone());
    fixture.clock.set(move |_| {
        if let Some(claim) = claim(&table) {
            let outcome = outcome(bucket.clone(), (&claim, &spec), &lie);
            assert!(claim.finish(&outcome).expect("reported"));
        }
    });
    fixture.run().1.elsewhere()
}

/// Its checksums are right and its objects are there: only the extents themselves tell.
#[test]
fn a_report_that_lies_about_an_extent_is_refused() {
    assert_eq!(reported(|_, _| ()), DONE, "the true one is taken");
    let lies: [fn(&mut ExtentMeta); 5] = [
        |meta| meta.entries -= 1,
        |meta| meta.bytes -= 4096,
        |meta| meta.index.checksum ^= 1,
        |meta| meta.filter = Default::default(),
        |meta| meta.deletes += 1,
    ];
    for (at, lie) in lies.into_iter().enumerate() {
        assert_eq!(reported(first(lie)), Elsewhere { attempts_lost: 1, ..FELL_BACK }, "lie {at}");
    }
}

/// An object under the lease that no report names becomes part of no file of the database.
#[test]
fn an_object_that_a_report_leaves_out_is_refused() {
    let fixture = Fixture::new();
    let (table, bucket, spec) =
        (fixture.coordinator.table().clone(), fixture.bucket.clone(), fixture.spec.clone());
    fixture.clock.set(move |_| {
        if let Some(claim) = claim(&table) {
            let outcome = outcome(bucket.clone(), (&claim, &spec), &|_, _| ());
            let name = format!("db/data/{EPOCH:020}-{:010}-00001", claim.lease.start);
            bucket.create(&name, b"shadow").expect("creates");
            assert!(claim.finish(&outcome).expect("reported"));
        }
    });
    assert_eq!(fixture.run().1.elsewhere(), Elsewhere { attempts_lost: 1, ..FELL_BACK });
}

/// Plays a worker that gives signs of life for ever, with this progress at each time.
fn beating(done: fn(Duration) -> u64) -> (Elsewhere, Duration) {
    let fixture = Fixture::new();
    let table = fixture.coordinator.table().clone();
    let sound = fixture.worker(fixture.bucket.clone(), "sound");
    let held: Mutex<Option<Claim>> = Mutex::default();
    fixture.clock.set(move |now| {
        let mut held = held.lock();
        match &mut *held {
            None => *held = claim(&table),
            Some(claim) if claim.attempt == 1 && now < Duration::from_secs(600) => {
                drop(claim.beat(done(now)));
                let _ = sound.step(&Stop::default());
            }
            Some(claim) => drop(claim.give_back("tired")),
        }
    });
    (fixture.run().1.elsewhere(), fixture.clock.now())
}

#[test]
fn an_attempt_with_signs_of_life_and_without_progress_is_lost() {
    let (elsewhere, took) = beating(|_| 42);
    assert_eq!(elsewhere, Elsewhere { attempts_lost: 1, ..DONE }, "the next one was done");
    assert!((120..130).contains(&took.as_secs()), "twelve times lost: {took:?}");
}

#[test]
fn a_slow_attempt_that_goes_on_is_not_lost() {
    let (_, took) = beating(|now| now.as_secs() / 100);
    assert!(took >= Duration::from_secs(600), "it was waited for: {took:?}");
}

/// Wherever a merge panics, the attempt is given back at once, and no thread of it stays.
#[test]
fn a_merge_that_panics_gives_its_claim_back() {
    let (calls, mut given_back) = (calls_of_worker(), 0);
    for at in 0..calls {
        let fixture = Fixture::new();
        let bucket = FaultyBucket::new(fixture.bucket.clone());
        bucket.fail(at, Fault::Panics);
        let worker = fixture.worker(Arc::new(bucket), "panicking");
        let sound = fixture.worker(fixture.bucket.clone(), "sound");
        let first: Arc<Mutex<Option<Ended>>> = Arc::default();
        let seen = first.clone();
        fixture.clock.set(move |_| {
            // A panic outside of the merge is a bug of the table, and ends the process.
            let step = catch_unwind(AssertUnwindSafe(|| worker.step(&Stop::default())));
            if let Ok(Ok(Step::Ended(line))) = step {
                seen.lock().get_or_insert(line.ended);
            }
            let _ = sound.step(&Stop::default());
        });
        let elsewhere = fixture.run().1.elsewhere();
        let ended = first.lock().take();
        if let Some(Ended::GivenBack(why)) = ended {
            assert!(why.contains("panicked: an injected panic"), "{why}");
            assert_eq!(elsewhere, Elsewhere { attempts_lost: 1, ..DONE });
            assert!(fixture.clock.now() < Duration::from_secs(5), "nothing was waited for");
            given_back += 1;
        }
    }
    assert!(given_back >= 3, "opening, reading and uploading: {given_back} of {calls} calls");
}

#[test]
fn a_worker_leaves_what_it_does_not_know_to_others() {
    let fixture = Fixture::new();
    let request = JobRequest::of(&fixture.spec, &fixture.control()).expect("is sent");
    let unknown = |what: fn(&mut JobRequest)| {
        let mut request = request.clone();
        what(&mut request);
        offered(1 << 20, &request.encode())
    };
    let later = [&b"TRNJOBF2"[..], &unknown(|_| ())[8..]].concat();
    let payloads = [
        unknown(|request| request.operator = Some("of_a_later_version".to_owned())),
        unknown(|request| request.extractor = Some("of_a_later_version".to_owned())),
        offered(1 << 40, &request.encode()),
        later,
    ];
    let offer = |payload: &[u8]| {
        let lease = fixture.store.lease(64).expect("numbers");
        fixture.coordinator.offer(payload, lease, Duration::from_secs(10)).expect("offered")
    };
    let ids: Vec<_> = payloads.iter().map(|payload| offer(payload)).collect();
    let bucket = FaultyBucket::new(fixture.bucket.clone());
    let worker = fixture.worker(Arc::new(bucket.clone()), "older");
    assert!(matches!(worker.step(&Stop::default()), Ok(Step::Idle)), "it fails none of them");
    let before = bucket.calls();
    assert!(matches!(worker.step(&Stop::default()), Ok(Step::Idle)));
    assert_eq!(bucket.calls(), before + 1, "each was read once");
    let open = fixture.coordinator.table().list_open().expect("lists");
    assert_eq!(open.iter().map(|open| open.id).collect::<Vec<_>>(), ids, "all are open");
    // One that it knows, behind those.
    let known = offer(&unknown(|_| ()));
    let Ok(Step::Ended(line)) = worker.step(&Stop::default()) else { panic!("it takes the job") };
    assert_eq!((line.id, &line.ended), (known, &Ended::Done), "{line}");
}

/// A worker that runs until it has made so many looks, on a clock that moves by its rests only.
fn looks_in(bucket: &FaultyBucket, looks: u64) -> Duration {
    let clock = Arc::new(SleepClock::default());
    let env = Env { clock: clock.clone(), ..Env::real() };
    let poll = Duration::from_millis(10);
    let settings = WorkerSettings { name: "resting".to_owned(), poll, store: small() };
    let worker = Worker::new(Arc::new(bucket.clone()), "db", settings, env).expect("possible settings");
    let (stop, mut reports) = (Stop::default(), 0);
    let asked = stop.clone();
    worker
        .run(&stop, None, &mut |_| {
            reports += 1;
            if reports == looks {
                asked.ask();
            }
        })
        .expect("runs");
    clock.now()
}

#[test]
fn a_worker_rests_after_an_attempt_that_it_gave_back() {
    let fixture = Fixture::new();
    let request = JobRequest::of(&fixture.spec, &fixture.control()).expect("is sent").encode();
    for _ in 0..3 {
        // A lease of one number is too short for the job.
        let lease = fixture.store.lease(1).expect("numbers");
        let payload = offered(1 << 20, &request);
        fixture.coordinator.offer(&payload, lease, Duration::from_secs(10)).expect("offered");
    }
    let took = looks_in(&FaultyBucket::new(fixture.bucket.clone()), 3);
    assert!((10..12).contains(&took.as_secs()), "two rests between three jobs: {took:?}");
}

/// The list behind the report fails: the report is there, and the worker finds that out.
#[test]
fn a_report_of_unknown_outcome_is_asked_for_again() {
    let last = calls_of_worker() - 1;
    for fault in [Fault::Before, Fault::After] {
        let fixture = Fixture::new();
        let bucket = FaultyBucket::new(fixture.bucket.clone());
        bucket.fail(last, fault);
        let worker = fixture.worker(Arc::new(bucket), "faulty");
        let line: Arc<Mutex<Option<Ended>>> = Arc::default();
        let seen = line.clone();
        fixture.clock.set(move |_| {
            if let Ok(Step::Ended(line)) = worker.step(&Stop::default()) {
                seen.lock().get_or_insert(line.ended);
            }
        });
        assert_eq!(fixture.run().1.elsewhere(), DONE);
        assert_eq!(line.lock().take(), Some(Ended::Done), "{fault:?}");
    }
    // A bucket that stays down: the line does not say that the job was given back.
    let fixture = Fixture::new();
    let bucket = FaultyBucket::new(fixture.bucket.clone());
    bucket.fail_from(last);
    let worker = fixture.worker(Arc::new(bucket), "cut-off");
    let line: Arc<Mutex<Option<Ended>>> = Arc::default();
    let seen = line.clone();
    fixture.clock.set(move |_| {
        if let Ok(Step::Ended(line)) = worker.step(&Stop::default()) {
            seen.lock().get_or_insert(line.ended);
        }
    });
    assert_eq!(fixture.run().1.elsewhere(), DONE, "the report was there");
    let ended = line.lock().take();
    assert!(matches!(ended, Some(Ended::Unknown(_))), "{ended:?}");
}

#[test]
fn a_job_that_is_too_large_is_not_offered() {
    let mut fixture = Fixture::new();
    let make = |fixture: &Fixture, job_bytes| {
        let settings = BucketCompactorSettings { job_bytes, ..BucketCompactorSettings::default() };
        let local = LocalCompactor::new(fixture.store.clone());
        let env = Env { clock: fixture.clock.clone(), ..Env::real() };
        let (coordinator, store) = (fixture.coordinator.clone(), fixture.store.clone());
        BucketCompactor::new(coordinator, store, local, settings, env).expect("possible settings")
    };
    let metas = fixture.spec.inputs.iter().flat_map(|input| &input.extents);
    let bytes: u64 = metas.map(|meta| meta.raw_bytes.max(meta.bytes.into())).sum();
    fixture.compactor = make(&fixture, bytes - 1);
    assert_eq!(fixture.run().1.elsewhere(), Elsewhere::default(), "for a worker");
    fixture.compactor = make(&fixture, bytes);
    assert_eq!(fixture.run().1.elsewhere(), FELL_BACK, "it was offered");
    // For a lease: its files are counted from the bytes before compression.
    fixture.compactor = make(&fixture, u64::MAX);
    let spec = fixture.spec.clone();
    fixture.spec.inputs[0].extents[0].raw_bytes = 1 << 40;
    let control = fixture.control();
    fixture.compactor.run(&fixture.spec, &control).expect("runs here");
    assert_eq!(control.elsewhere(), Elsewhere::default());
    fixture.spec = spec;
}

/// A writer without workers opens: what the one before offered is ended, so that no worker goes on with it.
#[test]
fn a_writer_without_workers_ends_the_jobs_of_the_one_before() {
    let fixture = Fixture::new();
    let table = fixture.coordinator.table();
    let lease = fixture.store.lease(1).expect("numbers");
    fixture.coordinator.offer(b"a job", lease, Duration::from_secs(10)).expect("offered");
    let mut running = claim(table).expect("open");
    let lease = fixture.store.lease(1).expect("numbers");
    fixture.coordinator.offer(b"another", lease, Duration::from_secs(10)).expect("offered");
    let random: Arc<dyn Random> = Env::real().random;
    let next = JobTable::new(fixture.bucket.clone(), "db", random).expect("a table");
    assert_eq!(next.end_older(EPOCH).expect("lists"), 0, "they are not older");
    assert_eq!(next.list_open().expect("lists").len(), 1);
    assert_eq!(next.end_older(EPOCH + 1).expect("ends"), 6);
    assert_eq!(next.list_open().expect("lists"), []);
    assert_eq!(running.beat(1).expect("answers"), terrane_remote::jobs::Beat::Withdrawn);
}
