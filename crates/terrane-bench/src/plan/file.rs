//! Plans as TOML: short to write, every value with a default, every list a product.
//!
//! Sections `[data]`, `[database]` and `[run]` hold defaults; a `[[scenario]]` may override any of them, and
//! a step may override `[run]`. In a step, `threads`, `distribution` and `sync` may be lists: the step is
//! then run for each combination. Unknown names are refused. `bench/*.toml` are examples;
//! `docs/benchmarks/README.md` lists every name.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use crate::engine::{Control, Direction};
use crate::error::{Error, Result};

/// The content of a plan file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PlanFile {
    /// Its name in reports.
    pub name: Option<String>,
    /// Seed of every random choice.
    pub seed: Option<u64>,
    /// How often each scenario is run on each engine.
    pub repetitions: Option<u32>,
    /// Label of the engine that ratios are against.
    pub baseline: Option<String>,
    /// The engines: names, or tables with options.
    pub engines: Vec<EngineText>,
    /// Defaults of every scenario's keys and values.
    pub data: DataText,
    /// Defaults of every scenario's database.
    pub database: DatabaseText,
    /// Defaults of every run.
    pub run: RunText,
    /// The scenarios.
    pub scenario: Vec<ScenarioText>,
}

/// An engine, by name or with options.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum EngineText {
    /// Its name.
    Name(String),
    /// More than its name.
    Table(EngineTable),
}

/// An engine with options.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineTable {
    pub(super) engine: String,
    pub(super) label: Option<String>,
    #[serde(default)]
    pub(super) options: BTreeMap<String, toml::Value>,
    pub(super) library: Option<PathBuf>,
}

macro_rules! overlay {
    ($( #[$meta:meta] )* $name:ident { $( $( #[$about:meta] )* $field:ident: $kind:ty, )* }) => {
        $( #[$meta] )*
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name { $( $( #[$about] )* pub $field: Option<$kind>, )* }

        impl $name {
            /// This over `below`: a field that is not set here is taken from there.
            #[must_use]
            pub fn over(&self, below: &Self) -> Self {
                $name { $( $field: self.$field.clone().or_else(|| below.$field.clone()), )* }
            }
        }
    };
}

overlay! {
    /// `[data]`.
    DataText {
        /// Keys that a load writes.
        keys: u64,
        /// Bytes of a key.
        key_bytes: usize,
        /// Sizes of values: a number of bytes, `uniform(A,B)` or `pareto(SHAPE,SCALE,MAX)`.
        value: OneOrText<usize>,
        /// Compressed size of a value over its original size, 0 to 1.
        entropy: f64,
        /// Tables.
        tables: u32,
        /// True if key numbers are scattered by a hash.
        hashed_keys: bool,
    }
}

overlay! {
    /// `[database]`.
    DatabaseText {
        /// Memory for the engine, such as `256MiB`, or a share of the data, such as `10%`.
        memory: String,
        /// Ceiling for the process with its page cache: a size, or a share of the data.
        memory_limit: String,
        /// Bypass the page cache.
        direct_io: bool,
        /// Background threads; 0: the engine's choice.
        background_threads: u32,
        /// Size ratio of levels; 0: the engine's default.
        level_fanout: u32,
        /// Filter bits per key.
        filter_bits_per_key: u32,
    }
}

overlay! {
    /// `[run]`, and what a step may hold besides its workload.
    RunText {
        /// Name of the step; made from what it does if left out.
        name: String,
        /// Name of the workload.
        workload: String,
        /// `default`, `sequential`, `uniform`, `zipfian(0.99)`, `latest`, `hot(0.2,0.8)`; or a list.
        distribution: OneOrMany<String>,
        /// Threads; or a list.
        threads: OneOrMany<u32>,
        /// Operations after which it ends.
        operations: u64,
        /// Time after which it ends: seconds, or text such as `2m`.
        seconds: OneOrText<f64>,
        /// Operations per second, open loop.
        rate: f64,
        /// Records per write batch.
        batch: u32,
        /// Keys per multi-get.
        multi_get: u32,
        /// Number of point requests that a thread does together.
        window: u32,
        /// Synced writes of one record that a thread has in flight at most.
        in_flight: u32,
        /// Keys that a transaction reads for update and writes.
        transaction_keys: u32,
        /// Rows after a seek.
        scan_rows: u64,
        /// Way of scans.
        direction: Direction,
        /// True if writes are synced; or a list.
        sync: OneOrMany<bool>,
        /// Rate of a workload's background threads.
        background_rate: f64,
        /// Records to a trace.
        record: PathBuf,
        /// Replays a trace.
        replay: PathBuf,
        /// True if a replay keeps the recorded times.
        as_recorded: bool,
        /// True if the run includes the time until quiescent.
        until_quiescent: bool,
        /// True if values are compared with what was written.
        verify: bool,
        /// True if the step only prepares others.
        setup: bool,
    }
}

/// A value or a list of values.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    /// One.
    One(T),
    /// A list.
    Many(Vec<T>),
}

impl<T: Clone> OneOrMany<T> {
    pub(super) fn list(&self) -> Vec<T> {
        match self {
            OneOrMany::One(value) => vec![value.clone()],
            OneOrMany::Many(values) => values.clone(),
        }
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self, OneOrMany::Many(_))
    }
}

/// A number or a text that stands for one.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum OneOrText<T> {
    /// The number.
    Number(T),
    /// The text.
    Text(String),
}

/// `[[scenario]]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScenarioText {
    /// Its name.
    pub name: Option<String>,
    /// Over `[data]`.
    pub data: DataText,
    /// Over `[database]`.
    pub database: DatabaseText,
    /// Over `[run]`.
    pub run: RunText,
    /// The steps.
    pub steps: Vec<StepText>,
}

/// A step: a name, or a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum StepText {
    /// A workload or a control by name.
    Name(String),
    /// A workload with settings.
    Run(Box<RunText>),
}

/// Reads a plan file.
///
/// # Errors
/// `Plan` with the line of the text that cannot be read.
pub fn parse(text: &str) -> Result<PlanFile> {
    toml::from_str(text).map_err(|error| Error::plan(format!("the plan cannot be read: {error}")))
}

/// The controls by name, for help texts.
#[must_use]
pub fn control_names() -> Vec<&'static str> {
    super::text::CONTROLS.iter().map(|(name, _): &(&str, Control)| *name).chain(["reopen"]).collect()
}
