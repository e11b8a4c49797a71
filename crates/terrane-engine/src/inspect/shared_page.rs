//! Reading the page of metrics that another process shares. Takes no lock while the page is young; an old one
//! is explained by a look at the lock, which is let go at once.
//!
//! 1. read the file; its writer may write over it just now, so a wrong checksum is read again, some times
//! 2. the age by wall time
//! 3. where that is too long, or the page comes from the future, or there is no page: does a writer hold the
//!    lock?

use std::path::Path;
use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::{Error, Kind, Result};
use terrane_device::{Disk, OpenMode};
use terrane_format::metrics_page::{MetricsPage, PAGE_BYTES_MAX};
use terrane_levels::directory::{CURRENT, LOCK, METRICS, REMOTE};

/// How often a page is read that its writer writes over.
const ATTEMPTS_MAX: u32 = 20;
/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(2);
/// Intervals of its writer after which a page is old, and the least time: a busy machine is not a dead
/// writer.
const INTERVALS_MAX: u32 = 3;
const OLD_MIN: Duration = Duration::from_secs(2);

/// State of the process that wrote a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PageWriterState {
    /// The page is young.
    Writing,
    /// The page is old though a process has the database open: it is stopped or very busy, or its pages
    /// cannot be written.
    Silent,
    /// The page is old and no process has the database open for writing: its writer died.
    Gone,
}

/// A page of metrics, and the state of its writer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedMetrics {
    /// The page.
    pub page: MetricsPage,
    /// Its age by wall time.
    pub age: Duration,
    /// State of its writer.
    pub writer: PageWriterState,
}

/// The page of metrics that a process shares which has the database in `dir` of `disk` open for writing.
///
/// # Errors
/// `NotFound` if there is no database, or no process has it open for writing; `Busy` if that process shares
/// no page (yet, or any more: it closes the database); `Corrupt`, `Invalid` for bytes that are not a page of
/// a known version; `Io`.
pub fn read_metrics_page(disk: &dyn Disk, dir: &Path, env: &Env) -> Result<SharedMetrics> {
    let mut attempt = 1;
    let page = loop {
        match read(disk, dir) {
            Err(error) if error.kind() == Kind::Corrupt && attempt < ATTEMPTS_MAX => {
                env.clock.sleep(PAUSE);
                attempt += 1;
            }
            Err(error) if error.kind() == Kind::NotFound => return Err(explain_absence(disk, dir)),
            read => break read?,
        }
    };
    let (now, written) = (env.clock.wall(), Duration::from_micros(page.written_micros));
    let age = now.saturating_sub(written);
    let interval = Duration::from_millis(u64::from(page.interval_ms));
    let writer = match () {
        // A clock that was set back makes an old page one of the future.
        () if now.abs_diff(written) <= interval.saturating_mul(INTERVALS_MAX).max(OLD_MIN) => {
            PageWriterState::Writing
        }
        () if writer_of(disk, dir).is_some() => PageWriterState::Silent,
        () => PageWriterState::Gone,
    };
    Ok(SharedMetrics { page, age, writer })
}

fn read(disk: &dyn Disk, dir: &Path) -> Result<MetricsPage> {
    let path = dir.join(METRICS);
    let file = disk.open(&path, OpenMode::Read, false)?;
    let mut bytes = vec![0; file.len()?.min(PAGE_BYTES_MAX as u64) as usize];
    file.read_at(0, &mut bytes)?;
    MetricsPage::decode(&bytes).map_err(|error| error.at(path.display().to_string(), 0))
}

/// The text about the lock of a database that is open for writing.
fn writer_of(disk: &dyn Disk, dir: &Path) -> Option<Error> {
    // Another reader holds it together with this one.
    disk.lock_shared(&dir.join(LOCK)).err()
}

#[cold]
fn explain_absence(disk: &dyn Disk, dir: &Path) -> Error {
    let shown = dir.display();
    // The directory of a journal whose manifest lies elsewhere has the second name.
    let exists =
        disk.exists(&dir.join(CURRENT)).and_then(|is_here| Ok(is_here || disk.exists(&dir.join(REMOTE))?));
    let (kind, why) = match exists {
        Err(error) => return error,
        Ok(false) => (Kind::NotFound, format!("there is no database in {shown}")),
        Ok(true) => match writer_of(disk, dir) {
            None => (
                Kind::NotFound,
                format!(
                    "no process has {shown} open for writing: a page of metrics is there while one has; `terrane \
                     stats` and `terrane shape` look into a database that is closed"
                ),
            ),
            Some(busy) => (Kind::Busy, no_page(busy.message(), dir)),
        },
    };
    Error::new(kind, why)
}

/// The text about a writer without a page; `busy` names it.
fn no_page(busy: &str, dir: &Path) -> String {
    let (holder, shown) = (busy.trim_end_matches(": close it there first"), dir.display());
    format!(
        "{holder}, and shares no page of metrics in {shown}: its first page comes one diagnostics.metrics_page_ms after the opening, \
         and a close removes the last one; or it was opened with diagnostics.metrics_page_ms=0 (set it to 1000), or by a version \
         without pages, or its pages cannot be written (metrics_page_errors counts that)"
    )
}
