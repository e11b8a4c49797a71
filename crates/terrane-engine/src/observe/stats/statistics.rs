//! All metrics of a database and of its tables at a moment, by name.

use terrane_base::counters;
use terrane_base::metrics::{HistogramSnapshot, Metric};

use crate::observe::stats::{HISTOGRAMS, NUMBERS, TableStats};

/// The value of a metric.
///
/// ```
/// # use terrane_engine::MetricValue;
/// fn show(value: &MetricValue) -> String {
///     match value {
///         MetricValue::Number(number) => number.to_string(),
///         MetricValue::Histogram(all) => format!("half of {} up to {}", all.count(), all.quantile(500)),
///     }
/// }
/// # assert_eq!(show(&MetricValue::Number(7)), "7");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetricValue {
    /// Of a counter or a gauge.
    Number(u64),
    /// Of a histogram.
    Histogram(Box<HistogramSnapshot>),
}

impl MetricValue {
    /// The number of a counter or a gauge; how many values a histogram has.
    ///
    /// ```
    /// # use terrane_engine::MetricValue;
    /// assert_eq!(MetricValue::Number(7).number(), 7);
    /// ```
    #[must_use]
    pub fn number(&self) -> u64 {
        match self {
            MetricValue::Number(number) => *number,
            MetricValue::Histogram(histogram) => histogram.count(),
        }
    }
}

/// One metric and what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The row of the table of metrics.
    pub metric: &'static Metric,
    /// Its value.
    pub value: MetricValue,
}

/// The metrics of one table.
///
/// ```
/// # use terrane_engine::TableStatistics;
/// fn show(table: &TableStatistics) {
///     for sample in &table.samples {
///         println!("{}.{} = {}", table.name, sample.metric.name, sample.value.number());
///     }
///     if let Some(runs) = table.get("table_sorted_runs") {
///         println!("a read searches up to {} sorted runs", runs.number());
///     }
/// }
/// # show(&TableStatistics { name: String::new(), samples: Vec::new() });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableStatistics {
    /// Name of the table; one that begins with `terrane:` is the engine's own.
    pub name: String,
    /// Each metric, in the order of the table of metrics.
    pub samples: Vec<Sample>,
}

impl TableStatistics {
    /// The value of the metric of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<MetricValue> {
        find(&self.samples, name)
    }
}

/// The metrics of a database and of each of its tables. What changes while they are read may show in one and
/// not yet in another.
///
/// ```
/// # use terrane_engine::Statistics;
/// fn show(statistics: &Statistics) {
///     if let Some(bytes) = statistics.get("memory_bytes") {
///         println!("{} bytes of memory", bytes.number());
///     }
///     if let Some(users) = statistics.table("users") {
///         println!("users has {} metrics", users.samples.len());
///     }
///     for (table, sample) in statistics.iter() {
///         println!("{table:?} {} {:?}", sample.metric.name, sample.value);
///     }
///     println!("{}", statistics.to_prometheus()); // what a scrape gets
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Each metric of the database, in the order of the table of metrics.
    pub samples: Vec<Sample>,
    /// Those of each table, in order of creation.
    pub tables: Vec<TableStatistics>,
}

impl Statistics {
    /// The value of the metric of this name for the whole database.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<MetricValue> {
        find(&self.samples, name)
    }

    /// The metrics of one table.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&TableStatistics> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// Every metric: the name of its table, `None` for one of the whole database, and what it said.
    pub fn iter(&self) -> impl Iterator<Item = (Option<&str>, &Sample)> {
        let of_tables = self
            .tables
            .iter()
            .flat_map(|table| table.samples.iter().map(move |sample| (Some(&*table.name), sample)));
        self.samples.iter().map(|sample| (None, sample)).chain(of_tables)
    }
}

fn find(samples: &[Sample], name: &str) -> Option<MetricValue> {
    samples.iter().find(|sample| sample.metric.name == name).map(|sample| sample.value.clone())
}

/// Every metric that there is: of a database, of a table, and of a thread.
///
/// ```
/// for metric in terrane_engine::metrics() {
///     println!("{} ({}): {}", metric.name, metric.unit, metric.about);
/// }
/// # assert!(terrane_engine::metrics().any(|metric| metric.name == "memory_bytes"));
/// ```
pub fn metrics() -> impl Iterator<Item = &'static Metric> {
    NUMBERS.iter().chain(HISTOGRAMS).chain(TableStats::METRICS).chain(counters::METRICS)
}

/// A sample of each of these metrics.
pub(crate) fn numbers(metrics: &'static [Metric], values: Vec<u64>) -> impl Iterator<Item = Sample> {
    metrics.iter().zip(values).map(|(metric, value)| Sample { metric, value: MetricValue::Number(value) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_metric_is_in_two_lists() {
        let mut names = BTreeSet::new();
        for metric in metrics() {
            assert!(names.insert(metric.name), "{} is there twice", metric.name);
            assert!(metric.about.ends_with('.'), "{}: no sentence", metric.name);
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(metric.name.chars().all(is_plain), "{}", metric.name);
            assert_eq!(metric.unit == "microseconds", metric.name.contains("_micros"), "{}", metric.name);
        }
    }
}
