//! Memory of jobs, lent to the cache while none runs.
//!
//! Steps: 1. before a job begins it takes back what is lent: the limit of the cache falls and what is too much is evicted
//! by the worker, so no reader and no writer is held up; 2. when no job ran for [`REST_MIN`], whoever looks for work
//! lends again: a job that comes every few milliseconds must not cost the cache a part of it each time.
//!
//! Half of the jobs' share is lent: the other half is also for what iterators read ahead and for the manifest.
//!
//! Invariant: nothing is lent while a job runs; only evicted blocks that a reader still sees are given back later, as with
//! every other fall of the limit.

use std::time::Duration;
use terrane_base::sync::atomic::{AtomicU8, Ordering};

use terrane_base::sync::Mutex;

use crate::engine::Engine;

/// How long no job must have run.
const REST_MIN: Duration = Duration::from_millis(500);

/// Who has the memory of jobs.
#[derive(Debug, Default)]
pub(crate) struct JobLease {
    jobs: Mutex<Jobs>,
    /// [`NOT_LENT`], [`LENT`] or [`RETURNING`]. Written under the lock, read by whoever divides memory.
    state: AtomicU8,
}

const NOT_LENT: u8 = 0;
/// The limit of the cache is higher by it.
const LENT: u8 = 1;
/// The limit is not higher any more, and what the cache still has is not too much yet: no writer waits for it.
const RETURNING: u8 = 2;

#[derive(Debug, Default)]
struct Jobs {
    running: u32,
    /// When the last one ended.
    ended: Duration,
}

impl JobLease {
    /// Whether the limit of the cache is higher by a part of the memory of jobs.
    pub(crate) fn is_lent(&self) -> bool {
        self.state.load(Ordering::Relaxed) == LENT
    }

    /// Whether the cache may have some of it still.
    pub(crate) fn is_out(&self) -> bool {
        self.state.load(Ordering::Relaxed) != NOT_LENT
    }

    /// A job begins; returns whether memory that it may need is to be given back first.
    fn begin(&self) -> bool {
        let mut jobs = self.jobs.lock();
        jobs.running += 1;
        if self.is_lent() {
            self.state.store(RETURNING, Ordering::Relaxed);
        }
        self.is_out()
    }

    /// What was lent is back. Requires: a job runs.
    fn settle(&self) {
        let _jobs = self.jobs.lock();
        self.state.store(NOT_LENT, Ordering::Relaxed);
    }

    fn end(&self, now: Duration) {
        let mut jobs = self.jobs.lock();
        jobs.running -= 1;
        jobs.ended = now;
    }

    /// Lends if no job ran for long enough; returns whether it did.
    fn lend(&self, now: Duration) -> bool {
        let jobs = self.jobs.lock();
        let rests = jobs.running == 0 && now.saturating_sub(jobs.ended) >= REST_MIN;
        let lends = rests && !self.is_out();
        if lends {
            self.state.store(LENT, Ordering::Relaxed);
        }
        lends
    }
}

impl Engine {
    /// Runs a job with the memory of jobs.
    pub(crate) fn with_job_memory<T>(&self, job: impl FnOnce() -> T) -> T {
        if !self.budget.plan().adaptive {
            return job();
        }
        if self.job_memory.begin() {
            self.shrink_cache();
            self.job_memory.settle();
        }
        let end = End(self);
        let done = job();
        drop(end);
        done
    }

    /// Lends the memory of jobs to the cache if none ran for a while. To be called from time to time.
    pub(crate) fn lend_job_memory(&self) {
        if self.budget.plan().adaptive && self.job_memory.lend(self.env.clock.now()) {
            self.balance_memory();
        }
    }
}

/// Ends a job, also one that panics.
struct End<'e>(&'e Engine);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.job_memory.end(self.0.env.clock.now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_lent_when_no_job_ran_for_a_while_and_taken_back_by_the_first() {
        let memory = JobLease::default();
        let at = Duration::from_millis;
        assert!(memory.lend(at(500)) && memory.is_lent());
        assert!(!memory.lend(at(501)), "once");
        assert!(memory.begin() && !memory.is_lent() && memory.is_out());
        assert!(memory.begin(), "not given back yet");
        memory.settle();
        assert!(!memory.is_out());
        memory.end(at(2000));
        assert!(!memory.lend(at(9000)), "one runs");
        memory.end(at(9000));
        assert!(!memory.lend(at(9499)), "too soon");
        assert!(memory.lend(at(9500)) && memory.is_lent());
    }
}
