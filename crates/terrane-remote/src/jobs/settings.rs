//! When a writer relies on workers.

use std::time::Duration;

use terrane_base::{Error, Result};

/// When a writer relies on workers, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketCompactorSettings {
    /// How long a job waits for a worker that claims it.
    pub claim: Duration,
    /// The age of the last sign of life of a worker from which its attempt is lost.
    pub lost: Duration,
    /// Between two looks at the table.
    pub poll: Duration,
    /// Attempts of workers at one job, 1 at least.
    pub attempts: u32,
    /// How long jobs are not offered after one that no worker claimed.
    pub pause: Duration,
    /// Jobs whose inputs have more bytes, before compression, are not offered: what a worker holds in memory
    /// and what a death of it wastes grow with them.
    pub job_bytes: u64,
}

impl Default for BucketCompactorSettings {
    /// 5 s to a claim, 10 s without a sign of life, a look each 200 ms, 3 attempts, a pause of 30 s, jobs of
    /// up to 8 GiB.
    fn default() -> Self {
        BucketCompactorSettings {
            claim: Duration::from_secs(5),
            lost: Duration::from_secs(10),
            poll: Duration::from_millis(200),
            attempts: 3,
            pause: Duration::from_secs(30),
            job_bytes: 8 << 30,
        }
    }
}

impl BucketCompactorSettings {
    /// Refuses impossible settings.
    ///
    /// # Errors
    /// `Invalid`, with the setting.
    pub fn check(&self) -> Result<()> {
        let refused = [
            (self.poll < Duration::from_millis(10), "poll_ms", "10 ms is the least"),
            (self.claim < self.poll, "claim_ms", "it is less than poll_ms"),
            (self.lost < 4 * self.poll, "lost_ms", "four times poll_ms is the least"),
            (self.lost > Duration::from_secs(3600), "lost_ms", "an hour is the most"),
            (!(1..=100).contains(&self.attempts), "attempts", "1 to 100 are possible"),
            (self.job_bytes == 0, "job_bytes", "no job has so few"),
        ];
        match refused.into_iter().find(|(is_wrong, ..)| *is_wrong) {
            Some((_, name, why)) => Err(Error::invalid(format!("{name}: {why}"))),
            None => Ok(()),
        }
    }
}
