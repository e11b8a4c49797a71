//! Metrics and histograms. The metrics themselves are in three tables: those of a database and of its tables
//! in `terrane-engine` (`stats.rs`, `stats/table.rs`), those of a thread in [`crate::counters`]. A row of
//! such a table is the only source of the field, its documentation, the page `docs/metrics.md`, the command's
//! output and the text for Prometheus; it is on one line, because `cargo xtask tidy` reads it.

use std::sync::atomic::{AtomicU64, Ordering};

/// How a metric changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetricKind {
    /// Only grows while the database is open.
    Counter,
    /// Goes up and down.
    Gauge,
    /// A distribution of values.
    Histogram,
}

impl MetricKind {
    /// The kind as one word.
    ///
    /// ```
    /// # use terrane_base::metrics::MetricKind;
    /// assert_eq!(MetricKind::Gauge.as_str(), "gauge"); // as in the text for Prometheus
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        }
    }
}

/// The object that a metric describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetricScope {
    /// A whole database.
    Database,
    /// One table of it.
    Table,
    /// The reads of one thread, over all databases.
    Thread,
}

/// One row of the tables of metrics.
///
/// ```
/// # use terrane_base::counters;
/// // The page of metrics is made of these rows.
/// for metric in counters::METRICS {
///     println!("| {} | {} | {} | {} |", metric.name, metric.kind.as_str(), metric.unit, metric.about);
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// Its name, which no other metric of any scope has.
    pub name: &'static str,
    /// The object that it describes.
    pub scope: MetricScope,
    /// How it changes.
    pub kind: MetricKind,
    /// The unit of the counts.
    pub unit: &'static str,
    /// One sentence.
    pub about: &'static str,
}

impl Metric {
    /// A row.
    #[must_use]
    pub const fn new(
        name: &'static str,
        scope: MetricScope,
        kind: MetricKind,
        unit: &'static str,
        about: &'static str,
    ) -> Metric {
        Metric { name, scope, kind, unit, about }
    }
}

/// Buckets of a histogram: the `n`-th has the values above 2^(n-1) up to 2^n, the last all that are larger.
pub const BUCKETS: usize = 32;

/// A distribution of numbers in buckets whose bounds double. Any thread may add to it.
///
/// ```
/// # use terrane_base::metrics::Histogram;
/// let sizes = Histogram::default();
/// for value in ["ada", "grace", "barbara"] {
///     sizes.observe(value.len() as u64);
/// }
/// let snapshot = sizes.snapshot();
/// assert_eq!((snapshot.count(), snapshot.sum, snapshot.max), (3, 15, 7));
/// ```
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum: AtomicU64,
    max: AtomicU64,
}

impl Histogram {
    /// Adds a value.
    pub fn observe(&self, value: u64) {
        // Relaxed: measures, each for itself.
        self.buckets[bucket_of(value)].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
        self.max.fetch_max(value, Ordering::Relaxed);
    }

    /// The values added so far. Concurrent additions may be visible in one part of the snapshot and not in
    /// another.
    #[must_use]
    pub fn snapshot(&self) -> HistogramSnapshot {
        HistogramSnapshot {
            buckets: std::array::from_fn(|at| self.buckets[at].load(Ordering::Relaxed)),
            sum: self.sum.load(Ordering::Relaxed),
            max: self.max.load(Ordering::Relaxed),
        }
    }
}

fn bucket_of(value: u64) -> usize {
    let bits = u64::BITS - value.saturating_sub(1).leading_zeros();
    (bits as usize).min(BUCKETS - 1)
}

/// The content of a [`Histogram`] at one time.
///
/// ```
/// # use terrane_base::metrics::{Histogram, HistogramSnapshot};
/// # let micros = Histogram::default();
/// # (1..=100).for_each(|value| micros.observe(value));
/// let snapshot = micros.snapshot();
/// println!("half of {} took {} us at most", snapshot.count(), snapshot.quantile(500));
/// for (bucket, count) in snapshot.buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
///     match HistogramSnapshot::bound(bucket) {
///         Some(bound) => println!("{count} took {bound} us at most"),
///         None => println!("{count} took longer"),
///     }
/// }
/// # assert_eq!((snapshot.count(), snapshot.quantile(500)), (100, 64));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistogramSnapshot {
    /// How many values each bucket has; see [`HistogramSnapshot::bound`].
    pub buckets: [u64; BUCKETS],
    /// All values added up.
    pub sum: u64,
    /// The greatest value; 0 without any.
    pub max: u64,
}

impl HistogramSnapshot {
    /// The greatest value that a bucket takes; `None` is any.
    #[must_use]
    pub fn bound(bucket: usize) -> Option<u64> {
        (bucket < BUCKETS - 1).then(|| 1 << bucket)
    }

    /// How many values there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// A value that so many of a thousand values do not exceed, up to the width of a bucket: at most twice
    /// too large.
    #[must_use]
    pub fn quantile(&self, permille: u64) -> u64 {
        let wanted = (self.count() * permille.min(1000)).div_ceil(1000);
        let mut seen = 0;
        for (at, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Self::bound(at).map_or(self.max, |bound| bound.min(self.max));
            }
        }
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_within_the_bounds_of_its_bucket() {
        for value in (0..200).chain([1 << 20, (1 << 20) + 1, 1 << 30, (1 << 30) + 1, u64::MAX]) {
            let bucket = bucket_of(value);
            assert!(HistogramSnapshot::bound(bucket).is_none_or(|bound| value <= bound), "{value}");
            assert!(bucket == 0 || value > 1 << (bucket - 1), "{value} in {bucket}");
        }
    }

    #[test]
    fn a_histogram_tells_count_sum_and_quantiles() {
        let histogram = Histogram::default();
        assert_eq!(histogram.snapshot().quantile(990), 0);
        (1..=100).for_each(|value| histogram.observe(value));
        let all = histogram.snapshot();
        assert_eq!((all.count(), all.sum, all.max), (100, 5050, 100));
        assert_eq!((all.quantile(500), all.quantile(1000)), (64, 100));
    }
}
