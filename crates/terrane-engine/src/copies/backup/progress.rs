//! Progress of a backup, a restore or a verification: reports it to the caller, bounds the rate, and stops
//! the operation if the caller asks for that.

use std::ops::ControlFlow;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::{Error, Kind, Result};
use terrane_compaction::{JobControl, RateLimiter};

/// Progress of a backup, a restore or a verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupProgress {
    /// Objects that are done: extents and segments.
    pub objects_done: u64,
    /// Objects in all.
    pub objects: u64,
    /// Bytes of the objects that are done.
    pub bytes_done: u64,
    /// Bytes of all objects.
    pub bytes: u64,
    /// Bytes that were copied or read; the other bytes existed already.
    pub bytes_moved: u64,
}

/// Called with the progress after each object; `Break` ends the operation with an error of kind `Cancelled`.
pub type Watcher<'w> = dyn FnMut(&BackupProgress) -> ControlFlow<()> + 'w;

/// See the head of the file.
pub(super) struct ProgressReporter<'w> {
    progress: BackupProgress,
    watcher: &'w mut Watcher<'w>,
    control: JobControl,
}

impl<'w> ProgressReporter<'w> {
    /// `bytes_per_second` bounds the rate of moved bytes; 0 is not a bound.
    pub(super) fn new(env: &Env, bytes_per_second: u64, watcher: &'w mut Watcher<'w>) -> Self {
        let limiter = Arc::new(RateLimiter::new(env.clock.clone(), bytes_per_second));
        let control = JobControl::new(env.clock.clone(), Some(limiter));
        ProgressReporter { progress: BackupProgress::default(), watcher, control }
    }

    /// Sets the totals.
    pub(super) fn begin(&mut self, objects: u64, bytes: u64) -> Result<()> {
        debug_assert_eq!(self.progress.objects_done, 0, "totals are known before the first object is done");
        self.progress = BackupProgress { objects, bytes, ..BackupProgress::default() };
        self.report()
    }

    /// Waits until `bytes` more may be moved.
    pub(super) fn spend(&mut self, bytes: u64) -> Result<()> {
        self.progress.bytes_moved += bytes;
        debug_assert!(self.progress.bytes_moved <= self.progress.bytes, "more is moved than there is");
        self.control.spend(bytes)
    }

    /// An object of `bytes` is done.
    pub(super) fn done(&mut self, bytes: u64) -> Result<()> {
        self.progress.objects_done += 1;
        self.progress.bytes_done += bytes;
        let BackupProgress { objects_done, objects, bytes_done, bytes, .. } = self.progress;
        debug_assert!(objects_done <= objects && bytes_done <= bytes, "more is done than there is");
        self.report()
    }

    pub(super) fn progress(&self) -> BackupProgress {
        self.progress
    }

    fn report(&mut self) -> Result<()> {
        match (self.watcher)(&self.progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::new(Kind::Cancelled, "cancelled by the caller")),
        }
    }
}
