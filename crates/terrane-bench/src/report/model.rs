//! The result of a run as a value: what children send, files keep and reports draw.
//!
//! A result file is JSON lines: one [`Line::Header`], one [`Line::Cell`] per step, engine and repetition, one
//! [`Line::Failed`] per cell that could not be measured, and [`Line::End`]. A file without `End` is partial.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::engine::{EngineCounters, Opened, Shape};
use crate::generate::operation::OperationKind;
use crate::plan::Plan;

/// Version of the file format; a reader refuses a larger one.
pub const FORMAT: u32 = 1;

/// One line of a result file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum Line {
    /// The first.
    Header(Box<Header>),
    /// A measured step.
    Cell(Box<Cell>),
    /// A step that was not measured, and why.
    Failed(Failed),
    /// The last of a whole run.
    End(End),
}

/// Name, time, place and plan of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT`] of the writer.
    pub format: u32,
    /// Version of the bench.
    pub bench_version: String,
    /// Wall time of the start, seconds since the Unix epoch.
    pub started: u64,
    /// The command that was given.
    pub command: String,
    /// The plan, whole.
    pub plan: Plan,
    /// The machine.
    pub machine: Machine,
}

/// Facts that are needed to read the figures of a machine. Empty where it does not report them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of the processor.
    pub cpu: String,
    /// Processors that the run may use.
    pub processors: u32,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Kernel and its version.
    pub kernel: String,
    /// Type and mount options of the file system under the database directory.
    pub file_system: String,
    /// Device under it, and whether it says that it rotates.
    pub device: String,
    /// Frequency governor.
    pub governor: String,
    /// Transparent huge pages: the mode in force.
    pub huge_pages: String,
    /// Load average of the last minute at the start.
    pub load: f64,
    /// True if hardware counters can be read, or why not.
    pub counters: String,
}

/// One measured step of one engine in one repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the step.
    pub step: String,
    /// Position of the step in its scenario.
    pub index: u32,
    /// Label of the engine.
    pub engine: String,
    /// Repetition, from 0.
    pub repetition: u32,
    /// Facts that the engine reported at its opening.
    pub opened: Opened,
    /// Operations done (rows for whole scans).
    pub operations: u64,
    /// Reads that found their key.
    pub found: u64,
    /// Key and value bytes written by the operations.
    pub user_bytes_written: u64,
    /// Key and value bytes read.
    pub user_bytes_read: u64,
    /// Time of the operations, in seconds.
    pub seconds: f64,
    /// Time until quiescent as well, in seconds; equal to `seconds` where it was not asked for.
    pub seconds_until_quiescent: f64,
    /// Latency over all operations.
    pub latency: Latency,
    /// Latency by kind, where there is more than one kind.
    pub latency_by_kind: BTreeMap<OperationKind, Latency>,
    /// Operations per interval, from the start to quiescence.
    pub timeline: Timeline,
    /// The space that the engine took meanwhile; without an interval in a short step, and in files of
    /// earlier versions.
    #[serde(default)]
    pub space: SpaceTimeline,
    /// The resources that the process used.
    pub process: ProcessUse,
    /// The engine's counters of the step (differences).
    pub counters: EngineCounters,
    /// Operations of background threads of the workload.
    pub background_operations: u64,
    /// Bytes on disk at the end, as allocated.
    pub disk_bytes: u64,
    /// Bytes of the keys and values that are live at the end, where the bench knows.
    pub live_bytes: Option<u64>,
    /// The tree before the step.
    pub shape_before: Shape,
    /// The tree after it.
    pub shape_after: Shape,
}

impl Cell {
    /// Operations per second; over the time until quiescent if that was asked for. Beside a background writer
    /// only the operations' own time counts: the work that is left afterwards is the writer's, in
    /// [`Cell::background_rate`].
    #[must_use]
    pub fn rate(&self) -> f64 {
        let seconds =
            if self.background_operations > 0 { self.seconds } else { self.seconds_until_quiescent };
        self.operations as f64 / seconds.max(1e-9)
    }

    /// Operations of background threads per second, over the time until quiescent.
    #[must_use]
    pub fn background_rate(&self) -> Option<f64> {
        let operations = self.background_operations as f64;
        (self.background_operations > 0).then(|| operations / self.seconds_until_quiescent.max(1e-9))
    }
}

/// Latency of operations, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// How many were measured.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// 99.99th percentile.
    pub p9999: u64,
    /// Longest.
    pub max: u64,
}

/// Operations over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Length of an interval, in seconds.
    pub interval: f64,
    /// Operations that ended in each interval.
    pub operations: Vec<u64>,
}

/// The space that an engine takes while the operations of a step run, in equal intervals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SpaceTimeline {
    /// Length of an interval, in seconds.
    pub interval: f64,
    /// Bytes on disk at the end of each interval, as allocated.
    pub disk_bytes: Vec<u64>,
    /// Stored bytes of separated values per thousand live ones, where the engine tells and has such values.
    pub values_permille: Vec<u64>,
}

/// The resources that the process of the engine used during a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessUse {
    /// CPU in user mode, in seconds, of all threads.
    pub user_seconds: f64,
    /// CPU in the kernel, in seconds, of all threads.
    pub system_seconds: f64,
    /// Bytes that reached the block device for reading (`/proc/self/io`).
    pub device_bytes_read: Option<u64>,
    /// Bytes written to the page cache or the device (`/proc/self/io`, without those of the result pipe).
    pub device_bytes_written: Option<u64>,
    /// Bytes asked for by read calls.
    pub call_bytes_read: Option<u64>,
    /// Highest resident memory during the step, in bytes.
    pub peak_memory_bytes: u64,
    /// Context switches because a thread waited.
    pub voluntary_switches: u64,
    /// Context switches because the time slice ended.
    pub involuntary_switches: u64,
    /// Page faults served from the device.
    pub major_faults: u64,
    /// Page faults served from memory.
    pub minor_faults: u64,
    /// Instructions retired in user mode, where the machine counts them.
    pub instructions: Option<u64>,
    /// Cycles in user mode.
    pub cycles: Option<u64>,
    /// Last-level cache misses in user mode.
    pub cache_misses: Option<u64>,
    /// Branches predicted wrong in user mode.
    pub branch_misses: Option<u64>,
}

/// A cell that was not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the step; empty if the engine did not open.
    pub step: String,
    /// Label of the engine.
    pub engine: String,
    /// Repetition, from 0.
    pub repetition: u32,
    /// True if the engine lacks the operation (as against failing).
    pub unsupported: bool,
    /// Its message.
    pub why: String,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// True if all cells of the plan were run or have failed; false after an interruption.
    pub complete: bool,
    /// How long the run took, in seconds.
    pub seconds: f64,
}

/// A whole result: what a file holds.
#[derive(Clone, Debug, PartialEq)]
pub struct RunReport {
    /// Its header.
    pub header: Header,
    /// Its cells, in the order in which they were measured.
    pub cells: Vec<Cell>,
    /// Steps that were not measured.
    pub failed: Vec<Failed>,
    /// `None` for a file that ends early.
    pub end: Option<End>,
}

impl RunReport {
    /// Returns true if the run was stopped before its end.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        !self.end.is_some_and(|end| end.complete)
    }
}
