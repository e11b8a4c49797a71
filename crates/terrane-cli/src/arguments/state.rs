//! Arguments of `tables`, `shape`, `stats`, `check`, `repair`, `compact` and `dump`.

use std::path::PathBuf;

use clap::Args;

use super::{Consent, Range, TableArgs};

/// `tables`.
#[derive(Clone, Debug, Args)]
pub struct Tables {
    /// Directory of the database, or deployment file
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
    /// Show versions, bytes, value tables and options of each table
    #[arg(long, conflicts_with_all = ["create", "drop"])]
    pub long: bool,
    /// The same as one JSON object per table
    #[arg(long, conflicts_with_all = ["create", "drop", "follow"])]
    pub json: bool,
    /// Show them again each second, also beside a process that writes, until a signal
    #[arg(long, requires = "long")]
    pub follow: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub consent: Consent,
}

/// `shape`.
#[derive(Clone, Debug, Args)]
pub struct Shape {
    /// Directory of the database, or deployment file
    pub database: PathBuf,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
    /// Show it again each second, also beside a process that writes, until a signal
    #[arg(long)]
    pub follow: bool,
}

/// `stats`.
#[derive(Clone, Debug, Args)]
pub struct Stats {
    /// Directory of the database, or deployment file
    pub database: PathBuf,
    /// One JSON object
    #[arg(long, conflicts_with = "prometheus")]
    pub json: bool,
    /// The text format of Prometheus, version 0.0.4
    #[arg(long, conflicts_with = "table")]
    pub prometheus: bool,
    /// Only the metrics of this table
    #[arg(long)]
    pub table: Option<String>,
    /// Sizes of the keys and values of the table (default if left out) instead, in powers of two, from a
    /// sample of 10,000 rows
    #[arg(long, conflicts_with_all = ["follow", "prometheus"])]
    pub sizes: bool,
    /// Sizes of all rows, which reads the whole table
    #[arg(long, requires = "sizes")]
    pub all: bool,
    /// Show it again each second, also beside a process that writes, until a signal
    #[arg(long)]
    pub follow: bool,
}

/// `check`.
#[derive(Clone, Debug, Args)]
pub struct Check {
    /// Directory of the database, or deployment file
    pub database: PathBuf,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
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
    pub place: TableArgs,
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

/// `options`.
#[derive(Clone, Debug, Args)]
pub struct OptionList {
    /// List the experiments instead: switches of mechanisms, for comparisons and tests
    #[arg(long)]
    pub experiments: bool,
}
