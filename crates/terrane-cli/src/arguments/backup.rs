//! Arguments of `checkpoint` and `backup`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Consent;

pub(super) const CHECKPOINT_HELP: &str = "\
Example:
  terrane checkpoint data.terrane monday.terrane

The second database is writable and of its own. On one file system its data files are linked, so it takes \
neither time nor room to speak of; both keep what they share, and write elsewhere, until one of them is \
deleted or has rewritten it. Where files cannot be linked they are copied. A checkpoint on the same disk \
is not a backup: see `terrane backup --help`. Beside a process that writes the database, its state of that \
moment is copied, file by file: such a checkpoint links nothing.
";

/// `checkpoint`.
#[derive(Clone, Debug, Args)]
pub struct Checkpoint {
    /// Directory of the database
    pub database: PathBuf,
    /// Directory for the checkpoint; must not exist
    pub target: PathBuf,
}

pub(super) const BACKUP_HELP: &str = "\
Examples:
  terrane backup create people.terrane /backups/people --rate 100MiB
  terrane backup list /backups/people
  terrane backup verify /backups/people
  terrane backup restore /backups/people restored.terrane
  terrane backup purge /backups/people --keep 7 --yes

A place is a directory, best on another disk, that one or several databases are backed up to. Each backup \
copies only what no earlier one in the place has; each is whole by itself, and any may be removed. \
Everything has a checksum that each verify and each restore checks. A restore makes a new database and \
never writes over anything. What a crash or Ctrl-C leaves of an unfinished backup or restore the next one \
removes. Beside a process that writes the database, its state of that moment is backed up; within that \
process, terrane::Backups does it.
";

/// `backup`.
#[derive(Clone, Debug, Args)]
pub struct Backup {
    /// The command to run
    #[command(subcommand)]
    pub command: BackupCommand,
}

/// The commands of `backup`.
#[derive(Clone, Debug, Subcommand)]
pub enum BackupCommand {
    /// Make a backup of a database; copies only new data
    Create(Create),
    /// List the backups: number, time, last commit, size, and what was new
    List(List),
    /// Read everything that a backup needs and check all of it
    Verify(Verify),
    /// Make a new database of a backup
    Restore(Restore),
    /// Remove all backups but the newest, and what only they needed
    Purge(Purge),
    /// Remove one backup, whole or damaged, and what only it needed
    Delete(Delete),
}

/// `backup create`.
#[derive(Clone, Debug, Args)]
pub struct Create {
    /// Directory of the database, or deployment file
    pub database: PathBuf,
    /// Directory of the backups; made if missing
    pub place: PathBuf,
    /// Flush memory into extents first, instead of copying the journal
    #[arg(long)]
    pub flush: bool,
    /// Read what older backups have, too, and copy its damaged objects again
    #[arg(long)]
    pub recheck: bool,
    /// Most bytes per second to copy, such as 100MiB
    #[arg(long, value_name = "SIZE")]
    pub rate: Option<String>,
}

/// `backup list`.
#[derive(Clone, Debug, Args)]
pub struct List {
    /// Directory of the backups
    pub place: PathBuf,
    /// One JSON object per backup
    #[arg(long)]
    pub json: bool,
}

/// `backup verify`.
#[derive(Clone, Debug, Args)]
pub struct Verify {
    /// Directory of the backups
    pub place: PathBuf,
    /// Number of the backup; the newest if left out
    pub id: Option<u64>,
    /// Every backup
    #[arg(long, conflicts_with = "id")]
    pub all: bool,
    /// One JSON object per backup
    #[arg(long)]
    pub json: bool,
    /// Most bytes per second to read, such as 100MiB
    #[arg(long, value_name = "SIZE")]
    pub rate: Option<String>,
}

/// `backup restore`.
#[derive(Clone, Debug, Args)]
pub struct Restore {
    /// Directory of the backups
    pub place: PathBuf,
    /// Directory for the database; must not exist
    pub target: PathBuf,
    /// Number of the backup; the newest if left out
    #[arg(long)]
    pub id: Option<u64>,
    /// Most bytes per second to read, such as 100MiB
    #[arg(long, value_name = "SIZE")]
    pub rate: Option<String>,
}

/// `backup purge`.
#[derive(Clone, Debug, Args)]
pub struct Purge {
    /// Directory of the backups
    pub place: PathBuf,
    /// Number of backups to keep
    #[arg(long, value_name = "BACKUPS")]
    pub keep: usize,
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub consent: Consent,
}

/// `backup delete`.
#[derive(Clone, Debug, Args)]
pub struct Delete {
    /// Directory of the backups
    pub place: PathBuf,
    /// Number of the backup
    pub id: u64,
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub consent: Consent,
}
