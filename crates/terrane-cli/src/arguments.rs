//! What can be typed. The texts here are the help and the manual page.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub mod backup;
pub mod bench;
pub mod bulk;
pub mod changes;
pub mod import;

use crate::exit;
use crate::text::Format;

const EXAMPLES: &str = "\
Examples:
  terrane import packages.terrane /var/lib/dpkg/status --key Package
  terrane get packages.terrane bash
  terrane scan packages.terrane --prefix lib --limit 5
  terrane shape packages.terrane

Keys and values are text with the escapes \\n \\r \\t \\0 \\\\ \\xNN, or 0x and hexadecimal digits.
";

/// Stores, finds and scans records in a log-structured merge tree.
#[derive(Clone, Debug, Parser)]
#[command(name = "terrane", version, after_help = format!("{EXAMPLES}\n{}", exit::table()), max_term_width = 100)]
pub struct Arguments {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
    /// Options of the engine
    #[command(flatten)]
    pub engine: Engine,
}

/// Options of the engine, for every command that opens a database.
#[derive(Clone, Debug, Default, Args)]
pub struct Engine {
    /// Ceiling for all memory of the engine, such as 256MiB; the same as -o memory_bytes=SIZE
    #[arg(long, global = true, value_name = "SIZE", help_heading = "Engine")]
    pub memory: Option<String>,
    /// Set an option of the engine; `terrane options` lists them
    #[arg(short = 'o', global = true, value_name = "NAME=VALUE", help_heading = "Engine")]
    pub options: Vec<String>,
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Store the records of a file or stream, or a database of RocksDB; goes on where it was stopped or
    /// killed
    #[command(after_help = import::HELP)]
    Import(Box<import::Import>),
    /// Print the value of a key
    Get(Get),
    /// Set a key to a value
    Put(Put),
    /// Merge an operand to a key, by the merge operator of its table
    Merge(Merge),
    /// Remove a key; fine if it is not there
    Delete(Delete),
    /// Remove every key of a range, at the cost of one
    DeleteRange(DeleteRange),
    /// Print the rows of a range in key order
    Scan(Scan),
    /// Count the rows of a range
    Count(Count),
    /// Tell how many rows and bytes a range has, about, without reading them
    Estimate(Count),
    /// List the tables, or create or drop one
    Tables(Tables),
    /// Show the state of the trees: what a read has to search, and where the bytes are
    Shape(Shape),
    /// Show what the engine counts, from the moment this command opened the database
    Stats(Stats),
    /// Verify every checksum and every invariant; name what is wrong
    Check(Check),
    /// Bring what can be read of a damaged database into a new one; name what is lost
    Repair(Repair),
    /// Merge a range of a table into its deepest level
    Compact(Compact),
    /// Take external files into a table, all or none, without copying them
    #[command(after_help = bulk::INGEST_HELP)]
    Ingest(bulk::Ingest),
    /// Drop the extents of a table that lie within a range, at once; no delete: what else is in the range
    /// stays
    DropExtents(bulk::DropExtents),
    /// Verify an external file, and say what is in it
    Inspect(bulk::Inspect),
    /// Print any file of a database, an external file, or one extent, as annotated hexadecimal
    Dump(Dump),
    /// Measure Terrane and its peers on this machine
    #[command(after_help = bench::HELP)]
    Bench(Box<bench::Bench>),
    /// Run the engine in a simulated world: crashes, faults and rot, every answer compared with a model
    #[command(after_help = crate::commands::SIM_HELP)]
    Sim(crate::commands::Sim),
    /// Make a second database, of this moment, without copying data files
    #[command(after_help = backup::CHECKPOINT_HELP)]
    Checkpoint(backup::Checkpoint),
    /// Keep incremental, verified backups in a directory; restore them
    #[command(after_help = backup::BACKUP_HELP)]
    Backup(backup::Backup),
    /// Print what was committed, batch by batch, and follow it; also beside a process that writes
    #[command(after_help = changes::HELP)]
    Changes(changes::Changes),
    /// List the options of the engine: default, range and meaning
    Options(OptionList),
    /// Print the completions of a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one page per command to a directory
    Man {
        /// Directory for the pages
        directory: Option<PathBuf>,
    },
    /// Import a real data set and ask it a few questions
    Tour {
        /// Directory of the database
        #[arg(default_value = "tour.terrane")]
        database: PathBuf,
    },
}

/// Which table of which database.
#[derive(Clone, Debug, Args)]
pub struct Place {
    /// Directory of the database
    pub database: PathBuf,
    /// Table
    #[arg(long, default_value = "default")]
    pub table: String,
}

/// `get`.
#[derive(Clone, Debug, Args)]
pub struct Get {
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub place: Place,
    /// The key
    pub key: String,
    /// How the value is printed
    #[arg(long, value_enum, default_value = "raw")]
    pub format: Format,
}

/// `put`.
#[derive(Clone, Debug, Args)]
pub struct Put {
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub place: Place,
    /// The key
    pub key: String,
    /// The value; - reads it from standard input as it is
    pub value: String,
    /// How long it lives, such as 90s, 15m, 12h or 30d; the table's time to live if left out
    #[arg(long, value_name = "TIME")]
    pub ttl: Option<String>,
    /// Return when it survives the loss of power
    #[arg(long)]
    pub sync: bool,
}

/// `merge`.
#[derive(Clone, Debug, Args)]
pub struct Merge {
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub place: Place,
    /// The key
    pub key: String,
    /// The operand
    #[arg(allow_hyphen_values = true)]
    pub operand: String,
    /// The operand is a number, for a table whose operator is counter
    #[arg(long)]
    pub number: bool,
    /// Return when it survives the loss of power
    #[arg(long)]
    pub sync: bool,
}

/// `delete`.
#[derive(Clone, Debug, Args)]
pub struct Delete {
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub place: Place,
    /// The key
    pub key: String,
    /// Return when it survives the loss of power
    #[arg(long)]
    pub sync: bool,
}

/// `delete-range`.
#[derive(Clone, Debug, Args)]
pub struct DeleteRange {
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub place: Place,
    /// First key of the range
    pub from: String,
    /// First key after the range
    pub to: String,
    /// Return when it survives the loss of power
    #[arg(long)]
    pub sync: bool,
}

/// A range of keys.
#[derive(Clone, Debug, Default, Args)]
pub struct Range {
    /// First key of the range
    #[arg(long, value_name = "KEY", conflicts_with = "prefix")]
    pub from: Option<String>,
    /// First key after the range
    #[arg(long, value_name = "KEY", conflicts_with = "prefix")]
    pub to: Option<String>,
    /// Keys that begin with this
    #[arg(long, value_name = "KEY")]
    pub prefix: Option<String>,
}

/// `scan`.
#[derive(Clone, Debug, Args)]
pub struct Scan {
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub place: Place,
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub range: Range,
    /// Most rows to print
    #[arg(long, value_name = "ROWS")]
    pub limit: Option<u64>,
    /// From the last key to the first
    #[arg(long)]
    pub reverse: bool,
    /// Print keys only
    #[arg(long)]
    pub keys: bool,
    /// How rows are printed
    #[arg(long, value_enum, default_value = "tsv")]
    pub format: Format,
}

/// `count`.
#[derive(Clone, Debug, Args)]
pub struct Count {
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub place: Place,
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub range: Range,
}

/// `tables`.
#[derive(Clone, Debug, Args)]
pub struct Tables {
    /// Directory of the database
    pub database: PathBuf,
    /// Create this table
    #[arg(long, value_name = "TABLE", conflicts_with = "drop")]
    pub create: Option<String>,
    /// An option of the table to create, such as merge_operator=counter; may be repeated
    #[arg(long, value_name = "NAME=VALUE", requires = "create")]
    pub set: Vec<String>,
    /// Remove this table and everything in it
    #[arg(long, value_name = "TABLE")]
    pub drop: Option<String>,
}

/// `options`.
#[derive(Clone, Debug, Args)]
pub struct OptionList {
    /// List the experiments instead: switches of mechanisms, for comparisons and tests
    #[arg(long)]
    pub experiments: bool,
}

/// `shape`.
#[derive(Clone, Debug, Args)]
pub struct Shape {
    /// Directory of the database
    pub database: PathBuf,
}

/// `stats`.
#[derive(Clone, Debug, Args)]
pub struct Stats {
    /// Directory of the database
    pub database: PathBuf,
    /// One JSON object
    #[arg(long, conflicts_with = "prometheus")]
    pub json: bool,
    /// The text format of Prometheus, version 0.0.4
    #[arg(long)]
    pub prometheus: bool,
}

/// `check`.
#[derive(Clone, Debug, Args)]
pub struct Check {
    /// Directory of the database
    pub database: PathBuf,
}

/// `repair`.
#[derive(Clone, Debug, Args)]
pub struct Repair {
    /// Directory of the damaged database; it is only read
    pub database: PathBuf,
    /// Directory for the new one; must be missing or empty
    pub target: PathBuf,
}

/// `compact`.
#[derive(Clone, Debug, Args)]
pub struct Compact {
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub place: Place,
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub range: Range,
}

/// `dump`.
#[derive(Clone, Debug, Args)]
pub struct Dump {
    /// A manifest, segment or data file of a database, an external file, or a file that holds one extent
    pub file: PathBuf,
    /// Print parts from this byte on
    #[arg(long, value_name = "BYTE", default_value_t = 0)]
    pub from: u64,
    /// Print this many parts at most
    #[arg(long, value_name = "PARTS")]
    pub limit: Option<u64>,
}
