//! Metrics that an open database shares with other processes.

use std::path::Path;

use terrane_base::Result;
use terrane_base::env::Env;
use terrane_device::PosixDisk;
use terrane_engine::{SharedMetrics, read_metrics_page};

/// The page of metrics of the database in `path` that another process, or this one, has open for writing.
///
/// A writer shares a page every second ([`metrics_page_ms`](crate::Diagnostics::metrics_page_ms)): all
/// metrics, the largest tables, running jobs and the oldest readers. Reading a young page takes no lock;
/// without a page, or with an old one, the lock of the directory is tried for an instant. Rates are the
/// differences of two pages, divided by the difference of their `open_micros`. `terrane top` shows it.
///
/// ```
/// # let dir = tempfile::tempdir().expect("temporary directory");
/// let path = dir.path().join("data");
/// terrane::Db::open(&path)?.close()?;
/// match terrane::metrics_page(&path) {
///     Ok(shared) => println!("{:?} records written", shared.page.metric("records_written")),
///     Err(error) => println!("{error}"), // no process has it open for writing
/// }
/// # assert_eq!(terrane::metrics_page(&path).unwrap_err().kind(), terrane::Kind::NotFound);
/// # Ok::<(), terrane::Error>(())
/// ```
///
/// # Errors
/// `NotFound` if there is no database, or no process has it open for writing; `Busy` if that process shares
/// no page (yet, or any more: it closes the database); `Corrupt`, `Invalid` for bytes that are not a page of
/// a known version; `Io`.
pub fn metrics_page(path: impl AsRef<Path>) -> Result<SharedMetrics> {
    read_metrics_page(&PosixDisk::new(), path.as_ref(), &Env::real())
}
