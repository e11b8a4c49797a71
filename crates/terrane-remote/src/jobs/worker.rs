//! A worker: claims jobs, merges extents of the bucket into new objects of it, and reports.
//!
//! It needs the bucket and nothing else, and has no state: its output for a job counts when the writer of the
//! database publishes the report, and is garbage otherwise.
//!
//! 1. It lists the open attempts and claims the oldest one that it can do; it leaves those whose format or
//!    merge operator it does not know to workers of another version.
//! 2. It opens a store that reads the inputs, and writes under the leased numbers.
//! 3. The merge runs as it does in the database; a thread of its own gives the signs of life meanwhile. When
//!    the job was withdrawn, the writer was replaced, the signs of life do not get through or the worker is
//!    asked to stop, the merge is cancelled between two blocks.
//! 4. It reports the result with the objects that it uploaded, or gives the attempt back, also when the merge
//!    panics. After that it rests for a while: another worker may be better off.

mod beating;
mod presence;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::sync::Mutex;
use terrane_base::sync::atomic::{AtomicBool, Ordering};
use terrane_base::{Error, Kind, Result};
use terrane_compaction::{Compactor, JobControl, JobKind, JobRequest, LocalCompactor, Work, encode_report};
use terrane_storage::Store;

use super::{Claim, JobId, JobTable, OpenAttempt, outcome, payload};
use crate::bucket::Bucket;
use crate::store::{BucketStore, BucketStoreSettings};
use beating::Beating;
use presence::Present;

/// Longest sleep of a worker that waits for jobs between two looks whether it is asked to stop.
const NAP_MAX: Duration = Duration::from_millis(50);
/// How long a worker that gave an attempt back claims nothing.
const PAUSE: Duration = Duration::from_secs(5);
/// Attempts left to others that a worker remembers, so that it reads each job once.
const LEFT_MAX: usize = 1000;
/// How often a report of unknown outcome is tried again. A bucket tries for its own time, too.
const REPORTS: u32 = 5;

const _: () = assert!(!NAP_MAX.is_zero(), "a rest ends");

/// Asks workers to stop. Clones ask the same workers.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks: a running job is given back.
    pub fn ask(&self) {
        // Relaxed: nothing is handed over with it.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns true if it was asked.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// How a worker works.
#[derive(Clone, Debug)]
pub struct WorkerSettings {
    /// Its name, for messages: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Time between two looks for jobs while no job is open.
    pub poll: Duration,
    /// Sizes of objects and of the stage in memory. Nothing is probed.
    pub store: BucketStoreSettings,
}

/// The end of a job that a worker claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was done, and the report is there.
    Done,
    /// It was done, and the writer no longer waits for it: it has read the report already, or given the
    /// attempt up.
    TooLate,
    /// It was given up, because the writer does not wait for it any more.
    Withdrawn,
    /// It was given back, or nothing was reported, because of the worker; another attempt may succeed.
    GivenBack(String),
    /// It was done, and whether the report is there is not known: the writer finds it, or gives the attempt
    /// up.
    Unknown(String),
    /// It was reported that no worker can do it.
    Failed(String),
}

/// One job of a worker, for its log.
#[derive(Clone, Debug)]
pub struct JobLine {
    /// The job.
    pub id: JobId,
    /// Which attempt at it.
    pub attempt: u32,
    /// Its kind, if it was read.
    pub kind: Option<JobKind>,
    /// The work that was done.
    pub work: Work,
    /// How long it took.
    pub took: Duration,
    /// Its end.
    pub ended: Ended,
}

impl fmt::Display for JobLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JobLine { id, attempt, work, took, .. } = self;
        let kind = self.kind.map_or("unread", JobKind::as_str);
        write!(f, "job {} of epoch {}, attempt {attempt}, {kind}: ", id.number, id.epoch)?;
        match &self.ended {
            Ended::Done => f.write_str("done")?,
            Ended::TooLate => f.write_str("done, and not waited for any more")?,
            Ended::Withdrawn => f.write_str("withdrawn")?,
            Ended::Unknown(why) => write!(f, "done, and whether the report arrived is unknown, {why}")?,
            Ended::GivenBack(why) => write!(f, "given back, {why}")?,
            Ended::Failed(why) => write!(f, "cannot be done, {why}")?,
        }
        let (read, written) = (work.bytes_read, work.bytes_written);
        write!(f, "; {read} bytes read, {written} written, {} ms", took.as_millis())
    }
}

/// The result of [`Worker::step`].
#[derive(Debug)]
pub enum Step {
    /// There was nothing to do.
    Idle,
    /// A job came to an end.
    Ended(Box<JobLine>),
}

/// Runs jobs of one database. One thread uses it; several workers may be in one process.
#[derive(Debug)]
pub struct Worker {
    table: JobTable,
    bucket: Arc<dyn Bucket>,
    prefix: String,
    settings: WorkerSettings,
    env: Env,
    present: Arc<Present>,
    /// Attempts that this program cannot make, for others.
    left: Mutex<BTreeSet<OpenAttempt>>,
}

/// How the run of a job ended, before it was reported.
enum Run {
    /// With this outcome.
    Done(Vec<u8>),
    Ended(Ended),
}

impl Worker {
    /// A worker for the database below the folder `prefix` of a bucket that repeats its requests.
    ///
    /// # Errors
    /// `Invalid` if the prefix, the name or a setting is impossible.
    pub fn new(bucket: Arc<dyn Bucket>, prefix: &str, settings: WorkerSettings, env: Env) -> Result<Worker> {
        settings.store.check()?;
        if settings.poll.is_zero() {
            return Err(Error::invalid("poll: a worker that finds no job has to wait for a time"));
        }
        let table = JobTable::new(bucket.clone(), prefix, env.random.clone())?;
        let present = Arc::new(Present::new(table.presence(&settings.name)?, env.clock.clone()));
        let (prefix, left) = (prefix.to_owned(), Mutex::default());
        Ok(Worker { table, bucket, prefix, settings, env, present, left })
    }

    /// Claims the oldest open attempt, if there is one, and runs it.
    ///
    /// # Errors
    /// `Io`, `Busy` if the bucket does not answer: try again later. The line has what goes wrong with a job.
    pub fn step(&self, stop: &Stop) -> Result<Step> {
        for open in self.table.list_open()? {
            if stop.is_asked() {
                break;
            }
            if self.left.lock().contains(&open) {
                continue;
            }
            let mut can_do = |payload: &[u8]| self.can_do(open, payload);
            match self.table.claim_if(open, &self.settings.name, &mut can_do) {
                Ok(Some(claim)) => return Ok(Step::Ended(Box::new(self.run_claim(claim, stop)?))),
                // Another worker was faster, or the job is left to others.
                Ok(None) => {}
                // What cannot be read is left: its coordinator finds it unclaimed.
                Err(error) if matches!(error.kind(), Kind::Corrupt | Kind::Invalid) => {
                    tracing::warn!(target: "terrane::job", %error, "an offered job cannot be read");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Step::Idle)
    }

    /// Returns true if this program has all that the job needs. Also accepts damaged jobs, so that the
    /// coordinator gets the error.
    fn can_do(&self, open: OpenAttempt, payload: &[u8]) -> bool {
        let checked = payload::decode(payload).and_then(|(object_bytes, request)| {
            self.store_settings(object_bytes).check()?;
            JobRequest::decode(request)?.control(self.env.clock.clone()).map(drop)
        });
        let Err(error) = checked.as_ref() else { return true };
        if error.kind() != Kind::Invalid {
            return true;
        }
        tracing::info!(target: "terrane::job", job = open.id.number, %error, "other workers take the job");
        let mut left = self.left.lock();
        if left.len() == LEFT_MAX {
            left.pop_first();
        }
        left.insert(open);
        debug_assert!(left.len() <= LEFT_MAX, "memory is bounded");
        false
    }

    /// Those of the store of a job: objects are as large as those of its writer.
    fn store_settings(&self, object_bytes: u64) -> BucketStoreSettings {
        BucketStoreSettings { probe: false, object_bytes, ..self.settings.store }
    }

    /// Runs jobs until it is asked to stop, or none came for `idle_max`; `report` gets a line for each, and
    /// whatever keeps the worker from looking for jobs.
    ///
    /// # Errors
    /// Never of the bucket: `report` gets those, and the worker tries again.
    pub fn run(&self, stop: &Stop, idle_max: Option<Duration>, report: &mut dyn FnMut(&str)) -> Result<()> {
        let mut idle_since = self.env.clock.now();
        while !stop.is_asked() {
            self.present.renew();
            match self.step(stop) {
                Ok(Step::Ended(line)) => {
                    report(&line.to_string());
                    if matches!(line.ended, Ended::GivenBack(_) | Ended::Unknown(_)) {
                        self.rest(stop, PAUSE);
                    }
                    idle_since = self.env.clock.now();
                    continue;
                }
                Ok(Step::Idle) => {}
                Err(error) => report(&format!("looking for jobs again in a while: {error}")),
            }
            debug_assert!(idle_since <= self.env.clock.now(), "the clock does not go back");
            let idle = self.env.clock.now().saturating_sub(idle_since);
            if idle_max.is_some_and(|idle_max| idle >= idle_max) {
                break;
            }
            self.rest(stop, self.settings.poll);
        }
        self.present.end();
        Ok(())
    }

    fn rest(&self, stop: &Stop, time: Duration) {
        let mut left = time;
        while !left.is_zero() && !stop.is_asked() {
            let nap = left.min(NAP_MAX);
            self.env.clock.sleep(nap);
            left -= nap;
        }
        debug_assert!(left.is_zero() || stop.is_asked(), "it rests until one of both");
    }

    /// Runs a job that was claimed, and reports.
    fn run_claim(&self, claim: Claim, stop: &Stop) -> Result<JobLine> {
        let began = self.env.clock.now();
        let (id, attempt) = (claim.id, claim.attempt);
        debug_assert!(attempt > 0 && !claim.lease.is_empty(), "a claim is of an attempt with a lease");
        let (mut kind, mut work) = (None, Work::default());
        let payload = claim.payload.clone();
        let read =
            payload::decode(&payload).and_then(|(bytes, request)| Ok((bytes, JobRequest::decode(request)?)));
        let ended = match read {
            Err(error) => self.report(&claim, Run::Ended(Ended::Failed(error.to_string()))),
            Ok((object_bytes, request)) => {
                kind = Some(request.spec.kind);
                self.run_request(claim, (&request, object_bytes), stop, &mut work)?
            }
        };
        let took = self.env.clock.now().saturating_sub(began);
        Ok(JobLine { id, attempt, kind, work, took, ended })
    }

    fn run_request(
        &self,
        claim: Claim,
        (request, object_bytes): (&JobRequest, u64),
        stop: &Stop,
        work: &mut Work,
    ) -> Result<Ended> {
        let control = match request.control(self.env.clock.clone()) {
            Ok(control) => Arc::new(control),
            Err(error) => return Ok(self.report(&claim, Run::Ended(Ended::Failed(error.to_string())))),
        };
        let place = (claim.id.epoch, claim.lease.clone(), object_bytes);
        let epoch = claim.id.epoch;
        let beating =
            Beating::begin(claim, control.clone(), stop.clone(), (&self.env, self.present.clone()))?;
        // A merge that panics has broken nothing that is used again: its store goes with it.
        let merge = AssertUnwindSafe(|| self.merge(request, &control, place));
        let run = catch_unwind(merge).unwrap_or_else(|panic| Err(panicked(&*panic)));
        *work = control.work();
        let (claim, stopped) = beating.end();
        debug_assert_eq!(claim.id.epoch, epoch, "the claim comes back");
        let run = match (run, stopped) {
            (Ok(outcome), _) => Run::Done(outcome),
            (Err(_), Some(ended)) => Run::Ended(ended),
            (Err(error), None) if error.kind() == Kind::Corrupt => {
                Run::Ended(Ended::Failed(error.to_string()))
            }
            (Err(error), None) => Run::Ended(Ended::GivenBack(error.to_string())),
        };
        Ok(self.report(&claim, run))
    }

    /// Merges the inputs of a job into objects of the leased numbers.
    fn merge(
        &self,
        request: &JobRequest,
        control: &JobControl,
        (epoch, lease, object_bytes): (u64, Range<u32>, u64),
    ) -> Result<Vec<u8>> {
        let settings = self.store_settings(object_bytes);
        let (bucket, env) = (self.bucket.clone(), self.env.clone());
        let store = Arc::new(BucketStore::open_leased(bucket, &self.prefix, (epoch, lease), settings, env)?);
        let metas = request.spec.inputs.iter().flat_map(|input| &input.extents);
        store.restore(&mut metas.map(|meta| (meta.id, meta.slots)))?;
        let result = LocalCompactor::new(store.clone()).run(&request.spec, control)?;
        let written = store.written()?;
        debug_assert!(result.check(), "a merge leaves a sound result");
        debug_assert!(
            result.written().all(|meta| written.objects.iter().any(|object| object.number == meta.id.file)),
            "reported objects were uploaded"
        );
        outcome::encode(&written, &encode_report(&request.spec, &result))
    }

    /// Reports to the coordinator how the run ended, if it waits for that. Where the answer is lost it
    /// reports again: the table takes a report once.
    fn report(&self, claim: &Claim, run: Run) -> Ended {
        let send = || match &run {
            Run::Done(outcome) => claim.finish(outcome),
            Run::Ended(Ended::Failed(why)) => claim.fail(why),
            Run::Ended(Ended::GivenBack(why)) => claim.give_back(why),
            Run::Ended(_) => Ok(false),
        };
        let is_unknown = |sent: &Result<bool>| {
            sent.as_ref().is_err_and(|error| matches!(error.kind(), Kind::Io | Kind::Busy))
        };
        let mut sent = send();
        for _ in 1..REPORTS {
            if !is_unknown(&sent) {
                break;
            }
            self.env.clock.sleep(claim.lost / (2 * REPORTS));
            sent = send();
        }
        match (sent, run) {
            (Err(error), Run::Done(_)) => Ended::Unknown(error.to_string()),
            (Ok(true), Run::Done(_)) => Ended::Done,
            (Ok(false), Run::Done(_)) => Ended::TooLate,
            (_, Run::Ended(ended)) => ended,
        }
    }
}

/// The error of a merge that panicked.
#[cold]
fn panicked(panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Error::invalid(format!("the merge panicked: {}", text.unwrap_or("it does not say why")))
}
