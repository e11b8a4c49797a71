//! Arguments of `ingest`, `drop-extents` and `inspect`.

use std::path::PathBuf;

use clap::Args;

use super::{Consent, Range, TableArgs};

pub(super) const INGEST_HELP: &str = "\
Examples:
  terrane ingest data.terrane --table people people-1.extents people-2.extents
  terrane ingest data.terrane people.extents --remove --dry-run

The files are those of ExtentFileWriter. They come in as one commit, newer than all before. On one file \
system they become data files of the database by another name, so nothing is copied; no program may write \
to them any more. --remove takes the names that you give away, as mv does, and does not ask: only once the \
rows are in the database, durably. An ingest that fails or is stopped before that removes none. --dry-run \
reads the files, and says what would come in and go.
";

/// `ingest`.
#[derive(Clone, Debug, Args)]
pub struct Ingest {
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub place: TableArgs,
    /// The files; of one table, so they must not overlap
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Copy the extents instead of linking the files
    #[arg(long)]
    pub copy: bool,
    /// Remove the files once they are in, as `mv` does: without asking
    #[arg(long)]
    pub remove: bool,
    /// Only read the files and say what would come in, and what would be removed
    #[arg(long)]
    pub dry_run: bool,
    /// Do not read the files first to check every checksum
    #[arg(long)]
    pub no_verify: bool,
    /// Accepted for older scripts: files are read first unless `--no-verify` is there
    #[arg(long, hide = true, conflicts_with = "no_verify")]
    pub verify: bool,
}

/// `drop-extents`.
#[derive(Clone, Debug, Args)]
pub struct DropExtents {
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub place: TableArgs,
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub range: Range,
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub consent: Consent,
}

/// `inspect`.
#[derive(Clone, Debug, Args)]
pub struct Inspect {
    /// The file
    pub file: PathBuf,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}
