//! Names of the objects of jobs, below `PREFIX/jobs`:
//!
//! ```text
//! EPOCH-coordinator                      the writer of this epoch offers jobs
//! EPOCH-NUMBER/offer                     a job
//! EPOCH-NUMBER/ATTEMPT-open              an attempt that may be claimed
//! EPOCH-NUMBER/ATTEMPT-claim             which worker runs it
//! EPOCH-NUMBER/ATTEMPT-beat-BEAT-DONE    a sign of life of it, with how far it is
//! EPOCH-NUMBER/ATTEMPT-report            what came of it
//! EPOCH-now-NONCE                        shows what time it is in the object store; lives for one call
//! workers/NAME-NONCE-BEAT                a sign of life of a worker that waits
//! workers/now-NONCE
//! ```
//!
//! A name is never used twice: one writer has an epoch, and it counts numbers and attempts up.

use terrane_base::{Error, Result};

use super::JobId;
use crate::bucket::names as object_names;

/// Longest name of a worker.
pub(super) const WORKER_BYTES_MAX: usize = 64;

/// The meaning of the name of an object below `jobs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum JobName {
    Coordinator(u64),
    Offer(JobId),
    Open(JobId, u32),
    Claim(JobId, u32),
    /// A sign of life: the attempt, the count of its signs, and how far it is.
    Beat(JobId, u32, u32, u64),
    Report(JobId, u32),
    /// The epoch of the coordinator that asks, and the number that was drawn for it.
    Now(u64, u64),
    /// The name of a worker, what it drew, and the count of its signs of life.
    Worker(String, u64, u32),
    WorkerNow(u64),
}

impl JobName {
    /// The epoch of the writer; `None` for what belongs to a worker.
    pub(super) fn epoch(&self) -> Option<u64> {
        match self {
            JobName::Coordinator(epoch) | JobName::Now(epoch, _) => Some(*epoch),
            _ => self.id().map(|id| id.epoch),
        }
    }

    /// The job.
    pub(super) fn id(&self) -> Option<JobId> {
        match self {
            JobName::Offer(id)
            | JobName::Open(id, _)
            | JobName::Claim(id, _)
            | JobName::Beat(id, ..)
            | JobName::Report(id, _) => Some(*id),
            JobName::Coordinator(_) | JobName::Now(..) | JobName::Worker(..) | JobName::WorkerNow(_) => None,
        }
    }
}

/// The names of one database.
#[derive(Clone, Debug)]
pub(super) struct JobNames {
    /// The folder of all of them.
    pub(super) folder: String,
}

impl JobNames {
    pub(super) fn new(prefix: &str) -> Result<JobNames> {
        let names = JobNames { folder: format!("{prefix}/jobs") };
        // The longest name.
        let worker = JobName::Worker("w".repeat(WORKER_BYTES_MAX), u64::MAX, u32::MAX);
        object_names::check(&names.of(&worker))?;
        Ok(names)
    }

    /// The folder of a job.
    pub(super) fn job(&self, id: JobId) -> String {
        format!("{}/{:020}-{:010}", self.folder, id.epoch, id.number)
    }

    /// The folder of the signs of life of workers.
    pub(super) fn workers(&self) -> String {
        format!("{}/workers", self.folder)
    }

    /// The whole name of an object.
    pub(super) fn of(&self, name: &JobName) -> String {
        let folder = &self.folder;
        match name {
            JobName::Coordinator(epoch) => format!("{folder}/{epoch:020}-coordinator"),
            JobName::Offer(id) => format!("{}/offer", self.job(*id)),
            JobName::Open(id, attempt) => format!("{}/{attempt:03}-open", self.job(*id)),
            JobName::Claim(id, attempt) => format!("{}/{attempt:03}-claim", self.job(*id)),
            JobName::Beat(id, attempt, beat, done) => {
                format!("{}/{attempt:03}-beat-{beat:010}-{done:020}", self.job(*id))
            }
            JobName::Report(id, attempt) => format!("{}/{attempt:03}-report", self.job(*id)),
            JobName::Worker(name, nonce, beat) => {
                format!("{}/{name}-{nonce:016x}-{beat:010}", self.workers())
            }
            JobName::Now(epoch, nonce) => format!("{folder}/{epoch:020}-now-{nonce:016x}"),
            JobName::WorkerNow(nonce) => format!("{}/now-{nonce:016x}", self.workers()),
        }
    }

    /// The meaning of a name; `None` for every other one.
    pub(super) fn parse(&self, name: &str) -> Option<JobName> {
        let rest = name.strip_prefix(self.folder.as_str())?.strip_prefix('/')?;
        let (first, last) = rest.split_once('/').unwrap_or((rest, ""));
        let parsed = if first == "workers" { parse_worker(last)? } else { parse_of_job(first, last)? };
        (self.of(&parsed) == name).then_some(parsed)
    }
}

fn parse_worker(last: &str) -> Option<JobName> {
    let mut fields = last.rsplitn(3, '-');
    let (beat, nonce, worker) = (fields.next()?, fields.next()?, fields.next());
    let Some(worker) = worker else { return (nonce == "now").then_some(JobName::WorkerNow(drawn(beat)?)) };
    check_worker(worker).ok()?;
    Some(JobName::Worker(worker.to_owned(), drawn(nonce)?, digits(beat)?))
}

fn parse_of_job(first: &str, last: &str) -> Option<JobName> {
    let (epoch, number) = first.split_once('-')?;
    let epoch = digits::<u64>(epoch)?;
    if number == "coordinator" {
        return last.is_empty().then_some(JobName::Coordinator(epoch));
    }
    if let Some(nonce) = number.strip_prefix("now-") {
        return last.is_empty().then_some(JobName::Now(epoch, drawn(nonce)?));
    }
    let id = JobId { epoch, number: digits(number)? };
    match last.split_once('-') {
        None => (last == "offer").then_some(JobName::Offer(id)),
        Some((attempt, what)) => {
            let attempt = digits(attempt)?;
            match what {
                "open" => Some(JobName::Open(id, attempt)),
                "claim" => Some(JobName::Claim(id, attempt)),
                "report" => Some(JobName::Report(id, attempt)),
                _ => {
                    let (beat, done) = what.strip_prefix("beat-")?.split_once('-')?;
                    Some(JobName::Beat(id, attempt, digits(beat)?, digits(done)?))
                }
            }
        }
    }
}

/// A number that was drawn; its other ways to be written are refused by the comparison of the whole name.
fn drawn(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

fn digits<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Checks the name of a worker.
///
/// # Errors
/// `Invalid`, with the name.
pub(super) fn check_worker(name: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if (1..=WORKER_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    let message =
        format!("name of a worker {name:?}: use 1 to {WORKER_BYTES_MAX} letters, digits, '.', '_' and '-'");
    Err(Error::invalid(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_that_are_written_are_read() {
        let names = JobNames::new("a/db").expect("a prefix");
        let id = JobId { epoch: 7, number: 12 };
        let known = [
            (JobName::Coordinator(7), "a/db/jobs/00000000000000000007-coordinator"),
            (JobName::Offer(id), "a/db/jobs/00000000000000000007-0000000012/offer"),
            (JobName::Open(id, 2), "a/db/jobs/00000000000000000007-0000000012/002-open"),
            (JobName::Claim(id, 2), "a/db/jobs/00000000000000000007-0000000012/002-claim"),
            (
                JobName::Beat(id, 2, 5, 33),
                "a/db/jobs/00000000000000000007-0000000012/002-beat-0000000005-00000000000000000033",
            ),
            (JobName::Report(id, 2), "a/db/jobs/00000000000000000007-0000000012/002-report"),
            (JobName::Now(7, 11), "a/db/jobs/00000000000000000007-now-000000000000000b"),
            (JobName::WorkerNow(11), "a/db/jobs/workers/now-000000000000000b"),
            (
                JobName::Worker("m-1.x".to_owned(), 10, 3),
                "a/db/jobs/workers/m-1.x-000000000000000a-0000000003",
            ),
        ];
        for (name, text) in known {
            assert_eq!(names.of(&name), text);
            assert_eq!(names.parse(text), Some(name));
        }
        for other in [
            "a/db/jobs/7-coordinator",
            "a/db/jobs/00000000000000000007-0000000012",
            "a/db/jobs/00000000000000000007-0000000012/other",
            "a/db/jobs/00000000000000000007-0000000012/2-open",
            "a/db/jobs/00000000000000000007-0000000012/002-beat-5",
            "a/db/jobs/00000000000000000007-0000000012/002-beat-0000000005",
            "a/db/jobs/00000000000000000007-0000000012/002-beat-0000000005-33",
            "a/db/jobs/00000000000000000007-0000000012/now-000000000000000b",
            "a/db/jobs/00000000000000000007-now-1",
            "a/db/jobs/00000000000000000007-now-+00000000000000b",
            "a/db/jobs/00000000000000000007-now-000000000000000b/x",
            "a/db/jobs/+0000000000000000007-0000000012/offer",
            "a/db/jobs/99999999999999999999-0000000012/offer",
            "a/db/jobs/workers/x-00000000000000zz-0000000003",
            "a/db/jobs/workers/0000000003",
            "a/db/jobs/workers",
            "a/dc/jobs/00000000000000000007-coordinator",
            "a/db/jobs",
            "",
        ] {
            assert_eq!(names.parse(other), None, "{other}");
        }
        for wrong in ["", "a b", "a/b", &"a".repeat(65)] {
            check_worker(wrong).expect_err(wrong);
        }
    }
}
