//! Plans of runs: a plan is scenarios × engines × repetitions, every value resolved.
//!
//! A plan comes from flags or from a TOML file (`file.rs`), is checked before anything runs (`check.rs`), is
//! printed in the report, and goes to each child process as JSON. [`Plan`] holds what the whole run shares, a
//! [`Scenario`] one database and the [`Step`]s done on it in order.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::engine::{Control, Direction};

pub mod check;
pub mod file;
mod resolve;
pub mod text;

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Its name in reports.
    pub name: String,
    /// Seed of every random choice; repetition `r` uses `seed + r`.
    pub seed: u64,
    /// How often each scenario is run on each engine, in turns.
    pub repetitions: u32,
    /// Label of the engine that ratios are against.
    pub baseline: String,
    /// The engines, in the order of the plan; each repetition starts with the next one.
    pub engines: Vec<EngineChoice>,
    /// The scenarios, in their order.
    pub scenarios: Vec<Scenario>,
}

/// One engine of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EngineChoice {
    /// Name of the adapter: `terrane`, `rocksdb`, ...
    pub engine: String,
    /// Its name in the report; one adapter may run several times with other options.
    pub label: String,
    /// Options for the adapter.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// Shared library, for engines loaded at run time.
    #[serde(default)]
    pub library: Option<PathBuf>,
}

/// One database and the steps on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Its name, unique in the plan.
    pub name: String,
    /// The data of the database.
    pub data: Data,
    /// Memory for the engine, in bytes.
    pub memory_bytes: u64,
    /// Ceiling for the whole process, page cache included, in bytes; `None`: the page cache may grow.
    pub memory_limit_bytes: Option<u64>,
    /// Bypass the page cache where the engine can.
    pub direct_io: bool,
    /// Background threads; 0: the engine's choice.
    pub background_threads: u32,
    /// Size ratio of levels for LSM-trees; 0: the engine's default.
    pub level_fanout: u32,
    /// Filter bits per key for LSM-trees.
    pub filter_bits_per_key: u32,
    /// Steps, in order, on one open database.
    pub steps: Vec<Step>,
}

/// Keys and values of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// Keys that a load writes: numbers from 0.
    pub keys: u64,
    /// Bytes of a key, 8 to 1024.
    pub key_bytes: usize,
    /// Sizes of values.
    pub value: ValueSize,
    /// Compressed size of a value over its original size, 0 to 1 (0.5: half).
    pub entropy: f64,
    /// Tables over which the keys are spread.
    pub tables: u32,
    /// True if key numbers are scattered by a hash (YCSB's hashed insert order) or in order of their number.
    pub hashed_keys: bool,
}

impl Data {
    /// The longest value, in bytes.
    #[must_use]
    pub fn value_bytes_max(&self) -> usize {
        match self.value {
            ValueSize::Fixed(bytes) => bytes,
            ValueSize::Uniform(_, high) => high,
            ValueSize::Pareto { max, .. } => max,
        }
    }

    /// The mean length of a value, in bytes.
    #[must_use]
    pub fn value_bytes_mean(&self) -> f64 {
        match self.value {
            ValueSize::Fixed(bytes) => bytes as f64,
            ValueSize::Uniform(low, high) => (low + high) as f64 / 2.0,
            // The mean of a generalized Pareto distribution, cut at `max`.
            ValueSize::Pareto { shape, scale, max } => {
                let tail = (1.0 + shape * max as f64 / scale).powf(1.0 - 1.0 / shape);
                scale / (1.0 - shape) * (1.0 - tail)
            }
        }
    }

    /// Bytes of all keys and values that a load writes.
    #[must_use]
    pub fn bytes(&self) -> f64 {
        self.keys as f64 * (self.key_bytes as f64 + self.value_bytes_mean())
    }
}

/// How long values are, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueSize {
    /// All the same.
    Fixed(usize),
    /// Uniform between two sizes, both included.
    Uniform(usize, usize),
    /// Generalized Pareto, as fitted to RocksDB's production values (Cao et al., FAST 2020): shape, scale,
    /// and the longest value.
    Pareto {
        /// k of the distribution.
        shape: f64,
        /// sigma of the distribution.
        scale: f64,
        /// Values are cut at this length.
        max: usize,
    },
}

/// One step of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Operations, measured.
    Run(Box<Run>),
    /// A change of the tree's shape; its time is reported, too.
    Control(Control),
    /// Closes the database and opens it again; drops its own caches.
    Reopen,
}

/// Operations of one kind or mix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Name of the step in the report, unique in the scenario.
    pub name: String,
    /// Name in the catalogue of workloads (`generate::catalogue`).
    pub workload: String,
    /// How keys are chosen.
    pub distribution: Distribution,
    /// Threads of the measured operations.
    pub threads: u32,
    /// When it ends.
    pub until: Until,
    /// Operations per second over all threads, arriving on schedule (open loop); `None`: each thread starts
    /// the next operation when the last one is done (closed loop).
    pub rate: Option<f64>,
    /// Records per write batch.
    pub batch: u32,
    /// Keys per multi-get.
    pub multi_get: u32,
    /// Number of point requests that each thread does together, as a server has them from its connections; 1:
    /// one after the other.
    #[serde(default = "one")]
    pub window: u32,
    /// Synced writes of one record that each thread has in flight at most; 1: each waits until it is on disk.
    #[serde(default = "one")]
    pub in_flight: u32,
    /// Keys that a transaction reads for update and writes.
    #[serde(default = "one")]
    pub transaction_keys: u32,
    /// Rows after a seek; for a workload with scans of random length, the longest.
    pub scan_rows: u64,
    /// Way of scans.
    pub direction: Direction,
    /// True if each write waits until it is on disk.
    pub sync: bool,
    /// Writes or rows per second of background threads of workloads that have them; 0: as fast as they can.
    pub background_rate: f64,
    /// Records every operation to a trace (`trace`).
    pub record: Option<PathBuf>,
    /// Replays this trace instead of a generated stream; for the workload `replay`.
    pub replay: Option<PathBuf>,
    /// True if a replayed operation waits for the time at which it was recorded; otherwise it follows the
    /// last one.
    pub as_recorded: bool,
    /// True if the time until the engine is quiescent counts as part of the run (sustained rate).
    pub until_quiescent: bool,
    /// Compares every value read with what was written; costs time.
    pub verify: bool,
    /// True if the step only prepares others: it counts in no mean and is marked nowhere.
    #[serde(default)]
    pub setup: bool,
}

/// The value of a report that does not know windows, writes in flight or transactions.
fn one() -> u32 {
    1
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// After this many operations over all threads.
    Operations(u64),
    /// After this many seconds.
    Seconds(f64),
}

/// How the keys of a run are chosen among those that exist.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// As the workload is defined.
    Default,
    /// In order of key numbers.
    Sequential,
    /// Each alike.
    Uniform,
    /// Zipfian with this constant, its popular keys scattered over the key space (YCSB's scrambled zipfian).
    Zipfian(f64),
    /// Zipfian by age: the newest key is the most popular (YCSB's latest).
    Latest,
    /// A fraction of operations on a fraction of the key space, in contiguous ranges: (share of keys, share
    /// of operations).
    HotRange(f64, f64),
}
