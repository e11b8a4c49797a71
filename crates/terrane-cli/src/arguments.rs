//! The command line. The texts here are the help and the manual page.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use terrane::SeqNo;
use terrane_base::env::Env;
use terrane_remote::At;

pub mod backup;
pub mod bench;
pub mod bulk;
pub mod changes;
pub mod clone;
pub mod cost;
mod doctor;
mod examples;
pub mod export;
pub mod import;
mod point;
#[cfg(feature = "grpc")]
pub mod serve;
pub mod shell;
mod state;
pub mod top;

pub use self::doctor::Doctor;
pub use self::point::{Delete, DeleteRange, Get, Merge, Put};
pub use self::state::{Check, Compact, Dump, OptionList, Repair, Shape, Stats, Tables};
use crate::exit;
use crate::text::Format;

const EXAMPLES: &str = "\
Examples:
  terrane import packages.terrane /var/lib/dpkg/status --key Package
  terrane get packages.terrane bash
  terrane scan packages.terrane --prefix lib --limit 5
  terrane export packages.terrane packages.jsonl.gz
  terrane shell packages.terrane

`terrane COMMAND --help` has examples of each command. Commands that only read work beside a process that \
writes: they show the state of the moment at which they began. In place of the directory of a database \
they take a deployment file, which says where its parts lie: see `terrane doctor --help`.

Keys and values are text with the escapes \\n \\r \\t \\0 \\\\ \\xNN, or 0x and hexadecimal digits.
";

/// Stores, finds and scans records in a log-structured merge tree.
#[derive(Clone, Debug, Parser)]
#[command(name = "terrane", version, after_help = format!("{EXAMPLES}\n{}", exit::table()), max_term_width = 100)]
pub struct Arguments {
    /// The command to run
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
    /// Read a deployment as it was at a time of its object store, such as 2026-11-29T10:00:00Z, -10m, -2h
    #[arg(long, global = true, value_name = "TIME", help_heading = "Engine", allow_hyphen_values = true)]
    #[arg(value_parser = at_time, conflicts_with = "at_commit")]
    pub at: Option<At>,
    /// Read a deployment as it was at a commit, by its number
    #[arg(long, global = true, value_name = "NUMBER", help_heading = "Engine")]
    pub at_commit: Option<u64>,
    /// The database that is open already: commands of a shell use it, whatever path they are given.
    #[arg(skip)]
    pub opened: Option<terrane::Db>,
    /// True for further openings of one command: what the first one said of the database is not said again.
    #[arg(skip)]
    pub is_opened_again: bool,
    /// Where a command of a shell prints; `None` outside of one.
    #[arg(skip)]
    pub shell: Option<InShell>,
}

/// Where a command of a shell prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InShell {
    /// True for the file of `.output`.
    pub is_file: bool,
    /// True if a value of a raw `get` is a line: the next one is seen below it.
    pub ends_line: bool,
}

impl Engine {
    /// The earlier moment that is asked for.
    pub fn moment(&self) -> Option<At> {
        debug_assert!(self.at.is_none() || self.at_commit.is_none(), "the parser refuses both");
        self.at.or(self.at_commit.map(|number| At::Commit(SeqNo(number))))
    }

    /// Returns true if a person reads on a terminal what the command prints.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        let is_file = self.shell.is_some_and(|shell| shell.is_file);
        !is_file && std::io::IsTerminal::is_terminal(&std::io::stdout())
    }

    /// The same, for the present state.
    #[must_use]
    pub fn now(&self) -> Engine {
        Engine { at: None, at_commit: None, ..self.clone() }
    }
}

fn at_time(text: &str) -> Result<At, String> {
    At::read_time(text, Env::real().clock.wall()).map_err(|error| error.message().to_owned())
}

impl Command {
    /// Returns true for commands that take an earlier state of a deployment, if they are asked to.
    pub fn takes_moment(&self) -> bool {
        matches!(
            self,
            Command::Get(_)
                | Command::Scan(_)
                | Command::Count(_)
                | Command::Estimate(_)
                | Command::Export(_)
                | Command::Copy(_)
                | Command::Tables(_)
                | Command::Shape(_)
                | Command::Stats(_)
                | Command::Check(_)
                | Command::Clone(_)
        )
    }
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Store the records of a file or stream, or a database of RocksDB; goes on where it was stopped or
    /// killed
    #[command(after_help = import::HELP)]
    Import(Box<import::Import>),
    /// Write rows so that `terrane import` reads them back byte for byte; or external files for `ingest`
    #[command(after_help = export::HELP)]
    Export(export::Export),
    /// Copy tables to another database, sorted, past its journal and memory
    #[command(after_help = export::COPY_HELP)]
    Copy(export::Copy),
    /// Open a database once and take commands, with history and completion; also from a pipe
    #[command(after_help = shell::HELP)]
    Shell(shell::Shell),
    /// Print the value of a key
    #[command(after_help = examples::GET)]
    Get(Get),
    /// Set a key to a value
    #[command(after_help = examples::PUT)]
    Put(Put),
    /// Merge an operand to a key, by the merge operator of its table
    #[command(after_help = examples::MERGE)]
    Merge(Merge),
    /// Remove a key; fine if it is not there
    #[command(after_help = examples::DELETE)]
    Delete(Delete),
    /// Remove every key of a range, at the cost of one
    #[command(after_help = examples::DELETE_RANGE)]
    DeleteRange(DeleteRange),
    /// Print the rows of a range in key order
    #[command(after_help = examples::SCAN)]
    Scan(Scan),
    /// Count the rows of a range
    #[command(after_help = examples::COUNT)]
    Count(Count),
    /// Tell how many rows and bytes a range has, about, without reading them
    #[command(after_help = examples::ESTIMATE)]
    Estimate(Estimate),
    /// List the tables, or create or drop one
    #[command(after_help = examples::TABLES)]
    Tables(Tables),
    /// Show the state of the trees: what a read has to search, and where the bytes are
    #[command(after_help = examples::SHAPE)]
    Shape(Shape),
    /// Show what the engine counts, from the moment this command opened the database
    #[command(after_help = examples::STATS)]
    Stats(Stats),
    /// Look into a database that another process writes: rates, times, memory, levels, jobs, readers
    #[command(after_help = top::HELP)]
    Top(top::Top),
    /// Print the requests and bytes of a deployment by part, and what they cost
    #[command(after_help = cost::HELP)]
    Cost(cost::Cost),
    /// Verify every checksum and every invariant; name each damage
    #[command(after_help = examples::CHECK)]
    Check(Check),
    /// Try every part of a deployment, and describe each fault
    #[command(after_help = doctor::HELP)]
    Doctor(Doctor),
    /// Copy the readable rows of a damaged database into a new one; name the losses
    #[command(after_help = examples::REPAIR)]
    Repair(Repair),
    /// Merge a range of a table into its deepest level
    #[command(after_help = examples::COMPACT)]
    Compact(Compact),
    /// Take external files into a table, all or none, without copying them
    #[command(after_help = bulk::INGEST_HELP)]
    Ingest(bulk::Ingest),
    /// Drop the extents of a table that lie within a range, at once; no delete: what else is in the range
    /// stays
    #[command(after_help = examples::DROP_EXTENTS)]
    DropExtents(bulk::DropExtents),
    /// Verify an external file, and describe its content
    #[command(after_help = examples::INSPECT)]
    Inspect(bulk::Inspect),
    /// Print any file of a database, an external file, or one extent, as annotated hexadecimal
    #[command(after_help = examples::DUMP)]
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
    /// Make a second database of a deployment, of now or of an earlier moment, without copying data objects
    #[command(after_help = clone::HELP)]
    Clone(clone::MakeClone),
    /// Keep incremental, verified backups in a directory; restore them
    #[command(after_help = backup::BACKUP_HELP)]
    Backup(backup::Backup),
    /// Print what was committed, batch by batch, and follow it; also beside a process that writes
    #[command(after_help = changes::HELP)]
    Changes(changes::Changes),
    /// Serve a part of databases to other machines, until a signal
    #[cfg(feature = "grpc")]
    #[command(after_help = serve::HELP)]
    Serve(serve::Serve),
    /// List the options of the engine: default, range and meaning
    #[command(after_help = examples::OPTIONS)]
    Options(OptionList),
    /// Print the completions of a shell
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one page per command to a directory
    #[command(after_help = examples::MAN)]
    Man {
        /// Directory for the pages
        directory: Option<PathBuf>,
    },
    /// Import a real data set and ask it a few questions
    #[command(after_help = examples::TOUR)]
    Tour {
        /// Directory of the database, or deployment file
        #[arg(default_value = "tour.terrane")]
        database: PathBuf,
    },
}

/// Which table of which database.
#[derive(Clone, Debug, Args)]
pub struct TableArgs {
    /// Directory of the database, or deployment file
    pub database: PathBuf,
    /// Table
    #[arg(long, default_value = "default")]
    pub table: String,
}

/// Consent to what removes more than one key.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Consent {
    /// Do it without asking; needed where no terminal is to ask on
    #[arg(long)]
    pub yes: bool,
    /// Only say what would be removed
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
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
    pub place: TableArgs,
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
    /// Print the values of counters as numbers, also where no terminal shows them
    #[arg(long, conflicts_with = "keys")]
    pub number: bool,
    /// How rows are printed; if left out tsv, and on a terminal the values of a table of counters as numbers
    #[arg(long, value_enum)]
    pub format: Option<Format>,
}

/// `estimate`.
#[derive(Clone, Debug, Args)]
pub struct Estimate {
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub place: TableArgs,
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub range: Range,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// `count`.
#[derive(Clone, Debug, Args)]
pub struct Count {
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub place: TableArgs,
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub range: Range,
}
