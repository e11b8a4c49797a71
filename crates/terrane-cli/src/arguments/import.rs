//! `import`.

use std::path::PathBuf;

use clap::Args;

use crate::import;

pub(super) const HELP: &str = "\
Examples:
  terrane import people.terrane people.jsonl --key id
  terrane import people.terrane people.csv.gz --key country,id --table people
  zcat log.gz | terrane import log.terrane - --format tsv --key 2,1 --name log
  terrane export old.terrane - | terrane import new.terrane - --format jsonl
  terrane import new.terrane /var/lib/app/db --from rocksdb

What `terrane export` wrote is read back byte for byte: give no --key then. Tab-separated lines of \
`terrane scan` are read back with --escaped.

The position in the input is stored in the same atomic batch as the records, in the table terrane.import. \
After a kill or a signal the same command goes on right after the last batch that was acknowledged. When a \
file has grown since it was imported, the same command imports what was appended. Each pipe is an input of \
its own; with --name it is one that begins as the last pipe of that name did, and the new rows behind it \
are imported.

With --from rocksdb the input is the directory of a database that RocksDB wrote, and the database to make \
is a new one. All column families become tables of their names. The rows are read by RocksDB's own \
library, which is opened for reading and writes nothing; no program may write to the source meanwhile. \
Merged values come as one value each: operators that the library has are found by the name that the source \
recorded, another one is refused, unless no operand is left. Keys ordered by a comparator of a program's \
own are refused by its name. The rows go in sorted, past memory and journal; at the end all of them are \
read again and counts and checksums compared. Not copied: expiry (values of a database opened with a time \
to live keep their four bytes of time at the end), columns of wide rows but the default one, options, and \
history.
";

/// `import`.
#[derive(Clone, Debug, Args)]
pub struct Import {
    /// Directory of the database, or deployment file; made if missing, and new for --from rocksdb
    pub database: PathBuf,
    /// The input, plain or compressed with gzip or Zstandard; - is standard input; for --from rocksdb a
    /// directory
    pub input: String,
    /// Format of the input; derived from the name if left out
    #[arg(long, value_enum)]
    pub format: Option<import::Format>,
    /// Fields that make the key, in order: a field of the object (a.b for a nested one), a column of the
    /// header, a field of the stanza (Package if left out), the number of a column (1 if left out). If left
    /// out for JSON Lines and CSV, the input is what `terrane export` wrote
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',')]
    pub key: Vec<String>,
    /// The text between the fields in the key
    #[arg(long, value_name = "TEXT", default_value = "/")]
    pub key_separator: String,
    /// Table to import into, made if missing; default if left out. An export of all tables names its own ones
    #[arg(long)]
    pub table: Option<String>,
    /// Most records in one atomic batch
    #[arg(long, value_name = "RECORDS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub batch: u64,
    /// Make each batch durable before the next one; without it the whole import is made durable at its end
    #[arg(long)]
    pub sync: bool,
    /// Skip records that cannot be read and count them, instead of stopping at the first one
    #[arg(long)]
    pub skip_bad: bool,
    /// Start over, whatever an earlier import of the same input left behind
    #[arg(long)]
    pub restart: bool,
    /// Only read the input from its start, and count the records and those whose key the database has
    #[arg(long, conflicts_with = "ack_file")]
    pub dry_run: bool,
    /// Name under which the position is stored; the path of the input if left out
    #[arg(long)]
    pub name: Option<String>,
    /// Column separator of CSV
    #[arg(long, value_name = "CHARACTER", default_value = ",")]
    pub delimiter: String,
    /// Skip tab-separated lines that start with this character
    #[arg(long, value_name = "CHARACTER")]
    pub comment: Option<String>,
    /// Tab-separated lines have the escapes of `terrane scan`: \n \r \t \0 \\ \xNN, or 0x and digits
    #[arg(long, conflicts_with = "key")]
    pub escaped: bool,
    /// Do not look whether a key is there already: faster where the table is much larger than memory, but
    /// replaced rows are not counted
    #[arg(long)]
    pub blind: bool,
    /// Append the count of acknowledged records to this file after each batch
    #[arg(long, value_name = "FILE")]
    pub ack_file: Option<PathBuf>,
    /// Copy a database instead of a file or stream
    #[arg(long, value_enum, conflicts_with_all = RECORDS_ONLY)]
    pub from: Option<From>,
    /// RocksDB's shared library, for --from rocksdb; if left out, what TERRANE_ROCKSDB names, or the one that
    /// the system has
    #[arg(long, value_name = "FILE", requires = "from")]
    pub library: Option<PathBuf>,
    /// Options of RocksDB to open the source with, in its syntax; merge_operator=NAME is for column families
    /// whose own one the library does not have
    #[arg(long, value_name = "NAME=VALUE;...", requires = "from")]
    pub source_options: Option<String>,
}

impl Import {
    /// The table of records that name none.
    #[must_use]
    pub fn table(&self) -> &str {
        self.table.as_deref().unwrap_or("default")
    }
}

/// Arguments that have no meaning when a database is copied.
const RECORDS_ONLY: [&str; 15] = [
    "dry_run",
    "format",
    "key",
    "key_separator",
    "table",
    "batch",
    "sync",
    "skip_bad",
    "restart",
    "name",
    "delimiter",
    "comment",
    "escaped",
    "blind",
    "ack_file",
];

/// Databases that can be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum From {
    /// RocksDB, by way of its own library
    Rocksdb,
}
