//! Statistics: what RocksDB's tickers and histograms count, as far as it has a counterpart. They belong to
//! options, and count over all databases that were opened with them; what a database counted stays when it is
//! closed.
//!
//! The engine is asked for its own counters ([`TICKERS`] with a metric, [`HISTOGRAMS`] with one). Counters of
//! calls ([`Calls`]) are counted in the exported functions, and only where there are statistics.

use std::collections::BTreeMap;
use std::ffi::c_char;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use terrane::{Db, HistogramSnapshot, MetricValue, ReadCounters, read_counters};

use crate::ffi::types::lasting_text;
use crate::options::database::Options;
use crate::options::objects::histogram::{Distribution, HistogramData};

/// Where the number of a ticker comes from.
#[derive(Clone, Copy)]
enum From {
    Metric(&'static str),
    Calls(fn(&Calls) -> &AtomicU64),
}

/// Tickers: RocksDB's number and name, and where it comes from.
const TICKERS: [(u32, &str, From); 27] = [
    (0, "rocksdb.block.cache.miss", From::Metric("cache_misses")),
    (1, "rocksdb.block.cache.hit", From::Calls(|calls| &calls.block_hits)),
    (35, "rocksdb.bloom.filter.useful", From::Calls(|calls| &calls.filters_useful)),
    (36, "rocksdb.bloom.filter.full.positive", From::Calls(|calls| &calls.filters_positive)),
    (37, "rocksdb.bloom.filter.full.true.positive", From::Calls(|calls| &calls.filters_true_positive)),
    (38, "rocksdb.bloom.filter.prefix.checked", From::Calls(|calls| &calls.prefixes_checked)),
    (39, "rocksdb.bloom.filter.prefix.useful", From::Calls(|calls| &calls.prefixes_useful)),
    (40, "rocksdb.bloom.filter.prefix.true.positive", From::Calls(|calls| &calls.prefixes_true_positive)),
    (58, "rocksdb.number.keys.written", From::Metric("records_written")),
    (59, "rocksdb.number.keys.read", From::Calls(|calls| &calls.keys_read)),
    (61, "rocksdb.bytes.written", From::Metric("bytes_written")),
    (62, "rocksdb.bytes.read", From::Calls(|calls| &calls.bytes_read)),
    (63, "rocksdb.number.db.seek", From::Calls(|calls| &calls.seeks)),
    (64, "rocksdb.number.db.next", From::Calls(|calls| &calls.nexts)),
    (65, "rocksdb.number.db.prev", From::Calls(|calls| &calls.prevs)),
    (70, "rocksdb.number.iter.skip", From::Calls(|calls| &calls.versions_skipped)),
    (76, "rocksdb.stall.micros", From::Metric("writes_paused_micros")),
    (78, "rocksdb.number.multiget.get", From::Calls(|calls| &calls.multi_gets)),
    (79, "rocksdb.number.multiget.keys.read", From::Calls(|calls| &calls.multi_get_keys)),
    (81, "rocksdb.number.multiget.keys.found", From::Calls(|calls| &calls.multi_get_found)),
    (84, "rocksdb.wal.synced", From::Metric("device_journal_syncs")),
    (85, "rocksdb.wal.bytes", From::Metric("device_journal_bytes_written")),
    (93, "rocksdb.write.wal", From::Metric("batches_written")),
    (94, "rocksdb.compact.read.bytes", From::Metric("compaction_bytes_read")),
    (95, "rocksdb.compact.write.bytes", From::Metric("compaction_bytes_written")),
    (96, "rocksdb.flush.write.bytes", From::Metric("flush_bytes_written")),
    (177, "rocksdb.error.handler.bg.error.count", From::Metric("background_errors")),
];

/// Histograms: RocksDB's number and name, and where they come from.
const HISTOGRAMS: [(u32, &str, FromHistogram); 8] = [
    (0, "rocksdb.db.get.micros", FromHistogram::Calls(|calls| &calls.get)),
    (1, "rocksdb.db.write.micros", FromHistogram::Calls(|calls| &calls.write)),
    (2, "rocksdb.compaction.times.micros", FromHistogram::Metric("compaction_micros")),
    (10, "rocksdb.db.multiget.micros", FromHistogram::Calls(|calls| &calls.multi_get)),
    (15, "rocksdb.db.seek.micros", FromHistogram::Calls(|calls| &calls.seek)),
    (16, "rocksdb.db.write.stall", FromHistogram::Metric("write_wait_micros")),
    (31, "rocksdb.bytes.per.read", FromHistogram::Calls(|calls| &calls.value)),
    (50, "rocksdb.db.flush.micros", FromHistogram::Metric("flush_micros")),
];

/// Where a histogram comes from.
#[derive(Clone, Copy)]
enum FromHistogram {
    Metric(&'static str),
    Calls(fn(&Calls) -> &Distribution),
}

/// Counted in the exported functions.
#[derive(Debug, Default)]
struct Calls {
    keys_read: AtomicU64,
    bytes_read: AtomicU64,
    seeks: AtomicU64,
    nexts: AtomicU64,
    prevs: AtomicU64,
    multi_gets: AtomicU64,
    multi_get_keys: AtomicU64,
    multi_get_found: AtomicU64,
    block_hits: AtomicU64,
    filters_useful: AtomicU64,
    filters_positive: AtomicU64,
    filters_true_positive: AtomicU64,
    prefixes_checked: AtomicU64,
    prefixes_useful: AtomicU64,
    prefixes_true_positive: AtomicU64,
    versions_skipped: AtomicU64,
    get: Distribution,
    write: Distribution,
    multi_get: Distribution,
    seek: Distribution,
    value: Distribution,
}

/// Databases that are counted, and what those had that are closed.
#[derive(Debug, Default)]
struct Sources {
    /// With the address of the handle of each.
    open: Vec<(usize, Db)>,
    numbers: BTreeMap<&'static str, u64>,
    histograms: BTreeMap<&'static str, HistogramSnapshot>,
}

/// Statistics of the databases that were opened with them.
#[derive(Debug, Default)]
pub(crate) struct Statistics {
    calls: Calls,
    sources: Mutex<Sources>,
}

fn add(to: &mut HistogramSnapshot, more: &HistogramSnapshot) {
    to.buckets.iter_mut().zip(more.buckets).for_each(|(bucket, more)| *bucket += more);
    to.sum += more.sum;
    to.max = to.max.max(more.max);
}

impl Sources {
    fn number(&self, metric: &'static str) -> u64 {
        let open = self.open.iter().filter_map(|(_, db)| Some(db.statistics().get(metric)?.number()));
        self.numbers.get(metric).copied().unwrap_or(0) + open.sum::<u64>()
    }

    fn histogram(&self, metric: &'static str) -> HistogramSnapshot {
        let mut sum = self.histograms.get(metric).copied().unwrap_or_default();
        for (_, db) in &self.open {
            if let Some(MetricValue::Histogram(more)) = db.statistics().get(metric) {
                add(&mut sum, &more);
            }
        }
        sum
    }
}

impl Statistics {
    fn sources(&self) -> std::sync::MutexGuard<'_, Sources> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what this database counts.
    pub(crate) fn add(&self, handle: usize, db: &Db) {
        self.sources().open.push((handle, db.clone()));
    }

    /// Keeps what a database has counted that is about to be closed, and lets go of it.
    pub(crate) fn keep_counts(&self, handle: usize) {
        let mut sources = self.sources();
        let Some(at) = sources.open.iter().position(|(known, _)| *known == handle) else { return };
        let statistics = sources.open.swap_remove(at).1.statistics();
        for (_, _, from) in TICKERS {
            if let From::Metric(metric) = from {
                let number = statistics.get(metric).map_or(0, |value| value.number());
                *sources.numbers.entry(metric).or_default() += number;
            }
        }
        for (_, _, from) in HISTOGRAMS {
            if let FromHistogram::Metric(metric) = from
                && let Some(MetricValue::Histogram(more)) = statistics.get(metric)
            {
                add(sources.histograms.entry(metric).or_default(), &more);
            }
        }
    }

    fn number(&self, from: From) -> u64 {
        match from {
            From::Metric(metric) => self.sources().number(metric),
            From::Calls(counter) => counter(&self.calls).load(Ordering::Relaxed),
        }
    }

    fn histogram(&self, from: FromHistogram) -> HistogramData {
        match from {
            FromHistogram::Metric(metric) => HistogramData::of(&self.sources().histogram(metric), 1.0),
            FromHistogram::Calls(distribution) => distribution(&self.calls).data(),
        }
    }

    /// All that is counted, a line each.
    fn text(&self) -> String {
        let mut text = String::new();
        for (_, name, from) in TICKERS {
            let _ = writeln!(text, "{name} COUNT : {}", self.number(from));
        }
        for (_, name, from) in HISTOGRAMS {
            let _ = writeln!(text, "{name} {}", self.histogram(from));
        }
        text
    }

    /// Counts what a call of this thread searched since `before`: blocks that it found in the cache, answers
    /// of filters, versions that it passed.
    pub(crate) fn searched(&self, before: ReadCounters) {
        let read = read_counters() - before;
        let blocks = read.index_blocks_searched + read.data_blocks_searched + read.filter_probes;
        let positive = read.filter_probes.saturating_sub(read.filter_negatives);
        let prefix_positive = read.prefix_probes.saturating_sub(read.prefix_negatives);
        let calls = &self.calls;
        for (counter, more) in [
            (&calls.block_hits, blocks.saturating_sub(read.blocks_missed)),
            (&calls.filters_useful, read.filter_negatives),
            (&calls.filters_positive, positive),
            (&calls.filters_true_positive, positive.saturating_sub(read.filter_positives_false)),
            (&calls.prefixes_checked, read.prefix_probes),
            (&calls.prefixes_useful, read.prefix_negatives),
            (&calls.prefixes_true_positive, prefix_positive.saturating_sub(read.prefix_positives_false)),
            (&calls.versions_skipped, read.versions_skipped),
        ] {
            if more > 0 {
                counter.fetch_add(more, Ordering::Relaxed);
            }
        }
    }

    /// A read of one key took so long; `bytes` if it was found.
    pub(crate) fn read(&self, took: Duration, bytes: Option<usize>) {
        self.calls.get.observe(nanos(took));
        self.calls.keys_read.fetch_add(1, Ordering::Relaxed);
        if let Some(bytes) = bytes {
            self.calls.bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
            self.calls.value.observe((bytes as u64).saturating_mul(1000));
        }
    }

    /// A read of several keys took so long.
    pub(crate) fn multi_get(&self, took: Duration, keys: usize, found: usize) {
        self.calls.multi_get.observe(nanos(took));
        self.calls.multi_gets.fetch_add(1, Ordering::Relaxed);
        self.calls.multi_get_keys.fetch_add(keys as u64, Ordering::Relaxed);
        self.calls.multi_get_found.fetch_add(found as u64, Ordering::Relaxed);
    }

    /// A write took so long.
    pub(crate) fn wrote(&self, took: Duration) {
        self.calls.write.observe(nanos(took));
    }

    /// A placement of an iterator took so long.
    pub(crate) fn sought(&self, took: Duration) {
        self.calls.seek.observe(nanos(took));
        self.calls.seeks.fetch_add(1, Ordering::Relaxed);
    }

    /// An iterator took a step.
    pub(crate) fn stepped(&self, is_forward: bool) {
        let counter = if is_forward { &self.calls.nexts } else { &self.calls.prevs };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// RocksDB's level of statistics where none was set.
const EXCEPT_DETAILED_TIMERS: std::ffi::c_int = 3;

/// The clock by which calls are measured, in a moment that only differences mean something of.
pub(crate) fn moment() -> Duration {
    // One for all: each clock counts from the moment when it was made.
    static CLOCK: OnceLock<terrane::Env> = OnceLock::new();
    CLOCK.get_or_init(terrane::Env::real).clock.now()
}

/// At least one: a call takes some time, however coarse the clock is.
fn nanos(took: Duration) -> u64 {
    u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(1)
}

fn statistics(options: Option<&Options>) -> Option<&Statistics> {
    options?.statistics.as_deref()
}

export! {
    fn rocksdb_options_enable_statistics(options: Option<&mut Options>) {
        if let Some(options) = options {
            options.statistics = Some(std::sync::Arc::default());
            // The level of new statistics, as in RocksDB.
            options.fields.statistics_level = EXCEPT_DETAILED_TIMERS;
        }
    }

    fn rocksdb_options_statistics_get_string(options: Option<&Options>) -> *mut c_char {
        statistics(options).map_or(std::ptr::null_mut(), |statistics| lasting_text(&statistics.text()))
    }

    fn rocksdb_options_statistics_get_ticker_count(options: Option<&Options>, ticker: u32) -> u64 {
        let found = TICKERS.iter().find(|(number, ..)| *number == ticker);
        statistics(options).zip(found).map_or(0, |(statistics, (.., from))| statistics.number(*from))
    }

    fn rocksdb_options_statistics_get_histogram_data(
        options: Option<&Options>,
        histogram: u32,
        data: Option<&mut HistogramData>,
    ) {
        let found = HISTOGRAMS.iter().find(|(number, ..)| *number == histogram);
        if let (Some(data), Some(statistics)) = (data, statistics(options)) {
            *data = found.map(|(.., from)| statistics.histogram(*from)).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_that_is_asked_for_is_there() {
        let names: Vec<&str> = terrane::metrics().map(|metric| metric.name).collect();
        let of_tickers = TICKERS.iter().filter_map(|(.., from)| match from {
            From::Metric(metric) => Some(*metric),
            From::Calls(_) => None,
        });
        let of_histograms = HISTOGRAMS.iter().filter_map(|(.., from)| match from {
            FromHistogram::Metric(metric) => Some(*metric),
            FromHistogram::Calls(_) => None,
        });
        for metric in of_tickers.chain(of_histograms) {
            assert!(names.contains(&metric), "{metric}");
        }
    }
}
