//! The figures of one run, as a value and as text.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::old_workload::Workload;

/// What one run measured.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was run.
    pub workload: Workload,
    /// With how many threads.
    pub threads: u64,
    /// Operations done.
    pub operations: u64,
    /// Reads that found something.
    pub found: u64,
    /// Key and value bytes written or read.
    pub bytes: u64,
    /// Time of the operations.
    pub elapsed: Duration,
    /// Time until the background had caught up.
    pub until_quiescent: Duration,
    /// Time per operation (per batch for writes), in nanoseconds.
    pub latencies: Histogram<u64>,
    /// Bytes that flush and compaction wrote.
    pub store_bytes_written: u64,
    /// Time writers were held back.
    pub paused: Duration,
}

impl Report {
    /// Operations per second, without the time until quiescent.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.operations as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Operations per second, with the background's work included.
    #[must_use]
    pub fn sustained_rate(&self) -> f64 {
        self.operations as f64 / self.until_quiescent.as_secs_f64().max(1e-9)
    }

    /// Bytes that flush and compaction wrote per byte that the user wrote.
    #[must_use]
    pub fn write_amplification(&self) -> f64 {
        self.store_bytes_written as f64 / (self.bytes as f64).max(1.0)
    }

    fn micros(&self, quantile: f64) -> f64 {
        self.latencies.value_at_quantile(quantile) as f64 / 1000.0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<11} {:>10.0} ops/s", self.workload.name(), self.rate())?;
        if self.workload.writes() {
            write!(
                f,
                "  {:>10.0} ops/s until quiescent  write amp {:.2}  held back {:.2} s",
                self.sustained_rate(),
                self.write_amplification(),
                self.paused.as_secs_f64()
            )?;
        } else {
            write!(f, "  found {:.1} %", 100.0 * self.found as f64 / (self.operations as f64).max(1.0))?;
        }
        write!(
            f,
            "  {:.1} MB/s  us: p50 {:.2} p99 {:.2} p99.9 {:.2} max {:.1}",
            self.bytes as f64 / self.elapsed.as_secs_f64().max(1e-9) / 1e6,
            self.micros(0.5),
            self.micros(0.99),
            self.micros(0.999),
            self.latencies.max() as f64 / 1000.0
        )
    }
}
