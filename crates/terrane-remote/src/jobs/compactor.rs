//! Runs the compaction jobs of a writer on workers: offers each in the bucket and waits for its report.
//!
//! 1. A job that needs something that only this process has ([`Stays`]) runs here.
//! 2. The job is offered, with numbers of files under which its worker writes.
//! 3. The table is looked at now and then. An attempt without a sign of life is given up and the next one is
//!    opened, with other numbers. A report counts only if its attempt is the current one.
//! 4. The report is checked against the job, its objects against the numbers that were leased; then the store
//!    takes the objects over, and the caller publishes the result as if it had been made here.
//!
//! Whatever goes wrong, the job is withdrawn and runs here: no worker, no bucket and no report can stop a
//! compaction. Where no worker claims a job, the next ones run here at once for a while.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use terrane_base::env::Env;
use terrane_base::sync::Mutex;
use terrane_base::{Error, Kind, Result};
use terrane_compaction::{
    Compactor, Elsewhere, JobControl, JobRequest, JobResult, JobSpec, LocalCompactor, Stays, decode_report,
};
use terrane_engine::MakeCompactor;

use super::ends::Ends;
use super::{BucketCompactorSettings, Coordinator, JobId, JobState, JobTable, outcome, payload};
use crate::store::LEASE_RESERVE;
use crate::{Bucket, BucketStore};

/// Longest sleep between two looks whether the job was cancelled.
const NAP_MAX: Duration = Duration::from_millis(20);
/// File numbers of an attempt beyond those that its output takes if it is as long as its input.
const FILES_SPARE: u64 = 16;
/// Most file numbers of an attempt; a job that may need more is not offered.
const FILES_MAX: u64 = 1 << 16;
/// An attempt that gives signs of life is lost if it has stood still for so many times as long as one without
/// signs of life may live: a worker may wait for the bucket for a minute.
const STANDS_FACTOR: u32 = 12;

const _: () = assert!(!NAP_MAX.is_zero(), "a wait ends");
const _: () = assert!(FILES_MAX < LEASE_RESERVE as u64, "a lease is small");
const _: () = assert!(FILES_SPARE > 0, "a lease is not empty");

/// Runs jobs on workers, or with the compactor of this process.
pub struct BucketCompactor {
    coordinator: Arc<Coordinator>,
    store: Arc<BucketStore>,
    local: LocalCompactor,
    settings: BucketCompactorSettings,
    env: Env,
    /// Why jobs stayed: the log gets each reason once.
    logged: Mutex<BTreeSet<Stays>>,
    /// Until when jobs are not offered, because no worker claimed one.
    alone_until: Mutex<Duration>,
}

impl fmt::Debug for BucketCompactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketCompactor").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Why a job runs here after it was offered.
enum End {
    /// It was cancelled: it does not run at all.
    Cancelled(Error),
    /// No worker has done it.
    Here(String),
}

/// A job that is offered.
struct Offered<'c> {
    id: JobId,
    attempt: u32,
    lease: Range<u32>,
    /// Since when the bucket has refused to answer, by the own clock.
    silent_since: Option<Duration>,
    /// How far the attempt was, and when that changed last, by the own clock.
    done: (u64, Duration),
    lost: &'c mut u64,
}

impl BucketCompactor {
    /// Makes the compactor of a writer that offers its jobs to workers, and their coordinator, which is to
    /// sweep at intervals. The table of jobs may be damaged, or hold foreign objects, and the bucket may not
    /// answer: then the log says so, `None` comes back, and the jobs run in this process. A database needs no
    /// worker, so no state of the table keeps it from opening.
    #[must_use]
    pub fn begin(
        (bucket, prefix): (Arc<dyn Bucket>, &str),
        epoch: u64,
        store: &Arc<BucketStore>,
        settings: BucketCompactorSettings,
        env: &Env,
    ) -> Option<(Arc<Coordinator>, MakeCompactor)> {
        let table = settings.check().and_then(|()| JobTable::new(bucket, prefix, env.random.clone()));
        match table.and_then(|table| table.coordinate(epoch)) {
            Ok(coordinator) => {
                let coordinator = Arc::new(coordinator);
                let (own, store, env) = (coordinator.clone(), store.clone(), env.clone());
                let make = move |local| -> Arc<dyn Compactor> {
                    Arc::new(Self::of_checked(own, store, local, settings, env))
                };
                Some((coordinator, Box::new(make)))
            }
            Err(error) => {
                tracing::warn!(target: "terrane::job", %error, "no compaction goes to workers");
                None
            }
        }
    }

    /// A compactor that offers jobs by `coordinator`, takes outputs over into `store`, and runs the jobs that
    /// no worker does with `local`.
    ///
    /// # Errors
    /// `Invalid` if a setting is impossible.
    pub fn new(
        coordinator: Arc<Coordinator>,
        store: Arc<BucketStore>,
        local: LocalCompactor,
        settings: BucketCompactorSettings,
        env: Env,
    ) -> Result<Self> {
        settings.check()?;
        Ok(Self::of_checked(coordinator, store, local, settings, env))
    }

    /// As [`BucketCompactor::new`]. Requires: the settings are possible.
    fn of_checked(
        coordinator: Arc<Coordinator>,
        store: Arc<BucketStore>,
        local: LocalCompactor,
        settings: BucketCompactorSettings,
        env: Env,
    ) -> Self {
        debug_assert!(settings.check().is_ok(), "the settings were checked");
        let (logged, alone_until) = (Mutex::default(), Mutex::new(Duration::ZERO));
        BucketCompactor { coordinator, store, local, settings, env, logged, alone_until }
    }

    /// Returns true if the job is not offered because no worker claimed the one before.
    fn is_alone(&self) -> bool {
        self.env.clock.now() < *self.alone_until.lock()
    }

    fn log_once(&self, stays: Stays) {
        let text = stays.to_string();
        let sort = match stays {
            // Nothing is missing.
            Stays::Moves => return,
            Stays::Long(_) => Stays::Long(0),
            other => other,
        };
        if self.logged.lock().insert(sort) {
            tracing::info!(target: "terrane::job", reason = text, "compactions of this sort stay in this process");
        }
    }

    /// Has a worker do the job.
    fn run_elsewhere(
        &self,
        request: &JobRequest,
        control: &JobControl,
        lost: &mut u64,
    ) -> std::result::Result<JobResult, End> {
        let here = |error: Error| End::Here(error.to_string());
        let lease = self.store.lease(self.files(&request.spec)).map_err(here)?;
        let payload = payload::encode(self.store.object_bytes(), &request.encode());
        let offered = self.coordinator.offer(&payload, lease.clone(), self.settings.lost);
        let id = offered.map_err(|error| {
            self.store.end_lease(&lease);
            here(error)
        })?;
        let done = (0, self.env.clock.now());
        let mut offered = Offered { id, attempt: 1, lease, silent_since: None, done, lost };
        let result = self.wait_for(&mut offered, &request.spec, control);
        debug_assert!(*offered.lost <= u64::from(self.settings.attempts), "an attempt is lost once");
        // What stays in the bucket is deleted by the coordinator's next sweep.
        let _ = self.coordinator.withdraw(id);
        self.store.end_lease(&offered.lease);
        result
    }

    /// File numbers for an attempt: enough for all entries of the inputs, uncompressed. Two files that follow
    /// each other have more bytes than one object.
    fn files(&self, spec: &JobSpec) -> u32 {
        let files =
            (bytes_of(spec) / self.store.object_bytes()).saturating_mul(2).saturating_add(FILES_SPARE);
        debug_assert!(files >= FILES_SPARE, "a file for each table that is begun");
        u32::try_from(files).unwrap_or(u32::MAX)
    }

    /// Returns true if the job is more than is given to one worker.
    fn is_too_large(&self, spec: &JobSpec) -> bool {
        bytes_of(spec) > self.settings.job_bytes || u64::from(self.files(spec)) > FILES_MAX
    }

    fn wait_for(
        &self,
        offered: &mut Offered<'_>,
        spec: &JobSpec,
        control: &JobControl,
    ) -> std::result::Result<JobResult, End> {
        loop {
            self.pass(control).map_err(End::Cancelled)?;
            let look = (self.env.clock.now(), self.settings.poll);
            let state = match self.coordinator.state_within(offered.id, look) {
                Err(error) if matches!(error.kind(), Kind::Io | Kind::Busy) => {
                    self.bear(offered, error)?;
                    continue;
                }
                Err(error) => {
                    *offered.lost += 1;
                    return Err(End::Here(error.to_string()));
                }
                Ok(state) => state,
            };
            offered.silent_since = None;
            debug_assert!((1..=self.settings.attempts).contains(&offered.attempt), "attempts are bounded");
            match state {
                JobState::Done { worker, outcome } => {
                    return self.take(offered, spec, &outcome).map_err(|error| {
                        *offered.lost += 1;
                        End::Here(format!("what worker {worker} reports is refused: {error}"))
                    });
                }
                JobState::Waiting { age } if age >= self.settings.claim => {
                    *self.alone_until.lock() = self.env.clock.now() + self.settings.pause;
                    return Err(End::Here("no worker claims it".to_owned()));
                }
                JobState::Claimed { beat_age, worker, .. } if beat_age > self.settings.lost => {
                    self.next_attempt(offered, &format!("worker {worker} gives no sign of life"), spec)?;
                }
                JobState::GivenBack { worker, reason } => {
                    self.next_attempt(offered, &format!("worker {worker} gave it back: {reason}"), spec)?;
                }
                JobState::Failed { worker, reason } => {
                    *offered.lost += 1;
                    return Err(End::Here(format!("worker {worker} cannot run the compaction: {reason}")));
                }
                JobState::Claimed { worker, done, .. } if self.stands_still(offered, done) => {
                    self.next_attempt(offered, &format!("worker {worker} makes no progress"), spec)?;
                }
                JobState::Waiting { .. } | JobState::Claimed { .. } => {}
            }
        }
    }

    /// Notes how far the attempt is; true if that has not changed for too long.
    fn stands_still(&self, offered: &mut Offered<'_>, done: u64) -> bool {
        let now = self.env.clock.now();
        if offered.done.0 != done {
            offered.done = (done, now);
        }
        debug_assert!(offered.done.1 <= now, "the own clock does not go back");
        now.saturating_sub(offered.done.1) > self.settings.lost.saturating_mul(STANDS_FACTOR)
    }

    /// Waits until the next look at the table.
    fn pass(&self, control: &JobControl) -> Result<()> {
        let mut left = self.settings.poll;
        control.check()?;
        while !left.is_zero() {
            let nap = left.min(NAP_MAX);
            self.env.clock.sleep(nap);
            left -= nap;
            control.check()?;
        }
        debug_assert!(left.is_zero(), "the whole time has passed");
        Ok(())
    }

    /// Tolerates a silent bucket for as long as a silent worker.
    fn bear(&self, offered: &mut Offered<'_>, error: Error) -> std::result::Result<(), End> {
        let now = self.env.clock.now();
        let since = *offered.silent_since.get_or_insert(now);
        debug_assert!(since <= now, "the own clock does not go back");
        if now.saturating_sub(since) > self.settings.lost {
            *offered.lost += 1;
            return Err(End::Here(format!("the bucket does not answer: {error}")));
        }
        Ok(())
    }

    /// Gives the attempt up, and opens the next one if there is one.
    fn next_attempt(
        &self,
        offered: &mut Offered<'_>,
        why: &str,
        spec: &JobSpec,
    ) -> std::result::Result<(), End> {
        *offered.lost += 1;
        tracing::info!(target: "terrane::job", attempt = offered.attempt, why, "an attempt at a compaction is lost");
        if offered.attempt >= self.settings.attempts {
            return Err(End::Here(format!("{} attempts are lost; the last one: {why}", offered.attempt)));
        }
        let here = |error: Error| End::Here(error.to_string());
        let lease = self.store.lease(self.files(spec)).map_err(here)?;
        // What the lost worker has written or still writes is garbage from now on.
        self.store.end_lease(&std::mem::replace(&mut offered.lease, lease.clone()));
        offered.done = (0, self.env.clock.now());
        let before = offered.attempt;
        offered.attempt =
            self.coordinator.open_attempt(offered.id, lease, self.settings.lost).map_err(here)?;
        debug_assert_eq!(offered.attempt, before + 1, "the table counts as this does");
        Ok(())
    }

    /// Checks an outcome, and takes its objects over.
    fn take(&self, offered: &Offered<'_>, spec: &JobSpec, outcome: &Bytes) -> Result<JobResult> {
        let (written, report) = outcome::decode(outcome)?;
        let result = decode_report(report, spec, &offered.lease)?;
        debug_assert!(result.check(), "a report that was not refused is a sound result");
        let extents: Vec<_> = result.written().map(|meta| (meta.id, meta.slots)).collect();
        let ends = Ends::of(&result);
        self.store.adopt_leased(&offered.lease, &written, &extents, &|id, end| ends.check(id, end))?;
        Ok(result)
    }
}

impl Compactor for BucketCompactor {
    fn run(&self, spec: &JobSpec, control: &JobControl) -> Result<JobResult> {
        match self.try_elsewhere(spec, control)? {
            Some(result) => Ok(result),
            None => self.local.run(spec, control),
        }
    }

    fn run_in_parts(
        &self,
        spec: &JobSpec,
        control: &JobControl,
        publish: &mut dyn FnMut(JobResult) -> Result<()>,
    ) -> Result<JobResult> {
        match self.try_elsewhere(spec, control)? {
            Some(result) => Ok(result),
            None => self.local.run_in_parts(spec, control, publish),
        }
    }
}

impl BucketCompactor {
    /// The result of a job that a worker did; `None` if it is to run here.
    fn try_elsewhere(&self, spec: &JobSpec, control: &JobControl) -> Result<Option<JobResult>> {
        let request = match JobRequest::of(spec, control) {
            Ok(_) if self.is_alone() || self.is_too_large(spec) => return Ok(None),
            Ok(request) => request,
            Err(stays) => {
                self.log_once(stays);
                return Ok(None);
            }
        };
        let mut attempts_lost = 0;
        let ended = self.run_elsewhere(&request, control, &mut attempts_lost);
        let (is_done, fell_back) = (ended.is_ok(), matches!(ended, Err(End::Here(_))));
        control.note_elsewhere(Elsewhere { is_done, fell_back, attempts_lost });
        match ended {
            Ok(result) => {
                control.show(&result.work);
                Ok(Some(result))
            }
            Err(End::Cancelled(error)) => Err(error),
            Err(End::Here(why)) => {
                tracing::info!(target: "terrane::job", why, "a compaction that was offered to workers runs here");
                Ok(None)
            }
        }
    }
}

/// Bytes of the inputs of a job, before compression.
fn bytes_of(spec: &JobSpec) -> u64 {
    let metas = spec.inputs.iter().flat_map(|input| &input.extents);
    metas.fold(0_u64, |sum, meta| sum.saturating_add(meta.raw_bytes.max(meta.bytes.into())))
}
