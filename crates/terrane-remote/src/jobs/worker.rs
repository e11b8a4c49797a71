//! A worker: claims jobs, merges extents of the bucket into new objects of it, and reports.
//!
//! It needs the bucket and nothing else, and has no state: what it wrote for a job counts when the writer of
//! the database publishes the report, and is garbage otherwise.
//!
//! 1. It lists what is open and claims the oldest attempt.
//! 2. It opens a store that reads the inputs, and writes under the leased numbers.
//! 3. The merge runs as it does in the database; a thread of its own gives the signs of life meanwhile. When
//!    the job was withdrawn, the writer was replaced, the signs of life do not get through or the worker is
//!    asked to stop, the merge is cancelled between two blocks.
//! 4. It reports the result with the objects that it uploaded, or gives the attempt back.

mod beating;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::sync::atomic::{AtomicBool, Ordering};
use terrane_base::{Error, Kind, Result};
use terrane_compaction::{Compactor, JobControl, JobKind, JobRequest, LocalCompactor, Work, encode_report};
use terrane_storage::Store;

use super::{Claim, JobId, JobTable, outcome};
use crate::bucket::Bucket;
use crate::store::{BucketStore, BucketStoreSettings};
use beating::Beating;

/// Longest sleep of a worker that waits for jobs between two looks whether it is asked to stop.
const NAP_MAX: Duration = Duration::from_millis(50);
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
    /// Between two looks for jobs while there is none.
    pub poll: Duration,
    /// Sizes of objects and of the stage in memory. Nothing is probed.
    pub store: BucketStoreSettings,
}

/// What became of a job that a worker claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was done, and the report is there.
    Done,
    /// It was done, and the writer does not wait for the report any more.
    TooLate,
    /// It was given up, because the writer does not wait for it any more.
    Withdrawn,
    /// It was given back, or nothing was reported, because of the worker; another attempt may succeed.
    GivenBack(String),
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
    /// What was done.
    pub work: Work,
    /// How long it took.
    pub took: Duration,
    /// What became of it.
    pub ended: Ended,
}

impl fmt::Display for JobLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JobLine { id, attempt, work, took, .. } = self;
        let kind = self.kind.map_or("unread", JobKind::as_str);
        write!(f, "job {} of epoch {}, attempt {attempt}, {kind}: ", id.number, id.epoch)?;
        match &self.ended {
            Ended::Done => f.write_str("done")?,
            Ended::TooLate => f.write_str("done too late")?,
            Ended::Withdrawn => f.write_str("withdrawn")?,
            Ended::GivenBack(why) => write!(f, "given back, {why}")?,
            Ended::Failed(why) => write!(f, "cannot be done, {why}")?,
        }
        let (read, written) = (work.bytes_read, work.bytes_written);
        write!(f, "; {read} bytes read, {written} written, {} ms", took.as_millis())
    }
}

/// What [`Worker::step`] did.
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
        // The name is checked here, not at the first job.
        drop(table.presence(&settings.name)?);
        Ok(Worker { table, bucket, prefix: prefix.to_owned(), settings, env })
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
            match self.table.claim(open, &self.settings.name) {
                Ok(Some(claim)) => return Ok(Step::Ended(Box::new(self.run_claim(claim, stop)?))),
                // Another worker was faster.
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

    /// Runs jobs until it is asked to stop, or none came for `idle_max`; `tell` gets a line for each, and
    /// whatever keeps the worker from looking for jobs.
    ///
    /// # Errors
    /// Never of the bucket: `tell` gets those, and the worker tries again.
    pub fn run(&self, stop: &Stop, idle_max: Option<Duration>, tell: &mut dyn FnMut(&str)) -> Result<()> {
        let mut presence = self.table.presence(&self.settings.name)?;
        let (mut idle_since, mut next_beat) = (self.env.clock.now(), Duration::ZERO);
        while !stop.is_asked() {
            if self.env.clock.now() >= next_beat {
                // Only a line of `terrane doctor` is at stake.
                let _ = presence.beat();
                next_beat = self.env.clock.now() + Duration::from_secs(30);
            }
            match self.step(stop) {
                Ok(Step::Ended(line)) => {
                    tell(&line.to_string());
                    idle_since = self.env.clock.now();
                    continue;
                }
                Ok(Step::Idle) => {}
                Err(error) => tell(&format!("looking for jobs again in a while: {error}")),
            }
            debug_assert!(idle_since <= self.env.clock.now(), "the clock does not go back");
            let idle = self.env.clock.now().saturating_sub(idle_since);
            if idle_max.is_some_and(|idle_max| idle >= idle_max) {
                break;
            }
            self.rest(stop);
        }
        let _ = presence.end();
        Ok(())
    }

    fn rest(&self, stop: &Stop) {
        let mut left = self.settings.poll;
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
        let ended = match JobRequest::decode(&claim.payload) {
            Err(error) => report(&claim, Run::Ended(Ended::Failed(error.to_string()))),
            Ok(request) => {
                kind = Some(request.spec.kind);
                self.run_request(claim, &request, stop, &mut work)?
            }
        };
        let took = self.env.clock.now().saturating_sub(began);
        Ok(JobLine { id, attempt, kind, work, took, ended })
    }

    fn run_request(&self, claim: Claim, request: &JobRequest, stop: &Stop, work: &mut Work) -> Result<Ended> {
        let control = match request.control(self.env.clock.clone()) {
            Ok(control) => Arc::new(control),
            Err(error) => return Ok(report(&claim, Run::Ended(Ended::Failed(error.to_string())))),
        };
        let (epoch, lease) = (claim.id.epoch, claim.lease.clone());
        let beating = Beating::begin(claim, control.clone(), stop.clone(), &self.env)?;
        let run = self.merge(request, &control, epoch, lease);
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
        Ok(report(&claim, run))
    }

    /// Merges the inputs of a job into objects of the leased numbers.
    fn merge(
        &self,
        request: &JobRequest,
        control: &JobControl,
        epoch: u64,
        lease: Range<u32>,
    ) -> Result<Vec<u8>> {
        let settings = BucketStoreSettings { probe: false, ..self.settings.store };
        let (bucket, env) = (self.bucket.clone(), self.env.clone());
        let store = Arc::new(BucketStore::open_leased(bucket, &self.prefix, (epoch, lease), settings, env)?);
        let metas = request.spec.inputs.iter().flat_map(|input| &input.extents);
        store.restore(&mut metas.map(|meta| (meta.id, meta.slots)))?;
        let result = LocalCompactor::new(store.clone()).run(&request.spec, control)?;
        let written = store.written()?;
        debug_assert!(result.check(), "a merge leaves a sound result");
        debug_assert!(
            result.written().all(|meta| written.objects.iter().any(|object| object.number == meta.id.file)),
            "what is reported was uploaded"
        );
        Ok(outcome::encode(&written, &encode_report(&request.spec, &result)))
    }
}

/// Tells the coordinator how the run ended, if it waits for that.
fn report(claim: &Claim, run: Run) -> Ended {
    let told = match &run {
        Run::Done(outcome) => claim.finish(outcome),
        Run::Ended(Ended::Failed(why)) => claim.fail(why),
        Run::Ended(Ended::GivenBack(why)) => claim.give_back(why),
        Run::Ended(_) => Ok(false),
    };
    let lost = |error: Error| Ended::GivenBack(format!("whether the report arrived is unknown: {error}"));
    match (told, run) {
        (Err(error), Run::Done(_)) => lost(error),
        (Ok(true), Run::Done(_)) => Ended::Done,
        (Ok(false), Run::Done(_)) => Ended::TooLate,
        (_, Run::Ended(ended)) => ended,
    }
}
