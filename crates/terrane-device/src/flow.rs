//! Counters of the calls and bytes of one stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane_base::env::Clock;
use terrane_base::timing::{self, Part};

/// Calls and bytes of one stream. A failed call is counted, its bytes are not.
#[derive(Debug, Default)]
pub struct Flow {
    /// The part of an operation's time to which waits are added.
    timed: Option<(Part, Arc<dyn Clock>)>,
    reads: AtomicU64,
    bytes_read: AtomicU64,
    batches: AtomicU64,
    writes: AtomicU64,
    bytes_written: AtomicU64,
    syncs: AtomicU64,
}

/// The counts of a [`Flow`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Calls that read.
    pub reads: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Calls that made several of these reads at once.
    pub batches: u64,
    /// Calls that write.
    pub writes: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Calls that make written bytes or directory entries durable.
    pub syncs: u64,
}

impl Flow {
    /// A stream whose waits are added to the measured time of operations ([`terrane_base::timing`]).
    #[must_use]
    pub fn timed(part: Part, clock: Arc<dyn Clock>) -> Self {
        Flow { timed: Some((part, clock)), ..Flow::default() }
    }

    /// Runs a call that waits for the device.
    #[inline]
    pub fn wait<R>(&self, call: impl FnOnce() -> R) -> R {
        match &self.timed {
            Some((part, clock)) => timing::time(*part, &**clock, call),
            None => call(),
        }
    }

    /// Counts a read of `bytes`.
    pub fn note_read<T, E>(&self, bytes: usize, result: &Result<T, E>) {
        note(&self.reads, &self.bytes_read, bytes, result);
    }

    /// Counts a batch; each of its reads is counted as well.
    pub fn note_batch(&self) {
        self.batches.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a write of `bytes`.
    pub fn note_write<T, E>(&self, bytes: usize, result: &Result<T, E>) {
        note(&self.writes, &self.bytes_written, bytes, result);
    }

    /// Counts a sync.
    pub fn note_sync(&self) {
        self.syncs.fetch_add(1, Ordering::Relaxed);
    }

    /// The counts so far.
    #[must_use]
    pub fn counts(&self) -> FlowCounts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FlowCounts {
            reads: load(&self.reads),
            bytes_read: load(&self.bytes_read),
            batches: load(&self.batches),
            writes: load(&self.writes),
            bytes_written: load(&self.bytes_written),
            syncs: load(&self.syncs),
        }
    }
}

fn note<T, E>(calls: &AtomicU64, sum: &AtomicU64, bytes: usize, result: &Result<T, E>) {
    calls.fetch_add(1, Ordering::Relaxed);
    if result.is_ok() {
        sum.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}
