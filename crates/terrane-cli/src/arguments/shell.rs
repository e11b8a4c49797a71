//! Arguments of `shell`.

use std::path::PathBuf;

use clap::Args;

pub(super) const HELP: &str = "\
Examples:
  terrane shell people.terrane
  printf 'put ada Lovelace\\nget ada\\n' | terrane shell people.terrane --create

The commands are those of the command line without the database: `get KEY`, `scan --prefix a --limit 5`. \
Words with spaces stand in 'single' or \"double\" quotes. `.help` lists the rest. Where another process \
has the database open for writing, the shell reads beside it, and `.refresh` shows what it has committed \
since. `.read FILE` does what the lines of a file say, `.mode json` prints rows as JSON, `.output FILE` \
prints into a file. From a pipe or a file the first error ends the shell. The history is in \
terrane/history below $XDG_STATE_HOME, or ~/.local/state.
";

/// `shell`.
#[derive(Clone, Debug, Args)]
pub struct Shell {
    /// Directory of the database, or deployment file
    pub database: PathBuf,
    /// Make the database if it is missing
    #[arg(long, conflicts_with = "read_only")]
    pub create: bool,
    /// Only read; nothing is written, and other readers may have it open
    #[arg(long)]
    pub read_only: bool,
    /// Table of commands that name none
    #[arg(long, default_value = "default")]
    pub table: String,
}
