//! Makes a page of metrics of an open database: its numbers, distributions, tables and readers. The caller
//! names the jobs of the background.
//!
//! A page is made once in a second or so and is small. It takes as long with ten thousand tables as with
//! some: what it says of all tables are sums that are kept anyway (`table/sums.rs`), and only the largest
//! tables and the oldest readers are looked at.

use std::time::Duration;

use terrane_base::metrics::MetricKind;
use terrane_base::sync::atomic::Ordering;
use terrane_format::metrics_page::{
    MetricsPage, PageHistogram, PageJob, PageLevel, PageMetric, PageReader, PageTable,
};
use terrane_levels::Level;

use crate::observe::stats::{HISTOGRAMS, NUMBERS, Stats, TableStats};
use crate::read::Reader;
use crate::read::snapshots::LiveReader;
use crate::shared::Shared;
use crate::table::Table;
use crate::table::catalog::name_of;

/// Most tables of a page.
const PAGE_TABLES_MAX: usize = 32;
/// Most readers of a page.
const PAGE_READERS_MAX: usize = 16;

/// Numbers of a table that are not metrics of their own: reads and seeks by samples.
const SAMPLED: [&str; 2] = ["reads", "seeks"];

impl Shared {
    /// The page with these numbers and jobs. The caller adds which page it is.
    pub(crate) fn metrics_page(&self, stats: &Stats, jobs: Vec<PageJob>) -> MetricsPage {
        let largest = self.catalog.largest(PAGE_TABLES_MAX);
        let readers = self.oldest_readers(PAGE_READERS_MAX);
        let mut metrics: Vec<_> = NUMBERS
            .iter()
            .zip(stats.rows())
            .map(|(metric, (name, _, value, _))| {
                debug_assert_eq!(metric.name, name, "rows are in the order of the table of metrics");
                number(name, metric.kind == MetricKind::Counter, value)
            })
            .collect();
        if Reader::of(self).samples() {
            let sums = SAMPLED.iter().zip(self.catalog.sums().sampled());
            metrics.extend(sums.map(|(name, value)| number(name, true, value)));
        }
        let distributions = HISTOGRAMS.iter().zip(self.histograms.snapshots());
        MetricsPage {
            database: self.manifest.state().database,
            process: std::process::id(),
            interval_ms: self.options.diagnostics.metrics_page_ms as u32,
            written_micros: self.env.clock.wall().as_micros() as u64,
            table_count: self.catalog.len() as u32,
            reader_count: stats.readers_live as u32,
            metrics,
            histograms: distributions
                .map(|(metric, values)| PageHistogram {
                    name: metric.name.to_owned(),
                    sum: values.sum,
                    max: values.max,
                    buckets: values.buckets.to_vec(),
                })
                .collect(),
            table_metrics: TableStats::METRICS
                .iter()
                .map(|metric| metric.name.to_owned())
                .chain(SAMPLED.map(str::to_owned))
                .collect(),
            tables: largest.iter().map(|table| page_table(table)).collect(),
            jobs,
            readers: readers.into_iter().map(page_reader).collect(),
            ..MetricsPage::default()
        }
    }

    /// A job of the background for a page.
    pub(crate) fn page_job(
        &self,
        kind: &str,
        table: Option<terrane_base::TableId>,
        age: Duration,
        (bytes_read, bytes_written): (u64, u64),
    ) -> PageJob {
        let table = table.and_then(|id| name_of(&self.catalog, id)).unwrap_or_default();
        let (kind, age_micros) = (kind.to_owned(), age.as_micros() as u64);
        PageJob { kind, table, age_micros, bytes_read, bytes_written }
    }
}

fn number(name: &str, is_counter: bool, value: u64) -> PageMetric {
    PageMetric { name: name.to_owned(), is_counter, value }
}

// Relaxed, as below: counts, each for itself.
fn reads_of(table: &Table) -> u64 {
    table.load.reads.load(Ordering::Relaxed)
}

fn seeks_of(table: &Table) -> u64 {
    table.load.seeks.load(Ordering::Relaxed)
}

fn page_table(table: &Table) -> PageTable {
    let mut values = table.stats().values();
    values.extend([reads_of(table), seeks_of(table)]);
    let view = table.pinned();
    PageTable {
        name: table.name.clone(),
        values,
        runs: view.tree.runs.iter().map(|run| page_level(&run.level)).collect(),
        levels: view.tree.levels.iter().map(|level| page_level(level)).collect(),
    }
}

fn page_level(level: &Level) -> PageLevel {
    let totals = level.totals();
    PageLevel { extents: level.len() as u64, bytes: totals.bytes, entries: totals.entries }
}

fn page_reader(reader: LiveReader) -> PageReader {
    let place = reader.origin.place;
    PageReader {
        kind: reader.origin.kind.as_str().to_owned(),
        label: reader.origin.label.unwrap_or_default(),
        place: format!("{}:{}:{}", place.file(), place.line(), place.column()),
        age_micros: reader.age.as_micros() as u64,
        seq: reader.seq.0,
        records_since: reader.records_since,
        extent_bytes: reader.extent_bytes,
        memory_bytes: reader.memory_bytes,
        is_expired: reader.is_expired,
    }
}
