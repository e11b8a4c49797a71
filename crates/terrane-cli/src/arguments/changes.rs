//! Arguments of `changes`.

use std::path::PathBuf;

use clap::Args;

use crate::text::Format;

pub(super) const HELP: &str = "\
Examples:
  terrane changes data.terrane --from 1000
  terrane changes data.terrane --follow --format json

Each change is a line: sequence number, number of the last change of its batch, table, kind, key and value \
(of a delete-range the first key behind it), and the moment at which it expires, in milliseconds since \
1970, if it does. The database may be open in another process. To go on later, add 1 to the last number of \
the last whole batch. The options history_bytes and history_age set how much stays; where it begins \
later than --from, the exit code is 1 and the message names the oldest.
";

/// `changes`.
#[derive(Clone, Debug, Args)]
pub struct Changes {
    /// Directory of the database
    pub database: PathBuf,
    /// Begin with the batch that has this number; the oldest that is kept if left out
    #[arg(long, value_name = "NUMBER")]
    pub from: Option<u64>,
    /// Wait for more, until a signal
    #[arg(long)]
    pub follow: bool,
    /// End after so many batches
    #[arg(long, value_name = "BATCHES")]
    pub limit: Option<u64>,
    /// How changes are printed
    #[arg(long, value_enum, default_value = "tsv")]
    pub format: Format,
}
