//! The measurements of one worker: a histogram per kind of operation, and counts that the sampler reads.
//!
//! The histograms belong to the worker alone; only [`Tally`] is shared, one cache line per worker, written by
//! its owner without read-modify-write.

use std::sync::atomic::{AtomicU64, Ordering};

use hdrhistogram::Histogram;

use crate::generate::operation::OperationKind;
use crate::report::model::Latency;

/// Operations of one worker so far, alone on its cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Tally {
    done: AtomicU64,
}

impl Tally {
    /// Adds `count`; only the owner calls this, so a plain store is enough.
    #[inline]
    pub(super) fn add(&self, count: u64) {
        self.done.store(self.done.load(Ordering::Relaxed) + count, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}

/// The measurements of one worker.
#[derive(Debug)]
pub(super) struct Recorder {
    latencies: Vec<Option<Histogram<u32>>>,
    pub(super) operations: u64,
    pub(super) found: u64,
    pub(super) bytes_written: u64,
    pub(super) bytes_read: u64,
    pub(super) wrong: u64,
    /// Runs of transactions that were refused.
    pub(super) aborted: u64,
    pub(super) deleted: bool,
}

impl Recorder {
    pub(super) fn new() -> Self {
        Recorder {
            latencies: OperationKind::ALL.iter().map(|_| None).collect(),
            operations: 0,
            found: 0,
            bytes_written: 0,
            bytes_read: 0,
            wrong: 0,
            aborted: 0,
            deleted: false,
        }
    }

    /// Records one latency, in nanoseconds.
    #[inline]
    pub(super) fn record(&mut self, kind: OperationKind, nanos: u64) {
        self.latencies_of(kind).record(nanos.min(NANOS_MAX)).expect("it grows");
    }

    #[inline]
    fn latencies_of(&mut self, kind: OperationKind) -> &mut Histogram<u32> {
        self.latencies[kind as usize].get_or_insert_with(new_histogram)
    }

    /// Adds what another worker measured.
    pub(super) fn merge(&mut self, other: &Recorder) {
        for (mine, theirs) in self.latencies.iter_mut().zip(&other.latencies) {
            if let Some(theirs) = theirs {
                let mine = mine.get_or_insert_with(new_histogram);
                mine.add(theirs).expect("histograms of the same bounds");
            }
        }
        self.operations += other.operations;
        self.found += other.found;
        self.bytes_written += other.bytes_written;
        self.bytes_read += other.bytes_read;
        self.wrong += other.wrong;
        self.aborted += other.aborted;
        self.deleted |= other.deleted;
    }

    /// The latencies of one kind, or none.
    pub(super) fn latency_of(&self, kind: OperationKind) -> Option<Latency> {
        self.latencies[kind as usize].as_ref().map(summary)
    }

    /// The latencies of all kinds together.
    pub(super) fn latency(&self) -> Latency {
        let mut all = new_histogram();
        for part in self.latencies.iter().flatten() {
            all.add(part).expect("histograms of the same bounds");
        }
        summary(&all)
    }
}

/// The longest latency that is recorded: ten minutes.
const NANOS_MAX: u64 = 600_000_000_000;

/// A histogram of nanoseconds, to one part in a hundred. It grows with the longest latency: 11 KiB up to
/// 100 ms, 17 KiB up to ten minutes, for each thread and kind of operation. A third digit would take eight
/// times as much, which at 64 threads is more than the memory of a small engine.
fn new_histogram() -> Histogram<u32> {
    let mut histogram = Histogram::new(2).expect("two digits are valid");
    histogram.auto(true);
    histogram
}

fn summary(histogram: &Histogram<u32>) -> Latency {
    if histogram.is_empty() {
        return Latency::default();
    }
    Latency {
        count: histogram.len(),
        mean: histogram.mean(),
        p50: histogram.value_at_quantile(0.5),
        p90: histogram.value_at_quantile(0.9),
        p99: histogram.value_at_quantile(0.99),
        p999: histogram.value_at_quantile(0.999),
        p9999: histogram.value_at_quantile(0.9999),
        max: histogram.max(),
    }
}
