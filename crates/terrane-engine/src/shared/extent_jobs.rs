//! State that all jobs that write extents share: the bound of their bytes per second, and what they say of
//! themselves in the extents.

use std::sync::{Arc, OnceLock};

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::sync::atomic::{AtomicU64, Ordering};
use terrane_compaction::{JobControl, RateLimiter};
use terrane_format::manifest::DatabaseId;
use terrane_levels::directory::read_origins;

use super::files::Files;

/// See the [module](self).
pub(crate) struct ExtentJobs {
    /// Bounds the bytes per second of background work.
    limiter: Arc<RateLimiter>,
    /// How many have begun since the opening.
    begun: AtomicU64,
    /// The database that this one is a copy of, or 0; looked up by the first job.
    copied_from: OnceLock<DatabaseId>,
}

impl ExtentJobs {
    /// No job has begun.
    pub(crate) fn new(env: &Env, options: &Options) -> ExtentJobs {
        let limiter = Arc::new(RateLimiter::new(env.clock.clone(), options.io_bytes_per_second));
        ExtentJobs { limiter, begun: AtomicU64::new(0), copied_from: OnceLock::new() }
    }

    /// Control for one piece of background work.
    pub(super) fn new_control(&self, env: &Env) -> JobControl {
        JobControl::new(env.clock.clone(), Some(self.limiter.clone()))
    }

    /// The number of a job that begins now.
    pub(super) fn next_number(&self) -> u64 {
        // Relaxed: only that each job has a number of its own, and a later one a greater one, counts.
        self.begun.fetch_add(1, Ordering::Relaxed)
    }

    /// The database that the one in `files` is a copy of.
    pub(super) fn copied_from(&self, files: &Files) -> DatabaseId {
        if let Some(known) = self.copied_from.get() {
            return *known;
        }
        // Read outside of the cell: a second job must not wait for the device there. Both read the same.
        // Damage there concerns repair alone, which has other ways to know it.
        let origins = read_origins(&**files.disk(), files.dir()).ok().flatten();
        let found = origins.and_then(|ids| ids.last().copied()).unwrap_or_default();
        *self.copied_from.get_or_init(|| found)
    }
}
