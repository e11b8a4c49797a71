//! The page of metrics that a writer shares with other processes: `docs/format/metrics-page.md`.
//!
//! * [`MetricsPage`]: what a page says. [`MetricsPage::encode`] and [`MetricsPage::decode`] are inverse:
//!   there is one encoding of each page.
//! * The page is written over in place while others read it: a reader that finds a wrong checksum reads it
//!   again.
//!
//! Names of metrics are part of each page, so a reader of another version shows what it knows.

mod decode;
mod describe;
mod encode;

pub use describe::describe;

use crate::manifest::DatabaseId;

/// First bytes of a page.
pub const MAGIC: [u8; 8] = *b"terrpage";
/// The format version that this code writes, and the newest it reads.
pub const VERSION: u32 = 1;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 80;
/// Most bytes of a page, header included.
pub const PAGE_BYTES_MAX: usize = 64 << 10;
/// Most bytes of a string; a longer one is cut between two characters.
pub const STRING_BYTES_MAX: usize = 255;

/// Where the checksum lies.
const CHECKSUM_AT: usize = 16;
/// The checksum begins with this value, so that no other structure passes for a page.
const SEED: u32 = 0x7e44_a127;

/// All that a page says.
///
/// ```
/// # use terrane_format::metrics_page::MetricsPage;
/// /// Shows a database that another process has open, as `terrane top` does.
/// fn show(page: &MetricsPage) {
///     println!("process {}: {:?} bytes of memory", page.process, page.metric("memory_bytes"));
///     for table in &page.tables {
///         let runs = page.table_metric(table, "table_sorted_runs");
///         println!("{}: {runs:?} sorted runs, {} levels", table.name, table.levels.len());
///     }
///     if let Some(flushes) = page.histogram("flush_micros") {
///         println!("the longest flush took {} us", flushes.max);
///     }
/// }
/// let page = MetricsPage { process: 7, ..MetricsPage::default() };
/// show(&page);
/// assert_eq!(MetricsPage::decode(&page.encode())?, page);
/// # Ok::<(), terrane_base::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricsPage {
    /// The database.
    pub database: DatabaseId,
    /// The process that writes it.
    pub process: u32,
    /// Time between two pages, in milliseconds.
    pub interval_ms: u32,
    /// Number of the page since the opening, from 1.
    pub number: u64,
    /// Time since the opening, in microseconds.
    pub open_micros: u64,
    /// Wall time of the page, in microseconds since the beginning of 1970.
    pub written_micros: u64,
    /// Tables of the database; the page has the largest.
    pub table_count: u32,
    /// Readers that pin a moment; the page has the oldest.
    pub reader_count: u32,
    /// Counters and gauges of the database.
    pub metrics: Vec<PageMetric>,
    /// Distributions of the database.
    pub histograms: Vec<PageHistogram>,
    /// Names of the numbers of each table.
    pub table_metrics: Vec<String>,
    /// Tables, those with the most bytes first.
    pub tables: Vec<PageTable>,
    /// Jobs of the background that run.
    pub jobs: Vec<PageJob>,
    /// Readers that pin a moment, oldest first.
    pub readers: Vec<PageReader>,
}

/// A number of the database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageMetric {
    /// Its name, as in `docs/metrics.md`.
    pub name: String,
    /// True if it only grows while the database is open.
    pub is_counter: bool,
    /// Its value.
    pub value: u64,
}

/// A distribution, in buckets whose bounds double.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageHistogram {
    /// Its name.
    pub name: String,
    /// All values added up.
    pub sum: u64,
    /// The greatest value.
    pub max: u64,
    /// How many values each bucket has: the `n`-th has those above 2^(n-1) up to 2^n.
    pub buckets: Vec<u64>,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageTable {
    /// Its name.
    pub name: String,
    /// Its numbers, one for each of [`MetricsPage::table_metrics`].
    pub values: Vec<u64>,
    /// Overflow runs, newest first.
    pub runs: Vec<PageLevel>,
    /// Levels from 1 down.
    pub levels: Vec<PageLevel>,
}

/// One sorted run of extents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageLevel {
    /// Extents.
    pub extents: u64,
    /// Stored bytes.
    pub bytes: u64,
    /// Versions.
    pub entries: u64,
}

/// A job of the background that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageJob {
    /// Its work, in one word.
    pub kind: String,
    /// The table it works on; empty if none.
    pub table: String,
    /// Time since it began, in microseconds.
    pub age_micros: u64,
    /// Bytes that it has read.
    pub bytes_read: u64,
    /// Bytes that it has written.
    pub bytes_written: u64,
}

/// A reader that pins a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageReader {
    /// `snapshot`, `scan` or `transaction`.
    pub kind: String,
    /// The name that its maker gave it; may be empty.
    pub label: String,
    /// The call that made it.
    pub place: String,
    /// Its age in microseconds.
    pub age_micros: u64,
    /// It sees every record up to this number.
    pub seq: u64,
    /// Records that were committed since.
    pub records_since: u64,
    /// Stored bytes of extents that only it keeps.
    pub extent_bytes: u64,
    /// Bytes in memory that only it keeps.
    pub memory_bytes: u64,
    /// True if it is older than the database allows: its reads fail.
    pub is_expired: bool,
}

impl MetricsPage {
    /// A number of the database, if the page has it.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<u64> {
        self.metrics.iter().find(|metric| metric.name == name).map(|metric| metric.value)
    }

    /// A distribution of the database, if the page has it.
    #[must_use]
    pub fn histogram(&self, name: &str) -> Option<&PageHistogram> {
        self.histograms.iter().find(|histogram| histogram.name == name)
    }

    /// A number of a table, if the page has it.
    #[must_use]
    pub fn table_metric(&self, table: &PageTable, name: &str) -> Option<u64> {
        let at = self.table_metrics.iter().position(|metric| metric == name)?;
        table.values.get(at).copied()
    }
}

/// The checksum of a page without the four bytes where it lies itself.
fn checksum(page: &[u8]) -> u32 {
    let head = crate::checksum::crc32c(SEED, &page[..CHECKSUM_AT]);
    crate::checksum::crc32c(head, &page[CHECKSUM_AT + 4..])
}

/// Writes the right checksum into a page: for tests that change its bytes.
///
/// # Panics
/// If the page is shorter than a header.
pub fn seal(page: &mut [u8]) {
    let checksum = checksum(page);
    page[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&checksum.to_le_bytes());
}
