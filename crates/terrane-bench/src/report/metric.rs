//! Figures derived from a cell, each with its name, its formula and how it is written.
//!
//! A figure that the engine or the machine does not tell, or that has no meaning for the step (write
//! amplification of a read), is `None` and is written as [`NONE`].

use crate::engine::EngineCounters;
use crate::generate::operation::OperationKind;
use crate::report::model::Cell;

/// Text in the place of a figure that is not known.
pub const NONE: &str = "-";

/// A figure of a cell.
pub struct Metric {
    /// Short name: head of a column.
    pub name: &'static str,
    /// Title of a chart.
    pub title: &'static str,
    /// How it is made, with its unit, in a sentence.
    pub what: &'static str,
    /// The figure of a cell.
    pub of: fn(&Cell) -> Option<f64>,
    /// Writes it in at most 8 characters.
    pub write: fn(f64) -> String,
}

macro_rules! metrics {
    ($($constant:ident: $name:literal, $title:literal, $what:literal, $write:path, $of:expr;)*) => {
        $(
            #[doc = $what]
            pub const $constant: Metric = Metric { name: $name, title: $title, what: $what, of: $of, write: $write };
        )*
    };
}

metrics! {
    CPU: "cpu us", "CPU per operation", "User and system CPU of the whole process, background included, in \
        microseconds per operation (seconds per million operations).", short,
        |cell| per_operation(cell, (cell.process.user_seconds + cell.process.system_seconds) * 1e6);
    CPU_TIME: "cpu s", "CPU of a step", "User and system CPU of the whole process, in seconds.", short,
        |cell| Some(cell.process.user_seconds + cell.process.system_seconds);
    CPU_USER: "user", "User CPU per operation", "CPU in user mode, in microseconds per operation.", short,
        |cell| per_operation(cell, cell.process.user_seconds * 1e6);
    CPU_SYSTEM: "sys", "System CPU per operation", "CPU in the kernel, in microseconds per operation.", short,
        |cell| per_operation(cell, cell.process.system_seconds * 1e6);
    WRITE_AMPLIFICATION: "w-amp", "Write amplification", "Bytes that the process gave to its files per byte of keys and \
        values written by the operations.", short,
        |cell| ratio(cell.process.device_bytes_written?, cell.user_bytes_written);
    ENGINE_WRITES: "w-eng", "Write amplification by the engine's count", "Bytes of log, flushes and compactions, as the \
        engine counts them, per byte written by the operations.", short,
        |cell| ratio(engine_bytes_written(&cell.counters)?, cell.user_bytes_written);
    READ_AMPLIFICATION: "r-amp", "Read amplification at the device", "Bytes read from the device per byte of keys and \
        values read by the operations.", short,
        |cell| ratio(cell.process.device_bytes_read?, cell.user_bytes_read);
    READ_CALLS: "r-call", "Read amplification of read calls", "Bytes asked for by read calls, page cache included, per \
        byte read by the operations.", short,
        |cell| ratio(cell.process.call_bytes_read?, cell.user_bytes_read);
    RUNS: "runs", "Sorted runs searched per read", "Sorted runs that a point read or seek searched (CPU read \
        amplification).", short, |cell| per_read(cell, cell.counters.runs_searched);
    FOUND: "found%", "Reads that found their key", "Point reads that found their key, and seeks that found a row, per cent.",
        short, |cell| per_read(cell, Some(100 * cell.found));
    FILTERS: "filter", "Filter probes per read", "Filters asked per read (CPU read amplification).", short,
        |cell| per_read(cell, cell.counters.filter_probes);
    FALSE_POSITIVES: "f-pos%", "False positives of filters", "Filters that said yes wrongly, per cent of those asked.",
        short, |cell| share(cell.counters.filter_false_positives, cell.counters.filter_probes);
    BLOCKS: "blocks", "Blocks decoded per read", "Data blocks decoded or decompressed per read (CPU read amplification).",
        short, |cell| per_read(cell, cell.counters.blocks_decoded);
    CACHE_HITS: "hit%", "Block cache hits", "Blocks found in the engine's cache, per cent of those looked for.", short,
        |cell| {
            let hits = cell.counters.cache_hits?;
            share(Some(hits), Some(hits + cell.counters.cache_misses?))
        };
    SPACE: "space", "Space amplification", "Bytes allocated on disk at the end of the step per byte of live keys and \
        values.", short, |cell| ratio(cell.disk_bytes, cell.live_bytes?);
    SPACE_PEAK: "sp-max", "Most space in any second", "Most bytes allocated on disk, looked at each second and at the end of \
        the step, per byte of live keys and values.", short, |cell| {
            let peak = cell.space.disk_bytes.iter().max()?;
            ratio(cell.disk_bytes.max(*peak), cell.live_bytes?)
        };
    VALUES_PEAK: "v-max", "Most space of separated values", "Most stored bytes of separated values per byte of live ones, \
        looked at each second.", short, |cell| Some(*cell.space.values_permille.iter().max()? as f64 / 1e3);
    DISK: "disk", "Bytes on disk", "Bytes allocated on disk at the end of the step.", bytes,
        |cell| (cell.disk_bytes > 0).then_some(cell.disk_bytes as f64);
    MEMORY: "memory", "Peak memory", "Highest resident memory of the process during the step.", bytes,
        |cell| (cell.process.peak_memory_bytes > 0).then_some(cell.process.peak_memory_bytes as f64);
    SWITCHES: "csw/k", "Context switches", "Context switches per thousand operations.", short,
        |cell| per_operation(cell, 1e3 * (cell.process.voluntary_switches + cell.process.involuntary_switches) as f64);
    FAULTS: "majf/k", "Major page faults", "Page faults served from the device per thousand operations.", short,
        |cell| per_operation(cell, 1e3 * cell.process.major_faults as f64);
    STALLED: "stall%", "Writers held back", "Time that the engine held writers back, per cent of the time of the step.",
        short, |cell| Some(cell.counters.stall_micros? as f64 / 1e4 / cell.seconds_until_quiescent.max(1e-9));
    LOW_WINDOWS: "low%", "Windows below half the median", "Intervals of the timeline, the first and the last left out, in \
        which less than half of the median was done, per cent of them.", short,
        |cell| windows(cell, |done, median| 100.0 * done.iter().filter(|&&n| n < median / 2.0).count() as f64 / done.len() as f64);
    LOWEST_WINDOW: "low/md", "Lowest window by the median", "The interval of the timeline in which least was done, the \
        first and the last left out, by the median one.", short,
        |cell| windows(cell, |done, median| done[0] / median);
    ABORTS: "abort%", "Refused runs of transactions", "Runs of transactions that were refused because of others, per cent \
        of all runs; each is run again until it commits.", short,
        |cell| share(cell.counters.transactions_aborted, Some(cell.counters.transactions_aborted? + cell.operations));
    BUCKET_CREATES: "crea/k", "Creations in buckets", "Requests to buckets that create objects, per thousand operations.", short,
        |cell| per_operation(cell, 1e3 * cell.counters.bucket_creates? as f64);
    BUCKET_READS: "read/k", "Reads of buckets", "Requests to buckets that read, list or delete, per thousand operations.", short,
        |cell| per_operation(cell, 1e3 * cell.counters.bucket_reads? as f64);
    BUCKET_BYTES: "bkt/op", "Bytes to and from buckets", "Bytes of objects that were sent to and received from buckets, per \
        operation.", scaled, |cell| {
            per_operation(cell, (cell.counters.bucket_bytes_sent? + cell.counters.bucket_bytes_received?) as f64)
        };
    BACKGROUND_RATE: "bg/s", "Background operations", "Operations per second of the thread that works beside those that are \
        measured, such as the writer of readwhilewriting.", scaled,
        Cell::background_rate;
    INSTRUCTIONS: "instr", "Instructions per operation", "Instructions retired in user mode, per operation.", scaled,
        |cell| per_operation(cell, cell.process.instructions? as f64);
    CYCLES: "cycle", "Cycles per operation", "Cycles in user mode, per operation.", scaled,
        |cell| per_operation(cell, cell.process.cycles? as f64);
    CACHE_MISSES: "llc-m", "Cache misses per operation", "Last-level cache misses in user mode, per operation.", short,
        |cell| per_operation(cell, cell.process.cache_misses? as f64);
    BRANCH_MISSES: "br-m", "Branch misses per operation", "Branches predicted wrong in user mode, per operation.", short,
        |cell| per_operation(cell, cell.process.branch_misses? as f64);
    P50: "p50", "p50", "Median latency, in microseconds.", short, |cell| latency(cell, cell.latency.p50);
    P90: "p90", "p90", "90th percentile of latency, in microseconds.", short, |cell| latency(cell, cell.latency.p90);
    P99: "p99", "p99", "99th percentile of latency, in microseconds.", short, |cell| latency(cell, cell.latency.p99);
    P999: "p99.9", "p99.9", "99.9th percentile of latency, in microseconds.", short,
        |cell| latency(cell, cell.latency.p999);
    P9999: "p99.99", "p99.99", "99.99th percentile of latency, in microseconds.", short,
        |cell| latency(cell, cell.latency.p9999);
    LONGEST: "max", "max", "Longest latency, in microseconds.", short, |cell| latency(cell, cell.latency.max);
}

/// Least number of intervals of a timeline for which its evenness is reported.
const WINDOWS_MIN: usize = 20;

/// The latency percentiles, in order.
pub const PERCENTILES: [Metric; 6] = [P50, P90, P99, P999, P9999, LONGEST];

/// A figure of the operations per interval, in order of size, and of their median. `None` for a run of too
/// few intervals: one that was stalled would be a large share of them.
fn windows(cell: &Cell, figure: impl Fn(&[f64], f64) -> f64) -> Option<f64> {
    // What follows the last operation is the wait until the engine is quiescent.
    let whole = (cell.seconds / cell.timeline.interval) as usize;
    let inner = cell.timeline.operations.get(1..whole)?;
    let mut done: Vec<f64> = inner.iter().map(|&count| count as f64).collect();
    done.sort_by(f64::total_cmp);
    let median = *done.get(done.len() / 2)?;
    (done.len() >= WINDOWS_MIN && median > 0.0).then(|| figure(&done, median))
}

fn latency(cell: &Cell, nanoseconds: u64) -> Option<f64> {
    (cell.latency.count > 0).then_some(nanoseconds as f64 / 1e3)
}

fn per_operation(cell: &Cell, amount: f64) -> Option<f64> {
    (cell.operations > 0).then(|| amount / cell.operations as f64)
}

fn ratio(bytes: u64, per: u64) -> Option<f64> {
    (per > 0).then(|| bytes as f64 / per as f64)
}

fn share(part: Option<u64>, whole: Option<u64>) -> Option<f64> {
    ratio(part?, whole?).map(|share| share * 100.0)
}

fn per_read(cell: &Cell, amount: Option<u64>) -> Option<f64> {
    let reads = reads(cell);
    Some(amount? as f64).filter(|_| reads > 0.0).map(|amount| amount / reads)
}

/// Operations that read: all of a step of one kind that reads at all; of a mix those of the kinds that read.
fn reads(cell: &Cell) -> f64 {
    use OperationKind::{MultiRead, Read, ReadMissing, ReadModifyWrite, Scan, Transaction};
    let timed: u64 = cell.latency_by_kind.values().map(|latency| latency.count).sum();
    if timed == 0 {
        // An absent key is read without a byte, hence not only `user_bytes_read`.
        let only_writes = cell.user_bytes_read == 0 && cell.user_bytes_written > 0;
        return if only_writes { 0.0 } else { cell.operations as f64 };
    }
    let read = |kind: &OperationKind| {
        matches!(kind, Read | ReadMissing | MultiRead | ReadModifyWrite | Scan | Transaction)
    };
    let of_reads: u64 =
        cell.latency_by_kind.iter().filter(|(kind, _)| read(kind)).map(|(_, latency)| latency.count).sum();
    cell.operations as f64 * of_reads as f64 / timed as f64
}

/// `None` if the engine counts none of them.
fn engine_bytes_written(counters: &EngineCounters) -> Option<u64> {
    let parts = [counters.log_bytes_written, counters.flush_bytes_written, counters.compaction_bytes_written];
    parts.iter().any(Option::is_some).then(|| parts.iter().flatten().sum())
}

/// Three digits, as far as they are needed: `0.012`, `1.23`, `45.6`, `789`, `12.3k`.
#[must_use]
pub fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v < 0.0005 => "<.001".to_owned(),
        v if v < 0.0995 => format!("{value:.3}"),
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        v if v < 9_999.5 => format!("{value:.0}"),
        _ => scaled(value),
    }
}

/// With a unit of a power of a thousand: `1.23M`.
#[must_use]
pub fn scaled(value: f64) -> String {
    let mut value = value;
    for unit in ["", "k", "M", "G", "T"] {
        if value.abs() < 999.5 || unit == "T" {
            let digits = if unit.is_empty() && value.fract() == 0.0 { 0 } else { digits(value) };
            return format!("{value:.digits$}{unit}");
        }
        value /= 1e3;
    }
    unreachable!("the last unit takes every value")
}

/// In units of 1024: `1.23M`.
#[must_use]
pub fn bytes(value: f64) -> String {
    let mut value = value;
    for unit in ["B", "K", "M", "G"] {
        if value < 1023.5 {
            let digits = if unit == "B" || value >= 999.5 { 0 } else { digits(value) };
            return format!("{value:.digits$}{unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.*}T", digits(value))
}

/// Operations per second: `1.23M/s`.
#[must_use]
pub fn rate(value: f64) -> String {
    scaled(value) + "/s"
}

/// A ratio: `0.087x`, `1.23x`, `12.3x`.
#[must_use]
pub fn times(value: f64) -> String {
    short(value) + "x"
}

/// Seconds: `12.3 s`, `4.56 ms`, `7.89 us`.
#[must_use]
pub fn seconds(value: f64) -> String {
    match value {
        v if v >= 0.9995 || v == 0.0 => short(v) + "s",
        v if v >= 0.000_999_5 => short(v * 1e3) + "ms",
        v => short(v * 1e6) + "us",
    }
}

/// Decimals that make three digits.
fn digits(value: f64) -> usize {
    match value.abs() {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    }
}
