//! Arguments of `export` and `copy`.

use std::path::PathBuf;

use clap::Args;

use super::{Range, TableArgs};

pub(super) const HELP: &str = "\
Examples:
  terrane export people.terrane people.jsonl.gz
  terrane export people.terrane - --format csv --prefix a
  terrane export people.terrane all.jsonl --all
  terrane export people.terrane | terrane import copy.terrane - --format jsonl
  terrane export people.terrane people.extents
  terrane ingest other.terrane people.extents

`terrane import` without --key reads each format back byte for byte, whatever bytes keys and values are:
  jsonl    {\"key\":\"..\",\"value\":\"..\"}; key_hex and value_hex hold other bytes
           than UTF-8, in hexadecimal digits
  csv      columns key,value,hex; the third has k or v where key or value is
           hexadecimal digits
  tsv      key, tab, value, with the escapes \\n \\r \\t \\\\ \\xNN
  extents  external files for `terrane ingest`; from about 900 MiB on more
           than one

A name that ends with .gz or .zst is compressed. Values of merges are those that a read gives. Times at \
which rows expire are not exported. The file gets its name when it is complete.
";

/// `export`.
#[derive(Clone, Debug, Args)]
pub struct Export {
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub place: TableArgs,
    /// The file, which must not exist; - is standard output
    #[arg(default_value = "-")]
    pub output: String,
    /// Format of the output; derived from the name if left out, and jsonl on standard output
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Every table, with the options that it was made with; JSON Lines only
    #[arg(long, conflicts_with_all = ["table", "from", "to", "prefix"])]
    pub all: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub range: Range,
}

/// Formats of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// JSON Lines
    Jsonl,
    /// Comma-separated rows
    Csv,
    /// Tab-separated lines with escapes
    Tsv,
    /// External files for `ingest`
    Extents,
}

pub(super) const COPY_HELP: &str = "\
Examples:
  terrane copy people.terrane other.terrane
  terrane copy people.terrane other.terrane --table people --into citizens
  terrane copy people.terrane other.terrane --prefix a --dry-run

Each table is made in the target with the options that it has, or must have the same there. Rows of the \
same key are replaced. The source may be open in another process; what it commits meanwhile is not copied. \
Times at which rows expire are not copied: use `terrane checkpoint` or `terrane backup` for a whole \
database.
";

/// `copy`.
#[derive(Clone, Debug, Args)]
pub struct Copy {
    /// Directory of the database to read, or deployment file
    pub source: PathBuf,
    /// Directory of the database to write, made if missing; or deployment file
    pub target: PathBuf,
    /// Copy this table only
    #[arg(long)]
    pub table: Option<String>,
    /// Name of that table in the target, if another
    #[arg(long, value_name = "TABLE", requires = "table")]
    pub into: Option<String>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub range: Range,
    /// Only count what would be copied and replaced
    #[arg(long)]
    pub dry_run: bool,
}
