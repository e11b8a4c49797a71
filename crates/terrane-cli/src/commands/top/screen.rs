//! A sample as lines for people.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use terrane::{PageLevel, PageReader, PageTable, PageWriterState};

use super::sample::{Latency, Sample};
use crate::files;
use crate::text::{self, count, shown, size};

/// Tables that are shown.
const TABLES_MAX: usize = 8;
/// Readers that are shown.
const READERS_MAX: usize = 5;
/// Size of a terminal that does not say it: rows and columns.
const SIZE: (usize, usize) = (24, 80);
/// Width of the first column.
const LABEL: usize = 10;

/// Draws over what the terminal shows: what fits, from the top.
pub(super) fn draw(path: &Path, sample: &Sample<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (rows, columns) = match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(found) if found.ws_col > 0 && found.ws_row > 0 => (found.ws_row.into(), found.ws_col.into()),
        _ => SIZE,
    };
    debug_assert!(rows > 0 && columns > 0, "a terminal of {rows} rows and {columns} columns");
    // From the upper left corner; each line is cleared to its end, and then all below.
    write!(out, "\x1b[H")?;
    for line in lines(path, sample).iter().take(rows - 1) {
        let line: String = line.chars().take(columns).collect();
        writeln!(out, "{line}\x1b[K")?;
    }
    write!(out, "\x1b[J")
}

/// All lines.
pub(super) fn lines(path: &Path, sample: &Sample<'_>) -> Vec<String> {
    let mut lines = vec![head(path, sample)];
    let mut part = |label: &str, text: String| lines.push(format!("{label:<LABEL$}{text}"));
    part("writes", writes(sample));
    part("reads", reads(sample));
    part("device", device(sample));
    part("memory", memory(path, sample));
    part("throttle", throttle(sample));
    part(
        "times",
        format!("{:<12}{:>10}{:>11}{:>11}{:>11}{:>11}", "", "ended/s", "p50", "p99", "p99.9", "max"),
    );
    for latency in sample.latencies() {
        part("", latency_line(&latency, sample.seconds()));
    }
    jobs(sample, &mut lines);
    readers(sample, &mut lines);
    tables(sample, &mut lines);
    lines
}

fn head(path: &Path, sample: &Sample<'_>) -> String {
    let page = sample.page();
    let state = match sample.now.writer {
        PageWriterState::Writing => String::new(),
        PageWriterState::Gone => {
            format!("  STALE: the process is gone, last page {} old", time(sample.now.age))
        }
        _ => format!("  STALE: no page for {}, the process is stopped or very busy", time(sample.now.age)),
    };
    let (process, number) = (page.process, count(page.number));
    let open = time(Duration::from_micros(page.open_micros));
    format!("{}  process {process}  open {open}  page {number}{state}", text::path(path))
}

fn writes(sample: &Sample<'_>) -> String {
    let (records, batches) = (sample.rate("records_written"), sample.rate("batches_written"));
    let bytes = bytes_rate(sample.rate("bytes_written"));
    format!("{} records/s  {} batches/s  {bytes}", rate(records), rate(batches))
}

fn reads(sample: &Sample<'_>) -> String {
    let (gets, seeks) = (sample.rate("reads"), sample.rate("seeks"));
    let misses = rate(sample.rate("cache_misses"));
    let bytes = bytes_rate(sample.rate("device_user_bytes_read"));
    format!(
        "~{} gets/s  ~{} scans/s  {misses} cache misses/s  {bytes} from the device",
        rate(gets),
        rate(seeks)
    )
}

fn device(sample: &Sample<'_>) -> String {
    let of = |name: &str| bytes_rate(sample.rate(name));
    let syncs = sample.rates(&["device_journal_syncs", "device_flush_syncs", "device_compaction_syncs"]);
    format!(
        "journal {}  flush {}  compaction {} written, {} read  {} syncs/s",
        of("device_journal_bytes_written"),
        of("device_flush_bytes_written"),
        of("device_compaction_bytes_written"),
        of("device_compaction_bytes_read"),
        rate(syncs)
    )
}

fn memory(path: &Path, sample: &Sample<'_>) -> String {
    let of = |name: &str| size(sample.number(name));
    // The page has the slots, of which the device gives space only to the used part.
    let data = path.join("data");
    let on_device = files::exists(&data).then(|| size(files::device_bytes(&data)));
    format!(
        "{} of {}: cache {}, journal {}, indexes {}, transactions {}  files {}",
        of("memory_bytes"),
        of("memory_limit_bytes"),
        of("cache_bytes"),
        of("memory_journal_bytes"),
        of("memory_index_bytes"),
        of("transaction_window_bytes"),
        on_device.unwrap_or_else(|| of("store_bytes"))
    )
}

/// The word for the state of writers that are held back.
pub(super) fn throttle_state(sample: &Sample<'_>) -> &'static str {
    match sample.rate("writes_paused_micros") {
        _ if sample.number("pressure_permille") >= 1000 => "writers wait for memory",
        Some(paused) if paused > 0.0 => "writers are slowed",
        _ => "writers are free",
    }
}

fn throttle(sample: &Sample<'_>) -> String {
    // Microseconds in a second of all writers together.
    let paused = sample.rate("writes_paused_micros").map_or(0.0, |micros| micros / 1e4);
    let (pressure, stalls) = (sample.number("pressure_permille"), count(sample.number("stalls")));
    let errors = sample.number("background_errors").saturating_add(sample.number("metrics_page_errors"));
    let failed = if errors > 0 { format!("  {} background errors", count(errors)) } else { String::new() };
    let state = throttle_state(sample);
    format!(
        "{state}: pressure {pressure} of 1000, paused {paused:.0}% of a writer's time, {stalls} stalls{failed}"
    )
}

fn latency_line(latency: &Latency, seconds: Option<f64>) -> String {
    let about = if latency.one_in > 1 { "~" } else { "" };
    let all = latency.count as f64 * latency.one_in as f64;
    let ended = format!("{about}{}", rate(seconds.map(|seconds| all / seconds)));
    let at = |value: u64| time(latency.time(value));
    let (p50, p99, p999, max) = (at(latency.p50), at(latency.p99), at(latency.p999), at(latency.max));
    let since = if latency.is_total && latency.max > 0 { "  since the opening" } else { "" };
    format!("{:<12}{ended:>10}{p50:>11}{p99:>11}{p999:>11}{max:>11}{since}", shown(latency.short_name()))
}

fn jobs(sample: &Sample<'_>, lines: &mut Vec<String>) {
    let jobs = &sample.page().jobs;
    let mut label = "jobs";
    if jobs.is_empty() {
        lines.push(format!("{label:<LABEL$}none"));
    }
    for job in jobs {
        let (age, kind, table) =
            (time(Duration::from_micros(job.age_micros)), shown(&job.kind), shown(&job.table));
        let (read, written) = (size(job.bytes_read), size(job.bytes_written));
        lines.push(format!("{label:<LABEL$}{kind:<9}{table:<20} {age:>9}  {read} read, {written} written"));
        label = "";
    }
}

fn readers(sample: &Sample<'_>, lines: &mut Vec<String>) {
    let page = sample.page();
    let all = count(page.reader_count.into());
    lines.push(format!("{:<LABEL$}{all} pin a moment", "readers"));
    for reader in page.readers.iter().take(READERS_MAX) {
        lines.push(format!("{:<LABEL$}{}", "", reader_line(reader)));
    }
}

fn reader_line(reader: &PageReader) -> String {
    let age = time(Duration::from_micros(reader.age_micros));
    let (kind, place) = (shown(&reader.kind), shown(&reader.place));
    let label = if reader.label.is_empty() { String::new() } else { format!(" {:?}", reader.label) };
    let (behind, kept) =
        (count(reader.records_since), size(reader.extent_bytes.saturating_add(reader.memory_bytes)));
    let expired = if reader.is_expired { ", expired" } else { "" };
    format!("{kind}{label} {age} old, {behind} records since, keeps {kept}{expired}, made at {place}")
}

fn tables(sample: &Sample<'_>, lines: &mut Vec<String>) {
    let page = sample.page();
    let all = count(page.table_count.into());
    lines.push(format!(
        "{:<LABEL$}{:<22}{:>10}{:>11}{:>14}{:>11}{:>11}  overflow runs and levels",
        "tables",
        format!("{all}, largest first"),
        "stored",
        "in memory",
        "versions",
        "~gets/s",
        "~scans/s"
    ));
    for table in page.tables.iter().take(TABLES_MAX) {
        lines.push(format!("{:<LABEL$}{}", "", table_line(sample, table)));
    }
}

fn table_line(sample: &Sample<'_>, table: &PageTable) -> String {
    let number = |name: &str| sample.page().table_metric(table, name).unwrap_or(0);
    let versions = number("table_entries").saturating_add(number("table_memory_entries"));
    let slowed = match number("table_write_rate") {
        0 => String::new(),
        bytes => format!("  writers at {}/s", size(bytes)),
    };
    format!(
        "{:<22}{:>10}{:>11}{:>14}{:>11}{:>11}  {}{slowed}",
        shown(&table.name),
        size(number("table_stored_bytes")),
        size(number("table_memory_bytes")),
        count(versions),
        rate(sample.table_rate(table, "reads")),
        rate(sample.table_rate(table, "seeks")),
        levels(table)
    )
}

fn levels(table: &PageTable) -> String {
    let of = |level: &PageLevel| format!("{} in {}", size(level.bytes), count(level.extents));
    let mut parts = Vec::new();
    if !table.runs.is_empty() {
        let bytes = table.runs.iter().fold(0u64, |sum, run| sum.saturating_add(run.bytes));
        parts.push(format!("{} runs {}", table.runs.len(), size(bytes)));
    }
    let filled = (1..).zip(&table.levels).filter(|(_, level)| level.extents > 0);
    parts.extend(filled.map(|(number, level): (u32, _)| format!("L{number} {}", of(level))));
    if parts.is_empty() { "nothing yet".to_owned() } else { parts.join(", ") }
}

/// A number in a second; `-` if it is not known yet.
fn rate(rate: Option<f64>) -> String {
    rate.map_or_else(|| "-".to_owned(), |rate| count(rate.round() as u64))
}

fn bytes_rate(rate: Option<f64>) -> String {
    rate.map_or_else(|| "-".to_owned(), |rate| format!("{}/s", size(rate as u64)))
}

/// A time with three digits and its unit, or as hours, minutes and seconds.
pub(in crate::commands) fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    match () {
        () if !time.is_zero() && time < Duration::from_micros(1) => format!("{} ns", time.as_nanos()),
        () if time < Duration::from_millis(1) => format!("{} us", time.as_micros()),
        () if time < Duration::from_secs(1) => format!("{:.1} ms", time.as_secs_f64() * 1e3),
        () if seconds < 60 => format!("{:.1} s", time.as_secs_f64()),
        () => format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60),
    }
}
