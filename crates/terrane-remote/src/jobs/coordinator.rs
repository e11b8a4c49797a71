//! The coordinator: the writer of the database offers jobs, and sees what became of them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use terrane_base::sync::Mutex;
use terrane_base::{Error, Kind, Result};

use super::names::JobName;
use super::object::{JOB_ATTEMPTS_MAX, JOB_PAYLOAD_BYTES_MAX, JobObject, JobTag};
use super::table::{Found, age};
use super::{JobId, JobTable};
use crate::bucket::names as object_names;

/// The age from which a sign of life of a worker that waits is deleted.
const WORKER_FORGOTTEN: Duration = Duration::from_secs(3600);

/// The state of a job's current attempt. Ages are by the object store's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobState {
    /// No worker has claimed it.
    Waiting {
        /// Since the attempt was opened.
        age: Duration,
    },
    /// A worker runs it.
    Claimed {
        /// The name of the worker.
        worker: String,
        /// Since the claim.
        age: Duration,
        /// Since its last sign of life; the claim is the first one.
        beat_age: Duration,
        /// How far it was by that, in a unit of its own.
        done: u64,
    },
    /// A worker has done it.
    Done {
        /// The name of the worker.
        worker: String,
        /// The outcome, as the worker encoded it.
        outcome: Bytes,
    },
    /// The worker gave it back: another attempt may succeed.
    GivenBack {
        /// The name of the worker.
        worker: String,
        /// Why.
        reason: String,
    },
    /// No worker can do it.
    Failed {
        /// The name of the worker.
        worker: String,
        /// Why.
        reason: String,
    },
}

/// A worker that gave a sign of life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenWorker {
    /// Its name.
    pub name: String,
    /// Since the last sign of life, by the object store's clock.
    pub age: Duration,
}

/// Offers jobs, under the epoch of the writer of the database.
#[derive(Debug)]
pub struct Coordinator {
    table: JobTable,
    epoch: u64,
    jobs: Mutex<Jobs>,
    /// The last look at the table, for all jobs that are waited for.
    look: Mutex<Option<Arc<Look>>>,
}

/// The table at one moment.
#[derive(Debug)]
struct Look {
    /// By the clock of the coordinator.
    taken: Duration,
    /// By the clock of the object store.
    now: Duration,
    found: Found,
}

#[derive(Debug, Default)]
struct Jobs {
    last_number: u64,
    /// The jobs that are offered, each with its current attempt.
    live: BTreeMap<u64, Current>,
}

#[derive(Clone, Debug, Default)]
struct Current {
    attempt: u32,
    /// The random number of the claim, and the name of its worker.
    claim: Option<(u128, String)>,
}

impl JobTable {
    /// Begins to offer jobs. Requires: `epoch` is that of the manifest's writer, and this is its only
    /// coordinator. Workers leave the jobs of older epochs; [`Coordinator::sweep`] deletes them.
    ///
    /// # Errors
    /// `Poisoned` if a newer coordinator is at work, or another one of this epoch; `Io`, `Busy`.
    pub fn coordinate(&self, epoch: u64) -> Result<Coordinator> {
        assert!(epoch > 0, "the first writer has epoch 1");
        let object = JobObject::new(JobTag::Coordinator, (epoch, 0), 0, self.draw());
        if !self.create(&JobName::Coordinator(epoch), &object.encode(&[]))? {
            let message = format!(
                "{}: another coordinator uses epoch {epoch}; stop one of them",
                object_names::place(self.bucket.url(), &self.names.folder)
            );
            return Err(Error::new(Kind::Poisoned, message));
        }
        let coordinator =
            Coordinator { table: self.clone(), epoch, jobs: Mutex::default(), look: Mutex::default() };
        coordinator.check_newest(&self.list(&self.names.folder)?)?;
        Ok(coordinator)
    }

    /// The workers that gave a sign of life within the last hour, the latest first. Three requests.
    ///
    /// # Errors
    /// `Io`, `Busy`.
    pub fn workers(&self) -> Result<Vec<SeenWorker>> {
        Ok(self.seen()?.0)
    }

    /// The workers, and the names of signs of life that are old.
    fn seen(&self) -> Result<(Vec<SeenWorker>, Vec<String>)> {
        let now = JobName::WorkerNow(self.random.next_u64());
        let (found, now) = self.list_at(&self.names.workers(), &now)?;
        let mut seen: BTreeMap<String, Duration> = BTreeMap::new();
        let mut old = Vec::new();
        for (text, (name, object)) in found {
            let age = age(&object, now);
            if age > WORKER_FORGOTTEN {
                old.push(text);
            } else if let JobName::Worker(worker, _, _) = name {
                let least = seen.entry(worker).or_insert(age);
                *least = age.min(*least);
            }
        }
        let mut seen: Vec<SeenWorker> =
            seen.into_iter().map(|(name, age)| SeenWorker { name, age }).collect();
        seen.sort_by_key(|worker| worker.age);
        Ok((seen, old))
    }
}

impl Coordinator {
    /// The epoch of the writer.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &JobTable {
        &self.table
    }

    /// Offers a job and opens the first attempt at it, whose worker writes under the file numbers `lease` and
    /// is given up when its last sign of life is older than `lost`. Two requests.
    ///
    /// # Errors
    /// `Invalid` if the job is longer than a payload may be; `Io`, `Busy`. The job is withdrawn then.
    pub fn offer(&self, job: &[u8], lease: Range<u32>, lost: Duration) -> Result<JobId> {
        if job.is_empty() || job.len() as u64 > JOB_PAYLOAD_BYTES_MAX {
            let len = job.len();
            return Err(Error::invalid(format!(
                "a job of {len} bytes: 1 to {JOB_PAYLOAD_BYTES_MAX} are possible"
            )));
        }
        let id = {
            let mut jobs = self.jobs.lock();
            jobs.last_number += 1;
            let number = jobs.last_number;
            // Before its objects are there: a sweep takes them for those of no job else.
            jobs.live.insert(number, Current { attempt: 1, claim: None });
            JobId { epoch: self.epoch, number }
        };
        let object = JobObject::new(JobTag::Offer, (id.epoch, id.number), 0, self.table.draw());
        let offered = self.create_own(&JobName::Offer(id), &object.encode(job));
        let opened = offered.and_then(|()| self.open(id, 1, lease, lost));
        opened.map(|()| id).inspect_err(|_| drop(self.withdraw(id)))
    }

    /// Gives the current attempt up and opens the next one; a report of an older one counts for nothing from
    /// now on. Returns the number of the attempt.
    ///
    /// # Errors
    /// `NotFound` if the job is not offered; `Full` if there were too many attempts; `Io`, `Busy`: withdraw
    /// the job.
    pub fn open_attempt(&self, id: JobId, lease: Range<u32>, lost: Duration) -> Result<u32> {
        let attempt = {
            let mut jobs = self.jobs.lock();
            let current = jobs.live.get_mut(&id.number).ok_or_else(|| unknown(id))?;
            if current.attempt == JOB_ATTEMPTS_MAX {
                return Err(Error::new(Kind::Full, format!("{JOB_ATTEMPTS_MAX} attempts at job {id:?}")));
            }
            *current = Current { attempt: current.attempt + 1, claim: None };
            current.attempt
        };
        self.open(id, attempt, lease, lost)?;
        Ok(attempt)
    }

    fn open(&self, id: JobId, attempt: u32, lease: Range<u32>, lost: Duration) -> Result<()> {
        let lost_ms = u32::try_from(lost.as_millis()).unwrap_or(u32::MAX).max(1);
        let object = JobObject::new(JobTag::Attempt, (id.epoch, id.number), attempt, self.table.draw());
        let object = JobObject { lease, lost_ms, ..object };
        self.create_own(&JobName::Open(id, attempt), &object.encode(&[]))
    }

    fn create_own(&self, name: &JobName, bytes: &[u8]) -> Result<()> {
        if self.table.create(name, bytes)? {
            return Ok(());
        }
        let place = object_names::place(self.table.bucket.url(), &self.table.names.of(name));
        let message = format!(
            "{place} exists, and this writer did not create it: another writer uses epoch {}; stop one of them",
            self.epoch
        );
        Err(Error::new(Kind::Poisoned, message))
    }

    /// The state of the current attempt at a job. Two requests, and one for each of claim and report when it
    /// is new.
    ///
    /// # Errors
    /// `NotFound` if the job is not offered; `Corrupt`, `Invalid` if the object of a worker is of another
    /// kind; `Io`, `Busy`.
    pub fn state(&self, id: JobId) -> Result<JobState> {
        self.state_within(id, (Duration::ZERO, Duration::ZERO))
    }

    /// As [`Coordinator::state`], at the time `at` of the caller's clock; a look at the table that is not
    /// older than `fresh` serves, so that all jobs that are waited for share one.
    ///
    /// # Errors
    /// As there.
    pub fn state_within(&self, id: JobId, (at, fresh): (Duration, Duration)) -> Result<JobState> {
        let current = self.jobs.lock().live.get(&id.number).cloned().ok_or_else(|| unknown(id))?;
        let (table, attempt) = (&self.table, current.attempt);
        let look = self.look(&JobName::Open(id, attempt), (at, fresh))?;
        let (found, now) = (&look.found, look.now);
        let find = |name: &JobName| found.get(&table.names.of(name)).map(|(_, object)| object);
        let Some(claim) = find(&JobName::Claim(id, attempt)) else {
            let open = find(&JobName::Open(id, attempt)).ok_or_else(|| self.missing(id, attempt))?;
            return Ok(JobState::Waiting { age: age(open, now) });
        };
        let (nonce, worker) = match current.claim {
            Some(claim) => claim,
            None => self.read_claim(id, attempt)?,
        };
        if find(&JobName::Report(id, attempt)).is_some() {
            return self.read_report(id, attempt, (nonce, worker));
        }
        let claim_age = age(claim, now);
        let (beat_age, done) = last_sign(found, (id, attempt), now).unwrap_or((claim_age, 0));
        Ok(JobState::Claimed { worker, age: claim_age, beat_age: beat_age.min(claim_age), done })
    }

    /// The table at the time `at`, or at most `fresh` before. A look from before the opening of the attempt
    /// does not count.
    fn look(&self, open: &JobName, (at, fresh): (Duration, Duration)) -> Result<Arc<Look>> {
        let (table, open) = (&self.table, self.table.names.of(open));
        let is_fresh =
            |look: &Arc<Look>| at.saturating_sub(look.taken) < fresh && look.found.contains_key(&open);
        // Not held over the request: two callers at once may make two.
        if let Some(look) = self.look.lock().clone().filter(is_fresh) {
            return Ok(look);
        }
        let now = JobName::Now(self.epoch, table.random.next_u64());
        let (found, now) = table.list_at(&table.names.folder, &now)?;
        let look = Arc::new(Look { taken: at, now, found });
        *self.look.lock() = Some(look.clone());
        Ok(look)
    }

    fn read_claim(&self, id: JobId, attempt: u32) -> Result<(u128, String)> {
        let (header, worker) = self.table.read(&JobName::Claim(id, attempt), &[JobTag::Claim])?;
        let claim = (header.nonce, text(&worker));
        if let Some(current) = self.jobs.lock().live.get_mut(&id.number)
            && current.attempt == attempt
        {
            current.claim = Some(claim.clone());
        }
        Ok(claim)
    }

    fn read_report(&self, id: JobId, attempt: u32, (nonce, worker): (u128, String)) -> Result<JobState> {
        let name = JobName::Report(id, attempt);
        let (header, payload) = self.table.read(&name, &[JobTag::Done, JobTag::GivenBack, JobTag::Failed])?;
        if header.nonce != nonce {
            let place = object_names::place(self.table.bucket.url(), &self.table.names.of(&name));
            return Err(Error::corrupt("the report is not of the worker that has the claim").at(place, 0));
        }
        Ok(match header.tag {
            JobTag::Done => JobState::Done { worker, outcome: payload },
            JobTag::GivenBack => JobState::GivenBack { worker, reason: text(&payload) },
            _ => JobState::Failed { worker, reason: text(&payload) },
        })
    }

    /// Ends a job: its objects are deleted, and later reports of its worker have no effect. A worker that
    /// still runs it learns so by its next sign of life.
    ///
    /// # Errors
    /// `Io`, `Busy`: [`Coordinator::sweep`] deletes the remaining objects.
    pub fn withdraw(&self, id: JobId) -> Result<()> {
        self.jobs.lock().live.remove(&id.number);
        let (table, folder) = (&self.table, self.table.names.job(id));
        // First what workers look for.
        table.delete(&[table.names.of(&JobName::Offer(id))])?;
        let listed = table.bucket.list(&folder, None)?;
        let names: Vec<String> = listed.into_iter().map(|object| object.name).collect();
        if names.is_empty() { Ok(()) } else { table.delete(&names) }
    }

    /// Deletes the objects of older coordinators, of jobs that ended, and of workers that are gone. Call it
    /// now and then. Returns how many.
    ///
    /// # Errors
    /// `Poisoned` if a newer coordinator is at work; `Io`, `Busy`.
    pub fn sweep(&self) -> Result<usize> {
        let table = &self.table;
        let found = table.list(&table.names.folder)?;
        self.check_newest(&found)?;
        // After the list: a job whose objects are listed is live, or has ended.
        let live: Vec<u64> = self.jobs.lock().live.keys().copied().collect();
        let is_void = |name: &JobName| match (name.epoch(), name.id()) {
            (Some(epoch), _) if epoch < self.epoch => true,
            (Some(epoch), Some(id)) if epoch == self.epoch => !live.contains(&id.number),
            _ => false,
        };
        let mut void: Vec<String> =
            found.into_iter().filter(|(_, (name, _))| is_void(name)).map(|(text, _)| text).collect();
        void.extend(table.seen()?.1);
        table.delete(&void)?;
        Ok(void.len())
    }

    /// Refuses to go on behind a newer coordinator.
    fn check_newest(&self, found: &Found) -> Result<()> {
        let table = &self.table;
        match table.newest(found)? {
            Some(newest) if newest > self.epoch => {
                let message = format!(
                    "a coordinator of epoch {newest} is at work in {}, this one has epoch {}: it was replaced",
                    object_names::place(table.bucket.url(), &table.names.folder),
                    self.epoch
                );
                Err(Error::new(Kind::Poisoned, message))
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn missing(&self, id: JobId, attempt: u32) -> Error {
        let name = self.table.names.of(&JobName::Open(id, attempt));
        let place = object_names::place(self.table.bucket.url(), &name);
        Error::corrupt("the object of an attempt is missing: does something else delete objects here?")
            .at(place, 0)
    }
}

/// The last sign of life of an attempt: its age, and how far the attempt was.
fn last_sign(found: &Found, attempt: (JobId, u32), now: Duration) -> Option<(Duration, u64)> {
    let of_attempt = found.values().filter_map(|(name, object)| match name {
        JobName::Beat(id, of, beat, done) if (*id, *of) == attempt => Some((*beat, age(object, now), *done)),
        _ => None,
    });
    of_attempt.max().map(|(_, age, done)| (age, done))
}

/// A text from a bucket, for messages.
fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cold]
fn unknown(id: JobId) -> Error {
    Error::new(Kind::NotFound, format!("job {} of epoch {} is not offered", id.number, id.epoch))
}
