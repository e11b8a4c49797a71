//! `bench`: what can be typed.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Help after the options.
pub const HELP: &str = "\
Examples:
  terrane bench
  terrane bench --config quick
  terrane bench --config bench/standard.toml --html report.html --json run.json
  terrane bench --engines terrane,lmdb --workloads load,readrandom --keys 10M
  terrane bench --workloads load,ycsb_a --rate 50k --seconds 30
  terrane bench --config shapes --keys 10M --level-fanout 8
  terrane bench compare before.json after.json --bound 5%

The first is a look at Terrane alone, `quick` one at Terrane and its peers, under two minutes; `shapes` \
are six shapes of the tree, with three queries each. With --rate the loop is open: the latencies leave \
nothing out.

Every engine runs in a process of its own; repetitions interleave. `terrane bench list` names workloads, \
shape steps, engines and ready plans. What a plan file says is overridden by flags, except what a single \
step says. RocksDB is loaded at run time: --rocksdb FILE, or the variable TERRANE_ROCKSDB, or what the \
system has.
";

/// `bench`.
#[derive(Clone, Debug, Default, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Bench {
    /// A command in the place of a run
    #[command(subcommand)]
    pub command: Option<Sub>,
    /// The run
    #[command(flatten)]
    pub run: RunFlags,
}

/// Commands beside a run.
#[derive(Clone, Debug, Subcommand)]
pub enum Sub {
    /// Compare two results; exit code 1 if the second is worse beyond the bound
    Compare(Compare),
    /// Draw the reports of a result again
    Report(Redraw),
    /// List workloads, shape steps, engines and ready plans
    List,
    /// One engine's process; started by a run
    #[command(hide = true)]
    Child,
}

/// `bench compare`.
#[derive(Clone, Debug, Args)]
pub struct Compare {
    /// Result of the first run (JSON lines)
    pub before: PathBuf,
    /// Result of the second run
    pub after: PathBuf,
    /// How much slower a cell may be: 5% or 0.05
    #[arg(long, default_value = "5%", value_parser = share)]
    pub bound: f64,
}

/// `bench report`.
#[derive(Clone, Debug, Args)]
pub struct Redraw {
    /// Result of a run (JSON lines)
    pub result: PathBuf,
    /// Write the HTML report to this file
    #[arg(long)]
    pub html: Option<PathBuf>,
    /// Print every figure
    #[arg(long)]
    pub details: bool,
}

/// Flags of a run.
#[derive(Clone, Debug, Default, Args)]
pub struct RunFlags {
    /// Plan: a TOML file, or the name of a ready one (quick, peers, standard, large, shapes,
    /// replacement, phases, hot, cores, ablation, soak)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Engines: terrane, rocksdb, lmdb, fjall, redb, bftree, null
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub engines: Vec<String>,
    /// Engine that ratios are against; the first one if left out
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,
    /// Workloads and shape steps, in order, on one database per engine
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub workloads: Vec<String>,
    /// How often everything is run, in turns
    #[arg(long, value_name = "N")]
    pub repetitions: Option<u32>,
    /// Start of every random choice
    #[arg(long)]
    pub seed: Option<u64>,

    /// Keys in the database, such as 10M
    #[arg(long, value_parser = count, help_heading = "Data")]
    pub keys: Option<u64>,
    /// Bytes of a key, from 8
    #[arg(long, value_name = "BYTES", help_heading = "Data")]
    pub key_bytes: Option<usize>,
    /// Bytes of a value: a number, uniform(A,B) or pareto(SHAPE,SCALE,MAX)
    #[arg(long, value_name = "SIZE", help_heading = "Data")]
    pub value: Option<String>,
    /// Compressed size of a value over its original size, 0 to 1
    #[arg(long, value_name = "SHARE", help_heading = "Data")]
    pub entropy: Option<f64>,
    /// Tables over which the keys are spread
    #[arg(long, value_name = "N", help_heading = "Data")]
    pub tables: Option<u32>,
    /// Ceiling for the whole process with its page cache: a size, or a share of the data such as 10%
    #[arg(long, value_name = "SIZE", help_heading = "Data")]
    pub memory_limit: Option<String>,
    /// Bypass the page cache where the engine can
    #[arg(long, help_heading = "Data")]
    pub direct_io: bool,
    /// Threads for background work of engines
    #[arg(long, value_name = "N", help_heading = "Data")]
    pub background_threads: Option<u32>,
    /// Size ratio of levels
    #[arg(long, value_name = "N", help_heading = "Data")]
    pub level_fanout: Option<u32>,
    /// Bits of filter per key
    #[arg(long, value_name = "BITS", help_heading = "Data")]
    pub filter_bits_per_key: Option<u32>,

    /// Threads; a list runs each workload with each number
    #[arg(long, value_name = "N,...", value_delimiter = ',', help_heading = "Load")]
    pub threads: Vec<u32>,
    /// How keys are chosen: default, sequential, uniform, zipfian(0.99), latest, hot(0.2,0.8)
    #[arg(long, value_name = "NAME", help_heading = "Load")]
    pub distribution: Option<String>,
    /// End each workload after so many operations, such as 5M
    #[arg(long, value_parser = count, value_name = "N", conflicts_with = "seconds", help_heading = "Load")]
    pub operations: Option<u64>,
    /// End each workload after this time: seconds, 90s, 5m
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    pub seconds: Option<String>,
    /// Operations per second that arrive on schedule (open loop), such as 50k; without it each waits for the
    /// last
    #[arg(long, value_parser = count, value_name = "N", help_heading = "Load")]
    pub rate: Option<u64>,
    /// Writes per second of the writer beside readwhilewriting, or rows per second of the scan beside
    /// readwhilescanning; without it they go as fast as they can
    #[arg(long, value_parser = count, value_name = "N", help_heading = "Load")]
    pub background_rate: Option<u64>,
    /// Records in a batch
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub batch: Option<u32>,
    /// Keys of a multi-get
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub multi_get: Option<u32>,
    /// Point requests that a thread receives at once, as a server receives them from its connections
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub window: Option<u32>,
    /// Synced writes that a thread has in flight at most: it begins the next before the last one is on disk
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub in_flight: Option<u32>,
    /// Keys that a transaction reads for update and writes
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub transaction_keys: Option<u32>,
    /// Rows read after each seek
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub scan_rows: Option<u64>,
    /// Wait for each write until it survives the loss of power
    #[arg(long, help_heading = "Load")]
    pub sync: bool,
    /// Compare every value read with what was written
    #[arg(long, help_heading = "Load")]
    pub verify: bool,
    /// Record the operations of the last workload to a trace
    #[arg(long, value_name = "FILE", help_heading = "Load")]
    pub record: Option<PathBuf>,
    /// Replay a trace after the workloads
    #[arg(long, value_name = "FILE", help_heading = "Load")]
    pub replay: Option<PathBuf>,
    /// Replay at the recorded times
    #[arg(long, requires = "replay", help_heading = "Load")]
    pub as_recorded: bool,

    /// Directory for the databases; each is removed after its use
    #[arg(long, value_name = "DIR", default_value = "bench-data", help_heading = "Output")]
    pub dir: PathBuf,
    /// Keep the databases
    #[arg(long, help_heading = "Output")]
    pub keep: bool,
    /// Write the result to this file (JSON lines), as it comes
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// Write the HTML report to this file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// Print every figure
    #[arg(long, help_heading = "Output")]
    pub details: bool,
    /// Shared library of RocksDB
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub rocksdb: Option<PathBuf>,
}

fn count(typed: &str) -> Result<u64, String> {
    terrane_bench::plan::text::count(typed).map_err(|error| error.to_string())
}

fn share(typed: &str) -> Result<f64, String> {
    let (number, unit) = typed.strip_suffix('%').map_or((typed, 1.0), |number| (number, 0.01));
    let number: Option<f64> = number.trim().parse().ok();
    number
        .map(|number| number * unit)
        .filter(|share| (0.0..1.0).contains(share))
        .ok_or_else(|| format!("{typed} is not a share: accepted is 0 to below 1, or a percentage"))
}
