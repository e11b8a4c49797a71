//! Rates between two pages of one writer, and the latencies of operations that ended between them.

use std::time::Duration;

use terrane::{MetricsPage, PageHistogram, PageTable, SharedMetrics};
use terrane_base::metrics::HistogramSnapshot;
use terrane_base::sampling;

/// More than any bucket counts: whatever a page says, sums of buckets stay numbers.
const COUNT_MAX: u64 = 1 << 48;

/// Two pages, the later one with the state of its writer.
pub(super) struct Sample<'a> {
    pub(super) now: &'a SharedMetrics,
    /// The page before, if it is of the same opening and older.
    before: Option<&'a MetricsPage>,
}

/// Distributions of which one in [`sampling::EVERY`] values is in the page.
const SAMPLED: [&str; 2] = ["get_nanos", "commit_nanos"];

/// A distribution of what ended between two pages or, if nothing did, since the opening. Times are in the
/// unit of its name.
pub(super) struct Latency {
    /// As the page has it.
    pub(super) name: String,
    /// One in so many is measured.
    pub(super) one_in: u64,
    /// How many that were measured ended between the two pages.
    pub(super) count: u64,
    /// True if the quantiles are those since the opening.
    pub(super) is_total: bool,
    pub(super) p50: u64,
    pub(super) p99: u64,
    pub(super) p999: u64,
    /// The greatest value since the opening.
    pub(super) max: u64,
}

impl Latency {
    /// The name without its unit.
    pub(super) fn short_name(&self) -> &str {
        self.name.trim_end_matches("_micros").trim_end_matches("_nanos")
    }

    /// A value as a time.
    pub(super) fn time(&self, value: u64) -> Duration {
        if self.name.ends_with("_nanos") { Duration::from_nanos(value) } else { Duration::from_micros(value) }
    }
}

/// The identity of a page: it differs between any two pages.
pub(super) fn identity(page: &MetricsPage) -> (u32, u64, u64) {
    (page.process, page.number, page.written_micros)
}

impl<'a> Sample<'a> {
    pub(super) fn new(before: &'a SharedMetrics, now: &'a SharedMetrics) -> Sample<'a> {
        let is_same = before.page.process == now.page.process && before.page.database == now.page.database;
        let is_later = before.page.number < now.page.number && before.page.open_micros < now.page.open_micros;
        Sample { now, before: (is_same && is_later).then_some(&before.page) }
    }

    pub(super) fn page(&self) -> &'a MetricsPage {
        &self.now.page
    }

    /// Seconds between the two pages, by the clock of their writer.
    pub(super) fn seconds(&self) -> Option<f64> {
        let micros = self.now.page.open_micros - self.before?.open_micros;
        debug_assert!(micros > 0, "the page before is older: a rate is divided by the time between");
        Some(micros as f64 / 1e6)
    }

    /// A number of the database; 0 if the page does not have it.
    pub(super) fn number(&self, name: &str) -> u64 {
        self.page().metric(name).unwrap_or(0)
    }

    /// How much a counter grew in a second.
    pub(super) fn rate(&self, name: &str) -> Option<f64> {
        let grown = self.page().metric(name)?.saturating_sub(self.before?.metric(name)?);
        Some(grown as f64 / self.seconds()?)
    }

    /// The sum of such rates.
    pub(super) fn rates(&self, names: &[&str]) -> Option<f64> {
        names.iter().map(|name| self.rate(name)).sum()
    }

    /// How much a counter of a table grew in a second.
    pub(super) fn table_rate(&self, table: &PageTable, name: &str) -> Option<f64> {
        let before = self.before?;
        let earlier = before.tables.iter().find(|earlier| earlier.name == table.name)?;
        let grown =
            self.page().table_metric(table, name)?.saturating_sub(before.table_metric(earlier, name)?);
        Some(grown as f64 / self.seconds()?)
    }

    /// The distributions of times.
    pub(super) fn latencies(&self) -> Vec<Latency> {
        self.page().histograms.iter().map(|histogram| self.latency(histogram)).collect()
    }

    fn latency(&self, histogram: &PageHistogram) -> Latency {
        let earlier = self.before.and_then(|before| before.histogram(&histogram.name));
        let total = snapshot(histogram);
        let mut between = total;
        if let Some(earlier) = earlier.map(snapshot) {
            for (count, earlier) in between.buckets.iter_mut().zip(earlier.buckets) {
                *count = count.saturating_sub(earlier);
            }
        }
        let is_total = earlier.is_none() || between.count() == 0;
        let count = if earlier.is_some() { between.count() } else { 0 };
        let shown = if is_total { total } else { between };
        Latency {
            one_in: if SAMPLED.contains(&&*histogram.name) { sampling::EVERY } else { 1 },
            name: histogram.name.clone(),
            count,
            is_total,
            p50: shown.quantile(500),
            p99: shown.quantile(990),
            p999: shown.quantile(999),
            max: total.max,
        }
    }
}

/// The buckets of a page as those of this version: further ones count as the last one.
fn snapshot(histogram: &PageHistogram) -> HistogramSnapshot {
    let mut snapshot = HistogramSnapshot::default();
    (snapshot.sum, snapshot.max) = (histogram.sum, histogram.max);
    let last = snapshot.buckets.len() - 1;
    for (at, count) in histogram.buckets.iter().enumerate() {
        let bucket = &mut snapshot.buckets[at.min(last)];
        *bucket = bucket.saturating_add(*count).min(COUNT_MAX);
    }
    snapshot
}
