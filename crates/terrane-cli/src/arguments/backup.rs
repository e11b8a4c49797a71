//! Arguments of `checkpoint`.

use std::path::PathBuf;

use clap::Args;

pub(super) const CHECKPOINT_HELP: &str = "\
Example:
  terrane checkpoint data.terrane monday.terrane

The second database is writable and of its own. On one file system its data files are linked, so it takes neither time
nor room to speak of; both keep what they share, and write elsewhere, until one of them is deleted or has rewritten it.
Where files cannot be linked they are copied. A checkpoint on the same disk is no backup: see `terrane backup`.
A database that is open in another process can only be copied by that process, with Db::checkpoint.
";

/// `checkpoint`.
#[derive(Clone, Debug, Args)]
pub struct Checkpoint {
    /// Directory of the database
    pub database: PathBuf,
    /// Directory for the second one; must not exist
    pub target: PathBuf,
}
