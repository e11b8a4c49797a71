//! Distributions, and what of one is shown to C callers.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane::{Histogram, HistogramSnapshot};

/// A distribution with its least and greatest value, in thousandths of the unit of its values.
#[derive(Debug)]
pub(crate) struct Distribution {
    values: Histogram,
    least: AtomicU64,
    /// The bits of the sum of all squares, an `f64`.
    squares: AtomicU64,
}

impl Default for Distribution {
    fn default() -> Self {
        Distribution {
            values: Histogram::default(),
            least: AtomicU64::new(u64::MAX),
            squares: AtomicU64::default(),
        }
    }
}

impl Distribution {
    pub(crate) fn observe(&self, value: u64) {
        // Relaxed: measures, each for itself.
        self.values.observe(value);
        self.least.fetch_min(value, Ordering::Relaxed);
        let square = (value as f64) * (value as f64);
        let add = |bits| Some((f64::from_bits(bits) + square).to_bits());
        let _ = self.squares.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    pub(crate) fn data(&self) -> HistogramData {
        let snapshot = self.values.snapshot();
        let mut data = HistogramData::of(&snapshot, 1000.0);
        if data.count > 0 {
            let count = data.count as f64;
            let (sum, squares) = (snapshot.sum as f64, f64::from_bits(self.squares.load(Ordering::Relaxed)));
            let variance = (squares / count - (sum / count) * (sum / count)).max(0.0);
            data.std_dev = variance.sqrt() / 1000.0;
            data.min = self.least.load(Ordering::Relaxed) as f64 / 1000.0;
        }
        data
    }
}

/// The values of a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct HistogramData {
    median: f64,
    p95: f64,
    p99: f64,
    average: f64,
    std_dev: f64,
    max: f64,
    count: u64,
    sum: u64,
    min: f64,
}

impl HistogramData {
    /// The numbers of a snapshot, each divided by `unit`.
    pub(crate) fn of(snapshot: &HistogramSnapshot, unit: f64) -> HistogramData {
        let count = snapshot.count();
        if count == 0 {
            return HistogramData::default();
        }
        let quantile = |permille| snapshot.quantile(permille) as f64 / unit;
        HistogramData {
            median: quantile(500),
            p95: quantile(950),
            p99: quantile(990),
            average: snapshot.sum as f64 / unit / count as f64,
            max: snapshot.max as f64 / unit,
            count,
            sum: (snapshot.sum as f64 / unit).ceil() as u64,
            ..HistogramData::default()
        }
    }
}

/// As a line of RocksDB's statistics, behind the name.
impl fmt::Display for HistogramData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HistogramData { median, p95, p99, max, count, sum, .. } = self;
        write!(
            f,
            "P50 : {median:.6} P95 : {p95:.6} P99 : {p99:.6} P100 : {max:.6} COUNT : {count} SUM : {sum}"
        )
    }
}

export! {
    fn rocksdb_statistics_histogram_data_create() -> Option<Box<HistogramData>> {
        Some(Box::default())
    }

    fn rocksdb_statistics_histogram_data_destroy(data: Option<Box<HistogramData>>) {
        drop(data);
    }

    fn rocksdb_statistics_histogram_data_get_median(data: Option<&HistogramData>) -> f64 {
        data.map_or(0.0, |data| data.median)
    }

    fn rocksdb_statistics_histogram_data_get_p95(data: Option<&HistogramData>) -> f64 {
        data.map_or(0.0, |data| data.p95)
    }

    fn rocksdb_statistics_histogram_data_get_p99(data: Option<&HistogramData>) -> f64 {
        data.map_or(0.0, |data| data.p99)
    }

    fn rocksdb_statistics_histogram_data_get_average(data: Option<&HistogramData>) -> f64 {
        data.map_or(0.0, |data| data.average)
    }

    fn rocksdb_statistics_histogram_data_get_std_dev(data: Option<&HistogramData>) -> f64 {
        data.map_or(0.0, |data| data.std_dev)
    }

    fn rocksdb_statistics_histogram_data_get_max(data: Option<&HistogramData>) -> f64 {
        data.map_or(0.0, |data| data.max)
    }

    fn rocksdb_statistics_histogram_data_get_count(data: Option<&HistogramData>) -> u64 {
        data.map_or(0, |data| data.count)
    }

    fn rocksdb_statistics_histogram_data_get_sum(data: Option<&HistogramData>) -> u64 {
        data.map_or(0, |data| data.sum)
    }

    fn rocksdb_statistics_histogram_data_get_min(data: Option<&HistogramData>) -> f64 {
        data.map_or(0.0, |data| data.min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_has_its_moments() {
        let distribution = Distribution::default();
        assert_eq!(distribution.data(), HistogramData::default());
        for value in [1000, 3000] {
            distribution.observe(value);
        }
        let data = distribution.data();
        assert_eq!((data.count, data.sum, data.min, data.max), (2, 4, 1.0, 3.0));
        assert_eq!((data.average, data.std_dev), (2.0, 1.0));
        assert!(data.median >= 1.0 && data.median <= data.p95 && data.p95 <= data.p99);
    }
}
