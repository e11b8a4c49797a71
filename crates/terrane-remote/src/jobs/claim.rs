//! Operations of a worker on the table of jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use terrane_base::{Kind, Result};

use super::names::{JobName, check_worker};
use super::object::{JOB_TEXT_BYTES_MAX, JobObject, JobTag};
use super::table::Found;
use super::{JobId, JobTable};

/// An attempt at a job that no worker has claimed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenAttempt {
    /// The job.
    pub id: JobId,
    /// Counts the attempts at it, from 1.
    pub attempt: u32,
}

/// The result of [`Claim::beat`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// The coordinator waits for this attempt.
    Current,
    /// The job was withdrawn, another attempt was opened, or the coordinator was replaced: stop.
    Withdrawn,
}

/// An attempt at a job that this worker runs.
#[derive(Debug)]
pub struct Claim {
    table: JobTable,
    /// The job.
    pub id: JobId,
    /// Which attempt at it this is.
    pub attempt: u32,
    /// The job, as the coordinator encoded it.
    pub payload: Bytes,
    /// The file numbers under which its outputs are written.
    pub lease: Range<u32>,
    /// The age of the last sign of life from which the attempt is lost: give one several times in it.
    pub lost: Duration,
    nonce: u128,
    beats: u32,
    /// The last sign of life.
    last: Option<JobName>,
}

/// The open jobs: for each job of the coordinator of the epoch `newest`, its last attempt and whether that is
/// claimed.
fn attempts(found: &Found, newest: Option<u64>) -> BTreeMap<JobId, (u32, bool)> {
    let mut offered = BTreeSet::new();
    let mut last: BTreeMap<JobId, u32> = BTreeMap::new();
    let mut claimed = BTreeSet::new();
    for (name, _) in found.values().filter(|(name, _)| newest.is_some() && name.epoch() == newest) {
        match name {
            JobName::Offer(id) => {
                offered.insert(*id);
            }
            JobName::Open(id, attempt) => {
                let last = last.entry(*id).or_default();
                *last = (*last).max(*attempt);
            }
            JobName::Claim(id, attempt) | JobName::Report(id, attempt) => {
                claimed.insert((*id, *attempt));
            }
            _ => {}
        }
    }
    last.retain(|id, _| offered.contains(id));
    last.into_iter().map(|(id, attempt)| (id, (attempt, claimed.contains(&(id, attempt))))).collect()
}

impl JobTable {
    /// The attempts that may be claimed, of the newest coordinator, oldest job first. One request, and one
    /// more for a coordinator that is new.
    ///
    /// # Errors
    /// `Io`, `Busy`.
    pub fn list_open(&self) -> Result<Vec<OpenAttempt>> {
        let found = self.list(&self.names.folder)?;
        let newest = self.newest(&found)?;
        let open = attempts(&found, newest).into_iter().filter(|(_, (_, is_claimed))| !is_claimed);
        Ok(open.map(|(id, (attempt, _))| OpenAttempt { id, attempt }).collect())
    }

    /// Claims an attempt for a worker. `None` if another worker has it, or it is no longer open.
    ///
    /// # Errors
    /// `Invalid` if the name of the worker is not valid; `Corrupt` if an object is damaged; `Io`, `Busy`. The
    /// claim may be in the bucket then: the coordinator finds it without a sign of life, and gives it up.
    pub fn claim(&self, open: OpenAttempt, worker: &str) -> Result<Option<Claim>> {
        self.claim_if(open, worker, &mut |_| true)
    }

    /// As [`JobTable::claim`], if the job, as its coordinator encoded it, is one that the worker can do: what
    /// it cannot do it leaves to others.
    ///
    /// # Errors
    /// As there.
    pub fn claim_if(
        &self,
        open: OpenAttempt,
        worker: &str,
        can_do: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<Option<Claim>> {
        check_worker(worker)?;
        let OpenAttempt { id, attempt } = open;
        // Read before the claim: what cannot be read is not claimed.
        let limits = present(self.read(&JobName::Open(id, attempt), &[JobTag::Attempt]))?;
        let offer = present(self.read(&JobName::Offer(id), &[JobTag::Offer]))?;
        let Some(((limits, _), (_, payload))) = limits.zip(offer) else { return Ok(None) };
        if !can_do(&payload) {
            return Ok(None);
        }
        let nonce = self.draw();
        let object = JobObject::new(JobTag::Claim, (id.epoch, id.number), attempt, nonce);
        if !self.create(&JobName::Claim(id, attempt), &object.encode(worker.as_bytes()))? {
            return Ok(None);
        }
        let lost = Duration::from_millis(limits.lost_ms.into());
        let table = self.clone();
        let claim =
            Claim { table, id, attempt, payload, lease: limits.lease, lost, nonce, beats: 0, last: None };
        // The coordinator may have withdrawn the job, with a claim that was not there yet.
        Ok(if claim.is_current()? { Some(claim) } else { None })
    }

    /// Shows that a worker waits for jobs.
    ///
    /// # Errors
    /// `Invalid` if the name is not valid.
    pub fn presence(&self, worker: &str) -> Result<Presence> {
        check_worker(worker)?;
        let nonce = self.random.next_u64();
        Ok(Presence { table: self.clone(), worker: worker.to_owned(), nonce, beats: 0 })
    }
}

impl Claim {
    /// Gives a sign of life, and asks whether the coordinator still waits for this attempt. `done` is how far
    /// the attempt is, in any unit: one that stands still for long is lost. Two requests, a creation and a
    /// list.
    ///
    /// # Errors
    /// `Io`, `Busy`: try again until `lost` has passed since the last one.
    pub fn beat(&mut self, done: u64) -> Result<Beat> {
        self.beats += 1;
        let object = JobObject { beat: self.beats, ..self.object(JobTag::Beat) };
        let name = JobName::Beat(self.id, self.attempt, self.beats, done);
        self.table.create(&name, &object.encode(&[]))?;
        if let Some(before) = self.last.replace(name) {
            // One that stays goes with the job.
            let _ = self.table.delete(&[self.table.names.of(&before)]);
        }
        Ok(if self.is_current()? { Beat::Current } else { Beat::Withdrawn })
    }

    /// Reports the outcome. Returns true if the report is there and the coordinator waits for it, false if
    /// the attempt is not the current one: the coordinator does not read it.
    ///
    /// # Errors
    /// `Io`, `Busy` if neither is known: try again, with the same outcome.
    pub fn finish(&self, outcome: &[u8]) -> Result<bool> {
        self.report(JobTag::Done, outcome)
    }

    /// Gives the attempt back, because of the worker: another worker may run the job. As [`Claim::finish`].
    ///
    /// # Errors
    /// As there.
    pub fn give_back(&self, reason: &str) -> Result<bool> {
        self.report(JobTag::GivenBack, cut(reason))
    }

    /// Says that the job cannot be done, by any worker. As [`Claim::finish`].
    ///
    /// # Errors
    /// As there.
    pub fn fail(&self, reason: &str) -> Result<bool> {
        self.report(JobTag::Failed, cut(reason))
    }

    fn report(&self, tag: JobTag, payload: &[u8]) -> Result<bool> {
        let bytes = self.object(tag).encode(payload);
        let is_own = self.table.create(&JobName::Report(self.id, self.attempt), &bytes)?;
        Ok(is_own && self.is_current()?)
    }

    fn object(&self, tag: JobTag) -> JobObject {
        JobObject::new(tag, (self.id.epoch, self.id.number), self.attempt, self.nonce)
    }

    fn is_current(&self) -> Result<bool> {
        // All of the table: a newer coordinator may have come. Few objects: those of running jobs.
        let found = self.table.list(&self.table.names.folder)?;
        let newest = self.table.newest(&found)?;
        Ok(attempts(&found, newest).get(&self.id).is_some_and(|(attempt, _)| *attempt == self.attempt))
    }
}

/// `None` for an object that is not there.
fn present<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Err(error) if error.kind() == Kind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// A text that fits into a report and is not empty.
fn cut(reason: &str) -> &[u8] {
    let mut end = reason.len().min(JOB_TEXT_BYTES_MAX as usize);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    if end == 0 { b"no reason" } else { &reason.as_bytes()[..end] }
}

/// The signs of life of a worker that waits for jobs.
#[derive(Debug)]
pub struct Presence {
    table: JobTable,
    worker: String,
    nonce: u64,
    beats: u32,
}

impl Presence {
    /// Gives a sign of life. One request; the one before is deleted.
    ///
    /// # Errors
    /// `Io`, `Busy`: try again later.
    pub fn beat(&mut self) -> Result<()> {
        self.beats += 1;
        let object = JobObject {
            beat: self.beats,
            ..JobObject::new(JobTag::Worker, (0, 0), 0, u128::from(self.nonce) + 1)
        };
        self.table.create(&self.name(self.beats), &object.encode(self.worker.as_bytes()))?;
        let _ = self.end_before(self.beats);
        Ok(())
    }

    /// Takes the signs of life away: the worker ends.
    ///
    /// # Errors
    /// `Io`, `Busy`: the last one goes when it is old.
    pub fn end(self) -> Result<()> {
        self.end_before(self.beats + 1)
    }

    fn end_before(&self, beat: u32) -> Result<()> {
        // One more than the last one: that deletion may have failed.
        let names: Vec<String> =
            (beat.saturating_sub(2).max(1)..beat).map(|beat| self.table.names.of(&self.name(beat))).collect();
        if names.is_empty() { Ok(()) } else { self.table.delete(&names) }
    }

    fn name(&self, beat: u32) -> JobName {
        JobName::Worker(self.worker.clone(), self.nonce, beat)
    }
}
